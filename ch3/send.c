/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending: eager messages, and the send queue for what the pipe did not accept. */
#include "ch3/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t ch3_front_write(ch3_vc_t *vc, uint8_t *front, unsigned type, unsigned flags, const void *header,
		       size_t header_len, uint32_t payload_len, const struct ch3_packet_more *more)
{
	struct ch3_packet packet = {
		.type = (uint8_t)type,
		.flags = (uint8_t)(flags | (more ? CH3_PACKET_MORE : 0)),
		.header_len = (uint8_t)header_len,
		.sequence = (uint8_t)vc->send_sequence++,
		.payload_len = payload_len,
	};
	size_t len = sizeof packet;
	memcpy(front, &packet, sizeof packet);
	if (more) {
		memcpy(front + len, more, sizeof *more);
		len += sizeof *more;
	}
	hr_copy(front + len, header, header_len);
	return len + header_len;
}

/* Removes the request at the queue's head, which was sent completely. */
static void queue_pop(ch3_vc_t *vc)
{
	ch3_request_t *request = vc->queue;
	vc->queue = request->next;
	if (!vc->queue) {
		vc->queue_end = &vc->queue;
		vc->engine->queued--;
	}
	if (request->stage == CH3_STAGE_ANNOUNCE)
		request->stage = CH3_STAGE_WAITING;
	else
		ch3_request_complete(request, 0);
}

void ch3_send_failed(ch3_vc_t *vc, int error)
{
	if (!vc->send_error)
		vc->send_error = error;
	ch3_vc_activate(vc);
}

/* Handles the result of a put. If the pipe accepted bytes, the connection becomes active. A connection that is not up
 * yet accepts nothing: hr_channel_ready returns it when it is up. */
static void note_put(ch3_vc_t *vc, int error, size_t accepted)
{
	if (error)
		ch3_send_failed(vc, error);
	else if (accepted > 0)
		ch3_vc_activate(vc);
}

/* Maximum number of buffers of a put of several messages. */
#define PUT_PIECES (2 * CH3_IOV_MAX)

/*
 * Makes a vector of the messages at the head of the queue, so that the pipe can announce several long ones before the
 * first is taken. Returns the number of buffers. A message with a packed payload is put alone, because its next part
 * is packed later. An announcement is put only at the head: the peer may answer it as soon as it has received it, and
 * then it must not wait here for an earlier message to be accepted. A later call returns at least the rest of this
 * vector (hr_channel_put).
 */
static int queue_vector(const ch3_vc_t *vc, struct iovec iov[PUT_PIECES])
{
	const ch3_request_t *head = vc->queue;
	int n = 0;
	for (const ch3_request_t *request = head; request; request = request->next) {
		const struct ch3_cursor *cursor = &request->cursor;
		if (n + cursor->n > PUT_PIECES || (request != head && (request->pack || request->stage == CH3_STAGE_ANNOUNCE)))
			break;
		memcpy(iov + n, cursor->piece, (size_t)cursor->n * sizeof *iov);
		n += cursor->n;
		if (request->pack)
			break;
	}
	return n;
}

/* Advances the messages at the head of the queue by the bytes that the pipe accepted, and removes those that are sent. */
static void queue_advance(ch3_vc_t *vc, size_t accepted)
{
	while (vc->queue) {
		ch3_request_t *request = vc->queue;
		size_t bytes = ch3_cursor_bytes(&request->cursor), some = bytes < accepted ? bytes : accepted;
		ch3_cursor_advance(&request->cursor, some);
		accepted -= some;
		request->put_was_short = request->cursor.n > 0;
		if (request->put_was_short || request->to_pack > 0)
			return;
		queue_pop(vc);
		if (!accepted)
			return;
	}
}

/* Puts the messages at the head of the queue. Returns whether the pipe accepted all bytes. */
static bool put_queue(ch3_vc_t *vc)
{
	struct iovec iov[PUT_PIECES];
	int n = queue_vector(vc, iov);
	size_t total = ch3_cursor_bytes(&(struct ch3_cursor){ iov, n }), accepted = 0;
	int error = hr_channel_put(vc->conn, iov, n, &accepted);
	note_put(vc, error, accepted);
	if (error)
		return false;
	vc->engine->moved += accepted > 0;
	queue_advance(vc, accepted);
	return accepted == total;
}

void ch3_queue_flush(ch3_vc_t *vc)
{
	vc->batch = NULL;
	while (vc->queue && !vc->send_error) {
		ch3_request_t *request = vc->queue;
		if (request->to_pack > 0)
			ch3_pack_some(vc, request);
		if (request->cursor.n == 0 && request->to_pack == 0)
			queue_pop(vc);
		else if (!put_queue(vc))
			return;
	}
}

void ch3_queue_append(ch3_vc_t *vc, ch3_request_t *request)
{
	if (vc->batch) /* so that no later message joins the batch before this one */
		ch3_queue_flush(vc);
	bool was_empty = !vc->queue;
	request->next = NULL;
	*vc->queue_end = request;
	vc->queue_end = &request->next;
	if (was_empty) {
		vc->engine->queued++;
		ch3_queue_flush(vc);
	}
}

/* Puts the pieces, unless earlier messages are still in the queue. *accepted: bytes that the pipe accepted. */
static int put_now(ch3_vc_t *vc, const struct iovec *iov, int n, size_t *accepted)
{
	*accepted = 0;
	if (vc->queue)
		ch3_queue_flush(vc);
	if (vc->send_error)
		return vc->send_error;
	if (vc->queue)
		return 0;
	int error = hr_channel_put(vc->conn, iov, n, accepted);
	note_put(vc, error, *accepted);
	return error;
}

/* Queues the rest of a message of which the pipe has accepted the first accepted bytes. front has front_len bytes. If
 * copy is set, the request gets a copy of the payload. */
static int queue_rest(ch3_vc_t *vc, const void *front, size_t front_len, const struct iovec *iov, int n,
		      size_t payload_len, size_t accepted, bool copy, ch3_request_t **request)
{
	void *bytes = copy && payload_len > 0 ? malloc(payload_len) : NULL;
	ch3_request_t *rest = !copy || payload_len == 0 || bytes ? ch3_request_new(vc->engine, copy ? 1 : n) : NULL;
	if (!rest) {
		free(bytes);
		if (accepted > 0)
			ch3_send_failed(vc, -ENOMEM); /* part of the message is in the pipe and cannot be completed */
		return -ENOMEM;
	}
	memcpy(rest->front, front, front_len);
	rest->iov[0] = (struct iovec){ rest->front, front_len };
	if (copy) {
		rest->copy = bytes;
		rest->iov[1] = (struct iovec){ bytes, payload_len };
		for (int i = 0; i < n && bytes; bytes = (char *)bytes + iov[i].iov_len, i++)
			if (iov[i].iov_len > 0)
				memcpy(bytes, iov[i].iov_base, iov[i].iov_len);
	} else if (n > 0) {
		memcpy(rest->iov + 1, iov, (size_t)n * sizeof *iov);
	}
	rest->detached = copy;
	ch3_cursor_advance(&rest->cursor, accepted);
	ch3_queue_append(vc, rest);
	if (request && !copy)
		*request = rest;
	return 0;
}

int ch3_send_own(ch3_vc_t *vc, unsigned type, const struct ch3_packet_more *more, const void *header,
		 size_t header_len)
{
	uint8_t front[CH3_FRONT_MAX];
	size_t front_len = ch3_front_write(vc, front, type, 0, header, header_len, 0, more);
	struct iovec iov = { front, front_len };
	size_t accepted;
	int error = put_now(vc, &iov, 1, &accepted);
	if (error || accepted == front_len)
		return error;
	return queue_rest(vc, front, front_len, NULL, 0, 0, accepted, true, NULL);
}

/* Sum of the pieces, or SIZE_MAX if that overflows. */
static size_t iov_bytes(const struct iovec *iov, int n)
{
	size_t bytes = 0;
	for (int i = 0; i < n; i++)
		if (__builtin_add_overflow(bytes, iov[i].iov_len, &bytes))
			return SIZE_MAX;
	return bytes;
}

int ch3_send_check(const ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, int n, unsigned flags,
		   ch3_request_t **request)
{
	if (type < CH3_TYPE_FIRST || type >= CH3_TYPES || (header_len && !header) || n < 0 || n > CH3_IOV_MAX)
		return -EINVAL;
	if (!request && !(flags & CH3_SEND_COPY))
		return -EINVAL;
	if (header_len > CH3_HEADER_MAX)
		return -EMSGSIZE;
	return vc->error ? vc->error : vc->send_error;
}

/* ---- gathering ---- */

bool ch3_flush(ch3_vc_t *vc)
{
	if (vc->queue && !vc->error) /* after an error the queue is being cancelled */
		ch3_queue_flush(vc);
	return !vc->queue || vc->error || vc->send_error;
}

/* Begins a batch, in an empty queue. Returns NULL if there is no memory. */
static ch3_request_t *batch_begin(ch3_vc_t *vc)
{
	void *memory = malloc(CH3_BATCH);
	ch3_request_t *batch = memory ? ch3_request_new(vc->engine, 0) : NULL;
	if (!batch) {
		free(memory);
		return NULL;
	}
	batch->copy = memory;
	batch->detached = true;
	batch->iov[0] = (struct iovec){ memory, 0 };
	vc->queue = vc->batch = batch;
	vc->queue_end = &batch->next;
	vc->engine->queued++;
	ch3_vc_activate(vc); /* progress sends the batch */
	return batch;
}

/* Adds a small message to the batch. Returns false if it does not fit, or if earlier messages wait for room in the pipe. */
static bool batch_add(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, const struct iovec *iov, int n,
		      size_t payload_len)
{
	size_t len = sizeof(struct ch3_packet) + header_len + payload_len;
	if (len > CH3_BATCH / 4)
		return false;
	if (vc->batch && vc->batch->iov[0].iov_len + len > CH3_BATCH)
		ch3_queue_flush(vc);
	ch3_request_t *batch = vc->batch;
	if (!batch && !vc->queue && ch3_vc_state(vc) == 1)
		batch = batch_begin(vc);
	if (!batch)
		return false;
	uint8_t *at = (uint8_t *)batch->copy + batch->iov[0].iov_len;
	at += ch3_front_write(vc, at, type, 0, header, header_len, (uint32_t)payload_len, NULL);
	for (int i = 0; i < n; at += iov[i].iov_len, i++)
		hr_copy(at, iov[i].iov_base, iov[i].iov_len);
	batch->iov[0].iov_len += len;
	return true;
}

/* Copies a piece of a payload into reserved memory of the pipe. */
static inline void fill(ch3_vc_t *vc, uint8_t *to, const void *from, size_t len)
{
	if (__builtin_expect(len < HR_FILL_MIN, 1))
		hr_copy(to, from, len);
	else
		hr_conn_fill(vc->conn, to, from, len);
}

/* Builds a short message in the memory of the pipe. Returns false if that is not possible: use put_now instead. */
static inline bool send_in_place(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len,
				 const struct iovec *iov, int n, size_t payload_len)
{
	size_t front_len = sizeof(struct ch3_packet) + header_len, len = front_len + payload_len;
	if (len > HR_RECORD_MAX || vc->queue)
		return false;
	uint8_t *at = hr_conn_reserve(vc->conn, front_len < HR_FRONT_MAX ? front_len : HR_FRONT_MAX, len);
	if (!at)
		return false;
	at += ch3_front_write(vc, at, type, 0, header, header_len, (uint32_t)payload_len, NULL);
	for (int i = 0; i < n; at += iov[i].iov_len, i++)
		fill(vc, at, iov[i].iov_base, iov[i].iov_len);
	hr_conn_commit(vc->conn, len);
	ch3_vc_activate(vc);
	return true;
}

bool ch3_send_short(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, const void *payload,
		    size_t payload_len)
{
	uint8_t front[sizeof(struct ch3_packet) + CH3_HEADER_MAX];
	size_t front_len = sizeof(struct ch3_packet) + header_len;
	if (payload_len > vc->engine->eager_max || front_len + payload_len > HR_RECORD_MAX || vc->queue || !vc->conn)
		return false;
	if (vc->error || vc->send_error)
		return false;
	ch3_front_write(vc, front, type, 0, header, header_len, (uint32_t)payload_len, NULL);
	if (!hr_conn_post(vc->conn, front, front_len, payload, payload_len)) {
		vc->send_sequence--;
		return false;
	}
	ch3_vc_activate(vc);
	return true;
}

int ch3_send(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, const struct iovec *iov, int n,
	     unsigned flags, ch3_request_t **request)
{
	int error = ch3_send_check(vc, type, header, header_len, n, flags, request);
	if (error)
		return error;
	size_t payload_len = iov_bytes(iov, n);
	if (payload_len == SIZE_MAX)
		return -EMSGSIZE;
	if (__builtin_expect(!vc->conn, 0) && (error = ch3_vc_open(vc)))
		return error;
	if ((flags & CH3_SEND_SYNC) || (payload_len > vc->engine->eager_max && !(flags & CH3_SEND_EAGER)))
		return ch3_rndv_send(vc, type, header, header_len, iov, n, payload_len, flags, request);
	if (send_in_place(vc, type, header, header_len, iov, n, payload_len) ||
	    (flags & CH3_SEND_MORE && batch_add(vc, type, header, header_len, iov, n, payload_len))) {
		if (request)
			*request = NULL;
		return 0;
	}

	uint8_t front[CH3_FRONT_MAX];
	struct ch3_packet_more more = { payload_len, 0, 0 };
	bool long_payload = payload_len > UINT32_MAX;
	size_t front_len = ch3_front_write(vc, front, type, 0, header, header_len,
					   long_payload ? 0 : (uint32_t)payload_len, long_payload ? &more : NULL);
	bool copy = flags & CH3_SEND_COPY;
	size_t accepted = 0;
	/* Copy a large payload before the channel sees it: a zero-copy transfer must continue from the same address
	 * (hr_channel_put), and the caller may reuse its buffers. */
	if (!copy || payload_len < HR_ZERO_COPY_MIN) {
		struct iovec out[1 + CH3_IOV_MAX];
		out[0] = (struct iovec){ front, front_len };
		for (int i = 0; i < n; i++)
			out[1 + i] = iov[i];
		error = put_now(vc, out, 1 + n, &accepted);
		if (error)
			return error;
	}
	if (request)
		*request = NULL;
	if (accepted == front_len + payload_len)
		return 0;
	error = queue_rest(vc, front, front_len, iov, n, payload_len, accepted, copy, request);
	if (error && !accepted)
		vc->send_sequence--;
	return error;
}
