/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mma, wmma, wgmma, ldmatrix, stmatrix, movmatrix. The ISA gives the layouts of mma's fragments ("Matrix Fragments for mma")
 * and leaves those of wmma open. wmma's are the same here, continued in blocks of eight rows and columns.
 */
#include "cuda_remote/softgpu/exec/async/warpgroup.h"
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/decode/decode_check.h"
#include "cuda_remote/softgpu/exec/matrix.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *word;
	uint8_t bits;
} types[] = {
	[MATRIX_F16] = { ".f16", 16 },   [MATRIX_BF16] = { ".bf16", 16 }, [MATRIX_TF32] = { ".tf32", 32 },
	[MATRIX_E4M3] = { ".e4m3", 8 },  [MATRIX_E5M2] = { ".e5m2", 8 },  [MATRIX_F64] = { ".f64", 64 },
	[MATRIX_S8] = { ".s8", 8 },      [MATRIX_U8] = { ".u8", 8 },      [MATRIX_S4] = { ".s4", 4 },
	[MATRIX_U4] = { ".u4", 4 },      [MATRIX_B1] = { ".b1", 1 },      [MATRIX_F32] = { ".f32", 32 },
	[MATRIX_S32] = { ".s32", 32 },
};

#define MMA 1
#define WMMA 2
#define SPARSE 4
#define TYPE(name) (1u << MATRIX_##name)
#define TYPES_OF_BYTES (TYPE(S8) | TYPE(U8))
#define TYPES_OF_NIBBLES (TYPE(S4) | TYPE(U4))

static const struct shape {
	const char *word;
	uint16_t m, n, k, types; /* types: of a and b */
	uint8_t opcode;
} shapes[] = {
	{ ".m8n8k4", 8, 8, 4, TYPE(F16) | TYPE(F64), MMA },
	{ ".m16n8k4", 16, 8, 4, TYPE(TF32) | TYPE(F64), MMA },
	{ ".m16n8k8", 16, 8, 8, TYPE(F16) | TYPE(BF16) | TYPE(TF32) | TYPE(F64), MMA },
	{ ".m16n8k16", 16, 8, 16, TYPE(F16) | TYPE(BF16) | TYPE(E4M3) | TYPE(E5M2) | TYPE(F64) | TYPES_OF_BYTES, MMA },
	{ ".m16n8k32", 16, 8, 32, TYPE(E4M3) | TYPE(E5M2) | TYPES_OF_BYTES | TYPES_OF_NIBBLES, MMA },
	{ ".m16n8k64", 16, 8, 64, TYPES_OF_NIBBLES, MMA },
	{ ".m16n8k128", 16, 8, 128, TYPE(B1), MMA },
	{ ".m16n8k256", 16, 8, 256, TYPE(B1), MMA },
	{ ".m8n8k16", 8, 8, 16, TYPES_OF_BYTES, MMA },
	{ ".m8n8k32", 8, 8, 32, TYPES_OF_NIBBLES, MMA | WMMA },
	{ ".m8n8k128", 8, 8, 128, TYPE(B1), MMA | WMMA },
	{ ".m16n16k16", 16, 16, 16, TYPE(F16) | TYPE(BF16) | TYPES_OF_BYTES, WMMA },
	{ ".m8n32k16", 8, 32, 16, TYPE(F16) | TYPE(BF16) | TYPES_OF_BYTES, WMMA },
	{ ".m32n8k16", 32, 8, 16, TYPE(F16) | TYPE(BF16) | TYPES_OF_BYTES, WMMA },
	{ ".m16n16k8", 16, 16, 8, TYPE(TF32), WMMA },
	{ ".m8n8k4", 8, 8, 4, TYPE(F64), WMMA },
	{ ".m16n8k8", 16, 8, 8, TYPE(TF32), SPARSE },
	{ ".m16n8k16", 16, 8, 16, TYPE(F16) | TYPE(BF16) | TYPE(TF32), SPARSE },
	{ ".m16n8k32", 16, 8, 32, TYPE(F16) | TYPE(BF16) | TYPES_OF_BYTES, SPARSE },
	{ ".m16n8k64", 16, 8, 64, TYPE(E4M3) | TYPE(E5M2) | TYPES_OF_BYTES | TYPES_OF_NIBBLES, SPARSE },
	{ ".m16n8k128", 16, 8, 128, TYPES_OF_NIBBLES, SPARSE },
};

static enum matrix_type type_of(struct ptx_text word)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (ptx_text_is(word, types[i].word))
			return (enum matrix_type)i;
	return MATRIX_NO_TYPE;
}

/* The accumulator's types that PTX allows with a type of a and b. */
static uint32_t accumulators_of(enum matrix_type type)
{
	switch (type) {
	case MATRIX_F16: case MATRIX_E4M3: case MATRIX_E5M2: return TYPE(F16) | TYPE(F32);
	case MATRIX_BF16: case MATRIX_TF32: return TYPE(F32);
	case MATRIX_F64: return TYPE(F64);
	default: return TYPE(S32);
	}
}

static bool shape_takes(const struct shape *shape, enum matrix_type type, bool accumulator)
{
	if (!accumulator)
		return shape->types >> type & 1;
	for (uint32_t t = 0; t < MATRIX_NO_TYPE; t++)
		if (shape->types >> t & 1 && accumulators_of((enum matrix_type)t) >> type & 1)
			return true;
	return false;
}

static const struct shape *find_shape(struct decoder *decoder, uint8_t opcode, enum matrix_type type, bool accumulator)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (shapes[i].opcode & opcode && decode_has(decoder, shapes[i].word) &&
		    shape_takes(&shapes[i], type, accumulator))
			return &shapes[i];
	decode_unsupported(decoder, "no such shape for this type");
}

static void fill_a(struct matrix_fragment *fragment, const struct shape *shape, uint32_t k)
{
	uint32_t span = 4u * fragment->elements, blocks = shape->m / 8u;
	fragment->rows = shape->m;
	fragment->columns = (uint16_t)k;
	fragment->distinct = (uint8_t)(shape->m * k / (32u * fragment->elements));
	fragment->group_step = (uint16_t)k;
	fragment->thread_step = fragment->elements;
	fragment->element_step = 1;
	for (uint32_t r = 0; r < fragment->distinct; r++)
		fragment->offset[r] = (uint16_t)(r % blocks * 8 * k + r / blocks * span);
}

static void fill_b(struct matrix_fragment *fragment, const struct shape *shape, uint32_t k)
{
	uint32_t span = 4u * fragment->elements, blocks = k / span;
	fragment->rows = (uint16_t)k;
	fragment->columns = shape->n;
	fragment->distinct = (uint8_t)(shape->n * k / (32u * fragment->elements));
	fragment->group_step = 1;
	fragment->thread_step = (uint16_t)(fragment->elements * shape->n);
	fragment->element_step = shape->n;
	for (uint32_t r = 0; r < fragment->distinct; r++)
		fragment->offset[r] = (uint16_t)(r % blocks * span * shape->n + r / blocks * 8);
}

/* c and d: each lane has two neighbours in a row, in one register or in two. */
static void fill_accumulator(struct matrix_fragment *fragment, const struct shape *shape)
{
	uint32_t blocks = shape->m / 8u, halves = 2u / fragment->elements;
	fragment->rows = shape->m;
	fragment->columns = shape->n;
	fragment->distinct = (uint8_t)(shape->m * shape->n / (32u * fragment->elements));
	fragment->group_step = shape->n;
	fragment->thread_step = 2;
	fragment->element_step = 1;
	for (uint32_t r = 0; r < fragment->distinct; r++) {
		uint32_t block = r / halves;
		fragment->offset[r] = (uint16_t)(block % blocks * 8 * shape->n + block / blocks * 8 + r % halves);
	}
}

static struct matrix_fragment fragment_of(const struct shape *shape, char role, enum matrix_type type)
{
	struct matrix_fragment fragment = { .type = (uint8_t)type, .bits = types[type].bits };
	uint32_t k = shape->opcode == SPARSE && role == 'a' ? shape->k / 2u : shape->k;
	if (type == MATRIX_B1) {
		fragment.bits = 32;
		k /= 32;
	}
	fragment.elements = fragment.bits >= 32 ? 1 : (uint8_t)(32 / fragment.bits);
	if (role == 'a')
		fill_a(&fragment, shape, k);
	else if (role == 'b')
		fill_b(&fragment, shape, k);
	else
		fill_accumulator(&fragment, shape);
	bool repeats = shape->opcode == WMMA && type == MATRIX_F16 && (role == 'a' || role == 'b');
	fragment.registers = repeats ? FRAGMENT_REGISTERS : fragment.distinct;
	return fragment;
}

/* ---- rows, six to a carrier */
struct rows {
	struct value values[WGMMA_ROWS_MAX]; /* ROLE_DEFINE: a result */
	uint32_t count;
};

static void add_rows(struct decoder *decoder, struct rows *rows, struct ptx_operand *operand,
		     const struct matrix_fragment *fragment, bool result)
{
	struct ptx_operand *each = operand->kind == PTX_OPERAND_VECTOR ? operand->first : operand;
	char letter = fragment->bits == 64 ? 'l' : 'w';
	for (uint32_t n = 0; n < fragment->registers; n++) {
		if (!each)
			decode_invalid(decoder, "too few registers for this fragment");
		rows->values[rows->count++] =
			result ? (struct value){ ROLE_DEFINE, (int32_t)decode_result(decoder, each, letter) } :
				 decode_source(decoder, each, letter);
		each = operand->kind == PTX_OPERAND_VECTOR ? each->next : NULL;
	}
	if (each)
		decode_invalid(decoder, "too many registers for this fragment");
}

/* Emits the carriers, the first with the form, and counts them in the form. */
static void carry_rows(struct decoder *decoder, const struct rows *rows, struct matrix_form *form)
{
	for (uint32_t at = 0; at < rows->count; at += CARRIER_ROWS) {
		struct draft *draft = decode_emit(decoder, op_nop);
		for (uint32_t n = 0; n < CARRIER_ROWS && at + n < rows->count; n++)
			decode_use(draft, (int)n, rows->values[at + n]);
		draft->insn.imm = at == 0 ? (uint64_t)(uintptr_t)form : 0;
		form->carriers++;
	}
}

static struct matrix_form *new_form(struct decoder *decoder, const struct shape *shape)
{
	struct matrix_form *form = ptx_alloc(decoder->context, sizeof *form);
	form->m = shape->m;
	form->n = shape->n;
	form->k = shape->k;
	form->rounding = decode_has(decoder, ".rz") ? FE_TOWARDZERO :
			 decode_has(decoder, ".rm") ? FE_DOWNWARD :
			 decode_has(decoder, ".rp") ? FE_UPWARD : FE_TONEAREST;
	return form;
}

/* ---- mma, wmma.mma */

/* The types in the order of the text: four, or for wmma's f16 two, those of d and c. */
static void read_types(struct decoder *decoder, enum matrix_type found[4], bool wmma)
{
	const struct ptx_statement *statement = decoder->statement;
	uint32_t count = 0;
	for (uint32_t i = 0; i < statement->modifiers; i++) {
		enum matrix_type type = type_of(statement->modifier[i]);
		if (type == MATRIX_NO_TYPE)
			continue;
		if (count == 4)
			decode_invalid(decoder, "too many types");
		found[count++] = type;
	}
	if (count == 2 && wmma) {
		found[3] = found[1];
		found[1] = found[2] = MATRIX_F16;
	} else if (count != 4) {
		decode_invalid(decoder, "expected the types of d, a, b and c");
	}
}

/* Whether a and b may have these types: the same type, signed with unsigned integers, or e4m3 with e5m2. */
static bool same_family(enum matrix_type a, enum matrix_type b)
{
	static const uint32_t families[] = { TYPES_OF_BYTES, TYPES_OF_NIBBLES, TYPE(E4M3) | TYPE(E5M2) };
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (families[i] >> a & 1)
			return families[i] >> b & 1;
	return a == b;
}

static void check_words(struct decoder *decoder, const struct shape *shape)
{
	static const char *const known[] = { ".sync", ".aligned", ".mma", ".row", ".col", ".satfinite", ".rn", ".rz",
					     ".rm",   ".rp",      ".xor", ".and", ".popc", ".sp",
					     ".sp::ordered_metadata" };
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++) {
		struct ptx_text word = decoder->statement->modifier[i];
		bool found = type_of(word) != MATRIX_NO_TYPE || ptx_text_is(word, shape->word);
		for (size_t n = 0; n < sizeof known / sizeof *known; n++)
			found |= ptx_text_is(word, known[n]);
		if (!found)
			decode_unsupported(decoder, "a modifier of this kind of matrix product");
	}
}

/* Whether the n-th of the two layouts is .col. */
static bool layout_by_columns(struct decoder *decoder, uint32_t n)
{
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++) {
		struct ptx_text word = decoder->statement->modifier[i];
		bool by_columns = ptx_text_is(word, ".col");
		if ((by_columns || ptx_text_is(word, ".row")) && n-- == 0)
			return by_columns;
	}
	decode_invalid(decoder, "expected the layouts of a and b");
}

/* mma.sp's last two operands. Four lanes have the metadata of two rows; the selector says which of them, if not all. */
static void add_metadata(struct decoder *decoder, struct rows *rows, struct matrix_form *form)
{
	struct ptx_operand *selector = decode_operand(decoder, 5);
	uint32_t bits = form->a.bits, span = bits == 4 ? 8 : bits == 32 ? 2 : 4, lanes = form->k / span * 4 / 16;
	if (selector->kind != PTX_OPERAND_INTEGER || selector->value >= 4 / lanes)
		decode_invalid(decoder, "no such sparsity selector for this shape");
	form->sparse = true;
	form->selector = (uint8_t)selector->value;
	rows->values[rows->count++] = decode_source(decoder, decode_operand(decoder, 4), 'w');
}

static void decode_product(struct decoder *decoder, uint8_t opcode)
{
	enum matrix_type found[4];
	struct rows rows = { .count = 0 };
	bool wmma = opcode == WMMA;
	read_types(decoder, found, wmma);
	const struct shape *shape = find_shape(decoder, opcode, found[1], false);
	uint32_t accumulators = accumulators_of(found[1]);
	check_words(decoder, shape);
	if (!same_family(found[1], found[2]) || !(accumulators >> found[0] & 1) || !(accumulators >> found[3] & 1))
		decode_unsupported(decoder, "this combination of types");
	bool integer = accumulators == TYPE(S32), quads = opcode == MMA && shape->k == 4 && found[1] == MATRIX_F16;
	if (decode_has(decoder, ".satfinite") && (!integer || found[1] == MATRIX_B1))
		decode_unsupported(decoder, "saturation of this type");
	if ((found[1] == MATRIX_B1) != decode_has(decoder, ".popc"))
		decode_invalid(decoder, "expected .xor.popc or .and.popc with bits, and with nothing else");
	uint32_t operands = opcode == SPARSE ? 6 : 4;
	decode_operand_count(decoder, operands, operands);
	struct matrix_form *form = new_form(decoder, shape);
	form->saturate = decode_has(decoder, ".satfinite");
	form->bit_and = decode_has(decoder, ".and");
	form->a_by_columns = layout_by_columns(decoder, 0);
	form->b_by_rows = !layout_by_columns(decoder, 1);
	if (!wmma && !quads && (form->a_by_columns || form->b_by_rows))
		decode_unsupported(decoder, "this shape is .row.col");
	form->a = fragment_of(shape, 'a', found[1]);
	form->b = fragment_of(shape, 'b', found[2]);
	form->c = fragment_of(shape, 'c', found[3]);
	form->d = fragment_of(shape, 'd', found[0]);
	if (quads) {
		form->a.registers = form->b.registers = 2;
		form->c.registers = found[3] == MATRIX_F16 ? 4 : 8;
		form->d.registers = found[0] == MATRIX_F16 ? 4 : 8;
	}
	add_rows(decoder, &rows, decode_operand(decoder, 1), &form->a, false);
	add_rows(decoder, &rows, decode_operand(decoder, 2), &form->b, false);
	add_rows(decoder, &rows, decode_operand(decoder, 3), &form->c, false);
	add_rows(decoder, &rows, decode_operand(decoder, 0), &form->d, true);
	if (opcode == SPARSE)
		add_metadata(decoder, &rows, form);
	decode_emit(decoder, quads ? op_matrix_quads : decoder->ops->matrix_multiply);
	carry_rows(decoder, &rows, form);
}

void decode_mma(struct decoder *decoder)
{
	bool sparse = decode_has(decoder, ".sp") || decode_has(decoder, ".sp::ordered_metadata");
	decode_product(decoder, sparse ? SPARSE : MMA);
}

/* ---- wgmma */
static const struct wgmma_shape {
	const char *k_word; /* the end of the shape's word */
	uint16_t k;
	uint32_t types;
} wgmma_shapes[] = {
	{ "k16", 16, TYPE(F16) | TYPE(BF16) },
	{ "k8", 8, TYPE(TF32) },
	{ "k32", 32, TYPE(E4M3) | TYPE(E5M2) | TYPES_OF_BYTES },
};

/* .m64nNkK, for the type of a. */
static struct shape wgmma_shape_of(struct decoder *decoder, enum matrix_type type)
{
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++) {
		struct ptx_text word = decoder->statement->modifier[i];
		for (size_t s = 0; s < sizeof wgmma_shapes / sizeof *wgmma_shapes; s++) {
			for (uint16_t n = 8; n <= WGMMA_COLUMNS_MAX; n += 8) {
				char text[24];
				snprintf(text, sizeof text, ".m64n%u%s", n, wgmma_shapes[s].k_word);
				if (ptx_text_is(word, text) && wgmma_shapes[s].types >> type & 1)
					return (struct shape){ .m = 16, .n = n, .k = wgmma_shapes[s].k, .opcode = MMA };
			}
		}
	}
	decode_unsupported(decoder, "no such shape for this type");
}

static void read_wgmma_types(struct decoder *decoder, enum matrix_type found[3])
{
	static const char *const known[] = { ".mma_async", ".sync", ".aligned", ".satfinite" };
	uint32_t count = 0;
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++) {
		struct ptx_text word = decoder->statement->modifier[i];
		enum matrix_type type = type_of(word);
		bool is_known = type != MATRIX_NO_TYPE || (word.length > 5 && !memcmp(word.at, ".m64n", 5));
		for (size_t n = 0; n < sizeof known / sizeof *known; n++)
			is_known |= ptx_text_is(word, known[n]);
		if (!is_known)
			decode_unsupported(decoder, "a modifier of this kind of matrix product");
		if (type != MATRIX_NO_TYPE && count < 3)
			found[count++] = type;
	}
	if (count != 3)
		decode_invalid(decoder, "expected the types of d, a and b");
}

static uint64_t wgmma_constant(struct decoder *decoder, uint32_t n)
{
	struct ptx_operand *operand = decode_operand(decoder, n);
	if (operand->kind != PTX_OPERAND_INTEGER)
		decode_invalid(decoder, "expected a constant");
	return operand->value;
}

/* The signs of a and b, and which of them are transposed in memory. */
static void read_wgmma_constants(struct decoder *decoder, struct matrix_form *form, bool integer, bool halves)
{
	uint32_t at = 4, count = 4 + (integer ? 0 : 2) + (!halves ? 0 : form->a_in_memory ? 2 : 1);
	decode_operand_count(decoder, count, count);
	if (!integer) {
		uint64_t a = wgmma_constant(decoder, at++), b = wgmma_constant(decoder, at++);
		if ((a != 1 && a != (uint64_t)-1) || (b != 1 && b != (uint64_t)-1))
			decode_invalid(decoder, "a and b are multiplied by 1 or -1 only");
		form->negative = a != b;
	}
	if (halves && form->a_in_memory)
		form->a_by_m = wgmma_constant(decoder, at++) & 1;
	if (halves)
		form->b_by_n = wgmma_constant(decoder, at) & 1;
}

static void decode_wgmma_product(struct decoder *decoder)
{
	enum matrix_type found[3];
	struct rows rows = { .count = 0 };
	read_wgmma_types(decoder, found);
	struct shape shape = wgmma_shape_of(decoder, found[1]);
	uint32_t accumulators = accumulators_of(found[1]);
	bool integer = accumulators == TYPE(S32), halves = found[1] == MATRIX_F16 || found[1] == MATRIX_BF16;
	if (!same_family(found[1], found[2]) || !(accumulators >> found[0] & 1))
		decode_unsupported(decoder, "this combination of types");
	struct ptx_operand *a = decode_operand(decoder, 1);
	struct matrix_form *form = new_form(decoder, &shape);
	form->saturate = decode_has(decoder, ".satfinite");
	if (form->saturate && !integer)
		decode_unsupported(decoder, "saturation of this type");
	form->warpgroup = true;
	form->a_in_memory = a->kind != PTX_OPERAND_VECTOR;
	read_wgmma_constants(decoder, form, integer, halves);
	form->a = fragment_of(&shape, 'a', found[1]);
	form->b.type = (uint8_t)found[2];
	form->b.bits = types[found[2]].bits;
	form->d.type = (uint8_t)found[0];
	if (form->a_in_memory)
		rows.values[rows.count++] = decode_source(decoder, a, 'l');
	else
		add_rows(decoder, &rows, a, &form->a, false);
	rows.values[rows.count++] = decode_source(decoder, decode_operand(decoder, 2), 'l');
	rows.values[rows.count++] = decode_source(decoder, decode_operand(decoder, 3), 'p');
	struct matrix_fragment sums = { .bits = 32, .registers = (uint8_t)wgmma_accumulators(form) };
	add_rows(decoder, &rows, decode_operand(decoder, 0), &sums, false);
	add_rows(decoder, &rows, decode_operand(decoder, 0), &sums, true);
	decode_emit(decoder, decoder->ops->matrix_multiply);
	carry_rows(decoder, &rows, form);
}

/* Each warp computes its part of a product when it issues it, so wgmma.fence has nothing to order. */
void decode_wgmma(struct decoder *decoder)
{
	if (decode_has(decoder, ".mma_async")) {
		decode_wgmma_product(decoder);
		return;
	}
	bool waits = decode_has(decoder, ".wait_group"), commits = decode_has(decoder, ".commit_group");
	if (!waits && !commits && !decode_has(decoder, ".fence"))
		decode_invalid(decoder, "expected .mma_async, .fence, .commit_group or .wait_group");
	decode_operand_count(decoder, waits, waits);
	uint64_t pending = waits ? wgmma_constant(decoder, 0) : 0;
	if (pending > INT64_MAX)
		decode_invalid(decoder, "a negative number of groups");
	struct draft *draft = decode_emit(decoder, waits ? op_wgmma_wait : commits ? op_wgmma_commit : op_nop);
	/* To let fewer be pending is right, too. */
	draft->insn.count = (uint8_t)(pending < WARPGROUP_COMMITS ? pending : WARPGROUP_COMMITS - 1);
}

/* ---- wmma.load, wmma.store */
static enum access_space space_named(struct decoder *decoder)
{
	if (decode_has(decoder, ".shared") || decode_has(decoder, ".shared::cta") ||
	    decode_has(decoder, ".shared::cluster"))
		return ACCESS_SHARED;
	return decode_has(decoder, ".global") ? ACCESS_GLOBAL : ACCESS_GENERIC;
}

static struct draft *emit_tile(struct decoder *decoder, insn_handler *handler, const struct address *address,
			       struct value stride, enum access_space space)
{
	struct draft *draft = decode_emit(decoder, handler);
	decode_put_address(decoder, draft, address);
	draft->insn.slot = (uint8_t)space;
	draft->insn.r[3] = -1;
	if (stride.role != ROLE_NONE)
		decode_use(draft, 3, stride);
	return draft;
}

static void decode_tile(struct decoder *decoder, char role)
{
	const struct ptx_statement *statement = decoder->statement;
	bool store = decode_has(decoder, ".store");
	struct rows rows = { .count = 0 };
	enum matrix_type type = type_of(statement->modifier[statement->modifiers - 1]);
	if (type == MATRIX_NO_TYPE)
		decode_invalid(decoder, "expected a type at the end");
	decode_operand_count(decoder, 2, 3);
	const struct shape *shape = find_shape(decoder, WMMA, type, role == 'c');
	struct matrix_form *form = new_form(decoder, shape);
	form->d = fragment_of(shape, role, type);
	form->column_major = layout_by_columns(decoder, 0);
	if (types[type].bits < 8 && form->column_major != (role == 'b'))
		decode_unsupported(decoder, "elements of less than a byte that are not side by side along k");
	enum access_space space = space_named(decoder);
	struct ptx_operand *where = decode_operand(decoder, store ? 0 : 1);
	struct address address = decode_address(decoder, where, space);
	struct value stride = { ROLE_NONE, 0 };
	if (statement->operand_count == 3)
		stride = decode_source(decoder, decode_operand(decoder, 2), 'w');
	add_rows(decoder, &rows, decode_operand(decoder, store ? 1 : 0), &form->d, !store);
	uint32_t words = form->d.type == MATRIX_B1 ? 32 : 1;
	const uint32_t extent[3] = { form->column_major ? form->d.columns : form->d.rows,
				     (form->column_major ? form->d.rows : form->d.columns) * words,
				     words > 1 ? 1 : form->d.bits };
	decode_check_tile(decoder, &address, space, stride, extent, store ? CHECK_WRITE : CHECK_READ);
	emit_tile(decoder, store ? op_matrix_store : op_matrix_load, &address, stride, space);
	carry_rows(decoder, &rows, form);
}

void decode_wmma(struct decoder *decoder)
{
	if (decode_has(decoder, ".mma"))
		decode_product(decoder, WMMA);
	else if (decode_has(decoder, ".a"))
		decode_tile(decoder, 'a');
	else if (decode_has(decoder, ".b"))
		decode_tile(decoder, 'b');
	else if (decode_has(decoder, ".c") || decode_has(decoder, ".d"))
		decode_tile(decoder, 'c');
	else
		decode_invalid(decoder, "expected .load, .store or .mma");
}

/* ---- ldmatrix, stmatrix, movmatrix */
static void decode_rows_of_halves(struct decoder *decoder, bool store)
{
	struct rows rows = { .count = 0 };
	uint32_t count = decode_has(decoder, ".x4") ? 4 : decode_has(decoder, ".x2") ? 2 : 1;
	if (!decode_has(decoder, ".m8n8") || !decode_has(decoder, ".b16") ||
	    (count == 1 && !decode_has(decoder, ".x1")))
		decode_unsupported(decoder, "only .m8n8 of .b16, .x1, .x2 or .x4");
	decode_operand_count(decoder, 2, 2);
	if (decode_has(decoder, ".global"))
		decode_invalid(decoder, "matrices in shared memory only");
	enum access_space space = space_named(decoder);
	struct address address = decode_address(decoder, decode_operand(decoder, store ? 0 : 1), space);
	struct matrix_form *form = ptx_alloc(decoder->context, sizeof *form);
	struct matrix_fragment fragment = { .bits = 32, .registers = (uint8_t)count };
	add_rows(decoder, &rows, decode_operand(decoder, store ? 1 : 0), &fragment, !store);
	decode_check_rows(decoder, &address, space, 8 * count, store ? CHECK_WRITE : CHECK_READ);
	struct draft *draft = emit_tile(decoder, store ? op_stmatrix : op_ldmatrix, &address,
					(struct value){ ROLE_NONE, 0 }, space);
	draft->insn.count = (uint8_t)count;
	draft->insn.size = decode_has(decoder, ".trans");
	carry_rows(decoder, &rows, form);
}

void decode_ldmatrix(struct decoder *decoder)
{
	decode_rows_of_halves(decoder, false);
}

void decode_stmatrix(struct decoder *decoder)
{
	decode_rows_of_halves(decoder, true);
}

void decode_movmatrix(struct decoder *decoder)
{
	if (!decode_has(decoder, ".m8n8") || !decode_has(decoder, ".trans") || !decode_has(decoder, ".b16"))
		decode_unsupported(decoder, "only .m8n8.trans.b16");
	decode_operand_count(decoder, 2, 2);
	struct value source = decode_source(decoder, decode_operand(decoder, 1), 'w');
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'w');
	struct draft *draft = decode_emit(decoder, op_movmatrix);
	decode_define(draft, 0, result);
	decode_use(draft, 1, source);
}
