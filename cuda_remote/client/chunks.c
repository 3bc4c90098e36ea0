/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunks of copies on a connection. A worker on the same host shares a staging area: the client copies a chunk into its
 * slot, or out of it, while the worker copies the chunk before it to the device, or the one after it from there. Otherwise
 * the bytes are sent. A chunk to the device is sent when its slot is free (wire.h), so only the call that copies ever waits
 * for the device.
 */
#include "cuda_remote/client/chunks.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/fill_way.h"
#include "rdma_channel/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STAGE_BYTES ((uint64_t)RC_WINDOW * RC_CHUNK_MAX)
/* Chunks that are being sent at a time. */
#define SENDS 4
/* The worker is told in steps of this many chunks which slots the client has read. */
#define STEP (RC_WINDOW / 4)
/* How long the client waits for a free slot before it asks. */
#define PATIENCE_MS 1

/* ---- the staging area ---- */

static uint8_t *stage_slot(const struct rc_link *link)
{
	return link->stage + link->chunks % RC_WINDOW * RC_CHUNK_MAX;
}

bool rc_chunks_staged(struct rc_link *link)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_staging call;
	} message = { .call = { 0 } };
	if (link->stage_tried)
		return link->stage;
	link->stage_tried = true;
	if (!link->session->local || rc_pinned_lend(link->session, STAGE_BYTES, &link->staging, &link->stage) != CUDA_SUCCESS)
		return false;
	message.call.pinned = link->staging;
	return rc_link_post(link, RC_CALL_copy_staging, 0, &message.head, sizeof message, NULL, 0) == CUDA_SUCCESS;
}

void rc_chunks_end(struct rc_link *link)
{
	if (!link->stage)
		return;
	munmap(link->stage, STAGE_BYTES);
	rc_handle_delete_posted(link->staging); /* its call was copy_staging */
}

/* ---- to the device ---- */

int rc_credit_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct rc_link *link = context;
	struct rc_wire_credit credit;
	(void)sink;
	if (incoming->header_len != sizeof credit || incoming->payload_len)
		return -EPROTO;
	memcpy(&credit, incoming->header, sizeof credit);
	if (credit.chunks < link->freed || credit.chunks > link->chunks || credit.answer > link->asking)
		return -EPROTO;
	link->freed = credit.chunks;
	if (credit.answer)
		link->asking = false;
	return 0;
}

static bool slot_is_free(const struct rc_link *link)
{
	return link->chunks - link->freed < RC_WINDOW;
}

bool rc_chunks_room(const struct rc_link *link, const struct rc_wire_box *box)
{
	return rc_box_chunks(box) <= RC_WINDOW - (link->chunks - link->freed);
}

int rc_chunks_freed(struct rc_link *link, uint16_t freed)
{
	uint64_t more = (uint16_t)(freed - (uint16_t)link->freed);
	if (more > link->chunks - link->freed)
		return -EPROTO;
	link->freed += more;
	return 0;
}

/* Waits until the slot of the next chunk is free. Mostly the worker frees slots as chunks arrive, and says so. If it
 * does not, because the device is slow or the stream is held, the client asks for a part of the window; the worker then
 * waits too. */
static CUresult slot_wait(struct rc_link *link)
{
	uint64_t before;
	rc_delay_flush(link);
	do {
		before = link->freed;
		if (slot_is_free(link))
			return CUDA_SUCCESS;
		if (link->error)
			break; /* sending reports the error */
		link->inside = true;
		int ran = ch3_progress_wait(link->engine, PATIENCE_MS);
		link->inside = false;
		if (ran < 0)
			break;
	} while (link->freed != before);
	struct rc_wire_credit want = { link->chunks - RC_WINDOW + STEP, 0 };
	link->asking = true;
	ch3_request_t *request = NULL;
	CUresult result = rc_link_packet(link, RC_PACKET_WANT, &want, sizeof want, NULL, 0, &request);
	if (result == CUDA_SUCCESS)
		result = rc_link_finish(link, request);
	while (result == CUDA_SUCCESS && link->asking)
		result = rc_link_progress(link);
	if (result == CUDA_SUCCESS && link->freed < want.chunks)
		result = rc_link_broken(link, RC_CALL_copy_up);
	return result;
}

CUresult rc_chunks_take(struct rc_link *link)
{
	CUresult result = slot_wait(link);
	if (result == CUDA_SUCCESS)
		link->chunks++;
	return result;
}

void rc_chunks_untake(struct rc_link *link)
{
	if (!link->error)
		link->chunks--;
}

/* The worker reads the slot next. */
static void fill_slot(struct rc_link *link, const struct rc_copy *copy, uint64_t offset, uint64_t bytes)
{
	if (bytes < RC_CHUNK_MAX || !rc_copy_has_long_rows(copy)) {
		rc_copy_gather(copy, offset, bytes, stage_slot(link));
		return;
	}
	bool past = hr_fill_past(&link->fill_way);
	uint64_t begin = hr_now_ns();
	if (past)
		rc_copy_gather_streaming(copy, offset, bytes, stage_slot(link));
	else
		rc_copy_gather(copy, offset, bytes, stage_slot(link));
	hr_fill_took(&link->fill_way, past, hr_now_ns() - begin);
}

static CUresult send_staged(struct rc_link *link, const struct rc_wire_copy *call, const struct rc_copy *copy)
{
	struct rc_wire_staged chunk = { call->copy, 0, 0 };
	CUresult result = CUDA_SUCCESS;
	uint64_t total = rc_copy_bytes(copy);
	for (; result == CUDA_SUCCESS && chunk.offset < total; chunk.offset += chunk.bytes) {
		ch3_request_t *request = NULL;
		chunk.bytes = rc_box_chunk(&call->box, chunk.offset);
		result = slot_wait(link);
		if (result != CUDA_SUCCESS)
			break;
		fill_slot(link, copy, chunk.offset, chunk.bytes);
		link->chunks++;
		result = rc_link_packet(link, RC_PACKET_STAGED, &chunk, sizeof chunk, NULL, 0, &request);
		if (result == CUDA_SUCCESS)
			result = rc_link_finish(link, request);
	}
	return result;
}

int rc_chunks_pieces(struct rc_link *link, const struct rc_copy *copy, uint64_t offset, uint64_t len, struct iovec *iov,
		     bool *gathered)
{
	int n = rc_copy_pieces(copy, offset, len, iov, CH3_IOV_MAX);
	*gathered = !n;
	if (n)
		return n;
	if (!link->scratch && !(link->scratch = malloc(RC_CHUNK_MAX)))
		return -1;
	rc_copy_gather(copy, offset, len, link->scratch);
	iov[0] = (struct iovec){ link->scratch, len };
	return 1;
}

/* Sends a chunk. *request: NULL, or of a chunk that was sent earlier; then of this one. */
static CUresult send_chunk(struct rc_link *link, const struct rc_copy *copy, const struct rc_wire_chunk *chunk,
			   uint64_t len, ch3_request_t **request)
{
	struct iovec iov[CH3_IOV_MAX];
	bool gathered;
	CUresult result = slot_wait(link);
	int n = rc_chunks_pieces(link, copy, chunk->offset, len, iov, &gathered);
	if (result == CUDA_SUCCESS && n < 0)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	CUresult finished = rc_link_finish(link, *request);
	*request = NULL;
	result = result == CUDA_SUCCESS ? finished : result;
	if (result != CUDA_SUCCESS)
		return result;
	link->chunks++;
	result = rc_link_packet(link, RC_PACKET_CHUNK, chunk, sizeof *chunk, iov, n, request);
	if (gathered && result == CUDA_SUCCESS) {
		result = rc_link_finish(link, *request);
		*request = NULL;
	}
	return result;
}

CUresult rc_chunks_send(struct rc_link *link, const struct rc_wire_copy *call, const struct rc_copy *copy)
{
	ch3_request_t *sends[SENDS] = { NULL };
	struct rc_wire_chunk chunk = { call->copy, 0 };
	CUresult result = CUDA_SUCCESS;
	uint64_t total = rc_copy_bytes(copy);
	if (call->staged)
		return send_staged(link, call, copy);
	for (unsigned i = 0; result == CUDA_SUCCESS && chunk.offset < total; i++) {
		uint64_t len = rc_box_chunk(&call->box, chunk.offset);
		result = send_chunk(link, copy, &chunk, len, &sends[i % SENDS]);
		chunk.offset += len;
	}
	for (int i = 0; i < SENDS; i++) {
		CUresult finished = rc_link_finish(link, sends[i]);
		if (result == CUDA_SUCCESS)
			result = finished;
	}
	return result;
}

/* ---- to the host ---- */

/* A chunk that is being received: several of one copy at a time on a connection. */
struct arriving {
	struct rc_link *link;
	struct rc_copy *copy;
	uint64_t offset, bytes;
	uint8_t *scattered; /* memory of the bytes before they are scattered; NULL: they are received at their place */
};

/* Memory for the bytes of a chunk: the link's, if no other chunk has it. NULL: no memory. */
static uint8_t *scratch_take(struct rc_link *link)
{
	if (link->scratch_taken)
		return malloc(RC_CHUNK_MAX);
	if (!link->scratch)
		link->scratch = malloc(RC_CHUNK_MAX);
	link->scratch_taken = link->scratch != NULL;
	return link->scratch;
}

static void scratch_put(struct rc_link *link, uint8_t *scratch)
{
	if (scratch == link->scratch)
		link->scratch_taken = false;
	else
		free(scratch);
}

static void chunk_done(void *context, int error, size_t bytes)
{
	struct arriving *arriving = context;
	if (!error && bytes == arriving->bytes) {
		if (arriving->scattered)
			rc_copy_scatter(arriving->copy, arriving->offset, bytes, arriving->scattered);
		rc_copy_arrived(arriving->copy, bytes);
	} else {
		rc_copy_failed(arriving->copy);
	}
	if (arriving->scattered)
		scratch_put(arriving->link, arriving->scattered);
	arriving->link->receiving--;
	free(arriving);
}

static void chunk_dropped(void *context, int error, size_t bytes)
{
	const struct rc_link *link = context;
	(void)bytes;
	if (!error)
		rc_link_chunk_arrived(link->session);
}

/* Bytes of one copy have different places in the host's memory. Bytes of the next copy may have the same place, and must
 * arrive later. */
bool rc_chunk_may_ahead(void *context, const ch3_incoming_t *incoming)
{
	const struct rc_link *link = context;
	struct rc_wire_chunk chunk;
	if (incoming->header_len != sizeof chunk || !incoming->payload_len)
		return false;
	memcpy(&chunk, incoming->header, sizeof chunk);
	return link->receiving && chunk.copy == link->receiving_copy;
}

int rc_chunk_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct rc_link *link = context;
	struct rc_wire_chunk chunk;
	if (incoming->header_len != sizeof chunk || incoming->rndv || incoming->payload_len > RC_CHUNK_MAX)
		return -EPROTO;
	memcpy(&chunk, incoming->header, sizeof chunk);
	if (rc_copy_has_ended(link, chunk.copy)) {
		sink->done = chunk_dropped;
		sink->context = link;
		return 0; /* the sink has no buffers: CH3 reads the bytes and drops them */
	}
	if (!incoming->payload_len)
		return rc_copy_refused(link, chunk.copy) ? 0 : -EPROTO;
	/* Acquire pairs with the release after a host function (hostfn.c), which may have read the memory written here. */
	__atomic_load_n(&link->session->arrived, __ATOMIC_ACQUIRE);
	rc_link_see_calls(link->session);
	struct rc_copy *copy = rc_copy_claim(link, chunk.copy, incoming->payload_len);
	if (!copy)
		return -EPROTO;
	int pieces = rc_copy_pieces(copy, chunk.offset, incoming->payload_len, sink->iov,
				    (int)(sizeof sink->iov / sizeof sink->iov[0]));
	struct arriving *arriving = pieces < 0 ? NULL : malloc(sizeof *arriving);
	uint8_t *scratch = arriving && !pieces ? scratch_take(link) : NULL;
	if (!arriving || (!pieces && !scratch)) {
		rc_copy_failed(copy);
		free(arriving);
		return pieces < 0 ? -EPROTO : -ENOMEM;
	}
	*arriving = (struct arriving){ link, copy, chunk.offset, incoming->payload_len, scratch };
	link->receiving++;
	link->receiving_copy = chunk.copy;
	if (!pieces)
		sink->iov[0] = (struct iovec){ scratch, incoming->payload_len };
	sink->n = pieces ? pieces : 1;
	sink->done = chunk_done;
	sink->context = arriving;
	return 0;
}

/* The chunk that was counted last has been read from its slot. */
static int slot_read(struct rc_link *link)
{
	struct rc_wire_credit credit = { link->chunks, 0 };
	if (link->chunks % STEP)
		return 0;
	return ch3_send(link->vc, RC_PACKET_CREDIT, &credit, sizeof credit, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
}

int rc_staged_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct rc_link *link = context;
	struct rc_wire_staged chunk;
	(void)sink;
	if (incoming->header_len != sizeof chunk || incoming->payload_len || !link->stage)
		return -EPROTO;
	memcpy(&chunk, incoming->header, sizeof chunk);
	if (chunk.bytes > RC_CHUNK_MAX)
		return -EPROTO;
	/* Acquire: as for a chunk. */
	__atomic_load_n(&link->session->arrived, __ATOMIC_ACQUIRE);
	struct rc_copy *copy = rc_copy_claim(link, chunk.copy, chunk.bytes);
	if (!copy)
		return -EPROTO;
	uint64_t total = rc_copy_bytes(copy);
	if (chunk.offset > total || chunk.bytes > total - chunk.offset) {
		rc_copy_failed(copy);
		return -EPROTO;
	}
	rc_copy_scatter(copy, chunk.offset, chunk.bytes, stage_slot(link));
	link->chunks++;
	rc_copy_arrived(copy, chunk.bytes);
	return slot_read(link);
}
