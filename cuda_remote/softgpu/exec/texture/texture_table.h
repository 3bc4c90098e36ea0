/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands behind the handles of texture.h, as the handlers read it. */
#ifndef SOFTGPU_EXEC_TEXTURE_TABLE_H
#define SOFTGPU_EXEC_TEXTURE_TABLE_H

#include "cuda_remote/softgpu/texture.h"

/* Never freed, only used again, so that a handle that is not valid any more does no harm. */
struct texture {
	uint64_t handle;       /* 0: not in use */
	uint64_t generation;   /* of memory, when the image's was last found allocated; atomic */
	enum softgpu_texture_kind kind;
	bool bound;
	void *user;
	softgpu_image_t image;
	softgpu_sampler_t sampler;
	struct texture *next;  /* of those not in use */
};

/* The texture or surface of a live handle with something bound to it; NULL. No lock. */
struct texture *texture_find(uint64_t handle);

#endif
