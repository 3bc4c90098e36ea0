/* SPDX-License-Identifier: BSD-3-Clause */
/* The body of a function: declarations, labels, instructions with their operands (PTX ISA, "Instruction Operands"). */
#include "cuda_remote/softgpu/ptx/parser.h"

#include <stdio.h>
#include <string.h>

#define NESTING_MAX 64
#define MODIFIERS_MAX 24
#define MNEMONIC_MAX 160

/* Every instruction of PTX ISA 9.0; the decoder knows which of them the engine executes. */
static const char *const opcodes[] = {
	"abs",		"activemask",	 "add",	      "addc",	    "alloca",
	"and",		"applypriority", "atom",      "bar",	    "barrier",
	"bfe",		"bfi",		 "bfind",     "bmsk",	    "bra",
	"brev",		"brkpt",	 "brx",	      "call",	    "clusterlaunchcontrol",
	"clz",		"cnot",		 "copysign",  "cos",	    "cp",
	"createpolicy", "cvt",		 "cvta",      "discard",    "div",
	"dp2a",		"dp4a",		 "elect",     "ex2",	    "exit",
	"fence",	"fma",		 "fns",	      "getctarank", "griddepcontrol",
	"isspacep",	"istypep",	 "ld",	      "ldmatrix",   "ldu",
	"lg2",		"lop3",		 "mad",	      "mad24",	    "madc",
	"mapa",		"match",	 "max",	      "mbarrier",   "membar",
	"min",		"mma",		 "mov",	      "movmatrix",  "mul",
	"mul24",	"multimem",	 "nanosleep", "neg",	    "not",
	"or",		"pmevent",	 "popc",      "prefetch",   "prefetchu",
	"prmt",		"rcp",		 "red",	      "redux",	    "rem",
	"ret",		"rsqrt",	 "sad",	      "selp",	    "set",
	"setmaxnreg",	"setp",		 "shf",	      "shfl",	    "shl",
	"shr",		"sin",		 "slct",      "sqrt",	    "st",
	"stackrestore", "stacksave",	 "stmatrix",  "sub",	    "subc",
	"suld",		"suq",		 "sured",     "sust",	    "szext",
	"tanh",		"tcgen05",	 "tensormap", "testp",	    "tex",
	"tld4",		"trap",		 "txq",	      "vabsdiff",   "vabsdiff2",
	"vabsdiff4",	"vadd",		 "vadd2",     "vadd4",	    "vavrg2",
	"vavrg4",	"vmad",		 "vmax",      "vmax2",	    "vmax4",
	"vmin",		"vmin2",	 "vmin4",     "vote",	    "vset",
	"vset2",	"vset4",	 "vshl",      "vshr",	    "vsub",
	"vsub2",	"vsub4",	 "wgmma",     "wmma",	    "xor",
};

bool ptx_is_opcode(struct ptx_text opcode)
{
	for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
		if (ptx_text_is(opcode, opcodes[i]))
			return true;
	return false;
}

static struct ptx_operand *parse_operand(struct ptx_parser *parser, int depth);

/* Operands up to the closing mark, which it takes. */
static struct ptx_operand *parse_operand_list(struct ptx_parser *parser, char close, int depth)
{
	struct ptx_operand *first = NULL, **end = &first;
	if (ptx_take_mark(&parser->lexer, close))
		return NULL;
	do {
		*end = parse_operand(parser, depth);
		end = &(*end)->next;
	} while (ptx_take_mark(&parser->lexer, ','));
	ptx_expect_mark(&parser->lexer, close);
	return first;
}

/* v.x is one of a vector's registers; v is all of them, like {v.x, v.y}. */
static struct ptx_operand *parse_vector_register(struct ptx_parser *parser, struct ptx_operand *operand)
{
	static const char components[] = "xyzwrgba";
	struct ptx_lexer *lexer = &parser->lexer;
	uint32_t lanes = operand->symbol->lanes;
	const char *found = NULL;
	if (lexer->kind == PTX_TOKEN_WORD && lexer->text.length == 2)
		found = strchr(components, lexer->text.at[1]);
	if (found) {
		uint32_t lane = (uint32_t)(found - components) % 4;
		if (lane >= lanes)
			ptx_invalid(parser->context, lexer->token_line, "a vector of %u has no %.*s", lanes,
				    (int)lexer->text.length, lexer->text.at);
		operand->number += lane;
		ptx_next(lexer);
		return operand;
	}
	struct ptx_operand *vector = ptx_alloc(parser->context, sizeof *vector), **end = &vector->first;
	vector->kind = PTX_OPERAND_VECTOR;
	for (uint32_t lane = 0; lane < lanes; lane++) {
		*end = ptx_alloc(parser->context, sizeof **end);
		**end = *operand;
		(*end)->number += lane;
		end = &(*end)->next;
	}
	return vector;
}

/* .b0 … .b7654, .h0 … .h32: parts of a register that a video instruction takes. */
static bool at_selector(const struct ptx_lexer *lexer)
{
	struct ptx_text text = lexer->text;
	if (lexer->kind != PTX_TOKEN_WORD || text.length < 3 || text.length > 6 || !strchr("bh", text.at[1]))
		return false;
	for (size_t i = 2; i < text.length; i++)
		if (text.at[i] < '0' || text.at[i] > '7')
			return false;
	return true;
}

static bool is_label(const struct ptx_symbol *symbol)
{
	return symbol->kind == PTX_SYMBOL_LABEL || symbol->kind == PTX_SYMBOL_LIST ||
	       symbol->kind == PTX_SYMBOL_PROTOTYPE;
}

static struct ptx_operand *parse_name(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct ptx_operand *operand = ptx_alloc(parser->context, sizeof *operand);
	operand->name = ptx_expect_name(lexer);
	if (ptx_text_is(operand->name, "_")) {
		operand->kind = PTX_OPERAND_SINK;
		return operand;
	}
	operand->symbol = ptx_lookup(parser->scope, operand->name, &operand->number);
	/* A label further on in this scope hides a label of an outer scope, so labels are looked up after the whole
	 * body. */
	if (operand->symbol && is_label(operand->symbol))
		operand->symbol = NULL;
	if (operand->symbol)
		operand->symbol->referenced = true;
	bool is_register = operand->symbol && operand->symbol->kind == PTX_SYMBOL_REGISTER;
	operand->kind = is_register ? PTX_OPERAND_REGISTER : PTX_OPERAND_NAME;
	if (is_register && operand->symbol->lanes > 1)
		return parse_vector_register(parser, operand);
	if (lexer->kind == PTX_TOKEN_WORD && lexer->text.length == 2 && strchr("xyzw", lexer->text.at[1])) {
		if (is_register)
			ptx_invalid(parser->context, lexer->token_line, "%.*s is no vector", (int)operand->name.length,
				    operand->name.at);
		operand->component = lexer->text.at[1];
		ptx_next(lexer);
	} else if (is_register && at_selector(lexer)) {
		operand->selector = lexer->text;
		ptx_next(lexer);
	}
	return operand;
}

static struct ptx_operand *parse_number(struct ptx_parser *parser)
{
	struct ptx_operand *operand = ptx_alloc(parser->context, sizeof *operand);
	bool is_single;
	if (ptx_take_lone_float(parser, &is_single, &operand->value)) {
		operand->kind = is_single ? PTX_OPERAND_FLOAT : PTX_OPERAND_DOUBLE;
		return operand;
	}
	if (ptx_at_float(parser)) {
		double value = ptx_parse_float(parser);
		operand->kind = PTX_OPERAND_DOUBLE;
		memcpy(&operand->value, &value, sizeof value);
		return operand;
	}
	operand->kind = PTX_OPERAND_INTEGER;
	operand->value = (uint64_t)ptx_parse_constant(parser);
	return operand;
}

/* [reg], [reg+4], [name+4], [4]; the brackets may hold more (coordinates of a texture), kept after the first. */
static struct ptx_operand *parse_address(struct ptx_parser *parser, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct ptx_operand *operand = ptx_alloc(parser->context, sizeof *operand);
	operand->kind = PTX_OPERAND_ADDRESS;
	if (lexer->kind == PTX_TOKEN_NAME && !ptx_text_is(lexer->text, "WARP_SZ")) {
		operand->first = parse_name(parser);
		if (ptx_at_mark(lexer, '+') || ptx_at_mark(lexer, '-'))
			operand->value = (uint64_t)ptx_parse_constant(parser);
	} else {
		operand->value = (uint64_t)ptx_parse_constant(parser);
	}
	struct ptx_operand **end = operand->first ? &operand->first->next : &operand->first;
	while (ptx_take_mark(lexer, ',')) {
		*end = parse_operand(parser, depth + 1);
		end = &(*end)->next;
	}
	ptx_expect_mark(lexer, ']');
	return operand;
}

static struct ptx_operand *wrap(struct ptx_parser *parser, enum ptx_operand_kind kind, struct ptx_operand *first)
{
	struct ptx_operand *operand = ptx_alloc(parser->context, sizeof *operand);
	operand->kind = kind;
	operand->first = first;
	return operand;
}

static bool at_call_list(const struct ptx_parser *parser)
{
	/* ( opens a list unless a constant follows: (1<<3) */
	struct ptx_lexer after = parser->lexer;
	ptx_next(&after);
	return after.kind == PTX_TOKEN_NAME || ptx_at_mark(&after, ')');
}

static struct ptx_operand *parse_operand(struct ptx_parser *parser, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	if (depth > NESTING_MAX)
		ptx_invalid(parser->context, lexer->token_line, "operands nested too deep");
	if (ptx_take_mark(lexer, '['))
		return parse_address(parser, depth);
	if (ptx_take_mark(lexer, '{')) {
		struct ptx_operand *vector = parse_operand_list(parser, '}', depth + 1);
		vector = wrap(parser, PTX_OPERAND_VECTOR, vector);
		if (!ptx_take_mark(lexer, '|'))
			return vector;
		vector->next = parse_name(parser);
		return wrap(parser, PTX_OPERAND_PAIR, vector);
	}
	if (ptx_at_mark(lexer, '(') && at_call_list(parser)) {
		ptx_next(lexer);
		return wrap(parser, PTX_OPERAND_LIST, parse_operand_list(parser, ')', depth + 1));
	}
	bool negated = false;
	if (ptx_at_mark(lexer, '!') || ptx_at_mark(lexer, '-')) {
		struct ptx_lexer after = *lexer;
		ptx_next(&after);
		/* A - or ! before a constant belongs to the constant expression. */
		if (after.kind == PTX_TOKEN_NAME && !ptx_text_is(after.text, "WARP_SZ")) {
			*lexer = after;
			negated = true;
		}
	}
	if (lexer->kind != PTX_TOKEN_NAME || ptx_text_is(lexer->text, "WARP_SZ"))
		return parse_number(parser);
	struct ptx_operand *operand = parse_name(parser);
	operand->negated = negated;
	if (ptx_take_mark(lexer, '|')) {
		operand->next = parse_name(parser);
		return wrap(parser, PTX_OPERAND_PAIR, operand);
	}
	if (operand->kind == PTX_OPERAND_NAME && (ptx_at_mark(lexer, '+') || ptx_at_mark(lexer, '-')))
		operand->value = (uint64_t)ptx_parse_constant(parser);
	return operand;
}

static void parse_mnemonic(struct ptx_parser *parser, struct ptx_statement *statement)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct ptx_text opcode = lexer->text;
	struct ptx_text modifiers[MODIFIERS_MAX + PTX_LEGACY_MODIFIERS];
	char mnemonic[MNEMONIC_MAX];
	if (lexer->kind != PTX_TOKEN_NAME)
		ptx_syntax_error(lexer, "an instruction");
	if (!ptx_is_opcode(opcode))
		ptx_invalid(parser->context, lexer->token_line, "'%.*s' is not an instruction of PTX",
			    opcode.length > 40 ? 40 : (int)opcode.length, opcode.at);
	size_t used = (size_t)snprintf(mnemonic, sizeof mnemonic, "%.*s", (int)opcode.length, opcode.at);
	uint32_t line = lexer->token_line, count = 0;
	for (ptx_next(lexer); lexer->kind == PTX_TOKEN_WORD; ptx_next(lexer)) {
		if (count == MODIFIERS_MAX)
			ptx_invalid(parser->context, line, "too many modifiers");
		modifiers[count++] = lexer->text;
	}
	if (parser->module->target && parser->module->target < 20)
		count = ptx_legacy_modifiers(opcode, modifiers, count);
	for (uint32_t n = 0; n < count; n++) {
		if (used + modifiers[n].length >= sizeof mnemonic)
			ptx_invalid(parser->context, line, "too many modifiers");
		memcpy(mnemonic + used, modifiers[n].at, modifiers[n].length);
		used += modifiers[n].length;
	}
	statement->modifiers = count;
	statement->opcode = ptx_copy_text(parser->context, opcode.at, opcode.length);
	statement->mnemonic = ptx_copy_text(parser->context, mnemonic, used);
	statement->modifier = ptx_alloc(parser->context, (statement->modifiers + 1) * sizeof *modifiers);
	memcpy(statement->modifier, modifiers, statement->modifiers * sizeof *modifiers);
}

static void parse_guard(struct ptx_parser *parser, struct ptx_statement *statement)
{
	struct ptx_lexer *lexer = &parser->lexer;
	bool negated = ptx_take_mark(lexer, '!');
	if (lexer->kind != PTX_TOKEN_NAME)
		ptx_syntax_error(lexer, "a predicate");
	statement->guard = parse_name(parser);
	statement->guard->negated = negated;
	if (statement->guard->kind != PTX_OPERAND_REGISTER || statement->guard->symbol->type != PTX_PRED)
		ptx_invalid(parser->context, statement->line, "the guard is not a predicate register");
}

static void parse_instruction(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct ptx_statement *statement = ptx_alloc(parser->context, sizeof *statement);
	statement->line = lexer->token_line;
	statement->scope = parser->scope;
	if (ptx_take_mark(lexer, '@'))
		parse_guard(parser, statement);
	parse_mnemonic(parser, statement);
	struct ptx_operand **end = &statement->operands;
	while (!ptx_at_mark(lexer, ';')) {
		if (statement->operand_count && !ptx_take_mark(lexer, ','))
			ptx_syntax_error(lexer, "';'");
		*end = parse_operand(parser, 0);
		end = &(*end)->next;
		statement->operand_count++;
	}
	ptx_next(lexer);
	statement->position = parser->function->statement_count++;
	*parser->statements_end = statement;
	parser->statements_end = &statement->next;
}

/* NAME: .branchtargets a, b, c; or .calltargets f, g; */
static void parse_targets(struct ptx_parser *parser, struct ptx_symbol *label)
{
	struct ptx_lexer *lexer = &parser->lexer;
	ptx_next(lexer);
	label->kind = PTX_SYMBOL_LIST;
	struct ptx_operand **end = &label->list;
	do {
		if (lexer->kind != PTX_TOKEN_NAME)
			ptx_syntax_error(lexer, "a label");
		*end = parse_name(parser);
		end = &(*end)->next;
	} while (ptx_take_mark(lexer, ','));
	ptx_expect_mark(lexer, ';');
}

/* NAME: .callprototype (.param .b32 _) _ (.param .b64 _, …) .noreturn; */
static void parse_prototype(struct ptx_parser *parser, struct ptx_symbol *label)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct ptx_function *prototype = ptx_alloc(parser->context, sizeof *prototype);
	struct ptx_scope *scope = ptx_new_scope(parser->context, NULL);
	ptx_next(lexer);
	label->kind = PTX_SYMBOL_PROTOTYPE;
	label->function = prototype;
	prototype->name = label->name;
	prototype->line = lexer->token_line;
	if (ptx_at_mark(lexer, '('))
		ptx_parse_parameters(parser, scope, &prototype->results);
	ptx_expect_name(lexer);
	if (ptx_at_mark(lexer, '('))
		ptx_parse_parameters(parser, scope, &prototype->parameters);
	prototype->noreturn = ptx_take_word(lexer, ".noreturn");
	ptx_expect_mark(lexer, ';');
}

static void parse_label(struct ptx_parser *parser, struct ptx_text name)
{
	struct ptx_symbol *label = ptx_declare(parser, parser->scope, name, PTX_SYMBOL_LABEL);
	label->position = parser->function->statement_count;
	if (ptx_at_word(&parser->lexer, ".branchtargets"))
		parse_targets(parser, label);
	else if (ptx_at_word(&parser->lexer, ".callprototype"))
		parse_prototype(parser, label);
	else if (ptx_at_word(&parser->lexer, ".calltargets"))
		parse_targets(parser, label);
}

static void parse_directive(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	enum ptx_space space = ptx_space_of(lexer->text);
	if (space == PTX_REG) {
		ptx_parse_registers(parser);
	} else if (space == PTX_GLOBAL || space == PTX_CONST) {
		ptx_parse_variables(parser, space, false, &parser->variables_end);
	} else if (space != PTX_NO_SPACE) {
		ptx_parse_variables(parser, space, false, &parser->locals_end);
	} else if (ptx_at_word(lexer, ".loc") || ptx_at_word(lexer, ".file")) {
		ptx_skip_line(lexer);
	} else if (ptx_at_word(lexer, ".pragma")) {
		while (lexer->kind != PTX_TOKEN_END && !ptx_at_mark(lexer, ';'))
			ptx_next(lexer);
		ptx_expect_mark(lexer, ';');
	} else {
		ptx_syntax_error(lexer, "a declaration or an instruction");
	}
}

static void parse_statement(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	if (lexer->kind == PTX_TOKEN_WORD) {
		parse_directive(parser);
		return;
	}
	if (ptx_at_mark(lexer, '@') && lexer->at < lexer->end && *lexer->at == '@') {
		ptx_skip_line(lexer); /* @@DWARF */
		return;
	}
	if (lexer->kind == PTX_TOKEN_NAME) {
		struct ptx_lexer after = *lexer;
		ptx_next(&after);
		if (ptx_at_mark(&after, ':')) {
			struct ptx_text name = lexer->text;
			ptx_next(&after);
			*lexer = after;
			parse_label(parser, name);
			return;
		}
	}
	parse_instruction(parser);
}

void ptx_parse_body(struct ptx_parser *parser)
{
	struct ptx_lexer *lexer = &parser->lexer;
	uint32_t depth = 1;
	ptx_expect_mark(lexer, '{');
	while (depth > 0) {
		if (ptx_take_mark(lexer, ';'))
			continue;
		if (ptx_at_mark(lexer, '{')) {
			parser->scope = ptx_new_scope(parser->context, parser->scope);
			depth++;
			ptx_next(lexer);
		} else if (ptx_at_mark(lexer, '}')) {
			parser->scope = parser->scope->outer;
			depth--;
			ptx_next(lexer);
		} else if (lexer->kind == PTX_TOKEN_END) {
			ptx_syntax_error(lexer, "'}'");
		} else {
			parse_statement(parser);
		}
	}
}
