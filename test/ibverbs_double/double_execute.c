/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carrying out one request: what the adapters at both ends do with it. Local errors first, then whether the peer
 * answers at all, then what its tables say, then the bytes.
 */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <string.h>

enum {
	STEP_BYTES = 16384,         /* of a long message that is on its way */
	LOOK_NS = 2000000,          /* how often a silent peer is looked at, at most */
	HELD_LOOKS = 256, HELD_NS = 50000,
};

/* What one request is about, while it is looked at. */
struct job {
	struct vd_context *context;
	struct vd_qp_own *qp;
	struct vd_request *request;
	uint64_t now;
	uint64_t *due;
	struct vd_place target;
	struct vd_qp *peer; /* the queue pair at the target */
};

static enum vd_result wait_until(const struct job *job, uint64_t when)
{
	*job->due = when;
	return VD_WAIT;
}

static enum vd_result fail(const struct job *job, enum ibv_wc_status status)
{
	job->request->status = status;
	return VD_ERROR;
}

static bool is_atomic(const struct vd_request *request)
{
	return request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_send(const struct vd_request *request)
{
	return request->opcode == IBV_WR_SEND || request->opcode == IBV_WR_SEND_WITH_IMM;
}

static bool needs_recv(const struct vd_request *request)
{
	return is_send(request) || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* ---- our side ---- */

/* The memory of the request at our side. */
static bool resolve_local(const struct job *job, struct iovec iov[VD_SGE_MAX], int *n)
{
	struct vd_request *request = job->request;
	uint32_t asked = request->opcode == IBV_WR_RDMA_READ || is_atomic(request) ? IBV_ACCESS_LOCAL_WRITE : 0;
	if (request->flags & IBV_SEND_INLINE) {
		iov[0] = (struct iovec){ request->inline_data, request->len };
		*n = 1;
		return true;
	}
	for (uint32_t i = 0; i < request->n_sge; i++) {
		const struct ibv_sge *sge = &request->sge[i];
		uint64_t at = 0;
		if (sge->length && !vd_mr_resolve(job->context->node, sge->lkey, job->qp->ex.qp_base.pd->handle,
						  sge->addr, sge->length, asked, &at))
			return false;
		iov[i] = (struct iovec){ (void *)(uintptr_t)at, sge->length };
	}
	*n = (int)request->n_sge;
	return true;
}

/* ---- does the peer answer? ---- */

static uint64_t timeout_ns(const struct vd_qp_own *qp)
{
	return 4096ull << qp->attr.timeout;
}

/* A peer that says nothing: the request is tried again until the retries are used up. */
static enum vd_result silent(const struct job *job)
{
	struct vd_request *request = job->request;
	const struct vd_qp_own *qp = job->qp;
	uint64_t forced = job->context->set.retry_ns;
	uint64_t budget = forced ? forced : timeout_ns(qp) * (qp->attr.retry_cnt + 1u);
	if (!qp->attr.timeout && !forced)
		return wait_until(job, job->now + LOOK_NS); /* for ever */
	if (!request->give_up_ns)
		request->give_up_ns = job->now + budget;
	if (job->now >= request->give_up_ns)
		return fail(job, IBV_WC_RETRY_EXC_ERR);
	uint64_t again = timeout_ns(qp) < LOOK_NS ? timeout_ns(qp) : LOOK_NS;
	request->again_ns = job->now + again < request->give_up_ns ? job->now + again : request->give_up_ns;
	return wait_until(job, request->again_ns);
}

/* Do two partition keys go together? The same partition, and not both limited members of it. */
static bool pkeys_match(uint32_t a, uint32_t b)
{
	return (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000);
}

/* Is the queue pair there that we are connected to, and would it take our packets? The target's access is held. */
static bool answers(const struct job *job)
{
	const struct vd_qp_own *own = job->qp;
	const struct vd_qp *peer = job->peer;
	if (peer->number != own->attr.dest_qp_num || peer->dest != own->ex.qp_base.qp_num)
		return false;
	if (peer->state != IBV_QPS_RTR && peer->state != IBV_QPS_RTS && peer->state != IBV_QPS_SQD)
		return false;
	const struct vd_node *node = job->target.node;
	if (__atomic_load_n(&node->port_state[peer->port - 1], __ATOMIC_RELAXED) != IBV_PORT_ACTIVE)
		return false;
	return peer->rq_psn == own->attr.sq_psn && pkeys_match(peer->pkey, vd_pkey(own->attr.pkey_index)) &&
	       vd_path_leads(job->context, &own->attr.ah_attr, node->device, peer->port);
}

/* Finds the target and takes its access lock. */
static bool reach(struct job *job)
{
	struct vd_context *context = job->context;
	struct vd_qp_own *qp = job->qp;
	if (__atomic_load_n(&context->node->port_state[qp->attr.port_num - 1], __ATOMIC_RELAXED) != IBV_PORT_ACTIVE)
		return false;
	/* After a while of silence: perhaps the process is not there any more, or has begun anew. */
	if (qp->peer && job->request->give_up_ns && vd_peer_is_gone(context, qp->peer)) {
		vd_peer_put(context, qp->peer);
		qp->peer = NULL;
	}
	if (!qp->peer)
		qp->peer = vd_peer_get(context, qp->attr.dest_qp_num);
	if (!qp->peer)
		return false;
	job->target = (struct vd_place){ context, qp->peer->node, qp->peer };
	job->peer = &qp->peer->node->qp[qp->attr.dest_qp_num % VD_QPS];
	vd_lock(&job->target.node->access);
	if (answers(job))
		return true;
	vd_unlock(&job->target.node->access);
	return false;
}

/* ---- what its tables say; its access is held ---- */

/* The target refuses: its queue pair fails too. */
static enum vd_result refuse(const struct job *job, enum ibv_wc_status status, enum ibv_event_type event)
{
	vd_async_push(job->target, event, job->peer->self);
	vd_qp_fail(job->target, job->peer);
	return fail(job, status);
}

static uint32_t asked_of_target(const struct vd_request *request)
{
	if (request->opcode == IBV_WR_RDMA_READ)
		return IBV_ACCESS_REMOTE_READ;
	return is_atomic(request) ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_WRITE;
}

/* Resolves the target of a write, read or atomic. */
static enum vd_result resolve_target(const struct job *job, struct iovec *iov)
{
	const struct vd_request *request = job->request;
	uint32_t asked = asked_of_target(request);
	uint64_t at = 0;
	bool reads = asked != IBV_ACCESS_REMOTE_WRITE;
	if (reads && !job->peer->max_dest_rd_atomic)
		return refuse(job, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	if (is_atomic(request) && request->remote % 8)
		return refuse(job, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	/* The key of an empty request is not looked at (InfiniBand specification, 9.7.4.1.5). */
	if (request->len && ((job->peer->access & asked) != asked ||
			     !vd_mr_resolve(job->target.node, request->rkey, job->peer->pd, request->remote,
					    request->len, asked, &at)))
		return refuse(job, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	*iov = (struct iovec){ (void *)(uintptr_t)at, request->len };
	return VD_DONE;
}

/* RNR timer codes in units of 10 us (InfiniBand specification, table 45). */
static uint64_t rnr_ns(unsigned code)
{
	static const uint32_t units[32] = { 65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
					    512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
					    32768, 49152 };
	return units[code % 32] * 10000ull;
}

static enum vd_result not_ready(const struct job *job)
{
	struct vd_request *request = job->request;
	if (job->qp->attr.rnr_retry != 7 && request->rnr_tries >= job->qp->attr.rnr_retry)
		return fail(job, IBV_WC_RNR_RETRY_EXC_ERR);
	request->rnr_tries++;
	request->again_ns = job->now + rnr_ns(job->peer->rnr_timer);
	return wait_until(job, request->again_ns);
}

static void complete_recv(const struct job *job, enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	const struct vd_request *request = job->request;
	bool imm = request->opcode == IBV_WR_SEND_WITH_IMM || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct vd_cqe entry = {
		.wc = { .wr_id = request->recv.wr_id, .status = status, .opcode = opcode,
			.byte_len = (uint32_t)request->len, .imm_data = imm ? request->imm : 0,
			.qp_num = job->peer->number, .src_qp = job->qp->ex.qp_base.qp_num,
			.wc_flags = imm ? IBV_WC_WITH_IMM : 0 },
		.qp = job->peer->number % VD_QPS,
	};
	if (!vd_cq_push(job->target, job->peer->recv_cq, &entry, request->flags & IBV_SEND_SOLICITED))
		vd_qp_fail(job->target, job->peer);
}

/* Takes a receive request from the target's queue. */
static enum vd_result take_recv(const struct job *job)
{
	struct vd_request *request = job->request;
	struct vd_rq *rq = &job->target.node->rq[job->peer->rq];
	if (request->plan.rnr_times > 0) {
		request->plan.rnr_times--;
		return not_ready(job);
	}
	if (rq->head == rq->tail)
		return not_ready(job);
	struct vd_recv *ring = vd_arena_at(job->target.node, rq->ring);
	request->recv = ring[rq->tail++ % rq->size];
	if (rq->limit && rq->head - rq->tail < rq->limit) {
		rq->limit = 0;
		vd_async_push(job->target, IBV_EVENT_SRQ_LIMIT_REACHED, rq->self);
	}
	return VD_DONE;
}

/* Resolves the memory of the receive request that was taken. */
static enum vd_result resolve_recv(const struct job *job, struct iovec iov[VD_SGE_MAX], int *n)
{
	const struct vd_request *request = job->request;
	uint64_t room = 0, at = 0;
	for (uint32_t i = 0; i < request->recv.n_sge; i++) {
		const struct ibv_sge *sge = &request->recv.sge[i];
		/* Only what is used is checked. */
		uint64_t used = request->len > room ? request->len - room : 0;
		used = used < sge->length ? used : sge->length;
		if (used && !vd_mr_resolve(job->target.node, sge->lkey, job->peer->pd, sge->addr, used,
					   IBV_ACCESS_LOCAL_WRITE, &at)) {
			complete_recv(job, IBV_WC_LOC_PROT_ERR, IBV_WC_RECV);
			return refuse(job, IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
		}
		iov[i] = (struct iovec){ (void *)(uintptr_t)at, used };
		room += sge->length;
	}
	*n = (int)request->recv.n_sge;
	if (request->len <= room)
		return VD_DONE;
	complete_recv(job, IBV_WC_LOC_LEN_ERR, IBV_WC_RECV);
	return refuse(job, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

/* Everything that the target checks; the memory there. */
static enum vd_result ask_target(const struct job *job, struct iovec iov[VD_SGE_MAX], int *n)
{
	struct vd_request *request = job->request;
	*n = 1;
	if (!is_send(request)) {
		enum vd_result result = resolve_target(job, iov);
		if (result != VD_DONE)
			return result;
	}
	if (needs_recv(request) && !request->begun) {
		enum vd_result result = take_recv(job);
		if (result != VD_DONE)
			return result;
	}
	request->begun = true;
	return is_send(request) ? resolve_recv(job, iov, n) : VD_DONE;
}

/* ---- the bytes ---- */

/* How many bytes have arrived by now, by the model of time; *next: when more will have. */
static uint64_t arrived(const struct job *job, uint64_t *next)
{
	const struct vd_request *request = job->request;
	if (!job->context->set.timed || job->now >= request->arrive_ns)
		return request->len;
	*next = request->arrive_ns;
	if (request->len <= STEP_BYTES)
		return 0;
	uint64_t first = request->begin_ns + job->context->set.latency_ns;
	uint64_t bytes = job->now <= first ? 0 : (uint64_t)((double)(job->now - first) / request->byte_ns);
	bytes = bytes < request->len ? bytes / STEP_BYTES * STEP_BYTES : (request->len - 1) / STEP_BYTES * STEP_BYTES;
	uint64_t step = first + (uint64_t)((double)(bytes + STEP_BYTES) * request->byte_ns);
	if (step < *next)
		*next = step;
	return bytes;
}

static enum vd_result copy_failed(const struct job *job, int error)
{
	unsigned char known;
	struct iovec local[VD_SGE_MAX], probe;
	int n;
	if (error == ESRCH || error == EPERM)
		return silent(job);
	/* Memory that is not there: ours, or else theirs. */
	if (!resolve_local(job, local, &n))
		return fail(job, IBV_WC_LOC_PROT_ERR);
	for (int i = 0; i < n; i++) {
		uint8_t *last = (uint8_t *)local[i].iov_base + (local[i].iov_len ? local[i].iov_len - 1 : 0);
		struct iovec own = { &known, 1 };
		for (int end = 0; end < 2 && local[i].iov_len; end++) {
			probe = (struct iovec){ end ? last : (uint8_t *)local[i].iov_base, 1 };
			if (vd_copy(job->context->node->pid, &own, 1, &probe, 1, 0, 1, false))
				return fail(job, IBV_WC_LOC_PROT_ERR);
		}
	}
	return refuse(job, IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
}

static enum vd_result move_bytes(const struct job *job, const struct iovec *local, int n_local,
				 const struct iovec *remote, int n_remote)
{
	struct vd_request *request = job->request;
	uint64_t next = 0, there = arrived(job, &next);
	bool write = request->opcode != IBV_WR_RDMA_READ;
	if (request->plan.kill == VD_AT_HALF && there > request->len / 2)
		there = request->len / 2;
	while (request->done < there) {
		uint64_t some = there - request->done < VD_COPY_MOST ? there - request->done : VD_COPY_MOST;
		int error = vd_copy(job->target.node->pid, local, n_local, remote, n_remote, request->done, some,
				    write);
		if (error)
			return copy_failed(job, error);
		request->done += some;
	}
	if (request->plan.kill == VD_AT_HALF && request->done == request->len / 2)
		vd_fault_kill();
	return request->done == request->len ? VD_DONE : wait_until(job, next);
}

/* Atomic among the requests of the double: all of them hold the target's access lock. */
static enum vd_result do_atomic(const struct job *job, const struct iovec *local, int n_local,
				const struct iovec *remote)
{
	const struct vd_request *request = job->request;
	uint64_t old = 0, fresh;
	struct iovec word = { &old, sizeof old };
	int error = vd_copy(job->target.node->pid, &word, 1, remote, 1, 0, sizeof old, false);
	fresh = request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? old + request->compare_add :
		old == request->compare_add ? request->swap : old;
	word.iov_base = &fresh;
	if (!error)
		error = vd_copy(job->target.node->pid, &word, 1, remote, 1, 0, sizeof fresh, true);
	word.iov_base = &old;
	if (!error)
		error = vd_copy(job->context->node->pid, &word, 1, local, n_local, 0, sizeof old, true);
	return error ? copy_failed(job, error) : VD_DONE;
}

static void arrive(const struct job *job)
{
	struct vd_qp *peer = job->peer;
	if (!peer->established && peer->state == IBV_QPS_RTR)
		vd_async_push(job->target, IBV_EVENT_COMM_EST, peer->self);
	peer->established = 1;
	if (needs_recv(job->request))
		complete_recv(job, IBV_WC_SUCCESS,
			      is_send(job->request) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
}

static enum vd_result at_target(const struct job *job, const struct iovec *local, int n_local)
{
	struct iovec remote[VD_SGE_MAX];
	int n_remote;
	enum vd_result result = ask_target(job, remote, &n_remote);
	if (result == VD_DONE && is_atomic(job->request))
		result = do_atomic(job, local, n_local, remote);
	else if (result == VD_DONE)
		result = move_bytes(job, local, n_local, remote, n_remote);
	if (result == VD_DONE)
		arrive(job);
	return result;
}

/* ---- all of it ---- */

/* Faults and rules of our own adapter. */
static enum vd_result check_local(const struct job *job)
{
	const struct vd_request *request = job->request;
	bool reads = request->opcode == IBV_WR_RDMA_READ || is_atomic(request);
	if (request->plan.status != IBV_WC_SUCCESS)
		return fail(job, request->plan.status);
	if (reads && !job->qp->attr.max_rd_atomic)
		return fail(job, IBV_WC_LOC_QP_OP_ERR);
	if (is_atomic(request) && request->len != 8)
		return fail(job, IBV_WC_LOC_LEN_ERR);
	return VD_DONE;
}

static bool is_held(const struct job *job)
{
	struct vd_request *request = job->request;
	uint64_t wanted = vd_fault_hold(job->context, job->qp->order);
	uint64_t elsewhere = job->context->executed - job->qp->executed;
	return wanted && elsewhere - request->elsewhere < wanted && request->looks++ < HELD_LOOKS;
}

enum vd_result vd_execute(struct vd_context *context, struct vd_qp_own *qp, struct vd_request *request, uint64_t now,
			  uint64_t *due)
{
	struct job job = { context, qp, request, now, due, { 0 }, NULL };
	struct iovec local[VD_SGE_MAX];
	int n_local;
	if (now < request->again_ns)
		return wait_until(&job, request->again_ns);
	if (is_held(&job))
		return wait_until(&job, now + HELD_NS);
	enum vd_result result = check_local(&job);
	if (result != VD_DONE)
		return result;
	if (!resolve_local(&job, local, &n_local))
		return fail(&job, IBV_WC_LOC_PROT_ERR);
	if (context->set.timed && request->len <= STEP_BYTES && now < request->arrive_ns)
		return wait_until(&job, request->arrive_ns);
	if (!reach(&job))
		return silent(&job);
	result = at_target(&job, local, n_local);
	vd_unlock(&job.target.node->access);
	if (result == VD_DONE && request->plan.kill == VD_WHEN_DONE)
		vd_fault_kill();
	return result;
}
