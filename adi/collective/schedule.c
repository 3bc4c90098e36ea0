/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules: building. Steps lie in one array; a step of kind ROUND ends each round. Ended schedules of moderate size go to a
 * pool, so that a small collective allocates nothing. */
#include "adi/collective/schedule_private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_FIRST 16
/* Larger schedules are not kept in the pool, nor are more than this. */
#define POOL_STEPS 256
#define POOL_SCHEDULES 16

static struct adi_schedule *pool;
static int pooled;

struct block {
	struct block *next;
	_Alignas(max_align_t) char bytes[];
};

static struct adi_schedule *take_from_pool(void)
{
	struct adi_schedule *schedule = pool;
	if (!schedule)
		return calloc(1, sizeof *schedule);
	pool = schedule->next_in_pool;
	pooled--;
	struct schedule_step *step = schedule->step;
	struct adi_request *request = schedule->request;
	size_t room = schedule->room, requests = schedule->requests;
	memset(schedule, 0, sizeof *schedule);
	schedule->step = step;
	schedule->room = room;
	schedule->request = request;
	schedule->requests = requests;
	return schedule;
}

static void destroy(struct adi_schedule *schedule)
{
	free(schedule->step);
	free(schedule->request);
	free(schedule);
}

static void give_to_pool(struct adi_schedule *schedule)
{
	if (pooled == POOL_SCHEDULES || schedule->room > POOL_STEPS || schedule->requests > POOL_STEPS) {
		destroy(schedule);
		return;
	}
	schedule->next_in_pool = pool;
	pool = schedule;
	pooled++;
}

void adi_schedules_end(void)
{
	while (pool) {
		struct adi_schedule *schedule = pool;
		pool = schedule->next_in_pool;
		destroy(schedule);
	}
	pooled = 0;
}

void adi_schedule_take_tags(struct adi_schedule *schedule, bool blocking)
{
	for (size_t i = 0; i < sizeof schedule->place / sizeof *schedule->place; i++) {
		struct adi_comm *comm = schedule->place[i].comm;
		if (comm)
			schedule->place[i].tag = (int)((comm->collectives[blocking]++ << 1 | blocking) & INT_MAX);
	}
}

void adi_schedule_none(struct adi_comm *comm)
{
	comm->collectives[true]++;
}

struct adi_schedule *adi_schedule_new(struct adi_comm *comm)
{
	struct adi_schedule *schedule = take_from_pool();
	if (!schedule)
		return NULL;
	schedule->place[0].comm = comm;
	schedule->root = -1;
	adi_object_retain(&comm->object);
	return schedule;
}

int adi_error_no_schedule(void)
{
	return adi_error(MPI_ERR_NO_MEM, "no memory for the schedule of a collective operation");
}

void adi_schedule_inside(struct adi_schedule *schedule, bool inside)
{
	struct adi_comm *comm = schedule->place[0].comm;
	schedule->inside = inside && comm->inter;
	if (!schedule->inside || schedule->place[1].comm)
		return;
	schedule->place[1].comm = comm->inside;
	adi_object_retain(&comm->inside->object);
}

void adi_schedule_root(struct adi_schedule *schedule, int root)
{
	schedule->root = root;
}

void adi_schedule_among(struct adi_schedule *schedule, struct adi_view *view)
{
	schedule->view = view;
}

struct adi_comm *adi_schedule_comm(const struct adi_schedule *schedule)
{
	return schedule->view ? &schedule->view->comm : schedule->place[schedule->inside].comm;
}

void *adi_schedule_memory(struct adi_schedule *schedule, size_t bytes)
{
	struct block *block = bytes <= SIZE_MAX / 2 ? malloc(sizeof *block + bytes) : NULL;
	if (!block) {
		schedule->failed = true;
		return NULL;
	}
	block->next = schedule->memory;
	schedule->memory = block;
	return block->bytes;
}

void *adi_schedule_elements(struct adi_schedule *schedule, MPI_Count count, struct adi_type *type)
{
	MPI_Count first = 0, span = count > 0 ? adi_type_span(type, count, &first) : 0;
	char *memory = adi_schedule_memory(schedule, (size_t)span);
	return memory ? memory - first : NULL;
}

/* Returns a zeroed step at the end. NULL: no memory, remembered. */
static struct schedule_step *add(struct adi_schedule *schedule, enum step_kind kind)
{
	if (schedule->steps == schedule->room) {
		size_t room = schedule->room ? 2 * schedule->room : STEPS_FIRST;
		struct schedule_step *step = realloc(schedule->step, room * sizeof *step);
		if (!step) {
			schedule->failed = true;
			return NULL;
		}
		schedule->step = step;
		schedule->room = room;
	}
	struct schedule_step *step = &schedule->step[schedule->steps++];
	memset(step, 0, sizeof *step);
	step->kind = kind;
	return step;
}

static void hold_type(struct schedule_step *step, struct adi_type *type)
{
	step->type = type;
	adi_object_retain(&type->object);
}

static void add_message(struct adi_schedule *schedule, enum step_kind kind, void *buf, MPI_Count count, struct adi_type *type,
			int rank)
{
	struct schedule_step *step = rank == MPI_PROC_NULL ? NULL : add(schedule, kind);
	if (!step)
		return;
	step->inside = schedule->inside;
	step->rank = schedule->view ? schedule->view->ranks[rank] : rank;
	step->buf = buf;
	step->count = count;
	hold_type(step, type);
	if (++schedule->in_round > schedule->most)
		schedule->most = schedule->in_round;
}

void adi_schedule_send(struct adi_schedule *schedule, const void *buf, MPI_Count count, struct adi_type *type, int rank)
{
	add_message(schedule, STEP_SEND, (void *)buf, count, type, rank);
}

void adi_schedule_receive(struct adi_schedule *schedule, void *buf, MPI_Count count, struct adi_type *type, int rank)
{
	add_message(schedule, STEP_RECEIVE, buf, count, type, rank);
}

void adi_schedule_copy(struct adi_schedule *schedule, const void *from, MPI_Count from_count, struct adi_type *from_type, void *to,
		       MPI_Count to_count, struct adi_type *to_type)
{
	if ((from == to && from_type == to_type) || from_count == 0)
		return;
	struct schedule_step *step = add(schedule, STEP_COPY);
	if (!step)
		return;
	step->from = from;
	step->from_count = from_count;
	step->of.from_type = from_type;
	adi_object_retain(&from_type->object);
	step->buf = to;
	step->count = to_count;
	hold_type(step, to_type);
}

void adi_schedule_reduce(struct adi_schedule *schedule, const void *in, void *inout, MPI_Count count, struct adi_type *type,
			 struct adi_op *op)
{
	struct schedule_step *step = count > 0 ? add(schedule, STEP_REDUCE) : NULL;
	if (!step)
		return;
	step->from = in;
	step->buf = inout;
	step->count = count;
	hold_type(step, type);
	step->of.op = op;
	adi_object_retain(&op->object);
}

void adi_schedule_call(struct adi_schedule *schedule, int (*function)(void *argument), void *argument)
{
	struct schedule_step *step = add(schedule, STEP_CALL);
	if (!step)
		return;
	step->of.function = function;
	step->buf = argument;
}

void adi_schedule_round(struct adi_schedule *schedule)
{
	bool empty = !schedule->steps || schedule->step[schedule->steps - 1].kind == STEP_ROUND;
	if (!empty)
		add(schedule, STEP_ROUND);
	schedule->in_round = 0;
}

void adi_schedule_at_end(struct adi_schedule *schedule, void (*function)(void *argument, int class), void *argument)
{
	schedule->at_end = function;
	schedule->at_end_argument = argument;
}

static void drop_step(struct schedule_step *step)
{
	if (step->type)
		adi_type_release(step->type);
	if (step->kind == STEP_COPY)
		adi_type_release(step->of.from_type);
	else if (step->kind == STEP_REDUCE)
		adi_op_release(step->of.op);
}

void adi_schedule_free(struct adi_schedule *schedule)
{
	for (size_t i = 0; i < schedule->steps; i++)
		drop_step(&schedule->step[i]);
	for (struct block *block = schedule->memory, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	if (schedule->place[1].comm)
		adi_comm_release(schedule->place[1].comm);
	adi_comm_release(schedule->place[0].comm);
	give_to_pool(schedule);
}
