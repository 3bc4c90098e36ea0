/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective as a schedule: rounds of steps, which progress runs. A blocking collective builds its schedule, runs it, and
 * waits; a nonblocking one returns a request; a persistent one runs the same schedule again and again.
 *
 * The steps of a round start together; the next round starts when all of them are complete. Local steps (copy, reduce) of a
 * round run in the order in which they were added, when the round starts. Buffers and types must exist until the schedule ends;
 * a schedule holds references to types, op and communicator.
 *
 * A message has exactly as many bytes as its receive asks for; a shorter one is an error. After an error a schedule goes on
 * without its local steps, so that no other rank waits for it in vain, and completes with the class of the first error. The
 * messages that it sends from then on have no data, but a length that their receivers do not expect, so that no rank takes wrong
 * data for right ones. If a rank has died (MPI_ERR_PROC_ABORTED), they have no byte instead of some, or one byte instead of none,
 * and their receivers fail with the same class. After another error their receivers fail with MPI_ERR_TRUNCATE.
 *
 * All functions that add a step may fail for lack of memory; the schedule remembers it and adi_schedule_* returns MPI_ERR_NO_MEM
 * when it is run. So builders need no checks.
 */
#ifndef ADI_COLLECTIVE_SCHEDULE_H
#define ADI_COLLECTIVE_SCHEDULE_H

#include "adi/collective/op.h"
#include "adi/message/request.h"

struct adi_schedule;

/* A schedule of a collective on comm. NULL: no memory. */
struct adi_schedule *adi_schedule_new(struct adi_comm *comm);
/* The error of a schedule that could not be made. */
int adi_error_no_schedule(void);
/* Memory that is freed with the schedule. NULL: no memory, remembered. For elements of a type, the returned address is such that
 * the data lie inside, whatever its lower bound. */
void *adi_schedule_memory(struct adi_schedule *schedule, size_t bytes);
void *adi_schedule_elements(struct adi_schedule *schedule, MPI_Count count, struct adi_type *type);

/* The communicator of the steps that are added next: that of the schedule, or, inside an intercommunicator, the intracommunicator
 * of the local group (comm->inside). Ranks are those of its remote group. Builders of algorithms take rank and size from it. */
void adi_schedule_inside(struct adi_schedule *schedule, bool inside);
struct adi_comm *adi_schedule_comm(const struct adi_schedule *schedule);

/* Some ranks of an intracommunicator: how the steps that are added next name ranks, until it is called again or NULL. Builders of
 * algorithms take rank and size from adi_schedule_comm, which then returns comm. The view must exist while steps are added. */
struct adi_view {
	struct adi_comm comm; /* only rank and size are set */
	const int *ranks;     /* [comm.size], in the communicator of the schedule */
};
void adi_schedule_among(struct adi_schedule *schedule, struct adi_view *view);

/* rank: of the remote group, or MPI_PROC_NULL: no step. Steps of a round begin in the order in which they were added: a message
 * may send what a local step before it in the same round has made. Receives should stand before sends. */
void adi_schedule_send(struct adi_schedule *schedule, const void *buf, MPI_Count count, struct adi_type *type, int rank);
void adi_schedule_receive(struct adi_schedule *schedule, void *buf, MPI_Count count, struct adi_type *type, int rank);
void adi_schedule_copy(struct adi_schedule *schedule, const void *from, MPI_Count from_count, struct adi_type *from_type, void *to,
		       MPI_Count to_count, struct adi_type *to_type);
/* inout = in op inout. */
void adi_schedule_reduce(struct adi_schedule *schedule, const void *in, void *inout, MPI_Count count, struct adi_type *type,
			 struct adi_op *op);
/* A local step of any other kind. function returns an error class. */
void adi_schedule_call(struct adi_schedule *schedule, int (*function)(void *argument), void *argument);
/* Ends a round. */
void adi_schedule_round(struct adi_schedule *schedule);

/* The schedule is a broadcast or scatter with this root. Nonblocking and persistent ones need it: adi_node_started. */
void adi_schedule_root(struct adi_schedule *schedule, int root);

/* Each takes over the schedule, and takes its tags. Returns an error class. wait: runs it to its end. start: *request completes
 * with it. persistent: *request is inactive; each start runs the schedule once. */
int adi_schedule_wait(struct adi_schedule *schedule);
int adi_schedule_start(struct adi_schedule *schedule, MPI_Request *request);
int adi_schedule_persistent(struct adi_schedule *schedule, MPI_Request *request);
/* One function: function(argument, class) runs whenever the schedule has ended, before the request completes. */
void adi_schedule_at_end(struct adi_schedule *schedule, void (*function)(void *argument, int class), void *argument);

/* A blocking collective without messages of this rank: other ranks may have some, and all ranks count the same collectives. */
void adi_schedule_none(struct adi_comm *comm);

/* Frees comm->node when the communicator is destroyed, before its groups are released. adi_comm_release calls it. */
void adi_node_end(struct adi_comm *comm);
/* Frees the pool of schedules. adi_job_end calls it. */
void adi_schedules_end(void);

/* Collectives for the other units: blocking, on the collective context, any communicator of intracommunicator kind. */
int adi_bcast(void *buf, size_t bytes, int root, struct adi_comm *comm);
int adi_allgather(const void *mine, size_t bytes, void *all, struct adi_comm *comm);
/* inout: n values; the result is the maximum of each over all ranks. */
int adi_allreduce_max(int64_t *inout, int n, struct adi_comm *comm);
int adi_barrier(struct adi_comm *comm);

#endif
