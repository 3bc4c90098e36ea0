/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress. Asking a connection costs some 20 ns; asking the channel which of them has something costs a system call
 * where none has. So a poll asks those at work itself, as long as they are few, and the channel only every so often. A
 * process connected to a thousand others pays for those at work.
 */
#include "ch3/internal.h"

#include "rdma_channel/base/log.h"

#include <string.h>

/* Gets per connection and pass: a busy one must not starve the others. */
#define GETS_PER_PASS 16
/* Gets, over all connections, before a wait leaves the looking to the channel: about a microsecond, in which the answer
 * of a peer on the next processor comes. The channel's own look costs a call more per message. */
#define GETS_BEFORE_WAIT 64
/* Polls between two questions to the channel: about a microsecond where nothing happens. */
#define POLLS_PER_LOOK 64
/* Connections that one such question may bring, so that a poll comes to its end. */
#define READY_PER_LOOK 64

void ch3_vc_progress(ch3_vc_t *vc)
{
	bool more = true;
	if (vc->queue && !vc->send_error)
		ch3_queue_flush(vc);
	if (vc->writing && !vc->send_error)
		ch3_write_progress(vc);
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

/* Peers that have opened a connection to us. Whoever holds our card could: it must be one of those added. */
static void incoming_take(ch3_t *engine)
{
	hr_card_t card;
	engine->ask_who_came = false;
	while (hr_channel_incoming(engine->channel, &card) == 1) {
		ch3_vc_t *vc = ch3_peers_find(&engine->peers, &card);
		int error = vc ? ch3_vc_open(vc) : 0;
		if (!vc)
			hr_log(HR_LOG_WARN, "ch3: refused a connection from a process that is not a peer");
		else if (error)
			hr_log(HR_LOG_ERROR, "ch3: cannot complete the connection of a peer: %s", strerror(-error));
	}
}

/* Asks the channel who has come and which connections have something. */
static void look(ch3_t *engine)
{
	hr_conn_t *conn;
	engine->polls = 0;
	if (engine->peers.n)
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
	return !vc->error && (vc->send_error || vc->writing);
}

/* Leaves those to the channel that have been active longest, down to as many as a poll looks at. */
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
	/* A handler that sends may activate others: they come in before those that are visited here. */
	TAILQ_FOREACH(vc, &engine->active, active)
		if (!vc->error)
			ch3_vc_progress(vc);
	if (engine->n_active > CH3_ACTIVE_MAX)
		active_trim(engine);
}

int ch3_progress_poll(ch3_t *engine)
{
	unsigned before = engine->ran;
	poll_active(engine);
	if (++engine->polls >= POLLS_PER_LOOK)
		look(engine);
	return (int)(engine->ran - before);
}

/* The channel says that something happened: mostly to a connection that is at work. If something runs there, it may
 * still have been a peer that came, of which no later wait would tell. */
static int poll_after_wait(ch3_t *engine)
{
	engine->ask_who_came = engine->peers.n > 0;
	int ran = ch3_progress_poll(engine);
	if (ran)
		return ran;
	unsigned before = engine->ran;
	look(engine);
	return (int)(engine->ran - before);
}

int ch3_progress_wait(ch3_t *engine, int timeout_ms)
{
	int ran = ch3_progress_poll(engine);
	for (int gets = engine->n_active; !ran && timeout_ms != 0 && gets < GETS_BEFORE_WAIT;
	     gets += engine->n_active + 1)
		ran = ch3_progress_poll(engine);
	if (ran || timeout_ms == 0)
		return ran;
	uint64_t deadline = timeout_ms > 0 ? ch3_now_ms() + (uint64_t)timeout_ms : 0;
	int left = timeout_ms;
	if (engine->ask_who_came)
		incoming_take(engine);
	for (;;) {
		int happened = hr_channel_wait(engine->channel, engine->queued > 0, left);
		ran = poll_after_wait(engine);
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
