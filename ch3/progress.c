/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress. Polling a connection costs about 6 ns if hr_conn_peek is sufficient, and more if hr_channel_get has to be
 * called. Asking the channel for ready connections (hr_channel_ready) costs a system call if no connection is ready. So
 * each poll looks at the recently active connections, about CH3_ACTIVE_MAX at most, and asks the channel only from time
 * to time. The cost of a poll does not grow with the number of inactive connections.
 */
#include "ch3/internal.h"

#include "rdma_channel/base/log.h"

#include <string.h>

/* Gets per connection and pass: a busy connection must not starve the others. */
#define GETS_PER_PASS 16
/* Cost of polls (CH3_COST_GET) between two calls of look(). */
#define COST_BEFORE_LOOK 1024u
/* Cost of polls before a wait calls hr_channel_wait: 10 to 20 us. A peer on another processor answers within this time, and
 * polling costs less per message than hr_channel_wait. */
#define COST_BEFORE_WAIT 512u
/* The same of a channel with HR_CHANNEL_SLEEPS over shared memory: 2 or 3 us. Its peer's other threads may be waiting for this
 * processor, and hr_channel_wait sleeps, or yields the processor between its polls. */
#define COST_BEFORE_SLEEP 64u
/* While a wait polls, it looks only at the word that the next record of a connection changes (hr_conn_watch), and polls in full
 * after this number of looks. The cost of LOOKS_PER_COST looks at a connection is about that of one hr_conn_peek. */
#define QUIET_LOOKS 16
#define LOOKS_PER_COST 1
/* Maximum number of ready connections that one look() handles: limits the time of a poll. */
#define READY_PER_LOOK 64
/* After this many messages ch3_progress_short takes none until ch3_progress_poll was called, which polls all active
 * connections. */
#define SHORT_IN_A_ROW 16

/*
 * Sends from the queue. Returns whether this pass may receive. A caller whose send is complete may post the receive for
 * the answer, which may have arrived already. If the answer's handler ran first, the answer would have no buffer and
 * would be copied twice. So a pass receives nothing if it has completed a send, unless the pass before was such a pass,
 * and nothing that arrived only after the queue was flushed.
 */
static bool flush_first(ch3_vc_t *vc)
{
	unsigned before = vc->engine->ran;
	const uint8_t *bytes;
	size_t len;
	bool arrived = vc->receive.in_payload || vc->receive.begin < vc->receive.end ||
		       hr_conn_peek(vc->conn, &bytes, &len) != HR_NOT_ARRIVED;
	ch3_queue_flush(vc);
	if (vc->send_error)
		return true;
	vc->held_back = !vc->held_back && vc->engine->ran != before;
	return arrived && !vc->held_back;
}

void ch3_vc_progress(ch3_vc_t *vc)
{
	bool more = true;
	if (vc->queue && !vc->send_error && !flush_first(vc))
		return;
	if (vc->writing && !vc->send_error)
		ch3_write_progress(vc);
	if (vc->accesses && !vc->send_error)
		ch3_access_progress(vc);
	for (int i = 0; more && i < GETS_PER_PASS; i++) {
		int error = ch3_receive_some(vc, &more);
		if (error) {
			ch3_vc_fail(vc, error);
			return;
		}
	}
	if (vc->send_error && !more)
		ch3_vc_fail(vc, vc->send_error);
}

/* Completes the connections of incoming peers. Every process that has this process's card can connect, so peers that
 * were not added are refused. */
static void incoming_take(ch3_t *engine)
{
	hr_card_t card;
	engine->ask_who_came = false;
	while (hr_channel_incoming(engine->channel, &card) == 1) {
		ch3_vc_t *vc = ch3_peers_find(&engine->peers, &card);
		if (!vc)
			vc = ch3_numbers_incoming(engine, &card);
		int error = vc ? ch3_vc_open(vc) : 0;
		if (!vc)
			hr_log(HR_LOG_WARN, "ch3: refused a connection from a process that is not a peer");
		else if (error)
			hr_log(HR_LOG_ERROR, "ch3: cannot complete the connection of a peer: %s", strerror(-error));
	}
}

/* Asks the channel for incoming peers and for ready connections. */
static void look(ch3_t *engine)
{
	hr_conn_t *conn;
	engine->looked_at = engine->cost;
	if (engine->peers.n || engine->numbers.n)
		incoming_take(engine);
	for (int i = 0; i < READY_PER_LOOK && (conn = hr_channel_ready(engine->channel, engine->queued > 0)); i++) {
		ch3_vc_t *vc = hr_conn_user(conn);
		if (vc->error)
			continue;
		ch3_vc_activate(vc);
		ch3_vc_progress(vc);
	}
}

static bool stays_active(const ch3_vc_t *vc)
{
	return !vc->error && (vc->send_error || vc->writing || vc->accesses || vc->batch);
}

/* Removes the least recently activated connections from the list until it has CH3_ACTIVE_MAX entries. Connections with
 * writes or accesses in progress, with gathered messages, or with an unreported send error, stay. */
static void active_trim(ch3_t *engine)
{
	ch3_vc_t *vc = TAILQ_LAST(&engine->active, ch3_vc_list), *before;
	for (; vc && engine->n_active > CH3_ACTIVE_MAX; vc = before) {
		before = TAILQ_PREV(vc, ch3_vc_list, active);
		if (stays_active(vc))
			continue;
		TAILQ_REMOVE(&engine->active, vc, active);
		vc->is_active = false;
		engine->n_active--;
	}
}

static void poll_active(ch3_t *engine)
{
	ch3_vc_t *vc;
	/* A handler that sends may activate other connections. They are inserted at the head, so this loop does not
	 * reach them. */
	TAILQ_FOREACH(vc, &engine->active, active)
		if (!vc->error)
			ch3_vc_progress(vc);
	if (engine->n_active > CH3_ACTIVE_MAX)
		active_trim(engine);
}

int ch3_progress_poll(ch3_t *engine)
{
	unsigned before = engine->ran;
	engine->in_a_row = 0;
	poll_active(engine);
	engine->cost += engine->n_active ? (unsigned)engine->n_active : CH3_COST_GET;
	if (engine->cost - engine->looked_at >= COST_BEFORE_LOOK)
		look(engine);
	return (int)(engine->ran - before);
}

/* Polls after hr_channel_wait has reported an event. Usually the event belongs to an active connection. If a handler
 * ran or bytes were moved, the event may still have been an incoming peer, which no later wait reports again: if
 * ask_who_came is set, hr_channel_incoming is called before the next wait. */
static int poll_after_wait(ch3_t *engine)
{
	unsigned moved = engine->moved;
	engine->ask_who_came = engine->peers.n > 0;
	int ran = ch3_progress_poll(engine);
	if (ran || engine->moved != moved)
		return ran;
	unsigned before = engine->ran;
	look(engine);
	return (int)(engine->ran - before);
}

/* Whether the next record has arrived, as far as a load of one word of the pipe can tell. vc->watch is not NULL. */
static inline bool has_arrived(const ch3_vc_t *vc)
{
	/* Relaxed: hr_conn_peek orders what is read of the record. */
	return __atomic_load_n(vc->watch->word, __ATOMIC_RELAXED) >> 32 == vc->watch->high;
}

/* Whether there is nothing to do for the connection but to wait for a record. */
static inline bool only_receives(const ch3_vc_t *vc)
{
	const struct ch3_receive *receive = &vc->receive;
	uintptr_t lists = (uintptr_t)vc->queue | (uintptr_t)vc->writing | (uintptr_t)vc->accesses;
	return !(lists | (unsigned)vc->send_error | receive->in_payload | (receive->begin ^ receive->end));
}

/* Whether polling the connection would find nothing. */
static inline bool is_quiet(const ch3_vc_t *vc)
{
	if (!vc->watch)
		return vc->error;
	for (uint32_t i = 1; i <= vc->watch->further; i++)
		__builtin_prefetch(vc->watch->word + 8 * (size_t)i);
	if (has_arrived(vc))
		return false;
	vc->watch->in_vain = true;
	return only_receives(vc);
}

bool ch3_progress_short(ch3_t *engine, unsigned most)
{
	ch3_vc_t *vc = TAILQ_FIRST(&engine->active);
	if (!vc || !vc->watch || vc->error || !has_arrived(vc) || !only_receives(vc) || vc->receive.segments)
		return false;
	if (engine->in_a_row >= SHORT_IN_A_ROW)
		return false;
	unsigned left = SHORT_IN_A_ROW - engine->in_a_row;
	int handled = ch3_receive_short(vc, most < left ? most : left);
	unsigned count = handled > 0 ? (unsigned)handled : 1;
	engine->in_a_row += count;
	engine->cost += count;
	if (handled < 0)
		ch3_vc_fail(vc, handled);
	return handled != 0;
}

/* Leaves the units of the processor's core to its other hardware thread for a moment: that thread may be the peer. */
static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Looks at the active connections until something has arrived or can be done, QUIET_LOOKS times at most. */
static void watch(ch3_t *engine)
{
	for (int i = 0; i < QUIET_LOOKS; i++) {
		ch3_vc_t *vc;
		TAILQ_FOREACH(vc, &engine->active, active)
			if (!is_quiet(vc))
				return;
		relax();
	}
	engine->cost += QUIET_LOOKS / LOOKS_PER_COST * (unsigned)engine->n_active;
}

static unsigned cost_before_wait(const ch3_t *engine)
{
	const ch3_vc_t *vc = TAILQ_FIRST(&engine->active);
	return engine->sleeps && vc && vc->watch ? COST_BEFORE_SLEEP : COST_BEFORE_WAIT;
}

/* Polls until a callback has run, or until for a while no byte was moved. While the parts of a long payload arrive, this
 * is faster than a wait for each of them. */
static int poll_a_while(ch3_t *engine)
{
	unsigned begin = engine->cost, moved = engine->moved;
	for (;;) {
		watch(engine);
		int ran = ch3_progress_short(engine, 1) ? 1 : ch3_progress_poll(engine);
		if (ran)
			return ran;
		if (engine->moved != moved) {
			moved = engine->moved;
			begin = engine->cost;
		}
		if (engine->cost - begin >= cost_before_wait(engine))
			return 0;
	}
}

int ch3_progress_wait(ch3_t *engine, int timeout_ms)
{
	int ran = timeout_ms == 0 ? ch3_progress_poll(engine) : poll_a_while(engine);
	if (ran || timeout_ms == 0)
		return ran;
	uint64_t deadline = timeout_ms > 0 ? ch3_now_ms() + (uint64_t)timeout_ms : 0;
	int left = timeout_ms;
	for (;;) {
		if (engine->ask_who_came)
			incoming_take(engine);
		int happened = hr_channel_wait(engine->channel, engine->queued > 0, left);
		unsigned moved = engine->moved;
		ran = poll_after_wait(engine);
		if (!ran && engine->moved != moved)
			ran = poll_a_while(engine);
		if (ran)
			return ran;
		if (happened < 0)
			return happened;
		if (timeout_ms > 0) {
			uint64_t now = ch3_now_ms();
			if (now >= deadline)
				return 0;
			left = (int)(deadline - now);
		}
	}
}
