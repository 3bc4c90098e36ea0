/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts between floating-point formats and MPFR numbers, and rounds MPFR numbers to a format. */
#include "test/cuda/softgpu/vectors/exact.h"

#include <stdlib.h>

mpfr_rnd_t rounding_of_mpfr(enum rounding rounding)
{
	switch (rounding) {
	case TOWARD_ZERO: return MPFR_RNDZ;
	case DOWN: return MPFR_RNDD;
	case UP: return MPFR_RNDU;
	default: return MPFR_RNDN;
	}
}

enum rounding rounding_of(const struct words *words)
{
	if (words_have(words, "rz"))
		return TOWARD_ZERO;
	if (words_have(words, "rm"))
		return DOWN;
	if (words_have(words, "rp"))
		return UP;
	return words_have(words, "rna") ? TO_NEAREST_AWAY : TO_NEAREST;
}

void exact_of(mpfr_ptr value, const struct format *format, uint64_t bits)
{
	/* Every number of these formats is a double. */
	if (mpfr_set_d(value, format_value(format, bits), MPFR_RNDN) != 0)
		abort();
	if (bits >> (format->width - 1) & 1 && mpfr_zero_p(value))
		mpfr_set_zero(value, -1);
}

bool is_subnormal(const struct format *format, uint64_t bits)
{
	uint64_t magnitude = bits & ((1ull << (format->width - 1)) - 1);
	return magnitude && magnitude >> (format->precision - 1) == 0;
}

void exact_make_sticky(mpfr_ptr value)
{
	int sign = mpfr_signbit(value);
	mpfr_prec_round(value, mpfr_get_prec(value) + 64, MPFR_RNDN);
	if (sign)
		mpfr_nextbelow(value);
	else
		mpfr_nextabove(value);
}

static uint64_t overflow(const struct format *format, bool negative, enum rounding rounding, bool satfinite)
{
	bool to_largest = rounding == TOWARD_ZERO || (rounding == DOWN && !negative) || (rounding == UP && negative);
	uint64_t sign = (uint64_t)negative << (format->width - 1);
	if (satfinite || to_largest || !format->has_infinity)
		return sign | format->largest;
	return sign | (format->largest + 1);
}

/* |value| in units of the last place it would have, as an integer. */
static uint64_t rounded_units(mpfr_srcptr value, long quantum, enum rounding rounding)
{
	mpfr_t units;
	mpfr_init2(units, mpfr_get_prec(value));
	mpfr_mul_2si(units, value, -quantum, MPFR_RNDN);
	switch (rounding) {
	case TOWARD_ZERO: mpfr_trunc(units, units); break;
	case DOWN: mpfr_floor(units, units); break;
	case UP: mpfr_ceil(units, units); break;
	case TO_NEAREST_AWAY: mpfr_round(units, units); break;
	default: mpfr_rint(units, units, MPFR_RNDN); break;
	}
	mpfr_abs(units, units, MPFR_RNDN);
	uint64_t r = mpfr_get_uj(units, MPFR_RNDN);
	mpfr_clear(units);
	return r;
}

uint64_t exact_round(const struct format *format, mpfr_srcptr value, enum rounding rounding, bool satfinite)
{
	bool negative = mpfr_signbit(value) != 0;
	uint64_t sign = (uint64_t)negative << (format->width - 1);
	if (mpfr_nan_p(value))
		return format->nan;
	if (mpfr_inf_p(value))
		return satfinite || !format->has_infinity ? sign | format->largest : sign | (format->largest + 1);
	if (mpfr_zero_p(value))
		return sign;
	long precision = (long)format->precision, exponent = mpfr_get_exp(value) - 1, least = 1 - format->bias;
	long place = exponent < least ? least : exponent;
	uint64_t units = rounded_units(value, place - (precision - 1), rounding);
	/* The exponent's field is one less than for a significand whose hidden bit counts: units carry it. */
	uint64_t magnitude = units + ((uint64_t)(place - least) << (precision - 1));
	if (magnitude > format->largest)
		return overflow(format, negative, rounding, satfinite);
	return sign | magnitude;
}
