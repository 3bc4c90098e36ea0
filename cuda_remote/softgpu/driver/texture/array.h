/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA arrays and mipmapped arrays: device memory that is accessed only by copies, textures and surfaces. Texels are
 * stored row by row, slice by slice; each layer and each face is a slice.
 */
#ifndef SOFTGPU_ARRAY_H
#define SOFTGPU_ARRAY_H

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/memory/copy_box.h"
#include "cuda_remote/softgpu/texture.h"

/* The largest extents in texels: those of capability 7.5 in the CUDA C++ Programming Guide, "Compute Capabilities". */
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
	owned_t owned;                      /* not used by a level, which is destroyed with its mipmapped array */
	CUDA_ARRAY3D_DESCRIPTOR descriptor; /* as requested; for a level: the extents of the level */
	uint32_t texel;                     /* bytes */
	uint64_t memory, bytes;
	softgpu_level_t level;
	CUmipmappedArray mipmap;            /* the array that this is a level of, or NULL */
};

struct CUmipmappedArray_st {
	handle_t handle;
	owned_t owned;
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	uint64_t memory, bytes;
	unsigned levels;
	CUarray level[SOFTGPU_MAX_LEVELS];
};

/* The engine's description of an array. */
void array_image(CUarray array, softgpu_image_t *image);
void mipmap_image(CUmipmappedArray mipmap, softgpu_image_t *image);

/*
 * Outputs the side of a copy that is an array: the box starts at byte x of row y in slice z. CUDA_ERROR_INVALID_HANDLE;
 * CUDA_ERROR_INVALID_VALUE: the box exceeds the array, or does not consist of whole texels.
 */
CUresult array_copy_side(CUarray array, size_t x, size_t y, size_t z, const copy_box_t *box, copy_side_t *side);

/* array_copy_side for bytes of an array of one dimension. */
CUresult array_row_side(CUarray array, size_t offset, size_t bytes, copy_side_t *side);

#endif
