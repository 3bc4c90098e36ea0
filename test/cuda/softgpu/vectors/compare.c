/* SPDX-License-Identifier: BSD-3-Clause */
/* set, setp, slct by a float, testp, copysign: what needs no rounding. Values of every type fit long double exactly. */
#include "test/cuda/softgpu/vectors/vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(long double) > 8, "a long double holds all integers of 64 bits");

/* The operand's value, of the type named; subnormals are zero with flush. */
static long double value_of(const char *type, uint64_t bits, bool flush)
{
	const struct format *format = format_of(type);
	unsigned width = (unsigned)atoi(type + 1);
	if (format) {
		uint64_t magnitude = bits & ((1ull << (format->width - 1)) - 1);
		if (flush && magnitude >> (format->precision - 1) == 0)
			return 0;
		return (long double)format_value(format, bits);
	}
	bits &= width == 64 ? UINT64_MAX : (1ull << width) - 1;
	if (type[0] == 's' && bits >> (width - 1))
		return width == 64 ? (long double)(int64_t)bits : (long double)bits - ldexpl(1, (int)width);
	return (long double)bits;
}

static bool is_comparison(const char *word)
{
	static const char *const all[] = { "eq",  "ne",  "lt",	"le",  "gt",  "ge",  "lo",  "ls", "hi",
					   "hs",  "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };
	for (size_t n = 0; n < sizeof all / sizeof *all; n++)
		if (!strcmp(word, all[n]))
			return true;
	return false;
}

static bool compare(const char *how, long double a, long double b)
{
	bool unordered = isnan(a) || isnan(b);
	if (!strcmp(how, "num"))
		return !unordered;
	if (!strcmp(how, "nan"))
		return unordered;
	if (unordered)
		return how[2] == 'u';
	if (!strncmp(how, "eq", 2))
		return a == b;
	if (!strncmp(how, "ne", 2))
		return a < b || a > b;
	if (!strncmp(how, "lt", 2) || !strcmp(how, "lo"))
		return a < b;
	if (!strncmp(how, "le", 2) || !strcmp(how, "ls"))
		return a <= b;
	if (!strncmp(how, "gt", 2) || !strcmp(how, "hi"))
		return a > b;
	return a >= b;
}

static bool combine(const struct words *words, bool truth, bool other)
{
	if (words_have(words, "and"))
		return truth && other;
	if (words_have(words, "or"))
		return truth || other;
	return words_have(words, "xor") ? truth != other : truth;
}

/* What set writes for true in a part of that type. */
static uint64_t true_of(const char *type, unsigned width)
{
	if (!strncmp(type, "f16", 3))
		return 0x3c00;
	if (!strncmp(type, "bf16", 4))
		return 0x3f80;
	if (!strcmp(type, "f32"))
		return 0x3f800000;
	return width == 16 ? 0xffff : 0xffffffff;
}

static bool set(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	const char *type = words_last(words, 0), *result = words_last(words, 1);
	bool flush = words_have(words, "ftz"), both = form->sources[0] == 'x' || form->sources[0] == 'y';
	uint64_t bits = 0;
	unsigned parts = both ? 2 : 1, width = letter_width(form->results[0]) / parts;
	for (unsigned n = 0; n < parts; n++) {
		bool truth = compare(words->word[0], value_of(type, in[0] >> n * 16, flush),
				     value_of(type, in[1] >> n * 16, flush));
		if (combine(words, truth, in[2] & 1))
			bits |= true_of(result, width) << n * 16;
	}
	outcome_exact(out, bits, letter_width(form->results[0]));
	return true;
}

/* p = t op c and q = !t op c; of two halves p and q are the results of one each. A template negates c. */
static bool setp(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	const char *type = words_last(words, 0);
	bool flush = words_have(words, "ftz"), both = form->sources[0] == 'x' || form->sources[0] == 'y';
	bool other = (in[2] & 1) != (strchr(form->text, '!') != NULL);
	for (unsigned n = 0; form->results[n]; n++) {
		unsigned shift = both ? n * 16 : 0;
		bool truth = compare(words->word[0], value_of(type, in[0] >> shift, flush),
				     value_of(type, in[1] >> shift, flush));
		outcome_exact(&out[n], combine(words, n && !both ? !truth : truth, other), 1);
	}
	return true;
}

static bool test_property(const struct words *words, const uint64_t *in, struct outcome *out)
{
	const struct format *format = format_of(words_last(words, 0));
	const char *what = words->word[0];
	double value = format_value(format, in[0]);
	uint64_t magnitude = in[0] & ((1ull << (format->width - 1)) - 1);
	bool subnormal = magnitude && magnitude >> (format->precision - 1) == 0, r;
	if (!strcmp(what, "finite"))
		r = isfinite(value);
	else if (!strcmp(what, "infinite"))
		r = isinf(value);
	else if (!strcmp(what, "number"))
		r = !isnan(value);
	else if (!strcmp(what, "notanumber"))
		r = isnan(value);
	else if (!strcmp(what, "normal"))
		r = isfinite(value) && !subnormal; /* zero is normal: "0.0 is considered a normal number" */
	else
		r = subnormal;
	outcome_exact(out, r, 1);
	return true;
}

bool compare_reference(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	const char *op = words->opcode;
	if (!strcmp(op, "setp") && is_comparison(words->word[0]))
		return setp(form, words, in, out);
	if (!strcmp(op, "set") && is_comparison(words->word[0]))
		return set(form, words, in, out);
	if (!strcmp(op, "testp"))
		return test_property(words, in, out);
	if (!strcmp(op, "slct") && !strcmp(words_last(words, 0), "f32")) {
		long double c = value_of("f32", in[2], words_have(words, "ftz"));
		outcome_exact(out, c >= 0 ? in[0] : in[1], letter_width(form->results[0]));
		return true;
	}
	if (!strcmp(op, "copysign")) {
		uint64_t sign = 1ull << (letter_width(form->results[0]) - 1);
		outcome_exact(out, (in[0] & sign) | (in[1] & (sign - 1)), letter_width(form->results[0]));
		return true;
	}
	return false;
}
