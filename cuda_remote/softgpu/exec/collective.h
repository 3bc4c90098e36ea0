/* SPDX-License-Identifier: BSD-3-Clause */
/* Variants of the instructions that act on a warp or block together: their insn->count. */
#ifndef SOFTGPU_EXEC_COLLECTIVE_H
#define SOFTGPU_EXEC_COLLECTIVE_H

#include <stdbool.h>

struct block;
struct warp;

/* Rows of 64 bits of every block, for collective_meet (block.c). */
#define STAGE_ROWS 6
char *block_stage(const struct block *block);

/* Paths that wait for each other at different instructions of one kind, and all of whose members are there, run them
 * together and are ready then. False: there are none. */
bool collective_meet(struct warp *warp);

enum shuffle { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };
enum vote { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum reduction { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_AND, REDUCE_OR, REDUCE_XOR };
enum barrier_result { BARRIER_NONE, BARRIER_POPC, BARRIER_AND, BARRIER_OR };

#endif
