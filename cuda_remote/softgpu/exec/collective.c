/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions that lanes of a warp execute together: shuffles, votes, matches, reductions (PTX ISA, "Data Movement",
 * "Parallel Synchronization"). */
#include "cuda_remote/softgpu/exec/collective.h"

#include "cuda_remote/softgpu/exec/warp.h"

#include <time.h>

/* All lanes that the running ones name in their member masks are here, or the path waits: then NULL is to be returned.
 */
static bool members_here(struct warp *warp, const struct insn *insn, int n)
{
	uint32_t wanted = 0;
	if (insn->r[n] < 0) /* a form without .sync waits for nobody */
		return true;
	const uint32_t *members = SOURCE(uint32_t, n);
	for_each_lane(lane, warp->mask)
		wanted |= members[lane];
	if (warp_converge(warp, insn, wanted))
		return true;
	return false;
}

static const struct insn *wait_for_members(struct warp *warp, const struct insn *insn)
{
	warp_park(warp, insn, warp->mask, PATH_CONVERGE);
	return warp_next_path(warp);
}

const struct insn *op_warp_sync(struct warp *warp, const struct insn *insn)
{
	return members_here(warp, insn, 1) ? insn + 1 : wait_for_members(warp, insn);
}

/* The lane that a lane reads from; *valid: whether it is within the segment that clamp (c) describes. */
static uint32_t shuffle_source(enum shuffle mode, uint32_t lane, uint32_t b, uint32_t c, bool *valid)
{
	uint32_t segment = c >> 8 & 31, limit = c & 31, low = lane & segment, max = low | (limit & ~segment), from;
	b &= 31;
	switch (mode) {
	case SHUFFLE_UP:
		from = lane - b;
		*valid = (int32_t)from >= (int32_t)max;
		break;
	case SHUFFLE_DOWN:
		from = lane + b;
		*valid = from <= max;
		break;
	case SHUFFLE_BUTTERFLY:
		from = lane ^ b;
		*valid = from <= max;
		break;
	default:
		from = low | (b & ~segment);
		*valid = from <= max;
		break;
	}
	return *valid ? from & 31 : lane;
}

const struct insn *op_shfl(struct warp *warp, const struct insn *insn)
{
	if (!members_here(warp, insn, 4))
		return wait_for_members(warp, insn);
	const uint32_t *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
	uint32_t values[WARP_LANES], results[WARP_LANES], inside = 0;
	/* PTX leaves open what a lane that is not here gives; programs (reduction of NVIDIA's samples) count on 0. */
	for (uint32_t lane = 0; lane < WARP_LANES; lane++)
		values[lane] = warp->mask >> lane & 1 ? SOURCE(uint32_t, 1)[lane] : 0;
	for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
		bool valid;
		results[lane] = values[shuffle_source((enum shuffle)insn->count, lane, b[lane], c[lane], &valid)];
		inside |= (uint32_t)valid << lane;
	}
	uint32_t *row = RESULT(uint32_t, 0);
	for_each_lane(lane, warp->mask)
		row[lane] = results[lane];
	if (insn->r[5] >= 0)
		predicate_set(warp, insn->r[5], inside);
	return insn + 1;
}

const struct insn *op_vote(struct warp *warp, const struct insn *insn)
{
	if (!members_here(warp, insn, 2))
		return wait_for_members(warp, insn);
	uint32_t truth = predicate_of(warp, insn, 1) & warp->mask, result = 0;
	uint32_t *row = RESULT(uint32_t, 0);
	uint32_t ballots[WARP_LANES];
	for_each_lane(lane, warp->mask) {
		uint32_t group = (insn->r[2] < 0 ? FULL_MASK : SOURCE(uint32_t, 2)[lane]) & warp->mask, ones = truth & group;
		bool yes = insn->count == VOTE_ALL   ? ones == group
			   : insn->count == VOTE_ANY ? ones != 0
						     : ones == 0 || ones == group;
		ballots[lane] = ones;
		result |= (uint32_t)yes << lane;
	}
	if (insn->count != VOTE_BALLOT)
		predicate_set(warp, insn->r[0], result);
	else
		for_each_lane(lane, warp->mask)
			row[lane] = ballots[lane];
	return insn + 1;
}

const struct insn *op_match(struct warp *warp, const struct insn *insn)
{
	if (!members_here(warp, insn, 2))
		return wait_for_members(warp, insn);
	const uint32_t *members = SOURCE(uint32_t, 2);
	uint64_t values[WARP_LANES];
	uint32_t results[WARP_LANES], all_same = 0;
	for_each_lane(lane, warp->mask)
		values[lane] = insn->size == 8 ? SOURCE(uint64_t, 1)[lane] : SOURCE(uint32_t, 1)[lane];
	for_each_lane(lane, warp->mask) {
		uint32_t group = members[lane] & warp->mask, same = 0;
		for_each_lane(other, group)
			same |= (uint32_t)(values[other] == values[lane]) << other;
		bool whole = same == group;
		results[lane] = insn->count ? (whole ? group : 0) : same;
		all_same |= (uint32_t)whole << lane;
	}
	uint32_t *row = RESULT(uint32_t, 0);
	for_each_lane(lane, warp->mask)
		row[lane] = results[lane];
	if (insn->r[5] >= 0)
		predicate_set(warp, insn->r[5], all_same);
	return insn + 1;
}

const struct insn *op_activemask(struct warp *warp, const struct insn *insn)
{
	uint32_t *row = RESULT(uint32_t, 0);
	for_each_lane(lane, warp->mask)
		row[lane] = warp->mask;
	return insn + 1;
}

static uint32_t reduce(const struct insn *insn, uint32_t a, uint32_t b)
{
	bool is_signed = insn->flags & INSN_SIGNED, less = is_signed ? (int32_t)a < (int32_t)b : a < b;
	switch (insn->count) {
	case REDUCE_ADD: return a + b;
	case REDUCE_MIN: return less ? a : b;
	case REDUCE_MAX: return less ? b : a;
	case REDUCE_AND: return a & b;
	case REDUCE_OR: return a | b;
	default: return a ^ b;
	}
}

const struct insn *op_redux(struct warp *warp, const struct insn *insn)
{
	if (!members_here(warp, insn, 2))
		return wait_for_members(warp, insn);
	const uint32_t *members = SOURCE(uint32_t, 2), *source = SOURCE(uint32_t, 1);
	uint32_t results[WARP_LANES];
	for_each_lane(lane, warp->mask) {
		uint32_t group = members[lane] & warp->mask;
		bool first = true;
		results[lane] = 0;
		for_each_lane(other, group) {
			results[lane] = first ? source[other] : reduce(insn, results[lane], source[other]);
			first = false;
		}
	}
	uint32_t *row = RESULT(uint32_t, 0);
	for_each_lane(lane, warp->mask)
		row[lane] = results[lane];
	return insn + 1;
}

/* Orders this worker's accesses before it against those after it, as other workers and the host see them. */
const struct insn *op_fence(struct warp *warp, const struct insn *insn)
{
	(void)warp;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return insn + 1;
}

const struct insn *op_nanosleep(struct warp *warp, const struct insn *insn)
{
	return warp_yield(warp, insn + 1);
}
