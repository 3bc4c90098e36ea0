/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on f16, bf16, fp8, fp6 and fp4 of one lane, for the expressions of ops/half.table and of the narrow
 * conversions. They compute in float or double, which is wide enough that rounding twice gives the right result, or
 * round to odd first.
 */
#ifndef SOFTGPU_EXEC_LANE_HALF_H
#define SOFTGPU_EXEC_LANE_HALF_H

#include "cuda_remote/softgpu/exec/lanes/lane_float.h"

/* Apply f to each half of a word. */
#define pair1(f, a) both(f(low(a)), f(high(a)))
#define pair2(f, a, b) both(f(low(a), low(b)), f(high(a), high(b)))
#define pair3(f, a, b, c) both(f(low(a), low(b), low(c)), f(high(a), high(b), high(c)))

/* ---- .sat, .relu and .satfinite of a result */
static inline uint16_t saturate_half(uint16_t a)
{
	uint16_t limited = a > 0x3c00 ? 0x3c00 : a;
	return a > 0x7c00 ? 0 : limited;
}

static inline uint16_t relu_half(uint16_t a)
{
	uint16_t positive = a & 0x8000 ? 0 : a;
	return (a & 0x7fff) > 0x7c00 ? 0x7fff : positive;
}

static inline uint16_t relu_bfloat(uint16_t a)
{
	uint16_t positive = a & 0x8000 ? 0 : a;
	return (a & 0x7fff) > 0x7f80 ? 0x7fff : positive;
}

static inline uint16_t finite_half(uint16_t a)
{
	return (a & 0x7fff) == 0x7c00 ? (a & 0x8000) | 0x7bff : a;
}

static inline uint16_t finite_bfloat(uint16_t a)
{
	return (a & 0x7fff) == 0x7f80 ? (a & 0x8000) | 0x7f7f : a;
}

static inline uint32_t saturate_halves(uint32_t a)
{
	return pair1(saturate_half, a);
}

static inline uint32_t relu_halves(uint32_t a)
{
	return pair1(relu_half, a);
}

static inline uint32_t relu_bfloats(uint32_t a)
{
	return pair1(relu_bfloat, a);
}

static inline uint32_t finite_halves(uint32_t a)
{
	return pair1(finite_half, a);
}

static inline uint32_t finite_bfloats(uint32_t a)
{
	return pair1(finite_bfloat, a);
}

/* ---- arithmetic */
static inline uint16_t half_add(uint16_t a, uint16_t b)
{
	return half_of(float_of(a) + float_of(b));
}

static inline uint16_t half_sub(uint16_t a, uint16_t b)
{
	return half_of(float_of(a) - float_of(b));
}

static inline uint16_t half_mul(uint16_t a, uint16_t b)
{
	return half_of(float_of(a) * float_of(b));
}

static inline uint16_t bfloat_sub(uint16_t a, uint16_t b)
{
	return bfloat_add(a, (uint16_t)(b ^ 0x8000));
}

static inline uint16_t bfloat_mul(uint16_t a, uint16_t b)
{
	return bfloat_of(float_of_bfloat(a) * float_of_bfloat(b));
}

/* .oob: 0xffff is the NaN that tensor loads write for elements out of bounds. */
#define DEFINE_OUT_OF_BOUNDS(name)                                                         \
	static inline uint16_t name##_fma_oob(uint16_t a, uint16_t b, uint16_t c)          \
	{                                                                                  \
		uint16_t r = name##_fma(a, b, c);                                          \
		bool outside = (a == 0xffff) | (b == 0xffff) | (c == 0xffff);              \
		return outside ? 0 : r;                                                    \
	}
DEFINE_OUT_OF_BOUNDS(half)
DEFINE_OUT_OF_BOUNDS(bfloat)

/* The sign of .xorsign; a NaN keeps its own. */
static inline uint16_t with_xorsign(uint16_t r, uint16_t a, uint16_t b, uint16_t infinity)
{
	return (r & 0x7fff) > infinity ? r : (uint16_t)((r & 0x7fff) | ((a ^ b) & 0x8000));
}

#define DEFINE_EXTREMA(name, widen, narrow, infinity)                                                        \
	static inline uint16_t name##_min(uint16_t a, uint16_t b) { return narrow(min_f32(widen(a), widen(b))); } \
	static inline uint16_t name##_max(uint16_t a, uint16_t b) { return narrow(max_f32(widen(a), widen(b))); } \
	static inline uint16_t name##_min_nan(uint16_t a, uint16_t b)                                        \
	{                                                                                                    \
		return narrow(min_nan_f32(widen(a), widen(b)));                                              \
	}                                                                                                    \
	static inline uint16_t name##_max_nan(uint16_t a, uint16_t b)                                        \
	{                                                                                                    \
		return narrow(max_nan_f32(widen(a), widen(b)));                                              \
	}                                                                                                    \
	static inline uint16_t name##_min_xorsign(uint16_t a, uint16_t b)                                    \
	{                                                                                                    \
		return with_xorsign(name##_min(a & 0x7fff, b & 0x7fff), a, b, infinity);                     \
	}                                                                                                    \
	static inline uint16_t name##_max_xorsign(uint16_t a, uint16_t b)                                    \
	{                                                                                                    \
		return with_xorsign(name##_max(a & 0x7fff, b & 0x7fff), a, b, infinity);                     \
	}                                                                                                    \
	static inline uint16_t name##_min_nan_xorsign(uint16_t a, uint16_t b)                                \
	{                                                                                                    \
		return with_xorsign(name##_min_nan(a & 0x7fff, b & 0x7fff), a, b, infinity);                 \
	}                                                                                                    \
	static inline uint16_t name##_max_nan_xorsign(uint16_t a, uint16_t b)                                \
	{                                                                                                    \
		return with_xorsign(name##_max_nan(a & 0x7fff, b & 0x7fff), a, b, infinity);                 \
	}
DEFINE_EXTREMA(half, float_of, half_of, 0x7c00)
DEFINE_EXTREMA(bfloat, float_of_bfloat, bfloat_of, 0x7f80)

static inline uint16_t half_ex2(uint16_t a)
{
	return half_of(ex2_f32(float_of(a)));
}

static inline uint16_t half_tanh(uint16_t a)
{
	return half_of(tanh_f32(float_of(a)));
}

/* ex2.approx.ftz.bf16: subnormal inputs and results become zero. bf16 and float are subnormal in the same range. */
static inline uint16_t bfloat_ex2(uint16_t a)
{
	return bfloat_of(flush(ex2_f32(flush(float_of_bfloat(a)))));
}

static inline uint16_t bfloat_tanh(uint16_t a)
{
	return bfloat_of(tanh_f32(float_of_bfloat(a)));
}

/* ---- conversions with a direction: HALF_ZERO, HALF_DOWN, HALF_UP, or to nearest */
enum { HALF_NEAREST = HALF_UP + 1 };

static inline uint16_t half_rounded(double a, int direction)
{
	return direction == HALF_NEAREST ? half_of_double(a) : half_of_directed(a, direction);
}

/* a has been rounded to odd, so the 16 bits that are cut off say how to round. */
static inline uint16_t bfloat_rounded_float(float a, int direction)
{
	uint32_t bits = bits_of_f32(a), rest = bits & 0xffff, negative = bits >> 31;
	bool away = rest && direction != HALF_ZERO && (direction == HALF_UP) != (negative != 0);
	uint16_t directed = (uint16_t)((bits >> 16) + away);
	uint16_t r = direction == HALF_NEAREST ? bfloat_of(a) : directed;
	return a == a ? r : 0x7fff;
}

static inline uint16_t bfloat_rounded(double a, int direction)
{
	return bfloat_rounded_float(float_to_odd(a), direction);
}

/* Rounds a 64-bit integer to odd if it has more than 53 bits. Rounding the result to a narrower type gives what
 * rounding the integer itself gives. */
static inline double double_of_u64_odd(uint64_t a)
{
	uint64_t kept = (a & ~0xfffull) | ((a & 0xfff) ? 0x1000 : 0);
	return (double)(a >> 53 ? kept : a);
}

static inline double double_of_s64_odd(int64_t a)
{
	double magnitude = double_of_u64_odd(a < 0 ? (uint64_t)0 - (uint64_t)a : (uint64_t)a);
	return a < 0 ? -magnitude : magnitude;
}

/* ---- tf32: a float whose low 13 bits are zero */
static inline uint32_t tf32_rounded(float a, int direction)
{
	uint32_t bits = bits_of_f32(a), half = 0xfff + (bits >> 13 & 1);
	uint32_t r = (direction == HALF_ZERO	  ? bits
		      : direction == HALF_NEAREST ? bits + half
						  : bits + 0x1000) &
		     ~0x1fffu;
	return a == a ? r : 0x7fffffff;
}

enum { HALF_AWAY = HALF_NEAREST + 1 };

static inline uint32_t tf32_finite(uint32_t a)
{
	return (a & 0x7fffffff) == 0x7f800000 ? (a & 0x80000000) | 0x7f7fe000 : a;
}

static inline uint32_t tf32_relu(uint32_t a)
{
	uint32_t positive = a & 0x80000000 ? 0 : a;
	return (a & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : positive;
}

/*
 * ---- fp8, fp6, fp4. Parameters of a format: the fraction's bits, the exponent's bias, the largest finite number, what
 * NaN becomes, and magic: a float whose last bit is worth the format's smallest positive number. Adding magic rounds
 * subnormals.
 */

static inline uint32_t narrow_of(float a, uint32_t fraction, uint32_t bias, uint32_t largest, uint32_t nan, float magic,
				 uint32_t sign_bit)
{
	uint32_t bits = bits_of_f32(a), magnitude = bits & 0x7fffffff, shift = 23 - fraction;
	uint32_t least = (128 - bias) << 23;
	uint32_t subnormal = bits_of_f32(f32_of_bits(magnitude < least ? magnitude : 0) + magic) - bits_of_f32(magic);
	uint32_t normal =
		(magnitude - ((127 - bias) << 23) + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1)) >> shift;
	uint32_t r = magnitude < least ? subnormal : magnitude >= 0x7f000000 ? largest : normal;
	r = (r > largest ? largest : r) | bits >> 31 << sign_bit;
	return a == a ? r : nan;
}

static inline float float_of_narrow(uint32_t a, uint32_t fraction, uint32_t bias, uint32_t sign_bit)
{
	uint32_t magnitude = a & ((1u << sign_bit) - 1);
	float value = f32_of_bits(magnitude << (23 - fraction)) * f32_of_bits((254 - bias) << 23);
	return a >> sign_bit & 1 ? -value : value;
}

#define DEFINE_NARROW(name, fraction, bias, largest, nan, magic, sign_bit)                                \
	static inline uint32_t name##_of(float a)                                                         \
	{                                                                                                 \
		return narrow_of(a, fraction, bias, largest, nan, magic, sign_bit);                       \
	}                                                                                                 \
	static inline uint32_t relu_##name(uint32_t a)                                                    \
	{                                                                                                 \
		return a >> (sign_bit) & 1 ? 0 : a;                                                       \
	}                                                                                                 \
	static inline uint16_t half_of_finite_##name(uint32_t a)                                          \
	{                                                                                                 \
		return half_of(float_of_narrow(a, fraction, bias, sign_bit));                             \
	}
DEFINE_NARROW(e4m3, 3, 7, 0x7e, 0x7f, 0x1p14f, 7)
DEFINE_NARROW(e5m2, 2, 15, 0x7b, 0x7f, 0x1p7f, 7)
DEFINE_NARROW(e2m3, 3, 1, 0x1f, 0x1f, 0x1p20f, 5)
DEFINE_NARROW(e3m2, 2, 3, 0x1f, 0x1f, 0x1p19f, 5)
DEFINE_NARROW(e2m1, 1, 1, 0x07, 0x07, 0x1p22f, 3)

static inline uint16_t half_of_e4m3(uint32_t a)
{
	return (a & 0x7f) == 0x7f ? 0x7fff : half_of_finite_e4m3(a & 255);
}

/* e5m2 is the upper byte of an f16. */
static inline uint16_t half_of_e5m2(uint32_t a)
{
	return (a & 0x7f) > 0x7c ? 0x7fff : (uint16_t)((a & 255) << 8);
}

static inline uint16_t half_of_e2m3(uint32_t a)
{
	return half_of_finite_e2m3(a & 63);
}

static inline uint16_t half_of_e3m2(uint32_t a)
{
	return half_of_finite_e3m2(a & 63);
}

static inline uint16_t half_of_e2m1(uint32_t a)
{
	return half_of_finite_e2m1(a & 15);
}

/* ue8m0 is only the exponent of the magnitude; 255 is NaN. */
static inline uint32_t power_of(float a, bool up, bool finite)
{
	uint32_t magnitude = bits_of_f32(a) & 0x7fffffff, exponent = magnitude >> 23;
	exponent += up & ((magnitude & 0x7fffff) != 0) & (magnitude > 0x00400000) & (magnitude < 0x7f800000);
	exponent -= finite & (magnitude <= 0x7f800000) & (exponent == 255);
	return exponent;
}

static inline uint16_t bfloat_of_power(uint32_t a)
{
	uint32_t normal = (a & 255) == 255 ? 0x7fff : (a & 255) << 7;
	return (uint16_t)((a & 255) == 0 ? 0x0040 : normal);
}

#endif
