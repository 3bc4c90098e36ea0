/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker process. Its main thread serves the first connection, which carries hello and host functions. The main
 * thread also accepts further connections and starts a thread for each. It sleeps in poll(2), on three descriptors.
 */
#include "cuda_remote/server/ipc/meeting.h"

#include "cuda_remote/mirror/mirror.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct server_worker worker;

#define HANDLES_MAX 256 /* held by clients at a time: each needs a thread and a descriptor */

static unsigned handles; /* atomic */
/* Threads that serve further connections. ended: signalled when the last of them ends. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	unsigned count;
} threads = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };
static int broken; /* atomic: the first reason to end, as a negated errno */

void server_worker_break(int error)
{
	int none = 0;
	if (!__atomic_compare_exchange_n(&broken, &none, error, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	server_order_break();
	server_host_break();
	server_data_break();
	server_peer_break();
	server_links_break();
	server_watch_end();
}

/* ---- before a client connects ---- */

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
	return result == CUDA_SUCCESS ? 0 : failed("cuDevicePrimaryCtxRetain", result);
}

/* Makes the driver's devices this worker's. */
static int prepare_devices(void)
{
	int n, error = 0;
	CUresult result = driver.cuDeviceGetCount(&n);
	if (result == CUDA_SUCCESS && n < 1)
		result = CUDA_ERROR_NO_DEVICE;
	if (result != CUDA_SUCCESS)
		return failed("cuDeviceGetCount", result);
	if (worker.grant != RC_SERVER_ALL_GPUS && n != 1) {
		hr_log(HR_LOG_ERROR, "the driver shows %d devices, although CUDA_VISIBLE_DEVICES names one", n);
		return -EIO;
	}
	worker.gpus = n < RC_DEVICES_MAX ? (uint32_t)n : RC_DEVICES_MAX;
	for (uint32_t i = 0; i < worker.gpus && !error; i++)
		error = prepare_device(i);
	if (error)
		return error;
	result = driver.cuCtxSetCurrent(worker.primary[0]);
	return result == CUDA_SUCCESS ? 0 : failed("cuCtxSetCurrent", result);
}

/* The software GPU's addresses begin at a place that is drawn for each worker, between 16 and 80 TiB, so that the memory of
 * two servers has different addresses in their client. Another driver ignores the variable. */
static int draw_base(void)
{
	uint32_t drawn;
	char text[32];
	if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
		return -errno;
	snprintf(text, sizeof text, "%llu", (1ull << 44) + (unsigned long long)(drawn & 0x1ffffff) * (1ull << 21));
	return setenv("HEADRACE_SOFTGPU_BASE", text, 0) ? -errno : 0;
}

int worker_prepare(const char *path, uint32_t gpu, uint32_t *gpus)
{
	worker.grant = gpu;
	int error = server_grant_hide(gpu);
	if (!error)
		error = draw_base();
	if (!error)
		error = server_driver_load(path);
	if (error)
		return error;
	/* A driver that loads code at its first use waits for the device then, and for streams that wait for another server. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	/* Streams that share a hardware queue with one that waits for another server wait too: the driver's default is 8 queues. */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	CUresult result = driver.cuInit(0);
	if (result != CUDA_SUCCESS)
		return failed("cuInit", result);
	error = prepare_devices();
	if (!error)
		error = server_slots_prepare();
	if (!error)
		*gpus = worker.gpus;
	(void)mirror_pages_open(); /* later the process may not; without it managed memory is compared */
	return error;
}

/* ---- connections that follow the first ---- */

/* Serves one connection after the first. When a client's thread ends it closes the connection. Any other end of a
 * connection over which a call has come ends the worker. */
static void serve_connection(struct server_thread *thread)
{
	int error = server_thread_open(thread, worker.gpus);
	if (error) {
		hr_log(HR_LOG_ERROR, "%s: no further connection: %s", thread->peer.name, strerror(-error));
		return;
	}
	error = server_thread_run(thread);
	if (error == -ESHUTDOWN)
		return;
	if (!thread->began) {
		/* No numbered call is lost with this connection, so the session can go on. */
		hr_log(HR_LOG_ERROR, "%s: a further connection failed before its first call: %s", thread->peer.name, strerror(-error));
		return;
	}
	hr_log(error == -ECONNRESET || error == -ECANCELED ? HR_LOG_INFO : HR_LOG_ERROR, "%s: connection ended: %s",
	       thread->peer.name, strerror(-error));
	server_worker_break(error);
}

static void count_thread(int by)
{
	pthread_mutex_lock(&threads.lock);
	threads.count += (unsigned)by;
	if (!threads.count)
		pthread_cond_signal(&threads.ended);
	pthread_mutex_unlock(&threads.lock);
}

static void wait_for_threads(void)
{
	pthread_mutex_lock(&threads.lock);
	while (threads.count)
		pthread_cond_wait(&threads.ended, &threads.lock);
	pthread_mutex_unlock(&threads.lock);
}

static void *serve_thread(void *argument)
{
	struct server_thread *thread = argument;
	if (thread->peer.purpose == RC_DOOR_MEMORY) {
		server_pinned_serve(&thread->peer);
		free(thread);
	} else {
		server_usage_connection(true);
		serve_connection(thread);
		server_thread_close(thread);
		server_usage_connection(false);
	}
	server_limit_return(SERVER_LIMIT_CONNECTIONS, 1);
	count_thread(-1);
	return NULL;
}

/* In a thread of its own, which is not one of the session's connections: programs may keep many handles. */
static void *serve_handle(void *argument)
{
	rc_door_peer_t *peer = argument;
	meeting_hold(peer);
	free(peer);
	__atomic_sub_fetch(&handles, 1, __ATOMIC_RELAXED);
	return NULL;
}

static int spawn(void *(*serve)(void *), void *argument)
{
	pthread_t thread;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	int error = -pthread_create(&thread, &attr, serve, argument);
	pthread_attr_destroy(&attr);
	return error;
}

static void start_handle(const rc_door_peer_t *peer)
{
	if (__atomic_add_fetch(&handles, 1, __ATOMIC_RELAXED) > HANDLES_MAX) {
		__atomic_sub_fetch(&handles, 1, __ATOMIC_RELAXED);
		rc_door_peer_refuse(peer, RC_DOOR_BUSY, "the session has %u handles that are held already", HANDLES_MAX);
		return;
	}
	rc_door_peer_t *own = malloc(sizeof *own);
	int error = own ? 0 : -ENOMEM;
	if (own) {
		*own = *peer;
		error = spawn(serve_handle, own);
	}
	if (error) {
		rc_door_peer_refuse(peer, RC_DOOR_FAILED, "the worker cannot start a thread: %s", strerror(-error));
		free(own);
		__atomic_sub_fetch(&handles, 1, __ATOMIC_RELAXED);
	}
}

static void start_thread(const rc_door_peer_t *peer)
{
	if (!server_limit_take(SERVER_LIMIT_CONNECTIONS, 1)) {
		rc_door_peer_refuse(peer, RC_DOOR_BUSY, "the session has %llu more connections already, "
				     "as many as the server's HEADRACE_SESSION_CONNECTIONS allows",
				     (unsigned long long)server_limit(SERVER_LIMIT_CONNECTIONS));
		return;
	}
	struct server_thread *thread = calloc(1, sizeof *thread);
	int error = -ENOMEM;
	if (thread) {
		thread->peer = *peer;
		count_thread(1);
		error = spawn(serve_thread, thread);
		if (error)
			count_thread(-1);
	}
	if (error) {
		rc_door_peer_refuse(peer, RC_DOOR_FAILED, "the worker cannot start a thread: %s", strerror(-error));
		server_limit_return(SERVER_LIMIT_CONNECTIONS, 1);
		free(thread);
	}
}

/* Takes a peer from the daemon. False: the daemon has ended, so no peer will follow. True also if this peer is lost. */
static bool take_peer(int control)
{
	rc_door_peer_t peer;
	int got = rc_door_peer_receive(control, &peer);
	if (got == 1 && peer.purpose == RC_DOOR_HANDLE)
		start_handle(&peer);
	else if (got == 1)
		start_thread(&peer);
	else if (got == -EMFILE)
		hr_log(HR_LOG_ERROR, "a further connection of the client was closed: the worker has no file descriptor left");
	return got == 1 || got == -EAGAIN || got == -EINTR || got == -EMFILE || got == -EPROTO;
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
		/* A call may have arrived while a host function was sent. */
		if (poll(fds, 3, armed || first->deferred ? 0 : -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[2].revents && !take_peer(control))
			fds[2].fd = -1;
	}
	int reason = __atomic_load_n(&broken, __ATOMIC_RELAXED);
	return reason ? reason : first->error;
}

/* True if the error means that the client has ended, normally or killed. For the worker this is no failure. */
static bool is_an_end(int error)
{
	return error == -ESHUTDOWN || error == -ECONNRESET || error == -EPIPE;
}

/*
 * The client has ended, and another process holds a handle of its memory. Frees the rest of the session, and keeps that memory
 * until no process holds a handle. Meanwhile the session counts as one that goes on. If a kernel or a call never ends, the
 * watcher ends the process.
 */
static void keep_held_memory(const char *client)
{
	wait_for_threads();
	server_contexts_finish();
	server_virtual_finish();
	server_pinned_finish();
	server_watch_remain();
	hr_log(HR_LOG_INFO, "%s: the session goes on: another process has a descriptor of its memory", client);
	meeting_wait();
}

int worker_serve(const rc_door_peer_t *peer, int control)
{
	struct server_thread *first = calloc(1, sizeof *first);
	if (!first) {
		rc_door_peer_refuse(peer, RC_DOOR_FAILED, "the worker has no memory");
		return -ENOMEM;
	}
	first->peer = *peer;
	worker.owner = (struct server_owner){ .by_key = peer->by_key, .user = peer->by_key ? 0 : peer->uid };
	memcpy(worker.owner.key_id, peer->key_id, sizeof worker.owner.key_id);
	signal(SIGPIPE, SIG_IGN);
	int error = server_grant_narrow(peer->gpu);
	if (!error)
		error = server_watch_start(peer);
	if (!error)
		error = server_limits_prepare();
	if (!error)
		error = server_output_take();
	if (!error)
		error = server_host_prepare();
	if (!error)
		error = server_data_prepare();
	if (error) {
		rc_door_peer_refuse(peer, RC_DOOR_FAILED, "the worker could not start: %s", strerror(-error));
		free(first);
		return error;
	}
	server_links_prepare(peer);
	driver.cuCtxSetCurrent(worker.primary[0]);
	error = server_thread_open(first, worker.gpus);
	if (!error)
		error = serve_first(first, control);
	if (is_an_end(error)) {
		hr_log(HR_LOG_INFO, "%s: the client has ended", peer->name);
		error = 0;
	} else {
		hr_log(HR_LOG_ERROR, "%s: %s", peer->name, strerror(-error));
	}
	server_worker_break(-ECANCELED);
	server_thread_close(first);
	if (meeting_is_held())
		keep_held_memory(peer->name);
	return error;
}
