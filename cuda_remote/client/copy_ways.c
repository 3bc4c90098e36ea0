/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between host and device that pass through this process: the calls of each way, and when the data is sent. */
#include "cuda_remote/client/chunks.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"

/* ---- to the device ---- */

CUresult rc_copy_up(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *copy,
		    uint64_t stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .box = *box } };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t total = rc_copy_bytes(copy);
	if (total <= RC_INLINE_COPY) {
		struct iovec iov[CH3_IOV_MAX];
		bool gathered;
		int n = rc_chunks_pieces(link, copy, 0, total, iov, &gathered);
		if (n < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
		return rc_link_post(link, RC_CALL_copy_up, 0, &message.head, sizeof message, iov, n);
	}
	message.call.copy = rc_copy_new_id();
	message.call.staged = rc_chunks_staged(link);
	result = rc_link_post(link, RC_CALL_copy_up, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	/* The end is sent after a failure too: the worker waits for it, and finds the copy incomplete. */
	CUresult sent = rc_chunks_send(link, &message.call, copy);
	result = rc_link_post(link, RC_CALL_copy_up_end, 0, &message.head, sizeof message.head + sizeof message.call.copy, NULL,
			      0);
	return sent != CUDA_SUCCESS ? sent : result;
}

/* Sends the call of an asynchronous copy that is listed. If that fails, the session is lost. It may also have been lost since the
 * copy was listed. */
static CUresult post_later(struct rc_link *link, enum rc_call function, struct rc_wire_call *head, size_t len,
			   const struct iovec *iov, int n)
{
	CUresult result = rc_link_post(link, function, 0, head, len, iov, n);
	if (__atomic_load_n(&link->session->lost, __ATOMIC_SEQ_CST))
		rc_copy_session_lost(link->session);
	return result;
}

CUresult rc_copy_up_later(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *host,
			  uint64_t stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .box = *box } };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_copy source = *host;
	source.up = true;
	source.box = *box;
	if (!rc_copy_begin(link->session, &source, NULL, &message.call.copy))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return post_later(link, RC_CALL_copy_up_later, &message.head, sizeof message, NULL, 0);
}

/* ---- asynchronous copies between pinned memory and arrays ---- */

CUresult rc_copy_array_later(struct rc_link *link, const struct rc_copy *host, uint64_t stream, const CUDA_MEMCPY3D *array)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .unkept = !host->up, .box = host->box } };
	struct iovec iov = { (void *)(uintptr_t)array, sizeof *array };
	if (!rc_copy_begin(link->session, host, NULL, &message.call.copy))
		return CUDA_ERROR_OUT_OF_MEMORY;
	enum rc_call call = host->up ? RC_CALL_array_up_later : RC_CALL_array_down_later;
	return post_later(link, call, &message.head, sizeof message, &iov, 1);
}

CUresult rc_copy_up_settled(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *copy,
			    uint64_t stream, bool *posted)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .box = *box } };
	struct rc_link *link;
	struct iovec iov[CH3_IOV_MAX];
	bool gathered;
	*posted = false;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	int n = rc_chunks_pieces(link, copy, 0, rc_copy_bytes(copy), iov, &gathered);
	if (n < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return rc_link_post_settled(link, RC_CALL_copy_up_settled, &message.head, sizeof message, iov, n, posted);
}

/* ---- to the host ---- */

/* A small copy: the reply contains the data. It is stored after that of earlier copies, which arrives before the call returns. */
static CUresult copy_down_reply(struct rc_link *link, struct rc_wire_call *head, const struct rc_wire_copy *call,
				const struct rc_copy *host)
{
	uint64_t bytes = rc_copy_bytes(host);
	CUresult result = rc_link_call(link, RC_CALL_copy_down_reply, 0, head, sizeof *head + sizeof *call, NULL, 0);
	if (result == CUDA_SUCCESS && link->reply_len != bytes)
		return rc_link_broken(link, RC_CALL_copy_down_reply);
	if (result == CUDA_SUCCESS)
		rc_copy_scatter(host, 0, bytes, link->reply);
	return result;
}

static CUresult copy_down_now(struct rc_link *link, struct rc_wire_call *head, struct rc_wire_copy *call,
			      const struct rc_copy *host)
{
	struct rc_copy *copy = rc_copy_begin(link->session, host, link, &call->copy);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	call->staged = rc_copy_bytes(host) > RC_INLINE_COPY && rc_chunks_staged(link);
	CUresult result = rc_link_call(link, RC_CALL_copy_down, 0, head, sizeof *head + sizeof *call, NULL, 0);
	uint64_t left = __atomic_load_n(&copy->left, __ATOMIC_ACQUIRE);
	rc_copy_end(copy);
	return result == CUDA_SUCCESS && left ? rc_link_broken(link, RC_CALL_copy_down) : result;
}

/* Reserves part of the worker's staging memory for an asynchronous copy. False: not enough is free. */
static bool staging_take(struct rc_session *session, uint64_t bytes)
{
	if (__atomic_add_fetch(&session->staged, bytes, __ATOMIC_RELAXED) <= session->staging)
		return true;
	__atomic_sub_fetch(&session->staged, bytes, __ATOMIC_RELAXED);
	return false;
}

/* An asynchronous copy to pinned memory: the data connection brings its bytes. If the worker has staging memory for them, the
 * stream goes on when the device has done the copy, otherwise when the bytes are sent. */
static CUresult copy_down_later(struct rc_link *link, struct rc_wire_call *head, struct rc_wire_copy *call,
				const struct rc_copy *host)
{
	struct rc_copy into = *host;
	into.kept = staging_take(link->session, rc_copy_bytes(host));
	call->unkept = !into.kept;
	if (!rc_copy_begin(link->session, &into, NULL, &call->copy)) {
		if (into.kept)
			__atomic_sub_fetch(&link->session->staged, rc_copy_bytes(host), __ATOMIC_RELAXED);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return post_later(link, RC_CALL_copy_down_later, head, sizeof *head + sizeof *call, NULL, 0);
}

CUresult rc_copy_down(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *host,
		      uint64_t stream, bool may_be_later)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .box = *box } };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t bytes = rc_copy_bytes(host);
	if (may_be_later && rc_data_open(link->session))
		return copy_down_later(link, &message.head, &message.call, host);
	/* The data connection may still bring bytes of an earlier copy of the stream to the same memory. */
	if (rc_copy_writes((uint64_t)(uintptr_t)host->host, rc_copy_extent(host))) {
		result = rc_copy_wait_for_turn(stream);
		if (result == CUDA_SUCCESS)
			result = rc_link_get(route, true, &link);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (bytes <= RC_REPLY_COPY && rc_box_chunk(box, 0) == bytes)
		return copy_down_reply(link, &message.head, &message.call, host);
	return copy_down_now(link, &message.head, &message.call, host);
}
