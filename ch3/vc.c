/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual connections: opening, at once or on demand; failing; closing. */
#include "ch3/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- opening ---- */

ch3_vc_t *ch3_vc_new(ch3_t *engine, void *user)
{
	ch3_vc_t *vc = malloc(sizeof *vc);
	if (!vc)
		return NULL;
	*vc = (ch3_vc_t){ .engine = engine, .user = user, .number = CH3_NO_NUMBER };
	vc->queue_end = &vc->queue;
	vc->accesses_end = &vc->accesses;
	vc->receive.ahead = CH3_INBOX;
	TAILQ_INSERT_TAIL(&engine->vcs, vc, all);
	return vc;
}

void ch3_vc_free(ch3_vc_t *vc)
{
	ch3_t *engine = vc->engine;
	TAILQ_REMOVE(&engine->vcs, vc, all);
	if (vc->is_active) {
		TAILQ_REMOVE(&engine->active, vc, active);
		engine->n_active--;
	}
	if (vc->peer)
		ch3_peers_remove(&engine->peers, vc->peer);
	if (vc->number != CH3_NO_NUMBER)
		engine->numbers.vc[vc->number] = NULL;
	free(vc->receive.inbox);
	free(vc->receive.segments);
	free(vc);
}

static int vc_connect(ch3_vc_t *vc, const hr_card_t *card, const hr_connect_attr_t *attr)
{
	vc->receive.inbox = malloc(CH3_INBOX);
	if (!vc->receive.inbox) {
		if (attr && attr->fd >= 0)
			close(attr->fd);
		return -ENOMEM;
	}
	int error = hr_channel_connect(vc->engine->channel, card, attr, &vc->conn);
	if (error) {
		free(vc->receive.inbox);
		vc->receive.inbox = NULL;
		return error;
	}
	hr_conn_set_user(vc->conn, vc);
	vc->engine->n_conns++;
	return 0;
}

int ch3_connect(ch3_t *engine, const hr_card_t *card, const hr_connect_attr_t *attr, void *user, ch3_vc_t **vc)
{
	ch3_vc_t *opened = ch3_vc_new(engine, user);
	if (!opened) {
		if (attr && attr->fd >= 0)
			close(attr->fd);
		return -ENOMEM;
	}
	int error = vc_connect(opened, card, attr);
	if (error) {
		ch3_vc_free(opened);
		return error;
	}
	ch3_vc_activate(opened);
	*vc = opened;
	return 0;
}

int ch3_add(ch3_t *engine, const hr_card_t *card, void *user, ch3_vc_t **vc)
{
	if (card->len == 0 || card->len > HR_CARD_MAX)
		return -EINVAL;
	ch3_vc_t *added = ch3_vc_new(engine, user);
	if (!added)
		return -ENOMEM;
	int error = ch3_peers_add(&engine->peers, card, added);
	if (error) {
		ch3_vc_free(added);
		return error;
	}
	*vc = added;
	return 0;
}

int ch3_vc_open(ch3_vc_t *vc)
{
	if (vc->error || vc->send_error)
		return vc->error ? vc->error : vc->send_error;
	if (vc->conn)
		return 0;
	int error = vc->peer ? 0 : ch3_numbers_find(vc);
	return error ? error : vc_connect(vc, &vc->peer->card, NULL);
}

int ch3_connections(const ch3_t *engine)
{
	return engine->n_conns;
}

void *ch3_vc_user(const ch3_vc_t *vc)
{
	return vc->user;
}

hr_conn_t *ch3_vc_conn(ch3_vc_t *vc)
{
	return vc->conn;
}

uint64_t ch3_sent(const ch3_vc_t *vc)
{
	return vc->send_sequence;
}

uint64_t ch3_received(const ch3_vc_t *vc)
{
	return vc->receive.sequence;
}

int ch3_vc_state(ch3_vc_t *vc)
{
	if (vc->error || vc->send_error)
		return vc->error ? vc->error : vc->send_error;
	int state = vc->conn ? hr_conn_state(vc->conn) : 0;
	if (state) /* hr_conn_state has consumed the event, so hr_channel_ready may not return the connection again */
		ch3_vc_activate(vc);
	return state;
}

void ch3_vc_activate_now(ch3_vc_t *vc)
{
	vc->is_active = true;
	TAILQ_INSERT_HEAD(&vc->engine->active, vc, active);
	vc->engine->n_active++;
}

/* ---- failing ---- */

/* Completes all sends and receives with error. The connection is aborted or closed, so nothing writes into their
 * memory. */
static void vc_cancel(ch3_vc_t *vc, int error)
{
	struct ch3_receive *receive = &vc->receive;
	if (receive->in_payload) {
		struct ch3_payload *payload = &receive->payload;
		receive->in_payload = false;
		payload->unpack = NULL;
		ch3_done_fn done = payload->done;
		if (payload->rndv)
			ch3_rndv_free(payload->rndv);
		payload->rndv = NULL;
		payload->done = NULL;
		if (done)
			done(payload->context, error, payload->moved);
	}
	ch3_ahead_cancel(vc, error);
	vc->batch = NULL;
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
	ch3_access_cancel(vc, error);
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
	vc->watch = NULL;
	/* Abort before completing: after completion the buffers belong to the caller, and the peer must not write
	 * there. The abort also ends the connection for the peer, however late the caller closes it. */
	hr_conn_abort(vc->conn, error);
	vc_cancel(vc, error);
	vc->engine->ran++;
	if (vc->engine->on_failure)
		vc->engine->on_failure(vc->engine->failure_context, vc, error);
}

/* ---- closing ---- */

/* Receives and drops what the peer sends to a connection that is closing. Otherwise the peer could be blocked by a full
 * pipe and not read the queued messages of this side. The rest of an incomplete payload, and of messages ahead, still goes
 * into its buffers, because an adapter may be writing there already (hr_channel_get). */
static int receive_drop(ch3_vc_t *vc)
{
	struct ch3_receive *receive = &vc->receive;
	struct iovec iov[CH3_AHEAD_IOV], inbox = { receive->inbox, CH3_INBOX };
	struct ch3_cursor rest = { iov, ch3_ahead_vector(vc, iov) };
	size_t delivered = 0;
	ch3_cursor_advance(&rest, receive->dropped);
	if (rest.n == 0)
		rest = (struct ch3_cursor){ &inbox, 1 };
	int error = hr_channel_get(vc->conn, rest.piece, rest.n, &delivered);
	if (!error && rest.piece != &inbox)
		receive->dropped += delivered;
	return error;
}

/* Sends the queue until it is empty or the deadline has passed. Announced payloads are not sent. */
static void vc_drain(ch3_vc_t *vc, uint64_t deadline)
{
	while (vc->queue && !vc->error && !vc->send_error) {
		ch3_queue_flush(vc);
		if (!vc->queue || vc->send_error)
			return;
		uint64_t now = ch3_now_ms();
		if (now >= deadline || receive_drop(vc))
			return;
		/* Wait for this connection only: hr_channel_wait would return at once if another connection has unread
		 * bytes. */
		if (hr_conn_wait(vc->conn, 1, (int)(deadline - now)) <= 0)
			return;
	}
}

static void vc_close(ch3_vc_t *vc, uint64_t deadline)
{
	vc_drain(vc, deadline);
	if (!vc->error)
		vc->error = -ECANCELED;
	/* Close the connection before the receives complete: until then an adapter may write into their buffers. */
	if (vc->conn)
		vc->engine->n_conns--;
	vc->watch = NULL;
	hr_conn_close(vc->conn);
	vc->conn = NULL;
	vc_cancel(vc, -ECANCELED);
	while (vc->deferred)
		ch3_rndv_free(vc->deferred);
	ch3_vc_free(vc);
}

void ch3_vc_close(ch3_vc_t *vc)
{
	vc_close(vc, ch3_now_ms() + vc->engine->close_ms);
}

void ch3_close(ch3_t *engine)
{
	if (!engine)
		return;
	uint64_t deadline = ch3_now_ms() + engine->close_ms;
	while (!TAILQ_EMPTY(&engine->vcs))
		vc_close(TAILQ_FIRST(&engine->vcs), deadline);
	ch3_peers_destroy(&engine->peers);
	free(engine->numbers.vc);
	hr_channel_finalize(engine->channel);
	ch3_requests_destroy(engine);
	ch3_accesses_destroy(engine);
	free(engine);
}
