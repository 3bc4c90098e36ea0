/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the parser: its state, and which file reads what. */
#ifndef SOFTGPU_PTX_PARSER_H
#define SOFTGPU_PTX_PARSER_H

#include "cuda_remote/softgpu/ptx/module.h"

struct ptx_parser {
	struct ptx_context *context;
	struct ptx_lexer lexer;
	struct ptx_module *module;
	struct ptx_symbol **variables_end;
	struct ptx_function **functions_end;
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

/* declaration.c: "current token" is the word that names the state space */
void ptx_parse_registers(struct ptx_parser *parser);
/* The variables of one declaration, up to and with the ';', each added to *end. */
void ptx_parse_variables(struct ptx_parser *parser, enum ptx_space space, bool is_extern, struct ptx_symbol ***end);
/* A parenthesised list of parameters, appended at end. */
void ptx_parse_parameters(struct ptx_parser *parser, struct ptx_scope *scope, struct ptx_symbol **end);
/* A constant expression of integers. */
int64_t ptx_parse_constant(struct ptx_parser *parser);

/* statement.c */
void ptx_parse_body(struct ptx_parser *parser);

#endif
