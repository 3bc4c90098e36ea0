/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texture instructions against arithmetic of the test's own, in double, from the formulas of the CUDA Programming Guide
 * ("Texture Fetching") as they stand there: coordinates are brought into range first, then filtered.
 */
#include "test/cuda/softgpu/ptx/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 64

/* ---- a texture of floats, and one fetch of each thread */
static softgpu_image_t float_image(uint32_t channels, uint32_t width, uint32_t height, uint32_t depth)
{
	uint32_t texel = 4 * channels;
	softgpu_image_t image = { .channel = SOFTGPU_CHANNEL_FLOAT, .channels = channels, .texel = texel,
				  .dimensions = depth > 1 ? 3 : height > 1 ? 2 : 1, .levels = 1 };
	image.bytes = (uint64_t)width * height * depth * texel;
	float *data = device_alloc(image.bytes);
	image.memory = (uint64_t)(uintptr_t)data;
	image.level[0] = (softgpu_level_t){ image.memory, width, height, depth, (uint64_t)width * texel,
					    (uint64_t)width * height * texel };
	for (uint64_t n = 0; n < image.bytes / 4; n++)
		data[n] = (float)((n * 2654435761u >> 8 & 0xffff) / 256.0 - 100.0);
	return image;
}

static double texel(const softgpu_image_t *image, int64_t x, int64_t y, int64_t z)
{
	const softgpu_level_t *level = &image->level[0];
	float value;
	memcpy(&value, (const char *)(uintptr_t)level->base + z * (int64_t)level->slice + y * (int64_t)level->pitch +
			       x * image->texel, sizeof value);
	return (double)value;
}

/* Arguments of a kernel: a texture, and for each thread eight floats (or integers) and room for four results. */
struct arguments {
	uint64_t texture;
	float *in;
	uint32_t *out;
};

#define KERNEL(instruction)                                                                                  \
	".visible .entry k(.param .u64 t, .param .u64 in, .param .u64 out)\n{\n"                             \
	".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %d<9>;\n"            \
	"ld.param.u64 %d1, [t]; ld.param.u64 %d2, [in]; ld.param.u64 %d3, [out]; mov.u32 %r1, %tid.x;\n"       \
	"mul.wide.u32 %d4, %r1, 32; add.u64 %d2, %d2, %d4; mul.wide.u32 %d4, %r1, 16; add.u64 %d3, %d3, %d4;\n" \
	"ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%d2]; ld.global.v4.f32 {%f5,%f6,%f7,%f8}, [%d2+16];\n"            \
	"mov.b32 %r2, %f1; mov.b32 %r3, %f2; mov.b32 %r4, %f3; mov.b32 %r5, %f4; mov.b32 %r6, %f5; mov.b32 %r7, %f6;\n" \
	instruction "\nst.global.v4.b32 [%d3], {%r8,%r9,%r10,%r11};\nret;\n}\n"

static struct arguments arguments_for(const softgpu_image_t *image, const softgpu_sampler_t *sampler)
{
	struct arguments arguments = { softgpu_texture_create(SOFTGPU_TEXTURE_OBJECT, NULL),
				       device_alloc(LANES * 32), device_alloc(LANES * 16) };
	softgpu_texture_bind(arguments.texture, image, sampler);
	return arguments;
}

static void fetch(const char *kernel, struct arguments *arguments)
{
	ck_assert_int_eq(run_ptx(kernel, 1, LANES, arguments), CUDA_SUCCESS);
}

static void done(struct arguments *arguments)
{
	softgpu_texture_destroy(arguments->texture);
	device_reset();
}

static float result(const struct arguments *arguments, int lane, int channel)
{
	float value;
	memcpy(&value, &arguments->out[4 * lane + channel], sizeof value);
	return value;
}

/* ---- the Guide's formulas */
static double into_range(enum softgpu_address mode, double x, int64_t n)
{
	double whole = floor(x), part = x - whole;
	if (mode == SOFTGPU_ADDRESS_WRAP)
		return part * (double)n;
	if (mode == SOFTGPU_ADDRESS_MIRROR)
		return (fmod(fabs(whole), 2) < 1 ? part : 1 - part) * (double)n;
	return x * (double)n;
}

/* The value of texel i, j, k after the address modes; border beyond the edge. */
static double addressed(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const int64_t at[3])
{
	const int64_t sizes[3] = { image->level[0].width, image->level[0].height, image->level[0].depth };
	int64_t in[3];
	for (int n = 0; n < 3; n++) {
		in[n] = at[n];
		if (in[n] >= 0 && in[n] < sizes[n])
			continue;
		if (sampler->address[n] == SOFTGPU_ADDRESS_WRAP)
			in[n] = in[n] < 0 ? in[n] + sizes[n] : in[n] - sizes[n];
		else if (sampler->address[n] == SOFTGPU_ADDRESS_BORDER) {
			float border;
			memcpy(&border, &sampler->border[0], sizeof border);
			return (double)border;
		} else
			in[n] = in[n] < 0 ? 0 : sizes[n] - 1;
	}
	return texel(image, in[0], in[1], in[2]);
}

static double expected(const softgpu_image_t *image, const softgpu_sampler_t *sampler, int axes, const float *at)
{
	const int64_t sizes[3] = { image->level[0].width, image->level[0].height, image->level[0].depth };
	int64_t low[3] = { 0, 0, 0 };
	double part[3] = { 0, 0, 0 }, sum = 0;
	for (int n = 0; n < axes; n++) {
		double x = (double)at[n];
		if (sampler->normalized)
			x = into_range(sampler->address[n], x, sizes[n]);
		if (sampler->linear) {
			x -= 0.5;
			/* Nine bits, eight of them behind the point. */
			part[n] = floor((x - floor(x)) * 256 + 0.5) / 256;
		}
		low[n] = (int64_t)floor(x);
	}
	for (int corner = 0; corner < 1 << axes; corner++) {
		int64_t number[3] = { low[0], low[1], low[2] };
		double weight = 1;
		for (int n = 0; n < axes; n++) {
			number[n] += corner >> n & 1;
			weight *= corner >> n & 1 ? part[n] : 1 - part[n];
		}
		if (weight > 0)
			sum += weight * addressed(image, sampler, number);
	}
	return sum;
}

/* Coordinates that try edges: texel centres, borders between texels, beyond both ends, far out. */
static void coordinates(struct arguments *arguments, const softgpu_image_t *image, bool normalized)
{
	static const double steps[LANES / 8] = { 0.5, 0.25, 1.0, -0.75, -1.5, 3.3, 7.8125, -20.2 };
	for (int lane = 0; lane < LANES; lane++) {
		const uint32_t sizes[3] = { image->level[0].width, image->level[0].height, image->level[0].depth };
		for (int n = 0; n < 3; n++) {
			double x = steps[(lane + 3 * n) % 8] + (lane / 8) * (n + 1) * 0.796875;
			arguments->in[8 * lane + n] = (float)(normalized ? x / sizes[n] : x);
		}
	}
}

static const char *const plain_fetch[3] = {
	KERNEL("tex.1d.v4.f32.f32 {%f8,%f9,%f10,%f11}, [%d1, {%f1}];\n"
	       "mov.b32 %r8, %f8; mov.b32 %r9, %f9; mov.b32 %r10, %f10; mov.b32 %r11, %f11;"),
	KERNEL("tex.2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2}];"),
	KERNEL("tex.3d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2,%f3,%f3}];"),
};

static void compare(const softgpu_image_t *image, const softgpu_sampler_t *sampler, int axes)
{
	struct arguments arguments = arguments_for(image, sampler);
	coordinates(&arguments, image, sampler->normalized);
	fetch(plain_fetch[axes - 1], &arguments);
	for (int lane = 0; lane < LANES; lane++) {
		double want = expected(image, sampler, axes, &arguments.in[8 * lane]);
		ck_assert_msg(fabs((double)result(&arguments, lane, 0) - want) <= 1e-5 * (1 + fabs(want)),
			      "axes %d mode %d linear %d normalized %d lane %d at %g %g: %g, want %g", axes,
			      (int)sampler->address[0], sampler->linear, sampler->normalized, lane,
			      (double)arguments.in[8 * lane], (double)arguments.in[8 * lane + 1],
			      (double)result(&arguments, lane, 0), want);
		ck_assert_float_eq(result(&arguments, lane, 1), 0.0f);
		ck_assert_float_eq(result(&arguments, lane, 3), 1.0f);
	}
	softgpu_texture_destroy(arguments.texture);
}

START_TEST(every_address_and_filter_mode_follows_the_guide)
{
	static const uint32_t sizes[3][3] = { { 11, 1, 1 }, { 8, 5, 1 }, { 4, 3, 6 } };
	for (int axes = 1; axes <= 3; axes++) {
		softgpu_image_t image = float_image(1, sizes[axes - 1][0], sizes[axes - 1][1], sizes[axes - 1][2]);
		for (int mode = 0; mode < 16; mode++) {
			softgpu_sampler_t sampler = { .linear = mode & 1, .normalized = mode & 2,
						      .border = { 0x42280000, 7, 7, 7 } };
			for (int n = 0; n < 3; n++)
				sampler.address[n] = (enum softgpu_address)(mode >> 2);
			bool periodic = mode >> 2 == SOFTGPU_ADDRESS_WRAP || mode >> 2 == SOFTGPU_ADDRESS_MIRROR;
			if (mode >> 2 == SOFTGPU_ADDRESS_BORDER) {
				/* The border is of every channel: only the first is looked at. */
				sampler.border[1] = 0;
				sampler.border[3] = 0x3f800000;
			}
			if (periodic && !sampler.normalized)
				continue;
			compare(&image, &sampler, axes);
		}
		device_reset();
	}
}
END_TEST

START_TEST(without_normalized_coordinates_wrap_and_mirror_clamp)
{
	softgpu_image_t image = float_image(1, 8, 1, 1);
	for (int mode = 0; mode < 2; mode++) {
		softgpu_sampler_t sampler = { .address = { mode ? SOFTGPU_ADDRESS_MIRROR : SOFTGPU_ADDRESS_WRAP } };
		struct arguments arguments = arguments_for(&image, &sampler);
		for (int lane = 0; lane < LANES; lane++)
			arguments.in[8 * lane] = (float)lane - 20;
		fetch(plain_fetch[0], &arguments);
		for (int lane = 0; lane < LANES; lane++) {
			int at = lane - 20 < 0 ? 0 : lane - 20 > 7 ? 7 : lane - 20;
			ck_assert_double_eq((double)result(&arguments, lane, 0), texel(&image, at, 0, 0));
		}
		softgpu_texture_destroy(arguments.texture);
	}
}
END_TEST

START_TEST(weights_have_eight_bits_behind_the_point)
{
	softgpu_image_t image = float_image(1, 2, 1, 1);
	float *data = (float *)(uintptr_t)image.memory;
	data[0] = 0.0f;
	data[1] = 256.0f;
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP }, .linear = true };
	struct arguments arguments = arguments_for(&image, &sampler);
	/* A result is the weight in 256ths: whole numbers, and the nearest one. */
	for (int lane = 0; lane < LANES; lane++)
		arguments.in[8 * lane] = 0.5f + (float)lane / 1000.0f;
	fetch(plain_fetch[0], &arguments);
	for (int lane = 0; lane < LANES; lane++) {
		double want = floor((double)(0.5f + (float)lane / 1000.0f) * 256 - 128 + 0.5);
		ck_assert_double_eq((double)result(&arguments, lane, 0), want);
	}
	done(&arguments);
}
END_TEST

START_TEST(what_is_not_a_number_or_infinite_stays_inside)
{
	static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, -0.0f, -1e-30f };
	softgpu_image_t image = float_image(1, 8, 5, 1);
	for (int mode = 0; mode < 16; mode++) {
		enum softgpu_address address = (enum softgpu_address)(mode >> 2);
		softgpu_sampler_t sampler = { .address = { address, address, address }, .linear = mode & 1,
					      .normalized = mode & 2 };
		struct arguments arguments = arguments_for(&image, &sampler);
		for (int lane = 0; lane < LANES; lane++) {
			arguments.in[8 * lane] = odd[lane % 8];
			arguments.in[8 * lane + 1] = odd[lane / 8];
		}
		fetch(plain_fetch[1], &arguments);
		for (int lane = 0; lane < LANES; lane++)
			ck_assert(isfinite(result(&arguments, lane, 0)));
		bool clamps = address == SOFTGPU_ADDRESS_CLAMP && !sampler.linear;
		if (clamps) {
			/* Not a number counts as 0, infinity as far out. */
			ck_assert_double_eq((double)result(&arguments, 0, 0), texel(&image, 0, 0, 0));
			ck_assert_double_eq((double)result(&arguments, 1, 0), texel(&image, 7, 0, 0));
			ck_assert_double_eq((double)result(&arguments, 2 + 8, 0), texel(&image, 0, 4, 0));
		}
		/* And so it is no place beyond the border. */
		if (address == SOFTGPU_ADDRESS_BORDER && !sampler.linear)
			ck_assert_double_eq((double)result(&arguments, 0, 0), texel(&image, 0, 0, 0));
		softgpu_texture_destroy(arguments.texture);
	}
}
END_TEST

START_TEST(layers_are_chosen_and_beyond_the_last_is_the_last)
{
	softgpu_image_t image = float_image(2, 4, 3, 5);
	image.layered = true;
	image.dimensions = 2;
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP, SOFTGPU_ADDRESS_CLAMP } };
	struct arguments arguments = arguments_for(&image, &sampler);
	for (int lane = 0; lane < LANES; lane++) {
		int32_t layer = lane < 8 ? lane : -lane;
		memcpy(&arguments.in[8 * lane], &layer, sizeof layer);
		arguments.in[8 * lane + 1] = (float)(lane % 4) + 0.5f;
		arguments.in[8 * lane + 2] = (float)(lane % 3) + 0.5f;
	}
	fetch(KERNEL("tex.a2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%r2,%f2,%f3,%f3}];"), &arguments);
	for (int lane = 0; lane < LANES; lane++) {
		int layer = lane < 5 ? lane : 4;
		ck_assert_double_eq((double)result(&arguments, lane, 0), texel(&image, lane % 4, lane % 3, layer));
	}
	softgpu_level_t flat = image.level[0];
	image.level[0].height = 1;
	image.level[0].slice = flat.pitch;
	image.level[0].depth = 15;
	image.dimensions = 1;
	softgpu_texture_bind(arguments.texture, &image, &sampler);
	fetch(KERNEL("tex.a1d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%r2,%f2}];"), &arguments);
	for (int lane = 0; lane < LANES; lane++)
		ck_assert_double_eq((double)result(&arguments, lane, 0),
				    texel(&image, lane % 4, 0, lane < 8 ? lane : 14));
	done(&arguments);
}
END_TEST

/* The Guide's table of faces, by hand: direction, face, s and t before they are divided by the major axis. */
START_TEST(a_direction_meets_its_face)
{
	static const struct {
		float d[3];
		int face;
		float s, t;
	} cases[] = {
		{ { 2, 0.5f, -1 }, 0, 0.5f, -0.25f }, { { -2, 0.5f, -1 }, 1, -0.5f, -0.25f },
		{ { 0.5f, 4, 1 }, 2, 0.125f, 0.25f }, { { 0.5f, -4, 1 }, 3, 0.125f, -0.25f },
		{ { 0.5f, 1, 2 }, 4, 0.25f, -0.5f },  { { 0.5f, 1, -2 }, 5, -0.25f, -0.5f },
		{ { 1, -0.9f, 0.9f }, 0, -0.9f, 0.9f }, { { -0.1f, 0.1f, 10 }, 4, -0.01f, -0.01f },
	};
	softgpu_image_t image = float_image(1, 8, 8, 12);
	image.cube = image.layered = true;
	image.dimensions = 2;
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP, SOFTGPU_ADDRESS_CLAMP }, .normalized = true };
	struct arguments arguments = arguments_for(&image, &sampler);
	for (int lane = 0; lane < LANES; lane++) {
		int32_t cube = lane / 8;
		memcpy(&arguments.in[8 * lane], cases[lane % 8].d, sizeof cases->d);
		memcpy(&arguments.in[8 * lane + 4], &cube, sizeof cube);
	}
	fetch(KERNEL("tex.acube.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%r6,%f1,%f2,%f3}];"), &arguments);
	for (int lane = 0; lane < LANES; lane++) {
		int cube = lane / 8 < 2 ? lane / 8 : 1, n = lane % 8;
		int64_t x = (int64_t)floor((cases[n].s + 1) / 2 * 8), y = (int64_t)floor((cases[n].t + 1) / 2 * 8);
		ck_assert_msg((double)result(&arguments, lane, 0) == texel(&image, x, y, 6 * cube + cases[n].face),
			      "case %d of cube %d", n, cube);
	}
	fetch(KERNEL("tex.cube.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2,%f3,%f3}];"), &arguments);
	for (int lane = 0; lane < LANES; lane++) {
		int n = lane % 8;
		int64_t x = (int64_t)floor((cases[n].s + 1) / 2 * 8), y = (int64_t)floor((cases[n].t + 1) / 2 * 8);
		ck_assert_double_eq((double)result(&arguments, lane, 0), texel(&image, x, y, cases[n].face));
	}
	done(&arguments);
}
END_TEST

START_TEST(a_seamless_cube_is_filtered_across_its_edges)
{
	softgpu_image_t image = float_image(1, 4, 4, 6);
	float *data = (float *)(uintptr_t)image.memory;
	image.cube = true;
	image.dimensions = 2;
	for (int n = 0; n < 96; n++)
		data[n] = (float)(1 << n / 16); /* each face one colour */
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP, SOFTGPU_ADDRESS_CLAMP }, .linear = true,
				      .normalized = true, .seamless = true };
	struct arguments arguments = arguments_for(&image, &sampler);
	/* The edges of +x: towards +y, -y, +z, -z; its middle; a corner (+x, +y, +z). */
	static const float at[6][3] = { { 1, 1, 0 }, { 1, -1, 0 }, { 1, 0, 1 }, { 1, 0, -1 }, { 1, 0, 0 }, { 1, 1,
													     1 } };
	static const double want[6] = { (1 + 4) / 2.0, (1 + 8) / 2.0, (1 + 16) / 2.0, (1 + 32) / 2.0, 1,
					(1 + 4 + 16) / 3.0 };
	for (int lane = 0; lane < LANES; lane++)
		memcpy(&arguments.in[8 * lane], at[lane % 6], sizeof *at);
	fetch(KERNEL("tex.cube.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2,%f3,%f3}];"), &arguments);
	for (int lane = 0; lane < LANES; lane++)
		ck_assert_msg(fabs((double)result(&arguments, lane, 0) - want[lane % 6]) < 1e-5, "%d: %g, want %g",
			      lane % 6, (double)result(&arguments, lane, 0), want[lane % 6]);
	sampler.seamless = false;
	softgpu_texture_bind(arguments.texture, &image, &sampler);
	fetch(KERNEL("tex.cube.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2,%f3,%f3}];"), &arguments);
	ck_assert_float_eq(result(&arguments, 0, 0), 1.0f);
	done(&arguments);
}
END_TEST

/* ---- formats */
static void one_texel(enum softgpu_channel channel, uint32_t channels, uint32_t bytes, const void *data, bool promote,
		      bool srgb, const uint32_t want[4])
{
	softgpu_image_t image = { .channel = channel, .channels = channels, .texel = bytes, .bytes = bytes,
				  .dimensions = 1, .levels = 1 };
	void *memory = device_alloc(bytes);
	memcpy(memory, data, bytes);
	image.memory = (uint64_t)(uintptr_t)memory;
	image.level[0] = (softgpu_level_t){ image.memory, 1, 1, 1, bytes, bytes };
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP }, .promote = promote, .srgb = srgb };
	struct arguments arguments = arguments_for(&image, &sampler);
	fetch(KERNEL("tex.1d.v4.u32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1}];"), &arguments);
	for (int n = 0; n < 4; n++)
		ck_assert_msg(arguments.out[n] == want[n], "channel %d of %d: %#x, want %#x", n, (int)channel,
			      arguments.out[n], want[n]);
	done(&arguments);
}

static uint32_t bits(double value)
{
	float single = (float)value;
	uint32_t word;
	memcpy(&word, &single, sizeof word);
	return word;
}

START_TEST(formats_are_read_as_cuda_says)
{
	static const uint8_t u8[4] = { 0, 255, 128, 1 };
	static const int8_t s8[4] = { -128, 127, -127, 64 };
	static const uint16_t u16[4] = { 65535, 1, 32768, 0 };
	static const int16_t s16[2] = { -32768, 16384 };
	static const uint32_t u32[4] = { 0xffffffff, 1, 2, 0x80000000 };
	static const uint16_t half[2] = { 0x3c00, 0xc500 }; /* 1, -5 */
	const uint32_t packed = 1023u | 0u << 10 | 341u << 20 | 2u << 30;
	one_texel(SOFTGPU_CHANNEL_U8, 4, 4, u8, false, false, (uint32_t[]){ 0, 255, 128, 1 });
	one_texel(SOFTGPU_CHANNEL_U8, 4, 4, u8, true, false,
		  (uint32_t[]){ 0, bits(1), bits(128 / 255.0), bits(1 / 255.0) });
	one_texel(SOFTGPU_CHANNEL_S8, 4, 4, s8, false, false,
		  (uint32_t[]){ (uint32_t)-128, 127, (uint32_t)-127, 64 });
	one_texel(SOFTGPU_CHANNEL_S8, 4, 4, s8, true, false,
		  (uint32_t[]){ bits(-1), bits(1), bits(-1), bits(64 / 127.0) });
	one_texel(SOFTGPU_CHANNEL_U16, 4, 8, u16, true, false,
		  (uint32_t[]){ bits(1), bits(1 / 65535.0), bits(32768 / 65535.0), 0 });
	one_texel(SOFTGPU_CHANNEL_S16, 2, 4, s16, true, false,
		  (uint32_t[]){ bits(-1), bits(16384 / 32767.0), 0, bits(1) });
	one_texel(SOFTGPU_CHANNEL_S16, 1, 2, s16, false, false, (uint32_t[]){ (uint32_t)-32768, 0, 0, 1 });
	one_texel(SOFTGPU_CHANNEL_U32, 4, 16, u32, true, false, u32); /* never promoted */
	one_texel(SOFTGPU_CHANNEL_HALF, 2, 4, half, false, false, (uint32_t[]){ bits(1), bits(-5), 0, bits(1) });
	one_texel(SOFTGPU_CHANNEL_UNORM16, 2, 4, u16, false, false, (uint32_t[]){ bits(1), bits(1 / 65535.0), 0,
										  bits(1) });
	one_texel(SOFTGPU_CHANNEL_SNORM8, 1, 1, s8, false, false, (uint32_t[]){ bits(-1), 0, 0, bits(1) });
	one_texel(SOFTGPU_CHANNEL_UNORM10, 4, 4, &packed, false, false,
		  (uint32_t[]){ bits(1), 0, bits(341 / 1023.0), bits(2 / 3.0) });
	/* IEC 61966-2-1: 128 is 0.215861 and 1 is 1 / 255 / 12.92; the fourth channel is linear. */
	static const uint8_t colours[4] = { 128, 1, 255, 128 };
	one_texel(SOFTGPU_CHANNEL_U8, 4, 4, colours, true, true,
		  (uint32_t[]){ bits(pow((128 / 255.0 + 0.055) / 1.055, 2.4)), bits(1 / 255.0 / 12.92), bits(1),
				bits(128 / 255.0) });
	one_texel(SOFTGPU_CHANNEL_U8, 4, 4, colours, false, true, (uint32_t[]){ 128, 1, 255, 128 });
}
END_TEST

START_TEST(results_may_be_halves)
{
	softgpu_image_t image = float_image(4, 4, 1, 1);
	float *data = (float *)(uintptr_t)image.memory;
	const float texels[4] = { 1.0f, -5.0f, 65504.0f, 0.333333333f };
	memcpy(data, texels, sizeof texels);
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP } };
	struct arguments arguments = arguments_for(&image, &sampler);
	fetch(KERNEL("tex.1d.v4.f16.f32 {%h1,%h2,%h3,%h4}, [%d1, {%f1}]; mov.b32 %r8, {%h1,%h2}; mov.b32 %r9, {%h3,%h4};"
		     "tex.1d.v2.f16x2.f32 {%r10,%r11}, [%d1, {%f1}];"), &arguments);
	ck_assert_uint_eq(arguments.out[0], 0xc5003c00);
	ck_assert_uint_eq(arguments.out[1], 0x35557bff);
	ck_assert_uint_eq(arguments.out[2], 0xc5003c00);
	ck_assert_uint_eq(arguments.out[3], 0x35557bff);
	done(&arguments);
}
END_TEST

/* ---- mipmaps: level n holds the value 10 n everywhere */
static softgpu_image_t mipmap(uint32_t levels)
{
	softgpu_image_t image = float_image(1, 16, 32, 1);
	float *data = (float *)(uintptr_t)image.memory;
	uint64_t at = 0;
	image.mipmapped = true;
	image.levels = levels;
	for (uint32_t n = 0; n < levels; n++) {
		/* Far smaller than the memory there is, which is all that counts here. */
		uint32_t width = 8u >> n ? 8u >> n : 1, height = 8u >> n ? 8u >> n : 1;
		image.level[n] = (softgpu_level_t){ image.memory + at, width, height, 1, width * 4,
						    width * height * 4 };
		for (uint32_t i = 0; i < width * height; i++)
			data[at / 4 + i] = 10.0f * (float)n;
		at += width * height * 4;
	}
	return image;
}

START_TEST(levels_are_clamped_biased_and_blended)
{
	softgpu_image_t image = mipmap(4);
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP, SOFTGPU_ADDRESS_CLAMP }, .normalized = true,
				      .linear = true, .bias = 0.25f, .min_level = 0.5f, .max_level = 2.75f };
	for (int blend = 0; blend < 2; blend++) {
		sampler.mip_linear = blend;
		struct arguments arguments = arguments_for(&image, &sampler);
		for (int lane = 0; lane < LANES; lane++)
			arguments.in[8 * lane + 3] = (float)(lane - 8) / 8.0f;
		fetch(KERNEL("tex.level.2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2}], %f4;"), &arguments);
		for (int lane = 0; lane < LANES; lane++) {
			double lod = fmin(fmax((lane - 8) / 8.0 + 0.25, 0.5), 2.75);
			double want = blend ? lod * 10 : floor(lod + 0.5) * 10;
			ck_assert_msg(fabs((double)result(&arguments, lane, 0) - want) < 1e-4, "lod %g: %g, want %g",
				      lod, (double)result(&arguments, lane, 0), want);
		}
		/* Without a level it is the base. */
		fetch(KERNEL("tex.2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2}];"), &arguments);
		ck_assert_float_eq(result(&arguments, 5, 0), 0.0f);
		softgpu_texture_destroy(arguments.texture);
	}
}
END_TEST

START_TEST(gradients_choose_the_level)
{
	softgpu_image_t image = mipmap(4);
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP, SOFTGPU_ADDRESS_CLAMP }, .normalized = true,
				      .mip_linear = true, .max_level = 9, .anisotropy = 1 };
	struct arguments arguments = arguments_for(&image, &sampler);
	for (int lane = 0; lane < LANES; lane++) {
		float *in = &arguments.in[8 * lane];
		in[4] = (float)lane / 64.0f; /* dx = (lane / 64, 0): lane / 8 texels of 8 */
		in[7] = 0.125f;              /* dy = (0, 1 / 8): one texel */
	}
	const char *kernel = KERNEL("tex.grad.2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2}], {%f5,%f6}, {%f7,%f8};");
	fetch(kernel, &arguments);
	for (int lane = 0; lane < LANES; lane++) {
		double lod = log2(fmax(lane / 8.0, 1.0));
		ck_assert_msg(fabs((double)result(&arguments, lane, 0) - 10 * lod) < 0.03, "lane %d: %g, want %g", lane,
			      (double)result(&arguments, lane, 0), 10 * lod);
	}
	/* With up to four fetches along the longer side the level is that of a quarter of it at best. */
	sampler.anisotropy = 4;
	softgpu_texture_bind(arguments.texture, &image, &sampler);
	fetch(kernel, &arguments);
	for (int lane = 8; lane < LANES; lane++) {
		double longest = lane / 8.0, probes = fmin(ceil(longest), 4), lod = fmax(log2(longest / probes), 0);
		ck_assert_msg(fabs((double)result(&arguments, lane, 0) - 10 * lod) < 0.03, "lane %d: %g, want %g", lane,
			      (double)result(&arguments, lane, 0), 10 * lod);
	}
	done(&arguments);
}
END_TEST

/* ---- the rest */
START_TEST(the_short_way_gives_what_the_long_way_gives)
{
	softgpu_image_t image = float_image(2, 8, 5, 3);
	image.layered = true;
	image.dimensions = 2;
	for (int mode = 0; mode < 64; mode++) {
		softgpu_sampler_t sampler = { .linear = mode & 1, .normalized = mode & 2, .border = { 1, 2, 3, 4 } };
		sampler.address[0] = (enum softgpu_address)(mode >> 2 & 3);
		sampler.address[1] = (enum softgpu_address)(mode >> 4);
		struct arguments arguments = arguments_for(&image, &sampler);
		coordinates(&arguments, &image, sampler.normalized);
		/* A level that is named takes the long way, to the same level 0. */
		fetch(KERNEL("and.b32 %r5, %r1, 3; mov.f32 %f4, 0f00000000;\n"
			     "tex.a2d.v4.u32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%r5,%f1,%f2,%f2}];\n"
			     "tex.level.a2d.v4.u32.f32 {%r4,%r5,%r6,%r7}, [%d1, {%r5,%f1,%f2,%f2}], %f4;\n"
			     "xor.b32 %r8, %r8, %r4; xor.b32 %r9, %r9, %r5; xor.b32 %r10, %r10, %r6; xor.b32 %r11, %r11, %r7;"),
		      &arguments);
		for (int n = 0; n < 4 * LANES; n++)
			ck_assert_msg(arguments.out[n] == 0, "mode %d lane %d channel %d", mode, n / 4, n % 4);
		softgpu_texture_destroy(arguments.texture);
	}
}
END_TEST

START_TEST(offsets_move_by_texels)
{
	softgpu_image_t image = float_image(1, 16, 9, 1);
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_WRAP, SOFTGPU_ADDRESS_CLAMP }, .normalized = true };
	struct arguments arguments = arguments_for(&image, &sampler);
	for (int lane = 0; lane < LANES; lane++) {
		arguments.in[8 * lane] = 3.5f / 16;
		arguments.in[8 * lane + 1] = 4.5f / 9;
	}
	fetch(KERNEL("sub.s32 %r6, %r1, 8; mov.u32 %r7, -6; and.b32 %r5, %r1, 15; sub.s32 %r6, %r5, 8;\n"
		     "tex.2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2}], {%r6,%r7};"), &arguments);
	for (int lane = 0; lane < LANES; lane++)
		ck_assert_double_eq((double)result(&arguments, lane, 0), texel(&image, (3 + lane % 16 - 8 + 16) % 16, 0,
									       0));
	done(&arguments);
}
END_TEST

START_TEST(integer_coordinates_name_texels_and_linear_memory_ends_in_zeros)
{
	softgpu_image_t image = float_image(1, 40, 1, 1);
	image.linear = true;
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_WRAP }, .linear = true };
	struct arguments arguments = arguments_for(&image, &sampler);
	fetch(KERNEL("sub.s32 %r2, %r1, 10; tex.1d.v4.f32.s32 {%r8,%r9,%r10,%r11}, [%d1, {%r2}];"), &arguments);
	for (int lane = 0; lane < LANES; lane++) {
		bool inside = lane >= 10 && lane < 50;
		ck_assert_double_eq((double)result(&arguments, lane, 0), inside ? texel(&image, lane - 10, 0, 0) : 0);
	}
	image.linear = false;
	sampler.address[0] = SOFTGPU_ADDRESS_CLAMP;
	softgpu_texture_bind(arguments.texture, &image, &sampler);
	fetch(KERNEL("sub.s32 %r2, %r1, 10; tex.1d.v4.f32.s32 {%r8,_,%r10,%r11}, [%d1, {%r2}]; mov.u32 %r9, 77;"),
	      &arguments);
	ck_assert_double_eq((double)result(&arguments, 3, 0), texel(&image, 0, 0, 0));
	ck_assert_double_eq((double)result(&arguments, 63, 0), texel(&image, 39, 0, 0));
	ck_assert_uint_eq(arguments.out[1], 77);
	done(&arguments);
}
END_TEST

START_TEST(a_gather_takes_one_component_of_four_texels)
{
	softgpu_image_t image = float_image(4, 8, 6, 1);
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP, SOFTGPU_ADDRESS_CLAMP } };
	struct arguments arguments = arguments_for(&image, &sampler);
	for (int lane = 0; lane < LANES; lane++) {
		arguments.in[8 * lane] = (float)(lane % 8) + 0.75f;
		arguments.in[8 * lane + 1] = (float)(lane / 8) + 0.25f;
	}
	fetch(KERNEL("tld4.b.2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2}];"), &arguments);
	for (int lane = 0; lane < LANES; lane++) {
		/* x - 0.5 is in texel lane % 8, y - 0.5 in the row above lane / 8 */
		static const int corner[4][2] = { { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
		for (int n = 0; n < 4; n++) {
			int x = lane % 8 + corner[n][0], y = lane / 8 - 1 + corner[n][1];
			x = x > 7 ? 7 : x;
			y = y > 5 ? 5 : y < 0 ? 0 : y;
			const float *data = (const float *)(uintptr_t)image.memory;
			ck_assert_float_eq(result(&arguments, lane, n), data[(y * 8 + x) * 4 + 2]);
		}
	}
	done(&arguments);
}
END_TEST

START_TEST(queries_answer_and_the_predicate_is_true)
{
	softgpu_image_t image = mipmap(4);
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_BORDER, SOFTGPU_ADDRESS_MIRROR }, .normalized = true,
				      .linear = true };
	struct arguments arguments = arguments_for(&image, &sampler);
	fetch(KERNEL("txq.width.b32 %r8, [%d1]; mov.u32 %r2, 2; txq.level.height.b32 %r9, [%d1], %r2;\n"
		     "txq.num_mipmap_levels.b32 %r10, [%d1]; txq.addr_mode_0.b32 %r11, [%d1];"), &arguments);
	ck_assert_uint_eq(arguments.out[0], 8);
	ck_assert_uint_eq(arguments.out[1], 2);
	ck_assert_uint_eq(arguments.out[2], 4);
	ck_assert_uint_eq(arguments.out[3], 4);
	fetch(KERNEL("txq.depth.b32 %r8, [%d1]; txq.filter_mode.b32 %r9, [%d1]; txq.normalized_coords.b32 %r10, [%d1];\n"
		     "setp.ne.u32 %p1, %r1, %r1; tex.2d.v4.f32.f32 {%f8,%f9,%f10,%f11}|%p1, [%d1, {%f1,%f2}];\n"
		     "selp.u32 %r11, 5, 6, %p1;"), &arguments);
	ck_assert_uint_eq(arguments.out[0], 0);
	ck_assert_uint_eq(arguments.out[1], 1);
	ck_assert_uint_eq(arguments.out[2], 1);
	ck_assert_uint_eq(arguments.out[3], 5);
	done(&arguments);
}
END_TEST

START_TEST(lanes_that_are_off_keep_their_registers_and_handles_may_differ)
{
	softgpu_image_t first = float_image(1, 8, 1, 1), second = float_image(1, 8, 1, 1);
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP } };
	((float *)(uintptr_t)second.memory)[0] = 1234.0f;
	struct arguments arguments = arguments_for(&first, &sampler);
	struct arguments other = arguments_for(&second, &sampler);
	for (int lane = 0; lane < LANES; lane++)
		memcpy(&arguments.in[8 * lane + 4], &other.texture, 8);
	fetch(KERNEL("ld.global.u64 %d5, [%d2+16]; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1; selp.b64 %d1, %d5, %d1, %p1;\n"
		     "mov.u32 %r8, 99; mov.u32 %r9, 99; setp.lt.u32 %p2, %r1, 7;\n"
		     "@%p2 tex.1d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f2}];"), &arguments);
	ck_assert_double_eq((double)result(&arguments, 0, 0), texel(&first, 0, 0, 0));
	ck_assert_float_eq(result(&arguments, 1, 0), 1234.0f);
	ck_assert_uint_eq(arguments.out[4 * 6 + 1], 0);
	ck_assert_uint_eq(arguments.out[4 * 7], 99);
	ck_assert_uint_eq(arguments.out[4 * 63 + 1], 99);
	softgpu_texture_destroy(other.texture);
	done(&arguments);
}
END_TEST

START_TEST(a_reference_is_bound_by_name)
{
	softgpu_image_t image = float_image(1, 8, 1, 1);
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP } };
	struct arguments arguments = arguments_for(&image, &sampler);
	softgpu_program_t *program = load_ptx(".global .texref tex_a;\n.global .surfref surf_a;\n"
		KERNEL("tex.1d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [tex_a, {%f1}]; mov.u64 %d5, tex_a;\n"
		       "tex.1d.v4.f32.f32 {%r9,%r2,%r3,%r4}, [%d5, {%f1}]; istypep.texref %p1, %d5; mov.u64 %d5, surf_a;\n"
		       "istypep.texref %p2, %d5; selp.u32 %r10, 1, 0, %p1; selp.u32 %r11, 1, 0, %p2;"));
	uint64_t handle, none;
	ck_assert_int_eq(softgpu_program_reference(program, "tex_a", SOFTGPU_SURFACE_REFERENCE, &none),
			 CUDA_ERROR_NOT_FOUND);
	ck_assert_int_eq(softgpu_program_reference(program, "tex_a", SOFTGPU_TEXTURE_REFERENCE, &handle), CUDA_SUCCESS);
	ck_assert_int_eq(softgpu_program_variable(program, "tex_a", &none, &none), CUDA_ERROR_NOT_FOUND);
	ck_assert_int_eq(launch_1d(kernel_of(program, "k"), 1, LANES, &arguments), CUDA_ERROR_ILLEGAL_ADDRESS);
	softgpu_texture_bind(handle, &image, &sampler);
	ck_assert_int_eq(launch_1d(kernel_of(program, "k"), 1, LANES, &arguments), CUDA_SUCCESS);
	ck_assert_double_eq((double)result(&arguments, 4, 0), texel(&image, 0, 0, 0));
	ck_assert_double_eq((double)result(&arguments, 4, 1), texel(&image, 0, 0, 0));
	ck_assert_uint_eq(arguments.out[4 * 4 + 2], 1);
	ck_assert_uint_eq(arguments.out[4 * 4 + 3], 0);
	softgpu_program_unload(program);
	ck_assert_int_eq(softgpu_texture_kind(handle), SOFTGPU_TEXTURE_NONE);
	done(&arguments);
}
END_TEST

START_TEST(bad_handles_and_freed_memory_are_faults)
{
	softgpu_image_t image = float_image(1, 8, 1, 1);
	softgpu_sampler_t sampler = { .address = { SOFTGPU_ADDRESS_CLAMP } };
	struct arguments arguments = arguments_for(&image, &sampler);
	const char *kernel = plain_fetch[1];
	uint64_t good = arguments.texture, surface = softgpu_texture_create(SOFTGPU_SURFACE_OBJECT, NULL);
	softgpu_texture_bind(surface, &image, NULL);
	static const uint64_t bad[] = { 0, UINT64_MAX, 0x123456789abcdef };
	fetch(kernel, &arguments);
	for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
		arguments.texture = bad[n];
		ck_assert_int_eq(run_ptx(kernel, 1, 1, &arguments), CUDA_ERROR_ILLEGAL_ADDRESS);
	}
	arguments.texture = surface;
	ck_assert_int_eq(run_ptx(kernel, 1, 1, &arguments), CUDA_ERROR_ILLEGAL_ADDRESS);
	arguments.texture = good;
	softgpu_memory_free(image.memory);
	ck_assert_int_eq(run_ptx(kernel, 1, 1, &arguments), CUDA_ERROR_ILLEGAL_ADDRESS);
	softgpu_texture_destroy(good);
	ck_assert_int_eq(run_ptx(kernel, 1, 1, &arguments), CUDA_ERROR_ILLEGAL_ADDRESS);
	softgpu_texture_destroy(surface);
}
END_TEST

START_TEST(what_is_not_there_is_refused)
{
	static const char *const refused[] = {
		"tex.2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2}], %f3;",
		"tex.2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, %d2, {%f1,%f2}];",
		"tex.2dms.v4.f32.s32 {%r8,%r9,%r10,%r11}, [%d1, {%r1,%r2,%r3,%r3}];",
		"txq.channel_order.b32 %r8, [%d1];",
	};
	static const char *const invalid[] = {
		"tex.2d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1}];",
		"tex.2d.v4.f32.f32 {%r8,%r9,%r10}, [%d1, {%f1,%f2}];",
		"tex.cube.v4.f32.s32 {%r8,%r9,%r10,%r11}, [%d1, {%r1,%r2,%r3,%r3}];",
		"tex.cube.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2,%f3,%f3}], {%r1,%r2,%r3,%r4};",
		"tld4.r.3d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%d1, {%f1,%f2,%f3,%f3}];",
		"tex.1d.v4.f32.f32 {%r8,%r9,%r10,%r11}, [%r1, {%f1}];",
	};
	char log[512], text[2048];
	for (size_t n = 0; n < sizeof refused / sizeof *refused + sizeof invalid / sizeof *invalid; n++) {
		size_t many = sizeof refused / sizeof *refused;
		static const char head[] = ".visible .entry k(.param .u64 t)\n{\n.reg .b32 %r<20>; .reg .f32 %f<20>;"
					   ".reg .b64 %d<9>;\n";
		snprintf(text, sizeof text, "%s%s\nret;\n}\n", head, n < many ? refused[n] : invalid[n - many]);
		CUresult want = n < many ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_PTX;
		ck_assert_msg(load_bad_ptx(text, log, sizeof log) == want, "%s: %s",
			      n < many ? refused[n] : invalid[n - many], log);
	}
	ck_assert_int_eq(load_bad_ptx(".global .samplerref s;\n", log, sizeof log), CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(load_bad_ptx(".global .texref t[2];\n", log, sizeof log), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

int main(void)
{
	TCase *tests = test_case("textures");
	tcase_add_test(tests, every_address_and_filter_mode_follows_the_guide);
	tcase_add_test(tests, without_normalized_coordinates_wrap_and_mirror_clamp);
	tcase_add_test(tests, weights_have_eight_bits_behind_the_point);
	tcase_add_test(tests, what_is_not_a_number_or_infinite_stays_inside);
	tcase_add_test(tests, layers_are_chosen_and_beyond_the_last_is_the_last);
	tcase_add_test(tests, a_direction_meets_its_face);
	tcase_add_test(tests, a_seamless_cube_is_filtered_across_its_edges);
	tcase_add_test(tests, formats_are_read_as_cuda_says);
	tcase_add_test(tests, results_may_be_halves);
	tcase_add_test(tests, levels_are_clamped_biased_and_blended);
	tcase_add_test(tests, gradients_choose_the_level);
	tcase_add_test(tests, the_short_way_gives_what_the_long_way_gives);
	tcase_add_test(tests, offsets_move_by_texels);
	tcase_add_test(tests, integer_coordinates_name_texels_and_linear_memory_ends_in_zeros);
	tcase_add_test(tests, a_gather_takes_one_component_of_four_texels);
	tcase_add_test(tests, queries_answer_and_the_predicate_is_true);
	tcase_add_test(tests, lanes_that_are_off_keep_their_registers_and_handles_may_differ);
	tcase_add_test(tests, a_reference_is_bound_by_name);
	tcase_add_test(tests, bad_handles_and_freed_memory_are_faults);
	tcase_add_test(tests, what_is_not_there_is_refused);
	return run_tests();
}
