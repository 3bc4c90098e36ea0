/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pipeline design (paper, section 4.4): a chunk is posted as soon as it is built, so that the adapter carries it while
 * the next is copied. Its get is piggyback's.
 */
#include "config.h"

#include "ib/ib_conn.h"

/* Room in the peer's ring and on the queue pair that the next chunk goes out on? Looks for news only when there is
 * none. */
static bool has_room(struct ib_conn *conn, unsigned queue)
{
	if (ib_sender_room(&conn->sender) == 0)
		ib_conn_take_tail(conn);
	if (!ib_queues_room(&conn->queues, queue))
		ib_conn_progress(conn);
	return !conn->error && ib_sender_room(&conn->sender) > 0 && ib_queues_room(&conn->queues, queue);
}

/* Builds the next chunk and posts it; returns the payload bytes taken, 0 if it could not be posted. */
static uint32_t post_chunk(struct ib_conn *conn, unsigned queue, struct hr_iov_place *place, size_t left)
{
	struct ib_span span;
	uint32_t size = ib_sender_build(&conn->sender, place, left, conn->receiver.next, &span);
	int error = ib_queues_post(&conn->queues, queue, IB_KIND_DATA, &conn->own, conn->sender.staging + span.offset,
				   span.len, conn->peer_control + IB_CONTROL_BYTES + span.offset, conn->peer_rkey);
	if (error) {
		ib_conn_fail(conn, error);
		return 0;
	}
	conn->receiver.tail_told = conn->receiver.next;
	return size;
}

int ib_pipeline_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted)
{
	if (conn->error)
		return conn->error;
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n), left = total;
	while (left > 0) {
		/* Chunk i goes out on queue pair i mod n: the receiver takes them in ring order, whichever comes
		 * first. */
		unsigned queue = conn->sender.head % conn->queues.n;
		uint32_t size = has_room(conn, queue) ? post_chunk(conn, queue, &place, left) : 0;
		if (size == 0)
			break;
		left -= size;
	}
	conn->put_short = left > 0;
	if (left < total)
		ib_sleep_told(conn, IB_WAKE_ON_DATA | IB_WAKE_ON_ROOM);
	else
		ib_conn_idle(conn);
	/* What was posted counts as accepted; an error that came after it is returned by the next call. */
	if (left == total && conn->error)
		return conn->error;
	*accepted = total - left;
	return 0;
}
