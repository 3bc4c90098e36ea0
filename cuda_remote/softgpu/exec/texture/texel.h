/* SPDX-License-Identifier: BSD-3-Clause */
/* Texels in memory and as the four 32-bit values that an instruction sees. */
#ifndef SOFTGPU_EXEC_TEXEL_H
#define SOFTGPU_EXEC_TEXEL_H

#include "cuda_remote/softgpu/texture.h"

/* Whether texels of this image come out as floats: of a float format, a normalised one, or promoted. */
bool texel_is_float(const softgpu_image_t *image, bool promote);

/*
 * Reads the texel at an address. Channels that the image lacks are 0, the fourth 1. Integers keep their value, in
 * 32 bits; sRGB applies to 8-bit unsigned channels that become floats, but not to the fourth.
 */
void texel_read(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const void *at, uint32_t value[4]);

/* Writes count channels, as sust.p does: floats for float and normalised formats, else integers, cut to the range. */
void texel_write(const softgpu_image_t *image, void *at, const uint32_t *value, uint32_t count);

#endif
