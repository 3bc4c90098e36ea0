/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses: MPI 5.0, sections 3.2.5, 3.8.4 and 13.3. MPI_internal[0] and [1] hold the number of bytes, [2] whether the operation
 * was cancelled. */
#include "adi/message/internal.h"

uint64_t adi_status_bytes(const MPI_Status *status)
{
	return (uint32_t)status->MPI_internal[0] | (uint64_t)(uint32_t)status->MPI_internal[1] << 32;
}

void adi_status_empty(MPI_Status *status)
{
	adi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	if (status != MPI_STATUS_IGNORE)
		status->MPI_ERROR = MPI_SUCCESS;
}

/* A status that the program passes to be read or changed may not be MPI_STATUS_IGNORE. */
static int check(const MPI_Status *status)
{
	return status != MPI_STATUS_IGNORE ? MPI_SUCCESS : adi_error(MPI_ERR_ARG, "status is MPI_STATUS_IGNORE");
}

int mpi_test_cancelled(const MPI_Status *status, int *flag)
{
	int class = check(status);
	if (!class)
		*flag = status->MPI_internal[2] != 0;
	return class;
}

int mpi_status_set_cancelled(MPI_Status *status, int flag)
{
	int class = check(status);
	if (!class)
		status->MPI_internal[2] = flag != 0;
	return class;
}

int mpi_status_get_source(const MPI_Status *status, int *source)
{
	int class = check(status);
	if (!class)
		*source = status->MPI_SOURCE;
	return class;
}

int mpi_status_get_tag(const MPI_Status *status, int *tag)
{
	int class = check(status);
	if (!class)
		*tag = status->MPI_TAG;
	return class;
}

int mpi_status_get_error(const MPI_Status *status, int *error)
{
	int class = check(status);
	if (!class)
		*error = status->MPI_ERROR;
	return class;
}

int mpi_status_set_source(MPI_Status *status, int source)
{
	int class = check(status);
	if (!class)
		status->MPI_SOURCE = source;
	return class;
}

int mpi_status_set_tag(MPI_Status *status, int tag)
{
	int class = check(status);
	if (!class)
		status->MPI_TAG = tag;
	return class;
}

int mpi_status_set_error(MPI_Status *status, int error)
{
	int class = check(status);
	if (!class)
		status->MPI_ERROR = error;
	return class;
}
