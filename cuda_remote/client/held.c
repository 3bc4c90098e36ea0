/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a stream of a session may be held: whether it may have a launch, a host function or a wait, which can last until the
 * program does something. If no stream is held, the earlier work of a stream ends by itself, and the program cannot know when it
 * has ended. So a copy from pinned memory may then read its source during the call, unless earlier work writes the source.
 *
 * The client knows that a stream is not held without asking: after a call that has waited for all work of the only context
 * (rc_link_settled), or after one that has waited for the only stream with such calls.
 */
#include "cuda_remote/client/client.h"

#include <pthread.h>
#include <string.h>

/* Of rc_held.stream: there are several streams, or the stream is not known. No handle has this value. */
#define SEVERAL UINT64_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* True if the call may hold a stream. *at: where its handle is among the arguments; -1: the call may hold any. */
static bool may_hold(enum rc_call function, int *at)
{
	*at = 0;
	switch (function) {
	case RC_CALL_launch:
	case RC_CALL_graph_launch:
		*at = sizeof(uint64_t);
		return true;
	case RC_CALL_host_function:
	case RC_CALL_stream_memory:
	case RC_CALL_peer_gate:
	case RC_CALL_peer_copy:
	case RC_CALL_cuStreamWaitEvent:
		return true;
	case RC_CALL_context_event:
		*at = -1;
		return true;
	default:
		return false;
	}
}

/* True if the call makes a stream wait for an event that another process may record. */
static bool waits_for_process(enum rc_call function, const struct rc_wire_call *head)
{
	uint64_t event;
	size_t at = function == RC_CALL_context_event ? offsetof(struct rc_wire_context_event, event) : sizeof(uint64_t);
	memcpy(&event, (const uint8_t *)(head + 1) + at, sizeof event);
	return rc_ipc_event_is((CUevent)(uintptr_t)event);
}

/* True if the call may make a stream wait for a value, for another server or for another process. */
static bool waits_for_value(const struct rc_held *held, enum rc_call function, const struct rc_wire_call *head)
{
	switch (function) {
	case RC_CALL_cuStreamWaitEvent:
	case RC_CALL_context_event:
		return waits_for_process(function, head);
	case RC_CALL_stream_memory:
	case RC_CALL_peer_gate:
	case RC_CALL_peer_copy:
		return true;
	case RC_CALL_graph_launch:
		return __atomic_load_n(&held->graphs, __ATOMIC_RELAXED);
	default:
		return false;
	}
}

static_assert(offsetof(struct rc_wire_launch, stream) == sizeof(uint64_t) &&
	      offsetof(struct rc_wire_graph_launch, stream) == sizeof(uint64_t) && !offsetof(struct rc_wire_host_function, stream) &&
	      !offsetof(struct rc_wire_memops, stream) && !offsetof(struct rc_wire_peer_gate, stream) &&
	      !offsetof(struct rc_wire_peer_copy, stream) &&
	      offsetof(struct rc_wire_copy, stream) == sizeof(uint64_t), "places of the stream");

/* The stream that the arguments name; SEVERAL for the per-thread default stream, which each thread has. Each context has a legacy
 * default stream: for it, a number below all handles, with the index of the call's context. */
static uint64_t stream_at(const struct rc_wire_call *head, int at)
{
	uint64_t stream;
	if (at < 0)
		return SEVERAL;
	memcpy(&stream, (const uint8_t *)(head + 1) + at, sizeof stream);
	if (stream > (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD)
		return stream;
	if (stream == (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD || head->flags & RC_CALL_PER_THREAD)
		return SEVERAL;
	return (uint64_t)head->context << 2 | (uint64_t)(uintptr_t)CU_STREAM_LEGACY;
}

/* False: the copy between servers waits for nothing in this session but an event, or for nothing at all. */
static bool is_held_by_copy(const struct rc_wire_call *head)
{
	struct rc_wire_peer_copy copy;
	memcpy(&copy, head + 1, sizeof copy);
	return copy.flags & RC_PEER_COPY_HOLD;
}

static void raise(uint64_t *to, uint64_t number)
{
	uint64_t known = __atomic_load_n(to, __ATOMIC_RELAXED);
	while (known < number && !__atomic_compare_exchange_n(to, &known, number, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

bool rc_held_any(const struct rc_session *session)
{
	uint64_t last = __atomic_load_n(&session->held.last, __ATOMIC_SEQ_CST);
	return last > __atomic_load_n(&session->held.done, __ATOMIC_ACQUIRE) && last > rc_link_settled(session);
}

/* Kernels of a worker on this host may look at memory that the host changes meanwhile. */
bool rc_held_by_value(const struct rc_session *session)
{
	uint64_t last = __atomic_load_n(&session->held.valued, __ATOMIC_SEQ_CST);
	bool valued = last > __atomic_load_n(&session->held.done, __ATOMIC_ACQUIRE) && last > rc_link_settled(session);
	return valued || (session->local && rc_held_any(session));
}

/* The call is the first in its stream since another stream may have been held. */
static void change_stream(struct rc_session *session, uint64_t stream)
{
	uint64_t *now = &session->held.stream;
	pthread_mutex_lock(&lock);
	__atomic_store_n(now, rc_held_any(session) ? SEVERAL : stream, __ATOMIC_SEQ_CST);
	/* A thread that has found its own stream here, just before, may have raised `last` since. */
	if (rc_held_any(session))
		__atomic_store_n(now, SEVERAL, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
}

void rc_held_note(struct rc_session *session, enum rc_call function, const struct rc_wire_call *head)
{
	struct rc_held *held = &session->held;
	int at;
	if (!may_hold(function, &at) || (function == RC_CALL_peer_copy && !is_held_by_copy(head)))
		return;
	if (waits_for_value(held, function, head))
		raise(&held->valued, head->number);
	uint64_t stream = stream_at(head, at);
	if (__atomic_load_n(&held->stream, __ATOMIC_SEQ_CST) != stream)
		change_stream(session, stream);
	/* Sequentially consistent with change_stream: either that finds this number, or this finds the other stream. */
	raise(&held->last, head->number);
	if (__atomic_load_n(&held->stream, __ATOMIC_SEQ_CST) == stream)
		return;
	/* Also higher than the number of a wait for the other stream that may have been made meanwhile. */
	__atomic_store_n(&held->stream, SEVERAL, __ATOMIC_SEQ_CST);
	raise(&held->last, __atomic_load_n(&session->numbered, __ATOMIC_SEQ_CST) + 1);
}

void rc_held_waited(struct rc_session *session, enum rc_call function, const struct rc_wire_call *head)
{
	struct rc_held *held = &session->held;
	bool is_copy = function == RC_CALL_copy_down || function == RC_CALL_copy_down_reply;
	if (!is_copy && function != RC_CALL_cuStreamSynchronize && function != RC_CALL_cuStreamQuery)
		return;
	uint64_t stream = stream_at(head, is_copy ? (int)sizeof(uint64_t) : 0);
	if (stream != SEVERAL && __atomic_load_n(&held->stream, __ATOMIC_SEQ_CST) == stream &&
	    __atomic_load_n(&held->last, __ATOMIC_SEQ_CST) <= head->number)
		raise(&held->done, head->number);
}
