/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA arrays and mipmapped arrays: device memory that only copies, textures and surfaces reach. Texels lie row after
 * row and slice after slice; layers and faces are slices.
 */
#ifndef SOFTGPU_ARRAY_H
#define SOFTGPU_ARRAY_H

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/memory/copy_box.h"
#include "cuda_remote/softgpu/texture.h"

/* The largest extents, in texels: CUDA C++ Programming Guide, "Compute Capabilities", what 7.5 has. */
enum {
	ARRAY_MAX_1D = 131072, ARRAY_MAX_2D_WIDTH = 131072, ARRAY_MAX_2D_HEIGHT = 65536, ARRAY_MAX_3D = 16384,
	ARRAY_MAX_LAYERED = 32768, ARRAY_MAX_LAYERS = 2048, ARRAY_MAX_CUBE = 32768, ARRAY_MAX_CUBE_LAYERS = 2046,
	ARRAY_MAX_SURFACE_1D = 32768, ARRAY_MAX_GATHER = 32768, ARRAY_MAX_MIPMAPPED = 32768,
	TEXTURE_MAX_LINEAR = 1 << 28, TEXTURE_MAX_PITCHED_WIDTH = 131072, TEXTURE_MAX_PITCHED_HEIGHT = 65000,
	TEXTURE_MAX_PITCH = 2097120, TEXTURE_PITCH_ALIGNMENT = 32,
};

struct CUarray_st {
	handle_t handle;
	uint64_t id;                        /* never used twice */
	owned_t owned;                      /* not of a level, which its mipmapped array takes along */
	CUDA_ARRAY3D_DESCRIPTOR descriptor; /* as asked for; extents of a level */
	uint32_t texel;                     /* bytes */
	uint64_t memory, bytes;
	softgpu_level_t level;
	CUmipmappedArray mipmap;            /* NULL: by itself */
};

struct CUmipmappedArray_st {
	handle_t handle;
	owned_t owned;
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	uint64_t memory, bytes;
	unsigned levels;
	CUarray level[SOFTGPU_MAX_LEVELS];
};

/* As the engine sees it. */
void array_image(CUarray array, softgpu_image_t *image);
void mipmap_image(CUmipmappedArray mipmap, softgpu_image_t *image);

/*
 * The side of a copy that is an array: bytes x to x + box->width - 1 of row y on, of slice z on.
 * CUDA_ERROR_INVALID_HANDLE; CUDA_ERROR_INVALID_VALUE: outside of the array, or not whole texels.
 */
CUresult array_copy_side(CUarray array, size_t x, size_t y, size_t z, const copy_box_t *box, copy_side_t *side);

/* The same for bytes of an array of one dimension. */
CUresult array_row_side(CUarray array, size_t offset, size_t bytes, copy_side_t *side);

#endif
