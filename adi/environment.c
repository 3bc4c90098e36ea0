/* SPDX-License-Identifier: BSD-3-Clause */
/* Inquiries that need no message: MPI 5.0, sections 9.1, 9.6 and 20.1. */
#include "adi/adi.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int PMPI_Get_processor_name(char *name, int *resultlen)
{
	int class = adi_check_running("MPI_Get_processor_name");
	if (class)
		return class;
	if (!name || !resultlen)
		return adi_raise(NULL, "MPI_Get_processor_name", MPI_ERR_ARG, "a null pointer");
	if (gethostname(name, MPI_MAX_PROCESSOR_NAME))
		return adi_raise(NULL, "MPI_Get_processor_name", MPI_ERR_OTHER, "gethostname: %m");
	name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';
	*resultlen = (int)strlen(name);
	return MPI_SUCCESS;
}
ADI_PROFILED(Get_processor_name);

int PMPI_Get_version(int *version, int *subversion)
{
	if (!version || !subversion)
		return adi_raise(NULL, "MPI_Get_version", MPI_ERR_ARG, "a null pointer");
	*version = MPI_VERSION;
	*subversion = MPI_SUBVERSION;
	return MPI_SUCCESS;
}
ADI_PROFILED(Get_version);

int PMPI_Get_library_version(char *version, int *resultlen)
{
	if (!version || !resultlen)
		return adi_raise(NULL, "MPI_Get_library_version", MPI_ERR_ARG, "a null pointer");
	*resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Headrace %s", hr_channel_version());
	return MPI_SUCCESS;
}
ADI_PROFILED(Get_library_version);

int PMPI_Abi_get_version(int *abi_major, int *abi_minor)
{
	if (!abi_major || !abi_minor)
		return adi_raise(NULL, "MPI_Abi_get_version", MPI_ERR_ARG, "a null pointer");
	*abi_major = MPI_ABI_VERSION;
	*abi_minor = MPI_ABI_SUBVERSION;
	return MPI_SUCCESS;
}
ADI_PROFILED(Abi_get_version);

static double seconds(struct timespec time)
{
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double PMPI_Wtime(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return seconds(now);
}
ADI_PROFILED(Wtime);

double PMPI_Wtick(void)
{
	struct timespec resolution;
	clock_getres(CLOCK_MONOTONIC, &resolution);
	return seconds(resolution);
}
ADI_PROFILED(Wtick);
