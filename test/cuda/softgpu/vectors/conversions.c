/* SPDX-License-Identifier: BSD-3-Clause */
/* cvt from or to floats ("cvt"): exact value in, one rounding out. */
#include "test/cuda/softgpu/vectors/exact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct conversion {
	const struct words *words;
	const struct format *from, *to; /* NULL: an integer */
	unsigned from_width, to_width;  /* of integers */
	bool from_signed, to_signed, ftz, sat, relu, satfinite;
};

static void integer_of(const char *name, unsigned *width, bool *is_signed)
{
	*width = (unsigned)atoi(name + 1);
	*is_signed = name[0] == 's';
}

/* .rni .rzi .rmi .rpi: to an integral value. */
static bool round_to_integral(const struct words *words, mpfr_ptr value)
{
	if (mpfr_nan_p(value) || mpfr_inf_p(value))
		return words_have(words, "rni") || words_have(words, "rzi") || words_have(words, "rmi") ||
		       words_have(words, "rpi");
	if (words_have(words, "rni"))
		mpfr_rint(value, value, MPFR_RNDN);
	else if (words_have(words, "rzi"))
		mpfr_trunc(value, value);
	else if (words_have(words, "rmi"))
		mpfr_floor(value, value);
	else if (words_have(words, "rpi"))
		mpfr_ceil(value, value);
	else
		return false;
	return true;
}

static void set_source(const struct conversion *c, mpfr_ptr value, uint64_t bits)
{
	if (c->from) {
		if (c->ftz && !strcmp(c->from->name, "f32") && is_subnormal(c->from, bits))
			bits &= 0x80000000;
		exact_of(value, c->from, bits);
	} else if (c->from_signed) {
		unsigned unused = 64 - c->from_width;
		mpfr_set_sj(value, (intmax_t)((int64_t)(bits << unused) >> unused), MPFR_RNDN);
	} else {
		mpfr_set_uj(value, c->from_width == 64 ? bits : bits & ((1ull << c->from_width) - 1), MPFR_RNDN);
	}
}

/* Clamped; NaN is 0, or the top bit alone where either side has 64 bits. Extended to the register. */
static uint64_t to_integer(const struct conversion *c, mpfr_srcptr value)
{
	uint64_t top = 1ull << (c->to_width - 1), all = c->to_width == 64 ? UINT64_MAX : (1ull << c->to_width) - 1;
	if (mpfr_nan_p(value))
		return c->to_width == 64 || c->from->width == 64 ? (c->to_signed ? ~(top - 1) : top) : 0;
	if (!c->to_signed)
		return mpfr_sgn(value) <= 0 ? 0 : mpfr_cmp_d(value, ldexp(1, (int)c->to_width)) >= 0 ? all :
		       mpfr_get_uj(value, MPFR_RNDN);
	if (mpfr_cmp_d(value, ldexp(1, (int)c->to_width - 1)) >= 0)
		return top - 1;
	if (mpfr_cmp_d(value, -ldexp(1, (int)c->to_width - 1)) < 0)
		return ~(top - 1);
	return (uint64_t)mpfr_get_sj(value, MPFR_RNDN);
}

static struct element to_float(const struct conversion *c, mpfr_srcptr value)
{
	const struct format *to = c->to;
	struct element element = { .rule = RULE_EXACT, .width = to->width, .format = to };
	uint64_t sign = 1ull << (to->width - 1);
	if (mpfr_nan_p(value) && !to->has_nan) {
		element.bits = to->largest; /* fp6 and fp4 have none: +MAX_NORM */
		return element;
	}
	if (mpfr_nan_p(value)) {
		element.bits = c->sat ? 0 : to->nan;
		/* The ISA says which NaN for .relu, and of two sorts of fp8, which have one or whose others are none.
		 */
		if (!c->sat && (!c->relu || !strcmp(to->name, "tf32")))
			element.rule = RULE_NAN;
		return element;
	}
	element.bits = exact_round(to, value, rounding_of(c->words), c->satfinite);
	if (c->ftz && !strcmp(to->name, "f32") && is_subnormal(to, element.bits))
		element.bits &= sign;
	if ((c->sat || c->relu) && (element.bits & sign || element.bits == 0))
		element.rule = RULE_ZERO;
	else if (c->sat && format_value(to, element.bits) > 1)
		element.bits = (uint64_t)to->bias << (to->precision - 1);
	return element;
}

/*
 * Powers of two from 2^-127 to 2^127, 255 the NaN and what overflows; the sign is lost. What lies below 2^-127 gives
 * the least, even with .rp (the emulation in NVIDIA's cuda_fp8.hpp).
 */
static struct element to_power(const struct conversion *c, mpfr_srcptr value)
{
	struct element element = { .rule = RULE_EXACT, .width = 8, .bits = 0 };
	uint64_t beyond = c->satfinite ? 254 : 255;
	if (mpfr_nan_p(value))
		element.bits = 255;
	else if (mpfr_inf_p(value))
		element.bits = beyond;
	if (mpfr_nan_p(value) || mpfr_inf_p(value) || mpfr_zero_p(value))
		return element;
	long exponent = mpfr_get_exp(value) - 1;
	if (exponent < -127)
		return element;
	mpfr_t magnitude;
	mpfr_init2(magnitude, 64);
	mpfr_abs(magnitude, value, MPFR_RNDN);
	if (words_have(c->words, "rp") && mpfr_cmp_ui_2exp(magnitude, 1, exponent) > 0)
		exponent++;
	mpfr_clear(magnitude);
	element.bits = exponent > 127 ? beyond : (uint64_t)(exponent + 127);
	return element;
}

static struct element convert(const struct conversion *c, uint64_t bits)
{
	mpfr_t value;
	struct element element = { .rule = RULE_EXACT, .width = 64 };
	mpfr_init2(value, 64);
	if (!strncmp(words_last(c->words, 0), "ue8m0", 5)) {
		if (bits == 255)
			mpfr_set_nan(value);
		else
			mpfr_set_ui_2exp(value, 1, (long)bits - 127, MPFR_RNDN);
	} else {
		set_source(c, value, bits);
	}
	round_to_integral(c->words, value);
	if (!strncmp(words_last(c->words, 1), "ue8m0", 5))
		element = to_power(c, value);
	else if (c->to)
		element = to_float(c, value);
	else
		element.bits = to_integer(c, value);
	mpfr_clear(value);
	return element;
}

/* Elements of a packed type, and the bits from one to the next. */
static unsigned packed(const char *name, unsigned *step)
{
	size_t length = strlen(name);
	bool halves = strstr(name, "f16") != NULL, nibbles = !strncmp(name, "e2m1", 4);
	*step = halves ? 16 : nibbles ? 4 : 8;
	return length > 2 && name[length - 2] == 'x' ? (unsigned)(name[length - 1] - '0') : 1;
}

static bool setup(struct conversion *c, const struct words *words)
{
	const char *from = words_last(words, 0), *to = words_last(words, 1);
	*c = (struct conversion){ .words = words, .from = format_of(from), .to = format_of(to) };
	if (strcmp(words->opcode, "cvt") || words_have(words, "pack"))
		return false;
	if (!c->from && !c->to)
		return false;
	if (!c->from)
		integer_of(from, &c->from_width, &c->from_signed);
	if (!c->to)
		integer_of(to, &c->to_width, &c->to_signed);
	c->ftz = words_have(words, "ftz");
	c->sat = words_have(words, "sat");
	c->relu = words_have(words, "relu");
	c->satfinite = words_have(words, "satfinite");
	return true;
}

/* What no element covers of a result is zero: beside narrow elements, beyond the last, below tf32's. */
static void zero_between(struct outcome *out, unsigned width)
{
	uint64_t covered = 0;
	unsigned count = out->count;
	for (unsigned n = 0; n < count; n++) {
		const struct element *e = &out->element[n];
		covered |= (e->width < 64 ? (1ull << e->width) - 1 : UINT64_MAX) << e->shift;
	}
	for (unsigned from = 0, to; from < width; from = to) {
		bool gap = !(covered >> from & 1);
		for (to = from + 1; to < width && gap == !(covered >> to & 1);)
			to++;
		if (gap)
			out->element[out->count++] = (struct element){ .rule = RULE_EXACT, .shift = from,
								       .width = to - from };
	}
}

bool convert_reference(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	struct conversion c;
	unsigned step, from_step;
	if (!setup(&c, words))
		return false;
	unsigned parts = packed(words_last(words, 1), &step), sources = packed(words_last(words, 0), &from_step);
	out->count = parts;
	for (unsigned n = 0; n < parts; n++) {
		/* d, a, b: the last source is the lowest part. */
		uint64_t bits = sources == 1 ? in[parts - 1 - n] : in[0] >> n * from_step & ((1ull << from_step) - 1);
		out->element[n] = convert(&c, bits);
		if (parts > 1) {
			out->element[n].shift = n * step;
			if (out->element[n].rule == RULE_EXACT && out->element[n].width < step)
				out->element[n].width = step;
		} else if (out->element[n].rule == RULE_EXACT) {
			out->element[n].width = letter_width(form->results[0]);
			if (!strcmp(words_last(words, 1), "tf32"))
				out->element[n].bits <<= 13;
		} else if (!strcmp(words_last(words, 1), "tf32") && out->element[n].rule == RULE_NAN) {
			out->element[n].width = 32; /* as f32, as which the register is read */
			out->element[n].format = format_of("f32");
		} else if (!strcmp(words_last(words, 1), "tf32")) {
			out->element[n].shift = 13; /* of the upper 19 bits */
		}
	}
	zero_between(out, letter_width(form->results[0]));
	return true;
}
