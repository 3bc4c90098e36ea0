/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pipeline design (paper, section 4.4): a chunk is posted as soon as it is built, so that the adapter sends it
 * while the next chunk is copied. Its get is that of the piggyback design.
 */
#include "config.h"

#include "ib/ib_conn.h"

size_t ib_pipeline_chunk(struct ib_conn *conn, struct hr_iov_place *place, size_t left)
{
	struct ib_span span;
	if (!ib_conn_has_room(conn))
		return 0;
	size_t size = ib_sender_build(&conn->sender, place, left, conn->receiver.next, &span);
	return ib_conn_post_chunk(conn, &span) ? 0 : size;
}

int ib_pipeline_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted)
{
	if (conn->error)
		return conn->error;
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n), left = total;
	while (left > 0) {
		size_t size = ib_pipeline_chunk(conn, &place, left);
		if (size == 0)
			break;
		left -= size;
	}
	return ib_conn_end_put(conn, total, total - left, IB_WAKE_ON_DATA | IB_WAKE_ON_ROOM, accepted);
}
