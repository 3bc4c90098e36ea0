/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floating-point operations of one lane, for the expressions in the tables of ops/. Approximations compute in double;
 * their error is well below what the PTX ISA allows (ex2 2^-22.5 relative, lg2 2^-22.6, sin and cos 2^-20.9, tanh
 * 2^-11).
 */
#ifndef SOFTGPU_EXEC_LANE_FLOAT_H
#define SOFTGPU_EXEC_LANE_FLOAT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of_f32(float a)
{
	uint32_t bits;
	memcpy(&bits, &a, sizeof bits);
	return bits;
}

static inline float f32_of_bits(uint32_t bits)
{
	float a;
	memcpy(&a, &bits, sizeof a);
	return a;
}

static inline uint64_t bits_of_f64(double a)
{
	uint64_t bits;
	memcpy(&bits, &a, sizeof bits);
	return bits;
}

static inline double f64_of_bits(uint64_t bits)
{
	double a;
	memcpy(&a, &bits, sizeof a);
	return a;
}

/* ordered: neither is NaN; unordered: at least one is. & and | instead of && and ||, so that there is no branch. */
#define ordered(a, b) ((int)((a) == (a)) & (int)((b) == (b)))
#define unordered(a, b) ((int)((a) != (a)) | (int)((b) != (b)))

/* Every NaN result of single precision has this pattern, whatever the inputs (CUDA C++ Programming Guide,
 * "Floating-Point Standard"). */
static inline float quiet(float a)
{
	return a == a ? a : f32_of_bits(0x7fffffff);
}

/* PTX leaves open which NaN a double operation gives. Here it is the default NaN of x86, in every build. */
static inline double quiet_f64(double a)
{
	return a == a ? a : f64_of_bits(0xfff8000000000000);
}

/* .ftz */
static inline float flush(float a)
{
	uint32_t bits = bits_of_f32(a);
	return f32_of_bits(bits & 0x7f800000 ? bits : bits & 0x80000000);
}

/* .sat: NaN and -0 become +0 */
static inline float saturate(float a)
{
	return a > 0 ? (a < 1 ? a : 1) : 0;
}

static inline double saturate_f64(double a)
{
	return a > 0 ? (a < 1 ? a : 1) : 0;
}

/* The operand that is not NaN; -0 is less than +0; of two NaNs the canonical one. */
static inline float min_f32(float a, float b)
{
	float r = a < b ? a : b;
	r = a == b ? f32_of_bits(bits_of_f32(a) | bits_of_f32(b)) : r;
	r = b == b ? r : a;
	r = a == a ? r : b;
	return r == r ? r : f32_of_bits(0x7fffffff);
}

static inline float max_f32(float a, float b)
{
	float r = a > b ? a : b;
	r = a == b ? f32_of_bits(bits_of_f32(a) & bits_of_f32(b)) : r;
	r = b == b ? r : a;
	r = a == a ? r : b;
	return r == r ? r : f32_of_bits(0x7fffffff);
}

static inline float min_nan_f32(float a, float b)
{
	return ordered(a, b) ? min_f32(a, b) : f32_of_bits(0x7fffffff);
}

static inline float max_nan_f32(float a, float b)
{
	return ordered(a, b) ? max_f32(a, b) : f32_of_bits(0x7fffffff);
}

static inline double min_f64(double a, double b)
{
	double r = a < b ? a : b;
	r = a == b ? f64_of_bits(bits_of_f64(a) | bits_of_f64(b)) : r;
	r = b == b ? r : a;
	return quiet_f64(a == a ? r : b);
}

static inline double max_f64(double a, double b)
{
	double r = a > b ? a : b;
	r = a == b ? f64_of_bits(bits_of_f64(a) & bits_of_f64(b)) : r;
	r = b == b ? r : a;
	return quiet_f64(a == a ? r : b);
}

static inline float abs_bits(float a)
{
	return f32_of_bits(bits_of_f32(a) & 0x7fffffff);
}

/* The sign of .xorsign; a NaN keeps its own. */
static inline float xorsign(float r, float a, float b)
{
	uint32_t sign = (bits_of_f32(a) ^ bits_of_f32(b)) & 0x80000000;
	return r == r ? f32_of_bits((bits_of_f32(r) & 0x7fffffff) | sign) : r;
}

/* div.approx is a * (1/b). A subnormal 1/b is flushed: if |b| is above 2^126, 1/b is 0. */
static inline float div_approx(float a, float b)
{
	bool beyond = __builtin_fabsf(b) > 0x1p126f;
	float zero = f32_of_bits((bits_of_f32(a) ^ bits_of_f32(b)) & 0x80000000);
	float tiny = a - a == 0 ? zero : f32_of_bits(0x7fffffff);
	return quiet(beyond && b - b == 0 ? tiny : a / b);
}

/* ---- two floats in a register */
static inline float first(uint64_t a)
{
	return f32_of_bits((uint32_t)a);
}

static inline float second(uint64_t a)
{
	return f32_of_bits((uint32_t)(a >> 32));
}

static inline uint64_t both_f32(float a, float b)
{
	return bits_of_f32(a) | (uint64_t)bits_of_f32(b) << 32;
}

/* testp, on the bits; zero counts as normal */
#define DEFINE_TESTS(name, type, exponent, mantissa)                                                         \
	static inline bool is_finite_##name(type a) { return (a & (exponent)) != (exponent); }               \
	static inline bool is_infinite_##name(type a) { return (a & ((exponent) | (mantissa))) == (exponent); } \
	static inline bool is_notanumber_##name(type a) { return (a & ((exponent) | (mantissa))) > (exponent); } \
	static inline bool is_number_##name(type a) { return (a & ((exponent) | (mantissa))) <= (exponent); } \
	static inline bool is_normal_##name(type a)                                                          \
	{                                                                                                    \
		return (a & (exponent)) != (exponent) && ((a & (exponent)) != 0 || (a & (mantissa)) == 0);   \
	}                                                                                                    \
	static inline bool is_subnormal_##name(type a) { return (a & (exponent)) == 0 && (a & (mantissa)) != 0; }
DEFINE_TESTS(f32, uint32_t, 0x7f800000u, 0x007fffffu)
DEFINE_TESTS(f64, uint64_t, 0x7ff0000000000000ull, 0x000fffffffffffffull)

/*
 * ---- float to integer: clamps; a is integral already. If source or destination has 64 bits, NaN becomes an integer
 * with only the top bit set; otherwise it becomes 0 (PTX ISA, "cvt").
 */
#define DEFINE_TO_INTEGER(name, type, low, high, low_value, high_value)                          \
	static inline type name##_of_f32(float a)                                                \
	{                                                                                        \
		bool inside = a >= (float)(low) && a < (float)(high);                            \
		type nan = sizeof(type) == 8 ? (type)((uint64_t)1 << 63) : 0;                     \
		type clamped = a >= (float)(high) ? (high_value) : a < (float)(low) ? (low_value) : nan; \
		return inside ? (type)a : clamped;                                               \
	}                                                                                        \
	static inline type name##_of_f64(double a)                                               \
	{                                                                                        \
		bool inside = a >= (double)(low) && a < (double)(high);                          \
		type nan = (type)((uint64_t)1 << (8 * sizeof(type) - 1));                         \
		type clamped = a >= (double)(high) ? (high_value) : a < (double)(low) ? (low_value) : nan; \
		return inside ? (type)a : clamped;                                               \
	}
DEFINE_TO_INTEGER(u8, uint8_t, 0, 0x1p8, 0, UINT8_MAX)
DEFINE_TO_INTEGER(s8, int8_t, -0x1p7, 0x1p7, INT8_MIN, INT8_MAX)
DEFINE_TO_INTEGER(u16, uint16_t, 0, 0x1p16, 0, UINT16_MAX)
DEFINE_TO_INTEGER(s16, int16_t, -0x1p15, 0x1p15, INT16_MIN, INT16_MAX)
DEFINE_TO_INTEGER(u32, uint32_t, 0, 0x1p32, 0, UINT32_MAX)
DEFINE_TO_INTEGER(s32, int32_t, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX)
DEFINE_TO_INTEGER(u64, uint64_t, 0, 0x1p64, 0, UINT64_MAX)
DEFINE_TO_INTEGER(s64, int64_t, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX)

/* ---- half precision and bfloat16 */
static inline uint16_t low(uint32_t a)
{
	return (uint16_t)a;
}

static inline uint16_t high(uint32_t a)
{
	return (uint16_t)(a >> 16);
}

static inline uint32_t both(uint16_t a, uint16_t b)
{
	return a | (uint32_t)b << 16;
}

static inline float float_of(uint16_t half)
{
	uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
	uint32_t bits = bits_of_f32(f32_of_bits(magnitude) * 0x1p112f);
	bits = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : bits;
	return f32_of_bits(bits | (uint32_t)(half & 0x8000) << 16);
}

/* Rounds to nearest even. */
static inline uint16_t half_of(float a)
{
	uint32_t bits = bits_of_f32(a), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
	uint32_t subnormal = bits_of_f32(f32_of_bits(magnitude < 0x38800000 ? magnitude : 0) + 0.5f) - 0x3f000000;
	uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
	uint32_t special = magnitude > 0x7f800000 ? 0x7fff : 0x7c00;
	uint32_t r = magnitude < 0x38800000 ? subnormal : magnitude < 0x47800000 ? normal : special;
	return (uint16_t)(magnitude > 0x7f800000 ? r : r | sign);
}

/* Rounds to odd: if a is not a float, the last bit of the result is set. Rounding the result to a narrower type then
 * gives what rounding a itself gives. */
static inline float float_to_odd(double a)
{
	float near = (float)a;
	uint32_t bits = bits_of_f32(near);
	bits -= __builtin_fabs((double)near) > __builtin_fabs(a);
	bool inexact = (double)near != a && a == a;
	return f32_of_bits(inexact ? bits | 1 : bits);
}

static inline uint16_t half_of_double(double a)
{
	return half_of(float_to_odd(a));
}

/* a * b + c, rounded to odd. The caller's a * b is exact in double. */
static inline double product_sum_to_odd(double a, double b, double c)
{
	double product = a * b, sum = product + c;
	double back = sum - product, rest = (product - (sum - back)) + (c - back);
	uint64_t bits = bits_of_f64(sum);
	bool inexact = rest != 0 && rest == rest && __builtin_fabs(sum) <= 0x1p1000;
	bits -= inexact && ((rest > 0) != (sum > 0));
	return f64_of_bits(inexact ? bits | 1 : bits);
}

static inline uint16_t half_fma(uint16_t a, uint16_t b, uint16_t c)
{
	return half_of_double(product_sum_to_odd((double)float_of(a), (double)float_of(b), (double)float_of(c)));
}

enum { HALF_ZERO, HALF_DOWN, HALF_UP };

/* Rounds to nearest; if the result is on the wrong side of a, goes one step back. */
static inline uint16_t half_of_directed(double a, int direction)
{
	uint16_t r = half_of_double(a);
	double value = (double)float_of(r);
	bool too_far = direction == HALF_ZERO ? __builtin_fabs(value) > __builtin_fabs(a) :
		       direction == HALF_DOWN ? value > a : value < a;
	bool shrink = direction == HALF_ZERO || (value > 0) == (direction == HALF_DOWN);
	uint16_t stepped = (uint16_t)(shrink ? r - 1 : r + 1);
	if (value == 0)
		stepped = direction == HALF_DOWN ? 0x8001 : 0x0001;
	return too_far ? stepped : r;
}

/* .ftz of one half and of a pair. */
static inline uint16_t flush_half(uint16_t a)
{
	return (uint16_t)(a & 0x7c00 ? a : a & 0x8000);
}

static inline uint32_t flush_halves(uint32_t a)
{
	return both(flush_half(low(a)), flush_half(high(a)));
}

static inline float float_of_bfloat(uint16_t a)
{
	return f32_of_bits((uint32_t)a << 16);
}

static inline uint16_t bfloat_of(float a)
{
	uint32_t bits = bits_of_f32(a);
	return a == a ? (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16) : 0x7fff;
}

static inline uint16_t bfloat_of_truncated(float a)
{
	return a == a ? (uint16_t)(bits_of_f32(a) >> 16) : 0x7fff;
}

static inline uint16_t bfloat_add(uint16_t a, uint16_t b)
{
	return bfloat_of(float_to_odd((double)float_of_bfloat(a) + (double)float_of_bfloat(b)));
}

static inline uint16_t bfloat_fma(uint16_t a, uint16_t b, uint16_t c)
{
	return bfloat_of(float_to_odd(product_sum_to_odd((double)float_of_bfloat(a), (double)float_of_bfloat(b),
							 (double)float_of_bfloat(c))));
}

/* ---- approximations */
#define ROUND_MAGIC 0x1.8p52 /* added to a double below 2^51, rounds it to an integer in the low bits of the sum */

/* 2^x for |x| <= 1000 or NaN. The Taylor series of 2^f on [-1/2, 1/2]; the first term left out is below 2^-33. */
static inline double exp2_near(double x)
{
	double shifted = x + ROUND_MAGIC, f = (x - (shifted - ROUND_MAGIC)) * 0x1.62e42fefa39efp-1;
	double p = 1.0 / 362880;
	p = p * f + 1.0 / 40320;
	p = p * f + 1.0 / 5040;
	p = p * f + 1.0 / 720;
	p = p * f + 1.0 / 120;
	p = p * f + 1.0 / 24;
	p = p * f + 1.0 / 6;
	p = p * f + 0.5;
	p = p * f + 1;
	p = p * f + 1;
	return p * f64_of_bits((bits_of_f64(shifted) + 1023) << 52);
}

static inline float ex2_f32(float x)
{
	double clamped = x < -200 ? -200 : x > 200 ? 200 : (double)x;
	double r = exp2_near(clamped);
	return quiet(x == x ? (float)r : x);
}

/* x = 2^e * m, m in [sqrt(1/2), sqrt(2)); log2 m by the series of atanh((m-1)/(m+1)). */
static inline float lg2_f32(float x)
{
	uint64_t bits = bits_of_f64((double)x);
	uint64_t shifted = bits + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
	int64_t exponent = (int64_t)(shifted >> 52) - 1023;
	double m = f64_of_bits(bits - ((uint64_t)exponent << 52));
	double s = (m - 1) / (m + 1), z = s * s;
	double p = 1.0 / 11;
	p = p * z + 1.0 / 9;
	p = p * z + 1.0 / 7;
	p = p * z + 1.0 / 5;
	p = p * z + 1.0 / 3;
	p = p * z + 1;
	float r = (float)((double)(int32_t)exponent + p * s * 0x1.71547652b82fep+1);
	r = x == 0 ? -INFINITY : x > 0x1.fffffep127f ? x : r;
	return x >= 0 ? r : f32_of_bits(0x7fffffff);
}

/* x = k * pi/2 + r. Beyond 2^40 no bit of the remainder is right; the ISA promises nothing there. */
static inline double quarter_turns(float x, uint64_t *quarter)
{
	double shifted = (double)x * 0x1.45f306dc9c883p-1 + ROUND_MAGIC, k = shifted - ROUND_MAGIC;
	*quarter = bits_of_f64(shifted);
	double r = ((double)x - k * 0x1.921fb54400000p+0) - k * 0x1.0b4611a626331p-34;
	return r < -0.8 ? -0.8 : r > 0.8 ? 0.8 : r;
}

static inline float sine_of(double r, uint64_t quarter)
{
	double z = r * r;
	double s =
		((((-1.0 / 39916800 * z + 1.0 / 362880) * z - 1.0 / 5040) * z + 1.0 / 120) * z - 1.0 / 6) * z * r + r;
	double c = (((((1.0 / 479001600 * z - 1.0 / 3628800) * z + 1.0 / 40320) * z - 1.0 / 720) * z + 1.0 / 24) * z -
		    0.5) * z +
		   1;
	double value = quarter & 1 ? c : s;
	return (float)(quarter & 2 ? -value : value);
}

static inline float sin_f32(float x)
{
	uint64_t quarter;
	double r = quarter_turns(x, &quarter);
	float value = sine_of(r, quarter);
	return x == 0 ? x : __builtin_fabsf(x) <= 0x1.fffffep127f ? value : f32_of_bits(0x7fffffff);
}

static inline float cos_f32(float x)
{
	uint64_t quarter;
	double r = quarter_turns(x, &quarter);
	float value = sine_of(r, quarter + 1);
	return __builtin_fabsf(x) <= 0x1.fffffep127f ? value : f32_of_bits(0x7fffffff);
}

static inline float tanh_f32(float x)
{
	double clamped = x < -20 ? -20 : x > 20 ? 20 : (double)x, z = clamped * clamped;
	double e = exp2_near(clamped * 0x1.71547652b82fep+1);
	double series = clamped * (1 - z * (1.0 / 3 - z * (2.0 / 15 - z * (17.0 / 315))));
	float r = (float)(z < 0.01 ? series : (e - 1) / (e + 1));
	return x == x ? r : f32_of_bits(0x7fffffff);
}

/* rcp.approx and rsqrt.approx of f64 read only the upper 32 bits of the operand and give only those of the result. */
static inline double flush_f64(double a)
{
	uint64_t bits = bits_of_f64(a);
	return f64_of_bits(bits & 0x7ff0000000000000 ? bits : bits & 0x8000000000000000);
}

static inline double upper_half(double a)
{
	return f64_of_bits(bits_of_f64(a) & 0xffffffff00000000);
}

static inline double rcp_approx_f64(double a)
{
	return upper_half(quiet_f64(flush_f64(1.0 / flush_f64(upper_half(a)))));
}

static inline double rsqrt_approx_f64(double a)
{
	return upper_half(quiet_f64(1.0 / __builtin_sqrt(flush_f64(upper_half(a)))));
}

#endif
