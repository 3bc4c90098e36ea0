/* SPDX-License-Identifier: BSD-3-Clause */
/* From the driver API's descriptions of resources and samplers to the engine's. */
#ifndef SOFTGPU_TEXTURE_RESOURCE_H
#define SOFTGPU_TEXTURE_RESOURCE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/texture.h"

/*
 * What a texture reads. view may be NULL. CUDA_ERROR_INVALID_VALUE: memory, format or view that does not fit,
 * CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_NOT_SUPPORTED (block-compressed views).
 */
CUresult texture_resource_image(const CUDA_RESOURCE_DESC *resource, const CUDA_RESOURCE_VIEW_DESC *view,
				softgpu_image_t *image);

/* How a texture of this image is read. CUDA_ERROR_INVALID_VALUE: what CUDA does not allow for it. */
CUresult texture_resource_sampler(const CUDA_TEXTURE_DESC *texture, const softgpu_image_t *image,
				  softgpu_sampler_t *sampler);

/* Linear memory of width by height texels; height 0: one row, bytes long. Checks that it is the device's to read. */
CUresult texture_resource_memory(CUdeviceptr address, size_t width, size_t height, size_t pitch,
				 softgpu_image_t *image);

#endif
