/* SPDX-License-Identifier: BSD-3-Clause */
/* Duplicates of communicators, blocking and nonblocking: MPI 5.0, section 7.4.2. The duplicate exists at once, and a
 * schedule on the old communicator brings its contexts. */
#include "adi/bindings/functions.h"
#include "adi/collective/schedule.h"
#include "adi/comm/agree.h"
#include "adi/comm/hints.h"
#include "adi/comm/topology.h"

#include <stdlib.h>

/* A duplicate whose contexts are on the way. */
struct pending {
	struct adi_comm *comm;
	uint32_t context[2]; /* of comm, of comm->inside */
};

/* Of an intercommunicator: whether the contexts come from this side. */
static bool decides(const struct adi_comm *comm)
{
	return adi_group_world(comm->local, 0) < adi_group_world(comm->remote, 0);
}

/* Steps that bring bytes from rank 0 of adi_schedule_comm to the others: a binomial tree. */
static void add_tree(struct adi_schedule *schedule, void *data, size_t bytes)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	int64_t mask = 1;
	while (mask < comm->size && !(comm->rank & mask))
		mask <<= 1;
	if (comm->rank) {
		adi_schedule_receive(schedule, data, (MPI_Count)bytes, adi_type_byte, (int)(comm->rank - mask));
		adi_schedule_round(schedule);
	}
	while ((mask >>= 1))
		if (comm->rank + mask < comm->size)
			adi_schedule_send(schedule, data, (MPI_Count)bytes, adi_type_byte, (int)(comm->rank + mask));
	adi_schedule_round(schedule);
}

/* Rank 0 of one group tells rank 0 of the other. */
static void add_leaders(struct adi_schedule *schedule, const struct adi_comm *comm, void *data, size_t bytes)
{
	if (comm->rank)
		return;
	if (decides(comm))
		adi_schedule_send(schedule, data, (MPI_Count)bytes, adi_type_byte, 0);
	else
		adi_schedule_receive(schedule, data, (MPI_Count)bytes, adi_type_byte, 0);
	adi_schedule_round(schedule);
}

/* Sets the contexts of the duplicate. Without valid ones it keeps ADI_CONTEXT_NONE. */
static int settle(void *argument)
{
	struct pending *pending = argument;
	struct adi_comm *comm[] = { pending->comm, pending->comm->inside };
	for (int i = 0; i < 2 && comm[i]; i++) {
		if (!pending->context[i])
			return adi_error_contexts();
		comm[i]->context = pending->context[i];
		if (!adi_context_take(comm[i])) {
			comm[i]->context = ADI_CONTEXT_NONE;
			return adi_error(MPI_ERR_NO_MEM, "no memory for a communicator");
		}
	}
	return MPI_SUCCESS;
}

/* A duplicate of the groups and the error handler, without contexts. */
static struct adi_comm *new_duplicate(struct adi_comm *comm)
{
	return comm->inter ? adi_inter_new(comm->local, comm->remote, ADI_CONTEXT_NONE, ADI_CONTEXT_NONE, comm->errhandler)
			   : adi_comm_new(comm->local, ADI_CONTEXT_NONE, comm->errhandler);
}

/* The schedule that brings the contexts and sets them in its last step. */
static int prepare(struct adi_comm *comm, struct adi_schedule **schedule, struct adi_comm **duplicate)
{
	*duplicate = new_duplicate(comm);
	*schedule = *duplicate ? adi_schedule_new(comm) : NULL;
	struct pending *pending = *schedule ? adi_schedule_memory(*schedule, sizeof *pending) : NULL;
	if (!pending) {
		if (*schedule)
			adi_schedule_wait(*schedule);
		if (*duplicate)
			adi_comm_release(*duplicate);
		return adi_error(MPI_ERR_NO_MEM, "no memory for a communicator");
	}
	*pending = (struct pending){ .comm = *duplicate };
	if (!comm->rank && (!comm->inter || decides(comm))) {
		pending->context[0] = adi_context_new();
		pending->context[1] = comm->inter ? adi_context_new() : 0;
	}
	if (comm->inter)
		add_leaders(*schedule, comm, pending->context, sizeof pending->context);
	adi_schedule_inside(*schedule, true);
	add_tree(*schedule, pending->context, sizeof pending->context);
	adi_schedule_call(*schedule, settle, pending);
	return MPI_SUCCESS;
}

int adi_comm_duplicate(struct adi_comm *comm, struct adi_comm **duplicate)
{
	struct adi_schedule *schedule;
	struct adi_comm *new;
	int class = prepare(comm, &schedule, &new);
	if (class)
		return class;
	class = adi_schedule_wait(schedule);
	if (class)
		adi_comm_release(new);
	else
		*duplicate = new;
	return class;
}

/* What a duplicate takes over: attributes and topology, and hints from info. */
static int copy_contents(struct adi_comm *from, struct adi_comm *to, const struct adi_info *info)
{
	to->topology = adi_topology_retain(from->topology);
	int class = adi_comm_set_hints(to, info);
	return class ? class : adi_attributes_copy(&from->object, &from->attributes, &to->attributes);
}

int mpi_comm_dup_with_info(struct adi_comm *comm, struct adi_info *info, MPI_Comm *newcomm)
{
	struct adi_comm *duplicate;
	*newcomm = MPI_COMM_NULL;
	int class = adi_comm_duplicate(comm, &duplicate);
	if (class)
		return class;
	class = copy_contents(comm, duplicate, info);
	if (class)
		adi_comm_release(duplicate);
	else
		*newcomm = adi_comm_handle(duplicate);
	return class;
}

int mpi_comm_dup(struct adi_comm *comm, MPI_Comm *newcomm)
{
	return mpi_comm_dup_with_info(comm, NULL, newcomm);
}

/* If the attributes cannot be copied, the others still wait for this process: it takes part in the schedule, blocking. */
int mpi_comm_idup_with_info(struct adi_comm *comm, struct adi_info *info, MPI_Comm *newcomm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	struct adi_comm *duplicate;
	*newcomm = MPI_COMM_NULL;
	int class = prepare(comm, &schedule, &duplicate);
	if (class)
		return class;
	class = copy_contents(comm, duplicate, info);
	if (class) {
		adi_schedule_wait(schedule);
		adi_comm_release(duplicate);
		return class;
	}
	*newcomm = adi_comm_handle(duplicate);
	class = adi_schedule_start(schedule, request);
	if (class) {
		adi_comm_release(duplicate);
		*newcomm = MPI_COMM_NULL;
	}
	return class;
}

int mpi_comm_idup(struct adi_comm *comm, MPI_Comm *newcomm, MPI_Request *request)
{
	return mpi_comm_idup_with_info(comm, NULL, newcomm, request);
}
