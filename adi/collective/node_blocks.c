/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gather, scatter, allgather and alltoall in a shared segment: node.h has the protocol. In each step a rank writes a range of the
 * blocks that it sends, the same range [at, at + bytes) of each, and reads this range of the blocks of the others. Own blocks are
 * copied directly.
 */
#include "adi/collective/blocks.h"
#include "adi/collective/node.h"

#include <string.h>

/* total: bytes of all ranges. */
struct range {
	size_t at, bytes, total;
};

int adi_node_put(const struct node_state *node, const struct adi_blocks *from, int i, size_t at, size_t bytes, char *to)
{
	struct adi_type *type = adi_block_type(from, i);
	if (type->contiguous) {
		adi_node_copy(node, to, (char *)adi_block_at(from, i) + type->true_lb + at, bytes);
		return MPI_SUCCESS;
	}
	struct adi_stream stream;
	int class = adi_stream_start(&stream, adi_block_at(from, i), adi_block_count(from, i), type);
	if (class)
		return class;
	adi_stream_seek(&stream, at);
	adi_stream_pack(&stream, to, bytes);
	return MPI_SUCCESS;
}

int adi_node_get(const char *from, const struct adi_blocks *to, int i, size_t at, size_t bytes)
{
	struct adi_type *type = adi_block_type(to, i);
	if (type->contiguous) {
		memcpy((char *)adi_block_at(to, i) + type->true_lb + at, from, bytes);
		return MPI_SUCCESS;
	}
	struct adi_stream stream;
	int class = adi_stream_start(&stream, adi_block_at(to, i), adi_block_count(to, i), type);
	if (class)
		return class;
	adi_stream_seek(&stream, at);
	adi_stream_unpack(&stream, from, bytes);
	return MPI_SUCCESS;
}

static int put(const struct node_state *node, const struct adi_blocks *from, int i, struct range range, char *to)
{
	return adi_node_put(node, from, i, range.at, range.bytes, to);
}

static int get(const char *from, const struct adi_blocks *to, int i, struct range range)
{
	return adi_node_get(from, to, i, range.at, range.bytes);
}

/* An empty block may have no valid type. */
static struct adi_type *type_of(const struct adi_blocks *blocks, int i)
{
	return adi_block_count(blocks, i) ? adi_block_type(blocks, i) : adi_type_byte;
}

int adi_node_copy_own(const struct adi_blocks *from, int i, const struct adi_blocks *to, int j)
{
	MPI_Count bytes = adi_block_bytes(from, i), room = adi_block_bytes(to, j);
	if (!bytes && !room)
		return MPI_SUCCESS;
	struct adi_type *from_type = type_of(from, i), *to_type = type_of(to, j);
	if (from_type->contiguous && to_type->contiguous && bytes == room) {
		memcpy((char *)adi_block_at(to, j) + to_type->true_lb, (char *)adi_block_at(from, i) + from_type->true_lb,
		       (size_t)bytes);
		return MPI_SUCCESS;
	}
	return adi_type_copy(adi_block_at(from, i), adi_block_count(from, i), from_type, adi_block_at(to, j),
			     adi_block_count(to, j), to_type);
}

/* Copies a range of a rank's block to itself; the whole block in the first range, if its data are not contiguous. The counts and
 * types of the two sides may differ. */
static int copy_own(const struct adi_blocks *from, int i, const struct adi_blocks *to, int j, MPI_Count bytes, struct range range)
{
	if (!from->type->contiguous || !to->type->contiguous || adi_block_bytes(from, i) != bytes)
		return range.at ? MPI_SUCCESS : adi_type_copy(adi_block_at(from, i), from->count, from->type, adi_block_at(to, j),
							      to->count, to->type);
	memcpy((char *)adi_block_at(to, j) + to->type->true_lb + range.at,
	       (char *)adi_block_at(from, i) + from->type->true_lb + range.at, range.bytes);
	return MPI_SUCCESS;
}

/* Begins a step, and writes a range of block 0. A rank that cannot read its own data writes nothing, which is an error at the
 * others. */
static int write_range(const struct adi_comm *comm, struct node_state *node, const struct adi_blocks *send, struct range range)
{
	int class = adi_node_begin(comm, node, range.bytes);
	if (class)
		return class;
	class = put(node, send, 0, range, adi_node_data(node, comm->rank, range.bytes));
	adi_node_publish(comm, node, class ? 0 : range.total);
	return class;
}

/* The same with this range of all blocks but the rank's own, in the order of ranks. */
static int write_others(const struct adi_comm *comm, struct node_state *node, const struct adi_blocks *send, struct range range)
{
	int rank = comm->rank, n = comm->size;
	size_t all = range.bytes * (size_t)(n - 1);
	int class = adi_node_begin(comm, node, all);
	if (class)
		return class;
	char *to = adi_node_data(node, rank, all);
	if (all <= NODE_SHORT && (MPI_Count)range.bytes == adi_block_bytes(send, 0) && send->type->contiguous &&
	    adi_blocks_joined(send)) {
		const char *from = (char *)adi_block_at(send, 0) + send->type->true_lb;
		size_t before = (size_t)rank * range.bytes;
		memcpy(to, from, before);
		memcpy(to + before, from + before + range.bytes, all - before);
	} else {
		for (int i = 0; i < n && !class; i++)
			if (i != rank)
				class = put(node, send, i, range, to + (size_t)(i - (i > rank)) * range.bytes);
	}
	adi_node_publish(comm, node, class ? 0 : range.total);
	return class;
}

/* Reads this rank's block of what a rank has written by write_others. */
static int read_own(const struct adi_comm *comm, const struct node_state *node, int writer, const struct adi_blocks *receive, int i,
		    struct range range)
{
	size_t all = range.bytes * (size_t)(comm->size - 1), at = (size_t)(comm->rank - (comm->rank > writer)) * range.bytes;
	int class = adi_node_await(comm, node, writer, range.total);
	return class ? class : get(adi_node_data(node, writer, all) + at, receive, i, range);
}

static int start(struct adi_comm *comm, struct node_state *node, MPI_Count bytes)
{
	int class = adi_node_enter(comm, node);
	adi_schedule_none(comm);
	if (!class)
		adi_node_measure(comm, node, (size_t)bytes);
	return class;
}

static struct range range_at(size_t at, MPI_Count bytes, size_t most)
{
	size_t left = (size_t)bytes - at;
	return (struct range){ at, left < most ? left : most, (size_t)bytes };
}

/* Bytes of each block in a step, if a step has all blocks of a rank but its own. */
static size_t share_of_step(const struct adi_comm *comm)
{
	return NODE_LARGE / (size_t)(comm->size - 1) & ~(size_t)63;
}

int adi_node_allgather(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes)
{
	struct node_state *node = comm->node;
	int class = start(comm, node, bytes);
	struct adi_blocks own = { .buf = (uintptr_t)adi_block_at(receive, comm->rank), .count = receive->count,
				  .type = receive->type };
	for (size_t at = 0; at < (size_t)bytes && !class; at += NODE_LARGE) {
		struct range range = range_at(at, bytes, NODE_LARGE);
		class = write_range(comm, node, send ? send : &own, range);
		adi_node_prepare(comm, node, NODE_NEXT);
		if (!class && send)
			class = copy_own(send, 0, receive, comm->rank, bytes, range);
		for (int step = 1; step < comm->size && !class; step++) {
			int i = (comm->rank + step) % comm->size;
			class = adi_node_await(comm, node, i, range.total);
			if (!class)
				class = get(adi_node_data(node, i, range.bytes), receive, i, range);
		}
		if (!class)
			node->all_done = node->seq - 1;
	}
	adi_node_leave(comm, node);
	return class;
}

int adi_node_alltoall(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes)
{
	struct node_state *node = comm->node;
	int class = start(comm, node, bytes);
	size_t most = share_of_step(comm);
	bool done = false;
	if (!class && send && node->direct)
		class = adi_node_alltoall_direct(comm, send, receive, bytes, &done);
	for (size_t at = 0; at < (size_t)bytes && !class && !done; at += most) {
		struct range range = range_at(at, bytes, most);
		class = write_others(comm, node, send ? send : receive, range);
		adi_node_prepare(comm, node, NODE_NEXT);
		if (!class && send)
			class = copy_own(send, comm->rank, receive, comm->rank, bytes, range);
		for (int step = 1; step < comm->size && !class; step++) {
			int i = (comm->rank + step) % comm->size;
			class = read_own(comm, node, i, receive, i, range);
		}
		if (!class)
			node->all_done = node->seq - 1;
	}
	adi_node_leave(comm, node);
	return class;
}

static int gather_range(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, struct range range,
			int root)
{
	struct node_state *node = comm->node;
	int class = MPI_SUCCESS;
	if (comm->rank != root) {
		class = write_range(comm, node, send, range);
		return class;
	}
	adi_node_skip(comm, node);
	for (int i = 0; i < comm->size && !class; i++) {
		if (i == root)
			continue;
		class = adi_node_await(comm, node, i, range.total);
		if (!class)
			class = get(adi_node_data(node, i, range.bytes), receive, i, range);
	}
	return class;
}

int adi_node_gather(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes,
		    int root)
{
	struct node_state *node = comm->node;
	int class = start(comm, node, bytes);
	size_t piece = adi_node_piece(node, (size_t)bytes);
	if (!class && comm->rank == root && send)
		class = copy_own(send, 0, receive, root, bytes, range_at(0, bytes, (size_t)bytes));
	node->watches = comm->rank == root;
	for (size_t at = 0; at < (size_t)bytes && !class; at += piece)
		class = gather_range(comm, send, receive, range_at(at, bytes, piece), root);
	node->watches = false;
	adi_node_leave(comm, node);
	return class;
}

static int scatter_range(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, struct range range,
			 int root)
{
	struct node_state *node = comm->node;
	int class;
	if (comm->rank == root) {
		class = write_others(comm, node, send, range);
		adi_node_prepare(comm, node, NODE_LATER);
	} else {
		adi_node_skip(comm, node);
		adi_node_give_time(node, 1); /* the root has more to do before its store */
		class = read_own(comm, node, root, receive, 0, range);
	}
	return class;
}

int adi_node_scatter(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes,
		     int root)
{
	struct node_state *node = comm->node;
	int class = start(comm, node, bytes);
	size_t piece = adi_node_piece(node, (size_t)bytes), most = share_of_step(comm);
	piece = piece < most ? piece : most;
	for (size_t at = 0; at < (size_t)bytes && !class; at += piece) {
		struct range range = range_at(at, bytes, piece);
		class = scatter_range(comm, send, receive, range, root);
		if (!class && comm->rank == root && receive)
			class = copy_own(send, root, receive, 0, bytes, range);
	}
	adi_node_leave(comm, node);
	return class;
}
