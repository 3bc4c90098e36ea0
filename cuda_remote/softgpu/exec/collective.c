/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions that lanes of a warp execute together: shuffles, votes, matches, reductions (PTX ISA, "Data Movement",
 * "Parallel Synchronization"). */
#include "cuda_remote/softgpu/exec/collective.h"

#include "cuda_remote/softgpu/exec/warp.h"

#include <string.h>

/* The largest subset of lanes in which each lane has all of its live members. */
static uint32_t complete_lanes(const struct warp *warp, const uint32_t *members, uint32_t lanes)
{
	uint32_t before;
	do {
		before = lanes;
		for_each_lane(lane, before)
			if (members[lane] & warp->live & ~before)
				lanes &= ~(1u << lane);
	} while (lanes != before);
	return lanes;
}

bool collective_gather(struct warp *warp, const struct insn *insn, const uint32_t *members)
{
	uint32_t wanted = 0, before = warp->mask;
	for_each_lane(lane, before)
		wanted |= members[lane];
	if (warp_converge(warp, insn, wanted) && warp->mask == before)
		return true;
	/* The lanes may belong to several groups. A group goes on when its own members are here, whatever the others
	 * do. */
	uint32_t ready = complete_lanes(warp, members, warp->mask);
	warp_park(warp, insn, warp->mask & ~ready, PATH_CONVERGE);
	if (ready)
		warp_set_mask(warp, ready);
	return ready != 0;
}

/* Whether all lanes in the running lanes' member masks, operand n, are here. False: the path has been parked. */
static bool members_here(struct warp *warp, const struct insn *insn, int n)
{
	/* a form without .sync does not wait */
	return insn->r[n] < 0 || collective_gather(warp, insn, SOURCE(uint32_t, n));
}

const struct insn *op_warp_sync(struct warp *warp, const struct insn *insn)
{
	return members_here(warp, insn, 1) ? insn + 1 : warp_next_path(warp);
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
		return warp_next_path(warp);
	const uint32_t *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
	uint32_t values[WARP_LANES], results[WARP_LANES], inside = 0;
	/* PTX leaves open what is read from a lane that is not here; programs (NVIDIA's sample "reduction") rely on
	 * 0. */
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
		return warp_next_path(warp);
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
		return warp_next_path(warp);
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
		return warp_next_path(warp);
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

/* The lowest lane of the members leads. */
const struct insn *op_elect(struct warp *warp, const struct insn *insn)
{
	const uint32_t *members = SOURCE(uint32_t, 1);
	uint32_t leaders[WARP_LANES], truth = 0;
	if (!collective_gather(warp, insn, members))
		return warp_next_path(warp);
	for_each_lane(lane, warp->mask) {
		uint32_t group = members[lane] & warp->mask;
		leaders[lane] = group ? (uint32_t)__builtin_ctz(group) : lane;
		truth |= (uint32_t)(leaders[lane] == lane) << lane;
	}
	for_each_lane(lane, warp->mask)
		RESULT(uint32_t, 0)[lane] = leaders[lane];
	predicate_set(warp, insn->r[5], truth);
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

/*
 * ---- collectives of paths at different instructions. From sm_70 on, the members need not be at the same instruction,
 * only at instructions with the same qualifiers and members ("shfl.sync", "bar.warp.sync"). Each lane's operands are
 * copied to rows of the stage; one of the instructions runs on these rows for all lanes; then each path's results are
 * copied to the rows that its own instruction names.
 */
#define STAGE_ROW ((int32_t)(WARP_LANES * sizeof(uint64_t)))

enum { NOT_USED, WORD_IN, WORD_OUT, TRUTH_IN, TRUTH_OUT, VALUE_IN, RESULT_OUT };

static const struct meeting {
	insn_handler *handler;
	uint8_t members; /* the operand with the member masks */
	uint8_t operands[STAGE_ROWS];
} meetings[] = {
	{ op_warp_sync, 1, { NOT_USED, WORD_IN } },
	{ op_shfl, 4, { WORD_OUT, WORD_IN, WORD_IN, WORD_IN, WORD_IN, TRUTH_OUT } },
	{ op_vote, 2, { RESULT_OUT, TRUTH_IN, WORD_IN } },
	{ op_match, 2, { WORD_OUT, VALUE_IN, WORD_IN, NOT_USED, NOT_USED, TRUTH_OUT } },
	{ op_redux, 2, { WORD_OUT, WORD_IN, WORD_IN } },
	{ op_elect, 1, { WORD_OUT, WORD_IN, NOT_USED, NOT_USED, NOT_USED, TRUTH_OUT } },
};

static const struct meeting *meeting_of(const struct path *path)
{
	for (size_t n = 0; n < sizeof meetings / sizeof *meetings; n++)
		if (path->state == PATH_CONVERGE && path->at->handler == meetings[n].handler)
			return &meetings[n];
	return NULL;
}

static bool same_kind(const struct insn *a, const struct insn *b)
{
	return a->handler == b->handler && a->count == b->count && a->size == b->size &&
	       !((a->flags ^ b->flags) & ~INSN_NEGATE);
}

/* Moves one path's lanes of an operand between its own row and the stage's. */
static void stage_operand(struct warp *warp, const struct path *path, int n, uint32_t kind, bool out)
{
	const struct insn *insn = path->at;
	char *staged = block_stage(warp->block) + n * STAGE_ROW, *own = warp->regs + insn->r[n];
	bool truth = kind == TRUTH_IN || kind == TRUTH_OUT || (kind == RESULT_OUT && insn->count != VOTE_BALLOT);
	uint32_t width = kind == VALUE_IN ? insn->size : 4, from, to;
	if (!truth) {
		for_each_lane(lane, path->mask)
			memcpy((out ? own : staged) + lane * width, (out ? staged : own) + lane * width, width);
		return;
	}
	memcpy(&from, out ? staged : own, sizeof from);
	memcpy(&to, out ? own : staged, sizeof to);
	from = !out && insn->flags & INSN_NEGATE ? ~from : from;
	to = (to & ~path->mask) | (from & path->mask);
	memcpy(out ? own : staged, &to, sizeof to);
}

static void stage_path(struct warp *warp, const struct path *path, const struct meeting *meeting, bool out)
{
	for (int n = 0; n < STAGE_ROWS; n++) {
		uint32_t kind = meeting->operands[n];
		bool is_out = kind == WORD_OUT || kind == TRUTH_OUT || kind == RESULT_OUT;
		if (kind != NOT_USED && is_out == out && path->at->r[n] >= 0)
			stage_operand(warp, path, n, kind, out);
	}
}

/* The given lanes of a path have gone on to the next instruction; its other lanes, if any, wait where they are. */
static void step_path(struct warp *warp, struct path *path, uint32_t lanes)
{
	struct path gone = *path;
	gone.at++;
	gone.mask &= lanes;
	gone.state = PATH_READY;
	path->mask &= ~lanes;
	if (path->mask)
		warp->others[warp->other_count++] = gone;
	else
		*path = gone;
}

/* The given lanes execute their paths' instructions together. paths: a mask of the paths' numbers in warp->others. */
static void meet(struct warp *warp, const struct meeting *meeting, uint32_t paths, uint32_t lanes)
{
	struct insn joint = *warp->others[__builtin_ctz(paths)].at;
	for (int n = 0; n < STAGE_ROWS; n++)
		joint.r[n] = (int32_t)(block_stage(warp->block) - warp->regs) + n * STAGE_ROW;
	joint.flags &= (uint8_t)~INSN_NEGATE;
	for_each_lane(path, paths)
		stage_path(warp, &warp->others[path], meeting, false);
	warp_set_mask(warp, lanes);
	warp->forced = true; /* all members are here: do not wait for more */
	joint.handler(warp, &joint);
	for_each_lane(path, paths) {
		struct path part = warp->others[path];
		part.mask &= lanes;
		stage_path(warp, &part, meeting, true);
		if (part.mask)
			step_path(warp, &warp->others[path], lanes);
	}
}

/* A mask of the paths that wait at instructions of the same kind as path first does; their lanes and each lane's
 * members. */
static uint32_t paths_like(const struct warp *warp, const struct meeting *meeting, uint32_t first, uint32_t *lanes,
			   uint32_t members[WARP_LANES])
{
	uint32_t paths = 0;
	*lanes = 0;
	for (uint32_t n = first; n < warp->other_count; n++) {
		const struct path *path = &warp->others[n];
		if (meeting_of(path) != meeting || !same_kind(path->at, warp->others[first].at))
			continue;
		const uint32_t *row = operand_row(warp, path->at->r[meeting->members]);
		for_each_lane(lane, path->mask)
			members[lane] = row[lane];
		paths |= 1u << n;
		*lanes |= path->mask;
	}
	return paths;
}

bool collective_meet(struct warp *warp)
{
	ptrdiff_t distance = block_stage(warp->block) - warp->regs;
	for (uint32_t first = 0; first < warp->other_count && distance <= INT32_MAX - STAGE_ROW * STAGE_ROWS; first++) {
		const struct meeting *meeting = meeting_of(&warp->others[first]);
		uint32_t lanes, members[WARP_LANES];
		if (!meeting || warp->others[first].at->r[meeting->members] < 0)
			continue;
		uint32_t paths = paths_like(warp, meeting, first, &lanes, members);
		lanes = complete_lanes(warp, members, lanes);
		if (!lanes)
			continue;
		meet(warp, meeting, paths, lanes);
		return true;
	}
	return false;
}
