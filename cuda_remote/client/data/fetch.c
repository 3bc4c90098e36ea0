/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the device that the client sends late. When the stream reaches such a copy, the worker requests the bytes over the
 * data connection (FETCH), window by window, and the thread of that connection sends them.
 */
#include "cuda_remote/client/chunks.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/data/data.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Chunks that are being sent at a time. They may be of several windows, so that the worker always has one to receive. */
#define SENDS 8

struct send {
	ch3_request_t *request;
	struct rc_copy *copy; /* the chunk is the last one of a window of this copy; else NULL */
	uint64_t window;      /* bytes of the window */
};

struct sends {
	struct send send[SENDS];
	unsigned first, end; /* send[first..end-1], modulo SENDS */
};

int rc_fetch_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct rc_link *link = context;
	struct rc_session *session = link->session;
	struct rc_wire_fetch wire;
	(void)sink;
	if (!rc_data_is(link) || incoming->header_len != sizeof wire || incoming->payload_len ||
	    session->fetches == sizeof session->fetch / sizeof *session->fetch)
		return -EPROTO;
	memcpy(&wire, incoming->header, sizeof wire);
	rc_link_see_calls(session);
	/* Acquire pairs with the release in run (hostfn.c): a host function may have written the bytes. */
	(void)__atomic_load_n(&session->arrived, __ATOMIC_ACQUIRE);
	session->fetch[session->fetches++] = wire;
	return 0;
}

/* The pieces of a chunk. Gathered bytes have memory of their own, as chunks that arrive meanwhile use the link's. -1: no
 * memory. */
static int pieces(struct rc_session *session, const struct rc_copy *copy, uint64_t offset, uint64_t len, struct iovec *iov,
		  bool *gathered)
{
	int n = rc_copy_pieces(copy, offset, len, iov, CH3_IOV_MAX);
	*gathered = !n;
	if (n)
		return n;
	if (!session->gathered && !(session->gathered = malloc(RC_CHUNK_MAX)))
		return -1;
	rc_copy_gather(copy, offset, len, session->gathered);
	iov[0] = (struct iovec){ session->gathered, len };
	return 1;
}

/* Waits until the oldest chunk is sent. */
static CUresult send_finish(struct rc_link *link, struct sends *sends)
{
	struct send send = sends->send[sends->first++ % SENDS];
	CUresult result = rc_link_finish(link, send.request);
	if (send.copy && result == CUDA_SUCCESS)
		rc_copy_sent(send.copy, send.window);
	else if (send.copy)
		rc_copy_failed(send.copy);
	return result;
}

static CUresult send_finish_all(struct rc_link *link, struct sends *sends)
{
	CUresult result = CUDA_SUCCESS;
	while (sends->first != sends->end) {
		CUresult finished = send_finish(link, sends);
		result = result == CUDA_SUCCESS ? finished : result;
	}
	return result;
}

static CUresult send_chunk(struct rc_link *link, struct sends *sends, const struct rc_copy *copy,
			   const struct rc_wire_chunk *chunk, uint64_t len)
{
	struct iovec iov[CH3_IOV_MAX];
	struct send send = { NULL, NULL, 0 };
	bool gathered;
	CUresult result = sends->end - sends->first == SENDS ? send_finish(link, sends) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		return result;
	int n = pieces(link->session, copy, chunk->offset, len, iov, &gathered);
	if (n < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = rc_link_packet(link, RC_PACKET_CHUNK, chunk, sizeof *chunk, iov, n, &send.request);
	if (result != CUDA_SUCCESS)
		return result;
	sends->send[sends->end++ % SENDS] = send;
	return gathered ? send_finish_all(link, sends) : CUDA_SUCCESS;
}

/* The window ends with the last chunk that was sent. */
static void window_ends(struct sends *sends, struct rc_copy *copy, uint64_t bytes)
{
	struct send *last = &sends->send[(sends->end - 1) % SENDS];
	if (sends->first == sends->end) {
		rc_copy_sent(copy, bytes);
	} else {
		last->copy = copy;
		last->window = bytes;
	}
}

static CUresult send_window(struct rc_link *link, struct sends *sends, struct rc_copy *copy,
			    const struct rc_wire_fetch *wire)
{
	struct rc_wire_chunk chunk = { wire->copy, wire->offset };
	CUresult result = CUDA_SUCCESS;
	while (result == CUDA_SUCCESS && chunk.offset < wire->offset + wire->bytes) {
		uint64_t len = rc_box_chunk(&copy->box, chunk.offset);
		result = send_chunk(link, sends, copy, &chunk, len);
		chunk.offset += len;
	}
	if (result == CUDA_SUCCESS) {
		window_ends(sends, copy, wire->bytes);
	} else {
		send_finish_all(link, sends);
		rc_copy_failed(copy);
	}
	return result;
}

/* True if the bytes are whole chunks of the copy. */
static bool is_whole(const struct rc_copy *copy, const struct rc_wire_fetch *wire)
{
	uint64_t at = wire->offset, end = wire->offset + wire->bytes;
	while (at < end)
		at += rc_box_chunk(&copy->box, at);
	return at == end;
}

static CUresult serve_one(struct rc_link *link, struct sends *sends, const struct rc_wire_fetch *wire)
{
	struct rc_wire_chunk none = { wire->copy, wire->offset };
	struct rc_copy *copy = rc_copy_claim_source(link, wire->copy, wire->offset, wire->bytes);
	if (!copy) { /* the program has taken its memory back, or the worker asks for what it may not have */
		ch3_request_t *request = NULL;
		CUresult result = rc_link_packet(link, RC_PACKET_CHUNK, &none, sizeof none, NULL, 0, &request);
		ch3_request_free(request); /* the packet has no payload that would have to stay in place */
		return result;
	}
	if (is_whole(copy, wire))
		return send_window(link, sends, copy, wire);
	rc_copy_failed(copy);
	return rc_link_broken(link, RC_CALL_data_connection);
}

CUresult rc_fetch_serve(struct rc_link *link)
{
	struct rc_session *session = link->session;
	struct sends sends = { .first = 0 };
	CUresult result = CUDA_SUCCESS;
	while (result == CUDA_SUCCESS && (session->fetches || sends.first != sends.end)) {
		struct rc_wire_fetch first = session->fetch[0];
		if (!session->fetches) {
			result = send_finish(link, &sends);
			continue;
		}
		memmove(session->fetch, session->fetch + 1, --session->fetches * sizeof first);
		result = serve_one(link, &sends, &first);
	}
	send_finish_all(link, &sends); /* after a failure: the copies end */
	return result;
}
