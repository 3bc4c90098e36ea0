/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a GPU's programs count on and an interpreter may miss: threads that wait for each other go on, whether they
 * share a warp, a block or a grid; memory is one with the host's; arithmetic's edges; text that says nothing.
 */
#define _GNU_SOURCE
#include "test/cuda/softgpu/ptx/engine.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every kernel: out[global thread] = %w0; %i2 is the thread, %i3 the block, %i5 the global thread, %a1 out. */
#define KERNEL(body)                                                                                               \
	".visible .entry k(.param .u64 out)\n{\n"                                                                 \
	".reg .pred %p<16>; .reg .b16 %h<8>; .reg .b32 %w<32>; .reg .f32 %f<16>; .reg .f64 %d<8>; .reg .b64 %a<16>; " \
	".reg .b32 %i<8>;\n"                                                                                        \
	"ld.param.u64 %a1, [out]; mov.u32 %i2, %tid.x; mov.u32 %i3, %ctaid.x; mov.u32 %i4, %ntid.x;\n"             \
	"mad.lo.u32 %i5, %i3, %i4, %i2; mul.wide.u32 %a2, %i5, 4; add.u64 %a2, %a2, %a1;\n" body                   \
	"\nst.global.b32 [%a2], %w0; ret;\n}\n"

static uint32_t *run_cooperative(const char *text, uint32_t blocks, uint32_t threads)
{
	uint32_t *out = device_alloc((size_t)blocks * threads * sizeof *out);
	softgpu_program_t *program = load_ptx(text);
	softgpu_launch_t launch = { .kernel = kernel_of(program, "k"), .grid = { blocks, 1, 1 },
				    .block = { threads, 1, 1 }, .parameters = &out, .cooperative = true };
	ck_assert_int_eq(softgpu_launch(&launch), CUDA_SUCCESS);
	softgpu_program_unload(program);
	return out;
}

/* One block of the kernel that whole is with text in the place of its "@@". */
static uint32_t *run_within(const char *whole, const char *text, uint32_t threads)
{
	const char *place = strstr(whole, "@@");
	char program[8192];
	int size = snprintf(program, sizeof program, "%.*s%s%s", (int)(place - whole), whole, text, place + 2);
	ck_assert(size > 0 && (size_t)size < sizeof program);
	return run_words(program, 1, threads);
}

/* ---- waiting */
START_TEST(lanes_of_a_warp_wait_for_each_other)
{
	/* A chain: each lane waits until the one above has written; the last lane comes last in the code's order. */
	uint32_t *out = run_words(".shared .align 4 .b8 cells[132];\n" KERNEL(
		"mov.u32 %w1, cells; shl.b32 %w2, %i2, 2; add.u32 %w1, %w1, %w2; mov.u32 %w3, 0; "
		"st.volatile.shared.b32 [%w1+4], %w3; bar.warp.sync 0xffffffff; setp.eq.u32 %p1, %i2, 31; "
		"@%p1 bra WRITE;\n"
		"SPIN: ld.volatile.shared.b32 %w4, [%w1+4]; setp.eq.u32 %p2, %w4, 0; @%p2 bra SPIN; "
		"add.u32 %w0, %w4, 1; st.volatile.shared.b32 [%w1], %w0; bra END;\n"
		"WRITE: mov.u32 %w0, 100; st.volatile.shared.b32 [%w1], %w0; END:"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], 131 - t);
}
END_TEST

START_TEST(lanes_take_a_ticket_lock_in_their_turn)
{
	/* Only the lane whose ticket is called may enter: whoever spins must let that one go on, in whichever path. */
	uint32_t *out = run_words(".global .u32 next; .global .u32 serving; .global .u32 order;\n" KERNEL(
		"atom.global.add.u32 %w1, [next], 1;\n"
		"SPIN: ld.acquire.gpu.global.u32 %w2, [serving]; setp.ne.u32 %p1, %w1, %w2; @%p1 bra SPIN;\n"
		"ld.volatile.global.u32 %w0, [order]; add.u32 %w3, %w0, 1; st.volatile.global.u32 [order], %w3; "
		"add.u32 %w4, %w2, 1; st.release.gpu.global.u32 [serving], %w4; sub.u32 %w0, %w0, %w1;"), 3, 64);
	for (uint32_t t = 0; t < 192; t++)
		ck_assert_uint_eq(out[t], 0);
}
END_TEST

START_TEST(a_lane_that_sleeps_lets_the_others_run)
{
	uint32_t *out = run_words(".global .u32 flag;\n" KERNEL(
		"setp.eq.u32 %p1, %i2, 31; @%p1 bra SET;\n"
		"SLEEP: nanosleep.u32 100; ld.relaxed.gpu.global.u32 %w0, [flag]; setp.ne.u32 %p2, %w0, 9; @%p2 bra "
		"SLEEP; "
		"bra END;\nSET: mov.u32 %w0, 9; st.relaxed.gpu.global.u32 [flag], %w0; END:"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], 9);
}
END_TEST

START_TEST(blocks_of_a_cooperative_grid_feed_each_other)
{
	/* Block n waits for block n + 1, of 40: more blocks than there are cores. */
	uint32_t *out = run_cooperative(".global .align 4 .b8 cells[164];\n" KERNEL(
		"mov.u64 %a3, cells; mul.wide.u32 %a4, %i3, 4; add.u64 %a3, %a3, %a4; mov.u32 %w1, %nctaid.x; "
		"sub.u32 %w1, %w1, 1; mov.u32 %w2, 500; setp.eq.u32 %p1, %i3, %w1; @%p1 bra WRITE;\n"
		"SPIN: ld.acquire.gpu.global.b32 %w2, [%a3+4]; setp.eq.u32 %p2, %w2, 0; @%p2 bra SPIN;\n"
		"WRITE: bar.sync 0; add.u32 %w0, %w2, 1; setp.eq.u32 %p3, %i2, 0; "
		"@%p3 st.release.gpu.global.b32 [%a3], %w0;"), 40, 64);
	for (uint32_t b = 0; b < 40; b++)
		ck_assert_uint_eq(out[b * 64 + 63], 540 - b);
}
END_TEST

START_TEST(a_grid_meets_at_the_barrier_of_its_environment)
{
	/* As cooperative groups do: add with release, spin until the top bit changes; block 0 brings the rest. */
	uint32_t *out = run_cooperative(".global .align 4 .b8 sums[64];\n" KERNEL(
		"mov.u32 %w1, %envreg2; mov.u32 %w2, %envreg1; mov.b64 %a3, {%w1, %w2}; mov.u32 %w0, 0; mov.u32 %w9, "
		"0; "
		"mov.u32 %w10, %nctaid.x; mov.u64 %a5, sums; setp.ne.u32 %p1, %i2, 0;\n"
		"ROUND: red.global.add.u32 [%a5], 1; bar.sync 0; @%p1 bra MET; setp.eq.u32 %p2, %i3, 0; "
		"sub.u32 %w3, %w10, 1; sub.u32 %w3, 0x80000000, %w3; selp.u32 %w4, %w3, 1, %p2; "
		"fence.acq_rel.gpu; atom.add.release.gpu.u32 %w5, [%a3+4], %w4;\n"
		"SPIN: ld.acquire.gpu.u32 %w6, [%a3+4]; xor.b32 %w7, %w6, %w5; setp.ge.s32 %p3, %w7, 0; @%p3 bra "
		"SPIN;\n"
		"MET: bar.sync 0; ld.relaxed.gpu.global.u32 %w8, [%a5]; mad.lo.u32 %w0, %w0, 3, %w8; add.u64 %a5, "
		"%a5, 4; "
		"add.u32 %w9, %w9, 1; setp.lt.u32 %p4, %w9, 5; @%p4 bra ROUND;"), 24, 96);
	for (uint32_t t = 0; t < 24 * 96; t++)
		ck_assert_uint_eq(out[t], 24 * 96 * 121);
}
END_TEST

START_TEST(shuffles_and_matches_wait_for_their_members)
{
	/* Both spellings of ballot; lanes that come late through a loop bring their own values. */
	uint32_t *out = run_words(KERNEL(
		"mov.u32 %w1, 0; setp.lt.u32 %p1, %i2, 20; @%p1 bra GO; LOOP: add.u32 %w1, %w1, 1; setp.lt.u32 %p2, "
		"%w1, %i2; "
		"@%p2 bra LOOP;\n"
		"GO: add.u32 %w2, %w1, 5; shfl.sync.idx.b32 %w3|%p3, %w2, 31, 0x1f, 0xffffffff; "
		"setp.gt.u32 %p4, %w1, 0; @%p4 bra OTHER; bra MEET; OTHER: add.u32 %w1, %w1, 0;\n"
		"MEET: match.any.sync.b32 %w4, %w3, 0xffffffff; vote.ballot.sync.b32 %w5, %p4, 0xffffffff; "
		"vote.sync.ballot.b32 %w6, %p4, 0xffffffff; sub.u32 %w5, %w5, %w6; popc.b32 %w4, %w4; popc.b32 %w6, "
		"%w6;\n"
		"mad.lo.u32 %w0, %w3, 100, %w4; mad.lo.u32 %w0, %w0, 100, %w6; add.u32 %w0, %w0, %w5;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], (36 * 100 + 32) * 100 + 12);
}
END_TEST

START_TEST(members_that_exit_leave_no_leave_to_go_on_alone)
{
	/* Lanes 16 and up exit while the others wait for them; the next shuffle must wait for its members all the same. */
	uint32_t *out = run_words(KERNEL(
		"mov.u32 %w0, 7; setp.ge.u32 %p1, %i2, 16; @%p1 bra END; shfl.sync.idx.b32 %w1, %i2, 3, 0x1f, 0xffffffff; "
		"add.u32 %w2, %i2, 100; setp.ge.u32 %p2, %i2, 8; @%p2 bra LATE;\n"
		"MEET: shfl.sync.idx.b32 %w3, %w2, 15, 0x1f, 0xffff; mad.lo.u32 %w0, %w1, 1000, %w3; "
		"st.global.b32 [%a2], %w0; exit;\n"
		"LATE: add.u32 %w2, %w2, 1; bra MEET;\n"
		"END:"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t < 16 ? 3116 : 7);
}
END_TEST

START_TEST(who_waits_for_lanes_that_exit_goes_on_before_anybody_goes_alone)
{
	/* Lanes 0 to 7 wait at the lower address for 8 to 15, which wait for the rest, which exits. */
	uint32_t *out = run_words(KERNEL(
		"mov.u32 %w0, 7; mov.u32 %w2, %i2; setp.ge.u32 %p1, %i2, 16; @%p1 bra END; setp.ge.u32 %p2, %i2, 8; @%p2 bra LATE;\n"
		"MEET: shfl.sync.idx.b32 %w3, %w2, 15, 0x1f, 0xffff; mov.u32 %w0, %w3; st.global.b32 [%a2], %w0; exit;\n"
		"LATE: shfl.sync.idx.b32 %w2, %i2, 8, 0x1f, 0xffffff00; add.u32 %w2, %w2, 200; bra MEET;\n"
		"END:"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t < 16 ? 208 : 7);
}
END_TEST

/* Every kernel below sends lanes 0 to 15 to LOW and the others to HIGH; each way has instructions of its own. */
#define TWO_WAYS(low, high)                                                                                        \
	KERNEL("mov.u32 %w0, 0; setp.ge.u32 %p1, %i2, 16; setp.lt.u32 %p2, %i2, 5; cvt.u64.u32 %a3, %i2; @%p1 bra HIGH;\n" \
	       low " bra END;\nHIGH: " high "\nEND:")

START_TEST(members_may_be_at_different_instructions)
{
	uint32_t *out = run_words(TWO_WAYS(
		"add.u32 %w1, %i2, 100; shfl.sync.idx.b32 %w0|%p3, %w1, 20, 0x1f, 0xffffffff;",
		"add.u32 %w2, %i2, 200; shfl.sync.idx.b32 %w0, %w2, 3, 0x1f, 0xffffffff;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t < 16 ? 220 : 103);
	/* One of the two wants to know whether there was such a lane. */
	out = run_words(TWO_WAYS(
		"shfl.sync.up.b32 %w0, %i2, 1, 0, 0xffffffff;",
		"shfl.sync.up.b32 %w1|%p3, %i2, 17, 0, 0xffffffff; selp.u32 %w2, 1000, 2000, %p3; "
		"add.u32 %w0, %w1, %w2;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t < 16 ? (t ? t - 1 : 0) : t == 16 ? 2016 : 1000 + t - 17);
	/* %p2: lanes 0 to 4; its inverse from lane 16 on. */
	out = run_words(TWO_WAYS(
		"vote.ballot.sync.b32 %w0, %p2, 0xffffffff;", "vote.ballot.sync.b32 %w0, !%p2, 0xffffffff;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], 0xffff001f);
	out = run_words(TWO_WAYS(
		"vote.all.sync.pred %p3, !%p1, 0xffffffff; selp.u32 %w0, 1, 2, %p3;",
		"vote.all.sync.pred %p4, %p1, 0xffffffff; selp.u32 %w0, 3, 4, %p4;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t < 16 ? 1 : 3);
	out = run_words(TWO_WAYS(
		"match.any.sync.b64 %w0, %a3, 0xffffffff;",
		"sub.u64 %a4, %a3, 16; match.any.sync.b64 %w0, %a4, 0xffffffff;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], 0x10001u << t % 16);
	out = run_words(TWO_WAYS(
		"redux.sync.add.u32 %w0, %i2, 0xffffffff;",
		"add.u32 %w3, %i2, 1000; redux.sync.add.u32 %w0, %w3, 0xffffffff;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], 496 + 16000);
	out = run_words(TWO_WAYS(
		"elect.sync %w1|%p3, 0xfffffff8; selp.u32 %w0, 1000, 2000, %p3; add.u32 %w0, %w0, %w1;",
		"elect.sync %w0|_, 0xfffffff8;"), 1, 32);
	for (uint32_t t = 3; t < 32; t++)
		ck_assert_uint_eq(out[t], t > 15 ? 3 : t > 3 ? 2003 : 1003);
}
END_TEST

START_TEST(members_at_different_instructions_meet_while_others_spin)
{
	/* Lanes 16 and up spin until lane 0 has come out of what it shuffles with lanes 8 to 15, which are elsewhere. */
	uint32_t *out = run_words(".shared .align 4 .b8 cells[4];\n" KERNEL(
		"mov.u32 %w1, 0; st.volatile.shared.b32 [cells], %w1; bar.warp.sync 0xffffffff;\n"
		"setp.ge.u32 %p1, %i2, 16; @%p1 bra SPIN; setp.ge.u32 %p2, %i2, 8; @%p2 bra OTHER;\n"
		"shfl.sync.bfly.b32 %w0, %i2, 15, 0x1f, 0xffff; mov.u32 %w2, 1; st.volatile.shared.b32 [cells], %w2; "
		"bra END;\n"
		"OTHER: shfl.sync.bfly.b32 %w0, %i2, 15, 0x1f, 0xffff; bra END;\n"
		"SPIN: ld.volatile.shared.b32 %w3, [cells]; setp.eq.u32 %p3, %w3, 0; @%p3 bra SPIN; mov.u32 %w0, 99;\n"
		"END:"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t < 16 ? t ^ 15 : 99);
}
END_TEST

START_TEST(a_group_does_not_wait_for_the_members_of_another)
{
	/* Lanes 0 to 15 have members of their own; lane 31, which the others wait for, waits for lane 0 to come out. */
	uint32_t *out = run_words(".shared .align 4 .b8 cells[4];\n" KERNEL(
		"mov.u32 %w1, 0; st.volatile.shared.b32 [cells], %w1; bar.warp.sync 0xffffffff;\n"
		"setp.lt.u32 %p1, %i2, 16; selp.b32 %w2, 0xffff, 0xffff0000, %p1; setp.eq.u32 %p2, %i2, 31; "
		"@%p2 bra SPIN;\n"
		"MEET: shfl.sync.bfly.b32 %w0, %i2, 15, 0x1f, %w2; setp.eq.u32 %p3, %i2, 0; mov.u32 %w3, 1;\n"
		"@%p3 st.volatile.shared.b32 [cells], %w3; bra END;\n"
		"SPIN: ld.volatile.shared.b32 %w3, [cells]; setp.eq.u32 %p3, %w3, 0; @%p3 bra SPIN; bra MEET;\n"
		"END:"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t ^ 15);
}
END_TEST

START_TEST(of_two_groups_at_two_instructions_the_complete_one_goes)
{
	/* Both groups are at both instructions, but for lane 31, which waits for lane 0 to come out. */
	uint32_t *out = run_words(".shared .align 4 .b8 cells[4];\n" KERNEL(
		"mov.u32 %w1, 0; st.volatile.shared.b32 [cells], %w1; bar.warp.sync 0xffffffff; mov.u32 %w3, 1;\n"
		"setp.lt.u32 %p1, %i2, 16; selp.b32 %w2, 0xffff, 0xffff0000, %p1; setp.eq.u32 %p3, %i2, 0;\n"
		"setp.eq.u32 %p2, %i2, 31; @%p2 bra SPIN; and.b32 %w4, %i2, 8;\n"
		"setp.ne.u32 %p4, %w4, 0; @%p4 bra OTHER;\n"
		"shfl.sync.bfly.b32 %w0, %i2, 15, 0x1f, %w2; @%p3 st.volatile.shared.b32 [cells], %w3; bra END;\n"
		"SPIN: ld.volatile.shared.b32 %w3, [cells]; setp.eq.u32 %p5, %w3, 0; @%p5 bra SPIN;\n"
		"OTHER: shfl.sync.bfly.b32 %w0, %i2, 15, 0x1f, %w2;\n"
		"END:"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t ^ 15);
}
END_TEST

START_TEST(a_group_that_is_complete_takes_nobody_of_another_along)
{
	/* Lanes 8 to 30 come first, 0 to 7 then, 31 last: the second half has to wait for it, and the first has not. */
	static const char *const collectives[] = {
		"shfl.sync.bfly.b32 %w0, %w1, 15, 0x1f, %w2;",
		"vote.sync.ballot.b32 %w0, %p4, %w2;",
		"redux.sync.add.u32 %w0, %w1, %w2;",
		"match.any.sync.b32 %w0, %w4, %w2;",
		"elect.sync %w0|%p5, %w2;",
	};
	static const uint32_t want[][2] = { { 0, 0 }, { 0xffff, 0xffff0000 }, { 120, 376 }, { 0xffff, 0xffff0000 },
					    { 0, 16 } };
	for (size_t n = 0; n < sizeof collectives / sizeof *collectives; n++) {
		uint32_t *out = run_within(KERNEL(
			"mov.u32 %w1, %i2; mov.u32 %w4, 5; setp.lt.u32 %p1, %i2, 16; setp.lt.u32 %p4, %i2, 32;\n"
			"selp.b32 %w2, 0xffff, 0xffff0000, %p1; setp.lt.u32 %p2, %i2, 8; @%p2 bra LATE; "
			"setp.eq.u32 %p3, %i2, 31; @%p3 bra LAST;\nMEET: @@ bra END;\n"
			"LATE: bra MEET;\nLAST: bra MEET;\nEND:"), collectives[n], 32);
		for (uint32_t t = 0; t < 32; t++)
			ck_assert_msg(out[t] == (n ? want[n][t / 16] : (t ^ 15)), "%s: lane %u has %x", collectives[n],
				      t, out[t]);
	}
}
END_TEST

START_TEST(two_halves_of_a_warp_hand_over_in_loops_of_their_own)
{
	/* The lower half writes, the upper half reads and sums up: two barriers a turn, each half at its own. */
	uint32_t *out = run_words(".shared .align 4 .b8 cells[64];\n" TWO_WAYS(
		"mov.u32 %w1, cells; shl.b32 %w2, %i2, 2; add.u32 %w1, %w1, %w2; mov.u32 %w3, %i2; mov.u32 %w4, 0;\n"
		"WRITE: st.shared.u32 [%w1], %w3; bar.warp.sync 0xffffffff; add.u32 %w3, %w3, 100; "
		"bar.warp.sync 0xffffffff; add.u32 %w4, %w4, 1; setp.lt.u32 %p3, %w4, 10; @%p3 bra WRITE;",
		"mov.u32 %w1, cells; sub.u32 %w2, %i2, 16; shl.b32 %w2, %w2, 2; add.u32 %w1, %w1, %w2; mov.u32 %w4, 0;\n"
		"READ: bar.warp.sync 0xffffffff; ld.shared.u32 %w3, [%w1]; mad.lo.u32 %w0, %w0, 2, %w3; "
		"bar.warp.sync 0xffffffff; add.u32 %w4, %w4, 1; setp.lt.u32 %p3, %w4, 10; @%p3 bra READ;"), 1, 32);
	for (uint32_t t = 0; t < 16; t++) {
		uint32_t want = 0;
		for (uint32_t turn = 0; turn < 10; turn++)
			want = want * 2 + turn * 100 + t;
		ck_assert_uint_eq(out[t], 0);
		ck_assert_uint_eq(out[16 + t], want);
	}
}
END_TEST

START_TEST(lanes_of_a_warp_may_meet_at_different_barriers)
{
	/* Even threads of both warps meet at barrier 1, odd ones at barrier 2; each reads what its partner wrote. */
	uint32_t *out = run_words(".shared .align 4 .b8 cells[256];\n" KERNEL(
		"mov.u32 %w1, cells; shl.b32 %w2, %i2, 2; add.u32 %w3, %w1, %w2; xor.b32 %w2, %w2, 128; add.u32 %w4, %w1, %w2; "
		"mov.u32 %w5, 0; st.shared.u32 [%w3], %w5; bar.sync 0; and.b32 %w6, %i2, 1; add.u32 %w6, %w6, 1; "
		"add.u32 %w7, %i2, 500; st.shared.u32 [%w3], %w7; barrier.sync %w6, 32; ld.shared.u32 %w0, [%w4];"), 1, 64);
	for (uint32_t t = 0; t < 64; t++)
		ck_assert_uint_eq(out[t], 500 + (t ^ 32));
	/* bar.arrive too: the first warp arrives at both, the second waits. */
	out = run_words(".shared .align 4 .b8 cells[256];\n" KERNEL(
		"mov.u32 %w1, cells; shl.b32 %w2, %i2, 2; add.u32 %w3, %w1, %w2; and.b32 %w6, %i2, 1; add.u32 %w6, %w6, 1; "
		"mov.u32 %w0, 7; add.u32 %w7, %i2, 500; setp.lt.u32 %p1, %i2, 32; @%p1 bra FIRST;\n"
		"barrier.sync %w6, 32; ld.shared.u32 %w0, [%w3+-128]; bra END;\n"
		"FIRST: st.shared.u32 [%w3], %w7; barrier.arrive %w6, 32; END:"), 1, 64);
	for (uint32_t t = 0; t < 64; t++)
		ck_assert_uint_eq(out[t], t < 32 ? 7 : 500 + t - 32);
}
END_TEST

START_TEST(a_block_that_only_meets_at_barriers_lets_the_others_run)
{
	/* On one thread: block 0 looks for a flag between two barriers, which its warps reach again and again; the
	 * last block sets it. */
	setenv("HEADRACE_SOFTGPU_THREADS", "1", 1);
	uint32_t *out = run_cooperative(".global .u32 flag; .shared .u32 seen;\n" KERNEL(
		"setp.eq.u32 %p1, %i3, 2; @%p1 bra SET; setp.ne.u32 %p2, %i2, 0;\n"
		"LOOK: @%p2 bra MEET; ld.acquire.gpu.global.u32 %w0, [flag]; st.shared.u32 [seen], %w0;\n"
		"MEET: bar.sync 0; ld.shared.u32 %w0, [seen]; bar.sync 0; setp.eq.u32 %p3, %w0, 0; @%p3 bra LOOK; bra END;\n"
		"SET: mov.u32 %w0, 5; st.release.gpu.global.u32 [flag], %w0;\n"
		"END:"), 3, 96);
	for (uint32_t t = 0; t < 3 * 96; t++)
		ck_assert_uint_eq(out[t], 5);
}
END_TEST

START_TEST(a_fault_ends_blocks_that_only_meet_at_barriers)
{
	/* Block 1 waits for what block 0 never does, as it traps. */
	uint32_t *out = device_alloc(4096);
	setenv("HEADRACE_SOFTGPU_THREADS", "2", 1);
	ck_assert_int_eq(run_ptx(".global .u32 flag; .global .u32 there; .shared .u32 seen;\n" KERNEL(
		"setp.eq.u32 %p1, %i3, 0; @%p1 bra TRAP; setp.ne.u32 %p2, %i2, 0;\n"
		"LOOK: st.volatile.global.u32 [there], 1; @%p2 bra MEET; ld.acquire.gpu.global.u32 %w0, [flag]; "
		"st.shared.u32 [seen], %w0;\n"
		"MEET: bar.sync 0; ld.shared.u32 %w0, [seen]; bar.sync 0; setp.eq.u32 %p3, %w0, 0; @%p3 bra LOOK; bra END;\n"
		"TRAP: ld.volatile.global.u32 %w1, [there]; setp.eq.u32 %p3, %w1, 0; @%p3 bra TRAP; trap;\n"
		"END:"), 2, 96, &out), CUDA_ERROR_LAUNCH_FAILED);
}
END_TEST

/* ---- the host beside the kernel */
struct partner {
	uint32_t *cells; /* [0] the kernel's flag, [1] the host's, [2] the sum of both */
};

static void *play_host(void *argument)
{
	struct partner *partner = argument;
	/* Acquire: pairs with the kernel's release of [0]. The kernel waits for [1] after that. */
	while (!__atomic_load_n(&partner->cells[0], __ATOMIC_ACQUIRE))
		sched_yield();
	for (int n = 0; n < 5000; n++)
		__atomic_fetch_add(&partner->cells[2], 3, __ATOMIC_RELAXED);
	__atomic_store_n(&partner->cells[1], 1, __ATOMIC_RELEASE);
	return NULL;
}

START_TEST(the_host_and_a_kernel_share_memory_while_it_runs)
{
	struct partner partner = { device_alloc(4096) };
	pthread_t host;
	ck_assert_int_eq(pthread_create(&host, NULL, play_host, &partner), 0);
	/* All lanes add to one cell; volatile must look again each time. */
	CUresult result = run_ptx(KERNEL(
		"st.release.sys.global.u32 [%a1], 1; mov.u32 %w1, 0; ADD: atom.add.sys.global.u32 %w2, [%a1+8], 1; "
		"add.u32 %w1, %w1, 1; setp.lt.u32 %p1, %w1, 100; @%p1 bra ADD;\n"
		"SPIN: ld.volatile.global.u32 %w3, [%a1+4]; setp.eq.u32 %p2, %w3, 0; @%p2 bra SPIN; mov.u32 %w0, 7; "
		"add.u64 %a2, %a2, 256;"), 2, 64, &partner);
	pthread_join(host, NULL);
	ck_assert_int_eq(result, CUDA_SUCCESS);
	ck_assert_uint_eq(partner.cells[2], 3 * 5000 + 128 * 100);
}
END_TEST

START_TEST(the_host_s_floating_point_environment_is_not_the_device_s)
{
	/* Subnormals stay, sums round to nearest, and what divides by zero ends nobody. Both threads take blocks. */
	setenv("HEADRACE_SOFTGPU_THREADS", "2", 1);
	fesetround(FE_UPWARD);
	feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW);
#ifdef __SSE__
	__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* as -ffast-math leaves it */
	unsigned before = __builtin_ia32_stmxcsr() & ~0x3fu; /* but for the flags */
#endif
	uint32_t *out = run_words(".global .u32 there;\n" KERNEL(
		"atom.global.add.u32 %w1, [there], 1; WAIT: ld.volatile.global.u32 %w1, [there]; setp.lt.u32 %p1, %w1, 64; "
		"@%p1 bra WAIT; cvt.rn.f32.u32 %f1, %w1; mov.f32 %f2, 0f00000003; add.f32 %f3, %f2, %f2; mov.b32 %w2, %f3; "
		"sub.f32 %f4, %f1, %f1; div.rn.f32 %f5, %f1, %f4; mov.b32 %w3, %f5; mov.f32 %f6, 0f30000000; mov.f32 %f7, "
		"0f3f800000; add.f32 %f6, %f6, %f7; mov.b32 %w4, %f6; mov.f32 %f8, 0.7; mov.b32 %w5, %f8; "
		"add.u32 %w0, %w2, %w3; add.u32 %w0, %w0, %w4; add.u32 %w0, %w0, %w5;"), 2, 32);
#ifdef __SSE__
	ck_assert_uint_eq(__builtin_ia32_stmxcsr() & ~0x3fu, before);
#endif
	ck_assert_int_eq(fegetround(), FE_UPWARD);
	fesetenv(FE_DFL_ENV);
	for (uint32_t t = 0; t < 64; t++)
		ck_assert_uint_eq(out[t], 0x6u + 0x7f800000u + 0x3f800000u + 0x3f333333u);
}
END_TEST

/*
 * Block 0 stores vectors that have the same in each element, from %w1 or %a4; block 1 counts in %w0 the loads whose
 * first and last element, %w3 and %w4, are of different stores.
 */
#define VECTOR(store, load)                                                                                        \
	".global .align 16 .b8 cells[16]; .global .u32 done;\n" KERNEL(                                            \
		"mov.u64 %a3, cells; mov.u32 %w0, 0; mov.u32 %w1, 0; setp.eq.u32 %p1, %i3, 1; @%p1 bra LOOK;\n"     \
		"STORE: add.u32 %w1, %w1, 1; cvt.u16.u32 %h1, %w1; cvt.u64.u32 %a4, %w1; " store                    \
		" setp.lt.u32 %p2, %w1, 100000; @%p2 bra STORE; st.release.gpu.global.u32 [done], 1; bra END;\n"    \
		"LOOK: " load " setp.ne.u32 %p3, %w3, %w4; @%p3 add.u32 %w0, %w0, 1; "                              \
		"ld.acquire.gpu.global.u32 %w7, [done]; setp.eq.u32 %p4, %w7, 0; @%p4 bra LOOK;\n"                  \
		"END:")
static const char *const vectors[] = {
	VECTOR("st.relaxed.gpu.global.v4.u16 [%a3], {%h1, %h1, %h1, %h1};",
	       "ld.relaxed.gpu.global.v4.u16 {%h1, %h2, %h3, %h4}, [%a3]; "
	       "cvt.u32.u16 %w3, %h1; cvt.u32.u16 %w4, %h4;"),
	VECTOR("st.relaxed.gpu.global.v2.u32 [%a3], {%w1, %w1};", "ld.relaxed.gpu.global.v2.u32 {%w3, %w4}, [%a3];"),
	VECTOR("st.volatile.global.v4.u32 [%a3], {%w1, %w1, %w1, %w1};",
	       "ld.volatile.global.v4.u32 {%w3, %w5, %w6, %w4}, [%a3];"),
	VECTOR("st.release.gpu.global.v2.u64 [%a3], {%a4, %a4};",
	       "ld.acquire.gpu.global.v2.u64 {%a5, %a6}, [%a3]; cvt.u32.u64 %w3, %a5; cvt.u32.u64 %w4, %a6;"),
};

START_TEST(a_vector_that_is_not_weak_is_seen_whole)
{
	setenv("HEADRACE_SOFTGPU_THREADS", "2", 1);
	uint32_t *out = run_cooperative(vectors[_i], 2, 1);
	ck_assert_uint_eq(out[1], 0);
}
END_TEST

/* The same eight bytes by every form of load and store that is not weak. */
static const struct strong {
	const char *text; /* from %a3 to %w0 */
	uint32_t want;
} strongs[] = {
	{ "ld.volatile.global.u8 %w0, [%a3];", 0x81 },
	{ "ld.relaxed.gpu.global.s8 %w0, [%a3];", 0xffffff81 },
	{ "ld.acquire.sys.global.s8 %h1, [%a3+3]; cvt.u32.u16 %w0, %h1;", 0xff84 },
	{ "ld.acquire.gpu.u16 %w0, [%a3+2];", 0x8483 },
	{ "ld.volatile.s16 %w0, [%a3+2];", 0xffff8483 },
	{ "ld.relaxed.cta.global.s16 %a4, [%a3+2]; shr.u64 %a4, %a4, 8; cvt.u32.u64 %w0, %a4;", 0xffffff84 },
	{ "ld.volatile.global.s32 %a4, [%a3+4]; shr.u64 %a4, %a4, 20; cvt.u32.u64 %w0, %a4;", 0xfffff888 },
	{ "ld.relaxed.sys.global.u32 %a4, [%a3+4]; shr.u64 %a4, %a4, 20; cvt.u32.u64 %w0, %a4;", 0x888 },
	{ "ld.acquire.gpu.global.b64 %a4, [%a3]; shr.u64 %a4, %a4, 24; cvt.u32.u64 %w0, %a4;", 0x87868584 },
	{ "ld.volatile.global.v2.u16 {%h1, %h2}, [%a3+4]; cvt.u32.u16 %w1, %h1; cvt.u32.u16 %w2, %h2; "
	  "mad.lo.u32 %w0, %w1, 65536, %w2;", 0x86858887 },
	{ "ld.volatile.global.v4.u8 {%w1, %w2, %w3, %w4}, [%a3]; mad.lo.u32 %w0, %w1, 256, %w3; "
	  "mad.lo.u32 %w0, %w0, 256, %w2; mad.lo.u32 %w0, %w0, 256, %w4;", 0x81838284 },
	{ "mov.u32 %w1, 0x12345; st.volatile.global.u8 [%a3+1], %w1; ld.global.u32 %w0, [%a3];", 0x84834581 },
	{ "mov.u32 %w1, 0x12345; st.release.gpu.global.u16 [%a3+2], %w1; ld.global.u32 %w0, [%a3];", 0x23458281 },
	{ "mov.u32 %w1, 0x12345; st.relaxed.sys.u32 [%a3], %w1; ld.u32 %w0, [%a3];", 0x12345 },
	{ "mov.u64 %a4, 0x123456789abcdef; st.release.sys.global.u64 [%a3], %a4; ld.global.u32 %w0, [%a3+4];", 0x1234567 },
	{ "mov.u32 %w1, 7; mov.u32 %w2, 9; st.volatile.global.v2.u32 [%a3], {%w1, %w2}; ld.global.u32 %w0, [%a3+4];", 9 },
};

START_TEST(accesses_that_are_not_weak_move_the_same_bytes)
{
	uint32_t *out = run_within(".global .align 8 .b8 cells[8192];\n" KERNEL(
		"mov.u64 %a3, cells; mul.wide.u32 %a4, %i5, 8; add.u64 %a3, %a3, %a4; "
		"mov.u64 %a4, 0x8887868584838281; st.global.u64 [%a3], %a4;\n@@"), strongs[_i].text, 65);
	for (uint32_t t = 0; t < 65; t++)
		ck_assert_msg(out[t] == strongs[_i].want, "%s gave 0x%08x, want 0x%08x", strongs[_i].text, out[t],
			      strongs[_i].want);
}
END_TEST

/* ---- addresses */
START_TEST(parameters_and_locals_have_addresses_of_their_own)
{
	uint32_t *out = run_words(KERNEL(
		".local .align 8 .b8 mine[16]; mov.b64 %a3, out; cvta.param.u64 %a3, %a3; ld.u64 %a4, [%a3]; "
		"setp.eq.u64 %p1, %a4, %a1; isspacep.param %p2, %a3; isspacep.global %p3, %a3; isspacep.global %p4, "
		"%a1;\n"
		"mov.u64 %a5, mine; cvta.local.u64 %a6, %a5; st.local.u32 [%a5+4], %i5; ld.u32 %w1, [%a6+4]; "
		"isspacep.local %p5, %a6; isspacep.shared %p6, %a6; cvta.to.local.u64 %a7, %a6; setp.eq.u64 %p7, "
		"%a7, %a5;\n"
		"selp.u32 %w2, 1, 0, %p1; selp.u32 %w3, 2, 0, %p2; selp.u32 %w4, 4, 0, %p3; selp.u32 %w5, 8, 0, %p4; "
		"selp.u32 %w6, 16, 0, %p5; selp.u32 %w7, 32, 0, %p6; selp.u32 %w8, 64, 0, %p7; add.u32 %w0, %w2, %w3; "
		"add.u32 %w0, %w0, %w4; add.u32 %w0, %w0, %w5; add.u32 %w0, %w0, %w6; add.u32 %w0, %w0, %w7; "
		"add.u32 %w0, %w0, %w8; mad.lo.u32 %w0, %w1, 1000, %w0;"), 2, 40);
	for (uint32_t t = 0; t < 80; t++)
		ck_assert_uint_eq(out[t], t * 1000 + 1 + 2 + 8 + 16 + 64);
}
END_TEST

/* ---- arithmetic */
START_TEST(fma_fuses_and_a_product_with_a_sum_does_not)
{
	/* (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 exactly, and 0 when the product is rounded first. */
	uint32_t *out = run_words(KERNEL(
		"mov.f32 %f1, 0f3f800800; mov.f32 %f2, 0fbf801000; fma.rn.f32 %f3, %f1, %f1, %f2; mul.f32 %f4, %f1, "
		"%f1; "
		"add.f32 %f4, %f4, %f2; mul.rn.f32 %f5, %f1, %f1; add.rn.f32 %f5, %f5, %f2; mov.b32 %w1, %f3; "
		"mov.b32 %w2, %f4; mov.b32 %w3, %f5; setp.eq.u32 %p1, %i2, 0; setp.eq.u32 %p2, %i2, 1; "
		"selp.b32 %w0, %w1, %w2, %p1; selp.b32 %w0, %w3, %w0, %p2;"), 1, 3);
	ck_assert_uint_eq(out[0], 0x33800000);
	ck_assert_uint_eq(out[1], 0);
	ck_assert_uint_eq(out[2], 0);
}
END_TEST

/* One word a step, from the thread with that number. */
static const struct step {
	const char *text; /* leaves its word in %w0 */
	uint32_t want;
} steps[] = {
	{ "mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f33000000; add.rn.f32 %f3, %f1, %f2; mov.b32 %w0, %f3;", 0x3f800000 },
	{ "mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f33000000; add.rp.f32 %f3, %f1, %f2; mov.b32 %w0, %f3;", 0x3f800001 },
	{ "mov.f32 %f1, 0fbf800000; mov.f32 %f2, 0fb3000000; add.rm.f32 %f3, %f1, %f2; mov.b32 %w0, %f3;", 0xbf800001 },
	{ "mov.f32 %f1, 0fbf800000; mov.f32 %f2, 0fb3000000; add.rz.f32 %f3, %f1, %f2; mov.b32 %w0, %f3;", 0xbf800000 },
	{ "mov.f32 %f1, 0f80000001; add.ftz.f32 %f2, %f1, %f1; mov.b32 %w0, %f2;", 0x80000000 },
	{ "mov.f32 %f1, 0f80000001; add.f32 %f2, %f1, %f1; mov.b32 %w0, %f2;", 0x80000002 },
	{ "mov.f32 %f1, 0f7fc00000; mov.f32 %f2, 0fc0000000; min.f32 %f3, %f1, %f2; mov.b32 %w0, %f3;", 0xc0000000 },
	{ "mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f7fc00000; max.f32 %f3, %f1, %f2; mov.b32 %w0, %f3;", 0x40000000 },
	{ "mov.f32 %f1, 0f4f800000; cvt.rzi.s32.f32 %w0, %f1;", 0x7fffffff },
	{ "mov.f32 %f1, 0fff800000; cvt.rzi.s32.f32 %w0, %f1;", 0x80000000 },
	{ "mov.f32 %f1, 0fbf800000; cvt.rzi.u32.f32 %w0, %f1;", 0 },
	{ "mov.f32 %f1, 0f7fc00000; cvt.rzi.u32.f32 %w0, %f1;", 0 },
	{ "mov.f32 %f1, 0f7fc00000; cvt.sat.f32.f32 %f2, %f1; mov.b32 %w0, %f2;", 0 },
	{ "mov.f32 %f1, 0fc0000000; cvt.sat.f32.f32 %f2, %f1; mov.b32 %w0, %f2;", 0 },
	{ "mov.f32 %f1, 0f7f800000; cvt.sat.f32.f32 %f2, %f1; mov.b32 %w0, %f2;", 0x3f800000 },
	{ "mov.u32 %w1, 0x80000001; shl.b32 %w0, %w1, 32;", 0 },
	{ "mov.u32 %w1, 0x80000001; shr.s32 %w0, %w1, 99;", 0xffffffff },
	{ "mov.u32 %w1, 0x80000001; shr.u32 %w0, %w1, 4294967295;", 0 },
	/* Halves: 1 + 2^-11 + 2^-24 in one rounding is 1 + 2^-10, through a float it would be a tie to 1. */
	{ "mov.f64 %d1, 0d3FF0020010000000; cvt.rn.f16.f64 %h1, %d1; cvt.u32.u16 %w0, %h1;", 0x3c01 },
};
#define STEPS (sizeof steps / sizeof *steps)

START_TEST(arithmetic_keeps_its_edges)
{
	uint32_t *out = run_within(KERNEL("@@"), steps[_i].text, 33);
	for (uint32_t t = 0; t < 33; t++)
		ck_assert_msg(out[t] == steps[_i].want, "%s gave 0x%08x, want 0x%08x", steps[_i].text, out[t],
			      steps[_i].want);
}
END_TEST

/* ---- text */
START_TEST(debugging_information_is_skipped)
{
	uint32_t *out = run_words(".file 1 \"a.cu\", 1700000000, 120\n.file 2 \"b \\\" c.h\"\n"
		KERNEL(".loc 1 7 3\nmov.u32 %w0, 5;\n.loc 2 11 5, function_name $L__info_string0, inlined_at 1 7 3\n"
		"add.u32 %w0, %w0, %i2; .pragma \"nounroll\";\n$L__tmp0:\n.loc 1 9 1\n")
		".section .debug_str\n{\n$L__info_string0:\n.b8 95,90,51,102\n.b8 0\n}\n"
		".section .debug_loc { .b32 1, $L__info_string0+4 }\n", 1, 8);
	for (uint32_t t = 0; t < 8; t++)
		ck_assert_uint_eq(out[t], 5 + t);
}
END_TEST

START_TEST(special_registers_know_the_launch)
{
	uint32_t *out = run_words(KERNEL(
		"mov.u32 %w1, %laneid; mov.u32 %w2, %warpid; mov.u32 %w3, %lanemask_lt; popc.b32 %w3, %w3; "
		"mov.u32 %w4, %lanemask_ge; popc.b32 %w4, %w4; mov.u32 %w5, %nwarpid; setp.ge.u32 %p1, %w2, %w5; "
		"@%p1 trap; "
		"mov.u32 %w6, %smid; mov.u32 %w7, %nsmid; setp.ge.u32 %p2, %w6, %w7; @%p2 trap; mov.u64 %a3, %gridid; "
		"mov.u64 %a4, %clock64; mov.u64 %a5, %clock64; setp.lt.u64 %p3, %a5, %a4; @%p3 trap; "
		"mov.u64 %a6, %globaltimer; setp.eq.u64 %p4, %a6, 0; @%p4 trap; mov.u32 %w8, %dynamic_smem_size; "
		"mov.u32 %w9, %total_smem_size; mov.u32 %w10, %aggr_smem_size; sub.u32 %w9, %w9, %w10; mov.u32 %w11, "
		"%clock; "
		"mov.u32 %w12, %clock_hi; mov.u32 %w13, %globaltimer_lo; mov.u32 %w14, %globaltimer_hi; "
		"mov.u32 %w15, %lanemask_eq; shr.b32 %w15, %w15, %w1; mov.u32 %w16, %lanemask_le; mov.u32 %w17, "
		"%lanemask_gt; "
		"add.u32 %w16, %w16, %w17;\n"
		"mad.lo.u32 %w0, %w2, 32, %w1; sub.u32 %w0, %w0, %i2; add.u32 %w0, %w0, %w8; add.u32 %w0, %w0, %w9; "
		"add.u32 %w3, %w3, %w4; mad.lo.u32 %w0, %w3, 100, %w0; mad.lo.u32 %w0, %w15, 10, %w0; "
		"add.u32 %w0, %w0, %w16;"), 2, 96);
	for (uint32_t t = 0; t < 192; t++)
		ck_assert_uint_eq(out[t], 32 * 100 + 10 - 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		lanes_of_a_warp_wait_for_each_other,
		lanes_take_a_ticket_lock_in_their_turn,
		a_lane_that_sleeps_lets_the_others_run,
		blocks_of_a_cooperative_grid_feed_each_other,
		a_grid_meets_at_the_barrier_of_its_environment,
		shuffles_and_matches_wait_for_their_members,
		members_that_exit_leave_no_leave_to_go_on_alone,
		who_waits_for_lanes_that_exit_goes_on_before_anybody_goes_alone,
		members_may_be_at_different_instructions,
		members_at_different_instructions_meet_while_others_spin,
		a_group_does_not_wait_for_the_members_of_another,
		of_two_groups_at_two_instructions_the_complete_one_goes,
		a_group_that_is_complete_takes_nobody_of_another_along,
		two_halves_of_a_warp_hand_over_in_loops_of_their_own,
		lanes_of_a_warp_may_meet_at_different_barriers,
		a_block_that_only_meets_at_barriers_lets_the_others_run,
		a_fault_ends_blocks_that_only_meet_at_barriers,
		the_host_and_a_kernel_share_memory_while_it_runs,
		the_host_s_floating_point_environment_is_not_the_device_s,
		parameters_and_locals_have_addresses_of_their_own,
		fma_fuses_and_a_product_with_a_sum_does_not,
		debugging_information_is_skipped,
		special_registers_know_the_launch,
	};
	TCase *cases = test_case("ptx progress");
	for (size_t n = 0; n < sizeof tests / sizeof *tests; n++)
		tcase_add_test(cases, tests[n]);
	tcase_add_loop_test(cases, arithmetic_keeps_its_edges, 0, STEPS);
	tcase_add_loop_test(cases, a_vector_that_is_not_weak_is_seen_whole, 0, sizeof vectors / sizeof *vectors);
	tcase_add_loop_test(cases, accesses_that_are_not_weak_move_the_same_bytes, 0, sizeof strongs / sizeof *strongs);
	return run_tests();
}
