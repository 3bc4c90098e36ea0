/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser's state, and the functions that its source files share. */
#ifndef SOFTGPU_PTX_PARSER_H
#define SOFTGPU_PTX_PARSER_H

#include "cuda_remote/softgpu/ptx/module.h"

struct ptx_parser {
	struct ptx_context *context;
	struct ptx_lexer lexer;
	struct ptx_module *module;
	struct ptx_symbol **variables_end, **names_end;
	struct ptx_function **functions_end;
	struct ptx_alias **aliases_end;
	enum ptx_linkage linkage; /* of the declaration being read */
	/* of the function being read */
	struct ptx_function *function;
	struct ptx_scope *scope;
	struct ptx_symbol **locals_end;
	struct ptx_statement **statements_end;
	uint32_t depth; /* of nested { } */
};

/* symbol.c */
struct ptx_symbol *ptx_declare(struct ptx_parser *parser, struct ptx_scope *scope, struct ptx_text name,
			       enum ptx_symbol_kind kind);
struct ptx_scope *ptx_new_scope(struct ptx_context *context, struct ptx_scope *outer);

/* declaration.c. The first two start with the word of the state space as the current token. */
void ptx_parse_registers(struct ptx_parser *parser);
/* The variables of one declaration, up to and with the ';', each added to *end. */
void ptx_parse_variables(struct ptx_parser *parser, enum ptx_space space, bool is_extern, struct ptx_symbol ***end);
/* A parenthesised list of parameters, appended at end. */
void ptx_parse_parameters(struct ptx_parser *parser, struct ptx_scope *scope, struct ptx_symbol **end);
/* Skips .attribute's parentheses. */
void ptx_skip_attributes(struct ptx_parser *parser);

/* constant.c: expressions of integers, 64 bits wide, and of floats */
int64_t ptx_parse_constant(struct ptx_parser *parser);
double ptx_parse_float(struct ptx_parser *parser);
/* Whether the expression at the current token is a floating-point expression. */
bool ptx_at_float(const struct ptx_parser *parser);
/* If the expression is only a literal, perhaps with a minus before it: takes it; *bits: its exact bits, also of a
 * NaN. */
bool ptx_take_lone_float(struct ptx_parser *parser, bool *is_single, uint64_t *bits);

/* The layout of an array: for each dimension, from the outermost, the number of items and the bytes of one item. */
#define PTX_DIMENSIONS_MAX 8
struct ptx_shape {
	uint32_t dimensions, lanes; /* lanes: elements of a vector; 1 if it is no vector */
	uint64_t count[PTX_DIMENSIONS_MAX], step[PTX_DIMENSIONS_MAX];
};

/* initialiser.c: the initialiser after '='; gives an unsized variable its size */
void ptx_parse_initialiser(struct ptx_parser *parser, struct ptx_symbol *variable, const struct ptx_shape *shape);

/*
 * legacy.c: adds to an instruction's modifiers those that it has implicitly in a module for sm_10 to sm_13. The array
 * has room for PTX_LEGACY_MODIFIERS more. Returns the new count.
 */
#define PTX_LEGACY_MODIFIERS 2
uint32_t ptx_legacy_modifiers(struct ptx_text opcode, struct ptx_text *modifiers, uint32_t count);

/* statement.c */
void ptx_parse_body(struct ptx_parser *parser);

#endif
