/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions that the lanes of a warp, or the warps of a block, execute together; their variants (insn->count). */
#ifndef SOFTGPU_EXEC_COLLECTIVE_H
#define SOFTGPU_EXEC_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

struct block;
struct insn;
struct warp;

/* A block's stage, for collective_meet: STAGE_ROWS rows of 64 bits (block.c). */
#define STAGE_ROWS 6
char *block_stage(const struct block *block);

/*
 * The running path is at a collective instruction. members: for each lane, a mask of the lanes that it waits for. True:
 * the lanes whose members are all here go on as the running path, and the other lanes are parked. False: all are
 * parked.
 */
bool collective_gather(struct warp *warp, const struct insn *insn, const uint32_t *members);

/* Finds lanes that wait for each other at different instructions of one kind and whose members all wait there. They
 * execute these instructions together and are ready then. False: there are no such lanes. */
bool collective_meet(struct warp *warp);

enum shuffle { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };
enum vote { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum reduction { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_AND, REDUCE_OR, REDUCE_XOR };
enum barrier_result { BARRIER_NONE, BARRIER_POPC, BARRIER_AND, BARRIER_OR };

#endif
