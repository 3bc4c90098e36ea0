/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared and local memory by their own addresses and by generic ones: scattered, in part of a warp, at their ends. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 45 /* a whole warp and part of one */
#define HEAD ".visible .entry k(.param .u64 out, .param .u64 other)\n{\n"                                            \
	".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %w<20>; .reg .b64 %l<20>; .reg .b64 %a<9>;\n"                    \
	"ld.param.u64 %a1, [out]; ld.param.u64 %a2, [other]; mov.u32 %w1, %tid.x; mul.wide.u32 %a3, %w1, 8; "        \
	"add.u64 %a1, %a1, %a3;\n"
#define END "\nret;\n}\n"

struct parameters {
	uint64_t *out, *other;
};

static struct parameters run(const char *text)
{
	struct parameters parameters = { device_alloc(THREADS * 8), device_alloc(THREADS * 8) };
	ck_assert_int_eq(run_ptx(text, 1, THREADS, &parameters), CUDA_SUCCESS);
	return parameters;
}

/*
 * 16 words of local memory, word n of thread t holds 100 t + n. Then each thread reads word 5 t mod 16, those of odd
 * number only; the rest keep 7.
 */
#define FILL(store, address) \
	".local .align 16 .b8 d[64];\nmov.u64 %l1, d;\n" address "mov.u64 %l2, %l1; mul.lo.u32 %w2, %w1, 100; "        \
	"add.u32 %w3, %w2, 16;\nFILL: " store " [%l2], %w2; add.u64 %l2, %l2, 4; add.u32 %w2, %w2, 1; "                \
	"setp.lt.u32 %p1, %w2, %w3; @%p1 bra FILL;\n"
#define TAKE(load) \
	"mul.lo.u32 %w4, %w1, 5; and.b32 %w4, %w4, 15; mul.wide.u32 %l3, %w4, 4; add.u64 %l3, %l3, %l1; "              \
	"and.b32 %w5, %w1, 1; setp.eq.u32 %p2, %w5, 1; mov.u32 %w6, 7;\n@%p2 " load " %w6, [%l3];\n"                    \
	"cvt.u64.u32 %l4, %w6; st.global.u64 [%a1], %l4;\n"

static void check_local(const char *text)
{
	struct parameters got = run(text);
	for (uint64_t t = 0; t < THREADS; t++)
		ck_assert_uint_eq(got.out[t], t % 2 ? 100 * t + 5 * t % 16 : 7);
	device_reset();
}

START_TEST(every_thread_has_its_own_local_memory)
{
	use_isa(_i);
	check_local(HEAD FILL("st.local.u32", "") TAKE("ld.local.u32") END);
	check_local(HEAD FILL("st.u32", "cvta.local.u64 %l1, %l1;\n") TAKE("ld.u32") END);
}
END_TEST

START_TEST(local_memory_holds_vectors_and_bytes)
{
	use_isa(_i);
	/* Thread t writes the pair (t, t + 1) at place t mod 4 and reads it back as 16 bytes, the seventh of them too. */
	struct parameters got = run(HEAD ".local .align 16 .b8 d[64];\nmov.u64 %l1, d; and.b32 %w2, %w1, 3; "
		"mul.wide.u32 %l2, %w2, 16; add.u64 %l1, %l1, %l2; cvt.u64.u32 %l3, %w1; add.u64 %l4, %l3, 1; "
		"shl.b64 %l5, %l3, 48; or.b64 %l3, %l3, %l5;\n"
		"st.local.v2.u64 [%l1], {%l3, %l4}; ld.local.v4.u32 {%w3, %w4, %w5, %w6}, [%l1]; "
		"ld.local.u8 %w7, [%l1+6]; shl.b32 %w7, %w7, 16; add.u32 %w3, %w3, %w5; add.u32 %w3, %w3, %w7; "
		"cvt.u64.u32 %l6, %w3; st.global.u64 [%a1], %l6;" END);
	for (uint64_t t = 0; t < THREADS; t++)
		ck_assert_uint_eq(got.out[t], 2 * t + 1 + (t << 16));
}
END_TEST

START_TEST(generic_addresses_reach_shared_memory_in_any_order)
{
	use_isa(_i);
	/* Thread t leaves 3 t in the place of thread 44 - t; after the barrier each takes its own. */
	struct parameters got = run(HEAD ".shared .align 8 .b8 s[512];\nmov.u64 %l1, s; cvta.shared.u64 %l1, %l1; "
		"mov.u32 %w2, 44; sub.u32 %w2, %w2, %w1; mul.wide.u32 %l2, %w2, 8; add.u64 %l2, %l2, %l1; "
		"mul.wide.u32 %l3, %w1, 3; st.u64 [%l2], %l3; bar.sync 0;\n"
		"add.u64 %l4, %l1, %a3; ld.u64 %l5, [%l4]; st.global.u64 [%a1], %l5;" END);
	for (uint64_t t = 0; t < THREADS; t++)
		ck_assert_uint_eq(got.out[t], 3 * (44 - t));
}
END_TEST

START_TEST(atomics_of_one_warp_may_hit_two_allocations)
{
	use_isa(_i);
	struct parameters parameters = { device_alloc(4096), device_alloc(1 << 20) };
	ck_assert_int_eq(run_ptx(HEAD "sub.u64 %l1, %a1, %a3; and.b32 %w2, %w1, 1; setp.eq.u32 %p1, %w2, 1; "
		"selp.b64 %l2, %a2, %l1, %p1; mov.u32 %w4, 0;\nAGAIN: atom.add.u64 %l3, [%l2], 1; "
		"red.global.add.u64 [%l2+8], 2; add.u32 %w4, %w4, 1; setp.lt.u32 %p2, %w4, 5; @%p2 bra AGAIN;" END,
		1, THREADS, &parameters), CUDA_SUCCESS);
	ck_assert_uint_eq(parameters.out[0], 5 * 23);
	ck_assert_uint_eq(parameters.out[1], 10 * 23);
	ck_assert_uint_eq(parameters.other[0], 5 * 22);
	ck_assert_uint_eq(parameters.other[1], 10 * 22);
}
END_TEST

static void check_fault(const char *text, CUresult want)
{
	struct parameters parameters = { device_alloc(4096), device_alloc(4096) };
	ck_assert_int_eq(run_ptx(text, 1, THREADS, &parameters), want);
	device_reset();
}

#define LOCAL ".local .align 16 .b8 d[64];\nmov.u64 %l1, d; cvta.local.u64 %l2, %l1; mul.wide.u32 %l3, %w1, 2;\n"
#define SHARED ".shared .align 16 .b8 s[128];\nmov.u64 %l1, s; cvta.shared.u64 %l2, %l1; mul.wide.u32 %l3, %w1, 2;\n"

START_TEST(one_lane_past_the_end_is_a_fault)
{
	use_isa(_i);
	const CUresult outside = CUDA_ERROR_ILLEGAL_ADDRESS, odd = CUDA_ERROR_MISALIGNED_ADDRESS;
	check_fault(HEAD LOCAL "add.u64 %l4, %l1, %l3; st.local.u16 [%l4], %h1;" END, outside);
	check_fault(HEAD LOCAL "add.u64 %l4, %l2, %l3; ld.u16 %h1, [%l4];" END, outside);
	check_fault(HEAD LOCAL "ld.u32 %w2, [%l2+-4];" END, outside);
	check_fault(HEAD LOCAL "add.u64 %l4, %l1, %l3; ld.local.u32 %w2, [%l4];" END, odd);
	check_fault(HEAD SHARED "add.u64 %l4, %l2, %l3; ld.u16 %h1, [%l4+64];" END, outside);
	check_fault(HEAD SHARED "st.u64 [%l2+121], %l1;" END, odd);
	check_fault(HEAD SHARED "st.u64 [%l2+128], %l1;" END, outside);
}
END_TEST

int main(void)
{
	TCase *tcase = test_case("windows");
	tcase_add_loop_test(tcase, every_thread_has_its_own_local_memory, 0, ISAS);
	tcase_add_loop_test(tcase, local_memory_holds_vectors_and_bytes, 0, ISAS);
	tcase_add_loop_test(tcase, generic_addresses_reach_shared_memory_in_any_order, 0, ISAS);
	tcase_add_loop_test(tcase, atomics_of_one_warp_may_hit_two_allocations, 0, ISAS);
	tcase_add_loop_test(tcase, one_lane_past_the_end_is_a_fault, 0, ISAS);
	return run_tests();
}
