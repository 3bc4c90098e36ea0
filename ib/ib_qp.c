/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation, state changes, posting of work requests, completion queues. */
#include "config.h"

#include "ib/ib_qp.h"

#include "ib/ib_cache.h"
#include "rdma_channel/base/log.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

enum {
	RETRIES = 7,    /* the maximum of the field; a request is sent once, then up to RETRIES times again */
	PSN_MASK = 0xffffff,
	READS_MOST = 16,
};

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Returns the identifier by which a completion names its request: kind, queue pair, and the number of requests posted
 * there, this one included. */
static uint64_t request_id(enum ib_kind kind, unsigned i, uint32_t count)
{
	return (uint64_t)kind << 40 | (uint64_t)i << 32 | count;
}

/* ---- setting up ---- */

static int open_cq(struct ib_queues *queues, const struct ib_device *device)
{
	queues->events = ibv_create_comp_channel(device->verbs);
	if (!queues->events) {
		hr_log(HR_LOG_ERROR, "ibv_create_comp_channel: %s", strerror(errno));
		return -errno;
	}
	int flags = fcntl(queues->events->fd, F_GETFL);
	if (flags < 0 || fcntl(queues->events->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		hr_log(HR_LOG_ERROR, "fcntl of the completion channel: %s", strerror(errno));
		return -errno;
	}
	/* The device supports this number: ib_device_open has limited depth and n_qps accordingly. */
	uint32_t entries = device->n_qps * (device->depth + IB_BESIDE_DATA);
	queues->cq = ibv_create_cq(device->verbs, (int)entries, NULL, queues->events, 0);
	if (queues->cq)
		return 0;
	hr_log(HR_LOG_ERROR, "ibv_create_cq of %u entries: %s", entries, strerror(errno));
	return -errno;
}

static struct ibv_qp *create_qp(struct ib_queues *queues, const struct ib_device *device)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = queues->cq,
		.recv_cq = queues->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = queues->depth + IB_BESIDE_DATA, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = queues->max_inline },
	};
	struct ibv_qp *qp = ibv_create_qp(device->pd, &attr);
	if (qp)
		queues->max_inline = min_u32(queues->max_inline, attr.cap.max_inline_data);
	return qp;
}

static int open_qp(struct ib_queues *queues, const struct ib_device *device, unsigned i)
{
	struct ibv_qp *qp = create_qp(queues, device);
	if (!qp && queues->max_inline > 0) {
		/* Try without inline data. */
		queues->max_inline = 0;
		qp = create_qp(queues, device);
	}
	if (!qp) {
		hr_log(HR_LOG_ERROR, "ibv_create_qp with %u requests: %s", queues->depth, strerror(errno));
		return -errno;
	}
	queues->queue[i].qp = qp;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = device->port,
				    .pkey_index = device->pkey_index,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (error)
		hr_log(HR_LOG_ERROR, "ibv_modify_qp to INIT: %s", strerror(error));
	return -error;
}

int ib_queues_open(struct ib_queues *queues, const struct ib_device *device)
{
	*queues = (struct ib_queues){ .n = device->n_qps, .depth = device->depth, .max_inline = IB_INLINE_BYTES };
	/* A random packet sequence number: the adapter then drops late packets of an earlier queue pair with the same
	 * queue pair number. */
	if (getrandom(&queues->psn, sizeof queues->psn, GRND_NONBLOCK) < 0)
		queues->psn = (uint32_t)(uintptr_t)queues;
	queues->psn &= PSN_MASK;
	int error = open_cq(queues, device);
	for (unsigned i = 0; i < queues->n && !error; i++)
		error = open_qp(queues, device, i);
	if (error)
		ib_queues_close(queues);
	return error;
}

uint8_t ib_queues_reads(const struct ib_device *device)
{
	return (uint8_t)min_u32((uint32_t)device->limits.max_qp_rd_atom, READS_MOST);
}

/* ---- joining the peer ---- */

/* Returns the exponent t of the local ACK timeout 4.096 us * 2^t (InfiniBand specification, 9.9.1.1: the real time is
 * between that and four times that). All tries together take about half of timeout_ms. */
static uint8_t ack_timeout(uint32_t timeout_ms)
{
	uint64_t budget_ns = (uint64_t)timeout_ms * 1000000 / 2 / (RETRIES + 1);
	uint8_t t = 10; /* 4 ms: with less, a busy peer would look like a lost packet */
	while (t < 18 && 4096ull << (t + 1) <= budget_ns)
		t++;
	return t;
}

static void fill_path(struct ibv_ah_attr *path, const struct ib_device *device, const struct ib_remote *remote)
{
	*path = (struct ibv_ah_attr){ .dlid = le16toh(remote->address.lid), .port_num = device->port,
				       .sl = device->service_level };
	if (device->address.link != IB_LINK_INFINIBAND) {
		path->is_global = 1;
		memcpy(path->grh.dgid.raw, remote->address.gid, sizeof path->grh.dgid.raw);
		path->grh.sgid_index = device->gid_index;
		path->grh.hop_limit = 64;
		path->grh.traffic_class = device->traffic_class;
	}
}

static int join_qp(struct ib_queues *queues, const struct ib_device *device, const struct ib_remote *remote, unsigned i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)min_u32(remote->mtu, device->port_attr.active_mtu),
		.dest_qp_num = remote->qpn[i],
		.rq_psn = remote->psn,
		.max_dest_rd_atomic = ib_queues_reads(device),
		.min_rnr_timer = 12,
	};
	fill_path(&attr.ah_attr, device, remote);
	int error = ibv_modify_qp(queues->queue[i].qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (error) {
		hr_log(HR_LOG_ERROR, "ibv_modify_qp to RTR: %s", strerror(error));
		return -error;
	}
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = ack_timeout(device->timeout_ms),
		.retry_cnt = RETRIES,
		.rnr_retry = 7,
		.sq_psn = queues->psn,
		.max_rd_atomic = (uint8_t)min_u32(remote->reads, (uint32_t)device->limits.max_qp_init_rd_atom),
	};
	error = ibv_modify_qp(queues->queue[i].qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	if (error)
		hr_log(HR_LOG_ERROR, "ibv_modify_qp to RTS: %s", strerror(error));
	return -error;
}

int ib_queues_join(struct ib_queues *queues, const struct ib_device *device, const struct ib_remote *remote)
{
	while (queues->n > remote->n_qps) {
		ibv_destroy_qp(queues->queue[--queues->n].qp);
		queues->queue[queues->n].qp = NULL;
	}
	/* One less than both sides support, so that a probe need not wait for the user's data. */
	uint32_t reads = min_u32(remote->reads, (uint32_t)device->limits.max_qp_init_rd_atom);
	queues->reads = min_u32(reads > 1 ? reads - 1 : 1, IB_READS_DEPTH);
	for (unsigned i = 0; i < queues->n; i++) {
		int error = join_qp(queues, device, remote, i);
		if (error)
			return error;
	}
	return 0;
}

/* ---- taking down ---- */

void ib_queues_stop(struct ib_queues *queues)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	for (unsigned i = 0; i < queues->n; i++)
		if (queues->queue[i].qp)
			ibv_modify_qp(queues->queue[i].qp, &attr, IBV_QP_STATE);
}

void ib_queues_destroy(struct ib_queues *queues)
{
	for (unsigned i = 0; i < queues->n; i++)
		if (queues->queue[i].qp)
			ibv_destroy_qp(queues->queue[i].qp);
	for (unsigned i = 0; i < queues->n; i++)
		queues->queue[i].qp = NULL;
}

void ib_queues_close(struct ib_queues *queues)
{
	ib_queues_destroy(queues);
	if (queues->cq)
		ibv_destroy_cq(queues->cq);
	if (queues->events)
		ibv_destroy_comp_channel(queues->events);
	*queues = (struct ib_queues){ 0 };
}

/* ---- requests ---- */

bool ib_queues_room(const struct ib_queues *queues, unsigned i)
{
	const struct ib_queue *queue = &queues->queue[i];
	return queue->posted - queue->completed < queues->depth;
}

/* At most a quarter of the queue is unsignaled: so one completion frees many requests, long before the queue is
 * full. */
static bool must_signal(const struct ib_queues *queues, const struct ib_queue *queue, enum ib_kind kind)
{
	return kind != IB_KIND_DATA || queue->unsignaled + 1 >= queues->depth / 4;
}

uint32_t ib_queues_places(const struct ib_queues *queues, unsigned i)
{
	const struct ib_queue *queue = &queues->queue[i];
	return queues->depth - min_u32(queues->depth, queue->posted - queue->completed);
}

void ib_queues_stage(struct ib_queues *queues, unsigned i, enum ib_kind kind, uint32_t lkey, const void *at,
		     uint32_t len, uint64_t remote_address, uint32_t rkey)
{
	struct ib_queue *queue = &queues->queue[i];
	struct ib_batch *batch = &queues->batch;
	struct ibv_send_wr *request = &batch->request[batch->n];
	struct ibv_sge *piece = &batch->piece[batch->n];
	bool write = kind == IB_KIND_DATA || kind == IB_KIND_CONTROL || kind == IB_KIND_WRITE;
	bool signal = must_signal(queues, queue, kind);
	*piece = (struct ibv_sge){ .addr = (uintptr_t)at, .length = len, .lkey = lkey };
	/* Set only these fields: the rest of the structure is large and for other kinds of request. */
	request->wr_id = request_id(kind, i, queue->posted + 1);
	request->next = NULL;
	request->sg_list = piece;
	request->num_sge = 1;
	request->opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
	request->send_flags = signal ? IBV_SEND_SIGNALED : 0;
	if (write && len <= queues->max_inline)
		request->send_flags |= IBV_SEND_INLINE;
	request->wr.rdma.remote_addr = remote_address;
	request->wr.rdma.rkey = rkey;
	if (batch->n > 0)
		request[-1].next = request;
	batch->n++;
	queue->posted++;
	if (kind == IB_KIND_READ)
		queues->reads_posted[i]++;
	queue->unsignaled = signal ? 0 : queue->unsignaled + 1;
}

int ib_queues_send(struct ib_queues *queues, unsigned i)
{
	struct ib_batch *batch = &queues->batch;
	struct ibv_send_wr *bad;
	if (batch->n == 0)
		return 0;
	int error = ibv_post_send(queues->queue[i].qp, batch->request, &bad);
	if (error)
		hr_log(HR_LOG_ERROR, "ibv_post_send of %u requests: %s", batch->n, strerror(error));
	batch->n = 0;
	return -error;
}

int ib_queues_post(struct ib_queues *queues, unsigned i, enum ib_kind kind, const struct ib_region *local,
		   const void *at, uint32_t len, uint64_t remote_address, uint32_t rkey)
{
	ib_queues_stage(queues, i, kind, local->mr->lkey, at, len, remote_address, rkey);
	return ib_queues_send(queues, i);
}

/* Handles a completion. Requests of a queue pair complete in the order in which they were posted, so all earlier
 * requests of the queue pair are complete too. */
static void complete(struct ib_queues *queues, uint64_t id)
{
	unsigned i = id >> 32 & 0xff;
	queues->queue[i].completed = (uint32_t)id;
	queues->done[id >> 40]++;
	if (id >> 40 == IB_KIND_READ)
		queues->reads_done[i]++;
}

int ib_queues_poll(struct ib_queues *queues, struct ib_failure *failure)
{
	struct ibv_wc wc[16];
	for (;;) {
		int n = ibv_poll_cq(queues->cq, (int)(sizeof wc / sizeof *wc), wc);
		if (n < 0) {
			*failure = (struct ib_failure){ .status = IBV_WC_GENERAL_ERR };
			return -EIO;
		}
		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS) {
				*failure = (struct ib_failure){ wc[i].status, wc[i].vendor_err,
								wc[i].wr_id >> 32 & 0xff };
				return -EIO;
			}
			complete(queues, wc[i].wr_id);
		}
		if (n < (int)(sizeof wc / sizeof *wc))
			return 0;
	}
}

/* ---- memory ---- */

/* Makes one attempt of ib_region_try. */
static int region_make(struct ib_region *region, const struct ib_device *device, size_t len, bool shared)
{
	int access = IBV_ACCESS_LOCAL_WRITE | (shared ? IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ : 0);
	void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	struct ibv_mr *mr = NULL;
	errno = 0;
	if (!madvise(base, len, MADV_DONTFORK))
		mr = ibv_reg_mr(device->pd, base, len, access);
	if (!mr) {
		int error = errno ? -errno : -ENOMEM;
		munmap(base, len);
		return error;
	}
	*region = (struct ib_region){ base, len, mr };
	return 0;
}

int ib_region_try(struct ib_region *region, const struct ib_device *device, size_t len, bool shared)
{
	int error = region_make(region, device, len, shared);
	if (!error)
		return 0;
	ib_cache_give_up(device->cache);
	return region_make(region, device, len, shared);
}

int ib_region_open(struct ib_region *region, const struct ib_device *device, size_t len, bool shared)
{
	int error = ib_region_try(region, device, len, shared);
	if (error)
		hr_log(HR_LOG_ERROR, "verbs: cannot register %zu bytes: %s (see ulimit -l)", len, strerror(-error));
	return error;
}

void ib_region_close(struct ib_region *region)
{
	if (!region->base)
		return;
	ibv_dereg_mr(region->mr);
	munmap(region->base, region->len);
	*region = (struct ib_region){ 0 };
}
