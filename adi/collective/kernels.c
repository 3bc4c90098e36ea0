/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of the predefined reduction operations, made from tables: which operations a kind of element has (MPI 5.0, section
 * 6.9.2), and the expression of each operation. Integers are added and multiplied as unsigned ones, whose overflow is defined.
 * Beyond the standard, MPI_CHAR counts as a signed integer of one byte, and floating-point numbers have logical operations:
 * programs rely on it.
 */
#include "adi/collective/kernels.h"

#include <complex.h>
#include <string.h>

/* gcc vectorises loops of unknown length only at -O3. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3")
#endif

#define LOOP(name, type, expression)                                                                 \
	static void name(const void *in, void *inout, size_t n)                                      \
	{                                                                                            \
		const type *restrict from = in;                                                      \
		type *restrict to = inout;                                                           \
		for (size_t i = 0; i < n; i++) {                                                     \
			const type a = from[i], b = to[i];                                           \
			to[i] = (type)(expression);                                                  \
		}                                                                                    \
	}

typedef __int128 int128_t;
typedef unsigned __int128 uint128_t;

/* ---- loops ---- */

#define ORDER_LOOPS(name, type)                                                                      \
	LOOP(min_##name, type, a < b ? a : b)                                                        \
	LOOP(max_##name, type, a > b ? a : b)
#define SUM_LOOPS(name, type)                                                                        \
	LOOP(sum_##name, type, a + b)                                                                \
	LOOP(prod_##name, type, a * b)
#define LOGICAL_LOOPS(name, type)                                                                    \
	LOOP(land_##name, type, (a != 0) & (b != 0))                                                 \
	LOOP(lor_##name, type, (a != 0) | (b != 0))                                                  \
	LOOP(lxor_##name, type, (a != 0) ^ (b != 0))
#define BIT_LOOPS(name, type)                                                                        \
	LOOP(band_##name, type, a & b)                                                               \
	LOOP(bor_##name, type, a | b)                                                                \
	LOOP(bxor_##name, type, a ^ b)
/* 1u: the product of two uint16_t would be an int, which can overflow. */
#define SIGNED_LOOPS(bits)                                                                           \
	ORDER_LOOPS(int##bits, int##bits##_t)                                                        \
	LOOP(sum_uint##bits, uint##bits##_t, a + b)                                                  \
	LOOP(prod_uint##bits, uint##bits##_t, 1u * a * b)                                            \
	LOGICAL_LOOPS(uint##bits, uint##bits##_t)                                                    \
	BIT_LOOPS(uint##bits, uint##bits##_t)
#define INTEGER_LOOPS(bits)                                                                          \
	SIGNED_LOOPS(bits)                                                                           \
	ORDER_LOOPS(uint##bits, uint##bits##_t)
#define FLOAT_LOOPS(name, type)                                                                      \
	ORDER_LOOPS(name, type)                                                                      \
	SUM_LOOPS(name, type)                                                                        \
	LOGICAL_LOOPS(name, type)

INTEGER_LOOPS(8)
INTEGER_LOOPS(16)
INTEGER_LOOPS(32)
INTEGER_LOOPS(64)
SIGNED_LOOPS(128)
FLOAT_LOOPS(float, float)
FLOAT_LOOPS(double, double)
FLOAT_LOOPS(long_double, long double)
SUM_LOOPS(float_complex, float complex)
SUM_LOOPS(double_complex, double complex)
SUM_LOOPS(long_double_complex, long double complex)

#ifdef __FLT16_MAX__
FLOAT_LOOPS(float16, _Float16)
SUM_LOOPS(float16_complex, _Complex _Float16)
#define FLOAT16_ENTRIES(op) [ADI_BASIC_FLOAT16] = op##_float16,
#define FLOAT16_COMPLEX_ENTRIES(op) [ADI_BASIC_FLOAT16_COMPLEX] = op##_float16_complex,
#else
#define FLOAT16_ENTRIES(op)
#define FLOAT16_COMPLEX_ENTRIES(op)
#endif
#ifdef __SIZEOF_FLOAT128__
typedef _Complex float float128_complex __attribute__((mode(TC)));
FLOAT_LOOPS(float128, __float128)
SUM_LOOPS(float128_complex, float128_complex)
#define FLOAT128_ENTRIES(op) [ADI_BASIC_FLOAT128] = op##_float128,
#define FLOAT128_COMPLEX_ENTRIES(op) [ADI_BASIC_FLOAT128_COMPLEX] = op##_float128_complex,
#else
#define FLOAT128_ENTRIES(op)
#define FLOAT128_COMPLEX_ENTRIES(op)
#endif

/* The lower index wins if values are equal. */
#define PAIR_LOOPS(name, value_type, index_type)                                                     \
	struct pair_##name { value_type value; index_type index; };                                  \
	LOOP(minloc_##name, struct pair_##name,                                                      \
	     a.value < b.value || (a.value == b.value && a.index < b.index) ? a : b)                 \
	LOOP(maxloc_##name, struct pair_##name,                                                      \
	     a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b)

PAIR_LOOPS(float_int, float, int)
PAIR_LOOPS(double_int, double, int)
PAIR_LOOPS(long_int, long, int)
PAIR_LOOPS(2int, int, int)
PAIR_LOOPS(short_int, short, int)
PAIR_LOOPS(long_double_int, long double, int)
PAIR_LOOPS(2float, float, float)
PAIR_LOOPS(2double, double, double)

#define COPY_LOOP(bytes)                                                                             \
	static void replace_##bytes(const void *in, void *inout, size_t n)                           \
	{                                                                                            \
		memcpy(inout, in, n * (bytes));                                                      \
	}
COPY_LOOP(1)
COPY_LOOP(2)
COPY_LOOP(4)
COPY_LOOP(8)
COPY_LOOP(16)
COPY_LOOP(32)

static void nothing(const void *in, void *inout, size_t n)
{
	(void)in, (void)inout, (void)n;
}

/* ---- which operation has which kinds ---- */

#define UNSIGNED_ENTRIES(op)                                                                         \
	[ADI_BASIC_UINT8] = op##_uint8, [ADI_BASIC_UINT16] = op##_uint16, [ADI_BASIC_UINT32] = op##_uint32, \
	[ADI_BASIC_UINT64] = op##_uint64,
#define SIGNED_ENTRIES(op)                                                                           \
	[ADI_BASIC_INT8] = op##_int8, [ADI_BASIC_INT16] = op##_int16, [ADI_BASIC_INT32] = op##_int32, \
	[ADI_BASIC_INT64] = op##_int64, [ADI_BASIC_INT128] = op##_int128, [ADI_BASIC_CHAR] = op##_int8,
/* Operations whose result has the same bits for signed integers. */
#define SIGNED_AS_UNSIGNED_ENTRIES(op)                                                               \
	[ADI_BASIC_INT8] = op##_uint8, [ADI_BASIC_INT16] = op##_uint16, [ADI_BASIC_INT32] = op##_uint32, \
	[ADI_BASIC_INT64] = op##_uint64, [ADI_BASIC_INT128] = op##_uint128, [ADI_BASIC_CHAR] = op##_uint8,
#define FLOAT_ENTRIES(op)                                                                            \
	[ADI_BASIC_FLOAT] = op##_float, [ADI_BASIC_DOUBLE] = op##_double, [ADI_BASIC_LONG_DOUBLE] = op##_long_double, \
	FLOAT16_ENTRIES(op) FLOAT128_ENTRIES(op)
#define COMPLEX_ENTRIES(op)                                                                          \
	[ADI_BASIC_FLOAT_COMPLEX] = op##_float_complex, [ADI_BASIC_DOUBLE_COMPLEX] = op##_double_complex, \
	[ADI_BASIC_LONG_DOUBLE_COMPLEX] = op##_long_double_complex, \
	FLOAT16_COMPLEX_ENTRIES(op) FLOAT128_COMPLEX_ENTRIES(op)
#define LOGICAL_ENTRIES(op)                                                                          \
	[ADI_BASIC_BOOL] = op##_uint8, [ADI_BASIC_LOGICAL1] = op##_uint8, [ADI_BASIC_LOGICAL2] = op##_uint16, \
	[ADI_BASIC_LOGICAL4] = op##_uint32, [ADI_BASIC_LOGICAL8] = op##_uint64, \
	[ADI_BASIC_LOGICAL16] = op##_uint128,
#define PAIR_ENTRIES(op)                                                                             \
	[ADI_BASIC_FLOAT_INT] = op##_float_int, [ADI_BASIC_DOUBLE_INT] = op##_double_int,            \
	[ADI_BASIC_LONG_INT] = op##_long_int, [ADI_BASIC_2INT] = op##_2int, [ADI_BASIC_SHORT_INT] = op##_short_int, \
	[ADI_BASIC_LONG_DOUBLE_INT] = op##_long_double_int, [ADI_BASIC_2FLOAT] = op##_2float,        \
	[ADI_BASIC_2DOUBLE] = op##_2double

#define ORDERS(op) UNSIGNED_ENTRIES(op) SIGNED_ENTRIES(op) FLOAT_ENTRIES(op)
#define SUMS(op) UNSIGNED_ENTRIES(op) SIGNED_AS_UNSIGNED_ENTRIES(op) FLOAT_ENTRIES(op) COMPLEX_ENTRIES(op)
#define BITS(op) UNSIGNED_ENTRIES(op) SIGNED_AS_UNSIGNED_ENTRIES(op) [ADI_BASIC_BYTE] = op##_uint8
#define LOGICALS(op) UNSIGNED_ENTRIES(op) SIGNED_AS_UNSIGNED_ENTRIES(op) FLOAT_ENTRIES(op) LOGICAL_ENTRIES(op)

_Static_assert(sizeof(struct pair_long_double_int) == 32 && sizeof(struct pair_short_int) == 8, "sizes of pairs below");

void (*const adi_kernels[ADI_OPS][ADI_BASICS])(const void *in, void *inout, size_t n) = {
	[ADI_SUM] = { SUMS(sum) },
	[ADI_PROD] = { SUMS(prod) },
	[ADI_MIN] = { ORDERS(min) },
	[ADI_MAX] = { ORDERS(max) },
	[ADI_BAND] = { BITS(band) },
	[ADI_BOR] = { BITS(bor) },
	[ADI_BXOR] = { BITS(bxor) },
	[ADI_LAND] = { LOGICALS(land) },
	[ADI_LOR] = { LOGICALS(lor) },
	[ADI_LXOR] = { LOGICALS(lxor) },
	[ADI_MINLOC] = { PAIR_ENTRIES(minloc) },
	[ADI_MAXLOC] = { PAIR_ENTRIES(maxloc) },
	[ADI_REPLACE] = {
		[ADI_BASIC_INT8] = replace_1, [ADI_BASIC_INT16] = replace_2, [ADI_BASIC_INT32] = replace_4,
		[ADI_BASIC_INT64] = replace_8, [ADI_BASIC_UINT8] = replace_1, [ADI_BASIC_UINT16] = replace_2,
		[ADI_BASIC_UINT32] = replace_4, [ADI_BASIC_UINT64] = replace_8, [ADI_BASIC_FLOAT16] = replace_2,
		[ADI_BASIC_FLOAT] = replace_4, [ADI_BASIC_DOUBLE] = replace_8, [ADI_BASIC_LONG_DOUBLE] = replace_16,
		[ADI_BASIC_FLOAT128] = replace_16, [ADI_BASIC_FLOAT_COMPLEX] = replace_8,
		[ADI_BASIC_DOUBLE_COMPLEX] = replace_16, [ADI_BASIC_LONG_DOUBLE_COMPLEX] = replace_32,
		[ADI_BASIC_BOOL] = replace_1, [ADI_BASIC_LOGICAL1] = replace_1, [ADI_BASIC_LOGICAL2] = replace_2,
		[ADI_BASIC_LOGICAL4] = replace_4, [ADI_BASIC_LOGICAL8] = replace_8, [ADI_BASIC_BYTE] = replace_1,
		[ADI_BASIC_CHAR] = replace_1, [ADI_BASIC_FLOAT_INT] = replace_8, [ADI_BASIC_DOUBLE_INT] = replace_16,
		[ADI_BASIC_LONG_INT] = replace_16, [ADI_BASIC_2INT] = replace_8, [ADI_BASIC_SHORT_INT] = replace_8,
		[ADI_BASIC_LONG_DOUBLE_INT] = replace_32, [ADI_BASIC_2FLOAT] = replace_8, [ADI_BASIC_2DOUBLE] = replace_16,
		[ADI_BASIC_INT128] = replace_16, [ADI_BASIC_LOGICAL16] = replace_16, [ADI_BASIC_FLOAT16_COMPLEX] = replace_4,
		[ADI_BASIC_FLOAT128_COMPLEX] = replace_32,
	},
	[ADI_NO_OP] = { [ADI_BASIC_NONE ... ADI_BASICS - 1] = nothing },
};
