/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions as one process computes them, for the tests of collectives: kinds of elements with values that depend on rank and
 * index, and the operations on them. Values are so small that results are exact. */
#ifndef TEST_ADI_REFERENCE_H
#define TEST_ADI_REFERENCE_H

#include <complex.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum group { INTEGERS, FLOATS, COMPLEXES, HALVES, LOGICALS, BYTES, PAIRS, OWN };

struct kind {
	size_t size;
	enum group group;
	void (*fill)(void *to, int n, int rank);
	void (*combine)(MPI_Op op, const void *in, void *inout, int n); /* inout = in op inout */
	bool (*equal)(const void *a, const void *b, int n);
};

static inline int value_of(int rank, int i)
{
	return (rank * 7 + i * 3) % 5 + (i % 11 != 0);
}

#define FILL(name, type)                                                                             \
	static void fill_##name(void *to, int n, int rank)                                           \
	{                                                                                            \
		for (int i = 0; i < n; i++)                                                          \
			((type *)to)[i] = (type)value_of(rank, i);                                   \
	}
#define EQUAL(name, type)                                                                            \
	static bool equal_##name(const void *a, const void *b, int n)                                \
	{                                                                                            \
		for (int i = 0; i < n; i++)                                                          \
			if (((const type *)a)[i] != ((const type *)b)[i])                            \
				return false;                                                        \
		return true;                                                                         \
	}
#define COMBINE(name, type, body)                                                                    \
	static void combine_##name(MPI_Op op, const void *in, void *inout, int n)                    \
	{                                                                                            \
		for (int i = 0; i < n; i++) {                                                        \
			const type a = ((const type *)in)[i];                                        \
			type *b = &((type *)inout)[i];                                               \
			body                                                                         \
		}                                                                                    \
	}
#define SUMS                                                                                         \
	if (op == MPI_SUM)                                                                           \
		*b = a + *b;                                                                         \
	else if (op == MPI_PROD)                                                                     \
		*b = a * *b;
#define ORDERS                                                                                       \
	if (op == MPI_MAX)                                                                           \
		*b = a > *b ? a : *b;                                                                \
	else if (op == MPI_MIN)                                                                      \
		*b = a < *b ? a : *b;
#define LOGIC                                                                                        \
	if (op == MPI_LAND)                                                                          \
		*b = a && *b;                                                                        \
	else if (op == MPI_LOR)                                                                      \
		*b = a || *b;                                                                        \
	else if (op == MPI_LXOR)                                                                     \
		*b = !a != !*b;
#define BITS                                                                                         \
	if (op == MPI_BAND)                                                                          \
		*b = a & *b;                                                                         \
	else if (op == MPI_BOR)                                                                      \
		*b = a | *b;                                                                         \
	else if (op == MPI_BXOR)                                                                     \
		*b = a ^ *b;
#define KIND(name, type, group, body)                                                                \
	FILL(name, type)                                                                             \
	EQUAL(name, type)                                                                            \
	COMBINE(name, type, body)                                                                    \
	static const struct kind kind_##name = { sizeof(type), group, fill_##name, combine_##name, equal_##name };
#define INTEGER(name, type) KIND(name, type, INTEGERS, SUMS ORDERS LOGIC BITS)
#define FLOATING(name, type) KIND(name, type, FLOATS, SUMS ORDERS)

INTEGER(int8, int8_t)
INTEGER(int16, int16_t)
INTEGER(int32, int32_t)
INTEGER(int64, int64_t)
INTEGER(uint8, uint8_t)
INTEGER(uint16, uint16_t)
INTEGER(uint32, uint32_t)
INTEGER(uint64, uint64_t)
FLOATING(float, float)
FLOATING(double, double)
FLOATING(long_double, long double)
KIND(float_complex, float complex, COMPLEXES, SUMS)
KIND(double_complex, double complex, COMPLEXES, SUMS)
INTEGER(int128, __int128)
KIND(truth128, __int128, LOGICALS, LOGIC)
#ifdef __FLT16_MAX__
KIND(half_complex, _Complex _Float16, HALVES, SUMS) /* products would not be exact */
#endif
#ifdef __SIZEOF_FLOAT128__
typedef _Complex float quad_complex_t __attribute__((mode(TC)));
FLOATING(quad, __float128)
KIND(quad_complex, quad_complex_t, COMPLEXES, SUMS)
#endif
KIND(truth, bool, LOGICALS, LOGIC)
KIND(byte, unsigned char, BYTES, BITS)

/* Pairs for MPI_MINLOC and MPI_MAXLOC: many equal values, so that the index decides. */
#define PAIR(name, type)                                                                             \
	struct name { type value; int index; };                                                      \
	static void fill_##name(void *to, int n, int rank)                                           \
	{                                                                                            \
		for (int i = 0; i < n; i++)                                                          \
			((struct name *)to)[i] = (struct name){ (type)(value_of(rank, i) % 3), 100 - rank * 3 }; \
	}                                                                                            \
	static bool equal_##name(const void *a, const void *b, int n)                                \
	{                                                                                            \
		const struct name *p = a, *q = b;                                                    \
		for (int i = 0; i < n; i++)                                                          \
			if (p[i].value != q[i].value || p[i].index != q[i].index)                    \
				return false;                                                        \
		return true;                                                                         \
	}                                                                                            \
	COMBINE(name, struct name, {                                                                 \
		bool first = op == MPI_MINLOC ? a.value < b->value : a.value > b->value;             \
		if (first || (a.value == b->value && a.index < b->index))                            \
			*b = a;                                                                      \
	})                                                                                           \
	static const struct kind kind_##name = { sizeof(struct name), PAIRS, fill_##name, combine_##name, equal_##name };

PAIR(float_int, float)
PAIR(double_int, double)
PAIR(long_int, long)
PAIR(two_int, int)
PAIR(short_int, short)
PAIR(long_double_int, long double)

static const struct {
	const struct kind *kind;
	MPI_Datatype type;
} kinds[] = {
	{ &kind_int8, MPI_INT8_T }, { &kind_int8, MPI_SIGNED_CHAR }, { &kind_int16, MPI_SHORT }, { &kind_int32, MPI_INT },
	{ &kind_int32, MPI_INTEGER }, { &kind_int64, MPI_LONG }, { &kind_int64, MPI_LONG_LONG }, { &kind_int64, MPI_AINT },
	{ &kind_int64, MPI_COUNT }, { &kind_uint8, MPI_UNSIGNED_CHAR }, { &kind_uint16, MPI_UINT16_T },
	{ &kind_uint32, MPI_UNSIGNED }, { &kind_uint64, MPI_UINT64_T }, { &kind_float, MPI_FLOAT }, { &kind_float, MPI_REAL },
	{ &kind_double, MPI_DOUBLE }, { &kind_double, MPI_DOUBLE_PRECISION }, { &kind_long_double, MPI_LONG_DOUBLE },
	{ &kind_float_complex, MPI_C_FLOAT_COMPLEX }, { &kind_float_complex, MPI_COMPLEX },
	{ &kind_double_complex, MPI_C_DOUBLE_COMPLEX }, { &kind_truth, MPI_C_BOOL }, { &kind_byte, MPI_BYTE },
	{ &kind_float_int, MPI_FLOAT_INT }, { &kind_double_int, MPI_DOUBLE_INT }, { &kind_long_int, MPI_LONG_INT },
	{ &kind_two_int, MPI_2INT }, { &kind_short_int, MPI_SHORT_INT }, { &kind_long_double_int, MPI_LONG_DOUBLE_INT },
	{ &kind_int128, MPI_INTEGER16 }, { &kind_truth128, MPI_LOGICAL16 },
#ifdef __FLT16_MAX__
	{ &kind_half_complex, MPI_COMPLEX4 },
#endif
#ifdef __SIZEOF_FLOAT128__
	{ &kind_quad, MPI_REAL16 }, { &kind_quad_complex, MPI_COMPLEX32 },
#endif
	{ NULL, MPI_DATATYPE_NULL },
};

/* The operations of a kind, by number. */
static inline MPI_Op operation_of(const struct kind *kind, int i)
{
	static const MPI_Op integers[] = { MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR,
					   MPI_BXOR };
	static const MPI_Op pairs[] = { MPI_MINLOC, MPI_MAXLOC };
	switch (kind->group) {
	case LOGICALS: return integers[4 + i];
	case BYTES: return integers[7 + i];
	case PAIRS: return pairs[i];
	default: return integers[i];
	}
}

static inline int operations_of(const struct kind *kind)
{
	static const int n[] = { [INTEGERS] = 10, [FLOATS] = 4, [COMPLEXES] = 2, [HALVES] = 1, [LOGICALS] = 3, [BYTES] = 3, [PAIRS] = 2 };
	return n[kind->group];
}

/* inout = in * inout. */
static inline void matrix_product(const unsigned *in, unsigned *inout)
{
	unsigned a = in[0] * inout[0] + in[1] * inout[2], b = in[0] * inout[1] + in[1] * inout[3];
	unsigned c = in[2] * inout[0] + in[3] * inout[2], d = in[2] * inout[1] + in[3] * inout[3];
	inout[0] = a, inout[1] = b, inout[2] = c, inout[3] = d;
}

#define MATRIX(name, words)                                                                          \
	static void fill_##name(void *to, int n, int rank)                                           \
	{                                                                                            \
		for (int i = 0; i < n * (words); i++)                                                \
			((unsigned *)to)[i] = i % (words) < 4 ? (unsigned)value_of(rank, i) : 77;    \
	}                                                                                            \
	static bool equal_##name(const void *a, const void *b, int n)                                \
	{                                                                                            \
		for (int i = 0; i < n; i++)                                                          \
			if (memcmp((const unsigned *)a + i * (words), (const unsigned *)b + i * (words), 16)) \
				return false;                                                        \
		return true;                                                                         \
	}                                                                                            \
	static void combine_##name(MPI_Op op, const void *in, void *inout, int n)                    \
	{                                                                                            \
		(void)op;                                                                            \
		for (int i = 0; i < n; i++)                                                          \
			matrix_product((const unsigned *)in + i * (words), (unsigned *)inout + i * (words)); \
	}                                                                                            \
	static const struct kind kind_##name = { (words) * sizeof(unsigned), OWN, fill_##name, combine_##name, equal_##name };

MATRIX(matrix, 4)
MATRIX(matrix_with_gap, 6)

#endif
