/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host functions run in the client. In their place the driver calls a function of the worker, on a thread of the driver
 * that may not call CUDA. That function queues a request, wakes the worker's main thread and waits for the client's
 * answer. The main thread sends the request over the first connection. The answer may come over any connection. A copy of a
 * graph is a request too. One host function and RC_HOST_COPIES copies are unanswered at a time, so that a function that
 * blocks does not hold up copies.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define COPIED_MAX (16u << 20) /* if there are several copies in the list */

struct request {
	struct request *next;
	struct rc_wire_host wire;
	const uint8_t *give; /* bytes that are sent with the request, or NULL */
	uint8_t *take;       /* where the bytes of the answer go, or NULL */
	uint64_t bytes;
	bool sending;  /* server_thread_send reads what `give` is */
	bool accepted; /* an answer has begun to arrive: no other may */
	bool early;    /* the answer is complete, but sending is not over: the request's memory must stay until then */
	bool done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static struct request *waiting, **waiting_end = &waiting; /* not sent yet */
static struct request *sent;                              /* sent, not answered */
static unsigned functions, copies;                        /* in this list */
static uint64_t copied;                                   /* bytes of these copies, which the client may hold all at once */
static uint64_t tickets;
static bool broken;
static int wake = -1;

int server_host_prepare(void)
{
	wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return wake < 0 ? -errno : 0;
}

int server_host_fd(void)
{
	return wake;
}

static void poke(void)
{
	uint64_t one = 1;
	if (write(wake, &one, sizeof one) < 0) {
		/* Full: it is readable already. */
	}
}

void server_host_break(void)
{
	pthread_mutex_lock(&lock);
	broken = true;
	pthread_cond_broadcast(&answered);
	pthread_mutex_unlock(&lock);
	poke();
}

/* On a thread of the driver. */
static void ask(struct request *request)
{
	pthread_mutex_lock(&lock);
	request->wire.ticket = ++tickets;
	*waiting_end = request;
	waiting_end = &request->next;
	poke();
	while (!request->done && !broken)
		pthread_cond_wait(&answered, &lock);
	if (!request->done) { /* the worker is ending; request must not stay in a list */
		waiting = NULL;
		waiting_end = &waiting;
		sent = NULL;
	}
	pthread_mutex_unlock(&lock);
}

static void ask_client(uint64_t function, CUresult status)
{
	ask(&(struct request){ .wire = { .function = function, .status = status } });
}

static void host_function(void *argument)
{
	ask_client((uint64_t)(uintptr_t)argument, CUDA_SUCCESS);
}

static void callback(CUstream stream, CUresult status, void *argument)
{
	(void)stream;
	ask_client((uint64_t)(uintptr_t)argument, status);
}

CUresult serve_host_function(struct server_call *call)
{
	struct rc_wire_host_function args;
	void *stream;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, args.stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	void *argument = (void *)(uintptr_t)args.function; /* the client's id, never dereferenced */
	if (args.callback)
		return driver.cuStreamAddCallback ? driver.cuStreamAddCallback(stream, callback, argument, 0) :
						    CUDA_ERROR_NOT_SUPPORTED;
	return driver.cuLaunchHostFunc ? driver.cuLaunchHostFunc(stream, host_function, argument) : CUDA_ERROR_NOT_SUPPORTED;
}

static bool is_copy(const struct request *request)
{
	return request->wire.function & RC_HOST_COPY;
}

/* The request enters (true) or leaves the list of those that were sent. Under the lock, as the next. */
static void count(const struct request *request, bool enters)
{
	*(is_copy(request) ? &copies : &functions) += enters ? 1u : -1u;
	if (is_copy(request))
		copied += enters ? request->bytes : -request->bytes;
}

static bool may_send(const struct request *request)
{
	if (!is_copy(request))
		return !functions;
	return !copies || (copies < RC_HOST_COPIES && copied + request->bytes <= COPIED_MAX);
}

/* The request that was sent with this ticket, or NULL. */
static struct request *find(uint64_t ticket)
{
	struct request *request = sent;
	while (request && request->wire.ticket != ticket)
		request = request->next;
	return request;
}

static void end_request(struct request *request)
{
	struct request **at = &sent;
	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	count(request, false);
	request->done = true;
	pthread_cond_broadcast(&answered);
	if (waiting)
		poke();
}

static void send_complete(uint64_t ticket)
{
	pthread_mutex_lock(&lock);
	struct request *request = find(ticket);
	if (request)
		request->sending = false;
	if (request && request->early)
		end_request(request);
	pthread_mutex_unlock(&lock);
}

/* Moves the first request that may be sent now to those that were sent. Functions keep their order, and so do copies. NULL: none.
 * Under the lock. */
static struct request *next_to_send(void)
{
	struct request **at = &waiting;
	bool stays[2] = { broken, broken }; /* a function, a copy */
	while (*at && (stays[is_copy(*at)] || !may_send(*at))) {
		stays[is_copy(*at)] = true;
		at = &(*at)->next;
	}
	struct request *request = *at;
	if (!request)
		return NULL;
	*at = request->next;
	if (!*at)
		waiting_end = at;
	request->next = sent;
	sent = request;
	count(request, true);
	request->sending = true;
	return request;
}

/* *more: a request was sent. */
static int send_next(struct server_thread *first, bool *more)
{
	struct rc_wire_host wire;
	const uint8_t *give = NULL;
	uint64_t bytes = 0;
	pthread_mutex_lock(&lock);
	struct request *request = next_to_send();
	*more = request;
	if (request) {
		wire = request->wire;
		give = request->give;
		bytes = give ? request->bytes : 0;
	}
	pthread_mutex_unlock(&lock);
	if (!request)
		return 0;
	/* The client first waits for the bytes of earlier copies, which the function may read. */
	wire.shipped = server_data_posted();
	int error = server_output_ship(first);
	if (!error)
		error = server_thread_send(first, RC_PACKET_HOST, &wire, sizeof wire, give, bytes);
	send_complete(wire.ticket);
	return error;
}

int server_host_serve(struct server_thread *first)
{
	uint64_t count;
	bool more = true;
	int error = 0;
	if (read(wake, &count, sizeof count) < 0) {
		/* Not poked since. A request may be waiting nevertheless, for the answer to an earlier one. */
	}
	while (more && !error)
		error = send_next(first, &more);
	return error;
}

/* The answer to the request with this ticket is complete. */
static void answer_complete(void *ticket, int error, size_t bytes)
{
	(void)bytes;
	pthread_mutex_lock(&lock);
	struct request *request = error ? NULL : find((uint64_t)(uintptr_t)ticket);
	if (request && request->sending)
		request->early = true;
	else if (request)
		end_request(request);
	pthread_mutex_unlock(&lock);
}

int server_host_done(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct server_thread *thread = context;
	struct rc_wire_host wire;
	if (incoming->header_len != sizeof wire || incoming->rndv)
		return -EPROTO;
	thread->began = true;
	/* The client has sent what the function changed in managed memory over another connection, and waited for it. */
	server_mirrors_synchronize();
	memcpy(&wire, incoming->header, sizeof wire);
	int error = 0;
	pthread_mutex_lock(&lock);
	struct request *request = find(wire.ticket);
	if (!request || request->accepted || incoming->payload_len != (request->take ? request->bytes : 0))
		error = -EPROTO;
	else
		request->accepted = true;
	if (!error && request->take)
		sink->iov[0] = (struct iovec){ request->take, request->bytes };
	pthread_mutex_unlock(&lock);
	if (error)
		return error;
	sink->n = incoming->payload_len ? 1 : 0;
	sink->done = answer_complete;
	sink->context = (void *)(uintptr_t)wire.ticket; /* the request may have ended with the session */
	return 0;
}

void server_host_ask(uint64_t function, const uint8_t *give, uint8_t *take, uint64_t bytes)
{
	ask(&(struct request){ .wire = { .function = function }, .give = give, .take = take, .bytes = bytes });
}
