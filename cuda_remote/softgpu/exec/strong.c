/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads and stores that are not weak (PTX ISA, "Memory Consistency Model": .volatile, .relaxed, .acquire, .release,
 * .mmio): each element is an atomic of the host, with acquire or release, which is no less than any of them asks for.
 * What other blocks and the host see of one is the whole element, in the order that the program wrote.
 */
#include "cuda_remote/softgpu/exec/strong.h"

#include "cuda_remote/softgpu/exec/warp.h"

/* Acquire: pairs with the release of whoever stored it, a block, an atomic or the host. */
#define LOAD(memory, row)                                                                                          \
	for_each_lane(lane, warp->mask)                                                                            \
		RESULT(row, n)[lane] = (row)__atomic_load_n((const memory *)(uintptr_t)(warp->pointers[lane] + at),    \
							    __ATOMIC_ACQUIRE)
/* Release: what the thread did before comes first for whoever loads this with acquire. */
#define STORE(memory, row)                                                                                         \
	for_each_lane(lane, warp->mask)                                                                            \
		__atomic_store_n((memory *)(uintptr_t)(warp->pointers[lane] + at), (memory)SOURCE(row, n)[lane],       \
				 __ATOMIC_RELEASE)

/* Bytes of an element in memory and in its register, and whether it is extended with the sign. */
#define SIZES(size, width, is_signed) ((size) << 8 | (width) << 1 | (is_signed))

static void load_element(struct warp *warp, const struct insn *insn, uint32_t n)
{
	uint64_t at = (uint64_t)n * insn->size;
	switch (SIZES(insn->size, STRONG_WIDTH(insn), insn->size < STRONG_WIDTH(insn) && insn->flags & INSN_SIGNED)) {
	case SIZES(1, 2, 0): LOAD(uint8_t, uint16_t); break;
	case SIZES(1, 4, 0): LOAD(uint8_t, uint32_t); break;
	case SIZES(1, 8, 0): LOAD(uint8_t, uint64_t); break;
	case SIZES(1, 2, 1): LOAD(int8_t, uint16_t); break;
	case SIZES(1, 4, 1): LOAD(int8_t, uint32_t); break;
	case SIZES(1, 8, 1): LOAD(int8_t, uint64_t); break;
	case SIZES(2, 2, 0): LOAD(uint16_t, uint16_t); break;
	case SIZES(2, 4, 0): LOAD(uint16_t, uint32_t); break;
	case SIZES(2, 8, 0): LOAD(uint16_t, uint64_t); break;
	case SIZES(2, 4, 1): LOAD(int16_t, uint32_t); break;
	case SIZES(2, 8, 1): LOAD(int16_t, uint64_t); break;
	case SIZES(4, 4, 0): LOAD(uint32_t, uint32_t); break;
	case SIZES(4, 8, 0): LOAD(uint32_t, uint64_t); break;
	case SIZES(4, 8, 1): LOAD(int32_t, uint64_t); break;
	default: LOAD(uint64_t, uint64_t); break;
	}
}

static void store_element(struct warp *warp, const struct insn *insn, uint32_t n)
{
	uint64_t at = (uint64_t)n * insn->size;
	switch (SIZES(insn->size, STRONG_WIDTH(insn), 0)) {
	case SIZES(1, 2, 0): STORE(uint8_t, uint16_t); break;
	case SIZES(1, 4, 0): STORE(uint8_t, uint32_t); break;
	case SIZES(1, 8, 0): STORE(uint8_t, uint64_t); break;
	case SIZES(2, 2, 0): STORE(uint16_t, uint16_t); break;
	case SIZES(2, 4, 0): STORE(uint16_t, uint32_t); break;
	case SIZES(2, 8, 0): STORE(uint16_t, uint64_t); break;
	case SIZES(4, 4, 0): STORE(uint32_t, uint32_t); break;
	case SIZES(4, 8, 0): STORE(uint32_t, uint64_t); break;
	default: STORE(uint64_t, uint64_t); break;
	}
}

const struct insn *op_strong_load(struct warp *warp, const struct insn *insn)
{
	if (!memory_resolve(warp, insn, STRONG_SPACE(insn), (uint32_t)insn->size * insn->count, false))
		return NULL;
	for (uint32_t n = 0; n < insn->count; n++)
		if (insn->r[n] >= 0)
			load_element(warp, insn, n);
	return insn + 1;
}

const struct insn *op_strong_store(struct warp *warp, const struct insn *insn)
{
	if (!memory_resolve(warp, insn, STRONG_SPACE(insn), (uint32_t)insn->size * insn->count, true))
		return NULL;
	for (uint32_t n = 0; n < insn->count; n++)
		store_element(warp, insn, n);
	return insn + 1;
}
