/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Reduce: MPI 5.0, section 6.9.1. Algorithms: binomial tree; recursive halving and a gather (Rabenseifner, 2004). */
#include "adi/bindings/functions.h"
#include "adi/collective/node.h"
#include "adi/collective/reduction.h"
#include "adi/collective/two_level.h"

/* ---- algorithms ---- */

/* The tree's root is 0 if the order of ranks matters; the result goes from there to the root. */
static void build_binomial(struct adi_schedule *schedule, const struct adi_reduction *reduction, int root)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	int top = reduction->op->commutative ? root : 0, relative = (comm->rank - top + comm->size) % comm->size;
	struct adi_reduction here = *reduction;
	if (comm->rank != root)
		here.receive = NULL;
	struct adi_vector vector = { .schedule = schedule, .reduction = &here, .mine = (char *)here.send };
	bool leaf = true;
	int mask = 1;
	for (; mask < comm->size && !(relative & mask); mask *= 2) {
		if ((relative | mask) >= comm->size)
			continue;
		if (leaf)
			adi_vector_start(&vector, schedule, &here);
		leaf = false;
		adi_schedule_receive(schedule, adi_vector_target(&vector), here.count, here.type,
				     ((relative | mask) + top) % comm->size);
		adi_schedule_round(schedule);
		adi_vector_combine(&vector, 0, here.count, true);
	}
	if (relative)
		adi_schedule_send(schedule, vector.mine, here.count, here.type, (relative - mask + top) % comm->size);
	else if (comm->rank != root)
		adi_schedule_send(schedule, vector.mine, here.count, here.type, root);
	else
		adi_schedule_copy(schedule, vector.mine, here.count, here.type, here.receive, here.count, here.type);
	adi_schedule_round(schedule);
	if (comm->rank == root && relative)
		adi_schedule_receive(schedule, here.receive, here.count, here.type, 0);
}

/* Reverses the steps of halving, towards the number of the root. Returns whether this rank has the result in the end. */
static bool gather_parts(struct adi_vector *vector, char *result, int root)
{
	struct adi_type *type = vector->reduction->type;
	int steps = 0;
	while (1 << steps < vector->power)
		steps++;
	while (steps-- > 0) {
		int mask = 1 << steps, number = vector->rank ^ mask, partner = adi_vector_rank(vector, number);
		bool gives = (vector->rank ^ root) & mask;
		MPI_Count lo, hi;
		adi_vector_part(vector, gives ? vector->rank : number, steps + 1, &lo, &hi);
		char *part = adi_vector_at(vector, result, lo);
		if (gives && hi > lo)
			adi_schedule_send(vector->schedule, part, hi - lo, type, partner);
		else if (hi > lo)
			adi_schedule_receive(vector->schedule, part, hi - lo, type, partner);
		adi_schedule_round(vector->schedule);
		if (gives)
			return false;
	}
	return true;
}

static void build_rabenseifner(struct adi_schedule *schedule, const struct adi_reduction *reduction, int root)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	struct adi_reduction here = *reduction;
	if (comm->rank != root)
		here.receive = NULL;
	struct adi_vector vector;
	adi_vector_start(&vector, schedule, &here);
	char *result = vector.mine;
	adi_vector_fold(&vector);
	bool folded = root < 2 * vector.extra;
	int number = folded ? root / 2 : root - vector.extra, holder = adi_vector_rank(&vector, number);
	if (vector.rank >= 0) {
		adi_vector_halve(&vector);
		adi_schedule_copy(schedule, adi_vector_at(&vector, vector.mine, vector.lo), vector.hi - vector.lo, here.type,
				  adi_vector_at(&vector, result, vector.lo), vector.hi - vector.lo, here.type);
		bool has = gather_parts(&vector, result, number);
		if (has && holder != root)
			adi_schedule_send(schedule, result, here.count, here.type, root);
	} else if (comm->rank == root) {
		adi_schedule_receive(schedule, here.receive, here.count, here.type, holder);
	}
}

void adi_build_reduce(struct adi_schedule *schedule, const struct adi_reduction *reduction, int root)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	enum adi_algorithm algorithm = adi_select(ADI_COLLECTIVE_REDUCE, adi_reduction_bytes(reduction), comm->size,
						  !reduction->op->commutative, 0);
	if (algorithm == ADI_ALGORITHM_RABENSEIFNER && comm->size > 1)
		build_rabenseifner(schedule, reduction, root);
	else
		build_binomial(schedule, reduction, root);
}

/* The remote group reduces at its rank 0, which sends the result to the root. */
static void build_inter(struct adi_schedule *schedule, const struct adi_reduction *reduction, int root)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	if (root == MPI_ROOT) {
		adi_schedule_receive(schedule, reduction->receive, reduction->count, reduction->type, 0);
	} else if (root != MPI_PROC_NULL) {
		struct adi_reduction inside = *reduction;
		if (comm->rank == 0)
			inside.receive = adi_schedule_elements(schedule, reduction->count, reduction->type);
		adi_schedule_inside(schedule, true);
		adi_build_reduce(schedule, &inside, 0);
		adi_schedule_inside(schedule, false);
		adi_schedule_round(schedule);
		if (comm->rank == 0)
			adi_schedule_send(schedule, inside.receive, reduction->count, reduction->type, root);
	}
}

/* ---- MPI functions ---- */

static int check(struct adi_reduction *reduction, const void *send, void *receive, MPI_Count count, MPI_Datatype datatype,
		 struct adi_op *op, int root, const struct adi_comm *comm)
{
	int class = adi_check_root(comm, root);
	if (class)
		return class;
	if (comm->inter && root == MPI_PROC_NULL) {
		*reduction = (struct adi_reduction){ .count = 0, .op = op, .type = adi_type_byte };
		return MPI_SUCCESS;
	}
	class = adi_reduction_take(reduction, count, datatype, op);
	if (class)
		return class;
	if (!comm->inter && comm->rank == root)
		return adi_reduction_buffers(reduction, send, receive, true);
	if (comm->inter && root == MPI_ROOT) {
		reduction->receive = receive;
		return adi_check_buffer(receive, count, reduction->type, false, "recvbuf");
	}
	reduction->send = send;
	return adi_check_buffer(send, count, reduction->type, false, "sendbuf");
}

/* levels: NULL: one level. */
static int build(struct adi_schedule **made, const struct adi_levels *levels, const struct adi_reduction *reduction, int root,
		 struct adi_comm *comm)
{
	struct adi_schedule *schedule = *made = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	if (comm->inter)
		build_inter(schedule, reduction, root);
	else if (reduction->count > 0 && levels)
		adi_two_level_reduce(schedule, levels, reduction, root);
	else if (reduction->count > 0)
		adi_build_reduce(schedule, reduction, root);
	return MPI_SUCCESS;
}

static int reduce(const struct adi_reduction *reduction, int root, struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	const struct adi_levels *levels = NULL;
	int class = MPI_SUCCESS;
	if (adi_node_possible(comm) && adi_node_reduces(comm, ADI_COLLECTIVE_REDUCE, reduction))
		return adi_node_reduce(comm, reduction, root);
	if (adi_blocking_choice(comm))
		class = adi_two_level_use(comm, ADI_COLLECTIVE_REDUCE, adi_reduction_bytes(reduction), !reduction->op->commutative,
					  &levels);
	if (class)
		return class;
	class = build(&schedule, levels, reduction, root, comm);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_reduce(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op, int root,
	       struct adi_comm *comm)
{
	struct adi_reduction reduction;
	int class = check(&reduction, send, receive, count, datatype, op, root, comm);
	if (class)
		return class;
	adi_reduction_hold(&reduction);
	class = reduce(&reduction, root, comm);
	adi_reduction_release(&reduction);
	return class;
}

/* The schedule of a nonblocking or persistent reduce. */
static int make(struct adi_schedule **made, const void *send, void *receive, MPI_Count count, MPI_Datatype datatype,
		struct adi_op *op, int root, struct adi_comm *comm)
{
	struct adi_reduction reduction;
	int class = check(&reduction, send, receive, count, datatype, op, root, comm);
	if (class)
		return class;
	const struct adi_levels *levels;
	class = adi_two_level_known(comm, ADI_COLLECTIVE_REDUCE, adi_reduction_bytes(&reduction), !op->commutative, &levels);
	return class ? class : build(made, levels, &reduction, root, comm);
}

int mpi_ireduce(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op, int root,
		struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = make(&schedule, send, receive, count, datatype, op, root, comm);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_reduce_init(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op, int root,
		    struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = make(&schedule, send, receive, count, datatype, op, root, comm);
	(void)info;
	return class ? class : adi_schedule_persistent(schedule, request);
}
