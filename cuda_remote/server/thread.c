/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection. A call is executed where it arrives, in CH3's handler, unless it may block or send much: then its
 * client thread is waiting and sends nothing else, so it is put off until progress has returned (deferred).
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Memory for arguments and results to begin with; more as calls need it. */
#define START_BYTES 4096

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

void server_turn_give_up(struct server_call *call)
{
	if (call->place) {
		call->place = false;
		server_turn_done(call->number);
	}
}

/* Makes the client thread's current context current here. */
static CUresult follow_context(struct server_thread *thread, uint32_t index)
{
	CUcontext context;
	uint64_t ended = server_contexts_ended();
	CUresult result = server_object_context(index, &context);
	if (result == CUDA_SUCCESS && (index != thread->context || ended != thread->ended))
		result = driver.cuCtxSetCurrent(context);
	if (result == CUDA_SUCCESS) {
		thread->context = index;
		thread->ended = ended;
	}
	return result;
}

/* In a handler the answer may be copied by CH3 if the pipe is full; answers are few, as each is waited for. */
static void answer(struct server_call *call, const struct rc_wire_reply *reply)
{
	struct server_thread *thread = call->thread;
	uint8_t header[CH3_HEADER_MAX];
	size_t total = call->out_len, in_header = total < RC_REPLY_INLINE ? total : RC_REPLY_INLINE;
	memcpy(header, reply, sizeof *reply);
	memcpy(header + sizeof *reply, thread->results, in_header);
	struct iovec rest = { thread->results + in_header, total - in_header };
	int error = ch3_send(thread->vc, RC_PACKET_REPLY, header, sizeof *reply + in_header, &rest, rest.iov_len ? 1 : 0,
			     CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	if (error && !thread->error)
		thread->error = error;
}

/* What a call that has waited may promise: copies to the host that were complete are there, and what was printed. */
static void settle(struct server_thread *thread)
{
	if (server_down_ship(thread) || server_output_ship(thread))
		return; /* the connection failed: thread->error tells */
}

static CUresult serve(struct server_call *call, struct rc_wire_reply *reply)
{
	struct server_thread *thread = call->thread;
	const struct server_entry *entry = &server_entries[thread->head.function];
	CUresult result;
	if (call->flags & RC_CALL_WAIT && server_latch_take(&reply->failed, &reply->function, &result))
		return result;
	result = follow_context(thread, thread->head.context);
	if (result != CUDA_SUCCESS)
		return thread->head.function == RC_CALL_copy_up ? server_up_refuse(call, result) : result;
	return entry->serve(call);
}

static void execute(struct server_thread *thread)
{
	struct server_call call = { .thread = thread, .number = thread->head.number, .flags = thread->head.flags,
				    .in = thread->arguments, .in_len = thread->arguments_len, .place = true };
	struct rc_wire_reply reply = { .number = call.number, .failed = call.number, .function = thread->head.function };
	int error = server_turn_wait(call.number);
	if (error) {
		if (!thread->error)
			thread->error = error;
		return;
	}
	CUresult result = serve(&call, &reply);
	/* Before the next in the sequence may go: a call that waits has to find it, on whichever thread. */
	if (result != CUDA_SUCCESS && !(call.flags & RC_CALL_WAIT))
		server_latch_set(call.number, thread->head.function, result);
	server_turn_give_up(&call);
	if (hr_log_enabled(HR_LOG_DEBUG))
		hr_log(HR_LOG_DEBUG, "call %llu %s: %d", (unsigned long long)call.number,
		       rc_call_names[thread->head.function], (int)result);
	if (!(call.flags & RC_CALL_WAIT))
		return;
	if (server_entries[thread->head.function].mode == SERVER_SYNC)
		settle(thread);
	if (result != CUDA_SUCCESS)
		call.out_len = 0;
	reply.result = result;
	reply.shipped = server_down_shipped();
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

/* A call's head is one that a client sends. */
static bool head_is_sound(const struct rc_wire_call *head)
{
	if (!head->function || head->function >= RC_CALLS || head->flags & ~(RC_CALL_WAIT | RC_CALL_PER_THREAD))
		return false;
	return (server_entries[head->function].mode == SERVER_ASYNC) == !(head->flags & RC_CALL_WAIT);
}

static int on_call(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct server_thread *thread = context;
	if (thread->error)
		return thread->error;
	if (incoming->header_len < sizeof thread->head || incoming->rndv || incoming->payload_len > RC_CALL_BYTES_MAX ||
	    thread->deferred || thread->busy)
		return -EPROTO;
	memcpy(&thread->head, incoming->header, sizeof thread->head);
	if (!head_is_sound(&thread->head))
		return -EPROTO;
	size_t in_header = incoming->header_len - sizeof thread->head, total = in_header + incoming->payload_len;
	if (total > thread->arguments_size) {
		uint8_t *larger = realloc(thread->arguments, total);
		if (!larger)
			return -ENOMEM;
		thread->arguments = larger;
		thread->arguments_size = total;
	}
	memcpy(thread->arguments, (const uint8_t *)incoming->header + sizeof thread->head, in_header);
	thread->arguments_len = total;
	sink->iov[0] = (struct iovec){ thread->arguments + in_header, incoming->payload_len };
	sink->n = incoming->payload_len ? 1 : 0;
	sink->done = call_arrived;
	sink->context = thread;
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

int server_thread_send(struct server_thread *thread, enum rc_packet type, const void *header, size_t header_len,
		       const void *bytes, size_t len)
{
	if (thread->error)
		return thread->error;
	ch3_request_t *request = NULL;
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	int error = ch3_send(thread->vc, type, header, header_len, &iov, len ? 1 : 0, CH3_SEND_EAGER, &request);
	while (!error && request && !ch3_request_test(request) && !thread->error) {
		int ran = ch3_progress_wait(thread->engine, -1);
		if (ran < 0)
			error = ran;
	}
	if (!error && request && ch3_request_test(request))
		error = ch3_request_error(request);
	ch3_request_free(request);
	if (error && !thread->error)
		thread->error = error;
	return thread->error;
}

/* ---- life ---- */

int server_thread_open(struct server_thread *thread, uint32_t gpus)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	hr_card_t card;
	thread->arguments = malloc(START_BYTES);
	thread->results = malloc(START_BYTES);
	thread->arguments_size = thread->results_size = START_BYTES;
	int error = thread->arguments && thread->results ? ch3_open(&attr, &thread->engine, &card) : -ENOMEM;
	if (error) {
		rc_door_peer_refuse(&thread->guest, RC_DOOR_FAILED, "the worker could not open a channel: %s", strerror(-error));
		return error;
	}
	ch3_on_failure(thread->engine, on_failure, thread);
	ch3_register(thread->engine, RC_PACKET_CALL, on_call, thread);
	ch3_register(thread->engine, RC_PACKET_CHUNK, server_up_arrived, thread);
	ch3_register(thread->engine, RC_PACKET_HOST_DONE, server_host_done, thread);
	error = rc_door_peer_welcome(&thread->guest, &card, gpus, 0, 0, "");
	if (error) {
		close(thread->guest.fd);
		return error;
	}
	hr_connect_attr_t connect = HR_CONNECT_ATTR_INIT;
	connect.fd = thread->guest.fd;
	return ch3_connect(thread->engine, &thread->guest.card, &connect, thread, &thread->vc);
}

void server_thread_close(struct server_thread *thread)
{
	server_up_abandon(thread);
	ch3_close(thread->engine);
	free(thread->arguments);
	free(thread->results);
	free(thread);
}

int server_thread_run(struct server_thread *thread)
{
	while (!thread->error) {
		int ran = ch3_progress_wait(thread->engine, -1);
		if (ran < 0 && !thread->error)
			thread->error = ran;
		server_thread_deferred(thread);
	}
	return thread->error;
}
