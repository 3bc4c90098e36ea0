/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two compilations of copy_twin.c share. */
#ifndef RUNTIME_COPY_H
#define RUNTIME_COPY_H

#include "cuda_remote/runtime/runtime.h"

static inline bool copy_kind_valid(enum cudaMemcpyKind kind)
{
	return (unsigned)kind <= cudaMemcpyDefault;
}

/* Where a copy of this kind reads and writes. */
static inline CUmemorytype copy_source_type(enum cudaMemcpyKind kind)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST
									      : CU_MEMORYTYPE_DEVICE;
}

static inline CUmemorytype copy_target_type(enum cudaMemcpyKind kind)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST
									      : CU_MEMORYTYPE_DEVICE;
}

/*
 * size bytes at offset of a device variable, of which kind must be allowed (host_kind, device to device or default).
 * Enters a context. A failure is recorded.
 */
cudaError_t copy_symbol_range(const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind,
			      enum cudaMemcpyKind host_kind, void **address);

/*
 * Bytes of a unit of extents, and of positions in an array: a texel of the arrays there are (either may be NULL), or a
 * byte. cudaErrorInvalidValue: their texels differ; or why an array is none. Records nothing.
 */
cudaError_t copy_unit(cudaArray_t from, cudaArray_t to, size_t *unit);

/* The driver's form of a copy between pitched areas and arrays. Enter a context, record failures. */
cudaError_t copy_3d(const struct cudaMemcpy3DParms *parameters, CUDA_MEMCPY3D *copy, bool *empty);
cudaError_t copy_3d_peer(const struct cudaMemcpy3DPeerParms *parameters, CUDA_MEMCPY3D_PEER *copy, bool *empty);

#endif
