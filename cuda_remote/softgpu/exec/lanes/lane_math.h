/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Integer and bit operations and conversions of one lane, for the expressions in the tables of ops/. They are inlined
 * into loops over 32 lanes that the compiler vectorises, so they select values rather than branch.
 */
#ifndef SOFTGPU_EXEC_LANE_MATH_H
#define SOFTGPU_EXEC_LANE_MATH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef __int128 wide_s128;
__extension__ typedef unsigned __int128 wide_u128;

/* ---- integer */
static inline int32_t sat_s32(int64_t a)
{
	return a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : (int32_t)a;
}

static inline uint16_t mulhi_u16(uint16_t a, uint16_t b)
{
	return (uint16_t)((uint32_t)a * b >> 16);
}

static inline int16_t mulhi_s16(int16_t a, int16_t b)
{
	return (int16_t)((int32_t)a * b >> 16);
}

static inline uint32_t mulhi_u32(uint32_t a, uint32_t b)
{
	return (uint32_t)((uint64_t)a * b >> 32);
}

static inline int32_t mulhi_s32(int32_t a, int32_t b)
{
	return (int32_t)((int64_t)a * b >> 32);
}

static inline uint64_t mulhi_u64(uint64_t a, uint64_t b)
{
	return (uint64_t)((wide_u128)a * b >> 64);
}

static inline int64_t mulhi_s64(int64_t a, int64_t b)
{
	return (int64_t)((wide_s128)a * b >> 64);
}

static inline uint64_t mul24_u32(uint32_t a, uint32_t b)
{
	return (uint64_t)(a & 0xffffff) * (b & 0xffffff);
}

static inline int64_t mul24_s32(int32_t a, int32_t b)
{
	return (int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8);
}

/* Division by zero is undefined in PTX; the hardware gives all ones, and the dividend as the remainder. */
#define DEFINE_DIVIDE(bits)                                                                        \
	static inline uint##bits##_t div_u##bits(uint##bits##_t a, uint##bits##_t b)               \
	{                                                                                          \
		return b == 0 ? (uint##bits##_t)-1 : (uint##bits##_t)(a / (b == 0 ? 1 : b));       \
	}                                                                                          \
	static inline uint##bits##_t rem_u##bits(uint##bits##_t a, uint##bits##_t b)               \
	{                                                                                          \
		return b == 0 ? a : (uint##bits##_t)(a % (b == 0 ? 1 : b));                        \
	}                                                                                          \
	static inline int##bits##_t div_s##bits(int##bits##_t a, int##bits##_t b)                  \
	{                                                                                          \
		int##bits##_t divisor = b == 0 || b == -1 ? 1 : b;                                 \
		int##bits##_t negated = (int##bits##_t)((uint##bits##_t)0 - (uint##bits##_t)a);    \
		int##bits##_t quotient = (int##bits##_t)(a / divisor);                             \
		return b == 0 ? -1 : b == -1 ? negated : quotient;                                 \
	}                                                                                          \
	static inline int##bits##_t rem_s##bits(int##bits##_t a, int##bits##_t b)                  \
	{                                                                                          \
		int##bits##_t divisor = b == 0 || b == -1 ? 1 : b;                                 \
		return b == 0 ? a : (int##bits##_t)(a % divisor);                                  \
	}
DEFINE_DIVIDE(16)
DEFINE_DIVIDE(64)

/* 32-bit operands are exact in a double. If their quotient is not an integer, its distance to the next integer is
 * larger than its rounding error. */
static inline uint32_t div_u32(uint32_t a, uint32_t b)
{
	double quotient = (double)a / (double)(b == 0 ? 1 : b);
	return b == 0 ? UINT32_MAX : (uint32_t)quotient;
}

static inline uint32_t rem_u32(uint32_t a, uint32_t b)
{
	return b == 0 ? a : a - div_u32(a, b) * b;
}

static inline int32_t div_s32(int32_t a, int32_t b)
{
	double quotient = (double)a / (double)(b == 0 ? 1 : b);
	return b == 0 ? -1 : (int32_t)(uint32_t)(int64_t)quotient;
}

static inline int32_t rem_s32(int32_t a, int32_t b)
{
	return b == 0 ? a : (int32_t)((uint32_t)a - (uint32_t)div_s32(a, b) * (uint32_t)b);
}

static inline uint32_t clz_u32(uint32_t a)
{
	return a ? (uint32_t)__builtin_clz(a) : 32;
}

static inline uint32_t clz_u64(uint64_t a)
{
	return a ? (uint32_t)__builtin_clzll(a) : 64;
}

static inline uint32_t bfind_u32(uint32_t a)
{
	return 31 - clz_u32(a);
}

static inline uint32_t bfind_s32(int32_t a)
{
	return bfind_u32((uint32_t)(a ^ (a >> 31)));
}

static inline uint32_t bfind_u64(uint64_t a)
{
	return 63 - clz_u64(a);
}

static inline uint32_t bfind_s64(int64_t a)
{
	return bfind_u64((uint64_t)(a ^ (a >> 63)));
}

static inline uint32_t bfind_shift_u32(uint32_t a)
{
	return a ? clz_u32(a) : UINT32_MAX;
}

static inline uint32_t bfind_shift_s32(int32_t a)
{
	return bfind_shift_u32((uint32_t)(a ^ (a >> 31)));
}

static inline uint32_t bfind_shift_u64(uint64_t a)
{
	return a ? clz_u64(a) : UINT32_MAX;
}

static inline uint32_t bfind_shift_s64(int64_t a)
{
	return bfind_shift_u64((uint64_t)(a ^ (a >> 63)));
}

/* The n-th set bit of mask from bit base on: upward if n > 0, downward if n < 0. If n is 0: base, if that bit is set.
 * UINT32_MAX: there is no such bit, or base is 32 or more. */
static inline uint32_t fns_u32(uint32_t mask, uint32_t base, int32_t n)
{
	int step = n < 0 ? -1 : 1;
	int64_t left = n < 0 ? -(int64_t)n : n;
	if (base >= 32)
		return UINT32_MAX;
	if (n == 0)
		return mask >> base & 1 ? base : UINT32_MAX;
	for (int at = (int)base; at >= 0 && at < 32; at += step)
		if ((mask >> at & 1) && --left == 0)
			return (uint32_t)at;
	return UINT32_MAX;
}

static inline uint32_t brev_u32(uint32_t a)
{
	a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
	a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
	a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
	return a >> 24 | (a >> 8 & 0xff00) | (a & 0xff00) << 8 | a << 24;
}

static inline uint64_t brev_u64(uint64_t a)
{
	return (uint64_t)brev_u32((uint32_t)a) << 32 | brev_u32((uint32_t)(a >> 32));
}

/* C does not define a shift by the operand's width or more; PTX clamps the distance to the width. */
#define DEFINE_SHIFTS(bits)                                                                        \
	static inline uint##bits##_t shl_u##bits(uint##bits##_t a, uint32_t n)                     \
	{                                                                                          \
		return (uint##bits##_t)(n < bits ? (uint64_t)a << (n & (bits - 1)) : 0);           \
	}                                                                                          \
	static inline uint##bits##_t shr_u##bits(uint##bits##_t a, uint32_t n)                     \
	{                                                                                          \
		return (uint##bits##_t)(n < bits ? a >> (n & (bits - 1)) : 0);                     \
	}                                                                                          \
	static inline int##bits##_t shr_s##bits(int##bits##_t a, uint32_t n)                       \
	{                                                                                          \
		return (int##bits##_t)(a >> (n < bits ? n : bits - 1));                            \
	}
DEFINE_SHIFTS(16)
DEFINE_SHIFTS(64)

static inline uint32_t shl_u32(uint32_t a, uint32_t n)
{
	return n < 32 ? a << (n & 31) : 0;
}

static inline uint32_t shr_u32(uint32_t a, uint32_t n)
{
	return n < 32 ? a >> (n & 31) : 0;
}

static inline int32_t shr_s32(int32_t a, uint32_t n)
{
	return a >> (n < 32 ? n : 31);
}

/* n <= 32 */
static inline uint32_t shf_l(uint32_t a, uint32_t b, uint32_t n)
{
	return n == 0 ? b : shl_u32(b, n) | a >> ((32 - n) & 31);
}

static inline uint32_t shf_r(uint32_t a, uint32_t b, uint32_t n)
{
	return n == 0 ? a : shr_u32(a, n) | b << ((32 - n) & 31);
}

static inline uint32_t low_bits(uint32_t n)
{
	return n < 32 ? (1u << (n & 31)) - 1 : UINT32_MAX;
}

static inline uint64_t low_bits64(uint32_t n)
{
	return n < 64 ? (1ull << (n & 63)) - 1 : UINT64_MAX;
}

static inline uint32_t bfe_u32(uint32_t a, uint32_t position, uint32_t length)
{
	return shr_u32(a, position) & low_bits(length);
}

static inline uint64_t bfe_u64(uint64_t a, uint32_t position, uint32_t length)
{
	return shr_u64(a, position) & low_bits64(length);
}

static inline int32_t bfe_s32(int32_t a, uint32_t position, uint32_t length)
{
	int32_t field = shr_s32(a, position);
	uint32_t unused = length == 0 || position + length >= 32 ? 0 : 32 - length;
	int32_t extended = (int32_t)((uint32_t)field << unused) >> unused;
	return length == 0 ? 0 : extended;
}

static inline int64_t bfe_s64(int64_t a, uint32_t position, uint32_t length)
{
	int64_t field = shr_s64(a, position);
	uint32_t unused = length == 0 || position + length >= 64 ? 0 : 64 - length;
	int64_t extended = (int64_t)((uint64_t)field << unused) >> unused;
	return length == 0 ? 0 : extended;
}

static inline uint32_t bfi_u32(uint32_t a, uint32_t b, uint32_t position, uint32_t length)
{
	uint32_t mask = shl_u32(low_bits(length), position);
	return (b & ~mask) | (shl_u32(a, position) & mask);
}

static inline uint64_t bfi_u64(uint64_t a, uint64_t b, uint32_t position, uint32_t length)
{
	uint64_t mask = shl_u64(low_bits64(length), position);
	return (b & ~mask) | (shl_u64(a, position) & mask);
}

static inline uint32_t szext_u32(uint32_t a, uint32_t n)
{
	return a & low_bits(n);
}

static inline int32_t szext_s32(int32_t a, uint32_t n)
{
	return bfe_s32(a, 0, n > 32 ? 32 : n);
}

static inline uint32_t bmsk_clamp(uint32_t position, uint32_t length)
{
	return shl_u32(low_bits(length), position);
}

static inline uint32_t lop3_u32(uint32_t a, uint32_t b, uint32_t c, uint32_t lut)
{
	uint32_t r = 0;
	r |= ~a & ~b & ~c & -(lut & 1);
	r |= ~a & ~b & c & -(lut >> 1 & 1);
	r |= ~a & b & ~c & -(lut >> 2 & 1);
	r |= ~a & b & c & -(lut >> 3 & 1);
	r |= a & ~b & ~c & -(lut >> 4 & 1);
	r |= a & ~b & c & -(lut >> 5 & 1);
	r |= a & b & ~c & -(lut >> 6 & 1);
	r |= a & b & c & -(lut >> 7 & 1);
	return r;
}

static inline uint32_t prmt_byte(uint64_t bytes, uint32_t selector)
{
	uint32_t byte = (uint32_t)(bytes >> ((selector & 7) * 8)) & 255;
	uint32_t sign = byte & 128 ? 255 : 0;
	return selector & 8 ? sign : byte;
}

static inline uint32_t prmt_u32(uint32_t a, uint32_t b, uint32_t selector)
{
	uint64_t bytes = (uint64_t)b << 32 | a;
	return prmt_byte(bytes, selector) | prmt_byte(bytes, selector >> 4) << 8 |
	       prmt_byte(bytes, selector >> 8) << 16 | prmt_byte(bytes, selector >> 12) << 24;
}

/* The selector of each mode of prmt. n: the low two bits of the operand. */
#define DEFINE_PRMT_MODE(name, s0, s1, s2, s3)                        \
	static inline uint32_t prmt_##name(uint32_t n)                \
	{                                                             \
		return n == 0 ? s0 : n == 1 ? s1 : n == 2 ? s2 : s3;  \
	}
DEFINE_PRMT_MODE(f4e, 0x3210, 0x4321, 0x5432, 0x6543)
DEFINE_PRMT_MODE(b4e, 0x5670, 0x6701, 0x7012, 0x0123)
DEFINE_PRMT_MODE(rc8, 0x0000, 0x1111, 0x2222, 0x3333)
DEFINE_PRMT_MODE(ecl, 0x3210, 0x3211, 0x3222, 0x3333)
DEFINE_PRMT_MODE(ecr, 0x0000, 0x1110, 0x2210, 0x3210)
DEFINE_PRMT_MODE(rc16, 0x1010, 0x3232, 0x1010, 0x3232)

#define BYTE_u32(a, n) ((int32_t)((a) >> (n) * 8 & 255))
#define BYTE_s32(a, n) ((int32_t)(int8_t)((a) >> (n) * 8))
#define HALF_u32(a, n) ((int32_t)((a) >> (n) * 16 & 0xffff))
#define HALF_s32(a, n) ((int32_t)(int16_t)((a) >> (n) * 16))
#define DEFINE_DOT(atype, btype)                                                                        \
	static inline uint32_t dp4a_##atype##_##btype(uint32_t a, uint32_t b)                           \
	{                                                                                               \
		return (uint32_t)(BYTE_##atype(a, 0) * BYTE_##btype(b, 0) + BYTE_##atype(a, 1) * BYTE_##btype(b, 1) + \
				  BYTE_##atype(a, 2) * BYTE_##btype(b, 2) + BYTE_##atype(a, 3) * BYTE_##btype(b, 3)); \
	}                                                                                               \
	static inline uint32_t dp2a_##atype##_##btype(uint32_t a, uint32_t b)                           \
	{                                                                                               \
		return (uint32_t)(HALF_##atype(a, 0) * BYTE_##btype(b, 0) + HALF_##atype(a, 1) * BYTE_##btype(b, 1)); \
	}
DEFINE_DOT(u32, u32)
DEFINE_DOT(u32, s32)
DEFINE_DOT(s32, u32)
DEFINE_DOT(s32, s32)

/* ---- two integers of 16 bits in a register */
#define DEFINE_PAIR(name, type)                                                                     \
	static inline uint32_t min_##name(uint32_t a, uint32_t b)                                   \
	{                                                                                           \
		type a0 = (type)a, a1 = (type)(a >> 16), b0 = (type)b, b1 = (type)(b >> 16);        \
		return (uint16_t)(a0 < b0 ? a0 : b0) | (uint32_t)(uint16_t)(a1 < b1 ? a1 : b1) << 16; \
	}                                                                                           \
	static inline uint32_t max_##name(uint32_t a, uint32_t b)                                   \
	{                                                                                           \
		type a0 = (type)a, a1 = (type)(a >> 16), b0 = (type)b, b1 = (type)(b >> 16);        \
		return (uint16_t)(a0 > b0 ? a0 : b0) | (uint32_t)(uint16_t)(a1 > b1 ? a1 : b1) << 16; \
	}
DEFINE_PAIR(u16x2, uint16_t)
DEFINE_PAIR(s16x2, int16_t)

/* ---- integer to integer, saturating */
#define DEFINE_SATURATE(name, type, low, high)                                                              \
	static inline type sat_##name##_of_u64(uint64_t a)                                                  \
	{                                                                                                   \
		uint64_t clamped = a < (uint64_t)(high) ? a : (uint64_t)(high);                             \
		return (type)clamped;                                                                       \
	}                                                                                                   \
	static inline type sat_##name##_of_s64(int64_t a)                                                   \
	{                                                                                                   \
		int64_t raised = a > (int64_t)(low) ? a : (int64_t)(low);                                   \
		int64_t limit = (uint64_t)(high) > INT64_MAX ? INT64_MAX : (int64_t)(high);                 \
		return (type)(raised < limit ? raised : limit);                                             \
	}
DEFINE_SATURATE(u8, uint8_t, 0, UINT8_MAX)
DEFINE_SATURATE(s8, int8_t, INT8_MIN, INT8_MAX)
DEFINE_SATURATE(u16, uint16_t, 0, UINT16_MAX)
DEFINE_SATURATE(s16, int16_t, INT16_MIN, INT16_MAX)
DEFINE_SATURATE(u32, uint32_t, 0, UINT32_MAX)
DEFINE_SATURATE(s32, int32_t, INT32_MIN, INT32_MAX)
DEFINE_SATURATE(u64, uint64_t, 0, UINT64_MAX)
DEFINE_SATURATE(s64, int64_t, INT64_MIN, INT64_MAX)

/* cvt.pack: a and b, clamped to low … high, a in the bits above b. The table's expression adds c above them. */
static inline uint32_t clamp_bits(int32_t a, int32_t low, int32_t high)
{
	return (uint32_t)(a < low ? low : a > high ? high : a) & (uint32_t)(high - low);
}

static inline uint32_t pack_clamped(int32_t a, int32_t b, int32_t low, int32_t high, uint32_t bits)
{
	return clamp_bits(a, low, high) << bits | clamp_bits(b, low, high);
}

#endif
