/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sections of arrays as buffers of mpi_f08. A nonblocking function uses its buffer after it has returned. Its buffer is passed by
 * descriptor, so the compiler makes no temporary copy of a section that is not contiguous.
 */
#ifndef ADI_FORTRAN_SECTIONS_H
#define ADI_FORTRAN_SECTIONS_H

#include "adi/fortran/fortran.h"

#include <ISO_Fortran_binding.h>
#include <stdbool.h>

/* A buffer as the stub of mpif.h expects it. */
struct hrf_section {
	void *address;
	int count;
	MPI_Count count_c;
	MPI_Fint datatype;
	MPI_Datatype made; /* MPI_DATATYPE_NULL: datatype is the caller's */
};

/* Describes count elements of datatype in an array or section by a datatype, which hrf_section_end frees. Returns
 * MPI_SUCCESS or an error code. */
int hrf_section(struct hrf_section *section, const CFI_cdesc_t *buffer, MPI_Count count, MPI_Fint datatype);
void hrf_section_end(struct hrf_section *section);

/* MPI_SUCCESS if the array is contiguous, or empty. Else an error code of class MPI_ERR_BUFFER. */
int hrf_contiguous(const CFI_cdesc_t *buffer);

/* Returns whether a collective with a root ignores a buffer in this process. buffer: the processes that use it: the root, the
 * processes that exchange data with the root, or both. In an intracommunicator the root belongs to both. Also true if comm is
 * wrong: the C function reports that. */
enum hrf_buffer { HRF_OF_ROOT, HRF_OF_OTHERS, HRF_OF_ALL };
bool hrf_ignored(const MPI_Fint *comm, const MPI_Fint *root, enum hrf_buffer buffer);

/* Calls the error handler of win; if win is NULL, that of comm; if both are NULL, that of MPI_COMM_WORLD. Returns the code. */
int hrf_section_error(int code, const MPI_Fint *comm, const MPI_Fint *win);

#endif
