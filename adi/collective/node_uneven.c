/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gatherv, scatterv, allgatherv, alltoallv and alltoallw in a shared segment: node.h has the protocol. Only the sender and the
 * receiver of a block know its size. So there is one step, whatever the sizes. A block up to a limit (limit_of_one,
 * limit_of_several) goes through the segment, a longer one is a message; both ranks know which. A rank that sends to several ranks
 * writes a table of the places of the blocks before them. An allgatherv, and an alltoallv or alltoallw of two ranks, are different:
 * all ranks know all sizes, so these take as many steps as the longest block needs.
 */
#include "adi/collective/blocks.h"
#include "adi/collective/node.h"

#include <string.h>

/* Up to this number of ranks, blocks of a gatherv up to NODE_PIECE go through the segment, with more ranks up to MANY_RANKS_BYTES. */
#define FEW_RANKS 16
#define MANY_RANKS_BYTES 8192

/* The table: where the block of each rank begins, in the data of the step, and where the last one ends. A rank without a block has the
 * place of the next one. */
static size_t table_bytes(const struct adi_comm *comm)
{
	return ((size_t)comm->size + 1) * sizeof(uint32_t);
}

/* The longest block that goes through the segment, if a rank sends to several ranks. most: an upper limit, even if the step has room
 * for more. */
static size_t limit_of_several(const struct adi_comm *comm, size_t most)
{
	size_t share = (NODE_LARGE - table_bytes(comm)) / (size_t)(comm->size - 1);
	return share < most ? share : most;
}

static size_t limit_of_one(const struct adi_comm *comm)
{
	return comm->size <= FEW_RANKS ? NODE_PIECE : MANY_RANKS_BYTES;
}

static bool is_short(MPI_Count bytes, size_t limit)
{
	return bytes > 0 && (size_t)bytes <= limit;
}

/* ---- long blocks ---- */

/* One side of the long blocks. only: the rank to which block 0 goes, or from which it comes; -1: block i belongs to rank i. */
struct side {
	const struct adi_blocks *blocks; /* NULL: this rank has none */
	int only;
};

/* The index of the block of a rank if the block is long, else -1. */
static int long_block(const struct side *side, int rank, size_t limit)
{
	int i = side->only < 0 ? rank : 0;
	if (!side->blocks || (side->only >= 0 && side->only != rank))
		return -1;
	MPI_Count bytes = adi_block_bytes(side->blocks, i);
	return bytes > 0 && (size_t)bytes > limit ? i : -1;
}

static bool any_long(const struct adi_comm *comm, const struct side *side, size_t limit)
{
	for (int i = 0; i < comm->size; i++)
		if (i != comm->rank && long_block(side, i, limit) >= 0)
			return true;
	return false;
}

/* Sends and receives the long blocks, pairwise. All ranks call it, also after an error: others may wait for a block. */
static int exchange_long(struct adi_comm *comm, struct side send, struct side receive, size_t limit)
{
	int n = comm->size, rank = comm->rank;
	if (!any_long(comm, &send, limit) && !any_long(comm, &receive, limit)) {
		adi_schedule_none(comm);
		return MPI_SUCCESS;
	}
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	for (int step = 1; step < n; step++) {
		int from = (rank + n - step) % n, to = (rank + step) % n;
		int in = long_block(&receive, from, limit), out = long_block(&send, to, limit);
		if (in >= 0)
			adi_block_receive(schedule, receive.blocks, in, from);
		if (out >= 0)
			adi_block_send(schedule, send.blocks, out, to);
		if (send.blocks && receive.blocks)
			adi_schedule_round(schedule);
	}
	return adi_schedule_wait(schedule);
}

/* ---- short blocks ---- */

static void write_place(char *data, int i, size_t at)
{
	uint32_t place = (uint32_t)at;
	memcpy(data + (size_t)i * sizeof place, &place, sizeof place);
}

/* Begins a step, and writes the table and the short blocks but the rank's own. */
static int write_blocks(const struct adi_comm *comm, struct node_state *node, const struct adi_blocks *send, size_t limit)
{
	size_t all = table_bytes(comm), at = all;
	for (int i = 0; i < comm->size; i++)
		if (i != comm->rank && is_short(adi_block_bytes(send, i), limit))
			all += (size_t)adi_block_bytes(send, i);
	adi_node_measure(comm, node, all);
	int class = adi_node_begin(comm, node, all);
	if (class)
		return class;
	char *to = adi_node_data(node, comm->rank, all);
	for (int i = 0; i < comm->size && !class; i++) {
		MPI_Count bytes = i == comm->rank ? 0 : adi_block_bytes(send, i);
		write_place(to, i, at);
		if (!is_short(bytes, limit))
			continue;
		class = adi_node_put(node, send, i, 0, (size_t)bytes, to + at);
		at += (size_t)bytes;
	}
	write_place(to, comm->size, at);
	adi_node_publish(comm, node, class ? 0 : all);
	return class;
}

/* Reads this rank's block, which is short, from what a rank has written. */
static int read_block(const struct adi_comm *comm, const struct node_state *node, int writer, const struct adi_blocks *receive, int i)
{
	size_t all, bytes = (size_t)adi_block_bytes(receive, i);
	uint32_t place[2] = { 0 }; /* begin and end */
	int class = adi_node_await_some(comm, node, writer, &all);
	if (class)
		return class;
	const char *from = adi_node_data(node, writer, all);
	if (all >= table_bytes(comm) && all <= NODE_LARGE)
		memcpy(place, from + (size_t)comm->rank * sizeof *place, sizeof place);
	if (place[1] < place[0] || place[1] - place[0] != bytes || place[1] > all)
		return adi_node_error_bytes(comm, writer, place[1] - place[0], bytes);
	return adi_node_get(from + place[0], receive, i, 0, bytes);
}

static int gather_short(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root, size_t limit)
{
	struct node_state *node = comm->node;
	int class = MPI_SUCCESS;
	size_t bytes = comm->rank == root ? 0 : (size_t)adi_block_bytes(send, 0);
	if (is_short((MPI_Count)bytes, limit)) {
		adi_node_measure(comm, node, bytes);
		class = adi_node_begin(comm, node, bytes);
		if (!class) {
			class = adi_node_put(node, send, 0, 0, bytes, adi_node_data(node, comm->rank, bytes));
			adi_node_publish(comm, node, class ? 0 : bytes);
		}
	} else {
		node->seq++;
	}
	node->watches = comm->rank == root;
	for (int i = 0; comm->rank == root && i < comm->size && !class; i++) {
		bytes = (size_t)adi_block_bytes(receive, i);
		if (i == root || !is_short((MPI_Count)bytes, limit))
			continue;
		class = adi_node_await(comm, node, i, bytes);
		if (!class)
			class = adi_node_get(adi_node_data(node, i, bytes), receive, i, 0, bytes);
	}
	node->watches = false;
	adi_node_end_step(comm, node);
	return class;
}

static int scatter_short(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root, size_t limit)
{
	struct node_state *node = comm->node;
	int class = MPI_SUCCESS;
	if (comm->rank == root) {
		class = write_blocks(comm, node, send, limit);
		adi_node_prepare(comm, node, NODE_LATER);
	} else {
		node->seq++;
		adi_node_give_time(node, 1); /* the root has more to do before its store */
		if (is_short(adi_block_bytes(receive, 0), limit))
			class = read_block(comm, node, root, receive, 0);
	}
	adi_node_end_step(comm, node);
	return class;
}

static int alltoall_short(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, size_t limit)
{
	struct node_state *node = comm->node;
	int class = write_blocks(comm, node, send, limit), awaited = 1;
	adi_node_prepare(comm, node, NODE_NEXT);
	for (int step = 1; step < comm->size && !class; step++) {
		int i = (comm->rank + step) % comm->size;
		if (!is_short(adi_block_bytes(receive, i), limit))
			continue;
		class = read_block(comm, node, i, receive, i);
		awaited++;
	}
	if (!class && awaited == comm->size)
		node->all_done = node->seq - 1;
	adi_node_end_step(comm, node);
	return class;
}

/* ---- collectives ---- */

/* Whether this rank may use the segment; else *class is the error. root: see adi_node_follows_barrier. */
static bool start(const struct adi_comm *comm, int root, int *class)
{
	struct node_state *node = comm->node;
	*class = node->state == NODE_BROKEN ? adi_node_error_broken(comm) : MPI_SUCCESS;
	if (*class)
		return false;
	adi_node_follows_barrier(node, root);
	return true;
}

int adi_node_gatherv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root)
{
	size_t limit = limit_of_one(comm);
	bool at_root = comm->rank == root;
	int class;
	if (start(comm, -1, &class))
		class = gather_short(comm, send, receive, root, limit);
	if (!class && at_root && send)
		class = adi_node_copy_own(send, 0, receive, root);
	int other = exchange_long(comm, (struct side){ at_root ? NULL : send, root }, (struct side){ at_root ? receive : NULL, -1 },
				  limit);
	return class ? class : other;
}

int adi_node_scatterv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root)
{
	size_t limit = limit_of_several(comm, NODE_PIECE);
	bool at_root = comm->rank == root;
	int class;
	if (start(comm, root, &class))
		class = scatter_short(comm, send, receive, root, limit);
	if (!class && at_root && receive)
		class = adi_node_copy_own(send, root, receive, 0);
	int other = exchange_long(comm, (struct side){ at_root ? send : NULL, -1 }, (struct side){ at_root ? NULL : receive, root },
				  limit);
	return class ? class : other;
}

/* The bytes of a rank's block in the step that begins at byte `at` of each block. */
static size_t bytes_of_step(const struct adi_blocks *blocks, int i, size_t at)
{
	size_t bytes = (size_t)adi_block_bytes(blocks, i), left = bytes > at ? bytes - at : 0;
	return left < NODE_LARGE ? left : NODE_LARGE;
}

/* The own blocks are copied while the data of the other rank are on their way. */
static int pair_step(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, size_t at)
{
	struct node_state *node = comm->node;
	int other = !comm->rank;
	size_t out = bytes_of_step(send, other, at), in = bytes_of_step(receive, other, at);
	int class = adi_node_begin(comm, node, out);
	if (!class) {
		if (out)
			class = adi_node_put(node, send, other, at, out, adi_node_data(node, comm->rank, out));
		adi_node_publish(comm, node, class ? 0 : out);
		adi_node_prepare(comm, node, NODE_NEXT);
	}
	if (!class && at == 0)
		class = adi_node_copy_own(send, comm->rank, receive, comm->rank);
	if (!class && in) {
		class = adi_node_await(comm, node, other, in);
		if (!class)
			class = adi_node_get(adi_node_data(node, other, in), receive, other, at, in);
		if (!class)
			node->all_done = node->seq - 1;
	}
	adi_node_end_step(comm, node);
	return class;
}

/* Two ranks know the sizes of both blocks, so they take as many steps as the longer one needs. */
static int exchange_pair(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive)
{
	size_t out = (size_t)adi_block_bytes(send, !comm->rank), in = (size_t)adi_block_bytes(receive, !comm->rank);
	size_t most = out > in ? out : in, at = 0;
	adi_schedule_none(comm);
	adi_node_measure(comm, comm->node, out);
	int class = most ? MPI_SUCCESS : adi_node_copy_own(send, comm->rank, receive, comm->rank);
	for (; at < most && !class; at += NODE_LARGE)
		class = pair_step(comm, send, receive, at);
	return class;
}

int adi_node_alltoallv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive)
{
	size_t limit = limit_of_several(comm, NODE_PIECE);
	int class;
	bool started = start(comm, -1, &class);
	if (comm->size == 2)
		return started ? exchange_pair(comm, send, receive) : class;
	if (started)
		class = alltoall_short(comm, send, receive, limit);
	if (!class)
		class = adi_node_copy_own(send, comm->rank, receive, comm->rank);
	int other = exchange_long(comm, (struct side){ send, -1 }, (struct side){ receive, -1 }, limit);
	return class ? class : other;
}

static int allgather_step(struct adi_comm *comm, const struct adi_blocks *send, int own, const struct adi_blocks *receive, size_t at)
{
	struct node_state *node = comm->node;
	size_t bytes = bytes_of_step(receive, comm->rank, at);
	int class = adi_node_begin(comm, node, bytes);
	if (!class) {
		if (adi_block_bytes(send, own) != adi_block_bytes(receive, comm->rank))
			class = adi_node_error_bytes(comm, comm->rank, (size_t)adi_block_bytes(send, own),
						     (size_t)adi_block_bytes(receive, comm->rank));
		else if (bytes)
			class = adi_node_put(node, send, own, at, bytes, adi_node_data(node, comm->rank, bytes));
		adi_node_publish(comm, node, class ? 0 : bytes);
	}
	for (int step = 1; step < comm->size && !class; step++) {
		int i = (comm->rank + step) % comm->size;
		bytes = bytes_of_step(receive, i, at);
		class = adi_node_await(comm, node, i, bytes);
		if (!class && bytes)
			class = adi_node_get(adi_node_data(node, i, bytes), receive, i, at, bytes);
	}
	if (!class)
		node->all_done = node->seq - 1;
	adi_node_end_step(comm, node);
	return class;
}

int adi_node_allgatherv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count most)
{
	int class;
	if (!start(comm, -1, &class))
		return class;
	adi_node_measure(comm, comm->node, (size_t)most);
	for (size_t at = 0; at < (size_t)most && !class; at += NODE_LARGE)
		class = allgather_step(comm, send ? send : receive, send ? 0 : comm->rank, receive, at);
	return class || !send ? class : adi_node_copy_own(send, 0, receive, comm->rank);
}
