/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the Fortran stubs use. Each stub is a C function with the name and the arguments of an external procedure as gfortran
 * calls it: arguments by reference, the lengths of strings at the end. It converts its arguments and calls the C function of the
 * standard ABI, whoever's library has it.
 */
#ifndef ADI_FORTRAN_FORTRAN_H
#define ADI_FORTRAN_FORTRAN_H

#include "adi/mpi.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The other names of pmpi_NAME_: of mpif.h and the module mpi, and of the specific procedures of the module mpi_f08. */
#define HRF_NAME(new, old) extern __typeof__(old) new __attribute__((weak, alias(#old)))
#define HRF_NAMES(name)                                      \
	HRF_NAME(mpi_##name##_, pmpi_##name##_);             \
	HRF_NAME(mpi_##name##_f08_, pmpi_##name##_);         \
	HRF_NAME(pmpi_##name##_f08_, pmpi_##name##_)

/* ierror is optional in the module mpi_f08. */
#define hrf_return(class) hrf_return_to(ierror, class)
static inline void hrf_return_to(MPI_Fint *ierror, int class)
{
	if (ierror)
		*ierror = class;
}

/* No result of type character is longer, with its terminating null. */
#define HRF_TEXT_MAX (MPI_MAX_LIBRARY_VERSION_STRING + 1)

/* The common blocks of mpif.h. Only their addresses matter. */
extern MPI_Fint hrmpi_bottom_[], hrmpi_in_place_[], hrmpi_buffer_automatic_[], hrmpi_status_ignore_[], hrmpi_statuses_ignore_[],
	hrmpi_unweighted_[], hrmpi_weights_empty_[], hrmpi_errcodes_ignore_[];
extern char hrmpi_argv_null_[], hrmpi_argvs_null_[];

static inline void *hrf_address(void *address)
{
	if (address == (void *)hrmpi_bottom_)
		return MPI_BOTTOM;
	if (address == (void *)hrmpi_in_place_)
		return MPI_IN_PLACE;
	return address == (void *)hrmpi_buffer_automatic_ ? MPI_BUFFER_AUTOMATIC : address;
}

/* A status in Fortran has the layout of MPI_Status. */
static inline MPI_Status *hrf_status(MPI_Fint *status)
{
	return status == hrmpi_status_ignore_ ? MPI_STATUS_IGNORE : (MPI_Status *)(void *)status;
}
static inline MPI_Status *hrf_statuses(MPI_Fint *status)
{
	return status == hrmpi_statuses_ignore_ ? MPI_STATUSES_IGNORE : (MPI_Status *)(void *)status;
}

static inline int *hrf_integers(MPI_Fint *integers)
{
	if (integers == hrmpi_unweighted_)
		return MPI_UNWEIGHTED;
	if (integers == hrmpi_weights_empty_)
		return MPI_WEIGHTS_EMPTY;
	return integers == hrmpi_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : integers;
}

/* Predefined handles have the same value in both languages (MPI 5.0, section 20.3). */
#define HRF_HANDLE(name, type, convert)                                                              \
	static inline type hrf_##name(MPI_Fint value)                                                \
	{                                                                                            \
		return value >= 0 && value < 0x1000 ? (type)(uintptr_t)value : PMPI_##convert(value); \
	}
HRF_HANDLE(comm, MPI_Comm, Comm_fromint)
HRF_HANDLE(errhandler, MPI_Errhandler, Errhandler_fromint)
HRF_HANDLE(file, MPI_File, File_fromint)
HRF_HANDLE(group, MPI_Group, Group_fromint)
HRF_HANDLE(info, MPI_Info, Info_fromint)
HRF_HANDLE(message, MPI_Message, Message_fromint)
HRF_HANDLE(op, MPI_Op, Op_fromint)
HRF_HANDLE(request, MPI_Request, Request_fromint)
HRF_HANDLE(session, MPI_Session, Session_fromint)
HRF_HANDLE(type, MPI_Datatype, Type_fromint)
HRF_HANDLE(win, MPI_Win, Win_fromint)

/* An array of handles in C for a call. */
struct hrf_handles {
	int n;
	void **handle;
	void *few[32];
};
/* Ends the job if there is no memory for n handles. */
void hrf_start(struct hrf_handles *handles, MPI_Count n);
static inline void hrf_end(struct hrf_handles *handles)
{
	if (handles->handle != handles->few)
		free(handles->handle);
}

/* Number of processes that MPI_Alltoallw (or MPI_Neighbor_alltoallw) sends to (send) or receives from. 0: not known. */
int hrf_peers(MPI_Comm comm, int neighbors, int send);

/* A C string without the blanks at the end, or (keys and values of info) at both ends, for free. Ends the job if there is no
 * memory. */
char *hrf_string(const char *text, size_t length);
char *hrf_key(const char *text, size_t length);
/* Stores a string and fills the rest with blanks. */
void hrf_give(const char *string, char *text, size_t length);

#endif
