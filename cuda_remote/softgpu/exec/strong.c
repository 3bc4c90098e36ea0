/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads and stores that are not weak (PTX ISA, "Memory Consistency Model": .volatile, .relaxed, .acquire, .release,
 * .mmio): each element is an atomic of the host, with acquire or release, which is no less than any of them asks for.
 * What other blocks and the host see of one is the whole element, in the order that the program wrote.
 */
#include "cuda_remote/softgpu/exec/strong.h"

#include "cuda_remote/softgpu/exec/warp.h"

static uint64_t load(const void *at, uint32_t size)
{
	/* Acquire: pairs with the release of whoever stored it, a block, an atomic or the host. */
	switch (size) {
	case 1: return __atomic_load_n((const uint8_t *)at, __ATOMIC_ACQUIRE);
	case 2: return __atomic_load_n((const uint16_t *)at, __ATOMIC_ACQUIRE);
	case 4: return __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
	default: return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
	}
}

static void store(void *at, uint32_t size, uint64_t value)
{
	/* Release: what the thread did before comes first for whoever loads this with acquire. */
	switch (size) {
	case 1: __atomic_store_n((uint8_t *)at, (uint8_t)value, __ATOMIC_RELEASE); break;
	case 2: __atomic_store_n((uint16_t *)at, (uint16_t)value, __ATOMIC_RELEASE); break;
	case 4: __atomic_store_n((uint32_t *)at, (uint32_t)value, __ATOMIC_RELEASE); break;
	default: __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE); break;
	}
}

static void put(struct warp *warp, const struct insn *insn, uint32_t n, uint32_t lane, uint64_t value)
{
	uint32_t unused = 64 - 8u * insn->size;
	if (insn->flags & INSN_SIGNED)
		value = (uint64_t)((int64_t)(value << unused) >> unused);
	switch (STRONG_WIDTH(insn)) {
	case 2: RESULT(uint16_t, n)[lane] = (uint16_t)value; break;
	case 4: RESULT(uint32_t, n)[lane] = (uint32_t)value; break;
	default: RESULT(uint64_t, n)[lane] = value; break;
	}
}

static uint64_t get(const struct warp *warp, const struct insn *insn, uint32_t n, uint32_t lane)
{
	switch (STRONG_WIDTH(insn)) {
	case 2: return SOURCE(uint16_t, n)[lane];
	case 4: return SOURCE(uint32_t, n)[lane];
	default: return SOURCE(uint64_t, n)[lane];
	}
}

const struct insn *op_strong_load(struct warp *warp, const struct insn *insn)
{
	if (!memory_resolve(warp, insn, STRONG_SPACE(insn), (uint32_t)insn->size * insn->count, false))
		return NULL;
	for (uint32_t n = 0; n < insn->count; n++) {
		if (insn->r[n] < 0)
			continue;
		for_each_lane(lane, warp->mask)
			put(warp, insn, n, lane,
			    load((const char *)(uintptr_t)warp->pointers[lane] + n * insn->size, insn->size));
	}
	return insn + 1;
}

const struct insn *op_strong_store(struct warp *warp, const struct insn *insn)
{
	if (!memory_resolve(warp, insn, STRONG_SPACE(insn), (uint32_t)insn->size * insn->count, true))
		return NULL;
	for (uint32_t n = 0; n < insn->count; n++)
		for_each_lane(lane, warp->mask)
			store((char *)(uintptr_t)warp->pointers[lane] + n * insn->size, insn->size,
			      get(warp, insn, n, lane));
	return insn + 1;
}
