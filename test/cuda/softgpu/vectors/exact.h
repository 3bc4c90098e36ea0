/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact values of floating-point formats and their rounding, by MPFR. */
#ifndef TEST_VECTORS_EXACT_H
#define TEST_VECTORS_EXACT_H

#include "test/cuda/softgpu/vectors/vectors.h"

#include <mpfr.h>

/* Enough bits for a * b + c of any two doubles and a third without rounding. */
enum { EXACT_BITS_WIDE = 4500, EXACT_BITS = 800 };

enum rounding { TO_NEAREST, TOWARD_ZERO, DOWN, UP, TO_NEAREST_AWAY };
mpfr_rnd_t rounding_of_mpfr(enum rounding rounding);
/* Returns the rounding of .rn, .rz, .rm, .rp or .rna among the words; to nearest if none of them is there. */
enum rounding rounding_of(const struct words *words);

/* Sets value to a number of the format. The precision of value must be large enough for every number of the format. */
void exact_of(mpfr_ptr value, const struct format *format, uint64_t bits);
/* Rounds to the format: overflow to infinity or, toward zero or with satfinite, the largest number. */
uint64_t exact_round(const struct format *format, mpfr_srcptr value, enum rounding rounding, bool satfinite);
/* Returns whether the bits are a subnormal number of the format. */
bool is_subnormal(const struct format *format, uint64_t bits);
/* Call it if the operation that gave value was inexact and rounded toward zero: moves value slightly away from zero, so
 * that a later rounding in any direction is right. */
void exact_make_sticky(mpfr_ptr value);

#endif
