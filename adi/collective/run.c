/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules: running. */
#include "adi/collective/node.h"
#include "adi/collective/schedule_private.h"

#include <stdlib.h>
#include <string.h>

static void note_error(struct adi_schedule *schedule, int class)
{
	if (!schedule->class)
		schedule->class = class;
}

/* ---- messages that tell of an error ----
 * Their length differs from the one that the receiver expects: schedule.h. */

/* If the counts of the ranks disagree, the receiver may expect another length than the sender believes. So after an error that is
 * no death, the length is one that data seldom have. */
#define ERROR_BYTES 1021
#define ERROR_BYTES_ELSE 1019

static size_t bytes_of_death(bool expects_some)
{
	return expects_some ? 0 : 1;
}

static size_t bytes_of_error(MPI_Count expected)
{
	return expected == ERROR_BYTES ? ERROR_BYTES_ELSE : ERROR_BYTES;
}

static void send_poison(struct adi_request *request, const struct schedule_place *place, const struct schedule_step *step,
			int class)
{
	static const char poison[ERROR_BYTES];
	MPI_Count expected = step->count * step->type->size;
	size_t bytes = class == MPI_ERR_PROC_ABORTED ? bytes_of_death(expected > 0) : bytes_of_error(expected);
	adi_message_send(request, place->comm, place->comm->context + 1, step->rank, place->tag, poison, (MPI_Count)bytes,
			 adi_type_byte, ADI_SEND_STANDARD);
}

/* ---- messages ---- */

static void begin_message(struct adi_schedule *schedule, const struct schedule_step *step)
{
	struct adi_request *request = &schedule->request[schedule->begun++];
	const struct schedule_place *place = &schedule->place[step->inside];
	uint32_t context = place->comm->context + 1;
	if (step->kind == STEP_RECEIVE)
		adi_message_receive(request, place->comm, context, step->rank, place->tag, step->buf, step->count, step->type);
	else if (schedule->class)
		send_poison(request, place, step, schedule->class);
	else
		adi_message_send(request, place->comm, context, step->rank, place->tag, step->buf, step->count, step->type,
				 ADI_SEND_STANDARD);
}

static int class_of_message(const struct adi_request *request)
{
	if (request->kind != ADI_RECEIVE)
		return request->class;
	if (request->class && !(request->class == MPI_ERR_TRUNCATE && request->capacity == 0))
		return request->class;
	if (request->bytes == request->capacity)
		return MPI_SUCCESS;
	return request->bytes == bytes_of_death(request->capacity > 0) ? MPI_ERR_PROC_ABORTED : MPI_ERR_TRUNCATE;
}

/* Ends the complete messages at the front of the round. Returns whether all are complete. */
static bool end_messages(struct adi_schedule *schedule)
{
	while (schedule->done < schedule->begun) {
		struct adi_request *request = &schedule->request[schedule->done];
		if (!adi_request_test(request))
			return false;
		int class = class_of_message(request);
		if (class)
			note_error(schedule, class);
		schedule->done++;
	}
	return true;
}

/* ---- local steps ---- */

static int copy(const struct schedule_step *step)
{
	struct adi_type *from = step->of.from_type, *to = step->type;
	MPI_Count bytes = step->from_count * from->size;
	if (!from->contiguous || !to->contiguous || step->count * to->size != bytes)
		return adi_type_copy(step->from, step->from_count, from, step->buf, step->count, to);
	if (bytes > 0)
		memmove((char *)step->buf + to->true_lb, (const char *)step->from + from->true_lb, (size_t)bytes);
	return MPI_SUCCESS;
}

static void do_local(struct adi_schedule *schedule, const struct schedule_step *step)
{
	int class = MPI_SUCCESS;
	if (schedule->class)
		return;
	if (step->kind == STEP_COPY)
		class = copy(step);
	else if (step->kind == STEP_REDUCE)
		adi_op_apply(step->of.op, step->from, step->buf, step->count, step->type);
	else
		class = step->of.function(step->buf);
	if (class) {
		note_error(schedule, class);
		schedule->has_text = true;
	}
}

/* ---- rounds ---- */

static void begin_round(struct adi_schedule *schedule)
{
	schedule->begun = schedule->done = 0;
	while (schedule->next < schedule->steps) {
		const struct schedule_step *step = &schedule->step[schedule->next++];
		if (step->kind == STEP_ROUND)
			return;
		if (step->kind == STEP_SEND || step->kind == STEP_RECEIVE)
			begin_message(schedule, step);
		else
			do_local(schedule, step);
	}
}

/* Goes on as far as possible without waiting. *moved: whether a round has begun. Returns whether the schedule has ended. */
static bool advance(struct adi_schedule *schedule, bool *moved)
{
	while (end_messages(schedule)) {
		if (schedule->next == schedule->steps)
			return true;
		begin_round(schedule);
		*moved = true;
	}
	return false;
}

static int prepare(struct adi_schedule *schedule)
{
	schedule->next = schedule->begun = schedule->done = 0;
	schedule->class = MPI_SUCCESS;
	schedule->has_text = false;
	if (schedule->requests < schedule->most) {
		free(schedule->request);
		schedule->request = malloc(schedule->most * sizeof *schedule->request);
		schedule->requests = schedule->request ? schedule->most : 0;
		schedule->failed |= !schedule->request;
	}
	if (schedule->failed)
		schedule->class = adi_error_no_schedule();
	return schedule->class;
}

static int error_text(const struct adi_schedule *schedule, int class)
{
	const struct adi_comm *comm = schedule->place[0].comm;
	if (schedule->has_text)
		return class;
	switch (class) {
	case MPI_SUCCESS: return class;
	case MPI_ERR_PROC_ABORTED: return adi_error(class, "a process of communicator %s has ended", adi_comm_text(comm));
	case MPI_ERR_TRUNCATE:
		return adi_error(class, "a message does not have the length that its receiver expects: counts and datatypes of the "
				 "processes of communicator %s do not agree, or another process has told of an error", adi_comm_text(comm));
	default: return adi_error(class, "a message between processes of communicator %s has failed", adi_comm_text(comm));
	}
}

/* ---- requests ---- */

static void end(struct adi_schedule *schedule)
{
	struct adi_request *request = schedule->handle;
	int class = schedule->class;
	if (schedule->registered)
		adi_task_remove(&schedule->task);
	schedule->registered = false;
	if (schedule->at_end)
		schedule->at_end(schedule->at_end_argument, class);
	if (!request->persistent) {
		request->owner = NULL;
		adi_schedule_free(schedule);
	}
	adi_request_complete(request, class);
}

static bool on_progress(struct adi_task *task)
{
	struct adi_schedule *schedule = (struct adi_schedule *)(void *)((char *)task - offsetof(struct adi_schedule, task));
	bool moved = false;
	if (!advance(schedule, &moved))
		return moved;
	end(schedule);
	return true;
}

static void run(struct adi_schedule *schedule)
{
	bool moved;
	adi_node_started(schedule->place[0].comm, schedule->root);
	if (advance(schedule, &moved)) {
		end(schedule);
		return;
	}
	schedule->task.advance = on_progress;
	schedule->task.by_engine = true;
	schedule->registered = true;
	adi_task_add(&schedule->task);
}

static int on_start(struct adi_request *request)
{
	struct adi_schedule *schedule = request->owner;
	int class = prepare(schedule);
	if (!class)
		run(schedule);
	return class;
}

static void on_destroy(struct adi_request *request)
{
	struct adi_schedule *schedule = request->owner;
	request->owner = NULL;
	if (schedule)
		adi_schedule_free(schedule);
}

static const struct adi_request_class collective = { .start = on_start, .destroy = on_destroy };

static int give_request(struct adi_schedule *schedule, bool persistent, MPI_Request *request)
{
	struct adi_request *made = adi_request_new(&collective, schedule, schedule->place[0].comm);
	if (!made)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a request");
	made->persistent = persistent;
	made->active = !persistent;
	made->complete = persistent;
	schedule->handle = made;
	*request = adi_request_handle(made);
	return MPI_SUCCESS;
}

static int give_up(struct adi_schedule *schedule, int class)
{
	if (schedule->at_end)
		schedule->at_end(schedule->at_end_argument, class);
	adi_schedule_free(schedule);
	return class;
}

int adi_schedule_start(struct adi_schedule *schedule, MPI_Request *request)
{
	adi_schedule_take_tags(schedule, false);
	int class = prepare(schedule);
	if (!class)
		class = give_request(schedule, false, request);
	if (class)
		return give_up(schedule, class);
	run(schedule);
	return MPI_SUCCESS;
}

int adi_schedule_persistent(struct adi_schedule *schedule, MPI_Request *request)
{
	adi_schedule_take_tags(schedule, false);
	int class = prepare(schedule);
	if (!class)
		class = give_request(schedule, true, request);
	return class ? give_up(schedule, class) : MPI_SUCCESS;
}

int adi_schedule_wait(struct adi_schedule *schedule)
{
	bool moved;
	adi_schedule_take_tags(schedule, true);
	int class = prepare(schedule);
	if (class)
		return give_up(schedule, class);
	while (!advance(schedule, &moved))
		adi_progress();
	return give_up(schedule, error_text(schedule, schedule->class));
}
