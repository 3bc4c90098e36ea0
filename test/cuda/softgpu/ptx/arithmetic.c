/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each instruction over all combinations of its type's edge values, against the host's own arithmetic: whole warps, and
 * under a guard that leaves half of the lanes as they were; in every build of the lane operations.
 */
#include "test/cuda/softgpu/ptx/engine.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 4096
#define SENTINEL 0x5a5a5a5a5a5a5a5aull

typedef uint64_t reference(uint64_t a, uint64_t b, uint64_t c);

struct instruction {
	const char *mnemonic;
	const char *types; /* result, sources: h w l integers, f d floats, p predicate */
	reference *expected; /* NULL: evaluate */
};

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

static float F(uint64_t bits)
{
	uint32_t narrow = (uint32_t)bits;
	float value;
	memcpy(&value, &narrow, sizeof value);
	return value;
}

static double D(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

static uint64_t BF(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

static uint64_t BD(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

/* The operation with the host's rounding mode set; volatile, so that it is done then and there. */
#define ROUNDED_F(mode, expression) \
	do { \
		volatile float x = F(a), y = F(b), z = F(c), r; \
		fesetround(mode); \
		r = (expression); \
		fesetround(FE_TONEAREST); \
		(void)x, (void)y, (void)z; \
		return BF(r); \
	} while (0)
#define ROUNDED_D(mode, expression) \
	do { \
		volatile double x = D(a), y = D(b), z = D(c), r; \
		fesetround(mode); \
		r = (expression); \
		fesetround(FE_TONEAREST); \
		(void)x, (void)y, (void)z; \
		return BD(r); \
	} while (0)

static float ftz(float value)
{
	return fpclassify(value) == FP_SUBNORMAL ? copysignf(0, value) : value;
}

static float sat(float value)
{
	return isnan(value) || value <= 0 ? 0 : value >= 1 ? 1 : value;
}

/* Clamps as cvt does; NaN becomes 0. */
static int64_t clamp_signed(long double value, int bits)
{
	long double limit = ldexpl(1, bits - 1);
	if (isnan(value))
		return 0;
	if (value >= limit)
		return bits == 64 ? INT64_MAX : (int64_t)(limit - 1);
	return value < -limit ? (bits == 64 ? INT64_MIN : (int64_t)-limit) : (int64_t)value;
}

static uint64_t clamp_unsigned(long double value, int bits)
{
	long double limit = ldexpl(1, bits);
	if (isnan(value) || value < 0)
		return 0;
	return value >= limit ? (bits == 64 ? UINT64_MAX : (uint64_t)(limit - 1)) : (uint64_t)value;
}

/* A half that .ftz makes zero, or zero. */
static bool half_tiny(uint64_t bits)
{
	return (bits & 0x7c00) == 0;
}

static uint64_t half_flushed(uint64_t bits)
{
	return half_tiny(bits) ? bits & 0x8000 : bits;
}

#define SKIPPED 0xdead0000ull /* not what this case is about */

#define CASES(CASE) \
	CASE("add.s32", "www", a + b) \
	CASE("add.u16", "hhh", a + b) \
	CASE("add.s64", "lll", a + b) \
	CASE("add.sat.s32", "www", (uint64_t)clamp_signed((long double)((int64_t)(int32_t)a + (int32_t)b), 32)) \
	CASE("sub.u32", "www", a - b) \
	CASE("sub.s16", "hhh", a - b) \
	CASE("sub.sat.s32", "www", (uint64_t)clamp_signed((long double)((int64_t)(int32_t)a - (int32_t)b), 32)) \
	CASE("mul.lo.s32", "www", a *b) \
	CASE("mul.lo.u64", "lll", a *b) \
	CASE("mul.lo.u16", "hhh", a *b) \
	CASE("mul.hi.u32", "www", a *b >> 32) \
	CASE("mul.hi.s32", "www", (uint64_t)((int64_t)(int32_t)a * (int32_t)b >> 32)) \
	CASE("mul.hi.u64", "lll", (uint64_t)((u128)a * b >> 64)) \
	CASE("mul.hi.s64", "lll", (uint64_t)((s128)(int64_t)a * (int64_t)b >> 64)) \
	CASE("mul.hi.u16", "hhh", a *b >> 16) \
	CASE("mul.wide.u32", "lww", a *b) \
	CASE("mul.wide.s32", "lww", (uint64_t)((int64_t)(int32_t)a * (int32_t)b)) \
	CASE("mul.wide.s16", "whh", (uint64_t)((int32_t)(int16_t)a * (int16_t)b)) \
	CASE("mad.lo.s32", "wwww", a *b + c) \
	CASE("mad.hi.s32", "wwww", (uint64_t)((int64_t)(int32_t)a * (int32_t)b >> 32) + c) \
	CASE("mad.wide.s32", "lwwl", (uint64_t)((int64_t)(int32_t)a * (int32_t)b) + c) \
	CASE("mad.wide.u16", "whhw", a *b + c) \
	CASE("mul24.lo.u32", "www", (a & 0xffffff) * (b & 0xffffff)) \
	CASE("mul24.lo.s32", "www", (uint64_t)((int64_t)((int32_t)(a << 8) >> 8) * ((int32_t)(b << 8) >> 8))) \
	CASE("sad.s32", "wwww", c + (uint64_t)llabs((int64_t)(int32_t)a - (int32_t)b)) \
	CASE("sad.u32", "wwww", c + (a > b ? a - b : b - a)) \
	CASE("div.u32", "www", b ? a / b : UINT32_MAX) \
	CASE("div.s32", "www", (int32_t)b ? (uint64_t)((int64_t)(int32_t)a / (int32_t)b) : UINT32_MAX) \
	CASE("rem.u32", "www", b ? a % b : a) \
	CASE("rem.s32", "www", (int32_t)b ? (uint64_t)((int64_t)(int32_t)a % (int32_t)b) : a) \
	CASE("div.u64", "lll", b ? a / b : UINT64_MAX) \
	CASE("div.s64", "lll", b ? (uint64_t)((s128)(int64_t)a / (int64_t)b) : UINT64_MAX) \
	CASE("rem.s64", "lll", b ? (uint64_t)((s128)(int64_t)a % (int64_t)b) : a) \
	CASE("div.s16", "hhh", (int16_t)b ? (uint64_t)((int16_t)a / (int16_t)b) : UINT16_MAX) \
	CASE("rem.u16", "hhh", b ? a % b : a) \
	CASE("abs.s32", "ww", (int32_t)a < 0 ? -a : a) \
	CASE("neg.s64", "ll", -a) \
	CASE("min.s32", "www", (int32_t)a < (int32_t)b ? a : b) \
	CASE("max.u64", "lll", a > b ? a : b) \
	CASE("max.s16", "hhh", (int16_t)a > (int16_t)b ? a : b) \
	CASE("min.u16", "hhh", a < b ? a : b) \
	CASE("popc.b32", "ww", (uint64_t)__builtin_popcountll(a)) \
	CASE("popc.b64", "wl", (uint64_t)__builtin_popcountll(a)) \
	CASE("clz.b32", "ww", a ? (uint64_t)__builtin_clz((uint32_t)a) : 32) \
	CASE("clz.b64", "wl", a ? (uint64_t)__builtin_clzll(a) : 64) \
	CASE("bfind.u32", "ww", a ? 31 - (uint64_t)__builtin_clz((uint32_t)a) : UINT32_MAX) \
	CASE("brev.b32", "ww", reverse(a, 32)) \
	CASE("brev.b64", "ll", reverse(a, 64)) \
	CASE("bfe.u32", "wwww", extract(a, b, c, 32, false)) \
	CASE("bfe.s32", "wwww", extract(a, b, c, 32, true)) \
	CASE("bfe.s64", "llww", extract(a, b, c, 64, true)) \
	CASE("prmt.b32", "wwww", permute(a, b, c)) \
	CASE("and.b32", "www", a &b) \
	CASE("or.b64", "lll", a | b) \
	CASE("xor.b16", "hhh", a ^ b) \
	CASE("not.b32", "ww", ~a) \
	CASE("cnot.b32", "ww", a == 0) \
	CASE("shl.b32", "www", b < 32 ? a << b : 0) \
	CASE("shl.b16", "hhw", b < 16 ? a << b : 0) \
	CASE("shl.b64", "llw", b < 64 ? a << b : 0) \
	CASE("shr.u32", "www", b < 32 ? a >> b : 0) \
	CASE("shr.s32", "www", (uint64_t)((int32_t)a >> (b < 32 ? b : 31))) \
	CASE("shr.s64", "llw", (uint64_t)((int64_t)a >> (b < 64 ? b : 63))) \
	CASE("shf.l.wrap.b32", "wwww", ((b << 32 | a) << (c & 31)) >> 32) \
	CASE("shf.r.clamp.b32", "wwww", (b << 32 | a) >> (c > 32 ? 32 : c)) \
	CASE("setp.lt.s32", "pww", (int32_t)a < (int32_t)b) \
	CASE("setp.hi.u32", "pww", a > b) \
	CASE("setp.ge.s64", "pll", (int64_t)a >= (int64_t)b) \
	CASE("setp.ne.b16", "phh", a != b) \
	CASE("setp.lt.f32", "pff", F(a) < F(b)) \
	CASE("setp.neu.f32", "pff", !(F(a) == F(b))) \
	CASE("setp.ne.f32", "pff", F(a) < F(b) || F(a) > F(b)) \
	CASE("setp.ltu.f64", "pdd", !(D(a) >= D(b))) \
	CASE("setp.num.f64", "pdd", !isnan(D(a)) && !isnan(D(b))) \
	CASE("setp.eq.ftz.f32", "pff", ftz(F(a)) == ftz(F(b))) \
	CASE("set.gt.u32.f32", "wff", F(a) > F(b) ? UINT32_MAX : 0) \
	CASE("set.le.f32.s32", "fww", (int32_t)a <= (int32_t)b ? 0x3f800000 : 0) \
	CASE("slct.b32.s32", "wwww", (int32_t)c >= 0 ? a : b) \
	CASE("slct.f32.f32", "ffff", F(c) >= 0 ? a : b) \
	CASE("add.f32", "fff", BF(F(a) + F(b))) \
	CASE("add.ftz.f32", "fff", BF(ftz(ftz(F(a)) + ftz(F(b))))) \
	CASE("add.sat.f32", "fff", BF(sat(F(a) + F(b)))) \
	CASE("sub.f64", "ddd", BD(D(a) - D(b))) \
	CASE("mul.f32", "fff", BF(F(a) * F(b))) \
	CASE("mul.ftz.sat.f32", "fff", BF(sat(ftz(ftz(F(a)) * ftz(F(b)))))) \
	CASE("fma.rn.f32", "ffff", BF(fmaf(F(a), F(b), F(c)))) \
	CASE("fma.rn.f64", "dddd", BD(fma(D(a), D(b), D(c)))) \
	CASE("div.rn.f32", "fff", BF(F(a) / F(b))) \
	CASE("div.rn.f64", "ddd", BD(D(a) / D(b))) \
	CASE("rcp.rn.f32", "ff", BF(1 / F(a))) \
	CASE("sqrt.rn.f32", "ff", BF(sqrtf(F(a)))) \
	CASE("sqrt.rn.f64", "dd", BD(sqrt(D(a)))) \
	CASE("abs.f32", "ff", a & 0x7fffffff) \
	CASE("neg.f64", "dd", a ^ 1ull << 63) \
	CASE("min.f32", "fff", isnan(F(a)) ? b : isnan(F(b)) ? a : F(a) == F(b) ? a | b : F(a) < F(b) ? a : b) \
	CASE("max.f64", "ddd", isnan(D(a)) ? b : isnan(D(b)) ? a : D(a) == D(b) ? (a & b) : D(a) > D(b) ? a : b) \
	CASE("max.NaN.f32", "fff",                                                                                \
	     isnan(F(a)) || isnan(F(b)) ? 0x7fffffff : F(a) == F(b) ? (a & b) : F(a) > F(b) ? a : b)              \
	CASE("copysign.f32", "fff", (a & 0x80000000) | (b & 0x7fffffff)) \
	CASE("testp.subnormal.f32", "pf", fpclassify(F(a)) == FP_SUBNORMAL) \
	CASE("testp.normal.f32", "pf", isnormal(F(a)) || F(a) == 0) \
	CASE("testp.normal.f64", "pd", isnormal(D(a)) || D(a) == 0) \
	CASE("add.ftz.f16", "hhh", half_tiny(a) && half_tiny(b) ? (a & b & 0x8000) : SKIPPED) \
	CASE("mul.ftz.f16", "hhh", half_tiny(a) && half_tiny(b) ? ((a ^ b) & 0x8000) : SKIPPED) \
	CASE("neg.ftz.f16x2", "ww", half_flushed(a & 0xffff) ^ half_flushed(a >> 16) << 16 ^ 0x80008000) \
	CASE("setp.eq.ftz.f16", "phh", half_tiny(a) && half_tiny(b) ? 1 : SKIPPED) \
	CASE("testp.finite.f64", "pd", isfinite(D(a)) != 0) \
	CASE("cvt.s32.s8", "ww", (uint64_t)(int8_t)a) \
	CASE("cvt.u8.u32", "hw", a & 255) \
	CASE("cvt.s64.s32", "lw", (uint64_t)(int32_t)a) \
	CASE("cvt.u64.u16", "lh", a) \
	CASE("cvt.u32.u64", "wl", a) \
	CASE("cvt.sat.u8.s32", "hw", (int32_t)a < 0 ? 0 : (int32_t)a > 255 ? 255 : a) \
	CASE("cvt.sat.s32.u64", "wl", a > INT32_MAX ? INT32_MAX : a) \
	CASE("cvt.sat.s16.s64", "hl",                                                                             \
	     (uint64_t)((int64_t)a < INT16_MIN ? INT16_MIN : (int64_t)a > INT16_MAX ? INT16_MAX : (int64_t)a))    \
	CASE("cvt.rzi.s32.f64", "wd", isnan(D(a)) ? 0x80000000 : (uint64_t)clamp_signed(truncl(D(a)), 32)) \
	CASE("cvt.rni.u32.f64", "wd", isnan(D(a)) ? 0x80000000 : clamp_unsigned(rintl(D(a)), 32)) \
	CASE("cvt.rzi.s16.f64", "hd", isnan(D(a)) ? 0x8000 : (uint64_t)clamp_signed(truncl(D(a)), 16)) \
	CASE("cvt.rzi.u64.f32", "lf", isnan(F(a)) ? 1ull << 63 : clamp_unsigned(truncl(F(a)), 64)) \
	CASE("cvt.rzi.s32.f32", "wf", (uint64_t)clamp_signed(truncf(F(a)), 32)) \
	CASE("cvt.rni.u32.f32", "wf", clamp_unsigned(nearbyintf(F(a)), 32)) \
	CASE("cvt.rmi.s64.f32", "lf", isnan(F(a)) ? 1ull << 63 : (uint64_t)clamp_signed(floorf(F(a)), 64)) \
	CASE("cvt.rpi.u64.f64", "ld", isnan(D(a)) ? 1ull << 63 : clamp_unsigned(ceil(D(a)), 64)) \
	CASE("cvt.rzi.u8.f32", "hf", clamp_unsigned(truncf(F(a)), 8)) \
	CASE("cvt.rn.f32.s32", "fw", BF((float)(int32_t)a)) \
	CASE("cvt.rn.f32.u64", "fl", BF((float)a)) \
	CASE("cvt.rn.f64.s64", "dl", BD((double)(int64_t)a)) \
	CASE("cvt.rn.f64.u32", "dw", BD((double)(uint32_t)a)) \
	CASE("cvt.f64.f32", "df", BD((double)F(a))) \
	CASE("cvt.rn.f32.f64", "fd", BF((float)D(a))) \
	CASE("cvt.rni.f32.f32", "ff", BF(nearbyintf(F(a)))) \
	CASE("cvt.sat.f32.f32", "ff", BF(sat(F(a))))

static uint64_t reverse(uint64_t value, int bits)
{
	uint64_t r = 0;
	for (int i = 0; i < bits; i++)
		r |= (value >> i & 1) << (bits - 1 - i);
	return r;
}

/* bfe bit by bit, as the ISA's pseudo-code has it. */
static uint64_t extract(uint64_t value, uint64_t position, uint64_t length, int bits, bool is_signed)
{
	uint64_t r = 0, last = (uint64_t)bits - 1;
	position &= 255;
	length &= 255;
	uint64_t top = position + length - 1 < last ? position + length - 1 : last;
	uint64_t sign = is_signed && length ? value >> top & 1 : 0;
	for (uint64_t i = 0; i <= last; i++)
		r |= (i < length && position + i <= last ? value >> (position + i) & 1 : sign) << i;
	return r;
}

static uint64_t permute(uint64_t a, uint64_t b, uint64_t selector)
{
	uint64_t bytes = b << 32 | a, r = 0;
	for (int i = 0; i < 4; i++) {
		uint64_t s = selector >> (4 * i) & 15, byte = bytes >> (8 * (s & 7)) & 255;
		r |= (s & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * i);
	}
	return r;
}

/* What the n-th of CASES gives. */
static uint64_t evaluate(size_t n, uint64_t a, uint64_t b, uint64_t c)
{
	size_t at = 0;
	(void)a, (void)b, (void)c;
#define EVALUATE(mnemonic, types, expression) \
	if (n == at++) \
		return (uint64_t)(expression);
	CASES(EVALUATE)
	abort();
}

static uint64_t add_rz(uint64_t a, uint64_t b, uint64_t c) { ROUNDED_F(FE_TOWARDZERO, x + y); }
static uint64_t mul_rm(uint64_t a, uint64_t b, uint64_t c) { ROUNDED_F(FE_DOWNWARD, x * y); }
static uint64_t sub_rp(uint64_t a, uint64_t b, uint64_t c) { ROUNDED_D(FE_UPWARD, x - y); }
static uint64_t div_rp(uint64_t a, uint64_t b, uint64_t c) { ROUNDED_F(FE_UPWARD, x / y); }
static uint64_t fma_rz(uint64_t a, uint64_t b, uint64_t c) { ROUNDED_D(FE_TOWARDZERO, fma(x, y, z)); }
static uint64_t sqrt_rm(uint64_t a, uint64_t b, uint64_t c) { ROUNDED_F(FE_DOWNWARD, sqrtf(x)); }
static uint64_t narrow_rz(uint64_t a, uint64_t b, uint64_t c)
{
	(void)b, (void)c;
	volatile double x = D(a);
	fesetround(FE_TOWARDZERO);
	volatile float r = (float)x;
	fesetround(FE_TONEAREST);
	return BF(r);
}

#define AS_ENTRY(mnemonic, types, expression) { mnemonic, types, NULL },
static const struct instruction instructions[] = {
	CASES(AS_ENTRY)
	{ "add.rz.f32", "fff", add_rz },
	{ "mul.rm.f32", "fff", mul_rm },
	{ "sub.rp.f64", "ddd", sub_rp },
	{ "div.rp.f32", "fff", div_rp },
	{ "fma.rz.f64", "dddd", fma_rz },
	{ "sqrt.rm.f32", "ff", sqrt_rm },
	{ "cvt.rz.f32.f64", "fd", narrow_rz },
};

/* ---- values at the edges of each type */
static const uint64_t integer_edges[] = { 0,
					  1,
					  2,
					  3,
					  7,
					  31,
					  32,
					  33,
					  63,
					  64,
					  100,
					  0x7f,
					  0x80,
					  0xff,
					  0x7fff,
					  0x8000,
					  0x8001,
					  0x0400,
					  0x83ff,
					  0xffff,
					  0x10000,
					  0x12345678,
					  0x7fffffff,
					  0x80000000,
					  0x80000001,
					  0xfffffffe,
					  0xffffffff,
					  0x100000000,
					  0x123456789abcdef0,
					  0x7fffffffffffffff,
					  0x8000000000000000,
					  0xfffffffffffffff0,
					  0xffffffffffffffff };
static const uint32_t float_edges[] = { 0,	    0x80000000, 1,	    0x80000001, 0x007fffff, 0x807fffff,
					0x00800000, 0x3f800000, 0xbf800000, 0x3f000000, 0x3fc00000, 0x40200000,
					0xc0200000, 0x40490fdb, 0x42fe0000, 0x437f8000, 0x43800000, 0x4b7fffff,
					0x4effffff, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0xdf000000,
					0x5f800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
					0x33800000, 0x3f7fffff };
static const uint64_t double_edges[] = { 0,
					 1ull << 63,
					 1,
					 0x000fffffffffffff,
					 0x0010000000000000,
					 0x3ff0000000000000,
					 0xbff0000000000000,
					 0x3fe0000000000000,
					 0x3ff8000000000000,
					 0xc004000000000000,
					 0x400921fb54442d18,
					 0x41dfffffffc00000,
					 0x41e0000000000000,
					 0xc1e0000000000000,
					 0x41f0000000000000,
					 0x43e0000000000000,
					 0xc3e0000000000000,
					 0x43f0000000000000,
					 0x47efffffe0000000,
					 0x380ffffffffffffe,
					 0x36a0000000000000,
					 0x7fefffffffffffff,
					 0x7ff0000000000000,
					 0xfff0000000000000,
					 0x7ff8000000000000,
					 0x3ff0000000000001,
					 0x3fefffffffffffff,
					 0x3cb0000000000000 };

static size_t edges_of(char type, uint64_t *values)
{
	size_t count = 0;
	if (type == 'f')
		for (; count < sizeof float_edges / sizeof *float_edges; count++)
			values[count] = float_edges[count];
	else if (type == 'd')
		for (; count < sizeof double_edges / sizeof *double_edges; count++)
			values[count] = double_edges[count];
	else
		for (; count < sizeof integer_edges / sizeof *integer_edges; count++)
			values[count] = integer_edges[count];
	return count;
}

static uint64_t mask_of(char type)
{
	switch (type) {
	case 'p': return 1;
	case 'h': return 0xffff;
	case 'w': case 'f': return 0xffffffff;
	default: return UINT64_MAX;
	}
}

/* All pairs of a and b, and c of the third source's edges in turn, so that all its values meet many pairs. */
static uint32_t make_inputs(const struct instruction *instruction, uint64_t *inputs)
{
	uint64_t values[3][64];
	size_t counts[3] = { 1, 1, 1 };
	uint32_t count = 0, sources = (uint32_t)strlen(instruction->types) - 1;
	for (uint32_t n = 0; n < sources; n++)
		counts[n] = edges_of(instruction->types[n + 1], values[n]);
	for (size_t i = 0; i < counts[0]; i++)
		for (size_t j = 0; j < counts[1]; j++)
			for (size_t k = 0; k < (counts[2] < 4 ? counts[2] : 4) && count < VALUES_MAX; k++, count++)
				for (uint32_t n = 0; n < 3; n++) {
					size_t at = n == 0 ? i : n == 1 ? j : (i * 7 + j * 3 + k * 5) % counts[2];
					inputs[count * 3 + n] =
						n < sources ? values[n][at] & mask_of(instruction->types[n + 1]) : 0;
				}
	return count;
}

static const char *register_of(char type)
{
	switch (type) {
	case 'h': return "%h";
	case 'w': case 'f': return "%w";
	case 'p': return "%p";
	default: return "%l";
	}
}

static const char *bits_of(char type)
{
	return type == 'h' ? "b16" : type == 'w' || type == 'f' ? "b32" : "b64";
}

/* The kernel: thread i takes inputs[3i...] and writes out[i]; "guarded": only odd threads do, the others keep the
 * sentinel. */
static void write_kernel(const struct instruction *instruction, bool guarded, char *text, size_t size)
{
	const char *types = instruction->types;
	int used = snprintf(text, size,
			    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
			    ".reg .pred %%p<9>; .reg .b16 %%h<9>; .reg .b32 %%w<9>; .reg .b64 %%l<9>; .reg .b32 "
			    "%%i<9>; .reg .b64 %%a<9>;\n"
			    ".reg .pred %%odd, %%end;\n"
			    "ld.param.u64 %%a1, [in]; ld.param.u64 %%a2, [out]; ld.param.u32 %%i1, [n];\n"
			    "mov.u32 %%i2, %%tid.x; mov.u32 %%i3, %%ctaid.x; mov.u32 %%i4, %%ntid.x; mad.lo.u32 %%i5, "
			    "%%i3, %%i4, %%i2;\n"
			    "setp.ge.u32 %%end, %%i5, %%i1; @%%end bra DONE;\n"
			    "and.b32 %%i6, %%i5, 1; setp.ne.u32 %%odd, %%i6, 0;\n"
			    "mul.wide.u32 %%a3, %%i5, 24; add.u64 %%a3, %%a3, %%a1; mul.wide.u32 %%a4, %%i5, 8; "
			    "add.u64 %%a4, %%a4, %%a2;\n"
			    "mov.b64 %%l0, 0x5a5a5a5a5a5a5a5a; mov.b32 %%w0, 0x5a5a5a5a; mov.b16 %%h0, 0x5a5a; "
			    "setp.ne.u32 %%p0, 0, 0;\n");
	for (size_t n = 1; types[n]; n++)
		used += snprintf(text + used, size - (size_t)used, "ld.global.%s %s%zu, [%%a3+%zu];\n",
				 bits_of(types[n]), register_of(types[n]), n, (n - 1) * 8);
	used += snprintf(text + used, size - (size_t)used, "%s%s %s0", guarded ? "@%odd " : "", instruction->mnemonic,
			 register_of(types[0]));
	for (size_t n = 1; types[n]; n++)
		used += snprintf(text + used, size - (size_t)used, ", %s%zu", register_of(types[n]), n);
	used += snprintf(text + used, size - (size_t)used, ";\n");
	if (types[0] == 'p')
		used += snprintf(text + used, size - (size_t)used,
				 "selp.b64 %%l0, 1, 0, %%p0; st.global.b64 [%%a4], %%l0;\n");
	else
		used += snprintf(text + used, size - (size_t)used, "st.global.%s [%%a4], %s0;\n", bits_of(types[0]),
				 register_of(types[0]));
	snprintf(text + used, size - (size_t)used, "DONE: ret;\n}\n");
}

static bool same(char type, uint64_t got, uint64_t want)
{
	got &= mask_of(type);
	want &= mask_of(type);
	if (type == 'f' && isnan(F(want)))
		return isnan(F(got));
	if (type == 'd' && isnan(D(want)))
		return isnan(D(got));
	return got == want;
}

static void check_instruction(size_t number, bool guarded)
{
	const struct instruction *instruction = &instructions[number];
	static char text[8192];
	uint64_t *inputs = device_alloc(VALUES_MAX * 3 * sizeof *inputs), *out = device_alloc(VALUES_MAX * sizeof *out);
	uint32_t count = make_inputs(instruction, inputs);
	struct {
		uint64_t *in, *out;
		uint32_t n;
	} parameters = { inputs, out, count };
	write_kernel(instruction, guarded, text, sizeof text);
	ck_assert_int_eq(run_ptx(text, (count + 127) / 128, 128, &parameters), CUDA_SUCCESS);
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t *in = inputs + 3 * i;
		char type = instruction->types[0];
		bool skipped = guarded && !(i & 1);
		uint64_t want = skipped			? (type == 'p' ? 0 : SENTINEL)
				: instruction->expected ? instruction->expected(in[0], in[1], in[2])
							: evaluate(number, in[0], in[1], in[2]);
		if (want == SKIPPED)
			continue;
		ck_assert_msg(same(type, out[i], want), "%s%s(%llx, %llx, %llx): got %llx, want %llx",
			      guarded ? "guarded " : "", instruction->mnemonic, (unsigned long long)in[0],
			      (unsigned long long)in[1], (unsigned long long)in[2],
			      (unsigned long long)(out[i] & mask_of(type)), (unsigned long long)(want & mask_of(type)));
	}
	device_reset();
}

START_TEST(edge_values_give_what_the_host_gives)
{
	use_isa(_i);
	for (size_t n = 0; n < sizeof instructions / sizeof *instructions; n++) {
		check_instruction(n, false);
		check_instruction(n, true);
	}
}
END_TEST

int main(void)
{
	TCase *tests = test_case("ptx arithmetic");
	tcase_add_loop_test(tests, edge_values_give_what_the_host_gives, 0, ISAS);
	return run_tests();
}
