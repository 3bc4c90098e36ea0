/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous copies to the host of which the worker keeps only two windows, as the session has HEADRACE_STAGING bytes of such
 * copies already. The call issues all work of the device: a callback that tells the data connection that the stream is there; for
 * each window a wait at the gate, until half of the stream's lane is free, the copies to it, and a write that says that the window is
 * there; and a callback at the end. The thread of the data connection looks at what the device has written, sends the windows, and
 * lets the stream pass the step of the window after the next one. It waits for nothing but the connection. The first two windows
 * wait for the copy before in the same lane. (Why the device writes: fetch.c.)
 */
#include "cuda_remote/server/data/data.h"

#include <stdlib.h>

/* One of a push's entries in the queue of the data connection: the messages that were counted before the entry was posted. Messages are
 * sent in the order in which they are counted, because a client that has waited for a stream then waits for a number of messages, not for
 * particular ones. So messages that are counted later have another entry, even if this one is still in the queue. */
struct entry {
	struct server_parcel parcel;
	struct push *push;
	uint64_t good; /* windows to send */
	bool failed;   /* the failure is to be reported */
};

enum { ENTRY_LOOK, /* the stream has come to the copy, or the data connection has looked */
       ENTRY_PASSED, ENTRY_CALL, ENTRIES };

struct push {
	struct entry entry[ENTRIES];
	struct server_lane *lane;
	struct push *behind; /* the next copy to the host in the lane. Under the lock */
	uint64_t number, gate, copy, bytes;
	uint16_t function;
	struct rc_wire_box box;
	struct push *looked; /* in the list of those that are looked at */
	uint64_t done;    /* id of the gate that the device writes */
	/* Under the lock. */
	bool issued;      /* the call has issued the copy */
	unsigned told;    /* entries that are in the queue */
	bool looking;     /* ENTRY_LOOK is */
	bool came;        /* the first callback has come */
	bool over;        /* the last callback has come */
	uint64_t steps;   /* of the gate: windows that the copy has */
	uint64_t good;    /* windows that the device has copied, before the first failure */
	uint64_t end;     /* offset behind the good windows */
	bool failed;      /* the client is to be told, by one message */
	bool reported;    /* the failure is that of the call */
	bool blocked;     /* the copy before has not left the lane */
	bool open_later;  /* then the gate opens: the copy has failed */
	bool sent_all;    /* then the push ends: all that was issued has been sent */
	bool stray;       /* the device works on the copy, and nobody reports the end: the lane stays the stream's */
	CUresult result;
	/* Of the thread of the data connection. */
	bool listed;
	uint64_t sent_windows, sent; /* that are sent, or being sent; bytes */
	uint64_t sends;   /* server_sends_begun after the last chunk of it */
	bool failure_sent;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct push *looked_at; /* of the thread of the data connection */

/* ---- what the data connection is told ---- */

/* Posts the entry, which is not in the queue, to the data connection, and counts its messages. Under the lock. */
static void tell(struct push *push, unsigned which, uint64_t messages)
{
	struct entry *entry = &push->entry[which];
	entry->parcel.kind = SERVER_PARCEL_PUSH;
	entry->push = push;
	entry->good = push->good;
	entry->failed = push->failed;
	push->told++;
	server_data_post(&entry->parcel, messages);
}

/* Messages of the first failure. Under the lock. */
static uint64_t fail(struct push *push, CUresult result)
{
	if (push->failed)
		return 0;
	push->failed = true;
	push->result = result;
	return 1;
}

/* Chunks of the window that begins at an offset. */
static uint64_t chunks(const struct push *push, uint64_t begin, uint64_t end)
{
	uint64_t n = 0;
	for (; begin < end; n++)
		begin += rc_box_chunk(&push->box, begin);
	return n;
}

/* Counts the messages of the windows that the device has copied since the last time. Under the lock. */
static uint64_t count(struct push *push)
{
	uint64_t messages = 0, written = server_gate_written(push->done);
	while (!push->failed && push->good < push->steps && push->good < written) {
		uint64_t end = server_lane_end(push->lane, &push->box, push->bytes, push->end);
		messages += chunks(push, push->end, end);
		push->end = end;
		push->good++;
	}
	return messages;
}

/* Lets the stream copy the windows up to this one. */
static void let_copy(const struct push *push, uint64_t window)
{
	server_gate_pass(push->gate, (uint32_t)(window < push->steps ? window : push->steps - 1));
}

/* ---- on the thread of the data connection ---- */

/* Begins to send a window, and waits until the window before it is sent. So the client always has bytes to receive. Then the
 * stream may copy the next window to the other half of the lane. */
static void send_window(struct server_thread *thread, struct push *push)
{
	uint64_t end = server_lane_end(push->lane, &push->box, push->bytes, push->sent), begin = push->sent;
	const uint8_t *memory = server_lane_memory(push->lane, push->sent_windows);
	uint64_t before = push->sends;
	while (push->sent < end && !thread->error) {
		uint64_t len = rc_box_chunk(&push->box, push->sent);
		server_sends_begin(thread, push->copy, push->sent, memory + (push->sent - begin), len, NULL);
		push->sent += len;
	}
	push->sends = server_sends_begun();
	server_sends_wait(thread, before);
	let_copy(push, ++push->sent_windows);
}

/* The lane is free for the next copy. Returns that copy if it ends now, else NULL. */
static struct push *leave_lane(struct push *push)
{
	if (!push->lane)
		return NULL;
	pthread_mutex_lock(&lock);
	void **newest = server_lane_newest(push->lane);
	if (*newest == push)
		*newest = NULL;
	struct push *behind = push->behind;
	if (behind) {
		behind->blocked = false;
		if (behind->open_later)
			server_gate_open(behind->gate);
		else
			let_copy(behind, 1);
	}
	bool ends = behind && behind->sent_all, stray = push->stray;
	pthread_mutex_unlock(&lock);
	if (!stray)
		server_lane_put(push->lane);
	return ends ? behind : NULL;
}

/* Ends a push of which all that was issued has been sent, and those that have waited for it. */
static void finish(struct push *push)
{
	pthread_mutex_lock(&lock);
	push->sent_all = push->blocked;
	struct push *ending = push->blocked ? NULL : push;
	pthread_mutex_unlock(&lock);
	while (ending) {
		server_gate_open(ending->gate);
		if (!ending->stray)
			server_gate_open(ending->done);
		struct push *next = leave_lane(ending);
		free(ending);
		ending = next;
	}
}

/* Lets the stream pass. Windows that it copies after a failure must not replace those of the copy before, which may still be sent. */
static void open_gate(struct push *push)
{
	pthread_mutex_lock(&lock);
	push->open_later = push->blocked;
	if (!push->blocked)
		server_gate_open(push->gate);
	pthread_mutex_unlock(&lock);
}

/* A chunk without bytes says that the copy has failed. The failure is latched before the stream goes on: the call that waits for
 * the stream reports it. */
static void send_failure(struct server_thread *thread, struct push *push, CUresult result, bool reported)
{
	struct rc_wire_chunk chunk = { push->copy, 0 };
	push->failure_sent = true;
	server_thread_send(thread, RC_PACKET_CHUNK, &chunk, sizeof chunk, NULL, 0);
	if (!reported)
		server_latch_set(push->number, push->function, 0, result);
	open_gate(push);
}

static void look_no_more(struct push *push)
{
	struct push **at = &looked_at;
	while (*at && *at != push)
		at = &(*at)->looked;
	if (*at)
		*at = push->looked;
	push->listed = false;
}

bool server_push_look(void)
{
	for (struct push *push = looked_at; push; push = push->looked) {
		pthread_mutex_lock(&lock);
		uint64_t messages = push->looking ? 0 : count(push);
		if (messages) {
			push->looking = true;
			tell(push, ENTRY_LOOK, messages);
		}
		pthread_mutex_unlock(&lock);
	}
	return looked_at != NULL;
}

void server_push_serve(struct server_thread *thread, struct server_parcel *parcel)
{
	struct entry *entry = (struct entry *)parcel;
	struct push *push = entry->push;
	pthread_mutex_lock(&lock);
	push->told--;
	if (entry == &push->entry[ENTRY_LOOK])
		push->looking = false;
	struct push now = *push;
	struct entry it = *entry;
	pthread_mutex_unlock(&lock);
	while (push->sent_windows < it.good && !thread->error)
		send_window(thread, push);
	/* The last entry: nothing is counted after the last callback and the call. */
	bool ends = now.issued && (now.over || (now.stray && now.came)) && !now.told;
	if (ends || it.failed)
		server_sends_wait(thread, push->sends);
	if (it.failed && !push->failure_sent && !thread->error)
		send_failure(thread, push, now.result, now.reported);
	if (push->listed && (ends || now.failed || now.good == now.steps))
		look_no_more(push);
	else if (!push->listed && !ends && !now.failed && now.good < now.steps) {
		push->looked = looked_at;
		looked_at = push;
		push->listed = true;
	}
	if (ends)
		finish(push);
}

/* ---- on threads of the driver ---- */

static void stream_arrived(CUstream stream, CUresult result, void *argument)
{
	struct push *push = argument;
	(void)stream;
	pthread_mutex_lock(&lock);
	push->came = push->looking = true;
	uint64_t messages = result == CUDA_SUCCESS ? 0 : fail(push, result);
	tell(push, ENTRY_LOOK, messages);
	pthread_mutex_unlock(&lock);
}

/* All messages are counted before the stream goes on. */
static void stream_passed(CUstream stream, CUresult result, void *argument)
{
	struct push *push = argument;
	(void)stream;
	pthread_mutex_lock(&lock);
	push->over = true;
	uint64_t messages = result == CUDA_SUCCESS ? count(push) : fail(push, result);
	tell(push, ENTRY_PASSED, messages);
	pthread_mutex_unlock(&lock);
}

/* ---- the call ---- */

/* Before the copy is issued. */
static void enter_lane(struct push *push)
{
	pthread_mutex_lock(&lock);
	void **newest = server_lane_newest(push->lane);
	struct push *before = *newest;
	*newest = push;
	push->blocked = before != NULL;
	if (before)
		before->behind = push;
	else
		let_copy(push, 1);
	pthread_mutex_unlock(&lock);
}

/* Issues the copy. The stream has its first callback. *stray: nobody will report the end. */
static CUresult issue(struct push *push, const CUDA_MEMCPY3D *array, const struct server_lane_gates *gates, CUstream stream,
		      bool *stray)
{
	struct server_lane_side from = { &push->box, array };
	CUresult result = server_lane_issue(push->lane, &from, push->bytes, gates, false, stream);
	CUresult last = driver.cuStreamAddCallback(stream, stream_passed, push, 0);
	*stray = last != CUDA_SUCCESS;
	return result == CUDA_SUCCESS ? last : result;
}

static CUresult prepare(struct server_call *call, const struct rc_wire_copy *copy, struct push *push, CUstream *stream,
			struct server_lane_gates *gates)
{
	void *object = NULL;
	CUresult result = server_object(RC_KIND_STREAM, copy->stream, &object);
	if (!driver.cuStreamAddCallback)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = server_lane_take(call->thread, copy->stream, &push->lane);
	if (result == CUDA_SUCCESS)
		push->steps = server_lane_windows(push->lane, &copy->box, push->bytes);
	if (result == CUDA_SUCCESS)
		result = push->steps ? server_gate_make(call->thread, push->gate, (uint32_t)push->steps, &gates->gate) :
				       CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = server_gate_make(call->thread, push->done, (uint32_t)push->steps, &gates->done);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamAddCallback(object, stream_arrived, push, 0);
	*stream = object;
	return result;
}

CUresult server_push_begin(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes, const CUDA_MEMCPY3D *array)
{
	bool named = server_gates_of_copy_exist(copy->copy);
	struct push *push = named ? NULL : calloc(1, sizeof *push);
	struct server_lane_gates gates;
	CUstream stream;
	if (named && server_data_refuse(copy->copy))
		return CUDA_ERROR_INVALID_VALUE;
	if (!push)
		return server_data_no_memory(call);
	*push = (struct push){ .number = call->number, .function = call->thread->head.function,
			       .copy = copy->copy, .gate = server_gate_of_copy(copy->copy), .done = server_gate_of_done(copy->copy),
			       .box = copy->box, .bytes = bytes };
	CUresult result = prepare(call, copy, push, &stream, &gates);
	bool issued = result == CUDA_SUCCESS, stray = false;
	if (issued) {
		enter_lane(push);
		result = issue(push, array, &gates, stream, &stray);
	}
	pthread_mutex_lock(&lock);
	push->issued = true;
	push->stray = stray;
	push->over |= !issued; /* the stream does not come to the copy */
	if (result != CUDA_SUCCESS)
		push->reported = !push->failed; /* else a callback has reported a failure before */
	/* The client is told of a failure; and the last callback may have come already. */
	uint64_t messages = result == CUDA_SUCCESS ? 0 : fail(push, result);
	if (messages || push->over || push->stray)
		tell(push, ENTRY_CALL, messages);
	pthread_mutex_unlock(&lock);
	return result;
}
