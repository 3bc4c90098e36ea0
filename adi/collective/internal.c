/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that other units of MPI use. */
#include "adi/collective/reduction.h"

int adi_bcast(void *buf, size_t bytes, int root, struct adi_comm *comm)
{
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	adi_build_bcast(schedule, buf, (MPI_Count)bytes, adi_type_byte, root);
	return adi_schedule_wait(schedule);
}

/* Ring: in each step a rank passes on the block that it got in the step before. */
int adi_allgather(const void *mine, size_t bytes, void *all, struct adi_comm *comm)
{
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	MPI_Count count = (MPI_Count)bytes;
	int left = (comm->rank + comm->size - 1) % comm->size, right = (comm->rank + 1) % comm->size;
	char *block = all;
	adi_schedule_copy(schedule, mine, count, adi_type_byte, block + (size_t)comm->rank * bytes, count, adi_type_byte);
	for (int step = 0; step < comm->size - 1; step++) {
		int in = (left - step + comm->size) % comm->size, out = (comm->rank - step + comm->size) % comm->size;
		adi_schedule_receive(schedule, block + (size_t)in * bytes, count, adi_type_byte, left);
		adi_schedule_send(schedule, block + (size_t)out * bytes, count, adi_type_byte, right);
		adi_schedule_round(schedule);
	}
	return adi_schedule_wait(schedule);
}

int adi_allreduce_max(int64_t *inout, int n, struct adi_comm *comm)
{
	struct adi_reduction reduction = { .send = inout, .receive = inout, .count = n };
	int class = adi_type_take(MPI_INT64_T, "datatype", &reduction.type);
	if (!class)
		class = adi_op_take(MPI_MAX, "op", &reduction.op);
	if (class)
		return class;
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	adi_build_allreduce(schedule, &reduction);
	return adi_schedule_wait(schedule);
}
