/* SPDX-License-Identifier: BSD-3-Clause */
/* Texture fetches of any kind: addressing, filtering, levels of detail, anisotropy. */
#include "cuda_remote/softgpu/exec/texture/sample.h"

#include "cuda_remote/softgpu/exec/texture/cube.h"
#include "cuda_remote/softgpu/exec/lanes/lane_float.h"
#include "cuda_remote/softgpu/exec/texture/sample_plane.h"
#include "cuda_remote/softgpu/exec/texture/texel.h"

#include <math.h>

#define FRACTION 256 /* filter weights are multiples of 1/256: 9 bits, 8 of them behind the point */
#define FAR 1e9      /* larger than every image; coordinates further out are clamped to it */

uint32_t geometry_coordinates(enum geometry geometry)
{
	static const uint8_t coordinates[GEOMETRIES] = { 1, 2, 3, 1, 2, 3, 3 };
	return coordinates[geometry];
}

bool geometry_layered(enum geometry geometry)
{
	return geometry == GEOMETRY_A1D || geometry == GEOMETRY_A2D || geometry == GEOMETRY_ACUBE;
}

/* A place within one level: its plane (a layer or face), and on each axis a texel, or two with a weight. */
struct axis {
	int64_t first;
	uint32_t weight; /* of first + 1, of FRACTION */
};
struct place {
	const softgpu_level_t *level;
	uint32_t axes;   /* 1, 2, 3 */
	bool seamless;
	uint32_t plane;  /* where axes < 3 */
	struct axis axis[3];
};

static uint32_t axis_size(const softgpu_level_t *level, uint32_t axis)
{
	return axis == 0 ? level->width : axis == 1 ? level->height : level->depth;
}

/* Wrapping and mirroring are for normalised coordinates; without them the driver API clamps. */
static enum softgpu_address address_mode(const softgpu_sampler_t *sampler, uint32_t axis, bool normalized)
{
	enum softgpu_address mode = sampler->address[axis];
	bool periodic = mode == SOFTGPU_ADDRESS_WRAP || mode == SOFTGPU_ADDRESS_MIRROR;
	return periodic && !normalized ? SOFTGPU_ADDRESS_CLAMP : mode;
}

/* The texel that the mode gives for index i, which may be outside of 0 … n - 1; -1: the border. */
static int64_t texel_number(enum softgpu_address mode, int64_t i, int64_t n)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case SOFTGPU_ADDRESS_WRAP:
		return (i % n + n) % n;
	case SOFTGPU_ADDRESS_MIRROR:
		i = (i % (2 * n) + 2 * n) % (2 * n);
		return i < n ? i : 2 * n - 1 - i;
	case SOFTGPU_ADDRESS_BORDER:
		return -1;
	default:
		return i < 0 ? 0 : n - 1;
	}
}

/* A coordinate in texels, wrapped or mirrored into the image if the mode does that. NaN counts as 0. */
static double position(enum softgpu_address mode, bool normalized, double x, uint32_t n)
{
	if (mode == SOFTGPU_ADDRESS_WRAP || mode == SOFTGPU_ADDRESS_MIRROR) {
		double whole = floor(x), part = x - whole;
		if (!isfinite(x))
			return 0.0;
		bool mirrored = mode == SOFTGPU_ADDRESS_MIRROR && fmod(whole, 2.0) != 0.0;
		return (mirrored ? 1.0 - part : part) * n;
	}
	if (isnan(x))
		return 0.0;
	double u = normalized ? x * n : x;
	return u > FAR ? FAR : u < -FAR ? -FAR : u;
}

static struct axis axis_at(double u, bool linear, int32_t offset)
{
	if (!linear)
		return (struct axis){ (int64_t)floor(u) + offset, 0 };
	int64_t fixed = (int64_t)floor((u - 0.5) * FRACTION + 0.5);
	return (struct axis){ (fixed >> 8) + offset, (uint32_t)fixed & (FRACTION - 1) };
}

/* ---- texels */
static void read_texel(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct place *place,
		       const int64_t number[3], uint32_t value[4])
{
	int64_t at[3] = { 0, 0, place->plane < place->level->depth ? place->plane : place->level->depth - 1 };
	for (uint32_t n = 0; n < place->axes; n++) {
		at[n] = texel_number(sampler->address[n], number[n], axis_size(place->level, n));
		if (at[n] >= 0)
			continue;
		for (int c = 0; c < 4; c++)
			value[c] = sampler->border[c];
		return;
	}
	const char *row = (const char *)(uintptr_t)(place->level->base + (uint64_t)at[2] * place->level->slice +
						    (uint64_t)at[1] * place->level->pitch);
	texel_read(image, sampler, row + (uint64_t)at[0] * image->texel, value);
}

/* Reads a texel of a face, or of its neighbour beyond an edge. False: at a corner, where three faces meet, there is
 * none. */
static bool read_seamless(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct place *place,
			  const int64_t number[3], uint32_t value[4])
{
	struct place other = *place;
	int64_t at[3] = { number[0], number[1], 0 };
	uint32_t n = place->level->width, face = place->plane % 6;
	bool outside[2] = { at[0] < 0 || at[0] >= n, at[1] < 0 || at[1] >= n };
	if (outside[0] && outside[1])
		return false;
	if (outside[0] || outside[1]) {
		cube_across_edge(&face, at, n);
		other.plane = place->plane / 6 * 6 + face;
	}
	read_texel(image, sampler, &other, at, value);
	return true;
}

struct sum {
	double channel[4];
	double weight;
};

static void add_corner(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct place *place,
		       uint32_t corner, double scale, struct sum *sum)
{
	int64_t number[3] = { 0, 0, 0 };
	uint32_t weight = 1, value[4];
	for (uint32_t n = 0; n < place->axes; n++) {
		bool second = corner >> n & 1;
		number[n] = place->axis[n].first + second;
		weight *= second ? place->axis[n].weight : FRACTION - place->axis[n].weight;
	}
	/* A texel without weight adds nothing, even if it is infinite. */
	if (!weight)
		return;
	if (!place->seamless)
		read_texel(image, sampler, place, number, value);
	else if (!read_seamless(image, sampler, place, number, value))
		return;
	double part = scale * weight / (double)(1u << 8 * place->axes);
	for (int c = 0; c < 4; c++)
		sum->channel[c] += part * (double)f32_of_bits(value[c]);
	sum->weight += part;
}

/* The missing texel of a corner of the cube is the mean of the other three (Direct3D 11.3, 7.18.15). */
static void add_filtered(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct place *place,
			 double scale, struct sum *sum)
{
	struct sum here = { 0 };
	for (uint32_t corner = 0; corner < 1u << place->axes; corner++)
		add_corner(image, sampler, place, corner, scale, &here);
	double missing = scale - here.weight;
	if (place->seamless && missing > scale / 1024) {
		struct place equal = *place;
		struct sum mean = { 0 };
		equal.axis[0].weight = equal.axis[1].weight = FRACTION / 2;
		for (uint32_t corner = 0; corner < 4; corner++)
			add_corner(image, sampler, &equal, corner, 1.0, &mean);
		for (int c = 0; c < 4; c++)
			here.channel[c] += missing * mean.channel[c] / mean.weight;
	}
	for (int c = 0; c < 4; c++)
		sum->channel[c] += here.channel[c];
}

/* ---- places */
static uint32_t plane_of(const softgpu_image_t *image, const struct fetch *fetch, uint32_t face)
{
	uint32_t depth = image->level[0].depth;
	bool cube = fetch->geometry == GEOMETRY_CUBE || fetch->geometry == GEOMETRY_ACUBE;
	uint32_t layers = cube ? (depth >= 6 ? depth / 6 : 1) : depth;
	uint32_t layer = geometry_layered(fetch->geometry) ? fetch->layer : 0;
	layer = layer < layers ? layer : layers - 1;
	uint32_t plane = cube ? 6 * layer + face : layer;
	return plane < depth ? plane : depth - 1;
}

/* Coordinates within a plane, and what they mean. */
struct spot {
	double at[3];
	uint32_t axes, plane;
	bool normalized, cube;
};

static struct spot spot_of(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch)
{
	struct spot spot = { .axes = geometry_coordinates(fetch->geometry), .normalized = sampler->normalized };
	uint32_t face = 0;
	spot.cube = fetch->geometry == GEOMETRY_CUBE || fetch->geometry == GEOMETRY_ACUBE;
	if (spot.cube) {
		face = cube_project(fetch->at, spot.at);
		spot.axes = 2;
		spot.normalized = true;
	} else {
		for (uint32_t n = 0; n < spot.axes; n++)
			spot.at[n] = (double)fetch->at[n];
	}
	spot.plane = plane_of(image, fetch, face);
	return spot;
}

static struct place place_at(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch,
			     const struct spot *spot, uint32_t level, bool linear)
{
	struct place place = { .level = &image->level[level], .axes = spot->axes, .plane = spot->plane };
	place.seamless = sampler->seamless && spot->cube;
	for (uint32_t n = 0; n < spot->axes; n++) {
		enum softgpu_address mode = sampler->address[n];
		double u = position(mode, spot->normalized, spot->at[n], axis_size(place.level, n));
		place.axis[n] = axis_at(u, linear, fetch->offset[n]);
	}
	return place;
}

/* ---- levels of detail: OpenGL 4.6, 8.14.1 */
/* Lengths, in texels of level 0, that the footprint has along x and y of the screen. */
static void footprint(const softgpu_image_t *image, const struct spot *spot, const struct fetch *fetch,
		      double length[2])
{
	for (int axis = 0; axis < 2; axis++) {
		const float *gradient = axis ? fetch->dy : fetch->dx;
		double d[3] = { (double)gradient[0], (double)gradient[1], (double)gradient[2] }, square = 0;
		if (spot->cube)
			cube_project_gradient(fetch->at, gradient, d);
		for (uint32_t n = 0; n < spot->axes; n++) {
			double texels = d[n] * (spot->normalized ? axis_size(&image->level[0], n) : 1);
			square += texels * texels;
		}
		length[axis] = sqrt(square);
	}
}

/*
 * The number of fetches along the longer side of the footprint, and the level of detail for the shorter side, as in the
 * example of EXT_texture_filter_anisotropic. A cube is filtered alike in all directions.
 */
static uint32_t probes_of(const softgpu_sampler_t *sampler, const struct spot *spot, const double length[2],
			  double *lod)
{
	double longest = fmax(length[0], length[1]), shortest = fmin(length[0], length[1]);
	double most = spot->cube || sampler->anisotropy < 1 ? 1 : sampler->anisotropy;
	double count = shortest > 0 ? ceil(longest / shortest) : most;
	if (!(count >= 1) || !(longest > 0))
		count = 1;
	if (count > most)
		count = most;
	*lod = log2(longest / count);
	return (uint32_t)count;
}

/* The levels to fetch from for a level of detail: one, or two with the second's weight. */
static struct axis levels_of(const softgpu_image_t *image, const softgpu_sampler_t *sampler, double lod)
{
	double last = image->levels - 1;
	lod = isnan(lod) ? 0 : lod + (double)sampler->bias;
	lod = lod > (double)sampler->max_level ? (double)sampler->max_level : lod;
	lod = lod < (double)sampler->min_level ? (double)sampler->min_level : lod;
	lod = lod > 0 ? lod : 0;
	lod = lod > last ? last : lod;
	if (!sampler->mip_linear)
		return (struct axis){ (int64_t)floor(lod + 0.5), 0 };
	int64_t fixed = (int64_t)floor(lod * FRACTION + 0.5);
	return (struct axis){ fixed >> 8, (uint32_t)fixed & (FRACTION - 1) };
}

/* ---- fetches */
static void add_levels(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch,
		       const struct spot *spot, struct axis levels, double scale, struct sum *sum)
{
	for (uint32_t n = 0; n < 2; n++) {
		uint32_t weight = n ? levels.weight : FRACTION - levels.weight;
		if (!weight)
			continue;
		struct place place =
			place_at(image, sampler, fetch, spot, (uint32_t)levels.first + n, sampler->linear);
		add_filtered(image, sampler, &place, scale * weight / FRACTION, sum);
	}
}

static void fetch_nearest(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch,
			  const struct spot *spot, uint32_t level, uint32_t value[4])
{
	struct place place = place_at(image, sampler, fetch, spot, level, false);
	int64_t number[3] = { place.axis[0].first, place.axis[1].first, place.axis[2].first };
	read_texel(image, sampler, &place, number, value);
}

static void fetch_integer(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch,
			  uint32_t level, uint32_t value[4])
{
	struct place place = { .level = &image->level[level], .axes = geometry_coordinates(fetch->geometry),
			       .plane = plane_of(image, fetch, 0) };
	int64_t number[3];
	for (uint32_t n = 0; n < 3; n++)
		number[n] = (int64_t)fetch->at_integer[n] + fetch->offset[n];
	read_texel(image, sampler, &place, number, value);
}

/* The sampler with the address modes that really apply. */
static softgpu_sampler_t effective_sampler(const softgpu_image_t *image, const softgpu_sampler_t *sampler,
					   const struct fetch *fetch)
{
	softgpu_sampler_t effective = *sampler;
	bool cube = fetch->geometry == GEOMETRY_CUBE || fetch->geometry == GEOMETRY_ACUBE;
	bool is_float = texel_is_float(image, sampler->promote);
	for (uint32_t n = 0; n < 3; n++) {
		effective.address[n] = address_mode(sampler, n, cube || (sampler->normalized && !fetch->integer));
		if (cube && sampler->seamless)
			effective.address[n] = SOFTGPU_ADDRESS_CLAMP;
		/* The program's own memory: beyond its end is the border (0). */
		if (image->linear && image->dimensions == 1)
			effective.address[n] = SOFTGPU_ADDRESS_BORDER;
	}
	effective.linear = sampler->linear && is_float && !fetch->integer;
	effective.mip_linear = sampler->mip_linear && is_float && !fetch->integer;
	return effective;
}

static void add_probes(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const struct fetch *fetch,
		       const struct spot *spot, struct axis levels, uint32_t probes, const float *along,
		       struct sum *sum)
{
	for (uint32_t n = 1; n <= probes; n++) {
		struct spot moved = *spot;
		for (uint32_t axis = 0; axis < spot->axes && probes > 1; axis++)
			moved.at[axis] += (double)along[axis] * ((double)n / (probes + 1) - 0.5);
		add_levels(image, sampler, fetch, &moved, levels, 1.0 / probes, sum);
	}
}

void sample_fetch(const softgpu_image_t *image, const softgpu_sampler_t *given, const struct fetch *fetch,
		  uint32_t value[4])
{
	if (sample_plane(image, given, fetch, value))
		return;
	softgpu_sampler_t sampler = effective_sampler(image, given, fetch);
	struct spot spot = spot_of(image, &sampler, fetch);
	struct axis levels = { 0, 0 };
	uint32_t probes = 1;
	double lod = (double)fetch->lod, length[2] = { 0, 0 };
	if (fetch->lod_mode == LOD_GRADIENT) {
		footprint(image, &spot, fetch, length);
		probes = probes_of(&sampler, &spot, length, &lod);
	}
	if (fetch->lod_mode != LOD_BASE)
		levels = levels_of(image, &sampler, lod);
	if (fetch->integer) {
		fetch_integer(image, &sampler, fetch, (uint32_t)levels.first, value);
		return;
	}
	bool is_float = texel_is_float(image, sampler.promote);
	if (!is_float || (!sampler.linear && !levels.weight && probes == 1)) {
		fetch_nearest(image, &sampler, fetch, &spot, (uint32_t)levels.first, value);
		return;
	}
	struct sum sum = { 0 };
	add_probes(image, &sampler, fetch, &spot, levels, probes, length[0] >= length[1] ? fetch->dx : fetch->dy, &sum);
	for (int c = 0; c < 4; c++)
		value[c] = bits_of_f32((float)sum.channel[c]);
}

void sample_gather(const softgpu_image_t *image, const softgpu_sampler_t *given, const struct fetch *fetch,
		   uint32_t component, uint32_t value[4])
{
	static const uint8_t corners[4][2] = { { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
	softgpu_sampler_t sampler = effective_sampler(image, given, fetch);
	struct spot spot = spot_of(image, &sampler, fetch);
	struct place place = place_at(image, &sampler, fetch, &spot, 0, true);
	for (int n = 0; n < 4; n++) {
		int64_t number[3] = { place.axis[0].first + corners[n][0], place.axis[1].first + corners[n][1], 0 };
		uint32_t texel[4] = { 0 };
		if (!place.seamless || !read_seamless(image, &sampler, &place, number, texel))
			read_texel(image, &sampler, &place, number, texel);
		value[n] = texel[component];
	}
}
