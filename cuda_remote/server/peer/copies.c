/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a link knows of each copy: whether the two streams have reached it, and who waits for its end. The client takes no part
 * between its call and the end of the copy, unless the link fails.
 */
#include "cuda_remote/server/peer/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STRANGERS_MAX 65536u

pthread_mutex_t peer_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t received; /* atomic: copies whose bytes this worker has received */

/* The other worker or the client may have told the program that a copy is complete, which this process cannot see. Acquire pairs
 * with the release in peer_copies_receive: the calls that follow see the bytes. */
void server_peer_see(void)
{
	(void)__atomic_load_n(&received, __ATOMIC_ACQUIRE);
}

/* ---- the copies of a link; all under the lock ---- */

static struct peer_copy **place_of(struct peer_link *link, uint64_t transfer)
{
	struct peer_copy **at = &link->copies[transfer % PEER_BUCKETS];
	while (*at && (*at)->what.transfer != transfer)
		at = &(*at)->next;
	return at;
}

static void enter(struct peer_link *link, struct peer_copy *copy)
{
	struct peer_copy **bucket = &link->copies[copy->what.transfer % PEER_BUCKETS];
	copy->link = link;
	copy->next = *bucket;
	*bucket = copy;
}

static void leave(struct peer_copy *copy)
{
	*place_of(copy->link, copy->what.transfer) = copy->next;
}

static void enqueue(struct peer_copy *copy)
{
	struct peer_link *link = copy->link;
	copy->behind = NULL;
	*link->queue_end = copy;
	link->queue_end = &copy->behind;
	peer_link_wake(link);
}

static struct peer_copy *dequeue(struct peer_link *link)
{
	struct peer_copy *copy = link->queue;
	if (copy) {
		link->queue = copy->behind;
		if (!link->queue)
			link->queue_end = &link->queue;
	}
	return copy;
}

static void note_write(struct peer_copy *copy, enum rc_peer_note_kind kind, CUresult result)
{
	copy->note = (struct rc_wire_peer_note){ copy->what.transfer, kind, (int32_t)result };
	enqueue(copy);
}

/* ---- the end of a side ---- */

/* The stream goes on, after the failure is latched: the call that waits for the stream reports it. */
static void end(struct peer_copy *copy, CUresult result)
{
	if (copy->flags & RC_PEER_COPY_HOLD) {
		if (result != CUDA_SUCCESS)
			server_latch_set(copy->number, RC_CALL_peer_copy, 0, result);
		server_gate_open(copy->what.transfer);
	}
	if (result == CUDA_SUCCESS && !(copy->flags & RC_PEER_COPY_LOUD))
		server_peer_report_later(copy->report);
	else
		server_peer_report(copy->report, result, 0);
	copy->report = NULL;
}

/* The client copies by itself, and lets the stream go on. Frees the copy. */
static void end_without_link(struct peer_copy *copy)
{
	server_peer_report(copy->report, CUDA_ERROR_UNKNOWN, RC_PEER_LINK_FAILED);
	free(copy);
}

/* Frees the copy, unless its stream has not come to it: then the stream's callback does. */
static void lose_link(struct peer_copy *copy)
{
	copy->link = NULL;
	if (!copy->report)
		free(copy);
	else if (copy->reached)
		end_without_link(copy);
}

void peer_copies_fail(struct peer_link *link)
{
	struct peer_copy *copy;
	while ((copy = dequeue(link)))
		if (!link->source && copy->note.kind == RC_PEER_NOTE_DONE)
			free(copy); /* it has left its bucket, and is reported */
	for (unsigned i = 0; i < PEER_BUCKETS; i++)
		while ((copy = link->copies[i])) {
			link->copies[i] = copy->next;
			lose_link(copy);
		}
	link->strangers = 0;
}

/* ---- a stream has come to a copy ---- */

/* Enters the source's side into the queue when nothing is left to wait for. */
static void consider(struct peer_copy *copy)
{
	if (copy->report && copy->reached && (!(copy->flags & RC_PEER_COPY_AWAIT) || copy->other_reached))
		enqueue(copy);
}

static void reach(struct peer_copy *copy, CUresult result)
{
	pthread_mutex_lock(&peer_lock);
	copy->reached = true;
	if (copy->what.refused == CUDA_SUCCESS)
		copy->what.refused = result;
	if (!copy->link)
		end_without_link(copy);
	else if (copy->link->source)
		consider(copy);
	else
		note_write(copy, RC_PEER_NOTE_READY, CUDA_SUCCESS);
	pthread_mutex_unlock(&peer_lock);
}

/* On a thread of the driver. */
static void arrived(CUstream stream, CUresult result, void *argument)
{
	(void)stream;
	reach(argument, result);
}

/* ---- the source ---- */

static void source_end(struct peer_copy *copy, CUresult result)
{
	leave(copy);
	end(copy, result);
	free(copy);
}

static int send_one(struct peer_link *link, struct peer_copy *copy)
{
	CUresult result;
	int error = peer_transfer_send(&link->pipe, &copy->what, &result);
	if (error)
		return error;
	pthread_mutex_lock(&peer_lock);
	copy->sent = true;
	copy->result = result != CUDA_SUCCESS ? result : copy->result;
	if (!(copy->flags & RC_PEER_COPY_ANSWER) || copy->done)
		source_end(copy, copy->result);
	pthread_mutex_unlock(&peer_lock);
	return 0;
}

int peer_copies_send(struct peer_link *link)
{
	for (;;) {
		pthread_mutex_lock(&peer_lock);
		struct peer_copy *copy = link->closed ? NULL : dequeue(link);
		pthread_mutex_unlock(&peer_lock);
		int error = copy ? send_one(link, copy) : 0;
		if (!copy || error)
			return error;
	}
}

/* The target may be ahead of the client. */
static int hear_of_stranger(struct peer_link *link, uint64_t transfer)
{
	struct peer_copy *copy = link->strangers < STRANGERS_MAX ? calloc(1, sizeof *copy) : NULL;
	if (!copy)
		return -ENOMEM;
	copy->what.transfer = transfer;
	copy->other_reached = true;
	link->strangers++;
	enter(link, copy);
	return 0;
}

static int hear_ready(struct peer_link *link, uint64_t transfer)
{
	struct peer_copy *copy = *place_of(link, transfer);
	if (!copy)
		return hear_of_stranger(link, transfer);
	if (copy->other_reached || (copy->report && !(copy->flags & RC_PEER_COPY_AWAIT)))
		return -EPROTO;
	copy->other_reached = true;
	consider(copy);
	return 0;
}

/* The source's stream does not go on before the bytes are sent, whatever the target says. */
static int hear_done(struct peer_link *link, const struct rc_wire_peer_note *note)
{
	struct peer_copy *copy = *place_of(link, note->transfer);
	if (!copy || !copy->report || !(copy->flags & RC_PEER_COPY_ANSWER) || copy->done)
		return -EPROTO;
	copy->done = true;
	if (copy->result == CUDA_SUCCESS && note->result)
		copy->result = note->result > 0 ? (CUresult)note->result : CUDA_ERROR_UNKNOWN;
	if (copy->sent)
		source_end(copy, copy->result);
	return 0;
}

int peer_copies_hear(struct peer_link *link, const struct rc_wire_peer_note *note)
{
	int error = -EPROTO;
	pthread_mutex_lock(&peer_lock);
	if (note->kind == RC_PEER_NOTE_READY && note->transfer)
		error = hear_ready(link, note->transfer);
	else if (note->kind == RC_PEER_NOTE_DONE && note->transfer)
		error = hear_done(link, note);
	pthread_mutex_unlock(&peer_lock);
	return error;
}

/* ---- the target ---- */

/* Waits for the client's call, which may come after the other worker's frame, however much later: the client closes
 * the link if it loses a server. Under the lock. NULL: the link is closed. */
static struct peer_copy *await_call(struct peer_link *link, uint64_t transfer)
{
	struct peer_copy *copy;
	while (!(copy = *place_of(link, transfer)) && !link->closed)
		pthread_cond_wait(&link->changed, &peer_lock);
	return copy;
}

int peer_copies_receive(struct peer_link *link, const struct rc_wire_peer_frame *first)
{
	CUresult result;
	pthread_mutex_lock(&peer_lock);
	struct peer_copy *copy = await_call(link, first->transfer);
	/* A copy that its stream has not reached may not write to the memory. */
	bool sound = copy && copy->reached && (copy->told || !(copy->flags & RC_PEER_COPY_TELL));
	pthread_mutex_unlock(&peer_lock);
	if (!sound)
		return copy ? -EPROTO : -ECONNRESET;
	int error = peer_transfer_receive(&link->pipe, &copy->what, first, &result);
	if (error)
		return error;
	__atomic_add_fetch(&received, 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&peer_lock);
	leave(copy);
	bool answers = copy->flags & RC_PEER_COPY_ANSWER;
	if (answers)
		note_write(copy, RC_PEER_NOTE_DONE, result);
	end(copy, result);
	if (!answers)
		free(copy);
	pthread_mutex_unlock(&peer_lock);
	return 0;
}

int peer_copies_tell(struct peer_link *link)
{
	int error = 0;
	while (!error && !link->pipe.note_left) {
		pthread_mutex_lock(&peer_lock);
		struct peer_copy *copy = dequeue(link);
		if (copy) {
			peer_note_begin(&link->pipe, &copy->note);
			copy->told = true;
		}
		if (copy && copy->note.kind == RC_PEER_NOTE_DONE)
			free(copy);
		pthread_mutex_unlock(&peer_lock);
		if (!copy)
			return 0;
		error = peer_note_put(&link->pipe);
	}
	return error ? error : peer_note_put(&link->pipe);
}

/* ---- the client's call ---- */

bool peer_plan_is_sound(const struct rc_wire_peer_plan *plan)
{
	if (plan->way == RC_PEER_BY_NONE)
		return true;
	return plan->way < RC_PEER_WAYS && plan->buffers && plan->buffers <= RC_PEER_BUFFERS_MAX &&
	       plan->chunk >= RC_PEER_CHUNK_MIN && plan->chunk <= RC_PEER_CHUNK_MAX;
}

static bool flags_are_sound(uint32_t flags)
{
	uint32_t all = RC_PEER_COPY_EMPTY * 2 - 1;
	bool tells = flags & RC_PEER_COPY_TELL, holds = flags & RC_PEER_COPY_HOLD, sends = flags & RC_PEER_COPY_SEND;
	if (flags & ~all || (flags & RC_PEER_COPY_EVENT && (!tells || holds)))
		return false;
	return sends || !(flags & RC_PEER_COPY_AWAIT);
}

/* True if the stream has nothing to do, and a call issued now would not wait for another stream either. */
static bool stream_is_idle(CUstream stream)
{
	unsigned flags = 0;
	return driver.cuStreamGetFlags && driver.cuStreamQuery && driver.cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS &&
	       flags & CU_STREAM_NON_BLOCKING && driver.cuStreamQuery(stream) == CUDA_SUCCESS;
}

/* Calls arrived when the event is complete. A stream of its own waits for it, so that no event waits for another one. */
static CUresult tell_event(CUevent event, struct peer_copy *copy)
{
	CUstream stream;
	if (!driver.cuStreamCreate || !driver.cuStreamDestroy_v2 || !driver.cuStreamWaitEvent || !driver.cuStreamAddCallback)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuStreamWaitEvent(stream, event, 0);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamAddCallback(stream, arrived, copy, 0);
	driver.cuStreamDestroy_v2(stream); /* the driver ends the stream when its work is done */
	return result;
}

static CUresult tell(void *object, struct peer_copy *copy, uint32_t flags)
{
	if (flags & RC_PEER_COPY_EVENT)
		return tell_event(object, copy);
	return driver.cuStreamAddCallback ? driver.cuStreamAddCallback(object, arrived, copy, 0) : CUDA_ERROR_NOT_SUPPORTED;
}

/* Gives the copy to its link. From then on it may end at any time, if it is reached. */
static void hand_over(struct peer_copy *copy, uint64_t number)
{
	bool source = copy->flags & RC_PEER_COPY_SEND;
	pthread_mutex_lock(&peer_lock);
	struct peer_link *link = peer_link_find(number);
	struct peer_copy **at = link ? place_of(link, copy->what.transfer) : NULL;
	if (link && *at && !(*at)->report) {
		struct peer_copy *stranger = *at;
		*at = stranger->next;
		copy->other_reached = true;
		free(stranger);
		link->strangers--;
	}
	if (!link || link->source != source || link->state == PEER_LINK_DOWN || *place_of(link, copy->what.transfer)) {
		if (copy->reached)
			end_without_link(copy);
	} else {
		enter(link, copy);
		if (copy->reached && source)
			consider(copy);
		else if (copy->reached && copy->flags & RC_PEER_COPY_TELL)
			note_write(copy, RC_PEER_NOTE_READY, CUDA_SUCCESS);
		pthread_cond_signal(&link->changed);
	}
	pthread_mutex_unlock(&peer_lock);
}

static struct peer_copy *copy_new(const struct server_call *call, const struct rc_wire_peer_copy *args)
{
	struct peer_copy *copy = calloc(1, sizeof *copy);
	struct server_report *report = copy ? server_peer_report_new(args->transfer) : NULL;
	uint64_t bytes;
	if (!report) {
		free(copy);
		return NULL;
	}
	*copy = (struct peer_copy){ .report = report, .number = call->number, .flags = args->flags };
	copy->what = (struct peer_job){ args->transfer, call->thread->context, args->plan, args->box, CUDA_SUCCESS,
					args->flags & RC_PEER_COPY_EMPTY };
	if (!copy->what.empty && (!peer_plan_is_sound(&args->plan) || !server_box_is_sound(&args->box, &bytes)))
		copy->what.refused = CUDA_ERROR_INVALID_VALUE;
	return copy;
}

/* True if what the copy waits for has happened already. */
static bool is_reached(const struct peer_copy *copy, void *object)
{
	if (!(copy->flags & RC_PEER_COPY_TELL) || copy->what.refused != CUDA_SUCCESS)
		return true;
	if (copy->flags & RC_PEER_COPY_EVENT)
		return driver.cuEventQuery && driver.cuEventQuery(object) == CUDA_SUCCESS;
	return stream_is_idle(object);
}

/* The client waits for the report of each copy, also of one that cannot be made. */
CUresult serve_peer_copy(struct server_call *call)
{
	struct rc_wire_peer_copy args;
	struct server_gate_place place;
	void *object = NULL;
	if (!server_take_into(call, &args, sizeof args) || !args.transfer || server_gate_of_copy(args.transfer) == args.transfer ||
	    !flags_are_sound(args.flags))
		return CUDA_ERROR_INVALID_VALUE;
	struct peer_copy *copy = copy_new(call, &args);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CUDA_SUCCESS;
	if (args.flags & (RC_PEER_COPY_TELL | RC_PEER_COPY_HOLD))
		result = server_object(args.flags & RC_PEER_COPY_EVENT ? RC_KIND_EVENT : RC_KIND_STREAM, args.stream, &object);
	/* The gate is made first and put into the stream last: the copy may end before that, and opens it. */
	if (result == CUDA_SUCCESS && args.flags & RC_PEER_COPY_HOLD)
		result = server_gate_make(call->thread, args.transfer, 1, &place);
	if (result != CUDA_SUCCESS) {
		copy->flags &= ~(uint32_t)RC_PEER_COPY_HOLD;
		copy->what.refused = result;
	}
	bool holds = copy->flags & RC_PEER_COPY_HOLD, reached = copy->reached = is_reached(copy, object);
	hand_over(copy, args.link);
	if (!reached) {
		CUresult told = tell(object, copy, args.flags);
		if (told != CUDA_SUCCESS)
			reach(copy, told);
	}
	/* The stream goes on without waiting: the failure is latched as the call's. */
	if (holds && (result = server_gate_hold(object, &place, 0)) != CUDA_SUCCESS)
		server_gate_open(args.transfer);
	return args.flags & RC_PEER_COPY_HOLD ? result : CUDA_SUCCESS;
}
