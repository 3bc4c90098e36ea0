/* SPDX-License-Identifier: BSD-3-Clause */
/* Variants of the instructions that act on a warp or block together: their insn->count. */
#ifndef SOFTGPU_EXEC_COLLECTIVE_H
#define SOFTGPU_EXEC_COLLECTIVE_H

enum shuffle { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };
enum vote { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum reduction { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_AND, REDUCE_OR, REDUCE_XOR };
enum barrier_result { BARRIER_NONE, BARRIER_POPC, BARRIER_AND, BARRIER_OR };

#endif
