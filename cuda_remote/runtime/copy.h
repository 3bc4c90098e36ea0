/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two compilations of copy_twice.c share. */
#ifndef RUNTIME_COPY_H
#define RUNTIME_COPY_H

#include "cuda_remote/runtime/copy_kind.h"
#include "cuda_remote/runtime/runtime.h"

/*
 * The address of size bytes at offset in a device variable. kind must be host_kind, device to device or default.
 * Enters a context. A failure is recorded.
 */
cudaError_t copy_symbol_range(const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind,
			      enum cudaMemcpyKind host_kind, void **address);

/*
 * The unit, in bytes, of a copy's extents and of positions in its arrays: a texel of the arrays, or 1 if both are NULL.
 * cudaErrorInvalidValue: the arrays' texels differ in size; or the driver's error for an invalid array. Records nothing.
 */
cudaError_t copy_unit(cudaArray_t from, cudaArray_t to, size_t *unit);

/* Convert a copy between pitched memory and arrays to the driver's form. Enter a context, record failures. */
cudaError_t copy_3d(const struct cudaMemcpy3DParms *parameters, CUDA_MEMCPY3D *copy, bool *empty);
cudaError_t copy_3d_peer(const struct cudaMemcpy3DPeerParms *parameters, CUDA_MEMCPY3D_PEER *copy, bool *empty);

#endif
