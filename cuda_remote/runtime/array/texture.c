/* SPDX-License-Identifier: BSD-3-Clause */
/* Texture and surface objects. They are the driver's; only the form of the descriptions differs. */
#include "cuda_remote/runtime/array/channel_format.h"

#include <string.h>

_Static_assert((int)cudaResourceTypeArray == CU_RESOURCE_TYPE_ARRAY &&
	       (int)cudaResourceTypeMipmappedArray == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY &&
	       (int)cudaResourceTypeLinear == CU_RESOURCE_TYPE_LINEAR &&
	       (int)cudaResourceTypePitch2D == CU_RESOURCE_TYPE_PITCH2D, "types of resources are passed through");
_Static_assert((int)cudaAddressModeBorder == CU_TR_ADDRESS_MODE_BORDER &&
	       (int)cudaAddressModeMirror == CU_TR_ADDRESS_MODE_MIRROR &&
	       (int)cudaAddressModeClamp == CU_TR_ADDRESS_MODE_CLAMP &&
	       (int)cudaAddressModeWrap == CU_TR_ADDRESS_MODE_WRAP &&
	       (int)cudaFilterModeLinear == CU_TR_FILTER_MODE_LINEAR, "modes are passed through");
_Static_assert(sizeof(struct cudaResourceViewDesc) <= sizeof(CUDA_RESOURCE_VIEW_DESC) &&
	       offsetof(struct cudaResourceViewDesc, lastLayer) == offsetof(CUDA_RESOURCE_VIEW_DESC, lastLayer) &&
	       (int)cudaResViewFormatFloat4 == CU_RES_VIEW_FORMAT_FLOAT_4X32 &&
	       (int)cudaResViewFormatUnsignedBlockCompressed7 == CU_RES_VIEW_FORMAT_UNSIGNED_BC7,
	       "views are passed through");

#ifdef RUNTIME_CUDA_12 /* its structure has no flags */
static unsigned flags_of(const struct cudaResourceDesc *resource)
{
	(void)resource;
	return 0;
}

static void set_flags(struct cudaResourceDesc *resource, unsigned flags)
{
	(void)resource;
	(void)flags;
}
#else
static unsigned flags_of(const struct cudaResourceDesc *resource)
{
	return resource->flags;
}

static void set_flags(struct cudaResourceDesc *resource, unsigned flags)
{
	resource->flags = flags;
}
#endif

static cudaError_t to_driver_resource(const struct cudaResourceDesc *from, CUDA_RESOURCE_DESC *to)
{
	bool known = true;
	*to = (CUDA_RESOURCE_DESC){ .resType = (CUresourcetype)from->resType, .flags = flags_of(from) };
	switch (from->resType) {
	case cudaResourceTypeArray:
		to->res.array.hArray = (CUarray)from->res.array.array;
		break;
	case cudaResourceTypeMipmappedArray:
		to->res.mipmap.hMipmappedArray = (CUmipmappedArray)from->res.mipmap.mipmap;
		break;
	case cudaResourceTypeLinear:
		to->res.linear.devPtr = runtime_address(from->res.linear.devPtr);
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		known = channel_to_format(&from->res.linear.desc, &to->res.linear.format, &to->res.linear.numChannels);
		break;
	case cudaResourceTypePitch2D:
		to->res.pitch2D.devPtr = runtime_address(from->res.pitch2D.devPtr);
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		known = channel_to_format(&from->res.pitch2D.desc, &to->res.pitch2D.format,
					  &to->res.pitch2D.numChannels);
		break;
	default:
		return cudaErrorInvalidValue;
	}
	return known ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

static void from_driver_resource(const CUDA_RESOURCE_DESC *from, struct cudaResourceDesc *to)
{
	*to = (struct cudaResourceDesc){ .resType = (enum cudaResourceType)from->resType };
	set_flags(to, from->flags);
	switch (from->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		to->res.array.array = (cudaArray_t)from->res.array.hArray;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		to->res.mipmap.mipmap = (cudaMipmappedArray_t)from->res.mipmap.hMipmappedArray;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		to->res.linear.devPtr = (void *)(uintptr_t)from->res.linear.devPtr;
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		to->res.linear.desc = channel_of_format(from->res.linear.format, from->res.linear.numChannels);
		break;
	default:
		to->res.pitch2D.devPtr = (void *)(uintptr_t)from->res.pitch2D.devPtr;
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		to->res.pitch2D.desc = channel_of_format(from->res.pitch2D.format, from->res.pitch2D.numChannels);
		break;
	}
}

static void to_driver_texture(const struct cudaTextureDesc *from, CUDA_TEXTURE_DESC *to)
{
	*to = (CUDA_TEXTURE_DESC){ .filterMode = (CUfilter_mode)from->filterMode, .maxAnisotropy = from->maxAnisotropy,
				   .mipmapFilterMode = (CUfilter_mode)from->mipmapFilterMode,
				   .mipmapLevelBias = from->mipmapLevelBias,
				   .minMipmapLevelClamp = from->minMipmapLevelClamp,
				   .maxMipmapLevelClamp = from->maxMipmapLevelClamp };
	for (int n = 0; n < 3; n++)
		to->addressMode[n] = (CUaddress_mode)from->addressMode[n];
	memcpy(to->borderColor, from->borderColor, sizeof to->borderColor);
	to->flags = (from->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0) |
		    (from->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
		    (from->sRGB ? CU_TRSF_SRGB : 0) |
		    (from->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0) |
		    (from->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0);
}

static void from_driver_texture(const CUDA_TEXTURE_DESC *from, struct cudaTextureDesc *to)
{
	*to = (struct cudaTextureDesc){ .filterMode = (enum cudaTextureFilterMode)from->filterMode,
		.readMode = from->flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType
								  : cudaReadModeNormalizedFloat,
		.sRGB = (from->flags & CU_TRSF_SRGB) != 0,
		.normalizedCoords = (from->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0,
		.maxAnisotropy = from->maxAnisotropy,
		.mipmapFilterMode = (enum cudaTextureFilterMode)from->mipmapFilterMode,
		.mipmapLevelBias = from->mipmapLevelBias, .minMipmapLevelClamp = from->minMipmapLevelClamp,
		.maxMipmapLevelClamp = from->maxMipmapLevelClamp,
		.disableTrilinearOptimization = (from->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0,
		.seamlessCubemap = (from->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0 };
	for (int n = 0; n < 3; n++)
		to->addressMode[n] = (enum cudaTextureAddressMode)from->addressMode[n];
	memcpy(to->borderColor, from->borderColor, sizeof to->borderColor);
}

/* True if texels are integers that are read as integers. The format of a resource view is not considered. */
static bool reads_integers(const CUDA_RESOURCE_DESC *resource, const struct cudaTextureDesc *texture)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { .Format = CU_AD_FORMAT_FLOAT };
	CUarray array = resource->res.array.hArray;
	CUresult result = CUDA_SUCCESS;
	if (resource->resType == CU_RESOURCE_TYPE_PITCH2D)
		shape.Format = resource->res.pitch2D.format;
	else if (resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		result = runtime_driver.cuMipmappedArrayGetLevel(&array, resource->res.mipmap.hMipmappedArray, 0);
	else if (resource->resType != CU_RESOURCE_TYPE_ARRAY)
		return false;
	if (!result && resource->resType != CU_RESOURCE_TYPE_PITCH2D)
		result = runtime_driver.cuArray3DGetDescriptor_v2(&shape, array);
	return !result && texture->readMode == cudaReadModeElementType &&
	       shape.Format >= CU_AD_FORMAT_UNSIGNED_INT8 && shape.Format <= CU_AD_FORMAT_SIGNED_INT32;
}

RUNTIME_API cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object, const struct cudaResourceDesc *resource,
						const struct cudaTextureDesc *texture,
						const struct cudaResourceViewDesc *view)
{
	CUDA_RESOURCE_DESC driver_resource;
	CUDA_TEXTURE_DESC driver_texture;
	CUDA_RESOURCE_VIEW_DESC driver_view = { 0 };
	CUtexObject made;
	if (!object || !resource || !texture)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = to_driver_resource(resource, &driver_resource);
	if (error)
		return runtime_fail(error);
	error = runtime_enter();
	if (error)
		return error;
	to_driver_texture(texture, &driver_texture);
	if (view)
		memcpy(&driver_view, view, sizeof *view);
	CUresult result = runtime_driver.cuTexObjectCreate(&made, &driver_resource, &driver_texture,
							   view ? &driver_view : NULL);
	if (result == CUDA_SUCCESS)
		*object = made;
	/* The runtime has an error of its own where the driver returns "invalid value". */
	if (result == CUDA_ERROR_INVALID_VALUE && !view && texture->filterMode == cudaFilterModeLinear &&
	    reads_integers(&driver_resource, texture))
		return runtime_fail(cudaErrorInvalidFilterSetting);
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object)
{
	cudaError_t error = runtime_enter();
	if (error || !object)
		return error;
	return runtime_done(runtime_driver.cuTexObjectDestroy(object));
}

enum object_kind { TEXTURE, SURFACE };

static cudaError_t get_resource(struct cudaResourceDesc *resource, enum object_kind kind, unsigned long long object)
{
	CUDA_RESOURCE_DESC driver_resource;
	if (!resource)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = kind == TEXTURE ? runtime_driver.cuTexObjectGetResourceDesc(&driver_resource, object)
					  : runtime_driver.cuSurfObjectGetResourceDesc(&driver_resource, object);
	if (result == CUDA_SUCCESS)
		from_driver_resource(&driver_resource, resource);
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *resource, cudaTextureObject_t object)
{
	return get_resource(resource, TEXTURE, object);
}

RUNTIME_API cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *texture, cudaTextureObject_t object)
{
	CUDA_TEXTURE_DESC driver_texture;
	if (!texture)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuTexObjectGetTextureDesc(&driver_texture, object);
	if (result == CUDA_SUCCESS)
		from_driver_texture(&driver_texture, texture);
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *view,
							     cudaTextureObject_t object)
{
	CUDA_RESOURCE_VIEW_DESC driver_view;
	if (!view)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuTexObjectGetResourceViewDesc(&driver_view, object);
	if (result == CUDA_SUCCESS)
		memcpy(view, &driver_view, sizeof *view);
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const struct cudaResourceDesc *resource)
{
	CUDA_RESOURCE_DESC driver_resource;
	CUsurfObject made;
	if (!object || !resource)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = to_driver_resource(resource, &driver_resource);
	if (error)
		return runtime_fail(error);
	error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuSurfObjectCreate(&made, &driver_resource);
	if (result == CUDA_SUCCESS)
		*object = made;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object)
{
	cudaError_t error = runtime_enter();
	if (error || !object)
		return error;
	return runtime_done(runtime_driver.cuSurfObjectDestroy(object));
}

RUNTIME_API cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *resource, cudaSurfaceObject_t object)
{
	return get_resource(resource, SURFACE, object);
}
