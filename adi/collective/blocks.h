/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks: the data of a buffer that belong to each peer. The arguments of gather, scatter, allgather, alltoall and their v and w
 * forms, on the side that sends or on the side that receives, become blocks. So one builder serves all of these forms.
 */
#ifndef ADI_COLLECTIVE_BLOCKS_H
#define ADI_COLLECTIVE_BLOCKS_H

#include "adi/collective/node.h"
#include "adi/collective/schedule.h"
#include "adi/collective/select.h"
#include "adi/core/array.h"

struct adi_blocks {
	uintptr_t buf;
	MPI_Count count;           /* elements of every block, if counts.values is NULL */
	MPI_Count unit;            /* bytes: from block to block, or what displacements count */
	struct adi_array counts;   /* elements of each block */
	struct adi_array displs;   /* of each block, in units */
	struct adi_type *type;     /* of all blocks; NULL: each has its own of types */
	const MPI_Datatype *types; /* committed, except those of empty blocks */
};

/* Hold the datatypes of blocks that are not empty. While a blocking collective waits, another thread may free them. n: the number
 * of peers. A side without blocks is all 0. */
void adi_blocks_hold(const struct adi_blocks *send, const struct adi_blocks *receive, int n);
/* Ends a blocking collective: waits for its schedule, if it has one and class is no error, and releases the datatypes. Returns the
 * error class. */
int adi_blocks_end(int class, struct adi_schedule *schedule, const struct adi_blocks *send, const struct adi_blocks *receive,
		   int n);

/* The side of a collective to which arguments belong; for the names of arguments in errors. */
enum adi_side { ADI_SENDS, ADI_RECEIVES };

/* Each checks the arguments of one side and describes them. Returns an error class. n: the number of peers. equal: block i stands
 * behind block i - 1. same: there is one block, which all peers share. */
int adi_blocks_equal(struct adi_blocks *blocks, enum adi_side side, const void *buf, MPI_Count count, MPI_Datatype type);
int adi_blocks_same(struct adi_blocks *blocks, enum adi_side side, const void *buf, MPI_Count count, MPI_Datatype type);
int adi_blocks_v(struct adi_blocks *blocks, enum adi_side side, const void *buf, struct adi_array counts, struct adi_array displs,
		 MPI_Datatype type, int n);
int adi_blocks_w(struct adi_blocks *blocks, enum adi_side side, const void *buf, struct adi_array counts, struct adi_array displs,
		 const MPI_Datatype *types, int n);

/* Checks that a buffer is not MPI_IN_PLACE, where that is not allowed. */
int adi_check_not_in_place(const void *buf, enum adi_side side, const char *where);
/* Checks that block i to send and block j to receive, of predefined datatypes, are not the same memory. */
int adi_check_alias(const struct adi_blocks *send, int i, const struct adi_blocks *receive, int j);

static inline MPI_Count adi_block_count(const struct adi_blocks *blocks, int i)
{
	return blocks->counts.values ? adi_at(blocks->counts, i) : blocks->count;
}
static inline void *adi_block_at(const struct adi_blocks *blocks, int i)
{
	MPI_Count displ = blocks->displs.values ? adi_at(blocks->displs, i) : i;
	return (void *)(blocks->buf + (uintptr_t)(displ * blocks->unit));
}
struct adi_type *adi_block_type_of_handle(const struct adi_blocks *blocks, int i);
/* Of a block that is not empty. */
static inline struct adi_type *adi_block_type(const struct adi_blocks *blocks, int i)
{
	return blocks->type ? blocks->type : adi_block_type_of_handle(blocks, i);
}
/* Bytes of data. They are the same on both sides of a message. */
static inline MPI_Count adi_block_bytes(const struct adi_blocks *blocks, int i)
{
	MPI_Count count = adi_block_count(blocks, i);
	return count ? count * adi_block_type(blocks, i)->size : 0;
}
/* Blocks stand one behind the other, so that n of them are one block of n * count elements. */
static inline bool adi_blocks_joined(const struct adi_blocks *blocks)
{
	return !blocks->counts.values && blocks->unit == blocks->count * blocks->type->extent;
}

/* Steps with a whole block; nothing if the block has no bytes. peer: of the remote group. */
void adi_block_send(struct adi_schedule *schedule, const struct adi_blocks *blocks, int i, int peer);
void adi_block_receive(struct adi_schedule *schedule, const struct adi_blocks *blocks, int i, int peer);
void adi_block_copy(struct adi_schedule *schedule, const struct adi_blocks *from, int i, const struct adi_blocks *to, int j);
/* Steps between n blocks from first on and packed bytes. If the blocks are joined, pack and unpack are one step. */
void adi_blocks_pack(struct adi_schedule *schedule, const struct adi_blocks *from, int first, int n, char *to);
void adi_blocks_unpack(struct adi_schedule *schedule, const char *from, const struct adi_blocks *to, int first, int n);

/* The number of peers: processes that the ranks in messages name. */
static inline int adi_peers(const struct adi_comm *comm)
{
	return comm->remote->size;
}
/* Whether this process is the root of a collective. */
static inline bool adi_at_root(const struct adi_comm *comm, int root)
{
	return comm->inter ? root == MPI_ROOT : root == comm->rank;
}

/*
 * exchange.c. Sends block i of one side to each peer i and receives block i of the other side from each peer i. A limited number
 * of messages and of bytes is under way at a time; blocks larger than the limit go one by one (pairwise exchange). Ranks may have
 * different limits.
 */
void adi_exchange(struct adi_schedule *schedule, const struct adi_comm *comm, const struct adi_blocks *send,
		  const struct adi_blocks *receive);
/* Before the messages of a step of such an exchange, of this many bytes, are added: ends the round if it has enough already. load:
 * what the round has; zero at first. */
struct adi_load {
	int steps;
	MPI_Count bytes;
};
void adi_exchange_step(struct adi_schedule *schedule, struct adi_load *load, MPI_Count bytes);
/* adi_exchange if the blocks to send are in the place of those to receive. Intracommunicators only. */
void adi_exchange_in_place(struct adi_schedule *schedule, const struct adi_comm *comm, const struct adi_blocks *blocks);

/* Selects the algorithm. bytes: size of a block; the mean if the blocks differ. Returns `otherwise` for an intercommunicator, for a
 * single rank and for empty blocks, where there is nothing to select. */
static inline enum adi_algorithm adi_choose(enum adi_collective collective, const struct adi_comm *comm, MPI_Count bytes,
					    enum adi_algorithm otherwise)
{
	bool choice = !comm->inter && comm->size > 1 && bytes > 0;
	return choice ? adi_select(collective, (size_t)bytes, comm->size, true, 0) : otherwise;
}

/* For adi_choose_node of a v form: not all ranks know the sizes of the blocks. */
#define ADI_UNKNOWN_BYTES 1
/* Returns whether a blocking collective runs in the shared segment of the node. bytes: size of a block, the same at all ranks.
 * root: see adi_node_use. */
static inline bool adi_choose_node(enum adi_collective collective, struct adi_comm *comm, MPI_Count bytes, int root)
{
	return adi_node_possible(comm) && adi_node_use(comm, collective, (size_t)bytes, false, root);
}

#endif
