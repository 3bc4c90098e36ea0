/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors and sleeping. Every descriptor of a channel is in one epoll set from its first to its last day,
 * edge-triggered: no system call to change what is waited for, and a dead peer's stream does not keep waking us.
 */
#include "rdma_channel/impl.h"

#include "rdma_channel/barrier.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS_PER_CALL 32

int hr_watch_add(struct hr_channel *channel, struct hr_watch *watch, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = watch };
	if (epoll_ctl(channel->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
		hr_log(HR_LOG_ERROR, "epoll_ctl: %s", strerror(errno));
		return -errno;
	}
	watch->fd = fd;
	return 0;
}

void hr_watch_move(struct hr_channel *channel, struct hr_watch *to, struct hr_watch *from)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = to };
	epoll_ctl(channel->epoll, EPOLL_CTL_MOD, from->fd, &event); /* cannot fail: it is in the set */
	to->fd = from->fd;
	from->fd = -1;
}

void hr_watch_remove(struct hr_channel *channel, struct hr_watch *watch)
{
	if (watch->fd >= 0)
		epoll_ctl(channel->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->fd = -1;
}

int hr_events_open(struct hr_channel *channel)
{
	channel->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (channel->epoll < 0)
		return -errno;
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timer < 0)
		return -errno;
	int error = hr_watch_add(channel, &channel->timer, timer);
	if (error)
		close(timer);
	return error;
}

void hr_events_close(struct hr_channel *channel)
{
	if (channel->timer.fd >= 0)
		close(channel->timer.fd);
	if (channel->epoll >= 0)
		close(channel->epoll);
	channel->timer.fd = channel->epoll = -1;
}

static void on_event(struct hr_channel *channel, struct hr_watch *watch)
{
	struct hr_conn *conn = watch->owner;
	switch (watch->kind) {
	case HR_WATCH_LISTENER:
		hr_listen_accept(channel, watch);
		break;
	case HR_WATCH_PENDING:
		hr_pending_step(watch->owner);
		break;
	case HR_WATCH_CONN:
		if (conn->phase == HR_PHASE_UP)
			conn->transport->conn_event(conn->data);
		else
			hr_conn_step(conn);
		break;
	case HR_WATCH_TIMER: /* set-ups are stepped in any case */
		break;
	}
}

int hr_events_take(struct hr_channel *channel, int timeout_ms)
{
	int taken = 0;
	for (;;) {
		struct epoll_event events[EVENTS_PER_CALL];
		int n = epoll_wait(channel->epoll, events, EVENTS_PER_CALL, taken ? 0 : timeout_ms);
		if (n < 0)
			return taken ? taken : -errno;
		/* Nothing that an event points to is freed in here: pending streams are only marked. */
		for (int i = 0; i < n; i++)
			on_event(channel, events[i].data.ptr);
		hr_pending_reap(channel);
		taken += n;
		if (n < EVENTS_PER_CALL)
			return taken;
	}
}

void hr_channel_step(struct hr_channel *channel)
{
	hr_events_take(channel, 0);
	if (channel->accept_again)
		hr_listen_accept_all(channel);
	for (struct hr_conn *conn = channel->conns; conn && channel->n_setting_up; conn = conn->next)
		if (conn->phase < HR_PHASE_UP)
			hr_conn_step(conn);
}

/* Lets the timer make the descriptor readable when the next set-up needs a step; off when none does. */
static void set_timer(struct hr_channel *channel)
{
	uint64_t next = UINT64_MAX;
	for (struct hr_conn *conn = channel->conns; conn; conn = conn->next)
		if (conn->phase < HR_PHASE_UP && hr_conn_next_time(conn) < next)
			next = hr_conn_next_time(conn);
	channel->timer_set = next != UINT64_MAX;
	struct itimerspec at = { 0 }; /* off */
	if (channel->timer_set)
		at.it_value = (struct timespec){ (time_t)(next / 1000000000), (long)(next % 1000000000) };
	timerfd_settime(channel->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- arming and sleeping ---- */

static bool conn_has_something(struct hr_conn *conn, bool want_put)
{
	if (conn->news)
		return true;
	return conn->phase == HR_PHASE_UP && !conn->get_failed && conn->transport->conn_pending(conn->data, want_put);
}

static bool any_has_something(struct hr_channel *channel, bool want_put)
{
	for (struct hr_conn *conn = channel->conns; conn; conn = conn->next)
		if (conn_has_something(conn, want_put))
			return true;
	return false;
}

int hr_channel_fd(hr_channel_t *channel)
{
	return channel->epoll;
}

int hr_channel_arm(hr_channel_t *channel, int want_put)
{
	hr_channel_step(channel);
	if (channel->n_setting_up || channel->timer_set)
		set_timer(channel);
	for (struct hr_conn *conn = channel->conns; conn; conn = conn->next) {
		if (conn->phase != HR_PHASE_UP || conn->get_failed)
			continue;
		int error = conn->transport->conn_arm(conn->data, want_put);
		if (error)
			return error;
	}
	/* Orders the flags set above before the look below; pairs with the light barrier in a peer's put or get. */
	hr_barrier_heavy();
	return any_has_something(channel, want_put);
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * Looks again and again for the spin time. The first microseconds belong to a peer that runs on another processor and
 * is about to put; after them, whoever else wants this processor may have it between looks: it may be that peer.
 */
static bool spin(struct hr_channel *channel, bool want_put, uint64_t limit_ns)
{
	/* Between looks at the clock; a look may cost a system call per connection. */
	int looks = channel->n_conns < 32 ? 32 / (channel->n_conns + 1) : 1;
	uint64_t start = hr_now_ns(), yield_from = start + 2000, end = start + limit_ns;
	for (;;) {
		for (int i = 0; i < looks; i++) {
			if (any_has_something(channel, want_put))
				return true;
			relax();
		}
		if (channel->n_setting_up)
			hr_channel_step(channel);
		uint64_t now = hr_now_ns();
		if (now >= end)
			return false;
		if (now >= yield_from)
			sched_yield();
	}
}

int hr_channel_wait(hr_channel_t *channel, int want_put, int timeout_ms)
{
	uint64_t limit = channel->spin_ns;
	if (timeout_ms >= 0 && (uint64_t)timeout_ms * HR_NS_PER_MS < limit)
		limit = (uint64_t)timeout_ms * HR_NS_PER_MS;
	if (spin(channel, want_put, limit))
		return 1;
	int ready = hr_channel_arm(channel, want_put);
	if (ready)
		return ready;
	for (struct hr_conn *conn = channel->conns; conn; conn = conn->next)
		conn->stats.sleeps++;
	/* The spin time counts to the time asked for only in whole milliseconds, so the sleep may end a little late. */
	int n = hr_events_take(channel, timeout_ms);
	return n > 0 || n == -EINTR ? 1 : n; /* a signal: the caller may have to look at something too */
}
