/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves the data of matched messages into the buffers of their receives. */
#include "adi/message/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pieces of memory shorter than this, in the mean, are unpacked from the parts of the payload. */
#define PIECE_MIN 256

static size_t wanted(const struct adi_request *request)
{
	return request->bytes < request->capacity ? request->bytes : request->capacity;
}

/* Copies len bytes, the first of the message, into the buffer of a receive. */
static int unpack(struct adi_request *request, const void *bytes, size_t len)
{
	if (len == 0)
		return MPI_SUCCESS;
	if (request->flat) {
		memcpy(request->data, bytes, len);
		return MPI_SUCCESS;
	}
	struct adi_stream stream;
	int class = adi_stream_start(&stream, request->buf, request->count, request->type);
	if (!class)
		adi_stream_unpack(&stream, bytes, len);
	return class;
}

void adi_receive_complete(struct adi_request *request, int error)
{
	if (error && !request->class)
		request->class = adi_class(error);
	if (request->bytes > request->capacity && !request->class)
		request->class = MPI_ERR_TRUNCATE;
	request->complete = true;
	if (request->freed)
		adi_request_drop(request);
}

void adi_receive_bytes(struct adi_request *request, const void *bytes)
{
	request->class = unpack(request, bytes, wanted(request));
	adi_receive_complete(request, 0);
}

void adi_on_received(void *context, int error, size_t bytes)
{
	(void)bytes;
	adi_receive_complete(context, error);
}

/* Describes the memory of a receive whose type is not contiguous. */
static int stream_pieces(struct adi_request *request, struct iovec *piece, int n, size_t some)
{
	struct adi_stream stream;
	size_t described = 0;
	int pieces = 0;
	if (some == 0)
		return 0;
	if (adi_stream_start(&stream, request->buf, request->count, request->type))
		return -ENOMEM;
	if (some >= PIECE_MIN)
		pieces = adi_stream_pieces(&stream, piece, n, some, &described);
	if (described == some && some / (size_t)pieces >= PIECE_MIN)
		return pieces;
	request->moved = 0;
	return ADI_PACK;
}

void adi_receive_unpack(void *context, const void *from, size_t len)
{
	struct adi_request *request = context;
	struct adi_stream stream;
	/* Cannot fail: stream_pieces has compiled the type. */
	adi_stream_start(&stream, request->buf, request->count, request->type);
	adi_stream_seek(&stream, request->moved);
	request->moved += adi_stream_unpack(&stream, from, len);
}

int adi_receive_pieces(struct adi_request *request, struct iovec *piece, int n)
{
	if (!request->flat)
		return stream_pieces(request, piece, n, wanted(request));
	*piece = (struct iovec){ request->data, request->capacity };
	return request->capacity > 0;
}

/* ---- rendezvous ---- */

/* Receives that ch3 could not accept, because no request id was free. */
static struct adi_request *waiting, **waiting_end = &waiting;
static bool accept_again(struct adi_task *task);
static struct adi_task again = { .advance = accept_again };

/* Returns false if the payload must be accepted later. Without memory the payload is dropped, and the receive fails: memory may
 * never come. */
static bool rndv_accept(struct adi_request *request, ch3_rndv_t *rndv)
{
	struct iovec piece[CH3_IOV_MAX];
	int n = adi_receive_pieces(request, piece, CH3_IOV_MAX);
	int error = n;
	if (n == ADI_PACK)
		error = ch3_rndv_accept_unpack(rndv, wanted(request), adi_receive_unpack, adi_on_received, request);
	else if (n >= 0)
		error = ch3_rndv_accept(rndv, piece, n, adi_on_received, request);
	if (error == -ENOBUFS)
		return false;
	if (error == -ENOMEM)
		ch3_rndv_accept(rndv, NULL, 0, NULL, NULL);
	if (error)
		adi_receive_complete(request, error);
	return true;
}

static bool accept_again(struct adi_task *task)
{
	bool accepted = false;
	while (waiting) {
		struct adi_request *request = waiting, *next = request->next;
		if (!rndv_accept(request, request->rndv))
			return accepted;
		accepted = true;
		waiting = next;
	}
	waiting_end = &waiting;
	adi_task_remove(task);
	return accepted;
}

void adi_deliver_rndv(struct adi_request *request, ch3_rndv_t *rndv)
{
	if (!waiting && rndv_accept(request, rndv))
		return;
	if (!waiting)
		adi_task_add(&again);
	request->rndv = rndv;
	request->next = NULL;
	*waiting_end = request;
	waiting_end = &request->next;
}

/* ---- eager messages ---- */

static void deliver_payload(struct adi_request *request, struct adi_unexpected *message)
{
	if (!message->error)
		request->class = unpack(request, message->payload, wanted(request));
	int error = message->error;
	adi_unexpected_free(message);
	adi_receive_complete(request, error);
}

void adi_on_unexpected(void *context, int error, size_t bytes)
{
	(void)bytes;
	struct adi_unexpected *message = context;
	message->arrived = true;
	message->error = error;
	if (message->cancelled)
		adi_unexpected_free(message);
	else if (message->claimed)
		deliver_payload(message->claimed, message);
}

void adi_deliver_self(struct adi_request *send, struct adi_request *receive)
{
	size_t some = wanted(receive);
	if (some > 0 && send->flat && receive->flat) {
		memmove(receive->data, send->data, some);
	} else if (some > 0) {
		int class = adi_type_copy(send->buf, send->count, send->type, receive->buf, receive->count, receive->type);
		if (class != MPI_ERR_TRUNCATE)
			receive->class = class;
	}
	adi_receive_complete(receive, 0);
	adi_send_complete(send, MPI_SUCCESS);
}

void adi_deliver_unexpected(struct adi_request *request, struct adi_unexpected *message)
{
	const struct adi_key *key = &message->node.key;
	adi_receive_claim(request, key, message->bytes);
	if (message->rndv) {
		ch3_rndv_t *rndv = message->rndv;
		adi_hold_matched(key->source);
		adi_unexpected_free(message);
		adi_deliver_rndv(request, rndv);
		return;
	}
	if (message->sender) {
		struct adi_request *send = message->sender;
		adi_unexpected_free(message);
		send->held = NULL;
		adi_deliver_self(send, request);
		return;
	}
	if (key->source != adi_job.rank)
		adi_flow_consumed(key->source, message->bytes);
	if (message->arrived)
		deliver_payload(request, message);
	else
		message->claimed = request;
}
