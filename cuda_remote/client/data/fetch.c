/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the device that the client sends late. When the stream reaches such a copy, the worker requests the bytes over the
 * data connection (FETCH), window by window, and the thread of that connection sends them.
 */
#include "cuda_remote/client/data/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Chunks that are being sent at a time. */
#define SENDS 4

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

static CUresult finish_all(struct rc_link *link, ch3_request_t **sends)
{
	CUresult result = CUDA_SUCCESS;
	for (int i = 0; i < SENDS; i++) {
		CUresult finished = rc_link_finish(link, sends[i]);
		result = result == CUDA_SUCCESS ? finished : result;
	}
	return result;
}

static CUresult send_window(struct rc_link *link, const struct rc_copy *copy, const struct rc_wire_fetch *wire)
{
	ch3_request_t *sends[SENDS] = { NULL };
	struct rc_wire_chunk chunk = { wire->copy, wire->offset };
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; result == CUDA_SUCCESS && chunk.offset < wire->offset + wire->bytes; i++) {
		struct iovec iov[CH3_IOV_MAX];
		bool gathered;
		uint64_t len = rc_box_chunk(&copy->box, chunk.offset);
		int n = pieces(link->session, copy, chunk.offset, len, iov, &gathered);
		ch3_request_t **request = &sends[i % SENDS];
		result = n < 0 ? CUDA_ERROR_OUT_OF_MEMORY : rc_link_finish(link, *request);
		*request = NULL;
		if (result == CUDA_SUCCESS)
			result = rc_link_packet(link, RC_PACKET_CHUNK, &chunk, sizeof chunk, iov, n, request);
		if (gathered && result == CUDA_SUCCESS) {
			result = rc_link_finish(link, *request);
			*request = NULL;
		}
		chunk.offset += len;
	}
	CUresult finished = finish_all(link, sends);
	return result == CUDA_SUCCESS ? finished : result;
}

/* True if the bytes are whole chunks of the copy. */
static bool is_whole(const struct rc_copy *copy, const struct rc_wire_fetch *wire)
{
	uint64_t at = wire->offset, end = wire->offset + wire->bytes;
	while (at < end)
		at += rc_box_chunk(&copy->box, at);
	return at == end;
}

static CUresult serve_one(struct rc_link *link, const struct rc_wire_fetch *wire)
{
	struct rc_wire_chunk none = { wire->copy, wire->offset };
	struct rc_copy *copy = rc_copy_claim_source(link, wire->copy, wire->offset, wire->bytes);
	if (!copy) /* the program has taken its memory back, or the worker asks for what it may not have */
		return rc_link_packet(link, RC_PACKET_CHUNK, &none, sizeof none, NULL, 0, &(ch3_request_t *){ NULL });
	CUresult result = is_whole(copy, wire) ? send_window(link, copy, wire) : rc_link_broken(link, RC_CALL_data_connection);
	if (result == CUDA_SUCCESS)
		rc_copy_sent(copy, wire->bytes);
	else
		rc_copy_failed(copy);
	return result;
}

CUresult rc_fetch_serve(struct rc_link *link)
{
	struct rc_session *session = link->session;
	CUresult result = CUDA_SUCCESS;
	while (result == CUDA_SUCCESS && session->fetches) {
		struct rc_wire_fetch first = session->fetch[0];
		memmove(session->fetch, session->fetch + 1, --session->fetches * sizeof first);
		result = serve_one(link, &first);
	}
	return result;
}
