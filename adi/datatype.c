/* SPDX-License-Identifier: BSD-3-Clause */
/* Predefined datatypes: sizes, MPI_Type_size, MPI_Get_count. */
#include "adi/adi.h"

#include <complex.h>
#include <limits.h>
#include <wchar.h>

/* Sizes of the predefined datatypes of C, indexed by the low byte of the handle; 0: not supported. Not supported are
 * pairs with padding (such as double and int), which are not contiguous bytes, and the datatypes of C++ and Fortran. */
#define INDEX(handle) ((uintptr_t)(handle) & 0xff)
static const uint8_t type_size[256] = {
	[INDEX(MPI_AINT)] = sizeof(MPI_Aint),
	[INDEX(MPI_COUNT)] = sizeof(MPI_Count),
	[INDEX(MPI_OFFSET)] = sizeof(MPI_Offset),
	[INDEX(MPI_PACKED)] = 1,
	[INDEX(MPI_SHORT)] = sizeof(short),
	[INDEX(MPI_INT)] = sizeof(int),
	[INDEX(MPI_LONG)] = sizeof(long),
	[INDEX(MPI_LONG_LONG)] = sizeof(long long),
	[INDEX(MPI_UNSIGNED_SHORT)] = sizeof(unsigned short),
	[INDEX(MPI_UNSIGNED)] = sizeof(unsigned),
	[INDEX(MPI_UNSIGNED_LONG)] = sizeof(unsigned long),
	[INDEX(MPI_UNSIGNED_LONG_LONG)] = sizeof(unsigned long long),
	[INDEX(MPI_FLOAT)] = sizeof(float),
	[INDEX(MPI_C_FLOAT_COMPLEX)] = sizeof(float complex),
	[INDEX(MPI_DOUBLE)] = sizeof(double),
	[INDEX(MPI_C_DOUBLE_COMPLEX)] = sizeof(double complex),
	[INDEX(MPI_LONG_DOUBLE)] = sizeof(long double),
	[INDEX(MPI_C_LONG_DOUBLE_COMPLEX)] = sizeof(long double complex),
	[INDEX(MPI_FLOAT_INT)] = sizeof(float) + sizeof(int),
	[INDEX(MPI_2INT)] = 2 * sizeof(int),
	[INDEX(MPI_C_BOOL)] = sizeof(_Bool),
	[INDEX(MPI_WCHAR)] = sizeof(wchar_t),
	[INDEX(MPI_INT8_T)] = 1,
	[INDEX(MPI_UINT8_T)] = 1,
	[INDEX(MPI_CHAR)] = 1,
	[INDEX(MPI_SIGNED_CHAR)] = 1,
	[INDEX(MPI_UNSIGNED_CHAR)] = 1,
	[INDEX(MPI_BYTE)] = 1,
	[INDEX(MPI_INT16_T)] = 2,
	[INDEX(MPI_UINT16_T)] = 2,
	[INDEX(MPI_INT32_T)] = 4,
	[INDEX(MPI_UINT32_T)] = 4,
	[INDEX(MPI_INT64_T)] = 8,
	[INDEX(MPI_UINT64_T)] = 8,
};

size_t adi_type_size(MPI_Datatype datatype)
{
	if (((uintptr_t)datatype & ~(uintptr_t)0xff) != (uintptr_t)MPI_DATATYPE_NULL)
		return 0;
	return type_size[INDEX(datatype)];
}

int PMPI_Type_size(MPI_Datatype datatype, int *size)
{
	int class = adi_check_running("MPI_Type_size");
	if (class)
		return class;
	size_t bytes = adi_type_size(datatype);
	if (!bytes)
		return adi_raise(NULL, "MPI_Type_size", MPI_ERR_TYPE, "invalid or unsupported datatype %p",
				 (void *)datatype);
	if (!size)
		return adi_raise(NULL, "MPI_Type_size", MPI_ERR_ARG, "size is a null pointer");
	*size = (int)bytes;
	return MPI_SUCCESS;
}
ADI_PROFILED(Type_size);

/* MPI_internal[0] and [1] of a status hold the length of the message in bytes, the low half first. */
int PMPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
	int class = adi_check_running("MPI_Get_count");
	if (class)
		return class;
	size_t size = adi_type_size(datatype);
	if (!size)
		return adi_raise(NULL, "MPI_Get_count", MPI_ERR_TYPE, "invalid or unsupported datatype %p",
				 (void *)datatype);
	if (!status || !count)
		return adi_raise(NULL, "MPI_Get_count", MPI_ERR_ARG, "a null pointer");
	uint64_t bytes = (uint32_t)status->MPI_internal[0] | (uint64_t)(uint32_t)status->MPI_internal[1] << 32;
	*count = bytes % size || bytes / size > INT_MAX ? MPI_UNDEFINED : (int)(bytes / size);
	return MPI_SUCCESS;
}
ADI_PROFILED(Get_count);
