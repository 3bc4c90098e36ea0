/* SPDX-License-Identifier: BSD-3-Clause */
/* Rendezvous protocol: request to send, clear to send, data. */
#include "ch3/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Gives the request its own copy of the payload, as one piece. */
static int payload_copy(ch3_request_t *request, const struct iovec *iov, int n, size_t payload_len)
{
	char *bytes = malloc(payload_len ? payload_len : 1);
	if (!bytes)
		return -ENOMEM;
	request->copy = bytes;
	request->iov[1] = (struct iovec){ bytes, payload_len };
	for (int i = 0; i < n; bytes += iov[i].iov_len, i++)
		if (iov[i].iov_len > 0)
			memcpy(bytes, iov[i].iov_base, iov[i].iov_len);
	return 0;
}

int ch3_rndv_announce(ch3_vc_t *vc, ch3_request_t *send, unsigned type, const void *header, size_t header_len,
		      uint64_t payload_len)
{
	int error = ch3_ids_add(&vc->announced, send, &send->sender_id);
	if (error)
		return error;
	struct ch3_packet_more more = { payload_len, send->sender_id, 0 };
	unsigned writes = !send->pack && ch3_write_can(vc, payload_len) ? CH3_PACKET_WRITES : 0;
	size_t front_len = ch3_front_write(vc, send->front, type, CH3_PACKET_WAITS | writes, header, header_len, 0, &more);
	send->payload_len = payload_len;
	send->iov[0] = (struct iovec){ send->front, front_len };
	send->cursor.n = 1;
	send->stage = CH3_STAGE_ANNOUNCE;
	ch3_queue_append(vc, send);
	return 0;
}

int ch3_rndv_send(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, const struct iovec *iov, int n,
		  uint64_t payload_len, unsigned flags, ch3_request_t **request)
{
	bool copy = flags & CH3_SEND_COPY;
	int error = -ENOMEM;
	ch3_request_t *send = ch3_request_new(vc->engine, copy ? 1 : n);
	if (!send)
		return error;
	if (copy) {
		error = payload_copy(send, iov, n, (size_t)payload_len);
		if (error)
			goto recycle;
	} else if (n > 0) {
		memcpy(send->iov + 1, iov, (size_t)n * sizeof *iov);
	}
	send->detached = copy;
	error = ch3_rndv_announce(vc, send, type, header, header_len, payload_len);
	if (error)
		goto recycle;
	if (request)
		*request = copy ? NULL : send;
	return 0;

recycle:
	send->detached = true;
	ch3_request_complete(send, error);
	return error;
}

int ch3_rndv_cleared(ch3_vc_t *vc, const struct ch3_front *front)
{
	ch3_request_t *send = ch3_ids_find(&vc->announced, front->sender_id);
	if (send && send->pack && front->header_len > 0) {
		hr_log(HR_LOG_ERROR, "ch3: peer %s: protocol violation: it exposed memory for id %#x, which was not announced for "
		       "writes", hr_conn_peer(vc->conn), front->sender_id);
		return -EPROTO;
	}
	if (!send || send->stage != CH3_STAGE_WAITING || front->payload_len > send->payload_len) {
		hr_log(HR_LOG_ERROR, "ch3: peer %s: protocol violation: it asked for payload of id %#x, which is not pending or is shorter",
		       hr_conn_peer(vc->conn), front->sender_id);
		return -EPROTO;
	}
	ch3_ids_remove(&vc->announced, front->sender_id);
	send->sender_id = 0;
	if (front->payload_len == 0) {
		ch3_request_complete(send, 0);
		return 0;
	}
	int writing = front->header_len > 0 ? ch3_write_start(vc, send, front) : 0;
	if (writing < 0) {
		ch3_request_complete(send, writing);
		return writing;
	}
	if (!writing)
		ch3_rndv_queue_data(vc, send, front->payload_len, front->receiver_id);
	return 0;
}

void ch3_rndv_queue_data(ch3_vc_t *vc, ch3_request_t *send, uint64_t payload_len, uint32_t receiver_id)
{
	struct ch3_packet_more more = { payload_len, 0, receiver_id };
	size_t front_len = ch3_front_write(vc, send->front, CH3_PACKET_DATA, 0, NULL, 0, 0, &more);
	send->iov[0] = (struct iovec){ send->front, front_len };
	send->cursor = (struct ch3_cursor){ send->iov, send->pack ? 1 : send->n };
	if (send->pack)
		send->to_pack = payload_len;
	else
		ch3_cursor_trim(&send->cursor, front_len + payload_len);
	send->stage = CH3_STAGE_QUEUED;
	ch3_queue_append(vc, send);
}

static void deferred_unlink(ch3_rndv_t *rndv)
{
	if (!rndv->link)
		return;
	*rndv->link = rndv->next;
	if (rndv->next)
		rndv->next->link = rndv->link;
	rndv->link = NULL;
}

void ch3_rndv_free(ch3_rndv_t *rndv)
{
	deferred_unlink(rndv);
	ch3_write_hide(rndv);
	if (rndv->iov != rndv->inline_iov)
		free(rndv->iov);
	free(rndv);
}

static ch3_rndv_t *rndv_new(ch3_vc_t *vc, const struct ch3_front *front)
{
	ch3_rndv_t *rndv = calloc(1, sizeof *rndv);
	if (!rndv)
		return NULL;
	rndv->vc = vc;
	rndv->sender_id = front->sender_id;
	rndv->payload_len = front->payload_len;
	rndv->can_write = front->flags & CH3_PACKET_WRITES;
	rndv->iov = rndv->inline_iov;
	rndv->next = vc->deferred;
	rndv->link = &vc->deferred;
	if (vc->deferred)
		vc->deferred->link = &rndv->next;
	vc->deferred = rndv;
	return rndv;
}

int ch3_rndv_announced(ch3_vc_t *vc, const struct ch3_front *front)
{
	ch3_t *engine = vc->engine;
	ch3_rndv_t *rndv = rndv_new(vc, front);
	if (!rndv)
		return -ENOMEM;
	ch3_incoming_t incoming = { vc, front->header, front->header_len, front->payload_len, rndv };
	ch3_sink_t sink = { .n = 0 };
	engine->ran++;
	int error = engine->handler[front->type].fn(engine->handler[front->type].context, &incoming, &sink);
	if (error || sink.defer)
		return error;
	if (sink.unpack)
		return ch3_rndv_accept_unpack(rndv, sink.room, sink.unpack, sink.done, sink.context);
	return ch3_rndv_accept(rndv, sink.iov, sink.n, sink.done, sink.context);
}

static int rndv_pieces(ch3_rndv_t *rndv, const struct iovec *iov, int n)
{
	if (n > CH3_SINK_IOV) {
		struct iovec *many = malloc((size_t)n * sizeof *many);
		if (!many)
			return -ENOMEM;
		if (rndv->iov != rndv->inline_iov)
			free(rndv->iov);
		rndv->iov = many;
	}
	if (n > 0)
		memcpy(rndv->iov, iov, (size_t)n * sizeof *iov);
	rndv->cursor = (struct ch3_cursor){ rndv->iov, n };
	ch3_cursor_trim(&rndv->cursor, rndv->payload_len);
	rndv->wanted = ch3_cursor_bytes(&rndv->cursor);
	return 0;
}

/* Asks the sender for the wanted bytes. */
static int rndv_clear(ch3_rndv_t *rndv, ch3_done_fn done, void *context)
{
	ch3_vc_t *vc = rndv->vc;
	int error = rndv->wanted > 0 ? ch3_ids_add(&vc->accepted, rndv, &rndv->receiver_id) : 0;
	if (error)
		return error;
	rndv->done = done;
	rndv->context = context;
	struct ch3_packet_more more = { rndv->wanted, rndv->sender_id, rndv->receiver_id };
	struct ch3_place place[CH3_PLACES_MAX];
	int n_places = ch3_write_expose(rndv, place);
	deferred_unlink(rndv);
	/* If the CLEAR cannot be sent, progress fails the connection, which completes this receive. */
	error = ch3_send_own(vc, CH3_PACKET_CLEAR, &more, place, (size_t)n_places * sizeof *place);
	if (error)
		ch3_send_failed(vc, error);
	if (rndv->wanted == 0) {
		ch3_rndv_free(rndv);
		vc->engine->ran++;
		if (done)
			done(context, 0, 0);
	}
	return 0;
}

/* Returns the error of the rendezvous' connection, after freeing the rendezvous, or 0. Never an error after which the caller
 * could use the rendezvous again. */
static int rndv_failed(ch3_rndv_t *rndv)
{
	int error = rndv->vc->error;
	if (error)
		ch3_rndv_free(rndv);
	return error == -ENOMEM || error == -ENOBUFS || error == -EINVAL ? -EIO : error;
}

int ch3_rndv_accept(ch3_rndv_t *rndv, const struct iovec *iov, int n, ch3_done_fn done, void *context)
{
	if (n < 0 || n > CH3_IOV_MAX)
		return -EINVAL;
	int error = rndv_failed(rndv);
	if (!error)
		error = rndv_pieces(rndv, iov, n);
	return error ? error : rndv_clear(rndv, done, context);
}

int ch3_rndv_accept_unpack(ch3_rndv_t *rndv, size_t room, ch3_unpack_fn unpack, ch3_done_fn done, void *context)
{
	int error = rndv_failed(rndv);
	if (error)
		return error;
	rndv->unpack = unpack;
	rndv->wanted = rndv->payload_len < room ? rndv->payload_len : room;
	return rndv_clear(rndv, done, context);
}

int ch3_rndv_data(ch3_vc_t *vc, const struct ch3_front *front, struct ch3_payload *payload)
{
	ch3_rndv_t *rndv = ch3_ids_find(&vc->accepted, front->receiver_id);
	if (!rndv || front->payload_len != rndv->wanted) {
		hr_log(HR_LOG_ERROR, "ch3: peer %s: protocol violation: payload for id %#x was not requested or has another length",
		       hr_conn_peer(vc->conn), front->receiver_id);
		return -EPROTO;
	}
	ch3_ids_remove(&vc->accepted, front->receiver_id);
	ch3_write_hide(rndv);
	payload->rndv = rndv;
	payload->cursor = rndv->cursor;
	payload->done = rndv->done;
	payload->context = rndv->context;
	payload->unpack = rndv->unpack;
	payload->room = rndv->wanted;
	return 0;
}
