/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection. A call is executed in the CH3 handler that receives it. A call that may block or send much is
 * deferred until CH3's progress has returned. That is safe, as the client's thread waits for the reply and sends
 * nothing meanwhile.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes allocated at first for arguments and for results. A larger call makes them grow; beyond KEEP_BYTES they shrink
 * again after the call. */
#define START_BYTES 4096
#define KEEP_BYTES (128u << 10)
/* Polls after a launch, see look_ahead. */
#define LOOKS_AHEAD 40

/* ---- arguments and results ---- */

bool server_take_into(struct server_call *call, void *to, size_t size)
{
	if (size > call->in_len - call->in_at)
		return false;
	memcpy(to, call->in + call->in_at, size);
	call->in_at += size;
	return true;
}

const void *server_take(struct server_call *call, uint64_t count, size_t size)
{
	uint64_t bytes;
	if (__builtin_mul_overflow(count, (uint64_t)size, &bytes) || bytes > call->in_len - call->in_at)
		return NULL;
	const void *at = call->in + call->in_at;
	call->in_at += bytes;
	return at;
}

void *server_give(struct server_call *call, uint64_t count, size_t size)
{
	struct server_thread *thread = call->thread;
	uint64_t bytes, end;
	if (__builtin_mul_overflow(count, (uint64_t)size, &bytes) ||
	    __builtin_add_overflow((uint64_t)call->out_len, bytes, &end) || end > RC_REPLY_BYTES_MAX)
		return NULL;
	if (end > thread->results_size) {
		size_t larger = thread->results_size;
		while (larger < end)
			larger *= 2;
		uint8_t *results = realloc(thread->results, larger);
		if (!results)
			return NULL;
		thread->results = results;
		thread->results_size = larger;
	}
	void *at = thread->results + call->out_len;
	memset(at, 0, bytes);
	call->out_len = end;
	return at;
}

CUresult server_give_bytes(struct server_call *call, const void *bytes, size_t size)
{
	void *at = server_give(call, 1, size);
	if (!at)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(at, bytes, size);
	return CUDA_SUCCESS;
}

/* ---- executing ---- */

void server_order_release(struct server_call *call)
{
	if (call->holds_order) {
		call->holds_order = false;
		server_order_advance(call->number);
	}
}

CUresult server_thread_follow(struct server_thread *thread, uint32_t index)
{
	CUcontext context;
	uint64_t ended = server_contexts_ended();
	CUresult result = server_object_context(index, &context);
	if (result == CUDA_SUCCESS && (index != thread->context || ended != thread->ended))
		result = driver.cuCtxSetCurrent(context);
	if (result == CUDA_SUCCESS) {
		thread->context = index;
		thread->current = context;
		thread->ended = ended;
	}
	return result;
}

/* A reply that could not be sent completely at once. A client reads each reply before it sends its next waiting call.
 * So replies accumulate only if a client does not read. They count against the session's limit. */
struct server_reply {
	struct server_reply *next;
	ch3_request_t *request;
	uint8_t *results;
	size_t bytes;
};

static void replies_reap(struct server_thread *thread)
{
	while (thread->replies && ch3_request_test(thread->replies->request)) {
		struct server_reply *reply = thread->replies;
		thread->replies = reply->next;
		if (!thread->replies)
			thread->replies_end = &thread->replies;
		server_limit_return(SERVER_LIMIT_REPLIES, reply->bytes);
		ch3_request_free(reply->request);
		free(reply->results);
		free(reply);
	}
}

/* Keeps the results, which CH3 reads from, until the reply is sent. */
static int reply_keep(struct server_thread *thread, ch3_request_t *request)
{
	struct server_reply *reply = malloc(sizeof *reply);
	uint8_t *results = malloc(START_BYTES);
	size_t bytes = sizeof *reply + CH3_HEADER_MAX + thread->results_size;
	if (!reply || !results || !server_limit_take(SERVER_LIMIT_REPLIES, bytes)) {
		hr_log(HR_LOG_WARN, "%s: the client does not read its replies: ending the session", thread->peer.name);
		server_thread_tell(thread, SERVER_LIMIT_REPLIES, "headraced: session ended: more than HEADRACE_SESSION_REPLIES=%llu bytes of replies unread\n",
				   (unsigned long long)server_limit(SERVER_LIMIT_REPLIES));
		free(reply);
		free(results);
		/* The results stay the thread's until its connection is closed. */
		return -EDQUOT;
	}
	*reply = (struct server_reply){ NULL, request, thread->results, bytes };
	*thread->replies_end = reply;
	thread->replies_end = &reply->next;
	thread->results = results;
	thread->results_size = START_BYTES;
	return 0;
}

static void results_shrink(struct server_thread *thread)
{
	uint8_t *smaller = thread->results_size > KEEP_BYTES ? realloc(thread->results, START_BYTES) : NULL;
	if (smaller) {
		thread->results = smaller;
		thread->results_size = START_BYTES;
	}
}

static void answer(struct server_call *call, const struct rc_wire_reply *reply)
{
	struct server_thread *thread = call->thread;
	uint8_t header[CH3_HEADER_MAX];
	size_t total = call->out_len, in_header = total < RC_REPLY_INLINE ? total : RC_REPLY_INLINE;
	memcpy(header, reply, sizeof *reply);
	memcpy(header + sizeof *reply, thread->results, in_header);
	struct iovec rest = { thread->results + in_header, total - in_header };
	ch3_request_t *request = NULL;
	replies_reap(thread);
	int error = ch3_send(thread->vc, RC_PACKET_REPLY, header, sizeof *reply + in_header, &rest, rest.iov_len ? 1 : 0,
			     CH3_SEND_EAGER, &request);
	if (!error && request)
		error = reply_keep(thread, request);
	else
		results_shrink(thread);
	if (error && !thread->error)
		thread->error = error;
}

/* Makes room for a call's arguments. CUDA_ERROR_OUT_OF_MEMORY: the session's limit is reached, or no memory. */
static CUresult arguments_grow(struct server_thread *thread, size_t size)
{
	size_t more = size - thread->arguments_size;
	if (!server_limit_take(SERVER_LIMIT_ARGUMENTS, more))
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint8_t *larger = realloc(thread->arguments, size);
	if (!larger) {
		server_limit_return(SERVER_LIMIT_ARGUMENTS, more);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	thread->arguments = larger;
	thread->arguments_size = size;
	return CUDA_SUCCESS;
}

static void arguments_shrink(struct server_thread *thread)
{
	uint8_t *smaller = thread->arguments_size > KEEP_BYTES ? realloc(thread->arguments, START_BYTES) : NULL;
	if (smaller) {
		server_limit_return(SERVER_LIMIT_ARGUMENTS, thread->arguments_size - START_BYTES);
		thread->arguments = smaller;
		thread->arguments_size = START_BYTES;
	}
}

/* A call that waits for streams, or finds that they are done, reports the failure of an earlier call without reply, and one that
 * occurred meanwhile: of a copy between servers, which ends when the client says so. The client counts the work as complete after
 * it, and does not ask again. Every other call is executed, and returns its own result: the program could not tell otherwise
 * whether the call has made its object. */
static bool waits_for_streams(uint16_t function)
{
	switch (function) {
	case RC_CALL_cuStreamSynchronize:
	case RC_CALL_cuStreamQuery:
	case RC_CALL_cuEventSynchronize:
	case RC_CALL_event_elapsed:
	case RC_CALL_cuEventQuery:
	case RC_CALL_context_synchronize:
	case RC_CALL_copy_down:
	case RC_CALL_copy_down_reply:
	case RC_CALL_copy_pinned_wait:
	case RC_CALL_copy_wait:
	case RC_CALL_array_down:
		return true;
	default:
		return false;
	}
}

/* Calls that give the device work, for which the next call may wait. */
static bool may_be_awaited(uint16_t function)
{
	switch (function) {
	case RC_CALL_launch:
	case RC_CALL_copy_across:
	case RC_CALL_copy_pinned:
	case RC_CALL_cuMemsetD8_v2:
	case RC_CALL_cuMemsetD16_v2:
	case RC_CALL_cuMemsetD32_v2:
	case RC_CALL_cuMemsetD8Async:
	case RC_CALL_cuMemsetD16Async:
	case RC_CALL_cuMemsetD32Async:
	case RC_CALL_cuEventRecord:
	case RC_CALL_cuEventRecordWithFlags:
		return true;
	default:
		return false;
	}
}

static CUresult serve(struct server_call *call, struct rc_wire_reply *reply)
{
	struct server_thread *thread = call->thread;
	const struct server_entry *entry = &server_entries[thread->head.function];
	bool reports = call->flags & RC_CALL_WAIT && !(call->flags & RC_CALL_OWN);
	CUresult result = server_thread_follow(thread, thread->head.context);
	if (result == CUDA_SUCCESS)
		result = thread->refused;
	if (result != CUDA_SUCCESS && server_is_later(thread->head.function))
		return server_later_refuse(call, result);
	if (result != CUDA_SUCCESS && thread->head.function == RC_CALL_array_up)
		return server_array_refuse(call, result);
	if (result != CUDA_SUCCESS)
		return thread->head.function == RC_CALL_copy_up ? server_h2d_refuse(call, result) : result;
	CUresult served = entry->serve(call);
	if (served == CUDA_SUCCESS && reports && waits_for_streams(thread->head.function) &&
	    server_latch_take(&reply->failed, &reply->function, &result))
		return result;
	return served;
}

static void execute(struct server_thread *thread)
{
	struct server_call call = { .thread = thread, .number = thread->head.number, .flags = thread->head.flags,
				    .in = thread->arguments, .in_len = thread->arguments_len, .holds_order = true };
	struct rc_wire_reply reply = { .number = call.number, .failed = call.number, .function = thread->head.function };
	/* A call that waits runs what was given, or has it run; between the two a program may record an event, but a program that
	 * records without end may never wait. If another thread's call comes before this one, it may wait for what was given. */
	uint16_t function = thread->head.function;
	bool records = function == RC_CALL_cuEventRecord || function == RC_CALL_cuEventRecordWithFlags;
	bool awaits = waits_for_streams(function) || (records && !thread->recorded);
	thread->recorded = records;
	if (thread->holds && !(awaits && server_order_is_next(call.number)))
		server_wake_let_go(thread);
	int error = server_order_wait(call.number);
	if (error) {
		if (!thread->error)
			thread->error = error;
		return;
	}
	server_peer_see();
	/* Threads of the client library wait in these as long as the session lasts: they do not make the session busy. */
	bool counts = thread->head.function != RC_CALL_peer_wait && thread->head.function != RC_CALL_data_connection;
	server_usage_call(counts);
	bool holds = thread->looks_ahead && may_be_awaited(thread->head.function);
	if (holds)
		server_wake_hold(thread);
	CUresult result = serve(&call, &reply);
	if (!holds)
		server_wake_let_go(thread);
	server_quota_served(thread->head.function, result);
	arguments_shrink(thread);
	/* Before the next call may be issued: a waiting call, on any thread, must find the failure. */
	if (result != CUDA_SUCCESS && !(call.flags & RC_CALL_WAIT))
		server_latch_set(call.number, thread->head.function, thread->head.context, result);
	server_usage_call_end(counts, call.holds_order);
	server_order_release(&call);
	if (hr_log_enabled(HR_LOG_DEBUG))
		hr_log(HR_LOG_DEBUG, "call %llu %s: %d", (unsigned long long)call.number,
		       rc_call_names[thread->head.function], (int)result);
	if (!(call.flags & RC_CALL_WAIT))
		return;
	/* A failure may be that of a kernel, whose assertions have printed, and the program may end without another call. */
	if (server_entries[thread->head.function].mode == SERVER_SYNC || result != CUDA_SUCCESS)
		server_output_ship(thread); /* if the connection fails, thread->error is set */
	if (result != CUDA_SUCCESS)
		call.out_len = 0;
	reply.result = result;
	reply.shipped = server_data_posted();
	reply.freed = (uint16_t)server_ring_freed(thread);
	answer(&call, &reply);
}

void server_thread_deferred(struct server_thread *thread)
{
	if (!thread->deferred || thread->error)
		return;
	thread->deferred = false;
	thread->busy = true;
	execute(thread);
	thread->busy = false;
}

/* ---- receiving ---- */

static void call_arrived(void *context, int error, size_t bytes)
{
	struct server_thread *thread = context;
	(void)bytes;
	if (error || thread->error)
		return;
	if (server_entries[thread->head.function].mode == SERVER_SYNC)
		thread->deferred = true;
	else
		execute(thread);
}

#define FLAGS (RC_CALL_WAIT | RC_CALL_PER_THREAD | RC_CALL_OWN | RC_CALL_ALONE)

/* True if the function exists and the flags are right for it. */
static bool head_is_sound(const struct rc_wire_call *head)
{
	if (!head->function || head->function >= RC_CALLS || head->flags & ~FLAGS)
		return false;
	return (server_entries[head->function].mode == SERVER_ASYNC) == !(head->flags & RC_CALL_WAIT);
}

static int on_call(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct server_thread *thread = context;
	if (thread->error)
		return thread->error;
	if (incoming->header_len < sizeof thread->head || incoming->rndv || incoming->payload_len > RC_CALL_BYTES_MAX ||
	    thread->deferred || thread->busy || thread->ring.wanted)
		return -EPROTO;
	memcpy(&thread->head, incoming->header, sizeof thread->head);
	thread->began = true;
	if (!head_is_sound(&thread->head))
		return -EPROTO;
	size_t in_header = incoming->header_len - sizeof thread->head, total = in_header + incoming->payload_len;
	sink->done = call_arrived;
	sink->context = thread;
	memcpy(thread->arguments, (const uint8_t *)incoming->header + sizeof thread->head, in_header);
	thread->refused = total > thread->arguments_size ? arguments_grow(thread, total) : CUDA_SUCCESS;
	if (thread->refused != CUDA_SUCCESS) {
		server_thread_tell(thread, SERVER_LIMIT_ARGUMENTS, "headraced: %s refused: %zu bytes of arguments, HEADRACE_SESSION_ARGUMENTS=%llu\n",
				   rc_call_names[thread->head.function], total,
				   (unsigned long long)server_limit(SERVER_LIMIT_ARGUMENTS));
		thread->arguments_len = in_header;
		return 0; /* the sink has no buffers: CH3 reads the payload and drops it */
	}
	thread->arguments_len = total;
	sink->iov[0] = (struct iovec){ thread->arguments + in_header, incoming->payload_len };
	sink->n = incoming->payload_len ? 1 : 0;
	return 0;
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	struct server_thread *thread = context;
	(void)vc;
	if (!thread->error)
		thread->error = error;
}

/* ---- sending, outside of progress ---- */

int server_thread_start(struct server_thread *thread, enum rc_packet type, const void *header, size_t header_len,
			const void *bytes, size_t len, ch3_request_t **request)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	*request = NULL;
	if (thread->error)
		return thread->error;
	int error = ch3_send(thread->vc, type, header, header_len, &iov, len ? 1 : 0, CH3_SEND_EAGER, request);
	if (error && !thread->error)
		thread->error = error;
	return thread->error;
}

int server_thread_finish(struct server_thread *thread, ch3_request_t **request)
{
	int error = 0;
	if (*request && !ch3_request_test(*request))
		server_wake_let_go(thread); /* the client may take its time */
	while (!error && *request && !ch3_request_test(*request) && !thread->error) {
		int ran = ch3_progress_wait(thread->engine, -1);
		if (ran < 0)
			error = ran;
	}
	if (!error && *request && ch3_request_test(*request))
		error = ch3_request_error(*request);
	ch3_request_free(*request);
	*request = NULL;
	if (error && !thread->error)
		thread->error = error;
	return thread->error;
}

int server_thread_send(struct server_thread *thread, enum rc_packet type, const void *header, size_t header_len,
		       const void *bytes, size_t len)
{
	ch3_request_t *request;
	int error = server_thread_start(thread, type, header, header_len, bytes, len, &request);
	return error ? error : server_thread_finish(thread, &request);
}

void server_thread_tell(struct server_thread *thread, enum server_limit limit, const char *format, ...)
{
	char text[256];
	struct rc_wire_text wire = { .stream = RC_TEXT_STDERR };
	va_list args;
	va_start(args, format);
	int len = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	struct iovec iov = { text, len < (int)sizeof text ? (size_t)len : sizeof text - 1 };
	if (!(thread->told_limits & 1u << limit))
		(void)ch3_send(thread->vc, RC_PACKET_TEXT, &wire, sizeof wire, &iov, 1, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	/* Once for each limit, so that a client that does not read cannot make the worker queue many lines. */
	thread->told_limits |= 1u << limit;
}

/* ---- opening, closing ---- */

int server_thread_open(struct server_thread *thread, uint32_t gpus)
{
	static uint64_t newest; /* atomic */
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN | HR_CHANNEL_SLEEPS;
	hr_card_t card;
	thread->serial = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);
	thread->arguments = malloc(START_BYTES);
	thread->results = malloc(START_BYTES);
	thread->arguments_size = thread->results_size = START_BYTES;
	thread->replies_end = &thread->replies;
	int error = thread->arguments && thread->results ? ch3_open(&attr, &thread->engine, &card) : -ENOMEM;
	if (error) {
		rc_door_peer_refuse(&thread->peer, RC_DOOR_FAILED, "the worker could not open a channel: %s", strerror(-error));
		return error;
	}
	ch3_on_failure(thread->engine, on_failure, thread);
	ch3_register(thread->engine, RC_PACKET_CALL, on_call, thread);
	ch3_register(thread->engine, RC_PACKET_CHUNK, server_h2d_arrived, thread);
	ch3_register_ahead(thread->engine, RC_PACKET_CHUNK, server_h2d_may_ahead);
	ch3_register(thread->engine, RC_PACKET_STAGED, server_h2d_staged, thread);
	ch3_register(thread->engine, RC_PACKET_CREDIT, server_ring_credit, thread);
	ch3_register(thread->engine, RC_PACKET_WANT, server_ring_want, thread);
	ch3_register(thread->engine, RC_PACKET_HOST_DONE, server_host_done, thread);
	error = rc_door_peer_welcome(&thread->peer, &card, gpus, 0, 0, "");
	if (error) {
		close(thread->peer.fd);
		return error;
	}
	hr_connect_attr_t connect = HR_CONNECT_ATTR_INIT;
	connect.fd = thread->peer.fd;
	if (thread->peer.encrypted)
		connect.cipher = &thread->peer.cipher;
	error = ch3_connect(thread->engine, &thread->peer.card, &connect, thread, &thread->vc);
	explicit_bzero(&thread->peer.cipher, sizeof thread->peer.cipher);
	return error;
}

void server_thread_close(struct server_thread *thread)
{
	server_ring_end(thread);
	if (thread->own)
		server_slot_wait(thread->own);
	server_slot_put(thread->own);
	ch3_close(thread->engine);
	for (struct server_reply *reply = thread->replies, *next; reply; reply = next) {
		next = reply->next;
		server_limit_return(SERVER_LIMIT_REPLIES, reply->bytes);
		free(reply->results); /* ch3_close has freed the request */
		free(reply);
	}
	server_limit_return(SERVER_LIMIT_ARGUMENTS, thread->arguments_size > START_BYTES ? thread->arguments_size - START_BYTES : 0);
	free(thread->arguments);
	free(thread->results);
	free(thread);
}

/* What is served below may send, and so run CH3's progress. The client's next call may arrive then, or its next WANT: nothing
 * more comes before it is served. */
static bool has_arrived(const struct server_thread *thread)
{
	return thread->deferred || thread->ring.wanted;
}

/* After a launch: looks for the next call for about a microsecond. The client needs less time to send the call that waits. Polls
 * that find something count too: the data of a large copy do not delay the launch. */
static int look_ahead(struct server_thread *thread)
{
	int ran = 0;
	for (; thread->looked_ahead < LOOKS_AHEAD && !ran && !thread->error; thread->looked_ahead++)
		ran = ch3_progress_poll(thread->engine);
	if (!ran)
		server_wake_let_go(thread);
	return ran;
}

int server_thread_run(struct server_thread *thread)
{
	thread->looks_ahead = true;
	while (!thread->error) {
		int ran = 0;
		if (thread->holds && !has_arrived(thread))
			ran = look_ahead(thread);
		if (!ran && !thread->error && !has_arrived(thread))
			ran = ch3_progress_wait(thread->engine, -1);
		if (ran < 0 && !thread->error)
			thread->error = ran;
		server_thread_deferred(thread);
		server_ring_serve(thread);
	}
	server_wake_let_go(thread);
	server_quota_served(0, CUDA_ERROR_DEINITIALIZED);
	return thread->error;
}
