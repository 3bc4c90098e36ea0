/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/server/daemon/pool.h"

#include "cuda_remote/server/daemon/child.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS 1000      /* between SIGTERM and SIGKILL */
#define RETRY_MS 1000      /* before a worker is forked after one that could not start; doubles up to */
#define RETRY_MAX_MS 30000

enum worker_state { STARTING, READY, SERVING };

struct worker {
	struct worker *next;
	pid_t pid;
	int control;
	enum worker_state state;
	/* SERVING */
	uint8_t token[RC_DOOR_TOKEN_BYTES];
	uid_t uid;
	bool by_key;
	char client[sizeof((rc_door_peer_t *)0)->name];
};

struct pool {
	struct pool_plan plan;
	struct worker *first;
	uint32_t gpus, failures;
	int64_t retry_at_ms; /* CLOCK_MONOTONIC */
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

int pool_open(const struct pool_plan *plan, struct pool **out)
{
	struct pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return -ENOMEM;
	pool->plan = *plan;
	*out = pool;
	return 0;
}

void pool_count(const struct pool *pool, struct pool_counts *counts)
{
	*counts = (struct pool_counts){ .gpus = pool->gpus, .failures = pool->failures };
	for (const struct worker *at = pool->first; at; at = at->next) {
		counts->starting += at->state == STARTING;
		counts->ready += at->state == READY;
		counts->serving += at->state == SERVING;
	}
}

/* ---- starting ---- */

/* Defined in a program built with -fsanitize=address. LeakSanitizer looks for leaks at exit(), which a worker does not
 * call: the handlers registered by then are the daemon's. */
extern void __lsan_do_leak_check(void) __attribute__((weak));

/* In the new process: never returns. */
static void worker_run(struct pool *pool, int control)
{
	struct child_plan plan = { .driver = pool->plan.driver, .control = control, .other_uid = pool->plan.other_uid };
	for (const struct worker *at = pool->first; at; at = at->next)
		close(at->control);
	pool->plan.leave(pool->plan.context);
	sigprocmask(SIG_SETMASK, &pool->plan.signals, NULL);
	int status = child_run(&plan);
	if (__lsan_do_leak_check)
		__lsan_do_leak_check();
	_exit(status);
}

static int worker_start(struct pool *pool)
{
	int pair[2];
	struct worker *worker = calloc(1, sizeof *worker);
	if (!worker)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		int error = -errno;
		free(worker);
		return error;
	}
	pid_t daemon = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		if (child_follow(daemon))
			_exit(EXIT_FAILURE);
		worker_run(pool, pair[1]);
	}
	close(pair[1]);
	if (pid < 0) {
		int error = -errno;
		close(pair[0]);
		free(worker);
		return error;
	}
	/* A worker that does not read must not stop the daemon. */
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	worker->pid = pid;
	worker->control = pair[0];
	worker->state = STARTING;
	worker->next = pool->first;
	pool->first = worker;
	return 0;
}

static void note_failure(struct pool *pool)
{
	int64_t wait = RETRY_MS;
	for (uint32_t i = 0; i < pool->failures && wait < RETRY_MAX_MS; i++)
		wait *= 2;
	pool->failures++;
	pool->retry_at_ms = now_ms() + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
}

int pool_refill(struct pool *pool)
{
	struct pool_counts counts;
	pool_count(pool, &counts);
	uint32_t standing = counts.starting + counts.ready;
	if (standing >= pool->plan.ready || counts.serving + standing >= pool->plan.max_clients + pool->plan.ready)
		return -1;
	int64_t wait = pool->failures ? pool->retry_at_ms - now_ms() : 0;
	if (wait > 0)
		return (int)wait;
	for (; standing < pool->plan.ready; standing++) {
		int error = worker_start(pool);
		if (error) {
			hr_log(HR_LOG_ERROR, "cannot start a worker: %s", strerror(-error));
			note_failure(pool);
			return (int)(pool->retry_at_ms - now_ms());
		}
	}
	return -1;
}

size_t pool_poll_set(const struct pool *pool, struct pollfd *set, size_t max)
{
	size_t n = 0;
	for (const struct worker *at = pool->first; at && n < max; at = at->next)
		if (at->state == STARTING)
			set[n++] = (struct pollfd){ .fd = at->control, .events = POLLIN };
	return n;
}

/* A worker that ends without a word is found by pool_reap. */
void pool_listen(struct pool *pool)
{
	struct child_report report;
	for (struct worker *at = pool->first; at; at = at->next) {
		if (at->state != STARTING)
			continue;
		if (recv(at->control, &report, sizeof report, MSG_DONTWAIT) != (ssize_t)sizeof report)
			continue;
		at->state = READY;
		pool->gpus = report.gpus;
		pool->failures = 0;
		hr_log(HR_LOG_DEBUG, "worker %d is ready", (int)at->pid);
	}
}

/* ---- ending ---- */

static void log_end(const struct worker *worker, int status)
{
	const char *client = worker->state == SERVING ? worker->client : "none";
	if (WIFSIGNALED(status))
		hr_log(HR_LOG_ERROR, "worker %d (client %s) was killed by signal %d (%s)", (int)worker->pid, client,
		       WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (worker->state == SERVING)
		hr_log(HR_LOG_INFO, "client %s has gone%s", client, WEXITSTATUS(status) ? " without a goodbye" : "");
	else
		hr_log(HR_LOG_ERROR, "worker %d %s", (int)worker->pid,
		       worker->state == STARTING ? "could not start" : "ended before a client came");
}

void pool_reap(struct pool *pool)
{
	for (struct worker **at = &pool->first; *at;) {
		struct worker *worker = *at;
		int status;
		if (waitpid(worker->pid, &status, WNOHANG) != worker->pid) {
			at = &worker->next;
			continue;
		}
		log_end(worker, status);
		if (worker->state == STARTING)
			note_failure(pool);
		*at = worker->next;
		close(worker->control);
		free(worker);
	}
}

static void signal_all(const struct pool *pool, int signal)
{
	for (const struct worker *at = pool->first; at; at = at->next)
		kill(at->pid, signal);
}

/* Takes away those that ended, without a word: their end is wanted. */
static void collect(struct pool *pool, int flags)
{
	for (struct worker **at = &pool->first; *at;) {
		struct worker *worker = *at;
		if (waitpid(worker->pid, NULL, flags) == 0) {
			at = &worker->next;
			continue;
		}
		*at = worker->next;
		close(worker->control);
		free(worker);
	}
}

void pool_close(struct pool *pool)
{
	if (!pool)
		return;
	int64_t until = now_ms() + GRACE_MS;
	signal_all(pool, SIGTERM);
	for (collect(pool, WNOHANG); pool->first && now_ms() < until; collect(pool, WNOHANG))
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	signal_all(pool, SIGKILL);
	collect(pool, 0);
	free(pool);
}

/* ---- guests ---- */

static int hand_over(struct worker *worker, const rc_door_peer_t *guest)
{
	int error = rc_door_peer_send(worker->control, guest);
	if (!error)
		close(guest->fd);
	return error;
}

int pool_admit(struct pool *pool, const rc_door_peer_t *guest)
{
	struct pool_counts counts;
	pool_count(pool, &counts);
	if (counts.serving >= pool->plan.max_clients)
		return -EBUSY;
	for (struct worker *at = pool->first; at; at = at->next) {
		if (at->state != READY)
			continue;
		/* One that has just died cannot take it; pool_reap will say so. */
		at->state = SERVING;
		memcpy(at->client, guest->name, sizeof at->client);
		if (hand_over(at, guest))
			continue;
		memcpy(at->token, guest->token, sizeof at->token);
		at->uid = guest->uid;
		at->by_key = guest->by_key;
		hr_log(HR_LOG_INFO, "client %s is served by worker %d", guest->name, (int)at->pid);
		return 0;
	}
	return pool->failures ? -EIO : -EAGAIN;
}

/* In a time that does not tell how much of a guess was right. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
	uint8_t difference = 0;
	for (int i = 0; i < RC_DOOR_TOKEN_BYTES; i++)
		difference |= a[i] ^ b[i];
	return !difference;
}

int pool_join(struct pool *pool, const rc_door_peer_t *guest)
{
	for (struct worker *at = pool->first; at; at = at->next)
		if (at->state == SERVING && same_token(at->token, guest->token) && at->uid == guest->uid &&
		    at->by_key == guest->by_key)
			return hand_over(at, guest);
	return -ESRCH;
}
