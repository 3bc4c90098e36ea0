/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of the predefined reduction operations: MPI 5.0, section 6.9.2. */
#ifndef ADI_COLLECTIVE_KERNELS_H
#define ADI_COLLECTIVE_KERNELS_H

#include "adi/datatype/type.h"

/* The handles' constants of the ABI, less ADI_OPS_FIRST. */
#define ADI_OPS_FIRST 0x20
enum adi_predefined_op {
	ADI_SUM = 1, ADI_MIN, ADI_MAX, ADI_PROD,
	ADI_BAND = 8, ADI_BOR, ADI_BXOR,
	ADI_LAND = 16, ADI_LOR, ADI_LXOR,
	ADI_MINLOC = 24, ADI_MAXLOC,
	ADI_REPLACE = 28, ADI_NO_OP,
	ADI_OPS
};

/* inout[i] = in[i] op inout[i] for i < n. NULL: not defined. The arrays do not overlap. */
extern void (*const adi_kernels[ADI_OPS][ADI_BASICS])(const void *in, void *inout, size_t n);

#endif
