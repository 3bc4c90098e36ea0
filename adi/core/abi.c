/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the program may ask about the ABI: MPI 5.0, chapter 20. The library has Fortran bindings for gfortran, so the facts about
 * Fortran are known, and the program cannot set them.
 */
#include "adi/bindings/functions.h"
#include "adi/core/error.h"
#include "adi/core/info.h"

#include <stdio.h>
#include <string.h>

struct fact {
	const char *key, *value;
};

/*
 * Sizes are those of gfortran without options such as -fdefault-integer-8. "supported" says that the library has the datatype.
 * gfortran has no type for MPI_REAL2 and MPI_COMPLEX4; other compilers for the same ABI may have one.
 */
static const struct fact fortran[] = {
	{ "mpi_logical_size", "4" },
	{ "mpi_integer_size", "4" },
	{ "mpi_real_size", "4" },
	{ "mpi_double_precision_size", "8" },
	{ "mpi_logical1_supported", "true" },
	{ "mpi_logical2_supported", "true" },
	{ "mpi_logical4_supported", "true" },
	{ "mpi_logical8_supported", "true" },
	{ "mpi_logical16_supported", "true" },
	{ "mpi_integer1_supported", "true" },
	{ "mpi_integer2_supported", "true" },
	{ "mpi_integer4_supported", "true" },
	{ "mpi_integer8_supported", "true" },
	{ "mpi_integer16_supported", "true" },
	{ "mpi_real2_supported", "true" },
	{ "mpi_real4_supported", "true" },
	{ "mpi_real8_supported", "true" },
	{ "mpi_real16_supported", "true" },
	{ "mpi_complex4_supported", "true" },
	{ "mpi_complex8_supported", "true" },
	{ "mpi_complex16_supported", "true" },
	{ "mpi_complex32_supported", "true" },
	{ "mpi_double_complex_supported", "true" },
};

_Static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8 && sizeof(MPI_Offset) == 8, "the sizes below");
static const struct fact c[] = {
	{ "mpi_aint_size", "8" },
	{ "mpi_count_size", "8" },
	{ "mpi_offset_size", "8" },
};

static int give(const struct fact *fact, size_t n, MPI_Info *info)
{
	struct adi_info *new = adi_info_new();
	int class = new ? MPI_SUCCESS : adi_error(MPI_ERR_NO_MEM, "no memory for an info object");
	for (size_t i = 0; !class && i < n; i++)
		class = adi_info_put(new, fact[i].key, fact[i].value);
	if (class)
		adi_info_release(new);
	else
		*info = (MPI_Info)new;
	return class;
}

int mpi_abi_get_version(int *abi_major, int *abi_minor)
{
	*abi_major = MPI_ABI_VERSION;
	*abi_minor = MPI_ABI_SUBVERSION;
	return MPI_SUCCESS;
}

int mpi_abi_get_info(MPI_Info *info)
{
	return give(c, sizeof c / sizeof *c, info);
}

int mpi_abi_get_fortran_info(MPI_Info *info)
{
	return give(fortran, sizeof fortran / sizeof *fortran, info);
}

int mpi_abi_set_fortran_info(struct adi_info *info)
{
	(void)info;
	return adi_error(MPI_ERR_ABI, "the facts about Fortran are set already");
}

static int check_logical_size(int size)
{
	if (size > 0 && !(size & (size - 1)))
		return MPI_SUCCESS;
	return adi_error(MPI_ERR_ARG, "logical_size is %d; valid sizes: powers of two", size);
}

/* gfortran: .TRUE. is 1, .FALSE. is 0. */
int mpi_abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false, int *is_set)
{
	int class = check_logical_size(logical_size);
	if (class)
		return class;
	if (!logical_true || !logical_false)
		return adi_error(MPI_ERR_ARG, "%s is a null pointer", logical_true ? "logical_false" : "logical_true");
	*is_set = logical_size <= 16;
	if (*is_set) {
		__int128 one = 1; /* little-endian: the first bytes are the number in any size */
		memset(logical_false, 0, (size_t)logical_size);
		memcpy(logical_true, &one, (size_t)logical_size);
	}
	return MPI_SUCCESS;
}

int mpi_abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
	(void)logical_true;
	(void)logical_false;
	int class = check_logical_size(logical_size);
	return class ? class : adi_error(MPI_ERR_ABI, "the values of Fortran's logicals are set already");
}
