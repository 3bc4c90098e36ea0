/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The piggyback design (paper, section 4.3): each chunk is one RDMA write, which also contains its flags and the other
 * direction's tail (ib_ring.h). A put first builds all its chunks and then posts them together, with one call for each
 * queue pair. So no bytes are copied while the adapter works.
 */
#include "config.h"

#include "ib/ib_conn.h"

/* Returns how many chunks the ring and the queue pairs have room for. The chunks go to the queue pairs in turn. */
static uint32_t chunks_that_fit(const struct ib_conn *conn)
{
	const struct ib_queues *queues = &conn->queues;
	uint32_t most = ib_sender_room(&conn->sender);
	for (uint32_t k = 0; k < queues->n && k < most; k++) {
		uint32_t before_full = k + queues->n * ib_queues_places(queues, (conn->sender.head + k) % queues->n);
		most = before_full < most ? before_full : most;
	}
	return most;
}

/* As chunks_that_fit; if that is fewer than wanted, first looks for a new tail and completions. */
static uint32_t chunks_allowed(struct ib_conn *conn, uint64_t wanted)
{
	uint32_t most = chunks_that_fit(conn);
	if (most >= wanted)
		return most;
	ib_conn_take_tail(conn);
	ib_conn_progress(conn);
	return conn->error ? 0 : chunks_that_fit(conn);
}

/* Posts all chunks that were built, from number first on. */
static int post_chunks(struct ib_conn *conn, uint32_t first)
{
	struct ib_queues *queues = &conn->queues;
	for (uint32_t k = 0; k < queues->n && k < conn->sender.head - first; k++) {
		unsigned queue = (first + k) % queues->n;
		int error = 0;
		for (uint32_t chunk = first + k; (int32_t)(conn->sender.head - chunk) > 0 && !error;
		     chunk += queues->n) {
			struct ib_span span = ib_sender_span(&conn->sender, chunk);
			ib_queues_stage(queues, queue, IB_KIND_DATA, conn->own.mr->lkey,
					conn->sender.staging + span.offset, span.len,
					conn->peer_control + IB_CONTROL_BYTES + span.offset, conn->peer_rkey);
			if (queues->batch.n == IB_BATCH)
				error = ib_queues_send(queues, queue);
		}
		if (!error)
			error = ib_queues_send(queues, queue);
		if (error)
			return error;
	}
	conn->receiver.tail_told = conn->receiver.next;
	return 0;
}

/* Builds and posts as many chunks as there is room for. Returns the number of bytes in them. */
static size_t put_chunks(struct ib_conn *conn, struct hr_iov_place *place, size_t total)
{
	uint32_t payload = ib_geometry_payload(&conn->sender.geometry), first = conn->sender.head;
	uint32_t most = chunks_allowed(conn, (total + payload - 1) / payload);
	struct ib_span span;
	size_t left = total;
	while (left > 0 && conn->sender.head - first < most)
		left -= ib_sender_build(&conn->sender, place, left, conn->receiver.next, &span);
	int error = left < total ? post_chunks(conn, first) : 0;
	if (error)
		ib_conn_fail(conn, error);
	return error ? 0 : total - left;
}

int ib_piggyback_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted)
{
	if (conn->error)
		return conn->error;
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n);
	size_t taken = put_chunks(conn, &place, total);
	return ib_conn_end_put(conn, total, taken, IB_WAKE_ON_DATA | IB_WAKE_ON_ROOM, accepted);
}

int ib_piggyback_get(struct ib_conn *conn, const struct iovec *iov, int n, size_t *delivered)
{
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n), left = total;
	while (left > 0) {
		size_t size = ib_conn_take_chunk(conn, &place, left);
		if (size == 0)
			break;
		left -= size;
	}
	return ib_conn_end_get(conn, total - left, delivered);
}
