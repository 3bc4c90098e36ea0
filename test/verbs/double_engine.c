/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All requests of a device, in the order that an adapter keeps (InfiniBand specification, 10.8.3.3): on one queue pair
 * what goes out (writes, sends, atomics) is carried out in order; a read only after everything before it; but what
 * comes after a read may overtake it unless it is fenced. Completions are in the order of posting.
 *
 * The model of time: a request occupies its node's link for its bytes, in the order of posting, and its queue pair for
 * as long as that may take at the queue pair's rate; the answer to a read occupies the link of the target.
 */
#include "test/verbs/double.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

uint64_t vd_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- when ---- */

/* The time at which the link of that node has room for bytes, not before earliest. */
static uint64_t reserve(struct vd_context *context, struct vd_node *node, uint64_t earliest, uint64_t bytes)
{
	vd_lock(&node->access);
	uint64_t begin = max_u64(earliest, node->link_free_ns);
	node->link_free_ns = begin + context->set.overhead_ns +
			     (uint64_t)((double)bytes * context->set.ns_per_byte);
	vd_unlock(&node->access);
	return begin + context->set.overhead_ns;
}

static void schedule_read(struct vd_context *context, struct vd_qp_own *qp, struct vd_request *request, uint64_t now)
{
	const struct vd_settings *set = &context->set;
	unsigned most = qp->attr.max_rd_atomic ? qp->attr.max_rd_atomic : 1;
	uint64_t asked = max_u64(now, qp->write_arrive_ns > set->latency_ns ? qp->write_arrive_ns - set->latency_ns : 0);
	/* No more at once than the target serves: this one goes out when the answer to an earlier one is there. */
	if (qp->reads_posted >= most)
		asked = max_u64(asked, qp->read_arrive_ns[(qp->reads_posted - most) % VD_READS_MAX]);
	uint64_t last = qp->reads_posted ? qp->read_arrive_ns[(qp->reads_posted - 1) % VD_READS_MAX] : 0;
	uint64_t earliest = max_u64(asked + set->latency_ns, last > set->latency_ns ? last - set->latency_ns : 0);
	request->begin_ns = qp->peer ? reserve(context, qp->peer->node, earliest, request->len) : earliest;
	request->arrive_ns = request->begin_ns + (uint64_t)((double)request->len * request->byte_ns) + set->latency_ns;
	qp->read_arrive_ns[qp->reads_posted++ % VD_READS_MAX] = request->arrive_ns;
}

void vd_schedule(struct vd_context *context, struct vd_qp_own *qp, struct vd_request *request)
{
	const struct vd_settings *set = &context->set;
	if (!set->timed)
		return;
	uint64_t now = vd_now();
	request->byte_ns = set->qp_ns_per_byte > set->ns_per_byte ? set->qp_ns_per_byte : set->ns_per_byte;
	if (request->opcode == IBV_WR_RDMA_READ) {
		schedule_read(context, qp, request, now);
		return;
	}
	uint64_t earliest = max_u64(now, qp->free_ns);
	if (request->flags & IBV_SEND_FENCE && qp->reads_posted)
		earliest = max_u64(earliest, qp->read_arrive_ns[(qp->reads_posted - 1) % VD_READS_MAX]);
	request->begin_ns = reserve(context, context->node, earliest, request->len);
	qp->free_ns = request->begin_ns + (uint64_t)((double)request->len * request->byte_ns);
	request->arrive_ns = qp->free_ns + set->latency_ns;
	qp->write_arrive_ns = request->arrive_ns;
}

/* ---- the send queue of one queue pair ---- */

static struct vd_request *at(struct vd_qp_own *qp, uint32_t i)
{
	return &qp->request[i % qp->size];
}

static enum ibv_wc_opcode completion_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

/* Takes the oldest request from the queue, with a completion if it is to have one. False: there was no room for it. */
static bool complete(struct vd_context *context, struct vd_qp_own *qp, enum ibv_wc_status status)
{
	const struct vd_request *request = at(qp, qp->completed++);
	if (status == IBV_WC_SUCCESS && !(request->flags & IBV_SEND_SIGNALED) && !qp->init.sq_sig_all)
		return true;
	struct vd_cqe entry = {
		.wc = { .wr_id = request->wr_id, .status = status, .opcode = completion_opcode(request->opcode),
			.vendor_err = status, .byte_len = (uint32_t)request->len, .qp_num = qp->ex.qp_base.qp_num },
		.qp = qp->index,
		.end = qp->completed,
	};
	return vd_cq_push(vd_place_own(context), ((struct vd_cq_own *)qp->ex.qp_base.send_cq)->index, &entry, false);
}

void vd_flush_send_queue(struct vd_context *context, struct vd_qp_own *qp)
{
	while (qp->completed != qp->posted) {
		struct vd_request *request = at(qp, qp->completed);
		complete(context, qp, request->status != IBV_WC_SUCCESS ? request->status : IBV_WC_WR_FLUSH_ERR);
	}
	qp->sent = qp->read = qp->posted;
	vd_qp_deactivate(qp);
}

static void take_due(uint64_t *earliest, uint64_t due)
{
	if (due < *earliest)
		*earliest = due;
}

static void placed(struct vd_context *context, struct vd_qp_own *qp, struct vd_request *request)
{
	request->placed = true;
	qp->executed++;
	context->executed++;
}

static bool is_read(const struct vd_request *request)
{
	return request->opcode == IBV_WR_RDMA_READ;
}

/* Carries out what goes out, as far as it can. False: one failed. */
static bool progress_out(struct vd_context *context, struct vd_qp_own *qp, uint64_t now, uint64_t *earliest)
{
	for (; qp->sent != qp->posted; qp->sent++) {
		struct vd_request *request = at(qp, qp->sent);
		uint64_t due;
		if (is_read(request))
			continue;
		if (request->flags & IBV_SEND_FENCE && qp->read != qp->sent)
			return true; /* a read before it is under way, and has a time of its own */
		enum vd_result result = vd_execute(context, qp, request, now, &due);
		if (result == VD_ERROR)
			return false;
		if (result == VD_WAIT) {
			take_due(earliest, due);
			return true;
		}
		placed(context, qp, request);
	}
	return true;
}

static bool progress_reads(struct vd_context *context, struct vd_qp_own *qp, uint64_t now, uint64_t *earliest)
{
	for (; qp->read != qp->sent; qp->read++) {
		struct vd_request *request = at(qp, qp->read);
		uint64_t due;
		if (!is_read(request))
			continue;
		enum vd_result result = vd_execute(context, qp, request, now, &due);
		if (result == VD_ERROR)
			return false;
		if (result == VD_WAIT) {
			take_due(earliest, due);
			return true;
		}
		placed(context, qp, request);
	}
	return true;
}

/* When a placed request is known here to be: an answer of no length after its arrival. */
static uint64_t acknowledged(const struct vd_context *context, const struct vd_request *request)
{
	if (!context->set.timed)
		return 0;
	return request->arrive_ns + (is_read(request) ? 0 : context->set.latency_ns);
}

static bool progress_completions(struct vd_context *context, struct vd_qp_own *qp, uint64_t now, uint64_t *earliest)
{
	while (qp->completed != qp->posted) {
		const struct vd_request *request = at(qp, qp->completed);
		if (request->status != IBV_WC_SUCCESS)
			return false;
		if (!request->placed)
			return true;
		if (acknowledged(context, request) > now) {
			take_due(earliest, acknowledged(context, request));
			return true;
		}
		if (!complete(context, qp, IBV_WC_SUCCESS))
			return false;
	}
	return true;
}

/* Those before the one that failed complete as they are; it completes with its status, and the rest is flushed. */
static void fail_queue(struct vd_context *context, struct vd_qp_own *qp)
{
	while (qp->completed != qp->posted && at(qp, qp->completed)->placed)
		if (!complete(context, qp, IBV_WC_SUCCESS))
			break;
	vd_qp_fail_own(context, qp);
}

static void progress_qp(struct vd_context *context, struct vd_qp_own *qp, uint64_t now, uint64_t *earliest)
{
	/* Relaxed: a peer whose request failed here sets it, and nothing is read by it but the state. */
	uint32_t state = __atomic_load_n(&vd_qp_shared(context, qp)->state, __ATOMIC_RELAXED);
	if (state == IBV_QPS_SQD)
		return;
	bool sound = state == IBV_QPS_RTS;
	for (bool more = true; sound && more;) {
		/* A read that is done may be what a fenced request waits for. */
		uint32_t read = qp->read;
		sound = progress_out(context, qp, now, earliest) && progress_reads(context, qp, now, earliest);
		more = qp->read != read && qp->sent != qp->posted;
	}
	if (!sound || !progress_completions(context, qp, now, earliest))
		fail_queue(context, qp);
	else if (qp->completed == qp->posted)
		vd_qp_deactivate(qp);
}

/* ---- all queue pairs ---- */

void vd_qp_activate(struct vd_context *context, struct vd_qp_own *qp)
{
	if (qp->active_link)
		return;
	qp->next_active = context->active;
	if (qp->next_active)
		qp->next_active->active_link = &qp->next_active;
	qp->active_link = &context->active;
	context->active = qp;
}

void vd_qp_deactivate(struct vd_qp_own *qp)
{
	if (!qp->active_link)
		return;
	*qp->active_link = qp->next_active;
	if (qp->next_active)
		qp->next_active->active_link = qp->active_link;
	qp->active_link = NULL;
}

static void *run_engine(void *argument);

static void set_timer(struct vd_context *context, uint64_t when)
{
	struct itimerspec spec = { .it_value = { (time_t)(when / 1000000000u), (long)(when % 1000000000u) } };
	if (!context->engine_started) {
		int error = pthread_create(&context->engine, NULL, run_engine, context);
		if (error) {
			fprintf(stderr, "verbs double: no engine thread: %s\n", strerror(error));
			return;
		}
		context->engine_started = true;
	}
	timerfd_settime(context->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
	context->timer_ns = when;
}

/* Sees to it that what is due then will be done even if the process does not poll. A process that polls is given the
 * first chance; for it the timer is only pushed on, so that it seldom goes off. */
static void plan(struct vd_context *context, uint64_t due, uint64_t now)
{
	/* Relaxed: a hint for vd_progress_hint; who acts on it takes the lock. */
	__atomic_store_n(&context->due_ns, due, __ATOMIC_RELAXED);
	if (due == UINT64_MAX)
		return;
	uint64_t grace = context->away ? 0 : context->set.grace_ns;
	uint64_t when = max_u64(due, now) + grace;
	if (when < context->timer_ns || context->timer_ns < max_u64(due, now) + grace / 2)
		set_timer(context, when);
}

void vd_progress(struct vd_context *context)
{
	uint64_t earliest = UINT64_MAX;
	if (!context->active) {
		__atomic_store_n(&context->due_ns, earliest, __ATOMIC_RELAXED);
		return;
	}
	uint64_t now = vd_now();
	for (struct vd_qp_own *next, *qp = context->active; qp; qp = next) {
		next = qp->next_active;
		progress_qp(context, qp, now, &earliest);
	}
	plan(context, earliest, now);
}

void vd_progress_hint(struct vd_context *context)
{
	uint64_t due = __atomic_load_n(&context->due_ns, __ATOMIC_RELAXED);
	if (due == UINT64_MAX)
		return;
	if (!__atomic_load_n(&context->polled, __ATOMIC_RELAXED))
		__atomic_store_n(&context->polled, true, __ATOMIC_RELAXED);
	if (vd_now() < due || pthread_mutex_trylock(&context->lock))
		return;
	context->away = false;
	vd_progress(context);
	pthread_mutex_unlock(&context->lock);
}

/* ---- the engine thread ---- */

static void *run_engine(void *argument)
{
	struct vd_context *context = argument;
	prctl(PR_SET_NAME, "verbs-double");
	prctl(PR_SET_TIMERSLACK, 1);
	for (bool stop = false; !stop;) {
		uint64_t count;
		if (read(context->timer_fd, &count, sizeof count) < 0 && errno != EINTR)
			break;
		pthread_mutex_lock(&context->lock);
		context->timer_ns = UINT64_MAX;
		stop = context->engine_stop;
		/* Whoever polled since the last time is only late, and will be given the first chance again. */
		context->away = !__atomic_exchange_n(&context->polled, false, __ATOMIC_RELAXED);
		if (!stop)
			vd_progress(context);
		pthread_mutex_unlock(&context->lock);
	}
	return NULL;
}

void vd_engine_stop(struct vd_context *context)
{
	pthread_mutex_lock(&context->lock);
	bool started = context->engine_started;
	context->engine_stop = true;
	if (started)
		set_timer(context, 1);
	pthread_mutex_unlock(&context->lock);
	if (started)
		pthread_join(context->engine, NULL);
}
