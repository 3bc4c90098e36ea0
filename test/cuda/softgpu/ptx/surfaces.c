/* SPDX-License-Identifier: BSD-3-Clause */
/* Surface instructions: every byte of every layer where it belongs, and what each boundary mode does beyond the edge. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 32
#define WIDTH 8
#define HEIGHT 4
#define DEPTH 3
#define PITCH 48 /* rows of 8 texels of 4 bytes, 16 bytes apart from each other */

/* Arguments of a kernel: the surface, and for each thread four integers in and four out. */
struct arguments {
	uint64_t surface;
	int32_t *in;
	uint32_t *out;
};

#define KERNEL(instruction)                                                                                 \
	".visible .entry k(.param .u64 s, .param .u64 in, .param .u64 out)\n{\n"                            \
	".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %d<9>;\n"            \
	"ld.param.u64 %d1, [s]; ld.param.u64 %d2, [in]; ld.param.u64 %d3, [out]; mov.u32 %r1, %tid.x;\n"       \
	"mul.wide.u32 %d4, %r1, 16; add.u64 %d2, %d2, %d4; add.u64 %d3, %d3, %d4;\n"                          \
	"ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%d2]; mov.u32 %r8, 99; mov.u32 %r9, 99; mov.u32 %r10, 99;\n"      \
	"mov.u32 %r11, 99;\n" instruction "\nst.global.v4.b32 [%d3], {%r8,%r9,%r10,%r11};\nret;\n}\n"

static softgpu_image_t image_of(enum softgpu_channel channel, uint32_t channels, uint32_t texel)
{
	softgpu_image_t image = { .channel = channel, .channels = channels, .texel = texel, .dimensions = 3,
				  .levels = 1, .bytes = PITCH * HEIGHT * DEPTH };
	uint8_t *data = device_alloc(image.bytes);
	for (uint32_t n = 0; n < image.bytes; n++)
		data[n] = (uint8_t)(n * 7 + n / 256);
	image.memory = (uint64_t)(uintptr_t)data;
	image.level[0] = (softgpu_level_t){ image.memory, WIDTH * 4 / texel, HEIGHT, DEPTH, PITCH, PITCH * HEIGHT };
	return image;
}

static struct arguments arguments_for(const softgpu_image_t *image)
{
	struct arguments arguments = { softgpu_texture_create(SOFTGPU_SURFACE_OBJECT, NULL), device_alloc(LANES * 16),
				       device_alloc(LANES * 16) };
	softgpu_texture_bind(arguments.surface, image, NULL);
	return arguments;
}

static void done(struct arguments *arguments)
{
	softgpu_texture_destroy(arguments->surface);
	device_reset();
}

static uint8_t *byte_at(const softgpu_image_t *image, int x, int y, int z)
{
	return (uint8_t *)(uintptr_t)image->memory + z * PITCH * HEIGHT + y * PITCH + x;
}

static uint32_t word_at(const softgpu_image_t *image, int x, int y, int z)
{
	uint32_t word;
	memcpy(&word, byte_at(image, x, y, z), sizeof word);
	return word;
}

/* x in bytes from -8 in steps of 4, y from -2, z from -1: inside and around. */
static void around(struct arguments *arguments)
{
	for (int lane = 0; lane < LANES; lane++) {
		arguments->in[4 * lane] = -8 + 4 * (lane % 13);
		arguments->in[4 * lane + 1] = -2 + lane % 8;
		arguments->in[4 * lane + 2] = -1 + lane % 5;
	}
}

static int keep(int at, int limit)
{
	return at < 0 ? 0 : at >= limit ? limit - 1 : at;
}

static bool lane_at(const struct arguments *arguments, int lane, int at[3])
{
	memcpy(at, &arguments->in[4 * lane], 3 * sizeof *at);
	return at[0] >= 0 && at[0] < WIDTH * 4 && at[1] >= 0 && at[1] < HEIGHT && at[2] >= 0 && at[2] < DEPTH;
}

START_TEST(loads_are_zero_or_the_nearest_beyond_the_edge)
{
	softgpu_image_t image = image_of(SOFTGPU_CHANNEL_U32, 1, 4);
	struct arguments arguments = arguments_for(&image);
	around(&arguments);
	ck_assert_int_eq(run_ptx(KERNEL("suld.b.3d.b32.zero {%r8}, [%d1, {%r2,%r3,%r4,%r4}];\n"
					"suld.b.3d.b32.clamp %r9, [%d1, {%r2,%r3,%r4,%r4}];\n"
					"suld.b.a2d.b32.zero {%r10}, [%d1, {%r4,%r2,%r3,%r3}];\n"
					"suld.b.2d.b32.zero {%r11}, [%d1, {%r2,%r3}];"),
				 1, LANES, &arguments),
			 CUDA_SUCCESS);
	for (int lane = 0; lane < LANES; lane++) {
		int at[3];
		bool inside = lane_at(&arguments, lane, at);
		const uint32_t *out = &arguments.out[4 * lane];
		ck_assert_uint_eq(out[0], inside ? word_at(&image, at[0], at[1], at[2]) : 0);
		ck_assert_uint_eq(out[1], word_at(&image, keep(at[0] / 4, WIDTH) * 4, keep(at[1], HEIGHT),
						  keep(at[2], DEPTH)));
		ck_assert_uint_eq(out[2], inside ? word_at(&image, at[0], at[1], at[2]) : 0);
		bool flat = at[0] >= 0 && at[0] < WIDTH * 4 && at[1] >= 0 && at[1] < HEIGHT;
		ck_assert_uint_eq(out[3], flat ? word_at(&image, at[0], at[1], 0) : 0);
	}
	done(&arguments);
}
END_TEST

START_TEST(stores_beyond_the_edge_are_dropped)
{
	softgpu_image_t image = image_of(SOFTGPU_CHANNEL_U32, 1, 4);
	struct arguments arguments = arguments_for(&image);
	static uint8_t want[PITCH * HEIGHT * DEPTH];
	around(&arguments);
	memcpy(want, byte_at(&image, 0, 0, 0), sizeof want);
	ck_assert_int_eq(run_ptx(KERNEL("mul.lo.u32 %r6, %r1, 2654435761; sust.b.3d.b32.zero [%d1, {%r2,%r3,%r4,%r4}], {%r6};"),
				 1, LANES, &arguments),
			 CUDA_SUCCESS);
	for (int lane = 0; lane < LANES; lane++) {
		int at[3];
		uint32_t value = (uint32_t)lane * 2654435761u;
		if (lane_at(&arguments, lane, at))
			memcpy(&want[at[2] * PITCH * HEIGHT + at[1] * PITCH + at[0]], &value, 4);
	}
	ck_assert(!memcmp(want, byte_at(&image, 0, 0, 0), sizeof want));
	/* The nearest place takes what lies beyond: of two lanes the later one stays. */
	arguments.in[0] = -4, arguments.in[1] = 99, arguments.in[2] = -3;
	arguments.in[4] = 400, arguments.in[5] = -1, arguments.in[6] = 7;
	ck_assert_int_eq(run_ptx(KERNEL("add.u32 %r6, %r1, 1000; sust.b.3d.b32.clamp [%d1, {%r2,%r3,%r4,%r4}], {%r6};"),
				 1,
				 2, &arguments),
			 CUDA_SUCCESS);
	ck_assert_uint_eq(word_at(&image, 0, HEIGHT - 1, 0), 1000);
	ck_assert_uint_eq(word_at(&image, WIDTH * 4 - 4, 0, DEPTH - 1), 1001);
	done(&arguments);
}
END_TEST

START_TEST(trap_is_the_end_of_the_launch)
{
	softgpu_image_t image = image_of(SOFTGPU_CHANNEL_U32, 1, 4);
	struct arguments arguments = arguments_for(&image);
	const char *kernel = KERNEL("suld.b.3d.b32.trap {%r8}, [%d1, {%r2,%r3,%r4,%r4}];");
	static const int32_t outside[][3] = { { -4, 0, 0 }, { 32, 0, 0 }, { 0, 4, 0 }, { 0, -1, 0 }, { 0, 0, 3 }, { 0,
														    0, -1 } };
	for (size_t n = 0; n < sizeof outside / sizeof *outside; n++) {
		memcpy(arguments.in, outside[n], sizeof *outside);
		ck_assert_int_eq(run_ptx(kernel, 1, 1, &arguments), CUDA_ERROR_LAUNCH_FAILED);
	}
	memset(arguments.in, 0, 16);
	arguments.in[0] = 28;
	ck_assert_int_eq(run_ptx(kernel, 1, 1, &arguments), CUDA_SUCCESS);
	ck_assert_uint_eq(arguments.out[0], word_at(&image, 28, 0, 0));
	arguments.in[0] = 2;
	ck_assert_int_eq(run_ptx(kernel, 1, 1, &arguments), CUDA_ERROR_MISALIGNED_ADDRESS);
	uint64_t surface = arguments.surface, texture = softgpu_texture_create(SOFTGPU_TEXTURE_OBJECT, NULL);
	softgpu_sampler_t sampler = { .linear = false };
	softgpu_texture_bind(texture, &image, &sampler);
	arguments.surface = texture;
	arguments.in[0] = 0;
	ck_assert_int_eq(run_ptx(kernel, 1, 1, &arguments), CUDA_ERROR_ILLEGAL_ADDRESS);
	arguments.surface = surface;
	softgpu_texture_destroy(texture);
	done(&arguments);
}
END_TEST

START_TEST(elements_of_all_sizes_keep_their_order)
{
	softgpu_image_t image = image_of(SOFTGPU_CHANNEL_U32, 4, 16);
	struct arguments arguments = arguments_for(&image);
	arguments.in[0] = 16;
	ck_assert_int_eq(run_ptx(KERNEL("suld.b.1d.v4.b32.trap {%r8,_,%r10,%r11}, [%d1, {%r2}];"), 1, 1, &arguments),
			 CUDA_SUCCESS);
	ck_assert_uint_eq(arguments.out[0], word_at(&image, 16, 0, 0));
	ck_assert_uint_eq(arguments.out[1], 99);
	ck_assert_uint_eq(arguments.out[3], word_at(&image, 28, 0, 0));
	ck_assert_int_eq(run_ptx(KERNEL("suld.b.1d.v2.b64.trap {%d5,%d6}, [%d1, {%r2}]; mov.b64 {%r8,%r9}, %d5; mov.b64 {%r10,%r11}, %d6;\n"),
				 1, 1, &arguments),
			 CUDA_SUCCESS);
	for (int n = 0; n < 4; n++)
		ck_assert_uint_eq(arguments.out[n], word_at(&image, 16 + 4 * n, 0, 0));
	ck_assert_int_eq(run_ptx(KERNEL("suld.b.1d.b8.trap {%h1}, [%d1, {%r2}]; cvt.u32.u16 %r8, %h1;\n"
					"suld.b.1d.v2.b16.trap {%h1,%h2}, [%d1, {%r2}]; mov.b32 %r9, {%h1,%h2};\n"
					"suld.b.1d.v4.b8.trap {%r10,%r11,%r6,%r7}, [%d1, {%r2}];\n"
					"mov.u16 %h3, 0x1234; sust.b.1d.b8.trap [%d1, {0}], {%h3};\n"
					"mov.u16 %h4, 0x5678; sust.b.1d.v2.b16.trap [%d1, {4}], {%h3,%h4};"),
				 1, 1, &arguments),
			 CUDA_SUCCESS);
	ck_assert_uint_eq(arguments.out[0], *byte_at(&image, 16, 0, 0));
	ck_assert_uint_eq(arguments.out[1], word_at(&image, 16, 0, 0));
	ck_assert_uint_eq(arguments.out[2], *byte_at(&image, 16, 0, 0));
	ck_assert_uint_eq(arguments.out[3], *byte_at(&image, 17, 0, 0));
	ck_assert_uint_eq(word_at(&image, 0, 0, 0) & 0xffff, 0x0034 | 7 << 8);
	ck_assert_uint_eq(word_at(&image, 4, 0, 0), 0x56781234);
	done(&arguments);
}
END_TEST

START_TEST(reductions_of_all_lanes_add_up)
{
	softgpu_image_t image = image_of(SOFTGPU_CHANNEL_S32, 1, 4);
	struct arguments arguments = arguments_for(&image);
	memset(byte_at(&image, 0, 0, 0), 0, PITCH);
	ck_assert_int_eq(run_ptx(KERNEL("sub.s32 %r6, 5, %r1; cvt.s64.s32 %d5, %r6; shl.b32 %r7, 1, %r1; xor.b32 %r5, %r7, -1;\n"
					"sured.b.add.1d.u32.trap [%d1, {0}], %r1;\n"
					"sured.b.min.1d.s32.trap [%d1, {4}], %r6;\n"
					"sured.p.max.1d.b32.trap [%d1, {2}], %r6;\n"
					"sured.b.or.1d.b32.trap [%d1, {12}], %r7;\n"
					"sured.b.and.1d.b32.zero [%d1, {999996}], %r7;\n"
					"sured.b.min.1d.s64.trap [%d1, {16}], %d5;\n"
					"sured.b.min.1d.u32.trap [%d1, {24}], %r6;"),
				 1, 32, &arguments),
			 CUDA_SUCCESS);
	ck_assert_uint_eq(word_at(&image, 0, 0, 0), 31 * 32 / 2);
	ck_assert_uint_eq(word_at(&image, 4, 0, 0), (uint32_t)-26);
	ck_assert_uint_eq(word_at(&image, 8, 0, 0), 5);
	ck_assert_uint_eq(word_at(&image, 12, 0, 0), 0xffffffff);
	ck_assert_uint_eq(word_at(&image, 16, 0, 0), (uint32_t)-26);
	ck_assert_uint_eq(word_at(&image, 20, 0, 0), 0xffffffff);
	ck_assert_uint_eq(word_at(&image, 24, 0, 0), 0);
	done(&arguments);
}
END_TEST

START_TEST(formatted_stores_convert)
{
	static const struct {
		enum softgpu_channel channel;
		uint32_t in[4];
		uint32_t want;
	} cases[] = {
		{ SOFTGPU_CHANNEL_U8, { 3, 300, 0, 0xffffffff }, 0xff00ff03 },
		{ SOFTGPU_CHANNEL_S8, { 5, (uint32_t)-200, 200, (uint32_t)-1 }, 0xff7f8005 },
		/* 0.5, 2, -1 and not a number */
		{ SOFTGPU_CHANNEL_UNORM8, { 0x3f000000, 0x40000000, 0xbf800000, 0x7fc00000 }, 0x0000ff80 },
		{ SOFTGPU_CHANNEL_SNORM8, { 0x3f000000, 0x40000000, 0xbf800000, 0x7fc00000 }, 0x00817f40 },
	};
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		softgpu_image_t image = image_of(cases[n].channel, 4, 4);
		struct arguments arguments = arguments_for(&image);
		memcpy(arguments.in, cases[n].in, sizeof cases[n].in);
		ck_assert_int_eq(run_ptx(KERNEL("sust.p.2d.v4.b32.trap [%d1, {2,1}], {%r2,%r3,%r4,%r5};"), 1, 1,
					 &arguments),
				 CUDA_SUCCESS);
		ck_assert_msg(word_at(&image, 8, 1, 0) == cases[n].want, "case %zu: %#x, want %#x", n,
			      word_at(&image, 8, 1, 0), cases[n].want);
		done(&arguments);
	}
	softgpu_image_t image = image_of(SOFTGPU_CHANNEL_HALF, 2, 4);
	struct arguments arguments = arguments_for(&image);
	arguments.in[0] = 0x3f800000; /* 1 */
	arguments.in[1] = (int32_t)0xc0a00000; /* -5 */
	ck_assert_int_eq(run_ptx(KERNEL("sust.p.1d.v2.b32.trap [%d1, {7}], {%r2,%r3}; suq.width.b32 %r8, [%d1];\n"
					"suq.height.b32 %r9, [%d1]; suq.memory_layout.b32 %r10, [%d1]; suq.depth.b32 %r11, [%d1];"),
				 1, 1, &arguments),
			 CUDA_SUCCESS);
	ck_assert_uint_eq(word_at(&image, 28, 0, 0), 0xc5003c00);
	ck_assert_uint_eq(arguments.out[0], WIDTH);
	ck_assert_uint_eq(arguments.out[1], HEIGHT);
	ck_assert_uint_eq(arguments.out[2], 0);
	ck_assert_uint_eq(arguments.out[3], DEPTH);
	done(&arguments);
}
END_TEST

START_TEST(what_is_not_there_is_refused)
{
	static const char *const invalid[] = {
		"suld.b.cube.b32.trap {%r1}, [%d1, {%r1,%r2,%r3,%r4}];",
		"suld.b.1d.f32.trap {%f1}, [%d1, {%r1}];",
		"suld.b.1d.v4.b64.trap {%d1,%d2,%d3,%d4}, [%d1, {%r1}];",
		"suld.b.2d.b32.trap {%r1}, [%d1, {%r1}];",
		"sust.p.1d.v2.b64.trap [%d1, {%r1}], {%d1,%d2};",
		"sured.b.add.1d.s64.trap [%d1, {%r1}], %d2;",
		"sured.b.or.1d.u32.trap [%d1, {%r1}], %r2;",
		"sured.p.add.1d.b64.trap [%d1, {%r1}], %d2;",
	};
	char log[512], text[1024];
	for (size_t n = 0; n < sizeof invalid / sizeof *invalid; n++) {
		snprintf(text, sizeof text, ".visible .entry k(.param .u64 t)\n{\n.reg .b32 %%r<20>; .reg .f32 %%f<20>;"
			 ".reg .b64 %%d<9>;\n%s\nret;\n}\n", invalid[n]);
		ck_assert_msg(load_bad_ptx(text, log, sizeof log) == CUDA_ERROR_INVALID_PTX, "%s: %s", invalid[n], log);
	}
}
END_TEST

int main(void)
{
	TCase *tests = test_case("surfaces");
	tcase_add_test(tests, loads_are_zero_or_the_nearest_beyond_the_edge);
	tcase_add_test(tests, stores_beyond_the_edge_are_dropped);
	tcase_add_test(tests, trap_is_the_end_of_the_launch);
	tcase_add_test(tests, elements_of_all_sizes_keep_their_order);
	tcase_add_test(tests, reductions_of_all_lanes_add_up);
	tcase_add_test(tests, formatted_stores_convert);
	tcase_add_test(tests, what_is_not_there_is_refused);
	return run_tests();
}
