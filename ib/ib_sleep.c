/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping and waking. An RDMA write raises no interrupt at its target, so the peer must send a wake-up.
 *
 * The side that wants to sleep (S) requests a wake-up from its peer (P). P sends the wake-up on the stream with its
 * next put or tail update that S has asked for. The request alone is not enough: bytes that P posted before it could
 * see the request cause no wake-up, and may still be in flight when S polls its ring for the last time. Therefore:
 *
 *	S: writes the request into P's control block by RDMA write; then, on the same queue pair, reads P's progress
 *	   (the counts of chunks, tails and acknowledgements that P has posted) by RDMA read, the probe. S stays asleep
 *	   only if the probe is complete and everything that the counts name has arrived.
 *	P: on each put and tail update: posts, stores its progress, issues a full fence, loads the request.
 *
 * No wake-up is lost. The probe is carried out after the write: both are requests of one queue pair (InfiniBand
 * specification, table 76), and an adapter's read of memory does not pass its earlier write. If P's store of the
 * progress is in memory before the probe reads it, S sees the counts and knows that bytes are coming. Otherwise P's
 * load, which the fence orders after the store, comes after the write, and P sees the request. The probe may read a
 * torn count, but only while P stores it, that is in the second case. If the torn count is too large, S finds that the
 * bytes do not arrive, and sends a new request.
 *
 * S may sleep while the probe is in flight: its completion raises an event (completion channel, armed before the last
 * poll of the completion queue). In the same way S sleeps while its own zero-copy reads are in flight.
 *
 * A request is answered at most once: P remembers the number of the last request that it answered, and never writes
 * into the word that S's adapter writes. S regards its request as open until a wake-up arrives. If that wake-up answers
 * an older request, S sends one request more than necessary.
 */
#include "config.h"

#include "ib/ib_conn.h"
#include "ib/ib_access.h"

#include "rdma_channel/stream.h"

#include <endian.h>
#include <errno.h>

void ib_sleep_told(struct ib_conn *conn, uint32_t bits)
{
	struct ib_progress *progress = &conn->control->progress;
	struct ib_wake_request *request = &conn->control->wake;
	__atomic_store_n(&progress->posted, htole32(conn->sender.head), __ATOMIC_RELAXED);
	__atomic_store_n(&progress->tail, htole32(conn->receiver.tail_told), __ATOMIC_RELAXED);
	__atomic_store_n(&progress->acked, htole32(conn->acks_told), __ATOMIC_RELAXED);
	/* Orders the stores above before the load below. Pairs with the order of the peer's write and read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* Acquire: bits is read after seq. The peer's adapter writes bits, at the lower address, before seq. */
	uint32_t seq = __atomic_load_n(&request->seq, __ATOMIC_ACQUIRE);
	if (seq == conn->answered_seq || !(le32toh(__atomic_load_n(&request->bits, __ATOMIC_RELAXED)) & bits))
		return;
	conn->answered_seq = seq;
	conn->env->stats->wakeups_sent++;
	hr_stream_wake(conn->stream);
}

void ib_sleep_woken(struct ib_conn *conn)
{
	conn->sleep = IB_AWAKE;
}

static int post_probe(struct ib_conn *conn)
{
	int error = ib_queues_post(&conn->queues, 0, IB_KIND_PROBE, &conn->own, &conn->scratch->probed,
				   sizeof conn->scratch->probed,
				   conn->peer_control + offsetof(struct ib_control, progress), conn->peer_rkey);
	if (error)
		ib_conn_fail(conn, error);
	else
		conn->probes_posted++;
	return error;
}

static void ask(struct ib_conn *conn, uint32_t bits)
{
	struct ib_wake_request request = { htole32(bits), htole32(++conn->wake_seq) };
	conn->wake_bits = bits;
	conn->sleep = IB_REFUSED;
	if (ib_conn_write_control(conn, offsetof(struct ib_control, wake), &request, sizeof request) ||
	    post_probe(conn))
		return;
	conn->sleep = IB_PROBING;
}

void ib_sleep_arm(struct ib_conn *conn, bool want_put)
{
	ib_conn_pay_tail(conn);
	if (conn->error)
		return;
	uint32_t bits = IB_WAKE_ON_DATA | (want_put && conn->put_short ? IB_WAKE_ON_ROOM : 0);
	if (conn->sleep == IB_AWAKE || conn->sleep == IB_REFUSED || bits & ~conn->wake_bits)
		ask(conn, bits);
	/* Request an event for the next completion: of the probe, of a request in a full queue pair, or with an error.
	 * ib_sleep_pending, which the channel calls next, sees earlier completions. */
	int error = ibv_req_notify_cq(conn->queues.cq, 0);
	if (error)
		ib_conn_fail(conn, -error);
}

/* Returns whether the probe names something that has not arrived yet. It will arrive soon, or the count was torn; in
 * both cases the next arming sends a new request. */
static bool probe_promises(struct ib_conn *conn, bool want_put)
{
	const struct ib_progress *probed = &conn->scratch->probed;
	/* Not if the chunk has arrived and only waits for RDMA reads of bytes before it. */
	bool data = (int32_t)(le32toh(probed->posted) - conn->receiver.next) > 0 &&
		    (conn->design == HR_VERBS_BASIC || !ib_receiver_ready(&conn->receiver));
	bool room = want_put && conn->put_short &&
		    ((int32_t)(le32toh(probed->tail) - conn->sender.tail) > 0 ||
		     (conn->zerocopy && ib_zerocopy_is_news(conn, le32toh(probed->acked))));
	if (data || room)
		conn->sleep = IB_AWAKE;
	return data || room;
}

bool ib_sleep_pending(struct ib_conn *conn, bool want_put)
{
	if (conn->error || ib_conn_can_get(conn))
		return true;
	if (conn->sleep != IB_AWAKE || (want_put && conn->put_short) || ib_zerocopy_under_way(conn))
		ib_conn_progress(conn);
	else
		ib_conn_idle(conn);
	/* Check again: a read of this side that completed before the arming raises no event, and was just handled. */
	if (conn->error || ib_conn_can_get(conn) || ib_access_pending(conn) ||
	    (want_put && conn->put_short && ib_conn_can_put(conn)))
		return true;
	switch (conn->sleep) {
	case IB_AWAKE:
		return false;
	case IB_REFUSED:
		return true;
	case IB_PROBING:
		if (conn->queues.done[IB_KIND_PROBE] != conn->probes_posted)
			return false;
		conn->sleep = IB_ARMED;
		/* fall through */
	case IB_ARMED:
		return probe_promises(conn, want_put);
	}
	return false;
}

void ib_sleep_event(struct ib_conn *conn)
{
	struct ibv_cq *cq;
	void *context;
	while (!ibv_get_cq_event(conn->queues.events, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	ib_conn_progress(conn);
	ib_conn_check_stream(conn);
}
