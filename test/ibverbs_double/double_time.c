/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model of time: when each request goes over the link.
 *
 * A request begins when its queue pair is free, which is busy with the one before for as long as its bytes take at
 * the queue pair's rate, and when the node's link is free, which is busy for as long as the bytes take at the link's.
 * So two slow queue pairs share a fast link, and what is posted on one does not wait for all that was posted on the
 * other. The answer to a read occupies the link of the target. A read goes out only when fewer than max_rd_atomic are
 * under way, and holds up what is behind it until then, as a send queue does.
 *
 * Requests are given their times in the order in which they can begin, by whoever looks next; the times are those at
 * which it would have happened, whether or not somebody looked then.
 */
#include "test/ibverbs_double/double.h"

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The time for which a byte of the request occupies the link: a GPU's memory holds up the adapter. */
static double link_ns(const struct vd_settings *set, const struct vd_request *request)
{
	bool gpu = vd_is_gpu(set, request->remote);
	for (uint32_t i = 0; i < request->n_sge; i++)
		gpu = gpu || vd_is_gpu(set, request->sge[i].addr);
	return gpu && set->gpu_ns_per_byte > set->ns_per_byte ? set->gpu_ns_per_byte : set->ns_per_byte;
}

/* Returns when the link of that node is free, not before `earliest`, and occupies the link for the request's bytes. */
static uint64_t reserve(struct vd_context *context, struct vd_node *node, uint64_t earliest, const struct vd_request *request)
{
	uint64_t overhead = context->set.overhead_ns;
	vd_lock(&node->access);
	uint64_t begin = max_u64(earliest, node->link_free_ns) + overhead;
	node->link_free_ns = begin + (uint64_t)((double)request->len * link_ns(&context->set, request));
	vd_unlock(&node->access);
	return begin;
}

static uint64_t last_read(const struct vd_qp_own *qp, uint64_t back)
{
	return qp->reads_begun >= back ? qp->read_arrive_ns[(qp->reads_begun - back) % VD_READS_MAX] : 0;
}

/* The earliest time at which the next request of the queue pair may begin. */
static uint64_t can_begin(const struct vd_qp_own *qp, const struct vd_request *request)
{
	uint64_t earliest = max_u64(request->posted_ns, qp->begun_ns);
	if (request->flags & IBV_SEND_FENCE)
		earliest = max_u64(earliest, last_read(qp, 1));
	if (request->opcode == IBV_WR_RDMA_READ)
		return max_u64(earliest, last_read(qp, qp->attr.max_rd_atomic ? qp->attr.max_rd_atomic : 1));
	return max_u64(earliest, qp->free_ns);
}

static void begin_read(struct vd_context *context, struct vd_qp_own *qp, struct vd_request *request, uint64_t asked)
{
	uint64_t latency = context->set.latency_ns;
	/* It is asked behind what went out before, and its answer comes behind those to earlier ones. */
	uint64_t heard = max_u64(max_u64(asked, qp->free_ns) + latency, max_u64(last_read(qp, 1), latency) - latency);
	request->begin_ns = qp->peer ? reserve(context, qp->peer->node, heard, request) : heard;
	request->arrive_ns = request->begin_ns + (uint64_t)((double)request->len * request->byte_ns) + latency;
	qp->read_arrive_ns[qp->reads_begun++ % VD_READS_MAX] = request->arrive_ns;
	qp->begun_ns = asked;
}

static void begin(struct vd_context *context, struct vd_qp_own *qp, struct vd_request *request, uint64_t earliest)
{
	const struct vd_settings *set = &context->set;
	double ns = link_ns(set, request);
	request->byte_ns = set->qp_ns_per_byte > ns ? set->qp_ns_per_byte : ns;
	if (request->opcode == IBV_WR_RDMA_READ) {
		begin_read(context, qp, request, earliest);
		return;
	}
	request->begin_ns = reserve(context, context->node, earliest, request);
	qp->begun_ns = request->begin_ns;
	qp->free_ns = request->begin_ns + (uint64_t)((double)request->len * request->byte_ns);
	request->arrive_ns = qp->free_ns + set->latency_ns;
}

static struct vd_request *next_of(struct vd_qp_own *qp)
{
	return &qp->request[qp->begun % qp->size];
}

void vd_schedule(struct vd_context *context, uint64_t now)
{
	if (!context->set.timed)
		return;
	for (;;) {
		struct vd_qp_own *first = NULL;
		uint64_t earliest = 0;
		for (struct vd_qp_own *qp = context->active; qp; qp = qp->next_active) {
			if (qp->begun == qp->posted)
				continue;
			uint64_t when = can_begin(qp, next_of(qp));
			if (when <= now && (!first || when < earliest)) {
				first = qp;
				earliest = when;
			}
		}
		if (!first)
			return;
		begin(context, first, next_of(first), earliest);
		first->begun++;
	}
}

bool vd_is_waiting(const struct vd_context *context, struct vd_qp_own *qp, uint32_t i, uint64_t *due)
{
	if (!context->set.timed || (int32_t)(i - qp->begun) < 0)
		return false;
	/* No byte of it can be there before. */
	*due = can_begin(qp, next_of(qp)) + context->set.latency_ns;
	return true;
}
