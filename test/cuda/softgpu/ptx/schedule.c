/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HEADRACE_SOFTGPU_SCHEDULE: the order of a block's warps. A kernel with a race between the warps of a block, which
 * hardware hides by running them at much the same speed, and kernels without one, which must give the same either way.
 */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdlib.h>

/* Every kernel: out[thread of the grid] = %w0; %i1 the thread, %i2 the block's threads, %a2 its place in out. */
#define KERNEL(body)                                                                                               \
	".shared .align 4 .b8 cells[4096];\n.global .u32 counter;\n"                                              \
	".visible .entry k(.param .u64 out)\n{\n"                                                                 \
	".reg .pred %p<8>; .reg .b32 %w<16>; .reg .b64 %a<4>; .reg .b32 %i<8>;\n"                                  \
	"ld.param.u64 %a1, [out]; mov.u32 %i1, %tid.x; mov.u32 %i2, %ntid.x; mov.u32 %i3, %ctaid.x;\n"             \
	"mad.lo.u32 %i4, %i3, %i2, %i1; mul.wide.u32 %a2, %i4, 4; add.u64 %a2, %a2, %a1;\n"                        \
	"mov.u32 %w1, cells; shl.b32 %w2, %i1, 2; add.u32 %w1, %w1, %w2;\n" body                                   \
	"\nst.global.b32 [%a2], %w0; ret;\n}\n"

/*
 * Each thread adds the cell of the warp before its own to its own, without a barrier between the load and the store: each
 * warp should see what the one before it had at first. A warp that runs on sees the sum.
 */
static const char race[] = KERNEL(
	"st.shared.u32 [%w1], 1; bar.sync 0; mov.u32 %w0, 0; setp.lt.u32 %p1, %i1, 32; @!%p1 ld.shared.u32 %w0, [%w1+-128];\n"
	"ld.shared.u32 %w3, [%w1]; add.u32 %w3, %w3, %w0; st.shared.u32 [%w1], %w3; bar.sync 0; ld.shared.u32 %w0, [%w1];");

static uint32_t *run_scheduled(const char *schedule, const char *text, uint32_t blocks, uint32_t threads)
{
	setenv("HEADRACE_SOFTGPU_SCHEDULE", schedule, 1);
	return run_words(text, blocks, threads);
}

START_TEST(warps_in_lockstep_hide_a_race_as_hardware_does)
{
	use_isa(_i);
	uint32_t *out = run_scheduled("lockstep", race, 3, 1024);
	for (uint32_t t = 0; t < 3 * 1024; t++)
		ck_assert_uint_eq(out[t], t % 1024 < 32 ? 1 : 2);
}
END_TEST

START_TEST(a_warp_runs_on_without_the_setting)
{
	uint32_t *out = run_scheduled("warp", race, 1, 128);
	/* The third warp runs after the second one. */
	for (uint32_t t = 0; t < 96; t++)
		ck_assert_uint_eq(out[t], 1 + t / 32);
}
END_TEST

START_TEST(lockstep_keeps_barriers_branches_and_locks)
{
	use_isa(_i);
	/* A sum by halves over shared memory, with loops of different length before it. */
	uint32_t *out = run_scheduled("lockstep", KERNEL(
		"mov.u32 %w3, 0; and.b32 %w4, %i1, 7; LOOP: add.u32 %w3, %w3, 1; setp.le.u32 %p1, %w3, %w4; @%p1 bra LOOP;\n"
		"st.shared.u32 [%w1], %w3; shr.u32 %w5, %i2, 1;\n"
		"HALF: bar.sync 0; setp.ge.u32 %p2, %i1, %w5; @%p2 bra SKIP; shl.b32 %w6, %w5, 2; add.u32 %w6, %w6, %w1;\n"
		"ld.shared.u32 %w7, [%w6]; ld.shared.u32 %w8, [%w1]; add.u32 %w8, %w8, %w7; st.shared.u32 [%w1], %w8;\n"
		"SKIP: shr.u32 %w5, %w5, 1; setp.ne.u32 %p3, %w5, 0; @%p3 bra HALF; bar.sync 0; ld.shared.u32 %w0, [cells];"),
		2, 256);
	for (uint32_t t = 0; t < 512; t++)
		ck_assert_uint_eq(out[t], 256 / 8 * 36);
	/* A lock that each lane takes in turn: the counter counts all threads. */
	out = run_scheduled("lockstep", ".global .u32 lock;\n" KERNEL(
		"TAKE: atom.global.cas.b32 %w3, [lock], 0, 1; setp.ne.u32 %p1, %w3, 0; @%p1 bra TAKE;\n"
		"ld.volatile.global.u32 %w0, [counter]; add.u32 %w4, %w0, 1; st.volatile.global.u32 [counter], %w4;\n"
		"fence.acq_rel.gpu; atom.global.exch.b32 %w3, [lock], 0;"), 2, 64);
	uint64_t sum = 0;
	for (uint32_t t = 0; t < 128; t++)
		sum += out[t];
	ck_assert_uint_eq(sum, 127 * 128 / 2);
}
END_TEST

START_TEST(blocks_in_lockstep_wait_for_each_other)
{
	setenv("HEADRACE_SOFTGPU_THREADS", "1", 1);
	uint32_t *out = run_scheduled("lockstep", KERNEL(
		"mov.u32 %w5, %nctaid.x; bar.sync 0; setp.ne.u32 %p1, %i1, 0; @%p1 bra MET;\n"
		"atom.global.add.u32 %w3, [counter], 1;\n"
		"WAIT: ld.acquire.gpu.global.u32 %w3, [counter]; setp.lt.u32 %p2, %w3, %w5; @%p2 bra WAIT;\n"
		"MET: bar.sync 0; ld.volatile.global.u32 %w0, [counter];"), 8, 96);
	for (uint32_t t = 0; t < 8 * 96; t++)
		ck_assert_uint_eq(out[t], 8);
}
END_TEST

int main(void)
{
	TCase *cases = test_case("ptx schedule");
	tcase_add_loop_test(cases, warps_in_lockstep_hide_a_race_as_hardware_does, 0, ISAS);
	tcase_add_test(cases, a_warp_runs_on_without_the_setting);
	tcase_add_loop_test(cases, lockstep_keeps_barriers_branches_and_locks, 0, ISAS);
	tcase_add_test(cases, blocks_in_lockstep_wait_for_each_other);
	return run_tests();
}
