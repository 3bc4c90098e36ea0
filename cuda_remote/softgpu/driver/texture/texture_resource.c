/* SPDX-License-Identifier: BSD-3-Clause */
/* Resource and sampler descriptions: checks, and conversion to the engine's terms. */
#include "cuda_remote/softgpu/driver/texture/texture_resource.h"

#include "cuda_remote/softgpu/driver/texture/array.h"
#include "cuda_remote/softgpu/driver/texture/array_format.h"
#include "cuda_remote/softgpu/space/space.h"

#include <string.h>

/* ---- linear memory */
CUresult texture_resource_memory(CUdeviceptr address, size_t width, size_t height, size_t pitch, softgpu_image_t *image)
{
	softgpu_allocation_t found;
	size_t row, bytes = 0;
	if (!width || __builtin_mul_overflow(width, image->texel, &row))
		return CUDA_ERROR_INVALID_VALUE;
	if (height && __builtin_mul_overflow(height - 1, pitch, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_add_overflow(bytes, row, &bytes) || !softgpu_space_find(address, &found) ||
	    bytes > found.size - (address - found.base))
		return CUDA_ERROR_INVALID_VALUE;
	image->memory = address;
	image->bytes = bytes;
	image->linear = true;
	image->dimensions = height ? 2 : 1;
	image->levels = 1;
	image->level[0] = (softgpu_level_t){ .base = address, .width = (uint32_t)width,
					     .height = height ? (uint32_t)height : 1, .depth = 1,
					     .pitch = height ? pitch : row };
	return CUDA_SUCCESS;
}

static CUresult linear_image(const CUDA_RESOURCE_DESC *resource, softgpu_image_t *image)
{
	CUdeviceptr address = resource->res.linear.devPtr;
	CUresult result = array_format(resource->res.linear.format, resource->res.linear.numChannels, image);
	if (result)
		return result;
	size_t width = resource->res.linear.sizeInBytes / image->texel;
	if (address % SOFTGPU_GRANULE || width > TEXTURE_MAX_LINEAR)
		return CUDA_ERROR_INVALID_VALUE;
	return texture_resource_memory(address, width, 0, 0, image);
}

static CUresult pitched_image(const CUDA_RESOURCE_DESC *resource, softgpu_image_t *image)
{
	CUdeviceptr address = resource->res.pitch2D.devPtr;
	size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height;
	size_t pitch = resource->res.pitch2D.pitchInBytes;
	CUresult result = array_format(resource->res.pitch2D.format, resource->res.pitch2D.numChannels, image);
	if (result)
		return result;
	if (address % SOFTGPU_GRANULE || pitch % TEXTURE_PITCH_ALIGNMENT || pitch > TEXTURE_MAX_PITCH || !height ||
	    width > TEXTURE_MAX_PITCHED_WIDTH || height > TEXTURE_MAX_PITCHED_HEIGHT || width * image->texel > pitch)
		return CUDA_ERROR_INVALID_VALUE;
	return texture_resource_memory(address, width, height, pitch, image);
}

/* ---- views of arrays */
/* Restricts the image to layers first to last. */
static CUresult view_layers(const CUDA_RESOURCE_VIEW_DESC *view, softgpu_image_t *image)
{
	if (!image->layered)
		return view->firstLayer || view->lastLayer ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	unsigned faces = image->cube ? 6 : 1, layers = view->lastLayer - view->firstLayer + 1;
	if (view->lastLayer < view->firstLayer || view->lastLayer >= image->level[0].depth ||
	    view->firstLayer % faces || layers % faces)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t n = 0; n < image->levels; n++) {
		image->level[n].base += view->firstLayer * image->level[n].slice;
		image->level[n].depth = layers;
	}
	return CUDA_SUCCESS;
}

static CUresult view_levels(const CUDA_RESOURCE_VIEW_DESC *view, softgpu_image_t *image)
{
	if (view->lastMipmapLevel < view->firstMipmapLevel || view->lastMipmapLevel >= image->levels)
		return CUDA_ERROR_INVALID_VALUE;
	image->levels = view->lastMipmapLevel - view->firstMipmapLevel + 1;
	memmove(image->level, image->level + view->firstMipmapLevel, image->levels * sizeof *image->level);
	return CUDA_SUCCESS;
}

static CUresult apply_view(const CUDA_RESOURCE_VIEW_DESC *view, softgpu_image_t *image)
{
	const softgpu_level_t *level = &image->level[0];
	uint32_t texel = image->texel;
	size_t height = image->dimensions > 1 ? level->height : 0;
	size_t depth = image->layered || image->cube || image->dimensions > 2 ? level->depth : 0;
	CUresult result = array_view_format(view->format, image);
	if (result)
		return result;
	/* An extent of 0 in the view means the array's extent; so does 1 for an axis that the array does not have. */
	if (image->texel != texel || (view->width && view->width != level->width) ||
	    (view->height > 1 && view->height != height) || (view->depth > 1 && view->depth != depth))
		return CUDA_ERROR_INVALID_VALUE;
	result = view_layers(view, image);
	return result ? result : view_levels(view, image);
}

CUresult texture_resource_image(const CUDA_RESOURCE_DESC *resource, const CUDA_RESOURCE_VIEW_DESC *view,
				softgpu_image_t *image)
{
	bool of_array = resource->resType == CU_RESOURCE_TYPE_ARRAY ||
			resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	*image = (softgpu_image_t){ 0 };
	if (resource->flags || (view && !of_array))
		return CUDA_ERROR_INVALID_VALUE;
	switch (resource->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		if (!handle_valid(resource->res.array.hArray, HANDLE_ARRAY))
			return CUDA_ERROR_INVALID_HANDLE;
		array_image(resource->res.array.hArray, image);
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		if (!handle_valid(resource->res.mipmap.hMipmappedArray, HANDLE_MIPMAP))
			return CUDA_ERROR_INVALID_HANDLE;
		mipmap_image(resource->res.mipmap.hMipmappedArray, image);
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		return linear_image(resource, image);
	case CU_RESOURCE_TYPE_PITCH2D:
		return pitched_image(resource, image);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return view ? apply_view(view, image) : CUDA_SUCCESS;
}

/* ---- samplers */
/* True if texels are read as floats: only those can be filtered. */
static bool gives_floats(const softgpu_image_t *image, bool promote)
{
	switch (image->channel) {
	case SOFTGPU_CHANNEL_U32: case SOFTGPU_CHANNEL_S32: return false;
	case SOFTGPU_CHANNEL_U8: case SOFTGPU_CHANNEL_U16: case SOFTGPU_CHANNEL_S8: case SOFTGPU_CHANNEL_S16:
		return promote;
	default: return true;
	}
}

CUresult texture_resource_sampler(const CUDA_TEXTURE_DESC *texture, const softgpu_image_t *image,
				  softgpu_sampler_t *sampler)
{
	const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
			       CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
	bool row = image->linear && image->dimensions == 1; /* read by the texel's index: filters are ignored */
	*sampler = (softgpu_sampler_t){ .linear = texture->filterMode == CU_TR_FILTER_MODE_LINEAR && !row,
		.mip_linear = texture->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR,
		.normalized = texture->flags & CU_TRSF_NORMALIZED_COORDINATES && !row,
		.promote = !(texture->flags & CU_TRSF_READ_AS_INTEGER), .srgb = texture->flags & CU_TRSF_SRGB,
		.seamless = texture->flags & CU_TRSF_SEAMLESS_CUBEMAP, .bias = texture->mipmapLevelBias,
		.min_level = texture->minMipmapLevelClamp, .max_level = texture->maxMipmapLevelClamp };
	sampler->anisotropy = texture->maxAnisotropy < 1 ? 1 : texture->maxAnisotropy;
	if (sampler->anisotropy > 16)
		sampler->anisotropy = 16;
	if ((texture->flags & ~known) || (unsigned)texture->filterMode > CU_TR_FILTER_MODE_LINEAR ||
	    (unsigned)texture->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR || (sampler->seamless && !image->cube) ||
	    (image->mipmapped && !sampler->normalized) ||
	    (sampler->linear && !gives_floats(image, sampler->promote)))
		return CUDA_ERROR_INVALID_VALUE;
	for (int n = 0; n < 3; n++) {
		if ((unsigned)texture->addressMode[n] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
		sampler->address[n] = (enum softgpu_address)texture->addressMode[n];
	}
	if (!row)
		memcpy(sampler->border, texture->borderColor, sizeof sampler->border);
	return CUDA_SUCCESS;
}

_Static_assert((int)SOFTGPU_ADDRESS_WRAP == CU_TR_ADDRESS_MODE_WRAP &&
	       (int)SOFTGPU_ADDRESS_CLAMP == CU_TR_ADDRESS_MODE_CLAMP &&
	       (int)SOFTGPU_ADDRESS_MIRROR == CU_TR_ADDRESS_MODE_MIRROR &&
	       (int)SOFTGPU_ADDRESS_BORDER == CU_TR_ADDRESS_MODE_BORDER, "address modes are passed through");
