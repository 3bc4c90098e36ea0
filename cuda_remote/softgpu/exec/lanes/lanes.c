/* SPDX-License-Identifier: BSD-3-Clause */
/* The interpreter's loop, and all lane operations of one instruction set. */
#include "cuda_remote/softgpu/exec/lanes/lanes.h"

#include "cuda_remote/softgpu/exec/texture/texture.h"

/* Handlers are called from four places, because the processor predicts each call by itself: 4 to 8 % faster than
 * one. */
#define STEP \
	if (!(insn = insn->handler(warp, insn))) \
		break

static void run(struct warp *warp, const struct insn *insn)
{
	for (;;) {
		STEP;
		STEP;
		STEP;
		STEP;
	}
#ifdef __AVX__
	/* The handlers leave values in the upper halves of the vector registers, which would slow down SSE instructions
	 * in the rest of the program. */
	_mm256_zeroupper();
#endif
}

/* The same, counting. A join or guard, which the decoder puts before an instruction, does not count. */
static void run_counting(struct warp *warp, const struct insn *insn)
{
	do {
		if (insn->handler != op_join && insn->handler != op_guard) {
			warp->executed++;
			warp->executed_lanes += (uint64_t)__builtin_popcount(warp->mask);
		}
		insn = insn->handler(warp, insn);
	} while (insn);
#ifdef __AVX__
	_mm256_zeroupper();
#endif
}

static bool is_part_of_next(const struct insn *insn)
{
	return insn->handler == op_join || insn->handler == op_guard || insn->handler == op_texture_stage;
}

static void run_step(struct warp *warp, const struct insn *insn)
{
	bool part;
	do {
		part = is_part_of_next(insn);
		if (warp->block->launch->counting && !part) {
			warp->executed++;
			warp->executed_lanes += (uint64_t)__builtin_popcount(warp->mask);
		}
		insn = insn->handler(warp, insn);
	} while (insn && part);
	warp->resume = insn;
	if (insn)
		warp->stop = WARP_PREEMPTED;
#ifdef __AVX__
	_mm256_zeroupper();
#endif
}

#define ISA_TEXT_(isa) #isa
#define ISA_TEXT(isa) ISA_TEXT_(isa)
#define OPS_TABLE(name) LANES_NAME(ops_##name),
static insn_handler *const *const tables[] = {
#include "cuda_remote/softgpu/exec/instructions/tables.h"
};

const struct lane_ops LANES_NAME(lane_ops) = {
	.isa = ISA_TEXT(LANES_ISA),
	.run = run,
	.run_counting = run_counting,
	.run_step = run_step,
	.ops = tables,
	.loads = LANES_NAME(loads),
	.signed_loads = LANES_NAME(signed_loads),
	.stores = LANES_NAME(stores),
	.matrix_multiply = LANES_NAME(op_matrix_multiply),
	.single_lane_label = LANES_NAME(single_lane_label),
	.single_lane_entry = LANES_NAME(single_lane_entry),
};
