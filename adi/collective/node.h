/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking collectives among ranks of one machine, through a segment of shared memory. The segment of a communicator is made by
 * one of its first collectives that could use it (node_segment.c); node.c has the steps, node_reduce.c, node_bcast.c,
 * node_blocks.c, node_direct.c and node_uneven.c the collectives.
 *
 * Layout: a header; then for each rank a line `done` and SLOTS slots of one line; then for each rank the data: NODE_CHUNK bytes for
 * each slot, and a ring of NODE_RING bytes.
 *
 * Protocol. Every step of a collective (a barrier, or one chunk of data of the others) has the same number, seq, at all ranks:
 * the number of the blocking collective in the communicator, and in the last NODE_STEP_BITS bits the number of the step in it.
 * If counts disagree, ranks take different numbers of steps in a collective, but number the steps of the next collective alike.
 * slot_of says which slot of a rank is for its data of a step. Data of more than NODE_CHUNK bytes, and if the processors are
 * far apart those of more than NODE_SHORT bytes, lie in the rank's ring, behind the last such data of the rank. The slot says
 * where. Every word has one writer, the rank to which it belongs.
 *	on write    The writer waits until done >= the step for which it last used the slot at all ranks: then nobody reads what the
 *	            slot holds. For the ring it waits until done >= the step of the last data that lie where it will write. It
 *	            writes the data and then stores seq in the slot's flag (release). The slot also has the bytes of the rank's data
 *	            in the whole collective, which all readers compare with what they expect.
 *	on read     A reader waits for flag >= seq (acquire, pairs with the release: it then sees the data). The flag cannot pass
 *	            seq before the reader's done allows it, if the writer has written this step.
 *	after read  The reader stores seq in its done (release: its reads precede). The writer's acquire of done pairs with it.
 *	            A rank that reads nothing in a step stores seq all the same. At the end of a collective, also after an error and
 *	            if the rank takes no step, it stores the last number that this collective could have.
 *	on disagreement  A rank stores a flag before its done. So if done of the awaited rank is >= seq and the flag is not seq,
 *	            that rank has not written this step, and will not: the reader returns MPI_ERR_TRUNCATE. The reader reaches the
 *	            end of the collective too, so no rank waits for the reader.
 * If a rank has seen the flags of all ranks for seq, all of them have ended step seq - 1, so it need not ask for their done. The
 * same holds if it has seen the done of a rank that has seen all flags (the barrier of ranks that share processors).
 *	on sleep    If other programs use the processors, or after a long wait, a rank counts itself in `sleepers`, looks at the
 *	            word once more, and sleeps on wake_ups. A rank that has stored a word wakes all sleepers. It looks at `sleepers`
 *	            without a fence, so that a step costs nothing more, and may miss one. So a sleep ends after 50 us.
 *	on death    A rank that sees that a member has died stores 1 + the member's rank in `broken`, unless another rank has done
 *	            so. Nobody clears it. All waiting ranks, and all later calls, return MPI_ERR_PROC_ABORTED. Rank 0 has a
 *	            connection to each member, so some living member sees each death. In a reduction or a gather rank 0 can leave
 *	            before the root. So a root that waits long for a rank opens a connection to it.
 */
#ifndef ADI_COLLECTIVE_NODE_H
#define ADI_COLLECTIVE_NODE_H

#include "adi/collective/reduction.h"

#include <stdatomic.h>

#define NODE_SLOTS 16
/* More ranks than this use messages. */
#define NODE_RANKS_MAX 256
/* If a collective has more steps than these bits can number, it uses the numbers of the next collectives too. The ranks then number
 * alike only if their counts agree. A step carries 1 KiB of each block or more, so this takes blocks of 1 GiB at least. */
#define NODE_STEP_BITS 20
#define NODE_LAST_STEP (((uint64_t)1 << NODE_STEP_BITS) - 1)
#define NODE_CHUNK 8192
/* Data of more than this are long. If the processors are far apart, they lie in the ring, and the writer's copies bypass its
 * caches. */
#define NODE_SHORT 2048
#define NODE_INLINE 48
#define NODE_GIVEN_UP UINT32_MAX
/* Most data of a rank in a step. */
#define NODE_LARGE 262144
/* As large as a processor's second cache: if the readers' caches still held the lines that a rank writes, each line would cost
 * three times as much. */
#define NODE_RING ((size_t)1 << 20)
/* Least and most bytes of a step of a pipeline, if each rank has a processor. */
#define NODE_PIECE_LEAST 16384
#define NODE_PIECE 65536
/* For adi_node_prepare. */
#define NODE_NEXT 1
#define NODE_LATER 4
/* Data of a rank. */
#define NODE_DATA ((size_t)NODE_SLOTS * NODE_CHUNK + NODE_RING)

struct node_slot {
	_Alignas(64) _Atomic uint64_t flag;
	uint64_t total;             /* bytes of the rank's data in all steps of the collective; 0 after an error */
	union {
		char data[NODE_INLINE]; /* data of at most this size */
		uint64_t at;        /* where more data lie: offset in the rank's data, in the slot's chunk or in the ring */
	} of;
};

struct node_member {
	_Alignas(64) _Atomic uint64_t done;
	struct node_slot slot[NODE_SLOTS];
};

struct node_shared {
	_Alignas(64) uint64_t cookie[2]; /* random: that a process has mapped the right memory */
	_Alignas(64) _Atomic uint32_t broken; /* 0; 1 + rank of the member that has died; NODE_GIVEN_UP: another error */
	_Atomic uint32_t sleepers;       /* ranks that sleep until wake-ups change */
	_Atomic uint32_t wake_ups;       /* futex: a rank that has stored a flag or `done` adds 1 if there are sleepers */
	_Alignas(64) struct node_member member[];
};
_Static_assert(sizeof(struct node_slot) == 64, "one line");

/* Of a communicator, in comm->node. */
struct node_state {
	enum { NODE_FIRST_CALLS, NODE_SHARED, NODE_BROKEN, NODE_NEVER } state;
	int calls;
	struct node_shared *shared; /* mapped; NULL: none */
	size_t bytes;
	bool oversubscribed;        /* adi_job.oversubscribed of rank 0, so that all ranks take the same steps */
	char *chunks;               /* in shared: [ranks], each [NODE_SLOTS][NODE_CHUNK] and [NODE_RING] */
	uint64_t call;              /* number of the last blocking collective, in the segment or not */
	uint64_t seq;               /* of the last step; between collectives, the last number that the last one could have */
	uint64_t used[NODE_SLOTS];  /* the step for which this rank last used each of its slots; 0: none */
	uint64_t all_done;          /* all ranks have ended at least this step */
	/* This rank's data in its ring, the last ones: their steps and the places where they begin. Places count all bytes ever
	 * written and skipped, so the place in the ring is the remainder by NODE_RING. */
	struct node_run {
		uint64_t seq, begin;
	} run[NODE_SLOTS];
	uint64_t runs;
	uint64_t ring_end;          /* the place behind the last data */
	uint64_t cookie[2];         /* of the segment, for node_direct.c */
	bool watches;               /* this rank is the root of a reduction or gather, and rank 0 may leave it before this rank */
	bool no_direct;             /* a rank cannot read the memory of another one */
	bool direct;                /* the last call of adi_node_use has chosen ADI_ALGORITHM_DIRECT */
	bool after_barrier;         /* the last collective was a barrier */
	int next_root;              /* of the broadcast or scatter that followed the last barrier but one; -1: another collective.
				     * Ranks may differ in it */
	struct adi_levels *levels;  /* the ranks are on several machines: two_level.h; NULL: they are not, or it is not known */
	uint32_t levels_from;       /* number of the first nonblocking collective that may have two levels: two_level.h */
	uint32_t distances;         /* the last samples of adi_node_measure, one bit each; 1: short */
	unsigned measures;          /* number of samples; stays at that of the bits that count */
	unsigned long_calls;        /* collectives of long data since the last sample */
	uint64_t seen_done;         /* what this rank last read of the done of the next rank */
	unsigned barriers;          /* in which this rank waited for all others */
	bool near;                  /* the last sample of a barrier was short */
};

/* Whether the ranks of the communicator may share a segment. True for an intracommunicator, until an attempt to make the segment
 * has failed, for example because the ranks are on several machines. */
struct node_state *adi_node_find(struct adi_comm *comm);
static inline bool adi_node_possible(struct adi_comm *comm)
{
	struct node_state *node = comm->node ? comm->node : adi_node_find(comm);
	return node->state != NODE_NEVER;
}
/* Whether the ranks may share a segment, or are on several machines: two_level.h. */
static inline bool adi_blocking_choice(struct adi_comm *comm)
{
	return adi_node_possible(comm) || ((struct node_state *)comm->node)->levels;
}
/* Whether this blocking collective runs in the segment. All ranks get the same answer if they have the same bytes; the segment may
 * be made now. If it could not be made because a member has died, the answer is yes, and the collective returns the error. Each
 * blocking collective calls it once, even without data, as it counts the collectives. root: of a broadcast or scatter, else -1.
 * If there is a segment and the answer is no, it leaves the collective, but for the receiver of a broadcast of two. */
bool adi_node_use(struct adi_comm *comm, enum adi_collective collective, size_t bytes, bool ordered, int root);
/* A nonblocking or persistent collective has started. root: as above. */
void adi_node_started(struct adi_comm *comm, int root);
/* The same as adi_node_use for a reduction. Only predefined, contiguous datatypes can be reduced in the segment. */
bool adi_node_reduces(struct adi_comm *comm, enum adi_collective collective, const struct adi_reduction *reduction);

/* The collectives, after adi_node_use has said yes. Return an error class. */
int adi_node_barrier(struct adi_comm *comm);
/* *message: true if it has failed because the counts of two ranks differ, and the root sends a message instead. */
int adi_node_bcast(struct adi_comm *comm, void *buf, MPI_Count count, struct adi_type *type, int root, bool *message);
int adi_node_reduce(struct adi_comm *comm, const struct adi_reduction *reduction, int root);
int adi_node_allreduce(struct adi_comm *comm, const struct adi_reduction *reduction);

/* Reduce_scatter_block: reduction->count elements of each rank, receive for a block. */
int adi_node_reduce_scatter(struct adi_comm *comm, const struct adi_reduction *reduction);

/* node_blocks.c. send is NULL if it is in place. bytes: of a block. */
struct adi_blocks;
int adi_node_allgather(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes);
int adi_node_alltoall(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes);
/* node_direct.c: the same with one copy. send is not NULL. *done: false if a rank could not read, and nothing has been done. */
int adi_node_alltoall_direct(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive,
			     MPI_Count bytes, bool *done);
/* send: of ranks but the root, and of the root if its block is not in place. receive: of the root. */
int adi_node_gather(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes,
		    int root);
int adi_node_scatter(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes,
		     int root);

/* node_uneven.c: the v forms; alltoallw is alltoallv with a type for each block. send: as above; alltoallv is not in place. most:
 * bytes of the longest block. */
int adi_node_gatherv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root);
int adi_node_scatterv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, int root);
int adi_node_allgatherv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count most);
int adi_node_alltoallv(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive);

/* node_blocks.c. Copy bytes [at, at + bytes) of block i to the segment, or from it. copy_own: between two blocks of this rank. */
int adi_node_put(const struct node_state *node, const struct adi_blocks *from, int i, size_t at, size_t bytes, char *to);
int adi_node_get(const char *from, const struct adi_blocks *to, int i, size_t at, size_t bytes);
int adi_node_copy_own(const struct adi_blocks *from, int i, const struct adi_blocks *to, int j);

/* Steps, for the collectives. Return an error class. enter: begins a collective after adi_node_use. begin: ends the last step of
 * the collective, and begins one in which this rank writes at most bytes; afterwards it may write adi_node_data of its rank, and
 * publishes it. skip: the same for a rank that does not write. total: bytes of the rank's data in all steps of the collective.
 * await: waits for the data of a rank; it is an error if they have another total. leave: ends the collective, when this rank has
 * read what it needs; also after an error, so that others do not wait for this rank. */
int adi_node_enter(const struct adi_comm *comm, struct node_state *node);
int adi_node_begin(const struct adi_comm *comm, struct node_state *node, size_t bytes);
void adi_node_skip(const struct adi_comm *comm, struct node_state *node);
void adi_node_leave(const struct adi_comm *comm, struct node_state *node);
/* Bytes of one step of a pipeline through which `bytes` flow from one rank to others; the same at all ranks. */
size_t adi_node_piece(const struct node_state *node, size_t bytes);
/* Fetches the first slot of a later collective for writing, after a step was published. So the later store need not wait until the
 * readers' caches have given up the line. NODE_LATER: for collectives in which writers do not wait for readers. NODE_NEXT: for
 * those in which all ranks wait for each other. */
void adi_node_prepare(const struct adi_comm *comm, const struct node_state *node, unsigned calls);
/*
 * Before a rank waits for another one that probably comes at the same time. If it looked at the other rank's flag before that rank
 * has stored it, the look would cost two more transfers between the processors: the writer takes the line back, and the reader
 * fetches it again. After a barrier the ranks would also leave apart. A pause takes about 20 ns.
 */
void adi_node_give_time(const struct node_state *node, int pauses);
char *adi_node_data(const struct node_state *node, int rank, size_t bytes);
/*
 * Copies into the segment. Lines that another processor fetches from this one's cache cost up to 20 times as much as the copy
 * if the processors are far apart (in different caches of the last level); long data then bypass the caches.
 * adi_node_measure: a collective of this many bytes begins; for some of the long ones it measures whether the processors are
 * far apart. adi_node_past_caches: true if a copy of this many bytes is to bypass the caches.
 */
void adi_node_measure(const struct adi_comm *comm, struct node_state *node, size_t bytes);
bool adi_node_past_caches(const struct node_state *node, size_t bytes);
/* Measures how long the line of a word of another rank takes. *seen: the value that this rank has last read. UNKNOWN: the other
 * rank has written nothing since, so the line may have been in this rank's cache. */
enum node_distance { NODE_UNKNOWN, NODE_NEAR, NODE_FAR };
enum node_distance adi_node_distance(const _Atomic uint64_t *word, uint64_t *seen);
void adi_node_copy(const struct node_state *node, void *to, const void *from, size_t bytes);
void adi_node_publish(const struct adi_comm *comm, const struct node_state *node, size_t total);
int adi_node_await(const struct adi_comm *comm, const struct node_state *node, int rank, size_t total);
/* Waits for the data of a rank, of any size. */
int adi_node_await_some(const struct adi_comm *comm, const struct node_state *node, int rank, size_t *total);
int adi_node_error_bytes(const struct adi_comm *comm, int rank, size_t theirs, size_t mine);
int adi_node_await_all(const struct adi_comm *comm, struct node_state *node, size_t total);
int adi_node_error_broken(const struct adi_comm *comm);

/* Waits until `rank` has begun this collective, in the segment or with messages. The calling rank may use either, and has not left
 * the collective. *wrote: true if `rank` uses the segment and has written its first step. Returns an error class. */
int adi_node_wrote(const struct adi_comm *comm, const struct node_state *node, int rank, bool *wrote);

/* node_segment.c: makes the segment, or exchanges the machines of the ranks. Collective. Sets node->state. */
void adi_node_make(struct adi_comm *comm, struct node_state *node);

#endif
