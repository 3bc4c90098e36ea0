/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a headraced that serves one program and ends with it. */
#define _GNU_SOURCE /* pipe2 */
#include "cuda_remote/run/private.h"

#include "cuda_remote/run/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 60000 /* loading a driver and making its contexts can take long */

/* A descriptor that polls readable when this process ends (pidfd_open(2)). If the kernel lacks this call: a pipe whose
 * other end (*keep) stays open until the program ends, or until the program closes descriptors that it did not open. */
static int open_watch(int *keep)
{
	*keep = -1;
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fd >= 0)
		return fd;
	int ends[2];
	if (pipe(ends))
		return -errno;
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	*keep = ends[1];
	return ends[0];
}

/* In the grandchild: begins a new session, so that it gets no signals from the terminal; keeps only the two
 * descriptors; executes headraced. */
static void become_daemon(const char *path, const char *name, const char *driver, int ready, int watch)
{
	char socket_option[128], driver_option[PATH_MAX + 16];
	snprintf(socket_option, sizeof socket_option, "--socket=%s", name);
	snprintf(driver_option, sizeof driver_option, "--driver=%s", driver);
	int null = open("/dev/null", O_RDWR);
	if (setsid() < 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		_exit(127);
	/* Duplicates both above the target numbers first, so that no dup2 closes one that is still needed. */
	ready = fcntl(ready, F_DUPFD, 10);
	watch = fcntl(watch, F_DUPFD, 10);
	if (dup2(ready, 3) < 0 || dup2(watch, 4) < 0)
		_exit(127);
	for (int fd = 5; fd < 256; fd++)
		close(fd);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	if (chdir("/"))
		_exit(127);
	execl(path, "headraced", socket_option, driver_option, "--private", "--root-workers", "--no-loopback",
	      "--quiet", "--ready-fd=3", "--watch-fd=4", (char *)NULL);
	fprintf(stderr, "headrace-run: cannot run %s: %s\n", path, strerror(errno));
	_exit(127);
}

/* Forks twice, so that the daemon is not a child of this process. */
static int spawn(const char *path, const char *name, const char *driver, int ready, int watch)
{
	pid_t child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		pid_t daemon = fork();
		if (daemon == 0)
			become_daemon(path, name, driver, ready, watch);
		_exit(daemon < 0);
	}
	int status;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status ? -EAGAIN : 0;
}

static int await_ready(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	char line[16];
	int n;
	do
		n = poll(&wait, 1, START_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0) {
		fprintf(stderr, "headrace-run: the server did not become ready in %d s\n", START_MS / 1000);
		return -ETIMEDOUT;
	}
	/* End of file without a line: the daemon has ended, and has logged the cause. */
	return read(fd, line, sizeof line) > 0 ? 0 : -ESRCH;
}

int private_start(const char *driver, char *server, size_t size)
{
	char path[PATH_MAX], name[64];
	uint64_t random[2];
	int ready[2], keep;
	int error = rc_layout_daemon(path);
	if (error)
		return error;
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random || pipe2(ready, O_CLOEXEC))
		return -errno;
	int watch = open_watch(&keep);
	if (watch < 0) {
		error = watch;
		goto close_ready;
	}
	snprintf(name, sizeof name, "@headrace-%d-%016" PRIx64 "%016" PRIx64, (int)getpid(), random[0], random[1]);
	error = spawn(path, name, driver, ready[1], watch);
	close(watch);
	close(ready[1]);
	ready[1] = -1;
	if (!error)
		error = await_ready(ready[0]);
	if (!error)
		snprintf(server, size, "unix:%s", name);
	else if (keep >= 0)
		close(keep);
close_ready:
	if (ready[1] >= 0)
		close(ready[1]);
	close(ready[0]);
	return error;
}
