/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block: MPI 5.0, section 6.10. Algorithms: recursive halving, for operations that
 * commute; pairwise exchange, where each rank gets its block from each other rank and, if the operation does not commute, combines
 * the blocks in the order of the ranks at the end.
 */
#include "adi/bindings/functions.h"
#include "adi/collective/node.h"
#include "adi/collective/reduction.h"

/* What is reduced is the whole vector; block i, elements [start[i], start[i + 1]), goes to rank i. */
struct blocks {
	struct adi_schedule *schedule;
	const struct adi_reduction *reduction; /* receive: this rank's block; in place: also the whole vector */
	MPI_Count *start;                      /* [ranks + 1] */
};

static MPI_Count block_count(const struct blocks *blocks, int i)
{
	return blocks->start[i + 1] - blocks->start[i];
}

static char *at(const struct blocks *blocks, const void *base, MPI_Count element)
{
	return (char *)base + element * blocks->reduction->type->extent;
}

/* ---- recursive halving ---- */

/* The first block of a number after adi_vector_fold: a number below extra has the blocks of two ranks. */
static int first_block(const struct adi_vector *vector, int number)
{
	return number < vector->extra ? 2 * number : number + vector->extra;
}

static void halve(struct blocks *blocks, struct adi_vector *vector)
{
	struct adi_type *type = blocks->reduction->type;
	for (int mask = vector->power / 2; mask > 0; mask /= 2) {
		int low = vector->rank & ~(2 * mask - 1), number = vector->rank ^ mask, partner = adi_vector_rank(vector, number);
		MPI_Count lo = blocks->start[first_block(vector, low)], middle = blocks->start[first_block(vector, low + mask)];
		MPI_Count hi = blocks->start[first_block(vector, low + 2 * mask)];
		bool lower = vector->rank < number;
		MPI_Count keep = lower ? lo : middle, kept = lower ? middle - lo : hi - middle;
		MPI_Count away = lower ? middle : lo, gone = lower ? hi - middle : middle - lo;
		if (kept)
			adi_schedule_receive(blocks->schedule, at(blocks, adi_vector_target(vector), keep), kept, type, partner);
		if (gone)
			adi_schedule_send(blocks->schedule, at(blocks, adi_vector_source(vector), away), gone, type, partner);
		adi_schedule_round(blocks->schedule);
		adi_vector_combine(vector, keep, kept, false);
	}
}

static void build_halving(struct blocks *blocks)
{
	const struct adi_comm *comm = adi_schedule_comm(blocks->schedule);
	const struct adi_reduction *reduction = blocks->reduction;
	struct adi_type *type = reduction->type;
	struct adi_reduction whole = *reduction;
	whole.receive = NULL; /* so that the vector has a buffer of its own */
	MPI_Count count = block_count(blocks, comm->rank);
	struct adi_vector vector;
	adi_vector_start(&vector, blocks->schedule, &whole);
	adi_vector_fold(&vector);
	if (vector.rank >= 0)
		halve(blocks, &vector);
	if (comm->rank < 2 * vector.extra) {
		int even = comm->rank & ~1;
		if (vector.rank < 0 && count)
			adi_schedule_receive(blocks->schedule, reduction->receive, count, type, even + 1);
		else if (vector.rank >= 0 && block_count(blocks, even))
			adi_schedule_send(blocks->schedule, at(blocks, vector.mine, blocks->start[even]), block_count(blocks, even),
					  type, even);
	}
	if (vector.rank >= 0)
		adi_schedule_copy(blocks->schedule, at(blocks, vector.mine, blocks->start[comm->rank]), count, type,
				  reduction->receive, count, type);
}

/* ---- pairwise exchange ---- */

static void exchange_pair(const struct blocks *blocks, const struct adi_comm *comm, int distance, void *into)
{
	struct adi_type *type = blocks->reduction->type;
	int to = (comm->rank + distance) % comm->size, from = (comm->rank - distance + comm->size) % comm->size;
	if (block_count(blocks, comm->rank))
		adi_schedule_receive(blocks->schedule, into, block_count(blocks, comm->rank), type, from);
	if (block_count(blocks, to))
		adi_schedule_send(blocks->schedule, at(blocks, blocks->reduction->send, blocks->start[to]), block_count(blocks, to),
				  type, to);
	adi_schedule_round(blocks->schedule);
}

static void build_pairwise(struct blocks *blocks)
{
	const struct adi_comm *comm = adi_schedule_comm(blocks->schedule);
	const struct adi_reduction *reduction = blocks->reduction;
	struct adi_type *type = reduction->type;
	MPI_Count count = block_count(blocks, comm->rank);
	bool in_place = reduction->send == reduction->receive;
	void *arrived = adi_schedule_elements(blocks->schedule, count, type);
	void *sum = in_place ? adi_schedule_elements(blocks->schedule, count, type) : reduction->receive;
	adi_schedule_copy(blocks->schedule, at(blocks, reduction->send, blocks->start[comm->rank]), count, type, sum, count, type);
	for (int distance = 1; distance < comm->size; distance++) {
		exchange_pair(blocks, comm, distance, arrived);
		adi_schedule_reduce(blocks->schedule, arrived, sum, count, type, reduction->op);
	}
	adi_schedule_copy(blocks->schedule, sum, count, type, reduction->receive, count, type);
}

/* Keeps what arrives, and combines it from the last rank to the first: rank op (what is combined of the ranks after it). */
static void build_pairwise_ordered(struct blocks *blocks)
{
	const struct adi_comm *comm = adi_schedule_comm(blocks->schedule);
	const struct adi_reduction *reduction = blocks->reduction;
	struct adi_type *type = reduction->type;
	MPI_Count count = block_count(blocks, comm->rank);
	int n = comm->size;
	const char *of_rank[n];
	of_rank[n - 1] = NULL;
	for (int i = 0; i < n; i++)
		of_rank[i] = i == comm->rank ? at(blocks, reduction->send, blocks->start[i]) :
					       adi_schedule_elements(blocks->schedule, count, type);
	for (int distance = 1; distance < n; distance++)
		exchange_pair(blocks, comm, distance, (void *)of_rank[(comm->rank - distance + n) % n]);
	/* Where the own block is the last operand, it may not be changed. */
	void *sum = adi_schedule_elements(blocks->schedule, count, type);
	adi_schedule_copy(blocks->schedule, of_rank[n - 1], count, type, sum, count, type);
	for (int i = n - 2; i >= 0; i--)
		adi_schedule_reduce(blocks->schedule, of_rank[i], sum, count, type, reduction->op);
	adi_schedule_copy(blocks->schedule, sum, count, type, reduction->receive, count, type);
}

static void build_intra(struct blocks *blocks)
{
	const struct adi_comm *comm = adi_schedule_comm(blocks->schedule);
	bool ordered = !blocks->reduction->op->commutative;
	enum adi_algorithm algorithm = adi_select(ADI_COLLECTIVE_REDUCE_SCATTER, adi_reduction_bytes(blocks->reduction), comm->size,
						  ordered, 0);
	if (algorithm == ADI_ALGORITHM_HALVING && comm->size > 1)
		build_halving(blocks);
	else if (ordered)
		build_pairwise_ordered(blocks);
	else
		build_pairwise(blocks);
}

/* Each group reduces at its rank 0; these exchange the results, and each scatters what it got to its group. */
static void build_inter(struct blocks *blocks)
{
	struct adi_schedule *schedule = blocks->schedule;
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	const struct adi_reduction *reduction = blocks->reduction;
	struct adi_reduction inside = *reduction;
	void *arrived = NULL;
	inside.receive = NULL;
	if (comm->rank == 0) {
		inside.receive = adi_schedule_elements(schedule, reduction->count, reduction->type);
		arrived = adi_schedule_elements(schedule, reduction->count, reduction->type);
	}
	adi_schedule_inside(schedule, true);
	adi_build_reduce(schedule, &inside, 0);
	adi_schedule_inside(schedule, false);
	adi_schedule_round(schedule);
	if (comm->rank == 0) {
		adi_schedule_receive(schedule, arrived, reduction->count, reduction->type, 0);
		adi_schedule_send(schedule, inside.receive, reduction->count, reduction->type, 0);
		adi_schedule_round(schedule);
	}
	adi_schedule_inside(schedule, true);
	MPI_Count count = block_count(blocks, comm->rank);
	if (comm->rank != 0 && count)
		adi_schedule_receive(schedule, reduction->receive, count, reduction->type, 0);
	for (int i = 1; comm->rank == 0 && i < comm->size; i++)
		if (block_count(blocks, i))
			adi_schedule_send(schedule, at(blocks, arrived, blocks->start[i]), block_count(blocks, i), reduction->type,
					  i);
	if (comm->rank == 0)
		adi_schedule_copy(schedule, arrived, count, reduction->type, reduction->receive, count, reduction->type);
	adi_schedule_inside(schedule, false);
}

/* ---- MPI functions ---- */

/* counts.values NULL: every block has `each` elements. */
struct arguments {
	const void *send;
	void *receive;
	struct adi_array counts;
	MPI_Count each;
	MPI_Datatype datatype;
	struct adi_op *op;
};

static MPI_Count count_of(const struct arguments *arguments, int i)
{
	return arguments->counts.values ? adi_at(arguments->counts, i) : arguments->each;
}

static int check(const struct arguments *arguments, struct adi_reduction *reduction, const struct adi_comm *comm)
{
	MPI_Count total = 0;
	for (int i = 0; i < comm->size; i++) {
		MPI_Count count = count_of(arguments, i);
		if (count < 0)
			return adi_error(MPI_ERR_COUNT, "recvcounts[%d] is %lld; valid: 0 and above", i, (long long)count);
		total += count;
	}
	int class = adi_reduction_take(reduction, total, arguments->datatype, arguments->op);
	if (class)
		return class;
	bool in_place = arguments->send == MPI_IN_PLACE;
	class = adi_check_buffer(arguments->send, total, reduction->type, !comm->inter, "sendbuf");
	if (!class)
		class = adi_check_buffer(arguments->receive, in_place ? total : count_of(arguments, comm->rank), reduction->type,
					 false, "recvbuf");
	if (!class && arguments->send == arguments->receive && total > 0 && !reduction->type->contents)
		class = adi_error(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same buffer; valid: MPI_IN_PLACE");
	reduction->send = in_place ? arguments->receive : arguments->send;
	reduction->receive = arguments->receive;
	return class;
}

static int build(struct adi_schedule **made, const struct arguments *arguments, struct adi_comm *comm)
{
	struct adi_reduction reduction;
	int class = check(arguments, &reduction, comm);
	if (class)
		return class;
	struct adi_schedule *schedule = *made = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	struct blocks blocks = { .schedule = schedule, .reduction = &reduction };
	blocks.start = adi_schedule_memory(schedule, ((size_t)comm->size + 1) * sizeof *blocks.start);
	if (!blocks.start)
		return MPI_SUCCESS; /* The schedule remembers it. */
	blocks.start[0] = 0;
	for (int i = 0; i < comm->size; i++)
		blocks.start[i + 1] = blocks.start[i] + count_of(arguments, i);
	if (comm->inter)
		build_inter(&blocks);
	else if (reduction.count > 0)
		build_intra(&blocks);
	return MPI_SUCCESS;
}

static int run(const struct arguments *arguments, struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	struct adi_reduction reduction;
	bool possible = !arguments->counts.values && adi_node_possible(comm), done = false;
	int class = possible ? check(arguments, &reduction, comm) : MPI_SUCCESS;
	if (class)
		return class;
	if (possible) {
		adi_reduction_hold(&reduction);
		reduction.count = arguments->each;
		done = adi_node_reduces(comm, ADI_COLLECTIVE_REDUCE_SCATTER, &reduction);
	}
	class = done ? adi_node_reduce_scatter(comm, &reduction) : build(&schedule, arguments, comm);
	/* A schedule holds them itself. */
	if (possible)
		adi_reduction_release(&reduction);
	if (done)
		return class;
	return class ? class : adi_schedule_wait(schedule);
}

static int start(const struct arguments *arguments, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = build(&schedule, arguments, comm);
	return class ? class : adi_schedule_start(schedule, request);
}

static int make_persistent(const struct arguments *arguments, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = build(&schedule, arguments, comm);
	return class ? class : adi_schedule_persistent(schedule, request);
}

static int check_counts(struct adi_array counts)
{
	return adi_check_pointer(counts.values, "recvcounts");
}

int mpi_reduce_scatter(const void *send, void *receive, struct adi_array counts, MPI_Datatype datatype, struct adi_op *op,
		       struct adi_comm *comm)
{
	int class = check_counts(counts);
	return class ? class : run(&(struct arguments){ send, receive, counts, 0, datatype, op }, comm);
}

int mpi_ireduce_scatter(const void *send, void *receive, struct adi_array counts, MPI_Datatype datatype, struct adi_op *op,
			struct adi_comm *comm, MPI_Request *request)
{
	int class = check_counts(counts);
	return class ? class : start(&(struct arguments){ send, receive, counts, 0, datatype, op }, comm, request);
}

int mpi_reduce_scatter_init(const void *send, void *receive, struct adi_array counts, MPI_Datatype datatype, struct adi_op *op,
			    struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	int class = check_counts(counts);
	(void)info;
	return class ? class : make_persistent(&(struct arguments){ send, receive, counts, 0, datatype, op }, comm, request);
}

static const struct adi_array equal;

int mpi_reduce_scatter_block(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op,
			     struct adi_comm *comm)
{
	return run(&(struct arguments){ send, receive, equal, count, datatype, op }, comm);
}

int mpi_ireduce_scatter_block(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op,
			      struct adi_comm *comm, MPI_Request *request)
{
	return start(&(struct arguments){ send, receive, equal, count, datatype, op }, comm, request);
}

int mpi_reduce_scatter_block_init(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op,
				  struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	return make_persistent(&(struct arguments){ send, receive, equal, count, datatype, op }, comm, request);
}
