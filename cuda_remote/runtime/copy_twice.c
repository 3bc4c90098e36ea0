/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and fills. The caller names the kinds of memory (cudaMemcpyKind), except for cudaMemcpyDefault and copies
 * between host memories, where the driver finds them by unified addresses.
 */
#include "cuda_remote/runtime/copy.h"
#include "cuda_remote/runtime/default_stream.h"

static CUresult copy_sync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return runtime_driver.DRIVER_CALL(cuMemcpyHtoD_v2)(runtime_address(to), from, size);
	case cudaMemcpyDeviceToHost:
		return runtime_driver.DRIVER_CALL(cuMemcpyDtoH_v2)(to, runtime_address(from), size);
	case cudaMemcpyDeviceToDevice:
		return runtime_driver.DRIVER_CALL(cuMemcpyDtoD_v2)(runtime_address(to), runtime_address(from), size);
	default:
		return runtime_driver.DRIVER_CALL(cuMemcpy)(runtime_address(to), runtime_address(from), size);
	}
}

static CUresult copy_async(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, CUstream stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return runtime_driver.cuMemcpyHtoDAsync_v2(runtime_address(to), from, size, stream);
	case cudaMemcpyDeviceToHost:
		return runtime_driver.cuMemcpyDtoHAsync_v2(to, runtime_address(from), size, stream);
	case cudaMemcpyDeviceToDevice:
		return runtime_driver.cuMemcpyDtoDAsync_v2(runtime_address(to), runtime_address(from), size, stream);
	default:
		return runtime_driver.cuMemcpyAsync(runtime_address(to), runtime_address(from), size, stream);
	}
}

/* The checks of all copies. *go becomes false if there is nothing to copy. */
static cudaError_t begin(enum cudaMemcpyKind kind, bool empty, bool *go)
{
	*go = false;
	if (!copy_kind_valid(kind))
		return runtime_fail(cudaErrorInvalidMemcpyDirection);
	cudaError_t error = runtime_enter();
	*go = !error && !empty;
	return error;
}

RUNTIME_API cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
	bool go;
	cudaError_t error = begin(kind, !size, &go);
	return go ? runtime_done(copy_sync(to, from, size, kind)) : error;
}

RUNTIME_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
					cudaStream_t stream)
{
	bool go;
	cudaError_t error = begin(kind, !size, &go);
	return go ? runtime_done(copy_async(to, from, size, kind, DRIVER_STREAM(stream))) : error;
}

RUNTIME_API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
					   enum cudaMemcpyKind kind)
{
	void *to;
	cudaError_t error = copy_symbol_range(symbol, size, offset, kind, cudaMemcpyHostToDevice, &to);
	return error || !size ? error : runtime_done(copy_sync(to, from, size, kind));
}

RUNTIME_API cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset,
					     enum cudaMemcpyKind kind)
{
	void *from;
	cudaError_t error = copy_symbol_range(symbol, size, offset, kind, cudaMemcpyDeviceToHost, &from);
	return error || !size ? error : runtime_done(copy_sync(to, from, size, kind));
}

RUNTIME_API cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset,
						enum cudaMemcpyKind kind, cudaStream_t stream)
{
	void *to;
	cudaError_t error = copy_symbol_range(symbol, size, offset, kind, cudaMemcpyHostToDevice, &to);
	return error || !size ? error : runtime_done(copy_async(to, from, size, kind, DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset,
						  enum cudaMemcpyKind kind, cudaStream_t stream)
{
	void *from;
	cudaError_t error = copy_symbol_range(symbol, size, offset, kind, cudaMemcpyDeviceToHost, &from);
	return error || !size ? error : runtime_done(copy_async(to, from, size, kind, DRIVER_STREAM(stream)));
}

static CUDA_MEMCPY2D copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
		size_t height, enum cudaMemcpyKind kind)
{
	/* Both pointers are set: the driver reads the one that the memory type names. */
	return (CUDA_MEMCPY2D){
		.srcMemoryType = copy_source_type(kind), .srcHost = from, .srcDevice = runtime_address(from),
		.srcPitch = from_pitch,
		.dstMemoryType = copy_target_type(kind), .dstHost = to, .dstDevice = runtime_address(to),
		.dstPitch = to_pitch,
		.WidthInBytes = width, .Height = height,
	};
}

RUNTIME_API cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
				     size_t height, enum cudaMemcpyKind kind)
{
	bool go;
	if (width > to_pitch || width > from_pitch)
		return runtime_fail(cudaErrorInvalidPitchValue);
	cudaError_t error = begin(kind, !width || !height, &go);
	CUDA_MEMCPY2D copy = copy_2d(to, to_pitch, from, from_pitch, width, height, kind);
	return go ? runtime_done(runtime_driver.DRIVER_CALL(cuMemcpy2DUnaligned_v2)(&copy)) : error;
}

RUNTIME_API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
					  size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	bool go;
	if (width > to_pitch || width > from_pitch)
		return runtime_fail(cudaErrorInvalidPitchValue);
	cudaError_t error = begin(kind, !width || !height, &go);
	CUDA_MEMCPY2D copy = copy_2d(to, to_pitch, from, from_pitch, width, height, kind);
	return go ? runtime_done(runtime_driver.cuMemcpy2DAsync_v2(&copy, DRIVER_STREAM(stream))) : error;
}

RUNTIME_API cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters)
{
	CUDA_MEMCPY3D copy;
	bool empty;
	cudaError_t error = copy_3d(parameters, &copy, &empty);
	return error || empty ? error : runtime_done(runtime_driver.DRIVER_CALL(cuMemcpy3D_v2)(&copy));
}

RUNTIME_API cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream)
{
	CUDA_MEMCPY3D copy;
	bool empty;
	cudaError_t error = copy_3d(parameters, &copy, &empty);
	return error || empty ? error : runtime_done(runtime_driver.cuMemcpy3DAsync_v2(&copy, DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *parameters)
{
	CUDA_MEMCPY3D_PEER copy;
	bool empty;
	cudaError_t error = copy_3d_peer(parameters, &copy, &empty);
	return error || empty ? error : runtime_done(runtime_driver.DRIVER_CALL(cuMemcpy3DPeer)(&copy));
}

RUNTIME_API cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *parameters, cudaStream_t stream)
{
	CUDA_MEMCPY3D_PEER copy;
	bool empty;
	cudaError_t error = copy_3d_peer(parameters, &copy, &empty);
	return error || empty ? error : runtime_done(runtime_driver.cuMemcpy3DPeerAsync(&copy, DRIVER_STREAM(stream)));
}

/* ---- fills ---- */

RUNTIME_API cudaError_t cudaMemset(void *pointer, int value, size_t size)
{
	cudaError_t error = runtime_enter();
	if (error || !size)
		return error;
	return runtime_done(
			runtime_driver.DRIVER_CALL(cuMemsetD8_v2)(runtime_address(pointer), (unsigned char)value, size));
}

RUNTIME_API cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	if (error || !size)
		return error;
	return runtime_done(runtime_driver.cuMemsetD8Async(runtime_address(pointer), (unsigned char)value, size,
							   DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
	cudaError_t error = runtime_enter();
	if (error || !width || !height)
		return error;
	return runtime_done(runtime_driver.DRIVER_CALL(cuMemsetD2D8_v2)(runtime_address(pointer), pitch,
			(unsigned char)value, width, height));
}

RUNTIME_API cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
					  cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	if (error || !width || !height)
		return error;
	return runtime_done(runtime_driver.cuMemsetD2D8Async(
			runtime_address(pointer), pitch, (unsigned char)value, width, height, DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaMemset3D(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent)
{
	cudaError_t error = cudaSuccess;
	/* Slices without gaps between them are one area. */
	if (pitched.ysize == extent.height)
		return cudaMemset2D(pitched.ptr, pitched.pitch, value, extent.width, extent.height * extent.depth);
	for (size_t z = 0; z < extent.depth && !error; z++)
		error = cudaMemset2D((char *)pitched.ptr + z * pitched.pitch * pitched.ysize, pitched.pitch, value,
				     extent.width, extent.height);
	return error;
}

RUNTIME_API cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent,
					  cudaStream_t stream)
{
	cudaError_t error = cudaSuccess;
	if (pitched.ysize == extent.height)
		return cudaMemset2DAsync(pitched.ptr, pitched.pitch, value, extent.width, extent.height * extent.depth,
					 stream);
	for (size_t z = 0; z < extent.depth && !error; z++)
		error = cudaMemset2DAsync((char *)pitched.ptr + z * pitched.pitch * pitched.ysize, pitched.pitch, value,
					  extent.width, extent.height, stream);
	return error;
}
