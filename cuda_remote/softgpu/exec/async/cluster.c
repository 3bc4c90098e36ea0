/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier and the address mapping of clusters, each of which is one block. */
#include "cuda_remote/softgpu/exec/async/cluster.h"

#include "cuda_remote/softgpu/exec/check/check.h"

const struct insn *op_mapa(struct warp *warp, const struct insn *insn)
{
	const uint32_t *ranks = SOURCE(uint32_t, 2);
	for_each_lane(lane, warp->mask) {
		if (ranks[lane] != 0)
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS,
					  "no block of that rank in a cluster of one", ranks[lane]);
		if (insn->size == 8)
			RESULT(uint64_t, 0)[lane] = SOURCE(uint64_t, 1)[lane];
		else
			RESULT(uint32_t, 0)[lane] = SOURCE(uint32_t, 1)[lane];
	}
	return insn + 1;
}

/* ---- barrier.cluster: a lane's bit in cluster_arrived stays set until every live thread has arrived */
void cluster_barrier_check(struct block *block)
{
	for (uint32_t n = 0; n < block->warp_count; n++)
		if (block->warps[n].live & ~block->warps[n].cluster_arrived)
			return;
	block->cluster_arrivals = false;
	if (block->launch->check)
		check_barrier_release(block, CLUSTER_BARRIER);
	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];
		warp->cluster_arrived = 0;
		for (uint32_t i = 0; i < warp->other_count; i++) {
			struct path *path = &warp->others[i];
			if (path->state != PATH_BARRIER || path->barrier != CLUSTER_BARRIER)
				continue;
			path->state = PATH_READY;
			path->at++;
			if (warp->stop == WARP_BLOCKED)
				warp->stop = WARP_YIELD;
		}
	}
}

const struct insn *op_cluster_arrive(struct warp *warp, const struct insn *insn)
{
	/* One thread executes all accesses of the block in order, so a release needs nothing else. */
	warp->cluster_arrived |= warp->mask;
	if (warp->block->launch->check)
		check_barrier_arrive(warp, CLUSTER_BARRIER);
	warp->block->cluster_arrivals = true;
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
