/* SPDX-License-Identifier: BSD-3-Clause */
/* PTX text into tokens (PTX ISA, chapter "Syntax"). Tokens point into the text, which must outlive them. */
#ifndef SOFTGPU_PTX_LEXER_H
#define SOFTGPU_PTX_LEXER_H

#include "cuda_remote/softgpu/ptx/context.h"

struct ptx_text {
	const char *at;
	uint32_t length;
};

enum ptx_token_kind {
	PTX_TOKEN_END,
	PTX_TOKEN_NAME,    /* identifier, with its leading % _ or $ */
	PTX_TOKEN_WORD,    /* .word or .word::word: a directive, type or modifier; the text includes the dot */
	PTX_TOKEN_INTEGER, /* value; mark: U if it is unsigned */
	PTX_TOKEN_FLOAT,   /* value: bits of a float (0f…) */
	PTX_TOKEN_DOUBLE,  /* value: bits of a double (0d… or decimal) */
	PTX_TOKEN_STRING,  /* text without the quotes */
	PTX_TOKEN_MARK,    /* one character of punctuation, in mark */
};

struct ptx_lexer {
	struct ptx_context *context;
	const char *at, *end;
	uint32_t line; /* of at */
	/* the current token */
	enum ptx_token_kind kind;
	struct ptx_text text;
	uint32_t token_line;
	uint64_t value;
	char mark;
};

/* Starts at the first token of text. */
void ptx_lexer_init(struct ptx_lexer *lexer, struct ptx_context *context, const char *text, size_t length);
/* Goes on to the next token. */
void ptx_next(struct ptx_lexer *lexer);
/* Drops the rest of the current token's line and goes on to the first token after it. */
void ptx_skip_line(struct ptx_lexer *lexer);

bool ptx_text_is(struct ptx_text text, const char *word);
bool ptx_at_mark(const struct ptx_lexer *lexer, char mark);
bool ptx_at_word(const struct ptx_lexer *lexer, const char *word);
/* If the current token is this mark or word: goes past it and returns true. */
bool ptx_take_mark(struct ptx_lexer *lexer, char mark);
bool ptx_take_word(struct ptx_lexer *lexer, const char *word);
/* Go past the current token; give up if it is not this mark, or not a name. */
void ptx_expect_mark(struct ptx_lexer *lexer, char mark);
struct ptx_text ptx_expect_name(struct ptx_lexer *lexer);
_Noreturn void ptx_syntax_error(struct ptx_lexer *lexer, const char *wanted);

#endif
