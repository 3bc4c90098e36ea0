/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of a kernel launch, which launches in streams and kernel nodes of graphs share. */
#ifndef SOFTGPU_LAUNCH_SHAPE_H
#define SOFTGPU_LAUNCH_SHAPE_H

#include "cuda_remote/graph/driver.h"
#include "cuda_remote/softgpu/driver/module/module.h"

/* Checks the dimensions against the device's limits, then against the kernel's. */
CUresult launch_check_shape(const struct CUfunc_st *function, const launch_shape_t *shape);

/*
 * The blocks of a cluster for a launch that gives that size, or 0 three times: then as the function requires, else one
 * block. CUDA_ERROR_INVALID_CLUSTER_SIZE: the size does not fit the function or the device.
 */
CUresult launch_cluster(const struct CUfunc_st *function, const unsigned given[3], unsigned cluster[3]);
/* The size that the function's text or attributes require; false: they require none. */
bool launch_required_cluster(const struct CUfunc_st *function, unsigned cluster[3]);
/* What the engine is to run, without parameters. The shape has been checked. CUDA_ERROR_INVALID_CLUSTER_SIZE. */
CUresult launch_make(const struct CUfunc_st *function, const launch_shape_t *shape, softgpu_launch_t *launch);

/*
 * Copies parameters from kernelParams or from extra's buffer to a parameter block of info.parameter_bytes.
 * CUDA_ERROR_INVALID_VALUE: parameters are missing.
 */
CUresult launch_copy_parameters(const struct CUfunc_st *function, void **parameters, void **extra,
				unsigned char *block);

#endif
