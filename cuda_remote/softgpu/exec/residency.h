/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which blocks of a launch are resident: they have begun and have not ended. A worker runs one resident block at a time;
 * the others are suspended. A block whose threads only wait for memory to change gives its worker to another block, so
 * that all resident blocks make progress, however few workers there are.
 */
#ifndef SOFTGPU_EXEC_RESIDENCY_H
#define SOFTGPU_EXEC_RESIDENCY_H

#include "cuda_remote/softgpu/exec/warp.h"

/* most: resident blocks at a time. False: no memory; residency_finish is due all the same. */
bool residency_init(struct launch *launch, uint64_t most);
void residency_finish(struct residency *residency);

/* In what follows a cluster of blocks counts as one block, for which its block of rank 0 stands. */

/* The number of the next block, which is resident from now on. False: no block is left, or no more may be resident. */
bool residency_begin(struct launch *launch, uint64_t *number);
/*
 * Gives the block, which is resident from now on, the multiprocessor that has the fewest of the launch's blocks, and so
 * each other block of its cluster. They stay there, whichever threads run them.
 */
void residency_place(struct block *first);
/* A block that residency_place has placed has ended. */
void residency_end(struct block *first);
/* A block that has begun, and has not been placed, will not be run. */
void residency_abandon(struct launch *launch);

/*
 * Runs a block until it ends or is to be suspended (BLOCK_STALLED): it waits for other blocks, or it has run for long and
 * others are to run.
 */
enum block_outcome residency_run(struct block *block);

/* Appends a block to the list of suspended blocks; takes the first of the list, NULL if it is empty. */
void residency_suspend(struct block *block);
struct block *residency_resume(struct launch *launch);

/* Suspended blocks at the moment. */
static inline uint32_t residency_suspended(const struct launch *launch)
{
	/* Relaxed: a hint; the queue's lock orders what matters. */
	return __atomic_load_n(&launch->residency.suspended, __ATOMIC_RELAXED);
}

#endif
