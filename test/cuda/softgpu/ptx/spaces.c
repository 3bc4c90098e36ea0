/* SPDX-License-Identifier: BSD-3-Clause */
/* State spaces: accesses of all widths, generic addresses, constants, local memory, atomics, printf, and faults. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRY ".visible .entry k(.param .u64 in, .param .u64 out, .param .s32 bias)\n{\n"                       \
	".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %w<20>; .reg .b64 %l<20>; .reg .b64 %a<9>; .reg .b32 %i<9>;\n" \
	"ld.param.u64 %a1, [in]; ld.param.u64 %a2, [out]; mov.u32 %i2, %tid.x; mov.u32 %i3, %ctaid.x; " \
		"mov.u32 %i4, %ntid.x;\n" \
	"mad.lo.u32 %i1, %i3, %i4, %i2; mul.wide.u32 %a3, %i1, 8; add.u64 %a4, %a2, %a3;\n"
#define END "\nret;\n}\n"

struct parameters {
	void *in, *out;
	int32_t bias;
};

/* Runs one body over in; out[i] is 64 bits for each thread. */
static uint64_t *run(const char *text, const void *in, size_t in_size, uint32_t blocks, uint32_t threads)
{
	struct parameters parameters = { device_alloc(in_size + 64), device_alloc((size_t)blocks * threads * 8), -7 };
	memcpy(parameters.in, in, in_size);
	ck_assert_int_eq(run_ptx(text, blocks, threads, &parameters), CUDA_SUCCESS);
	return parameters.out;
}

static const int8_t bytes[64] = { 1,  -2,  3,  -4,  100, -100, 127, -128, 9,  -10, 11, -12, 13, -14, 15, -16,
				  17, -18, 19, -20, 21,	 -22,  23,  -24,  25, -26, 27, -28, 29, -30, 31, -32,
				  33, -34, 35, -36, 37,	 -38,  39,  -40,  41, -42, 43, -44, 45, -46, 47 };

START_TEST(narrow_loads_extend_as_their_type_says)
{
	use_isa(_i);
	uint64_t *out = run(ENTRY "cvt.u64.u32 %l1, %i1; add.u64 %l2, %a1, %l1; ld.global.s8 %w1, [%l2]; "
		"ld.global.u8 %h1, [%l2]; cvt.u32.u16 %w2, %h1;\n"
			    "ld.global.s8 %l3, [%l2]; cvt.u32.u64 %w3, %l3; add.u32 %w1, %w1, %w3; "
			    "mov.b64 %l4, {%w1, %w2}; st.global.u64 [%a4], %l4;" END,
			    bytes, sizeof bytes, 1, 40);
	for (int t = 0; t < 40; t++)
		ck_assert_uint_eq(out[t], (uint32_t)(2 * bytes[t]) | (uint64_t)(uint8_t)bytes[t] << 32);
}
END_TEST

START_TEST(vectors_of_four_keep_their_order)
{
	use_isa(_i);
	uint32_t in[256];
	for (uint32_t n = 0; n < 256; n++)
		in[n] = n * 2654435761u;
	/* The second access is scattered: every thread takes the quadruple of the thread opposite. */
	uint64_t *out = run(ENTRY "mul.wide.u32 %l1, %i1, 16; add.u64 %l1, %l1, %a1; "
		"ld.global.v4.u32 {%w1, %w2, %w3, %w4}, [%l1];\n"
			    "xor.b32 %w9, %i1, 13; mul.wide.u32 %l2, %w9, 16; add.u64 %l2, %l2, %a1; "
			    "ld.global.nc.v4.f32 {%w5, %w6, %w7, %w8}, [%l2];\n"
			    "sub.u32 %w1, %w1, %w2; sub.u32 %w3, %w3, %w4; xor.b32 %w1, %w1, %w3; "
			    "sub.u32 %w5, %w5, %w6; sub.u32 %w7, %w7, %w8; xor.b32 %w5, %w5, %w7;\n"
			    "st.global.v2.b32 [%a4], {%w1, %w5};" END, in, sizeof in, 1, 64);
	for (uint32_t t = 0; t < 64; t++) {
		const uint32_t *a = in + 4 * t, *b = in + 4 * (t ^ 13);
		uint32_t first = (a[0] - a[1]) ^ (a[2] - a[3]), second = (b[0] - b[1]) ^ (b[2] - b[3]);
		ck_assert_uint_eq(out[t], first | (uint64_t)second << 32);
	}
}
END_TEST

START_TEST(generic_addresses_tell_the_spaces_apart)
{
	use_isa(_i);
	uint64_t in[64];
	for (uint64_t n = 0; n < 64; n++)
		in[n] = 1000 + n;
	/* A third of the lanes each: global, shared, local, all through one generic load. */
	uint64_t *out = run(ENTRY ".shared .align 8 .b8 s[512]; .local .align 8 .b8 d[64];\n"
		"mov.u64 %l1, s; cvt.u64.u32 %l2, %i1; shl.b64 %l2, %l2, 3; add.u64 %l3, %l1, %l2; "
		"cvta.shared.u64 %l3, %l3; mov.u64 %l4, d; cvta.local.u64 %l4, %l4;\n"
		"add.u64 %l5, %a1, %l2; cvt.u64.u32 %l6, %i1; add.u64 %l7, %l6, 2000; st.u64 [%l3], %l7; "
		"add.u64 %l7, %l6, 3000; st.u64 [%l4+16], %l7; add.u64 %l4, %l4, 16;\n"
		"rem.u32 %w1, %i1, 3; setp.eq.u32 %p1, %w1, 1; setp.eq.u32 %p2, %w1, 2; "
		"selp.b64 %l8, %l3, %l5, %p1; selp.b64 %l8, %l4, %l8, %p2; ld.u64 %l9, [%l8];\n"
		"isspacep.shared %p3, %l8; isspacep.local %p4, %l8; isspacep.global %p5, %l8; "
		"selp.b64 %l10, 10000, 0, %p3; selp.b64 %l11, 20000, 0, %p4; selp.b64 %l12, 40000, 0, %p5;\n"
		"add.u64 %l9, %l9, %l10; add.u64 %l9, %l9, %l11; add.u64 %l9, %l9, %l12; "
		"st.global.u64 [%a4], %l9;" END, in, sizeof in, 1, 64);
	for (uint64_t t = 0; t < 64; t++)
		ck_assert_uint_eq(out[t], t + (t % 3 == 0 ? 41000 : t % 3 == 1 ? 12000 : 23000));
}
END_TEST

START_TEST(variables_start_with_what_they_were_given)
{
	use_isa(_i);
	uint64_t zero = 0;
	uint64_t *out = run(".const .align 4 .f32 scale[2] = { 0f3fc00000, "
		"2.5 };\n.global .align 8 .u64 values[3] = { 5, 6 };\n"
		".global .align 8 .u64 where = generic(values)+8;\n.global .align 1 .b8 text[4] = { 65, "
		"66, 0x43 };\n" ENTRY
		"ld.const.f32 %w1, [scale]; ld.const.f32 %w2, [scale+4]; add.f32 %w3, %w1, %w2; "
		"cvt.rzi.u32.f32 %w3, %w3; cvt.u64.u32 %l1, %w3;\n"
		"ld.global.u64 %l2, [where]; ld.global.u64 %l3, [%l2]; ld.global.u64 %l4, [%l2+8]; "
		"ld.global.u8 %w4, [text+2]; cvt.u64.u32 %l5, %w4;\n"
		"ld.param.s32 %l6, [bias]; shl.b64 %l1, %l1, 8; add.u64 %l1, %l1, %l3; shl.b64 %l1, %l1, 8; "
		"add.u64 %l1, %l1, %l5; add.u64 %l1, %l1, %l4; add.u64 %l1, %l1, %l6;\n"
		"st.global.u64 [%a4], %l1;" END, &zero, sizeof zero, 1, 33);
	for (uint64_t t = 0; t < 33; t++)
		ck_assert_uint_eq(out[t], ((4u << 8) + 6) * 256 + 'C' - 7);
}
END_TEST

START_TEST(atomics_of_many_blocks_all_count)
{
	use_isa(_i);
	uint64_t zero[8] = { 0, 0, 0, 0, 0, 0xffffffffffffffff, 0, 0 };
	uint64_t *out = run(ENTRY ".shared .align 4 .u32 s;\n"
		"cvt.u64.u32 %l1, %i1; cvt.rn.f32.u32 %w1, %i1; cvt.rn.f64.u32 %l2, %i2; "
		"red.global.add.u32 [%a1], 1; atom.global.add.u64 %l3, [%a1+8], %l1; "
		"red.global.add.f32 [%a1+16], 0f3f800000;\n"
		"red.global.add.f64 [%a1+24], %l2; atom.max.s32 %w2, [%a1+32], %i1; "
		"atom.global.min.u64 %l4, [%a1+40], %l1; atom.global.inc.u32 %w3, [%a1+48], 99; "
		"atom.global.or.b32 %w4, [%a1+56], %i2;\n"
		"setp.ne.u32 %p1, %i2, 0; @!%p1 st.shared.u32 [s], 0; bar.sync 0; "
		"atom.shared.add.u32 %w5, [s], 2; bar.sync 0; ld.shared.u32 %w6, [s]; mov.b64 %l5, {%w6, %w3}; "
		"st.global.u64 [%a4], %l5;" END,
		zero, sizeof zero, 10, 100);
	uint32_t seen[100] = { 0 };
	for (uint32_t t = 0; t < 1000; t++) {
		ck_assert_uint_eq((uint32_t)out[t], 200);
		ck_assert_uint_lt(out[t] >> 32, 100);
		seen[out[t] >> 32]++;
	}
	for (uint32_t n = 0; n < 100; n++)
		ck_assert_uint_eq(seen[n], 10);
}
END_TEST

START_TEST(atomic_results_are_in_memory)
{
	use_isa(_i);
	uint64_t *cells = device_alloc(64), *out = device_alloc(8000);
	cells[5] = UINT64_MAX;
	struct parameters parameters = { cells, out, 0 };
	ck_assert_int_eq(run_ptx(ENTRY "cvt.u64.u32 %l1, %i1; cvt.rn.f64.u32 %l2, %i2; "
		"red.global.add.u32 [%a1], 1; atom.global.add.u64 %l3, [%a1+8], %l1;\n"
		"red.global.add.f32 [%a1+16], 0f3f800000; red.global.add.f64 [%a1+24], %l2; "
		"atom.max.s32 %w2, [%a1+32], %i1; atom.global.min.u64 %l4, [%a1+40], %l1;" END,
		10, 100, &parameters), CUDA_SUCCESS);
	float sum;
	double wide;
	memcpy(&sum, &cells[2], sizeof sum);
	memcpy(&wide, &cells[3], sizeof wide);
	ck_assert_uint_eq(cells[0], 1000);
	ck_assert_uint_eq(cells[1], 499500);
	ck_assert(sum == 1000.0f);
	ck_assert(wide == 49500.0);
	ck_assert_uint_eq(cells[4], 999);
	ck_assert_uint_eq(cells[5], 0);
}
END_TEST

/* Sends stdout to a file until captured_end, which reads the file's beginning. */
struct captured {
	char path[32];
	int file, saved;
};

static void captured_begin(struct captured *captured)
{
	strcpy(captured->path, "/tmp/ptx-printf-XXXXXX");
	captured->file = mkstemp(captured->path);
	captured->saved = dup(STDOUT_FILENO);
	ck_assert_int_ge(captured->file, 0);
	fflush(stdout);
	dup2(captured->file, STDOUT_FILENO);
}

static void captured_end(struct captured *captured, char *text, size_t room)
{
	fflush(stdout);
	dup2(captured->saved, STDOUT_FILENO);
	ssize_t got = pread(captured->file, text, room - 1, 0);
	close(captured->file);
	close(captured->saved);
	unlink(captured->path);
	text[got > 0 ? got : 0] = '\0';
}

START_TEST(printf_writes_in_the_order_of_blocks)
{
	use_isa(_i);
	char text[512];
	struct captured captured;
	struct parameters parameters = { NULL, NULL, 0 };
	captured_begin(&captured);
	CUresult result = run_ptx(".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
		".global .align 1 .b8 format[64] = { 37, "
		"100, 32, 37, 53, 46, 50, 102, 32, 37, 115, 124, 37, 108, 108, 120, 37, 37, 37, 99, 10, 0 };\n"
		".global .align 1 .b8 word[4] = { 104, 105, 0 };\n" ENTRY ".local .align 8 .b8 args[40];\n"
		"setp.ne.u32 %p1, %i2, 5; @%p1 bra DONE; mov.u64 %l1, args; cvta.local.u64 %l2, %l1; "
		"neg.s32 %w1, %i3; st.local.u32 [%l1], %w1; st.local.f64 [%l1+8], 0d3ff8000000000000;\n"
		"mov.u64 %l3, word; cvta.global.u64 %l3, %l3; st.local.u64 [%l1+16], %l3; "
		"st.local.u64 [%l1+24], 0x123456789a; st.local.u32 [%l1+32], 33; mov.u64 %l4, format; "
		"cvta.global.u64 %l4, %l4;\n"
		"{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %l4; st.param.b64 [a], %l2; "
		"call.uni (r), vprintf, (f, a); ld.param.b32 %w2, [r]; } DONE:" END,
		3, 32, &parameters);
	captured_end(&captured, text, sizeof text);
	ck_assert_int_eq(result, CUDA_SUCCESS);
	ck_assert_str_eq(text, "0  1.50 hi|123456789a%!\n-1  1.50 hi|123456789a%!\n-2  1.50 hi|123456789a%!\n");
}
END_TEST

/* Prints the letter a and the block's number, and a newline. */
#define PRINT_NUMBER                                                                                               \
	".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"                                   \
	".global .align 1 .b8 format[5] = { 97, 37, 117, 10, 0 };\n" ENTRY ".local .align 8 .b8 args[8];\n"        \
	"setp.ne.u32 %p1, %i2, 0; @%p1 bra DONE; mov.u64 %l1, args; cvta.local.u64 %l2, %l1; "                     \
	"st.local.u32 [%l1], %i3; mov.u64 %l4, format; cvta.global.u64 %l4, %l4;\n"                                \
	"{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %l4; st.param.b64 [a], %l2; "            \
	"call.uni (r), vprintf, (f, a); ld.param.b32 %w2, [r]; } DONE: "

/* The grid has far more blocks than there is memory for a record of each; it ends in its first blocks. */
START_TEST(a_grid_of_very_many_blocks_prints)
{
	use_isa(_i);
	char text[512];
	struct captured captured;
	struct parameters parameters = { NULL, NULL, 0 };
	softgpu_program_t *program = load_ptx(PRINT_NUMBER "trap;" END);
	softgpu_launch_t launch = { .kernel = kernel_of(program, "k"), .grid = { INT32_MAX, 65535, 1 }, .block = { 32, 1, 1 },
				    .parameters = &parameters };
	softgpu_kernel_info_t info;
	softgpu_kernel_info(launch.kernel, &info);
	ck_assert(info.prints);
	captured_begin(&captured);
	CUresult result = softgpu_launch(&launch);
	captured_end(&captured, text, sizeof text);
	softgpu_program_unload(program);
	ck_assert_int_eq(result, CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_msg(text[0] == 'a', "the output is: %s", text);
}
END_TEST

/* A buffer of 100 records: those of the blocks with the highest numbers remain, in their order. */
START_TEST(the_last_blocks_remain_if_printf_writes_too_much)
{
	use_isa(_i);
	char text[4096], want[4096];
	size_t used = 0;
	struct captured captured;
	struct parameters parameters = { NULL, NULL, 0 };
	softgpu_program_t *program = load_ptx(PRINT_NUMBER END);
	softgpu_launch_t launch = { .kernel = kernel_of(program, "k"), .grid = { 1000, 1, 1 }, .block = { 32, 1, 1 },
				    .parameters = &parameters, .limits = { .print_bytes = 2400 } };
	captured_begin(&captured);
	CUresult result = softgpu_launch(&launch);
	captured_end(&captured, text, sizeof text);
	softgpu_program_unload(program);
	ck_assert_int_eq(result, CUDA_SUCCESS);
	for (int n = 900; n < 1000; n++)
		used += (size_t)snprintf(want + used, sizeof want - used, "a%d\n", n);
	ck_assert_str_eq(text, want);
}
END_TEST

/*
 * 64 threads, of which two in three load element (13 t + 5) % 64 of a width, put it into shared memory there, over what all
 * had put (t), and take what is beside it; their own local memory gives back what each had loaded.
 */
#define SCATTER(width, cell, bytes)                                                                                \
	ENTRY ".shared .align 8 .b8 s[512]; .local .align 8 .b8 d[512]; .reg .b" cell " v, x, y;\n"                \
	"mad.lo.u32 %w1, %i1, 13, 5; and.b32 %w1, %w1, 63; mul.lo.u32 %w2, %w1, " bytes "; cvt.u64.u32 %l1, %w2;\n" \
	"xor.b32 %w3, %w1, 1; mul.lo.u32 %w3, %w3, " bytes "; rem.u32 %w4, %i1, 3; setp.ne.u32 %p1, %w4, 0;\n"     \
	"add.u64 %l2, %a1, %l1; cvt.u" cell ".u32 v, %i1; mov.u32 %w5, s; add.u32 %w6, %w5, %w2;\n"                \
	"add.u32 %w5, %w5, %w3; st.shared.u" width " [%w6], v; bar.sync 0; @%p1 ld.global.u" width " v, [%l2];\n"  \
	"@%p1 st.shared.u" width " [%w6], v; bar.sync 0; ld.shared.u" width " x, [%w5]; mov.u64 %l3, d;\n"         \
	"add.u64 %l3, %l3, %l1; st.local.u" width " [%l3], v; ld.local.u" width " y, [%l3]; cvt.u64.u" cell " %l4, x;\n" \
	"cvt.u64.u" cell " %l5, y; mul.lo.u64 %l5, %l5, 3; xor.b64 %l4, %l4, %l5; mul.wide.u32 %l6, %w1, 8;\n"     \
	"add.u64 %l6, %l6, %a2; st.global.u64 [%l6], %l4;" END

static uint64_t element_of(const uint8_t *in, uint32_t bytes_each, uint32_t at)
{
	uint64_t value = 0;
	memcpy(&value, in + at * bytes_each, bytes_each);
	return value;
}

START_TEST(scattered_accesses_reach_what_each_lane_names)
{
	static const char *const texts[] = { SCATTER("8", "32", "1"), SCATTER("16", "32", "2"), SCATTER("32", "32", "4"),
					     SCATTER("64", "64", "8"), SCATTER("32", "64", "4") };
	static const uint32_t sizes[] = { 1, 2, 4, 8, 4 };
	uint8_t in[512];
	uint64_t kept[64], loaded[64];
	use_isa(_i);
	for (uint32_t n = 0; n < sizeof in; n++)
		in[n] = (uint8_t)(n * 197 + (n >> 3) * 31 + 7);
	for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
		uint64_t *out = run(texts[n], in, sizeof in, 1, 64);
		for (uint32_t t = 0; t < 64; t++) {
			uint32_t at = (13 * t + 5) % 64;
			loaded[at] = kept[at] = t % 3 ? element_of(in, sizes[n], at) : t;
		}
		for (uint32_t at = 0; at < 64; at++)
			ck_assert_msg(out[at] == (kept[at ^ 1] ^ (loaded[at] * 3)), "%u bytes, place %u: %llx", sizes[n],
				      at, (unsigned long long)out[at]);
		device_reset();
	}
}
END_TEST

START_TEST(lanes_of_one_access_may_be_in_several_allocations)
{
	use_isa(_i);
	uint32_t in[32];
	for (uint32_t n = 0; n < 32; n++)
		in[n] = n * 2654435761u;
	/* out holds zeros where in has numbers; odd threads look there. */
	uint64_t *out = run(ENTRY "and.b32 %w1, %i1, 1; setp.eq.u32 %p1, %w1, 1; selp.b64 %l1, %a2, %a1, %p1; "
		"xor.b32 %w2, %i1, 6; mul.wide.u32 %l2, %w2, 4; add.u64 %l1, %l1, %l2; ld.global.u32 %w3, [%l1]; "
		"bar.sync 0; cvt.u64.u32 %l3, %w3; st.global.u64 [%a4], %l3;" END, in, sizeof in, 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t & 1 ? 0 : in[t ^ 6]);
}
END_TEST

/* ---- faults: the launch's result, and nothing but */
static CUresult fault(const char *text, uint32_t threads)
{
	struct parameters parameters = { device_alloc(4096), device_alloc(4096), 0 };
	CUresult result = run_ptx(text, 2, threads, &parameters);
	device_reset();
	return result;
}

START_TEST(an_address_outside_every_allocation_is_a_fault)
{
	use_isa(_i);
	ck_assert_int_eq(fault(ENTRY "ld.global.u32 %w1, [%a1+4096]; "
		"st.global.u32 [%a4], %w1;" END, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(fault(ENTRY "mov.u64 %l1, 0; ld.global.u32 %w1, [%l1]; "
		"st.global.u32 [%a4], %w1;" END, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* Only the last lane of a run is outside. */
	ck_assert_int_eq(fault(ENTRY "mul.wide.u32 %l1, %i2, 4; add.u64 %l1, %l1, %a1; "
		"st.global.u32 [%l1+3972], %i1; st.global.u32 [%l1+3976], %i1;" END, 32),
			 CUDA_ERROR_ILLEGAL_ADDRESS);
	/* Only one lane of a scattered access. */
	ck_assert_int_eq(fault(ENTRY "setp.eq.u32 %p1, %i2, 9; selp.b64 %l1, 0x7000000000, %a1, %p1; "
		"ld.global.u32 %w1, [%l1];" END, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(fault(ENTRY "mov.u64 %l1, 0xfffffffffffffffc; ld.u32 %w1, [%l1]; "
		"st.u32 [%l1+8], %w1;" END, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(fault(ENTRY "atom.global.add.u32 %w1, [%a1+4096], 1;" END, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* The very last byte, by a whole warp, by some lanes and by one. */
	for (uint32_t threads = 32; threads; threads /= 6) {
		ck_assert_int_eq(fault(ENTRY "mov.u64 %l1, 0xffffffffffffffff; ld.global.u8 %w1, [%l1];" END, threads),
				 CUDA_ERROR_ILLEGAL_ADDRESS);
		ck_assert_int_eq(fault(ENTRY "mov.u64 %l1, 0xffffffffffffffff; st.u8 [%l1], 1;" END, threads),
				 CUDA_ERROR_ILLEGAL_ADDRESS);
	}
}
END_TEST

START_TEST(shared_and_local_memory_have_ends_too)
{
	use_isa(_i);
	ck_assert_int_eq(fault(ENTRY ".shared .align 4 .b8 s[64];\nmov.u32 %w1, s; "
		"st.shared.u32 [%w1+60], %i1; st.shared.u32 [%w1+64], %i1;" END, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(fault(ENTRY ".shared .align 4 .b8 s[64];\nmov.u32 %w1, s; "
		"ld.shared.u32 %w2, [%w1+-4];" END, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(fault(ENTRY ".local .align 4 .b8 d[64];\nmov.u64 %l1, d; st.local.u32 [%l1+60], %i1; "
		"st.local.u32 [%l1+64], %i1;" END, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(fault(ENTRY ".local .align 4 .b8 d[64];\nmov.u64 %l1, d; cvta.local.u64 %l1, %l1; "
		"st.u32 [%l1+65536], %i1;" END, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(misaligned_addresses_are_faults)
{
	use_isa(_i);
	ck_assert_int_eq(fault(ENTRY "ld.global.u32 %w1, [%a1+2];" END, 32), CUDA_ERROR_MISALIGNED_ADDRESS);
	ck_assert_int_eq(fault(ENTRY "ld.global.v2.u32 {%w1, %w2}, [%a1+4];" END, 32), CUDA_ERROR_MISALIGNED_ADDRESS);
	ck_assert_int_eq(fault(ENTRY "mul.wide.u32 %l1, %i2, 3; add.u64 %l1, %l1, %a1; "
		"st.global.u16 [%l1], %h1;" END, 32), CUDA_ERROR_MISALIGNED_ADDRESS);
	ck_assert_int_eq(fault(ENTRY "atom.global.add.u64 %l1, [%a1+4], 1;" END, 1), CUDA_ERROR_MISALIGNED_ADDRESS);
}
END_TEST

/* Addresses that are neither alike nor in a row: thread t's is 4 (t ^ 5), but thread 9's is another. */
START_TEST(an_access_that_was_right_before_is_checked_again)
{
	/* The second turn is wrong for lane 9; all lanes' allocation is known from the first. */
#define TWICE(access, wrong) ENTRY "mov.u32 %w3, 0; setp.eq.u32 %p1, %i2, 9;\nAGAIN: "                          \
	"setp.eq.and.u32 %p2, %w3, 1, %p1; "                                                                     \
	"mul.wide.u32 %l1, %i2, 4; selp.b64 %l1, " wrong ", %l1, %p2; add.u64 %l2, %a1, %l1;\n" access "\n"    \
	"add.u32 %w3, %w3, 1; setp.lt.u32 %p3, %w3, 2; @%p3 bra AGAIN;" END
#define ALL_WAYS(access) TWICE(access, "4096"), TWICE(access, "-4"), TWICE(access, "2"), TWICE(access, "4092")
	static const char *const texts[] = {
		ALL_WAYS("ld.volatile.global.u32 %w2, [%l2];"), ALL_WAYS("st.volatile.global.u32 [%l2], %i2;"),
		ALL_WAYS("ld.relaxed.gpu.u32 %w2, [%l2];"), ALL_WAYS("atom.global.add.u32 %w2, [%l2], 1;"),
		ALL_WAYS("ld.global.u32 %w2, [%l2];"),
	};
	static const CUresult wanted[] = { CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS,
					   CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_SUCCESS };
	use_isa(_i);
	for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
		ck_assert_msg(fault(texts[n], 32) == wanted[n % 4], "%s", texts[n]);
}
END_TEST

START_TEST(one_lane_of_a_scattered_access_is_enough_for_a_fault)
{
#define SCATTERED(space, base, wrong) ENTRY ".shared .align 8 .b8 s[128]; .local .align 8 .b8 d[128];\n"      \
	"xor.b32 %w1, %i2, 5; mul.wide.u32 %l1, %w1, 4; setp.eq.u32 %p1, %i2, 9; setp.ne.u32 %p2, %i2, 9;\n"   \
	"mov.u64 %l2, " base "; selp.b64 %l3, " wrong ", %l1, %p1; add.u64 %l2, %l2, %l3;\n"                   \
	"GUARD ld." space ".u32 %w2, [%l2]; GUARD st." space ".u32 [%l2], %w2;" END
	static const char *const faults[][2] = {
		{ "illegal", SCATTERED("global", "%a1", "4096") },    { "illegal", SCATTERED("global", "%a1", "-4") },
		{ "illegal", SCATTERED("shared", "s", "128") },       { "illegal", SCATTERED("shared", "s", "-4") },
		{ "illegal", SCATTERED("local", "d", "128") },        { "misaligned", SCATTERED("global", "%a1", "2") },
		{ "misaligned", SCATTERED("shared", "s", "1") },      { "misaligned", SCATTERED("local", "d", "2") },
		{ "none", SCATTERED("global", "%a1", "4092") },       { "none", SCATTERED("shared", "s", "124") },
		{ "none", SCATTERED("local", "d", "124") },
	};
	use_isa(_i);
	for (size_t n = 0; n < sizeof faults / sizeof *faults; n++) {
		char text[2048], *to = text;
		CUresult wanted = *faults[n][0] == 'i' ? CUDA_ERROR_ILLEGAL_ADDRESS :
				  *faults[n][0] == 'm' ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_SUCCESS;
		for (int guarded = 0; guarded < 2; guarded++) {
			to = text;
			for (const char *from = faults[n][1]; *from; from++) {
				if (strncmp(from, "GUARD", 5)) {
					*to++ = *from;
					continue;
				}
				to += sprintf(to, "%s", guarded ? "@%p2" : "");
				from += 4;
			}
			*to = '\0';
			ck_assert_msg(fault(text, 32) == (guarded ? CUDA_SUCCESS : wanted), "%s", text);
		}
	}
}
END_TEST

START_TEST(traps_and_wild_calls_are_faults)
{
	use_isa(_i);
	ck_assert_int_eq(fault(ENTRY "setp.eq.u32 %p1, %i2, 3; @%p1 trap;" END, 32), CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_int_eq(fault(ENTRY "P: .callprototype _ (); call %a1, P;" END, 32), CUDA_ERROR_INVALID_PC);
	ck_assert_int_eq(fault(".func f();\n.func f() { .local .align 8 .b8 d[4096]; call.uni f; ret; "
		"}\n" ENTRY "call.uni f;" END, 32),
			 CUDA_ERROR_HARDWARE_STACK_ERROR);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		narrow_loads_extend_as_their_type_says,	 vectors_of_four_keep_their_order,
		generic_addresses_tell_the_spaces_apart, variables_start_with_what_they_were_given,
		atomics_of_many_blocks_all_count,	 atomic_results_are_in_memory,
		printf_writes_in_the_order_of_blocks,	 an_address_outside_every_allocation_is_a_fault,
		shared_and_local_memory_have_ends_too,	 misaligned_addresses_are_faults,
		traps_and_wild_calls_are_faults,
		scattered_accesses_reach_what_each_lane_names,
		lanes_of_one_access_may_be_in_several_allocations,
		one_lane_of_a_scattered_access_is_enough_for_a_fault,
		an_access_that_was_right_before_is_checked_again,
		a_grid_of_very_many_blocks_prints,
		the_last_blocks_remain_if_printf_writes_too_much,
	};
	TCase *cases = test_case("ptx spaces");
	for (size_t n = 0; n < sizeof tests / sizeof *tests; n++)
		tcase_add_loop_test(cases, tests[n], 0, ISAS);
	return run_tests();
}
