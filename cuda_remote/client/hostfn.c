/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host functions run on a thread of this library. When a stream on the server reaches a host function, the worker sends a
 * HOST packet over the session's first connection, which belongs to that thread. The thread's answer lets the stream go
 * on. Each session has such a thread.
 */
#include "cuda_remote/client/client.h"

#include <pthread.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* A function that has not run yet. */
struct host_function {
	struct host_function *next;
	uint64_t id;
	struct rc_session *session;
	CUstream stream;
	CUhostFn function;         /* this or callback; the other is NULL */
	CUstreamCallback callback;
	void *argument;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct host_function *given; /* newest first */
static uint64_t next_id;
static uint64_t unfinished; /* functions given that have not returned; atomic */

int rc_host_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct rc_link *link = context;
	struct rc_session *session = link->session;
	(void)sink;
	/* Only the thread of the first connection may use request. The worker sends a HOST packet only after it has
	 * the answer to the one before. */
	if (link != session->first || incoming->header_len != sizeof session->request[0] || incoming->payload_len ||
	    session->requests == sizeof session->request / sizeof session->request[0])
		return -EPROTO;
	memcpy(&session->request[session->requests++], incoming->header, sizeof session->request[0]);
	return 0;
}

/* A server may name the functions of its own session only. */
static struct host_function *take(const struct rc_session *session, uint64_t id)
{
	pthread_mutex_lock(&lock);
	struct host_function **at = &given;
	while (*at && ((*at)->id != id || (*at)->session != session))
		at = &(*at)->next;
	struct host_function *found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&lock);
	return found;
}

/* Acquire pairs with the release in run: what the function wrote is seen. */
bool rc_host_any(void)
{
	return __atomic_load_n(&unfinished, __ATOMIC_ACQUIRE) > 0;
}

/* Calls one host function and answers. An unknown id is answered too, because the stream waits for the answer. */
static int run(struct rc_link *link, const struct rc_wire_host *request)
{
	struct host_function *function = take(link->session, request->function);
	if (rc_link_await_chunks(link, request->shipped) != CUDA_SUCCESS)
		return -ECONNRESET;
	if (function && function->callback)
		function->callback(function->stream, (CUresult)request->status, function->argument);
	else if (function)
		function->function(function->argument);
	/* Release pairs with the acquires in rc_link_await_chunks and on_chunk (link.c). A call that waited for the
	 * stream sees what the function wrote. A later chunk does not overwrite what the function is still reading. */
	__atomic_add_fetch(&link->session->arrived, 0, __ATOMIC_RELEASE);
	if (function)
		__atomic_sub_fetch(&unfinished, 1, __ATOMIC_RELEASE);
	free(function);
	return ch3_send(link->vc, RC_PACKET_HOST_DONE, request, sizeof *request, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
}

static void *serve(void *argument)
{
	struct rc_session *session = argument;
	struct rc_link *link = session->first;
	while (!link->error && ch3_progress_wait(link->engine, -1) >= 0) {
		for (int i = 0; i < session->requests; i++)
			if (run(link, &session->request[i]))
				return NULL;
		session->requests = 0;
	}
	return NULL;
}

/* Starts the serving thread, with all signals blocked: the program's own threads receive them. Under the lock. */
static CUresult start(struct rc_session *session)
{
	sigset_t all, before;
	pthread_t thread;
	if (session->serving)
		return CUDA_SUCCESS;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	session->serving = !pthread_create(&thread, NULL, serve, session);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!session->serving)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_detach(thread);
	return CUDA_SUCCESS;
}

static CUresult launch_host(const struct host_function *what)
{
	struct rc_link *link;
	struct rc_route route = { NULL, 0, false };
	CUresult result = rc_route_handle(&route, RC_KIND_STREAM, (uint64_t)(uintptr_t)what->stream);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	struct host_function *function = malloc(sizeof *function);
	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*function = *what;
	function->session = link->session;
	pthread_mutex_lock(&lock);
	result = start(link->session);
	uint64_t id = function->id = ++next_id;
	function->next = given;
	given = function;
	pthread_mutex_unlock(&lock);
	__atomic_add_fetch(&unfinished, 1, __ATOMIC_RELAXED);
	struct {
		struct rc_wire_call head;
		struct rc_wire_host_function call;
	} message = { .call = { (uint64_t)(uintptr_t)what->stream, id, what->callback != NULL, 0 } };
	if (result == CUDA_SUCCESS)
		result = rc_link_post(link, RC_CALL_host_function, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS) {
		free(take(link->session, id));
		__atomic_sub_fetch(&unfinished, 1, __ATOMIC_RELAXED);
	}
	return result;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument)
{
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	return launch_host(&(struct host_function){ .stream = stream, .function = function, .argument = argument });
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *argument, unsigned flags)
{
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return launch_host(&(struct host_function){ .stream = stream, .callback = callback, .argument = argument });
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *argument)
{
	return cuLaunchHostFunc(stream ? stream : CU_STREAM_PER_THREAD, function, argument);
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void *argument, unsigned flags)
{
	return cuStreamAddCallback(stream ? stream : CU_STREAM_PER_THREAD, callback, argument, flags);
}
