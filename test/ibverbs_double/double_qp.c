/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and shared receive queues: making, the state machine, destroying. */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- receive queues ---- */

static uint64_t rq_bytes(const struct vd_rq *rq)
{
	return (uint64_t)rq->size * sizeof(struct vd_recv);
}

static int place_rq(struct vd_context *context, uint32_t max, uint32_t pd, uint32_t *index)
{
	for (uint32_t i = 0; i < VD_RQS; i++) {
		*index = (context->next_rq + i) % VD_RQS;
		struct vd_rq *rq = &context->node->rq[*index];
		if (rq->max)
			continue;
		*rq = (struct vd_rq){ .size = vd_power_of_two(max), .max = max, .pd = pd };
		rq->ring = vd_arena_take(context, rq_bytes(rq));
		if (!rq->ring)
			break;
		context->next_rq = *index + 1;
		return 0;
	}
	context->node->rq[*index].max = 0;
	return ENOMEM;
}

static void free_rq(struct vd_context *context, uint32_t index)
{
	struct vd_rq *rq = &context->node->rq[index];
	vd_arena_give(context, rq->ring, rq_bytes(rq));
	rq->max = 0;
}

VD_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct vd_context *context = vd_context_of(pd->context);
	struct vd_srq_own *made = calloc(1, sizeof *made);
	int error = made ? 0 : ENOMEM;
	if (!error && (attr->attr.max_wr < 1 || attr->attr.max_wr > VD_WR_MAX || attr->attr.max_sge > VD_SGE_MAX))
		error = EINVAL;
	if (!error) {
		made->srq = (struct ibv_srq){ .context = pd->context, .srq_context = attr->srq_context, .pd = pd };
		made->max_sge = attr->attr.max_sge;
		pthread_mutex_init(&made->srq.mutex, NULL);
		pthread_cond_init(&made->srq.cond, NULL);
		pthread_mutex_lock(&context->lock);
		error = place_rq(context, attr->attr.max_wr, pd->handle, &made->index);
		if (!error) {
			context->node->rq[made->index].self = (uintptr_t)&made->srq;
			((struct vd_pd *)pd)->users++;
		}
		pthread_mutex_unlock(&context->lock);
	}
	if (error) {
		free(made);
		errno = error;
		return NULL;
	}
	return &made->srq;
}

VD_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct vd_context *context = vd_context_of(srq->context);
	struct vd_rq *rq = &context->node->rq[((struct vd_srq_own *)srq)->index];
	if (mask != IBV_SRQ_LIMIT)
		return mask & IBV_SRQ_MAX_WR ? EOPNOTSUPP : EINVAL;
	vd_lock(&context->node->access);
	int error = attr->srq_limit > rq->max ? EINVAL : 0;
	if (!error)
		rq->limit = attr->srq_limit;
	vd_unlock(&context->node->access);
	return error;
}

VD_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct vd_context *context = vd_context_of(srq->context);
	const struct vd_srq_own *own = (struct vd_srq_own *)srq;
	const struct vd_rq *rq = &context->node->rq[own->index];
	vd_lock(&context->node->access);
	*attr = (struct ibv_srq_attr){ rq->max, own->max_sge, rq->limit };
	vd_unlock(&context->node->access);
	return 0;
}

VD_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct vd_context *context = vd_context_of(srq->context);
	struct vd_srq_own *own = (struct vd_srq_own *)srq;
	pthread_mutex_lock(&context->lock);
	int error = own->users ? EBUSY : 0;
	if (!error) {
		vd_lock(&context->node->access);
		free_rq(context, own->index);
		vd_unlock(&context->node->access);
		((struct vd_pd *)srq->pd)->users--;
	}
	pthread_mutex_unlock(&context->lock);
	if (error)
		return error;
	vd_async_forget(context->node, (uintptr_t)srq);
	pthread_mutex_lock(&srq->mutex);
	while (srq->events_completed != __atomic_load_n(&own->asyncs_got, __ATOMIC_RELAXED))
		pthread_cond_wait(&srq->cond, &srq->mutex);
	pthread_mutex_unlock(&srq->mutex);
	pthread_cond_destroy(&srq->cond);
	pthread_mutex_destroy(&srq->mutex);
	free(own);
	return 0;
}

/* ---- making ---- */

static int check_init(struct vd_context *context, const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
	if (init->qp_type != IBV_QPT_RC)
		return EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq || cap->max_send_wr > VD_WR_MAX || cap->max_recv_wr > VD_WR_MAX ||
	    cap->max_send_sge > VD_SGE_MAX || cap->max_recv_sge > VD_SGE_MAX ||
	    cap->max_inline_data > context->set.max_inline)
		return EINVAL;
	return 0;
}

static int make_send_queue(struct vd_qp_own *qp)
{
	uint32_t inline_bytes = qp->init.cap.max_inline_data;
	qp->size = vd_power_of_two(qp->init.cap.max_send_wr ? qp->init.cap.max_send_wr : 1);
	qp->request = calloc(qp->size, sizeof *qp->request);
	qp->inline_data = calloc(qp->size, inline_bytes ? inline_bytes : 1);
	if (!qp->request || !qp->inline_data)
		return ENOMEM;
	for (uint32_t i = 0; i < qp->size; i++)
		qp->request[i].inline_data = qp->inline_data + (size_t)i * inline_bytes;
	return 0;
}

static int place_qp(struct vd_context *context, struct vd_qp_own *qp)
{
	struct ibv_qp *base = &qp->ex.qp_base;
	uint32_t tried = 0, index = context->next_qp % VD_QPS;
	while (context->qp[index] && ++tried < VD_QPS)
		index = (index + 1) % VD_QPS;
	if (context->qp[index])
		return ENOMEM;
	context->next_qp = index + 1;
	struct vd_qp shared = { .number = vd_qp_number(context->node->id, index), .state = IBV_QPS_RESET,
				.pd = base->pd->handle, .recv_cq = ((struct vd_cq_own *)base->recv_cq)->index,
				.shared_rq = base->srq != NULL, .self = (uintptr_t)base };
	if (base->srq)
		shared.rq = ((struct vd_srq_own *)base->srq)->index;
	else if (place_rq(context, qp->init.cap.max_recv_wr ? qp->init.cap.max_recv_wr : 1, base->pd->handle,
			  &shared.rq))
		return ENOMEM;
	vd_lock(&context->node->access);
	context->node->qp[index] = shared;
	vd_unlock(&context->node->access);
	qp->index = index;
	qp->order = ++context->qp_count;
	base->qp_num = shared.number;
	base->handle = index;
	/* Release: to a thread that polls (reclaim in double_cq.c). */
	__atomic_store_n(&context->qp[index], qp, __ATOMIC_RELEASE);
	return 0;
}

static void count_users(const struct ibv_qp *qp, uint32_t by)
{
	((struct vd_pd *)qp->pd)->users += by;
	((struct vd_cq_own *)qp->send_cq)->users += by;
	((struct vd_cq_own *)qp->recv_cq)->users += by;
	if (qp->srq)
		((struct vd_srq_own *)qp->srq)->users += by;
}

static void free_qp(struct vd_qp_own *qp)
{
	if (!qp)
		return;
	free(qp->request);
	free(qp->inline_data);
	free(qp);
}

VD_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct vd_context *context = vd_context_of(pd->context);
	int error = vd_fault_call(context, VD_CALL_CREATE_QP, 0);
	if (!error)
		error = check_init(context, init);
	struct vd_qp_own *made = error ? NULL : calloc(1, sizeof *made);
	if (!error && !made)
		error = ENOMEM;
	if (!error) {
		made->init = *init;
		error = make_send_queue(made);
	}
	if (!error) {
		made->ex.qp_base = (struct ibv_qp){ .context = pd->context, .qp_context = init->qp_context, .pd = pd,
						    .send_cq = init->send_cq, .recv_cq = init->recv_cq,
						    .srq = init->srq, .state = IBV_QPS_RESET, .qp_type = IBV_QPT_RC };
		pthread_mutex_init(&made->ex.qp_base.mutex, NULL);
		pthread_cond_init(&made->ex.qp_base.cond, NULL);
		pthread_mutex_lock(&context->lock);
		error = place_qp(context, made);
		if (!error)
			count_users(&made->ex.qp_base, 1);
		pthread_mutex_unlock(&context->lock);
	}
	if (error) {
		free_qp(made);
		errno = error;
		return NULL;
	}
	return &made->ex.qp_base;
}

/* ---- the state machine (InfiniBand specification, 10.3.1 and 11.2.5.2) ---- */

enum {
	FOR_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	FOR_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		  IBV_QP_MIN_RNR_TIMER,
	FOR_RTS = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
	ALWAYS = IBV_QP_STATE | IBV_QP_CUR_STATE,
};

static const struct transition {
	enum ibv_qp_state from, to;
	int needed, allowed;
} transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, FOR_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, FOR_INIT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, FOR_RTR, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, FOR_RTS, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
};

static int check_transition(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	mask &= ~ALWAYS;
	if (to == IBV_QPS_ERR || to == IBV_QPS_RESET)
		return mask ? EINVAL : 0;
	for (size_t i = 0; i < sizeof transitions / sizeof *transitions; i++) {
		const struct transition *known = &transitions[i];
		if (known->from == from && known->to == to)
			return (mask & known->needed) == known->needed && !(mask & ~(known->needed | known->allowed)) ?
			       0 : EINVAL;
	}
	return EINVAL;
}

static int check_values(const struct vd_context *context, const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_PKEY_INDEX && attr->pkey_index >= VD_PKEYS) ||
	    (mask & IBV_QP_PORT && (attr->port_num < 1 || attr->port_num > context->set.ports)) ||
	    (mask & IBV_QP_PATH_MTU && (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096)) ||
	    (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > VD_READS_MAX) ||
	    (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > VD_READS_MAX) ||
	    (mask & IBV_QP_TIMEOUT && attr->timeout > 31) || (mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7) ||
	    (mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31))
		return EINVAL;
	if (!(mask & IBV_QP_AV))
		return 0;
	/* RoCE has no local identifiers: without a global route there is no way. */
	const struct ibv_ah_attr *path = &attr->ah_attr;
	if (path->port_num < 1 || path->port_num > context->set.ports || path->sl > 15 ||
	    (!path->is_global && !context->set.infiniband) ||
	    (path->is_global && path->grh.sgid_index >= VD_GIDS))
		return EINVAL;
	return 0;
}

static void take_values(struct vd_qp_own *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr *own = &qp->attr;
#define TAKE(bit, field) do { if (mask & (bit)) own->field = attr->field; } while (0)
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_AV, ah_attr);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
	TAKE(IBV_QP_RQ_PSN, rq_psn);
	TAKE(IBV_QP_SQ_PSN, sq_psn);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
#undef TAKE
	own->rq_psn &= 0xffffff;
	own->sq_psn &= 0xffffff;
}

/* What peers check; the node's access lock is held. */
static void publish(struct vd_context *context, struct vd_qp_own *qp)
{
	struct vd_qp *shared = vd_qp_shared(context, qp);
	shared->dest = qp->attr.dest_qp_num;
	shared->rq_psn = qp->attr.rq_psn;
	shared->sq_psn = qp->attr.sq_psn;
	shared->access = qp->attr.qp_access_flags;
	shared->port = qp->attr.port_num;
	shared->pkey = vd_pkey(qp->attr.pkey_index);
	shared->max_dest_rd_atomic = qp->attr.max_dest_rd_atomic;
	shared->rnr_timer = qp->attr.min_rnr_timer;
}

void vd_qp_fail(struct vd_place at, struct vd_qp *qp)
{
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET)
		return;
	qp->state = IBV_QPS_ERR;
	if (qp->shared_rq) {
		vd_async_push(at, IBV_EVENT_QP_LAST_WQE_REACHED, qp->self);
		return;
	}
	struct vd_rq *rq = &at.node->rq[qp->rq];
	struct vd_recv *ring = vd_arena_at(at.node, rq->ring);
	for (; rq->tail != rq->head; rq->tail++) {
		struct vd_cqe entry = {
			.wc = { .wr_id = ring[rq->tail % rq->size].wr_id, .status = IBV_WC_WR_FLUSH_ERR,
				.opcode = IBV_WC_RECV, .qp_num = qp->number },
			.qp = qp->number % VD_QPS,
		};
		vd_cq_push(at, qp->recv_cq, &entry, true);
	}
}

void vd_qp_fail_own(struct vd_context *context, struct vd_qp_own *qp)
{
	vd_lock(&context->node->access);
	vd_qp_fail(vd_place_own(context), vd_qp_shared(context, qp));
	vd_unlock(&context->node->access);
	qp->ex.qp_base.state = IBV_QPS_ERR;
	vd_flush_send_queue(context, qp);
}

static void forget_peer(struct vd_context *context, struct vd_qp_own *qp)
{
	if (qp->peer)
		vd_peer_put(context, qp->peer);
	qp->peer = NULL;
}

/* Empties its queues without completions and takes those not yet polled back. */
static void reset(struct vd_context *context, struct vd_qp_own *qp)
{
	struct ibv_qp *base = &qp->ex.qp_base;
	struct vd_qp *shared = vd_qp_shared(context, qp);
	vd_qp_deactivate(qp);
	forget_peer(context, qp);
	vd_lock(&context->node->access);
	shared->state = IBV_QPS_RESET;
	shared->established = 0;
	if (!shared->shared_rq)
		context->node->rq[shared->rq].tail = context->node->rq[shared->rq].head;
	vd_unlock(&context->node->access);
	qp->begun = qp->sent = qp->read = qp->completed = qp->posted;
	vd_cq_remove(context->node, ((struct vd_cq_own *)base->send_cq)->index, qp->index);
	vd_cq_remove(context->node, ((struct vd_cq_own *)base->recv_cq)->index, qp->index);
	__atomic_store_n(&qp->reclaimed, qp->posted, __ATOMIC_RELEASE);
	qp->attr = (struct ibv_qp_attr){ 0 };
}

static int change_state(struct vd_context *context, struct vd_qp_own *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct vd_qp *shared = vd_qp_shared(context, qp);
	enum ibv_qp_state from = (enum ibv_qp_state)shared->state, to = mask & IBV_QP_STATE ? attr->qp_state : from;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	int error = check_transition(from, to, mask);
	if (!error)
		error = check_values(context, attr, mask);
	if (error)
		return error;
	if (to == IBV_QPS_RESET) {
		reset(context, qp);
	} else if (to == IBV_QPS_ERR) {
		vd_qp_fail_own(context, qp);
	} else {
		take_values(qp, attr, mask);
		if (to == IBV_QPS_RTR)
			qp->peer = vd_peer_get(context, qp->attr.dest_qp_num);
		vd_lock(&context->node->access);
		publish(context, qp);
		shared->state = to;
		vd_unlock(&context->node->access);
	}
	qp->ex.qp_base.state = to;
	return 0;
}

VD_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct vd_context *context = vd_context_of(qp->context);
	int error = vd_fault_call(context, VD_CALL_MODIFY_QP, 0);
	if (error)
		return errno = error;
	pthread_mutex_lock(&context->lock);
	error = change_state(context, vd_qp_of(qp), attr, mask);
	if (!error)
		vd_progress(context);
	pthread_mutex_unlock(&context->lock);
	if (error)
		errno = error;
	return error;
}

VD_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct vd_context *context = vd_context_of(qp->context);
	struct vd_qp_own *own = vd_qp_of(qp);
	(void)mask;
	pthread_mutex_lock(&context->lock);
	vd_lock(&context->node->access);
	*attr = own->attr;
	attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)vd_qp_shared(context, own)->state;
	vd_unlock(&context->node->access);
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->cap = own->init.cap;
	*init = own->init;
	qp->state = attr->qp_state;
	pthread_mutex_unlock(&context->lock);
	return 0;
}

VD_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct vd_context *context = vd_context_of(qp->context);
	struct vd_qp_own *own = vd_qp_of(qp);
	struct vd_qp *shared = vd_qp_shared(context, own);
	pthread_mutex_lock(&context->lock);
	reset(context, own);
	vd_lock(&context->node->access);
	if (!shared->shared_rq)
		free_rq(context, shared->rq);
	shared->number = 0;
	vd_unlock(&context->node->access);
	__atomic_store_n(&context->qp[own->index], NULL, __ATOMIC_RELEASE);
	count_users(qp, (uint32_t)-1);
	pthread_mutex_unlock(&context->lock);
	vd_async_forget(context->node, (uintptr_t)qp);
	pthread_mutex_lock(&qp->mutex);
	while (qp->events_completed != __atomic_load_n(&own->asyncs_got, __ATOMIC_RELAXED))
		pthread_cond_wait(&qp->cond, &qp->mutex);
	pthread_mutex_unlock(&qp->mutex);
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
	free_qp(own);
	return 0;
}
