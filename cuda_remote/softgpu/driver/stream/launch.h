/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel launches: everything is checked before anything is submitted. */
#ifndef SOFTGPU_LAUNCH_H
#define SOFTGPU_LAUNCH_H

#include "cuda_remote/softgpu/driver/module/module.h"

typedef struct launch_shape {
	unsigned grid[3], block[3];
	unsigned dynamic_shared;
	bool cooperative;
} launch_shape_t;

/*
 * Launches in the stream that the handle means (a CUkernel will do as function). Parameters come as kernelParams or
 * in extra's buffer; they are copied before the call returns. The stream it went to is put out for the caller's events.
 */
CUresult launch_submit(CUfunction function, const launch_shape_t *shape, CUstream handle, void **parameters,
		       void **extra, CUstream *stream);

/* The same with attributes: those that only tune or allow are accepted, clusters are not. */
CUresult launch_submit_ex(const CUlaunchConfig *config, CUfunction function, CUstream handle, void **parameters,
			  void **extra);

/* Dimensions against the device's limits, then against the kernel's. */
CUresult launch_check_shape(const struct CUfunc_st *function, const launch_shape_t *shape);

/* From kernelParams or extra's buffer to a parameter block of info.parameter_bytes. */
CUresult launch_copy_parameters(const struct CUfunc_st *function, void **parameters, void **extra,
				unsigned char *block);

/* Blocks of a function that a multiprocessor holds, by the model in occupancy.c. */
unsigned launch_occupancy(const struct CUfunc_st *function, unsigned threads, uint64_t dynamic_shared);

#endif
