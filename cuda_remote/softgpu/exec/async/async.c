/* SPDX-License-Identifier: BSD-3-Clause */
/* cp.async, bulk copies and their groups: the copy is made when it is issued. */
#include "cuda_remote/softgpu/exec/async/async.h"

#include "cuda_remote/softgpu/exec/async/cluster.h"
#include "cuda_remote/softgpu/exec/atomic.h"
#include "cuda_remote/softgpu/exec/async/mbarrier.h"

#include <string.h>

static char *find(struct warp *warp, const struct insn *insn, uint32_t lane, enum access_space space, uint64_t address,
		  uint64_t bytes, uint32_t align, bool write)
{
	char *memory = NULL;
	if (address & (align - 1))
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned asynchronous copy",
			   address);
	else if (!(memory = memory_translate_in(warp, lane, space, address, bytes, write)))
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS,
			   write ? "asynchronous copy to outside every allocation" :
				   "asynchronous copy from outside every allocation", address);
	return memory;
}

const struct insn *op_cp_async(struct warp *warp, const struct insn *insn)
{
	const uint64_t *to = SOURCE(uint64_t, 0), *from = SOURCE(uint64_t, 1);
	uint32_t ignored = insn->r[3] < 0 ? 0 : predicate_of(warp, insn, 3);
	for_each_lane(lane, warp->mask) {
		uint32_t bytes = insn->r[2] < 0 ? insn->count : SOURCE(uint32_t, 2)[lane];
		if (bytes > insn->count)
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_LAUNCH_FAILED,
					  "asynchronous copy of more than its size", bytes);
		if (ignored >> lane & 1)
			bytes = 0;
		char *target = find(warp, insn, lane, ACCESS_SHARED, to[lane], insn->count, insn->count, true);
		const char *source =
			target && bytes ? find(warp, insn, lane, ACCESS_GLOBAL, from[lane], bytes, insn->count, false) :
					  target;
		if (!source)
			return NULL;
		if (bytes)
			memcpy(target, source, bytes);
		memset(target + bytes, 0, insn->count - bytes);
	}
	return insn + 1;
}

static void reduce_elements(char *target, const char *source, uint32_t bytes, uint32_t variant, uint32_t size)
{
	for (uint32_t at = 0; at < bytes; at += size) {
		uint64_t value = 0;
		memcpy(&value, source + at, size);
		atomic_apply(variant, target + at, value, 0);
	}
}

/* One lane's copy to an address, with the mbarrier that counts it. False after a fault. */
static bool bulk_copy(struct warp *warp, const struct insn *insn, uint32_t lane, uint64_t to, uint64_t barrier)
{
	uint32_t bytes = SOURCE(uint32_t, 2)[lane];
	uint64_t from = SOURCE(uint64_t, 1)[lane];
	char *target = bytes ? find(warp, insn, lane, (enum access_space)insn->slot, to, bytes, 16, true) : NULL;
	const char *source = target ? find(warp, insn, lane, (enum access_space)insn->size, from, bytes, 16, false) : NULL;
	if (bytes && !source)
		return false;
	if (bytes && insn->count == BULK_COPY)
		memmove(target, source, bytes);
	else if (bytes)
		reduce_elements(target, source, bytes, insn->count, (uint32_t)insn->imm);
	return insn->r[3] < 0 || mbarrier_complete_tx(warp, insn, lane, ACCESS_SHARED, barrier, bytes);
}

/* The same copy to each block of the cluster that the mask names: data and mbarrier at the same offsets there. */
static bool bulk_multicast(struct warp *warp, const struct insn *insn, uint32_t lane, uint64_t to, uint64_t barrier)
{
	uint32_t blocks = SOURCE(uint16_t, 5)[lane];
	if (!cluster_has(warp, insn, lane, blocks))
		return false;
	for_each_lane(rank, blocks)
		if (!bulk_copy(warp, insn, lane, cluster_map(warp->block, to, rank), cluster_map(warp->block, barrier, rank)))
			return false;
	return true;
}

const struct insn *op_bulk(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask) {
		uint64_t to = SOURCE(uint64_t, 0)[lane], barrier = insn->r[3] < 0 ? 0 : SOURCE(uint64_t, 3)[lane];
		uint32_t bytes = SOURCE(uint32_t, 2)[lane];
		if (bytes % 16)
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_MISALIGNED_ADDRESS,
					  "bulk copy of a size that is no multiple of 16", bytes);
		if (!(insn->r[5] < 0 ? bulk_copy : bulk_multicast)(warp, insn, lane, to, barrier))
			return NULL;
	}
	return insn + 1;
}
