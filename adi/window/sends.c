/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends of windows whose memory is still in use. A task looks for those that are complete: the oldest of each peer, because the
 * sends to one peer complete about in order. */
#include "adi/window/internal.h"

#include <errno.h>
#include <stdlib.h>

struct sending {
	struct sending *next;
	ch3_request_t *request;
	void *memory;
	int *count;
	struct adi_win_origin *origin;
	struct adi_request *user;
};

/* The sends to one peer. */
struct queue {
	struct queue *next; /* in the list of queues that are not empty */
	struct sending *first, **end;
};

static struct queue *queues; /* [adi_job.size]; allocated by the first send */
static struct queue *active;
static struct sending *spare;

static bool sends_advance(struct adi_task *task);
static struct adi_task task = { .advance = sends_advance };

int window_peer_error(struct adi_win *win, int rank, int error)
{
	return adi_error(adi_class(error), "rank %d of window \"%s\" cannot be reached any more", rank, win->name);
}

int window_member_check(struct adi_win *win, int rank)
{
	struct adi_peer *peer = win->target[rank].peer;
	int error = peer->error;
	if (!error && peer->vc)
		error = ch3_vc_open(peer->vc);
	return error ? window_peer_error(win, rank, error) : MPI_SUCCESS;
}

/* Forgets the first send of a queue. */
static void sending_end(struct queue *queue)
{
	struct sending *sending = queue->first;
	queue->first = sending->next;
	if (!queue->first)
		queue->end = &queue->first;
	int error = ch3_request_error(sending->request);
	ch3_request_free(sending->request);
	free(sending->memory);
	struct adi_request *user = sending->user;
	struct adi_win_origin *idle = --*sending->count == 0 ? sending->origin : NULL;
	sending->next = spare;
	spare = sending;
	if (user)
		adi_request_complete(user, adi_class(error));
	if (idle)
		window_origin_idle(idle);
}

static bool sends_advance(struct adi_task *unused)
{
	(void)unused;
	bool did = false;
	for (struct queue **link = &active; *link;) {
		struct queue *queue = *link;
		while (queue->first && ch3_request_test(queue->first->request)) {
			sending_end(queue);
			did = true;
		}
		if (queue->first)
			link = &queue->next;
		else
			*link = queue->next;
	}
	if (!active)
		adi_task_remove(&task);
	return did;
}

static void queue_append(struct queue *queue, struct sending *sending)
{
	if (!queue->first) {
		if (!active)
			adi_task_add(&task);
		queue->end = &queue->first;
		queue->next = active;
		active = queue;
	}
	*queue->end = sending;
	queue->end = &sending->next;
}

/* Prepares the record of a send before the send, which cannot be undone. */
static struct sending *sending_new(void)
{
	struct sending *sending = spare;
	if (sending)
		spare = sending->next;
	else
		sending = malloc(sizeof *sending);
	return sending;
}

int window_send(struct adi_peer *peer, unsigned type, const void *header, size_t header_len, const struct iovec *iov, int n,
		unsigned flags, void *memory, int *sending, struct adi_win_origin *origin, struct adi_request *request)
{
	struct sending *record = sending_new();
	if (!queues)
		queues = calloc((size_t)adi_job.size, sizeof *queues);
	ch3_request_t *sent = NULL;
	int error = record && queues ? ch3_send(peer->vc, type, header, header_len, iov, n, flags, &sent) : -ENOMEM;
	if (!error && sent) {
		*record = (struct sending){ NULL, sent, memory, sending, origin, request };
		queue_append(&queues[peer->rank], record);
		++*sending;
		return MPI_SUCCESS;
	}
	if (record) {
		record->next = spare;
		spare = record;
	}
	free(memory);
	if (error)
		return adi_error_below(error, "sending an operation of a window");
	if (request)
		adi_request_complete(request, MPI_SUCCESS);
	return MPI_SUCCESS;
}

int window_send_control(struct adi_win *win, int rank, unsigned type, uint32_t value)
{
	const struct adi_win_target *to = &win->target[rank];
	struct window_control control = { to->slot, (uint32_t)win->comm->rank, value, 0 };
	int error = ch3_send(to->peer->vc, type, &control, sizeof control, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	return error ? window_peer_error(win, rank, error) : MPI_SUCCESS;
}

void window_sends_end(void)
{
	for (; active; active = active->next)
		while (active->first) {
			struct sending *sending = active->first;
			active->first = sending->next;
			free(sending->memory);
			free(sending);
		}
	while (spare) {
		struct sending *sending = spare;
		spare = sending->next;
		free(sending);
	}
	free(queues);
	queues = NULL;
}
