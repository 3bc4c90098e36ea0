/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the device whose bytes the client sends when the stream has come to the copy. The call issues all work of the device:
 * a callback that tells the data connection that the stream is there; for each window of the copy a wait at the gate, the copies from
 * the stream's lane, and a write that says that half of the lane is free; and a callback at the end. The thread of the data connection
 * asks the client for the bytes, at most two windows ahead, and lets the stream pass one step of the gate when a window has
 * arrived. Bytes of one copy are transferred at a time. The thread waits for nothing but the client's bytes and the device's copies,
 * so no stream waits for another one's gate.
 *
 * The ends of windows are written by the device, not told by callbacks: a call that finds the driver's queue full keeps the driver's
 * lock, without which no callback runs.
 */
#include "cuda_remote/server/data/data.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A place in the bytes of a copy, and the window that it is in. */
struct place {
	uint64_t windows;    /* that are before it */
	uint64_t begin, end; /* of the window. begin == end: it has not been asked for */
	uint64_t at;         /* offset in the copy */
};

struct fetch {
	struct server_parcel parcel; /* the stream is at the copy */
	struct server_parcel passed; /* the stream has passed the copy */
	struct fetch *behind;
	struct server_lane *lane;
	uint64_t number, gate, done, copy, bytes; /* gate, done: ids */
	uint16_t function;
	struct rc_wire_box box;
	/* Under the lock. */
	bool issued;          /* the call has issued the copy. The transfer may begin before: a full queue can keep the call */
	bool stray;           /* the device works on the copy, and nobody reports the end: the lane stays the stream's */
	bool over;            /* the last callback has come */
	CUresult call;        /* the call's result */
	CUresult device;      /* what the callbacks have reported */
	/* Of the thread of the data connection. */
	uint64_t asked;       /* windows */
	uint64_t asked_end;   /* offset up to which bytes were asked for */
	struct place coming;  /* bytes before it have arrived or are being received */
	struct place arrived; /* bytes before it have arrived */
	bool closed;          /* the gate is open */
	bool ended;           /* the second parcel, which comes once, has come */
	CUresult result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Of the thread of the data connection. */
static struct fetch *active, *waiting, **waiting_end = &waiting;

/* ---- on the thread of the data connection ---- */

/* Moves a place on by len bytes, at most to the end of its window. */
static void place_move(const struct fetch *fetch, struct place *place, uint64_t len)
{
	place->at += len;
	if (place->at < place->end)
		return;
	place->windows++;
	place->begin = place->end;
	if (fetch->asked > place->windows)
		place->end = server_lane_end(fetch->lane, &fetch->box, fetch->bytes, place->begin);
}

/* True if the next window may be asked for as soon as the device has freed half of the lane. */
static bool wants_half(const struct fetch *fetch)
{
	return fetch->result == CUDA_SUCCESS && fetch->asked_end < fetch->bytes && fetch->asked < fetch->arrived.windows + 2;
}

/* Asks for the next windows, at most two, if bytes are left, halves of the lane are free, and the copy has not failed. */
static void ask(struct server_thread *thread, struct fetch *fetch)
{
	while (wants_half(fetch) && fetch->asked < (uint64_t)server_gate_written(fetch->done) + 2 && !thread->error) {
		uint64_t end = server_lane_end(fetch->lane, &fetch->box, fetch->bytes, fetch->asked_end);
		struct rc_wire_fetch wire = { fetch->copy, fetch->asked_end, end - fetch->asked_end };
		int error = ch3_send(thread->vc, RC_PACKET_FETCH, &wire, sizeof wire, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
		if (error && !thread->error)
			thread->error = error;
		if (fetch->asked == fetch->coming.windows)
			fetch->coming.end = end;
		if (fetch->asked++ == fetch->arrived.windows)
			fetch->arrived.end = end;
		fetch->asked_end = end;
	}
}

/* All bytes have arrived, or no more will be asked for. */
static bool is_over(const struct fetch *fetch)
{
	return fetch->arrived.at == fetch->bytes || (fetch->result != CUDA_SUCCESS && fetch->arrived.at == fetch->asked_end);
}

/* Frees the fetch if the call and the device have ended their parts too. */
static void free_ended(struct fetch *fetch)
{
	if (!fetch->closed || !fetch->ended)
		return;
	if (!fetch->stray) {
		server_gate_open(fetch->done);
		server_lane_put(fetch->lane);
	}
	free(fetch);
}

/* Lets the stream go on. The failure is latched before: the call that waits for the stream reports it. The call has reported its
 * own. If the worker has not asked the client for all bytes, a message tells the client that it need send no more. */
static void close_active(struct server_thread *thread, struct fetch *fetch)
{
	pthread_mutex_lock(&lock);
	bool reported = fetch->call != CUDA_SUCCESS;
	pthread_mutex_unlock(&lock);
	if (fetch->result != CUDA_SUCCESS && !reported)
		server_latch_set(fetch->number, fetch->function, 0, fetch->result);
	if (fetch->asked_end < fetch->bytes && !server_data_refuse(fetch->copy) && !thread->error)
		thread->error = -ENOMEM;
	server_gate_open(fetch->gate);
	fetch->closed = true;
	active = NULL;
	free_ended(fetch);
}

static void begin_next(struct server_thread *thread)
{
	while (!active && waiting && !thread->error) {
		active = waiting;
		if (!(waiting = active->behind))
			waiting_end = &waiting;
		ask(thread, active);
		if (is_over(active))
			close_active(thread, active);
	}
}

void server_fetch_begin(struct server_thread *thread, struct server_parcel *parcel)
{
	struct fetch *fetch = (struct fetch *)parcel;
	pthread_mutex_lock(&lock);
	fetch->result = fetch->call != CUDA_SUCCESS ? fetch->call : fetch->device;
	pthread_mutex_unlock(&lock);
	fetch->behind = NULL;
	*waiting_end = fetch;
	waiting_end = &fetch->behind;
	begin_next(thread);
}

void server_fetch_advance(struct server_thread *thread, struct server_parcel *parcel)
{
	struct fetch *fetch = (struct fetch *)((char *)parcel - offsetof(struct fetch, passed));
	pthread_mutex_lock(&lock);
	if (fetch->result == CUDA_SUCCESS)
		fetch->result = fetch->call != CUDA_SUCCESS ? fetch->call : fetch->device;
	pthread_mutex_unlock(&lock);
	fetch->ended = true;
	if (fetch == active && is_over(fetch)) {
		close_active(thread, fetch);
		begin_next(thread);
	} else {
		free_ended(fetch);
	}
}

bool server_fetch_look(struct server_thread *thread)
{
	if (!active || !wants_half(active))
		return false;
	pthread_mutex_lock(&lock);
	active->result = active->call; /* windows that it has not issued do not end */
	pthread_mutex_unlock(&lock);
	ask(thread, active);
	if (!is_over(active))
		return wants_half(active);
	close_active(thread, active);
	begin_next(thread);
	return active != NULL;
}

/* Bytes of the window have arrived, or were refused. */
static void advance(struct server_thread *thread, struct fetch *fetch, uint64_t len)
{
	uint64_t window = fetch->arrived.windows;
	place_move(fetch, &fetch->arrived, len);
	if (fetch->arrived.windows == window)
		return;
	if (fetch->result == CUDA_SUCCESS)
		server_gate_pass(fetch->gate, (uint32_t)window);
	ask(thread, fetch);
	if (!is_over(fetch))
		return;
	close_active(thread, fetch);
	begin_next(thread);
}

static void chunk_complete(void *context, int error, size_t len)
{
	struct server_thread *thread = context;
	if (error || thread->error)
		return;
	advance(thread, active, len);
}

/* Chunks of one copy have different places in the lane. A refusal changes the copy at once, and so is handled in turn. */
bool server_data_may_ahead(const struct rc_wire_chunk *chunk)
{
	return active && active->coming.at != active->arrived.at && chunk->copy == active->copy;
}

int server_fetch_arrived(struct server_thread *thread, const struct rc_wire_chunk *chunk, uint64_t len, ch3_sink_t *sink)
{
	struct fetch *fetch = active;
	if (!fetch || fetch->asked == fetch->coming.windows || chunk->copy != fetch->copy)
		return -EPROTO;
	if (!len) { /* the client gives no bytes for this window */
		uint64_t rest = fetch->coming.end - fetch->coming.at;
		fetch->result = CUDA_ERROR_INVALID_VALUE;
		place_move(fetch, &fetch->coming, rest);
		advance(thread, fetch, rest);
		return 0;
	}
	if (chunk->offset != fetch->coming.at || len != rc_box_chunk(&fetch->box, chunk->offset))
		return -EPROTO;
	sink->context = thread;
	sink->done = chunk_complete;
	sink->iov[sink->n++] = (struct iovec){
		server_lane_memory(fetch->lane, fetch->coming.windows) + (fetch->coming.at - fetch->coming.begin), len
	};
	place_move(fetch, &fetch->coming, len);
	return 0;
}

/* ---- on threads of the driver ---- */

static void stream_arrived(CUstream stream, CUresult result, void *argument)
{
	struct fetch *fetch = argument;
	(void)stream;
	pthread_mutex_lock(&lock);
	fetch->device = result;
	pthread_mutex_unlock(&lock);
	server_data_post(&fetch->parcel, 0);
}

static void stream_passed(CUstream stream, CUresult result, void *argument)
{
	struct fetch *fetch = argument;
	(void)stream;
	pthread_mutex_lock(&lock);
	if (fetch->device == CUDA_SUCCESS)
		fetch->device = result;
	fetch->over = true;
	if (fetch->issued)
		server_data_post(&fetch->passed, 0);
	pthread_mutex_unlock(&lock);
}

/* ---- the call ---- */

/* Issues the copy. The stream has its first callback: from here on the data connection frees the fetch. */
static CUresult issue(struct fetch *fetch, const CUDA_MEMCPY3D *array, const struct server_lane_gates *gates, CUstream stream)
{
	struct server_lane_side to = { &fetch->box, array };
	CUresult result = server_lane_issue(fetch->lane, &to, fetch->bytes, gates, true, stream);
	CUresult last = driver.cuStreamAddCallback(stream, stream_passed, fetch, 0);
	result = result == CUDA_SUCCESS ? last : result;
	pthread_mutex_lock(&lock);
	fetch->stray = last != CUDA_SUCCESS;
	fetch->call = result;
	fetch->issued = true;
	if (fetch->over || fetch->stray)
		server_data_post(&fetch->passed, 0);
	pthread_mutex_unlock(&lock);
	return result;
}

/* *given: the fetch belongs to the data connection. */
static CUresult begin(struct server_call *call, struct fetch *fetch, const CUDA_MEMCPY3D *array, CUstream stream, bool *given)
{
	struct server_lane_gates gates;
	uint64_t windows = server_lane_windows(fetch->lane, &fetch->box, fetch->bytes);
	if (!windows)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_gate_make(call->thread, fetch->gate, (uint32_t)windows, &gates.gate);
	if (result == CUDA_SUCCESS)
		result = server_gate_make(call->thread, fetch->done, (uint32_t)windows, &gates.done);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamAddCallback(stream, stream_arrived, fetch, 0);
	*given = result == CUDA_SUCCESS;
	if (*given)
		return issue(fetch, array, &gates, stream);
	server_gate_open(fetch->gate);
	server_gate_open(fetch->done);
	return result;
}

CUresult server_fetch_issue(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes, const CUDA_MEMCPY3D *array)
{
	void *stream;
	bool given = false;
	CUresult result = driver.cuStreamAddCallback ? server_object(RC_KIND_STREAM, copy->stream, &stream) : CUDA_ERROR_NOT_SUPPORTED;
	if (server_gates_of_copy_exist(copy->copy))
		result = CUDA_ERROR_INVALID_VALUE;
	struct fetch *fetch = result == CUDA_SUCCESS ? calloc(1, sizeof *fetch) : NULL;
	if (result == CUDA_SUCCESS && !fetch)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!fetch)
		return server_data_refuse(copy->copy) ? result : server_data_no_memory(call);
	*fetch = (struct fetch){ .parcel.kind = SERVER_PARCEL_FETCH, .passed.kind = SERVER_PARCEL_COPIED, .number = call->number,
				 .function = call->thread->head.function, .copy = copy->copy, .gate = server_gate_of_copy(copy->copy),
				 .done = server_gate_of_done(copy->copy), .box = copy->box, .bytes = bytes };
	result = server_lane_take(call->thread, copy->stream, &fetch->lane);
	if (result == CUDA_SUCCESS)
		result = begin(call, fetch, array, stream, &given);
	if (given)
		return result;
	if (fetch->lane)
		server_lane_put(fetch->lane);
	free(fetch);
	return server_data_refuse(copy->copy) ? result : server_data_no_memory(call);
}

CUresult serve_copy_up_later(struct server_call *call)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	if (!server_take_into(call, &copy, sizeof copy) || !server_box_is_sound(&copy.box, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return server_fetch_issue(call, &copy, bytes, NULL);
}
