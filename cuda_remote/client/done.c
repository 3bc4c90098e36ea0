/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which work is known to be complete. A call that waits for work the client knows to be complete is not sent: it returns success.
 *
 * A session knows that all its work is complete (session->settled) after a call that has waited for the only context, or for the
 * only stream that had work. The recording of an event gives no work then, so the event is complete at once. Of an event that a
 * call has waited for, the client knows that it is complete until it is recorded again.
 *
 * Failures of calls that do not wait come with the next call that is answered. And a driver prints what kernels have printed when
 * a call waits, but not when a query finds the work complete. So a wait for a stream or for the context is sent if a call since
 * the last one that has waited and is no query may have failed or printed (session->heard), and a wait for an event is sent if
 * only a query has found it complete.
 */
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/early.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/stream.h"
#include "rdma_channel/clock.h"

#include <pthread.h>
#include <string.h>

/* Bits of struct rc_recording.mark; the number is above them. */
#define COMPLETE 1u /* the recording is known to be complete */
#define TOLD 2u     /* the worker has said so: its driver has recorded the time */
#define WAITED 4u   /* a call that is no query has waited for its work: what the work has printed is out */
#define EARLY 8u    /* all work was complete when the event was recorded; the driver may still be about to record it */
#define BITS 4

static uint64_t argument_at(const struct rc_wire_call *head, size_t at)
{
	uint64_t argument;
	memcpy(&argument, (const uint8_t *)(head + 1) + at, sizeof argument);
	return argument;
}

/* Where both calls have the event and the stream. */
#define EVENT_AT offsetof(struct rc_args_cuEventRecord, hEvent)
#define STREAM_AT offsetof(struct rc_args_cuEventRecord, hStream)
static_assert(EVENT_AT == offsetof(struct rc_args_cuEventRecordWithFlags, hEvent) &&
	      STREAM_AT == offsetof(struct rc_args_cuEventRecordWithFlags, hStream) &&
	      EVENT_AT == offsetof(struct rc_args_cuEventSynchronize, hEvent) &&
	      EVENT_AT == offsetof(struct rc_args_cuEventQuery, hEvent) &&
	      EVENT_AT == offsetof(struct rc_wire_event_elapsed, event), "places of event and stream");

/* ---- work ---- */

/* True if the call gives the devices no work. */
static bool is_idle(enum rc_call function)
{
	switch (function) {
	case RC_CALL_memory_window:
	case RC_CALL_memory_budget:
	case RC_CALL_memory_place:
	case RC_CALL_memory_unplace:
	case RC_CALL_copy_up_settled: /* it is complete before the next call is issued */
	case RC_CALL_copy_wait:
	case RC_CALL_managed_info:
	case RC_CALL_pinned_mirror:
	case RC_CALL_managed_make:
	case RC_CALL_managed_push:
	case RC_CALL_managed_pull:
	case RC_CALL_cuMemGetInfo_v2:
	case RC_CALL_peer_open:
	case RC_CALL_peer_wait:
	case RC_CALL_peer_flush:
	case RC_CALL_data_connection:
	case RC_CALL_peer_invite:
	case RC_CALL_peer_join:
	case RC_CALL_peer_close:
	case RC_CALL_cuEventRecord: /* gives no work if its stream has none */
	case RC_CALL_cuEventRecordWithFlags:
		return true;
	default:
		return false;
	}
}

/* The call has been numbered. True: the work of all calls up to this one is complete. */
static bool is_settled(struct rc_session *session, enum rc_call function, const struct rc_wire_call *head)
{
	uint64_t number = head->number, before = number - 1;
	return is_idle(function) && !(head->flags & RC_CALL_WAIT) &&
	       __atomic_compare_exchange_n(&session->settled, &before, number, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&session->several, __ATOMIC_SEQ_CST);
}

bool rc_done_makes_or_ends(enum rc_call function)
{
	switch (function) {
	case RC_CALL_cuEventCreate:
	case RC_CALL_cuEventDestroy_v2:
	case RC_CALL_cuStreamCreate:
	case RC_CALL_cuStreamCreateWithPriority:
	case RC_CALL_cuStreamDestroy_v2:
	case RC_CALL_copy_early_change:
	case RC_CALL_copy_staging:
	case RC_CALL_function_cache:
	case RC_CALL_cuCtxSetCacheConfig:
		return true;
	default:
		return false;
	}
}

/* True if the work of a call that waits may still be under way when the call is answered. */
static bool leaves_work(enum rc_call function)
{
	/* CUDA lets a copy between two addresses of one device return early. An allocation can wait for a stream that frees. */
	return function == RC_CALL_cuMemcpyPeer || function == RC_CALL_memory_alloc_async;
}

#define DEFAULT_STREAM (-2)

/* Where the handle of the stream that gets the work is among the arguments, for rc_track_stream; -1: it may be any. */
static int place_of_stream(enum rc_call function)
{
	switch (function) {
	case RC_CALL_cuEventRecord:
	case RC_CALL_cuEventRecordWithFlags:
		return (int)STREAM_AT;
	case RC_CALL_copy_up:
	case RC_CALL_copy_up_early:
	case RC_CALL_copy_up_later:
	case RC_CALL_copy_down_later:
		return (int)offsetof(struct rc_wire_copy, stream);
	case RC_CALL_copy_pinned:
		return (int)offsetof(struct rc_wire_copy_pinned, stream);
	case RC_CALL_copy_across:
		return (int)offsetof(struct rc_wire_across, stream);
	case RC_CALL_cuMemsetD8Async:
		return (int)offsetof(struct rc_args_cuMemsetD8Async, hStream);
	case RC_CALL_cuMemsetD16Async:
		return (int)offsetof(struct rc_args_cuMemsetD16Async, hStream);
	case RC_CALL_cuMemsetD32Async:
		return (int)offsetof(struct rc_args_cuMemsetD32Async, hStream);
	case RC_CALL_memory_alloc_async:
		return (int)offsetof(struct rc_wire_alloc, stream);
	case RC_CALL_memory_free_async:
		return (int)offsetof(struct rc_wire_free, stream);
	case RC_CALL_cuMemsetD8_v2:
	case RC_CALL_cuMemsetD16_v2:
	case RC_CALL_cuMemsetD32_v2:
	case RC_CALL_cuMemcpyDtoD_v2:
		return DEFAULT_STREAM;
	default:
		return -1;
	}
}

int rc_done_place(enum rc_call function)
{
	switch (function) {
	case RC_CALL_launch:
		return (int)offsetof(struct rc_wire_launch, stream);
	case RC_CALL_graph_launch:
		return (int)offsetof(struct rc_wire_graph_launch, stream);
	case RC_CALL_host_function:
		return (int)offsetof(struct rc_wire_host_function, stream);
	default:
		return place_of_stream(function);
	}
}

uint64_t rc_done_stream(enum rc_call function, const struct rc_wire_call *head)
{
	return rc_track_stream(head, rc_done_place(function));
}

/* ---- recordings ---- */

/* False: the worker's driver may refuse the recording, as event and stream are not known to be of one context. */
static bool is_of_one_context(const struct rc_wire_call *head)
{
	uint64_t stream = argument_at(head, STREAM_AT), event = argument_at(head, EVENT_AT);
	const void *context = rc_handle_data(RC_KIND_EVENT, event);
	if (!context || rc_handle_index((uint64_t)(uintptr_t)context) != head->context)
		return false;
	if (rc_stream_is_special(stream))
		return true;
	const struct rc_stream *known = rc_handle_data(RC_KIND_STREAM, stream);
	return known && known->context == context;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Another thread that waits for the event sees either nothing of the recording or all of it: the mark is 0 while the stream
 * changes. Of two threads that record the event, that with the higher number has recorded it last. */
static void note_recording(uint64_t event, uint64_t stream, uint64_t number, unsigned bits)
{
	struct rc_recording *recording = rc_handle_recording(event);
	if (!recording)
		return;
	pthread_mutex_lock(&lock);
	if (recording->number < number) {
		recording->number = number;
		__atomic_store_n(&recording->mark, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&recording->stream, stream, __ATOMIC_SEQ_CST);
		__atomic_store_n(&recording->mark, number << BITS | bits, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&lock);
}

/* The mark of the event's recording, and its stream. 0: nothing is known, as of an event that others may record too: a graph or
 * another process. */
static uint64_t recording_of(uint64_t event, uint64_t *stream)
{
	const struct rc_recording *recording = rc_handle_recording(event);
	if (!recording || __atomic_load_n(&recording->in_graph, __ATOMIC_RELAXED) || rc_ipc_event_is((CUevent)(uintptr_t)event))
		return 0;
	uint64_t mark = __atomic_load_n(&recording->mark, __ATOMIC_SEQ_CST);
	*stream = __atomic_load_n(&recording->stream, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&recording->mark, __ATOMIC_SEQ_CST) == mark ? mark : 0;
}

/* The same for the recording that the call with this number finds. 0 also if another thread has recorded the event since. */
static uint64_t recording_before(uint64_t event, uint64_t number, uint64_t *stream)
{
	uint64_t mark = recording_of(event, stream);
	return mark >> BITS > number ? 0 : mark;
}

/* Notes that a call has waited for the event. mark and stream: of the event's recording when the call was sent. If another thread has
 * recorded the event since, the call may have waited for the later recording, so nothing is noted. */
static void waited_for_event(struct rc_session *session, uint64_t event, uint64_t mark, uint64_t stream, unsigned bits)
{
	struct rc_recording *recording = mark ? rc_handle_recording(event) : NULL;
	if (!recording || !__atomic_compare_exchange_n(&recording->mark, &mark, mark | bits, false, __ATOMIC_SEQ_CST,
						       __ATOMIC_RELAXED))
		return;
	rc_track_waited(&session->held.track, stream, mark >> BITS);
	rc_track_waited(&session->other, stream, mark >> BITS);
	rc_early_end(session, stream, mark >> BITS);
}

void rc_done_event_in_graph(CUevent event)
{
	struct rc_recording *recording = rc_handle_recording((uint64_t)(uintptr_t)event);
	if (recording)
		__atomic_store_n(&recording->in_graph, true, __ATOMIC_RELAXED);
}

/* ---- calls ---- */

static void note_event_record(struct rc_session *session, const struct rc_wire_call *head, bool settled)
{
	uint64_t stream = rc_track_stream(head, (int)STREAM_AT), before = head->number - 1;
	bool complete = settled && is_of_one_context(head) &&
			__atomic_compare_exchange_n(&session->heard, &before, head->number, false, __ATOMIC_ACQ_REL,
						    __ATOMIC_RELAXED);
	unsigned bits = (complete ? COMPLETE | WAITED : 0) | (settled ? EARLY : 0);
	note_recording(argument_at(head, EVENT_AT), stream, head->number, bits);
	if (!settled)
		rc_track_note(session, &session->other, stream, head->number);
}

void rc_done_note(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head)
{
	struct rc_session *session = link->session;
	bool settled = is_settled(session, function, head);
	switch (function) {
	case RC_CALL_cuEventRecord:
	case RC_CALL_cuEventRecordWithFlags:
		note_event_record(session, head, settled);
		return;
	case RC_CALL_cuEventSynchronize:
	case RC_CALL_cuEventQuery:
		link->awaited = recording_before(argument_at(head, EVENT_AT), head->number, &link->awaited_stream);
		return;
	case RC_CALL_event_elapsed: {
		uint64_t unused, stream = argument_at(head, offsetof(struct rc_wire_event_elapsed, stream));
		link->awaited = recording_before(argument_at(head, EVENT_AT), head->number, &link->awaited_stream);
		if (stream && link->awaited_stream != stream)
			link->awaited = 0; /* another thread has recorded the event in another stream, for which nobody waits */
		link->awaited_start = recording_before(argument_at(head, offsetof(struct rc_wire_event_elapsed, start)), head->number,
						       &unused);
		return;
	}
	case RC_CALL_context_event: /* may record the event */
		note_recording(argument_at(head, offsetof(struct rc_wire_context_event, event)), RC_TRACK_SEVERAL, head->number,
			       0);
		break;
	case RC_CALL_copy_up:
		link->copied_in = rc_track_stream(head, place_of_stream(function));
		break;
	case RC_CALL_copy_up_end:
		rc_track_note(session, &session->other, link->copied_in, head->number);
		return;
	case RC_CALL_context_destroy:
	case RC_CALL_context_reset:
	case RC_CALL_green_destroy:
		__atomic_store_n(&session->left, true, __ATOMIC_RELAXED);
		return;
	default:
		break;
	}
	/* The work of other calls that wait is complete when the call is answered, or it was done by another call. */
	bool complete = head->flags & RC_CALL_WAIT && !leaves_work(function);
	if (rc_held_note(session, function, head) || complete || is_idle(function) || rc_done_makes_or_ends(function))
		return;
	rc_track_note(session, &session->other, rc_track_stream(head, place_of_stream(function)), head->number);
}

/* Where the handle of the stream that a call waits for is among the arguments; -1: it waits for none. */
static int place_of_awaited(enum rc_call function)
{
	switch (function) {
	case RC_CALL_copy_down:
	case RC_CALL_copy_down_reply:
		return (int)offsetof(struct rc_wire_copy, stream);
	case RC_CALL_copy_pinned_wait:
		return (int)offsetof(struct rc_wire_copy_pinned, stream);
	case RC_CALL_cuStreamSynchronize:
		return (int)offsetof(struct rc_args_cuStreamSynchronize, hStream);
	case RC_CALL_cuStreamQuery:
		return (int)offsetof(struct rc_args_cuStreamQuery, hStream);
	case RC_CALL_copy_wait:
		return 0;
	default:
		return -1;
	}
}

bool rc_done_leaves_work_only(enum rc_call function)
{
	return rc_done_place(function) != -1 || place_of_awaited(function) >= 0 || function == RC_CALL_cuStreamWaitEvent;
}

bool rc_done_empties_thread_stream(const struct rc_link *link, enum rc_call function, const struct rc_wire_call *head)
{
	int at = place_of_awaited(function);
	if (function == RC_CALL_context_synchronize)
		return rc_handle_index(argument_at(head, offsetof(struct rc_wire_context, context))) == link->thread_context;
	if (at < 0 || head->context != link->thread_context)
		return false;
	uint64_t stream = argument_at(head, (size_t)at);
	return stream == (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD || (!stream && head->flags & RC_CALL_PER_THREAD);
}

/* True if the answer does not tell of failures of earlier calls: that of the next call does. */
static bool leaves_failures(const struct rc_link *link, enum rc_call function)
{
	return link->own || function == RC_CALL_memory_free || function == RC_CALL_pinned_free ||
	       function == RC_CALL_pinned_wait || function == RC_CALL_managed_free;
}

/* Another thread may have stored a higher number meanwhile. Then less is known than could be, and calls are sent that need not. */
static void learn(uint64_t *known, uint64_t number)
{
	if (__atomic_load_n(known, __ATOMIC_RELAXED) < number)
		__atomic_store_n(known, number, __ATOMIC_RELEASE);
}

static bool is_query(enum rc_call function)
{
	return function == RC_CALL_cuStreamQuery || function == RC_CALL_cuEventQuery;
}

static bool waits_for_event(enum rc_call function)
{
	return function == RC_CALL_cuEventSynchronize || function == RC_CALL_event_elapsed;
}

/* True if the driver prints what kernels have printed so far before the call returns. */
static bool prints(enum rc_call function)
{
	return function == RC_CALL_cuStreamSynchronize || waits_for_event(function) ||
	       function == RC_CALL_context_synchronize || function == RC_CALL_copy_down || function == RC_CALL_copy_down_reply ||
	       function == RC_CALL_copy_pinned_wait || function == RC_CALL_array_down;
}

/* The call has told of the failures of all calls before it. A query and copy_wait find work complete and print nothing. Another
 * call that does not print finds no work complete: it is heard if the call before it was. So is a query if all work was known to
 * be complete before. */
static void note_heard(const struct rc_link *link, enum rc_call function, uint64_t number)
{
	struct rc_session *session = link->session;
	uint64_t before = number - 1;
	if (leaves_failures(link, function) || function == RC_CALL_copy_wait ||
	    (is_query(function) && rc_link_settled(session) < before))
		return;
	if (prints(function))
		learn(&session->heard, number);
	else
		__atomic_compare_exchange_n(&session->heard, &before, number, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void rc_done_waited(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head)
{
	struct rc_session *session = link->session;
	int at = place_of_awaited(function);
	uint64_t stream = at >= 0 ? rc_track_stream(head, at) : RC_TRACK_SEVERAL;
	if (at >= 0) {
		rc_track_waited(&session->held.track, stream, head->number);
		rc_track_waited(&session->other, stream, head->number);
	} else if (waits_for_event(function) || function == RC_CALL_cuEventQuery) {
		waited_for_event(session, argument_at(head, EVENT_AT), link->awaited, link->awaited_stream,
				 COMPLETE | TOLD | (is_query(function) ? 0 : WAITED));
	}
	note_heard(link, function, head->number);
	/* Each call with a lower number was noted before it was sent, so before the worker answered this one. */
	if (!rc_track_any(session, &session->held.track) && !rc_track_any(session, &session->other))
		learn(&session->settled, head->number);
	rc_early_end(session, stream, head->number);
}

/* ---- answers ---- */

#define QUIET_ANSWERS 8
#define QUIET_NS UINT64_C(1000000000)

/* True if the thread has only had calls answered by the client for a second, and no thread of the session has sent any. A server
 * may end sessions that send nothing (headraced's idle-timeout). */
static bool is_quiet_for_long(struct rc_link *link)
{
	uint64_t numbered = __atomic_load_n(&link->session->numbered, __ATOMIC_RELAXED);
	if (link->quiet_number != numbered) {
		link->quiet_number = numbered;
		link->quiet_answers = 0;
	}
	if (link->quiet_answers < QUIET_ANSWERS) {
		if (++link->quiet_answers == QUIET_ANSWERS)
			link->quiet_since = hr_now_coarse_ns();
		return false;
	}
	return hr_now_coarse_ns() - link->quiet_since >= QUIET_NS;
}

/* True if the client may answer a call to the link's session without asking the worker. */
static bool may_answer(struct rc_link *link)
{
	const struct rc_session *session = link->session;
	return !link->error && !__atomic_load_n(&session->sick, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&session->left, __ATOMIC_RELAXED) && !__atomic_load_n(&session->lost, __ATOMIC_RELAXED) &&
	       !rc_mirror_any() && !is_quiet_for_long(link);
}

bool rc_done_known(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head)
{
	const struct rc_session *session = link->session;
	uint64_t numbered, stream, needed;
	switch (function) {
	case RC_CALL_cuEventSynchronize:
	case RC_CALL_cuEventQuery:
		needed = is_query(function) ? COMPLETE : WAITED;
		if (!(recording_of(argument_at(head, EVENT_AT), &stream) & needed))
			return false;
		break;
	case RC_CALL_cuStreamSynchronize:
	case RC_CALL_cuStreamQuery:
	case RC_CALL_context_synchronize:
		numbered = __atomic_load_n(&session->numbered, __ATOMIC_ACQUIRE);
		if (rc_link_settled(session) < numbered || __atomic_load_n(&session->heard, __ATOMIC_ACQUIRE) < numbered)
			return false;
		break;
	default:
		return false;
	}
	return may_answer(link);
}

/* True if the client alone knows, or lets the program know, that the event is complete. A driver may still be about to record it.
 * by: another event; if the worker has reported that this event is complete, the first one may be known by it. */
static bool is_untold(CUevent event, CUevent by)
{
	uint64_t stream, other_stream, mark = recording_of((uint64_t)(uintptr_t)event, &stream);
	if (!(mark & EARLY) || mark & TOLD)
		return false;
	uint64_t other = recording_of((uint64_t)(uintptr_t)by, &other_stream);
	return !(other & TOLD) || stream != other_stream || stream == RC_TRACK_SEVERAL || other < mark;
}

/* ---- the time between two events ---- */

/*
 * Only the driver knows this time. A program that asks for it once probably asks again when it has recorded both events again and
 * has waited for the second one. So that wait asks for the time too, and the client keeps the answer until one of the events is
 * recorded again.
 */

static CUresult link_of_handle(enum rc_kind kind, uint64_t handle, struct rc_link **link)
{
	struct rc_route route = { NULL, 0, false };
	CUresult result = rc_route_handle(&route, kind, handle);
	return result == CUDA_SUCCESS ? rc_link_get(&route, true, link) : result;
}

static CUresult link_of(CUevent event, struct rc_link **link)
{
	return link_of_handle(RC_KIND_EVENT, (uint64_t)(uintptr_t)event, link);
}

/* Waits for the stream, or if that is NULL for the event `end`, and stores the time from start. */
static CUresult wait_and_ask(struct rc_link *link, CUstream stream, CUevent start, CUevent end)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_event_elapsed call;
	} message = { .call = { (uint64_t)(uintptr_t)end, (uint64_t)(uintptr_t)start, (uint64_t)(uintptr_t)stream } };
	float milliseconds;
	link->awaited = link->awaited_start = 0;
	CUresult result = rc_link_call(link, RC_CALL_event_elapsed, 0, &message.head, sizeof message, NULL, 0);
	uint64_t last = link->awaited >> BITS, first = link->awaited_start >> BITS;
	if (result != CUDA_SUCCESS || !last || !first || link->reply_len != sizeof milliseconds)
		return result;
	memcpy(&milliseconds, link->reply, sizeof milliseconds);
	struct rc_recording *recording = rc_handle_recording(message.call.event);
	/* A thread that records one of the events notes that before the worker does it. So if the numbers are still these, the
	 * answer is the time between these recordings. */
	pthread_mutex_lock(&lock);
	if (recording && recording->start == message.call.start) {
		recording->first = first;
		recording->last = last;
		recording->milliseconds = milliseconds;
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* Waits until the worker says that the event is complete. start: also asks for the time from that event; may be NULL. */
static CUresult be_told(CUevent event, CUevent start, struct rc_link *link)
{
	struct rc_recording *recording = rc_handle_recording((uint64_t)(uintptr_t)event);
	if (recording)
		__atomic_fetch_and(&recording->mark, ~(uint64_t)(COMPLETE | WAITED), __ATOMIC_SEQ_CST);
	return start ? wait_and_ask(link, NULL, start, event) : cuEventSynchronize(event);
}

/* True if one call may wait for an event of the link's session and ask for the time from start. */
static bool may_ask(const struct rc_link *link, uint64_t start)
{
	const struct rc_session *session = link->session;
	return rc_handle_session(start) == session && (!session->call_number || session->call_number[RC_CALL_event_elapsed]);
}

CUresult event_check_synchronize(CUevent event)
{
	uint64_t handle = (uint64_t)(uintptr_t)event, start = 0, stream;
	struct rc_recording *recording = rc_handle_recording(handle);
	struct rc_link *link;
	CUresult result = capture_check_event(event);
	if (result != CUDA_SUCCESS || !recording || !__atomic_load_n(&recording->start, __ATOMIC_RELAXED))
		return result;
	pthread_mutex_lock(&lock);
	start = recording->start;
	pthread_mutex_unlock(&lock);
	uint64_t mark = recording_of(handle, &stream);
	if (!start || !mark || mark & WAITED || link_of(event, &link) != CUDA_SUCCESS || !may_ask(link, start))
		return CUDA_SUCCESS;
	result = wait_and_ask(link, NULL, (CUevent)(uintptr_t)start, event);
	return result == CUDA_SUCCESS ? RC_ANSWERED : result;
}

/* True if the last call of the session has recorded an event, *end, in the stream *recorded_in, and the program probably asks for
 * the time between *start and this event. */
static bool ends_with_asked(struct rc_session *session, uint64_t *start, uint64_t *end, uint64_t *recorded_in)
{
	*end = session ? __atomic_load_n(&session->asked, __ATOMIC_RELAXED) : 0;
	struct rc_recording *recording = *end ? rc_handle_recording(*end) : NULL;
	if (!recording)
		return false;
	pthread_mutex_lock(&lock);
	*start = recording->start;
	pthread_mutex_unlock(&lock);
	uint64_t mark = recording_of(*end, recorded_in);
	return *start && mark && !(mark & WAITED) && mark >> BITS == __atomic_load_n(&session->numbered, __ATOMIC_ACQUIRE);
}

/* The same, and the stream is this one of the program. */
static bool stream_ends_with_asked(CUstream stream, struct rc_link **link, uint64_t *start, uint64_t *end)
{
	uint64_t handle = (uint64_t)(uintptr_t)stream, recorded_in;
	struct rc_session *session = handle > (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD ? rc_handle_session(handle) : NULL;
	return ends_with_asked(session, start, end, &recorded_in) && recorded_in == handle &&
	       link_of_handle(RC_KIND_STREAM, handle, link) == CUDA_SUCCESS && may_ask(*link, *start);
}

/* True if no stream but this one can have work. */
static bool is_only_stream(const struct rc_session *session, uint64_t stream)
{
	const struct rc_track *tracks[] = { &session->held.track, &session->other };
	for (int i = 0; i < 2; i++)
		if (rc_track_any(session, tracks[i]) && __atomic_load_n(&tracks[i]->stream, __ATOMIC_SEQ_CST) != stream)
			return false;
	return stream != RC_TRACK_SEVERAL && !__atomic_load_n(&session->several, __ATOMIC_SEQ_CST);
}

bool rc_done_context(struct rc_link *link, CUresult *result)
{
	uint64_t start, end, recorded_in;
	if (link->own || rc_mirror_any() || !ends_with_asked(link->session, &start, &end, &recorded_in) ||
	    !is_only_stream(link->session, recorded_in) || !may_ask(link, start))
		return false;
	*result = wait_and_ask(link, NULL, (CUevent)(uintptr_t)start, (CUevent)(uintptr_t)end);
	return true;
}

/* The wait then brings the time. */
CUresult stream_check_synchronize(CUstream stream)
{
	struct rc_link *link;
	uint64_t start, end;
	CUresult result = capture_check_stream(stream);
	if (result != CUDA_SUCCESS || !stream_ends_with_asked(stream, &link, &start, &end))
		return result;
	result = wait_and_ask(link, stream, (CUevent)(uintptr_t)start, (CUevent)(uintptr_t)end);
	return result == CUDA_SUCCESS ? RC_ANSWERED : result;
}

/* True if the client has the time between the last recordings of both events. */
static bool is_known(CUevent start, CUevent end, float *milliseconds)
{
	struct rc_recording *to = rc_handle_recording((uint64_t)(uintptr_t)end);
	uint64_t stream, first = recording_of((uint64_t)(uintptr_t)start, &stream) >> BITS;
	uint64_t last = recording_of((uint64_t)(uintptr_t)end, &stream) >> BITS;
	struct rc_link *link;
	bool known = false;
	if (!to || !first || !last)
		return false;
	__atomic_store_n(&rc_handle_session((uint64_t)(uintptr_t)end)->asked, (uint64_t)(uintptr_t)end, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	if (to->start == (uint64_t)(uintptr_t)start && to->last == last && to->first == first) {
		*milliseconds = to->milliseconds;
		known = true;
	}
	if (to->start != (uint64_t)(uintptr_t)start) {
		__atomic_store_n(&to->start, (uint64_t)(uintptr_t)start, __ATOMIC_RELAXED);
		to->last = 0;
	}
	pthread_mutex_unlock(&lock);
	return known && link_of(end, &link) == CUDA_SUCCESS && may_answer(link);
}

CUresult event_check_elapsed(float *milliseconds, CUevent start, CUevent end)
{
	CUresult result = CUDA_SUCCESS;
	struct rc_link *link;
	float known;
	if (milliseconds && is_known(start, end, &known)) {
		*milliseconds = known;
		return RC_ANSWERED;
	}
	if (is_untold(end, start)) {
		if (milliseconds && link_of(end, &link) == CUDA_SUCCESS && may_ask(link, (uint64_t)(uintptr_t)start))
			result = be_told(end, start, link);
		else
			result = be_told(end, NULL, NULL);
		if (result == CUDA_SUCCESS && milliseconds && is_known(start, end, &known)) {
			*milliseconds = known;
			return RC_ANSWERED;
		}
	}
	if (result == CUDA_SUCCESS && is_untold(start, end))
		result = be_told(start, NULL, NULL);
	return result;
}
