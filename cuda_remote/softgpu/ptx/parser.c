/* SPDX-License-Identifier: BSD-3-Clause */
/* A module: .version, .target, variables and functions (PTX ISA, "Directives"). */
#include "cuda_remote/softgpu/ptx/parser.h"

#include <string.h>

static void skip_braces(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	uint32_t depth = 0;
	while (lexer->kind != PTX_TOKEN_END) {
		if (ptx_at_mark(lexer, '{'))
			depth++;
		if (ptx_at_mark(lexer, '}') && --depth == 0) {
			ptx_next(lexer);
			return;
		}
		if (depth == 0 && lexer->kind == PTX_TOKEN_MARK && !ptx_at_mark(lexer, '{'))
			ptx_syntax_error(lexer, "'{'");
		ptx_next(lexer);
	}
	ptx_syntax_error(lexer, "'}'");
}

static uint32_t parse_count(struct ptx_parser *parser, uint32_t max)
{
	int64_t value = ptx_parse_constant(parser);
	if (value < 0 || value > max)
		ptx_invalid(parser->context, parser->lexer.token_line, "value out of range");
	return (uint32_t)value;
}

/* x[, y[, z]] after .maxntid and the like; missing ones are 1. */
static void parse_block_size(struct ptx_parser *parser, uint32_t size[3])
{
	size[0] = size[1] = size[2] = 1;
	ptx_next(&parser->lexer);
	for (int i = 0; i < 3; i++) {
		size[i] = parse_count(parser, 1 << 16);
		if (i == 2 || !ptx_take_mark(&parser->lexer, ','))
			return;
	}
}

static bool parse_tuning(struct ptx_parser *parser, struct ptx_function *function)
{
	static const char *const counted[] = { ".minnctapersm", ".maxnctapersm", ".maxnreg", ".abi_preserve",
					       ".abi_preserve_control" };
	struct ptx_lexer *lexer = &parser->lexer;
	uint32_t size[3], *cluster = function->required_cluster;
	for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
		if (ptx_take_word(lexer, counted[i])) {
			ptx_parse_constant(parser);
			return true;
		}
	}
	if (ptx_at_word(lexer, ".maxntid")) {
		parse_block_size(parser, size);
		uint64_t threads = (uint64_t)size[0] * size[1] * size[2];
		function->max_threads = threads > 1024 || threads == 0 ? 1024 : (uint32_t)threads;
	} else if (ptx_at_word(lexer, ".reqntid")) {
		parse_block_size(parser, function->required_block);
	} else if (ptx_at_word(lexer, ".pragma")) {
		while (lexer->kind != PTX_TOKEN_END && !ptx_at_mark(lexer, ';'))
			ptx_next(lexer);
		ptx_expect_mark(lexer, ';');
	} else if (ptx_at_word(lexer, ".reqnctapercluster")) {
		parse_block_size(parser, cluster);
		if (!cluster[0] || !cluster[1] || !cluster[2] || (uint64_t)cluster[0] * cluster[1] * cluster[2] > 16)
			ptx_unsupported(parser->context, lexer->token_line, "clusters of more than 16 blocks");
	} else if (ptx_at_word(lexer, ".maxclusterrank")) {
		ptx_next(lexer);
		function->max_cluster = parse_count(parser, 1 << 16);
	} else if (ptx_at_word(lexer, ".blocksareclusters")) {
		ptx_unsupported(parser->context, lexer->token_line, ".blocksareclusters");
	} else if (ptx_take_word(lexer, ".explicitcluster")) {
		function->explicit_cluster = true;
	} else if (ptx_take_word(lexer, ".noreturn")) {
		function->noreturn = true;
	} else {
		return false;
	}
	return true;
}

/* The symbol of a function with this name: a new one, or that of an earlier declaration. */
static struct ptx_symbol *declare_function(struct ptx_parser *parser, struct ptx_text name, bool is_kernel)
{
	uint32_t unused;
	struct ptx_symbol *symbol = ptx_lookup(&parser->module->scope, name, &unused);
	if (symbol && (symbol->kind != PTX_SYMBOL_FUNCTION || symbol->function->is_kernel != is_kernel ||
		       symbol->function->has_body))
		ptx_invalid(parser->context, parser->lexer.token_line, "%.*s is declared twice (first on line %u)",
			    (int)name.length, name.at, symbol->line);
	if (symbol)
		return symbol;
	symbol = ptx_declare(parser, &parser->module->scope, name, PTX_SYMBOL_FUNCTION);
	struct ptx_function *function = ptx_alloc(parser->context, sizeof *function);
	symbol->function = function;
	function->name = name;
	function->unit = parser->context->unit;
	function->is_kernel = is_kernel;
	*parser->names_end = symbol;
	parser->names_end = &symbol->next;
	*parser->functions_end = function;
	parser->functions_end = &function->next;
	return symbol;
}

static void parse_function(struct ptx_parser *parser, bool is_extern)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct ptx_scope *scope = ptx_new_scope(parser->context, &parser->module->scope);
	struct ptx_symbol *results = NULL, *parameters = NULL;
	bool is_kernel = ptx_at_word(lexer, ".entry");
	ptx_next(lexer);
	parser->function = NULL;
	while (ptx_take_word(lexer, ".noreturn") || ptx_at_word(lexer, ".attribute"))
		if (ptx_take_word(lexer, ".attribute"))
			ptx_skip_attributes(parser);
	if (!is_kernel && ptx_at_mark(lexer, '('))
		ptx_parse_parameters(parser, scope, &results);
	uint32_t line = lexer->token_line;
	struct ptx_symbol *symbol = declare_function(parser, ptx_expect_name(lexer), is_kernel);
	struct ptx_function *function = symbol->function;
	enum ptx_linkage linkage = is_extern ? PTX_VISIBLE : parser->linkage;
	function->line = line;
	symbol->linkage = linkage > symbol->linkage ? linkage : symbol->linkage;
	if (ptx_at_mark(lexer, '('))
		ptx_parse_parameters(parser, scope, &parameters);
	function->results = results;
	function->parameters = parameters;
	while (lexer->kind == PTX_TOKEN_WORD && parse_tuning(parser, function))
		;
	if (ptx_take_mark(lexer, ';'))
		return;
	if (!ptx_at_mark(lexer, '{'))
		ptx_syntax_error(lexer, "'{' or ';' (or a directive that this engine knows)");
	function->has_body = true;
	symbol->linkage = linkage;
	function->scope = scope;
	parser->function = function;
	parser->scope = scope;
	parser->locals_end = &function->locals;
	parser->statements_end = &function->statements;
	ptx_parse_body(parser);
	parser->function = NULL;
	parser->scope = NULL;
}

static void parse_version(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_next(lexer);
	double version;
	if (lexer->kind != PTX_TOKEN_DOUBLE)
		ptx_syntax_error(lexer, "a version");
	memcpy(&version, &lexer->value, sizeof version);
	if (!(version >= 1.0 && version < 100.0))
		ptx_syntax_error(lexer, "a version");
	parser->module->version = (uint32_t)(version * 10 + 0.5);
	ptx_next(lexer);
}

/*
 * map_f64_to_f32 is for devices without doubles. It is allowed for sm_10 to sm_12 only, and has no effect on a device
 * with doubles (ptxas 13.0 compiles such a module to double instructions, and refuses it for sm_13 and later).
 */
static void parse_target(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	bool map = false;
	uint32_t line = lexer->token_line;
	do {
		ptx_next(lexer);
		struct ptx_text name = ptx_expect_name(lexer);
		map = map || ptx_text_is(name, "map_f64_to_f32");
		if (ptx_text_is(name, "texmode_independent"))
			ptx_unsupported(parser->context, lexer->token_line, ".target %.*s", (int)name.length, name.at);
		if (name.length < 4 || memcmp(name.at, "sm_", 3))
			continue;
		for (uint32_t i = 3; i < name.length && name.at[i] >= '0' && name.at[i] <= '9' && i < 7; i++)
			parser->module->target = parser->module->target * 10 + (uint32_t)(name.at[i] - '0');
	} while (ptx_at_mark(lexer, ','));
	if (map && parser->module->target >= 13)
		ptx_invalid(parser->context, line, "map_f64_to_f32 is not for sm_13 and later");
}

/* .alias name, target; both were declared, the target with a body. */
static void parse_alias(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct ptx_alias *alias = ptx_alloc(parser->context, sizeof *alias);
	alias->line = lexer->token_line;
	alias->name = ptx_expect_name(lexer);
	ptx_expect_mark(lexer, ',');
	alias->target = ptx_expect_name(lexer);
	ptx_expect_mark(lexer, ';');
	*parser->aliases_end = alias;
	parser->aliases_end = &alias->next;
}

static void parse_top_level(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	bool is_extern = false;
	parser->linkage = PTX_LOCAL_LINKAGE;
	for (;; ptx_next(lexer)) {
		if (ptx_at_word(lexer, ".extern"))
			is_extern = true;
		else if (ptx_at_word(lexer, ".weak"))
			parser->linkage = PTX_WEAK;
		else if (ptx_at_word(lexer, ".common"))
			parser->linkage = PTX_COMMON;
		else if (ptx_at_word(lexer, ".visible"))
			parser->linkage = PTX_VISIBLE;
		else
			break;
	}
	if (ptx_at_word(lexer, ".entry") || ptx_at_word(lexer, ".func")) {
		parse_function(parser, is_extern);
		return;
	}
	enum ptx_space space = lexer->kind == PTX_TOKEN_WORD ? ptx_space_of(lexer->text) : PTX_NO_SPACE;
	if (space == PTX_GLOBAL || space == PTX_CONST || space == PTX_SHARED) {
		ptx_parse_variables(parser, space, is_extern, &parser->variables_end);
	} else if (ptx_at_word(lexer, ".file") || ptx_at_word(lexer, ".loc") || ptx_at_mark(lexer, '@')) {
		ptx_skip_line(lexer); /* @@DWARF: debug information of older compilers */
	} else if (ptx_take_word(lexer, ".section")) {
		ptx_next(lexer);
		skip_braces(parser);
	} else if (ptx_at_word(lexer, ".pragma")) {
		while (lexer->kind != PTX_TOKEN_END && !ptx_take_mark(lexer, ';'))
			ptx_next(lexer);
	} else if (ptx_take_word(lexer, ".address_size")) {
		uint32_t line = lexer->token_line;
		if (ptx_parse_constant(parser) != 64)
			ptx_unsupported(parser->context, line, "addresses of 32 bits");
	} else if (ptx_at_word(lexer, ".version") || ptx_at_word(lexer, ".target")) {
		ptx_syntax_error(lexer, "one .version and one .target, at the start");
	} else if (ptx_take_word(lexer, ".alias")) {
		parse_alias(parser);
	} else if (ptx_at_word(lexer, ".tex") || ptx_at_word(lexer, ".reg")) {
		ptx_unsupported(parser->context, lexer->token_line, "%.*s at module scope", (int)lexer->text.length,
				lexer->text.at);
	} else if (!ptx_take_mark(lexer, ';')) {
		ptx_syntax_error(lexer, "a directive of module scope");
	}
}

struct ptx_module *ptx_parse(struct ptx_context *context, const char *unit, const char *text, size_t length)
{
	struct ptx_module *module = ptx_alloc(context, sizeof *module);
	struct ptx_parser parser = { .context = context, .module = module, .variables_end = &module->variables,
				     .names_end = &module->names, .functions_end = &module->functions,
				     .aliases_end = &module->aliases };
	module->context = context;
	context->unit = unit;
	ptx_lexer_init(&parser.lexer, context, text, length);
	if (!ptx_at_word(&parser.lexer, ".version"))
		ptx_syntax_error(&parser.lexer, ".version");
	parse_version(&parser);
	if (!ptx_at_word(&parser.lexer, ".target"))
		ptx_syntax_error(&parser.lexer, ".target");
	parse_target(&parser);
	while (parser.lexer.kind != PTX_TOKEN_END)
		parse_top_level(&parser);
	return module;
}
