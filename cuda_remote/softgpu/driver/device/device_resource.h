/* SPDX-License-Identifier: BSD-3-Clause */
/* Device resources: multiprocessors, whole devices' or a part, that green contexts are made from. */
#ifndef SOFTGPU_DEVICE_RESOURCE_H
#define SOFTGPU_DEVICE_RESOURCE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/handle.h"

/* A descriptor of cuDevResourceGenerateDesc. CUDA has no call that frees it. */
struct CUdevResourceDesc_st {
	handle_t handle;
	CUdevResource resource; /* the sum of the resources that it was made from */
};

/* All multiprocessors of a device. */
void device_resource(CUdevice device, CUdevResource *resource);

/* The device whose multiprocessors a descriptor's resource contains. */
CUdevice device_resource_device(const CUdevResource *resource);

/* Turns a descriptor's resource into a green context's, which may be split again. */
void device_resource_provision(CUdevResource *resource);

#endif
