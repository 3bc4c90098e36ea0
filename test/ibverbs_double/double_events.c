/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels and asynchronous events. The descriptor of each is an eventfd that counts events not yet got. A
 * peer whose request makes an event here opens that descriptor once by pidfd_getfd and then writes to it.
 */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_EVENT = 0xffff };

/* A peer's descriptor, opened here. */
struct vd_remote_fd {
	struct vd_remote_fd *next;
	uint32_t id;
	int fd;
};

/* ---- signals ---- */

static int open_remote(pid_t pid, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	if (process < 0)
		return -1;
	int opened = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	close(process);
	return opened;
}

static int remote_fd(struct vd_peer *peer, int fd, uint32_t id)
{
	for (struct vd_remote_fd *known = peer->fds; known; known = known->next)
		if (known->id == id)
			return known->fd;
	struct vd_remote_fd *made = calloc(1, sizeof *made);
	if (!made)
		return -1;
	*made = (struct vd_remote_fd){ peer->fds, id, open_remote(peer->node->pid, fd) };
	if (made->fd < 0) {
		free(made);
		return -1;
	}
	peer->fds = made;
	return made->fd;
}

void vd_signal(struct vd_peer *peer, int fd, uint32_t id)
{
	uint64_t one = 1;
	if (peer)
		fd = remote_fd(peer, fd, id);
	/* A peer that has just died has no descriptors: then nobody waits either. */
	if (fd >= 0 && write(fd, &one, sizeof one) < 0)
		return;
}

void vd_forget_fds(struct vd_peer *peer)
{
	while (peer->fds) {
		struct vd_remote_fd *known = peer->fds;
		peer->fds = known->next;
		close(known->fd);
		free(known);
	}
}

/* ---- asynchronous events ---- */

void vd_async_push(struct vd_place at, enum ibv_event_type type, uint64_t element)
{
	struct vd_node *node = at.node;
	vd_lock(&node->async_lock);
	bool room = node->async_head - node->async_tail < VD_ASYNCS;
	if (room) {
		node->async[node->async_head % VD_ASYNCS] = (struct vd_async){ type, element };
		node->async_head++;
	}
	vd_unlock(&node->async_lock);
	if (room)
		vd_signal(at.peer, node->async_fd, node->async_id);
}

static bool is_for_cq(enum ibv_event_type type)
{
	return type == IBV_EVENT_CQ_ERR;
}

static bool is_for_srq(enum ibv_event_type type)
{
	return type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED;
}

static bool is_for_port(enum ibv_event_type type)
{
	return type == IBV_EVENT_DEVICE_FATAL || (type >= IBV_EVENT_PORT_ACTIVE && type <= IBV_EVENT_SM_CHANGE) ||
	       type == IBV_EVENT_CLIENT_REREGISTER || type == IBV_EVENT_GID_CHANGE;
}

VD_EXPORT int ibv_get_async_event(struct ibv_context *verbs, struct ibv_async_event *event)
{
	struct vd_context *context = vd_context_of(verbs);
	struct vd_node *node = context->node;
	struct vd_async oldest;
	do {
		uint64_t count;
		if (read(verbs->async_fd, &count, sizeof count) != sizeof count)
			return -1;
		vd_lock(&node->async_lock);
		oldest = node->async[node->async_tail++ % VD_ASYNCS];
		vd_unlock(&node->async_lock);
	} while (oldest.type == NO_EVENT); /* what it was about has been destroyed */
	event->event_type = (enum ibv_event_type)oldest.type;
	if (is_for_port(event->event_type))
		event->element.port_num = (int)oldest.element;
	else
		event->element.qp = (struct ibv_qp *)(uintptr_t)oldest.element;
	if (is_for_cq(event->event_type))
		__atomic_fetch_add(&((struct vd_cq_own *)event->element.cq)->asyncs_got, 1, __ATOMIC_RELAXED);
	else if (is_for_srq(event->event_type))
		__atomic_fetch_add(&((struct vd_srq_own *)event->element.srq)->asyncs_got, 1, __ATOMIC_RELAXED);
	else if (!is_for_port(event->event_type))
		__atomic_fetch_add(&vd_qp_of(event->element.qp)->asyncs_got, 1, __ATOMIC_RELAXED);
	return 0;
}

void vd_async_forget(struct vd_node *node, uint64_t element)
{
	vd_lock(&node->async_lock);
	for (uint32_t i = node->async_tail; i != node->async_head; i++)
		if (node->async[i % VD_ASYNCS].element == element)
			node->async[i % VD_ASYNCS].type = NO_EVENT;
	vd_unlock(&node->async_lock);
}

VD_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	pthread_mutex_t *mutex;
	pthread_cond_t *changed;
	uint32_t *completed;
	if (is_for_port(event->event_type))
		return;
	if (is_for_cq(event->event_type)) {
		mutex = &event->element.cq->mutex;
		changed = &event->element.cq->cond;
		completed = &event->element.cq->async_events_completed;
	} else if (is_for_srq(event->event_type)) {
		mutex = &event->element.srq->mutex;
		changed = &event->element.srq->cond;
		completed = &event->element.srq->events_completed;
	} else {
		mutex = &event->element.qp->mutex;
		changed = &event->element.qp->cond;
		completed = &event->element.qp->events_completed;
	}
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(changed);
	pthread_mutex_unlock(mutex);
}

/* ---- completion channels ---- */

VD_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *verbs)
{
	struct vd_context *context = vd_context_of(verbs);
	int error = vd_fault_call(context, VD_CALL_CREATE_COMP_CHANNEL, 0);
	struct vd_channel *made = error ? NULL : calloc(1, sizeof *made);
	if (!made) {
		errno = error ? error : ENOMEM;
		return NULL;
	}
	made->channel.context = verbs;
	made->channel.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (made->channel.fd < 0) {
		free(made);
		return NULL;
	}
	pthread_mutex_lock(&context->lock);
	made->id = ++context->next_id;
	made->next = context->channels;
	context->channels = made;
	pthread_mutex_unlock(&context->lock);
	return &made->channel;
}

VD_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct vd_context *context = vd_context_of(channel->context);
	struct vd_channel *own = (struct vd_channel *)channel;
	pthread_mutex_lock(&context->lock);
	int error = own->cqs ? EBUSY : 0;
	if (!error) {
		struct vd_channel **link = &context->channels;
		while (*link != own)
			link = &(*link)->next;
		*link = own->next;
	}
	pthread_mutex_unlock(&context->lock);
	if (error)
		return error;
	close(channel->fd);
	free(own);
	return 0;
}

/* The completion queue of the channel that has had an event longest in the list; takes the event. */
static struct vd_cq_own *take_event(struct vd_context *context, struct vd_channel *channel)
{
	struct vd_cq_own **link = &channel->cqs;
	for (; *link; link = &(*link)->next) {
		struct vd_cq *shared = &context->node->cq[(*link)->index];
		vd_lock(&shared->lock);
		bool has = shared->events > 0;
		shared->events -= has;
		vd_unlock(&shared->lock);
		if (has)
			break;
	}
	struct vd_cq_own *taken = *link;
	if (taken) {
		/* To the end, so that each gets its turn. */
		*link = taken->next;
		taken->next = NULL;
		while (*link)
			link = &(*link)->next;
		*link = taken;
	}
	return taken;
}

VD_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct vd_context *context = vd_context_of(channel->context);
	struct vd_cq_own *taken;
	do {
		uint64_t count;
		if (read(channel->fd, &count, sizeof count) != sizeof count)
			return -1;
		pthread_mutex_lock(&context->lock);
		taken = take_event(context, (struct vd_channel *)channel);
		pthread_mutex_unlock(&context->lock);
	} while (!taken); /* the event was of a queue that has been destroyed */
	__atomic_fetch_add(&taken->events_got, 1, __ATOMIC_RELAXED);
	*cq = &taken->cq;
	*cq_context = taken->cq.cq_context;
	return 0;
}

VD_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
