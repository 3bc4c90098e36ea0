/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous copies, mbarriers, clusters of one block, vectors of atomics, and forms that are hints. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGISTERS ".reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %w<32>; .reg .f32 %f<8>; .reg .b64 %a<16>;"
/* k(in, out): %a2 and %a3 are in and out, four bytes a thread on; the body leaves its result in %w0. */
#define KERNEL(body)                                                                                              \
	".visible .entry k(.param .u64 in, .param .u64 out)\n{\n" REGISTERS                                        \
	" .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar[4];\n"                                      \
	"ld.param.u64 %a0, [in]; ld.param.u64 %a1, [out]; mov.u32 %w1, %tid.x; mul.wide.u32 %a4, %w1, 4; "         \
	"add.u64 %a2, %a0, %a4; add.u64 %a3, %a1, %a4; mov.u32 %w2, tile; shl.b32 %w3, %w1, 2; "                   \
	"add.u32 %w3, %w3, %w2; setp.eq.u32 %p1, %w1, 0;\n" body "\nst.global.b32 [%a3], %w0; ret;\n}\n"

struct memory {
	uint32_t *in, *out;
};

static struct memory allocate(void)
{
	struct memory memory = { device_alloc(4096), device_alloc(4096) };
	for (uint32_t n = 0; n < 1024; n++)
		memory.in[n] = n * 2654435761u + 12345;
	return memory;
}

static CUresult run(const struct memory *memory, const char *text, uint32_t threads)
{
	return run_ptx(text, 1, threads, memory);
}

/* One block that must succeed: what it was given and what it left. */
static struct memory run_well(const char *text, uint32_t threads)
{
	struct memory memory = allocate();
	ck_assert_int_eq(run(&memory, text, threads), CUDA_SUCCESS);
	return memory;
}

/* ---- cp.async */
START_TEST(small_copies_arrive_and_the_rest_is_zero)
{
	/* 16 bytes a thread: all of them, as many as the thread's number says, none. */
	struct memory memory = run_well(KERNEL(
		"shl.b32 %w4, %w1, 4; add.u32 %w5, %w2, %w4; cvt.u64.u32 %a5, %w4; add.u64 %a5, %a5, %a0; "
		"and.b32 %w6, %w1, 15; setp.eq.u32 %p2, %w6, 3; setp.lt.u32 %p3, %w1, 32; setp.ge.u32 %p4, %w1, 32;\n"
		"createpolicy.fractional.L2::evict_last.b64 %a9, 1.0;\n"
		"mov.b32 %w8, -1; st.shared.v4.b32 [%w5], {%w8, %w8, %w8, %w8};\n"
		"@%p3 cp.async.cg.shared.global.L2::128B [%w5], [%a5], 16, %w6;\n"
		"@%p4 cp.async.ca.shared::cta.global.L2::cache_hint [%w5], [%a5], 16, %p2, %a9;\n"
		"cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;\n"
		"shl.b32 %w7, %w1, 2; mul.wide.u32 %a6, %w7, 4; add.u64 %a6, %a6, %a1; "
		"ld.shared.v4.b32 {%w8,%w9,%w10,%w0}, [%w5]; st.global.v4.b32 [%a6], {%w8,%w9,%w10,%w0}; ret;"), 64);
	for (uint32_t t = 0; t < 64; t++) {
		uint8_t want[16] = { 0 };
		size_t bytes = t < 32 ? t & 15 : (t & 15) == 3 ? 0 : 16;
		memcpy(want, memory.in + 4 * t, bytes);
		ck_assert_mem_eq(memory.out + 4 * t, want, 16);
	}
}
END_TEST

START_TEST(copies_of_four_and_eight_bytes)
{
	struct memory memory = run_well(KERNEL(
		"cp.async.ca.shared.global [%w3], [%a2], 4; cp.async.wait_all; shl.b32 %w4, %w1, 3; mov.u32 %w5, tile; "
		"add.u32 %w5, %w5, %w4; cvt.u64.u32 %a5, %w4; add.u64 %a5, %a5, %a0;\n"
		"cp.async.ca.shared.global [%w5+512], [%a5+8], 8; cp.async.wait_all; "
		"ld.shared.b32 %w6, [%w3]; ld.shared.b64 %a6, [%w5+512]; mov.b64 {%w7,%w8}, %a6; mul.lo.u32 %w7, "
		"%w7, 3; "
		"mul.lo.u32 %w8, %w8, 5; add.u32 %w0, %w6, %w7; add.u32 %w0, %w0, %w8;"), 64);
	for (uint32_t t = 0; t < 64; t++)
		ck_assert_uint_eq(memory.out[t], memory.in[t] + 3 * memory.in[2 * t + 2] + 5 * memory.in[2 * t + 3]);
}
END_TEST

START_TEST(copies_are_checked)
{
	struct memory memory = allocate();
	ck_assert_int_eq(run(&memory, KERNEL("cp.async.ca.shared.global [%w3], [%a2+4096], 4; mov.b32 %w0, 0;"), 1),
			 CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(run(&memory, KERNEL("cp.async.ca.shared.global [%w3+65536], [%a2], 4; mov.b32 %w0, 0;"), 1),
			 CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(run(&memory, KERNEL("cp.async.cg.shared.global [%w3], [%a2+4], 16; mov.b32 %w0, 0;"), 1),
			 CUDA_ERROR_MISALIGNED_ADDRESS);
}
END_TEST

/* ---- mbarrier */
START_TEST(an_mbarrier_goes_through_its_phases)
{
	/* One thread, count 3: each digit of the result says what a step found. */
	struct memory memory = run_well(KERNEL(
		"mbarrier.init.shared::cta.b64 [bar], 3; mbarrier.arrive.shared.b64 %a5, [bar]; "
		"mbarrier.test_wait.shared.b64 %p2, [bar], %a5; mbarrier.pending_count.b64 %w4, %a5;\n"
		"mbarrier.arrive.noComplete.shared.b64 %a6, [bar], 1; mbarrier.pending_count.b64 %w5, %a6;\n"
		"mbarrier.test_wait.parity.shared.b64 %p3, [bar], 0; mbarrier.test_wait.parity.shared.b64 %p4, "
		"[bar], 1;\n"
		"mbarrier.arrive.release.cta.shared.b64 _, [bar]; mbarrier.test_wait.acquire.cta.shared.b64 %p5, "
		"[bar], %a5; "
		"mbarrier.try_wait.parity.shared::cta.b64 %p6, [bar], 0, 1000000; "
		"mbarrier.try_wait.parity.shared::cta.b64 %p7, [bar], 1;\n"
		"mbarrier.arrive_drop.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 _, [bar], 2; "
		"mbarrier.test_wait.parity.shared.b64 %p8, [bar], 1; mbarrier.arrive.shared.b64 %a7, [bar], 2; "
		"mbarrier.pending_count.b64 %w6, %a7; mbarrier.test_wait.shared.b64 %p9, [bar], %a7; "
		"mbarrier.inval.shared.b64 [bar];\n"
		"mad.lo.u32 %w0, %w4, 10, %w5; mad.lo.u32 %w0, %w0, 10, %w6; mov.u32 %w8, 0;\n"
		"selp.u32 %w9, 1, 0, %p2; mad.lo.u32 %w0, %w0, 10, %w9; selp.u32 %w9, 1, 0, %p3; "
		"mad.lo.u32 %w0, %w0, 10, %w9; selp.u32 %w9, 1, 0, %p4; mad.lo.u32 %w0, %w0, 10, %w9; "
		"selp.u32 %w9, 1, 0, %p5; mad.lo.u32 %w0, %w0, 10, %w9; selp.u32 %w9, 1, 0, %p6; "
		"mad.lo.u32 %w0, %w0, 10, %w9; selp.u32 %w9, 2, 0, %p7; selp.u32 %w10, 1, 0, %p8; "
		"add.u32 %w9, %w9, %w10; selp.u32 %w10, 4, 0, %p9; add.u32 %w9, %w9, %w10; "
		"mad.lo.u32 %w0, %w0, 10, %w9;"), 1);
	/* pending before the arrivals 3, 2 and, two left of three, 2; then no, no, yes, yes, yes; no, yes, yes */
	ck_assert_uint_eq(memory.out[0], 322001115);
}
END_TEST

START_TEST(producers_and_consumers_meet_at_mbarriers)
{
	/* Warp 0 fills a tile of 32 words for each of 8 rounds, warps 1 to 3 add it up; full and empty take turns. */
	struct memory memory = run_well(KERNEL(
		"@!%p1 bra READY; mbarrier.init.shared.b64 [bar], 32; mbarrier.init.shared.b64 [bar+8], 96; "
		"fence.mbarrier_init.release.cluster; READY: bar.sync 0;\n"
		"mov.u32 %w4, 0; mov.u32 %w0, 0; setp.ge.u32 %p2, %w1, 32; and.b32 %w5, %w1, 31; shl.b32 %w6, %w5, 2; "
		"add.u32 %w6, %w6, %w2; @%p2 bra CONSUME;\n"
		"PRODUCE: and.b32 %w7, %w4, 1; xor.b32 %w8, %w7, 1;\n"
		"EMPTY: mbarrier.try_wait.parity.shared.b64 %p3, [bar+8], %w8; @!%p3 bra EMPTY;\n"
		"mad.lo.u32 %w9, %w4, 1000, %w5; st.shared.b32 [%w6], %w9; mbarrier.arrive.shared.b64 _, [bar]; "
		"add.u32 %w4, %w4, 1; setp.lt.u32 %p4, %w4, 8; @%p4 bra PRODUCE; bra END;\n"
		"CONSUME: and.b32 %w7, %w4, 1;\n"
		"FULL: mbarrier.test_wait.parity.shared.b64 %p3, [bar], %w7; @!%p3 bra FULL;\n"
		"ld.shared.b32 %w9, [%w6]; add.u32 %w0, %w0, %w9; mbarrier.arrive.shared.b64 _, [bar+8]; "
		"add.u32 %w4, %w4, 1; setp.lt.u32 %p4, %w4, 8; @%p4 bra CONSUME; END:"), 128);
	for (uint32_t t = 0; t < 128; t++)
		ck_assert_uint_eq(memory.out[t], t < 32 ? 0 : 28000 + 8 * (t & 31));
}
END_TEST

START_TEST(one_arrival_too_many_is_a_fault)
{
	struct memory memory = allocate();
	ck_assert_int_eq(run(&memory, KERNEL("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 _, "
		"[bar], 2; "
		"mov.b32 %w0, 0;"), 1), CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_int_eq(run(&memory, KERNEL("mbarrier.init.b64 [%a1], 1; mov.b32 %w0, 0;"), 1),
			 CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(an_invalidated_mbarrier_still_shows_the_phase_that_ended)
{
	/* The warp that arrives last goes on first, and invalidates the object before the other one tests it again. */
	struct memory memory = run_well(KERNEL(
		"@!%p1 bra READY; mbarrier.init.shared.b64 [bar], 64; READY: bar.sync 0;\n"
		"mbarrier.arrive.shared.b64 %a5, [bar]; mov.u32 %w4, 0;\n"
		"WAIT: mbarrier.try_wait.shared.b64 %p3, [bar], %a5; mbarrier.try_wait.parity.shared.b64 %p4, [bar], 0; "
		"and.pred %p3, %p3, %p4; add.u32 %w4, %w4, 1; setp.lt.u32 %p5, %w4, 1000; and.pred %p5, %p5, !%p3; "
		"@%p5 bra WAIT;\n"
		"and.b32 %w5, %w1, 31; setp.eq.u32 %p6, %w5, 0; @%p6 mbarrier.inval.shared.b64 [bar]; selp.u32 %w0, 1, 0, %p3;"), 64);
	for (uint32_t t = 0; t < 64; t++)
		ck_assert_uint_eq(memory.out[t], 1);
}
END_TEST

START_TEST(arrays_of_modules_are_aligned_for_vectors_and_bulk_copies)
{
	struct memory memory = run_well(
		".global .align 4 .b32 one; .global .align 4 .b32 array[8]; .const .align 1 .b8 odd[1]; "
		".const .align 1 .b8 text[16];\n" KERNEL(
		"mov.u64 %a5, array; mov.u64 %a6, text; mov.u64 %a7, one; mov.u64 %a8, odd; ld.global.u32 %w5, [%a7]; "
		"ld.const.u8 %w6, [%a8]; or.b64 %a5, %a5, %a6; cvt.u32.u64 %w0, %a5; and.b32 %w0, %w0, 15; "
		"or.b32 %w0, %w0, %w5; or.b32 %w0, %w0, %w6;"), 1);
	ck_assert_uint_eq(memory.out[0], 0);
}
END_TEST

#define ARRIVING(counted, other) KERNEL( \
	"@!%p1 bra READY; mbarrier.init.shared.b64 [bar], 64; mbarrier.init.shared.b64 [bar+8], 64; READY: " \
	"bar.sync 0; mov.u32 %w6, bar;\n" \
	"cp.async.ca.shared.global [%w3], [%a2], 4; cp.async.mbarrier.arrive.noinc" counted "; " \
	"cp.async.mbarrier.arrive" other ";\n" \
	"WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT; " \
	"mbarrier.test_wait.parity.shared.b64 %p4, [bar+8], 0;\n" \
	"xor.b32 %w4, %w3, 4; ld.shared.b32 %w0, [%w4]; selp.u32 %w5, 1, 0, %p4; add.u32 %w0, %w0, %w5;")

START_TEST(copies_arrive_at_an_mbarrier)
{
	/* The arrivals for the copies are counted in the first, and count by themselves in the second. An address of 32 bits
	 * without a state space is one in shared memory. */
	static const char *const texts[] = {
		ARRIVING(".shared.b64 [bar]", ".shared.b64 [bar+8]"),
		ARRIVING(".b64 [%w6]", ".b64 [%w6+8]"),
	};
	for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
		struct memory memory = run_well(texts[n], 64);
		for (uint32_t t = 0; t < 64; t++)
			ck_assert_uint_eq(memory.out[t], memory.in[t ^ 1]);
	}
}
END_TEST

/* ---- bulk copies */
START_TEST(bulk_copies_complete_their_bytes)
{
	/* In, through shared memory, back out with every word one more, by the threads after the wait. */
	struct memory memory = run_well(KERNEL(
		"@!%p1 bra READY; mbarrier.init.shared.b64 [bar], 1; fence.proxy.async.shared::cta; "
		"cp.async.bulk.prefetch.L2.global [%a0], 512;\n"
		"mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%w2], [%a0], 256, [bar]; "
		"mbarrier.test_wait.parity.shared.b64 %p5, [bar], 0; mov.b16 %h1, 1; "
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%w2+256], "
		"[%a0+256], "
		"256, [bar], %h1;\n"
		"READY: bar.sync 0;\nWAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;\n"
		"ld.shared.b32 %w4, [%w3]; add.u32 %w4, %w4, 1; st.shared.b32 [%w3], %w4; bar.sync 0; @!%p1 bra OUT; "
		"@%p5 st.shared.b32 [%w2], 77;\n"
		"cp.async.bulk.global.shared::cta.bulk_group [%a1+1024], [%w2], 512; cp.async.bulk.commit_group; "
		"cp.async.bulk.wait_group.read 0; OUT: mov.b32 %w0, 0;"), 128);
	for (uint32_t t = 0; t < 128; t++)
		ck_assert_uint_eq(memory.out[256 + t], memory.in[t] + 1);
}
END_TEST

START_TEST(bulk_reductions_combine_with_what_is_there)
{
	struct memory memory = allocate();
	static const float floats[8] = { 1.5f, -2.25f, 1e30f, INFINITY, -0.0f, 3.0f, 1e-40f, 7.0f };
	memcpy(memory.in, floats, sizeof floats);
	for (uint32_t n = 0; n < 8; n++) {
		memory.in[8 + n] = n & 1 ? 0xfffffff0u + n : n * 100;
		memory.out[8 + n] = 50;
		memory.out[16 + n] = 50;
		memory.in[24 + n] = 0x3c00c000; /* halves 1 and -2 */
		memory.out[24 + n] = 0x40004000; /* 2 and 2 */
	}
	memcpy(memory.out, floats, sizeof floats);
	ck_assert_int_eq(run(&memory, KERNEL(
		"@!%p1 bra DONE; mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], "
		"224; "
		"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%w2], [%a0], 128, [bar];\n"
		"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%w2+128], [%a0+32], 32, [bar];\n"
		"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%w2+128], "
		"[%w2+32], "
		"32, [bar];\n"
		"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32 [%w2+64], "
		"[%w2+32], "
		"32, [bar];\n"
		"mbarrier.test_wait.parity.shared.b64 %p3, [bar], 0;\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%a1], [%w2], 32;\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%a1+32], [%w2+32], 32;\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [%a1+64], [%w2+32], 32;\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f16 [%a1+96], [%w2+96], 16;\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%a1+112], [%w2+112], 16;\n"
		"cp.async.bulk.global.shared::cta.bulk_group [%a1+128], [%w2+128], 32; "
		"selp.u32 %w0, 1, 0, %p3; st.global.b32 [%a1+2048], %w0; cp.async.bulk.commit_group; "
		"cp.async.bulk.wait_group 0; DONE: ret;"), 2), CUDA_SUCCESS);
	for (int n = 0; n < 8; n++) {
		float sum;
		memcpy(&sum, memory.out + n, sizeof sum);
		/* What is subnormal counts as 0. */
		ck_assert_msg(sum == (n == 6 ? 0 : floats[n] + floats[n]), "%g", (double)sum);
		int32_t value = (int32_t)memory.in[8 + n];
		ck_assert_int_eq((int32_t)memory.out[8 + n], value < 50 ? value : 50);
		ck_assert_uint_eq(memory.out[16 + n], memory.in[8 + n] > 50 ? memory.in[8 + n] : 50);
		ck_assert_uint_eq(memory.out[24 + n], n < 4 ? 0x3c00c000 : 0x42000000);
		ck_assert_uint_eq(memory.out[32 + n], 2 * memory.in[8 + n]);
	}
	ck_assert_uint_eq(memory.out[512], 1);
}
END_TEST

START_TEST(asynchronous_stores_and_reductions_complete_their_bytes)
{
	struct memory memory = run_well(KERNEL(
		"@!%p1 bra READY; mbarrier.init.shared.b64 [bar], 1; st.shared.b32 [tile+1024], 5; "
		"mbarrier.arrive.expect_tx.shared.b64 _, [bar], 384; READY: bar.sync 0;\n"
		"mov.u32 %w4, bar; mapa.shared::cluster.u32 %w4, %w4, 0; mapa.shared::cluster.u32 %w5, %w3, 0; "
		"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%w5], %w1, [%w4];\n"
		"shl.b32 %w6, %w1, 3; add.u32 %w6, %w6, %w2; "
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%w6+256], {%w1, %w3}, [%w4];\n"
		"@!%p1 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [tile+1024], "
		"%w1, "
		"[%w4];\n"
		"mbarrier.test_wait.parity.shared.b64 %p4, [bar], 0; @%p4 trap;\n"
		"@%p1 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [tile+2048], %w1, "
		"[%w4];\n"
		"WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;\n"
		"xor.b32 %w7, %w3, 4; ld.shared.b32 %w0, [%w7]; ld.shared.b32 %w8, [%w6+256]; add.u32 %w0, %w0, %w8; "
		"ld.shared.b32 %w9, [tile+1024]; mad.lo.u32 %w0, %w9, 1000, %w0;"), 24);
	for (uint32_t t = 0; t < 24; t++)
		ck_assert_uint_eq(memory.out[t], (5 + 23 * 24 / 2) * 1000 + (t ^ 1) + t);
}
END_TEST

/* ---- clusters of one block */
START_TEST(a_cluster_of_one_block)
{
	struct memory memory = run_well(KERNEL(
		"mov.u32 %w4, %cluster_nctaid.x; mov.u32 %w5, %cluster_ctaid.y; mov.u32 %w6, %cluster_nctarank; "
		"mov.u32 %w7, %cluster_ctarank; mov.u32 %w8, %clusterid.x; mov.u32 %w9, %nclusterid.x; "
		"mov.pred %p2, %is_explicit_cluster; selp.u32 %w10, 1, 0, %p2; mov.u32 %w11, %pm0; mov.u32 %w12, "
		"%envreg7;\n"
		"cvta.shared.u64 %a5, %a4; mapa.u64 %a6, %a5, 0; getctarank.u64 %w13, %a6; setp.eq.u64 %p3, %a5, %a6; "
		"selp.u32 %w14, 1, 0, %p3; isspacep.shared::cluster %p4, %a5; selp.u32 %w15, 1, 0, %p4;\n"
		"mad.lo.u32 %w0, %w4, 10, %w5; mad.lo.u32 %w0, %w0, 10, %w6; mad.lo.u32 %w0, %w0, 10, %w7; "
		"mad.lo.u32 %w0, %w0, 10, %w8; mad.lo.u32 %w0, %w0, 10, %w9; mad.lo.u32 %w0, %w0, 10, %w10; "
		"mad.lo.u32 %w0, %w0, 10, %w14; mad.lo.u32 %w0, %w0, 10, %w15; add.u32 %w0, %w0, %w11; "
		"add.u32 %w0, %w0, %w12; add.u32 %w0, %w0, %w13; griddepcontrol.wait; "
		"griddepcontrol.launch_dependents; "
		"setmaxnreg.inc.sync.aligned.u32 64;"), 2);
	ck_assert_uint_eq(memory.out[1], 101001011);
	ck_assert_int_eq(run(&memory, KERNEL("mapa.shared::cluster.u32 %w0, %w2, 1;"), 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(the_cluster_barrier_splits_arrival_and_wait)
{
	/*
	 * Warp 0 waits at once and then lets warp 1 go, which has arrived, has not waited, and spins for warp 0: with
	 * one wait for all they would never meet. A thread of warp 2 exits without having arrived.
	 */
	struct memory memory = run_well(KERNEL(
		"mov.b32 %w0, 1; @%p1 st.shared.b32 [tile], 0; st.global.b32 [%a3], %w0; bar.sync 0; "
		"setp.eq.u32 %p2, %w1, 70; @%p2 exit;\n"
		"barrier.cluster.arrive.release.aligned; shr.u32 %w4, %w1, 5; setp.ne.u32 %p3, %w4, 1; @%p3 bra WAIT;\n"
		"SPIN: ld.volatile.shared.b32 %w5, [tile]; setp.eq.u32 %p4, %w5, 0; @%p4 bra SPIN;\n"
		"WAIT: barrier.cluster.wait.acquire.aligned; @%p1 st.volatile.shared.b32 [tile], 7;\n"
		"barrier.cluster.arrive; barrier.cluster.wait; ld.shared.b32 %w0, [tile];"), 96);
	for (uint32_t t = 0; t < 96; t++)
		ck_assert_uint_eq(memory.out[t], t == 70 ? 1 : 7);
}
END_TEST

START_TEST(one_lane_is_elected)
{
	struct memory memory = run_well(KERNEL(
		"setp.lt.u32 %p2, %w1, 5; @%p2 bra LOW; elect.sync %w4|%p3, 0xffffffe0; bra DONE; "
		"LOW: elect.sync %w4|%p3, 0x1f; DONE: selp.u32 %w5, 100, 0, %p3; add.u32 %w0, %w4, "
		"%w5;"), 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(memory.out[t], (t < 5 ? 0 : 5) + (t == 0 || t == 5 ? 100 : 0));
}
END_TEST

/* ---- vectors of atomics */
START_TEST(vectors_are_added_element_by_element)
{
	struct memory memory = allocate();
	memset(memory.in, 0, 4096);
	/* 64 threads add to one place; thread 0 takes the old values of its last addition. */
	ck_assert_int_eq(run(&memory, KERNEL(
		"cvt.rn.f32.u32 %f1, %w1; mov.f32 %f2, 0f40000000; neg.f32 %f3, %f1; mov.f32 %f4, 0f3f800000;\n"
		"red.global.v4.f32.add [%a0], {%f1, %f2, %f3, %f4}; "
		"mov.f32 %f5, %f2; mov.f32 %f6, %f4; atom.relaxed.gpu.global.v2.f32.add {%f6, %f5}, [%a0+16], {%f5, "
		"%f6};\n"
		"red.relaxed.gpu.global.add.noftz.v2.f16x2 [%a0+32], {0x3c003c00, 0xbc003c00}; mov.b16 %h1, 0x3f80; "
		"mov.b16 %h2, 0xbf80; red.global.v4.bf16.max.noftz [%a0+40], {%h1, %h2, %h1, %h2};\n"
		"red.global.v8.f16.add.noftz [%a0+48], {%h1, %h1, %h1, %h1, %h2, %h2, %h2, %h2};\n"
		"cvt.rni.s32.f32 %w5, %f6; cvt.rni.s32.f32 %w6, %f5; mad.lo.u32 %w0, %w5, 1000, "
		"%w6;"), 64), CUDA_SUCCESS);
	static const float want[6] = { 2016, 128, -2016, 64, 128, 64 };
	ck_assert_mem_eq(memory.in, want, sizeof want);
	ck_assert_uint_eq(memory.in[8], 0x54005400);
	ck_assert_uint_eq(memory.in[9], 0xd4005400);
	ck_assert_uint_eq(memory.in[10], 0x00003f80);
	/* As halves 0x3f80 is 1.875: 64 of them are 120. */
	ck_assert_uint_eq(memory.in[12], 0x57805780);
	ck_assert_uint_eq(memory.in[15], 0xd780d780);
	uint32_t seen = 0;
	for (uint32_t t = 0; t < 64; t++) {
		ck_assert_uint_eq(memory.out[t] / 1000, 2 * (memory.out[t] % 1000));
		seen += memory.out[t] % 1000;
	}
	ck_assert_uint_eq(seen, 63 * 64 / 2);
}
END_TEST

START_TEST(atomic_sums_flush_in_global_memory_alone)
{
	struct memory memory = allocate();
	memory.in[0] = memory.in[1] = memory.in[2] = 0x80000003; /* subnormal, negative */
	memory.in[3] = 0x00800001;                               /* the smallest normal but one */
	ck_assert_int_eq(run(&memory, KERNEL(
		"mov.f32 %f1, 0f80000001; mov.f32 %f2, 0f80800000; st.shared.b32 [%w2], 0x80000003; "
		"red.global.add.f32 [%a0], %f1; atom.add.f32 %f3, [%a0+4], %f1; "
		"red.global.v2.f32.add [%a0+8], {%f1, %f2};\n"
		"red.shared.add.f32 [%w2], %f1; cvt.u64.u32 %a5, %w2; cvta.shared.u64 %a5, %a5; "
		"atom.add.f32 %f4, [%a5], %f1; ld.shared.b32 %w0, [%w2]; mov.b32 %w4, %f3; st.global.b32 [%a1+4], "
		"%w4;"), 1),
		CUDA_SUCCESS);
	ck_assert_uint_eq(memory.out[0], 0x80000005);
	ck_assert_uint_eq(memory.out[1], 0x80000003);
	for (int n = 0; n < 3; n++)
		ck_assert_uint_eq(memory.in[n], 0x80000000);
	ck_assert_uint_eq(memory.in[3], 0);
}
END_TEST

START_TEST(values_of_128_bits_move_and_swap_whole)
{
	struct memory memory = allocate();
	uint64_t *cell = (uint64_t *)(void *)memory.in;
	cell[0] = cell[1] = cell[2] = cell[3] = 0;
	/* Each thread counts one up in both halves, by compare and swap; then one exchange takes all there is. */
	ck_assert_int_eq(run(&memory, KERNEL(
		".reg .b128 %q<6>; mov.b64 %a5, 0; mov.b128 %q1, {%a5, %a5};\n"
		"AGAIN: mov.b128 {%a6, %a7}, %q1; add.u64 %a6, %a6, 1; sub.u64 %a7, %a7, 1; mov.b128 %q2, {%a6, %a7}; "
		"atom.relaxed.gpu.global.cas.b128 %q3, [%a0], %q1, %q2; mov.b128 {%a8, %a9}, %q3; mov.b128 {%a10, "
		"_}, %q1; "
		"mov.b128 %q1, %q3; setp.ne.u64 %p2, %a8, %a10; @%p2 bra AGAIN; bar.sync 0;\n"
		"@!%p1 bra SKIP; mov.b128 %q4, {%a0, %a1}; atom.global.exch.b128 %q5, [%a0], %q4; "
		"st.global.b128 [%a0+16], %q5; ld.global.b128 %q4, [%a0]; st.shared.b128 [%w2], %q4;\n"
		"SKIP: bar.sync 0; ld.shared.b64 %a6, [tile+8]; setp.eq.u64 %p3, %a6, %a1; selp.u32 %w0, 1, 0, "
		"%p3;"), 96),
		CUDA_SUCCESS);
	ck_assert_uint_eq(cell[0], (uint64_t)(uintptr_t)memory.in);
	ck_assert_uint_eq(cell[1], (uint64_t)(uintptr_t)memory.out);
	ck_assert_uint_eq(cell[2], 96);
	ck_assert_int_eq((int64_t)cell[3], -96);
	for (uint32_t t = 0; t < 96; t++)
		ck_assert_uint_eq(memory.out[t], 1);
	ck_assert_int_eq(run(&memory, KERNEL(".reg .b128 %q<3>; atom.global.exch.b128 %q1, [%a0+8], %q2; mov.b32 "
		"%w0, 0;"),
			     1), CUDA_ERROR_MISALIGNED_ADDRESS);
}
END_TEST

/* ---- forms of older and newer targets */
#define HEAD(version, target) ".version " version "\n.target " target "\n.address_size 64\n"

static CUresult load_text(const char *text, softgpu_program_t **program)
{
	return softgpu_program_load(text, strlen(text), NULL, program);
}

START_TEST(shuffles_and_votes_without_members_take_who_is_there)
{
	struct memory memory = allocate();
	softgpu_program_t *program = NULL;
	ck_assert_int_eq(load_text(HEAD("6.0", "sm_60") KERNEL(
		"and.b32 %w4, %w1, 1; setp.eq.u32 %p2, %w4, 0; mov.b32 %w0, 0; @!%p2 bra END; "
		"shfl.down.b32 %w5|%p3, %w1, 2, 0x1f; vote.ballot.b32 %w6, %p2; vote.all.pred %p4, %p2; "
		"setp.lt.u32 %p6, %w1, 8; vote.any.pred %p5, !%p6; selp.u32 %w7, 1000, 0, %p4; selp.u32 %w8, 2000, "
		"0, %p5; "
		"selp.u32 %w9, 4000, 0, %p3; and.b32 %w6, %w6, 0xffff; add.u32 %w0, %w5, %w6; add.u32 %w0, %w0, %w7; "
		"add.u32 %w0, %w0, %w8; add.u32 %w0, %w0, %w9; END:"), &program), CUDA_SUCCESS);
	ck_assert_int_eq(launch_1d(kernel_of(program, "k"), 1, 32, &memory), CUDA_SUCCESS);
	for (uint32_t t = 0; t < 32; t++) {
		uint32_t from = t + 2 <= 31 ? t + 2 : t;
		ck_assert_uint_eq(memory.out[t], t & 1 ? 0 : from + 0x5555 + 3000 + (t + 2 <= 31 ? 4000 : 0));
	}
	softgpu_program_unload(program);
	ck_assert_int_eq(load_text(HEAD("8.4", "sm_70") KERNEL("vote.ballot.b32 %w0, %p1;"), &program),
			 CUDA_ERROR_INVALID_PTX);
}
END_TEST

START_TEST(hints_change_nothing)
{
	struct memory memory = run_well(KERNEL(
		"createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %a5, [%a0], 64, 128; "
		"createpolicy.cvt.L2.b64 %a6, 0x10F0000000000000; prefetch.global.L1 [%a2]; prefetchu.L1 [%a2]; "
		"prefetch.global.L2::evict_last [%a2]; applypriority.global.L2::evict_normal [%a0], 128;\n"
		"ld.global.nc.L1::no_allocate.L2::256B.b32 %w4, [%a2]; ld.global.L2::cache_hint.b32 %w5, [%a2], %a5; "
		"ld.global.cv.b32 %w6, [%a2]; ld.mmio.relaxed.sys.global.b32 %w7, [%a2]; "
		"ld.acquire.cluster.global.b32 %w8, "
		"[%a2]; ld.weak.global.L1::evict_first.b32 %w9, [%a2]; ld.relaxed.gpu.b32 %w10, [%a2];\n"
		"st.global.L1::evict_last.b32 [%a3], %w4; st.release.cta.global.b32 [%a3], %w4; "
		"st.mmio.relaxed.sys.global.b32 [%a3], %w4; st.relaxed.sys.global.b32 [%a3], %w4; "
		"st.shared::cluster.b32 [%w3], %w5; ld.shared::cta.b32 %w11, [%w3]; fence.proxy.alias; "
		"fence.proxy.async.global; fence.acq_rel.cluster; fence.sc.sys; fence.proxy.async; "
		"fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%a2], 128;\n"
		"add.u32 %w0, %w4, %w5; add.u32 %w0, %w0, %w6; add.u32 %w0, %w0, %w7; add.u32 %w0, %w0, %w8; "
		"add.u32 %w0, %w0, %w9; add.u32 %w0, %w0, %w10; add.u32 %w0, %w0, %w11;"), 64);
	for (uint32_t t = 0; t < 64; t++)
		ck_assert_uint_eq(memory.out[t], 8 * memory.in[t]);
}
END_TEST

START_TEST(what_is_not_built_does_not_load)
{
	static const char *const bodies[] = {
		"tensormap.replace.tile.element_stride.global.b1024.b32 [%a0], 0, %w0; mov.b32 %w0, 0;",
		"multimem.ld_reduce.relaxed.gpu.global.add.u32 %w0, [%a0];",
		("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%w2], [%a0, "
		 "{%w1, %w1, %w1}], [bar], {%h1}; mov.b32 %w0, 0;"),
		"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%w0, %w1}, [%w2];",
	};
	static const char whole[] = KERNEL("@");
	softgpu_program_t *program = NULL;
	char before[1024];
	const char *after = strchr(whole, '@') + 1;
	snprintf(before, sizeof before, "%.*s", (int)(after - whole) - 1, whole);
	for (size_t n = 0; n < sizeof bodies / sizeof *bodies; n++) {
		char text[4096];
		snprintf(text, sizeof text, "%s%s%s%s", HEAD("8.4", "sm_90"), before, bodies[n], after);
		ck_assert_int_eq(load_text(text, &program), CUDA_ERROR_NOT_SUPPORTED);
	}
	/* A map has five dimensions and four strides. */
	ck_assert_int_eq(load_text(HEAD("8.4", "sm_90a") KERNEL(
		"tensormap.replace.tile.global_dim.global.b1024.b32 [%a0], 5, %w1;"), &program), CUDA_ERROR_INVALID_PTX);
	ck_assert_int_eq(load_text(HEAD("8.4", "sm_90a") KERNEL(
		"tensormap.replace.tile.global_stride.global.b1024.b64 [%a0], 4, %a1;"), &program), CUDA_ERROR_INVALID_PTX);
	/* Without a word that the instruction has, or with two of which it has one. */
	static const char *const malformed[] = {
		HEAD("8.4", "sm_90a") KERNEL("tensormap.tile.global_dim.global.b1024.b32 [%a0], 0, %w1;"),
		HEAD("8.4", "sm_90a") KERNEL("tensormap.replace.tile.global_dim.global.b1024.b32.b64 [%a0], 0, %w1;"),
		HEAD("8.4", "sm_90a") KERNEL("tensormap.replace.tile.global_dim.global.shared::cta.b1024.b32 [%a0], 0, %w1;"),
		HEAD("8.4", "sm_90a") KERNEL("tensormap.replace.tile.global_dim.global.b1024.b32 [%a0], -1, %w1;"),
		HEAD("8.4", "sm_90a") KERNEL(
			"tensormap.cp_fenceproxy.global.tensormap::generic.release.gpu.sync.aligned [%a0], [%a0], 128;"),
		HEAD("8.4", "sm_90a") KERNEL(
			"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%a0], [%a0], 64;"),
	};
	for (size_t n = 0; n < sizeof malformed / sizeof *malformed; n++)
		ck_assert_int_eq(load_text(malformed[n], &program), CUDA_ERROR_INVALID_PTX);
	ck_assert_int_eq(load_text(HEAD("8.4", "sm_90")
		".visible .entry k() .explicitcluster .reqnctapercluster 4, 5, 1 { ret; }", &program),
		CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(load_text(HEAD("8.4", "sm_90")
		".visible .entry k() .explicitcluster .reqnctapercluster 4, 2 .maxclusterrank 8 { ret; }", &program),
		CUDA_SUCCESS);
	softgpu_program_unload(program);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		small_copies_arrive_and_the_rest_is_zero,
		copies_of_four_and_eight_bytes,
		copies_are_checked,
		an_mbarrier_goes_through_its_phases,
		producers_and_consumers_meet_at_mbarriers,
		one_arrival_too_many_is_a_fault,
		an_invalidated_mbarrier_still_shows_the_phase_that_ended,
		arrays_of_modules_are_aligned_for_vectors_and_bulk_copies,
		copies_arrive_at_an_mbarrier,
		bulk_copies_complete_their_bytes,
		bulk_reductions_combine_with_what_is_there,
		asynchronous_stores_and_reductions_complete_their_bytes,
		a_cluster_of_one_block,
		the_cluster_barrier_splits_arrival_and_wait,
		one_lane_is_elected,
		vectors_are_added_element_by_element,
		values_of_128_bits_move_and_swap_whole,
		atomic_sums_flush_in_global_memory_alone,
		shuffles_and_votes_without_members_take_who_is_there,
		hints_change_nothing,
		what_is_not_built_does_not_load,
	};
	TCase *cases = test_case("ptx async");
	for (size_t n = 0; n < sizeof tests / sizeof *tests; n++)
		tcase_add_test(cases, tests[n]);
	return run_tests();
}
