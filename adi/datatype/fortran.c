/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes that are chosen by their properties: Fortran kinds by precision and range, types by size, pairs by their parts. MPI
 * 5.0, sections 19.1.9 and 6.9.4. */
#include "adi/bindings/functions.h"
#include "adi/datatype/build.h"

#include <float.h>
#include <limits.h>
#include <stdlib.h>

/* A kind of Fortran's real: decimal digits and decimal exponent range. */
struct real_kind {
	int p, r;
	MPI_Datatype real, complex;
};

/* The kinds of gfortran, smallest first. */
static const struct real_kind real_kinds[] = {
	{ FLT_DIG, -FLT_MIN_10_EXP, MPI_REAL4, MPI_COMPLEX8 },
	{ DBL_DIG, -DBL_MIN_10_EXP, MPI_REAL8, MPI_COMPLEX16 },
#if LDBL_MANT_DIG == 64
	{ LDBL_DIG, -LDBL_MIN_10_EXP, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX },
#endif
	{ 33, 4931, MPI_REAL16, MPI_COMPLEX32 },
};

static const struct integer_kind {
	int r;
	MPI_Datatype type;
} integer_kinds[] = { { 2, MPI_INTEGER1 }, { 4, MPI_INTEGER2 }, { 9, MPI_INTEGER4 }, { 18, MPI_INTEGER8 }, { 38, MPI_INTEGER16 } };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The types that were made, which exist until the process ends: the same arguments give the same type. */
static struct made {
	int combiner, p, r;
	struct adi_type *type;
	struct made *next;
} *all;

static int make(int combiner, int p, int r, MPI_Datatype handle, MPI_Datatype *newtype)
{
	for (struct made *made = all; made; made = made->next)
		if (made->combiner == combiner && made->p == p && made->r == r) {
			*newtype = adi_type_handle(made->type);
			return MPI_SUCCESS;
		}
	struct adi_type *base = NULL;
	int class = adi_type_take(handle, "datatype", &base);
	if (class)
		return class;
	struct made *made = malloc(sizeof *made);
	struct adi_type_contents *contents = made ? adi_contents_new(combiner, false, 1, 1, 0) : NULL;
	if (contents) {
		adi_contents_part(contents, 0, base);
		contents->arguments = malloc(2 * sizeof *contents->arguments);
	}
	if (!contents || !contents->arguments) {
		adi_contents_release(contents);
		free(made);
		return adi_error(MPI_ERR_NO_MEM, "no memory for a datatype");
	}
	contents->arguments[0] = combiner == MPI_COMBINER_F90_INTEGER ? r : p;
	contents->arguments[1] = r;
	class = adi_type_make(contents, &made->type);
	if (class) {
		free(made);
		return class;
	}
	made->type->committed = true;
	made->combiner = combiner;
	made->p = p;
	made->r = r;
	made->next = all;
	all = made;
	*newtype = adi_type_handle(made->type);
	return MPI_SUCCESS;
}

/* MPI_UNDEFINED, like a negative number in Fortran's selected_real_kind, asks for nothing. */
static int real(bool complex, int p, int r, MPI_Datatype *newtype)
{
	if (p == MPI_UNDEFINED && r == MPI_UNDEFINED)
		return adi_error(MPI_ERR_ARG, "p and r are MPI_UNDEFINED; valid: one of them may be");
	for (size_t i = 0; i < COUNT(real_kinds); i++)
		if (p <= real_kinds[i].p && r <= real_kinds[i].r)
			return make(complex ? MPI_COMBINER_F90_COMPLEX : MPI_COMBINER_F90_REAL, p, r,
				    complex ? real_kinds[i].complex : real_kinds[i].real, newtype);
	return adi_error(MPI_ERR_ARG, "no kind of real has %d digits and a range of 10^%d; most: 33 digits and 10^4931", p, r);
}

int mpi_type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
	return real(false, p, r, newtype);
}

int mpi_type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
	return real(true, p, r, newtype);
}

int mpi_type_create_f90_integer(int r, MPI_Datatype *newtype)
{
	for (size_t i = 0; i < COUNT(integer_kinds); i++)
		if (r <= integer_kinds[i].r)
			return make(MPI_COMBINER_F90_INTEGER, 0, r, integer_kinds[i].type, newtype);
	return adi_error(MPI_ERR_ARG, "r is %d; valid: at most 38", r);
}

int mpi_type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
	static const struct {
		int class, size;
		MPI_Datatype type;
	} known[] = {
		{ MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1 },   { MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2 },
		{ MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4 },   { MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8 },
		{ MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16 }, { MPI_TYPECLASS_REAL, 2, MPI_REAL2 },
		{ MPI_TYPECLASS_REAL, 4, MPI_REAL4 },         { MPI_TYPECLASS_REAL, 8, MPI_REAL8 },
		{ MPI_TYPECLASS_REAL, 16, MPI_REAL16 },       { MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4 },
		{ MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8 },   { MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16 },
		{ MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32 }, { MPIX_TYPECLASS_LOGICAL, 1, MPI_LOGICAL1 },
		{ MPIX_TYPECLASS_LOGICAL, 2, MPI_LOGICAL2 },  { MPIX_TYPECLASS_LOGICAL, 4, MPI_LOGICAL4 },
		{ MPIX_TYPECLASS_LOGICAL, 8, MPI_LOGICAL8 },  { MPIX_TYPECLASS_LOGICAL, 16, MPI_LOGICAL16 },
	};
	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i].class == typeclass && known[i].size == size) {
			*datatype = known[i].type;
			return MPI_SUCCESS;
		}
	return adi_error(MPI_ERR_ARG,
			 "size is %d; no datatype of typeclass %d has this size; valid: MPI_TYPECLASS_INTEGER with 1 to 16 bytes, "
			 "_REAL with 2 to 16, _COMPLEX with 4 to 32", typeclass, size);
}

/* MPI_DATATYPE_NULL if there is no such pair. */
int mpi_type_get_value_index(struct adi_type *value_type, struct adi_type *index_type, MPI_Datatype *pair_type)
{
	static const struct {
		MPI_Datatype value, index, pair;
	} known[] = {
		{ MPI_FLOAT, MPI_INT, MPI_FLOAT_INT },
		{ MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT },
		{ MPI_LONG, MPI_INT, MPI_LONG_INT },
		{ MPI_INT, MPI_INT, MPI_2INT },
		{ MPI_SHORT, MPI_INT, MPI_SHORT_INT },
		{ MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT },
		{ MPI_REAL, MPI_REAL, MPI_2REAL },
		{ MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION },
		{ MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER },
	};
	*pair_type = MPI_DATATYPE_NULL;
	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i].value == adi_type_handle(value_type) && known[i].index == adi_type_handle(index_type))
			*pair_type = known[i].pair;
	return MPI_SUCCESS;
}
