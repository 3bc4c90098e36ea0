/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors and sleeping. Every descriptor of a channel is in one epoll set from its opening to its closing,
 * edge-triggered. So no system call is needed to change the events waited for, and the stream of a dead peer does not
 * wake the channel again and again.
 *
 * A channel with a thousand connections must not poll all of them for each sleep. A connection that was armed, and had
 * nothing pending when it was polled after that, is asleep: whatever arrives raises an event on its descriptors, so the
 * channel neither polls nor arms it before that event. An event makes it awake again. So does any put or get: after a
 * short put the connection must be armed for room, and a get may consume the wake-up of the last arming. So the cost of
 * arming grows only with the number of connections used since the last arming.
 */
#include "rdma_channel/impl.h"
#include "rdma_channel/upper.h"

#include "rdma_channel/barrier.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS_PER_CALL 64
#define SPUN_MAX 16      /* maximum number of connections to spin on; with more, sleeping in epoll_wait is cheaper */
#define PROBE_WAITS 16   /* if a connection's waits are long, one wait in PROBE_WAITS spins, to measure again */
#define SPIN_LEAST_NS 10000 /* see spins_least */
#define SPIN_ALONE_NS 2000 /* from here on a spin yields the processor between polls */
#define SPIN_OTHERS_NS 50000 /* a spin polls all other connections and events at this interval */
#define ACCEPT_AGAIN_NS (50 * HR_NS_PER_MS) /* interval of retries of accept(2): free descriptors raise no event */

int hr_watch_add(struct hr_channel *channel, struct hr_watch *watch, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = watch };
	if (epoll_ctl(channel->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
		hr_log(HR_LOG_ERROR, "epoll_ctl: %s", strerror(errno));
		return -errno;
	}
	hr_fork_lock();
	watch->fd = fd;
	LIST_INSERT_HEAD(&channel->watches, watch, place);
	hr_fork_unlock();
	return 0;
}

void hr_watch_move(struct hr_channel *channel, struct hr_watch *to, struct hr_watch *from)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = to };
	epoll_ctl(channel->epoll, EPOLL_CTL_MOD, from->fd, &event); /* cannot fail: the descriptor is in the set */
	hr_fork_lock();
	to->fd = from->fd;
	LIST_INSERT_HEAD(&channel->watches, to, place);
	LIST_REMOVE(from, place);
	from->fd = -1;
	hr_fork_unlock();
}

void hr_watch_input(struct hr_channel *channel, struct hr_watch *watch)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = watch };
	epoll_ctl(channel->epoll, EPOLL_CTL_MOD, watch->fd, &event); /* cannot fail: the descriptor is in the set */
}

void hr_watch_remove(struct hr_channel *channel, struct hr_watch *watch)
{
	if (watch->fd < 0)
		return;
	epoll_ctl(channel->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
	hr_fork_lock();
	LIST_REMOVE(watch, place);
	watch->fd = -1;
	hr_fork_unlock();
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
	int timer = channel->timer.fd, epoll = channel->epoll;
	hr_watch_remove(channel, &channel->timer);
	if (timer >= 0)
		close(timer);
	/* Clear the field before close(2): another thread may get the same number at once, and a forked child closes
	 * the number in this field. */
	hr_fork_lock();
	channel->epoll = -1;
	hr_fork_unlock();
	if (epoll >= 0)
		close(epoll);
}

void hr_conn_rouse(struct hr_conn *conn)
{
	if (!(conn->attention & HR_CONN_ASLEEP))
		return;
	conn->attention &= (uint8_t)~HR_CONN_ASLEEP;
	TAILQ_INSERT_TAIL(&conn->channel->awake, conn, place);
}

void hr_conn_leave_set_up(struct hr_conn *conn)
{
	struct hr_channel *channel = conn->channel;
	if (conn->phase >= HR_PHASE_UP)
		return;
	TAILQ_REMOVE(&channel->setting_up, conn, place);
	TAILQ_INSERT_TAIL(&channel->awake, conn, place);
	if (--channel->n_setting_up == 0)
		channel->setup_due = UINT64_MAX;
}

static void transport_event(struct hr_channel *channel, const struct hr_opened *opened)
{
	struct hr_conn *conn;
	opened->transport->event(opened->context);
	TAILQ_FOREACH(conn, &channel->conns, all)
		if (conn->phase == HR_PHASE_UP && conn->transport == opened->transport)
			hr_conn_rouse(conn);
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
		if (conn->phase < HR_PHASE_UP) {
			hr_conn_step(conn);
		} else if (conn->phase == HR_PHASE_UP) {
			conn->transport->conn_event(conn->data);
			hr_conn_rouse(conn);
		}
		break;
	case HR_WATCH_OPENED:
		transport_event(channel, watch->owner);
		break;
	case HR_WATCH_TIMER: /* step_due looks at the clock */
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
		/* No watch that an event points to is freed in this loop: pending streams are only marked as dead. */
		for (int i = 0; i < n; i++)
			on_event(channel, events[i].data.ptr);
		hr_pending_reap(channel);
		taken += n;
		if (n < EVENTS_PER_CALL)
			return taken;
	}
}

void hr_conn_unwatch(struct hr_conn *conn)
{
	struct hr_channel *channel = conn->channel;
	if (!conn->watched)
		return;
	conn->watched = false;
	if (--channel->n_watched == 0)
		channel->check_due = UINT64_MAX; /* set_timer does not set the timer for a time that has passed */
}

static uint64_t next_check(const struct hr_channel *channel)
{
	return hr_now_ns() + channel->timeout_ms * HR_NS_PER_MS / 4;
}

/* Has conn_check called while the channel sleeps, if bytes were put since they were last found acknowledged and the
 * transport has no event for a silent peer. */
static void watch_silence(struct hr_conn *conn)
{
	struct hr_channel *channel = conn->channel;
	if (conn->watched || conn->stats.put_bytes == conn->puts_checked || !conn->transport->conn_check)
		return;
	conn->watched = true;
	if (channel->n_watched++ == 0)
		channel->check_due = next_check(channel);
}

static void check_watched(struct hr_channel *channel)
{
	struct hr_conn *conn;
	TAILQ_FOREACH(conn, &channel->conns, all) {
		if (!conn->watched)
			continue;
		uint64_t put = conn->stats.put_bytes;
		int state = conn->transport->conn_check(conn->data);
		if (state > 0)
			continue;
		conn->puts_checked = put;
		hr_conn_unwatch(conn);
		if (state < 0)
			hr_conn_rouse(conn);
	}
	if (channel->n_watched)
		channel->check_due = next_check(channel);
}

/* Does the work that is due without an event: time-outs and retries of set-ups, retries of accept(2), conn_check. */
static void step_due(struct hr_channel *channel)
{
	if (channel->accept_again)
		hr_listen_accept_all(channel);
	if (channel->n_watched && hr_now_ns() >= channel->check_due)
		check_watched(channel);
	if (!channel->n_setting_up || hr_now_ns() < channel->setup_due)
		return;
	channel->setup_due = UINT64_MAX; /* each set-up that goes on lowers it to its own time in hr_conn_step */
	struct hr_conn *conn = TAILQ_FIRST(&channel->setting_up), *next;
	for (; conn; conn = next) {
		next = TAILQ_NEXT(conn, place);
		hr_conn_step(conn);
	}
}

void hr_channel_step(struct hr_channel *channel)
{
	hr_events_take(channel, 0);
	step_due(channel);
}

/* Sets the timer to the time at which step_due has work next, so that the channel's descriptor becomes readable
 * then. */
static void set_timer(struct hr_channel *channel)
{
	uint64_t next = channel->setup_due < channel->check_due ? channel->setup_due : channel->check_due;
	uint64_t again = channel->accept_again ? hr_now_ns() + ACCEPT_AGAIN_NS : UINT64_MAX;
	if (again < next)
		next = again;
	if (channel->timer_at == next)
		return;
	channel->timer_at = next;
	struct itimerspec at = { 0 }; /* off */
	if (channel->timer_at != UINT64_MAX)
		at.it_value = (struct timespec){ (time_t)(channel->timer_at / 1000000000),
						 (long)(channel->timer_at % 1000000000) };
	timerfd_settime(channel->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- arming and sleeping ---- */

static uint64_t bytes_moved(const struct hr_conn *conn)
{
	return conn->stats.put_bytes + conn->stats.get_bytes;
}

static void fall_asleep(struct hr_conn *conn)
{
	TAILQ_REMOVE(&conn->channel->awake, conn, place);
	conn->attention |= HR_CONN_ASLEEP;
	conn->bytes_at_sleep = bytes_moved(conn);
}

static bool conn_has_something(struct hr_conn *conn, bool want_put)
{
	conn->stats.looks++;
	if (conn->attention & HR_CONN_NEWS)
		return true;
	if (want_put && conn->phase == HR_PHASE_UP && (conn->attention & HR_CONN_EARLY_PUT))
		return true;
	return conn->phase == HR_PHASE_UP && !conn->get_failed && conn->transport->conn_pending(conn->data, want_put);
}

/* Returns the first awake connection with something pending; NULL: none. */
static struct hr_conn *first_with_something(struct hr_channel *channel, bool want_put)
{
	struct hr_conn *conn;
	TAILQ_FOREACH(conn, &channel->awake, place)
		if (conn_has_something(conn, want_put))
			return conn;
	return NULL;
}

/* Reports incoming peers once: otherwise a caller that does not call hr_channel_incoming would never sleep. */
static bool take_incoming_news(struct hr_channel *channel)
{
	bool news = channel->incoming_news;
	channel->incoming_news = false;
	return news;
}

/* Arms all awake connections, then puts those to sleep that have nothing pending. Returns 1 if something is pending, 0
 * if not, or a negated errno value. */
static int arm_awake(struct hr_channel *channel, bool want_put)
{
	struct hr_conn *conn, *next;
	bool in_memory = false, ready = take_incoming_news(channel);
	TAILQ_FOREACH(conn, &channel->awake, place) {
		if (conn->phase != HR_PHASE_UP || conn->get_failed)
			continue;
		int error = conn->transport->conn_arm(conn->data, want_put);
		if (error)
			return error;
		in_memory |= conn->transport->arms_in_memory;
	}
	/* Orders the flags stored above before the polls below. Pairs with the light barrier in the peer's put or get, which
	 * is a fence if the flag is set. */
	if (in_memory && channel->flags & HR_CHANNEL_SLEEPS)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	else if (in_memory)
		hr_barrier_heavy();
	for (conn = TAILQ_FIRST(&channel->awake); conn; conn = next) {
		next = TAILQ_NEXT(conn, place);
		if (conn_has_something(conn, want_put)) {
			ready = true;
			continue;
		}
		if (conn->phase == HR_PHASE_UP)
			watch_silence(conn);
		if (want_put || !conn->put_short) /* else it stays awake, to be armed for room later */
			fall_asleep(conn);
	}
	return ready;
}

int hr_channel_fd(hr_channel_t *channel)
{
	return channel->epoll;
}

int hr_channel_arm(hr_channel_t *channel, int want_put)
{
	if (channel->forked)
		return -ECHILD;
	hr_channel_step(channel);
	int ready = arm_awake(channel, want_put);
	set_timer(channel);
	return ready;
}

hr_conn_t *hr_channel_ready(hr_channel_t *channel, int want_put)
{
	if (channel->forked)
		return NULL;
	struct hr_conn *conn = first_with_something(channel, want_put);
	if (!conn) {
		hr_channel_step(channel);
		conn = first_with_something(channel, want_put);
	}
	if (!conn)
		return NULL;
	/* Move it to the end, so that ready connections are returned in turn. */
	TAILQ_REMOVE(&channel->awake, conn, place);
	TAILQ_INSERT_TAIL(&channel->awake, conn, place);
	return conn;
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
 * Returns whether spinning on this connection is likely to save time: whether its waits mostly ended within the spin
 * limit. If they did not, every PROBE_WAITS-th wait spins all the same, to see whether that has changed. A connection
 * on which no byte has moved since it was last asleep is idle: no spin.
 */
static bool spin_pays(struct hr_conn *conn, uint64_t limit_ns)
{
	if (conn->phase != HR_PHASE_UP || conn->get_failed || bytes_moved(conn) == conn->bytes_at_sleep)
		return false;
	return conn->wait_ns < limit_ns || ++conn->waits % PROBE_WAITS == 0;
}

/* Whether a wait spins for SPIN_LEAST_NS although waits on the connection are long. Between long waits there are often short
 * ones: a program waits for a kernel, and then for a call that is answered at once. ch3 polls such a connection for a shorter
 * time than others before it waits. */
static bool spins_least(const struct hr_conn *conn)
{
	return conn->channel->flags & HR_CHANNEL_SLEEPS && conn->transport->arms_in_memory && conn->phase == HR_PHASE_UP &&
	       !conn->get_failed && bytes_moved(conn) != conn->bytes_at_sleep;
}

/* Records the duration of a wait that this connection ended. */
static void learn_wait(struct hr_conn *conn, uint64_t ns)
{
	uint64_t most = 4 * conn->channel->spin_ns; /* a single long wait must not outweigh many short ones */
	conn->wait_ns = (3 * conn->wait_ns + (ns < most ? ns : most)) / 4;
}

/* Called in the middle of a long spin: handles events and due work, and polls all awake connections. Returns true if
 * the spin must end: *found has something pending, or a peer has connected. */
static bool look_at_others(struct hr_channel *channel, bool want_put, struct hr_conn **found)
{
	hr_channel_step(channel);
	*found = first_with_something(channel, want_put);
	return *found || channel->incoming_news;
}

/*
 * Polls in a loop the connections for which spin_pays or spins_least, up to limit_ns, or up to SPIN_LEAST_NS if spin_pays
 * for none of them. For the first SPIN_ALONE_NS it keeps the processor: a peer on another processor may be about to put.
 * After that it yields the processor between polls, as the peer itself may be waiting for this processor. Every
 * SPIN_OTHERS_NS it looks at the other connections and at new peers. Returns a connection with something pending, or NULL.
 */
static struct hr_conn *spin(struct hr_channel *channel, bool want_put, uint64_t start, uint64_t limit_ns)
{
	struct hr_conn *spun[SPUN_MAX], *conn;
	int n = 0;
	uint64_t others_at = start + SPIN_OTHERS_NS;
	if (!limit_ns) /* the caller polls when it arms */
		return NULL;
	conn = first_with_something(channel, want_put);
	if (conn)
		return conn;
	bool pays = false;
	TAILQ_FOREACH(conn, &channel->awake, place) {
		bool this_pays = spin_pays(conn, channel->spin_ns);
		if (!this_pays && !spins_least(conn))
			continue;
		if (n == SPUN_MAX)
			return NULL;
		pays |= this_pays;
		spun[n++] = conn;
	}
	if (!pays && limit_ns > SPIN_LEAST_NS)
		limit_ns = SPIN_LEAST_NS;
	for (uint64_t now = start; n && now - start < limit_ns; now = hr_now_ns()) {
		if (now - start >= SPIN_ALONE_NS)
			sched_yield();
		if (now >= others_at) {
			if (look_at_others(channel, want_put, &conn))
				return conn;
			others_at = now + SPIN_OTHERS_NS;
		}
		/* Several polls for each reading of the clock, fewer rounds with more connections: a poll may cost a
		 * system call. */
		for (int i = 0; i < 32; i += n + 1) {
			for (int k = 0; k < n; k++)
				if (conn_has_something(spun[k], want_put))
					return spun[k];
			relax();
		}
	}
	return NULL;
}

/* Milliseconds left of a wait, rounded up. */
static int ms_left(uint64_t start, int timeout_ms)
{
	if (timeout_ms < 0)
		return -1;
	uint64_t gone = hr_now_ns() - start, all = (uint64_t)timeout_ms * HR_NS_PER_MS;
	return gone >= all ? 0 : (int)((all - gone + HR_NS_PER_MS - 1) / HR_NS_PER_MS);
}

int hr_channel_wait(hr_channel_t *channel, int want_put, int timeout_ms)
{
	if (channel->forked)
		return -ECHILD;
	uint64_t start = hr_now_ns(), limit = channel->spin_ns;
	if (timeout_ms >= 0 && (uint64_t)timeout_ms * HR_NS_PER_MS < limit)
		limit = (uint64_t)timeout_ms * HR_NS_PER_MS;
	struct hr_conn *conn = spin(channel, want_put, start, limit);
	while (!conn) {
		step_due(channel);
		int ready = arm_awake(channel, want_put);
		if (ready)
			return ready;
		set_timer(channel);
		channel->sleeps++;
		int left = ms_left(start, timeout_ms), n = hr_events_take(channel, left);
		if (n < 0) /* return after a signal: its handler may have changed what the caller waits for */
			return n == -EINTR ? 1 : n;
		conn = first_with_something(channel, want_put);
		if (!conn && take_incoming_news(channel))
			return 1;
		if (!conn && (n == 0 || left == 0)) /* left == 0: events without effect must not extend the wait */
			return 0;
	}
	learn_wait(conn, hr_now_ns() - start);
	return 1;
}

int hr_conn_wait(hr_conn_t *conn, int want_put, int timeout_ms)
{
	struct hr_channel *channel = conn->channel;
	uint64_t start = hr_now_ns();
	if (channel->forked)
		return -ECHILD;
	for (;;) {
		step_due(channel);
		bool news = channel->incoming_news;
		int armed = arm_awake(channel, want_put);
		channel->incoming_news |= news; /* this caller does not handle incoming peers: keep the news */
		if (armed < 0)
			return armed;
		if (conn_has_something(conn, want_put))
			return 1;
		set_timer(channel);
		channel->sleeps++;
		int left = ms_left(start, timeout_ms), n = hr_events_take(channel, left);
		if (n < 0)
			return n == -EINTR ? 1 : n;
		if (n == 0 || left == 0) /* left == 0: events of other connections must not extend the wait */
			return conn_has_something(conn, want_put);
	}
}
