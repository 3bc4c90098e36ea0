/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that decide where a path goes on: branches, calls, returns and exits; and the wrappers for directed
 * rounding. */
#include "cuda_remote/softgpu/exec/warp.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#define CODE const struct insn *

CODE op_nop(struct warp *warp, CODE insn)
{
	(void)warp;
	return insn + 1;
}

CODE op_bra(struct warp *warp, CODE insn)
{
	(void)warp;
	return insn->target;
}

/* The running path goes on at "at" if it is still the next to run; else it is parked there, where others can join
 * it. */
static CODE go_on(struct warp *warp, CODE at)
{
	if (!warp_others_come_first(warp, at))
		return warp_enter(warp, at);
	warp_park(warp, at, warp->mask, PATH_READY);
	return warp_next_path(warp);
}

/* Part of the path goes to the target, the rest to the next instruction. */
static __attribute__((noinline)) CODE split(struct warp *warp, CODE insn, uint32_t taken)
{
	uint32_t mask = warp->mask;
	if (warp->ahead) {
		/* It keeps running while its fuel lasts: the lanes taken go on, or all if none is; the others are
		 * parked. */
		CODE way = taken ? insn->target : insn + 1;
		warp_park(warp, insn + 1, taken ? mask & ~taken : 0, PATH_READY);
		warp_set_mask(warp, taken ? taken : mask);
		return warp_enter(warp, way);
	}
	if (taken == mask)
		return go_on(warp, insn->target);
	if (taken == 0)
		return go_on(warp, insn + 1);
	bool back = insn->target <= insn;
	warp_park(warp, back ? insn + 1 : insn->target, back ? mask & ~taken : taken, PATH_READY);
	warp_set_mask(warp, back ? taken : mask & ~taken);
	return go_on(warp, back ? insn->target : insn + 1);
}

/* Like split. In the usual case, all lanes go one way and no other path comes first, it costs one comparison. */
static inline CODE branch(struct warp *warp, CODE insn, uint32_t taken)
{
	CODE way = taken ? insn->target : insn + 1;
	if (taken == 0 || taken == warp->mask) {
		if (warp->other_count == 0 || (!warp->ahead && !warp_others_come_first(warp, way)))
			return way;
	}
	return split(warp, insn, taken);
}

static inline bool out_of_fuel(struct warp *warp, CODE insn)
{
	warp->fuel -= insn->count;
	return warp->fuel < 0;
}

CODE op_bra_back(struct warp *warp, CODE insn)
{
	if (out_of_fuel(warp, insn))
		return warp_yield(warp, insn->target);
	return branch(warp, insn, warp->mask);
}

CODE op_branch(struct warp *warp, CODE insn)
{
	return branch(warp, insn, predicate_of(warp, insn, 1) & warp->mask);
}

CODE op_branch_back(struct warp *warp, CODE insn)
{
	uint32_t taken = predicate_of(warp, insn, 1) & warp->mask;
	if (taken && out_of_fuel(warp, insn)) {
		warp_park(warp, insn + 1, warp->mask & ~taken, PATH_READY);
		warp_set_mask(warp, taken);
		return warp_yield(warp, insn->target);
	}
	return branch(warp, insn, taken);
}

/* The target of forward branches: the paths that are here join. */
CODE op_join(struct warp *warp, CODE insn)
{
	if (__builtin_expect(warp->other_count == 0, 1))
		return insn + 1;
	/* Branches lead to the join itself, so other paths wait there. */
	for (uint32_t n = 0; n < warp->other_count; n++) {
		struct path *other = &warp->others[n];
		if (other->at != insn || other->state != PATH_READY || other->depth != warp->depth)
			continue;
		warp_set_mask(warp, warp->mask | other->mask);
		*other = warp->others[--warp->other_count];
		n--;
	}
	/* The running path may have jumped past others that are on their way here. */
	if (warp->ahead || warp_goes_first(warp, insn))
		return insn + 1;
	warp_park(warp, insn, warp->mask, PATH_READY);
	return warp_next_path(warp);
}

CODE op_guard(struct warp *warp, CODE insn)
{
	uint32_t mask = warp->mask, some = predicate_of(warp, insn, 1) & mask;
	if (some == 0)
		return insn + 2;
	if (some == mask)
		return insn + 1;
	warp_set_mask(warp, some);
	CODE next = insn[1].handler(warp, insn + 1);
	warp_set_mask(warp, mask);
	return next;
}

CODE op_brx(struct warp *warp, CODE insn)
{
	const uint32_t *index = SOURCE(uint32_t, 1);
	const struct jump_table *jumps = insn->jumps;
	uint32_t leader = (uint32_t)__builtin_ctz(warp->mask), same = 0, wanted = index[leader];
	for_each_lane(lane, warp->mask)
		same |= (uint32_t)(index[lane] == wanted) << lane;
	if (wanted >= jumps->count)
		return warp_fault(warp, insn, (int)leader, CUDA_ERROR_ILLEGAL_INSTRUCTION,
				  "branch past its list of targets", wanted);
	uint32_t rest = warp->mask & ~same;
	warp_park(warp, jumps->targets[wanted], same, PATH_READY);
	warp_park(warp, insn, rest, PATH_READY);
	/* A loop through brx must yield like any other. */
	return --warp->fuel < 0 ? warp_out_of_fuel(warp) : warp_next_path(warp);
}

/* ---- calls */

/* Registers of one activation of a recursive function, one lane, while a deeper one runs. */
struct saved_frame {
	struct saved_frame *below;
	const struct code *code;
	char bytes[];
};

/* One lane's column of a function's rows, packed: predicates take a byte each. */
static size_t column_bytes(const struct code *code)
{
	return code->class_start[3] / WARP_LANES + (code->class_start[4] - code->class_start[3]) / 4;
}

/* Copies one lane's column between a function's rows and a packed buffer. */
static void copy_column(struct warp *warp, const struct code *code, uint32_t lane, char *buffer, bool save)
{
	char *base = warp->regs + code->register_base;
	static const uint32_t widths[] = { 8, 4, 2 };
	for (int class = 0; class < 3; class++) {
		uint32_t width = widths[class];
		for (uint32_t row = code->class_start[class]; row + width * WARP_LANES <= code->class_start[class + 1];
		     row += width * WARP_LANES) {
			char *cell = base + row + lane * width;
			memcpy(save ? buffer : cell, save ? cell : buffer, width);
			buffer += width;
		}
	}
	for (uint32_t row = code->class_start[3]; row < code->class_start[4]; row += 4) {
		uint32_t mask, bit = 1u << lane;
		memcpy(&mask, base + row, 4);
		if (save) {
			*buffer++ = (char)((mask & bit) != 0);
		} else {
			mask = *buffer++ ? mask | bit : mask & ~bit;
			memcpy(base + row, &mask, 4);
		}
	}
}

static bool save_frames(struct warp *warp, const struct code *code)
{
	for_each_lane(lane, warp->mask) {
		struct saved_frame *frame = malloc(sizeof *frame + column_bytes(code));
		if (!frame)
			return false;
		frame->below = warp->saved[lane];
		frame->code = code;
		copy_column(warp, code, lane, frame->bytes, true);
		warp->saved[lane] = frame;
	}
	return true;
}

static void restore_frames(struct warp *warp, const struct code *code)
{
	for_each_lane(lane, warp->mask) {
		struct saved_frame *frame = warp->saved[lane];
		if (!frame)
			continue;
		copy_column(warp, code, lane, frame->bytes, false);
		warp->saved[lane] = frame->below;
		free(frame);
	}
}

void warp_drop_saved(struct warp *warp)
{
	for (int lane = 0; lane < WARP_LANES; lane++) {
		while (warp->saved[lane]) {
			struct saved_frame *below = warp->saved[lane]->below;
			free(warp->saved[lane]);
			warp->saved[lane] = below;
		}
	}
}

static void copy_in_frames(struct warp *warp, const uint64_t *from_frame, uint64_t from_extra, uint64_t to_extra,
			   const struct call_copy *copies, uint32_t count)
{
	uint64_t stride = warp->block->launch->local_bytes;
	for_each_lane(lane, warp->mask) {
		char *frame = warp->local + lane * stride + from_frame[lane];
		for (uint32_t n = 0; n < count; n++)
			memmove(frame + to_extra + copies[n].to, frame + from_extra + copies[n].from, copies[n].size);
	}
}

static CODE enter(struct warp *warp, CODE insn, const struct code *callee, uint32_t mask)
{
	const struct call_site *site = insn->call;
	const uint64_t *frame = SOURCE(uint64_t, 2);
	uint64_t frames[WARP_LANES], room = warp->block->launch->local_bytes;
	uint32_t all = warp->mask;
	warp_set_mask(warp, mask);
	for_each_lane(lane, mask) {
		/* A frame may be empty, but a GPU's stack also holds the return address of each call. */
		bool endless = callee->recursive && (warp->depth + 1ull) * sizeof(uint64_t) > room;
		frames[lane] = frame[lane] + site->frame_size;
		if (endless || frames[lane] + callee->frame_size > room)
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_HARDWARE_STACK_ERROR, "stack overflow",
					  frames[lane]);
	}
	copy_in_frames(warp, frame, 0, site->frame_size, site->arguments, site->argument_count);
	if (callee->recursive && !save_frames(warp, callee))
		return warp_fault(warp, insn, __builtin_ctz(mask), CUDA_ERROR_OUT_OF_MEMORY, "no memory for a recursive call",
				  0);
	uint64_t *callee_frame = (uint64_t *)(void *)(warp->regs + callee->frame_row);
	uint64_t *returns = (uint64_t *)(void *)(warp->regs + callee->return_row);
	for_each_lane(lane, mask) {
		callee_frame[lane] = frames[lane];
		returns[lane] = (uint64_t)(uintptr_t)(insn + 1);
	}
	warp_park(warp, insn, all & ~mask, PATH_READY);
	warp->depth++;
	if (warp->other_count == 0)
		return callee->insns;
	warp_park(warp, callee->insns, mask, PATH_READY);
	return warp_next_path(warp);
}

CODE op_call(struct warp *warp, CODE insn)
{
	return enter(warp, insn, insn->call->callee, warp->mask);
}

static const struct code *find_code(const struct softgpu_program *program, uint64_t address)
{
	for (const struct code *code = program->codes; code; code = code->next)
		if ((uint64_t)(uintptr_t)code == address && !code->function->is_kernel)
			return code;
	return NULL;
}

CODE op_call_indirect(struct warp *warp, CODE insn)
{
	const uint64_t *targets = SOURCE(uint64_t, 1);
	uint32_t leader = (uint32_t)__builtin_ctz(warp->mask), same = 0;
	const struct code *callee = find_code(warp->block->launch->program, targets[leader]);
	if (!callee || callee->signature != insn->call->signature)
		return warp_fault(warp, insn, (int)leader, CUDA_ERROR_INVALID_PC,
				  "call of an address that is no function of this type", targets[leader]);
	for_each_lane(lane, warp->mask)
		same |= (uint32_t)(targets[lane] == targets[leader]) << lane;
	return enter(warp, insn, callee, same);
}

CODE op_call_return(struct warp *warp, CODE insn)
{
	const struct call_site *site = insn->call;
	copy_in_frames(warp, SOURCE(uint64_t, 2), site->frame_size, 0, site->results, site->result_count);
	return insn + 1;
}

const struct code *code_of(const struct softgpu_program *program, CODE insn)
{
	for (const struct code *code = program->codes; code; code = code->next)
		if (insn >= code->insns && insn < code->insns + code->insn_count)
			return code;
	return NULL;
}

CODE op_return(struct warp *warp, CODE insn)
{
	const struct code *code = code_of(warp->block->launch->program, insn);
	uint64_t returns[WARP_LANES];
	uint32_t mask = warp->mask, left = mask;
	memcpy(returns, warp->regs + code->return_row, sizeof returns);
	if (code->recursive)
		restore_frames(warp, code);
	warp->depth--;
	uint64_t first = returns[__builtin_ctz(mask)];
	while (left) {
		uint64_t target = returns[__builtin_ctz(left)];
		uint32_t same = 0;
		for_each_lane(lane, left)
			same |= (uint32_t)(returns[lane] == target) << lane;
		if (same == mask && warp->other_count == 0)
			return (CODE)(uintptr_t)first;
		warp_park(warp, (CODE)(uintptr_t)target, same, PATH_READY);
		left &= ~same;
	}
	return warp_next_path(warp);
}

/* ---- ends */
CODE op_exit(struct warp *warp, CODE insn)
{
	(void)insn;
	uint32_t mask = warp->mask;
	warp->live &= ~mask;
	/* Paths that waited for these lanes check again, before one of them is forced to go on alone. */
	for (uint32_t n = 0; n < warp->other_count; n++)
		if (warp->others[n].state == PATH_CONVERGE)
			warp->others[n].state = PATH_READY;
	block_exit_threads(warp->block, (uint32_t)__builtin_popcount(mask));
	return warp_next_path(warp);
}

CODE op_trap(struct warp *warp, CODE insn)
{
	return warp_fault(warp, insn, __builtin_ctz(warp->mask), CUDA_ERROR_LAUNCH_FAILED, "trap", 0);
}

CODE op_brkpt(struct warp *warp, CODE insn)
{
	return warp_fault(warp, insn, __builtin_ctz(warp->mask), CUDA_ERROR_LAUNCH_FAILED, "brkpt without a debugger",
			  0);
}

/* ---- directed rounding: the lane operation runs with the host's rounding mode set */
static CODE rounded(struct warp *warp, CODE insn, int mode)
{
	fesetround(mode);
	CODE next = insn->inner(warp, insn);
	fesetround(FE_TONEAREST);
	return next;
}

CODE op_rounded_zero(struct warp *warp, CODE insn)
{
	return rounded(warp, insn, FE_TOWARDZERO);
}

CODE op_rounded_down(struct warp *warp, CODE insn)
{
	return rounded(warp, insn, FE_DOWNWARD);
}

CODE op_rounded_up(struct warp *warp, CODE insn)
{
	return rounded(warp, insn, FE_UPWARD);
}
