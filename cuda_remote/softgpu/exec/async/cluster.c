/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of clusters, and the addresses of their shared memory. */
#include "cuda_remote/softgpu/exec/async/cluster.h"

#include "cuda_remote/softgpu/exec/check/check.h"

/* ---- addresses */
#define OFFSET_MASK ((UINT64_C(1) << CLUSTER_SHIFT) - 1)

uint32_t cluster_rank(const struct block *block, uint64_t address)
{
	uint32_t number = (uint32_t)address >> CLUSTER_SHIFT;
	return number ? number - 1 : block->rank;
}

/* In a cluster of one, each address stays as it is. */
uint64_t cluster_map(const struct block *block, uint64_t address, uint32_t rank)
{
	uint64_t offset = address & (~(uint64_t)UINT32_MAX | OFFSET_MASK);
	return block->launch->cluster_size == 1 ? address : offset | (uint64_t)(rank + 1) << CLUSTER_SHIFT;
}

char *cluster_shared(const struct block *block, uint64_t address, uint64_t bytes)
{
	uint64_t number = address >> CLUSTER_SHIFT, offset = address & OFFSET_MASK;
	if (number > block->launch->cluster_size)
		return NULL;
	const struct block *target = number ? block->first->members[number - 1] : block;
	bool inside = bytes <= target->shared_bytes && offset <= target->shared_bytes - bytes;
	return inside ? target->shared + offset : NULL;
}

bool cluster_holds(const struct block *block, const char *memory)
{
	for (uint32_t rank = 0; rank < block->launch->cluster_size; rank++) {
		const struct block *member = block->first->members[rank];
		if ((uintptr_t)memory - (uintptr_t)member->shared < member->shared_bytes)
			return true;
	}
	return false;
}

bool cluster_has(struct warp *warp, const struct insn *insn, uint32_t lane, uint32_t blocks)
{
	if (!(blocks >> warp->block->launch->cluster_size))
		return true;
	warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS, "multicast to a block that the cluster lacks", blocks);
	return false;
}

const struct insn *op_mapa(struct warp *warp, const struct insn *insn)
{
	const struct block *block = warp->block;
	const uint32_t *ranks = SOURCE(uint32_t, 2);
	for_each_lane(lane, warp->mask) {
		if (ranks[lane] >= block->launch->cluster_size)
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS,
					  "the cluster has no block of that rank", ranks[lane]);
		if (insn->size == 8)
			RESULT(uint64_t, 0)[lane] = cluster_map(block, SOURCE(uint64_t, 1)[lane], ranks[lane]);
		else
			RESULT(uint32_t, 0)[lane] = (uint32_t)cluster_map(block, SOURCE(uint32_t, 1)[lane], ranks[lane]);
	}
	return insn + 1;
}

const struct insn *op_getctarank(struct warp *warp, const struct insn *insn)
{
	uint32_t ranks[WARP_LANES];
	for_each_lane(lane, warp->mask)
		ranks[lane] = cluster_rank(warp->block,
					   insn->size == 8 ? SOURCE(uint64_t, 1)[lane] : SOURCE(uint32_t, 1)[lane]);
	for_each_lane(lane, warp->mask)
		RESULT(uint32_t, 0)[lane] = ranks[lane];
	return insn + 1;
}

/* ---- barrier.cluster: a lane's bit in cluster_arrived stays set until every live thread of the cluster has arrived */
static bool waits_at_barrier(const struct path *path)
{
	return path->state == PATH_BARRIER && path->barrier == CLUSTER_BARRIER;
}

bool cluster_barrier_waits(const struct block *block)
{
	for (uint32_t n = 0; n < block->warp_count; n++)
		for (uint32_t i = 0; i < block->warps[n].other_count; i++)
			if (waits_at_barrier(&block->warps[n].others[i]))
				return true;
	return false;
}

static bool all_arrived(const struct block *block)
{
	for (uint32_t n = 0; n < block->warp_count; n++)
		if (block->warps[n].live & ~block->warps[n].cluster_arrived)
			return false;
	return true;
}

static void release(struct block *block)
{
	if (block->launch->check)
		check_barrier_release(block, CLUSTER_BARRIER);
	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];
		warp->cluster_arrived = 0;
		for (uint32_t i = 0; i < warp->other_count; i++) {
			struct path *path = &warp->others[i];
			if (!waits_at_barrier(path))
				continue;
			path->state = PATH_READY;
			path->at++;
			if (warp->stop == WARP_BLOCKED)
				warp->stop = WARP_YIELD;
		}
	}
}

void cluster_barrier_check(struct block *block)
{
	struct block *first = block->first;
	uint32_t size = block->launch->cluster_size;
	for (uint32_t rank = 0; rank < size; rank++)
		if (!all_arrived(first->members[rank]))
			return;
	first->cluster_arrivals = false;
	for (uint32_t rank = 0; rank < size; rank++)
		release(first->members[rank]);
}

const struct insn *op_cluster_arrive(struct warp *warp, const struct insn *insn)
{
	/* One thread executes all accesses of the cluster in order, so a release needs nothing else. */
	warp->cluster_arrived |= warp->mask;
	if (warp->block->launch->check)
		check_barrier_arrive(warp, CLUSTER_BARRIER);
	warp->block->first->cluster_arrivals = true;
	cluster_barrier_check(warp->block);
	return insn + 1;
}

const struct insn *op_cluster_wait(struct warp *warp, const struct insn *insn)
{
	uint32_t waiting = warp->mask & warp->cluster_arrived;
	if (!waiting)
		return insn + 1;
	warp_park(warp, insn + 1, warp->mask & ~waiting, PATH_READY);
	warp->others[warp->other_count++] = (struct path){ .at = insn,
							   .mask = waiting,
							   .depth = warp->depth,
							   .state = PATH_BARRIER,
							   .barrier = CLUSTER_BARRIER,
							   .age = warp->clock++ };
	return warp_next_path(warp);
}
