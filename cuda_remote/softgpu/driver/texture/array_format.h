/* SPDX-License-Identifier: BSD-3-Clause */
/* What CUDA's formats of arrays mean to the engine. */
#ifndef SOFTGPU_ARRAY_FORMAT_H
#define SOFTGPU_ARRAY_FORMAT_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/texture.h"

/*
 * Channel, number of channels and bytes of a texel of image. CUDA_ERROR_NOT_SUPPORTED: a block-compressed, planar or
 * YUV format; CUDA_ERROR_INVALID_VALUE: no format, or not that many channels.
 */
CUresult array_format(CUarray_format format, unsigned channels, softgpu_image_t *image);

/* The same for the format of a resource view; CU_RES_VIEW_FORMAT_NONE leaves image as it is. */
CUresult array_view_format(CUresourceViewFormat format, softgpu_image_t *image);

#endif
