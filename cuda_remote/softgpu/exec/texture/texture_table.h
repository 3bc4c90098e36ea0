/* SPDX-License-Identifier: BSD-3-Clause */
/* The texture and surface objects whose handles texture.h gives out, as the handlers read them. */
#ifndef SOFTGPU_EXEC_TEXTURE_TABLE_H
#define SOFTGPU_EXEC_TEXTURE_TABLE_H

#include "cuda_remote/softgpu/texture.h"

/* Never freed, only used again, so that a lookup of a handle that is not valid any more is safe. */
struct texture {
	uint64_t handle;       /* 0: not in use */
	uint64_t generation;   /* softgpu_memory_generation() when the image's memory was last found; atomic */
	enum softgpu_texture_kind kind;
	bool bound;
	void *user;
	softgpu_image_t image;
	softgpu_sampler_t sampler;
	struct texture *next;  /* in the list of those not in use */
};

/* The texture or surface of a live handle with something bound to it; NULL. No lock. */
struct texture *texture_find(uint64_t handle);

#endif
