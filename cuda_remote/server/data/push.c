/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous copies to the host of which the worker keeps only a few chunks, as the session has HEADRACE_STAGING bytes of such
 * copies already. When the stream arrives, a callback of the driver gives the copy to the data connection, and the stream waits
 * at a gate. The thread of the connection copies chunk after chunk from the device, in a stream of its own, sends them, and opens
 * the gate. It waits for nothing but the device's copies and the connection.
 */
#include "cuda_remote/server/data/data.h"

#include <stdlib.h>

/* Chunks that the device copies while one is sent. */
#define WINDOW 4

struct push {
	struct server_parcel parcel;
	bool latched;     /* the failure; it is that of the call */
	uint64_t messages; /* that were counted when the parcel was posted, and are still to be sent */
	uint64_t number, gate, copy, bytes;
	uint16_t function;
	uint32_t context; /* index */
	struct rc_wire_box box;
	CUresult result;  /* of the stream */
	uint64_t issued, sent;
	CUstream own;     /* NULL: no chunk was issued */
	struct server_slot *slot[WINDOW]; /* of chunks first to next - 1, modulo WINDOW */
	unsigned first, next;
};

/* ---- on the thread of the data connection ---- */

static CUresult issue_held(struct push *push, struct server_slot **slot, uint64_t len)
{
	CUresult result = *slot ? CUDA_SUCCESS : server_slot_get(RC_CHUNK_MAX, slot);
	if (result == CUDA_SUCCESS && !push->own)
		result = driver.cuStreamCreate(&push->own, CU_STREAM_NON_BLOCKING);
	if (result == CUDA_SUCCESS)
		result = server_part_d2h(&push->box, push->issued, len, (*slot)->memory, push->own);
	return result == CUDA_SUCCESS ? server_slot_record(*slot, push->own) : result;
}

/* Issues the copies of the next chunks. */
static CUresult issue(struct push *push)
{
	CUcontext context;
	CUresult result = CUDA_SUCCESS;
	while (result == CUDA_SUCCESS && push->issued < push->bytes && push->next - push->first < WINDOW) {
		uint64_t len = rc_box_chunk(&push->box, push->issued);
		result = server_context_hold(push->context, &context);
		if (result != CUDA_SUCCESS)
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		result = issue_held(push, &push->slot[push->next % WINDOW], len);
		server_stream_let_go();
		if (result == CUDA_SUCCESS) {
			push->issued += len;
			push->next++;
		}
	}
	return result;
}

/* Sends the first chunk that was issued. */
static CUresult send_first(struct server_thread *thread, struct push *push)
{
	struct server_slot *slot = push->slot[push->first++ % WINDOW];
	struct rc_wire_chunk chunk = { push->copy, push->sent };
	uint64_t len = rc_box_chunk(&push->box, push->sent);
	CUresult result = server_slot_wait(slot);
	if (result != CUDA_SUCCESS)
		return result;
	server_thread_send(thread, RC_PACKET_CHUNK, &chunk, sizeof chunk, slot->memory, len);
	push->sent += len;
	push->messages--;
	return CUDA_SUCCESS;
}

static void finish(struct push *push)
{
	CUcontext context;
	for (unsigned i = 0; i < WINDOW; i++) {
		if (push->slot[i])
			server_slot_wait(push->slot[i]);
		server_slot_put(push->slot[i]);
	}
	if (push->own && server_context_hold(push->context, &context) == CUDA_SUCCESS) {
		driver.cuStreamDestroy_v2(push->own);
		server_stream_let_go();
	}
	/* Latched before the stream goes on: the call that waits for the stream reports it. */
	if (push->result != CUDA_SUCCESS && !push->latched)
		server_latch_set(push->number, push->function, push->result);
	server_gate_open(push->gate);
	free(push);
}

void server_push_serve(struct server_thread *thread, struct server_parcel *parcel)
{
	struct push *push = (struct push *)parcel;
	while (push->sent < push->bytes && push->result == CUDA_SUCCESS && !thread->error) {
		CUresult issued = issue(push);
		/* After a failure, what was issued is not sent: the client drops all bytes anyway. */
		push->result = issued == CUDA_SUCCESS ? send_first(thread, push) : issued;
	}
	/* A chunk without bytes says that the copy has failed. The client waits for as many messages as were counted. */
	struct rc_wire_chunk failure = { push->copy, 0 };
	for (; push->messages && !thread->error; push->messages--)
		server_thread_send(thread, RC_PACKET_CHUNK, &failure, sizeof failure, NULL, 0);
	finish(push);
}

/* ---- the call ---- */

/* Counted now, as parcels are sent in the order of the posts. */
static void push_post(struct push *push, uint64_t messages)
{
	push->messages = messages;
	server_data_post(&push->parcel, messages);
}

/* On a thread of the driver. */
static void arrived(CUstream stream, CUresult result, void *argument)
{
	struct push *push = argument;
	(void)stream;
	push->result = result;
	push_post(push, result == CUDA_SUCCESS ? rc_box_chunks(&push->box) : 1);
}

CUresult server_push_begin(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes)
{
	void *stream;
	struct push *push = calloc(1, sizeof *push);
	if (!push)
		return server_data_no_memory(call);
	*push = (struct push){ .parcel.kind = SERVER_PARCEL_PUSH, .number = call->number, .function = call->thread->head.function,
			       .context = call->thread->context, .copy = copy->copy, .gate = server_gate_of_copy(copy->copy),
			       .box = copy->box, .bytes = bytes };
	uint64_t gate = push->gate;
	struct server_gate_place place;
	CUresult result = server_object(RC_KIND_STREAM, copy->stream, &stream);
	if (!driver.cuStreamAddCallback || !driver.cuStreamCreate || !driver.cuStreamDestroy_v2)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = server_gate_make(call->thread, gate, &place);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamAddCallback(stream, arrived, push, 0);
	if (result != CUDA_SUCCESS) { /* the client is told, and this call's failure is latched */
		push->result = result;
		push->latched = true;
		push_post(push, 1);
		return result;
	}
	return server_gate_hold(stream, gate, &place);
}
