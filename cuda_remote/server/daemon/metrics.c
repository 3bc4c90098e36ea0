/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's side of the metrics: the sockets, the process, its questions. */
#include "cuda_remote/server/daemon/metrics.h"

#include "cuda_remote/door/listen.h"
#include "cuda_remote/server/daemon/launch.h"
#include "cuda_remote/server/daemon/metrics_process.h"
#include "rdma_channel/base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RETRY_MS 1000 /* from the process's start until the next start */

static_assert(1 + METRICS_LISTENERS_MAX <= LAUNCH_DESCRIPTORS_MAX, "launch");

struct metrics {
	struct metrics_options options;
	struct door_listener listeners[METRICS_LISTENERS_MAX];
	size_t count;
	int control; /* -1: no process */
	pid_t pid;
	int64_t start_ms; /* of the process; CLOCK_MONOTONIC */
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int send_plan(const struct metrics *metrics, int fd)
{
	struct metrics_plan plan = { .listeners = (uint32_t)metrics->count, .uid = metrics->options.uid,
				     .seccomp = metrics->options.seccomp };
	snprintf(plan.driver, sizeof plan.driver, "%s", metrics->options.driver);
	return send(fd, &plan, sizeof plan, MSG_NOSIGNAL) == (ssize_t)sizeof plan ? 0 : -errno;
}

static int start_process(struct metrics *metrics)
{
	int pair[2], descriptors[1 + METRICS_LISTENERS_MAX];
	metrics->start_ms = now_ms();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	descriptors[0] = pair[1];
	for (size_t i = 0; i < metrics->count; i++)
		descriptors[1 + i] = metrics->listeners[i].fd;
	int error = send_plan(metrics, pair[0]);
	if (!error && fcntl(pair[0], F_SETFL, O_NONBLOCK))
		error = -errno;
	if (!error)
		error = launch_process(METRICS_ARGUMENT, descriptors, 1 + metrics->count, &metrics->options.signals, &metrics->pid);
	close(pair[1]);
	if (error) {
		close(pair[0]);
		hr_log(HR_LOG_ERROR, "metrics: cannot start the process: %s", strerror(-error));
		return error;
	}
	metrics->control = pair[0];
	return 0;
}

int metrics_open(const struct metrics_options *options, struct metrics **out)
{
	struct metrics *metrics = calloc(1, sizeof *metrics);
	if (!metrics)
		return -ENOMEM;
	metrics->options = *options;
	metrics->control = -1;
	/* The counters name no user and no program, so whoever may connect may read them. */
	int error = door_listen(&options->place, true, metrics->listeners, METRICS_LISTENERS_MAX, &metrics->count);
	if (!error)
		error = start_process(metrics);
	if (error) {
		metrics_close(metrics);
		return error;
	}
	*out = metrics;
	return 0;
}

int metrics_fd(const struct metrics *metrics)
{
	return metrics ? metrics->control : -1;
}

static void close_control(struct metrics *metrics)
{
	if (metrics->control >= 0)
		close(metrics->control);
	metrics->control = -1;
}

bool metrics_asked(struct metrics *metrics)
{
	char byte;
	if (!metrics || metrics->control < 0)
		return false;
	ssize_t n = recv(metrics->control, &byte, 1, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_control(metrics);
	return n > 0;
}

void metrics_answer(struct metrics *metrics, const struct rc_counters *counters)
{
	if (send(metrics->control, counters, sizeof *counters, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof *counters)
		hr_log(HR_LOG_DEBUG, "metrics: the process does not read its answer");
}

int metrics_keep(struct metrics *metrics)
{
	int status;
	if (!metrics)
		return -1;
	if (metrics->pid > 0 && waitpid(metrics->pid, &status, WNOHANG) == metrics->pid) {
		hr_log(HR_LOG_ERROR, "metrics: the process has ended (%s %d); another will start",
		       WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		metrics->pid = 0;
		close_control(metrics);
	}
	if (metrics->pid > 0)
		return -1;
	int64_t left = metrics->start_ms + RETRY_MS - now_ms();
	if (left > 0)
		return (int)left;
	return start_process(metrics) ? RETRY_MS : -1;
}

void metrics_close(struct metrics *metrics)
{
	if (!metrics)
		return;
	close_control(metrics);
	if (metrics->pid > 0) {
		kill(metrics->pid, SIGKILL);
		waitpid(metrics->pid, NULL, 0);
	}
	for (size_t i = 0; i < metrics->count; i++)
		door_listener_close(&metrics->listeners[i]);
	free(metrics);
}
