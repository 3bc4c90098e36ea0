/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/runtime/copy.h"

#include "rdma_channel/base/log.h"

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

static cudaError_t refuse_arrays(const void *from, const void *to)
{
	if (!from && !to)
		return cudaSuccess;
	hr_log_once(HR_LOG_WARN, "copies of CUDA arrays are not supported");
	return cudaErrorNotSupported;
}

cudaError_t copy_3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *copy, bool *empty)
{
	if (!p)
		return runtime_fail(cudaErrorInvalidValue);
	if (!copy_kind_valid(p->kind))
		return runtime_fail(cudaErrorInvalidMemcpyDirection);
	cudaError_t error = refuse_arrays(p->srcArray, p->dstArray);
	if (error)
		return runtime_fail(error);
	/* Without an array, positions and widths are in bytes. */
	memset(copy, 0, sizeof *copy);
	copy->srcXInBytes = p->srcPos.x, copy->srcY = p->srcPos.y, copy->srcZ = p->srcPos.z;
	copy->srcMemoryType = copy_source_type(p->kind);
	copy->srcHost = p->srcPtr.ptr, copy->srcDevice = runtime_address(p->srcPtr.ptr);
	copy->srcPitch = p->srcPtr.pitch, copy->srcHeight = p->srcPtr.ysize;
	copy->dstXInBytes = p->dstPos.x, copy->dstY = p->dstPos.y, copy->dstZ = p->dstPos.z;
	copy->dstMemoryType = copy_target_type(p->kind);
	copy->dstHost = p->dstPtr.ptr, copy->dstDevice = runtime_address(p->dstPtr.ptr);
	copy->dstPitch = p->dstPtr.pitch, copy->dstHeight = p->dstPtr.ysize;
	copy->WidthInBytes = p->extent.width, copy->Height = p->extent.height, copy->Depth = p->extent.depth;
	*empty = is_empty(p->extent);
	return runtime_enter();
}

static cudaError_t primary_handle(int ordinal, CUcontext *handle)
{
	struct runtime_context *context;
	cudaError_t error = runtime_context_primary(ordinal, &context);
	if (!error)
		/* A value to pass on, nothing more; relaxed order suffices. */
		*handle = atomic_load_explicit(&context->handle, memory_order_relaxed);
	return error;
}

cudaError_t copy_3d_peer(const struct cudaMemcpy3DPeerParms *p, CUDA_MEMCPY3D_PEER *copy, bool *empty)
{
	if (!p)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = refuse_arrays(p->srcArray, p->dstArray);
	memset(copy, 0, sizeof *copy);
	if (!error)
		error = primary_handle(p->srcDevice, &copy->srcContext);
	if (!error)
		error = primary_handle(p->dstDevice, &copy->dstContext);
	if (error)
		return runtime_fail(error);
	copy->srcXInBytes = p->srcPos.x, copy->srcY = p->srcPos.y, copy->srcZ = p->srcPos.z;
	copy->srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy->srcDevice = runtime_address(p->srcPtr.ptr);
	copy->srcPitch = p->srcPtr.pitch, copy->srcHeight = p->srcPtr.ysize;
	copy->dstXInBytes = p->dstPos.x, copy->dstY = p->dstPos.y, copy->dstZ = p->dstPos.z;
	copy->dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy->dstDevice = runtime_address(p->dstPtr.ptr);
	copy->dstPitch = p->dstPtr.pitch, copy->dstHeight = p->dstPtr.ysize;
	copy->WidthInBytes = p->extent.width, copy->Height = p->extent.height, copy->Depth = p->extent.depth;
	*empty = is_empty(p->extent);
	return runtime_enter();
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

/* Without a twin in the interface: stream 0 is the legacy stream in every compilation. */
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
