/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations on all lanes of a warp, from ops.table. Compiled once for each instruction set with LANES_ISA its
 * name: the loops over lanes are the compiler's to vectorise. No contraction (-ffp-contract=off): fma fuses, mul and
 * add do not.
 */
#include "cuda_remote/softgpu/exec/lane_float.h"
#include "cuda_remote/softgpu/exec/lane_math.h"
#include "cuda_remote/softgpu/exec/warp.h"

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

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

static const uint32_t lane_bits[WARP_LANES] = {
	1u << 0, 1u << 1, 1u << 2, 1u << 3, 1u << 4, 1u << 5, 1u << 6, 1u << 7,
	1u << 8, 1u << 9, 1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
	1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
	1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

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

/* The mask of lanes whose address is not base + lane * step; step is a power of two, or 0. */
static inline uint32_t strangers_narrow(const uint32_t *rows, uint32_t base, uint32_t step)
{
#if defined(__AVX512DQ__)
	__m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m512i steps = _mm512_set1_epi32((int)step),
		want = _mm512_add_epi32(_mm512_mullo_epi32(lanes, steps), _mm512_set1_epi32((int)base));
	uint32_t first = _mm512_cmpneq_epi32_mask(_mm512_load_si512(rows), want);
	want = _mm512_add_epi32(want, _mm512_slli_epi32(steps, 4));
	return first | (uint32_t)_mm512_cmpneq_epi32_mask(_mm512_load_si512(rows + 16), want) << 16;
#else
	_Alignas(64) int32_t truth[WARP_LANES];
	ALL_LANES
		truth[lane] = -(int32_t)(rows[lane] != base + (uint32_t)lane * step);
	return mask_of(truth);
#endif
}

static inline uint32_t strangers_wide(const uint64_t *rows, uint64_t base, uint64_t step)
{
#if defined(__AVX512DQ__)
	__m512i steps = _mm512_set1_epi64((long long)step), lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
	__m512i want = _mm512_add_epi64(_mm512_mul_epu32(lanes, steps), _mm512_set1_epi64((long long)base));
	__m512i eight = _mm512_slli_epi64(steps, 3);
	uint32_t mask = 0;
	for (int n = 0; n < 4; n++) {
		mask |= (uint32_t)_mm512_cmpneq_epi64_mask(_mm512_load_si512(rows + 8 * n), want) << 8 * n;
		want = _mm512_add_epi64(want, eight);
	}
	return mask;
#else
	_Alignas(64) int32_t truth[WARP_LANES];
	ALL_LANES
		truth[lane] = -(int32_t)(rows[lane] != base + (uint64_t)lane * step);
	return mask_of(truth);
#endif
}

#include "cuda_remote/softgpu/exec/ops_handlers.h"

#include "cuda_remote/softgpu/exec/memory_ops.h"

static void run(struct warp *warp, const struct insn *insn)
{
	do
		insn = insn->handler(warp, insn);
	while (insn);
#ifdef __AVX__
	/* The handlers leave the upper halves of the vector registers as they are; the rest of the program must not pay
	 * for it. */
	_mm256_zeroupper();
#endif
}

#define LANE_OPS_NAME_(isa) lane_ops_##isa
#define LANE_OPS_NAME(isa) LANE_OPS_NAME_(isa)
#define ISA_TEXT_(isa) #isa
#define ISA_TEXT(isa) ISA_TEXT_(isa)
const struct lane_ops LANE_OPS_NAME(LANES_ISA) = {
	.isa = ISA_TEXT(LANES_ISA),
	.run = run,
	.ops = handlers,
	.loads = loads,
	.signed_loads = signed_loads,
	.stores = stores,
};
