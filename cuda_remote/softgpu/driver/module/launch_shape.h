/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of a kernel launch, which launches in streams and kernel nodes of graphs share. */
#ifndef SOFTGPU_LAUNCH_SHAPE_H
#define SOFTGPU_LAUNCH_SHAPE_H

#include "cuda_remote/graph/driver.h"
#include "cuda_remote/softgpu/driver/module/module.h"

/* Checks the dimensions against the device's limits, then against the kernel's. */
CUresult launch_check_shape(const struct CUfunc_st *function, const launch_shape_t *shape);

/*
 * Copies parameters from kernelParams or from extra's buffer to a parameter block of info.parameter_bytes.
 * CUDA_ERROR_INVALID_VALUE: parameters are missing.
 */
CUresult launch_copy_parameters(const struct CUfunc_st *function, void **parameters, void **extra,
				unsigned char *block);

#endif
