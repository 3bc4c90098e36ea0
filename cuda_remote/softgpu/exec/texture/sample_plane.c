/* SPDX-License-Identifier: BSD-3-Clause */
/* The fast path of texture fetches: level 0, one or two dimensions, float coordinates that are not extreme. */
#include "cuda_remote/softgpu/exec/texture/sample_plane.h"

#include "cuda_remote/softgpu/exec/lanes/lane_float.h"
#include "cuda_remote/softgpu/exec/texture/texel.h"

#include <math.h>
#include <string.h>

#define EXTREME 1e9 /* coordinates beyond it take the general path */

/* The texels that a coordinate selects on one axis, -1 for the border, and the second one's weight in 1/256. */
struct axis {
	int64_t first, second;
	uint32_t weight;
};

/* floor() of a number that is not extreme, without a call. */
static inline int64_t whole_of(double x)
{
	int64_t whole = (int64_t)x;
	return whole - ((double)whole > x);
}

static inline int64_t number_of(enum softgpu_address mode, int64_t i, int64_t n)
{
	if (i >= 0 && i < n)
		return i;
	if (mode == SOFTGPU_ADDRESS_WRAP)
		return i < 0 ? i + n : i - n;
	if (mode == SOFTGPU_ADDRESS_BORDER)
		return -1;
	return i < 0 ? 0 : n - 1;
}

static inline bool axis_at(const softgpu_sampler_t *sampler, uint32_t number, double x, uint32_t n, struct axis *axis)
{
	enum softgpu_address mode = sampler->address[number];
	double u = sampler->normalized ? x * n : x;
	if (!(u > -EXTREME && u < EXTREME))
		return false;
	if (mode == SOFTGPU_ADDRESS_WRAP || mode == SOFTGPU_ADDRESS_MIRROR) {
		int64_t whole = whole_of(x);
		double part = x - (double)whole;
		if (sampler->normalized)
			u = (mode == SOFTGPU_ADDRESS_MIRROR && (whole & 1) ? 1.0 - part : part) * n;
		else
			mode = SOFTGPU_ADDRESS_CLAMP;
	}
	if (!sampler->linear) {
		axis->first = number_of(mode, whole_of(u), n);
		axis->weight = 0;
		return true;
	}
	int64_t fixed = whole_of((u - 0.5) * 256 + 0.5);
	axis->first = number_of(mode, fixed >> 8, n);
	axis->second = number_of(mode, (fixed >> 8) + 1, n);
	axis->weight = (uint32_t)fixed & 255;
	return true;
}

static inline void texel_at(const softgpu_image_t *image, const softgpu_sampler_t *sampler, uint64_t plane, int64_t x,
			    int64_t y, uint32_t value[4])
{
	if (x < 0 || y < 0) {
		memcpy(value, sampler->border, 4 * sizeof *value);
		return;
	}
	uint64_t offset = (uint64_t)y * image->level[0].pitch + (uint64_t)x * image->texel;
	const void *at = (const void *)(uintptr_t)(plane + offset);
	if (image->channel != SOFTGPU_CHANNEL_FLOAT) {
		texel_read(image, sampler, at, value);
		return;
	}
	value[1] = value[2] = 0;
	value[3] = 0x3f800000;
	memcpy(value, at, image->texel);
}

/* Channels that the image lacks are the same in every texel except the border's. */
static uint32_t channels_to_sum(const softgpu_image_t *image, const softgpu_sampler_t *sampler)
{
	bool border = sampler->address[0] == SOFTGPU_ADDRESS_BORDER || sampler->address[1] == SOFTGPU_ADDRESS_BORDER;
	return border ? 4 : image->channels;
}

static void filtered(const softgpu_image_t *image, const softgpu_sampler_t *sampler, uint64_t plane,
		     const struct axis *x, const struct axis *y, uint32_t value[4])
{
	const int64_t columns[2] = { x->first, x->second }, rows[2] = { y->first, y->second };
	const uint32_t x_weights[2] = { 256 - x->weight, x->weight }, y_weights[2] = { 256 - y->weight, y->weight };
	uint32_t channels = channels_to_sum(image, sampler);
	double sum[4] = { 0 };
	for (uint32_t corner = 0; corner < 4; corner++) {
		uint32_t weight = x_weights[corner & 1] * y_weights[corner >> 1];
		if (!weight)
			continue;
		texel_at(image, sampler, plane, columns[corner & 1], rows[corner >> 1], value);
		for (uint32_t c = 0; c < channels; c++)
			sum[c] += weight * (1.0 / 65536) * (double)f32_of_bits(value[c]);
	}
	for (uint32_t c = 0; c < channels; c++)
		value[c] = bits_of_f32((float)sum[c]);
}

bool sample_plane(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch,
		  uint32_t value[4])
{
	const softgpu_level_t *level = &image->level[0];
	bool layered = fetch->geometry == GEOMETRY_A1D || fetch->geometry == GEOMETRY_A2D;
	bool two = fetch->geometry == GEOMETRY_2D || fetch->geometry == GEOMETRY_A2D;
	struct axis x, y = { 0, 0, 0 };
	if ((!layered && !two && fetch->geometry != GEOMETRY_1D) || fetch->integer || fetch->lod_mode != LOD_BASE ||
	    (fetch->offset[0] | fetch->offset[1]) || (image->linear && image->dimensions == 1) ||
	    (sampler->linear && !texel_is_float(image, sampler->promote)) ||
	    !axis_at(sampler, 0, (double)fetch->at[0], level->width, &x) ||
	    (two && !axis_at(sampler, 1, (double)fetch->at[1], level->height, &y)))
		return false;
	uint32_t layer = !layered ? 0 : fetch->layer < level->depth ? fetch->layer : level->depth - 1;
	uint64_t plane = level->base + layer * level->slice;
	if (sampler->linear)
		filtered(image, sampler, plane, &x, &y, value);
	else
		texel_at(image, sampler, plane, x.first, y.first, value);
	return true;
}
