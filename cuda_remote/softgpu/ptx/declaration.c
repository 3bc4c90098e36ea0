/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations: registers, variables with their initialisers, parameters (PTX ISA, "Variables"). */
#include "cuda_remote/softgpu/ptx/parser.h"

#include <string.h>

#define VARIABLE_BYTES_MAX (1ull << 34)
#define NESTING_MAX 64

enum ptx_space ptx_space_of(struct ptx_text word)
{
	static const struct {
		const char *word;
		enum ptx_space space;
	} spaces[] = {
		{ ".reg", PTX_REG },       { ".global", PTX_GLOBAL }, { ".const", PTX_CONST },
		{ ".shared", PTX_SHARED }, { ".local", PTX_LOCAL },   { ".param", PTX_PARAM },
	};
	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (ptx_text_is(word, spaces[i].word))
			return spaces[i].space;
	return PTX_NO_SPACE;
}

static int64_t parse_primary(struct ptx_parser *parser, int depth);

static int64_t apply(struct ptx_parser *parser, char operator, int64_t a, int64_t b)
{
	uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
	switch (operator) {
	case '+': return (int64_t)(ua + ub);
	case '-': return (int64_t)(ua - ub);
	case '*': return (int64_t)(ua * ub);
	case '&': return a & b;
	case '|': return a | b;
	case '^': return a ^ b;
	case '<': return ub < 64 ? (int64_t)(ua << ub) : 0;
	case '>': return ub < 64 ? a >> ub : 0;
	default: break;
	}
	if (b == 0 || (a == INT64_MIN && b == -1))
		ptx_invalid(parser->context, parser->lexer.token_line, "division by zero in a constant");
	return operator == '/' ? a / b : a % b;
}

static int precedence(char mark)
{
	switch (mark) {
	case '*': case '/': case '%': return 6;
	case '+': case '-': return 5;
	case '<': case '>': return 4;
	case '&': return 3;
	case '^': return 2;
	case '|': return 1;
	default: return 0;
	}
}

static int64_t parse_expression(struct ptx_parser *parser, int lowest, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	int64_t value = parse_primary(parser, depth + 1);
	while (lexer->kind == PTX_TOKEN_MARK && precedence(lexer->mark) >= lowest) {
		char mark = lexer->mark;
		ptx_next(lexer);
		if (mark == '<' || mark == '>')
			ptx_expect_mark(lexer, mark);
		value = apply(parser, mark, value, parse_expression(parser, precedence(mark) + 1, depth + 1));
	}
	return value;
}

static int64_t parse_primary(struct ptx_parser *parser, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	if (depth > NESTING_MAX)
		ptx_invalid(parser->context, lexer->token_line, "expression nested too deep");
	if (ptx_take_mark(lexer, '-'))
		return (int64_t)(0 - (uint64_t)parse_primary(parser, depth + 1));
	if (ptx_take_mark(lexer, '+'))
		return parse_primary(parser, depth + 1);
	if (ptx_take_mark(lexer, '~'))
		return ~parse_primary(parser, depth + 1);
	if (ptx_take_mark(lexer, '!'))
		return !parse_primary(parser, depth + 1);
	if (ptx_take_mark(lexer, '(')) {
		/* A cast such as (.s64) says nothing that 64-bit arithmetic does not. */
		if (lexer->kind == PTX_TOKEN_WORD) {
			ptx_next(lexer);
			ptx_expect_mark(lexer, ')');
			return parse_primary(parser, depth + 1);
		}
		int64_t value = parse_expression(parser, 1, depth + 1);
		ptx_expect_mark(lexer, ')');
		return value;
	}
	if (lexer->kind == PTX_TOKEN_NAME && ptx_text_is(lexer->text, "WARP_SZ")) {
		ptx_next(lexer);
		return 32;
	}
	if (lexer->kind != PTX_TOKEN_INTEGER)
		ptx_syntax_error(lexer, "a constant");
	int64_t value = (int64_t)lexer->value;
	ptx_next(lexer);
	return value;
}

int64_t ptx_parse_constant(struct ptx_parser *parser)
{
	return parse_expression(parser, 1, 0);
}

void ptx_parse_registers(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_next(lexer);
	if (ptx_at_word(lexer, ".v2") || ptx_at_word(lexer, ".v4"))
		ptx_unsupported(parser->context, lexer->token_line, "vector registers (.reg .v2, .v4)");
	enum ptx_type type = lexer->kind == PTX_TOKEN_WORD ? ptx_type_of(lexer->text) : PTX_NO_TYPE;
	if (type == PTX_NO_TYPE)
		ptx_syntax_error(lexer, "a register type");
	if (type == PTX_B128)
		ptx_unsupported(parser->context, lexer->token_line, ".reg .b128");
	do {
		ptx_next(lexer);
		struct ptx_text name = ptx_expect_name(lexer);
		struct ptx_symbol *symbol = ptx_declare(parser, parser->scope, name, PTX_SYMBOL_REGISTER);
		symbol->type = type;
		symbol->count = 1;
		if (ptx_take_mark(lexer, '<')) {
			uint64_t count = lexer->value;
			if (lexer->kind != PTX_TOKEN_INTEGER || count > 1 << 20)
				ptx_invalid(parser->context, lexer->token_line, "bad number of registers");
			ptx_next(lexer);
			symbol->count = (uint32_t)count;
			symbol->is_range = true;
			ptx_expect_mark(lexer, '>');
		}
		symbol->number = parser->function->register_count;
		for (uint32_t i = 0; i < symbol->count; i++)
			ptx_new_register(parser->context, parser->function, type);
	} while (ptx_at_mark(lexer, ','));
	ptx_expect_mark(lexer, ';');
}

/* Where an initialiser's next element goes. */
struct init_cursor {
	struct ptx_symbol *variable;
	uint64_t offset;
	uint32_t element; /* bytes */
};

static void init_put(struct ptx_parser *parser, struct init_cursor *cursor, const void *bytes)
{
	struct ptx_symbol *variable = cursor->variable;
	if (cursor->offset + cursor->element > variable->size)
		ptx_invalid(parser->context, parser->lexer.token_line, "too many initialisers for %.*s",
			    (int)variable->name.length, variable->name.at);
	memcpy(variable->init + cursor->offset, bytes, cursor->element);
	cursor->offset += cursor->element;
}

static void init_address(struct ptx_parser *parser, struct init_cursor *cursor)
{
	struct ptx_lexer *lexer = &parser->lexer;
	bool wrapped = ptx_text_is(lexer->text, "generic");
	uint64_t zero = 0;
	struct ptx_relocation *relocation = ptx_alloc(parser->context, sizeof *relocation);
	relocation->line = lexer->token_line;
	relocation->name = ptx_expect_name(lexer);
	if (wrapped) {
		ptx_expect_mark(lexer, '(');
		relocation->name = ptx_expect_name(lexer);
	}
	if (ptx_at_mark(lexer, '+') || ptx_at_mark(lexer, '-'))
		relocation->addend = ptx_parse_constant(parser);
	if (wrapped) {
		ptx_expect_mark(lexer, ')');
		if (ptx_at_mark(lexer, '+') || ptx_at_mark(lexer, '-'))
			relocation->addend = ptx_parse_constant(parser);
	}
	if (cursor->element != 8)
		ptx_unsupported(parser->context, relocation->line, "an address in a variable of %u-byte elements",
				cursor->element);
	relocation->size = cursor->element;
	relocation->offset = cursor->offset;
	relocation->next = cursor->variable->relocations;
	cursor->variable->relocations = relocation;
	init_put(parser, cursor, &zero);
}

static void init_number(struct ptx_parser *parser, struct init_cursor *cursor)
{
	struct ptx_lexer *lexer = &parser->lexer;
	enum ptx_type type = cursor->variable->type;
	bool negative = false;
	uint64_t bits = lexer->value;
	if (cursor->element > sizeof bits)
		ptx_unsupported(parser->context, lexer->token_line, "an initialiser of %u-byte elements", cursor->element);
	while (ptx_type_float(type) && ptx_take_mark(lexer, '-'))
		negative = !negative;
	bits = lexer->value;
	if (lexer->kind == PTX_TOKEN_DOUBLE && type == PTX_F32) {
		double wide;
		memcpy(&wide, &bits, sizeof wide);
		float narrow = (float)wide;
		bits = 0;
		memcpy(&bits, &narrow, sizeof narrow);
		ptx_next(lexer);
	} else if (lexer->kind == PTX_TOKEN_DOUBLE || lexer->kind == PTX_TOKEN_FLOAT) {
		if (cursor->element != (lexer->kind == PTX_TOKEN_FLOAT ? 4u : 8u))
			ptx_syntax_error(lexer, "an initialiser of the variable's type");
		ptx_next(lexer);
	} else {
		bits = (uint64_t)ptx_parse_constant(parser);
		if (type == PTX_F32 || type == PTX_F64)
			ptx_unsupported(parser->context, lexer->token_line, "an integer as initialiser of a float");
	}
	if (negative)
		bits ^= 1ull << (cursor->element * 8 - 1);
	init_put(parser, cursor, &bits);
}

static void parse_initialiser(struct ptx_parser *parser, struct init_cursor *cursor, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	if (depth > NESTING_MAX)
		ptx_invalid(parser->context, lexer->token_line, "initialiser nested too deep");
	if (!ptx_take_mark(lexer, '{')) {
		if (lexer->kind == PTX_TOKEN_NAME)
			init_address(parser, cursor);
		else
			init_number(parser, cursor);
		return;
	}
	if (ptx_take_mark(lexer, '}'))
		return;
	do
		parse_initialiser(parser, cursor, depth + 1);
	while (ptx_take_mark(lexer, ','));
	ptx_expect_mark(lexer, '}');
}

/* What stands between the space and the name: .align, .v2, type, .ptr … */
struct variable_head {
	enum ptx_type type;
	uint32_t align, lanes;
};

static uint32_t parse_align(struct ptx_parser *parser)
{
	int64_t align = ptx_parse_constant(parser);
	if (align <= 0 || align > 4096 || (align & (align - 1)))
		ptx_invalid(parser->context, parser->lexer.token_line, "bad alignment");
	return (uint32_t)align;
}

/*
 * .attribute(.managed), past the word: the host reaches all of this device's memory, so a managed variable is like
 * any other.
 */
static void skip_attributes(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_expect_mark(lexer, '(');
	while (!ptx_take_mark(lexer, ')')) {
		if (!ptx_take_word(lexer, ".managed"))
			ptx_unsupported(parser->context, lexer->token_line, "a variable with attribute %.*s",
					(int)lexer->text.length, lexer->text.at);
		ptx_take_mark(lexer, ',');
	}
}

static struct variable_head parse_head(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct variable_head head = { .lanes = 1 };
	bool pointer = false; /* past .ptr: what follows describes what it points to */
	while (lexer->kind == PTX_TOKEN_WORD) {
		enum ptx_type type = ptx_type_of(lexer->text);
		if (ptx_take_word(lexer, ".align")) {
			uint32_t align = parse_align(parser);
			if (!pointer)
				head.align = align;
			continue;
		}
		if (ptx_take_word(lexer, ".attribute")) {
			skip_attributes(parser);
			continue;
		}
		if (ptx_at_word(lexer, ".v2") || ptx_at_word(lexer, ".v4"))
			head.lanes = lexer->text.at[2] == '2' ? 2 : 4;
		else if (type != PTX_NO_TYPE && type != PTX_PRED && head.type == PTX_NO_TYPE)
			head.type = type;
		else if (ptx_at_word(lexer, ".ptr"))
			pointer = true;
		else if (ptx_at_word(lexer, ".texref") || ptx_at_word(lexer, ".samplerref") ||
			 ptx_at_word(lexer, ".surfref"))
			ptx_unsupported(parser->context, lexer->token_line, "a variable with %.*s",
					(int)lexer->text.length, lexer->text.at);
		else if (!pointer)
			ptx_syntax_error(lexer, "a type");
		ptx_next(lexer);
	}
	if (head.type == PTX_NO_TYPE)
		ptx_syntax_error(lexer, "a type");
	uint32_t natural = ptx_type_size(head.type) * head.lanes;
	if (head.align == 0)
		head.align = natural;
	return head;
}

/* [4][3], or [] for a size that the initialiser or the launch gives. */
static void parse_dimensions(struct ptx_parser *parser, struct ptx_symbol *variable)
{
	struct ptx_lexer *lexer = &parser->lexer;
	while (ptx_take_mark(lexer, '[')) {
		if (ptx_take_mark(lexer, ']')) {
			variable->unsized = true;
			continue;
		}
		int64_t count = ptx_parse_constant(parser);
		if (count < 0 || (count > 0 && variable->size > VARIABLE_BYTES_MAX / (uint64_t)count))
			ptx_invalid(parser->context, lexer->token_line, "bad array size");
		variable->size *= (uint64_t)count;
		ptx_expect_mark(lexer, ']');
	}
	if (variable->unsized)
		variable->size = 0;
}

static struct ptx_symbol *parse_variable(struct ptx_parser *parser, struct ptx_scope *scope, enum ptx_space space,
					 const struct variable_head *head)
{
	struct ptx_text name = ptx_expect_name(&parser->lexer);
	struct ptx_symbol *variable = ptx_declare(parser, scope, name, PTX_SYMBOL_VARIABLE);
	variable->space = space;
	variable->type = head->type;
	variable->align = head->align;
	variable->size = (uint64_t)ptx_type_size(head->type) * head->lanes;
	parse_dimensions(parser, variable);
	return variable;
}

void ptx_parse_variables(struct ptx_parser *parser, enum ptx_space space, bool is_extern, struct ptx_symbol ***end)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_next(lexer);
	struct variable_head head = parse_head(parser);
	struct ptx_scope *scope = parser->scope ? parser->scope : &parser->module->scope;
	do {
		struct ptx_symbol *variable = parse_variable(parser, scope, space, &head);
		variable->is_extern = is_extern;
		if (ptx_take_mark(lexer, '=')) {
			if (space != PTX_GLOBAL && space != PTX_CONST)
				ptx_invalid(parser->context, lexer->token_line,
					    "only .global and .const have initialisers");
			if (variable->unsized)
				ptx_unsupported(parser->context, lexer->token_line,
						"an array whose initialiser gives its size");
			variable->init = ptx_alloc(parser->context, variable->size);
			struct init_cursor cursor = { variable, 0, ptx_type_size(head.type) };
			parse_initialiser(parser, &cursor, 0);
		}
		**end = variable;
		*end = &variable->next;
	} while (ptx_take_mark(lexer, ','));
	ptx_expect_mark(lexer, ';');
}

void ptx_parse_parameters(struct ptx_parser *parser, struct ptx_scope *scope, struct ptx_symbol **end)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_expect_mark(lexer, '(');
	if (ptx_take_mark(lexer, ')'))
		return;
	do {
		enum ptx_space space = lexer->kind == PTX_TOKEN_WORD ? ptx_space_of(lexer->text) : PTX_NO_SPACE;
		if (space != PTX_PARAM && space != PTX_REG)
			ptx_syntax_error(lexer, ".param or .reg");
		ptx_next(lexer);
		if (space == PTX_REG && (!parser->function || parser->function->is_kernel))
			ptx_syntax_error(lexer, ".param");
		struct variable_head head = parse_head(parser);
		struct ptx_symbol *parameter = parse_variable(parser, scope, space, &head);
		if (space == PTX_REG)
			ptx_unsupported(parser->context, lexer->token_line, "parameters in registers");
		if (parameter->unsized)
			ptx_unsupported(parser->context, lexer->token_line, "a parameter of unknown size (variadic)");
		*end = parameter;
		end = &parameter->next;
	} while (ptx_take_mark(lexer, ','));
	ptx_expect_mark(lexer, ')');
}
