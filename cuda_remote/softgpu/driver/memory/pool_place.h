/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a pool's memory is and of which kind it is, as CUmemPoolProps and the calls of CUDA 13 name it. */
#ifndef SOFTGPU_POOL_PLACE_H
#define SOFTGPU_POOL_PLACE_H

#include "cuda_remote/softgpu/space/space.h"

#include <cuda.h>

#define POOL_NODES 64 /* of NUMA: higher numbers are refused */
#define POOL_PLACES (2 * SOFTGPU_MAX_DEVICES + POOL_NODES + 3)

typedef struct pool_place {
	enum softgpu_space_kind kind;
	CUdevice device; /* -1: of the stream that allocates */
	unsigned index;  /* below POOL_PLACES; different for each place */
} pool_place_t;

/*
 * Pinned memory is that of a device or of the host; managed memory may name these, a node of NUMA or nothing as the place
 * that it prefers. All places are one memory here, so a preference has no effect. CUDA_ERROR_INVALID_VALUE, _INVALID_DEVICE;
 * _NOT_SUPPORTED: pinned memory of a node.
 */
CUresult pool_place_find(const CUmemLocation *location, CUmemAllocationType type, pool_place_t *place);

/* Pinned memory of a device. */
pool_place_t pool_place_device(CUdevice device);

#endif
