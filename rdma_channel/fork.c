/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(2) and channels. A forked child gets copies of all descriptors. While it keeps a stream open, the peer does not
 * notice the parent's death. So the child closes its copies of all channels' descriptors at once, and its copies of the
 * channels and connections only return -ECHILD. The child leaves everything else as it is: the memory is shared with
 * the peers, and the epoll set and the adapters belong to the parent. A connection fails by fields that put and get
 * check anyway.
 *
 * Other threads may use their channels while one thread forks. The child walks over the lists of channels, connections
 * and watched descriptors; these change under one lock, which fork takes. If another thread has just opened a
 * descriptor and not yet watched it, the descriptor stays open in the child.
 */
#include "rdma_channel/impl.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, hr_channel) channels = LIST_HEAD_INITIALIZER(channels);

void hr_fork_lock(void)
{
	pthread_mutex_lock(&lock);
}

void hr_fork_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void leave_to_parent(struct hr_channel *channel)
{
	struct hr_watch *watch;
	struct hr_conn *conn;
	channel->forked = true;
	LIST_FOREACH(watch, &channel->watches, place) {
		close(watch->fd);
		watch->fd = -1;
	}
	/* Do not remove the descriptors from the epoll set: the parent uses the same set. */
	if (channel->epoll >= 0)
		close(channel->epoll);
	channel->epoll = -1;
	TAILQ_FOREACH(conn, &channel->conns, all) {
		conn->phase = HR_PHASE_FAILED;
		conn->attention = 0;
		conn->error = -ECHILD;
	}
}

static void in_child(void)
{
	struct hr_channel *channel;
	LIST_FOREACH(channel, &channels, all)
		leave_to_parent(channel);
	hr_fork_unlock();
}

static int watch_forks_error;

static void watch_forks(void)
{
	watch_forks_error = pthread_atfork(hr_fork_lock, hr_fork_unlock, in_child);
}

int hr_fork_register(struct hr_channel *channel)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, watch_forks);
	if (watch_forks_error)
		return -watch_forks_error;
	hr_fork_lock();
	LIST_INSERT_HEAD(&channels, channel, all);
	hr_fork_unlock();
	return 0;
}

void hr_fork_forget(struct hr_channel *channel)
{
	hr_fork_lock();
	LIST_REMOVE(channel, all);
	hr_fork_unlock();
}
