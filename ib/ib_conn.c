/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions, detection of a dead peer, and control messages of a verbs connection. */
#include "config.h"

#include "ib/ib_conn.h"

#include "ib/ib_access.h"
#include "ib/ib_events.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"
#include "rdma_channel/stream.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum {
	IDLE_CALLS = 64,           /* after this many idle calls, poll the completion queue and read the clock */
	STREAM_EVERY_NS = 5000000, /* minimum time between two checks of the stream, which are system calls */
};

void ib_conn_fail(struct ib_conn *conn, int error)
{
	if (conn->error)
		return;
	conn->error = error;
	/* After an orderly close all data is in the ring already. After any other error no more data may arrive once
	 * get has returned the error. */
	if (error != -ESHUTDOWN)
		ib_queues_stop(&conn->queues);
	/* RDMA reads write into the user's memory, and the user may reuse that memory after the error. */
	if (ib_zerocopy_under_way(conn) || ib_access_reading(conn))
		ib_queues_destroy(&conn->queues);
}

void ib_conn_violated(struct ib_conn *conn, const char *what)
{
	if (!conn->error)
		hr_log(HR_LOG_ERROR, "verbs: %s %s", conn->env->peer, what);
	ib_conn_fail(conn, -EPROTO);
}

void ib_conn_check_stream(struct ib_conn *conn)
{
	bool woken = false;
	int error = hr_stream_take(conn->stream, &woken);
	if (woken)
		ib_sleep_woken(conn);
	if (error)
		ib_conn_fail(conn, error);
}

static int failure_error(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return -ETIMEDOUT;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		return -EPROTO;
	default:
		return -ECONNRESET;
	}
}

void ib_conn_progress(struct ib_conn *conn)
{
	struct ib_failure failure;
	if (conn->error || conn->taking)
		return;
	conn->taking = true; /* handling completions may need room in a queue, and then calls this function again */
	int error = ib_queues_poll(&conn->queues, &failure);
	if (!error && conn->zerocopy)
		ib_zerocopy_advance(conn);
	conn->taking = false;
	if (!error)
		return;
	/* If the peer has closed or died, its queue pairs are gone; the stream then shows the cause. */
	ib_conn_check_stream(conn);
	if (conn->error)
		return;
	hr_log(HR_LOG_ERROR, "verbs: connection to %s: %s (vendor error 0x%x) on queue pair %u", conn->env->peer,
	       ibv_wc_status_str(failure.status), failure.vendor_error, failure.queue);
	ib_conn_fail(conn, failure_error(failure.status));
}

void ib_conn_idle(struct ib_conn *conn)
{
	if (++conn->idle_calls % IDLE_CALLS || conn->error)
		return;
	ib_conn_pay_tail(conn);
	ib_conn_progress(conn);
	uint64_t now = hr_now_coarse_ns();
	if (now - conn->checked_ns < STREAM_EVERY_NS)
		return;
	conn->checked_ns = now;
	ib_conn_check_stream(conn);
	ib_events_take(conn->device);
}

void ib_conn_take_tail(struct ib_conn *conn)
{
	/* Relaxed: the tail allows writing into the staging area, which no other thread or process reads. The adapter
	 * gets the next request after that write, by the order that ibv_post_send guarantees. */
	uint32_t tail = le32toh(__atomic_load_n(&conn->control->tail, __ATOMIC_RELAXED));
	int error = ib_sender_credit(&conn->sender, tail);
	while (!error && conn->design != HR_VERBS_BASIC && ib_receiver_peek(&conn->receiver, &tail))
		error = ib_sender_credit(&conn->sender, tail);
	if (error)
		ib_conn_violated(conn, "acknowledged more data than was sent");
}

void ib_conn_credit(struct ib_conn *conn, uint32_t tail)
{
	if (ib_sender_credit(&conn->sender, tail))
		ib_conn_violated(conn, "acknowledged more data than was sent");
}

bool ib_conn_has_room(struct ib_conn *conn)
{
	/* Chunk i goes out on queue pair i mod n. The receiver takes chunks in ring order, in whatever order they
	 * arrive. */
	unsigned queue = conn->sender.head % conn->queues.n;
	if (ib_sender_room(&conn->sender) == 0)
		ib_conn_take_tail(conn);
	if (!ib_queues_room(&conn->queues, queue))
		ib_conn_progress(conn);
	return !conn->error && ib_sender_room(&conn->sender) > 0 && ib_queues_room(&conn->queues, queue);
}

int ib_conn_post_chunk(struct ib_conn *conn, const struct ib_span *span)
{
	int error = ib_queues_post(&conn->queues, (conn->sender.head - 1) % conn->queues.n, IB_KIND_DATA, &conn->own,
				   conn->sender.staging + span->offset, span->len,
				   conn->peer_control + IB_CONTROL_BYTES + span->offset, conn->peer_rkey);
	if (error)
		ib_conn_fail(conn, error);
	else
		conn->receiver.tail_told = conn->receiver.next;
	return error;
}

size_t ib_conn_take_chunk(struct ib_conn *conn, struct hr_iov_place *place, size_t left)
{
	uint32_t tail = conn->sender.tail; /* unchanged if no chunk is taken */
	int size = ib_receiver_take(&conn->receiver, place, left, &tail);
	if (size < 0)
		ib_conn_violated(conn, "sent an invalid chunk");
	if (size > 0 && !conn->error)
		ib_conn_credit(conn, tail);
	return size > 0 ? (size_t)size : 0;
}

bool ib_conn_can_get(const struct ib_conn *conn)
{
	switch (conn->design) {
	case HR_VERBS_BASIC: return ib_basic_can_get(conn);
	case HR_VERBS_ZEROCOPY: return ib_zerocopy_can_get(conn);
	default: return ib_receiver_ready(&conn->receiver);
	}
}

bool ib_conn_can_put(struct ib_conn *conn)
{
	switch (conn->design) {
	case HR_VERBS_BASIC: return ib_basic_can_put(conn);
	case HR_VERBS_ZEROCOPY: return ib_zerocopy_can_put(conn);
	default: return ib_conn_has_room(conn);
	}
}

static bool control_room(const struct ib_conn *conn)
{
	/* Probes count too, as they take room in the same queue pair. */
	uint32_t done = conn->queues.done[IB_KIND_CONTROL] + conn->queues.done[IB_KIND_PROBE];
	return conn->controls_posted + conn->probes_posted - done < IB_CONTROL_DEPTH - 1;
}

bool ib_conn_control_room(struct ib_conn *conn)
{
	if (!control_room(conn))
		ib_conn_progress(conn);
	return !conn->error && control_room(conn);
}

int ib_conn_write_control(struct ib_conn *conn, size_t offset, const void *bytes, uint32_t len)
{
	if (!ib_conn_control_room(conn))
		return conn->error ? conn->error : -EAGAIN;
	/* Control writes complete in order, and there is room for one more. So the write that used this source last has
	 * completed. */
	uint64_t *source = &conn->scratch->source[conn->controls_posted % IB_CONTROL_DEPTH];
	memcpy(source, bytes, len);
	int error = ib_queues_post(&conn->queues, 0, IB_KIND_CONTROL, &conn->own, source, len,
				   conn->peer_control + offset, conn->peer_rkey);
	if (error)
		ib_conn_fail(conn, error);
	else
		conn->controls_posted++;
	return error;
}

/* Returns whether the tail must be sent by a control write. In the basic design only a control write carries the tail,
 * so each new tail is sent at once. */
static bool owes_tail(const struct ib_conn *conn)
{
	return conn->design == HR_VERBS_BASIC ? conn->receiver.next != conn->receiver.tail_told :
						ib_receiver_owes(&conn->receiver);
}

void ib_conn_pay_tail(struct ib_conn *conn)
{
	uint32_t acked = conn->zerocopy ? ib_zerocopy_acknowledged(conn) : 0;
	if (conn->error || (acked == conn->acks_told && !owes_tail(conn)))
		return;
	uint32_t words[2] = { htole32(conn->receiver.next), htole32(acked) };
	if (ib_conn_write_control(conn, offsetof(struct ib_control, tail), words, sizeof words))
		return; /* the next call tries again */
	conn->receiver.tail_told = conn->receiver.tail_written = conn->receiver.next;
	conn->acks_told = acked;
	conn->env->stats->tail_updates++;
	ib_sleep_told(conn, IB_WAKE_ON_ROOM);
}

int ib_conn_end_put(struct ib_conn *conn, size_t total, size_t taken, uint32_t wake_bits, size_t *accepted)
{
	conn->put_short = taken < total;
	if (taken > 0)
		ib_sleep_told(conn, wake_bits);
	else
		ib_conn_idle(conn);
	if (taken == 0 && conn->error)
		return conn->error;
	*accepted = taken;
	return 0;
}

int ib_conn_end_get(struct ib_conn *conn, size_t taken, size_t *delivered)
{
	if (taken > 0)
		ib_conn_pay_tail(conn);
	else if (conn->error)
		return conn->error;
	else
		ib_conn_idle(conn);
	*delivered = taken;
	return 0;
}
