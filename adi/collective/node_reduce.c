/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions in a shared segment; node.h has the protocol. Datatypes are predefined and contiguous.
 *
 * Reduce: in each step the ranks write a part of their vectors, and the root combines it. Allreduce of small vectors: all ranks
 * combine everything. Allreduce of others, in two steps for each part: each rank combines one share of the part, and then reads the
 * results of the others. Reduce_scatter_block: each rank combines its block.
 */
#include "adi/collective/node.h"

#include <string.h>

/* Allreduce of at most this is combined by all ranks. */
#define EVERYWHERE 8192
#define EVERYWHERE_OVERSUBSCRIBED 16384
/* What is combined at a time, so that it stays in the first cache; bytes. */
#define COMBINED 8192

/* A step: the ranks wrote `bytes` bytes of their vectors. */
struct part {
	struct adi_comm *comm;
	struct node_state *node;
	const struct adi_reduction *reduction;
	size_t bytes;
	size_t total;    /* bytes of the vector, or of a rank's block of it */
	size_t size;     /* of an element */
	const char *own; /* this rank's data of the step, from own_at on */
	size_t own_at;
};

/* Data of rank i in the step, `at` bytes behind their begin. */
static const char *data_of(const struct part *part, int i, size_t at)
{
	return i == part->comm->rank ? part->own + (at - part->own_at) : adi_node_data(part->node, i, part->bytes) + at;
}

static void apply(const struct part *part, const char *in, char *inout, size_t bytes)
{
	adi_op_apply(part->reduction->op, in, inout, (MPI_Count)(bytes / part->size), part->reduction->type);
}

/* result = the data of all ranks at `at`, combined from the last to the first: so in the order of ranks. If this rank's data stand
 * in result already, the others are combined with it; then the operation commutes. */
static void combine_some(const struct part *part, size_t at, char *result, size_t bytes)
{
	int rank = part->comm->rank, last = part->comm->size - 1;
	bool placed = data_of(part, rank, at) == result;
	if (!placed)
		memcpy(result, data_of(part, last, at), bytes);
	for (int i = placed ? last : last - 1; i >= 0; i--)
		if (!placed || i != rank)
			apply(part, data_of(part, i, at), result, bytes);
}

static void combine(const struct part *part, size_t at, char *result, size_t bytes)
{
	size_t most = COMBINED - COMBINED % part->size;
	for (size_t done = 0, some; done < bytes; done += some) {
		some = bytes - done < most ? bytes - done : most;
		combine_some(part, at + done, result + done, some);
	}
}

/* Begins a step in which this rank writes its data, except [skip, skip + skipped), which only this rank reads. If the operation
 * does not commute and the result goes to the place of the data, they are written too, and are read from the segment. */
static int write_part(struct part *part, const char *from, const char *result, size_t skip, size_t skipped)
{
	int class = adi_node_begin(part->comm, part->node, part->bytes);
	if (class)
		return class;
	char *to = adi_node_data(part->node, part->comm->rank, part->bytes);
	bool keep = from == result && !part->reduction->op->commutative;
	part->own = keep ? to : from;
	if (keep)
		skipped = 0;
	adi_node_copy(part->node, to, from, skipped ? skip : part->bytes);
	if (skipped)
		adi_node_copy(part->node, to + skip + skipped, from + skip + skipped, part->bytes - skip - skipped);
	adi_node_publish(part->comm, part->node, part->total);
	return MPI_SUCCESS;
}

static int start(struct part *part, struct adi_comm *comm, const struct adi_reduction *reduction)
{
	*part = (struct part){ .comm = comm, .node = comm->node, .reduction = reduction, .size = (size_t)reduction->type->size };
	part->total = adi_reduction_bytes(reduction);
	int class = adi_node_enter(comm, part->node);
	adi_schedule_none(comm);
	if (!class)
		adi_node_measure(comm, part->node, part->total);
	return class;
}

/* As many whole elements as fit. */
static size_t whole(const struct part *part, size_t bytes)
{
	return bytes - bytes % part->size;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- reduce ---- */

static int reduce_part(struct part *part, const char *from, char *result)
{
	size_t all = result ? part->bytes : 0;
	int class = write_part(part, from, result, 0, all);
	if (class)
		return class;
	if (!result)
		adi_node_prepare(part->comm, part->node, NODE_LATER);
	else
		class = adi_node_await_all(part->comm, part->node, part->total);
	if (result && !class)
		combine(part, 0, result, part->bytes);
	return class;
}

int adi_node_reduce(struct adi_comm *comm, const struct adi_reduction *reduction, int root)
{
	struct part part;
	int class = start(&part, comm, reduction);
	size_t bytes = adi_reduction_bytes(reduction), piece = whole(&part, adi_node_piece(part.node, bytes));
	part.node->watches = comm->rank == root;
	for (size_t at = 0; at < bytes && !class; at += part.bytes) {
		part.bytes = least(bytes - at, piece);
		class = reduce_part(&part, (const char *)reduction->send + at,
				    comm->rank == root ? (char *)reduction->receive + at : NULL);
	}
	part.node->watches = false;
	adi_node_leave(comm, part.node);
	return class;
}

/* ---- allreduce ---- */

static int everywhere(struct part *part, const char *from, char *result)
{
	int class = adi_node_begin(part->comm, part->node, part->bytes);
	if (class)
		return class;
	char *to = adi_node_data(part->node, part->comm->rank, part->bytes);
	adi_node_copy(part->node, to, from, part->bytes);
	part->own = to;
	adi_node_publish(part->comm, part->node, part->total);
	adi_node_prepare(part->comm, part->node, NODE_NEXT);
	class = adi_node_await_all(part->comm, part->node, part->total);
	if (!class)
		combine(part, 0, result, part->bytes);
	return class;
}

/* Where the share of a rank begins. */
static size_t share_of(const struct part *part, int rank)
{
	size_t elements = part->bytes / part->size, n = (size_t)part->comm->size, i = (size_t)rank;
	return (elements / n * i + least(i, elements % n)) * part->size;
}

/* Each rank writes the result of its share and reads those of the others. */
static int exchange_shares(const struct part *part, char *result)
{
	int rank = part->comm->rank, n = part->comm->size;
	size_t lo = share_of(part, rank), most = share_of(part, 1);
	int class = adi_node_begin(part->comm, part->node, most);
	if (class)
		return class;
	adi_node_copy(part->node, adi_node_data(part->node, rank, most), result + lo, share_of(part, rank + 1) - lo);
	adi_node_publish(part->comm, part->node, part->total);
	for (int step = 1; step < n && !class; step++) {
		int i = (rank + step) % n;
		size_t at = share_of(part, i);
		class = adi_node_await(part->comm, part->node, i, part->total);
		if (!class)
			memcpy(result + at, adi_node_data(part->node, i, most), share_of(part, i + 1) - at);
	}
	if (!class)
		part->node->all_done = part->node->seq - 1;
	return class;
}

static int by_shares(struct part *part, const char *from, char *result)
{
	size_t lo = share_of(part, part->comm->rank), bytes = share_of(part, part->comm->rank + 1) - lo;
	int class = write_part(part, from, result, lo, bytes);
	if (class)
		return class;
	class = adi_node_await_all(part->comm, part->node, part->total);
	if (!class)
		combine(part, lo, result + lo, bytes);
	return class ? class : exchange_shares(part, result);
}

int adi_node_allreduce(struct adi_comm *comm, const struct adi_reduction *reduction)
{
	struct part part;
	int class = start(&part, comm, reduction);
	size_t bytes = adi_reduction_bytes(reduction);
	bool small = bytes <= (part.node->oversubscribed ? EVERYWHERE_OVERSUBSCRIBED : EVERYWHERE);
	size_t most = whole(&part, NODE_LARGE);
	for (size_t at = 0; at < bytes && !class; at += part.bytes) {
		part.bytes = least(bytes - at, most);
		class = (small ? everywhere : by_shares)(&part, (const char *)reduction->send + at,
							 (char *)reduction->receive + at);
	}
	adi_node_leave(comm, part.node);
	return class;
}

/* ---- reduce_scatter ---- */

/* A step: the same range, [at, at + some), of each block. In place, the result of a step is where this rank's data of block 0 were,
 * so the data of the step are read from the segment. */
static int scatter_part(struct part *part, size_t at, size_t block, size_t some)
{
	const struct adi_reduction *reduction = part->reduction;
	size_t rank = (size_t)part->comm->rank, n = (size_t)part->comm->size;
	bool in_place = reduction->send == reduction->receive;
	part->bytes = some * n;
	int class = adi_node_begin(part->comm, part->node, part->bytes);
	if (class)
		return class;
	char *to = adi_node_data(part->node, part->comm->rank, part->bytes);
	const char *from = (const char *)reduction->send + at;
	for (size_t i = 0; i < n; i++)
		if (in_place || i != rank)
			adi_node_copy(part->node, to + i * some, from + i * block, some);
	part->own = in_place ? to + rank * some : from + rank * block;
	part->own_at = rank * some;
	adi_node_publish(part->comm, part->node, part->total);
	class = adi_node_await_all(part->comm, part->node, part->total);
	if (!class)
		combine(part, rank * some, (char *)reduction->receive + at, some);
	return class;
}

int adi_node_reduce_scatter(struct adi_comm *comm, const struct adi_reduction *reduction)
{
	struct part part;
	int class = start(&part, comm, reduction);
	size_t block = adi_reduction_bytes(reduction), most = whole(&part, NODE_LARGE / (size_t)comm->size);
	for (size_t at = 0, some; at < block && !class; at += some) {
		some = least(block - at, most);
		class = scatter_part(&part, at, block, some);
	}
	adi_node_leave(comm, part.node);
	return class;
}
