/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the runtime's cudaMemcpyKind to the driver's types of memory. */
#ifndef RUNTIME_COPY_KIND_H
#define RUNTIME_COPY_KIND_H

#include "cuda_remote/runtime/cuda_headers.h"

#include <stdbool.h>

static inline bool copy_kind_valid(enum cudaMemcpyKind kind)
{
	return (unsigned)kind <= cudaMemcpyDefault;
}

/* The kind of memory that a copy of this kind reads. */
static inline CUmemorytype copy_source_type(enum cudaMemcpyKind kind)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST
									      : CU_MEMORYTYPE_DEVICE;
}

/* The kind of memory that a copy of this kind writes. */
static inline CUmemorytype copy_target_type(enum cudaMemcpyKind kind)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST
									      : CU_MEMORYTYPE_DEVICE;
}

#endif
