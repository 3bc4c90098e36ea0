/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Textures and surfaces, as the driver describes them to the execution engine: where texels lie, what they mean, how
 * they are sampled. A kernel names one by a 64-bit handle, which is a texture object, a surface object or the address
 * of a .texref or .surfref variable of its module.
 *
 * Any thread may call anything here. A texture or surface that a running kernel uses must not be destroyed or bound to
 * another image: the driver waits for the context's work first.
 */
#ifndef SOFTGPU_TEXTURE_H
#define SOFTGPU_TEXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One channel of a texel. */
enum softgpu_channel {
	SOFTGPU_CHANNEL_U8, SOFTGPU_CHANNEL_U16, SOFTGPU_CHANNEL_U32,
	SOFTGPU_CHANNEL_S8, SOFTGPU_CHANNEL_S16, SOFTGPU_CHANNEL_S32,
	SOFTGPU_CHANNEL_HALF, SOFTGPU_CHANNEL_FLOAT,
	SOFTGPU_CHANNEL_UNORM8, SOFTGPU_CHANNEL_UNORM16, SOFTGPU_CHANNEL_SNORM8, SOFTGPU_CHANNEL_SNORM16,
	SOFTGPU_CHANNEL_UNORM10, /* four channels of 10, 10, 10 and 2 bits in 32 */
};

#define SOFTGPU_MAX_LEVELS 18 /* of a mipmap: 2^17 texels and less */

/* One level of a mipmap. All lie in the image's memory. */
typedef struct softgpu_level {
	uint64_t base;                 /* device address of texel (0, 0, 0) */
	uint32_t width, height, depth; /* texels, at least 1; depth: slices, layers or faces */
	uint64_t pitch, slice;         /* bytes from row to row, from slice to slice */
} softgpu_level_t;

typedef struct softgpu_image {
	uint64_t memory, bytes;    /* the memory that holds all levels: checked as a whole against memory_map.h */
	enum softgpu_channel channel;
	uint32_t channels;         /* 1, 2 or 4 */
	uint32_t texel;            /* bytes */
	uint32_t dimensions;       /* 1, 2 or 3; of a layer, where there are layers or faces */
	bool layered, cube;        /* both: six slices a layer */
	bool linear;               /* memory that the program allocated, not an array */
	bool mipmapped;
	uint32_t levels;
	softgpu_level_t level[SOFTGPU_MAX_LEVELS];
} softgpu_image_t;

enum softgpu_address { SOFTGPU_ADDRESS_WRAP, SOFTGPU_ADDRESS_CLAMP, SOFTGPU_ADDRESS_MIRROR, SOFTGPU_ADDRESS_BORDER };

/* CUDA Programming Guide, "Texture Fetching". */
typedef struct softgpu_sampler {
	enum softgpu_address address[3];
	bool linear, mip_linear;
	bool normalized;     /* coordinates are in [0, 1) */
	bool promote;        /* integers of 8 and 16 bits become floats of [0, 1] or [-1, 1] */
	bool srgb;           /* 8-bit colours that become floats are sRGB */
	bool seamless;       /* linear filtering of a cube goes on across its edges */
	uint32_t anisotropy; /* 1 to 16 */
	float bias, min_level, max_level;
	uint32_t border[4];  /* the border colour: bits of its four values */
} softgpu_sampler_t;

enum softgpu_texture_kind {
	SOFTGPU_TEXTURE_NONE, SOFTGPU_TEXTURE_OBJECT, SOFTGPU_SURFACE_OBJECT,
	SOFTGPU_TEXTURE_REFERENCE, SOFTGPU_SURFACE_REFERENCE,
};

/* Creates an object with nothing bound to it. user: the caller's. 0: no memory. A destroyed handle is not reused
 * soon. */
uint64_t softgpu_texture_create(enum softgpu_texture_kind kind, void *user);
/* The user of a live handle; NULL. */
void *softgpu_texture_user(uint64_t handle);
/* Binds an image to a live handle, and takes it away again (NULL). Both are copied. sampler: NULL for a surface. */
void softgpu_texture_bind(uint64_t handle, const softgpu_image_t *image, const softgpu_sampler_t *sampler);
void softgpu_texture_destroy(uint64_t handle);
/* The kind of a live handle; SOFTGPU_TEXTURE_NONE: the handle is not live. */
enum softgpu_texture_kind softgpu_texture_kind(uint64_t handle);

#endif
