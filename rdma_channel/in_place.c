/* SPDX-License-Identifier: BSD-3-Clause */
/* Records in place, and looking ahead: forwards ch3's calls to the transport of the connection and counts them as puts and gets. */
#include "rdma_channel/impl.h"
#include "rdma_channel/upper.h"

bool hr_conn_in_place(const hr_conn_t *conn)
{
	return conn->phase == HR_PHASE_UP && conn->transport->reserve;
}

void *hr_conn_reserve(hr_conn_t *conn, size_t front, size_t len)
{
	if (conn->phase != HR_PHASE_UP || conn->attention || conn->error || !conn->transport->reserve)
		return NULL;
	return conn->transport->reserve(conn->data, front, len);
}

void hr_conn_drain(hr_conn_t *conn, void *to, const void *from, size_t len)
{
	conn->transport->drain(conn->data, to, from, len);
}

void hr_conn_fill(hr_conn_t *conn, void *to, const void *from, size_t len)
{
	conn->transport->fill(conn->data, to, from, len);
}

void hr_conn_commit(hr_conn_t *conn, size_t len)
{
	conn->transport->commit(conn->data, len);
	conn->put_short = false;
	conn->stats.put_calls++;
	conn->stats.put_bytes += len;
}

bool hr_conn_post(hr_conn_t *conn, const void *front, size_t front_len, const void *payload, size_t len)
{
	if (conn->phase != HR_PHASE_UP || conn->attention || conn->error || !conn->transport->post ||
	    !conn->transport->post(conn->data, front, front_len, payload, len))
		return false;
	conn->put_short = false;
	conn->stats.put_calls++;
	conn->stats.put_bytes += front_len + len;
	return true;
}

enum hr_arrival hr_conn_peek(hr_conn_t *conn, const uint8_t **bytes, size_t *len)
{
	if (conn->phase != HR_PHASE_UP || conn->attention || !conn->transport->peek)
		return HR_CALL_GET;
	enum hr_arrival arrival = conn->transport->peek(conn->data, bytes, len);
	if (arrival != HR_CALL_GET) {
		conn->stats.get_calls++;
		conn->stats.get_empty += arrival == HR_NOT_ARRIVED;
	}
	return arrival;
}

void hr_conn_consume(hr_conn_t *conn, size_t count)
{
	conn->transport->consume(conn->data, count);
	conn->stats.get_bytes += count;
}

int hr_conn_take(hr_conn_t *conn, hr_record_fn fn, void *context, unsigned most)
{
	if (conn->phase != HR_PHASE_UP || conn->attention || !conn->transport->take)
		return 0;
	int taken = conn->transport->take(conn->data, fn, context, most, &conn->stats.get_bytes);
	if (taken > 0)
		conn->stats.get_calls += (unsigned)taken;
	return taken;
}

size_t hr_conn_ahead(hr_conn_t *conn, uint64_t skip, void *to, size_t len)
{
	if (conn->phase != HR_PHASE_UP || conn->attention || conn->error || !conn->transport->ahead)
		return 0;
	return conn->transport->ahead(conn->data, skip, to, len);
}

struct hr_awaited *hr_conn_watch(hr_conn_t *conn)
{
	return conn->phase == HR_PHASE_UP && conn->transport->watch ? conn->transport->watch(conn->data) : NULL;
}
