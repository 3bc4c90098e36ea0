/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that launch kernels: parameters, order, depth, errors and faults. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNTIME                                                                                                  \
	".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12], "     \
	".param .align 4 .b8 b[12], .param .b32 s);\n"                                                           \
	".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);\n"                    \
	".extern .func (.param .b32 r) __cudaCDP2MemcpyAsync(.param .b64 t, .param .b64 f, .param .b64 n, "          \
	".param .b32 k, .param .b64 s);\n"                                                                       \
	".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"                                              \
	".extern .func (.param .b32 r) __cudaCDP2PeekAtLastError();\n"                                           \
	".extern .func (.param .b32 r) __cudaCDP2Malloc(.param .b64 p, .param .b64 n);\n"                        \
	".extern .func (.param .b32 r) __cudaCDP2Free(.param .b64 p);\n"

#define REGISTERS ".reg .pred %p<9>; .reg .b32 %w<20>; .reg .b64 %l<20>;\n"

/* buffer(name, blocks, threads): asks for a parameter buffer, into %l9. Register %w17 and %w18 hold the two numbers. */
#define BUFFER(name)                                                                                             \
	"{ .param .b64 a0; .param .align 4 .b8 a1[12]; .param .align 4 .b8 a2[12]; .param .b32 a3; .param .b64 r;\n"   \
	"mov.u64 %l10, " name "; st.param.b64 [a0], %l10; st.param.b32 [a1], %w17; st.param.b32 [a1+4], 1; "         \
	"st.param.b32 [a1+8], 1; st.param.b32 [a2], %w18; st.param.b32 [a2+4], 1; st.param.b32 [a2+8], 1; "          \
	"st.param.b32 [a3], 0;\n"                                                                                \
	"call (r), __cudaCDP2GetParameterBufferV2, (a0, a1, a2, a3); ld.param.b64 %l9, [r]; }\n"
#define LAUNCH(stream)                                                                                           \
	"{ .param .b64 a0; .param .b64 a1; .param .b32 r; st.param.b64 [a0], %l9; st.param.b64 [a1], " stream ";\n"   \
	"call (r), __cudaCDP2LaunchDeviceV2, (a0, a1); ld.param.b32 %w19, [r]; }\n"

/* append(value): list[list[0] += 1] = value. Children that run one after the other leave their order in the list. */
#define CHILD                                                                                                    \
	".visible .entry append(.param .u64 list, .param .u32 value)\n{\n" REGISTERS                             \
	"ld.param.u64 %l1, [list]; ld.param.u32 %w1, [value]; mov.u32 %w2, %tid.x; setp.ne.u32 %p1, %w2, 0; @%p1 ret;\n" \
	"ld.global.u32 %w3, [%l1]; add.u32 %w3, %w3, 1; st.global.u32 [%l1], %w3; mul.wide.u32 %l2, %w3, 4; "        \
	"add.u64 %l2, %l2, %l1; st.global.u32 [%l2], %w1; ret;\n}\n"
#define APPEND(value, stream)                                                                                    \
	BUFFER("append") "st.global.u64 [%l9], %l1; mov.u32 %w4, " value "; st.global.u32 [%l9+8], %w4;\n"       \
	LAUNCH(stream) "or.b32 %failed, %failed, %w19;\n"
#define PARENT                                                                                                   \
	".visible .entry k(.param .u64 list)\n{\n" REGISTERS ".reg .b32 %failed;\nld.param.u64 %l1, [list]; "      \
	"mov.u32 %w17, 1; mov.u32 %w18, 40; mov.u32 %failed, 0;\n"
#define END "\nret;\n}\n"

static uint32_t *list_after(const char *text, uint32_t blocks, uint32_t threads)
{
	return run_output(text, blocks, threads, 4096);
}

START_TEST(children_run_after_their_grid_in_the_order_of_launches)
{
	uint32_t *list = list_after(RUNTIME CHILD PARENT APPEND("70", "0") APPEND("90", "3") APPEND("80", "0")
		"mov.u32 %w5, 60; ld.global.u32 %w6, [%l1]; add.u32 %w6, %w6, 1; st.global.u32 [%l1], %w6; "
		"add.u32 %w5, %w5, %failed; st.global.u32 [%l1+4], %w5;" END, 1, 1);
	static const uint32_t want[] = { 4, 60, 70, 80, 90, 0 };
	ck_assert_mem_eq(list, want, sizeof want);
	/* The parameters' memory is gone, and the list is all that is left. */
	ck_assert_uint_eq(device_allocations(), 1);
}
END_TEST

START_TEST(every_thread_launches_and_all_children_count)
{
	uint32_t *list = list_after(RUNTIME CHILD PARENT APPEND("5", "0") END, 3, 50);
	ck_assert_uint_eq(list[0], 150);
	for (int n = 1; n <= 150; n++)
		ck_assert_uint_eq(list[n], 5);
}
END_TEST

/* Launches itself with its depth plus one, for ever; keeps the deepest and the error that ended it. */
START_TEST(a_chain_of_launches_ends_at_the_depth_limit)
{
	uint32_t *list = list_after(RUNTIME
		".visible .entry deeper(.param .u64 list, .param .u32 depth)\n{\n" REGISTERS
		"ld.param.u64 %l1, [list]; ld.param.u32 %w1, [depth]; st.global.u32 [%l1], %w1; mov.u32 %w17, 1; "
		"mov.u32 %w18, 1;\n" BUFFER("deeper")
		"setp.eq.u64 %p1, %l9, 0; @%p1 bra LAST; st.global.u64 [%l9], %l1; add.u32 %w1, %w1, 1; "
		"st.global.u32 [%l9+8], %w1;\n" LAUNCH("0") "ret;\n"
		"LAST: { .param .b32 r; call (r), __cudaCDP2PeekAtLastError; ld.param.b32 %w2, [r]; }\n"
		"{ .param .b32 r; call (r), __cudaCDP2GetLastError; ld.param.b32 %w3, [r]; }\n"
		"{ .param .b32 r; call (r), __cudaCDP2GetLastError; ld.param.b32 %w4, [r]; }\n"
		"st.global.u32 [%l1+4], %w2; st.global.u32 [%l1+8], %w3; st.global.u32 [%l1+12], %w4; ret;\n}\n"
		PARENT BUFFER("deeper") "st.global.u64 [%l9], %l1; st.global.u32 [%l9+8], %w17;" LAUNCH("0") END, 1, 1);
	static const uint32_t want[] = { 24, 65, 65, 0 }; /* cudaErrorLaunchMaxDepthExceeded, once taken it is gone */
	ck_assert_mem_eq(list, want, sizeof want);
	ck_assert_uint_eq(device_allocations(), 1);
}
END_TEST

START_TEST(a_shape_that_no_kernel_can_have_gets_no_buffer)
{
	static const struct {
		const char *blocks, *threads;
		bool good;
	} shapes[] = { { "1", "1024", true }, { "1", "1025", false }, { "0", "1", false }, { "1", "0", false } };
	char text[8192];
	snprintf(text, sizeof text, "%s%s%smov.u32 %%w17, %s; mov.u32 %%w18, %s;\n%s%s%s", RUNTIME CHILD, PARENT, "",
		 shapes[_i].blocks, shapes[_i].threads, BUFFER("append"),
		 "{ .param .b32 r; call (r), __cudaCDP2GetLastError; ld.param.b32 %w2, [r]; }\n"
		 "st.global.u64 [%l1], %l9; st.global.u32 [%l1+8], %w2;", END);
	uint32_t *list = list_after(text, 1, 1);
	uint64_t buffer;
	memcpy(&buffer, list, sizeof buffer);
	ck_assert(shapes[_i].good == (buffer != 0));
	ck_assert_uint_eq(list[2], shapes[_i].good ? 0 : 9); /* cudaErrorInvalidConfiguration */
	ck_assert_uint_eq(device_allocations(), 1);
}
END_TEST

START_TEST(copies_keep_their_place_among_the_launches)
{
	/* append 70; copy word 1 to word 20; then a child overwrites nothing, but comes after the copy */
	uint32_t *list = list_after(RUNTIME CHILD PARENT APPEND("70", "0")
		"{ .param .b64 a0; .param .b64 a1; .param .b64 a2; .param .b32 a3; .param .b64 a4; .param .b32 r;\n"
		"add.u64 %l2, %l1, 80; add.u64 %l3, %l1, 0; st.param.b64 [a0], %l2; st.param.b64 [a1], %l3; "
		"st.param.b64 [a2], 8; st.param.b32 [a3], 3; st.param.b64 [a4], 0;\n"
		"call (r), __cudaCDP2MemcpyAsync, (a0, a1, a2, a3, a4); }\n" APPEND("80", "0") END, 1, 1);
	ck_assert_uint_eq(list[0], 2);
	ck_assert_uint_eq(list[2], 80);
	ck_assert_uint_eq(list[20], 1);
	ck_assert_uint_eq(list[21], 70);
}
END_TEST

START_TEST(memory_of_the_device_runtime_lasts_until_it_is_freed)
{
	uint32_t *list = list_after(RUNTIME CHILD PARENT
		"{ .param .b64 a0; .param .b64 a1; .param .b32 r; st.param.b64 [a0], %l1; st.param.b64 [a1], 64;\n"
		"call (r), __cudaCDP2Malloc, (a0, a1); ld.param.b32 %w2, [r]; }\n"
		"ld.global.u64 %l2, [%l1]; st.global.u32 [%l2+60], 7; ld.global.u32 %w3, [%l2+60];\n"
		"{ .param .b64 a0; .param .b32 r; st.param.b64 [a0], %l2;\n"
		"call (r), __cudaCDP2Free, (a0); ld.param.b32 %w4, [r]; }\n"
		"st.global.u32 [%l1+8], %w2; st.global.u32 [%l1+12], %w3; st.global.u32 [%l1+16], %w4;" END, 1, 1);
	ck_assert_uint_eq(list[2], 0);
	ck_assert_uint_eq(list[3], 7);
	ck_assert_uint_eq(list[4], 0);
	ck_assert_uint_eq(device_allocations(), 1);
}
END_TEST

START_TEST(a_childs_fault_is_the_grids)
{
	uint32_t *list = device_alloc(4096);
	ck_assert_int_eq(run_ptx(RUNTIME CHILD PARENT BUFFER("append") "mov.u64 %l5, 16; st.global.u64 [%l9], %l5;\n"
		LAUNCH("0") APPEND("70", "0") END, 1, 1, &list), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* What stood behind it did not run. */
	ck_assert_uint_eq(list[0], 0);
	ck_assert_uint_eq(device_allocations(), 1);
}
END_TEST

int main(void)
{
	TCase *tcase = test_case("device launch");
	tcase_add_test(tcase, children_run_after_their_grid_in_the_order_of_launches);
	tcase_add_test(tcase, every_thread_launches_and_all_children_count);
	tcase_add_test(tcase, a_chain_of_launches_ends_at_the_depth_limit);
	tcase_add_loop_test(tcase, a_shape_that_no_kernel_can_have_gets_no_buffer, 0, 4);
	tcase_add_test(tcase, copies_keep_their_place_among_the_launches);
	tcase_add_test(tcase, memory_of_the_device_runtime_lasts_until_it_is_freed);
	tcase_add_test(tcase, a_childs_fault_is_the_grids);
	return run_tests();
}
