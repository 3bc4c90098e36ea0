/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous by remote write: the sender writes the payload directly into the receiver's buffers, if the transport
 * supports it (rdma_channel/remote_access.h). Liu et al., IPDPS 2004, section 6, build this into CH3 and compare it with
 * the channel's own zero-copy. A payload that cannot be written is sent through the pipe.
 */
#include "ch3/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of writes of one payload. The piece boundaries of both sides divide a payload into stretches that are
 * contiguous on both sides, one write each. A payload of more stretches is sent through the pipe, because each write
 * costs a memory registration and a work request. */
enum { STRETCHES_MAX = 16 };

struct ch3_writes {
	uint64_t payload_len;
	uint32_t receiver_id;
	bool by_pipe; /* a write could not be started: send the payload through the pipe when the others are complete */
	int n;
	hr_remote_access_t *write[STRETCHES_MAX];
};

bool ch3_write_can(const ch3_vc_t *vc, uint64_t payload_len)
{
	if (!vc->engine->writes || payload_len < HR_ZERO_COPY_MIN)
		return false;
	if (hr_remote_can(vc->conn))
		return true;
	hr_log_once(HR_LOG_DEBUG, "ch3: HEADRACE_RENDEZVOUS=write: peer %s does not support remote writes; using the pipe",
		    hr_conn_transport(vc->conn));
	return false;
}

/* ---- the receiver ---- */

int ch3_write_expose(ch3_rndv_t *rndv, struct ch3_place place[CH3_PLACES_MAX])
{
	hr_conn_t *conn = rndv->vc->conn;
	if (!rndv->can_write || rndv->cursor.n > CH3_PLACES_MAX || !ch3_write_can(rndv->vc, rndv->wanted))
		return 0;
	for (int i = 0; i < rndv->cursor.n; i++) {
		const struct iovec *piece = &rndv->cursor.piece[i];
		if (piece->iov_len == 0)
			continue;
		int n = rndv->n_exposed;
		if (hr_remote_expose(conn, piece->iov_base, piece->iov_len, &rndv->exposed[n], &place[n].token)) {
			ch3_write_hide(rndv);
			return 0;
		}
		place[n].len = piece->iov_len;
		rndv->n_exposed++;
	}
	return rndv->n_exposed;
}

void ch3_write_hide(ch3_rndv_t *rndv)
{
	while (rndv->n_exposed > 0)
		hr_remote_hide(rndv->exposed[--rndv->n_exposed]);
}

int ch3_write_done(ch3_vc_t *vc, const struct ch3_front *front)
{
	ch3_rndv_t *rndv = ch3_ids_find(&vc->accepted, front->receiver_id);
	if (!rndv || rndv->n_exposed == 0 || front->payload_len != rndv->wanted) {
		hr_log(HR_LOG_ERROR, "ch3: peer %s: protocol violation: it completed a write to id %#x, which was not exposed "
		       "or has another length",
		       hr_conn_peer(vc->conn), front->receiver_id);
		return -EPROTO;
	}
	ch3_ids_remove(&vc->accepted, front->receiver_id);
	ch3_done_fn done = rndv->done;
	void *context = rndv->context;
	size_t moved = (size_t)rndv->wanted;
	ch3_rndv_free(rndv);
	vc->engine->ran++;
	if (done)
		done(context, 0, moved);
	return 0;
}

/* ---- the sender ---- */

static int places_read(const ch3_vc_t *vc, const struct ch3_front *front, struct ch3_place place[CH3_PLACES_MAX])
{
	uint64_t left = front->payload_len;
	int n = (int)(front->header_len / sizeof *place);
	memcpy(place, front->header, front->header_len);
	for (int i = 0; i < n; i++) {
		if (place[i].len == 0 || place[i].len > left)
			left = UINT64_MAX;
		else
			left -= place[i].len;
		if (left == UINT64_MAX)
			break;
	}
	if (left == 0)
		return n;
	hr_log(HR_LOG_ERROR, "ch3: peer %s: protocol violation: its exposed memory does not have the announced length",
	       hr_conn_peer(vc->conn));
	return -EPROTO;
}

/* Starts one write for each stretch that is contiguous on both sides. Returns false if a write could not be started. */
static bool start_all(ch3_vc_t *vc, const ch3_request_t *send, const struct ch3_place *place, struct ch3_writes *writes)
{
	const struct iovec *piece = send->iov + 1;
	uint64_t left = writes->payload_len, into_place = 0;
	size_t into_piece = 0;
	while (left > 0) {
		if (into_piece == piece->iov_len) {
			piece++;
			into_piece = 0;
			continue;
		}
		uint64_t len = piece->iov_len - into_piece;
		if (len > place->len - into_place)
			len = place->len - into_place;
		if (writes->n == STRETCHES_MAX ||
		    hr_remote_write(vc->conn, &place->token, into_place, (const uint8_t *)piece->iov_base + into_piece,
				    (size_t)len, &writes->write[writes->n]))
			return false;
		writes->n++;
		left -= len;
		into_piece += (size_t)len;
		into_place += len;
		if (into_place == place->len) {
			place++;
			into_place = 0;
		}
	}
	return true;
}

int ch3_write_start(ch3_vc_t *vc, ch3_request_t *send, const struct ch3_front *front)
{
	struct ch3_place place[CH3_PLACES_MAX];
	int n = places_read(vc, front, place);
	if (n < 0)
		return n;
	struct ch3_writes *writes = calloc(1, sizeof *writes);
	if (!writes)
		return 0;
	writes->payload_len = front->payload_len;
	writes->receiver_id = front->receiver_id;
	writes->by_pipe = !start_all(vc, send, place, writes);
	if (writes->n == 0) {
		free(writes);
		return 0;
	}
	send->writes = writes;
	send->stage = CH3_STAGE_WRITING;
	send->next = vc->writing;
	vc->writing = send;
	return 1;
}

static void writes_free(ch3_request_t *send)
{
	for (int i = 0; i < send->writes->n; i++)
		hr_remote_end(send->writes->write[i]);
	free(send->writes);
	send->writes = NULL;
}

/* Returns 1 if all writes are complete, 0 if not yet, or the connection's error. */
static int writes_test(ch3_vc_t *vc, struct ch3_writes *writes)
{
	for (int i = writes->n; i-- > 0;) {
		int done = hr_remote_test(vc->conn, writes->write[i]);
		if (done < 0)
			return done;
		if (done == 0)
			continue;
		hr_remote_end(writes->write[i]);
		writes->write[i] = writes->write[--writes->n];
	}
	return writes->n == 0;
}

static void complete(ch3_vc_t *vc, ch3_request_t *send)
{
	struct ch3_writes writes = *send->writes;
	writes_free(send);
	if (writes.by_pipe) {
		ch3_rndv_queue_data(vc, send, writes.payload_len, writes.receiver_id);
		return;
	}
	struct ch3_packet_more more = { writes.payload_len, 0, writes.receiver_id };
	int error = ch3_send_own(vc, CH3_PACKET_DONE, &more, NULL, 0);
	if (error)
		ch3_send_failed(vc, error);
	ch3_request_complete(send, error);
}

void ch3_write_progress(ch3_vc_t *vc)
{
	ch3_request_t **link = &vc->writing, *send;
	while ((send = *link) && !vc->send_error) {
		int done = writes_test(vc, send->writes);
		if (done < 0)
			ch3_send_failed(vc, done);
		if (done <= 0) {
			link = &send->next;
			continue;
		}
		*link = send->next;
		complete(vc, send);
	}
}

void ch3_write_cancel(ch3_vc_t *vc, int error)
{
	while (vc->writing) {
		ch3_request_t *send = vc->writing;
		vc->writing = send->next;
		writes_free(send);
		ch3_request_complete(send, error);
	}
}
