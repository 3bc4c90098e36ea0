/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the driver API's descriptions of resources and samplers to the engine's. */
#ifndef SOFTGPU_TEXTURE_RESOURCE_H
#define SOFTGPU_TEXTURE_RESOURCE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/texture.h"

/*
 * The image that a texture or surface reads. view may be NULL. CUDA_ERROR_INVALID_VALUE: invalid memory, format or
 * view; CUDA_ERROR_INVALID_HANDLE; CUDA_ERROR_NOT_SUPPORTED: a block-compressed view.
 */
CUresult texture_resource_image(const CUDA_RESOURCE_DESC *resource, const CUDA_RESOURCE_VIEW_DESC *view,
				softgpu_image_t *image);

/* The sampler of a texture of this image. CUDA_ERROR_INVALID_VALUE: CUDA does not allow it for this image. */
CUresult texture_resource_sampler(const CUDA_TEXTURE_DESC *texture, const softgpu_image_t *image,
				  softgpu_sampler_t *sampler);

/*
 * The image of linear memory with width by height texels; height 0: one row. Checks that the device can read all of
 * the memory.
 */
CUresult texture_resource_memory(CUdeviceptr address, size_t width, size_t height, size_t pitch,
				 softgpu_image_t *image);

#endif
