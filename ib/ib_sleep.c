/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping without an adapter that raises an interrupt for each write.
 *
 * Who wants to sleep (S) asks its peer (P) to be woken; P answers the next put or tail update that fits by a wake-up on
 * the stream. P may be far from here in its program, so the request alone proves nothing: what P posted before it could
 * see the request carries no wake-up, and may still be under way when S looks at its ring for the last time. Therefore:
 *
 *	S: RDMA write of the request into P's control block, then, on the same queue pair, RDMA read of P's progress
 *	   (the counts of chunks, of tails and of acknowledgements that P has posted); S sleeps for good only when
 *	   that read is done and its ring has everything that the counts promise.
 *	P: on each put and tail update: posts, stores its progress, full fence, loads the request.
 *
 * No wake-up is lost: the read is carried out after the write (requests of one queue pair, InfiniBand specification
 * table 76; and a read by the adapter does not pass its earlier write on the way to memory). If P's store is in memory
 * before the read, S sees the count and knows that something is coming. If not, P's load, which the fence puts after
 * the store, comes after the write, and P sees the request. Both words are read in one piece or not: a torn count is
 * read only while P stores it, hence in the second case; if it looks too large, S finds nothing coming and asks anew.
 *
 * While the read is under way S may sleep: its completion wakes it (completion channel, armed before the completion
 * queue is looked at for the last time). In the same way S sleeps while its own zero-copy reads are under way.
 *
 * A request is answered at most once: P remembers the number of the last one that it answered and never writes into the
 * word that S's adapter writes. S regards its request as good until a wake-up has come; when that belongs to an older
 * request, S asks once more than needed.
 */
#include "config.h"

#include "ib/ib_conn.h"
#include "ib/ib_write.h"

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
	/* Orders the stores above before the load below; pairs with the peer's write and read in one queue pair. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* Acquire: bits, which lie before seq and were written before it, are read after it. */
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
	/* For the probe, for a full queue pair, and for errors. Completions that came before are seen by
	 * ib_sleep_pending, which the channel calls after this. */
	int error = ibv_req_notify_cq(conn->queues.cq, 0);
	if (error)
		ib_conn_fail(conn, -error);
}

/* Does the probe show something that has not arrived? It will in a moment, or the count was torn: ask anew either
 * way. */
static bool probe_promises(struct ib_conn *conn, bool want_put)
{
	const struct ib_progress *probed = &conn->scratch->probed;
	/* A chunk that has arrived and waits for bytes before it that are being read is no promise. */
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
	/* Again: a read of ours that has completed before we armed raises no event, and has just been taken. */
	if (conn->error || ib_conn_can_get(conn) || ib_write_pending(conn) ||
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
