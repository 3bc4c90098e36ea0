/* SPDX-License-Identifier: BSD-3-Clause */
/* mbarrier objects in shared memory: arrival, expected bytes, phases, waiting. */
#include "cuda_remote/softgpu/exec/async/mbarrier.h"

#include "cuda_remote/softgpu/exec/async/cluster.h"

#include <string.h>

/*
 * The object's bits: pending arrivals 0…19, expected arrivals 20…39, pending bytes 40…60 (signed), number of the phase
 * 61…63. arrive returns the object as it was before the arrival.
 */
#define COUNT_MAX ((1 << 20) - 1)

struct mbarrier {
	uint32_t pending, expected, phase;
	int32_t bytes;
};

static struct mbarrier unpack(uint64_t bits)
{
	return (struct mbarrier){ .pending = bits & COUNT_MAX,
				  .expected = (uint32_t)(bits >> 20) & COUNT_MAX,
				  .bytes = (int32_t)((int64_t)(bits << 3) >> 43),
				  .phase = (uint32_t)(bits >> 61) };
}

static uint64_t pack(const struct mbarrier *barrier)
{
	return (uint64_t)barrier->pending | (uint64_t)barrier->expected << 20 |
	       (uint64_t)((uint32_t)barrier->bytes & 0x1fffff) << 40 | (uint64_t)barrier->phase << 61;
}

static void complete_if_done(struct mbarrier *barrier)
{
	if (barrier->pending || barrier->bytes)
		return;
	barrier->pending = barrier->expected;
	barrier->phase = (barrier->phase + 1) & 7;
}

static char *object_at(struct warp *warp, const struct insn *insn, uint32_t lane, enum access_space space,
		       uint64_t address)
{
	if (address & 7) {
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned mbarrier", address);
		return NULL;
	}
	char *object = memory_translate_in(warp, lane, space, address, 8, true);
	if (!object || !cluster_holds(warp->block, object)) {
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS, "mbarrier outside shared memory",
			   address);
		return NULL;
	}
	return object;
}

bool mbarrier_complete_tx(struct warp *warp, const struct insn *insn, uint32_t lane, enum access_space space,
			  uint64_t address, uint32_t bytes)
{
	uint64_t bits;
	char *object = object_at(warp, insn, lane, space, address);
	if (!object)
		return false;
	memcpy(&bits, object, sizeof bits);
	struct mbarrier barrier = unpack(bits);
	barrier.bytes -= (int32_t)bytes;
	complete_if_done(&barrier);
	bits = pack(&barrier);
	memcpy(object, &bits, sizeof bits);
	return true;
}

/* False: more arrive than the phase expects, which the ISA leaves undefined. */
static bool arrive(struct mbarrier *barrier, uint32_t count, uint32_t flags)
{
	if (count > barrier->pending || (flags & MBARRIER_DROP && count > barrier->expected))
		return false;
	if (flags & MBARRIER_DROP)
		barrier->expected -= count;
	barrier->pending -= count;
	if (!(flags & MBARRIER_NO_COMPLETE))
		complete_if_done(barrier);
	return true;
}

/* False: the arrival was one too many. */
static bool change(struct mbarrier *barrier, const struct insn *insn, uint32_t operand)
{
	switch (insn->count) {
	case MBARRIER_INIT:
		*barrier = (struct mbarrier){ .pending = operand & COUNT_MAX, .expected = operand & COUNT_MAX };
		return true;
	case MBARRIER_INVAL:
		/* The object keeps its bits: threads may still test the phase that has just ended, as libcu++'s tests do. */
		return true;
	case MBARRIER_EXPECT_TX:
		barrier->bytes += (int32_t)operand;
		return true;
	case MBARRIER_COMPLETE_TX:
		barrier->bytes -= (int32_t)operand;
		complete_if_done(barrier);
		return true;
	case MBARRIER_ARRIVE_EXPECT_TX:
		barrier->bytes += (int32_t)operand;
		return arrive(barrier, 1, insn->size);
	default:
		return arrive(barrier, operand, insn->size);
	}
}

static bool phase_over(const struct mbarrier *barrier, const struct warp *warp, const struct insn *insn, uint32_t lane)
{
	if (insn->count == MBARRIER_TEST_PARITY)
		return (barrier->phase & 1) != (SOURCE(uint32_t, 1)[lane] & 1);
	return unpack(SOURCE(uint64_t, 1)[lane]).phase != barrier->phase;
}

/* One lane; *over: what a test found. False after a fault. */
static bool run_lane(struct warp *warp, const struct insn *insn, uint32_t lane, bool *over)
{
	uint64_t address, bits;
	if (insn->flags & INSN_NARROW)
		address = (uint32_t)(SOURCE(uint32_t, 4)[lane] + (uint32_t)insn->imm);
	else
		address = SOURCE(uint64_t, 4)[lane] + insn->imm;
	char *object = object_at(warp, insn, lane, (enum access_space)insn->slot, address);
	if (!object)
		return false;
	memcpy(&bits, object, sizeof bits);
	struct mbarrier barrier = unpack(bits);
	if (insn->count >= MBARRIER_TEST_WAIT) {
		*over = phase_over(&barrier, warp, insn, lane);
		return true;
	}
	if (!change(&barrier, insn, insn->r[1] < 0 ? 0 : SOURCE(uint32_t, 1)[lane])) {
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_LAUNCH_FAILED, "more arrivals than the mbarrier expects",
			   address);
		return false;
	}
	if (insn->r[0] >= 0)
		RESULT(uint64_t, 0)[lane] = bits;
	bits = pack(&barrier);
	memcpy(object, &bits, sizeof bits);
	return true;
}

const struct insn *op_mbarrier(struct warp *warp, const struct insn *insn)
{
	uint32_t truth = 0;
	for_each_lane(lane, warp->mask) {
		bool over = false;
		if (!run_lane(warp, insn, lane, &over))
			return NULL;
		truth |= (uint32_t)over << lane;
	}
	if (insn->count < MBARRIER_TEST_WAIT)
		return insn + 1;
	predicate_set(warp, insn->r[0], truth);
	/* try_wait may suspend the thread: other paths and warps run before it tests again. */
	if (insn->size & MBARRIER_SUSPENDS && truth != warp->mask)
		return warp_yield(warp, insn + 1);
	return insn + 1;
}

const struct insn *op_mbarrier_pending(struct warp *warp, const struct insn *insn)
{
	const uint64_t *states = SOURCE(uint64_t, 1);
	uint32_t counts[WARP_LANES];
	for_each_lane(lane, warp->mask)
		counts[lane] = unpack(states[lane]).pending;
	for_each_lane(lane, warp->mask)
		RESULT(uint32_t, 0)[lane] = counts[lane];
	return insn + 1;
}
