/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A form's kernel: thread i takes its sources from input[SOURCES_MAX * i ...], executes the form, and executes it once
 * more under a predicate that only odd threads have, into registers that hold the sentinel.
 */
#include "test/cuda/softgpu/vectors/vectors.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
	char *at;
	size_t used, room;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(text->at + text->used, text->room - text->used, format, arguments);
	va_end(arguments);
	if (n < 0 || (size_t)n >= text->room - text->used)
		abort();
	text->used += (size_t)n;
}

static const char *register_type(char letter)
{
	switch (letter_width(letter)) {
	case 0: return "pred";
	case 16: return "b16";
	case 32: return "b32";
	default: return "b64";
	}
}

/* The template with registers for its operands: results r or, guarded, g; each instruction guarded or not. */
static void put_template(struct text *text, const struct form *form, bool guarded)
{
	size_t results = strlen(form->results);
	bool starts = true;
	for (const char *at = form->text; *at; at++) {
		while (starts && *at == ' ')
			at++;
		if (starts && guarded)
			put(text, "@%%odd ");
		starts = *at == ';';
		if (!strncmp(at, "$op", 3)) {
			put(text, "%s", form->mnemonic);
			at += 2;
		} else if (*at == '$' && isdigit((unsigned char)at[1])) {
			size_t n = (size_t)(*++at - '0');
			if (n < results)
				put(text, "%%%c%zu", guarded ? 'g' : 'r', n);
			else
				put(text, "%%s%zu", n - results);
		} else {
			put(text, "%c", *at);
		}
	}
	put(text, ";\n");
}

static void put_declarations(struct text *text, const struct form *form)
{
	put(text, ".reg .b64 %%a<5>; .reg .b32 %%i<7>; .reg .pred %%odd, %%end; .reg .b32 %%tw, %%tx; .reg .b8 %%tb;\n"
		  ".reg .b16 %%th, %%tg; .reg .b64 %%tl, %%tk;\n");
	for (size_t n = 0; form->results[n]; n++)
		put(text, ".reg .%s %%r%zu, %%g%zu;\n", register_type(form->results[n]), n, n);
	for (size_t n = 0; form->sources[n]; n++)
		put(text, ".reg .%s %%s%zu;\n", register_type(form->sources[n]), n);
	put(text, "ld.param.u64 %%a1, [in]; ld.param.u64 %%a2, [out]; ld.param.u32 %%i1, [n];\n"
		  "mov.u32 %%i2, %%tid.x; mov.u32 %%i3, %%ctaid.x; mov.u32 %%i4, %%ntid.x;\n"
		  "mad.lo.u32 %%i5, %%i3, %%i4, %%i2;\n"
		  "ld.param.u32 %%i6, [alone]; setp.eq.u32 %%odd, %%i6, 0; @%%odd bra ALL;\n"
		  "mov.u32 %%i5, %%i3; and.b32 %%i6, %%i3, 31; setp.ne.u32 %%end, %%i6, %%i2; @%%end bra DONE;\n"
		  "ALL: setp.ge.u32 %%end, %%i5, %%i1; @%%end bra DONE;\n"
		  "and.b32 %%i6, %%i5, 1; setp.ne.u32 %%odd, %%i6, 0;\n"
		  "mul.wide.u32 %%a3, %%i5, %u; add.u64 %%a3, %%a3, %%a1;\n"
		  "mul.wide.u32 %%a4, %%i5, %u; add.u64 %%a4, %%a4, %%a2;\n",
	    (unsigned)(SOURCES_MAX * sizeof(uint64_t)), (unsigned)(OUTPUT_WORDS * sizeof(uint64_t)));
}

/* 16 bytes for each thread, of the space that the template asks for. */
static void put_scratch(struct text *text, const struct form *form)
{
	if (strstr(form->text, "%xg"))
		put(text, ".reg .b64 %%xg; add.u64 %%xg, %%a4, %u;\n", (unsigned)(2 * RESULTS_MAX * sizeof(uint64_t)));
	if (strstr(form->text, "%xs"))
		put(text, ".shared .align 16 .b8 shared_bytes[2048]; .reg .b64 %%xs; mov.u64 %%xs, shared_bytes;\n"
			  "mul.wide.u32 %%tl, %%i2, 16; add.u64 %%xs, %%xs, %%tl;\n");
	if (strstr(form->text, "%xl"))
		put(text, ".local .align 16 .b8 local_bytes[16]; .reg .b64 %%xl; mov.u64 %%xl, local_bytes;\n");
}

static void put_store(struct text *text, char letter, char set, size_t n, size_t slot)
{
	if (letter == 'p')
		put(text, "selp.b32 %%tw, 1, 0, %%%c%zu; st.global.b32 [%%a4+%zu], %%tw;\n", set, n, slot * 8);
	else
		put(text, "st.global.%s [%%a4+%zu], %%%c%zu;\n", register_type(letter), slot * 8, set, n);
}

size_t kernel_write(const struct form *form, unsigned number, char *buffer, size_t room)
{
	struct text text = { buffer, 0, room };
	put(&text, ".visible .entry k%u(.param .u64 in, .param .u64 out, .param .u32 n, .param .u32 alone)\n{\n", number);
	put_declarations(&text, form);
	for (size_t n = 0; form->sources[n]; n++) {
		if (form->sources[n] == 'p')
			put(&text, "ld.global.b32 %%tw, [%%a3+%zu]; setp.ne.u32 %%s%zu, %%tw, 0;\n", n * 8, n);
		else
			put(&text, "ld.global.%s %%s%zu, [%%a3+%zu];\n", register_type(form->sources[n]), n, n * 8);
	}
	for (size_t n = 0; form->results[n]; n++) {
		if (form->results[n] == 'p')
			put(&text, "setp.ne.u32 %%g%zu, 0, 0;\n", n);
		else
			put(&text, "mov.%s %%g%zu, 0x%llx;\n", register_type(form->results[n]), n,
			    SENTINEL & (UINT64_MAX >> (64 - letter_width(form->results[n]))));
	}
	put_scratch(&text, form);
	put_template(&text, form, false);
	put_template(&text, form, true);
	for (size_t n = 0; form->results[n]; n++) {
		put_store(&text, form->results[n], 'r', n, n);
		put_store(&text, form->results[n], 'g', n, RESULTS_MAX + n);
	}
	put(&text, "DONE: ret;\n}\n");
	return text.used;
}
