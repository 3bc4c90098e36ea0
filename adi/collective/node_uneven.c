/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gatherv, scatterv, allgatherv, alltoallv and alltoallw in a shared segment: node.h has the protocol. Only the sender and the
 * receiver of a block know its size. So there is one step, whatever the sizes. A block up to a limit (limit_of_one,
 * limit_of_several) goes through the segment, a longer one is a message. The sender's size decides, and the receiver learns it from
 * the segment: if the receiver expects another size, it returns an error, and the sender does not wait for it. A rank that sends to
 * several ranks writes a table of the places of the blocks before them. An allgatherv, and an alltoallv or alltoallw of two ranks,
 * are different: all ranks know all sizes, so these take as many steps as the longest block needs.
 */
#include "adi/collective/blocks.h"
#include "adi/collective/node.h"

#include <string.h>

/* Up to this number of ranks, blocks of a gatherv up to NODE_PIECE go through the segment, with more ranks up to
 * MANY_RANKS_BYTES. */
#define FEW_RANKS 16
#define MANY_RANKS_BYTES 8192

/* The table: where the block of each rank begins in the data of the step, and where the last block ends. If a rank has no block,
 * its place is that of the next block. The same holds if the block is a message; then the place has the bit LONG too. */
#define LONG ((uint32_t)1 << 31)
static size_t table_bytes(const struct adi_comm *comm)
{
	return ((size_t)comm->size + 1) * sizeof(uint32_t);
}

/* The longest block that goes through the segment, if a rank sends to several ranks. most: an upper limit, even if the step has
 * room for more. */
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

/* Ranks that send this rank a block as a message, one bit each. */
struct senders {
	uint64_t bits[NODE_RANKS_MAX / 64];
};

static void senders_set(struct senders *senders, int rank, bool sends)
{
	uint64_t *bits = &senders->bits[rank / 64];
	*bits = (*bits & ~((uint64_t)1 << rank % 64)) | (uint64_t)sends << rank % 64;
}

static bool senders_have(const struct senders *senders, int rank)
{
	return senders->bits[rank / 64] >> rank % 64 & 1;
}

/* One side of the long blocks. only: the rank to which block 0 goes, or from which it comes; -1: block i belongs to rank i. */
struct side {
	const struct adi_blocks *blocks; /* NULL: this rank has none */
	int only;
};

/* The index of the block of a rank, or -1. */
static int block_of(const struct side *side, int rank)
{
	if (!side->blocks || (side->only >= 0 && side->only != rank))
		return -1;
	return side->only < 0 ? rank : 0;
}

static bool is_long(const struct side *side, int rank, size_t limit)
{
	int i = block_of(side, rank);
	MPI_Count bytes = i < 0 ? 0 : adi_block_bytes(side->blocks, i);
	return bytes > 0 && (size_t)bytes > limit;
}

/* What this rank knows before it has looked into the segment: its own sizes. If a rank has died, it may not look at all. */
static void senders_start(struct senders *senders, const struct adi_comm *comm, struct side receive, size_t limit)
{
	*senders = (struct senders){ { 0 } };
	if (!receive.blocks)
		return;
	int first = receive.only < 0 ? 0 : receive.only, last = receive.only < 0 ? comm->size - 1 : receive.only;
	for (int i = first; i <= last; i++)
		senders_set(senders, i, i != comm->rank && is_long(&receive, i, limit));
}

static bool any_long(const struct adi_comm *comm, const struct side *send, const struct senders *senders, size_t limit)
{
	for (size_t i = 0; i < sizeof senders->bits / sizeof *senders->bits; i++)
		if (senders->bits[i])
			return true;
	for (int i = 0; send->blocks && i < comm->size; i++)
		if (i != comm->rank && is_long(send, i, limit))
			return true;
	return false;
}

/* If this rank's block is empty, receives the message all the same: this is an error, but the sender does not wait. */
static void receive_long(struct adi_schedule *schedule, const struct side *receive, int from)
{
	int i = block_of(receive, from);
	if (i >= 0 && adi_block_bytes(receive->blocks, i))
		adi_block_receive(schedule, receive->blocks, i, from);
	else
		adi_schedule_receive(schedule, NULL, 0, adi_type_byte, from);
}

static MPI_Count bytes_with(const struct side *side, int rank, bool has_message)
{
	int i = has_message ? block_of(side, rank) : -1;
	return i < 0 ? 0 : adi_block_bytes(side->blocks, i);
}

/* Sends and receives the long blocks. All ranks call it, also after an error: others may wait for a block. */
static int exchange_long(struct adi_comm *comm, struct side send, struct side receive, const struct senders *senders, size_t limit)
{
	int n = comm->size, rank = comm->rank;
	if (!any_long(comm, &send, senders, limit)) {
		adi_schedule_none(comm);
		return MPI_SUCCESS;
	}
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	struct adi_load load = { 0 };
	for (int step = 1; step < n; step++) {
		int from = (rank + n - step) % n, to = (rank + step) % n;
		bool receives = senders_have(senders, from), sends = is_long(&send, to, limit);
		if (send.blocks && receive.blocks)
			adi_exchange_step(schedule, &load, bytes_with(&receive, from, receives) + bytes_with(&send, to, sends));
		if (receives)
			receive_long(schedule, &receive, from);
		if (sends)
			adi_block_send(schedule, send.blocks, block_of(&send, to), to);
	}
	return adi_schedule_wait(schedule);
}

/* ---- short blocks ---- */

static void write_place(char *data, int i, size_t at, bool is_message)
{
	uint32_t place = (uint32_t)at | (is_message ? LONG : 0);
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
		write_place(to, i, at, bytes > 0 && (size_t)bytes > limit);
		if (!is_short(bytes, limit))
			continue;
		class = adi_node_put(node, send, i, 0, (size_t)bytes, to + at);
		at += (size_t)bytes;
	}
	write_place(to, comm->size, at, false);
	adi_node_publish(comm, node, class ? 0 : all);
	return class;
}

static int await_size(const struct adi_comm *comm, const struct node_state *node, int rank, size_t *all, struct senders *senders)
{
	int class = adi_node_await_some(comm, node, rank, all);
	/* The rank has not taken this step, so it sends no message either. */
	if (class == MPI_ERR_TRUNCATE)
		senders_set(senders, rank, false);
	return class;
}

/* Reads this rank's block from what a rank has written, or learns that the block is a message. */
static int read_block(const struct adi_comm *comm, const struct node_state *node, int writer, const struct adi_blocks *receive,
		      int i, size_t limit, struct senders *senders)
{
	size_t all, bytes = (size_t)adi_block_bytes(receive, i);
	uint32_t place[2] = { 0 }; /* begin and end */
	int class = await_size(comm, node, writer, &all, senders);
	if (class)
		return class;
	const char *from = adi_node_data(node, writer, all);
	if (all >= table_bytes(comm) && all <= NODE_LARGE)
		memcpy(place, from + (size_t)comm->rank * sizeof *place, sizeof place);
	else /* the writer had an error, but sends its long blocks all the same. This rank can only suppose that the sizes agree */
		place[0] = bytes > limit ? LONG : 0;
	senders_set(senders, writer, place[0] & LONG);
	if (place[0] & LONG && bytes > limit)
		return MPI_SUCCESS;
	place[0] &= ~LONG;
	place[1] &= ~LONG;
	if (place[1] < place[0] || place[1] - place[0] != bytes || place[1] > all)
		return adi_node_error_bytes(comm, writer, place[1] - place[0], bytes);
	return bytes ? adi_node_get(from + place[0], receive, i, 0, bytes) : MPI_SUCCESS;
}

static int gather_one(const struct adi_comm *comm, const struct node_state *node, int i, const struct adi_blocks *receive,
		      size_t limit, struct senders *senders)
{
	size_t bytes = (size_t)adi_block_bytes(receive, i), theirs;
	int class = await_size(comm, node, i, &theirs, senders);
	if (class)
		return class;
	senders_set(senders, i, theirs > limit);
	if (theirs > limit && bytes > limit)
		return MPI_SUCCESS; /* the message's bytes are compared when it arrives */
	if (theirs != bytes)
		return adi_node_error_bytes(comm, i, theirs, bytes);
	return bytes ? adi_node_get(adi_node_data(node, i, bytes), receive, i, 0, bytes) : MPI_SUCCESS;
}

/* If the rank's block is empty or long, the rank writes only the block's size. */
static int gather_write(const struct adi_comm *comm, struct node_state *node, const struct adi_blocks *send, size_t limit)
{
	MPI_Count total = adi_block_bytes(send, 0);
	size_t bytes = is_short(total, limit) ? (size_t)total : 0;
	adi_node_measure(comm, node, bytes);
	int class = adi_node_begin(comm, node, bytes);
	if (class)
		return class;
	if (bytes)
		class = adi_node_put(node, send, 0, 0, bytes, adi_node_data(node, comm->rank, bytes));
	adi_node_publish(comm, node, class ? 0 : (size_t)total);
	return class;
}

static int gather_short(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root,
			size_t limit, struct senders *senders)
{
	struct node_state *node = comm->node;
	int class = MPI_SUCCESS;
	if (comm->rank != root) {
		class = gather_write(comm, node, send, limit);
	} else {
		adi_node_skip(comm, node);
		node->watches = true;
		/* Goes on after an error: other ranks may send a message. */
		for (int i = 0; i < comm->size && class != MPI_ERR_PROC_ABORTED; i++) {
			int other = i == root ? MPI_SUCCESS : gather_one(comm, node, i, receive, limit, senders);
			class = class && other != MPI_ERR_PROC_ABORTED ? class : other;
		}
		node->watches = false;
	}
	adi_node_leave(comm, node);
	return class;
}

static int scatter_short(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root,
			 size_t limit, struct senders *senders)
{
	struct node_state *node = comm->node;
	int class;
	if (comm->rank == root) {
		class = write_blocks(comm, node, send, limit);
		adi_node_prepare(comm, node, NODE_LATER);
	} else {
		adi_node_skip(comm, node);
		adi_node_give_time(node, 1); /* the root has more to do before its store */
		class = read_block(comm, node, root, receive, 0, limit, senders);
	}
	adi_node_leave(comm, node);
	return class;
}

static int alltoall_short(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, size_t limit,
			  struct senders *senders)
{
	struct node_state *node = comm->node;
	int class = write_blocks(comm, node, send, limit);
	adi_node_prepare(comm, node, NODE_NEXT);
	/* Goes on after an error: other ranks may send a message. */
	for (int step = 1; step < comm->size && class != MPI_ERR_PROC_ABORTED; step++) {
		int i = (comm->rank + step) % comm->size, other = read_block(comm, node, i, receive, i, limit, senders);
		class = class && other != MPI_ERR_PROC_ABORTED ? class : other;
	}
	if (!class)
		node->all_done = node->seq - 1;
	adi_node_leave(comm, node);
	return class;
}

/* ---- collectives ---- */

int adi_node_gatherv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root)
{
	size_t limit = limit_of_one(comm);
	bool at_root = comm->rank == root;
	struct side from = { at_root ? receive : NULL, -1 };
	struct senders senders;
	senders_start(&senders, comm, from, limit);
	int class = adi_node_enter(comm, comm->node);
	if (!class)
		class = gather_short(comm, send, receive, root, limit, &senders);
	if (!class && at_root && send)
		class = adi_node_copy_own(send, 0, receive, root);
	int other = exchange_long(comm, (struct side){ at_root ? NULL : send, root }, from, &senders, limit);
	return class ? class : other;
}

int adi_node_scatterv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root)
{
	size_t limit = limit_of_several(comm, NODE_PIECE);
	bool at_root = comm->rank == root;
	struct side from = { at_root ? NULL : receive, root };
	struct senders senders;
	senders_start(&senders, comm, from, limit);
	int class = adi_node_enter(comm, comm->node);
	if (!class)
		class = scatter_short(comm, send, receive, root, limit, &senders);
	if (!class && at_root && receive)
		class = adi_node_copy_own(send, root, receive, 0);
	int other = exchange_long(comm, (struct side){ at_root ? send : NULL, -1 }, from, &senders, limit);
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
	if (class)
		return class;
	if (out)
		class = adi_node_put(node, send, other, at, out, adi_node_data(node, comm->rank, out));
	adi_node_publish(comm, node, class ? 0 : (size_t)adi_block_bytes(send, other));
	adi_node_prepare(comm, node, NODE_NEXT);
	if (!class && at == 0)
		class = adi_node_copy_own(send, comm->rank, receive, comm->rank);
	if (class || (at && !in))
		return class;
	class = adi_node_await(comm, node, other, (size_t)adi_block_bytes(receive, other));
	if (!class && in)
		class = adi_node_get(adi_node_data(node, other, in), receive, other, at, in);
	if (!class)
		node->all_done = node->seq - 1;
	return class;
}

/* Two ranks know the sizes of both blocks, so they take as many steps as the longer one needs. */
static int exchange_pair(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive)
{
	size_t out = (size_t)adi_block_bytes(send, !comm->rank), in = (size_t)adi_block_bytes(receive, !comm->rank);
	size_t most = out > in ? out : in, at = 0;
	adi_node_measure(comm, comm->node, out);
	int class = most ? MPI_SUCCESS : adi_node_copy_own(send, comm->rank, receive, comm->rank);
	for (; at < most && !class; at += NODE_LARGE)
		class = pair_step(comm, send, receive, at);
	adi_node_leave(comm, comm->node);
	return class;
}

int adi_node_alltoallv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive)
{
	size_t limit = limit_of_several(comm, NODE_PIECE);
	struct senders senders;
	int class = adi_node_enter(comm, comm->node);
	if (comm->size == 2) {
		adi_schedule_none(comm);
		return class ? class : exchange_pair(comm, send, receive);
	}
	senders_start(&senders, comm, (struct side){ receive, -1 }, limit);
	if (!class)
		class = alltoall_short(comm, send, receive, limit, &senders);
	if (!class)
		class = adi_node_copy_own(send, comm->rank, receive, comm->rank);
	int other = exchange_long(comm, (struct side){ send, -1 }, (struct side){ receive, -1 }, &senders, limit);
	return class ? class : other;
}

static int allgather_step(struct adi_comm *comm, const struct adi_blocks *send, int own, const struct adi_blocks *receive,
			  size_t at)
{
	struct node_state *node = comm->node;
	size_t total = (size_t)adi_block_bytes(receive, comm->rank), mine = (size_t)adi_block_bytes(send, own);
	size_t bytes = bytes_of_step(receive, comm->rank, at);
	int class = adi_node_begin(comm, node, bytes);
	if (class)
		return class;
	if (mine != total)
		class = adi_node_error_bytes(comm, comm->rank, mine, total);
	else if (bytes)
		class = adi_node_put(node, send, own, at, bytes, adi_node_data(node, comm->rank, bytes));
	adi_node_publish(comm, node, class ? 0 : total);
	for (int step = 1; step < comm->size && !class; step++) {
		int i = (comm->rank + step) % comm->size;
		bytes = bytes_of_step(receive, i, at);
		class = adi_node_await(comm, node, i, (size_t)adi_block_bytes(receive, i));
		if (!class && bytes)
			class = adi_node_get(adi_node_data(node, i, bytes), receive, i, at, bytes);
	}
	if (!class)
		node->all_done = node->seq - 1;
	return class;
}

int adi_node_allgatherv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count most)
{
	struct node_state *node = comm->node;
	int class = adi_node_enter(comm, node);
	adi_schedule_none(comm);
	if (class)
		return class;
	adi_node_measure(comm, node, (size_t)most);
	for (size_t at = 0; at < (size_t)most && !class; at += NODE_LARGE)
		class = allgather_step(comm, send ? send : receive, send ? 0 : comm->rank, receive, at);
	adi_node_leave(comm, node);
	return class || !send ? class : adi_node_copy_own(send, 0, receive, comm->rank);
}
