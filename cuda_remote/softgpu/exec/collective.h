/* SPDX-License-Identifier: BSD-3-Clause */
/* Variants of the instructions that act on a warp or block together: their insn->count. */
#ifndef SOFTGPU_EXEC_COLLECTIVE_H
#define SOFTGPU_EXEC_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

struct block;
struct insn;
struct warp;

/* Rows of 64 bits of every block, for collective_meet (block.c). */
#define STAGE_ROWS 6
char *block_stage(const struct block *block);

/*
 * The running path is at a collective; members: of each lane, the lanes that it waits for. True: lanes all of whose
 * members are here go on, as the running path; those that still wait for some are parked. False: all of them are.
 */
bool collective_gather(struct warp *warp, const struct insn *insn, const uint32_t *members);

/* Lanes that wait for each other at different instructions of one kind, and all of whose members are there, run them
 * together and are ready then. False: there are none. */
bool collective_meet(struct warp *warp);

enum shuffle { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };
enum vote { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum reduction { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_AND, REDUCE_OR, REDUCE_XOR };
enum barrier_result { BARRIER_NONE, BARRIER_POPC, BARRIER_AND, BARRIER_OR };

#endif
