/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts worker processes by exec. */
#define _GNU_SOURCE /* environ, memfd_create */
#include "cuda_remote/server/daemon/launch.h"

#include "rdma_channel/base/log.h"

#include <assert.h>
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

static_assert(CHILD_CONTROL == 3 && CHILD_USAGE == 4 && CHILD_DESCRIPTORS == 5, "launch");

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

static void close_others(unsigned first)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, first, ~0u, 0))
		return;
#endif
	for (int fd = (int)first, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++)
		close(fd);
}

/* Duplicates the descriptors above the target numbers first, so that no dup2 closes one that is still needed. */
static bool place_descriptors(const int *descriptors, size_t count)
{
	int high[LAUNCH_DESCRIPTORS_MAX];
	int null = open("/dev/null", O_RDWR);
	null = fcntl(null, F_DUPFD, 3 + LAUNCH_DESCRIPTORS_MAX);
	for (size_t i = 0; i < count; i++)
		high[i] = fcntl(descriptors[i], F_DUPFD, 3 + LAUNCH_DESCRIPTORS_MAX);
	bool placed = dup2(null, 0) >= 0;
	for (size_t i = 0; i < count; i++)
		placed = dup2(high[i], 3 + (int)i) >= 0 && placed;
	return placed;
}

static void become(const char *argument, const int *descriptors, size_t count, const sigset_t *signals,
		   char **environment, pid_t daemon)
{
	char *const arguments[] = { "headraced", (char *)(uintptr_t)argument, NULL };
	if (child_follow(daemon) || !place_descriptors(descriptors, count))
		_exit(EXIT_FAILURE);
	close_others(3 + (unsigned)count);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, signals, NULL);
	/* This is the running program even if its file has been replaced. */
	execve("/proc/self/exe", arguments, environment);
	hr_log(HR_LOG_ERROR, "cannot start a process from /proc/self/exe: %s", strerror(errno));
	_exit(EXIT_FAILURE);
}

/* ---- in the daemon ---- */

int launch_process(const char *argument, const int *descriptors, size_t count, const sigset_t *signals, pid_t *pid)
{
	char **environment = count <= LAUNCH_DESCRIPTORS_MAX ? make_environment() : NULL;
	if (!environment)
		return -ENOMEM;
	pid_t daemon = getpid();
	*pid = fork();
	if (*pid == 0)
		become(argument, descriptors, count, signals, environment, daemon);
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
		error = launch_process(CHILD_ARGUMENT, (int[]){ pair[1], usage }, 2, signals, &worker->pid);
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
