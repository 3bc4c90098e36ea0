/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts worker processes by exec. */
#define _GNU_SOURCE /* environ, memfd_create */
#include "cuda_remote/server/daemon/launch.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Variables for the daemon only, removed from a worker's environment. */
static const char *const withheld[] = { "HEADRACE_KEY_FILE", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC",
					"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "CREDENTIALS_DIRECTORY" };

/* ---- environment ---- */

static bool is_variable(const char *entry, const char *name)
{
	size_t n = strlen(name);
	return !strncmp(entry, name, n) && entry[n] == '=';
}

static bool is_withheld(const char *entry)
{
	for (size_t i = 0; i < sizeof withheld / sizeof *withheld; i++)
		if (is_variable(entry, withheld[i]))
			return true;
	return false;
}

/* The caller frees the array; the entries are the daemon's own. NULL: no memory. */
static char **make_environment(void)
{
	size_t n = 0, kept = 0;
	while (environ[n])
		n++;
	char **entries = calloc(n + 1, sizeof *entries);
	for (size_t i = 0; i < n && entries; i++)
		if (!is_withheld(environ[i]))
			entries[kept++] = environ[i];
	return entries;
}

/* ---- memory that daemon and worker share ---- */

/* Sealed: if a worker could make the memory smaller, the daemon would get SIGBUS. */
static int make_usage(const struct worker_usage **usage)
{
	int fd = memfd_create("headrace-usage", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	void *memory = MAP_FAILED;
	if (!ftruncate(fd, sizeof **usage) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		memory = mmap(NULL, sizeof **usage, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		int error = -errno;
		close(fd);
		return error;
	}
	*usage = memory;
	return fd;
}

/* ---- in the new process ---- */

static void close_others(void)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, CHILD_DESCRIPTORS, ~0u, 0))
		return;
#endif
	for (int fd = CHILD_DESCRIPTORS, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++)
		close(fd);
}

/* Duplicates the descriptors above the target numbers first, so that no dup2 closes one that is still needed. */
static bool place_descriptors(int control, int usage)
{
	int null = open("/dev/null", O_RDWR);
	null = fcntl(null, F_DUPFD, 16);
	control = fcntl(control, F_DUPFD, 16);
	usage = fcntl(usage, F_DUPFD, 16);
	return dup2(null, 0) >= 0 && dup2(control, CHILD_CONTROL) >= 0 && dup2(usage, CHILD_USAGE) >= 0;
}

static void become_worker(int control, int usage, const sigset_t *signals, char **environment, pid_t daemon)
{
	static char *const arguments[] = { "headraced", CHILD_ARGUMENT, NULL };
	if (child_follow(daemon) || !place_descriptors(control, usage))
		_exit(EXIT_FAILURE);
	close_others();
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, signals, NULL);
	/* This is the running program even if its file has been replaced. */
	execve("/proc/self/exe", arguments, environment);
	hr_log(HR_LOG_ERROR, "cannot start a worker from /proc/self/exe: %s", strerror(errno));
	_exit(EXIT_FAILURE);
}

/* ---- in the daemon ---- */

static int start(const sigset_t *signals, int control, int usage, pid_t *pid)
{
	char **environment = make_environment();
	if (!environment)
		return -ENOMEM;
	pid_t daemon = getpid();
	*pid = fork();
	if (*pid == 0)
		become_worker(control, usage, signals, environment, daemon);
	int error = *pid < 0 ? -errno : 0;
	free(environment);
	return error;
}

int launch(const struct child_plan *plan, const sigset_t *signals, struct launched *worker)
{
	int pair[2];
	int usage = make_usage(&worker->usage);
	if (usage < 0)
		return usage;
	int error = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ? -errno : 0;
	worker->control = error ? -1 : pair[0];
	if (!error && send(pair[0], plan, sizeof *plan, MSG_NOSIGNAL) != (ssize_t)sizeof *plan)
		error = -errno;
	if (!error)
		error = start(signals, pair[1], usage, &worker->pid);
	if (!error && fcntl(pair[0], F_SETFL, O_NONBLOCK))
		error = -errno;
	if (worker->control >= 0)
		close(pair[1]);
	close(usage);
	if (error)
		launch_forget(worker);
	return error;
}

void launch_forget(struct launched *worker)
{
	if (worker->control >= 0)
		close(worker->control);
	munmap((void *)(uintptr_t)worker->usage, sizeof *worker->usage);
}
