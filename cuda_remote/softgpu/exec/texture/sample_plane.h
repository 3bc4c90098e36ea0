/* SPDX-License-Identifier: BSD-3-Clause */
/* The fast path of sample_fetch for images of one and two dimensions. */
#ifndef SOFTGPU_EXEC_SAMPLE_PLANE_H
#define SOFTGPU_EXEC_SAMPLE_PLANE_H

#include "cuda_remote/softgpu/exec/texture/fetch.h"
#include "cuda_remote/softgpu/texture.h"

/*
 * Handles the most common fetches with the same result as sample_fetch: from level 0 of an image of one or two
 * dimensions, layered or not, by float coordinates that are not extreme. For all other fetches it does nothing and
 * returns false.
 */
bool sample_plane(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch,
		  uint32_t value[4]);

#endif
