/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the MPI test programs: a check that ends the job, and bytes that depend on their offset and a seed. */
#ifndef TEST_ADI_CHECK_MPI_H
#define TEST_ADI_CHECK_MPI_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                             \
	do {                                                                                         \
		if (!(condition)) {                                                                  \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);    \
			MPI_Abort(MPI_COMM_WORLD, 1);                                                \
		}                                                                                    \
	} while (0)

static inline unsigned char pattern(size_t i, unsigned seed)
{
	return (unsigned char)(seed * 37 + i * 11 + (i >> 8) * 7 + (i >> 16));
}

static inline void fill(void *bytes, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		((unsigned char *)bytes)[i] = pattern(i, seed);
}

static inline bool filled(const void *bytes, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (((const unsigned char *)bytes)[i] != pattern(i, seed))
			return false;
	return true;
}

#endif
