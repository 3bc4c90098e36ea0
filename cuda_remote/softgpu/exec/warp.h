/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of execution: a launch has clusters of blocks (of one block, if it asks for no clusters), a block has warps,
 * a warp has paths. A worker thread runs one cluster at a time. Until the cluster ends or is suspended (residency.h),
 * only that thread accesses it and its shared memory; the launch alone is shared. The block of rank 0 stands for its
 * cluster.
 *
 * Divergence: the lanes of a warp that are at one instruction are a path. One path runs (warp->mask), the others wait
 * in warp->others. The path in the deepest call runs first, and of several the one at the lowest address, so that paths
 * meet again where control flow joins. A path that has used up its fuel in a loop yields to other warps and blocks, and then
 * goes on: programs count on lanes that meet again behind a loop, however long it takes (lanes that exchange values in
 * shared memory without a barrier). But lanes may spin for what other lanes of their warp do behind the loop, for example
 * for a lock that one of them holds. Then lanes go ahead (launch->ahead, residency.c): a path out of fuel yields to the path
 * of its warp that has waited longest.
 */
#ifndef SOFTGPU_EXEC_WARP_H
#define SOFTGPU_EXEC_WARP_H

#include "cuda_remote/softgpu/exec/insn.h"

#include <pthread.h>

#define BARRIERS 16
#define CLUSTER_BARRIER BARRIERS /* the number in path.barrier while a path waits at the cluster's barrier */
#define WARPGROUP_WAIT (BARRIERS + 1) /* the same while it waits at wgmma.wait_group */
#define WARPGROUP_COMMITS 64 /* of a warp, that are kept */
#define BLOCK_WARPS_MAX 32
#define SPAN_SLOTS 16
#define WARP_FUEL 4096 /* backward branches until another path, warp or block runs */
#define SPIN_COST 64   /* fuel for a backward branch of a loop that waits for other threads */

enum path_state { PATH_READY, PATH_CONVERGE, PATH_BARRIER };

struct path {
	const struct insn *at; /* ready: next to run; waiting: the instruction it waits at */
	uint32_t mask;
	uint32_t depth;        /* of calls */
	enum path_state state;
	uint8_t barrier;
	uint64_t age;          /* when it was parked */
};

/* Why a warp left the interpreter. It may run again after a yield and after a preemption. */
enum warp_stop { WARP_YIELD, WARP_PREEMPTED, WARP_BLOCKED, WARP_DONE, WARP_FAULT };

/* A cached answer of softgpu_memory_find: addresses low … high-1. */
struct span_cache {
	uint64_t low, high;
	bool read_only;
};

struct saved_frame;
struct block;

struct warp {
	char *regs;
	uint32_t mask;   /* lanes of the running path */
	uint32_t depth;  /* of its calls */
	int32_t fuel;
	uint32_t other_count;
	int32_t alone;   /* the running path's lane, if it is only one; else -1 */
	struct block *block;
	/* That lane's column in rows of 16, 32 and 64 bits, as if the row began at offset 0. If alone is -1, cells4 is
	 * NULL and the others have no meaning. */
	char *cells2, *cells4, *cells8;
	_Alignas(64) int32_t lanes[WARP_LANES]; /* mask, expanded: 0 or -1 */
	_Alignas(64) uint64_t pointers[WARP_LANES]; /* of the memory access under way */
	struct path others[WARP_LANES];
	uint64_t clock;  /* the next path's age */
	uint32_t live;   /* lanes that have not exited */
	uint32_t index;  /* in the block */
	enum warp_stop stop;
	bool rotate;     /* the next path is the one that waited longest */
	bool ahead;      /* the running path was chosen by rotate: it keeps running while its fuel lasts */
	bool unblock; /* no warp of the block can go on: lanes that wait for others of their warp are to go on alone */
	uint32_t cluster_arrived; /* lanes that arrived at the cluster's barrier, which is not complete */
	uint64_t products; /* of wgmma: the warp's parts that it has computed */
	uint64_t commits, committed[WARPGROUP_COMMITS]; /* wgmma.commit_group so far; products at the latest ones */
	uint64_t awaited;  /* products that it waits for at wgmma.wait_group; 0: it does not wait there */
	bool forced;     /* the running path is not to wait for lanes that will not come */
	char *local;     /* local memory of lane 0; lane n's is n * local_bytes further */
	struct saved_frame *saved[WARP_LANES]; /* of recursive calls */
	const struct insn *single_lane_at; /* where the single-lane interpreter goes on */
	const struct insn *resume; /* preempted: where the running path goes on; else NULL */
	uint64_t executed, executed_lanes; /* instructions, and those of each lane, if the launch counts them */
};

struct barrier {
	uint32_t arrived;  /* threads */
	uint32_t expected; /* 0: all threads that have not exited */
	uint32_t ones, zeros; /* bar.red: threads whose predicate is true, and false */
};

/* What a block printed (output.h). */
struct print_buffer {
	char *text;
	size_t first, used, room; /* bytes: where the oldest record starts, where the newest ends */
	uint64_t cost;            /* of the records together */
};

/* The same of a block that has ended. */
struct kept_output {
	uint64_t block; /* its number */
	struct print_buffer print;
};

struct launch;

/* A block's turn: the time for which a worker runs it without suspending it (residency.c). */
struct turn {
	uint64_t stalls, record, compare_until; /* stalls so far; the next to record; the last to compare */
	uint64_t state;  /* as recorded */
	uint64_t began;  /* ns: its first stall */
	bool waiting;    /* it ended because the block waits */
	uint64_t era;    /* of the launch (residency.c), when it began */
	uint64_t used;   /* by the worker's thread, of the processor, until it began, ns; 0: not measured in this turn */
	uint64_t before; /* state at the end of the turn before it; 0: it is the first */
	uint64_t idle_era; /* the last era in which the block was idle */
};

struct block {
	struct launch *launch;
	struct warp *warps;
	uint32_t warp_count, warps_done;
	uint32_t live_threads;
	uint32_t index[3];
	uint32_t multiprocessor; /* %smid, if the program reads it */
	uint64_t number;
	uint64_t generation;   /* softgpu_memory_generation() that spans belong to */
	uint64_t constants_of; /* grid_id of the launch whose constants the warps' rows hold */
	char *shared;
	uint32_t shared_bytes; /* static and dynamic */
	struct barrier barriers[BARRIERS];
	uint32_t warpgroup_waits; /* warps that wait at wgmma.wait_group */
	uint32_t rank;         /* in the cluster */
	struct block *first;   /* the cluster's block of rank 0, which owns the others */
	/* Of the block of rank 0 only: */
	struct block *members[SOFTGPU_CLUSTER_MAX]; /* the cluster's blocks by rank, itself included; beyond: spare ones */
	bool cluster_arrivals; /* some thread has arrived at the cluster's barrier, which is not complete */
	struct print_buffer print;
	struct block_check *check; /* check.h; used where the launch has one */
	struct turn turn;
	struct span_cache spans[SPAN_SLOTS];
	/* memory behind the pointers above, kept from block to block */
	void *memory;
	size_t memory_size;
	struct block *next;
};

/* The resident blocks of a launch (residency.h). */
struct residency {
	/* A cluster counts as one block. */
	uint64_t most;             /* blocks that may be resident at a time */
	uint64_t resident;         /* atomic */
	bool waits;                /* atomic: one of them was found waiting for others */
	pthread_mutex_t lock;      /* of what follows */
	struct block *first, **end; /* suspended blocks, the longest suspended first */
	uint32_t suspended;        /* their number; read without the lock, too */
	uint32_t waiting;          /* suspended blocks that wait for others */
	uint64_t changes;          /* atomic: turns at whose end a block was not as at the end of its turn before */
	uint64_t ended;            /* atomic: blocks */
	uint64_t idle_era, idle;   /* the last era in which blocks were idle, and their number */
	uint64_t moved, looked;    /* blocks begun and ended at the last look, and its time, ns */
	uint64_t unmoved;          /* time for which the engine ran and that number was the same, ns */
	uint64_t begun_before, begun_since; /* blocks begun at the last look; since when that number is the same, ns */
	uint32_t *loads;           /* resident blocks of each multiprocessor; NULL: the program does not read %smid */
	bool reported;             /* the log has said that the grid may never end */
};

struct launch {
	const softgpu_launch_t *request;
	const struct softgpu_kernel *kernel;
	const struct softgpu_program *program;
	uint64_t block_count, cluster_count;
	uint32_t cluster[3], cluster_size; /* blocks of a cluster */
	bool explicit_cluster;             /* the launch or the kernel gives that size */
	uint32_t block_threads, warp_count;
	uint32_t shared_bytes, dynamic_offset;
	uint64_t local_bytes; /* a thread's local memory, with a stack if the depth of its calls is not known */
	char *parameters;
	uint32_t (*thread_ids)[3][WARP_LANES]; /* of each warp: x, y, z by lane */
	uint32_t workers; /* threads of the engine */
	bool counting;
	bool lockstep; /* the warps of a block advance together (HEADRACE_SOFTGPU_SCHEDULE) */
	const struct insn *single_lane_entry; /* NULL: paths of one lane run in the handlers (counting, lockstep) */
	uint64_t grid_id;
	uint64_t grid_barrier; /* device address that %envreg1:2 hold in a cooperative launch: { u32 size, barrier; } */
	/* shared by the workers */
	bool ahead;           /* atomic: lanes go ahead of others of their warp that spin */
	uint64_t next_cluster; /* atomic: the next one to begin */
	struct residency residency;
	int fault;            /* CUresult, atomic: the first one stays */
	uint64_t executed, executed_lanes; /* atomic: of the blocks that have ended; counted if `counting` */
	uint32_t helpers;     /* pool threads that run its blocks; under the pool's lock */
	uint32_t helpers_max;
	struct launch *next;  /* in the pool's queue; under the pool's lock */
	/* Of the blocks that have ended and have records left, a heap: the one with the lowest number is the first. Under the
	 * pool's lock, as the next two are. */
	struct kept_output *output;
	size_t output_count, output_room;
	uint64_t output_cost;
	uint32_t depth;              /* 0: the host launched it; else 1 + the launching kernel's */
	struct launch_check *check;  /* check.h; NULL: nothing is checked */
	struct device_queue *device; /* what its threads launched (device_launch.c); NULL: nothing */
};

/* warp.c: paths */
void warp_set_mask(struct warp *warp, uint32_t mask);
/* Parks lanes at an instruction; they join a path that is there in the same state and at the same depth. */
void warp_park(struct warp *warp, const struct insn *at, uint32_t mask, enum path_state state);
/* Makes the next path the running one and returns where it goes on; NULL, with warp->stop set, if there is none. */
const struct insn *warp_next_path(struct warp *warp);
/* Whether the running path, if it were at that instruction, would still be the next to run. */
bool warp_goes_first(const struct warp *warp, const struct insn *at);
/*
 * Joins to the running path, which is at insn, the other paths that are there. True, go on: all live lanes of wanted
 * are here, or (warp->forced) the others will not come. False: the caller parks the path until they come.
 */
bool warp_converge(struct warp *warp, const struct insn *insn, uint32_t wanted);
/* The running path yields; it is to go on at "at". Returns NULL. */
const struct insn *warp_yield(struct warp *warp, const struct insn *at);
/* The same for a path that is parked already. */
const struct insn *warp_out_of_fuel(struct warp *warp);
/* Ends the launch with result, and logs the fault. lane: the lane that faulted. Returns NULL. */
const struct insn *warp_fault(struct warp *warp, const struct insn *insn, int lane, CUresult result, const char *what,
			      uint64_t address);

/* Whether another path that is ready is to run before a path at "at". */
static inline bool warp_others_come_first(const struct warp *warp, const struct insn *at)
{
	for (uint32_t n = 0; n < warp->other_count; n++) {
		const struct path *other = &warp->others[n];
		bool before = other->depth != warp->depth ? other->depth > warp->depth : other->at <= at;
		if (other->state == PATH_READY && before)
			return true;
	}
	return false;
}

/* What a handler returns to go on at "at" if it may have changed the running path's lanes: a path that is now one lane
 * enters the single-lane interpreter. */
static inline const struct insn *warp_enter(struct warp *warp, const struct insn *at)
{
	const struct insn *entry = warp->block->launch->single_lane_entry;
	if (!warp->cells4 || !entry)
		return at;
	warp->single_lane_at = at;
	return entry;
}

/* special.c: writes the rows whose values depend on the launch; without new_launch only those that differ between
 * blocks */
void warp_fill_rows(struct warp *warp, const struct code *code, bool new_launch);

/* control.c: the function that an instruction belongs to; NULL for an instruction of the interpreter's own */
const struct code *code_of(const struct softgpu_program *program, const struct insn *insn);
/* Frees what recursive calls saved. */
void warp_drop_saved(struct warp *warp);

/* block.c */
enum block_outcome { BLOCK_DONE, BLOCK_STALLED, BLOCK_FAULT };
/* Makes the block, and others for the rest of the cluster, ready to run the launch's cluster of that number; false if there
 * is no memory for it. */
bool block_prepare(struct block *first, struct launch *launch, uint64_t number);
/*
 * Runs a cluster until it ends (done), it or another one of the launch faults, or others are to run (stalled). It stalls
 * if all its warps only used up their fuel, or after many rounds over its warps.
 */
enum block_outcome block_run(struct block *first);
void block_free(struct block *first);
/* Bytes of memory of it and of the blocks of ranks below that number that it owns. */
size_t block_bytes(const struct block *first, uint32_t ranks);
void block_exit_threads(struct block *block, uint32_t count);

/* load_store.c: writes the lanes' host addresses of an access in any space to warp->pointers; false after a fault */
enum access_space { ACCESS_GLOBAL, ACCESS_SHARED, ACCESS_LOCAL, ACCESS_GENERIC, ACCESS_SPACES };
bool memory_resolve(struct warp *warp, const struct insn *insn, enum access_space space, uint32_t bytes, bool write);
/* The host pointer for a generic address of one lane; NULL if the bytes from there on are not all memory of one
 * allocation or window, or write is set and they are read-only. */
char *memory_translate(struct warp *warp, int lane, uint64_t address, uint64_t bytes, bool write);
/* The same for an address of the space that an instruction names. */
char *memory_translate_in(struct warp *warp, uint32_t lane, enum access_space space, uint64_t address, uint64_t bytes,
			  bool write);
/* Fills the span slot for an address; false if there is no allocation there. */
bool memory_span_refill(struct warp *warp, uint32_t slot, uint64_t address);

/* control.c, collective.c, atomic.c, special.c, print.c: handlers that the decoder names */
insn_handler op_bra, op_bra_back, op_branch, op_branch_back, op_join, op_guard, op_brx, op_call, op_call_indirect,
	op_call_return, op_return, op_exit, op_trap, op_brkpt, op_rounded_zero, op_rounded_down, op_rounded_up;
insn_handler op_bar_sync, op_bar_arrive, op_bar_red, op_warp_sync, op_fence, op_nanosleep, op_nop;
/* op_elect: r[0] the leader, r[1] members, r[5] whether the lane is the leader. */
insn_handler op_shfl, op_vote, op_match, op_activemask, op_redux, op_elect;
insn_handler op_special, op_setp_combine, op_isspacep;
insn_handler op_add_cc, op_mad_cc, op_video;
insn_handler op_atom;
insn_handler op_vprintf, op_assertfail, op_malloc, op_free, op_set_conditional;

static inline const void *operand_row(const struct warp *warp, int32_t r)
{
	return warp->regs + r;
}

#define SOURCE(type, n) \
	((const type *)__builtin_assume_aligned(operand_row(warp, insn->r[n]), sizeof(type) * 32 < 64 ? 4 : 64))
#define RESULT(type, n) ((type *)__builtin_assume_aligned(warp->regs + insn->r[n], sizeof(type) * 32 < 64 ? 4 : 64))

/* The cell of operand n of a path that is one lane, by its type. */
#define SINGLE_LANE(type, n) \
	(*(type *)(void *)((sizeof(type) == 8 ? warp->cells8 : sizeof(type) == 4 ? warp->cells4 : warp->cells2) + insn->r[n]))

/* A predicate operand's mask, with INSN_NEGATE applied. */
static inline uint32_t predicate_of(const struct warp *warp, const struct insn *insn, int n)
{
	uint32_t value;
	__builtin_memcpy(&value, operand_row(warp, insn->r[n]), sizeof value);
	return insn->flags & INSN_NEGATE ? ~value : value;
}

static inline void predicate_set(struct warp *warp, int32_t row, uint32_t value)
{
	uint32_t *p = (uint32_t *)(void *)(warp->regs + row);
	*p = (*p & ~warp->mask) | (value & warp->mask);
}

#define for_each_lane(lane, mask)                                                                     \
	for (uint32_t lane##_left_ = (mask), lane = 0;                                                \
	     lane##_left_ && (lane = (uint32_t)__builtin_ctz(lane##_left_), true);                    \
	     lane##_left_ &= lane##_left_ - 1)

#endif
