/* SPDX-License-Identifier: BSD-3-Clause */
/* headraced's loop: signals, the door, the workers' first words, and guests who wait for a worker. */
#include "cuda_remote/server/daemon/daemon.h"

#include "cuda_remote/server/daemon/pool.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAITING_MAX 256
#define WAITING_MS 30000 /* a guest waits this long for a worker to be ready */
#define STARTING_MAX 64
#define DESCRIPTORS 16384

struct waiting {
	rc_door_peer_t guest;
	int64_t until_ms;
};

struct daemon {
	const struct daemon_options *options;
	rc_door_t *door;
	struct pool *pool;
	int signal_fd;
	bool announced, ending;
	int status; /* exit status */
	struct waiting *waiting; /* NEW guests, in order of arrival */
	size_t waiting_count;
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* ---- guests ---- */

/* What to tell people who ask what is served here. */
static void describe(const struct daemon *daemon, char *text, size_t size)
{
	snprintf(text, size, "headraced %s, %s", HR_VERSION,
		 daemon->options->software ? "software GPU" : "NVIDIA driver");
}

static void answer_status(struct daemon *daemon, const rc_door_peer_t *guest)
{
	struct pool_counts counts;
	char text[RC_DOOR_TEXT_MAX];
	pool_count(daemon->pool, &counts);
	describe(daemon, text, sizeof text);
	(void)rc_door_peer_welcome(guest, NULL, counts.gpus, counts.serving, counts.ready, text);
	close(guest->fd);
}

/* How many sessions there are. */
static void answer_report(struct daemon *daemon, const rc_door_peer_t *guest)
{
	struct pool_counts counts;
	char text[RC_DOOR_TEXT_MAX];
	rc_door_report_t report = { .count = 0 };
	pool_count(daemon->pool, &counts);
	report.hidden = counts.serving;
	describe(daemon, text, sizeof text);
	if (!rc_door_peer_welcome(guest, NULL, counts.gpus, counts.serving, counts.ready, text))
		(void)rc_door_peer_report(guest, &report);
	close(guest->fd);
}

/* True: the guest has been dealt with; false: it must wait. */
static bool admit(struct daemon *daemon, const rc_door_peer_t *guest)
{
	struct pool_counts counts;
	pool_count(daemon->pool, &counts);
	if (counts.gpus && guest->gpu != RC_SERVER_ALL_GPUS && guest->gpu >= counts.gpus) {
		rc_door_peer_refuse(guest, RC_DOOR_NO_GPU, "no such GPU index %u: the server has %u", guest->gpu,
				     counts.gpus);
		return true;
	}
	if (!counts.gpus && !counts.failures)
		return false;
	switch (pool_admit(daemon->pool, guest)) {
	case 0: return true;
	case -EAGAIN: return false;
	case -EBUSY:
		rc_door_peer_refuse(guest, RC_DOOR_BUSY, "the server has as many clients as it takes (%u)",
				     daemon->options->max_clients);
		return true;
	default:
		rc_door_peer_refuse(guest, RC_DOOR_FAILED, "the server cannot start a worker: its log says why");
		return true;
	}
}

static void handle_new(struct daemon *daemon, const rc_door_peer_t *guest)
{
	/* Who came first is served first. */
	if (!daemon->waiting_count && admit(daemon, guest))
		return;
	if (daemon->waiting_count == WAITING_MAX) {
		rc_door_peer_refuse(guest, RC_DOOR_BUSY, "too many clients wait for a worker; try again");
		return;
	}
	daemon->waiting[daemon->waiting_count++] = (struct waiting){ *guest, now_ms() + WAITING_MS };
}

static void handle_guest(struct daemon *daemon, const rc_door_peer_t *guest)
{
	switch (guest->purpose) {
	case RC_DOOR_NEW: handle_new(daemon, guest); break;
	case RC_DOOR_STATUS: answer_status(daemon, guest); break;
	case RC_DOOR_REPORT: answer_report(daemon, guest); break;
	case RC_DOOR_JOIN:
		if (pool_join(daemon->pool, guest))
			rc_door_peer_refuse(guest, RC_DOOR_NO_SESSION, "no such session: its worker has ended");
		break;
	}
}

static void serve_waiting(struct daemon *daemon)
{
	size_t done = 0;
	for (; done < daemon->waiting_count; done++) {
		struct waiting *first = &daemon->waiting[done];
		if (admit(daemon, &first->guest))
			continue;
		if (first->until_ms > now_ms())
			break;
		rc_door_peer_refuse(&first->guest, RC_DOOR_BUSY, "no worker became ready in %d s", WAITING_MS / 1000);
	}
	if (!done)
		return;
	daemon->waiting_count -= done;
	memmove(daemon->waiting, daemon->waiting + done, daemon->waiting_count * sizeof *daemon->waiting);
}

/* ---- readiness ---- */

/* sd_notify(3) without the library: one datagram to the socket that systemd names. */
static void notify_systemd(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof address.sun_path)
		return;
	memcpy(address.sun_path, path, strlen(path));
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (*path == '@')
		address.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, length);
		close(fd);
	}
}

/* Clients may come once a worker is ready; that none can ever be is fatal only at the start. */
static void announce(struct daemon *daemon)
{
	struct pool_counts counts;
	pool_count(daemon->pool, &counts);
	if (daemon->announced)
		return;
	if (counts.failures) {
		daemon->ending = true;
		daemon->status = EXIT_FAILURE;
		return;
	}
	if (!counts.gpus)
		return;
	daemon->announced = true;
	notify_systemd("READY=1");
	if (daemon->options->ready_fd >= 0) {
		(void)!write(daemon->options->ready_fd, "ready\n", 6);
		close(daemon->options->ready_fd);
	}
	char text[RC_DOOR_TEXT_MAX];
	describe(daemon, text, sizeof text);
	hr_log(HR_LOG_INFO, "%s: ready, %u GPU%s", text, counts.gpus, counts.gpus == 1 ? "" : "s");
}

/* ---- the loop ---- */

static void read_signals(struct daemon *daemon)
{
	struct signalfd_siginfo info;
	while (read(daemon->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGCHLD) {
			pool_listen(daemon->pool);
			pool_reap(daemon->pool);
			continue;
		}
		hr_log(HR_LOG_INFO, "ending on signal %u", info.ssi_signo);
		daemon->ending = true;
	}
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

static int waiting_timeout(const struct daemon *daemon)
{
	if (!daemon->waiting_count)
		return -1;
	int64_t left = daemon->waiting[0].until_ms - now_ms();
	return left > 0 ? (int)left : 0;
}

static void turn(struct daemon *daemon)
{
	struct pollfd set[3 + STARTING_MAX] = {
		{ .fd = daemon->signal_fd, .events = POLLIN },
		{ .fd = rc_door_fd(daemon->door), .events = POLLIN },
		{ .fd = daemon->options->watch_fd, .events = POLLIN }, /* -1 is passed over */
	};
	int timeout = pool_refill(daemon->pool);
	timeout = sooner(timeout, rc_door_timeout(daemon->door));
	timeout = sooner(timeout, waiting_timeout(daemon));
	size_t starting = pool_poll_set(daemon->pool, set + 3, STARTING_MAX);
	if (poll(set, 3 + starting, timeout) < 0)
		return;
	if (set[0].revents)
		read_signals(daemon);
	if (set[2].revents)
		read_watch(daemon);
	pool_listen(daemon->pool);
	announce(daemon);
	rc_door_peer_t guest;
	while (!daemon->ending && rc_door_next(daemon->door, &guest) == 1)
		handle_guest(daemon, &guest);
	serve_waiting(daemon);
}

/* ---- opening and closing ---- */

/* In a fresh worker: the daemon's descriptors are not the worker's business. */
static void leave_daemon(void *context)
{
	struct daemon *daemon = context;
	rc_door_abandon(daemon->door);
	close(daemon->signal_fd);
	if (daemon->options->watch_fd >= 0)
		close(daemon->options->watch_fd);
	if (daemon->options->ready_fd >= 0 && !daemon->announced)
		close(daemon->options->ready_fd);
	for (size_t i = 0; i < daemon->waiting_count; i++)
		close(daemon->waiting[i].guest.fd);
}

static int open_door(struct daemon *daemon)
{
	const struct daemon_options *options = daemon->options;
	rc_door_policy_t policy = { .own_user_only = options->private_use, .encrypt = options->encrypt };
	if (options->key_file) {
		int error = rc_door_key_load(options->key_file, &policy.key);
		if (error)
			return error;
		policy.have_key = true;
	}
	int error = rc_door_open(&policy, &daemon->door);
	explicit_bzero(&policy, sizeof policy);
	for (size_t i = 0; i < options->place_count && !error; i++)
		error = rc_door_listen(daemon->door, &options->places[i]);
	/* Another user's daemon may have the port: the Unix socket remains. */
	if (!error && options->loopback) {
		rc_server_t loopback = { .host = "127.0.0.1", .port = RC_DOOR_PORT };
		if (rc_door_listen(daemon->door, &loopback))
			hr_log(HR_LOG_WARN, "not listening at loopback; --no-loopback says that this is meant");
	}
	return error;
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

/* A connection and a control socket for each client: the soft limit's usual 1024 would be soon used up. */
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
		hr_log(HR_LOG_ERROR, "--user=%s: there is no such user", name);
		return -EINVAL;
	}
	*uid = user->pw_uid;
	return 0;
}

static int daemon_open(struct daemon *daemon)
{
	struct pool_plan plan = { .driver = daemon->options->driver,
				  .ready = daemon->options->workers,
				  .max_clients = daemon->options->max_clients,
				  .leave = leave_daemon,
				  .context = daemon };
	raise_descriptor_limit();
	int error = find_user(daemon->options->user, &plan.other_uid);
	if (!error)
		error = open_door(daemon);
	if (!error)
		error = open_signals(daemon, &plan.signals);
	if (!error)
		error = pool_open(&plan, &daemon->pool);
	daemon->waiting = calloc(WAITING_MAX, sizeof *daemon->waiting);
	return error ? error : daemon->waiting ? 0 : -ENOMEM;
}

int daemon_run(const struct daemon_options *options)
{
	struct daemon daemon = { .options = options, .signal_fd = -1, .status = EXIT_SUCCESS };
	if (daemon_open(&daemon))
		daemon.status = EXIT_FAILURE;
	else
		while (!daemon.ending)
			turn(&daemon);
	notify_systemd("STOPPING=1");
	/* The socket file goes first, so that nobody comes while the workers end. */
	rc_door_close(daemon.door);
	for (size_t i = 0; i < daemon.waiting_count; i++)
		rc_door_peer_refuse(&daemon.waiting[i].guest, RC_DOOR_FAILED, "the server is ending");
	pool_close(daemon.pool);
	free(daemon.waiting);
	if (daemon.signal_fd >= 0)
		close(daemon.signal_fd);
	return daemon.status;
}
