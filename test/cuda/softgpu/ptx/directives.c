/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directives and constants: what initialisers hold (the values are those that ptxas 13.0 puts into a cubin for the same
 * text), aliases, vector registers, and everything that is read and has no effect on what runs.
 */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *value;
	uint64_t bits;
} constants[] = {
	{ "7 / 2 * 4 + (1 ? 2 : 3)", 14 },
	{ "0xffffffffffffffff / 2", 0x7fffffffffffffff },
	{ "-1 / 2", 0 },
	{ "-1 >> 1", UINT64_MAX },
	{ "0xffffffffffffffff >> 1", 0x7fffffffffffffff },
	{ "(.u64)-1 / 2", 0x7fffffffffffffff },
	{ "-1 < 0U", 0 },
	{ "(3 == 3) + (2 != 2) + (4 >= 4 && 0 || 1)", 2 },
	{ "-1 % 0x8000000000000000", 0x7fffffffffffffff },
	{ "1 ? -1 : 0U", UINT64_MAX },
	{ "5U - 6 > 0", 1 },
	{ "(1 << 3 | 1) & ~1", 8 },
	{ "(.s64)0xffffffffffffffff >> 4", UINT64_MAX },
	{ "1 + -1U / 3", 0x5555555555555556 },
	{ "!5 + !0", 1 },
	{ "1 << 2 + 1", 8 },
	{ "6 & 3 + 1", 4 },
	{ "0b11U", 3 },
	{ "0777", 511 },
	{ "WARP_SZ", 32 },
};

static void expect_variable(softgpu_program_t *program, const char *name, const void *bytes, size_t size)
{
	uint64_t address, found;
	ck_assert_int_eq(softgpu_program_variable(program, name, &address, &found), CUDA_SUCCESS);
	ck_assert_msg(found == size, "%s has %llu bytes", name, (unsigned long long)found);
	ck_assert_msg(!memcmp((const void *)(uintptr_t)address, bytes, size), "%s holds something else", name);
}

START_TEST(constant_expressions)
{
	char text[256];
	snprintf(text, sizeof text, ".visible .global .u64 x = %s;\n", constants[_i].value);
	softgpu_program_t *program = load_ptx(text);
	expect_variable(program, "x", &constants[_i].bits, 8);
	softgpu_program_unload(program);
}
END_TEST

START_TEST(initialisers_nest_as_arrays_do)
{
	softgpu_program_t *program = load_ptx(
		".global .u32 m[3][2] = { {1}, {2,3} };\n"
		".global .u32 n[][2] = { {1}, {2,3} };\n"
		".global .u32 t[2][2][2] = {{{1},{2}},{{3,4}}};\n"
		".global .v4 .f32 v = {1.0,2.0,3.0,4.0};\n"
		".global .v2 .u16 w[] = {{1,2},{3,4},{5,6}};\n"
		".global .align 16 .b8 s[] = {104, 105, 0};\n"
		".global .u32 x, y = 3, z[2];\n.global .u8 narrow = 300;\n");
	expect_variable(program, "m", (const uint32_t[]){ 1, 0, 2, 3, 0, 0 }, 24);
	expect_variable(program, "n", (const uint32_t[]){ 1, 0, 2, 3 }, 16);
	expect_variable(program, "t", (const uint32_t[]){ 1, 0, 2, 0, 3, 4, 0, 0 }, 32);
	expect_variable(program, "v", (const uint32_t[]){ 0x3f800000, 0x40000000, 0x40400000, 0x40800000 }, 16);
	expect_variable(program, "w", (const uint16_t[]){ 1, 2, 3, 4, 5, 6 }, 12);
	expect_variable(program, "s", "hi", 3);
	expect_variable(program, "y", (const uint32_t[]){ 3 }, 4);
	expect_variable(program, "narrow", (const uint8_t[]){ 300 & 255 }, 1);
	softgpu_program_unload(program);
}
END_TEST

START_TEST(floats_take_the_variables_width)
{
	softgpu_program_t *program = load_ptx(
		".global .f32 a = (1.5);\n.global .f32 b = 0d3ff0000000000000;\n.global .f64 c = 0f3f800000;\n"
		".global .b32 d = 1.5;\n.global .b64 e = 1.5;\n.global .b64 f = 0f3f800000;\n.global .b32 g = 0f3f800000;\n"
		".global .f32 h = 1.5+2.0;\n.global .f32 i = -(-1.5);\n.global .f32 j = 0f7fa12345;\n"
		".global .f32 k[2] = { -0.0, -0f3f800000 };\n");
	expect_variable(program, "a", (const uint32_t[]){ 0x3fc00000 }, 4);
	expect_variable(program, "b", (const uint32_t[]){ 0x3f800000 }, 4);
	expect_variable(program, "c", (const uint64_t[]){ 0x3ff0000000000000 }, 8);
	expect_variable(program, "d", (const uint32_t[]){ 0x3fc00000 }, 4);
	expect_variable(program, "e", (const uint64_t[]){ 0x3ff8000000000000 }, 8);
	expect_variable(program, "f", (const uint64_t[]){ 0x3f800000 }, 8);
	expect_variable(program, "g", (const uint32_t[]){ 0x3f800000 }, 4);
	expect_variable(program, "h", (const uint32_t[]){ 0x40600000 }, 4);
	expect_variable(program, "i", (const uint32_t[]){ 0x3fc00000 }, 4);
	expect_variable(program, "j", (const uint32_t[]){ 0x7fa12345 }, 4);
	expect_variable(program, "k", (const uint32_t[]){ 0x80000000, 0xbf800000 }, 8);
	softgpu_program_unload(program);
}
END_TEST

START_TEST(addresses_whole_and_in_bytes)
{
	softgpu_program_t *program = load_ptx(
		".global .u32 foo[4];\n"
		".global .u8 b[8] = { 0xff(foo), 0xff00(foo), 0xff0000(foo), 5, 0xff000000(generic(foo)+4) };\n"
		".global .u32 low = foo;\n.global .u64 whole = foo+4;\n");
	uint64_t foo, size;
	ck_assert_int_eq(softgpu_program_variable(program, "foo", &foo, &size), CUDA_SUCCESS);
	const uint8_t bytes[8] = { (uint8_t)foo, (uint8_t)(foo >> 8), (uint8_t)(foo >> 16), 5, (uint8_t)((foo + 4) >> 24) };
	uint32_t low = (uint32_t)foo;
	uint64_t whole = foo + 4;
	expect_variable(program, "b", bytes, 8);
	expect_variable(program, "low", &low, 4);
	expect_variable(program, "whole", &whole, 8);
	softgpu_program_unload(program);
}
END_TEST

START_TEST(directives_without_effect_are_read)
{
	uint32_t *memory = run_output(".file 1 \"/a b/c.cu\", 1700000000, 42\n@@DWARF .byte 3\n.pragma \"nounroll\";\n"
		".section .debug_str { info: .b8 104,105,0\nL1: .b32 .debug_abbrev+4\n.b64 L1 }\n"
		".visible .func f() .noreturn { trap; }\n.func .attribute(.unified(1,2)) g() { ret; }\n"
		".visible .entry k(.param .u64 .ptr .global .align 4 p) .maxntid 128 .minnctapersm 2 .maxnreg 32 "
		".maxclusterrank 4 .pragma \"x\";\n{\n.reg .pred p1; .reg .b32 r; .reg .b64 l;\n"
		".loc 1 5 3, function_name info, inlined_at 1 20 5\n.loc 1 6 1\n@@DWARF .byte 4\n"
		"ld.param.u64 l, [p]; .pragma \"nounroll\";\nmov.u32 r, 6; st.global.u32 [l], r;\nret;\n}\n",
		1, 1, 16);
	ck_assert_uint_eq(memory[0], 6);
}
END_TEST

START_TEST(aliases_and_lists_of_targets_call)
{
	uint32_t *memory = run_output(
		".func (.param .b32 r) f(.param .b32 a) { .reg .b32 x; ld.param.b32 x, [a]; add.u32 x, x, 5;"
		"st.param.b32 [r], x; ret; }\n.visible .func (.param .b32 r) g(.param .b32 a);\n.alias g, f;\n"
		".visible .entry k(.param .u64 p) { .reg .b32 x; .reg .b64 l, q; ld.param.u64 l, [p];\n"
		"{ .param .b32 a, o; mov.b32 x, 1; st.param.b32 [a], x; call (o), g, (a); ld.param.b32 x, [o]; }\n"
		"st.global.u32 [l], x; mov.u64 q, f; T: .calltargets f, g;\n"
		"{ .param .b32 a, o; st.param.b32 [a], x; call (o), q, (a), T; ld.param.b32 x, [o]; }\n"
		"st.global.u32 [l+4], x; ret; }\n", 1, 1, 16);
	ck_assert_uint_eq(memory[0], 6);
	ck_assert_uint_eq(memory[1], 11);
}
END_TEST

START_TEST(vector_registers_are_their_elements)
{
	uint32_t *memory = device_alloc(64);
	for (uint32_t n = 0; n < 4; n++)
		memory[n] = 10 + n;
	ck_assert_int_eq(run_ptx(".visible .entry k(.param .u64 p) { .reg .v4 .b32 v; .reg .v2 .b32 w<3>; .reg .b64 l, pair;\n"
		"ld.param.u64 l, [p]; ld.global.v4.u32 v, [l]; add.u32 v.y, v.x, v.w; mov.b32 w1.x, v.z; mov.b32 w1.y, v.r;\n"
		"mov.b32 w2.x, 3; mov.b64 pair, w1; st.global.v4.u32 [l+16], v; st.global.u64 [l+32], pair;\n"
		"st.global.v2.u32 [l+40], {w2.x, w1.x}; ret; }\n", 1, 1, &memory), CUDA_SUCCESS);
	static const uint32_t wanted[8] = { 10, 23, 12, 13, 12, 10, 3, 12 };
	for (int n = 0; n < 8; n++)
		ck_assert_msg(memory[4 + n] == wanted[n], "word %d is %u", n, memory[4 + n]);
}
END_TEST

/*
 * r of instructions on x = 2^-127 (subnormal), m = -x, one, zero, a = 1 + 2^-12 and c = -(1 + 2^-11): in modules for
 * sm_13 and older, which flush (held against what ptxas 13.0 makes of them), and for sm_20, which do not.
 */
static const struct {
	const char *text;
	uint32_t legacy, later;
} unsaid[] = {
	{ "add.f32 r, x, x;", 0, 0x00800000 },
	{ "mul.sat.f32 r, x, one;", 0, 0x00400000 },
	{ "mul.ftz.f32 r, x, one;", 0, 0 },
	{ "neg.f32 r, x;", 0x80000000, 0x80400000 },
	{ "max.f32 r, x, zero;", 0, 0x00400000 },
	{ "rcp.approx.f32 r, x;", 0x7f800000, 0x7f000000 },
	{ "setp.gt.f32 p, x, zero; selp.b32 r, 1, 0, p;", 0, 1 },
	{ "setp.gt.and.f32 p, x, zero, q; selp.b32 r, 1, 0, p;", 0, 1 },
	{ "set.lt.u32.f32 r, zero, x;", 0, UINT32_MAX },
	{ "slct.f32.f32 r, one, zero, m;", 0x3f800000, 0 },
	{ "cvt.rpi.f32.f32 r, x;", 0, 0x3f800000 },
	{ "cvt.rpi.s32.f32 r, x;", 0, 1 },
	{ "cvt.f64.f32 d, x; mov.b64 {low, r}, d;", 0x38000000, 0x38000000 },
	{ "cvt.f64.f32 d, x; cvt.rn.f32.f64 r, d;", 0x00400000, 0x00400000 },
	{ "cvt.f64.f32 d, a; mul.f64 d, d, d; mov.b64 {r, low}, d;", 0x10000000, 0x10000000 },
};

static const char unsaid_kernel[] =
	".version %s\n.target %s\n.entry k(.param .u64 p0) { .reg .b64 l; .reg .f64 d; .reg .pred p, q; .reg .b32 r, low;\n"
	".reg .f32 x, m, one, zero, a, c; ld.param.u64 l, [p0]; mov.f32 x, 0f00400000; mov.f32 m, 0f80400000;\n"
	"mov.f32 one, 0f3f800000; mov.f32 zero, 0f00000000; mov.f32 a, 0f3f800800; mov.f32 c, 0fbf801000;\n"
	"setp.eq.u32 q, 0, 0; %s st.global.u32 [l], r; exit; }\n";

static CUresult run_unsaid(const char *version, const char *target, const char *text, uint32_t *result)
{
	char module[1024];
	snprintf(module, sizeof module, unsaid_kernel, version, target, text);
	uint32_t *memory = device_alloc(4);
	softgpu_program_t *program = NULL;
	CUresult status = softgpu_program_load(module, strlen(module), NULL, &program);
	if (status != CUDA_SUCCESS)
		return status;
	status = launch_1d(kernel_of(program, "k"), 1, 1, &memory);
	*result = *memory;
	softgpu_program_unload(program);
	return status;
}

START_TEST(old_targets_flush_unasked)
{
	static const char *const old[] = { "sm_10", "sm_13", "sm_12, map_f64_to_f32", "map_f64_to_f32, sm_10" };
	uint32_t found;
	for (size_t n = 0; n < sizeof old / sizeof *old; n++) {
		ck_assert_int_eq(run_unsaid("1.4", old[n], unsaid[_i].text, &found), CUDA_SUCCESS);
		ck_assert_msg(found == unsaid[_i].legacy, "%s gives %08x for %s", unsaid[_i].text, found, old[n]);
	}
	ck_assert_int_eq(run_unsaid("2.3", "sm_20", unsaid[_i].text, &found), CUDA_SUCCESS);
	ck_assert_msg(found == unsaid[_i].later, "%s gives %08x for sm_20", unsaid[_i].text, found);
}
END_TEST

START_TEST(old_mad_fuses_and_doubles_stay)
{
	uint32_t found;
	ck_assert_int_eq(run_unsaid("1.4", "sm_10", "mad.f32 r, a, a, c;", &found), CUDA_SUCCESS);
	ck_assert_uint_eq(found, 0x33800000);
	ck_assert_int_eq(run_unsaid("1.4", "sm_10", "mad.sat.f32 r, x, one, x;", &found), CUDA_SUCCESS);
	ck_assert_uint_eq(found, 0);
	ck_assert_int_eq(run_unsaid("1.4", "sm_13, map_f64_to_f32", "mov.b32 r, 0;", &found), CUDA_ERROR_INVALID_PTX);
	ck_assert_int_eq(run_unsaid("2.3", "map_f64_to_f32, sm_20", "mov.b32 r, 0;", &found), CUDA_ERROR_INVALID_PTX);
}
END_TEST

START_TEST(indices_are_read_by_halves)
{
	char log[256];
	uint32_t *memory = run_words(
		".visible .entry k(.param .u64 p) { .reg .b64 l, o; .reg .b32 r, s, t; .reg .b16 h;\n"
		"ld.param.u64 l, [p]; cvt.s32.u16 r, %tid.x; mov.u16 h, %ntid.x; cvt.u32.u16 s, h; cvt.u32.u16 t, %ctaid.x;\n"
		"mad.lo.u32 t, t, s, r; mul.wide.u32 o, t, 4; add.u64 l, l, o; cvt.u32.u16 s, %nctaid.x;\n"
		"mad.lo.u32 t, s, 1000, t; st.global.u32 [l], t; ret; }\n", 2, 32);
	for (uint32_t n = 0; n < 64; n++)
		ck_assert_uint_eq(memory[n], 2000 + n);
	ck_assert_int_eq(load_bad_ptx(".entry k() { .reg .b16 h; add.u16 h, %tid.x, 1; ret; }\n", log, sizeof log),
			 CUDA_ERROR_INVALID_PTX);
	ck_assert_int_eq(load_bad_ptx(".entry k() { .reg .b16 h; mov.u16 h, %laneid; ret; }\n", log, sizeof log),
			 CUDA_ERROR_INVALID_PTX);
}
END_TEST

/* The values are those that ptxas 13.0 puts into its code for the same text. */
START_TEST(signs_belong_to_the_constant)
{
	uint32_t *memory = device_alloc(32);
	memory[2] = 5;
	ck_assert_int_eq(run_ptx(".visible .entry k(.param .u64 p) { .reg .b32 r; .reg .b64 l; ld.param.u64 l, [p];\n"
		"mov.u32 r, -WARP_SZ; st.global.u32 [l], r; add.s32 r, r, -WARP_SZ+1; st.global.u32 [l+4], r;\n"
		"mov.u32 r, !WARP_SZ; st.global.u32 [l+8], r; mov.u32 r, - -5; st.global.u32 [l+WARP_SZ*2-52], r; ret; }\n",
		1, 1, &memory), CUDA_SUCCESS);
	ck_assert_uint_eq(memory[0], (uint32_t)-32);
	ck_assert_uint_eq(memory[1], (uint32_t)-63);
	ck_assert_uint_eq(memory[2], 0);
	ck_assert_uint_eq(memory[3], 5);
}
END_TEST

/* What ptxas 13.0 makes of these in mov.f32 and in mov.f64: all is computed in double, and rounded at the end. */
static const struct {
	const char *text;
	uint32_t narrow;
	uint64_t wide;
} floats[] = {
	{ "1.", 0x3f800000, 0x3ff0000000000000 },
	{ "+1.0", 0x3f800000, 0x3ff0000000000000 },
	{ "1.e2", 0x42c80000, 0x4059000000000000 },
	{ "-1.5e3", 0xc4bb8000, 0xc097700000000000 },
	{ "-(1.5)", 0xbfc00000, 0xbff8000000000000 },
	{ "(-0.0)", 0x80000000, 0x8000000000000000 },
	{ "- -1.0", 0x3f800000, 0x3ff0000000000000 },
	{ "1e-45", 0x00000001, 0x3696d601ad376ab9 },
	{ "0.1+0.2", 0x3e99999a, 0x3fd3333333333334 },
	{ "1.0/3.0", 0x3eaaaaab, 0x3fd5555555555555 },
	{ "2.0*-3.0", 0xc0c00000, 0xc018000000000000 },
	{ "1.0-0d3ff0000000000000/2.0", 0x3f000000, 0x3fe0000000000000 },
	{ "16777217.0-0.0", 0x4b800000, 0x4170000010000000 },
	{ "0d7ff4000000000001", 0x7fe00000, 0x7ff4000000000001 },
	{ "0.1000000000000000055511151231257827021181583404541015625000000001", 0x3dcccccd, 0x3fb999999999999a },
};

START_TEST(floats_of_operands)
{
	char body[512];
	snprintf(body, sizeof body, ".visible .entry k(.param .u64 p) { .reg .f32 f; .reg .f64 d; .reg .b64 l;\n"
		 "ld.param.u64 l, [p]; mov.f32 f, %s; mov.f64 d, %s; st.global.f32 [l], f; st.global.f64 [l+8], d; ret; }\n",
		 floats[_i].text, floats[_i].text);
	uint64_t *memory = run_output(body, 1, 1, 16);
	ck_assert_msg(memory[0] == floats[_i].narrow && memory[1] == floats[_i].wide, "%s gives %08llx and %016llx",
		      floats[_i].text, (unsigned long long)memory[0], (unsigned long long)memory[1]);
}
END_TEST

/* Where ptxas 13.0 takes such a branch to, too: not back. */
START_TEST(a_later_label_of_the_same_scope_hides_one_outside)
{
	uint32_t *memory = run_output(
		".visible .entry k(.param .u64 p) { .reg .b32 r; .reg .b64 l; ld.param.u64 l, [p];\n"
		"mov.u32 r, 0;\nL: add.u32 r, r, 1; st.global.u32 [l], r; { .reg .pred stop; setp.gt.u32 stop, r, 9;\n"
		"@stop trap; bra L; st.global.u32 [l+4], r;\nL: st.global.u32 [l+8], r; }\n"
		"{ bra D; st.global.u32 [l+4], r; D: add.u32 r, r, 1; } { bra D; st.global.u32 [l+4], r; D: add.u32 r, r, 1; }\n"
		"st.global.u32 [l+12], r; ret; }\n", 1, 1, 32);
	ck_assert_uint_eq(memory[0], 1);
	ck_assert_uint_eq(memory[1], 0);
	ck_assert_uint_eq(memory[2], 1);
	ck_assert_uint_eq(memory[3], 3);
}
END_TEST

int main(void)
{
	TCase *cases = test_case("ptx directives");
	tcase_add_loop_test(cases, constant_expressions, 0, sizeof constants / sizeof *constants);
	tcase_add_test(cases, initialisers_nest_as_arrays_do);
	tcase_add_test(cases, floats_take_the_variables_width);
	tcase_add_test(cases, addresses_whole_and_in_bytes);
	tcase_add_test(cases, directives_without_effect_are_read);
	tcase_add_test(cases, aliases_and_lists_of_targets_call);
	tcase_add_test(cases, vector_registers_are_their_elements);
	tcase_add_loop_test(cases, old_targets_flush_unasked, 0, sizeof unsaid / sizeof *unsaid);
	tcase_add_test(cases, old_mad_fuses_and_doubles_stay);
	tcase_add_test(cases, indices_are_read_by_halves);
	tcase_add_test(cases, signs_belong_to_the_constant);
	tcase_add_loop_test(cases, floats_of_operands, 0, sizeof floats / sizeof *floats);
	tcase_add_test(cases, a_later_label_of_the_same_scope_hides_one_outside);
	return run_tests();
}
