/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of counts or displacements as the program passed them: of int (or MPI_Aint), or of MPI_Count in the functions whose names
 * end in _c. */
#ifndef ADI_CORE_ARRAY_H
#define ADI_CORE_ARRAY_H

#include "adi/mpi.h"

struct adi_array {
	const void *values; /* may be NULL */
	unsigned char bytes; /* of a value: 4 or 8 */
};

static inline MPI_Count adi_at(struct adi_array array, MPI_Count i)
{
	return array.bytes == 4 ? ((const int *)array.values)[i] : ((const MPI_Count *)array.values)[i];
}

#endif
