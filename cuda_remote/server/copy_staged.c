/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of a connection's chunks, and the staging area. A chunk to the device lies in its slot until the device has
 * read it. The client knows which slots are free (CREDIT), so that no chunk has to wait here. A client on the same host
 * shares a staging area: client and worker copy its chunks on two processors at the same time, and no byte passes the
 * connection.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <string.h>

/* The client is told of free slots in steps of this many. */
#define STEP (RC_WINDOW / 4)
/* Chunks to the host that the device fills at a time. */
#define DEPTH 2

CUresult serve_copy_staging(struct server_call *call)
{
	struct rc_wire_staging args;
	struct server_ring *ring = &call->thread->ring;
	if (!server_take_into(call, &args, sizeof args) || ring->staging)
		return CUDA_ERROR_INVALID_VALUE;
	return server_pinned_adopt(args.pinned, (uint64_t)RC_WINDOW * RC_CHUNK_MAX, &ring->staging);
}

uint8_t *server_staging_place(struct server_thread *thread)
{
	struct server_ring *ring = &thread->ring;
	if (!ring->staging)
		return NULL;
	return server_staging_memory(ring->staging) + ring->chunks % RC_WINDOW * RC_CHUNK_MAX;
}

/* ---- slots ---- */

/* Finds out which slots are free by now. */
static void ring_look(struct server_ring *ring)
{
	for (; ring->freed < ring->chunks; ring->freed++) {
		struct server_slot *slot = ring->slot[ring->freed % RC_WINDOW];
		if (slot && !server_slot_is_free(slot))
			break;
	}
}

/* Makes sure that the slot of chunk n exists and has this much memory. The device does not use it. */
static CUresult slot_prepare(struct server_ring *ring, uint64_t n, size_t size)
{
	struct server_slot **at = &ring->slot[n % RC_WINDOW];
	if (*at && (*at)->size >= size)
		return CUDA_SUCCESS;
	server_slot_put(*at);
	*at = NULL;
	return server_slot_get(size, at);
}

int server_ring_slot(struct server_thread *thread, size_t size, struct server_slot **slot)
{
	struct server_ring *ring = &thread->ring;
	uint64_t n = ring->chunks + ring->arriving;
	ring_look(ring);
	if (n - ring->freed >= RC_WINDOW)
		return -EPROTO;
	(void)slot_prepare(ring, n, size);
	ring->arriving++;
	*slot = ring->slot[n % RC_WINDOW];
	return 0;
}

/* Tells the client which slots are free, in steps, if it must know that to send the rest of the copy. Only then: otherwise
 * it could close the connection before it has read this. At most one CREDIT is being sent, as the numbers are cumulative.
 * If the client needs a later one, it asks (WANT). */
static void tell(struct server_thread *thread)
{
	struct server_ring *ring = &thread->ring;
	ring_look(ring);
	bool stuck = ring->chunks - ring->told == RC_WINDOW && ring->freed > ring->told;
	if (ring->last <= ring->told + RC_WINDOW || (ring->freed - ring->told < STEP && !stuck))
		return;
	if (ring->telling && !ch3_request_test(ring->telling))
		return;
	ch3_request_free(ring->telling);
	ring->telling = NULL;
	struct rc_wire_credit credit = { ring->freed, 0 };
	int error = ch3_send(thread->vc, RC_PACKET_CREDIT, &credit, sizeof credit, NULL, 0, CH3_SEND_EAGER, &ring->telling);
	ring->told = ring->freed;
	if (error && !thread->error)
		thread->error = error;
}

uint64_t server_ring_freed(struct server_thread *thread)
{
	struct server_ring *ring = &thread->ring;
	ring_look(ring);
	/* A CREDIT that is being sent says less, and comes before. */
	if (ring->told < ring->freed)
		ring->told = ring->freed;
	return ring->freed;
}

void server_ring_expect(struct server_thread *thread, uint64_t chunks)
{
	thread->ring.last = thread->ring.chunks + chunks;
	if (chunks)
		tell(thread);
}

void server_ring_advance(struct server_thread *thread)
{
	thread->ring.arriving--;
	thread->ring.chunks++;
	tell(thread);
}

int server_ring_want(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct server_thread *thread = context;
	struct rc_wire_credit want;
	(void)sink;
	if (thread->error)
		return thread->error;
	if (incoming->header_len != sizeof want || incoming->payload_len || thread->busy || thread->deferred ||
	    thread->ring.wanted)
		return -EPROTO;
	memcpy(&want, incoming->header, sizeof want);
	if (!want.chunks || want.chunks > thread->ring.chunks)
		return -EPROTO;
	thread->ring.wanted = want.chunks;
	return 0;
}

/* Blocks this connection only: its client waits, and no call has to be issued before the slots are free. */
void server_ring_serve(struct server_thread *thread)
{
	struct server_ring *ring = &thread->ring;
	if (!ring->wanted || thread->error)
		return;
	for (; ring->freed < ring->wanted; ring->freed++)
		if (ring->slot[ring->freed % RC_WINDOW])
			server_slot_wait(ring->slot[ring->freed % RC_WINDOW]);
	ring_look(ring);
	ring->wanted = 0;
	ring->told = ring->freed;
	struct rc_wire_credit credit = { ring->freed, 1 };
	server_thread_send(thread, RC_PACKET_CREDIT, &credit, sizeof credit, NULL, 0);
}

void server_ring_end(struct server_thread *thread)
{
	struct server_ring *ring = &thread->ring;
	for (unsigned i = 0; i < RC_WINDOW; i++) {
		if (ring->slot[i])
			server_slot_wait(ring->slot[i]);
		server_slot_put(ring->slot[i]);
		ring->slot[i] = NULL;
	}
	ring->telling = NULL; /* ch3_close frees it */
	thread->h2d.active = false;
	if (ring->staging)
		server_staging_drop(ring->staging);
	ring->staging = NULL;
}

/* ---- staged copies to the host ---- */

int server_ring_credit(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct server_thread *thread = context;
	struct server_ring *ring = &thread->ring;
	struct rc_wire_credit credit;
	(void)sink;
	if (thread->error)
		return thread->error;
	if (incoming->header_len != sizeof credit || incoming->payload_len)
		return -EPROTO;
	memcpy(&credit, incoming->header, sizeof credit);
	if (credit.chunks < ring->taken || credit.chunks > ring->chunks)
		return -EPROTO;
	ring->taken = credit.chunks;
	return 0;
}

/* A copy in progress: chunks before offset sent are sent, those before offset issued are issued. */
struct down {
	struct server_thread *thread;
	const struct rc_wire_copy *copy;
	uint64_t bytes, issued, sent;
	uint64_t first; /* the chunk to be sent next; ring.chunks is the one to be issued next */
};

/* Looks the stream up each time: once the call has left the call order, another thread of the client may destroy the
 * stream. */
static CUresult issue(struct down *down)
{
	struct server_ring *ring = &down->thread->ring;
	uint64_t len = rc_box_chunk(&down->copy->box, down->issued);
	uint8_t *place = server_staging_place(down->thread);
	CUstream stream;
	struct server_slot **slot = &ring->slot[ring->chunks % RC_WINDOW];
	if (*slot)
		server_slot_wait(*slot); /* of an earlier copy to the device */
	CUresult result = slot_prepare(ring, ring->chunks, 1);
	if (result == CUDA_SUCCESS)
		result = server_stream_hold(down->thread, down->copy->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_part_d2h(&down->copy->box, down->issued, len, place, stream);
	if (result == CUDA_SUCCESS)
		result = server_slot_record(*slot, stream);
	server_stream_let_go();
	ring->chunks++;
	down->issued += len;
	return result;
}

/* Sends the first chunk that the device has finished. Waits for it. */
static CUresult send_first(struct down *down)
{
	struct server_thread *thread = down->thread;
	struct rc_wire_staged staged = { down->copy->copy, down->sent, rc_box_chunk(&down->copy->box, down->sent) };
	CUresult result = server_slot_wait(thread->ring.slot[down->first % RC_WINDOW]);
	if (result != CUDA_SUCCESS)
		return result;
	server_thread_send(thread, RC_PACKET_STAGED, &staged, sizeof staged, NULL, 0);
	down->sent += staged.bytes;
	down->first++;
	return CUDA_SUCCESS;
}

CUresult server_staged_down(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes)
{
	struct server_thread *thread = call->thread;
	struct server_ring *ring = &thread->ring;
	struct down down = { thread, copy, bytes, 0, 0, ring->chunks };
	CUresult result = CUDA_SUCCESS;
	if (!ring->staging)
		return CUDA_ERROR_INVALID_VALUE;
	ring->taken = ring->chunks; /* the client has read the chunks of its earlier copies */
	while (down.sent < bytes && result == CUDA_SUCCESS && !thread->error) {
		while (down.issued < bytes && ring->chunks - ring->taken < RC_WINDOW && ring->chunks - down.first < DEPTH &&
		       result == CUDA_SUCCESS)
			result = issue(&down);
		/* The client's thread waits for the reply, so none of its later calls can arrive before that. */
		server_order_release(call);
		if (down.first < ring->chunks) {
			CUresult sent = send_first(&down);
			result = result == CUDA_SUCCESS ? sent : result;
		} else if (result == CUDA_SUCCESS) {
			server_wake_let_go(thread);
			int ran = ch3_progress_wait(thread->engine, -1); /* until the client has read a chunk */
			if (ran < 0 && !thread->error)
				thread->error = ran;
		}
	}
	/* After a failure: the client does not count what was not sent. */
	while (ring->chunks > down.first) {
		struct server_slot *slot = ring->slot[--ring->chunks % RC_WINDOW];
		if (slot)
			server_slot_wait(slot);
	}
	return result;
}
