/* SPDX-License-Identifier: BSD-3-Clause */
/* Special registers, kernel parameters, and the small operations on predicates and addresses. */
#include "cuda_remote/softgpu/exec/special.h"

#include "cuda_remote/softgpu/exec/async/cluster.h"
#include "cuda_remote/softgpu/exec/warp.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Registers that are the same in all lanes of a warp. */
static uint64_t uniform(const struct warp *warp, uint32_t id)
{
	const struct block *block = warp->block;
	const struct launch *launch = block->launch;
	switch (id) {
	case SPECIAL_NTID_X:
	case SPECIAL_NTID_Y:
	case SPECIAL_NTID_Z: return launch->request->block[id - SPECIAL_NTID_X];
	case SPECIAL_CTAID_X: case SPECIAL_CTAID_Y: case SPECIAL_CTAID_Z: return block->index[id - SPECIAL_CTAID_X];
	case SPECIAL_NCTAID_X:
	case SPECIAL_NCTAID_Y:
	case SPECIAL_NCTAID_Z: return launch->request->grid[id - SPECIAL_NCTAID_X];
	case SPECIAL_CLUSTERID_X:
	case SPECIAL_CLUSTERID_Y:
	case SPECIAL_CLUSTERID_Z:
		return block->index[id - SPECIAL_CLUSTERID_X] / launch->cluster[id - SPECIAL_CLUSTERID_X];
	case SPECIAL_CLUSTER_CTAID_X:
	case SPECIAL_CLUSTER_CTAID_Y:
	case SPECIAL_CLUSTER_CTAID_Z:
		return block->index[id - SPECIAL_CLUSTER_CTAID_X] % launch->cluster[id - SPECIAL_CLUSTER_CTAID_X];
	case SPECIAL_CLUSTER_CTARANK: return block->rank;
	case SPECIAL_NCLUSTERID_X:
	case SPECIAL_NCLUSTERID_Y:
	case SPECIAL_NCLUSTERID_Z:
		return launch->request->grid[id - SPECIAL_NCLUSTERID_X] / launch->cluster[id - SPECIAL_NCLUSTERID_X];
	case SPECIAL_CLUSTER_NCTAID_X:
	case SPECIAL_CLUSTER_NCTAID_Y:
	case SPECIAL_CLUSTER_NCTAID_Z: return launch->cluster[id - SPECIAL_CLUSTER_NCTAID_X];
	case SPECIAL_CLUSTER_NCTARANK: return launch->cluster_size;
	case SPECIAL_EXPLICIT_CLUSTER: return launch->explicit_cluster;
	case SPECIAL_WARPID: return warp->index;
	case SPECIAL_NWARPID: return BLOCK_WARPS_MAX;
	case SPECIAL_SMID: return block->multiprocessor;
	case SPECIAL_NSMID: return launch->workers;
	case SPECIAL_GRIDID: return launch->grid_id;
	case SPECIAL_CLOCK: return nanoseconds(CLOCK_MONOTONIC);
	case SPECIAL_CLOCK_HI: return nanoseconds(CLOCK_MONOTONIC) >> 32;
	case SPECIAL_GLOBALTIMER: case SPECIAL_GLOBALTIMER_LO: return nanoseconds(CLOCK_REALTIME);
	case SPECIAL_GLOBALTIMER_HI: return nanoseconds(CLOCK_REALTIME) >> 32;
	case SPECIAL_ENVREG1: return launch->grid_barrier >> 32;
	case SPECIAL_ENVREG2: return launch->grid_barrier;
	case SPECIAL_DYNAMIC_SHARED: return launch->request->dynamic_shared;
	case SPECIAL_TOTAL_SHARED: return launch->kernel->info.static_shared + launch->request->dynamic_shared;
	case SPECIAL_DYNAMIC_BASE: return launch->kernel->shared_bytes;
	default: return 0;
	}
}

static uint32_t of_lane(const struct warp *warp, uint32_t id, uint32_t lane)
{
	uint32_t bit = 1u << lane;
	switch (id) {
	case SPECIAL_LANEID: return lane;
	case SPECIAL_LANEMASK_EQ: return bit;
	case SPECIAL_LANEMASK_LT: return bit - 1;
	case SPECIAL_LANEMASK_LE: return bit | (bit - 1);
	case SPECIAL_LANEMASK_GE: return ~(bit - 1);
	case SPECIAL_LANEMASK_GT: return ~(bit | (bit - 1));
	default: return warp->block->launch->thread_ids[warp->index][id - SPECIAL_TID_X][lane];
	}
}

const struct insn *op_special(struct warp *warp, const struct insn *insn)
{
	uint64_t value = uniform(warp, insn->count) + insn->imm;
	for_each_lane(lane, warp->mask) {
		if (insn->size == 8)
			RESULT(uint64_t, 0)[lane] = value;
		else
			RESULT(uint32_t, 0)[lane] = (uint32_t)value;
	}
	return insn + 1;
}

static uint64_t parameter(const struct launch *launch, const struct launch_row *row)
{
	uint64_t value = 0;
	memcpy(&value, launch->parameters + row->offset, row->bytes);
	uint32_t unused = 64 - 8u * row->bytes;
	return row->is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

/* Writes one value to all lanes of a row. */
static void fill_uniform(char *to, uint64_t value, uint32_t width)
{
	if (width == 4) {
		uint32_t *row = __builtin_assume_aligned(to, 64);
		for (uint32_t lane = 0; lane < WARP_LANES; lane++)
			row[lane] = (uint32_t)value;
	} else if (width == 8) {
		uint64_t *row = __builtin_assume_aligned(to, 64);
		for (uint32_t lane = 0; lane < WARP_LANES; lane++)
			row[lane] = value;
	} else {
		for (uint32_t lane = 0; lane < WARP_LANES; lane++)
			memcpy(to + lane * width, &value, width);
	}
}

static void fill_row(struct warp *warp, const struct launch_row *row)
{
	char *to = warp->regs + row->row;
	if (row->special == LAUNCH_PARAMETER) {
		fill_uniform(to, parameter(warp->block->launch, row), row->width);
		return;
	}
	if (row->special > SPECIAL_LANEMASK_GT) {
		fill_uniform(to, uniform(warp, row->special), row->width);
		return;
	}
	for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
		uint64_t value = of_lane(warp, row->special, lane);
		memcpy(to + lane * row->width, &value, row->width);
	}
}

void warp_fill_rows(struct warp *warp, const struct code *code, bool new_launch)
{
	for (uint32_t n = 0; n < code->launch_row_count; n++) {
		uint32_t special = code->launch_rows[n].special;
		if (new_launch || (special >= SPECIAL_CTAID_X && special <= SPECIAL_LAST_OF_BLOCK))
			fill_row(warp, &code->launch_rows[n]);
	}
}

const struct insn *op_setp_combine(struct warp *warp, const struct insn *insn)
{
	uint32_t truth, other = insn->count ? predicate_of(warp, insn, 3) : 0;
	memcpy(&truth, warp->regs + insn->r[2], sizeof truth);
	uint32_t p = truth, q = ~truth;
	if (insn->count == 1) {
		p = truth & other;
		q = ~truth & other;
	} else if (insn->count == 2) {
		p = truth | other;
		q = ~truth | other;
	} else if (insn->count == 3) {
		p = truth ^ other;
		q = ~truth ^ other;
	}
	predicate_set(warp, insn->r[0], p);
	if (insn->r[1] >= 0)
		predicate_set(warp, insn->r[1], q);
	return insn + 1;
}

/* count: the window; size: of window 0, constant memory; of shared memory, the block's own only. */
const struct insn *op_isspacep(struct warp *warp, const struct insn *insn)
{
	const uint64_t *address = SOURCE(uint64_t, 1);
	const struct softgpu_program *program = warp->block->launch->program;
	uint32_t truth = 0;
	for_each_lane(lane, warp->mask) {
		bool is = address[lane] >> WINDOW_SHIFT == insn->count;
		bool is_const = address[lane] - program->const_base < program->const_size;
		if (insn->count == 0)
			is = is && is_const == (insn->size != 0);
		else if (is && insn->count == WINDOW_SHARED && insn->size)
			is = cluster_rank(warp->block, address[lane]) == warp->block->rank;
		truth |= (uint32_t)is << lane;
	}
	predicate_set(warp, insn->r[0], truth);
	return insn + 1;
}

/* Carries, in a predicate's row: r[4] in, r[5] out (-1: none). imm: 1 takes the carry, 2 subtracts, 4 .hi, 8 signed. */
__extension__ typedef unsigned __int128 wide;

static inline uint64_t add_carry(uint64_t a, uint64_t b, uint32_t in, uint32_t size, bool subtract, uint32_t *out)
{
	uint64_t mask = size == 8 ? UINT64_MAX : UINT32_MAX;
	wide sum = subtract ? (wide)(a & mask) - (b & mask) - in : (wide)(a & mask) + (b & mask) + in;
	*out = (uint32_t)(sum >> (size * 8)) & 1;
	return (uint64_t)sum & mask;
}

static inline uint64_t lane_value(const struct warp *warp, const struct insn *insn, int n, uint32_t lane)
{
	return insn->size == 8 ? SOURCE(uint64_t, n)[lane] : SOURCE(uint32_t, n)[lane];
}

static uint64_t product(const struct insn *insn, uint64_t a, uint64_t b)
{
	__extension__ typedef __int128 signed_wide;
	bool is_signed = insn->imm & 8, high = insn->imm & 4;
	if (insn->size == 8) {
		wide p = is_signed ? (wide)((signed_wide)(int64_t)a * (int64_t)b) : (wide)a * b;
		return (uint64_t)(high ? p >> 64 : p);
	}
	uint64_t p = is_signed ? (uint64_t)((int64_t)(int32_t)a * (int32_t)b) : (uint64_t)(uint32_t)a * (uint32_t)b;
	return high ? p >> 32 : (uint32_t)p;
}

static const struct insn *carry(struct warp *warp, const struct insn *insn, bool multiply)
{
	uint32_t carries = predicate_of(warp, insn, 4), out = 0;
	for_each_lane(lane, warp->mask) {
		uint64_t a = lane_value(warp, insn, 1, lane), b = lane_value(warp, insn, 2, lane);
		uint32_t in = insn->imm & 1 ? carries >> lane & 1 : 0, bit;
		if (multiply) {
			a = product(insn, a, b);
			b = lane_value(warp, insn, 3, lane);
		}
		uint64_t r = add_carry(a, b, in, insn->size, insn->imm & 2, &bit);
		if (insn->size == 8)
			RESULT(uint64_t, 0)[lane] = r;
		else
			RESULT(uint32_t, 0)[lane] = (uint32_t)r;
		out |= bit << lane;
	}
	if (insn->r[5] >= 0)
		predicate_set(warp, insn->r[5], out);
	return insn + 1;
}

const struct insn *op_add_cc(struct warp *warp, const struct insn *insn)
{
	return carry(warp, insn, false);
}

const struct insn *op_mad_cc(struct warp *warp, const struct insn *insn)
{
	return carry(warp, insn, true);
}
