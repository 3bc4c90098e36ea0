/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations: registers, variables with their initialisers, parameters (PTX ISA, "Variables"). */
#include "cuda_remote/softgpu/ptx/parser.h"

#include <string.h>

#define VARIABLE_BYTES_MAX (1ull << 34)

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

void ptx_parse_registers(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_next(lexer);
	uint32_t lanes = 1;
	if (ptx_at_word(lexer, ".v2") || ptx_at_word(lexer, ".v4")) {
		lanes = lexer->text.at[2] == '2' ? 2 : 4;
		ptx_next(lexer);
	}
	enum ptx_type type = lexer->kind == PTX_TOKEN_WORD ? ptx_type_of(lexer->text) : PTX_NO_TYPE;
	if (type == PTX_NO_TYPE)
		ptx_syntax_error(lexer, "a register type");
	do {
		ptx_next(lexer);
		struct ptx_text name = ptx_expect_name(lexer);
		struct ptx_symbol *symbol = ptx_declare(parser, parser->scope, name, PTX_SYMBOL_REGISTER);
		symbol->type = type;
		symbol->count = 1;
		symbol->lanes = lanes;
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
		for (uint32_t i = 0; i < symbol->count * lanes; i++)
			ptx_new_register(parser->context, parser->function, type);
	} while (ptx_at_mark(lexer, ','));
	ptx_expect_mark(lexer, ';');
}

/* The part of a declaration between state space and name: .align, .v2, type, .ptr … */
struct variable_head {
	enum ptx_type type;
	uint32_t align, lanes;
	enum ptx_opaque opaque;
};

static uint32_t parse_align(struct ptx_parser *parser)
{
	int64_t align = ptx_parse_constant(parser);
	if (align <= 0 || align > 4096 || (align & (align - 1)))
		ptx_invalid(parser->context, parser->lexer.token_line, "bad alignment");
	return (uint32_t)align;
}

/*
 * .attribute(.managed, .unified(number, number)), after the word. Both are ignored: the host can access all of this
 * device's memory, so a managed variable is like any other; the number of a unified variable is for a linker that joins
 * host and device code.
 */
void ptx_skip_attributes(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_expect_mark(lexer, '(');
	while (!ptx_take_mark(lexer, ')')) {
		if (ptx_take_word(lexer, ".unified")) {
			ptx_expect_mark(lexer, '(');
			ptx_parse_constant(parser);
			ptx_expect_mark(lexer, ',');
			ptx_parse_constant(parser);
			ptx_expect_mark(lexer, ')');
		} else if (!ptx_take_word(lexer, ".managed"))
			ptx_unsupported(parser->context, lexer->token_line, "a variable with attribute %.*s",
					(int)lexer->text.length, lexer->text.at);
		ptx_take_mark(lexer, ',');
	}
}

/* .texref, .surfref: the variable's value is a 64-bit handle. */
static void parse_opaque(struct ptx_parser *parser, struct variable_head *head)
{
	if (head->type != PTX_NO_TYPE)
		ptx_syntax_error(&parser->lexer, "one type");
	head->opaque = ptx_at_word(&parser->lexer, ".texref") ? PTX_TEXREF : PTX_SURFREF;
	head->type = PTX_B64;
}

static struct variable_head parse_head(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct variable_head head = { .lanes = 1 };
	bool pointer = false; /* after .ptr: the words that follow describe the memory that it points to */
	while (lexer->kind == PTX_TOKEN_WORD) {
		enum ptx_type type = ptx_type_of(lexer->text);
		if (ptx_take_word(lexer, ".align")) {
			uint32_t align = parse_align(parser);
			if (!pointer)
				head.align = align;
			continue;
		}
		if (ptx_take_word(lexer, ".attribute")) {
			ptx_skip_attributes(parser);
			continue;
		}
		if (ptx_at_word(lexer, ".v2") || ptx_at_word(lexer, ".v4"))
			head.lanes = lexer->text.at[2] == '2' ? 2 : 4;
		else if (type != PTX_NO_TYPE && type != PTX_PRED && head.type == PTX_NO_TYPE)
			head.type = type;
		else if (ptx_at_word(lexer, ".ptr"))
			pointer = true;
		else if (ptx_at_word(lexer, ".texref") || ptx_at_word(lexer, ".surfref"))
			parse_opaque(parser, &head);
		else if (ptx_at_word(lexer, ".samplerref"))
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
static void parse_dimensions(struct ptx_parser *parser, struct ptx_symbol *variable, struct ptx_shape *shape)
{
	struct ptx_lexer *lexer = &parser->lexer;
	while (ptx_take_mark(lexer, '[')) {
		if (shape->dimensions == PTX_DIMENSIONS_MAX)
			ptx_unsupported(parser->context, lexer->token_line, "more than %d dimensions",
					PTX_DIMENSIONS_MAX);
		uint64_t *extent = &shape->count[shape->dimensions++];
		if (ptx_take_mark(lexer, ']')) {
			if (shape->dimensions > 1)
				ptx_syntax_error(lexer, "a size for all dimensions but the first");
			variable->unsized = true;
			continue;
		}
		int64_t count = ptx_parse_constant(parser);
		if (count < 0 || (count > 0 && variable->size > VARIABLE_BYTES_MAX / (uint64_t)count))
			ptx_invalid(parser->context, lexer->token_line, "bad array size");
		variable->size *= (uint64_t)count;
		*extent = (uint64_t)count;
		ptx_expect_mark(lexer, ']');
	}
	uint64_t step = (uint64_t)ptx_type_size(variable->type) * shape->lanes;
	for (uint32_t n = shape->dimensions; n > 0; n--) {
		shape->step[n - 1] = step;
		step *= shape->count[n - 1];
	}
	if (variable->unsized)
		variable->size = 0;
}

static struct ptx_symbol *parse_variable(struct ptx_parser *parser, struct ptx_scope *scope, enum ptx_space space,
					 const struct variable_head *head, struct ptx_shape *shape)
{
	struct ptx_text name = ptx_expect_name(&parser->lexer);
	struct ptx_symbol *variable = ptx_declare(parser, scope, name, PTX_SYMBOL_VARIABLE);
	variable->space = space;
	variable->type = head->type;
	variable->align = head->align;
	variable->size = (uint64_t)ptx_type_size(head->type) * head->lanes;
	variable->opaque = head->opaque;
	*shape = (struct ptx_shape){ .lanes = head->lanes };
	parse_dimensions(parser, variable, shape);
	if (head->opaque && (space != PTX_GLOBAL || parser->function || variable->size != 8))
		ptx_unsupported(parser->context, variable->line,
				"a texture or surface reference that is not one .global variable of the module");
	return variable;
}

void ptx_parse_variables(struct ptx_parser *parser, enum ptx_space space, bool is_extern, struct ptx_symbol ***end)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_next(lexer);
	struct variable_head head = parse_head(parser);
	struct ptx_scope *scope = parser->scope ? parser->scope : &parser->module->scope;
	do {
		struct ptx_shape shape;
		struct ptx_symbol *variable = parse_variable(parser, scope, space, &head, &shape);
		variable->is_extern = is_extern;
		variable->linkage = parser->scope ? PTX_LOCAL_LINKAGE : parser->linkage;
		if (ptx_take_mark(lexer, '=')) {
			if (is_extern)
				ptx_invalid(parser->context, lexer->token_line, "an external variable has no initialiser");
			if (space != PTX_GLOBAL && space != PTX_CONST)
				ptx_invalid(parser->context, lexer->token_line,
					    "only .global and .const have initialisers");
			if (variable->opaque)
				ptx_unsupported(parser->context, lexer->token_line,
						"an initialiser of a texture or surface reference");
			ptx_parse_initialiser(parser, variable, &shape);
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
		struct ptx_shape shape;
		struct ptx_symbol *parameter = parse_variable(parser, scope, space, &head, &shape);
		if (space == PTX_REG)
			ptx_unsupported(parser->context, lexer->token_line, "parameters in registers");
		if (parameter->unsized)
			ptx_unsupported(parser->context, lexer->token_line, "a parameter of unknown size (variadic)");
		*end = parameter;
		end = &parameter->next;
	} while (ptx_take_mark(lexer, ','));
	ptx_expect_mark(lexer, ')');
}
