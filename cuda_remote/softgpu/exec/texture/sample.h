/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One texture fetch: from coordinates to four values. CUDA Programming Guide, "Texture Fetching" (nearest-point and
 * linear filtering, fractions of 8 bits), "Cubemap Textures" (faces); where the Guide is silent, OpenGL 4.6, 8.14 and
 * 8.15 (levels of detail, addressing of single texels). No fetch reads outside of the image.
 */
#ifndef SOFTGPU_EXEC_SAMPLE_H
#define SOFTGPU_EXEC_SAMPLE_H

#include "cuda_remote/softgpu/exec/texture/fetch.h"
#include "cuda_remote/softgpu/texture.h"

/* tex: the fetch's value, bits of floats or integers as texel_is_float says. */
void sample_fetch(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch,
		  uint32_t value[4]);

/* tld4: one component of the four texels that a linear filter would use, counter-clockwise from the lower left. */
void sample_gather(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch,
		   uint32_t component, uint32_t value[4]);

#endif
