/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Barrier: MPI 5.0, section 6.3. Dissemination barrier (Hensgen, Finkel and Manber, 1988): in round k every rank sends to the
 * rank 2^k after it and waits for the message of the rank 2^k before it. After ceil(log2 n) rounds every rank has received,
 * directly or through others, a message from every rank.
 */
#include "adi/bindings/functions.h"
#include "adi/collective/node.h"
#include "adi/collective/reduction.h"
#include "adi/collective/two_level.h"

void adi_build_barrier(struct adi_schedule *schedule)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	for (int distance = 1; distance < comm->size; distance *= 2) {
		adi_schedule_receive(schedule, NULL, 0, adi_type_byte, (comm->rank + comm->size - distance) % comm->size);
		adi_schedule_send(schedule, NULL, 0, adi_type_byte, (comm->rank + distance) % comm->size);
		adi_schedule_round(schedule);
	}
}

/* When all ranks of a group have come, its rank 0 tells the other group's rank 0, which tells its group. */
static void build_inter(struct adi_schedule *schedule)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	adi_schedule_inside(schedule, true);
	adi_build_barrier(schedule);
	adi_schedule_inside(schedule, false);
	if (comm->rank == 0) {
		adi_schedule_receive(schedule, NULL, 0, adi_type_byte, 0);
		adi_schedule_send(schedule, NULL, 0, adi_type_byte, 0);
		adi_schedule_round(schedule);
	}
	adi_schedule_inside(schedule, true);
	adi_build_bcast(schedule, NULL, 0, adi_type_byte, 0);
	adi_schedule_inside(schedule, false);
}

/* levels: NULL: one level. */
static struct adi_schedule *build(struct adi_comm *comm, const struct adi_levels *levels)
{
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (schedule && levels)
		adi_two_level_barrier(schedule, levels);
	else if (schedule && comm->inter)
		build_inter(schedule);
	else if (schedule)
		adi_build_barrier(schedule);
	return schedule;
}

int adi_barrier(struct adi_comm *comm)
{
	struct adi_schedule *schedule = build(comm, NULL);
	return schedule ? adi_schedule_wait(schedule) : adi_error_no_schedule();
}

int mpi_barrier(struct adi_comm *comm)
{
	if (adi_node_possible(comm) && adi_node_use(comm, ADI_COLLECTIVE_BARRIER, 0, false, -1))
		return adi_node_barrier(comm);
	const struct adi_levels *levels;
	int class = adi_two_level_use(comm, ADI_COLLECTIVE_BARRIER, 0, false, &levels);
	if (class)
		return class;
	struct adi_schedule *schedule = build(comm, levels);
	return schedule ? adi_schedule_wait(schedule) : adi_error_no_schedule();
}

/* The schedule of a nonblocking or persistent barrier. */
static int make(struct adi_schedule **made, struct adi_comm *comm)
{
	const struct adi_levels *levels;
	int class = adi_two_level_known(comm, ADI_COLLECTIVE_BARRIER, 0, false, &levels);
	if (class)
		return class;
	*made = build(comm, levels);
	return *made ? MPI_SUCCESS : adi_error_no_schedule();
}

int mpi_ibarrier(struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = make(&schedule, comm);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_barrier_init(struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = make(&schedule, comm);
	(void)info;
	return class ? class : adi_schedule_persistent(schedule, request);
}
