/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs transport: its functions of struct hr_transport (transport.h), with set-up and closing of connections. */
#include "config.h"

#include "ib/ib_adapters.h"
#include "ib/ib_cache.h"
#include "ib/ib_conn.h"
#include "ib/ib_events.h"
#include "ib/ib_flat.h"
#include "ib/ib_access.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/stream.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- per channel ---- */

static int verbs_open(const struct hr_channel_env *env, void **context, uint8_t section[HR_SECTION_MAX],
		      size_t *section_len)
{
	struct ib_adapters *adapters;
	int error = ib_adapters_open(env, &adapters);
	if (error)
		return error;
	*section_len = ib_adapters_describe(adapters, section);
	*context = adapters;
	return 0;
}

static void verbs_close(void *context)
{
	ib_adapters_close(context);
}

static bool verbs_reaches(void *context, const uint8_t *section, size_t section_len, bool same_host)
{
	(void)same_host; /* verbs also works within one host */
	return ib_adapters_reach(context, section, section_len);
}

static int verbs_fd(void *context)
{
	const struct ib_adapters *adapters = context;
	return adapters->events;
}

static void verbs_event(void *context)
{
	const struct ib_adapters *adapters = context;
	for (unsigned i = 0; i < adapters->n; i++)
		if (adapters->device[i])
			ib_events_take(adapters->device[i]);
}

/* ---- setting up ---- */

static void verbs_note(void *context, uint64_t peer, uint8_t note[HR_NOTE_BYTES])
{
	ib_adapters_note(context, peer, note);
}

static bool verbs_agrees(void *context, const struct hr_agreement *agreement)
{
	return ib_adapters_choose(context, agreement);
}

static void conn_free(struct ib_conn *conn)
{
	LIST_REMOVE(conn, place);
	ib_access_forget(conn);
	/* Destroy the queue pairs first: in the error state the adapter may still be executing an RDMA read, or a write
	 * of the peer. */
	ib_queues_close(&conn->queues);
	ib_zerocopy_close(conn);
	ib_region_close(&conn->own);
	ib_region_close(&conn->shared);
	free(conn);
}

static void describe(const struct ib_conn *conn, struct ib_half *half)
{
	*half = (struct ib_half){
		.version = htole32(IB_WIRE_VERSION),
		.address = conn->device->address,
		.mtu = (uint8_t)conn->device->port_attr.active_mtu,
		.n_qps = (uint8_t)conn->queues.n,
		.reads = ib_queues_reads(conn->device),
		.design = (uint8_t)conn->device->design,
		.chunk_bytes = htole32(conn->receiver.geometry.chunk_bytes),
		.n_chunks = htole32(conn->receiver.geometry.n_chunks),
		.psn = htole32(conn->queues.psn),
		.rkey = htole32(conn->shared.mr->rkey),
		.control = htole64((uintptr_t)conn->control),
	};
	for (unsigned i = 0; i < conn->queues.n; i++)
		half->qpn[i] = htole32(conn->queues.queue[i].qp->qp_num);
}

/* Does not include the driver's memory for queue pairs, nor the bounce buffer, which not every connection needs. */
static size_t verbs_conn_bytes(void *context, uint32_t ring_bytes)
{
	const struct ib_adapters *adapters = context;
	struct ib_geometry geometry = ib_geometry_fit(ring_bytes, adapters->first->chunk_bytes);
	return sizeof(struct ib_conn) + IB_CONTROL_BYTES + IB_SCRATCH_BYTES + 2 * ib_geometry_bytes(&geometry);
}

static int verbs_conn_open(void *context, const struct hr_conn_env *env, struct hr_half *own, void **data)
{
	struct ib_device *device = ib_adapters_choose(context, env->agreement);
	if (!device)
		return -EHOSTUNREACH; /* not reached: verbs_agrees has found one */
	if (device->error) /* the port went down since the hello */
		return device->error;
	struct ib_conn *conn = calloc(1, sizeof *conn);
	if (!conn)
		return -ENOMEM;
	conn->env = env;
	conn->device = device;
	LIST_INSERT_HEAD(&device->conns, conn, place);
	TAILQ_INIT(&conn->accesses);
	conn->stream = -1;
	struct ib_geometry geometry = ib_geometry_fit(env->ring_bytes, device->chunk_bytes);
	size_t shared = IB_CONTROL_BYTES + ib_geometry_bytes(&geometry);
	int error = ib_region_open(&conn->shared, device, shared, true);
	if (!error)
		error = ib_queues_open(&conn->queues, device);
	if (error) {
		conn_free(conn);
		return error;
	}
	env->stats->memory_bytes = sizeof *conn + conn->shared.len;
	conn->control = (struct ib_control *)conn->shared.base;
	ib_receiver_init(&conn->receiver, &geometry, conn->shared.base + IB_CONTROL_BYTES);
	struct ib_half half;
	describe(conn, &half);
	memcpy(own->blob, &half, sizeof half);
	own->len = sizeof half;
	own->n_fds = 0;
	*data = conn;
	return 0;
}

/* Checks every field of the peer's half, before any of them is used. */
static bool half_is_valid(const struct ib_conn *conn, const struct ib_half *half)
{
	struct ib_geometry geometry = { le32toh(half->chunk_bytes), le32toh(half->n_chunks) };
	uint64_t control = le64toh(half->control);
	if (le32toh(half->version) != IB_WIRE_VERSION || !ib_device_reaches(conn->device, &half->address) ||
	    half->mtu < IBV_MTU_256 || half->mtu > IBV_MTU_4096 || half->n_qps < 1 || half->n_qps > IB_QPS_MAX ||
	    half->reads < 1 || half->design < HR_VERBS_BASIC || half->design > HR_VERBS_ZEROCOPY ||
	    le32toh(half->psn) > 0xffffff || !ib_geometry_valid(&geometry))
		return false;
	if (control == 0 || control % 8 || control + IB_CONTROL_BYTES + ib_geometry_bytes(&geometry) < control)
		return false;
	for (unsigned i = 0; i < half->n_qps; i++)
		if (le32toh(half->qpn[i]) > 0xffffff)
			return false;
	return true;
}

/* Returns whether this side provides a staging area of that size, which the peer's ring size requires. */
static bool may_stage(const struct ib_conn *conn, size_t bytes)
{
	size_t own = ib_geometry_bytes(&conn->receiver.geometry), set = conn->device->staging_bytes;
	size_t most = own > set ? own : set;
	if (bytes <= most)
		return true;
	hr_log(HR_LOG_ERROR, "verbs: peer %s has a ring of %zu bytes, which needs the same amount of staging memory "
	       "here; the limit is %zu: raise HEADRACE_IB_STAGING or HEADRACE_RING_BYTES", conn->env->peer,
	       bytes, most);
	return false;
}

/* Allocates the staging area, which has the geometry of the peer's ring, and sets up the sender. */
static int open_sender(struct ib_conn *conn, const struct ib_half *half)
{
	struct ib_geometry geometry = { le32toh(half->chunk_bytes), le32toh(half->n_chunks) };
	size_t own_bytes = IB_SCRATCH_BYTES + ib_geometry_bytes(&geometry);
	if (!may_stage(conn, ib_geometry_bytes(&geometry)))
		return -ENOBUFS;
	int error = ib_region_open(&conn->own, conn->device, own_bytes, false);
	if (error)
		return error;
	conn->env->stats->memory_bytes += conn->own.len;
	conn->scratch = (struct ib_scratch *)conn->own.base;
	conn->peer_control = le64toh(half->control);
	conn->peer_rkey = le32toh(half->rkey);
	conn->design = half->design < conn->device->design ? half->design : conn->device->design;
	if (conn->design == HR_VERBS_BASIC) {
		struct ib_geometry own = ib_flat_geometry(&conn->receiver.geometry);
		ib_receiver_init(&conn->receiver, &own, conn->receiver.ring);
		geometry = ib_flat_geometry(&geometry);
	}
	ib_sender_init(&conn->sender, &geometry, conn->own.base + IB_SCRATCH_BYTES);
	return conn->design == HR_VERBS_ZEROCOPY ? ib_zerocopy_open(conn) : 0;
}

static int join(struct ib_conn *conn, const struct ib_half *half)
{
	struct ib_remote remote = { .address = half->address, .mtu = half->mtu, .n_qps = half->n_qps,
				    .reads = half->reads, .psn = le32toh(half->psn) };
	for (unsigned i = 0; i < half->n_qps; i++)
		remote.qpn[i] = le32toh(half->qpn[i]);
	return ib_queues_join(&conn->queues, conn->device, &remote);
}

static int verbs_conn_establish(void *data, const struct hr_half *peer, int stream)
{
	struct ib_conn *conn = data;
	struct ib_half half;
	conn->stream = stream;
	if (conn->error) /* the port went down since conn_open */
		return conn->error;
	if (peer->len == sizeof half)
		memcpy(&half, peer->blob, sizeof half);
	if (peer->len != sizeof half || !half_is_valid(conn, &half)) {
		hr_log(HR_LOG_ERROR, "verbs: peer %s: invalid description of its half of the connection", conn->env->peer);
		return -EPROTO;
	}
	int error = open_sender(conn, &half);
	if (!error)
		error = join(conn, &half);
	if (error)
		return error;
	hr_log(HR_LOG_DEBUG, "verbs: %s: %s port %u, %s, %u queue pairs, %u requests deep, %u chunks of %u bytes, inline up to %u",
	       conn->env->peer, ibv_get_device_name(conn->device->verbs->device), conn->device->port,
	       ib_design_name(conn->design), conn->queues.n, conn->queues.depth,
	       conn->sender.geometry.n_chunks, conn->sender.geometry.chunk_bytes, conn->queues.max_inline);
	return 0;
}

/* ---- taking down ---- */

/* Posts an RDMA read on each queue pair, after all writes. When the reads are complete, every byte is in the peer's
 * memory, not only in its adapter, so the goodbye on the stream cannot overtake it. */
static void begin_flush(struct ib_conn *conn)
{
	conn->flushing = true;
	for (unsigned i = 0; i < conn->queues.n && !conn->error; i++) {
		int error = ib_queues_post(&conn->queues, i, IB_KIND_FLUSH, &conn->own, &conn->scratch->flushed,
					   sizeof conn->scratch->flushed,
					   conn->peer_control + offsetof(struct ib_control, progress), conn->peer_rkey);
		if (error)
			ib_conn_fail(conn, error);
	}
}

static int verbs_conn_shutdown(void *data)
{
	struct ib_conn *conn = data;
	if (conn->said_goodbye || conn->stream < 0)
		return 1;
	ib_conn_progress(conn);
	/* First acknowledge all announcements that this side has read, so that the peer's puts of them succeed. */
	if (!conn->error && !conn->flushing) {
		ib_conn_pay_tail(conn);
		if (conn->zerocopy && ib_zerocopy_acknowledged(conn) != conn->acks_told)
			return 0;
		begin_flush(conn);
	}
	ib_conn_idle(conn);
	if (!conn->error && conn->queues.done[IB_KIND_FLUSH] < conn->queues.n)
		return 0;
	/* After an error of this side, accepted bytes may be lost. Then do not send the goodbye: the end of the stream
	 * tells the peer that this was no orderly close. */
	if (!conn->error || conn->error == -ESHUTDOWN)
		hr_stream_goodbye(conn->stream);
	conn->said_goodbye = true;
	return 1;
}

static void verbs_conn_close(void *data)
{
	conn_free(data);
}

/* ---- data and sleeping ---- */

static int verbs_put(void *data, const struct iovec *iov, int n, size_t *accepted)
{
	struct ib_conn *conn = data;
	switch (conn->design) {
	case HR_VERBS_BASIC: return ib_basic_put(conn, iov, n, accepted);
	case HR_VERBS_PIGGYBACK: return ib_piggyback_put(conn, iov, n, accepted);
	case HR_VERBS_ZEROCOPY: return ib_zerocopy_put(conn, iov, n, accepted);
	default: return ib_pipeline_put(conn, iov, n, accepted);
	}
}

static int verbs_get(void *data, const struct iovec *iov, int n, size_t *delivered)
{
	struct ib_conn *conn = data;
	switch (conn->design) {
	case HR_VERBS_BASIC: return ib_basic_get(conn, iov, n, delivered);
	case HR_VERBS_ZEROCOPY: return ib_zerocopy_get(conn, iov, n, delivered);
	default: return ib_piggyback_get(conn, iov, n, delivered);
	}
}

static size_t verbs_ahead(void *data, uint64_t skip, void *to, size_t len)
{
	struct ib_conn *conn = data;
	return conn->zerocopy ? ib_zerocopy_ahead(conn, skip, to, len) : 0;
}

static int verbs_conn_arm(void *data, bool want_put)
{
	struct ib_conn *conn = data;
	ib_sleep_arm(conn, want_put);
	/* Memory that the user gave back must not stay pinned during the sleep. */
	ib_cache_sweep(conn->device->cache);
	return 0;
}

static bool verbs_conn_pending(void *data, bool want_put)
{
	return ib_sleep_pending(data, want_put);
}

static void verbs_conn_event(void *data)
{
	ib_sleep_event(data);
}

static int verbs_conn_fd(void *data)
{
	struct ib_conn *conn = data;
	return conn->queues.events->fd;
}

/* ---- access to the peer's memory ---- */

static int verbs_remote_expose(void *data, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token)
{
	return ib_access_expose(data, address, len, exposed, token);
}

static int verbs_remote_share(void *data, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token)
{
	return ib_access_share(data, address, len, exposed, token);
}

static int verbs_remote_write(void *data, const struct hr_token *token, uint64_t offset, const void *address,
			      size_t len, hr_remote_access_t **write)
{
	return ib_access_write(data, token, offset, address, len, write);
}

static int verbs_remote_read(void *data, const struct hr_token *token, uint64_t offset, void *address, size_t len,
			     hr_remote_access_t **read)
{
	return ib_access_read(data, token, offset, address, len, read);
}

static int verbs_remote_test(void *data, hr_remote_access_t *access)
{
	return ib_access_test(data, access);
}

const struct hr_transport hr_transport_verbs = {
	.name = "verbs",
	.bit = HR_TRANSPORT_VERBS,
	.open = verbs_open,
	.close = verbs_close,
	.reaches = verbs_reaches,
	.fd = verbs_fd,
	.event = verbs_event,
	.note = verbs_note,
	.agrees = verbs_agrees,
	.conn_open = verbs_conn_open,
	.conn_establish = verbs_conn_establish,
	.conn_shutdown = verbs_conn_shutdown,
	.conn_close = verbs_conn_close,
	.put = verbs_put,
	.get = verbs_get,
	.ahead = verbs_ahead,
	.conn_arm = verbs_conn_arm,
	.conn_pending = verbs_conn_pending,
	.conn_event = verbs_conn_event,
	.conn_fd = verbs_conn_fd,
	.conn_bytes = verbs_conn_bytes,
	.remote_expose = verbs_remote_expose,
	.remote_share = verbs_remote_share,
	.remote_hide = ib_access_hide,
	.remote_write = verbs_remote_write,
	.remote_read = verbs_remote_read,
	.remote_test = verbs_remote_test,
	.remote_end = ib_access_end,
};
