/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The register allocator. Liveness over basic blocks (the classic backward data-flow, on the registers that more than
 * one block names), then a linear scan (Poletto and Sarkar, TOPLAS 1999) over whole intervals; nothing is ever spilled.
 * Divergence does no harm: each lane has its own column of a row, and follows the code as one thread would.
 */
#include "cuda_remote/softgpu/exec/decode/decode.h"

#include <stdlib.h>
#include <string.h>

#define NO_BLOCK UINT32_MAX
#define LIVENESS_BYTES_MAX (256ull << 20)

struct block_range {
	uint32_t first, last; /* drafts */
};

struct interval {
	uint32_t start, end; /* 2 * draft for a use, 2 * draft + 1 for a definition; start UINT32_MAX: never named */
	uint32_t reg;
};

struct allocation {
	struct decoder *decoder;
	uint32_t registers;
	struct block_range *blocks;
	uint32_t block_count;
	uint32_t *block_of;     /* by draft */
	uint32_t *home;         /* by register: the only block that names it; NO_BLOCK - 1 if several do, or if the
				   block may read what it wrote in an earlier iteration of a loop */
	uint32_t *global;       /* by register: number among those that several blocks name */
	uint32_t *global_registers;
	uint32_t global_count;
	uint64_t *live_in, *live_out, *used, *defined; /* block_count * words */
	size_t words;
	struct interval *intervals;
	uint32_t *rows;         /* by register */
};

static uint32_t target_draft(const struct decoder *decoder, const struct draft *draft)
{
	return draft->target_kind == TARGET_DRAFT ? draft->target : decoder->draft_of_statement[draft->target];
}

/* Calls visit(a, n, target) for each draft that draft n can jump to. */
static void each_target(struct allocation *a, uint32_t n, void (*visit)(struct allocation *, uint32_t, uint32_t))
{
	struct decoder *decoder = a->decoder;
	const struct draft *draft = &decoder->drafts[n];
	if (draft->target_kind == TARGET_STATEMENT || draft->target_kind == TARGET_DRAFT)
		visit(a, n, target_draft(decoder, draft));
	for (struct ptx_operand *each = draft->target_kind == TARGET_LIST ? draft->targets : NULL; each;
	     each = each->next)
		visit(a, n, decoder->draft_of_statement[decode_symbol(decoder, each)->position]);
}

static void mark_leader(struct allocation *a, uint32_t from, uint32_t to)
{
	a->block_of[to] = 1;
	if (from + 1 < a->decoder->draft_count)
		a->block_of[from + 1] = 1;
}

static void find_blocks(struct allocation *a)
{
	uint32_t count = a->decoder->draft_count, block = NO_BLOCK;
	a->block_of = ptx_alloc(a->decoder->context, (count + 1u) * sizeof *a->block_of);
	a->block_of[0] = 1;
	for (uint32_t n = 0; n < count; n++) {
		each_target(a, n, mark_leader);
		if (a->decoder->drafts[n].ends_path && n + 1 < count)
			a->block_of[n + 1] = 1;
	}
	for (uint32_t n = 0; n < count; n++)
		a->block_count += a->block_of[n];
	a->blocks = ptx_alloc(a->decoder->context, a->block_count * sizeof *a->blocks);
	for (uint32_t n = 0; n < count; n++) {
		if (a->block_of[n])
			a->blocks[++block].first = n;
		a->block_of[n] = block;
		a->blocks[block].last = n;
	}
}

/* A register belongs to one block only if the first draft that names it writes it for certain. */
static void name_register(struct allocation *a, uint32_t draft, uint32_t reg, bool written)
{
	if (a->home[reg] == NO_BLOCK)
		a->home[reg] = written ? a->block_of[draft] : NO_BLOCK - 1;
	else if (a->home[reg] != a->block_of[draft])
		a->home[reg] = NO_BLOCK - 1;
}

static void find_globals(struct allocation *a)
{
	const struct decoder *decoder = a->decoder;
	a->home = ptx_alloc(decoder->context, (a->registers + 1u) * sizeof *a->home);
	a->global = ptx_alloc(decoder->context, (a->registers + 1u) * sizeof *a->global);
	a->global_registers = ptx_alloc(decoder->context, (a->registers + 1u) * sizeof *a->global_registers);
	memset(a->home, 0xff, a->registers * sizeof *a->home);
	for (uint32_t n = 0; n < decoder->draft_count; n++) {
		const struct draft *draft = &decoder->drafts[n];
		for (int pass = ROLE_USE; pass <= ROLE_DEFINE; pass++)
			for (int i = 0; i < OPERANDS; i++)
				if (draft->role[i] == pass)
					name_register(a, n, (uint32_t)draft->insn.r[i],
						      pass == ROLE_DEFINE && !draft->guarded);
	}
	for (uint32_t reg = 0; reg < a->registers; reg++) {
		if (a->home[reg] != NO_BLOCK - 1)
			continue;
		a->global_registers[a->global_count] = reg;
		a->global[reg] = a->global_count++;
	}
}

/* Which globals a block uses before it defines them, and which it defines for certain. */
static void summarise_blocks(struct allocation *a)
{
	const struct decoder *decoder = a->decoder;
	for (uint32_t n = 0; n < decoder->draft_count; n++) {
		const struct draft *draft = &decoder->drafts[n];
		uint64_t *used = a->used + a->block_of[n] * a->words, *defined = a->defined + a->block_of[n] * a->words;
		for (int pass = ROLE_USE; pass <= ROLE_DEFINE; pass++) {
			for (int i = 0; i < OPERANDS; i++) {
				if (draft->role[i] != pass || a->home[draft->insn.r[i]] != NO_BLOCK - 1)
					continue;
				uint32_t g = a->global[draft->insn.r[i]];
				uint64_t bit = 1ull << (g % 64);
				bool already = defined[g / 64] & bit;
				if (!already && (pass == ROLE_USE || draft->guarded))
					used[g / 64] |= bit;
				if (pass == ROLE_DEFINE && !draft->guarded)
					defined[g / 64] |= bit;
			}
		}
	}
}

static void flow_back(struct allocation *a, uint32_t from, uint32_t to)
{
	uint64_t *out = a->live_out + a->block_of[from] * a->words;
	const uint64_t *in = a->live_in + a->block_of[to] * a->words;
	for (size_t w = 0; w < a->words; w++)
		out[w] |= in[w];
}

static void solve_liveness(struct allocation *a)
{
	bool changed = true;
	while (changed) {
		changed = false;
		for (uint32_t b = a->block_count; b-- > 0;) {
			uint32_t last = a->blocks[b].last;
			uint64_t *in = a->live_in + b * a->words, *out = a->live_out + b * a->words;
			each_target(a, last, flow_back);
			if (!a->decoder->drafts[last].ends_path && b + 1 < a->block_count)
				flow_back(a, last, last + 1);
			for (size_t w = 0; w < a->words; w++) {
				uint64_t live = a->used[b * a->words + w] | (out[w] & ~a->defined[b * a->words + w]);
				changed |= live != in[w];
				in[w] = live;
			}
		}
	}
}

static void extend(struct interval *interval, uint32_t position)
{
	if (position < interval->start)
		interval->start = position;
	if (position > interval->end)
		interval->end = position;
}

static void extend_over_blocks(struct allocation *a)
{
	for (uint32_t b = 0; b < a->block_count; b++) {
		for (uint32_t g = 0; g < a->global_count; g++) {
			struct interval *interval = &a->intervals[a->global_registers[g]];
			if (a->live_in[b * a->words + g / 64] >> (g % 64) & 1)
				extend(interval, 2 * a->blocks[b].first);
			if (a->live_out[b * a->words + g / 64] >> (g % 64) & 1)
				extend(interval, 2 * a->blocks[b].last + 1);
		}
	}
}

static void find_intervals(struct allocation *a)
{
	const struct decoder *decoder = a->decoder;
	a->intervals = ptx_alloc(decoder->context, (a->registers + 1u) * sizeof *a->intervals);
	for (uint32_t reg = 0; reg < a->registers; reg++)
		a->intervals[reg] = (struct interval){ UINT32_MAX, 0, reg };
	for (uint32_t n = 0; n < decoder->draft_count; n++) {
		const struct draft *draft = &decoder->drafts[n];
		for (int i = 0; i < OPERANDS; i++) {
			bool define = draft->role[i] == ROLE_DEFINE;
			if (define || draft->role[i] == ROLE_USE)
				extend(&a->intervals[draft->insn.r[i]], 2 * n + define);
		}
	}
	uint64_t bytes = (uint64_t)a->block_count * ((a->global_count + 63) / 64) * 8;
	if (bytes > LIVENESS_BYTES_MAX) {
		/* Too large to analyse: each register that several blocks name gets a row of its own. */
		for (uint32_t g = 0; g < a->global_count; g++)
			a->intervals[a->global_registers[g]] =
				(struct interval){ 0, UINT32_MAX, a->global_registers[g] };
		return;
	}
	a->words = (a->global_count + 63) / 64;
	uint64_t *sets = calloc(a->block_count * a->words * 4 + 1, sizeof *sets);
	if (!sets)
		ptx_fail(decoder->context, CUDA_ERROR_OUT_OF_MEMORY, 0, "out of memory");
	a->live_in = sets;
	a->live_out = sets + a->block_count * a->words;
	a->used = sets + 2 * a->block_count * a->words;
	a->defined = sets + 3 * a->block_count * a->words;
	summarise_blocks(a);
	solve_liveness(a);
	extend_over_blocks(a);
	free(sets);
}

/* The register allocator's classes: predicates, 16, 32 and 64 bits a lane. */
static int class_of(const struct allocation *a, uint32_t reg)
{
	uint32_t size = decode_register_size(a->decoder, reg);
	return size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;
}

static int by_start(const void *left, const void *right)
{
	const struct interval *a = left, *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->reg < b->reg ? -1 : a->reg > b->reg;
}

/* Gives rows to the registers of one class, first the row that became free first; returns the number of rows. */
static uint32_t scan_class(struct allocation *a, const struct interval *sorted, uint32_t count, int class)
{
	uint32_t *row_end =
		ptx_alloc(a->decoder->context, (count + 1u) * sizeof *row_end); /* by row: where it is free from */
	uint32_t *heap =
		ptx_alloc(a->decoder->context, (count + 1u) * sizeof *heap); /* rows, the first to be free on top */
	uint32_t rows = 0;
	for (uint32_t n = 0; n < count; n++) {
		if (class_of(a, sorted[n].reg) != class)
			continue;
		bool reuse = rows > 0 && row_end[heap[0]] < sorted[n].start;
		uint32_t row = reuse ? heap[0] : rows, at = reuse ? 0 : rows;
		if (!reuse)
			rows++;
		row_end[row] = sorted[n].end;
		heap[at] = row;
		a->rows[sorted[n].reg] = row;
		for (; at > 0 && row_end[heap[(at - 1) / 2]] > row_end[heap[at]]; at = (at - 1) / 2) {
			uint32_t swapped = heap[at];
			heap[at] = heap[(at - 1) / 2];
			heap[(at - 1) / 2] = swapped;
		}
		for (;;) {
			uint32_t least = at;
			for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < rows; child++)
				if (row_end[heap[child]] < row_end[heap[least]])
					least = child;
			if (least == at)
				break;
			uint32_t swapped = heap[at];
			heap[at] = heap[least];
			heap[least] = swapped;
			at = least;
		}
	}
	return rows;
}

/* Gives rows to constants, after the registers' rows, and prepares the data of these rows. */
static void assign_constants(struct allocation *a, uint32_t at)
{
	struct decoder *decoder = a->decoder;
	struct code *code = decoder->code;
	uint32_t start = at;
	for (uint32_t n = 0; n < decoder->constant_count; n++) {
		decoder->constants[n].row = code->register_base + at;
		at += decoder->constants[n].size * WARP_LANES;
	}
	code->register_bytes = at;
	code->constant_row = code->register_base + start;
	code->constant_bytes = at - start;
	code->constant_data = ptx_alloc(decoder->context, at - start + 1u);
	code->launch_rows = ptx_alloc(decoder->context, (decoder->constant_count + 1u) * sizeof *code->launch_rows);
	for (uint32_t n = 0; n < decoder->constant_count; n++) {
		if (!decoder->constants[n].of_launch)
			continue;
		decoder->constants[n].launch.row = decoder->constants[n].row;
		code->launch_rows[code->launch_row_count++] = decoder->constants[n].launch;
	}
	char *to = code->constant_data;
	for (uint32_t n = 0; n < decoder->constant_count; n++)
		for (int lane = 0; lane < WARP_LANES; lane++, to += decoder->constants[n].size)
			memcpy(to, &decoder->constants[n].bits, decoder->constants[n].size);
}

static void assign_rows(struct allocation *a)
{
	static const uint32_t row_bytes[] = { 4, 64, 128, 256 };
	struct code *code = a->decoder->code;
	uint32_t named = 0, base[4], bytes = 0;
	for (uint32_t reg = 0; reg < a->registers; reg++)
		if (a->intervals[reg].start != UINT32_MAX)
			a->intervals[named++] = a->intervals[reg];
	qsort(a->intervals, named, sizeof *a->intervals, by_start);
	for (int class = 3; class >= 0; class--) {
		base[class] = bytes;
		code->class_start[3 - class] = bytes;
		bytes += (scan_class(a, a->intervals, named, class) * row_bytes[class] + 63) & ~63u;
	}
	for (uint32_t n = 0; n < named; n++) {
		int class = class_of(a, a->intervals[n].reg);
		a->rows[a->intervals[n].reg] =
			code->register_base + base[class] + a->rows[a->intervals[n].reg] * row_bytes[class];
	}
	code->class_start[4] = bytes;
	assign_constants(a, bytes);
}

static struct jump_table *jump_table(struct allocation *a, const struct draft *draft)
{
	uint32_t count = 0;
	struct decoder *decoder = a->decoder;
	for (struct ptx_operand *each = draft->targets; each; each = each->next)
		count++;
	struct jump_table *table = ptx_alloc(decoder->context, sizeof *table + count * sizeof *table->targets);
	for (struct ptx_operand *each = draft->targets; each; each = each->next)
		table->targets[table->count++] =
			&decoder->code->insns[decoder->draft_of_statement[decode_symbol(decoder, each)->position]];
	return table;
}

static void write_code(struct allocation *a)
{
	struct decoder *decoder = a->decoder;
	struct code *code = decoder->code;
	code->insn_count = decoder->draft_count;
	code->insns = ptx_alloc(decoder->context, decoder->draft_count * sizeof *code->insns);
	for (uint32_t n = 0; n < decoder->draft_count; n++) {
		const struct draft *draft = &decoder->drafts[n];
		struct insn *insn = &code->insns[n];
		*insn = draft->insn;
		insn->label = decoder->ops->single_lane_label(insn->handler);
		for (int i = 0; i < OPERANDS; i++) {
			if (draft->role[i] == ROLE_USE || draft->role[i] == ROLE_DEFINE)
				insn->r[i] = (int32_t)a->rows[draft->insn.r[i]];
			else if (draft->role[i] == ROLE_CONSTANT)
				insn->r[i] = (int32_t)decoder->constants[draft->insn.r[i]].row;
		}
		if (draft->target_kind == TARGET_LIST)
			insn->jumps = jump_table(a, draft);
		else if (draft->target_kind != TARGET_NONE)
			insn->target = &code->insns[target_draft(decoder, draft)];
	}
	if (decoder->frame_register != UINT32_MAX) {
		code->frame_row = a->rows[decoder->frame_register];
		code->return_row = a->rows[decoder->return_register];
	}
}

void decode_allocate(struct decoder *decoder)
{
	struct allocation a = { .decoder = decoder, .registers = decoder->function->register_count };
	a.rows = ptx_alloc(decoder->context, (a.registers + 1u) * sizeof *a.rows);
	find_blocks(&a);
	find_globals(&a);
	find_intervals(&a);
	if (decoder->frame_register != UINT32_MAX) {
		/* Calls write these registers, which the function's own drafts do not show. */
		a.intervals[decoder->frame_register] = (struct interval){ 0, UINT32_MAX, decoder->frame_register };
		a.intervals[decoder->return_register] = (struct interval){ 0, UINT32_MAX, decoder->return_register };
	}
	assign_rows(&a);
	write_code(&a);
}
