/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process. Its main thread serves the first connection, which carries hello and host functions, and takes in the
 * connections that follow, each with a thread of its own. It sleeps in poll(2), on four descriptors at most.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct server_worker worker;

static int broken; /* atomic: the first reason to end, as a negated errno */

void server_worker_break(int error)
{
	int none = 0;
	if (!__atomic_compare_exchange_n(&broken, &none, error, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	server_turn_break();
	server_host_break();
}

/* ---- ahead of need ---- */

static int failed(const char *what, CUresult result)
{
	hr_log(HR_LOG_ERROR, "%s: %s", what, server_error_name(result));
	return result == CUDA_ERROR_NO_DEVICE ? -ENODEV : -EIO;
}

static int prepare_device(uint32_t i)
{
	CUresult result = driver.cuDeviceGet(&worker.device[i], (int)i);
	if (result == CUDA_SUCCESS)
		result = driver.cuDevicePrimaryCtxRetain(&worker.primary[i], worker.device[i]);
	if (result == CUDA_SUCCESS)
		result = server_object_new(RC_KIND_CONTEXT, worker.primary[i], NULL, &worker.primary_handle[i]);
	return result == CUDA_SUCCESS ? 0 : failed("cuDevicePrimaryCtxRetain", result);
}

int worker_prepare(const char *path, uint32_t *gpus)
{
	int error = server_driver_load(path);
	if (error)
		return error;
	CUresult result = driver.cuInit(0);
	if (result != CUDA_SUCCESS)
		return failed("cuInit", result);
	int n;
	result = driver.cuDeviceGetCount(&n);
	if (result != CUDA_SUCCESS)
		return failed("cuDeviceGetCount", result);
	if (n < 1)
		return failed("cuDeviceGetCount", CUDA_ERROR_NO_DEVICE);
	worker.gpus = n < RC_DEVICES_MAX ? (uint32_t)n : RC_DEVICES_MAX;
	for (uint32_t i = 0; i < worker.gpus && !error; i++)
		error = prepare_device(i);
	if (error)
		return error;
	result = driver.cuCtxSetCurrent(worker.primary[0]);
	if (result != CUDA_SUCCESS)
		return failed("cuCtxSetCurrent", result);
	error = server_slots_prepare();
	if (!error)
		*gpus = worker.gpus;
	return error;
}

/* ---- connections that follow the first ---- */

/* A client thread that ends closes its connection; anything else ends the worker. */
static void *serve_thread(void *argument)
{
	struct server_thread *thread = argument;
	int error = server_thread_run(thread);
	if (error != -ESHUTDOWN) {
		hr_log(error == -ECONNRESET || error == -ECANCELED ? HR_LOG_INFO : HR_LOG_ERROR, "%s: connection ended: %s",
		       thread->guest.name, strerror(-error));
		server_worker_break(error);
	}
	server_thread_close(thread);
	return NULL;
}

static void start_thread(const rc_door_peer_t *guest)
{
	struct server_thread *thread = calloc(1, sizeof *thread);
	pthread_attr_t attr;
	if (!thread) {
		rc_door_peer_refuse(guest, RC_DOOR_FAILED, "the worker has no memory");
		return;
	}
	thread->guest = *guest;
	int error = server_thread_open(thread, worker.gpus);
	if (!error) {
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		error = -pthread_create(&thread->id, &attr, serve_thread, thread);
		pthread_attr_destroy(&attr);
	}
	if (error) {
		hr_log(HR_LOG_ERROR, "%s: no further connection: %s", guest->name, strerror(-error));
		server_thread_close(thread);
	}
}

/* False: the daemon is gone; those who are here are served all the same. */
static bool take_guest(int control)
{
	rc_door_peer_t guest;
	int got = rc_door_peer_receive(control, &guest);
	if (got == 1)
		start_thread(&guest);
	return got == 1 || got == -EAGAIN || got == -EINTR;
}

/* ---- the main thread ---- */

static int serve_first(struct server_thread *first, int control)
{
	hr_channel_t *channel = ch3_channel(first->engine);
	struct pollfd fds[] = { { hr_channel_fd(channel), POLLIN, 0 }, { server_host_fd(), POLLIN, 0 }, { control, POLLIN, 0 } };
	while (!first->error && !__atomic_load_n(&broken, __ATOMIC_RELAXED)) {
		ch3_progress_poll(first->engine);
		server_thread_deferred(first);
		if (first->error || server_host_serve(first))
			break;
		int armed = hr_channel_arm(channel, 1);
		if (armed < 0)
			return armed;
		if (poll(fds, 3, armed ? 0 : -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[2].revents && !take_guest(control))
			fds[2].fd = -1;
	}
	int reason = __atomic_load_n(&broken, __ATOMIC_RELAXED);
	return reason ? reason : first->error;
}

/* A client that ends, ends its connections; one that is killed does so without a word. Neither is a failure here. */
static bool is_an_end(int error)
{
	return error == -ESHUTDOWN || error == -ECONNRESET || error == -EPIPE;
}

int worker_serve(const rc_door_peer_t *guest, int control)
{
	struct server_thread *first = calloc(1, sizeof *first);
	if (!first) {
		rc_door_peer_refuse(guest, RC_DOOR_FAILED, "the worker has no memory");
		return -ENOMEM;
	}
	first->guest = *guest;
	signal(SIGPIPE, SIG_IGN);
	int error = server_output_take();
	if (!error)
		error = server_host_prepare();
	if (error) {
		rc_door_peer_refuse(guest, RC_DOOR_FAILED, "the worker could not start: %s", strerror(-error));
		free(first);
		return error;
	}
	driver.cuCtxSetCurrent(worker.primary[0]);
	error = server_thread_open(first, worker.gpus);
	if (!error)
		error = serve_first(first, control);
	if (is_an_end(error)) {
		hr_log(HR_LOG_INFO, "%s: the client has ended", guest->name);
		error = 0;
	} else {
		hr_log(HR_LOG_ERROR, "%s: %s", guest->name, strerror(-error));
	}
	server_worker_break(-ECANCELED);
	server_thread_close(first);
	return error;
}
