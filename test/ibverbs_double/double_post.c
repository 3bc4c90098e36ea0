/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting requests. */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <string.h>

/* ---- sending ---- */

static bool is_known(enum ibv_wr_opcode opcode)
{
	return opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static int check_send(struct vd_context *context, struct vd_qp_own *qp, const struct ibv_send_wr *wr)
{
	enum ibv_qp_state state = qp->ex.qp_base.state;
	int error = vd_fault_call(context, VD_CALL_POST_SEND, 0);
	if (error)
		return error;
	if (state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_ERR)
		return EINVAL;
	if (!is_known(wr->opcode))
		return EOPNOTSUPP;
	if (wr->num_sge < 0 || wr->num_sge > (int)qp->init.cap.max_send_sge)
		return EINVAL;
	/* Acquire: pairs with reclaim in double_cq.c; nothing but the count itself is read. */
	if (qp->posted - __atomic_load_n(&qp->reclaimed, __ATOMIC_ACQUIRE) >= qp->init.cap.max_send_wr)
		return ENOMEM;
	return 0;
}

static bool has_inline(const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_INLINE;
}

static int take_pieces(const struct vd_qp_own *qp, struct vd_request *request, const struct ibv_send_wr *wr)
{
	request->len = 0;
	for (int i = 0; i < wr->num_sge; i++)
		request->len += wr->sg_list[i].length;
	if (request->len > 1u << 31)
		return EINVAL;
	request->n_sge = (uint32_t)wr->num_sge;
	if (!has_inline(wr)) {
		memcpy(request->sge, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
		return 0;
	}
	if (request->len > qp->init.cap.max_inline_data || wr->opcode >= IBV_WR_RDMA_READ)
		return EINVAL;
	uint8_t *to = request->inline_data;
	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
	return 0;
}

static void take_target(struct vd_request *request, const struct ibv_send_wr *wr)
{
	bool atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	request->imm = wr->imm_data;
	if (atomic) {
		request->remote = wr->wr.atomic.remote_addr;
		request->rkey = wr->wr.atomic.rkey;
		request->compare_add = wr->wr.atomic.compare_add;
		request->swap = wr->wr.atomic.swap;
	} else {
		request->remote = wr->wr.rdma.remote_addr;
		request->rkey = wr->wr.rdma.rkey;
	}
}

static void port_down(struct vd_context *context, unsigned port)
{
	__atomic_store_n(&context->node->port_state[port - 1], IBV_PORT_DOWN, __ATOMIC_RELAXED);
	vd_async_push(vd_place_own(context), IBV_EVENT_PORT_ERR, port);
}

static int post_one(struct vd_context *context, struct vd_qp_own *qp, const struct ibv_send_wr *wr)
{
	int error = check_send(context, qp, wr);
	if (error)
		return error;
	struct vd_request *request = &qp->request[qp->posted % qp->size];
	uint8_t *inline_data = request->inline_data;
	*request = (struct vd_request){ .wr_id = wr->wr_id, .opcode = wr->opcode, .flags = wr->send_flags,
					.inline_data = inline_data, .elsewhere = context->executed - qp->executed };
	error = take_pieces(qp, request, wr);
	if (error)
		return error;
	take_target(request, wr);
	bool down;
	vd_fault_request(context, wr->opcode, &request->plan, &down);
	if (request->plan.kill == VD_AT_POST)
		vd_fault_kill();
	if (down)
		port_down(context, qp->attr.port_num);
	request->posted_ns = context->set.timed ? vd_now() : 0;
	qp->posted++;
	vd_qp_activate(context, qp);
	return 0;
}

int vd_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vd_context *context = vd_context_of(base->context);
	int error = 0;
	pthread_mutex_lock(&context->lock);
	for (; wr && !error; wr = wr->next) {
		error = post_one(context, vd_qp_of(base), wr);
		if (error) {
			*bad = wr;
			break;
		}
	}
	vd_progress(context);
	pthread_mutex_unlock(&context->lock);
	return error;
}

/* ---- receiving ---- */

/* The node's access lock is held. */
static int add_recv(struct vd_node *node, struct vd_rq *rq, uint32_t max_sge, const struct ibv_recv_wr *wr)
{
	if (wr->num_sge < 0 || wr->num_sge > (int)max_sge)
		return EINVAL;
	if (rq->head - rq->tail >= rq->max)
		return ENOMEM;
	struct vd_recv *ring = vd_arena_at(node, rq->ring);
	struct vd_recv *recv = &ring[rq->head % rq->size];
	recv->wr_id = wr->wr_id;
	recv->n_sge = (uint32_t)wr->num_sge;
	memcpy(recv->sge, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
	rq->head++;
	return 0;
}

static void flush_recv(struct vd_context *context, const struct vd_qp *qp, const struct ibv_recv_wr *wr)
{
	struct vd_cqe entry = {
		.wc = { .wr_id = wr->wr_id, .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV,
			.qp_num = qp->number },
		.qp = qp->number % VD_QPS,
	};
	vd_cq_push(vd_place_own(context), qp->recv_cq, &entry, true);
}

int vd_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vd_context *context = vd_context_of(base->context);
	struct vd_qp_own *own = vd_qp_of(base);
	struct vd_qp *qp = vd_qp_shared(context, own);
	int error = 0;
	vd_lock(&context->node->access);
	for (; wr && !error; wr = wr->next) {
		error = vd_fault_call(context, VD_CALL_POST_RECV, 0);
		if (!error && (qp->state == IBV_QPS_RESET || qp->shared_rq))
			error = EINVAL;
		if (!error && qp->state == IBV_QPS_ERR)
			flush_recv(context, qp, wr);
		else if (!error)
			error = add_recv(context->node, &context->node->rq[qp->rq], own->init.cap.max_recv_sge, wr);
		if (error) {
			*bad = wr;
			break;
		}
	}
	vd_unlock(&context->node->access);
	return error;
}

int vd_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vd_context *context = vd_context_of(srq->context);
	struct vd_srq_own *own = (struct vd_srq_own *)srq;
	int error = 0;
	vd_lock(&context->node->access);
	for (; wr && !error; wr = wr->next) {
		error = vd_fault_call(context, VD_CALL_POST_RECV, 0);
		if (!error)
			error = add_recv(context->node, &context->node->rq[own->index], own->max_sge, wr);
		if (error) {
			*bad = wr;
			break;
		}
	}
	vd_unlock(&context->node->access);
	return error;
}
