/* SPDX-License-Identifier: BSD-3-Clause */
/* Inquiries that need no message, memory, and time: MPI 5.0, sections 9.1, 9.2, 9.6 and 15.2. */
#define _GNU_SOURCE
#include "adi/bindings/functions.h"
#include "adi/core/entry.h"
#include "adi/core/info.h"
#include "headrace/channel.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ALIGNMENT 64 /* of MPI_Alloc_mem, bytes */

int mpi_get_processor_name(char *name, int *resultlen)
{
	if (gethostname(name, MPI_MAX_PROCESSOR_NAME))
		return adi_error(MPI_ERR_OTHER, "gethostname: %s", strerror(errno));
	name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';
	*resultlen = (int)strlen(name);
	return MPI_SUCCESS;
}

int mpi_get_version(int *version, int *subversion)
{
	*version = MPI_VERSION;
	*subversion = MPI_SUBVERSION;
	return MPI_SUCCESS;
}

int mpi_get_library_version(char *version, int *resultlen)
{
	*resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Headrace %s", hr_channel_version());
	return MPI_SUCCESS;
}

/* The alignment that the program asks for, bytes. */
static int alignment_of(const struct adi_info *info, size_t *alignment)
{
	const char *text = adi_info_get(info, "mpi_minimum_memory_alignment");
	char *end;
	*alignment = ALIGNMENT;
	if (!text)
		return MPI_SUCCESS;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end || end == text || !value || (value & (value - 1)) || value > (1ull << 40))
		return adi_error(MPI_ERR_INFO_VALUE, "mpi_minimum_memory_alignment is \"%s\"; valid: powers of two", text);
	if (value > ALIGNMENT)
		*alignment = value;
	return MPI_SUCCESS;
}

int mpi_alloc_mem(MPI_Aint size, struct adi_info *info, void *baseptr)
{
	size_t alignment;
	void *memory;
	if (size < 0)
		return adi_error(MPI_ERR_SIZE, "size is %lld; valid sizes: 0 and above", (long long)size);
	int class = alignment_of(info, &alignment);
	if (class)
		return class;
	if (posix_memalign(&memory, alignment, size ? (size_t)size : 1))
		return adi_error(MPI_ERR_NO_MEM, "no memory for %lld bytes", (long long)size);
	*(void **)baseptr = memory;
	return MPI_SUCCESS;
}

int mpi_free_mem(void *base)
{
	free(base);
	return MPI_SUCCESS;
}

/* The value says whether this process may use only one resource of the type. */
int mpi_get_hw_resource_info(MPI_Info *hw_info)
{
	cpu_set_t processors;
	bool single = !sched_getaffinity(0, sizeof processors, &processors) && CPU_COUNT(&processors) == 1;
	struct adi_info *info = adi_info_new();
	if (!info || adi_info_put(info, "headrace://Machine", "true") ||
	    adi_info_put(info, "headrace://Processor", single ? "true" : "false")) {
		adi_info_release(info);
		return adi_error(MPI_ERR_NO_MEM, "no memory for an info object");
	}
	*hw_info = (MPI_Info)info;
	return MPI_SUCCESS;
}

/* For tools that replace it. */
int PMPI_Pcontrol(const int level, ...)
{
	(void)level;
	return MPI_SUCCESS;
}
ADI_PROFILED(Pcontrol);

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
