/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Constant expressions (PTX ISA, "Integer Constant Expression Evaluation"): 64 bits wide, signed or unsigned. A result
 * is unsigned if one of the operands is. A literal is unsigned if it ends in U or does not fit a signed one.
 */
#include "cuda_remote/softgpu/ptx/parser.h"

#include <string.h>

#define NESTING_MAX 64

struct constant {
	uint64_t bits;
	bool is_unsigned;
};

/* Operators of two operands, by precedence. */
enum operator { NONE, OR_ELSE, AND_ALSO, OR, XOR, AND, EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, LEFT,
		RIGHT, PLUS, MINUS, TIMES, DIVIDE, REMAINDER };
static const struct {
	char mark[3];
	uint8_t precedence;
} operators[] = {
	[OR_ELSE] = { "||", 1 },  [AND_ALSO] = { "&&", 2 },     [OR] = { "|", 3 },       [XOR] = { "^", 4 },
	[AND] = { "&", 5 },       [EQUAL] = { "==", 6 },        [UNEQUAL] = { "!=", 6 }, [LESS] = { "<", 7 },
	[LESS_EQUAL] = { "<=", 7 }, [GREATER] = { ">", 7 },     [GREATER_EQUAL] = { ">=", 7 }, [LEFT] = { "<<", 8 },
	[RIGHT] = { ">>", 8 },    [PLUS] = { "+", 9 },          [MINUS] = { "-", 9 },    [TIMES] = { "*", 10 },
	[DIVIDE] = { "/", 10 },   [REMAINDER] = { "%", 10 },
};

/* The operator that starts at the current token, and how many tokens it has. */
static enum operator operator_at(const struct ptx_lexer *lexer, int *tokens)
{
	enum operator found = NONE;
	if (lexer->kind != PTX_TOKEN_MARK)
		return NONE;
	/* Each mark is a token; two marks without space between them are one operator. */
	char next = lexer->at < lexer->end ? *lexer->at : '\0';
	*tokens = 0;
	for (enum operator o = OR_ELSE; o <= REMAINDER; o++) {
		const char *mark = operators[o].mark;
		int length = mark[1] ? 2 : 1;
		if (mark[0] == lexer->mark && (length == 1 || mark[1] == next) && length > *tokens) {
			found = o;
			*tokens = length;
		}
	}
	return found;
}

static struct constant divide(struct ptx_parser *parser, enum operator operator, struct constant a, struct constant b)
{
	bool is_unsigned = a.is_unsigned || b.is_unsigned;
	if (!b.bits || (!is_unsigned && (int64_t)a.bits == INT64_MIN && (int64_t)b.bits == -1))
		ptx_invalid(parser->context, parser->lexer.token_line, "division by zero in a constant");
	uint64_t bits;
	if (is_unsigned)
		bits = operator == DIVIDE ? a.bits / b.bits : a.bits % b.bits;
	else
		bits = (uint64_t)(operator == DIVIDE ? (int64_t)a.bits / (int64_t)b.bits
						     : (int64_t)a.bits % (int64_t)b.bits);
	return (struct constant){ bits, is_unsigned };
}

static bool is_less(struct constant a, struct constant b)
{
	return a.is_unsigned || b.is_unsigned ? a.bits < b.bits : (int64_t)a.bits < (int64_t)b.bits;
}

/* A shift has its left operand's type. */
static struct constant shift(enum operator operator, struct constant a, uint64_t count)
{
	bool negative = !a.is_unsigned && (int64_t)a.bits < 0;
	if (count > 63)
		a.bits = operator == RIGHT && negative ? UINT64_MAX : 0;
	else if (operator == LEFT)
		a.bits <<= count;
	else
		a.bits = negative ? ~(~a.bits >> count) : a.bits >> count;
	return a;
}

static struct constant apply(struct ptx_parser *parser, enum operator operator, struct constant a, struct constant b)
{
	bool is_unsigned = a.is_unsigned || b.is_unsigned;
	switch (operator) {
	case PLUS: return (struct constant){ a.bits + b.bits, is_unsigned };
	case MINUS: return (struct constant){ a.bits - b.bits, is_unsigned };
	case TIMES: return (struct constant){ a.bits * b.bits, is_unsigned };
	case AND: return (struct constant){ a.bits & b.bits, is_unsigned };
	case OR: return (struct constant){ a.bits | b.bits, is_unsigned };
	case XOR: return (struct constant){ a.bits ^ b.bits, is_unsigned };
	case LEFT: case RIGHT: return shift(operator, a, b.bits);
	case EQUAL: return (struct constant){ a.bits == b.bits, false };
	case UNEQUAL: return (struct constant){ a.bits != b.bits, false };
	case LESS: return (struct constant){ is_less(a, b), false };
	case LESS_EQUAL: return (struct constant){ !is_less(b, a), false };
	case GREATER: return (struct constant){ is_less(b, a), false };
	case GREATER_EQUAL: return (struct constant){ !is_less(a, b), false };
	case OR_ELSE: return (struct constant){ a.bits || b.bits, false };
	case AND_ALSO: return (struct constant){ a.bits && b.bits, false };
	default: return divide(parser, operator, a, b);
	}
}

static struct constant parse_choice(struct ptx_parser *parser, int depth);

/* After '(': a cast such as .s64) or an expression. */
static struct constant parse_parentheses(struct ptx_parser *parser, int depth);

static struct constant parse_unary(struct ptx_parser *parser, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct constant value;
	if (depth > NESTING_MAX)
		ptx_invalid(parser->context, lexer->token_line, "expression nested too deep");
	if (ptx_take_mark(lexer, '-')) {
		value = parse_unary(parser, depth + 1);
		return (struct constant){ 0 - value.bits, value.is_unsigned };
	}
	if (ptx_take_mark(lexer, '+'))
		return parse_unary(parser, depth + 1);
	if (ptx_take_mark(lexer, '~')) {
		value = parse_unary(parser, depth + 1);
		return (struct constant){ ~value.bits, value.is_unsigned };
	}
	if (ptx_take_mark(lexer, '!'))
		return (struct constant){ !parse_unary(parser, depth + 1).bits, false };
	if (ptx_take_mark(lexer, '('))
		return parse_parentheses(parser, depth);
	if (lexer->kind == PTX_TOKEN_NAME && ptx_text_is(lexer->text, "WARP_SZ")) {
		ptx_next(lexer);
		return (struct constant){ 32, false };
	}
	if (lexer->kind != PTX_TOKEN_INTEGER)
		ptx_syntax_error(lexer, "a constant");
	value = (struct constant){ lexer->value, lexer->value > INT64_MAX || lexer->mark == 'U' };
	ptx_next(lexer);
	return value;
}

static struct constant parse_parentheses(struct ptx_parser *parser, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct constant value;
	if (lexer->kind != PTX_TOKEN_WORD) {
		value = parse_choice(parser, depth + 1);
		ptx_expect_mark(lexer, ')');
		return value;
	}
	bool to_unsigned = ptx_text_is(lexer->text, ".u64");
	if (!to_unsigned && !ptx_text_is(lexer->text, ".s64"))
		ptx_syntax_error(lexer, ".s64 or .u64");
	ptx_next(lexer);
	ptx_expect_mark(lexer, ')');
	value = parse_unary(parser, depth + 1);
	value.is_unsigned = to_unsigned;
	return value;
}

static struct constant parse_operators(struct ptx_parser *parser, int lowest, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct constant value = parse_unary(parser, depth + 1);
	for (;;) {
		int tokens;
		enum operator operator = operator_at(lexer, &tokens);
		if (operator == NONE || operators[operator].precedence < lowest)
			return value;
		while (tokens-- > 0)
			ptx_next(lexer);
		struct constant right = parse_operators(parser, operators[operator].precedence + 1, depth + 1);
		value = apply(parser, operator, value, right);
	}
}

static struct constant parse_choice(struct ptx_parser *parser, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	struct constant value = parse_operators(parser, 1, depth);
	if (!ptx_take_mark(lexer, '?'))
		return value;
	struct constant yes = parse_choice(parser, depth + 1);
	ptx_expect_mark(lexer, ':');
	struct constant no = parse_choice(parser, depth + 1);
	return (struct constant){ value.bits ? yes.bits : no.bits, yes.is_unsigned || no.is_unsigned };
}

int64_t ptx_parse_constant(struct ptx_parser *parser)
{
	return (int64_t)parse_choice(parser, 0).bits;
}

/* ---- floats: evaluated in double, with the operators of arithmetic */
static double parse_sum(struct ptx_parser *parser, int depth);

static double parse_float_factor(struct ptx_parser *parser, int depth)
{
	struct ptx_lexer *lexer = &parser->lexer;
	double value;
	if (depth > NESTING_MAX)
		ptx_invalid(parser->context, lexer->token_line, "expression nested too deep");
	if (ptx_take_mark(lexer, '-'))
		return -parse_float_factor(parser, depth + 1);
	if (ptx_take_mark(lexer, '+'))
		return parse_float_factor(parser, depth + 1);
	if (ptx_take_mark(lexer, '(')) {
		value = parse_sum(parser, depth + 1);
		ptx_expect_mark(lexer, ')');
		return value;
	}
	if (lexer->kind == PTX_TOKEN_DOUBLE) {
		memcpy(&value, &lexer->value, sizeof value);
	} else if (lexer->kind == PTX_TOKEN_FLOAT) {
		float narrow;
		memcpy(&narrow, &lexer->value, sizeof narrow);
		value = (double)narrow;
	} else {
		ptx_syntax_error(lexer, "a floating-point number");
	}
	ptx_next(lexer);
	return value;
}

static double parse_product(struct ptx_parser *parser, int depth)
{
	double value = parse_float_factor(parser, depth);
	for (;;) {
		if (ptx_take_mark(&parser->lexer, '*'))
			value *= parse_float_factor(parser, depth);
		else if (ptx_take_mark(&parser->lexer, '/'))
			value /= parse_float_factor(parser, depth);
		else
			return value;
	}
}

static double parse_sum(struct ptx_parser *parser, int depth)
{
	double value = parse_product(parser, depth + 1);
	for (;;) {
		if (ptx_take_mark(&parser->lexer, '+'))
			value += parse_product(parser, depth + 1);
		else if (ptx_take_mark(&parser->lexer, '-'))
			value -= parse_product(parser, depth + 1);
		else
			return value;
	}
}

bool ptx_at_float(const struct ptx_parser *parser)
{
	struct ptx_lexer ahead = parser->lexer;
	while (ptx_at_mark(&ahead, '-') || ptx_at_mark(&ahead, '+') || ptx_at_mark(&ahead, '('))
		ptx_next(&ahead);
	return ahead.kind == PTX_TOKEN_FLOAT || ahead.kind == PTX_TOKEN_DOUBLE;
}

bool ptx_take_lone_float(struct ptx_parser *parser, bool *is_single, uint64_t *bits)
{
	struct ptx_lexer ahead = parser->lexer;
	bool negative = ptx_take_mark(&ahead, '-');
	*is_single = ahead.kind == PTX_TOKEN_FLOAT;
	if (!*is_single && ahead.kind != PTX_TOKEN_DOUBLE)
		return false;
	*bits = ahead.value ^ (negative ? 1ull << (*is_single ? 31 : 63) : 0);
	ptx_next(&ahead);
	if (ptx_at_mark(&ahead, '+') || ptx_at_mark(&ahead, '-') || ptx_at_mark(&ahead, '*') || ptx_at_mark(&ahead, '/'))
		return false;
	parser->lexer = ahead;
	return true;
}

double ptx_parse_float(struct ptx_parser *parser)
{
	return parse_sum(parser, 0);
}
