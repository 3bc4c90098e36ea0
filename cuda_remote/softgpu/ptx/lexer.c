/* SPDX-License-Identifier: BSD-3-Clause */
/* PTX text to tokens. */
#include "cuda_remote/softgpu/ptx/lexer.h"

#include <ctype.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool is_name_start(const struct ptx_lexer *lexer)
{
	char c = *lexer->at;
	if (isalpha((unsigned char)c) || c == '_' || c == '$')
		return true;
	return c == '%' && lexer->at + 1 < lexer->end && is_name_char(lexer->at[1]);
}

void ptx_lexer_init(struct ptx_lexer *lexer, struct ptx_context *context, const char *text, size_t length)
{
	*lexer = (struct ptx_lexer){ .context = context, .at = text, .end = text + length, .line = 1 };
	ptx_next(lexer);
}

static void skip_block_comment(struct ptx_lexer *lexer)
{
	uint32_t start = lexer->line;
	for (lexer->at += 2; lexer->end - lexer->at >= 2; lexer->at++) {
		if (lexer->at[0] == '*' && lexer->at[1] == '/') {
			lexer->at += 2;
			return;
		}
		lexer->line += *lexer->at == '\n';
	}
	ptx_invalid(lexer->context, start, "comment without end");
}

static void skip_blanks(struct ptx_lexer *lexer)
{
	while (lexer->at < lexer->end) {
		char c = *lexer->at;
		bool two = lexer->end - lexer->at >= 2;
		if (c == '\n') {
			lexer->line++;
			lexer->at++;
		} else if (isspace((unsigned char)c) || c == '\0') {
			lexer->at++;
		} else if (two && c == '/' && lexer->at[1] == '/') {
			while (lexer->at < lexer->end && *lexer->at != '\n')
				lexer->at++;
		} else if (two && c == '/' && lexer->at[1] == '*') {
			skip_block_comment(lexer);
		} else {
			return;
		}
	}
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Scans digits of the base. No digit, more than digits_max digits, or a value beyond 64 bits is an error. */
static uint64_t scan_digits(struct ptx_lexer *lexer, int base, int digits_max)
{
	uint64_t value = 0;
	int digits = 0;
	for (; lexer->at < lexer->end && digit_value(*lexer->at) < base; lexer->at++, digits++) {
		uint64_t digit = (uint64_t)digit_value(*lexer->at);
		if (value > (UINT64_MAX - digit) / (uint64_t)base)
			ptx_invalid(lexer->context, lexer->line, "number does not fit in 64 bits");
		value = value * (uint64_t)base + digit;
	}
	if (digits == 0 || (digits_max && digits != digits_max))
		ptx_invalid(lexer->context, lexer->line, "malformed number");
	return value;
}

static bool is_exponent(const struct ptx_lexer *lexer, const char *p)
{
	return lexer->end - p >= 2 && (*p == 'e' || *p == 'E') &&
	       (isdigit((unsigned char)p[1]) || p[1] == '-' || p[1] == '+');
}

/* If a decimal floating-point literal starts here (1.5, 1., 1e5, 1.e5): scans it and returns true. */
static bool scan_decimal_float(struct ptx_lexer *lexer)
{
	const char *p = lexer->at;
	while (p < lexer->end && isdigit((unsigned char)*p))
		p++;
	bool point = p < lexer->end && *p == '.' &&
		     (p + 1 == lexer->end || isdigit((unsigned char)p[1]) || !is_name_char(p[1]) || is_exponent(lexer, p + 1));
	if (!point && !is_exponent(lexer, p))
		return false;
	char copy[512];
	size_t length = 0;
	for (p = lexer->at; p < lexer->end && length < sizeof copy - 1; p++) {
		bool sign = (*p == '-' || *p == '+') && length && (p[-1] == 'e' || p[-1] == 'E');
		if (!isdigit((unsigned char)*p) && *p != '.' && *p != 'e' && *p != 'E' && !sign)
			break;
		copy[length++] = *p;
	}
	copy[length] = '\0';
	/* The program may have chosen a locale with another decimal point. */
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!plain)
		ptx_fail(lexer->context, CUDA_ERROR_OUT_OF_MEMORY, lexer->line, "out of memory");
	locale_t before = uselocale(plain);
	char *stop;
	double value = strtod(copy, &stop);
	uselocale(before);
	freelocale(plain);
	lexer->kind = PTX_TOKEN_DOUBLE;
	memcpy(&lexer->value, &value, sizeof value);
	lexer->at += stop - copy;
	return true;
}

static void scan_number(struct ptx_lexer *lexer)
{
	char next = lexer->at + 1 < lexer->end ? (char)tolower((unsigned char)lexer->at[1]) : '\0';
	lexer->kind = PTX_TOKEN_INTEGER;
	if (*lexer->at == '0' && (next == 'x' || next == 'b' || next == 'f' || next == 'd')) {
		lexer->at += 2;
		if (next == 'f' || next == 'd') {
			lexer->kind = next == 'f' ? PTX_TOKEN_FLOAT : PTX_TOKEN_DOUBLE;
			lexer->value = scan_digits(lexer, 16, next == 'f' ? 8 : 16);
			return;
		}
		lexer->value = scan_digits(lexer, next == 'x' ? 16 : 2, 0);
	} else if (!scan_decimal_float(lexer)) {
		lexer->value = scan_digits(lexer, *lexer->at == '0' ? 8 : 10, 0);
	}
	if (lexer->kind == PTX_TOKEN_INTEGER && lexer->at < lexer->end && *lexer->at == 'U')
		lexer->mark = *lexer->at++;
}

/* .word, where each :: joins a further word (.shared::cta, .L2::128B). */
static void scan_word(struct ptx_lexer *lexer)
{
	lexer->at++;
	while (lexer->at < lexer->end) {
		bool joined = lexer->end - lexer->at >= 3 && lexer->at[0] == ':' && lexer->at[1] == ':' &&
			      is_name_char(lexer->at[2]);
		if (joined)
			lexer->at += 2;
		else if (!is_name_char(*lexer->at))
			break;
		lexer->at++;
	}
}

static void scan_string(struct ptx_lexer *lexer)
{
	const char *start = ++lexer->at;
	while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
		lexer->at += *lexer->at == '\\' && lexer->end - lexer->at > 1 ? 2 : 1;
	if (lexer->at >= lexer->end || *lexer->at != '"')
		ptx_invalid(lexer->context, lexer->line, "string without end");
	lexer->text = (struct ptx_text){ start, (uint32_t)(lexer->at - start) };
	lexer->at++;
}

void ptx_next(struct ptx_lexer *lexer)
{
	skip_blanks(lexer);
	const char *start = lexer->at;
	lexer->token_line = lexer->line;
	lexer->value = 0;
	lexer->mark = '\0';
	lexer->text = (struct ptx_text){ start, 0 };
	if (start >= lexer->end) {
		lexer->kind = PTX_TOKEN_END;
		return;
	}
	if (is_name_start(lexer)) {
		lexer->kind = PTX_TOKEN_NAME;
		for (lexer->at++; lexer->at < lexer->end && is_name_char(*lexer->at);)
			lexer->at++;
	} else if (isdigit((unsigned char)*start)) {
		scan_number(lexer);
	} else if (*start == '.' && lexer->end - start >= 2 && is_name_char(start[1])) {
		lexer->kind = PTX_TOKEN_WORD;
		scan_word(lexer);
	} else if (*start == '"') {
		lexer->kind = PTX_TOKEN_STRING;
		scan_string(lexer);
		return;
	} else {
		lexer->kind = PTX_TOKEN_MARK;
		lexer->mark = *lexer->at++;
	}
	lexer->text.length = (uint32_t)(lexer->at - start);
}

void ptx_skip_line(struct ptx_lexer *lexer)
{
	/* The token is on the line that at is on, so the rest of the line starts at at. */
	while (lexer->at < lexer->end && *lexer->at != '\n')
		lexer->at++;
	ptx_next(lexer);
}

bool ptx_text_is(struct ptx_text text, const char *word)
{
	return strlen(word) == text.length && !memcmp(text.at, word, text.length);
}

bool ptx_at_mark(const struct ptx_lexer *lexer, char mark)
{
	return lexer->kind == PTX_TOKEN_MARK && lexer->mark == mark;
}

bool ptx_at_word(const struct ptx_lexer *lexer, const char *word)
{
	return lexer->kind == PTX_TOKEN_WORD && ptx_text_is(lexer->text, word);
}

bool ptx_take_mark(struct ptx_lexer *lexer, char mark)
{
	if (!ptx_at_mark(lexer, mark))
		return false;
	ptx_next(lexer);
	return true;
}

bool ptx_take_word(struct ptx_lexer *lexer, const char *word)
{
	if (!ptx_at_word(lexer, word))
		return false;
	ptx_next(lexer);
	return true;
}

void ptx_expect_mark(struct ptx_lexer *lexer, char mark)
{
	char wanted[] = { '\'', mark, '\'', '\0' };
	if (!ptx_take_mark(lexer, mark))
		ptx_syntax_error(lexer, wanted);
}

struct ptx_text ptx_expect_name(struct ptx_lexer *lexer)
{
	if (lexer->kind != PTX_TOKEN_NAME)
		ptx_syntax_error(lexer, "a name");
	struct ptx_text text = lexer->text;
	ptx_next(lexer);
	return text;
}

_Noreturn void ptx_syntax_error(struct ptx_lexer *lexer, const char *wanted)
{
	int length = lexer->text.length > 40 ? 40 : (int)lexer->text.length;
	if (lexer->kind == PTX_TOKEN_END)
		ptx_invalid(lexer->context, lexer->token_line, "syntax error at the end of the text: expected %s",
			    wanted);
	ptx_invalid(lexer->context, lexer->token_line, "syntax error at '%.*s': expected %s", length, lexer->text.at,
		    wanted);
}
