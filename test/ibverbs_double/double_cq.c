/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <stdlib.h>

static struct vd_cq *shared_of(struct ibv_cq *cq)
{
	return &vd_context_of(cq->context)->node->cq[((struct vd_cq_own *)cq)->index];
}

/* ---- pushing, by whoever carries a request out ---- */

bool vd_cq_push(struct vd_place at, uint32_t cq, const struct vd_cqe *entry, bool solicited)
{
	struct vd_cq *shared = &at.node->cq[cq];
	vd_lock(&shared->lock);
	bool fits = !shared->overrun && shared->head - shared->tail < shared->max && !vd_fault_overrun(at.by);
	bool overrun = !fits && !shared->overrun;
	bool wake = false;
	if (fits) {
		struct vd_cqe *ring = vd_arena_at(at.node, shared->ring);
		ring[shared->head % shared->size] = *entry;
		/* Release: pairs with the look that ibv_poll_cq takes without the lock, which is only a hint. */
		__atomic_store_n(&shared->head, shared->head + 1, __ATOMIC_RELEASE);
		/* An erroneous completion counts as solicited (InfiniBand specification, 11.4.2.2). */
		solicited = solicited || entry->wc.status != IBV_WC_SUCCESS;
		wake = shared->armed == 2 || (shared->armed == 1 && solicited);
	}
	shared->overrun |= overrun;
	if (wake) {
		shared->armed = 0;
		shared->events++;
	}
	int fd = shared->event_fd;
	uint32_t id = shared->event_id;
	vd_unlock(&shared->lock);
	if (wake && fd >= 0)
		vd_signal(at.peer, fd, id);
	if (overrun)
		vd_async_push(at, IBV_EVENT_CQ_ERR, shared->self);
	return fits;
}

void vd_cq_remove(struct vd_node *node, uint32_t cq, uint32_t qp)
{
	struct vd_cq *shared = &node->cq[cq];
	vd_lock(&shared->lock);
	struct vd_cqe *ring = vd_arena_at(node, shared->ring);
	uint32_t kept = shared->tail;
	for (uint32_t i = shared->tail; i != shared->head; i++)
		if (ring[i % shared->size].qp != qp)
			ring[kept++ % shared->size] = ring[i % shared->size];
	__atomic_store_n(&shared->head, kept, __ATOMIC_RELEASE);
	vd_unlock(&shared->lock);
}

/* ---- polling ---- */

/* What a polled completion of a send frees. Called without locks. */
static void reclaim(struct vd_context *context, const struct vd_cqe *entry)
{
	if (entry->wc.opcode & IBV_WC_RECV)
		return;
	/* The queue pair exists: its completions go with it (vd_cq_remove). Released to the thread that posts. */
	struct vd_qp_own *qp = __atomic_load_n(&context->qp[entry->qp], __ATOMIC_ACQUIRE);
	if (qp && qp->ex.qp_base.qp_num == entry->wc.qp_num)
		__atomic_store_n(&qp->reclaimed, entry->end, __ATOMIC_RELEASE);
}

int vd_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct vd_context *context = vd_context_of(cq->context);
	struct vd_cq *shared = shared_of(cq);
	if (vd_fault_call(context, VD_CALL_POLL_CQ, 0))
		return -1;
	vd_progress_hint(context);
	/* Acquire: pairs with vd_cq_push; both counts are read again under the lock. */
	if (__atomic_load_n(&shared->head, __ATOMIC_ACQUIRE) == __atomic_load_n(&shared->tail, __ATOMIC_RELAXED))
		return 0;
	int taken = 0;
	vd_lock(&shared->lock);
	struct vd_cqe *ring = vd_arena_at(context->node, shared->ring);
	for (; taken < n && shared->tail != shared->head; taken++) {
		struct vd_cqe *entry = &ring[shared->tail % shared->size];
		wc[taken] = entry->wc;
		reclaim(context, entry);
		__atomic_store_n(&shared->tail, shared->tail + 1, __ATOMIC_RELAXED);
	}
	vd_unlock(&shared->lock);
	return taken;
}

int vd_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct vd_cq *shared = shared_of(cq);
	uint32_t wanted = solicited_only ? 1 : 2;
	struct vd_context *context = vd_context_of(cq->context);
	int error = vd_fault_call(context, VD_CALL_REQ_NOTIFY_CQ, 0);
	if (error)
		return error;
	/* It is about to sleep, so that the engine must be in time. */
	vd_progress_soon(context);
	vd_lock(&shared->lock);
	/* Asking for less does not take back having asked for more. */
	if (shared->armed < wanted)
		shared->armed = wanted;
	vd_unlock(&shared->lock);
	return 0;
}

/* ---- making and destroying ---- */

static int place_cq(struct vd_context *context, struct vd_cq_own *own, uint32_t entries)
{
	struct vd_node *node = context->node;
	for (uint32_t i = 0; i < VD_CQS; i++) {
		uint32_t index = (context->next_cq + i) % VD_CQS;
		struct vd_cq *shared = &node->cq[index];
		if (shared->max)
			continue;
		uint32_t size = vd_power_of_two(entries);
		uint64_t ring = vd_arena_take(context, (uint64_t)size * sizeof(struct vd_cqe));
		if (!ring)
			return ENOMEM;
		*shared = (struct vd_cq){ .ring = ring, .size = size, .max = entries, .event_fd = VD_NOWHERE,
					  .self = (uintptr_t)&own->cq };
		int error = vd_shared_lock_init(&shared->lock);
		if (error)
			return error;
		own->index = index;
		context->next_cq = index + 1;
		return 0;
	}
	return ENOMEM;
}

static void join_channel(struct vd_context *context, struct vd_cq_own *own, struct vd_channel *channel)
{
	struct vd_cq *shared = &context->node->cq[own->index];
	own->next = channel->cqs;
	channel->cqs = own;
	channel->channel.refcnt++;
	shared->event_fd = channel->channel.fd;
	shared->event_id = channel->id;
}

VD_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *verbs, int cqe, void *cq_context,
				       struct ibv_comp_channel *channel, int comp_vector)
{
	struct vd_context *context = vd_context_of(verbs);
	int error = vd_fault_call(context, VD_CALL_CREATE_CQ, 0);
	if (!error && (cqe < 1 || cqe > VD_CQE_MAX || comp_vector < 0 || comp_vector >= verbs->num_comp_vectors))
		error = EINVAL;
	struct vd_cq_own *made = error ? NULL : calloc(1, sizeof *made);
	if (!error && !made)
		error = ENOMEM;
	if (!error) {
		made->cq = (struct ibv_cq){ .context = verbs, .channel = channel, .cq_context = cq_context,
					    .cqe = cqe };
		pthread_mutex_init(&made->cq.mutex, NULL);
		pthread_cond_init(&made->cq.cond, NULL);
		pthread_mutex_lock(&context->lock);
		error = place_cq(context, made, (uint32_t)cqe);
		if (!error && channel)
			join_channel(context, made, (struct vd_channel *)channel);
		made->cq.handle = made->index;
		pthread_mutex_unlock(&context->lock);
	}
	if (error) {
		free(made);
		errno = error;
		return NULL;
	}
	return &made->cq;
}

static void leave_channel(struct vd_cq_own *own)
{
	struct vd_channel *channel = (struct vd_channel *)own->cq.channel;
	if (!channel)
		return;
	struct vd_cq_own **link = &channel->cqs;
	while (*link != own)
		link = &(*link)->next;
	*link = own->next;
	channel->channel.refcnt--;
}

VD_EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct vd_context *context = vd_context_of(cq->context);
	struct vd_cq_own *own = (struct vd_cq_own *)cq;
	struct vd_cq *shared = shared_of(cq);
	pthread_mutex_lock(&context->lock);
	if (own->users) {
		pthread_mutex_unlock(&context->lock);
		return EBUSY;
	}
	pthread_mutex_unlock(&context->lock);
	/* As the real call does: it returns when every event that was got has been acknowledged. */
	pthread_mutex_lock(&cq->mutex);
	while (cq->comp_events_completed != __atomic_load_n(&own->events_got, __ATOMIC_RELAXED) ||
	       cq->async_events_completed != __atomic_load_n(&own->asyncs_got, __ATOMIC_RELAXED))
		pthread_cond_wait(&cq->cond, &cq->mutex);
	pthread_mutex_unlock(&cq->mutex);
	pthread_mutex_lock(&context->lock);
	vd_async_forget(context->node, shared->self);
	leave_channel(own);
	vd_arena_give(context, shared->ring, (uint64_t)shared->size * sizeof(struct vd_cqe));
	pthread_mutex_destroy(&shared->lock);
	shared->max = 0;
	pthread_mutex_unlock(&context->lock);
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);
	free(own);
	return 0;
}

VD_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct vd_context *context = vd_context_of(cq->context);
	struct vd_cq *shared = shared_of(cq);
	if (cqe < 1 || cqe > VD_CQE_MAX)
		return EINVAL;
	uint32_t size = vd_power_of_two((uint32_t)cqe);
	uint64_t bytes = (uint64_t)size * sizeof(struct vd_cqe);
	int error = 0;
	pthread_mutex_lock(&context->lock);
	uint64_t ring = vd_arena_take(context, bytes);
	vd_lock(&shared->lock);
	if (!ring || shared->head - shared->tail > (uint32_t)cqe) {
		error = ring ? EINVAL : ENOMEM;
		vd_arena_give(context, ring, bytes);
	} else {
		struct vd_cqe *from = vd_arena_at(context->node, shared->ring), *to = vd_arena_at(context->node, ring);
		for (uint32_t i = shared->tail; i != shared->head; i++)
			to[i % size] = from[i % shared->size];
		vd_arena_give(context, shared->ring, (uint64_t)shared->size * sizeof(struct vd_cqe));
		shared->ring = ring;
		shared->size = size;
		shared->max = (uint32_t)cqe;
		cq->cqe = cqe;
	}
	vd_unlock(&shared->lock);
	pthread_mutex_unlock(&context->lock);
	return error;
}
