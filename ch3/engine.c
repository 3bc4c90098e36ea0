/* SPDX-License-Identifier: BSD-3-Clause */
#include "ch3/internal.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A rendezvous costs one more round trip, an eager message at most one more copy, and that only where the receiver did
 * not expect it. At 64 KB the copy takes about as long as the round trip over the slowest transport, TCP. */
HR_SETTING(eager_max, "HEADRACE_EAGER_MAX", "64k", 0, 1u << 30, "longest payload sent without asking first, bytes");

HR_SETTING(rendezvous, "HEADRACE_RENDEZVOUS", "read", 0, 0,
	   "how long payloads go after the handshake: read (by the pipe) or write (into the receiver's memory)");

/* Gets per connection and pass: a busy one must not starve the others. */
#define GETS_PER_PASS 16
/* Gets, over all connections, before a wait leaves the looking to the channel: about a microsecond, in which the answer
 * of a peer on the next processor comes. The channel's own look costs a call more per message. */
#define GETS_BEFORE_WAIT 64
/* How long closing waits for queued messages to leave, unless the channel's attributes say otherwise. */
#define CLOSE_MS 10000

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int read_rendezvous(bool *writes)
{
	const char *text = hr_setting_text(&rendezvous);
	*writes = !strcmp(text, "write");
	if (*writes || !strcmp(text, "read"))
		return 0;
	hr_log(HR_LOG_ERROR, "HEADRACE_RENDEZVOUS=%s: want read or write", text);
	return -EINVAL;
}

int ch3_open(const hr_channel_attr_t *attr, ch3_t **engine, hr_card_t *card)
{
	ch3_t *opened = calloc(1, sizeof *opened);
	if (!opened)
		return -ENOMEM;
	int error = hr_setting_u64(&eager_max, &opened->eager_max);
	if (!error)
		error = read_rendezvous(&opened->writes);
	if (error)
		goto free_engine;
	opened->close_ms = attr && attr->timeout_ms ? attr->timeout_ms : CLOSE_MS;
	error = hr_channel_init(attr, &opened->channel, card);
	if (error)
		goto free_engine;
	*engine = opened;
	return 0;

free_engine:
	free(opened);
	return error;
}

hr_channel_t *ch3_channel(ch3_t *engine)
{
	return engine->channel;
}

int ch3_register(ch3_t *engine, unsigned type, ch3_handler_fn handler, void *context)
{
	if (type < CH3_TYPE_FIRST || type >= CH3_TYPES || !handler)
		return -EINVAL;
	if (engine->vcs)
		return -EBUSY;
	engine->handler[type].fn = handler;
	engine->handler[type].context = context;
	return 0;
}

void ch3_on_failure(ch3_t *engine, ch3_failure_fn on_failure, void *context)
{
	engine->on_failure = on_failure;
	engine->failure_context = context;
}

int ch3_connect(ch3_t *engine, const hr_card_t *card, const hr_connect_attr_t *attr, void *user, ch3_vc_t **vc)
{
	ch3_vc_t *opened = malloc(sizeof *opened);
	if (!opened) {
		if (attr && attr->fd >= 0)
			close(attr->fd);
		return -ENOMEM;
	}
	hr_conn_t *conn;
	int error = hr_channel_connect(engine->channel, card, attr, &conn);
	if (error) {
		free(opened);
		return error;
	}
	*opened = (ch3_vc_t){ .engine = engine, .conn = conn, .user = user };
	opened->queue_end = &opened->queue;
	opened->receive.ahead = CH3_INBOX;
	ch3_vc_t **link = &engine->vcs;
	while (*link)
		link = &(*link)->next;
	opened->link = link;
	*link = opened;
	engine->n_vcs++;
	*vc = opened;
	return 0;
}

void *ch3_vc_user(const ch3_vc_t *vc)
{
	return vc->user;
}

hr_conn_t *ch3_vc_conn(ch3_vc_t *vc)
{
	return vc->conn;
}

int ch3_vc_state(ch3_vc_t *vc)
{
	if (vc->error || vc->send_error)
		return vc->error ? vc->error : vc->send_error;
	return hr_conn_state(vc->conn);
}

/* Completes everything of a connection that takes no more bytes. */
static void vc_cancel(ch3_vc_t *vc, int error)
{
	struct ch3_receive *receive = &vc->receive;
	if (receive->in_payload) {
		receive->in_payload = false;
		ch3_done_fn done = receive->done;
		if (receive->rndv)
			ch3_rndv_free(receive->rndv);
		receive->rndv = NULL;
		receive->done = NULL;
		if (done)
			done(receive->context, error, receive->moved);
	}
	if (vc->queue)
		vc->engine->queued--;
	while (vc->queue) {
		ch3_request_t *request = vc->queue;
		vc->queue = request->next;
		ch3_ids_remove(&vc->announced, request->sender_id);
		ch3_request_complete(request, error);
	}
	vc->queue_end = &vc->queue;
	ch3_write_cancel(vc, error);
	for (uint32_t i = 0; i < vc->announced.n; i++)
		if (vc->announced.slot[i].object)
			ch3_request_complete(vc->announced.slot[i].object, error);
	ch3_ids_destroy(&vc->announced);
	for (uint32_t i = 0; i < vc->accepted.n; i++) {
		ch3_rndv_t *rndv = vc->accepted.slot[i].object;
		if (!rndv)
			continue;
		ch3_done_fn done = rndv->done;
		void *context = rndv->context;
		ch3_rndv_free(rndv);
		if (done)
			done(context, error, 0);
	}
	ch3_ids_destroy(&vc->accepted);
}

void ch3_vc_fail(ch3_vc_t *vc, int error)
{
	if (vc->error)
		return;
	vc->error = error;
	/* What completes with an error is its owner's again: the peer must not write there any more. */
	if (vc->writing || ch3_write_exposed(vc))
		hr_remote_stop(vc->conn);
	vc_cancel(vc, error);
	vc->engine->ran++;
	if (vc->engine->on_failure)
		vc->engine->on_failure(vc->engine->failure_context, vc, error);
}

static void vc_progress(ch3_vc_t *vc)
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

int ch3_progress_poll(ch3_t *engine)
{
	unsigned before = engine->ran;
	for (ch3_vc_t *vc = engine->vcs; vc; vc = vc->next)
		if (!vc->error)
			vc_progress(vc);
	return (int)(engine->ran - before);
}

int ch3_progress_wait(ch3_t *engine, int timeout_ms)
{
	int ran = ch3_progress_poll(engine);
	for (int gets = engine->n_vcs; !ran && timeout_ms != 0 && gets < GETS_BEFORE_WAIT; gets += engine->n_vcs + 1)
		ran = ch3_progress_poll(engine);
	if (ran || timeout_ms == 0)
		return ran;
	uint64_t deadline = timeout_ms > 0 ? now_ms() + (uint64_t)timeout_ms : 0;
	int left = timeout_ms;
	for (;;) {
		int happened = hr_channel_wait(engine->channel, engine->queued > 0, left);
		ran = ch3_progress_poll(engine);
		if (ran)
			return ran;
		if (happened < 0)
			return happened;
		if (timeout_ms > 0) {
			uint64_t now = now_ms();
			if (now >= deadline)
				return 0;
			left = (int)(deadline - now);
		}
	}
}

/* Reads and drops what a peer sends to a connection that is closing, so that it is not stopped by a full pipe in front
 * of reading what we still have to send. A payload that is half here goes on to where it belongs: an adapter may be
 * writing there already (hr_channel_get). */
static int receive_drop(ch3_vc_t *vc)
{
	struct ch3_receive *receive = &vc->receive;
	bool in_place = receive->in_payload && receive->cursor.n > 0;
	struct iovec inbox = { receive->inbox, sizeof receive->inbox };
	size_t delivered = 0;
	int error = in_place ? hr_channel_get(vc->conn, receive->cursor.piece, receive->cursor.n, &delivered)
			     : hr_channel_get(vc->conn, &inbox, 1, &delivered);
	if (!error && in_place) {
		ch3_cursor_advance(&receive->cursor, delivered);
		receive->moved += delivered;
	}
	return error;
}

/* Puts what is queued, up to the deadline. Announced payloads are given up. */
static void vc_drain(ch3_vc_t *vc, uint64_t deadline)
{
	while (vc->queue && !vc->error && !vc->send_error) {
		ch3_queue_flush(vc);
		if (!vc->queue || vc->send_error)
			return;
		uint64_t now = now_ms();
		if (now >= deadline || receive_drop(vc))
			return;
		if (hr_channel_wait(vc->engine->channel, 1, (int)(deadline - now)) < 0)
			return;
	}
}

static void vc_close(ch3_vc_t *vc, uint64_t deadline)
{
	vc_drain(vc, deadline);
	if (!vc->error)
		vc->error = -ECANCELED;
	/* Before anything completes: until then an adapter may write into what is being received. */
	hr_conn_close(vc->conn);
	vc->conn = NULL;
	vc_cancel(vc, -ECANCELED);
	while (vc->deferred)
		ch3_rndv_free(vc->deferred);
	*vc->link = vc->next;
	if (vc->next)
		vc->next->link = vc->link;
	vc->engine->n_vcs--;
	free(vc);
}

void ch3_vc_close(ch3_vc_t *vc)
{
	vc_close(vc, now_ms() + vc->engine->close_ms);
}

void ch3_close(ch3_t *engine)
{
	if (!engine)
		return;
	uint64_t deadline = now_ms() + engine->close_ms;
	while (engine->vcs)
		vc_close(engine->vcs, deadline);
	hr_channel_finalize(engine->channel);
	ch3_requests_destroy(engine);
	free(engine);
}
