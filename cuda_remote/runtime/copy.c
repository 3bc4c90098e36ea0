/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies: conversion to the driver's form, and copies between devices. */
#include "cuda_remote/runtime/copy.h"

#include "cuda_remote/runtime/array/array_copy.h"

#include <string.h>

cudaError_t copy_symbol_range(const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind,
			      enum cudaMemcpyKind host_kind, void **address)
{
	size_t whole;
	if (kind != host_kind && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		return runtime_fail(cudaErrorInvalidMemcpyDirection);
	cudaError_t error = cudaGetSymbolSize(&whole, symbol);
	if (error)
		return error;
	if (offset > whole || size > whole - offset)
		return runtime_fail(cudaErrorInvalidValue);
	error = cudaGetSymbolAddress(address, symbol);
	if (!error)
		*address = (char *)*address + offset;
	return error;
}

static bool is_empty(struct cudaExtent extent)
{
	return !extent.width || !extent.height || !extent.depth;
}

cudaError_t copy_unit(cudaArray_t from, cudaArray_t to, size_t *unit)
{
	size_t row, from_texel = 1, to_texel = 1;
	cudaError_t error = cudaSuccess;
	if (from)
		error = array_row_bytes(from, &row, &from_texel);
	if (to && !error)
		error = array_row_bytes(to, &row, &to_texel);
	*unit = from ? from_texel : to_texel;
	return !error && from && to && from_texel != to_texel ? cudaErrorInvalidValue : error;
}

/*
 * If either end is an array, extents are in texels, and positions in an array are too; everything else is in bytes.
 */
cudaError_t copy_3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *copy, bool *empty)
{
	size_t unit;
	if (!p)
		return runtime_fail(cudaErrorInvalidValue);
	const struct array_end to = { .array = p->dstArray }, from = { .array = p->srcArray };
	cudaError_t error = array_copy_check(&to, &from, p->kind);
	if (!error)
		error = runtime_enter();
	if (error)
		return error;
	error = copy_unit(p->srcArray, p->dstArray, &unit);
	if (error)
		return runtime_fail(error);
	memset(copy, 0, sizeof *copy);
	copy->srcXInBytes = p->srcPos.x * (p->srcArray ? unit : 1), copy->srcY = p->srcPos.y, copy->srcZ = p->srcPos.z;
	copy->srcMemoryType = p->srcArray ? CU_MEMORYTYPE_ARRAY : copy_source_type(p->kind);
	copy->srcArray = (CUarray)p->srcArray;
	copy->srcHost = p->srcPtr.ptr, copy->srcDevice = runtime_address(p->srcPtr.ptr);
	copy->srcPitch = p->srcPtr.pitch, copy->srcHeight = p->srcPtr.ysize;
	copy->dstXInBytes = p->dstPos.x * (p->dstArray ? unit : 1), copy->dstY = p->dstPos.y, copy->dstZ = p->dstPos.z;
	copy->dstMemoryType = p->dstArray ? CU_MEMORYTYPE_ARRAY : copy_target_type(p->kind);
	copy->dstArray = (CUarray)p->dstArray;
	copy->dstHost = p->dstPtr.ptr, copy->dstDevice = runtime_address(p->dstPtr.ptr);
	copy->dstPitch = p->dstPtr.pitch, copy->dstHeight = p->dstPtr.ysize;
	copy->WidthInBytes = p->extent.width * unit, copy->Height = p->extent.height, copy->Depth = p->extent.depth;
	*empty = is_empty(p->extent);
	return cudaSuccess;
}

static cudaError_t primary_handle(int ordinal, CUcontext *handle)
{
	struct runtime_context *context;
	cudaError_t error = runtime_context_primary(ordinal, &context);
	if (!error)
		/* Orders nothing: the value is only passed on. */
		*handle = atomic_load_explicit(&context->handle, memory_order_relaxed);
	return error;
}

cudaError_t copy_3d_peer(const struct cudaMemcpy3DPeerParms *p, CUDA_MEMCPY3D_PEER *copy, bool *empty)
{
	size_t unit = 1;
	if (!p)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	memset(copy, 0, sizeof *copy);
	error = primary_handle(p->srcDevice, &copy->srcContext);
	if (!error)
		error = primary_handle(p->dstDevice, &copy->dstContext);
	if (!error)
		error = copy_unit(p->srcArray, p->dstArray, &unit);
	if (error)
		return runtime_fail(error);
	copy->srcXInBytes = p->srcPos.x * (p->srcArray ? unit : 1), copy->srcY = p->srcPos.y, copy->srcZ = p->srcPos.z;
	copy->srcMemoryType = p->srcArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
	copy->srcArray = (CUarray)p->srcArray;
	copy->srcDevice = runtime_address(p->srcPtr.ptr);
	copy->srcPitch = p->srcPtr.pitch, copy->srcHeight = p->srcPtr.ysize;
	copy->dstXInBytes = p->dstPos.x * (p->dstArray ? unit : 1), copy->dstY = p->dstPos.y, copy->dstZ = p->dstPos.z;
	copy->dstMemoryType = p->dstArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
	copy->dstArray = (CUarray)p->dstArray;
	copy->dstDevice = runtime_address(p->dstPtr.ptr);
	copy->dstPitch = p->dstPtr.pitch, copy->dstHeight = p->dstPtr.ysize;
	copy->WidthInBytes = p->extent.width * unit, copy->Height = p->extent.height, copy->Depth = p->extent.depth;
	*empty = is_empty(p->extent);
	return cudaSuccess;
}

static cudaError_t both_contexts(int to, CUcontext *to_context, int from, CUcontext *from_context)
{
	cudaError_t error = primary_handle(to, to_context);
	if (!error)
		error = primary_handle(from, from_context);
	return error ? runtime_fail(error) : runtime_enter();
}

RUNTIME_API cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size)
{
	CUcontext to_context = NULL, from_context = NULL;
	cudaError_t error = both_contexts(to_device, &to_context, from_device, &from_context);
	if (error || !size)
		return error;
	return runtime_done(runtime_driver.cuMemcpyPeer(runtime_address(to), to_context, runtime_address(from),
							from_context, size));
}

/* Has no per-thread variant in CUDA's interface: stream 0 is the legacy stream in every compilation. */
RUNTIME_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
					    cudaStream_t stream)
{
	CUcontext to_context = NULL, from_context = NULL;
	cudaError_t error = both_contexts(to_device, &to_context, from_device, &from_context);
	if (error || !size)
		return error;
	return runtime_done(runtime_driver.cuMemcpyPeerAsync(runtime_address(to), to_context, runtime_address(from),
							     from_context, size, stream));
}
