/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Macros and declarations for the operations on all lanes of a warp. Their sources (those generated from ops/, and the
 * .c files of this folder) are compiled once for each instruction set, with LANES_ISA as its name; the compiler
 * vectorises the loops over lanes. -ffp-contract=off: only fma computes a product and a sum with one rounding.
 */
#ifndef SOFTGPU_EXEC_LANES_H
#define SOFTGPU_EXEC_LANES_H

#include "cuda_remote/softgpu/exec/lanes/lane_float.h"
#include "cuda_remote/softgpu/exec/lanes/lane_half.h"
#include "cuda_remote/softgpu/exec/lanes/lane_math.h"
#include "cuda_remote/softgpu/exec/warp.h"

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

#define LANES_JOIN_(name, isa) name##_##isa
#define LANES_JOIN(name, isa) LANES_JOIN_(name, isa)
/* The name of a global function or table in the build for this instruction set. */
#define LANES_NAME(name) LANES_JOIN(name, LANES_ISA)

/* The operations of each table by number. */
#define OPS_TABLE(name) extern insn_handler *const LANES_NAME(ops_##name)[];
#include "cuda_remote/softgpu/exec/instructions/tables.h"
#undef OPS_TABLE

/* Loads and stores by space, log2 of an element's bytes, and the register's width (1: 16 bits, 2: 32, 3: 64). */
extern insn_handler *const LANES_NAME(loads)[ACCESS_SPACES][4][4];
extern insn_handler *const LANES_NAME(signed_loads)[ACCESS_SPACES][4][4];
extern insn_handler *const LANES_NAME(stores)[ACCESS_SPACES][4][4];

extern insn_handler LANES_NAME(op_matrix_multiply);

/* single_lane.c */
const void *LANES_NAME(single_lane_label)(insn_handler *handler);
const struct insn *LANES_NAME(single_lane_entry)(void);

#define HANDLER(name) static const struct insn *name(struct warp *warp, const struct insn *insn)

/* Rows are the same or disjoint, so no lane of a loop depends on another. */
#ifdef __clang__
/* Operations with a loop of their own (fns, f16 fma) stay scalar; clang would warn of each. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
#define ALL_LANES INDEPENDENT for (int lane = 0; lane < WARP_LANES; lane++)

__attribute__((unused)) static const uint32_t lane_bits[WARP_LANES] = {
	1u << 0, 1u << 1, 1u << 2, 1u << 3, 1u << 4, 1u << 5, 1u << 6, 1u << 7,
	1u << 8, 1u << 9, 1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
	1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
	1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

/* The host address of an access by a path of one lane. NULL: it is misaligned, or not within the bounds at hand; the
 * general handler decides. */
static inline __attribute__((always_inline)) char *single_lane_access(const struct warp *warp, const struct insn *insn,
							       uint64_t address, enum access_space space,
							       uint32_t bytes, bool write)
{
	if (address & (bytes - 1))
		return NULL;
	if (space == ACCESS_GLOBAL || space == ACCESS_GENERIC) {
		const struct span_cache *span = &warp->block->spans[insn->slot];
		bool inside = address >= span->low && address <= span->high - bytes && !(write && span->read_only);
		return inside ? (char *)(uintptr_t)address : NULL;
	}
	bool shared = space == ACCESS_SHARED;
	uint64_t size = shared ? warp->block->shared_bytes : warp->block->launch->local_bytes;
	if (size < bytes || address > size - bytes)
		return NULL;
	return (shared ? warp->block->shared : warp->local + (uint64_t)warp->alone * size) + address;
}

/* The sign bits of 32 words. */
static inline uint32_t mask_of(const int32_t *truth)
{
#if defined(__AVX512DQ__)
	uint32_t first = _mm512_movepi32_mask(_mm512_load_si512(truth));
	return first | (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(truth + 16)) << 16;
#elif defined(__AVX2__)
	uint32_t mask = 0;
	for (int n = 0; n < 4; n++)
		mask |= (uint32_t)_mm256_movemask_ps(_mm256_load_ps((const float *)(truth + 8 * n))) << 8 * n;
	return mask;
#elif defined(__SSE2__)
	uint32_t mask = 0;
	for (int n = 0; n < 8; n++)
		mask |= (uint32_t)_mm_movemask_ps(_mm_load_ps((const float *)(truth + 4 * n))) << 4 * n;
	return mask;
#else
	uint32_t mask = 0;
	for (int lane = 0; lane < WARP_LANES; lane++)
		mask |= (uint32_t)truth[lane] & lane_bits[lane];
	return mask;
#endif
}

#endif
