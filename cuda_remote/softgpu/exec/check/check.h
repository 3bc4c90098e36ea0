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
 * 2009). A barrier joins the clocks of those that wait with those of all that arrived; a strong write (an atomic, or a
 * .release, .relaxed or .volatile access) after a fence, or with .release, hands the clock to the strong reads of its
 * address.
 *
 * Order between blocks: a grid may have too many for vector clocks. Each block counts epochs, which its fences end; its
 * next strong write publishes those that have ended, at a time that counts the grid's strong accesses. A strong read
 * notes the time. An access is ordered after another block's if that one's epoch was published before the reader's last
 * strong read, whatever the addresses were: what is really ordered is never reported.
 */
#ifndef SOFTGPU_EXEC_CHECK_H
#define SOFTGPU_EXEC_CHECK_H

#include "cuda_remote/softgpu/exec/warp.h"

enum check_flag { CHECK_INIT = 1, CHECK_RACES = 2, CHECK_FAULT = 4 };

/* What an access does. */
enum check_kind {
	CHECK_READ = 1,
	CHECK_WRITE = 2,
	CHECK_STRONG = 4,   /* atomic, volatile or with a .sem: does not race with its like */
	CHECK_RELEASE = 8,  /* hands on what its thread did before it, without a fence */
	CHECK_CARRIES = 16, /* has a row of predicates in r[3]: lanes that are true touch nothing */
};

/* What the setting asks for, as a set of enum check_flag; -1: it is nothing that is known, and the log says what is. */
int check_wanted(void);

/*
 * Handlers. An access: r[4] and imm the address, r[2] the row of its bytes or -1, count the bytes if so, size the
 * check_kind, slot the space; r[1] how many lanes take part. A tile: r[3] the row of the stride or -1, r[2] elements
 * of a line, r[1] lines, count bits of an element.
 */
insn_handler op_check_access, op_check_tile;
/* A fence of the running lanes; and what a strong read of global memory has learned when it is done. */
insn_handler op_check_fence, op_check_acquired;

/* ---- the launch: NULL if there is no memory, or nothing to check; then its blocks are not checked */
struct launch_check *check_launch_open(const struct launch *launch);
/* Tells what was found, and frees it. */
void check_launch_close(struct launch *launch);

/* ---- the block: starts it anew, for launches that are checked. What it had keeps its memory. */
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

/* One access by one lane, with what is said of it in a report. */
struct check_access {
	struct warp *warp;
	const struct insn *insn;
	uint32_t lane;
	uint8_t kind;
	uint64_t address; /* as the program has it */
};

/* The other side of a race. */
struct check_other {
	bool write;
	uint32_t line;   /* 0: not known */
	uint64_t number; /* of its warp in the block, or of its block in the grid */
};

/* Keeps and logs one report. False: the launch is to end, which is done. */
bool check_report(const struct check_access *access, enum check_defect defect, const struct check_other *other);

/* check_shared.c: offset bytes into shared memory, bytes of them. False: the launch ends. */
bool check_shared(const struct check_access *access, uint64_t offset, uint64_t bytes);
void check_shared_fence(struct warp *warp);
/* A strong access: takes what its address was given, and gives what the warp may give. */
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
