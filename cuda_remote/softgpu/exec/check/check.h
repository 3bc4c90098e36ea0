/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HEADRACE_SOFTGPU_CHECK: shadow memory that finds reads of shared memory that was never written, races between the warps
 * of a block on shared memory, and races between the blocks of a grid on global memory.
 *
 * The setting is read when a program is loaded: its code then has an instruction of its own before each access
 * (op_check_…), which looks the lanes' addresses up in the shadow. Without the setting there is no such instruction and
 * no test for one.
 *
 * Order between warps of a block: vector clocks, one component a warp (C. Flanagan and S. Freund, "FastTrack", PLDI
 * 2009). A barrier joins the clocks of all warps that arrived into the clocks of the warps that wait. A strong write
 * (an atomic, or a .release, .relaxed or .volatile access) after a fence, or with .release, passes the clock to the
 * strong reads of its address.
 *
 * Order between blocks: a grid may have too many blocks for vector clocks. Each block counts epochs; a fence ends one.
 * The block's next strong write publishes the epochs that have ended, with a time that counts the grid's strong
 * accesses. A strong read records the time. An access of block B counts as ordered after an access of block A if A's
 * epoch was published before B's last strong read, whatever the addresses of the strong accesses were. So accesses that
 * are ordered are never reported, and some races are missed.
 */
#ifndef SOFTGPU_EXEC_CHECK_H
#define SOFTGPU_EXEC_CHECK_H

#include "cuda_remote/softgpu/exec/warp.h"

enum check_flag { CHECK_INIT = 1, CHECK_RACES = 2, CHECK_FAULT = 4 };

/* What an access does. */
enum check_kind {
	CHECK_READ = 1,
	CHECK_WRITE = 2,
	CHECK_STRONG = 4,   /* atomic, volatile or with a .sem: two strong accesses do not race */
	CHECK_RELEASE = 8,  /* publishes what its thread did before it, without a fence */
	CHECK_CARRIES = 16, /* r[3] is a row of predicates: lanes whose predicate is true access nothing */
};

/* The setting as a set of enum check_flag; -1: its value is not valid, and the log lists the valid ones. */
int check_wanted(void);

/*
 * Handlers. An access: r[4] and imm the address, r[2] the row with the numbers of bytes, or -1: count bytes; size the
 * check_kind, slot the space; r[1] the number of lanes that take part. A tile: r[3] the row of the stride or -1, r[2]
 * elements of a line, r[1] lines, count bits of an element.
 */
insn_handler op_check_access, op_check_tile;
/* At a fence of the running lanes; after a strong read of global memory. */
insn_handler op_check_fence, op_check_acquired;

/* ---- the launch: NULL if there is no memory; then its blocks are not checked */
struct launch_check *check_launch_open(const struct launch *launch);
/* Logs a summary, and frees the launch's check. */
void check_launch_close(struct launch *launch);

/* ---- the block: resets its check, for launches that are checked. The check's memory is used again. */
void check_block_start(struct block *block);
void check_block_free(struct block *block);
/* Running lanes of a warp have arrived at a barrier; those that wait there go on. */
void check_barrier_arrive(struct warp *warp, uint32_t number);
void check_barrier_release(struct block *block, uint32_t number);
/* An access whose address no row holds (op_tensor's); only for launches that are checked. False: the launch ends. */
bool check_touch(struct warp *warp, const struct insn *insn, uint32_t lane, enum access_space space, uint64_t address,
		 uint64_t bytes, uint8_t kind);
/* Memory that a kernel's malloc returns: forgets the accesses to it before. */
void check_forget(struct launch *launch, uint64_t address, uint64_t bytes);

/* ---- between the sources of the check */
enum check_defect { DEFECT_UNWRITTEN, DEFECT_SHARED_RACE, DEFECT_GLOBAL_RACE };

/* One access by one lane, with what a report says about it. */
struct check_access {
	struct warp *warp;
	const struct insn *insn;
	uint32_t lane;
	uint8_t kind;
	uint64_t address; /* as the program gives it */
};

/* The other side of a race. */
struct check_other {
	bool write;
	uint32_t line;   /* 0: not known */
	uint64_t number; /* of its warp in the block, or of its block in the grid */
};

/* Counts and logs one report. False: the report has ended the launch (CHECK_FAULT). */
bool check_report(const struct check_access *access, enum check_defect defect, const struct check_other *other);

/* check_shared.c: offset bytes into shared memory, bytes of them. False: the launch ends. */
bool check_shared(const struct check_access *access, uint64_t offset, uint64_t bytes);
void check_shared_fence(struct warp *warp);
/* A strong access: a read joins the address's clock into the warp's, a write joins the warp's published clock into the
 * address's. */
void check_shared_sync(const struct check_access *access);

/* check_global.c */
struct grid_check;
struct grid_check *grid_check_open(uint64_t blocks);
void grid_check_close(struct grid_check *grid, bool *incomplete);
bool check_global(struct grid_check *grid, const struct check_access *access, uint64_t bytes);
void grid_check_fence(struct grid_check *grid, uint64_t block);
void grid_check_publish(struct grid_check *grid, uint64_t block, bool release);
void grid_check_acquired(struct grid_check *grid, uint64_t block);
void grid_check_forget(struct grid_check *grid, uint64_t address, uint64_t bytes);

#endif
