/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watcher: a thread that ends the process soon after the client has ended, whatever the other threads do. They may
 * be waiting for a call that never arrives, a kernel that never ends or a host function that never returns. So the
 * watcher calls neither the driver nor the allocator, and the locks that it takes are never held by a thread that
 * waits.
 *
 * It watches the socket that the first connection was set up over. Every transport keeps that socket open while the
 * connection lives, so its end is the client's end.
 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "cuda_remote/server/ipc/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds that the process has to end by itself after the client has ended. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRACE_MS 5000 /* a sanitizer looks for leaks at the end */
#else
#define GRACE_MS 500
#endif

/* The same while a client's descriptor keeps memory of the session, so that the process remains: it first frees the rest. */
#define GRACE_HELD_MS 5000

static bool remaining; /* atomic */

static struct {
	int socket; /* the socket; a descriptor of the watcher's own */
	int ending; /* eventfd: the worker ends for another reason */
} watch = { .socket = -1, .ending = -1 };

/* True: the peer has closed its end or died. Bytes that it sent before may still be unread. */
static bool wait_for_end(void)
{
	struct pollfd set[] = { { watch.socket, POLLRDHUP, 0 }, { watch.ending, POLLIN, 0 } };
	for (;;) {
		if (poll(set, 2, -1) < 0)
			continue; /* EINTR or ENOMEM */
		if (set[0].revents || set[1].revents)
			return set[0].revents != 0;
	}
}

static void sleep_ms(unsigned ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000L };
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void *watch_peer(void *argument)
{
	(void)argument;
	bool gone = wait_for_end();
	/* This descriptor must not keep the connection open after the worker has closed its own. */
	close(watch.socket);
	if (gone)
		server_worker_break(-ECONNRESET);
	sleep_ms(meeting_is_held() ? GRACE_HELD_MS : GRACE_MS);
	if (__atomic_load_n(&remaining, __ATOMIC_RELAXED))
		return NULL;
	/* No log message here: standard error may be a full pipe, and a write would block. The daemon logs the end. */
	_exit(gone ? EXIT_SUCCESS : EXIT_FAILURE);
}

int server_watch_start(const rc_door_peer_t *peer)
{
	pthread_t thread;
	pthread_attr_t attr;
	sigset_t all, before;
	watch.socket = fcntl(peer->fd, F_DUPFD_CLOEXEC, 0);
	watch.ending = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watch.socket < 0 || watch.ending < 0)
		return -errno;
	/* The watcher blocks all signals; the other threads receive them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	int error = -pthread_create(&thread, &attr, watch_peer, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

void server_watch_remain(void)
{
	__atomic_store_n(&remaining, true, __ATOMIC_RELAXED);
}

void server_watch_end(void)
{
	uint64_t one = 1;
	if (watch.ending >= 0 && write(watch.ending, &one, sizeof one) < 0) {
		/* The counter is full, so the watcher has been notified already. */
	}
}
