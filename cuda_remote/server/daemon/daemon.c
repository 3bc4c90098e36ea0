/* SPDX-License-Identifier: BSD-3-Clause */
/* headraced's loop: signals, the door, the workers' reports, and clients that wait for a worker. */
#include "cuda_remote/server/daemon/daemon.h"

#include "cuda_remote/server/daemon/filter.h"
#include "cuda_remote/server/daemon/log_place.h"
#include "cuda_remote/server/daemon/metrics.h"
#include "cuda_remote/server/daemon/pool.h"
#include "cuda_remote/server/daemon/systemd.h"
#include "cuda_remote/server/worker.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define WAITING_MAX 256
#define WAITING_MS 30000 /* a client waits this long for a worker to be ready */
#define STARTING_MAX 64
#define DESCRIPTORS 16384

struct waiting {
	rc_door_peer_t peer;
	int64_t until_ms;
};

struct daemon {
	struct daemon_options *options;
	int argc; /* argv too: the command line, for SIGHUP */
	char **argv;
	rc_door_t *door;
	struct pool *pool;
	struct metrics *metrics; /* NULL: none */
	int signal_fd;
	bool announced, ending;
	bool draining; /* no new session; ends with the last one, or at drain_until_ms */
	int64_t drain_until_ms;
	int status; /* exit status */
	int64_t since_ms;
	uint64_t refused[RC_REFUSED_KINDS]; /* by the daemon, after the handshake */
	struct waiting *waiting; /* NEW clients, in order of arrival */
	size_t waiting_count;
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* ---- clients ---- */

/* The server's version and driver, as text for users. */
static void describe(const struct daemon *daemon, char *text, size_t size)
{
	snprintf(text, size, "headraced %s, %s", HR_VERSION,
		 daemon->options->software ? "software GPU" : "NVIDIA driver");
}

static void answer_status(struct daemon *daemon, const rc_door_peer_t *peer)
{
	struct pool_counts counts;
	char text[RC_DOOR_TEXT_MAX];
	pool_count(daemon->pool, &counts);
	describe(daemon, text, sizeof text);
	(void)rc_door_peer_welcome(peer, NULL, counts.gpus, counts.serving, counts.ready, text);
	close(peer->fd);
}

static void count(struct daemon *daemon, struct rc_counters *counters)
{
	memset(counters, 0, sizeof *counters);
	counters->uptime_us = (uint64_t)(now_ms() - daemon->since_ms) * 1000;
	rc_door_count(daemon->door, counters);
	for (int i = 0; i < RC_REFUSED_KINDS; i++)
		counters->refused_total[i] += daemon->refused[i];
	pool_tally(daemon->pool, counters);
}

static void answer_report(struct daemon *daemon, const rc_door_peer_t *peer)
{
	struct pool_counts counts;
	char text[RC_DOOR_TEXT_MAX];
	rc_door_report_t report;
	pool_count(daemon->pool, &counts);
	pool_report(daemon->pool, peer, &report);
	count(daemon, &report.counters);
	describe(daemon, text, sizeof text);
	if (!rc_door_peer_welcome(peer, NULL, counts.gpus, counts.serving, counts.ready, text))
		(void)rc_door_peer_report(peer, &report);
	close(peer->fd);
}

/* Refuses a client and counts that. */
static void __attribute__((format(printf, 4, 5)))
refuse(struct daemon *daemon, const rc_door_peer_t *peer, enum rc_refused kind, const char *format, ...)
{
	static const enum rc_door_reason reasons[RC_REFUSED_KINDS] = {
		[RC_REFUSED_NO_GPU] = RC_DOOR_NO_GPU, [RC_REFUSED_NO_SESSION] = RC_DOOR_NO_SESSION,
		[RC_REFUSED_LIMIT] = RC_DOOR_BUSY, [RC_REFUSED_EXCLUSIVE] = RC_DOOR_BUSY,
		[RC_REFUSED_NO_WORKER] = RC_DOOR_BUSY,
	};
	char text[RC_DOOR_TEXT_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	daemon->refused[kind]++;
	rc_door_peer_refuse(peer, reasons[kind] ? reasons[kind] : RC_DOOR_FAILED, "%s", text);
}

/* Gives a client to a worker or refuses it. False: neither, because no worker is ready yet; the client must wait. */
static bool admit(struct daemon *daemon, const rc_door_peer_t *peer)
{
	struct pool_counts counts;
	pool_count(daemon->pool, &counts);
	if (counts.gpus && peer->gpu != RC_SERVER_ALL_GPUS && peer->gpu >= counts.gpus) {
		refuse(daemon, peer, RC_REFUSED_NO_GPU, "no such GPU index %u: the server has %u", peer->gpu, counts.gpus);
		return true;
	}
	if (!counts.gpus && !counts.failures)
		return false;
	int in_use = pool_gpu_in_use(daemon->pool, peer);
	if (in_use >= 0) {
		refuse(daemon, peer, RC_REFUSED_EXCLUSIVE, peer->gpu == RC_SERVER_ALL_GPUS && counts.gpus > 1 ?
		       "GPU %d is exclusive and another session has it; ask for another GPU (HOST/GPU)" :
		       "GPU %d is exclusive and another session has it", in_use);
		return true;
	}
	switch (pool_admit(daemon->pool, peer)) {
	case 0: return true;
	case -EAGAIN: return false;
	case -EBUSY:
		refuse(daemon, peer, RC_REFUSED_LIMIT, "the server has as many clients as it takes (%u)",
		       daemon->options->max_clients);
		return true;
	default:
		refuse(daemon, peer, RC_REFUSED_FAILED, "the server cannot start a worker: its log says why");
		return true;
	}
}

/* True if the client's user, address and key may have one more session. If not, refuses it and names the limit. */
static bool within_limits(struct daemon *daemon, const rc_door_peer_t *peer)
{
	struct session_owner owner = limits_owner(peer);
	struct session_limits counts = { 0 };
	char text[RC_DOOR_TEXT_MAX];
	pool_count_sessions(daemon->pool, &owner, &counts);
	for (size_t i = 0; i < daemon->waiting_count; i++) {
		struct session_owner other = limits_owner(&daemon->waiting[i].peer);
		limits_count(&owner, &other, &counts);
	}
	if (limits_allow(&daemon->options->limits, &owner, &counts, text, sizeof text))
		return true;
	refuse(daemon, peer, RC_REFUSED_LIMIT, "%s", text);
	return false;
}

/* True if a client that asked for the same GPU is among the first waiting ones: such clients are served in their order
 * of arrival. */
static bool is_behind(const struct daemon *daemon, const rc_door_peer_t *peer, size_t waiting)
{
	for (size_t i = 0; i < waiting; i++)
		if (daemon->waiting[i].peer.gpu == peer->gpu)
			return true;
	return false;
}

static void handle_new(struct daemon *daemon, const rc_door_peer_t *peer)
{
	if (daemon->draining) {
		refuse(daemon, peer, RC_REFUSED_ENDING, "the server is ending and takes no new clients");
		return;
	}
	if (!within_limits(daemon, peer) || (!is_behind(daemon, peer, daemon->waiting_count) && admit(daemon, peer)))
		return;
	if (daemon->waiting_count == WAITING_MAX) {
		refuse(daemon, peer, RC_REFUSED_NO_WORKER, "too many clients wait for a worker; try again");
		return;
	}
	daemon->waiting[daemon->waiting_count++] = (struct waiting){ *peer, now_ms() + WAITING_MS };
}

static void handle_peer(struct daemon *daemon, const rc_door_peer_t *peer)
{
	switch (peer->purpose) {
	case RC_DOOR_NEW: handle_new(daemon, peer); break;
	case RC_DOOR_STATUS: answer_status(daemon, peer); break;
	case RC_DOOR_REPORT: answer_report(daemon, peer); break;
	case RC_DOOR_JOIN:
	case RC_DOOR_MEMORY:
	case RC_DOOR_HANDLE:
		if (pool_join(daemon->pool, peer))
			refuse(daemon, peer, RC_REFUSED_NO_SESSION, "no such session: its worker has ended");
		break;
	}
}

static void serve_waiting(struct daemon *daemon)
{
	size_t left = 0;
	for (size_t i = 0; i < daemon->waiting_count; i++) {
		struct waiting *at = &daemon->waiting[i];
		if (!is_behind(daemon, &at->peer, left) && admit(daemon, &at->peer))
			continue;
		if (at->until_ms > now_ms())
			daemon->waiting[left++] = *at;
		else
			refuse(daemon, &at->peer, RC_REFUSED_NO_WORKER, "no worker became ready in %d s", WAITING_MS / 1000);
	}
	daemon->waiting_count = left;
}

/* ---- readiness ---- */

/* Announces readiness, once, when the first worker is ready. If workers fail to start before that, the daemon ends. */
static void announce(struct daemon *daemon)
{
	struct pool_counts counts;
	pool_count(daemon->pool, &counts);
	if (daemon->announced || daemon->draining)
		return;
	if (counts.failures) {
		daemon->ending = true;
		daemon->status = EXIT_FAILURE;
		return;
	}
	if (!counts.gpus)
		return;
	daemon->announced = true;
	systemd_notify("READY=1");
	if (daemon->options->ready_fd >= 0) {
		(void)!write(daemon->options->ready_fd, "ready\n", 6);
		close(daemon->options->ready_fd);
	}
	char text[RC_DOOR_TEXT_MAX];
	describe(daemon, text, sizeof text);
	hr_log(HR_LOG_INFO, "%s: ready, %u GPU%s", text, counts.gpus, counts.gpus == 1 ? "" : "s");
}

/* ---- the loop ---- */

static void refuse_waiting(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->waiting_count; i++)
		refuse(daemon, &daemon->waiting[i].peer, RC_REFUSED_ENDING, "the server is ending");
	daemon->waiting_count = 0;
}

/* The first SIGTERM. Sessions go on, and may open further connections. */
static void begin_drain(struct daemon *daemon)
{
	struct pool_counts counts;
	pool_count(daemon->pool, &counts);
	daemon->draining = true;
	daemon->drain_until_ms = now_ms() + daemon->options->drain_s * INT64_C(1000);
	refuse_waiting(daemon);
	pool_stop_starting(daemon->pool);
	systemd_notify("STOPPING=1");
	if (counts.serving)
		hr_log(HR_LOG_INFO, "ending: no new sessions; waiting up to %u s for %u to end; another SIGTERM ends them now",
		       daemon->options->drain_s, counts.serving);
}

static void check_drain(struct daemon *daemon)
{
	struct pool_counts counts;
	if (!daemon->draining || daemon->ending)
		return;
	pool_count(daemon->pool, &counts);
	daemon->ending = !counts.serving || now_ms() >= daemon->drain_until_ms;
	if (daemon->ending && counts.serving)
		hr_log(HR_LOG_WARN, "%u sessions have not ended in %u s (--drain-timeout): ending them", counts.serving,
		       daemon->options->drain_s);
}

/* Reads key file and policy. Negative: the door keeps its old ones. */
static int load_policy(const struct daemon_options *options, rc_door_policy_t *policy)
{
	*policy = (rc_door_policy_t){ .own_user_only = options->private_use, .encrypt = options->encrypt,
				       .munge = options->munge };
	if (!options->key_file)
		return 0;
	policy->have_key = true;
	return rc_door_key_load(options->key_file, &policy->key);
}

static void plan_numbers(const struct daemon_options *options, struct pool_plan *plan)
{
	plan->ready = options->workers;
	plan->max_clients = options->max_clients;
	plan->gpus = options->gpus;
	plan->idle_s = options->idle_s;
}

/* SIGHUP: what is wrong is logged, and then nothing changes. */
static void reload(struct daemon *daemon)
{
	rc_door_policy_t policy;
	if (daemon->draining)
		return;
	if (daemon->announced)
		systemd_notify_reloading();
	if (log_place_open(daemon->options->log))
		hr_log(HR_LOG_ERROR, "the log stays where it was");
	if (daemon_options_reload(daemon->argc, daemon->argv, daemon->options)) {
		hr_log(HR_LOG_ERROR, "%s has not been reloaded: the options stay as they were", daemon->options->config);
	} else {
		struct pool_plan plan = { 0 };
		plan_numbers(daemon->options, &plan);
		pool_replan(daemon->pool, &plan);
		if (load_policy(daemon->options, &policy) || rc_door_set_policy(daemon->door, &policy))
			hr_log(HR_LOG_ERROR, "key-file, credential and encrypt stay as they were");
		explicit_bzero(&policy, sizeof policy);
		hr_log(HR_LOG_INFO, "%s has been reloaded", daemon->options->config);
	}
	if (daemon->announced)
		systemd_notify("READY=1");
}

static void handle_signal(struct daemon *daemon, unsigned signal)
{
	if (signal == SIGCHLD) {
		pool_listen(daemon->pool);
		pool_reap(daemon->pool);
	} else if (signal == SIGHUP && daemon->options->config) {
		reload(daemon);
	} else if (signal == SIGTERM && !daemon->draining) {
		begin_drain(daemon);
	} else {
		hr_log(HR_LOG_INFO, "ending on signal %u", signal);
		daemon->ending = true;
	}
}

static void read_signals(struct daemon *daemon)
{
	struct signalfd_siginfo info;
	while (read(daemon->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
		handle_signal(daemon, info.ssi_signo);
}

static void read_watch(struct daemon *daemon)
{
	char bytes[64];
	ssize_t n = read(daemon->options->watch_fd, bytes, sizeof bytes);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		hr_log(HR_LOG_INFO, "ending with the program that started this daemon");
		daemon->ending = true;
	}
}

static int sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int until(int64_t ms)
{
	int64_t left = ms - now_ms();
	return left > 0 ? (int)left : 0;
}

static void tell_metrics(struct daemon *daemon)
{
	struct rc_counters counters;
	if (!metrics_asked(daemon->metrics))
		return;
	count(daemon, &counters);
	metrics_answer(daemon->metrics, &counters);
}

static void turn(struct daemon *daemon)
{
	int timeout = metrics_keep(daemon->metrics); /* may change its descriptor */
	struct pollfd set[4 + STARTING_MAX] = {
		{ .fd = daemon->signal_fd, .events = POLLIN },
		{ .fd = rc_door_fd(daemon->door), .events = POLLIN },
		{ .fd = daemon->options->watch_fd, .events = POLLIN }, /* poll ignores -1 */
		{ .fd = metrics_fd(daemon->metrics), .events = POLLIN },
	};
	pool_forget_waiting(daemon->pool);
	for (size_t i = 0; i < daemon->waiting_count; i++)
		pool_add_waiting(daemon->pool, &daemon->waiting[i].peer);
	timeout = sooner(timeout, pool_refill(daemon->pool));
	timeout = sooner(timeout, rc_door_timeout(daemon->door));
	if (daemon->waiting_count)
		timeout = sooner(timeout, until(daemon->waiting[0].until_ms));
	timeout = sooner(timeout, pool_end_idle(daemon->pool));
	if (daemon->draining)
		timeout = sooner(timeout, until(daemon->drain_until_ms));
	size_t starting = pool_poll_set(daemon->pool, set + 4, STARTING_MAX);
	if (poll(set, 4 + starting, timeout) < 0)
		return;
	if (set[0].revents)
		read_signals(daemon);
	if (set[2].revents)
		read_watch(daemon);
	if (set[3].revents)
		tell_metrics(daemon);
	pool_listen(daemon->pool);
	announce(daemon);
	check_drain(daemon);
	rc_door_peer_t peer;
	while (!daemon->ending && rc_door_next(daemon->door, &peer) == 1)
		handle_peer(daemon, &peer);
	serve_waiting(daemon);
}

/* ---- opening and closing ---- */

static int open_door(struct daemon *daemon)
{
	const struct daemon_options *options = daemon->options;
	rc_door_policy_t policy;
	int fds[SYSTEMD_SOCKETS_MAX];
	size_t count = systemd_sockets(fds);
	if (options->key_file && geteuid())
		hr_log(HR_LOG_WARN, "this daemon is not root: its workers run as the same user and can read %s; a client that "
		       "takes over a worker can take the key", options->key_file);
	int error = load_policy(options, &policy);
	if (!error)
		error = rc_door_open(&policy, &daemon->door);
	explicit_bzero(&policy, sizeof policy);
	for (size_t i = 0; i < count && !error; i++)
		error = rc_door_adopt(daemon->door, fds[i]);
	for (size_t i = 0; i < options->place_count && !error; i++)
		error = rc_door_listen(daemon->door, &options->places[i]);
	/* Another user's daemon may have the port. That is no error, as clients can use the Unix socket. */
	if (!error && options->loopback) {
		rc_server_t loopback = { .host = "127.0.0.1", .port = RC_DOOR_PORT };
		if (rc_door_listen(daemon->door, &loopback))
			hr_log(HR_LOG_WARN, "not listening at loopback; if this is intended, give --no-loopback");
	}
	return error;
}

/* Tells the workers at which addresses other servers may reach them. If the administrator names none: where the client has
 * reached the worker, then where the daemon listens. */
static int tell_link_addresses(const struct daemon *daemon)
{
	char list[1024] = "auto";
	const char *given = daemon->options->link_address, *variable = getenv("HEADRACE_LINK_ADDRESS");
	if (!given && variable && *variable && !server_link_addresses_valid(variable)) {
		hr_log(HR_LOG_ERROR, "HEADRACE_LINK_ADDRESS=%s: want IP addresses of this host, or auto, with commas between them",
		       variable);
		return -EINVAL;
	}
	if (!given && variable && *variable)
		return 0;
	rc_door_add_addresses(daemon->door, list, sizeof list);
	return setenv("HEADRACE_LINK_ADDRESS", given ? given : list, 1) ? -errno : 0;
}

static int open_signals(struct daemon *daemon, sigset_t *before)
{
	sigset_t wanted;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGHUP);
	sigaddset(&wanted, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &wanted, before))
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	daemon->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	return daemon->signal_fd < 0 ? -errno : 0;
}

/* The daemon needs descriptors for each client and worker. The usual soft limit, 1024, is too low for many clients. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	rlim_t wanted = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = wanted;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int find_user(const char *name, uid_t *uid)
{
	const struct passwd *user = getpwnam(name);
	if (geteuid()) {
		*uid = geteuid();
		return 0;
	}
	if (!user) {
		hr_log(HR_LOG_ERROR, "option user, \"%s\": this host has no such user", name);
		return -EINVAL;
	}
	*uid = user->pw_uid;
	return 0;
}

static int open_metrics(struct daemon *daemon, const struct pool_plan *plan)
{
	const struct daemon_options *options = daemon->options;
	struct metrics_options wanted = { .place = options->metrics_place, .uid = plan->worker.other_uid,
					  .seccomp = options->seccomp, .signals = plan->signals,
					  .driver = options->software ? "software GPU" : "NVIDIA" };
	return options->metrics ? metrics_open(&wanted, &daemon->metrics) : 0;
}

static int daemon_open(struct daemon *daemon)
{
	const struct daemon_options *options = daemon->options;
	struct pool_plan plan = { 0 };
	plan_numbers(options, &plan);
	plan.worker.root_workers = options->root_workers;
	plan.worker.root_only = options->root_workers && options->private_use && !options->key_file && !options->munge;
	plan.worker.seccomp = options->seccomp;
	memcpy(plan.worker.driver, options->driver, sizeof plan.worker.driver);
	raise_descriptor_limit();
	/* A private daemon serves its own user, whose programs may make every system call too. */
	if (options->seccomp && !filter_supported())
		hr_log(options->private_use ? HR_LOG_INFO : HR_LOG_WARN, "built without libseccomp: workers may make every system call");
	int error = find_user(options->user, &plan.worker.other_uid);
	if (!error)
		error = open_door(daemon);
	if (!error)
		error = tell_link_addresses(daemon);
	if (!error)
		error = open_signals(daemon, &plan.signals);
	if (!error)
		error = pool_open(&plan, &daemon->pool);
	if (!error)
		error = open_metrics(daemon, &plan);
	daemon->waiting = calloc(WAITING_MAX, sizeof *daemon->waiting);
	return error ? error : daemon->waiting ? 0 : -ENOMEM;
}

int daemon_run(struct daemon_options *options, int argc, char **argv)
{
	struct daemon daemon = { .options = options, .argc = argc, .argv = argv, .signal_fd = -1, .status = EXIT_SUCCESS,
				 .since_ms = now_ms() };
	if (daemon_open(&daemon))
		daemon.status = EXIT_FAILURE;
	else
		while (!daemon.ending)
			turn(&daemon);
	systemd_notify("STOPPING=1");
	/* The door is closed first, so that no client connects while the workers end. */
	rc_door_close(daemon.door);
	refuse_waiting(&daemon);
	metrics_close(daemon.metrics);
	pool_close(daemon.pool);
	free(daemon.waiting);
	if (daemon.signal_fd >= 0)
		close(daemon.signal_fd);
	return daemon.status;
}
