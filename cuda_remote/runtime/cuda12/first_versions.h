/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two files of functions that CUDA 13 has dropped or changed share. */
#ifndef RUNTIME_CUDA12_FIRST_VERSIONS_H
#define RUNTIME_CUDA12_FIRST_VERSIONS_H

#include "cuda_remote/runtime/runtime.h"

/* Begins the definition of a function that no header declares. */
#define DEFINE(name, ...) \
	RUNTIME_API cudaError_t name(__VA_ARGS__); \
	RUNTIME_API cudaError_t name(__VA_ARGS__)

/* The location that older functions give as a device's ordinal or cudaCpuDeviceId. */
static inline struct cudaMemLocation runtime_location(int device)
{
	if (device == cudaCpuDeviceId)
		return (struct cudaMemLocation){ .type = cudaMemLocationTypeHost };
	return (struct cudaMemLocation){ .type = cudaMemLocationTypeDevice, .id = device };
}

#endif
