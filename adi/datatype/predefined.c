/* SPDX-License-Identifier: BSD-3-Clause */
/* The predefined datatypes of the ABI: MPI 5.0, sections 3.2.2, 5.1 and 20.3. Fortran's types are those of a compiler whose
 * INTEGER, REAL and LOGICAL have 4 bytes. */
#include "adi/datatype/type.h"

#include <complex.h>
#include <stdalign.h>
#include <wchar.h>

typedef __int128 int128;
typedef struct { uint16_t re, im; } complex4;
typedef struct { int128 re, im; } complex32;
typedef float complex float_complex;
typedef double complex double_complex;
typedef long double complex long_double_complex;
typedef long long long_long;
typedef unsigned short unsigned_short;
typedef unsigned long unsigned_long;
typedef unsigned long long unsigned_long_long;
typedef unsigned char unsigned_char;
typedef long double long_double;
typedef bool boolean;

/* X(name, type in C, basic kind, whether external32 shortens it) */
#define SINGLES(X)                                                                                                      \
	X(AINT, MPI_Aint, INT64, 0) X(COUNT, MPI_Count, INT64, 0) X(OFFSET, MPI_Offset, INT64, 0)                       \
	X(PACKED, char, CHAR, 0) X(SHORT, short, INT16, 0) X(INT, int, INT32, 0) X(LONG, long, INT64, 1)                \
	X(LONG_LONG_INT, long_long, INT64, 0) X(UNSIGNED_SHORT, unsigned_short, UINT16, 0)                              \
	X(UNSIGNED, unsigned, UINT32, 0) X(UNSIGNED_LONG, unsigned_long, UINT64, 1)                                     \
	X(UNSIGNED_LONG_LONG, unsigned_long_long, UINT64, 0)                                                            \
	X(FLOAT, float, FLOAT, 0) X(C_COMPLEX, float_complex, FLOAT_COMPLEX, 0)                                         \
	X(CXX_FLOAT_COMPLEX, float_complex, FLOAT_COMPLEX, 0) X(DOUBLE, double, DOUBLE, 0)                              \
	X(C_DOUBLE_COMPLEX, double_complex, DOUBLE_COMPLEX, 0) X(CXX_DOUBLE_COMPLEX, double_complex, DOUBLE_COMPLEX, 0) \
	X(LOGICAL, int32_t, LOGICAL4, 0) X(INTEGER, int32_t, INT32, 0) X(REAL, float, FLOAT, 0)                         \
	X(COMPLEX, float_complex, FLOAT_COMPLEX, 0) X(DOUBLE_PRECISION, double, DOUBLE, 0)                              \
	X(DOUBLE_COMPLEX, double_complex, DOUBLE_COMPLEX, 0) X(CHARACTER, char, CHAR, 0)                                \
	X(LONG_DOUBLE, long_double, LONG_DOUBLE, 0)                                                                     \
	X(C_LONG_DOUBLE_COMPLEX, long_double_complex, LONG_DOUBLE_COMPLEX, 0)                                           \
	X(CXX_LONG_DOUBLE_COMPLEX, long_double_complex, LONG_DOUBLE_COMPLEX, 0)                                         \
	X(C_BOOL, boolean, BOOL, 0) X(CXX_BOOL, boolean, BOOL, 0) X(WCHAR, wchar_t, WCHAR, 0)                           \
	X(INT8_T, int8_t, INT8, 0) X(UINT8_T, uint8_t, UINT8, 0) X(CHAR, char, CHAR, 0) X(SIGNED_CHAR, int8_t, INT8, 0) \
	X(UNSIGNED_CHAR, unsigned_char, UINT8, 0) X(BYTE, char, BYTE, 0) X(INT16_T, int16_t, INT16, 0)                  \
	X(UINT16_T, uint16_t, UINT16, 0) X(INT32_T, int32_t, INT32, 0) X(UINT32_T, uint32_t, UINT32, 0)                 \
	X(INT64_T, int64_t, INT64, 0) X(UINT64_T, uint64_t, UINT64, 0)                                                  \
	X(LOGICAL1, int8_t, LOGICAL1, 0) X(INTEGER1, int8_t, INT8, 0)                                                   \
	X(LOGICAL2, int16_t, LOGICAL2, 0) X(INTEGER2, int16_t, INT16, 0) X(REAL2, int16_t, FLOAT16, 0)                  \
	X(LOGICAL4, int32_t, LOGICAL4, 0) X(INTEGER4, int32_t, INT32, 0) X(REAL4, float, FLOAT, 0)                      \
	X(COMPLEX4, complex4, FLOAT16_COMPLEX, 0)                                                                       \
	X(LOGICAL8, int64_t, LOGICAL8, 0) X(INTEGER8, int64_t, INT64, 0) X(REAL8, double, DOUBLE, 0)                    \
	X(COMPLEX8, float_complex, FLOAT_COMPLEX, 0)                                                                    \
	X(LOGICAL16, int128, LOGICAL16, 0) X(INTEGER16, int128, INT128, 0) X(REAL16, int128, FLOAT128, 0)               \
	X(COMPLEX16, double_complex, DOUBLE_COMPLEX, 0) X(COMPLEX32, complex32, FLOAT128_COMPLEX, 0)

/* X(name, type of the value, type of the index, basic kind, whether external32 shortens the value) */
#define PAIRS(X)                                                                                 \
	X(FLOAT_INT, float, int, FLOAT_INT, 0) X(DOUBLE_INT, double, int, DOUBLE_INT, 0)         \
	X(LONG_INT, long, int, LONG_INT, 1) X(2INT, int, int, 2INT, 0)                           \
	X(SHORT_INT, short, int, SHORT_INT, 0)                                                   \
	X(LONG_DOUBLE_INT, long_double, int, LONG_DOUBLE_INT, 0) X(2REAL, float, float, 2FLOAT, 0) \
	X(2DOUBLE_PRECISION, double, double, 2DOUBLE, 0) X(2INTEGER, int, int, 2INT, 0)

#define X(name, value, index, ...) typedef struct { value v; index i; } pair_##name;
PAIRS(X)
#undef X

/* external32 has 2 bytes for MPI_WCHAR and 16 for long double: MPI 5.0, section 14.5.2. */
#define EXTERNAL(type, basic, narrow)                                                                        \
	((narrow) ? 4 : ADI_BASIC_##basic == ADI_BASIC_WCHAR ? 2 : ADI_BASIC_##basic == ADI_BASIC_LONG_DOUBLE || \
	 ADI_BASIC_##basic == ADI_BASIC_LONG_DOUBLE_INT ? 16 :                                                \
	 ADI_BASIC_##basic == ADI_BASIC_LONG_DOUBLE_COMPLEX ? 32 : (MPI_Count)sizeof(type))

enum {
#define X(name, ...) AT_##name,
	SINGLES(X) PAIRS(X)
#undef X
	PREDEFINED
};

static struct adi_type types[PREDEFINED] = {
#define COMMON(of, kind)                                                                                      \
	.object = { .magic = ADI_MAGIC + ADI_TYPE, .references = 1, .constant = (uint16_t)(uintptr_t)MPI_##of }, \
	.name = "MPI_" #of, .committed = true, .basic = ADI_BASIC_##kind, .leaf = &types[AT_##of]
#define X(of, type, kind, shortens)                                                                               \
	[AT_##of] = { COMMON(of, kind), .contiguous = true, .run = true, .size = sizeof(type), .extent = sizeof(type), \
		      .true_extent = sizeof(type), .elements = 1, .external = EXTERNAL(type, kind, shortens),              \
		      .align = alignof(type), .narrow = shortens },
	SINGLES(X)
#undef X
#define X(of, value, index, kind, shortens)                                                                             \
	[AT_##of] = { COMMON(of, kind), .contiguous = sizeof(value) + sizeof(index) == sizeof(pair_##of),                 \
		      .run = offsetof(pair_##of, i) == sizeof(value), .size = sizeof(value) + sizeof(index),               \
		      .extent = sizeof(pair_##of), .true_extent = offsetof(pair_##of, i) + sizeof(index), .elements = 2,  \
		      .external = EXTERNAL(value, kind, shortens) + (MPI_Count)sizeof(index), .align = alignof(pair_##of), \
		      .narrow = shortens },
	PAIRS(X)
#undef X
};

struct adi_type *const adi_type_constants[256] = {
#define X(of, ...) [(uintptr_t)MPI_##of & 0xff] = &types[AT_##of],
	SINGLES(X) PAIRS(X)
#undef X
};

struct adi_type *const adi_type_byte = &types[AT_BYTE];

size_t adi_basic_size(enum adi_basic basic)
{
	static const uint8_t size[ADI_BASICS] = {
		[ADI_BASIC_INT8] = 1, [ADI_BASIC_INT16] = 2, [ADI_BASIC_INT32] = 4, [ADI_BASIC_INT64] = 8,
		[ADI_BASIC_UINT8] = 1, [ADI_BASIC_UINT16] = 2, [ADI_BASIC_UINT32] = 4, [ADI_BASIC_UINT64] = 8,
		[ADI_BASIC_INT128] = 16, [ADI_BASIC_FLOAT16] = 2, [ADI_BASIC_FLOAT] = 4, [ADI_BASIC_DOUBLE] = 8,
		[ADI_BASIC_LONG_DOUBLE] = sizeof(long double), [ADI_BASIC_FLOAT128] = 16, [ADI_BASIC_FLOAT16_COMPLEX] = 4,
		[ADI_BASIC_FLOAT_COMPLEX] = 8, [ADI_BASIC_DOUBLE_COMPLEX] = 16,
		[ADI_BASIC_LONG_DOUBLE_COMPLEX] = 2 * sizeof(long double), [ADI_BASIC_FLOAT128_COMPLEX] = 32,
		[ADI_BASIC_BOOL] = sizeof(bool), [ADI_BASIC_LOGICAL1] = 1, [ADI_BASIC_LOGICAL2] = 2, [ADI_BASIC_LOGICAL4] = 4,
		[ADI_BASIC_LOGICAL8] = 8, [ADI_BASIC_LOGICAL16] = 16, [ADI_BASIC_BYTE] = 1, [ADI_BASIC_CHAR] = 1,
		[ADI_BASIC_WCHAR] = sizeof(wchar_t), [ADI_BASIC_FLOAT_INT] = sizeof(pair_FLOAT_INT),
		[ADI_BASIC_DOUBLE_INT] = sizeof(pair_DOUBLE_INT), [ADI_BASIC_LONG_INT] = sizeof(pair_LONG_INT),
		[ADI_BASIC_2INT] = sizeof(pair_2INT), [ADI_BASIC_SHORT_INT] = sizeof(pair_SHORT_INT),
		[ADI_BASIC_LONG_DOUBLE_INT] = sizeof(pair_LONG_DOUBLE_INT), [ADI_BASIC_2FLOAT] = sizeof(pair_2REAL),
		[ADI_BASIC_2DOUBLE] = sizeof(pair_2DOUBLE_PRECISION),
	};
	return size[basic];
}

int adi_type_error(MPI_Datatype handle, const char *argument)
{
	if (handle == MPI_DATATYPE_NULL)
		return adi_error(MPI_ERR_TYPE, "%s is MPI_DATATYPE_NULL; valid: a datatype", argument);
	struct adi_type *type = adi_object_at(handle, ADI_TYPE);
	if (type)
		return adi_error(MPI_ERR_TYPE, "%s (%s) is not committed: call MPI_Type_commit", argument,
				 type->name[0] ? type->name : "without a name");
	return adi_error(MPI_ERR_TYPE, "%s is %p; valid: a datatype that was not freed", argument, (void *)handle);
}
