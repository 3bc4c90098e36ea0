/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Four consecutive warps execute a product of wgmma together. Here each of them reads shared memory and computes its part
 * when it comes to the product, so the product is complete when the last of them has done so. The number of a product is
 * the same in the four warps: the ISA asks that they execute the same products.
 */
#include "cuda_remote/softgpu/exec/async/warpgroup.h"

#define GROUP_WARPS 4u

/* Warps that have ended compute nothing any more. */
static bool complete(const struct warp *warp, uint64_t products)
{
	const struct block *block = warp->block;
	uint32_t first = warp->index / GROUP_WARPS * GROUP_WARPS;
	for (uint32_t n = first; n < first + GROUP_WARPS && n < block->warp_count; n++)
		if (block->warps[n].live && block->warps[n].products < products)
			return false;
	return true;
}

static void release(struct warp *warp)
{
	warp->awaited = 0;
	warp->block->warpgroup_waits--;
	for (uint32_t n = 0; n < warp->other_count; n++) {
		struct path *path = &warp->others[n];
		if (path->state != PATH_BARRIER || path->barrier != WARPGROUP_WAIT)
			continue;
		path->state = PATH_READY;
		path->at++;
		if (warp->stop == WARP_BLOCKED)
			warp->stop = WARP_YIELD;
	}
}

void warpgroup_check(struct block *block)
{
	for (uint32_t n = 0; n < block->warp_count && block->warpgroup_waits; n++) {
		struct warp *warp = &block->warps[n];
		if (warp->awaited && complete(warp, warp->awaited))
			release(warp);
	}
}

void warpgroup_multiplied(struct warp *warp)
{
	warp->products++;
	warpgroup_check(warp->block);
}

const struct insn *op_wgmma_commit(struct warp *warp, const struct insn *insn)
{
	if (!warp_converge(warp, insn, FULL_MASK)) {
		warp_park(warp, insn, warp->mask, PATH_CONVERGE);
		return warp_next_path(warp);
	}
	warp->committed[warp->commits++ % WARPGROUP_COMMITS] = warp->products;
	return insn + 1;
}

const struct insn *op_wgmma_wait(struct warp *warp, const struct insn *insn)
{
	if (!warp_converge(warp, insn, FULL_MASK)) {
		warp_park(warp, insn, warp->mask, PATH_CONVERGE);
		return warp_next_path(warp);
	}
	uint64_t products = 0; /* to wait for: all until the commit of the last group that may not be pending */
	if (warp->commits > insn->count)
		products = warp->committed[(warp->commits - 1 - insn->count) % WARPGROUP_COMMITS];
	if (complete(warp, products))
		return insn + 1;
	warp->block->warpgroup_waits += !warp->awaited;
	warp->awaited = products > warp->awaited ? products : warp->awaited;
	warp->others[warp->other_count++] = (struct path){ .at = insn,
							   .mask = warp->mask,
							   .depth = warp->depth,
							   .state = PATH_BARRIER,
							   .barrier = WARPGROUP_WAIT,
							   .age = warp->clock++ };
	return warp_next_path(warp);
}
