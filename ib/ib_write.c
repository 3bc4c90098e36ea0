/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote writes into exposed memory of the peer (rdma_channel/remote_write.h). */
#include "config.h"

#include "ib/ib_write.h"

#include "ib/ib_cache.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

/* Bytes of one request: large enough that the cost of a request does not matter, small enough that all queue pairs get
 * a part of a long write. */
enum { WRITE_BYTES = 256 << 10 };

/* Memory that the peer may write into. The token has its start; the registration covers whole pages. */
struct exposed {
	struct hr_exposed common;
	struct ib_cached *cached;
};

struct write {
	struct hr_remote_write common;
	struct ib_cached *cached;
	const uint8_t *from; /* the bytes that are not posted yet */
	size_t left;
	uint64_t to;
	uint32_t rkey;
	bool posted_on[IB_QPS_MAX];
	uint32_t last[IB_QPS_MAX]; /* count of the last request of this write on each queue pair */
};

int ib_write_expose(struct ib_conn *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token)
{
	struct ib_cached *cached;
	int error = ib_cache_get(conn->device->cache, conn->env->stats, address, len,
				 IB_USE_RECEIVE | IB_USE_REMOTE_WRITE, &cached);
	if (error)
		return error;
	struct exposed *made = malloc(sizeof *made);
	if (!made) {
		ib_cache_put(cached);
		return -ENOMEM;
	}
	*made = (struct exposed){ { &hr_transport_verbs }, cached };
	*token = (struct hr_token){ htole64((uintptr_t)address), htole32(cached->rkey), 0 };
	*exposed = &made->common;
	return 0;
}

void ib_write_hide(hr_exposed_t *exposed)
{
	struct exposed *made = (struct exposed *)exposed;
	ib_cache_put(made->cached);
	free(made);
}

/* Posts as many requests as there is room for, on all queue pairs in turn. */
static int post(struct ib_conn *conn, struct write *write)
{
	struct ib_queues *queues = &conn->queues;
	unsigned full = 0;
	while (write->left > 0 && full < queues->n) {
		unsigned i = conn->writes_posted % queues->n;
		conn->writes_posted++;
		if (!ib_queues_room(queues, i)) {
			full++;
			continue;
		}
		full = 0;
		uint32_t len = write->left < WRITE_BYTES ? (uint32_t)write->left : WRITE_BYTES;
		ib_queues_stage(queues, i, IB_KIND_WRITE, write->cached->lkey, write->from, len, write->to,
				write->rkey);
		write->posted_on[i] = true;
		write->last[i] = queues->queue[i].posted;
		int error = ib_queues_send(queues, i);
		if (error) {
			ib_conn_fail(conn, error);
			return error;
		}
		write->from += len;
		write->to += len;
		write->left -= len;
	}
	return 0;
}

int ib_write_start(struct ib_conn *conn, const struct hr_token *token, uint64_t offset, const void *address,
		   size_t len, hr_remote_write_t **write)
{
	if (conn->error)
		return conn->error;
	struct write *made = calloc(1, sizeof *made);
	if (!made)
		return -ENOMEM;
	int error = ib_cache_get(conn->device->cache, conn->env->stats, address, len, IB_USE_SEND, &made->cached);
	if (error) {
		free(made);
		return error;
	}
	made->common.transport = &hr_transport_verbs;
	made->from = address;
	made->left = len;
	made->to = le64toh(token->address) + offset;
	made->rkey = le32toh(token->key);
	error = post(conn, made);
	if (error) {
		ib_write_end(&made->common);
		return error;
	}
	conn->writes_short += made->left > 0;
	*write = &made->common;
	return 0;
}

/* Requests of one queue pair complete in order, so it is enough to check the last request on each. */
static bool is_complete(const struct ib_conn *conn, const struct write *write)
{
	for (unsigned i = 0; i < conn->queues.n; i++)
		if (write->posted_on[i] && (int32_t)(conn->queues.queue[i].completed - write->last[i]) < 0)
			return false;
	return write->left == 0;
}

int ib_write_test(struct ib_conn *conn, hr_remote_write_t *started)
{
	struct write *write = (struct write *)started;
	ib_conn_progress(conn);
	conn->writes_seen = conn->queues.done[IB_KIND_WRITE];
	if (conn->error)
		return conn->error;
	if (is_complete(conn, write))
		return 1;
	if (write->left > 0) {
		int error = post(conn, write);
		if (error)
			return error;
		conn->writes_short -= write->left == 0;
	}
	/* Check the peer now and then, as after a put that moved nothing. */
	ib_conn_idle(conn);
	return conn->error;
}

void ib_write_end(hr_remote_write_t *started)
{
	struct write *write = (struct write *)started;
	ib_cache_put(write->cached);
	free(write);
}

bool ib_write_pending(const struct ib_conn *conn)
{
	if (conn->queues.done[IB_KIND_WRITE] != conn->writes_seen)
		return true;
	for (unsigned i = 0; conn->writes_short > 0 && i < conn->queues.n; i++)
		if (ib_queues_room(&conn->queues, i))
			return true;
	return false;
}
