/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host functions run on a thread of this library. When a stream on the server reaches a host function, the worker sends a
 * HOST packet over the session's first connection. The thread that leads receives it. The answer lets the stream go on.
 * Each session has such a thread; if its graphs copy host memory, it has two. The thread that leads makes these copies, and
 * uses the connection alone. It stops leading while it runs a host function, which may block: the other thread leads then.
 * If that is so when the function returns, the answer goes over another connection.
 */
#include "cuda_remote/client/early.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/hostfn.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <pthread.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
static pthread_cond_t left = PTHREAD_COND_INITIALIZER; /* a thread leads no more */
static struct host_function *given; /* newest first */
static uint64_t next_id;
static uint64_t unfinished; /* functions given that have not returned; atomic */

/* A request whose bytes are being received. */
struct arriving {
	struct rc_session *session;
	struct rc_host_request request;
};

static void request_complete(void *context, int error, size_t bytes)
{
	struct arriving *arriving = context;
	struct rc_session *session = arriving->session;
	(void)bytes;
	if (!error)
		session->request[session->requests++] = arriving->request;
	else
		free(arriving->request.bytes);
	free(arriving);
}

static int arrive(struct rc_session *session, const struct rc_host_request *request, size_t len, ch3_sink_t *sink)
{
	struct arriving *arriving = malloc(sizeof *arriving);
	uint8_t *bytes = malloc(len);
	if (!arriving || !bytes) {
		free(arriving);
		free(bytes);
		return -ENOMEM;
	}
	*arriving = (struct arriving){ session, { request->wire, bytes } };
	sink->iov[0] = (struct iovec){ bytes, len };
	sink->n = 1;
	sink->done = request_complete;
	sink->context = arriving;
	return 0;
}

int rc_host_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct rc_link *link = context;
	struct rc_session *session = link->session;
	struct rc_host_request request = { .bytes = NULL };
	/* Only the thread that leads may use request. One host function and some copies are unanswered at most. */
	if (link != session->first || incoming->header_len != sizeof request.wire || incoming->rndv ||
	    session->requests == sizeof session->request / sizeof session->request[0])
		return -EPROTO;
	memcpy(&request.wire, incoming->header, sizeof request.wire);
	rc_link_see_calls(session);
	bool of_graph = request.wire.function & RC_HOST_OF_GRAPH;
	if (of_graph ? !rc_graph_host_expects(session, request.wire.function, incoming->payload_len) : incoming->payload_len)
		return -EPROTO;
	if (incoming->payload_len)
		return arrive(session, &request, incoming->payload_len, sink);
	session->request[session->requests++] = request;
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

static bool forget(const struct rc_session *session, uint64_t id)
{
	struct host_function *function = take(session, id);
	if (!function)
		return false;
	free(function);
	__atomic_sub_fetch(&unfinished, 1, __ATOMIC_RELAXED);
	return true;
}

void rc_host_session_lost(const struct rc_session *session)
{
	uint64_t id;
	do {
		id = 0;
		pthread_mutex_lock(&lock);
		for (const struct host_function *each = given; each && !id; each = each->next)
			id = each->session == session ? each->id : 0;
		pthread_mutex_unlock(&lock);
	} while (id && (forget(session, id), true));
}

/* Acquire pairs with the release in run: what the function wrote is seen. */
bool rc_host_any(void)
{
	return __atomic_load_n(&unfinished, __ATOMIC_ACQUIRE) > 0 || rc_graph_host_any();
}

/* The server has broken a rule. Another thread may use the first connection. */
static void end_session(struct rc_session *session, enum rc_call function)
{
	struct rc_link *own;
	if (rc_link_to(session, 0, &own) == CUDA_SUCCESS)
		rc_link_broken(own, function);
}

/* Before and after a host function: moves what was changed in managed memory of another host. True: the session has ended. */
static bool mirrors_fail(struct rc_session *session, CUresult (*move)(struct rc_session *session))
{
	CUresult result = rc_mirror_any() ? move(session) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS && result != RC_LOST)
		end_session(session, RC_CALL_managed_pull);
	return result != CUDA_SUCCESS;
}

/* Calls one host function. An unknown id is answered too, because the stream waits for the answer. */
static int call(struct rc_session *session, const struct rc_wire_host *request)
{
	struct host_function *function = take(session, request->function);
	if (mirrors_fail(session, rc_mirror_host_begin))
		return -ECONNRESET;
	rc_callback_enter(true);
	if (function && function->callback)
		function->callback(function->stream, (CUresult)request->status, function->argument);
	else if (function)
		function->function(function->argument);
	rc_callback_enter(false);
	if (mirrors_fail(session, rc_mirror_host_end) || rc_early_host_done(session) != CUDA_SUCCESS)
		return -ECONNRESET;
	/* Release pairs with the acquires in rc_link_await_chunks and on_chunk (link.c). A call that waited for the
	 * stream sees what the function wrote. A later chunk does not overwrite what the function is still reading. */
	__atomic_add_fetch(&session->arrived, 0, __ATOMIC_RELEASE);
	if (function)
		__atomic_sub_fetch(&unfinished, 1, __ATOMIC_RELEASE);
	free(function);
	return 0;
}

/* The same for what a graph asks for. The answer to a copy may have bytes. */
static int serve_graph(struct rc_session *session, const struct rc_host_request *request, uint8_t **answer, size_t *len)
{
	if (mirrors_fail(session, rc_mirror_host_begin))
		return -ECONNRESET;
	if (rc_graph_host_run(session, request->wire.function, request->bytes, answer, len)) {
		hr_log(HR_LOG_ERROR, "server %s: a graph names host memory or a host function that it may not use, or memory is short",
		       session->first->server);
		end_session(session, RC_CALL_graph_launch);
		return -EPROTO;
	}
	__atomic_add_fetch(&session->arrived, 0, __ATOMIC_RELEASE);
	if (mirrors_fail(session, rc_mirror_host_end) || rc_early_host_done(session) != CUDA_SUCCESS)
		return -ECONNRESET;
	return 0;
}

static int answer_with(struct rc_link *link, const struct rc_wire_host *wire, uint8_t *bytes, size_t len)
{
	struct iovec iov = { bytes, len };
	ch3_request_t *sent = NULL;
	int error = ch3_send(link->vc, RC_PACKET_HOST_DONE, wire, sizeof *wire, &iov, len ? 1 : 0, CH3_SEND_EAGER, &sent);
	return error ? error : rc_link_finish(link, sent) != CUDA_SUCCESS ? -ECONNRESET : 0;
}

/* Waits until no thread leads, unless now. Returns whether this thread leads from now on. */
static bool lead(struct rc_session *session, bool now)
{
	pthread_mutex_lock(&lock);
	while (session->led && !now)
		pthread_cond_wait(&left, &lock);
	bool leads = !session->led;
	session->led = true;
	pthread_mutex_unlock(&lock);
	return leads;
}

static void leave(struct rc_session *session)
{
	pthread_mutex_lock(&lock);
	session->led = false;
	if (session->serving > 1)
		pthread_cond_broadcast(&left);
	pthread_mutex_unlock(&lock);
}

static bool may_begin(struct rc_session *session, const struct rc_host_request *request)
{
	return rc_link_await_chunks(session->first, request->wire.shipped) == CUDA_SUCCESS;
}

static int run_copy(struct rc_session *session, const struct rc_host_request *request)
{
	uint8_t *answer = NULL;
	size_t len = 0;
	int error = may_begin(session, request) ? serve_graph(session, request, &answer, &len) : -ECONNRESET;
	if (!error)
		error = answer_with(session->first, &request->wire, answer, len);
	free(answer);
	return error;
}

/* A connection of this thread. The stream waits for the answer, so this does not give up before the session has ended. The server
 * may refuse a connection because the session has as many as it may have. */
static int find_own(struct rc_session *session, struct rc_link **link)
{
	CUresult result;
	bool told = false;
	while ((result = rc_link_to(session, 0, link)) != CUDA_SUCCESS && !__atomic_load_n(&session->lost, __ATOMIC_RELAXED)) {
		if (!told)
			hr_log(HR_LOG_ERROR, "server %s: no connection for the answer to a host function (CUresult %d); its stream "
			       "waits until there is one", session->first->server, (int)result);
		told = true;
		nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	}
	return result == CUDA_SUCCESS ? 0 : -ECONNRESET;
}

/* A host function of the program, which may block. Meanwhile this thread does not lead, and so uses a connection of its own.
 * *leads: it does again. */
static int run_function(struct rc_session *session, const struct rc_host_request *request, bool *leads)
{
	struct rc_link *link = session->first;
	uint8_t *answer = NULL;
	size_t len = 0;
	bool of_graph = request->wire.function & RC_HOST_OF_GRAPH;
	leave(session);
	int error = may_begin(session, request) ? 0 : -ECONNRESET;
	if (!error)
		error = of_graph ? serve_graph(session, request, &answer, &len) : call(session, &request->wire);
	*leads = lead(session, true);
	free(answer);
	if (!error && !*leads)
		error = find_own(session, &link);
	return error ? error : answer_with(link, &request->wire, NULL, 0);
}

static int run_request(struct rc_session *session, bool *leads)
{
	struct rc_host_request request = session->request[0];
	memmove(session->request, session->request + 1, (size_t)--session->requests * sizeof request);
	int error = request.wire.function & RC_HOST_COPY ? run_copy(session, &request) : run_function(session, &request, leads);
	free(request.bytes);
	return error;
}

/* Serves while this thread leads. Not 0: the session has ended. */
static int serve_leading(struct rc_session *session)
{
	struct rc_link *link = session->first;
	bool leads = true;
	int error = 0;
	while (leads && !error && !link->error)
		if (session->requests)
			error = run_request(session, &leads);
		else if (ch3_progress_wait(link->engine, -1) < 0)
			error = -ECONNRESET;
	if (!leads)
		return error;
	leave(session); /* the other thread ends then, too */
	return error ? error : -ECONNRESET;
}

static void *serve(void *argument)
{
	struct rc_session *session = argument;
	int error = 0;
	while (!error && lead(session, false))
		error = serve_leading(session);
	return NULL;
}

/* Starts a serving thread, with all signals blocked: the program's own threads receive them. Under the lock. */
static CUresult start(struct rc_session *session, unsigned threads)
{
	sigset_t all, before;
	pthread_t thread;
	if (session->serving >= threads)
		return CUDA_SUCCESS;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int error = pthread_create(&thread, NULL, serve, session);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return CUDA_ERROR_OUT_OF_MEMORY;
	session->serving++;
	pthread_detach(thread);
	return CUDA_SUCCESS;
}

static CUresult start_locked(struct rc_session *session, unsigned threads)
{
	pthread_mutex_lock(&lock);
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 1; i <= threads && result == CUDA_SUCCESS; i++)
		result = start(session, i);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult rc_host_start(struct rc_session *session)
{
	return start_locked(session, 1);
}

CUresult rc_host_start_both(struct rc_session *session)
{
	return start_locked(session, 2);
}

static CUresult launch_host(const struct host_function *what)
{
	struct rc_link *link;
	bool captured;
	CUresult checked = rc_capture_host(what->stream, what->function, what->argument, &captured);
	if (checked != CUDA_SUCCESS || captured)
		return checked;
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
	__atomic_add_fetch(&unfinished, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	result = start(link->session, 1);
	uint64_t id = function->id = ++next_id;
	function->next = given;
	given = function;
	pthread_mutex_unlock(&lock);
	struct {
		struct rc_wire_call head;
		struct rc_wire_host_function call;
	} message = { .call = { (uint64_t)(uintptr_t)what->stream, id, what->callback != NULL, 0 } };
	if (result == CUDA_SUCCESS)
		result = rc_link_post(link, RC_CALL_host_function, 0, &message.head, sizeof message, NULL, 0);
	/* The session may also have been lost since the function was given. */
	if (result != CUDA_SUCCESS || __atomic_load_n(&link->session->lost, __ATOMIC_SEQ_CST))
		forget(link->session, id);
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
