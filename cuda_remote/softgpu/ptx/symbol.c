/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbol tables: names of variables, registers, labels and functions, by scope. */
#include "cuda_remote/softgpu/ptx/parser.h"

#include <ctype.h>
#include <string.h>

#define REGISTERS_MAX (1u << 22)

static const struct {
	const char *word;
	uint8_t size;
	bool is_signed, is_float;
} types[] = {
	[PTX_NO_TYPE] = { "", 0, false, false },      [PTX_PRED] = { ".pred", 0, false, false },
	[PTX_B8] = { ".b8", 1, false, false },        [PTX_U8] = { ".u8", 1, false, false },
	[PTX_S8] = { ".s8", 1, true, false },         [PTX_B16] = { ".b16", 2, false, false },
	[PTX_U16] = { ".u16", 2, false, false },      [PTX_S16] = { ".s16", 2, true, false },
	[PTX_F16] = { ".f16", 2, false, true },       [PTX_BF16] = { ".bf16", 2, false, true },
	[PTX_B32] = { ".b32", 4, false, false },      [PTX_U32] = { ".u32", 4, false, false },
	[PTX_S32] = { ".s32", 4, true, false },       [PTX_F32] = { ".f32", 4, false, true },
	[PTX_F16X2] = { ".f16x2", 4, false, true },   [PTX_BF16X2] = { ".bf16x2", 4, false, true },
	[PTX_B64] = { ".b64", 8, false, false },      [PTX_U64] = { ".u64", 8, false, false },
	[PTX_S64] = { ".s64", 8, true, false },       [PTX_F64] = { ".f64", 8, false, true },
	[PTX_B128] = { ".b128", 16, false, false },
};

enum ptx_type ptx_type_of(struct ptx_text word)
{
	for (size_t i = 1; i < sizeof types / sizeof *types; i++)
		if (ptx_text_is(word, types[i].word))
			return (enum ptx_type)i;
	return PTX_NO_TYPE;
}

uint32_t ptx_type_size(enum ptx_type type)
{
	return types[type].size;
}

bool ptx_type_signed(enum ptx_type type)
{
	return types[type].is_signed;
}

bool ptx_type_float(enum ptx_type type)
{
	return types[type].is_float;
}

static uint32_t bucket_of(struct ptx_text name)
{
	uint32_t hash = 2166136261u;
	for (uint32_t i = 0; i < name.length; i++)
		hash = (hash ^ (uint8_t)name.at[i]) * 16777619u;
	return (hash ^ hash >> 16) % PTX_BUCKETS;
}

static struct ptx_symbol *find_in(const struct ptx_scope *scope, struct ptx_text name)
{
	for (struct ptx_symbol *s = scope->buckets[bucket_of(name)]; s; s = s->next_in_bucket)
		if (s->name.length == name.length && !memcmp(s->name.at, name.at, name.length))
			return s;
	return NULL;
}

/* %r12 in a scope that has .reg %r<20>. */
static struct ptx_symbol *find_in_range(const struct ptx_scope *scope, struct ptx_text name, uint32_t *index)
{
	uint32_t prefix = name.length;
	while (prefix > 0 && isdigit((unsigned char)name.at[prefix - 1]))
		prefix--;
	if (prefix == 0 || prefix == name.length || name.length - prefix > 9)
		return NULL;
	if (name.at[prefix] == '0' && name.length - prefix > 1)
		return NULL;
	*index = 0;
	for (uint32_t i = prefix; i < name.length; i++)
		*index = *index * 10 + (uint32_t)(name.at[i] - '0');
	struct ptx_symbol *symbol = find_in(scope, (struct ptx_text){ name.at, prefix });
	return symbol && symbol->is_range && *index < symbol->count ? symbol : NULL;
}

struct ptx_symbol *ptx_lookup(const struct ptx_scope *scope, struct ptx_text name, uint32_t *number)
{
	for (; scope; scope = scope->outer) {
		uint32_t index = 0;
		struct ptx_symbol *symbol = find_in(scope, name);
		if (!symbol || symbol->is_range)
			symbol = find_in_range(scope, name, &index);
		if (symbol) {
			*number = symbol->number + index * (symbol->kind == PTX_SYMBOL_REGISTER ? symbol->lanes : 1);
			return symbol;
		}
	}
	return NULL;
}

struct ptx_scope *ptx_new_scope(struct ptx_context *context, struct ptx_scope *outer)
{
	struct ptx_scope *scope = ptx_alloc(context, sizeof *scope);
	scope->outer = outer;
	return scope;
}

struct ptx_symbol *ptx_declare(struct ptx_parser *parser, struct ptx_scope *scope, struct ptx_text name,
			       enum ptx_symbol_kind kind)
{
	bool nameless = ptx_text_is(name, "_");
	struct ptx_symbol *earlier = nameless ? NULL : find_in(scope, name);
	if (earlier && !(earlier->kind == kind && earlier->is_extern))
		ptx_invalid(parser->context, parser->lexer.token_line, "%.*s is declared twice (first on line %u)",
			    (int)name.length, name.at, earlier->line);
	struct ptx_symbol *symbol = ptx_alloc(parser->context, sizeof *symbol);
	symbol->name = name;
	symbol->kind = kind;
	symbol->line = parser->lexer.token_line;
	symbol->unit = parser->context->unit;
	if (nameless)
		return symbol;
	uint32_t bucket = bucket_of(name);
	symbol->next_in_bucket = scope->buckets[bucket];
	scope->buckets[bucket] = symbol;
	return symbol;
}

uint32_t ptx_new_register(struct ptx_context *context, struct ptx_function *function, enum ptx_type type)
{
	if (function->register_count >= REGISTERS_MAX)
		ptx_unsupported(context, function->line, "more than %u registers in one function", REGISTERS_MAX);
	if (function->register_count == function->register_room) {
		uint32_t room = function->register_room ? function->register_room * 2 : 256;
		uint8_t *grown = ptx_alloc(context, room);
		if (function->register_count)
			memcpy(grown, function->register_types, function->register_count);
		function->register_types = grown;
		function->register_room = room;
	}
	function->register_types[function->register_count] = (uint8_t)type;
	return function->register_count++;
}
