/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA arrays and mipmapped arrays. Their handles are the driver's. */
#include "cuda_remote/runtime/array/channel_format.h"

static CUarray driver_array(cudaArray_const_t array)
{
	return (CUarray)(uintptr_t)array;
}

static CUmipmappedArray driver_mipmap(cudaMipmappedArray_const_t mipmap)
{
	return (CUmipmappedArray)(uintptr_t)mipmap;
}

_Static_assert(cudaArrayLayered == CUDA_ARRAY3D_LAYERED && cudaArraySurfaceLoadStore == CUDA_ARRAY3D_SURFACE_LDST &&
	       cudaArrayCubemap == CUDA_ARRAY3D_CUBEMAP && cudaArrayTextureGather == CUDA_ARRAY3D_TEXTURE_GATHER &&
	       cudaArrayColorAttachment == CUDA_ARRAY3D_COLOR_ATTACHMENT && cudaArraySparse == CUDA_ARRAY3D_SPARSE &&
	       cudaArrayDeferredMapping == CUDA_ARRAY3D_DEFERRED_MAPPING, "flags of arrays are passed through");

static cudaError_t describe(const struct cudaChannelFormatDesc *channel, struct cudaExtent extent, unsigned flags,
			    CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	*descriptor = (CUDA_ARRAY3D_DESCRIPTOR){ .Width = extent.width, .Height = extent.height,
						 .Depth = extent.depth, .Flags = flags };
	if (!channel)
		return runtime_fail(cudaErrorInvalidValue);
	if (!channel_to_format(channel, &descriptor->Format, &descriptor->NumChannels))
		return runtime_fail(cudaErrorInvalidChannelDescriptor);
	return runtime_enter();
}

RUNTIME_API cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channel,
					  struct cudaExtent extent, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CUarray made;
	cudaError_t error = array ? describe(channel, extent, flags, &descriptor) : runtime_fail(cudaErrorInvalidValue);
	if (error)
		return error;
	CUresult result = runtime_driver.cuArray3DCreate_v2(&made, &descriptor);
	if (result == CUDA_SUCCESS)
		*array = (cudaArray_t)made;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channel, size_t width,
					size_t height, unsigned flags)
{
	return cudaMalloc3DArray(array, channel, (struct cudaExtent){ width, height, 0 }, flags);
}

RUNTIME_API cudaError_t cudaFreeArray(cudaArray_t array)
{
	cudaError_t error = runtime_enter();
	if (error || !array)
		return error;
	return runtime_done(runtime_driver.cuArrayDestroy(driver_array(array)));
}

RUNTIME_API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmap,
						 const struct cudaChannelFormatDesc *channel,
						 struct cudaExtent extent, unsigned levels, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CUmipmappedArray made;
	cudaError_t error = mipmap ? describe(channel, extent, flags, &descriptor)
				   : runtime_fail(cudaErrorInvalidValue);
	if (error)
		return error;
	CUresult result = runtime_driver.cuMipmappedArrayCreate(&made, &descriptor, levels);
	if (result == CUDA_SUCCESS)
		*mipmap = (cudaMipmappedArray_t)made;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_const_t mipmap,
						   unsigned level)
{
	CUarray found;
	if (!array)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuMipmappedArrayGetLevel(&found, driver_mipmap(mipmap), level);
	if (result == CUDA_SUCCESS)
		*array = (cudaArray_t)found;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap)
{
	cudaError_t error = runtime_enter();
	if (error || !mipmap)
		return error;
	return runtime_done(runtime_driver.cuMipmappedArrayDestroy(driver_mipmap(mipmap)));
}

RUNTIME_API cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *channel, struct cudaExtent *extent,
					 unsigned *flags, cudaArray_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuArray3DGetDescriptor_v2(&descriptor, driver_array(array));
	if (result != CUDA_SUCCESS)
		return runtime_done(result);
	if (channel)
		*channel = channel_of_format(descriptor.Format, descriptor.NumChannels);
	if (extent)
		*extent = (struct cudaExtent){ descriptor.Width, descriptor.Height, descriptor.Depth };
	if (flags)
		*flags = descriptor.Flags;
	return cudaSuccess;
}

RUNTIME_API cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *channel, cudaArray_const_t array)
{
	if (!channel)
		return runtime_fail(cudaErrorInvalidValue);
	return cudaArrayGetInfo(channel, NULL, NULL, (cudaArray_t)(uintptr_t)array);
}

RUNTIME_API cudaError_t cudaArrayGetPlane(cudaArray_t *plane, cudaArray_t array, unsigned index)
{
	CUarray found;
	if (!plane)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuArrayGetPlane(&found, driver_array(array), index);
	if (result == CUDA_SUCCESS)
		*plane = (cudaArray_t)found;
	return runtime_done(result);
}

_Static_assert(sizeof(struct cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) &&
	       sizeof(struct cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES),
	       "descriptions are passed through");

RUNTIME_API cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *requirements,
						       cudaArray_t array, int device)
{
	CUdevice handle;
	cudaError_t error = runtime_device(device, &handle);
	if (error)
		return runtime_fail(error);
	error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuArrayGetMemoryRequirements(
			(CUDA_ARRAY_MEMORY_REQUIREMENTS *)requirements, driver_array(array), handle));
}

RUNTIME_API cudaError_t cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *requirements,
								cudaMipmappedArray_t mipmap, int device)
{
	CUdevice handle;
	cudaError_t error = runtime_device(device, &handle);
	if (error)
		return runtime_fail(error);
	error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuMipmappedArrayGetMemoryRequirements(
			(CUDA_ARRAY_MEMORY_REQUIREMENTS *)requirements, driver_mipmap(mipmap), handle));
}

RUNTIME_API cudaError_t cudaArrayGetSparseProperties(struct cudaArraySparseProperties *properties, cudaArray_t array)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuArrayGetSparseProperties(
			(CUDA_ARRAY_SPARSE_PROPERTIES *)properties, driver_array(array)));
}

RUNTIME_API cudaError_t cudaMipmappedArrayGetSparseProperties(struct cudaArraySparseProperties *properties,
							      cudaMipmappedArray_t mipmap)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuMipmappedArrayGetSparseProperties(
			(CUDA_ARRAY_SPARSE_PROPERTIES *)properties, driver_mipmap(mipmap)));
}
