/* SPDX-License-Identifier: BSD-3-Clause */
/* Procedures that MPI-3 removed, for older programs with mpif.h or the module mpi. Addresses are of type INTEGER there. */
#include "adi/fortran/fortran.h"

#include <limits.h>

/* Names of procedures that the module mpi_f08 does not have. */
#define OLD_NAME(name) HRF_NAME(mpi_##name##_, pmpi_##name##_)

/* Stores an address or a size in an INTEGER, or returns an error if it is too large. */
static int give(int class, MPI_Aint value, MPI_Fint *place)
{
	if (class != MPI_SUCCESS)
		return class;
	if (value > INT_MAX || value < INT_MIN) {
		PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_VALUE_TOO_LARGE);
		return MPI_ERR_VALUE_TOO_LARGE;
	}
	*place = (MPI_Fint)value;
	return MPI_SUCCESS;
}

void pmpi_address_(void *location, MPI_Fint *address, MPI_Fint *ierror);
void pmpi_address_(void *location, MPI_Fint *address, MPI_Fint *ierror)
{
	MPI_Aint value = 0;
	int class = PMPI_Get_address(hrf_address(location), &value);
	hrf_return(give(class, value, address));
}
OLD_NAME(address);

void pmpi_type_extent_(MPI_Fint *datatype, MPI_Fint *extent, MPI_Fint *ierror);
void pmpi_type_extent_(MPI_Fint *datatype, MPI_Fint *extent, MPI_Fint *ierror)
{
	MPI_Aint lb = 0, value = 0;
	int class = PMPI_Type_get_extent(hrf_type(*datatype), &lb, &value);
	hrf_return(give(class, value, extent));
}
OLD_NAME(type_extent);

void pmpi_type_lb_(MPI_Fint *datatype, MPI_Fint *displacement, MPI_Fint *ierror);
void pmpi_type_lb_(MPI_Fint *datatype, MPI_Fint *displacement, MPI_Fint *ierror)
{
	MPI_Aint lb = 0, extent = 0;
	int class = PMPI_Type_get_extent(hrf_type(*datatype), &lb, &extent);
	hrf_return(give(class, lb, displacement));
}
OLD_NAME(type_lb);

void pmpi_type_ub_(MPI_Fint *datatype, MPI_Fint *displacement, MPI_Fint *ierror);
void pmpi_type_ub_(MPI_Fint *datatype, MPI_Fint *displacement, MPI_Fint *ierror)
{
	MPI_Aint lb = 0, extent = 0;
	int class = PMPI_Type_get_extent(hrf_type(*datatype), &lb, &extent);
	hrf_return(give(class, lb + extent, displacement));
}
OLD_NAME(type_ub);

static void give_type(int class, MPI_Datatype new, MPI_Fint *newtype, MPI_Fint *ierror)
{
	if (class == MPI_SUCCESS)
		*newtype = PMPI_Type_toint(new);
	hrf_return(class);
}

void pmpi_type_hvector_(MPI_Fint *count, MPI_Fint *blocklength, MPI_Fint *stride, MPI_Fint *oldtype, MPI_Fint *newtype,
			MPI_Fint *ierror);
void pmpi_type_hvector_(MPI_Fint *count, MPI_Fint *blocklength, MPI_Fint *stride, MPI_Fint *oldtype, MPI_Fint *newtype,
			MPI_Fint *ierror)
{
	MPI_Datatype new = MPI_DATATYPE_NULL;
	int class = PMPI_Type_create_hvector(*count, *blocklength, *stride, hrf_type(*oldtype), &new);
	give_type(class, new, newtype, ierror);
}
OLD_NAME(type_hvector);

/* Displacements as the successors take them. */
static void widen(struct hrf_handles *wide, const MPI_Fint *displacements, MPI_Fint count)
{
	_Static_assert(sizeof(MPI_Aint) == sizeof(void *), "an array of handles has room for displacements");
	hrf_start(wide, count);
	for (int i = 0; i < wide->n; i++)
		((MPI_Aint *)wide->handle)[i] = displacements[i];
}

void pmpi_type_hindexed_(MPI_Fint *count, MPI_Fint *blocklengths, MPI_Fint *displacements, MPI_Fint *oldtype, MPI_Fint *newtype,
			 MPI_Fint *ierror);
void pmpi_type_hindexed_(MPI_Fint *count, MPI_Fint *blocklengths, MPI_Fint *displacements, MPI_Fint *oldtype, MPI_Fint *newtype,
			 MPI_Fint *ierror)
{
	struct hrf_handles wide;
	MPI_Datatype new = MPI_DATATYPE_NULL;
	widen(&wide, displacements, *count);
	int class = PMPI_Type_create_hindexed(*count, blocklengths, (MPI_Aint *)wide.handle, hrf_type(*oldtype), &new);
	hrf_end(&wide);
	give_type(class, new, newtype, ierror);
}
OLD_NAME(type_hindexed);

void pmpi_type_struct_(MPI_Fint *count, MPI_Fint *blocklengths, MPI_Fint *displacements, MPI_Fint *types, MPI_Fint *newtype,
		       MPI_Fint *ierror);
void pmpi_type_struct_(MPI_Fint *count, MPI_Fint *blocklengths, MPI_Fint *displacements, MPI_Fint *types, MPI_Fint *newtype,
		       MPI_Fint *ierror)
{
	struct hrf_handles wide, types_c;
	MPI_Datatype new = MPI_DATATYPE_NULL;
	widen(&wide, displacements, *count);
	hrf_start(&types_c, *count);
	for (int i = 0; i < types_c.n; i++)
		types_c.handle[i] = hrf_type(types[i]);
	int class = PMPI_Type_create_struct(*count, blocklengths, (MPI_Aint *)wide.handle, (MPI_Datatype *)types_c.handle, &new);
	hrf_end(&wide);
	hrf_end(&types_c);
	give_type(class, new, newtype, ierror);
}
OLD_NAME(type_struct);

void pmpi_comm_create_errhandler_(void (*function)(MPI_Fint *, MPI_Fint *), MPI_Fint *errhandler, MPI_Fint *ierror);
void pmpi_errhandler_create_(void (*function)(MPI_Fint *, MPI_Fint *), MPI_Fint *errhandler, MPI_Fint *ierror);
void pmpi_errhandler_create_(void (*function)(MPI_Fint *, MPI_Fint *), MPI_Fint *errhandler, MPI_Fint *ierror)
{
	pmpi_comm_create_errhandler_(function, errhandler, ierror);
}
OLD_NAME(errhandler_create);

void pmpi_errhandler_get_(MPI_Fint *comm, MPI_Fint *errhandler, MPI_Fint *ierror);
void pmpi_errhandler_get_(MPI_Fint *comm, MPI_Fint *errhandler, MPI_Fint *ierror)
{
	MPI_Errhandler found = MPI_ERRHANDLER_NULL;
	int class = PMPI_Comm_get_errhandler(hrf_comm(*comm), &found);
	if (class == MPI_SUCCESS)
		*errhandler = PMPI_Errhandler_toint(found);
	hrf_return(class);
}
OLD_NAME(errhandler_get);

void pmpi_errhandler_set_(MPI_Fint *comm, MPI_Fint *errhandler, MPI_Fint *ierror);
void pmpi_errhandler_set_(MPI_Fint *comm, MPI_Fint *errhandler, MPI_Fint *ierror)
{
	hrf_return(PMPI_Comm_set_errhandler(hrf_comm(*comm), hrf_errhandler(*errhandler)));
}
OLD_NAME(errhandler_set);
