/* SPDX-License-Identifier: BSD-3-Clause */
/* tex, tld4, txq, suq, istypep, suld, sust and sured (PTX ISA, "Texture Instructions", "Surface Instructions"). */
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/texture/texture.h"

#include <string.h>

struct word_value {
	const char *word;
	uint8_t value;
};

static const struct word_value geometries[] = {
	{ ".1d", GEOMETRY_1D },	  { ".2d", GEOMETRY_2D },     { ".3d", GEOMETRY_3D },	   { ".a1d", GEOMETRY_A1D },
	{ ".a2d", GEOMETRY_A2D }, { ".cube", GEOMETRY_CUBE }, { ".acube", GEOMETRY_ACUBE },
};
static const struct word_value lod_modes[] = {
	{ ".base", LOD_BASE }, { ".level", LOD_LEVEL }, { ".grad", LOD_GRADIENT },
};
static const struct word_value components[] = { { ".r", 0 }, { ".g", 1 }, { ".b", 2 }, { ".a", 3 } };
static const struct word_value clamps[] = {
	{ ".trap", SURFACE_TRAP }, { ".clamp", SURFACE_CLAMP }, { ".zero", SURFACE_ZERO },
};
static const struct word_value reductions[] = {
	{ ".add", SURFACE_ADD }, { ".min", SURFACE_MIN }, { ".max", SURFACE_MAX },
	{ ".and", SURFACE_AND }, { ".or", SURFACE_OR },
};
static const struct word_value queries[] = {
	{ ".width", QUERY_WIDTH },
	{ ".height", QUERY_HEIGHT },
	{ ".depth", QUERY_DEPTH },
	{ ".normalized_coords", QUERY_NORMALIZED },
	{ ".array_size", QUERY_ARRAY_SIZE },
	{ ".num_mipmap_levels", QUERY_LEVELS },
	{ ".num_samples", QUERY_SAMPLES },
	{ ".filter_mode", QUERY_FILTER },
	{ ".addr_mode_0", QUERY_ADDRESS_0 },
	{ ".addr_mode_1", QUERY_ADDRESS_1 },
	{ ".addr_mode_2", QUERY_ADDRESS_2 },
	{ ".memory_layout", QUERY_LAYOUT },
};

static bool word_of(struct ptx_text word, const struct word_value *words, size_t count, uint8_t *value)
{
	for (size_t n = 0; n < count; n++) {
		if (!ptx_text_is(word, words[n].word))
			continue;
		*value = words[n].value;
		return true;
	}
	return false;
}
#define WORD_OF(word, table, value) word_of(word, table, sizeof(table) / sizeof *(table), value)

static bool is_cache_word(struct ptx_text word)
{
	static const char *const words[] = { ".ca", ".cg", ".cs", ".cv", ".wb", ".wt" };
	for (size_t n = 0; n < sizeof words / sizeof *words; n++)
		if (ptx_text_is(word, words[n]))
			return true;
	return false;
}

/* ---- operands to be staged */
struct staging {
	struct value value[TEXTURE_SLOTS];
	uint8_t slot[TEXTURE_SLOTS];
	uint32_t count;
};

static void stage(struct staging *staging, uint8_t slot, struct value value)
{
	staging->slot[staging->count] = slot;
	staging->value[staging->count++] = value;
}

/* The first count elements of { } or the one operand; more are allowed and ignored. */
static struct ptx_operand *first_of(struct decoder *decoder, struct ptx_operand *operand, uint32_t count)
{
	if (operand->kind != PTX_OPERAND_VECTOR) {
		if (count > 1)
			decode_invalid(decoder, "expected a vector of coordinates");
		return operand;
	}
	uint32_t have = 0;
	for (const struct ptx_operand *each = operand->first; each; each = each->next)
		have++;
	if (have < count || have > 4)
		decode_invalid(decoder, "the wrong number of coordinates");
	return operand->first;
}

static void stage_vector(struct decoder *decoder, struct staging *staging, struct ptx_operand *operand, uint8_t slot,
			 uint32_t count, char letter)
{
	struct ptx_operand *each = first_of(decoder, operand, count);
	for (uint32_t n = 0; n < count; n++, each = each->next)
		stage(staging, (uint8_t)(slot + n), decode_source(decoder, each, letter));
}

static void stage_coordinates(struct decoder *decoder, struct staging *staging, struct ptx_operand *operand,
			      enum geometry geometry, char letter)
{
	uint32_t axes = geometry_coordinates(geometry), layer = geometry_layered(geometry);
	struct ptx_operand *each = first_of(decoder, operand, axes + layer);
	if (layer) {
		stage(staging, SLOT_LAYER, decode_source(decoder, each, 'w'));
		each = each->next;
	}
	for (uint32_t n = 0; n < axes; n++, each = each->next)
		stage(staging, (uint8_t)(SLOT_AT + n), decode_source(decoder, each, letter));
}

static void emit_staging(struct decoder *decoder, const struct staging *staging)
{
	for (uint32_t at = 0; at < staging->count; at += OPERANDS) {
		struct draft *draft = decode_emit(decoder, op_texture_stage);
		uint32_t count = staging->count - at < OPERANDS ? staging->count - at : OPERANDS;
		for (uint32_t n = 0; n < count; n++) {
			decode_use(draft, (int)n, staging->value[at + n]);
			draft->insn.imm |= (uint64_t)staging->slot[at + n] << 8 * n;
		}
		draft->insn.size = (uint8_t)count;
	}
}

/* [a, c]: the handle a, in a register or as a .texref or .surfref variable; *coordinates: c. */
static struct value handle_of(struct decoder *decoder, struct ptx_operand *operand, bool surface,
			      struct ptx_operand **coordinates)
{
	if (operand->kind != PTX_OPERAND_ADDRESS || !operand->first || operand->value)
		decode_invalid(decoder, "expected a texture or surface in brackets");
	struct ptx_operand *base = operand->first;
	*coordinates = base->next;
	if (base->next && base->next->next)
		decode_unsupported(decoder, "a sampler of its own (independent texturing mode)");
	if (base->kind != PTX_OPERAND_REGISTER && base->kind != PTX_OPERAND_NAME)
		decode_invalid(decoder, "expected a texture or surface in brackets");
	if (base->kind == PTX_OPERAND_NAME) {
		const struct ptx_symbol *symbol = decode_symbol(decoder, base);
		enum ptx_opaque wanted = surface ? PTX_SURFREF : PTX_TEXREF;
		if (symbol->kind != PTX_SYMBOL_VARIABLE || symbol->opaque != wanted)
			decode_invalid(decoder, surface ? "not a .surfref variable" : "not a .texref variable");
	}
	return decode_source(decoder, base, 'l');
}

static void put_form(struct draft *draft, const struct texture_form *form)
{
	memcpy(&draft->insn.imm, form, sizeof *form);
}

/* ---- tex, tld4 */
struct texture_words {
	struct texture_form form;
	enum ptx_type results, coordinates;
	uint32_t count;
	bool geometry, component;
};

static struct texture_words read_texture_words(struct decoder *decoder)
{
	const struct ptx_statement *statement = decoder->statement;
	struct texture_words words = { .count = 1 };
	for (uint32_t n = 0; n < statement->modifiers; n++) {
		struct ptx_text word = statement->modifier[n];
		enum ptx_type type = ptx_type_of(word);
		if (type != PTX_NO_TYPE && words.results == PTX_NO_TYPE)
			words.results = type;
		else if (type != PTX_NO_TYPE)
			words.coordinates = type;
		else if (ptx_text_is(word, ".v4") || ptx_text_is(word, ".v2"))
			words.count = word.at[2] == '2' ? 2 : 4;
		else if (WORD_OF(word, geometries, &words.form.geometry))
			words.geometry = true;
		else if (WORD_OF(word, components, &words.form.component))
			words.component = true;
		else if (!WORD_OF(word, lod_modes, &words.form.lod_mode))
			decode_unsupported(decoder, "a modifier of this fetch");
	}
	words.form.integer = words.coordinates == PTX_S32;
	if (!words.geometry || (words.coordinates != PTX_S32 && words.coordinates != PTX_F32))
		decode_invalid(decoder, "expected a geometry and the type of coordinates");
	bool cube = words.form.geometry == GEOMETRY_CUBE || words.form.geometry == GEOMETRY_ACUBE;
	if (cube && words.form.integer)
		decode_invalid(decoder, "a cubemap has float coordinates");
	return words;
}

/* The letter of the result registers; sets words->form.result. Gives up if the type or number of results is wrong. */
static char result_letter(struct decoder *decoder, struct texture_words *words)
{
	bool pairs = words->results == PTX_F16X2;
	if (words->count != (pairs ? 2u : 4u))
		decode_invalid(decoder, "the wrong number of results");
	switch (words->results) {
	case PTX_U32: case PTX_S32: case PTX_F32:
		words->form.result = RESULT_WORDS;
		return 'w';
	case PTX_F16X2:
		words->form.result = RESULT_HALF_PAIRS;
		return 'w';
	case PTX_F16:
		words->form.result = RESULT_HALVES;
		return 'h';
	default:
		decode_unsupported(decoder, "this type of results");
	}
}

/* What follows the brackets: a level or gradients, then an offset, then the value that a depth texture compares. */
static void stage_rest(struct decoder *decoder, struct staging *staging, struct texture_words *words)
{
	enum geometry geometry = (enum geometry)words->form.geometry;
	uint32_t axes = geometry_coordinates(geometry), next = 2, count = decoder->statement->operand_count;
	if (words->form.lod_mode == LOD_LEVEL)
		stage_vector(decoder, staging, decode_operand(decoder, next++), SLOT_LOD, 1,
			     words->form.integer ? 'w' : 'f');
	if (words->form.lod_mode == LOD_GRADIENT) {
		stage_vector(decoder, staging, decode_operand(decoder, next++), SLOT_DX, axes, 'f');
		stage_vector(decoder, staging, decode_operand(decoder, next++), SLOT_DY, axes, 'f');
	}
	if (next == count)
		return;
	struct ptx_operand *offset = decode_operand(decoder, next++);
	if (offset->kind != PTX_OPERAND_VECTOR || next < count)
		decode_unsupported(decoder, "comparisons of depth textures");
	if (geometry == GEOMETRY_CUBE || geometry == GEOMETRY_ACUBE)
		decode_invalid(decoder, "a cubemap takes no offset");
	stage_vector(decoder, staging, offset, SLOT_OFFSET, axes, 'w');
	words->form.offsets = 1;
}

static void decode_fetch(struct decoder *decoder, insn_handler *handler, struct texture_words *words)
{
	struct staging staging = { 0 };
	struct ptx_operand *target = decode_operand(decoder, 0), *coordinates, *predicate = NULL;
	char letter = result_letter(decoder, words);
	decode_operand_count(decoder, 2, 6);
	if (target->kind == PTX_OPERAND_PAIR) {
		target = target->first;
		predicate = target->next;
	}
	struct value handle = handle_of(decoder, decode_operand(decoder, 1), false, &coordinates);
	if (target->kind != PTX_OPERAND_VECTOR || !coordinates)
		decode_invalid(decoder, "expected a vector of results and coordinates");
	stage_coordinates(decoder, &staging, coordinates, (enum geometry)words->form.geometry,
			  words->form.integer ? 'w' : 'f');
	stage_rest(decoder, &staging, words);
	uint32_t results[4], count = 0;
	for (struct ptx_operand *each = target->first; each; each = each->next, count++)
		if (count < words->count)
			results[count] = each->kind == PTX_OPERAND_SINK ? UINT32_MAX
									: decode_result(decoder, each, letter);
	if (count != words->count)
		decode_invalid(decoder, "the wrong number of results");
	emit_staging(decoder, &staging);
	struct draft *draft = decode_emit(decoder, handler);
	for (int n = 0; n < 4; n++) {
		draft->insn.r[n] = -1;
		if ((uint32_t)n < count && results[n] != UINT32_MAX)
			decode_define(draft, n, results[n]);
	}
	decode_use(draft, 4, handle);
	draft->insn.r[5] = -1;
	if (predicate && predicate->kind != PTX_OPERAND_SINK)
		decode_define(draft, 5, decode_result(decoder, predicate, 'p'));
	put_form(draft, &words->form);
}

void decode_tex(struct decoder *decoder)
{
	struct texture_words words = read_texture_words(decoder);
	if (words.component)
		decode_invalid(decoder, "expected no component");
	decode_fetch(decoder, op_tex, &words);
}

void decode_tld4(struct decoder *decoder)
{
	struct texture_words words = read_texture_words(decoder);
	bool flat = words.form.geometry == GEOMETRY_1D || words.form.geometry == GEOMETRY_3D ||
		    words.form.geometry == GEOMETRY_A1D;
	if (!words.component || words.form.integer || words.form.lod_mode != LOD_BASE || flat)
		decode_invalid(decoder, "expected a component, float coordinates and a 2d or cubemap geometry");
	if (words.results == PTX_F16 || words.results == PTX_F16X2)
		decode_invalid(decoder, "expected results of 32 bits");
	decode_fetch(decoder, op_tld4, &words);
}

/* ---- txq, suq */
void decode_texture_query(struct decoder *decoder)
{
	const struct ptx_statement *statement = decoder->statement;
	bool surface = !strcmp(statement->opcode, "suq"), of_level = decode_has(decoder, ".level");
	uint32_t query_at = of_level ? 1 : 0;
	uint8_t query;
	if (statement->modifiers != query_at + 2 || !ptx_text_is(statement->modifier[query_at + 1], ".b32"))
		decode_invalid(decoder, "expected one query and .b32");
	if (!WORD_OF(statement->modifier[query_at], queries, &query))
		decode_unsupported(decoder, "this query");
	bool shape = query <= QUERY_DEPTH;
	if ((of_level && (surface || !shape)) || (query == QUERY_LAYOUT && !surface) ||
	    (surface && !shape && query != QUERY_ARRAY_SIZE && query != QUERY_LAYOUT))
		decode_invalid(decoder, "no such query");
	decode_operand_count(decoder, of_level ? 3 : 2, of_level ? 3 : 2);
	struct ptx_operand *rest;
	struct value handle = handle_of(decoder, decode_operand(decoder, 1), surface, &rest);
	struct value level = { ROLE_NONE, -1 };
	if (of_level)
		level = decode_source(decoder, decode_operand(decoder, 2), 'w');
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'w');
	struct draft *draft = decode_emit(decoder, op_texture_query);
	decode_define(draft, 0, result);
	decode_use(draft, 4, handle);
	decode_use(draft, 5, level);
	draft->insn.count = query;
	draft->insn.size = surface;
}

/* Whether a value is the address of a .texref or .surfref variable. */
void decode_istypep(struct decoder *decoder)
{
	bool surface = decode_has(decoder, ".surfref");
	decode_operand_count(decoder, 2, 2);
	if (!surface && !decode_has(decoder, ".texref"))
		decode_unsupported(decoder, "samplers of their own (independent texturing mode)");
	struct value handle = decode_source(decoder, decode_operand(decoder, 1), 'l');
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'p');
	struct draft *draft = decode_emit(decoder, op_istypep);
	decode_define(draft, 0, result);
	decode_use(draft, 4, handle);
	draft->insn.count = surface ? SOFTGPU_SURFACE_REFERENCE : SOFTGPU_TEXTURE_REFERENCE;
}

/* ---- suld, sust, sured */
struct surface_words {
	struct texture_form form;
	enum ptx_type type;
	uint32_t count;
	bool geometry, reduction;
	uint8_t reduction_op;
};

static struct surface_words read_surface_words(struct decoder *decoder)
{
	const struct ptx_statement *statement = decoder->statement;
	struct surface_words words = { .count = 1 };
	for (uint32_t n = 0; n < statement->modifiers; n++) {
		struct ptx_text word = statement->modifier[n];
		if (n == 0 && (ptx_text_is(word, ".b") || ptx_text_is(word, ".p")))
			words.form.formatted = word.at[1] == 'p';
		else if (ptx_text_is(word, ".v2") || ptx_text_is(word, ".v4"))
			words.count = word.at[2] == '2' ? 2 : 4;
		else if (ptx_type_of(word) != PTX_NO_TYPE && words.type == PTX_NO_TYPE)
			words.type = ptx_type_of(word);
		else if (WORD_OF(word, geometries, &words.form.geometry))
			words.geometry = true;
		else if (WORD_OF(word, reductions, &words.reduction_op))
			words.reduction = true;
		else if (!is_cache_word(word) && !WORD_OF(word, clamps, &words.form.clamp))
			decode_unsupported(decoder, "a modifier of this surface access");
	}
	bool cube = words.form.geometry == GEOMETRY_CUBE || words.form.geometry == GEOMETRY_ACUBE;
	if (!words.geometry || cube || words.type == PTX_NO_TYPE)
		decode_invalid(decoder, "expected a geometry and a type");
	return words;
}

static struct value surface_address(struct decoder *decoder, struct ptx_operand *operand,
				    const struct surface_words *words)
{
	struct staging staging = { 0 };
	struct ptx_operand *coordinates;
	struct value handle = handle_of(decoder, operand, true, &coordinates);
	if (!coordinates)
		decode_invalid(decoder, "expected coordinates");
	stage_coordinates(decoder, &staging, coordinates, (enum geometry)words->form.geometry, 'w');
	emit_staging(decoder, &staging);
	return handle;
}

/* The elements of { } or the one operand, and the width of their registers, which may be wider than the type. */
static struct ptx_operand *surface_elements(struct decoder *decoder, struct ptx_operand *operand,
					    const struct surface_words *words, uint32_t *width)
{
	struct ptx_operand *first = operand->kind == PTX_OPERAND_VECTOR ? operand->first : operand;
	uint32_t have = 0, size = ptx_type_size(words->type);
	*width = size < 2 ? 2 : size;
	for (struct ptx_operand *each = first; each; each = operand->kind == PTX_OPERAND_VECTOR ? each->next : NULL) {
		uint32_t wide = each->kind == PTX_OPERAND_REGISTER ? decode_register_size(decoder, each->number) : 0;
		*width = wide > *width ? wide : *width;
		have++;
	}
	if (have != words->count)
		decode_invalid(decoder, "the number of elements does not fit the vector");
	return first;
}

static void decode_surface_type(struct decoder *decoder, const struct surface_words *words)
{
	bool bits = words->type == PTX_B8 || words->type == PTX_B16 || words->type == PTX_B32 || words->type == PTX_B64;
	if (!bits || words->reduction || ptx_type_size(words->type) * words->count > 16)
		decode_invalid(decoder, "expected a type of at most 16 bytes: .b8, .b16, .b32 or .b64");
	if (words->form.formatted && words->type != PTX_B32)
		decode_invalid(decoder, "formatted stores are of .b32");
}

void decode_suld(struct decoder *decoder)
{
	struct surface_words words = read_surface_words(decoder);
	uint32_t width, results[4];
	decode_operand_count(decoder, 2, 2);
	decode_surface_type(decoder, &words);
	if (words.form.formatted)
		decode_unsupported(decoder, "formatted loads");
	struct ptx_operand *each = surface_elements(decoder, decode_operand(decoder, 0), &words, &width);
	struct value handle = surface_address(decoder, decode_operand(decoder, 1), &words);
	for (uint32_t n = 0; n < words.count; n++, each = each->next)
		results[n] = each->kind == PTX_OPERAND_SINK ? UINT32_MAX
							    : decode_result(decoder, each, decode_letter(width));
	struct draft *draft = decode_emit(decoder, op_suld);
	for (uint32_t n = 0; n < words.count; n++) {
		draft->insn.r[n] = -1;
		if (results[n] != UINT32_MAX)
			decode_define(draft, (int)n, results[n]);
	}
	decode_use(draft, 4, handle);
	draft->insn.count = (uint8_t)words.count;
	draft->insn.size = (uint8_t)ptx_type_size(words.type);
	draft->insn.slot = (uint8_t)width;
	put_form(draft, &words.form);
}

void decode_sust(struct decoder *decoder)
{
	struct surface_words words = read_surface_words(decoder);
	struct value values[4];
	uint32_t width;
	decode_operand_count(decoder, 2, 2);
	decode_surface_type(decoder, &words);
	struct ptx_operand *each = surface_elements(decoder, decode_operand(decoder, 1), &words, &width);
	for (uint32_t n = 0; n < words.count; n++, each = each->next)
		values[n] = decode_source(decoder, each, decode_letter(width));
	struct value handle = surface_address(decoder, decode_operand(decoder, 0), &words);
	struct draft *draft = decode_emit(decoder, op_sust);
	for (uint32_t n = 0; n < words.count; n++)
		decode_use(draft, (int)n, values[n]);
	decode_use(draft, 4, handle);
	draft->insn.count = (uint8_t)words.count;
	draft->insn.size = (uint8_t)ptx_type_size(words.type);
	draft->insn.slot = (uint8_t)width;
	put_form(draft, &words.form);
}

/* Whether the reduction exists for the type (PTX ISA, "sured"). */
static bool reduction_fits(const struct surface_words *words)
{
	bool extreme = words->reduction_op == SURFACE_MIN || words->reduction_op == SURFACE_MAX;
	bool bitwise = words->reduction_op == SURFACE_AND || words->reduction_op == SURFACE_OR;
	if (words->form.formatted)
		return words->type == PTX_B32 || (words->type == PTX_B64 && extreme);
	switch (words->type) {
	case PTX_U32: case PTX_S32: case PTX_U64: return !bitwise;
	case PTX_S64: return extreme;
	case PTX_B32: return bitwise;
	default: return false;
	}
}

void decode_sured(struct decoder *decoder)
{
	struct surface_words words = read_surface_words(decoder);
	decode_operand_count(decoder, 2, 2);
	if (!words.reduction || words.count != 1 || !reduction_fits(&words))
		decode_invalid(decoder, "no such reduction");
	char letter = decode_letter(ptx_type_size(words.type));
	struct ptx_operand *operand = decode_operand(decoder, 1);
	if (operand->kind == PTX_OPERAND_VECTOR)
		operand = first_of(decoder, operand, 1);
	struct value value = decode_source(decoder, operand, letter);
	struct value handle = surface_address(decoder, decode_operand(decoder, 0), &words);
	struct draft *draft = decode_emit(decoder, op_sured);
	decode_use(draft, 0, value);
	decode_use(draft, 4, handle);
	draft->insn.count = words.reduction_op;
	draft->insn.size = (uint8_t)ptx_type_size(words.type);
	draft->insn.flags = ptx_type_signed(words.type) ? INSN_SIGNED : 0;
	put_form(draft, &words.form);
}
