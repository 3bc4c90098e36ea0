/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The links and their threads. A link's thread makes the copies of the link (copies.c) and the trials that measure it. It sleeps
 * until the connection has something for it or another thread wakes it. If a link has failed, all its further copies fail, and
 * the client copies by itself.
 */
#include "cuda_remote/server/peer/copies.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TRIALS_MAX 64u /* of a link */
#define BARRED_MS 5000 /* for a trial to end when a context is about to end: all calls of the session wait for it */

/* A trial copies memory of the worker's own, several rounds. */
struct peer_trial {
	struct peer_trial *next;
	struct peer_job what;
	uint32_t bytes, rounds;
	struct trial_outcome *outcome; /* source: a call waits for it */
	bool round_over;               /* source: RC_PEER_NOTE_ROUND has come */
};

struct trial_outcome {
	bool done;
	CUresult result;
	uint64_t best_ns;
};

static pthread_cond_t trial_done = PTHREAD_COND_INITIALIZER;
static struct peer_link *links;
static bool broken;
/* Trials use memory of the first primary context, so none runs while a context ends. */
static unsigned trying, barred;
static pthread_cond_t trials_change = PTHREAD_COND_INITIALIZER;
static int64_t trials_until; /* atomic; 0: no context is about to end */

/* ---- trials ---- */

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A round at the source ends with the target's note, at the target with that note sent. */
static int one_round(struct peer_link *link, struct peer_trial *trial, const struct rc_wire_peer_frame *first, CUresult *copied)
{
	const struct rc_wire_peer_note note = { .kind = RC_PEER_NOTE_ROUND };
	if (link->source) {
		trial->round_over = false;
		int error = peer_transfer_send(&link->pipe, &trial->what, copied);
		return error ? error : peer_notes_await(&link->pipe, &trial->round_over);
	}
	int error = peer_transfer_receive(&link->pipe, &trial->what, first, copied);
	if (!error)
		error = peer_note_finish(&link->pipe);
	if (error)
		return error;
	peer_note_begin(&link->pipe, &note);
	return peer_note_finish(&link->pipe);
}

/* Both sides run all rounds, also after a failure of the copy, so that they agree on the frames. */
static int rounds(struct peer_link *link, struct peer_trial *trial, const struct rc_wire_peer_frame *first, CUresult *result,
		  uint64_t *best)
{
	int error = 0;
	*best = UINT64_MAX;
	*result = CUDA_SUCCESS;
	for (uint32_t i = 0; i < trial->rounds && !error; i++) {
		CUresult copied;
		uint64_t start = now_ns();
		error = one_round(link, trial, i ? NULL : first, &copied);
		uint64_t took = now_ns() - start;
		*best = took < *best ? took : *best;
		*result = *result == CUDA_SUCCESS && !error ? copied : *result;
	}
	return error;
}

static void trying_begin(void)
{
	pthread_mutex_lock(&peer_lock);
	while (barred)
		pthread_cond_wait(&trials_change, &peer_lock);
	trying++;
	pthread_mutex_unlock(&peer_lock);
}

static void trying_end(void)
{
	pthread_mutex_lock(&peer_lock);
	trying--;
	pthread_cond_broadcast(&trials_change);
	pthread_mutex_unlock(&peer_lock);
}

void server_links_bar_trials(void)
{
	pthread_mutex_lock(&peer_lock);
	if (!barred++)
		__atomic_store_n(&trials_until, peer_now_ms() + BARRED_MS, __ATOMIC_RELAXED);
	while (trying)
		pthread_cond_wait(&trials_change, &peer_lock);
	pthread_mutex_unlock(&peer_lock);
}

int64_t peer_trials_until(void)
{
	return __atomic_load_n(&trials_until, __ATOMIC_RELAXED);
}

void server_links_allow_trials(void)
{
	pthread_mutex_lock(&peer_lock);
	if (!--barred)
		__atomic_store_n(&trials_until, 0, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&trials_change);
	pthread_mutex_unlock(&peer_lock);
}

/* Fails if the other worker does not go on for the link's time-out, or for BARRED_MS while a context waits. */
static int try_out(struct peer_link *link, struct peer_trial *trial, const struct rc_wire_peer_frame *first, CUresult *result,
		   uint64_t *best)
{
	trying_begin();
	struct peer_memory *memory = peer_memory_borrow(trial->bytes);
	trial->what.refused = memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	trial->what.box = (struct rc_wire_box){ memory ? (uintptr_t)memory->at : 0, 0, 0, trial->bytes, 1, 1 };
	link->pipe.until = peer_now_ms() + link->timeout_ms;
	int error = rounds(link, trial, first, result, best);
	link->pipe.until = 0;
	if (memory)
		peer_memory_return(memory);
	trying_end();
	return error;
}

/* Under the lock. Takes the first trial out of the list. */
static void trial_end(struct peer_link *link, CUresult result, uint64_t best)
{
	struct peer_trial *trial = link->trials;
	link->trials = trial->next;
	if (!link->trials)
		link->trials_end = &link->trials;
	link->n_trials--;
	if (trial->outcome) {
		*trial->outcome = (struct trial_outcome){ true, result, best };
		pthread_cond_broadcast(&trial_done);
	}
	free(trial);
}

/* The first trial of the list stays there while it is executed: notes find it. */
static int trial_execute(struct peer_link *link, const struct rc_wire_peer_frame *first)
{
	uint64_t best;
	CUresult result;
	pthread_mutex_lock(&peer_lock);
	struct peer_trial *trial = link->trials;
	pthread_mutex_unlock(&peer_lock);
	if (!trial)
		return -EPROTO;
	int error = try_out(link, trial, first, &result, &best);
	pthread_mutex_lock(&peer_lock);
	trial_end(link, error ? CUDA_ERROR_UNKNOWN : result, best);
	pthread_mutex_unlock(&peer_lock);
	return error;
}

/* ---- the thread of a link ---- */

void peer_link_wake(struct peer_link *link)
{
	uint64_t one = 1;
	if (!link->asleep)
		return;
	link->asleep = false;
	if (write(link->wake, &one, sizeof one) < 0) {
		/* It is readable already. */
	}
}

/* Closes the connection, so that the other side does not wait for this one. */
static void take_down(struct peer_link *link)
{
	pthread_mutex_lock(&peer_lock);
	struct peer_connection connection = link->pipe.connection;
	link->pipe.connection.channel = NULL;
	link->state = PEER_LINK_DOWN;
	peer_copies_fail(link);
	while (link->trials)
		trial_end(link, CUDA_ERROR_UNKNOWN, 0);
	pthread_mutex_unlock(&peer_lock);
	peer_connection_close(&connection);
}

static void give_up(struct peer_link *link, int error)
{
	hr_log(error == -EPROTO ? HR_LOG_ERROR : HR_LOG_INFO, "link %llu failed: %s", (unsigned long long)link->number,
	       strerror(-error));
	take_down(link);
}

static int on_note(void *context, const struct rc_wire_peer_note *note)
{
	struct peer_link *link = context;
	if (note->kind != RC_PEER_NOTE_ROUND)
		return peer_copies_hear(link, note);
	pthread_mutex_lock(&peer_lock);
	bool expected = link->trials && !link->trials->round_over && !note->transfer;
	if (expected)
		link->trials->round_over = true;
	pthread_mutex_unlock(&peer_lock);
	return expected ? 0 : -EPROTO;
}

/* Waits until the connection or another thread has something to do. */
static int sleep_until_woken(struct peer_link *link)
{
	struct pollfd fds[] = { { hr_channel_fd(link->pipe.connection.channel), POLLIN, 0 }, { link->wake, POLLIN, 0 } };
	uint64_t count;
	pthread_mutex_lock(&peer_lock);
	bool busy = link->source ? link->queue || link->trials : link->queue && !link->pipe.note_left;
	link->asleep = !link->closed && !busy;
	bool sleeps = link->asleep;
	pthread_mutex_unlock(&peer_lock);
	if (!sleeps)
		return 0;
	int armed = hr_channel_arm(link->pipe.connection.channel, link->pipe.note_left > 0);
	if (!armed && poll(fds, 2, -1) > 0 && fds[1].revents && read(link->wake, &count, sizeof count) < 0) {
		/* Nobody has written to it. */
	}
	pthread_mutex_lock(&peer_lock);
	link->asleep = false;
	pthread_mutex_unlock(&peer_lock);
	return armed < 0 ? armed : 0;
}

static bool has_trial(struct peer_link *link)
{
	pthread_mutex_lock(&peer_lock);
	bool has = link->trials;
	pthread_mutex_unlock(&peer_lock);
	return has;
}

static int source_step(struct peer_link *link)
{
	int error = peer_copies_send(link);
	if (!error && has_trial(link))
		error = trial_execute(link, NULL);
	if (!error)
		error = peer_notes_get(&link->pipe);
	return error ? error : sleep_until_woken(link);
}

static int target_step(struct peer_link *link)
{
	bool whole;
	int error = peer_copies_tell(link);
	if (!error)
		error = peer_frame_get(&link->pipe, &whole);
	if (error)
		return error;
	if (!whole)
		return sleep_until_woken(link);
	const struct rc_wire_peer_frame first = link->pipe.frame;
	return first.transfer ? peer_copies_receive(link, &first) : trial_execute(link, &first);
}

static bool is_closed(struct peer_link *link)
{
	pthread_mutex_lock(&peer_lock);
	bool closed = link->closed;
	pthread_mutex_unlock(&peer_lock);
	return closed;
}

/* Until the link is closed. */
static void serve(struct peer_link *link)
{
	while (link->state == PEER_LINK_UP && !is_closed(link)) {
		int error = link->source ? source_step(link) : target_step(link);
		if (error)
			give_up(link, error);
	}
	pthread_mutex_lock(&peer_lock);
	while (!link->closed)
		pthread_cond_wait(&link->changed, &peer_lock);
	pthread_mutex_unlock(&peer_lock);
	take_down(link);
}

/* Waits for the worker that was invited. */
static void meet(struct peer_link *link)
{
	struct peer_connection connection = { .channel = NULL };
	int error = peer_meet_accept(&link->meeting, link->encrypt, link->timeout_ms, link->stop, &connection);
	if (error)
		hr_log(HR_LOG_INFO, "link %llu: no worker came: %s", (unsigned long long)link->number, strerror(-error));
	pthread_mutex_lock(&peer_lock);
	link->pipe.connection = connection;
	link->state = PEER_LINK_UP;
	pthread_mutex_unlock(&peer_lock);
	if (error)
		take_down(link);
}

/* Waits until the channel's connection is up, which fails after the channel's time-out. */
static void establish(struct peer_link *link)
{
	struct peer_connection *connection = &link->pipe.connection;
	int state = 0;
	while (link->state == PEER_LINK_UP && !state) {
		state = hr_conn_state(connection->conn);
		int waited = state ? 0 : hr_channel_wait(connection->channel, 0, -1);
		state = waited < 0 ? waited : state;
	}
	if (state < 0)
		give_up(link, state);
}

static void link_free(struct peer_link *link)
{
	close(link->stop);
	close(link->wake);
	pthread_cond_destroy(&link->changed);
	free(link);
}

static void *run(void *argument)
{
	struct peer_link *link = argument;
	peer_device_prepare(&link->pipe.device);
	if (!link->pipe.connection.channel)
		meet(link);
	establish(link);
	serve(link);
	pthread_mutex_lock(&peer_lock);
	struct peer_link **at = &links;
	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	pthread_mutex_unlock(&peer_lock);
	peer_connection_close(&link->pipe.connection);
	peer_device_close(&link->pipe.device);
	free(link->pipe.drain);
	link_free(link);
	server_limit_return(SERVER_LIMIT_LINKS, 1);
	return NULL;
}

/* ---- making links ---- */

static struct peer_link *link_new(uint64_t number, uint32_t flags, uint32_t timeout_ms)
{
	struct peer_link *link = calloc(1, sizeof *link);
	int stop = link ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	int wake = stop < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake < 0) {
		if (stop >= 0)
			close(stop);
		free(link);
		return NULL;
	}
	link->stop = stop;
	link->wake = wake;
	link->number = number;
	link->source = flags & RC_PEER_SOURCE;
	link->encrypt = flags & RC_PEER_ENCRYPT || peer_meet_encrypts();
	link->timeout_ms = timeout_ms;
	peer_meeting_init(&link->meeting);
	link->queue_end = &link->queue;
	link->trials_end = &link->trials;
	if (link->source)
		link->pipe.on_note = on_note;
	link->pipe.context = link;
	pthread_cond_init(&link->changed, NULL);
	return link;
}

struct peer_link *peer_link_find(uint64_t number)
{
	struct peer_link *link = links;
	while (link && (link->number != number || link->closed))
		link = link->next;
	return link;
}

static void link_drop(struct peer_link *link)
{
	peer_meeting_end(&link->meeting);
	peer_connection_close(&link->pipe.connection);
	link_free(link);
}

/* Enters the link into the list and starts its thread. After a failure the link is the caller's. */
static CUresult link_start(struct peer_link *link)
{
	pthread_t thread;
	pthread_attr_t attr;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_mutex_lock(&peer_lock);
	if (!peer_link_find(link->number) && !broken) {
		result = pthread_create(&thread, &attr, run, link) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
		if (result == CUDA_SUCCESS) {
			link->next = links;
			links = link;
		}
	}
	pthread_mutex_unlock(&peer_lock);
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
	pthread_mutex_lock(&peer_lock);
	bool ending = broken;
	pthread_mutex_unlock(&peer_lock);
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
	struct peer_link *link = link_new(args->link, args->flags, args->timeout_ms);
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
	struct peer_link *link = link_new(args->link, args->flags, args->timeout_ms);
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int error = peer_meet_join(invitation, link->encrypt, args->timeout_ms, &link->pipe.connection);
	CUresult result = error ? error_of_meeting(error) : CUDA_SUCCESS;
	if (error) {
		hr_log(HR_LOG_INFO, "link %llu: cannot reach the other worker: %s", (unsigned long long)args->link, strerror(-error));
	} else {
		*on_host = link->pipe.connection.on_host;
		link->state = PEER_LINK_UP;
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
static void link_cut(struct peer_link *link)
{
	uint64_t one = 1;
	link->closed = true;
	if (write(link->stop, &one, sizeof one) < 0) {
		/* It is readable already. */
	}
	if (link->pipe.connection.channel)
		shutdown(link->pipe.connection.socket, SHUT_RDWR);
	peer_link_wake(link);
	pthread_cond_signal(&link->changed);
}

CUresult serve_peer_close(struct server_call *call)
{
	struct rc_wire_peer_close args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&peer_lock);
	struct peer_link *link = peer_link_find(args.link);
	if (link)
		link_cut(link);
	pthread_mutex_unlock(&peer_lock);
	return CUDA_SUCCESS; /* one that is not there has ended already */
}

void server_links_break(void)
{
	pthread_mutex_lock(&peer_lock);
	broken = true;
	for (struct peer_link *link = links; link; link = link->next)
		if (!link->closed)
			link_cut(link);
	pthread_mutex_unlock(&peer_lock);
}

void server_links_forget(CUcontext context)
{
	pthread_mutex_lock(&peer_lock);
	for (struct peer_link *link = links; link; link = link->next)
		peer_device_forget(&link->pipe.device, context);
	pthread_mutex_unlock(&peer_lock);
	peer_pool_forget(context);
}

/* ---- trials, for the client ---- */

/* Enters the trial into the link's list. False: there is no such link, or it has too many trials. Under the lock. */
static bool trial_add(const struct rc_wire_peer_trial *args, bool source, struct trial_outcome *outcome)
{
	struct peer_link *link = peer_link_find(args->link);
	if (!link || link->source != source || link->n_trials == TRIALS_MAX || link->state == PEER_LINK_DOWN)
		return false;
	struct peer_trial *trial = calloc(1, sizeof *trial);
	if (!trial)
		return false;
	*trial = (struct peer_trial){ .bytes = args->bytes, .rounds = args->rounds, .outcome = outcome,
				      .what = { .context = rc_handle_index(worker.primary_handle), .plan = args->plan } };
	*link->trials_end = trial;
	link->trials_end = &trial->next;
	link->n_trials++;
	peer_link_wake(link);
	return true;
}

/* Only the source's call waits. */
CUresult serve_peer_trial(struct server_call *call)
{
	struct rc_wire_peer_trial args;
	struct trial_outcome outcome = { .done = false };
	if (!server_take_into(call, &args, sizeof args) || !peer_plan_is_sound(&args.plan) || !args.bytes ||
	    args.bytes > RC_PEER_TRIAL_MAX || !args.rounds || args.rounds > RC_PEER_ROUNDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	pthread_mutex_lock(&peer_lock);
	bool at_target = trial_add(&args, false, NULL), added = at_target || trial_add(&args, true, &outcome);
	while (added && !at_target && !outcome.done)
		pthread_cond_wait(&trial_done, &peer_lock);
	pthread_mutex_unlock(&peer_lock);
	if (!added)
		return CUDA_ERROR_INVALID_VALUE;
	if (at_target)
		return CUDA_SUCCESS;
	return outcome.result == CUDA_SUCCESS ? server_give_bytes(call, &outcome.best_ns, sizeof outcome.best_ns) : outcome.result;
}
