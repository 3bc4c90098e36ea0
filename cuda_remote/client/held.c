/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a stream of a session may be held: whether it may have a launch, a host function or a wait, which can last until the
 * program does something. If no stream is held, the earlier work of a stream ends by itself, and the program cannot know when it
 * has ended. So a copy from pinned memory may then read its source during the call, unless earlier work writes the source.
 *
 * The client knows that a stream is not held without asking: after a call that has waited for all work of the only context
 * (rc_link_settled), or after one that has waited for the only stream with such calls. done.c follows all other work in the same
 * way.
 */
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/session.h"

#include <pthread.h>
#include <string.h>

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

uint64_t rc_track_stream(const struct rc_wire_call *head, int at)
{
	uint64_t stream = 0;
	if (at == -1)
		return RC_TRACK_SEVERAL;
	if (at >= 0)
		memcpy(&stream, (const uint8_t *)(head + 1) + at, sizeof stream);
	if (stream > (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD)
		return stream;
	if (stream == (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD || head->flags & RC_CALL_PER_THREAD)
		return RC_TRACK_SEVERAL;
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

/* ---- tracks ---- */

bool rc_track_any(const struct rc_session *session, const struct rc_track *track)
{
	uint64_t last = __atomic_load_n(&track->last, __ATOMIC_SEQ_CST);
	return last > __atomic_load_n(&track->done, __ATOMIC_ACQUIRE) && last > rc_link_settled(session);
}

/* The call is the first in its stream since another stream may have had such calls. */
static void change_stream(const struct rc_session *session, struct rc_track *track, uint64_t stream)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&track->stream, rc_track_any(session, track) ? RC_TRACK_SEVERAL : stream, __ATOMIC_SEQ_CST);
	/* A thread that has found its own stream here, just before, may have raised `last` since. */
	if (rc_track_any(session, track))
		__atomic_store_n(&track->stream, RC_TRACK_SEVERAL, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
}

void rc_track_note(const struct rc_session *session, struct rc_track *track, uint64_t stream, uint64_t number)
{
	if (__atomic_load_n(&track->stream, __ATOMIC_SEQ_CST) != stream)
		change_stream(session, track, stream);
	/* Sequentially consistent with change_stream: either that finds this number, or this finds the other stream. */
	raise(&track->last, number);
	if (__atomic_load_n(&track->stream, __ATOMIC_SEQ_CST) == stream)
		return;
	/* Also higher than the number of a wait for the other stream that may have been made meanwhile. */
	__atomic_store_n(&track->stream, RC_TRACK_SEVERAL, __ATOMIC_SEQ_CST);
	raise(&track->last, __atomic_load_n(&session->numbered, __ATOMIC_SEQ_CST) + 1);
}

void rc_track_waited(struct rc_track *track, uint64_t stream, uint64_t number)
{
	if (stream != RC_TRACK_SEVERAL && __atomic_load_n(&track->stream, __ATOMIC_SEQ_CST) == stream &&
	    __atomic_load_n(&track->last, __ATOMIC_SEQ_CST) <= number)
		raise(&track->done, number);
}

/* ---- calls that may hold a stream ---- */

bool rc_held_any(const struct rc_session *session)
{
	return rc_track_any(session, &session->held.track);
}

/* Kernels of a worker on this host may look at memory that the host changes meanwhile. */
bool rc_held_by_value(const struct rc_session *session)
{
	uint64_t last = __atomic_load_n(&session->held.valued, __ATOMIC_SEQ_CST);
	bool valued = last > __atomic_load_n(&session->held.track.done, __ATOMIC_ACQUIRE) && last > rc_link_settled(session);
	return valued || (session->local && rc_held_any(session));
}

bool rc_held_note(struct rc_session *session, enum rc_call function, const struct rc_wire_call *head)
{
	struct rc_held *held = &session->held;
	int at;
	if (!may_hold(function, &at) || (function == RC_CALL_peer_copy && !is_held_by_copy(head)))
		return false;
	if (waits_for_value(held, function, head))
		raise(&held->valued, head->number);
	rc_track_note(session, &held->track, rc_track_stream(head, at), head->number);
	return true;
}
