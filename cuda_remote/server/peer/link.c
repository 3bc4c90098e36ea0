/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The links and their threads. A call of the client enters a job into the queue of a link and returns; the link's thread
 * executes the jobs in their order and reports their ends to peer_wait. If a link has failed, all its further jobs fail, and
 * the client copies by itself.
 */
#include "cuda_remote/server/peer/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TRIALS_MAX 64u /* in the queue of a link */

enum job_kind { JOB_TRANSFER, JOB_TRIAL };

struct trial {
	bool done;
	CUresult result;
	uint64_t best_ns;
};

struct job {
	struct job *next;
	enum job_kind kind;
	struct peer_job what;
	struct server_report *report; /* of a transfer */
	uint32_t bytes, rounds;       /* of a trial */
	struct trial *trial;          /* of the source: a call waits for it */
};

struct link {
	struct link *next;
	uint64_t number;
	bool source, encrypt, up, closed;
	uint32_t timeout_ms;
	struct peer_meeting meeting; /* until the other worker has come */
	int stop;                    /* eventfd: ends the meeting */
	struct peer_pipe pipe;
	struct job *jobs, **jobs_end;
	unsigned trials;             /* among the jobs, and the one that is executed */
	pthread_cond_t changed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t trial_done = PTHREAD_COND_INITIALIZER;
static struct link *links;
static bool broken;
/* Trials use memory of the first primary context, so none runs while a context ends. */
static unsigned trying, barred;
static pthread_cond_t trials_change = PTHREAD_COND_INITIALIZER;

/* ---- executing ---- */

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Both sides run all rounds, also after a failure of the copy, so that they agree on the frames. */
static int rounds(struct link *link, const struct job *job, CUresult *result, uint64_t *best)
{
	int error = 0;
	*best = UINT64_MAX;
	*result = CUDA_SUCCESS;
	for (uint32_t i = 0; i < job->rounds && !error; i++) {
		CUresult copied;
		uint64_t start = now_ns();
		if (link->source) {
			error = peer_transfer_send(&link->pipe, &job->what, &copied);
			if (!error)
				error = peer_transfer_await(&link->pipe);
		} else {
			error = peer_transfer_receive(&link->pipe, &job->what, &copied);
			if (!error)
				error = peer_transfer_confirm(&link->pipe);
		}
		uint64_t took = now_ns() - start;
		*best = took < *best ? took : *best;
		*result = *result == CUDA_SUCCESS ? copied : *result;
	}
	return error;
}

static void trying_begin(void)
{
	pthread_mutex_lock(&lock);
	while (barred)
		pthread_cond_wait(&trials_change, &lock);
	trying++;
	pthread_mutex_unlock(&lock);
}

static void trying_end(void)
{
	pthread_mutex_lock(&lock);
	trying--;
	pthread_cond_broadcast(&trials_change);
	pthread_mutex_unlock(&lock);
}

void server_links_bar_trials(void)
{
	pthread_mutex_lock(&lock);
	barred++;
	while (trying)
		pthread_cond_wait(&trials_change, &lock);
	pthread_mutex_unlock(&lock);
}

void server_links_allow_trials(void)
{
	pthread_mutex_lock(&lock);
	barred--;
	pthread_cond_broadcast(&trials_change);
	pthread_mutex_unlock(&lock);
}

/* A trial copies memory of the worker's own. It fails if the other worker does not go on for the link's time-out. */
static int try_out(struct link *link, struct job *job, CUresult *result, uint64_t *best)
{
	trying_begin();
	struct peer_memory *memory = peer_memory_borrow(job->bytes);
	job->what.refused = memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	job->what.box = (struct rc_wire_box){ memory ? (uintptr_t)memory->at : 0, 0, 0, job->bytes, 1, 1 };
	link->pipe.until = peer_now_ms() + link->timeout_ms;
	int error = rounds(link, job, result, best);
	link->pipe.until = 0;
	if (memory)
		peer_memory_return(memory);
	trying_end();
	return error;
}

static void job_end(struct job *job, int error, CUresult result, uint64_t best)
{
	if (job->report)
		server_peer_report(job->report, result, error ? RC_PEER_LINK_FAILED : 0);
	if (job->trial) {
		pthread_mutex_lock(&lock);
		*job->trial = (struct trial){ true, error ? CUDA_ERROR_UNKNOWN : result, best };
		pthread_cond_broadcast(&trial_done);
		pthread_mutex_unlock(&lock);
	}
	free(job);
}

/* Closes the connection, so that the other side does not wait for this one. */
static void give_up(struct link *link, int error)
{
	hr_log(error == -EPROTO ? HR_LOG_ERROR : HR_LOG_INFO, "link %llu failed: %s", (unsigned long long)link->number,
	       strerror(-error));
	pthread_mutex_lock(&lock);
	struct peer_connection connection = link->pipe.connection;
	link->pipe.connection.channel = NULL;
	link->up = false;
	pthread_mutex_unlock(&lock);
	peer_connection_close(&connection);
}

static void execute(struct link *link, struct job *job)
{
	int error = link->up ? 0 : -EPIPE;
	uint64_t best = 0;
	CUresult result = CUDA_ERROR_UNKNOWN;
	if (!error && job->kind == JOB_TRIAL)
		error = try_out(link, job, &result, &best);
	else if (!error && link->source)
		error = peer_transfer_send(&link->pipe, &job->what, &result);
	else if (!error)
		error = peer_transfer_receive(&link->pipe, &job->what, &result);
	if (error && link->up)
		give_up(link, error);
	if (error && result == CUDA_SUCCESS)
		result = CUDA_ERROR_UNKNOWN;
	if (job->kind == JOB_TRIAL) {
		pthread_mutex_lock(&lock);
		link->trials--;
		pthread_mutex_unlock(&lock);
	}
	job_end(job, error, result, best);
}

/* ---- the thread of a link ---- */

/* NULL: the link was closed. */
static struct job *next_job(struct link *link)
{
	pthread_mutex_lock(&lock);
	while (!link->jobs && !link->closed)
		pthread_cond_wait(&link->changed, &lock);
	struct job *job = link->jobs;
	if (job) {
		link->jobs = job->next;
		if (!link->jobs)
			link->jobs_end = &link->jobs;
	}
	pthread_mutex_unlock(&lock);
	return job;
}

/* Waits for the worker that was invited. */
static void meet(struct link *link)
{
	struct peer_connection connection = { .channel = NULL };
	int error = peer_meet_accept(&link->meeting, link->encrypt, link->timeout_ms, link->stop, &connection);
	if (error)
		hr_log(HR_LOG_INFO, "link %llu: no worker came: %s", (unsigned long long)link->number, strerror(-error));
	pthread_mutex_lock(&lock);
	link->pipe.connection = connection;
	link->up = !error && !link->closed;
	pthread_mutex_unlock(&lock);
}

/* Waits until the channel's connection is up, which fails after the channel's time-out. */
static void establish(struct link *link)
{
	struct peer_connection *connection = &link->pipe.connection;
	int state = 0;
	while (link->up && !state) {
		state = hr_conn_state(connection->conn);
		int waited = state ? 0 : hr_channel_wait(connection->channel, 0, -1);
		state = waited < 0 ? waited : state;
	}
	if (state < 0)
		give_up(link, state);
}

static void link_free(struct link *link)
{
	close(link->stop);
	pthread_cond_destroy(&link->changed);
	free(link);
}

static void *run(void *argument)
{
	struct link *link = argument;
	struct job *job;
	peer_device_prepare(&link->pipe.device);
	if (!link->pipe.connection.channel)
		meet(link);
	establish(link);
	while ((job = next_job(link)))
		execute(link, job);
	pthread_mutex_lock(&lock);
	struct link **at = &links;
	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	pthread_mutex_unlock(&lock);
	peer_connection_close(&link->pipe.connection);
	peer_device_close(&link->pipe.device);
	free(link->pipe.drain);
	link_free(link);
	server_limit_return(SERVER_LIMIT_LINKS, 1);
	return NULL;
}

/* ---- making links ---- */

static struct link *link_new(uint64_t number, uint32_t flags, uint32_t timeout_ms)
{
	struct link *link = calloc(1, sizeof *link);
	int stop = link ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (stop < 0) {
		free(link);
		return NULL;
	}
	link->stop = stop;
	link->number = number;
	link->source = flags & RC_PEER_SOURCE;
	link->encrypt = flags & RC_PEER_ENCRYPT || peer_meet_encrypts();
	link->timeout_ms = timeout_ms;
	peer_meeting_init(&link->meeting);
	link->jobs_end = &link->jobs;
	pthread_cond_init(&link->changed, NULL);
	return link;
}

/* The link of this number; under the lock. */
static struct link *link_find(uint64_t number)
{
	struct link *link = links;
	while (link && (link->number != number || link->closed))
		link = link->next;
	return link;
}

static void link_drop(struct link *link)
{
	peer_meeting_end(&link->meeting);
	peer_connection_close(&link->pipe.connection);
	link_free(link);
}

/* Enters the link into the list and starts its thread. After a failure the link is the caller's. */
static CUresult link_start(struct link *link)
{
	pthread_t thread;
	pthread_attr_t attr;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_mutex_lock(&lock);
	if (!link_find(link->number) && !broken) {
		result = pthread_create(&thread, &attr, run, link) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
		if (result == CUDA_SUCCESS) {
			link->next = links;
			links = link;
		}
	}
	pthread_mutex_unlock(&lock);
	pthread_attr_destroy(&attr);
	return result;
}

static CUresult error_of_meeting(int error)
{
	switch (error) {
	case -ENOMEM: return CUDA_ERROR_OUT_OF_MEMORY;
	case -EACCES: return CUDA_ERROR_NOT_PERMITTED;
	case -ETIMEDOUT: return CUDA_ERROR_TIMEOUT;
	default: return CUDA_ERROR_NOT_FOUND;
	}
}

/* Checks what both calls have, and counts the link. */
static CUresult begin(uint32_t flags, uint32_t timeout_ms)
{
	if (flags & ~(RC_PEER_SOURCE | RC_PEER_ENCRYPT) || !timeout_ms || timeout_ms > RC_PEER_TIMEOUT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	bool ending = broken;
	pthread_mutex_unlock(&lock);
	if (ending)
		return CUDA_ERROR_NOT_PERMITTED;
	if (server_limit_take(SERVER_LIMIT_LINKS, 1))
		return CUDA_SUCCESS;
	hr_log_once(HR_LOG_WARN, "no further link to another server: HEADRACE_SESSION_LINKS=%llu",
		    (unsigned long long)server_limit(SERVER_LIMIT_LINKS));
	return CUDA_ERROR_NOT_PERMITTED;
}

static CUresult invite(const struct rc_wire_peer_invite *args, struct rc_wire_peer_invitation *invitation)
{
	struct link *link = link_new(args->link, args->flags, args->timeout_ms);
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int error = peer_meet_invite(&link->meeting, invitation);
	CUresult result = error ? error_of_meeting(error) : link_start(link);
	if (result != CUDA_SUCCESS)
		link_drop(link);
	return result;
}

/* What the client learns about this worker. The first call of this, which probes the memory, comes before the first link. */
static uint32_t own_flags(struct server_call *call)
{
	trying_begin();
	uint32_t flags = peer_memory_is_direct() ? RC_PEER_DIRECT : 0;
	trying_end();
	(void)driver.cuCtxSetCurrent(NULL);
	call->thread->context = 0; /* the probe has made another context current */
	return flags | (peer_meet_encrypts() ? RC_PEER_ENCRYPT : 0);
}

CUresult serve_peer_invite(struct server_call *call)
{
	struct rc_wire_peer_invite args;
	struct rc_wire_peer_invitation invitation;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	CUresult result = begin(args.flags, args.timeout_ms);
	if (result != CUDA_SUCCESS)
		return result;
	uint32_t flags = own_flags(call);
	result = invite(&args, &invitation);
	if (result != CUDA_SUCCESS) {
		server_limit_return(SERVER_LIMIT_LINKS, 1);
		return result;
	}
	invitation.flags = flags;
	result = server_give_bytes(call, &invitation, sizeof invitation);
	explicit_bzero(&invitation, sizeof invitation);
	return result;
}

static CUresult join(const struct rc_wire_peer_join *args, const struct rc_wire_peer_invitation *invitation,
		     uint32_t *on_host)
{
	struct link *link = link_new(args->link, args->flags, args->timeout_ms);
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int error = peer_meet_join(invitation, link->encrypt, args->timeout_ms, &link->pipe.connection);
	CUresult result = error ? error_of_meeting(error) : CUDA_SUCCESS;
	if (error) {
		hr_log(HR_LOG_INFO, "link %llu: cannot reach the other worker: %s", (unsigned long long)args->link, strerror(-error));
	} else {
		*on_host = link->pipe.connection.on_host;
		link->up = true;
		result = link_start(link);
	}
	if (result != CUDA_SUCCESS)
		link_drop(link);
	return result;
}

CUresult serve_peer_join(struct server_call *call)
{
	struct rc_wire_peer_join args;
	struct rc_wire_peer_invitation invitation;
	struct rc_wire_peer_joined joined = { .flags = 0 };
	if (!server_take_into(call, &args, sizeof args) || !server_take_into(call, &invitation, sizeof invitation))
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	CUresult result = begin(args.flags, args.timeout_ms);
	if (result != CUDA_SUCCESS)
		return result;
	joined.flags = own_flags(call);
	result = join(&args, &invitation, &joined.on_host);
	explicit_bzero(&invitation, sizeof invitation);
	if (result != CUDA_SUCCESS) {
		server_limit_return(SERVER_LIMIT_LINKS, 1);
		return result;
	}
	return server_give_bytes(call, &joined, sizeof joined);
}

/* ---- ends ---- */

/* Makes all that the link's thread waits for fail. Under the lock. */
static void link_cut(struct link *link)
{
	uint64_t one = 1;
	link->closed = true;
	if (write(link->stop, &one, sizeof one) < 0) {
		/* It is readable already. */
	}
	if (link->pipe.connection.channel)
		shutdown(link->pipe.connection.socket, SHUT_RDWR);
	pthread_cond_signal(&link->changed);
}

CUresult serve_peer_close(struct server_call *call)
{
	struct rc_wire_peer_close args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	struct link *link = link_find(args.link);
	if (link)
		link_cut(link);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS; /* one that is not there has ended already */
}

void server_links_break(void)
{
	pthread_mutex_lock(&lock);
	broken = true;
	for (struct link *link = links; link; link = link->next)
		if (!link->closed)
			link_cut(link);
	pthread_mutex_unlock(&lock);
}

void server_links_forget(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (struct link *link = links; link; link = link->next)
		peer_device_forget(&link->pipe.device, context);
	pthread_mutex_unlock(&lock);
	peer_pool_forget(context);
}

/* ---- jobs ---- */

static bool plan_is_sound(const struct rc_wire_peer_plan *plan)
{
	if (plan->way == RC_PEER_BY_NONE)
		return true;
	return plan->way < RC_PEER_WAYS && plan->buffers && plan->buffers <= RC_PEER_BUFFERS_MAX &&
	       plan->chunk >= RC_PEER_CHUNK_MIN && plan->chunk <= RC_PEER_CHUNK_MAX;
}

/* Enters the job into the link's queue. False: there is no such link, or its queue has too many trials. */
static bool job_add(uint64_t number, bool source, struct job *job)
{
	pthread_mutex_lock(&lock);
	struct link *link = link_find(number);
	bool trial = job->kind == JOB_TRIAL, found = link && link->source == source && (!trial || link->trials < TRIALS_MAX);
	if (found) {
		link->trials += trial;
		*link->jobs_end = job;
		link->jobs_end = &job->next;
		pthread_cond_signal(&link->changed);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* The client waits for the report of each transfer, also of one that cannot be executed. */
static CUresult transfer(struct server_call *call, bool source)
{
	struct rc_wire_peer_transfer args;
	uint64_t bytes;
	if (!server_take_into(call, &args, sizeof args) || !args.transfer)
		return CUDA_ERROR_INVALID_VALUE;
	struct job *job = calloc(1, sizeof *job);
	struct server_report *report = job ? server_peer_report_new(args.transfer) : NULL;
	if (!report) {
		free(job);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*job = (struct job){ .kind = JOB_TRANSFER, .report = report,
			     .what = { args.transfer, call->thread->context, args.plan, args.box, CUDA_SUCCESS } };
	if (!plan_is_sound(&args.plan) || !server_box_is_sound(&args.box, &bytes))
		job->what.refused = CUDA_ERROR_INVALID_VALUE;
	if (!job_add(args.link, source, job))
		job_end(job, -EPIPE, CUDA_ERROR_UNKNOWN, 0);
	return CUDA_SUCCESS;
}

CUresult serve_peer_send(struct server_call *call)
{
	return transfer(call, true);
}

CUresult serve_peer_receive(struct server_call *call)
{
	return transfer(call, false);
}

/* Only the source's call waits. */
static CUresult await_trial(struct trial *trial)
{
	pthread_mutex_lock(&lock);
	while (!trial->done)
		pthread_cond_wait(&trial_done, &lock);
	pthread_mutex_unlock(&lock);
	return trial->result;
}

CUresult serve_peer_trial(struct server_call *call)
{
	struct rc_wire_peer_trial args;
	if (!server_take_into(call, &args, sizeof args) || !plan_is_sound(&args.plan) || !args.bytes ||
	    args.bytes > RC_PEER_TRIAL_MAX || !args.rounds || args.rounds > RC_PEER_ROUNDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	struct trial trial = { .done = false };
	struct job *job = calloc(1, sizeof *job);
	if (!job)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*job = (struct job){ .kind = JOB_TRIAL, .bytes = args.bytes, .rounds = args.rounds,
			     .what = { .context = rc_handle_index(worker.primary_handle), .plan = args.plan } };
	if (job_add(args.link, false, job))
		return CUDA_SUCCESS;
	job->trial = &trial;
	if (!job_add(args.link, true, job)) {
		free(job);
		return CUDA_ERROR_INVALID_VALUE;
	}
	CUresult result = await_trial(&trial);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &trial.best_ns, sizeof trial.best_ns) : result;
}
