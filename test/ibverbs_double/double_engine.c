/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All requests of a device, in the order that an adapter keeps (InfiniBand specification, 10.8.3.3): on one queue pair
 * what goes out (writes, sends, atomics) is carried out in order; a read only after everything before it; but what
 * comes after a read may overtake it unless it is fenced. Completions are in the order of posting.
 */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { LATE_ALWAYS = 4, LATE_MOST = 20 };

uint64_t vd_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
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
	qp->begun = qp->sent = qp->read = qp->posted;
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
	/* Posting says nothing of who looks after what is due. */
	if (context->at_work == VD_POLLING)
		context->late = 0;
	else if (context->at_work == VD_ENGINE && ++context->late == LATE_MOST)
		context->late = 0;
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
		if (vd_is_waiting(context, qp, qp->sent, &due)) {
			take_due(earliest, due);
			return true;
		}
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

/* Sees to it that what is due then will be done even if the process does not poll. As long as the process itself does
 * what gets due, it is given the first chance: the timer is then only pushed on, and seldom goes off. (A thread that is
 * woken on a core that a program spins on costs both more time than a short latency is.) Each time that the engine was
 * first, it leaves less; but it tries again now and then, as it may have been first by chance. */
static void plan(struct vd_context *context, uint64_t due, uint64_t now)
{
	/* Relaxed: a hint for vd_progress_hint; who acts on it takes the lock. */
	__atomic_store_n(&context->due_ns, due, __ATOMIC_RELAXED);
	if (due == UINT64_MAX)
		return;
	uint64_t grace = context->late < LATE_ALWAYS ? context->set.grace_ns >> 2 * context->late : 0;
	uint64_t first = due > now ? due : now;
	if (first + grace < context->timer_ns || context->timer_ns < first + grace / 2)
		set_timer(context, first + grace);
}

void vd_progress(struct vd_context *context)
{
	uint64_t earliest = UINT64_MAX;
	if (!context->active) {
		__atomic_store_n(&context->due_ns, earliest, __ATOMIC_RELAXED);
		return;
	}
	uint64_t now = vd_now();
	vd_schedule(context, now);
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
	if (vd_now() < due || pthread_mutex_trylock(&context->lock))
		return;
	context->at_work = VD_POLLING;
	vd_progress(context);
	context->at_work = VD_POSTING;
	pthread_mutex_unlock(&context->lock);
}

void vd_progress_soon(struct vd_context *context)
{
	if (__atomic_load_n(&context->due_ns, __ATOMIC_RELAXED) == UINT64_MAX)
		return;
	pthread_mutex_lock(&context->lock);
	context->late = LATE_ALWAYS;
	context->timer_ns = UINT64_MAX; /* to be set anew, without the grace */
	vd_progress(context);
	pthread_mutex_unlock(&context->lock);
}

/* ---- the engine thread ---- */

/* What sched_setattr(2) takes, the first version of it; libc has it only of late. */
struct sched_request {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* To run soon after being woken, although programs that spin have all cores: by the smallest slice that the kernel
 * grants (Linux 6.12 and later; others take no notice). */
static void ask_for_short_waits(void)
{
	struct sched_request request = { .size = sizeof request, .runtime_ns = 100000 };
	syscall(SYS_sched_setattr, 0, &request, 0);
	prctl(PR_SET_TIMERSLACK, 1);
}

static void *run_engine(void *argument)
{
	struct vd_context *context = argument;
	prctl(PR_SET_NAME, "verbs-double");
	ask_for_short_waits();
	for (bool stop = false; !stop;) {
		uint64_t count;
		if (read(context->timer_fd, &count, sizeof count) < 0 && errno != EINTR)
			break;
		pthread_mutex_lock(&context->lock);
		context->timer_ns = UINT64_MAX;
		stop = context->engine_stop;
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
