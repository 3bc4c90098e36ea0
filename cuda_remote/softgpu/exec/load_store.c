/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory accesses the slow way: lane by lane, any state space, every bound checked, faults reported. */
#include "cuda_remote/softgpu/memory_map.h"

#include "cuda_remote/softgpu/exec/async/cluster.h"
#include "cuda_remote/softgpu/exec/warp.h"

bool memory_span_refill(struct warp *warp, uint32_t slot, uint64_t address)
{
	softgpu_span_t span;
	if (!softgpu_memory_find(address, &span))
		return false;
	warp->block->spans[slot] = (struct span_cache){ span.base, span.base + span.size, span.read_only };
	return true;
}

static bool inside(uint64_t offset, uint64_t bytes, uint64_t size)
{
	return bytes <= size && offset <= size - bytes;
}

static char *translate_global(uint64_t address, uint64_t bytes, bool write)
{
	softgpu_span_t span;
	if (!softgpu_memory_find(address, &span) || !inside(address - span.base, bytes, span.size))
		return NULL;
	return write && span.read_only ? NULL : (char *)(uintptr_t)address;
}

char *memory_translate(struct warp *warp, int lane, uint64_t address, uint64_t bytes, bool write)
{
	const struct launch *launch = warp->block->launch;
	uint64_t offset = address & ((1ull << WINDOW_SHIFT) - 1);
	switch (address >> WINDOW_SHIFT) {
	case 0:
		return translate_global(address, bytes, write);
	case WINDOW_SHARED:
		return cluster_shared(warp->block, offset, bytes);
	case WINDOW_LOCAL:
		if (!inside(offset, bytes, launch->local_bytes))
			return NULL;
		return warp->local + (uint64_t)lane * launch->local_bytes + offset;
	case WINDOW_PARAM:
		return !write && inside(offset, bytes, launch->kernel->info.parameter_bytes)
			       ? launch->parameters + offset
			       : NULL;
	default:
		return NULL;
	}
}

char *memory_translate_in(struct warp *warp, uint32_t lane, enum access_space space, uint64_t address, uint64_t bytes,
			  bool write)
{
	/* Addresses of shared and local memory are offsets; an address in a window is generic and not valid here. */
	if ((space == ACCESS_SHARED || space == ACCESS_LOCAL) && address >> WINDOW_SHIFT)
		return NULL;
	if (space == ACCESS_SHARED)
		address += WINDOW_BASE(WINDOW_SHARED);
	else if (space == ACCESS_LOCAL)
		address += WINDOW_BASE(WINDOW_LOCAL);
	else if (space == ACCESS_GLOBAL && address >> WINDOW_SHIFT)
		return NULL;
	return memory_translate(warp, (int)lane, address, bytes, write);
}

/* The pointer for an address in the allocation that the instruction accessed before. NULL: look the address up. */
static char *translate_known(const struct warp *warp, const struct insn *insn, enum access_space space,
			     uint64_t address, uint32_t bytes, bool write)
{
	const struct span_cache *span = &warp->block->spans[insn->slot];
	if ((space != ACCESS_GLOBAL && space != ACCESS_GENERIC) || address < span->low ||
	    address > span->high - bytes || span->high - span->low < bytes || (write && span->read_only))
		return NULL;
	return (char *)(uintptr_t)address;
}

/* The same for all lanes at once, if more than eight are active. False: each lane needs a check of its own. */
static bool resolve_known(struct warp *warp, const struct insn *insn, enum access_space space, uint32_t bytes,
			  bool write)
{
	const struct span_cache *span = &warp->block->spans[insn->slot];
	const uint64_t *rows = SOURCE(uint64_t, 4);
	uint64_t low = span->low, limit = span->high - low - bytes, bad = 0;
	if ((space != ACCESS_GLOBAL && space != ACCESS_GENERIC) || __builtin_popcount(warp->mask) <= 8 ||
	    span->high - low < bytes || (write && span->read_only))
		return false;
	for (int lane = 0; lane < WARP_LANES; lane++) {
		uint64_t address = rows[lane] + insn->imm;
		warp->pointers[lane] = address;
		bad |= ((uint64_t)(address - low > limit) | (address & (bytes - 1))) & (uint64_t)warp->lanes[lane];
	}
	return !bad;
}

bool memory_resolve(struct warp *warp, const struct insn *insn, enum access_space space, uint32_t bytes, bool write)
{
	if (resolve_known(warp, insn, space, bytes, write))
		return true;
	for_each_lane(lane, warp->mask) {
		uint64_t address;
		if (insn->flags & INSN_NARROW)
			address = (uint32_t)(SOURCE(uint32_t, 4)[lane] + (uint32_t)insn->imm);
		else
			address = SOURCE(uint64_t, 4)[lane] + insn->imm;
		if (address & (bytes - 1)) {
			warp_fault(warp, insn, (int)lane, CUDA_ERROR_MISALIGNED_ADDRESS,
				   write ? "misaligned write" : "misaligned read", address);
			return false;
		}
		char *pointer = translate_known(warp, insn, space, address, bytes, write);
		if (!pointer) {
			pointer = memory_translate_in(warp, lane, space, address, bytes, write);
			if (pointer && space != ACCESS_SHARED && space != ACCESS_LOCAL && !(address >> WINDOW_SHIFT))
				memory_span_refill(warp, insn->slot, address);
		}
		if (!pointer) {
			warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS,
				   write ? "write outside every allocation" : "read outside every allocation", address);
			return false;
		}
		warp->pointers[lane] = (uint64_t)(uintptr_t)pointer;
	}
	return true;
}
