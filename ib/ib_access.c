/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to the peer's memory by the adapter (rdma_channel/remote_access.h). */
#include "config.h"

#include "ib/ib_access.h"

#include "ib/ib_cache.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

/* Bytes of one request: large enough that the cost of a request does not matter, small enough that all queue pairs get
 * a part of a long access. */
enum { REQUEST_BYTES = 256 << 10 };

/* Memory that peers may access. The token has its start; the registration covers whole pages. */
struct ib_exposed {
	struct hr_exposed common;
	struct ib_cached *cached;
	void *address;
	size_t len;
	unsigned users;              /* hr_remote_share calls without hr_remote_hide; 1 for hr_remote_expose */
	bool listed;                 /* shared: in device->shared */
	LIST_ENTRY(ib_exposed) place;
};

struct ib_access {
	struct hr_remote_access common;
	TAILQ_ENTRY(ib_access) place; /* in conn->accesses, if conn is not NULL */
	struct ib_conn *conn;         /* not NULL: a part waits for room in the queue pairs */
	struct ib_cached *cached;     /* registration of the local memory; NULL: none, the bytes are sent inline */
	enum ib_kind kind;            /* IB_KIND_WRITE or IB_KIND_FETCH */
	const uint8_t *local;         /* the bytes that are not posted yet */
	size_t left;
	uint64_t remote;
	uint32_t rkey;
	bool posted_on[IB_QPS_MAX];
	uint32_t last[IB_QPS_MAX]; /* count of the last request of this access on each queue pair */
};

/* ---- memory for the peer ---- */

static int expose(struct ib_conn *conn, void *address, size_t len, unsigned uses, struct ib_exposed **exposed)
{
	struct ib_cached *cached;
	int error = ib_cache_get(conn->device->cache, conn->env->stats, address, len, uses, &cached);
	if (error)
		return error;
	struct ib_exposed *made = malloc(sizeof *made);
	if (!made) {
		ib_cache_put(cached);
		return -ENOMEM;
	}
	*made = (struct ib_exposed){ .common = { &hr_transport_verbs }, .cached = cached, .address = address, .len = len,
				     .users = 1 };
	*exposed = made;
	return 0;
}

static struct hr_token token_of(const struct ib_exposed *exposed)
{
	return (struct hr_token){ htole64((uintptr_t)exposed->address), htole32(exposed->cached->rkey), 0 };
}

int ib_access_expose(struct ib_conn *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token)
{
	struct ib_exposed *made;
	int error = expose(conn, address, len, IB_USE_RECEIVE | IB_USE_REMOTE_WRITE, &made);
	if (error)
		return error;
	*token = token_of(made);
	*exposed = &made->common;
	return 0;
}

/* All connections of the device use its protection domain, so one registration serves all of them. */
int ib_access_share(struct ib_conn *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token)
{
	struct ib_exposed *shared;
	LIST_FOREACH(shared, &conn->device->shared, place)
		if (shared->address == address && shared->len == len)
			break;
	if (shared) {
		shared->users++;
	} else {
		int error = expose(conn, address, len, IB_USE_SEND | IB_USE_RECEIVE | IB_USE_REMOTE_WRITE, &shared);
		if (error)
			return error;
		shared->listed = true;
		LIST_INSERT_HEAD(&conn->device->shared, shared, place);
	}
	*token = token_of(shared);
	*exposed = &shared->common;
	return 0;
}

void ib_access_hide(hr_exposed_t *exposed)
{
	struct ib_exposed *made = (struct ib_exposed *)exposed;
	if (--made->users > 0)
		return;
	if (made->listed)
		LIST_REMOVE(made, place);
	ib_cache_put(made->cached);
	free(made);
}

/* ---- accesses ---- */

/* Posts as many requests as there is room for, on all queue pairs in turn. */
static int post(struct ib_conn *conn, struct ib_access *access)
{
	struct ib_queues *queues = &conn->queues;
	unsigned full = 0;
	while (access->left > 0 && full < queues->n) {
		unsigned i = conn->accesses_posted % queues->n;
		conn->accesses_posted++;
		if (!ib_queues_room(queues, i)) {
			full++;
			continue;
		}
		full = 0;
		uint32_t len = access->left < REQUEST_BYTES ? (uint32_t)access->left : REQUEST_BYTES;
		ib_queues_stage(queues, i, access->kind, access->cached ? access->cached->lkey : 0, access->local, len,
				access->remote, access->rkey);
		access->posted_on[i] = true;
		access->last[i] = queues->queue[i].posted;
		conn->fetches_posted += access->kind == IB_KIND_FETCH;
		int error = ib_queues_send(queues, i);
		if (error) {
			ib_conn_fail(conn, error);
			return error;
		}
		access->local += len;
		access->remote += len;
		access->left -= len;
	}
	return 0;
}

/* Posts requests of the accesses that wait for room, the oldest first. */
static int post_waiting(struct ib_conn *conn)
{
	struct ib_access *access;
	while ((access = TAILQ_FIRST(&conn->accesses))) {
		int error = post(conn, access);
		if (error || access->left > 0)
			return error;
		TAILQ_REMOVE(&conn->accesses, access, place);
		access->conn = NULL;
	}
	return 0;
}

static int start(struct ib_conn *conn, enum ib_kind kind, const struct hr_token *token, uint64_t offset,
		 const void *address, size_t len, hr_remote_access_t **access)
{
	if (conn->error)
		return conn->error;
	struct ib_access *made = calloc(1, sizeof *made);
	if (!made)
		return -ENOMEM;
	bool in_line = kind == IB_KIND_WRITE && len <= conn->queues.max_inline;
	int error = in_line ? 0 : ib_cache_get(conn->device->cache, conn->env->stats, address, len,
					       kind == IB_KIND_WRITE ? IB_USE_SEND : IB_USE_RECEIVE, &made->cached);
	if (error) {
		free(made);
		return error;
	}
	made->common.transport = &hr_transport_verbs;
	made->kind = kind;
	made->local = address;
	made->left = len;
	made->remote = le64toh(token->address) + offset;
	made->rkey = le32toh(token->key);
	made->conn = conn;
	TAILQ_INSERT_TAIL(&conn->accesses, made, place);
	error = post_waiting(conn);
	if (error) {
		ib_access_end(&made->common);
		return error;
	}
	*access = &made->common;
	return 0;
}

int ib_access_write(struct ib_conn *conn, const struct hr_token *token, uint64_t offset, const void *address,
		    size_t len, hr_remote_access_t **write)
{
	return start(conn, IB_KIND_WRITE, token, offset, address, len, write);
}

int ib_access_read(struct ib_conn *conn, const struct hr_token *token, uint64_t offset, void *address, size_t len,
		   hr_remote_access_t **read)
{
	return start(conn, IB_KIND_FETCH, token, offset, address, len, read);
}

/* Requests of one queue pair complete in order, so it is enough to check the last request on each. */
static bool is_complete(const struct ib_conn *conn, const struct ib_access *access)
{
	for (unsigned i = 0; i < conn->queues.n; i++)
		if (access->posted_on[i] && (int32_t)(conn->queues.queue[i].completed - access->last[i]) < 0)
			return false;
	return access->left == 0;
}

int ib_access_test(struct ib_conn *conn, hr_remote_access_t *started)
{
	struct ib_access *access = (struct ib_access *)started;
	ib_conn_progress(conn);
	conn->accesses_seen = conn->queues.done[IB_KIND_WRITE] + conn->queues.done[IB_KIND_FETCH];
	if (conn->error)
		return conn->error;
	int error = post_waiting(conn);
	if (error)
		return error;
	if (is_complete(conn, access))
		return 1;
	/* Check the peer now and then, as after a put that moved nothing. */
	ib_conn_idle(conn);
	return conn->error;
}

void ib_access_end(hr_remote_access_t *started)
{
	struct ib_access *access = (struct ib_access *)started;
	if (access->conn)
		TAILQ_REMOVE(&access->conn->accesses, access, place);
	if (access->cached)
		ib_cache_put(access->cached);
	free(access);
}

/* ---- the connection ---- */

bool ib_access_pending(const struct ib_conn *conn)
{
	if (conn->queues.done[IB_KIND_WRITE] + conn->queues.done[IB_KIND_FETCH] != conn->accesses_seen)
		return true;
	for (unsigned i = 0; !TAILQ_EMPTY(&conn->accesses) && i < conn->queues.n; i++)
		if (ib_queues_room(&conn->queues, i))
			return true;
	return false;
}

bool ib_access_reading(const struct ib_conn *conn)
{
	return conn->fetches_posted != conn->queues.done[IB_KIND_FETCH];
}

void ib_access_forget(struct ib_conn *conn)
{
	struct ib_access *access;
	while ((access = TAILQ_FIRST(&conn->accesses))) {
		TAILQ_REMOVE(&conn->accesses, access, place);
		access->conn = NULL;
	}
}
