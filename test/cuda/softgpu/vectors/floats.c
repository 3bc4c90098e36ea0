/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floating-point arithmetic, exactly, then rounded once. NaNs: of single precision and where the ISA says canonical,
 * that pattern; else any. Approximations: within the ISA's stated error, special values exactly.
 */
#include "test/cuda/softgpu/vectors/exact.h"

#include <math.h>
#include <string.h>

/* One element's operation. */
struct operation {
	const struct words *words;
	const char *op;
	const struct format *format, *sources[3]; /* of the result; of each source */
	unsigned count;
	enum rounding rounding;
	bool ftz, sat, relu, nan, absolute, xorsign;
};

static uint64_t sign_of(const struct format *format)
{
	return 1ull << (format->width - 1);
}

static struct element exact_element(const struct format *format, uint64_t bits)
{
	return (struct element){ .rule = RULE_EXACT, .width = format->width, .bits = bits, .format = format };
}

static struct element open_element(const struct format *format)
{
	return (struct element){ .rule = RULE_OPEN, .width = format->width, .format = format };
}

/* Single precision has one NaN; of others the ISA does not say. */
static struct element nan_element(const struct format *format)
{
	struct element element = exact_element(format, format->nan);
	if (strcmp(format->name, "f32"))
		element.rule = RULE_NAN;
	return element;
}

static struct element within(const struct format *format, double value, double error)
{
	struct element element = { .rule = RULE_WITHIN, .width = format->width, .format = format };
	element.low = value - error;
	element.high = value + error;
	return element;
}

/* A sum, product or quotient that has been rounded: .ftz, .sat, .relu. */
static struct element finish(const struct operation *o, mpfr_srcptr value)
{
	const struct format *format = o->format;
	if (mpfr_nan_p(value)) {
		if (o->sat)
			return exact_element(format, 0);
		struct element element = nan_element(format);
		if (o->relu) /* "NaN result is converted to canonical NaN" */
			element = exact_element(format, format->nan);
		return element;
	}
	uint64_t bits = exact_round(format, value, o->rounding, false);
	bool negative = bits & sign_of(format),
	     tiny = !mpfr_zero_p(value) && mpfr_get_exp(value) - 1 < 1 - format->bias;
	struct element zero = exact_element(format, 0);
	zero.rule = RULE_ZERO;
	if (o->ftz && is_subnormal(format, bits))
		bits &= sign_of(format);
	else if (o->ftz && tiny && bits & ~sign_of(format)) /* only rounding made it normal: before or after? */
		return open_element(format);
	if ((o->sat || o->relu) && (negative || !(bits & ~sign_of(format))))
		return zero; /* of which sign, PTX does not say */
	if (o->sat && format_value(format, bits) > 1)
		bits = (uint64_t)format->bias << (format->precision - 1); /* 1 */
	return exact_element(format, bits);
}

static bool compute(const struct operation *o, mpfr_ptr r, mpfr_ptr *v)
{
	mpfr_rnd_t mode = rounding_of_mpfr(o->rounding); /* for the sign of exact zeros; all else is exact */
	if (!strcmp(o->op, "add"))
		mpfr_add(r, v[0], v[1], mode);
	else if (!strcmp(o->op, "sub"))
		mpfr_sub(r, v[0], v[1], mode);
	else if (!strcmp(o->op, "mul"))
		mpfr_mul(r, v[0], v[1], mode);
	else if (!strcmp(o->op, "fma") || !strcmp(o->op, "mad"))
		mpfr_fma(r, v[0], v[1], v[2], mode);
	else
		return false;
	return true;
}

/* Quotients and roots: many bits, toward zero, and a mark that there are more. */
static bool compute_inexact(const struct operation *o, mpfr_ptr r, mpfr_ptr *v)
{
	int inexact;
	mpfr_set_prec(r, 256);
	if (!strcmp(o->op, "div"))
		inexact = mpfr_div(r, v[0], v[1], MPFR_RNDZ);
	else if (!strcmp(o->op, "rcp"))
		inexact = mpfr_ui_div(r, 1, v[0], MPFR_RNDZ);
	else if (!strcmp(o->op, "sqrt"))
		inexact = mpfr_sqrt(r, v[0], MPFR_RNDZ);
	else
		return false;
	if (inexact)
		exact_make_sticky(r);
	return true;
}

static int order(const struct format *format, uint64_t a, uint64_t b)
{
	double x = format_value(format, a), y = format_value(format, b);
	if (x == 0 && y == 0) /* +0 > -0 */
		return (int)!(a & sign_of(format)) - (int)!(b & sign_of(format));
	return (x > y) - (x < y);
}

/* min, max of two or three. */
static struct element extremum(const struct operation *o, const uint64_t *in)
{
	const struct format *format = o->format;
	uint64_t sign = sign_of(format), xorsign = 0, best = 0;
	bool none = true, any_nan = false, least = !strcmp(o->op, "min");
	for (unsigned n = 0; n < o->count; n++) {
		uint64_t bits = in[n];
		xorsign ^= bits & sign;
		if (o->absolute)
			bits &= ~sign;
		if (format_is_nan(format, bits)) {
			any_nan = true;
		} else if (none || (order(format, bits, best) < 0) == least) {
			best = none || order(format, bits, best) ? bits : best;
			none = false;
		}
	}
	if (o->nan && any_nan)
		return exact_element(format, format->nan); /* "the result is canonical NaN" */
	if (none)
		return nan_element(format);
	return exact_element(format, o->xorsign ? (best & ~sign) | xorsign : best);
}

static struct element negate_or_abs(const struct operation *o, uint64_t a)
{
	uint64_t sign = sign_of(o->format);
	if (format_is_nan(o->format, a)) {
		struct element element = nan_element(o->format);
		element.rule = RULE_NAN; /* "NaN input yields unspecified NaN" */
		return element;
	}
	return exact_element(o->format, !strcmp(o->op, "neg") ? a ^ sign : a & ~sign);
}

/* fma.oob: 0 if an operand is the NaN that tensor loads put in place of what is out of bounds, 0xffff. */
static bool out_of_bounds(const struct operation *o, const uint64_t *in)
{
	for (unsigned n = 0; n < o->count; n++)
		if (in[n] == 0xffff)
			return true;
	return false;
}

/* ---- approximations */
static double power_of_two_below(double value)
{
	int exponent;
	frexp(value, &exponent);
	return ldexp(1, exponent - 1);
}

static double exactly(const struct operation *o, double a, double b)
{
	mpfr_t x, y, r;
	mpfr_inits2(200, x, y, r, (mpfr_ptr)0);
	mpfr_set_d(x, a, MPFR_RNDN);
	mpfr_set_d(y, b, MPFR_RNDN);
	if (!strcmp(o->op, "ex2"))
		mpfr_exp2(r, x, MPFR_RNDN);
	else if (!strcmp(o->op, "lg2"))
		mpfr_log2(r, x, MPFR_RNDN);
	else if (!strcmp(o->op, "sin"))
		mpfr_sin(r, x, MPFR_RNDN);
	else if (!strcmp(o->op, "cos"))
		mpfr_cos(r, x, MPFR_RNDN);
	else if (!strcmp(o->op, "tanh"))
		mpfr_tanh(r, x, MPFR_RNDN);
	else if (!strcmp(o->op, "rcp"))
		mpfr_ui_div(r, 1, x, MPFR_RNDN);
	else if (!strcmp(o->op, "sqrt"))
		mpfr_sqrt(r, x, MPFR_RNDN);
	else if (!strcmp(o->op, "rsqrt"))
		mpfr_rec_sqrt(r, x, MPFR_RNDN);
	else
		mpfr_div(r, x, y, MPFR_RNDN);
	double value = mpfr_get_d(r, MPFR_RNDN);
	mpfr_clears(x, y, r, (mpfr_ptr)0);
	return value;
}

/* The error that the ISA states for an operation at a with exact result r; negative: it states none. */
static double stated_error(const struct operation *o, double a, double r)
{
	double size = fabs(r), place = power_of_two_below(size);
	bool is_f16 = !strcmp(o->format->name, "f16"), is_bf16 = !strcmp(o->format->name, "bf16");
	if (!strcmp(o->op, "ex2"))
		return is_f16 ? size * exp2(-9.9) : is_bf16 ? size * exp2(-7) : place * exp2(-22.5);
	if (!strcmp(o->op, "lg2")) /* of the mantissa's part; beyond it the sum is rounded to the format */
		return fabs(a) > 0.5 && fabs(a) < 2 ? exp2(-22.6) : exp2(-22.6) + place * exp2(-23);
	if (!strcmp(o->op, "sin") || !strcmp(o->op, "cos"))
		return fabs(a) <= 3.1415927410125732 ? exp2(-20.9) : -1;
	if (!strcmp(o->op, "tanh"))
		return is_f16 ? exp2(-10.987) : is_bf16 ? exp2(-8) : size * exp2(-11);
	if (!strcmp(o->op, "rcp"))
		return (o->format->width == 64 ? exp2(-20) : exp2(-23)) / power_of_two_below(fabs(a));
	if (!strcmp(o->op, "rsqrt"))
		return size * (o->format->width == 64 && !o->ftz ? exp2(-50) :
			       o->format->width == 64 ? exp2(-20) : exp2(-22.4));
	if (!strcmp(o->op, "sqrt"))
		return place * exp2(-22);
	return 2 * place * exp2(-23); /* div.approx, div.full: 2 ulp */
}

/* Special values from the ISA's tables; false: a number, for the error to judge. */
static bool special_value(const struct operation *o, double a, struct element *element)
{
	const struct format *format = o->format;
	uint64_t infinity = format->largest + 1, one = (uint64_t)format->bias << (format->precision - 1);
	uint64_t sign = signbit(a) ? sign_of(format) : 0;
	const char *op = o->op;
	*element = nan_element(format);
	if (isnan(a))
		return true;
	if (!strcmp(op, "ex2") && (isinf(a) || a == 0))
		*element = exact_element(format, a == 0 ? one : sign ? 0 : infinity);
	else if (!strcmp(op, "tanh") && (isinf(a) || a == 0))
		*element = exact_element(format, sign | (a == 0 ? 0 : one));
	else if (!strcmp(op, "lg2") && (a == 0 || a == INFINITY))
		*element = exact_element(format, infinity | (a == 0 ? sign_of(format) : 0));
	else if (!strcmp(op, "sin") && a == 0)
		*element = exact_element(format, sign);
	else if (!strcmp(op, "cos") && a == 0)
		*element = exact_element(format, one);
	else if ((!strcmp(op, "rcp") || !strcmp(op, "rsqrt")) && a == 0)
		*element = exact_element(format, sign | infinity);
	else if (!strcmp(op, "rcp") && isinf(a))
		*element = exact_element(format, sign);
	else if (!strcmp(op, "rsqrt") && a == INFINITY)
		*element = exact_element(format, 0);
	else if (!strcmp(op, "sqrt") && (a == 0 || a == INFINITY))
		*element = exact_element(format, a == 0 ? sign : infinity);
	else if (isinf(a) || (a < 0 && (!strcmp(op, "lg2") || !strcmp(op, "sqrt") || !strcmp(op, "rsqrt"))))
		return true;
	else
		return false;
	return true;
}

/* The result is near r; what would be subnormal may be flushed with .ftz, what is too large infinite. */
static struct element near(const struct operation *o, double a, double r)
{
	const struct format *format = o->format;
	if (fabs(r) > 2 * format_value(format, format->largest))
		return exact_element(format, (r < 0 ? sign_of(format) : 0) | (format->largest + 1));
	double error = stated_error(o, a, r), least = ldexp(1, 1 - format->bias);
	double unit = ldexp(1, 1 - format->bias - (int)format->precision + 1);
	if (error < 0) {
		struct element element = within(format, 0, 1); /* sin, cos of what is far: PTX states no error */
		return element;
	}
	if (fabs(r) < least)
		error = fmax(error, unit);
	struct element element = within(format, r, error);
	if (o->ftz && fabs(r) - error < least) {
		element.low = fmin(element.low, 0);
		element.high = fmax(element.high, 0);
	}
	if (fabs(r) + error >= format_value(format, format->largest))
		*(r > 0 ? &element.high : &element.low) = r > 0 ? INFINITY : -INFINITY;
	return element;
}

/* a / b of div.approx and div.full. */
static struct element divided(const struct operation *o, uint64_t a_bits, uint64_t b_bits)
{
	const struct format *format = o->format;
	double a = format_value(format, a_bits), b = format_value(format, b_bits), least = ldexp(1, 1 - format->bias);
	uint64_t sign = (a_bits ^ b_bits) & sign_of(format);
	bool full = words_have(o->words, "full");
	if (isnan(a) || isnan(b) || (isinf(a) && isinf(b)) || (a == 0 && b == 0))
		return nan_element(format);
	if (!full && isfinite(b) && fabs(b) > 0x1p126)
		return isinf(a) ? nan_element(format) : exact_element(format, sign);
	if (isinf(a) || b == 0)
		return exact_element(format, sign | (format->largest + 1));
	if (isinf(b) || a == 0)
		return exact_element(format, sign);
	/* "Subnormal inputs and results are flushed", it says without .ftz too, and that they are supported. */
	double r = exactly(o, a, b);
	if (fabs(a) < least || fabs(b) < least || fabs(r) < least * (1 + 0x1p-20))
		return open_element(format);
	return near(o, a, r);
}

static struct element approximation(const struct operation *o, const uint64_t *in)
{
	struct element element;
	bool is_f64 = o->format->width == 64;
	/* .approx.ftz.f64 looks at the upper half only. */
	double a = format_value(o->sources[0], is_f64 && o->ftz ? in[0] >> 32 << 32 : in[0]);
	if (!strcmp(o->op, "div"))
		return divided(o, in[0], in[1]);
	if (is_subnormal(o->sources[0], in[0]) && o->format->width == 32 && strcmp(o->op, "tanh") &&
	    strcmp(o->op, "ex2"))
		return open_element(o->format); /* the tables flush them, the text supports them */
	if (special_value(o, a, &element))
		return element;
	element = near(o, a, exactly(o, a, 0));
	if (is_f64 && o->ftz && (fabs(a) < 0x1p-1000 || fabs(a) > 0x1p1000))
		return open_element(o->format);
	return element;
}

static struct element one_element(const struct operation *o, const uint64_t *operands)
{
	uint64_t in[3] = { 0 };
	mpfr_t r, values[3];
	mpfr_ptr pointers[3] = { values[0], values[1], values[2] };
	for (unsigned n = 0; n < o->count; n++) {
		in[n] = operands[n];
		if (o->ftz && is_subnormal(o->sources[n], in[n]))
			in[n] &= sign_of(o->sources[n]);
	}
	if (!strcmp(o->op, "min") || !strcmp(o->op, "max"))
		return extremum(o, in);
	if (!strcmp(o->op, "neg") || !strcmp(o->op, "abs"))
		return negate_or_abs(o, in[0]);
	if (words_have(o->words, "approx") || words_have(o->words, "full"))
		return approximation(o, in);
	if (words_have(o->words, "oob") && out_of_bounds(o, in))
		return exact_element(o->format, 0);
	mpfr_prec_t bits = o->format->width == 64 ? EXACT_BITS_WIDE : EXACT_BITS;
	mpfr_init2(r, bits);
	for (unsigned n = 0; n < 3; n++) {
		mpfr_init2(values[n], 64);
		if (n < o->count)
			exact_of(values[n], o->sources[n], in[n]);
	}
	if (!compute(o, r, pointers))
		compute_inexact(o, r, pointers);
	struct element element = finish(o, r);
	mpfr_clears(r, values[0], values[1], values[2], (mpfr_ptr)0);
	return element;
}

static bool is_arithmetic(const char *op)
{
	static const char *const all[] = { "add", "sub", "mul",	 "fma", "mad", "div", "rcp", "sqrt", "rsqrt",
					   "ex2", "lg2", "sin",	 "cos", "tanh", "abs", "neg", "min", "max" };
	for (size_t n = 0; n < sizeof all / sizeof *all; n++)
		if (!strcmp(op, all[n]))
			return true;
	return false;
}

bool float_reference(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	struct operation o = { .words = words, .op = words->opcode, .format = format_of_letter(form->results[0]) };
	if (!o.format || !is_arithmetic(o.op))
		return false;
	o.rounding = rounding_of(words);
	o.ftz = words_have(words, "ftz");
	o.sat = words_have(words, "sat");
	o.relu = words_have(words, "relu");
	o.nan = words_have(words, "NaN");
	o.absolute = words_have(words, "abs");
	o.xorsign = words_have(words, "xorsign");
	unsigned parts = strchr("xyq", form->results[0]) ? 2 : 1;
	out->count = parts;
	for (o.count = 0; form->sources[o.count]; o.count++)
		o.sources[o.count] = format_of_letter(form->sources[o.count]);
	for (unsigned part = 0; part < parts; part++) {
		uint64_t operands[3] = { 0 };
		unsigned shift = part * o.format->width;
		for (unsigned n = 0; n < o.count; n++)
			operands[n] = parts == 1 ? in[n] : in[n] >> shift & ((1ull << o.format->width) - 1);
		out->element[part] = one_element(&o, operands);
		out->element[part].shift = shift;
	}
	return true;
}
