/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce: MPI 5.0, section 6.9.6. Algorithms: recursive doubling; recursive halving and an allgather (Rabenseifner, 2004);
 * a ring reduce-scatter and a ring allgather.
 */
#include "adi/bindings/functions.h"
#include "adi/collective/node.h"
#include "adi/collective/reduction.h"
#include "adi/collective/two_level.h"

/* The ranks that gave their data away in adi_vector_fold get the result. */
static void unfold(struct adi_vector *vector, void *result)
{
	const struct adi_comm *comm = adi_schedule_comm(vector->schedule);
	const struct adi_reduction *reduction = vector->reduction;
	adi_schedule_round(vector->schedule);
	if (vector->rank < 0)
		adi_schedule_receive(vector->schedule, result, reduction->count, reduction->type, comm->rank + 1);
	else if (comm->rank < 2 * vector->extra)
		adi_schedule_send(vector->schedule, result, reduction->count, reduction->type, comm->rank - 1);
}

static void build_doubling(struct adi_schedule *schedule, const struct adi_reduction *reduction)
{
	MPI_Count count = reduction->count;
	struct adi_vector vector;
	adi_vector_start(&vector, schedule, reduction);
	adi_vector_fold(&vector);
	for (int mask = 1; vector.rank >= 0 && mask < vector.power; mask *= 2) {
		int number = vector.rank ^ mask, partner = adi_vector_rank(&vector, number);
		adi_schedule_receive(schedule, adi_vector_target(&vector), count, reduction->type, partner);
		adi_schedule_send(schedule, adi_vector_source(&vector), count, reduction->type, partner);
		adi_schedule_round(schedule);
		adi_vector_combine(&vector, 0, count, vector.rank < number);
	}
	if (vector.rank >= 0)
		adi_schedule_copy(schedule, vector.mine, count, reduction->type, reduction->receive, count, reduction->type);
	unfold(&vector, reduction->receive);
}

/* Reverses the steps of halving: the partners of each step exchange their parts. */
static void exchange_parts(struct adi_vector *vector, char *result)
{
	struct adi_type *type = vector->reduction->type;
	int steps = 0;
	while (1 << steps < vector->power)
		steps++;
	while (steps-- > 0) {
		int number = vector->rank ^ (1 << steps), partner = adi_vector_rank(vector, number);
		MPI_Count lo, hi, mine_lo, mine_hi;
		adi_vector_part(vector, number, steps + 1, &lo, &hi);
		adi_vector_part(vector, vector->rank, steps + 1, &mine_lo, &mine_hi);
		if (hi > lo)
			adi_schedule_receive(vector->schedule, adi_vector_at(vector, result, lo), hi - lo, type, partner);
		if (mine_hi > mine_lo)
			adi_schedule_send(vector->schedule, adi_vector_at(vector, result, mine_lo), mine_hi - mine_lo, type,
					  partner);
		adi_schedule_round(vector->schedule);
	}
}

static void build_rabenseifner(struct adi_schedule *schedule, const struct adi_reduction *reduction)
{
	struct adi_vector vector;
	adi_vector_start(&vector, schedule, reduction);
	adi_vector_fold(&vector);
	if (vector.rank >= 0) {
		adi_vector_halve(&vector);
		char *result = reduction->receive;
		adi_schedule_copy(schedule, adi_vector_at(&vector, vector.mine, vector.lo), vector.hi - vector.lo, reduction->type,
				  adi_vector_at(&vector, result, vector.lo), vector.hi - vector.lo, reduction->type);
		exchange_parts(&vector, result);
	}
	unfold(&vector, reduction->receive);
}

/* Block i of n blocks of the vector. */
static MPI_Count block_start(MPI_Count count, int n, int i)
{
	return count / n * i + (i < count % n ? i : count % n);
}

/* One step of the ring: receives block `in` of one buffer and sends block `out` of another. */
static void ring_step(const struct adi_vector *vector, const char *to, int in, const char *from, int out)
{
	const struct adi_comm *comm = adi_schedule_comm(vector->schedule);
	struct adi_type *type = vector->reduction->type;
	MPI_Count count = vector->reduction->count;
	MPI_Count in_at = block_start(count, comm->size, in), in_n = block_start(count, comm->size, in + 1) - in_at;
	MPI_Count out_at = block_start(count, comm->size, out), out_n = block_start(count, comm->size, out + 1) - out_at;
	if (in_n)
		adi_schedule_receive(vector->schedule, adi_vector_at(vector, to, in_at), in_n, type,
				     (comm->rank + comm->size - 1) % comm->size);
	if (out_n)
		adi_schedule_send(vector->schedule, adi_vector_at(vector, from, out_at), out_n, type,
				  (comm->rank + 1) % comm->size);
	adi_schedule_round(vector->schedule);
}

/* Commutative operations only: block i is combined in the order i, i + 1, ... of the ranks. Each block arrives once before it is
 * complete, so a vector that is fresh stays so for the blocks that have not arrived. */
static void build_ring(struct adi_schedule *schedule, const struct adi_reduction *reduction)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	int n = comm->size;
	struct adi_vector vector;
	adi_vector_start(&vector, schedule, reduction);
	bool fresh = vector.fresh;
	char *target = adi_vector_target(&vector);
	for (int step = 0; step < n - 1; step++) {
		int out = (comm->rank - step + n) % n, in = (out - 1 + n) % n;
		MPI_Count at = block_start(reduction->count, n, in);
		ring_step(&vector, target, in, step ? vector.mine : adi_vector_source(&vector), out);
		vector.fresh = fresh;
		adi_vector_combine(&vector, at, block_start(reduction->count, n, in + 1) - at, false);
	}
	for (int step = 0; step < n - 1; step++) {
		int out = (comm->rank + 1 - step + n) % n, in = (out - 1 + n) % n;
		ring_step(&vector, vector.mine, in, vector.mine, out);
	}
}

void adi_build_allreduce(struct adi_schedule *schedule, const struct adi_reduction *reduction)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	if (comm->size == 1) {
		adi_schedule_copy(schedule, reduction->send, reduction->count, reduction->type, reduction->receive,
				  reduction->count, reduction->type);
		return;
	}
	switch (adi_select(ADI_COLLECTIVE_ALLREDUCE, adi_reduction_bytes(reduction), comm->size, !reduction->op->commutative, 0)) {
	case ADI_ALGORITHM_RING: build_ring(schedule, reduction); break;
	case ADI_ALGORITHM_DOUBLING: build_doubling(schedule, reduction); break;
	default: build_rabenseifner(schedule, reduction);
	}
}

/* Each group reduces at its rank 0; these exchange the results and broadcast them. */
static void build_inter(struct adi_schedule *schedule, const struct adi_reduction *reduction)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	struct adi_reduction inside = *reduction;
	inside.receive = comm->rank == 0 ? adi_schedule_elements(schedule, reduction->count, reduction->type) : NULL;
	adi_schedule_inside(schedule, true);
	adi_build_reduce(schedule, &inside, 0);
	adi_schedule_inside(schedule, false);
	adi_schedule_round(schedule);
	if (comm->rank == 0) {
		adi_schedule_receive(schedule, reduction->receive, reduction->count, reduction->type, 0);
		adi_schedule_send(schedule, inside.receive, reduction->count, reduction->type, 0);
		adi_schedule_round(schedule);
	}
	adi_schedule_inside(schedule, true);
	adi_build_bcast(schedule, reduction->receive, reduction->count, reduction->type, 0);
	adi_schedule_inside(schedule, false);
}

/* ---- MPI functions ---- */

static int check(struct adi_reduction *reduction, const void *send, void *receive, MPI_Count count, MPI_Datatype datatype,
		 struct adi_op *op, const struct adi_comm *comm)
{
	int class = adi_reduction_take(reduction, count, datatype, op);
	return class ? class : adi_reduction_buffers(reduction, send, receive, !comm->inter);
}

/* levels: NULL: one level. */
static int build(struct adi_schedule **made, const struct adi_levels *levels, const struct adi_reduction *reduction,
		 struct adi_comm *comm)
{
	struct adi_schedule *schedule = *made = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	if (comm->inter)
		build_inter(schedule, reduction);
	else if (reduction->count > 0 && levels)
		adi_two_level_allreduce(schedule, levels, reduction);
	else if (reduction->count > 0)
		adi_build_allreduce(schedule, reduction);
	return MPI_SUCCESS;
}

static int allreduce(const struct adi_reduction *reduction, struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	const struct adi_levels *levels;
	if (adi_node_possible(comm) && adi_node_reduces(comm, ADI_COLLECTIVE_ALLREDUCE, reduction))
		return adi_node_allreduce(comm, reduction);
	int class = adi_two_level_use(comm, ADI_COLLECTIVE_ALLREDUCE, adi_reduction_bytes(reduction), !reduction->op->commutative,
				      &levels);
	if (class)
		return class;
	class = build(&schedule, levels, reduction, comm);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_allreduce(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op, struct adi_comm *comm)
{
	struct adi_reduction reduction;
	int class = check(&reduction, send, receive, count, datatype, op, comm);
	if (class)
		return class;
	adi_reduction_hold(&reduction);
	class = allreduce(&reduction, comm);
	adi_reduction_release(&reduction);
	return class;
}

/* The schedule of a nonblocking or persistent allreduce. */
static int make(struct adi_schedule **made, const void *send, void *receive, MPI_Count count, MPI_Datatype datatype,
		struct adi_op *op, struct adi_comm *comm)
{
	struct adi_reduction reduction;
	int class = check(&reduction, send, receive, count, datatype, op, comm);
	if (class)
		return class;
	const struct adi_levels *levels;
	class = adi_two_level_known(comm, ADI_COLLECTIVE_ALLREDUCE, adi_reduction_bytes(&reduction), !op->commutative, &levels);
	return class ? class : build(made, levels, &reduction, comm);
}

int mpi_iallreduce(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op,
		   struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = make(&schedule, send, receive, count, datatype, op, comm);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_allreduce_init(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op,
		       struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = make(&schedule, send, receive, count, datatype, op, comm);
	(void)info;
	return class ? class : adi_schedule_persistent(schedule, request);
}
