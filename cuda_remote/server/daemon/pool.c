/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker processes: starts them, gives them clients, counts and reaps them. */
#include "cuda_remote/server/daemon/pool.h"

#include "cuda_remote/server/daemon/launch.h"
#include "cuda_remote/server/daemon/tally.h"
#include "cuda_remote/wire.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS 1000      /* between SIGTERM and SIGKILL */
#define RETRY_MS 1000      /* from a worker's failure to start until the next start; doubles with each failure */
#define RETRY_MAX_MS 30000 /* its maximum */
#define BURST 16           /* workers started at a time: for clients that wait, and of all GPUs until they are ready */
#define KEEP_MS 300000     /* how long a GPU's line keeps a worker ready after a client asked for that GPU */

/* ENDING: the daemon has killed it, and it has not been reaped. */
enum worker_state { STARTING, READY, SERVING, ENDING };

/* Workers of one kind (pool.h). */
struct line {
	uint32_t gpu; /* index of the only GPU that they show, or RC_SERVER_ALL_GPUS */
	uint32_t failures;
	int64_t retry_at_ms;     /* CLOCK_MONOTONIC, as wanted_until_ms */
	int64_t wanted_until_ms; /* of a GPU's line: when it stops keeping a worker ready; 0: it does not */
	uint32_t waiting;        /* clients that wait for a worker */
	uint32_t share;          /* those of them that get one now */
};

struct worker {
	struct worker *next;
	struct launched process;
	struct line *line;
	enum worker_state state;
	bool outdated; /* STARTING with a plan that has changed: ends when it is ready */
	struct tally tally;
	/* SERVING */
	uint64_t number; /* of the session */
	uint8_t token[RC_DOOR_TOKEN_BYTES];
	struct session_owner owner;
	uint32_t gpu;
	int64_t since_ms;
	uint64_t seen_calls; /* of the session when pool_end_idle looked last */
	int64_t active_ms;   /* when it last saw a call */
	char client[sizeof((rc_door_peer_t *)0)->name];
	char program[RC_DOOR_PROGRAM_MAX];
};

struct pool {
	struct pool_plan plan;
	struct worker *first;
	uint32_t gpus;
	bool stopped; /* starts no workers */
	uint64_t sessions; /* count of all sessions so far */
	struct rc_counters past; /* of sessions and workers that have ended */
	struct line line[1 + RC_DEVICES_MAX]; /* all GPUs; each GPU */
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
	for (uint32_t i = 0; i <= RC_DEVICES_MAX; i++)
		pool->line[i].gpu = i ? i - 1 : RC_SERVER_ALL_GPUS;
	*out = pool;
	return 0;
}

void pool_count(const struct pool *pool, struct pool_counts *counts)
{
	*counts = (struct pool_counts){ .gpus = pool->gpus, .failures = pool->line[0].failures };
	for (const struct worker *at = pool->first; at; at = at->next) {
		counts->starting += at->state == STARTING;
		counts->ready += at->state == READY && at->line == pool->line;
		counts->serving += at->state == SERVING;
	}
}

/* ---- starting ---- */

static int worker_start(struct pool *pool, struct line *line)
{
	struct worker *worker = calloc(1, sizeof *worker);
	if (!worker)
		return -ENOMEM;
	struct child_plan plan = pool->plan.worker;
	plan.gpu = line->gpu;
	memcpy(plan.memory, pool->plan.gpus.memory, sizeof plan.memory);
	int error = launch(&plan, &pool->plan.signals, &worker->process);
	if (error) {
		free(worker);
		return error;
	}
	worker->line = line;
	worker->state = STARTING;
	worker->next = pool->first;
	pool->first = worker;
	return 0;
}

static void note_failure(struct line *line)
{
	int64_t wait = RETRY_MS;
	if (line->failures && line->retry_at_ms > now_ms())
		return; /* of a worker that was started together with one that has failed before */
	for (uint32_t i = 0; i < line->failures && wait < RETRY_MAX_MS; i++)
		wait *= 2;
	line->failures++;
	line->retry_at_ms = now_ms() + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
}

static uint32_t standing(const struct pool *pool, const struct line *line)
{
	uint32_t n = 0;
	for (const struct worker *at = pool->first; at; at = at->next)
		n += at->line == line && (at->state == STARTING || at->state == READY);
	return n;
}

/* As pool_refill, for one line. */
static int line_refill(struct pool *pool, struct line *line, uint32_t wanted)
{
	uint32_t n = standing(pool, line);
	int64_t wait = line->failures ? line->retry_at_ms - now_ms() : 0;
	if (n < wanted && wait > 0)
		return (int)wait;
	for (; n < wanted; n++) {
		int error = worker_start(pool, line);
		if (error) {
			hr_log(HR_LOG_ERROR, "cannot start a worker: %s", strerror(-error));
			note_failure(line);
			return (int)(line->retry_at_ms - now_ms());
		}
	}
	return -1;
}

static void end_worker(struct worker *worker)
{
	worker->state = ENDING;
	kill(worker->process.pid, SIGKILL);
}

/* Ends the ready workers of a line that is no longer wanted. */
static void line_drain(struct pool *pool, const struct line *line)
{
	for (struct worker *at = pool->first; at; at = at->next)
		if (at->line == line && at->state == READY)
			end_worker(at);
}

static void drain_all(struct pool *pool)
{
	for (const struct line *line = pool->line; line <= pool->line + RC_DEVICES_MAX; line++)
		line_drain(pool, line);
}

void pool_replan(struct pool *pool, const struct pool_plan *plan)
{
	bool other_quota = memcmp(pool->plan.gpus.memory, plan->gpus.memory, sizeof plan->gpus.memory) != 0;
	pool->plan.ready = plan->ready;
	pool->plan.max_clients = plan->max_clients;
	pool->plan.gpus = plan->gpus;
	pool->plan.idle_s = plan->idle_s;
	/* A worker gets its quota when it starts. */
	for (struct worker *at = pool->first; at && other_quota; at = at->next)
		at->outdated = at->state == STARTING;
	if (other_quota)
		drain_all(pool);
}

void pool_stop_starting(struct pool *pool)
{
	pool->stopped = true;
	drain_all(pool);
}

/* The line that serves clients of this GPU. On a host with one GPU it is the line of all GPUs. */
static struct line *line_for(struct pool *pool, uint32_t gpu)
{
	if (gpu == RC_SERVER_ALL_GPUS || gpu >= RC_DEVICES_MAX || pool->gpus == 1)
		return pool->line;
	struct line *line = &pool->line[1 + gpu];
	line->wanted_until_ms = now_ms() + KEEP_MS;
	return line;
}

void pool_forget_waiting(struct pool *pool)
{
	for (struct line *line = pool->line; line <= pool->line + RC_DEVICES_MAX; line++)
		line->waiting = 0;
}

void pool_add_waiting(struct pool *pool, const rc_door_peer_t *peer)
{
	line_for(pool, peer->gpu)->waiting++;
}

/* Shares the workers that may start for clients that wait among the lines, one to each in turn. A client that max_clients does
 * not allow gets none, whatever line it waits in. */
static void share_out(struct pool *pool, const struct pool_counts *counts)
{
	uint32_t room = pool->plan.max_clients - counts->serving;
	uint32_t to_be_ready = counts->ready < pool->plan.ready ? pool->plan.ready - counts->ready : 0;
	uint32_t burst = to_be_ready < BURST ? BURST - to_be_ready : 0;
	uint32_t left = room < burst ? room : burst, before;
	for (struct line *line = pool->line; line <= pool->line + RC_DEVICES_MAX; line++)
		line->share = 0;
	do {
		before = left;
		for (struct line *line = pool->line; line <= pool->line + RC_DEVICES_MAX && left; line++)
			if (line->share < line->waiting) {
				line->share++;
				left--;
			}
	} while (left && left < before);
}

/* Workers that are to be ready or to start. */
static uint32_t wanted(const struct pool *pool, const struct line *line)
{
	return (line == pool->line ? pool->plan.ready : 1) + line->share;
}

/* Ends ready workers of a line that were started for clients that have gone. Workers that are starting end when they are
 * ready: until then, those that are ready are needed. */
static void line_trim(struct pool *pool, const struct line *line, uint32_t keep)
{
	for (struct worker *at = pool->first; at; at = at->next) {
		if (at->line != line || at->state != READY)
			continue;
		if (keep)
			keep--;
		else
			end_worker(at);
	}
}

int pool_refill(struct pool *pool)
{
	if (pool->stopped)
		return -1;
	struct pool_counts counts;
	pool_count(pool, &counts);
	int soonest = -1;
	bool full = counts.serving >= pool->plan.max_clients;
	if (!full)
		share_out(pool, &counts);
	for (struct line *line = pool->line; line <= pool->line + RC_DEVICES_MAX; line++) {
		bool all = line == pool->line;
		if (!all && !line->wanted_until_ms)
			continue;
		if (!all && line->wanted_until_ms <= now_ms()) {
			line->wanted_until_ms = 0;
			line_drain(pool, line);
			continue;
		}
		int wait = full ? -1 : line_refill(pool, line, wanted(pool, line));
		if (!full)
			line_trim(pool, line, wanted(pool, line));
		if (!all && wait < 0)
			wait = (int)(line->wanted_until_ms - now_ms()) + 1;
		if (wait >= 0 && (soonest < 0 || wait < soonest))
			soonest = wait;
	}
	return soonest;
}

size_t pool_poll_set(const struct pool *pool, struct pollfd *set, size_t max)
{
	size_t n = 0;
	for (const struct worker *at = pool->first; at && n < max; at = at->next)
		if (at->state == STARTING)
			set[n++] = (struct pollfd){ .fd = at->process.control, .events = POLLIN };
	return n;
}

/* If a worker ends without a report, pool_reap handles it. */
void pool_listen(struct pool *pool)
{
	struct child_report report;
	for (struct worker *at = pool->first; at; at = at->next) {
		if (at->state != STARTING)
			continue;
		if (recv(at->process.control, &report, sizeof report, MSG_DONTWAIT) != (ssize_t)sizeof report)
			continue;
		at->state = READY;
		at->line->failures = 0;
		if (at->line == pool->line)
			pool->gpus = report.gpus;
		hr_log(HR_LOG_DEBUG, "worker %d is ready", (int)at->process.pid);
		if (at->outdated)
			end_worker(at);
	}
}

/* ---- sessions that wait, and GPUs in use ---- */

static bool is_active(struct worker *worker)
{
	const struct worker_usage *usage = worker->process.usage;
	uint64_t calls = __atomic_load_n(&usage->calls, __ATOMIC_RELAXED);
	bool active = calls != worker->seen_calls || calls != __atomic_load_n(&usage->ended, __ATOMIC_RELAXED) +
								   __atomic_load_n(&usage->ended_outside, __ATOMIC_RELAXED);
	worker->seen_calls = calls;
	return active;
}

int pool_end_idle(struct pool *pool)
{
	int64_t limit = pool->plan.idle_s * INT64_C(1000), now = now_ms();
	bool sessions = false;
	for (struct worker *at = pool->first; at && limit; at = at->next) {
		if (at->state != SERVING)
			continue;
		sessions = true;
		if (is_active(at))
			at->active_ms = now;
		if (now - at->active_ms < limit)
			continue;
		hr_log(HR_LOG_WARN, "client %s has made no call for %u s (idle-timeout): its session ends", at->client,
		       pool->plan.idle_s);
		end_worker(at);
	}
	/* A look each quarter of the time: a session ends after 1 to 1.25 times idle_s. */
	return sessions ? (int)(limit / 4) : -1;
}

int pool_gpu_in_use(const struct pool *pool, const rc_door_peer_t *peer)
{
	int gpu = -1;
	for (const struct worker *at = pool->first; at && gpu < 0; at = at->next)
		if (at->state == SERVING)
			gpu = gpus_conflict(&pool->plan.gpus, pool->gpus, peer->gpu, at->gpu);
	return gpu;
}

/* ---- ending ---- */

static enum rc_exit exit_of(const struct worker *worker, int status)
{
	if (worker->state == ENDING)
		return RC_EXIT_DAEMON;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? RC_EXIT_FILTER : RC_EXIT_SIGNAL;
	if (worker->state == SERVING)
		return WEXITSTATUS(status) ? RC_EXIT_ERROR : RC_EXIT_CLIENT;
	return worker->state == STARTING ? RC_EXIT_START : RC_EXIT_UNUSED;
}

static void log_end(const struct worker *worker, int status)
{
	const char *client = worker->state == SERVING ? worker->client : "none";
	if (worker->state == ENDING)
		hr_log(HR_LOG_DEBUG, "worker %d has been ended", (int)worker->process.pid);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		hr_log(HR_LOG_ERROR, "worker %d (client %s) was killed for a system call that no worker makes: execve, ptrace, "
		       "mount and the like; --no-seccomp allows every system call", (int)worker->process.pid, client);
	else if (WIFSIGNALED(status))
		hr_log(HR_LOG_ERROR, "worker %d (client %s) was killed by signal %d (%s)", (int)worker->process.pid, client,
		       WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (worker->state == SERVING)
		hr_log(HR_LOG_INFO, "client %s has gone%s", client, WEXITSTATUS(status) ? " without a goodbye" : "");
	else
		hr_log(HR_LOG_ERROR, "worker %d %s", (int)worker->process.pid,
		       worker->state == STARTING ? "could not start" : "ended before a client came");
}

static void worker_free(struct worker *worker)
{
	launch_forget(&worker->process);
	free(worker);
}

void pool_reap(struct pool *pool)
{
	for (struct worker **at = &pool->first; *at;) {
		struct worker *worker = *at;
		int status;
		if (waitpid(worker->process.pid, &status, WNOHANG) != worker->process.pid) {
			at = &worker->next;
			continue;
		}
		log_end(worker, status);
		pool->past.exits_total[exit_of(worker, status)]++;
		tally_look(&worker->tally, worker->process.usage);
		tally_add(&worker->tally, &pool->past);
		if (worker->state == STARTING)
			note_failure(worker->line);
		*at = worker->next;
		worker_free(worker);
	}
}

static void signal_all(const struct pool *pool, int signal)
{
	for (const struct worker *at = pool->first; at; at = at->next)
		kill(at->process.pid, signal);
}

/* Reaps workers that have ended. Does not log, as the daemon is ending. flags: of waitpid. */
static void collect(struct pool *pool, int flags)
{
	for (struct worker **at = &pool->first; *at;) {
		struct worker *worker = *at;
		if (waitpid(worker->process.pid, NULL, flags) == 0) {
			at = &worker->next;
			continue;
		}
		*at = worker->next;
		worker_free(worker);
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

/* ---- clients ---- */

static int hand_over(struct worker *worker, const rc_door_peer_t *peer)
{
	int error = rc_door_peer_send(worker->process.control, peer);
	if (!error)
		close(peer->fd);
	return error;
}

static void begin_session(struct pool *pool, struct worker *worker, const rc_door_peer_t *peer)
{
	worker->state = SERVING;
	worker->number = ++pool->sessions;
	memcpy(worker->token, peer->token, sizeof worker->token);
	worker->owner = limits_owner(peer);
	worker->gpu = peer->gpu;
	worker->since_ms = worker->active_ms = now_ms();
	memcpy(worker->client, peer->name, sizeof worker->client);
	memcpy(worker->program, peer->program, sizeof worker->program);
	hr_log(HR_LOG_INFO, "client %s is served by worker %d", peer->name, (int)worker->process.pid);
}

int pool_admit(struct pool *pool, const rc_door_peer_t *peer)
{
	struct pool_counts counts;
	pool_count(pool, &counts);
	if (counts.serving >= pool->plan.max_clients)
		return -EBUSY;
	struct line *line = line_for(pool, peer->gpu);
	for (struct worker *at = pool->first; at; at = at->next) {
		if (at->line != line || at->state != READY)
			continue;
		int error = hand_over(at, peer);
		if (!error) {
			begin_session(pool, at, peer);
			return 0;
		}
		/* The worker has ended or does not read. */
		hr_log(HR_LOG_ERROR, "worker %d does not take a client: %s; it is killed", (int)at->process.pid, strerror(-error));
		at->state = ENDING;
		kill(at->process.pid, SIGKILL);
	}
	return line->failures ? -EIO : -EAGAIN;
}

/* Compares in constant time, so that the time does not reveal how many bytes of a guess are right. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
	uint8_t difference = 0;
	for (int i = 0; i < RC_DOOR_TOKEN_BYTES; i++)
		difference |= a[i] ^ b[i];
	return !difference;
}

int pool_join(struct pool *pool, const rc_door_peer_t *peer)
{
	for (struct worker *at = pool->first; at; at = at->next)
		if (at->state == SERVING && same_token(at->token, peer->token) && at->owner.uid == peer->uid &&
		    at->owner.by_key == peer->by_key)
			return hand_over(at, peer);
	return -ESRCH;
}

/* ---- counting ---- */

void pool_count_sessions(const struct pool *pool, const struct session_owner *owner, struct session_limits *counts)
{
	for (const struct worker *at = pool->first; at; at = at->next)
		if (at->state == SERVING)
			limits_count(owner, &at->owner, counts);
}

void pool_tally(struct pool *pool, struct rc_counters *counters)
{
	const struct gpu_settings *settings = &pool->plan.gpus;
	memcpy(counters->exits_total, pool->past.exits_total, sizeof counters->exits_total);
	counters->gpus = pool->gpus < RC_COUNTERS_GPUS ? pool->gpus : RC_COUNTERS_GPUS;
	for (uint32_t i = 0; i < counters->gpus; i++)
		counters->gpu[i] = (struct rc_gpu_counters){ .quota = settings->memory[i], .exclusive = settings->exclusive[i] };
	tally_add(&(struct tally){ .calls = pool->past.calls_total, .kernel_launches = pool->past.kernel_launches_total,
				   .graph_launches = pool->past.graph_launches_total,
				   .to_devices = pool->past.to_devices_total, .from_devices = pool->past.from_devices_total,
				   .connections = pool->past.connections_total }, counters);
	/* The first connection of a session is not among those that its worker counts. */
	counters->connections_total += pool->sessions;
	counters->sessions_total = pool->sessions;
	for (struct worker *at = pool->first; at; at = at->next) {
		counters->workers_ready += at->state == READY && at->line == pool->line;
		tally_look(&at->tally, at->process.usage);
		tally_add(&at->tally, counters);
		if (at->state != SERVING)
			continue;
		counters->sessions++;
		tally_add_session(at->process.usage, at->gpu, counters);
	}
}

static bool may_see(const rc_door_peer_t *peer, const struct worker *worker)
{
	if (peer->by_key || worker->owner.by_key)
		return peer->by_key ? worker->owner.by_key : peer->uid == 0 || peer->uid == geteuid();
	return peer->uid == 0 || peer->uid == geteuid() || peer->uid == worker->owner.uid;
}

/* Microseconds; 0: the kernel does not say. */
static uint64_t processor_time(pid_t process)
{
	struct timespec time;
	clockid_t clock;
	if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static void describe(const struct worker *worker, rc_door_session_t *session)
{
	const struct worker_usage *usage = worker->process.usage;
	*session = (rc_door_session_t){ .number = worker->number,
					.age_us = (uint64_t)(now_ms() - worker->since_ms) * 1000,
					.calls = __atomic_load_n(&usage->calls, __ATOMIC_RELAXED),
					.memory = __atomic_load_n(&usage->memory, __ATOMIC_RELAXED),
					.cpu_us = processor_time(worker->process.pid),
					.uid = worker->owner.by_key ? UINT32_MAX : worker->owner.uid,
					.gpu = worker->gpu };
	memcpy(session->program, worker->program, sizeof session->program);
	memcpy(session->client, worker->client, sizeof session->client);
}

void pool_report(const struct pool *pool, const rc_door_peer_t *peer, rc_door_report_t *report)
{
	report->count = report->hidden = 0;
	for (const struct worker *at = pool->first; at; at = at->next) {
		if (at->state != SERVING)
			continue;
		if (report->count < RC_DOOR_SESSIONS_MAX && may_see(peer, at))
			describe(at, &report->session[report->count++]);
		else
			report->hidden++;
	}
}
