/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of a warp: which lanes run, which wait and for what. */
#include "cuda_remote/softgpu/exec/warp.h"

#include "cuda_remote/softgpu/exec/collective.h"
#include "cuda_remote/softgpu/memory_map.h"

#include "rdma_channel/base/log.h"

#include <string.h>

/* Few stores, and none from a vector register, which would wait for the lane operations under way in it. */
void warp_set_mask(struct warp *warp, uint32_t mask)
{
	if (warp->mask == mask)
		return;
	warp->mask = mask;
	warp->alone = -1;
	warp->cells4 = NULL;
	if (mask == 0)
		return;
	if (mask == FULL_MASK) {
		memset(warp->lanes, 0xff, sizeof warp->lanes);
		return;
	}
	for (int n = 0; n < WARP_LANES; n++)
		warp->lanes[n] = -(int32_t)(mask >> n & 1);
	if (mask & (mask - 1))
		return;
	uint32_t lane = (uint32_t)__builtin_ctz(mask);
	warp->alone = (int32_t)lane;
	warp->cells2 = warp->regs + lane * 2;
	warp->cells4 = warp->regs + lane * 4;
	warp->cells8 = warp->regs + lane * 8;
}

void warp_park(struct warp *warp, const struct insn *at, uint32_t mask, enum path_state state)
{
	if (!mask)
		return;
	for (uint32_t n = 0; n < warp->other_count; n++) {
		struct path *other = &warp->others[n];
		if (other->at == at && other->state == state && other->depth == warp->depth) {
			other->mask |= mask;
			return;
		}
	}
	warp->others[warp->other_count++] = (struct path){ .at = at, .mask = mask, .depth = warp->depth, .state = state,
							   .age = warp->clock++ };
}

static bool goes_first(const struct path *a, const struct path *b)
{
	if (a->depth != b->depth)
		return a->depth > b->depth;
	return (uintptr_t)a->at < (uintptr_t)b->at;
}

/* The path in the given state that is to run next, by its number in others; -1 if there is none. */
static int choose(const struct warp *warp, enum path_state state)
{
	int best = -1;
	for (uint32_t n = 0; n < warp->other_count; n++) {
		if (warp->others[n].state != state)
			continue;
		if (best < 0 || (warp->rotate ? warp->others[n].age < warp->others[best].age :
						goes_first(&warp->others[n], &warp->others[best])))
			best = (int)n;
	}
	return best;
}

const struct insn *warp_next_path(struct warp *warp)
{
	if (warp->other_count == 0) {
		warp_set_mask(warp, 0);
		warp->stop = WARP_DONE;
		return NULL;
	}
	int n = choose(warp, PATH_READY);
	/* If lanes go ahead, a path that has used up its fuel may spin for something that lanes do after they meet. */
	if ((n < 0 || warp->rotate) && warp->other_count > 1 && collective_meet(warp))
		n = choose(warp, PATH_READY);
	if (n < 0) {
		/* Lanes that wait for others of their warp which will not come: let them go on alone. */
		bool barrier = choose(warp, PATH_BARRIER) >= 0;
		n = choose(warp, PATH_CONVERGE);
		if (n < 0 || (barrier && !warp->unblock)) {
			warp->stop = WARP_BLOCKED;
			return NULL;
		}
		warp->forced = true;
		warp->unblock = false;
	}
	struct path path = warp->others[n];
	warp->others[n] = warp->others[--warp->other_count];
	warp->ahead = warp->rotate;
	warp->rotate = false;
	warp->depth = path.depth;
	warp_set_mask(warp, path.mask);
	return warp_enter(warp, path.at);
}

bool warp_goes_first(const struct warp *warp, const struct insn *at)
{
	struct path running = { .at = at, .depth = warp->depth };
	for (uint32_t n = 0; n < warp->other_count; n++)
		if (warp->others[n].state == PATH_READY && goes_first(&warp->others[n], &running))
			return false;
	return true;
}

bool warp_converge(struct warp *warp, const struct insn *insn, uint32_t wanted)
{
	bool forced = warp->forced;
	warp->forced = false; /* it holds for one instruction, even if that does not need it */
	if (__builtin_expect(!(wanted & warp->live & ~warp->mask) || forced, 1))
		return true;
	uint32_t mask = warp->mask;
	for (uint32_t n = 0; n < warp->other_count; n++) {
		struct path *other = &warp->others[n];
		if (other->at != insn || other->state == PATH_BARRIER || other->depth != warp->depth)
			continue;
		mask |= other->mask;
		*other = warp->others[--warp->other_count];
		n--;
	}
	warp_set_mask(warp, mask);
	return !(wanted & warp->live & ~mask);
}

const struct insn *warp_yield(struct warp *warp, const struct insn *at)
{
	warp_park(warp, at, warp->mask, PATH_READY);
	return warp_out_of_fuel(warp);
}

const struct insn *warp_out_of_fuel(struct warp *warp)
{
	/* Relaxed: it only decides which path runs next. */
	warp->rotate = __atomic_load_n(&warp->block->launch->ahead, __ATOMIC_RELAXED);
	warp->stop = WARP_YIELD;
	return NULL;
}

#define EXACT_HINT                                                                                               \
	" (bounds are exact here; a GPU tolerates overruns within its pages, as HEADRACE_SOFTGPU_BOUNDS=page does)"

static void thread_of(const struct block *block, uint32_t thread, uint32_t id[3])
{
	const uint32_t *size = block->launch->request->block;
	id[0] = thread % size[0];
	id[1] = thread / size[0] % size[1];
	id[2] = thread / size[0] / size[1];
}

const struct insn *warp_fault(struct warp *warp, const struct insn *insn, int lane, CUresult result, const char *what,
			      uint64_t address)
{
	const struct block *block = warp->block;
	uint32_t thread[3];
	int none = 0;
	warp->stop = WARP_FAULT;
	/* Only which fault came first matters; the launch's end orders everything else. */
	if (!__atomic_compare_exchange_n(&block->launch->fault, &none, (int)result, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return NULL;
	thread_of(block, warp->index * WARP_LANES + (uint32_t)lane, thread);
	bool global = result == CUDA_ERROR_ILLEGAL_ADDRESS && !(address >> WINDOW_SHIFT);
	hr_log(HR_LOG_ERROR, "softgpu: kernel %s: %s, address 0x%llx, block (%u,%u,%u), thread (%u,%u,%u), ptx line %u%s",
	       block->launch->kernel->info.name, what, (unsigned long long)address, block->index[0], block->index[1],
	       block->index[2], thread[0], thread[1], thread[2], insn->line,
	       global && softgpu_memory_bounds_exact() ? EXACT_HINT : "");
	return NULL;
}
