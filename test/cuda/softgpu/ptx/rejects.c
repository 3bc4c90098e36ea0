/* SPDX-License-Identifier: BSD-3-Clause */
/* What must not load: errors name the line; text that was damaged at random never does harm. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY(text) ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; " \
	".reg .b64 %l<4>;\n" text "\nret;\n}\n"
/* load_bad_ptx puts three lines before the text, BODY three more. */
#define LINE_OF_BODY 7

static const struct {
	const char *body;
	CUresult result;
	unsigned line;
	const char *says;
} bad[] = {
	{ BODY("frobnicate.u32 %r1, %r2;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "frobnicate" },
	{ BODY("add.u32 %r1, %r2;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "add.u32" },
	{ BODY("add.u32 %r1, %r2, %r3, %r0;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "add.u32" },
	{ BODY("add.u32 %r1, %r2, %l1;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "size" },
	{ BODY("add.u32 %l1, %r2, %r1;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "size" },
	{ BODY("add.u32 %r1, %r2, %r9;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "%r9" },
	{ BODY("add.f32 %r1, %r2, 7;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "float" },
	{ BODY("add.u32 %r1, %r2, %r3"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY + 1, "';'" },
	{ BODY("\n\nbra NOWHERE;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY + 2, "NOWHERE" },
	{ BODY("/* of\n three\n lines */ bra NOWHERE; // a label"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY + 2, "NOWHERE" },
	{ BODY("ld.global.u32 %r1, %l1;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "ld.global.u32" },
	{ BODY("ld.global.u32 %r1, [%r2];"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "address" },
	{ BODY("ld.global.v2.u32 %r1, [%l2];"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "elements" },
	{ BODY("ld.param.u64 %l1, [p+8];"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "outside" },
	{ BODY("@%r1 mov.u32 %r1, %r2;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "guard" },
	{ BODY("mov.u32 %r1, 0x;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "number" },
	{ BODY(".reg .b32 %r<3>;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "twice" },
	{ BODY("setp.lt.u32 %r1, %r2, %r3;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "size" },
	{ BODY("tex.2dms.v4.f32.s32 {%r0, "
		"%r1, %r2, %r3}, [%l1, {%r0, %r1, %r2, %r3}];"), CUDA_ERROR_NOT_SUPPORTED, LINE_OF_BODY, "tex.2dms" },
	{ BODY("wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 "
		"{%r0, %r1}, %l1, %l2, %r3, 0, 1, 1, 1, 0, 0;"), CUDA_ERROR_NOT_SUPPORTED, LINE_OF_BODY, "wgmma" },
	{ BODY("wgmma.wait_group.sync.aligned -1;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "negative" },
	{ BODY("wgmma.wait_group.sync.aligned %r1;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "constant" },
	{ BODY("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1, %r2, %r3}, "
		"{%r0, %r1, %r2, %r3}, {%r0, %r1}, %r2, 2;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "selector" },
	{ BODY("shfl.up.b32 %r1, %r2, 1, 0;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "member mask" },
	{ BODY("call.uni unknown;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "unknown" },
	{ ".extern .func other();\n" BODY("call.uni other;"), CUDA_ERROR_INVALID_PTX, 4, "other" },
	{ ".extern .global .u32 elsewhere;\n" BODY("ld.global.u32 %r1, "
		"[elsewhere];"), CUDA_ERROR_INVALID_PTX, 4, "undefined reference to elsewhere" },
	{ ".global .u32 x[2][2] = { { 1, 2 }, { 3 }, { 4 } };\n", CUDA_ERROR_INVALID_PTX, 4, "too many" },
	{ ".global .u32 x[2][3] = { 1, 2, 3, 4 };\n", CUDA_ERROR_INVALID_PTX, 4, "'{'" },
	{ ".global .v2 .u32 x[2] = { { 1, 2 }, { 3 } };\n", CUDA_ERROR_INVALID_PTX, 4, "','" },
	{ ".global .f32 x = 1;\n", CUDA_ERROR_INVALID_PTX, 4, "integer" },
	{ ".global .u32 x = 1.5;\n", CUDA_ERROR_INVALID_PTX, 4, "type" },
	{ ".global .u32 x[] = 3;\n", CUDA_ERROR_INVALID_PTX, 4, "'{'" },
	{ ".global .u32 x[2][];\n", CUDA_ERROR_INVALID_PTX, 4, "first" },
	{ ".global .u32 y; .global .u16 x = 0xff(y);\n", CUDA_ERROR_INVALID_PTX, 4, "mask" },
	{ ".global .u32 y; .global .u8 x = 0x1ff(y);\n", CUDA_ERROR_INVALID_PTX, 4, "mask" },
	{ ".global .u32 y; .global .u16 x = y;\n", CUDA_ERROR_INVALID_PTX, 4, "2-byte" },
	{ ".global .u32 x = 08;\n", CUDA_ERROR_INVALID_PTX, 4, "'8'" },
	{ ".global .u64 x = 5 / (3 - 3);\n", CUDA_ERROR_INVALID_PTX, 4, "division" },
	{ ".global .u64 x = (.u32)5;\n", CUDA_ERROR_INVALID_PTX, 4, ".s64" },
	{ ".func f();\n.alias g, f;\n", CUDA_ERROR_INVALID_PTX, 5, ".alias" },
	{ ".func f(.param .u32 a) { ret; }\n.func g();\n.alias g, f;\n", CUDA_ERROR_INVALID_PTX, 6, "differ" },
	{ ".entry k() .reqnctapercluster 17 { ret; }\n", CUDA_ERROR_NOT_SUPPORTED, 4, "cluster" },
	{ BODY(".reg .v2 .b32 v; mov.b32 %r1, v.z;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "vector" },
	{ ".global .u32 x = { 1, 2 };\n", CUDA_ERROR_INVALID_PTX, 4, "x" },
	{ ".extern .global .u32 x = 1;\n", CUDA_ERROR_INVALID_PTX, 4, "external" },
	{ ".global .b8.b32 x = 1;\n", CUDA_ERROR_INVALID_PTX, 4, "a type" },
	{ ".global .b128 x[2] = { 1, 4 };\n", CUDA_ERROR_NOT_SUPPORTED, 4, "16-byte" },
	{ ".global .u32 x[40000000] = { 1 };\n", CUDA_ERROR_NOT_SUPPORTED, 4, "160000000 bytes" },
	{ ".global .u32 x[][1200000000] = { { 1 }, { 2 } };\n", CUDA_ERROR_NOT_SUPPORTED, 4, "4800000000 bytes" },
	{ ".global .u64 x = y;\n", CUDA_ERROR_INVALID_PTX, 4, "y" },
	{ "/* no end", CUDA_ERROR_INVALID_PTX, 4, "comment" },
	{ ".entry k() { ret;", CUDA_ERROR_INVALID_PTX, 4, "'}'" },
	{ "kernel k();", CUDA_ERROR_INVALID_PTX, 4, "module" },
	{ ".entry k(.param .b8 a[4294967304]) { ret; }\n", CUDA_ERROR_INVALID_PTX, 4, "parameters" },
	{ ".func f(.param .b8 a[8589934592]) { ret; }\n", CUDA_ERROR_INVALID_PTX, 4, "parameters" },
	{ BODY("mov.u32 %r1, %r2.x;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "no vector" },
	{ BODY("mov.u32 %r1, %tid.x+1;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "special" },
	{ BODY("L: .branchtargets L; brx.idx %r1, L;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "label" },
	{ BODY("K: .branchtargets X; L: .branchtargets K; brx.idx %r1, L; X:"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY, "label" },
	{ ".func f() { ret; }\n" BODY("mov.u64 %l1, f+8;"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY + 1, "function" },
	{ ".func f() { ret; }\n.global .u64 x = f+8;\n", CUDA_ERROR_INVALID_PTX, 5, "function" },
	{ ".extern .func (.param .b64 r) malloc(.param .b32 n);\n" BODY("{ .param .b32 n; .param .b64 r; st.param.b32 [n], %r1; "
		"call.uni (r), malloc, (n); }"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY + 1, "parameters" },
	{ ".extern .func (.param .b64 r) __cudaCDP2GetLastError();\n" BODY("{ .param .b64 r; "
		"call.uni (r), __cudaCDP2GetLastError; }"), CUDA_ERROR_INVALID_PTX, LINE_OF_BODY + 1, "parameters" },
	{ ".address_size 32\n", CUDA_ERROR_NOT_SUPPORTED, 4, "32" },
};

START_TEST(errors_name_the_line_and_the_cause)
{
	char log[512], line[32];
	ck_assert_int_eq(load_bad_ptx(bad[_i].body, log, sizeof log), bad[_i].result);
	snprintf(line, sizeof line, "line %u:", bad[_i].line);
	ck_assert_msg(strstr(log, line) && strstr(log, bad[_i].says), "want '%s' and '%s' in: %s", line, bad[_i].says,
		      log);
	ck_assert_uint_eq(device_allocations(), 0);
}
END_TEST

START_TEST(text_that_is_no_ptx_is_refused)
{
	static const char *const texts[] = { "",
					     "\n",
					     "\177ELF\2\1\1",
					     ".version",
					     ".version 8.4\n",
					     ".version 8.4\n.target\n",
					     ".target sm_75\n",
					     "\"",
					     ".version 8.4 .target sm_75, ;" };
	for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
		softgpu_program_t *program = NULL;
		ck_assert_int_eq(softgpu_program_load(texts[n], strlen(texts[n]), NULL, &program),
				 CUDA_ERROR_INVALID_PTX);
	}
}
END_TEST

START_TEST(a_log_that_is_too_short_is_cut)
{
	char log[20];
	memset(log, 'x', sizeof log);
	softgpu_log_t small = { log, 12, 0 };
	softgpu_program_t *program = NULL;
	ck_assert_int_eq(softgpu_program_load("nothing", 7, &small, &program), CUDA_ERROR_INVALID_PTX);
	ck_assert_uint_lt(strnlen(log, sizeof log), 12);
	ck_assert_int_eq(log[12], 'x');
}
END_TEST

static const char sample[] =
	".version 8.4\n.target sm_75\n.address_size 64\n"
	".global .align 8 .u64 table[2] = { f, "
		"generic(x)+4 };\n.global .align 4 .u32 x[4] = { 1, 2, 3 };\n.const .f32 c = 0f3f800000;\n"
	".extern .shared .align 16 .b8 dynamic[];\n.extern .func (.param .b32 r) vprintf(.param .b64 a, "
		".param .b64 b);\n"
	".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r<4>; ld.param.b32 %r1, [a]; "
		"st.param.b32 [r], %r1; ret; }\n"
	".visible .entry k(.param .u64 p, .param .align 8 .b8 q[24]) .maxntid 128, 1, 1\n{\n"
	".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %l<8>; .reg .f64 %d<4>; "
		".local .align 8 .b8 depot[32]; .shared .b32 s[32];\n"
	"ld.param.u64 %l1, [p]; ld.param.v2.u32 {%r1, %r2}, [q+8]; mov.u32 %r3, %tid.x; "
		"mov.b64 %l2, {%r1, %r3}; mov.b64 {%r4, _}, %l2;\n"
	"L: setp.lt.and.u32 %p1|%p2, %r1, 0x10, !%p3; @%p1 bra L; @!%p2 add.s32 %r1, %r1, -5; "
		"cvt.rn.f64.s32 %d1, %r1; fma.rn.f64 %d2, %d1, %d1, 0d3ff0000000000000;\n"
	"st.shared.u32 [s+4], %r1; bar.sync 0; atom.shared.add.u32 %r5, [s], 1; "
		"shfl.sync.bfly.b32 %r6|%p3, %r5, 1, 31, -1; brx.idx %r1, T; T: .branchtargets A, B;\n"
	"A: { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), f, (a); "
		"ld.param.b32 %r7, [b]; }\nB: lop3.b32 %r1, %r2, %r3, %r4, 0x96; mov.u64 %l3, depot;\n"
	"cvta.local.u64 %l4, %l3; st.u32 [%l4+8], %r1; ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%l1+-16]; exit;\n}\n";

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* One to four of: a byte replaced, removed, doubled; a word copied elsewhere. */
static size_t damage(char *text, size_t length, size_t room, uint32_t *state)
{
	static const char marks[] = " ;,.:{}[]()<>@!%|+-*/&^~\"\n0129axrpULf_$\\";
	for (uint32_t n = next_random(state) % 4 + 1; n > 0 && length > 16; n--) {
		size_t at = next_random(state) % length, from = next_random(state) % length,
		       count = next_random(state) % 12 + 1;
		switch (next_random(state) % 4) {
		case 0:
			text[at] = marks[next_random(state) % (sizeof marks - 1)];
			break;
		case 1:
			count = count < length - at ? count : length - at;
			memmove(text + at, text + at + count, length - at - count);
			length -= count;
			break;
		case 2:
			count = count < length - from ? count : length - from;
			count = count < length - at ? count : length - at;
			memmove(text + at, text + from, count);
			break;
		default:
			if (length + count > room || from + count > length)
				break;
			char word[16];
			memcpy(word, text + from, count);
			memmove(text + at + count, text + at, length - at);
			memcpy(text + at, word, count);
			length += count;
			break;
		}
	}
	return length;
}

START_TEST(damaged_text_does_no_harm)
{
	int rounds = getenv("HEADRACE_TEST_LONG") ? 1000000 : 3000;
	uint32_t state = 2463534242u;
	char text[2 * sizeof sample];
	int loaded = 0, refused = 0;
	setenv("HEADRACE_LOG", "error", 1);
	ck_assert(freopen("/dev/null", "w", stderr) != NULL);
	for (int n = 0; n < rounds; n++) {
		memcpy(text, sample, sizeof sample);
		size_t length = n ? damage(text, sizeof sample - 1, sizeof text, &state) : sizeof sample - 1;
		softgpu_program_t *program = NULL;
		CUresult result = softgpu_program_load(text, length, NULL, &program);
		ck_assert_msg(n > 0 || result == CUDA_SUCCESS, "the sample itself gives %d", (int)result);
		if (result == CUDA_SUCCESS)
			softgpu_program_unload(program);
		loaded += result == CUDA_SUCCESS;
		refused += result != CUDA_SUCCESS;
		ck_assert_uint_eq(device_allocations(), 0);
	}
	ck_assert_int_gt(loaded, 0);
	ck_assert_int_gt(refused, rounds / 2);
}
END_TEST

int main(void)
{
	TCase *cases = test_case("ptx rejects");
	if (getenv("HEADRACE_TEST_LONG"))
		tcase_set_timeout(cases, 3600);
	tcase_add_loop_test(cases, errors_name_the_line_and_the_cause, 0, sizeof bad / sizeof *bad);
	tcase_add_test(cases, text_that_is_no_ptx_is_refused);
	tcase_add_test(cases, a_log_that_is_too_short_is_cut);
	tcase_add_test(cases, damaged_text_does_no_harm);
	return run_tests();
}
