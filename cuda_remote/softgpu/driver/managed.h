/* SPDX-License-Identifier: BSD-3-Clause */
/* Managed memory: where it is asked to be, and what is advised. */
#ifndef SOFTGPU_MANAGED_H
#define SOFTGPU_MANAGED_H

#include "cuda_remote/softgpu/driver/cuda_api.h"

/* CUDA_ERROR_INVALID_VALUE: the range is not managed memory as a whole, or the location none; _INVALID_DEVICE. */
CUresult managed_check(CUdeviceptr address, size_t bytes, const CUmemLocation *location);

#endif
