/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Initialisers of variables (PTX ISA, "Initializers"). Braces nest as the array's dimensions do, and a vector's
 * elements have braces of their own. Elements that a list leaves out are zero.
 */
#include "cuda_remote/softgpu/ptx/parser.h"

#include <string.h>

/* Initial values are in memory twice until they are in device memory; a text of a few bytes must not use up all
 * memory. */
#define INITIALISED_BYTES_MAX (1ull << 27)

#define FIRST_ROOM 64

/* Where an initialiser's next element goes. */
struct cursor {
	struct ptx_symbol *variable;
	const struct ptx_shape *shape;
	uint64_t offset, room; /* room: bytes of variable->init, where the initialiser gives the size */
	uint32_t element;      /* bytes */
};

static void check_size(struct ptx_parser *parser, uint64_t bytes)
{
	if (bytes > INITIALISED_BYTES_MAX)
		ptx_unsupported(parser->context, parser->lexer.token_line, "an initialiser of a variable of %llu bytes",
				(unsigned long long)bytes);
}

/* Makes room in an array whose size its initialiser gives. */
static void make_room(struct ptx_parser *parser, struct cursor *cursor, uint64_t end)
{
	struct ptx_symbol *variable = cursor->variable;
	if (end <= variable->size)
		return;
	if (!variable->unsized)
		ptx_invalid(parser->context, parser->lexer.token_line, "too many initialisers for %.*s",
			    (int)variable->name.length, variable->name.at);
	check_size(parser, end);
	if (end > cursor->room) {
		uint64_t room = end > FIRST_ROOM / 2 ? 2 * end : FIRST_ROOM;
		uint8_t *grown = ptx_alloc(parser->context, room);
		if (variable->size)
			memcpy(grown, variable->init, variable->size);
		variable->init = grown;
		cursor->room = room;
	}
	variable->size = end;
}

static void put(struct ptx_parser *parser, struct cursor *cursor, const void *bytes)
{
	make_room(parser, cursor, cursor->offset + cursor->element);
	memcpy(cursor->variable->init + cursor->offset, bytes, cursor->element);
	cursor->offset += cursor->element;
}

static void take_addend(struct ptx_parser *parser, struct ptx_relocation *relocation)
{
	if (ptx_at_mark(&parser->lexer, '+') || ptx_at_mark(&parser->lexer, '-'))
		relocation->addend = ptx_parse_constant(parser);
}

/* name, generic(name), each with an addend: an address. shift, and the element's size, select the part that is
 * written. */
static void parse_address(struct ptx_parser *parser, struct cursor *cursor, uint32_t shift, bool masked)
{
	struct ptx_lexer *lexer = &parser->lexer;
	bool wrapped = ptx_text_is(lexer->text, "generic");
	uint64_t zero = 0;
	struct ptx_relocation *relocation = ptx_alloc(parser->context, sizeof *relocation);
	relocation->line = lexer->token_line;
	relocation->scope = parser->scope ? parser->scope : &parser->module->scope;
	relocation->name = ptx_expect_name(lexer);
	if (wrapped) {
		ptx_expect_mark(lexer, '(');
		relocation->name = ptx_expect_name(lexer);
		take_addend(parser, relocation);
		ptx_expect_mark(lexer, ')');
	}
	take_addend(parser, relocation);
	if (!masked && cursor->element != 8 && cursor->element != 4)
		ptx_invalid(parser->context, relocation->line, "an address in a variable of %u-byte elements",
			    cursor->element);
	relocation->size = cursor->element;
	relocation->shift = shift;
	relocation->offset = cursor->offset;
	relocation->next = cursor->variable->relocations;
	cursor->variable->relocations = relocation;
	put(parser, cursor, &zero);
}

/* 0xff00(name): one byte of an address (PTX ISA, "mask() operator"); called after the mask. */
static void parse_masked(struct ptx_parser *parser, struct cursor *cursor, uint64_t mask)
{
	struct ptx_lexer *lexer = &parser->lexer;
	uint32_t shift = 0;
	while (shift < 64 && mask != 0xffull << shift)
		shift += 8;
	if (shift == 64 || cursor->element != 1)
		ptx_invalid(parser->context, lexer->token_line,
			    "a mask takes one byte of an address, in a variable of bytes");
	ptx_expect_mark(lexer, '(');
	if (lexer->kind != PTX_TOKEN_NAME)
		ptx_syntax_error(lexer, "a name");
	parse_address(parser, cursor, shift, true);
	ptx_expect_mark(lexer, ')');
}

/* A number for .f32 or .f64, or for untyped bits: decimal numbers take the element's width, 0f… keeps its bits. */
static void parse_float(struct ptx_parser *parser, struct cursor *cursor)
{
	struct ptx_lexer *lexer = &parser->lexer;
	enum ptx_type type = cursor->variable->type;
	bool single = lexer->kind == PTX_TOKEN_FLOAT;
	uint64_t literal = lexer->value, bits = 0;
	struct ptx_lexer after = *lexer;
	if (type != PTX_F32 && type != PTX_F64 && type != PTX_B32 && type != PTX_B64)
		ptx_syntax_error(lexer, "an initialiser of the variable's type");
	if (lexer->kind == PTX_TOKEN_FLOAT || lexer->kind == PTX_TOKEN_DOUBLE)
		ptx_next(&after);
	bool alone = ptx_at_mark(&after, ',') || ptx_at_mark(&after, '}') || ptx_at_mark(&after, ';');
	double value = ptx_parse_float(parser);
	float narrow = (float)value;
	if (alone && (single ? cursor->element == 4 || type == PTX_B64 : cursor->element == 8))
		bits = literal; /* exact, also of a NaN */
	else if (cursor->element == 4)
		memcpy(&bits, &narrow, sizeof narrow);
	else
		memcpy(&bits, &value, sizeof value);
	put(parser, cursor, &bits);
}

static void parse_integer(struct ptx_parser *parser, struct cursor *cursor)
{
	struct ptx_lexer *lexer = &parser->lexer;
	uint32_t line = lexer->token_line;
	uint64_t mask = lexer->value;
	struct ptx_lexer after = *lexer;
	if (lexer->kind == PTX_TOKEN_INTEGER) {
		ptx_next(&after);
		if (ptx_at_mark(&after, '(')) {
			*lexer = after;
			parse_masked(parser, cursor, mask);
			return;
		}
	}
	uint64_t bits = (uint64_t)ptx_parse_constant(parser);
	if (ptx_type_float(cursor->variable->type))
		ptx_invalid(parser->context, line, "an integer as initialiser of a float");
	put(parser, cursor, &bits);
}

static void parse_element(struct ptx_parser *parser, struct cursor *cursor)
{
	struct ptx_lexer *lexer = &parser->lexer;
	if (cursor->element > sizeof(uint64_t))
		ptx_unsupported(parser->context, lexer->token_line, "an initialiser of %u-byte elements",
				cursor->element);
	if (ptx_at_float(parser))
		parse_float(parser, cursor);
	else if (lexer->kind == PTX_TOKEN_NAME && !ptx_text_is(lexer->text, "WARP_SZ"))
		parse_address(parser, cursor, 0, false);
	else
		parse_integer(parser, cursor);
}

/* The elements of a vector: all of them, in braces. */
static void parse_vector(struct ptx_parser *parser, struct cursor *cursor)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_expect_mark(lexer, '{');
	for (uint32_t n = 0; n < cursor->shape->lanes; n++) {
		if (n)
			ptx_expect_mark(lexer, ',');
		parse_element(parser, cursor);
	}
	ptx_expect_mark(lexer, '}');
}

/* One item of an array's dimension number depth, or the whole variable at depth 0. */
static void parse_item(struct ptx_parser *parser, struct cursor *cursor, uint32_t depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	const struct ptx_shape *shape = cursor->shape;
	if (depth == shape->dimensions) {
		if (shape->lanes > 1)
			parse_vector(parser, cursor);
		else
			parse_element(parser, cursor);
		return;
	}
	uint64_t step = shape->step[depth], start = cursor->offset, items = 0;
	bool open = depth == 0 && cursor->variable->unsized;
	ptx_expect_mark(lexer, '{');
	if (ptx_take_mark(lexer, '}'))
		return;
	do {
		if (!open && items == shape->count[depth])
			ptx_invalid(parser->context, lexer->token_line, "too many initialisers for %.*s",
				    (int)cursor->variable->name.length, cursor->variable->name.at);
		cursor->offset = start + items++ * step;
		if (open)
			make_room(parser, cursor, cursor->offset + step);
		parse_item(parser, cursor, depth + 1);
	} while (ptx_take_mark(lexer, ','));
	ptx_expect_mark(lexer, '}');
}

void ptx_parse_initialiser(struct ptx_parser *parser, struct ptx_symbol *variable, const struct ptx_shape *shape)
{
	struct cursor cursor = { .variable = variable, .shape = shape, .element = ptx_type_size(variable->type) };
	check_size(parser, variable->size);
	if (!variable->unsized)
		variable->init = ptx_alloc(parser->context, variable->size);
	else if (shape->dimensions == 0 || !shape->step[0])
		ptx_syntax_error(&parser->lexer, "an array of a known size");
	parse_item(parser, &cursor, 0);
	variable->unsized = variable->unsized && !variable->size;
}
