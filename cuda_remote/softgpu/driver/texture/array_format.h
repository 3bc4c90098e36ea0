/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's array formats in the engine's terms. */
#ifndef SOFTGPU_ARRAY_FORMAT_H
#define SOFTGPU_ARRAY_FORMAT_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/texture.h"

/*
 * Sets the type and the number of channels and the bytes of a texel in image. CUDA_ERROR_NOT_SUPPORTED: a
 * block-compressed, planar or YUV format; CUDA_ERROR_INVALID_VALUE: invalid format or number of channels.
 */
CUresult array_format(CUarray_format format, unsigned channels, softgpu_image_t *image);

/* array_format for the format of a resource view; CU_RES_VIEW_FORMAT_NONE does not change image. */
CUresult array_view_format(CUresourceViewFormat format, softgpu_image_t *image);

#endif
