/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child of fork gets copies of all descriptors, and what it keeps open hides the parent's death from its peers. So the
 * child closes its copies of every channel's at once; its channels and connections only fail from then on, with -ECHILD.
 * Nothing else of them is touched: their memory is shared with peers, their epoll set and their adapters are the
 * parent's. Connections fail by the state that put and get look at anyway.
 *
 * Other threads may be using channels of theirs while one forks. What the child walks over, the lists of channels, of
 * connections and of watched descriptors, changes under one lock, which fork takes. A descriptor that such a thread has
 * just opened and not watched yet stays open in the child.
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
	/* Not taken out of the epoll set: that is the parent's, too. */
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
