/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the device whose bytes the client sends when the stream has come to the copy. The stream waits at a gate; a
 * callback of the driver, before the gate, gives the copy to the data connection. Its thread asks the client for the bytes,
 * window by window, copies them to the device in a stream of its own, and opens the gate. One copy is served at a time. It
 * waits for nothing but the client's bytes and the device's copies, so no stream waits for another one's gate.
 */
#include "cuda_remote/server/data/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Chunks of a window. The client is asked for two windows ahead, so as many slots are in use. */
#define HALF (RC_WINDOW / 2)

struct fetch {
	struct server_parcel parcel;
	struct fetch *behind;
	uint64_t number, gate, copy, bytes;
	uint16_t function;
	uint32_t context; /* index */
	struct rc_wire_box box;
	uint64_t arrived; /* bytes */
	uint64_t end[2];  /* of the windows that were asked for and are not complete */
	unsigned windows;
	CUstream own;     /* NULL: no byte has arrived */
	bool gone;        /* the context is ending: the bytes are received and dropped */
	CUresult result;
};

/* Of the data connection's thread. */
static struct fetch *active, *waiting, **waiting_end = &waiting;
static struct server_slot *slot[RC_WINDOW];
static uint64_t chunks; /* so far */

/* ---- one copy ---- */

/* Asks for the next window, if bytes are left and the copy has not failed. */
static void ask(struct server_thread *thread, struct fetch *fetch)
{
	uint64_t begin = fetch->windows ? fetch->end[fetch->windows - 1] : fetch->arrived, end = begin;
	for (int i = 0; i < (int)HALF && end < fetch->bytes; i++)
		end += rc_box_chunk(&fetch->box, end);
	if (fetch->result != CUDA_SUCCESS || end == begin)
		return;
	struct rc_wire_fetch wire = { fetch->copy, begin, end - begin };
	int error = ch3_send(thread->vc, RC_PACKET_FETCH, &wire, sizeof wire, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	if (error && !thread->error)
		thread->error = error;
	fetch->end[fetch->windows++] = end;
}

/* Waits for the device's copies, then lets the stream go on. If the context is ending, its memory is too. */
static void finish(struct fetch *fetch)
{
	CUcontext context;
	if (fetch->own && server_context_hold(fetch->context, &context) == CUDA_SUCCESS) {
		CUresult waited = driver.cuStreamSynchronize(fetch->own);
		driver.cuStreamDestroy_v2(fetch->own);
		server_stream_let_go();
		fetch->result = fetch->result == CUDA_SUCCESS ? waited : fetch->result;
	}
	/* Latched before the stream goes on: the call that waits for the stream reports it. */
	if (fetch->result != CUDA_SUCCESS && !fetch->gone)
		server_latch_set(fetch->number, fetch->function, fetch->result);
	server_gate_open(fetch->gate);
	free(fetch);
}

static void begin_next(struct server_thread *thread)
{
	while (!active && waiting && !thread->error) {
		active = waiting;
		if (!(waiting = active->behind))
			waiting_end = &waiting;
		ask(thread, active);
		ask(thread, active);
		if (!active->windows) {
			finish(active);
			active = NULL;
		}
	}
}

void server_fetch_begin(struct server_thread *thread, struct server_parcel *parcel)
{
	struct fetch *fetch = (struct fetch *)parcel;
	fetch->behind = NULL;
	*waiting_end = fetch;
	waiting_end = &fetch->behind;
	begin_next(thread);
}

/* Bytes have arrived, or were refused. */
static void advance(struct server_thread *thread)
{
	if (active->arrived < active->end[0])
		return;
	active->end[0] = active->end[1];
	active->windows--;
	ask(thread, active);
	if (active->windows)
		return;
	finish(active);
	active = NULL;
	begin_next(thread);
}

static CUresult issue_held(struct server_slot *from, size_t len)
{
	CUresult result = CUDA_SUCCESS;
	if (!active->own)
		result = driver.cuStreamCreate(&active->own, CU_STREAM_NON_BLOCKING);
	if (result == CUDA_SUCCESS)
		result = server_part_h2d(&active->box, active->arrived, len, from->memory, active->own);
	return result == CUDA_SUCCESS ? server_slot_record(from, active->own) : result;
}

static void chunk_complete(void *context, int error, size_t len)
{
	struct server_thread *thread = context;
	struct server_slot *from = slot[chunks % RC_WINDOW];
	CUcontext held;
	if (error || thread->error)
		return;
	if (active->result == CUDA_SUCCESS && !from)
		active->result = CUDA_ERROR_OUT_OF_MEMORY;
	if (active->result == CUDA_SUCCESS && !active->gone)
		active->gone = server_context_hold(active->context, &held) != CUDA_SUCCESS;
	if (active->result == CUDA_SUCCESS && !active->gone) {
		active->result = issue_held(from, len);
		server_stream_let_go();
	}
	chunks++;
	active->arrived += len;
	advance(thread);
}

int server_fetch_arrived(struct server_thread *thread, const struct rc_wire_chunk *chunk, uint64_t len, ch3_sink_t *sink)
{
	if (!active || !active->windows || chunk->copy != active->copy)
		return -EPROTO;
	if (!len) { /* the client gives no bytes for this window */
		active->result = CUDA_ERROR_INVALID_VALUE;
		active->arrived = active->end[0];
		advance(thread);
		return 0;
	}
	if (chunk->offset != active->arrived || chunk->offset >= active->end[active->windows - 1] ||
	    len != rc_box_chunk(&active->box, chunk->offset))
		return -EPROTO;
	struct server_slot **to = &slot[chunks % RC_WINDOW];
	if (*to)
		server_slot_wait(*to); /* for a copy of the device's, 16 chunks ago */
	else
		(void)server_slot_get(RC_CHUNK_MAX, to);
	sink->context = thread;
	sink->done = chunk_complete;
	if (*to) /* without memory the chunk is received and dropped */
		sink->iov[sink->n++] = (struct iovec){ (*to)->memory, len };
	return 0;
}

/* ---- the call ---- */

/* On a thread of the driver. */
static void arrived(CUstream stream, CUresult result, void *argument)
{
	struct fetch *fetch = argument;
	(void)stream;
	fetch->result = result;
	server_data_post(&fetch->parcel, 0);
}

CUresult serve_copy_up_later(struct server_call *call)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	void *stream;
	if (!server_take_into(call, &copy, sizeof copy) || !server_box_is_sound(&copy.box, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuStreamAddCallback || !driver.cuStreamCreate || !driver.cuStreamDestroy_v2 || !driver.cuStreamSynchronize)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_object(RC_KIND_STREAM, copy.stream, &stream);
	struct fetch *fetch = result == CUDA_SUCCESS ? calloc(1, sizeof *fetch) : NULL;
	if (!fetch)
		return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
	*fetch = (struct fetch){ .parcel.kind = SERVER_PARCEL_FETCH, .number = call->number, .function = call->thread->head.function,
				 .context = call->thread->context, .copy = copy.copy, .gate = server_gate_of_copy(copy.copy),
				 .box = copy.box, .bytes = bytes };
	uint64_t gate = fetch->gate;
	struct server_gate_place place;
	result = server_gate_make(call->thread, gate, &place);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamAddCallback(stream, arrived, fetch, 0);
	if (result != CUDA_SUCCESS) {
		server_gate_open(gate);
		free(fetch);
		return result;
	}
	return server_gate_hold(stream, gate, &place);
}
