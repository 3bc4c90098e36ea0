/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The basic design (paper, section 4.2): three RDMA writes for each message. put writes the data into the ring and then
 * the head; get copies the data out and writes the tail back.
 *
 * All three go out on queue pair 0: the head must arrive after the data, and only requests of one queue pair keep their
 * order. So further queue pairs are of no use to this design.
 */
#include "config.h"

#include "ib/ib_conn.h"
#include "ib/ib_flat.h"

#include <endian.h>
#include <errno.h>

enum { DATA_WRITES = 2 }; /* maximum for one put: two if the bytes pass the end of the ring */

bool ib_basic_can_put(struct ib_conn *conn)
{
	if (ib_sender_room(&conn->sender) == 0)
		ib_conn_take_tail(conn);
	if (ib_sender_room(&conn->sender) == 0)
		return false;
	if (ib_queues_places(&conn->queues, 0) < DATA_WRITES)
		ib_conn_progress(conn);
	return ib_conn_control_room(conn) && ib_queues_places(&conn->queues, 0) >= DATA_WRITES;
}

/* Posts the writes of the spans, then of the head. */
static int post_data(struct ib_conn *conn, const struct ib_span spans[2])
{
	int error = 0;
	for (int i = 0; i < DATA_WRITES && !error; i++)
		if (spans[i].len > 0)
			error = ib_queues_post(&conn->queues, 0, IB_KIND_DATA, &conn->own,
					       conn->sender.staging + spans[i].offset, spans[i].len,
					       conn->peer_control + IB_CONTROL_BYTES + spans[i].offset,
					       conn->peer_rkey);
	uint32_t head = htole32(conn->sender.head);
	if (!error)
		error = ib_conn_write_control(conn, offsetof(struct ib_control, head), &head, sizeof head);
	if (error)
		ib_conn_fail(conn, error);
	return error;
}

int ib_basic_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted)
{
	if (conn->error)
		return conn->error;
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n), taken = 0;
	struct ib_span spans[2];
	if (ib_sender_room(&conn->sender) < total)
		ib_conn_take_tail(conn);
	if (ib_basic_can_put(conn))
		taken = ib_flat_fill(&conn->sender, &place, total, spans);
	if (taken > 0 && post_data(conn, spans))
		taken = 0;
	return ib_conn_end_put(conn, total, taken, IB_WAKE_ON_DATA, accepted);
}

/* Returns the head that the peer wrote last. Acquire: the bytes are read after the head. The peer's adapter writes them
 * before the head, as both are requests of one queue pair. */
static uint32_t head_told(const struct ib_conn *conn)
{
	return le32toh(__atomic_load_n(&conn->control->head, __ATOMIC_ACQUIRE));
}

bool ib_basic_can_get(const struct ib_conn *conn)
{
	return (int32_t)(head_told(conn) - conn->receiver.next) > 0;
}

int ib_basic_get(struct ib_conn *conn, const struct iovec *iov, int n, size_t *delivered)
{
	struct hr_iov_place place = hr_iov_begin(iov, n);
	int64_t taken = ib_flat_take(&conn->receiver, head_told(conn), &place, hr_iov_total(iov, n));
	if (taken < 0)
		ib_conn_violated(conn, "wrote an invalid head");
	return ib_conn_end_get(conn, taken > 0 ? (size_t)taken : 0, delivered);
}
