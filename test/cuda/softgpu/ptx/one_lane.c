/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths of one lane, which an interpreter of their own runs (exec/single_lane.c): that it computes what a thread would, for
 * whichever lane it is, that the lane meets the others again, gives way to those that it waits for, and that what it may
 * not do is found. What each operation gives is for the vectors to say.
 */
#include "test/cuda/softgpu/ptx/engine.h"

/* Every kernel: out[thread] = %w0; %i1 is the thread, %a1 out, %a2 the thread's own place in it. */
#define KERNEL(body)                                                                                               \
	".visible .entry k(.param .u64 out)\n{\n"                                                                 \
	".reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %w<16>; .reg .b64 %a<16>; .reg .b32 %i<8>;\n"                \
	"ld.param.u64 %a1, [out]; mov.u32 %i1, %tid.x; mul.wide.u32 %a2, %i1, 4; add.u64 %a2, %a2, %a1;\n" body    \
	"\nst.global.b32 [%a2], %w0; ret;\n}\n"

/* What one thread of the next test computes. */
static uint32_t walk(uint32_t thread)
{
	uint32_t x = thread * 2654435761u + 1, odd = 0;
	for (uint32_t step = 0; step <= thread; step++) {
		x ^= x << 13;
		x ^= x >> 17;
		if (x & 1)
			odd += 3;
		if (!(x & 2))
			x += step;
	}
	return (odd << 16) + (x >> 16);
}

START_TEST(each_lane_of_a_loop_that_all_leave_in_turn_computes_its_own)
{
	use_isa(_i);
	/* Lane n goes round n + 1 times: the last one is alone at the end. And 33 threads: a warp of one lane. */
	uint32_t *out = run_words(KERNEL(
		"mul.lo.u32 %w1, %i1, 2654435761; add.u32 %w1, %w1, 1; mov.u32 %w2, 0; mov.u32 %w3, 0;\n"
		"AGAIN: shl.b32 %w4, %w1, 13; xor.b32 %w1, %w1, %w4; shr.u32 %w4, %w1, 17; xor.b32 %w1, %w1, %w4;\n"
		"and.b32 %w4, %w1, 1; setp.ne.u32 %p1, %w4, 0; @%p1 add.u32 %w2, %w2, 3;\n"
		"and.b32 %w4, %w1, 2; setp.ne.u32 %p2, %w4, 0; @!%p2 add.u32 %w1, %w1, %w3;\n"
		"add.u32 %w3, %w3, 1; setp.le.u32 %p3, %w3, %i1; @%p3 bra AGAIN;\n"
		"shl.b32 %w2, %w2, 16; shr.u32 %w1, %w1, 16; add.u32 %w0, %w1, %w2;"), 1, 33);
	for (uint32_t t = 0; t < 33; t++)
		ck_assert_uint_eq(out[t], walk(t));
	device_reset();
}
END_TEST

START_TEST(a_lane_alone_changes_nothing_of_the_others)
{
	use_isa(_i);
	/* One lane after the other writes registers and predicates that the others have their own in. */
	uint32_t *out = run_words(KERNEL(
		"add.u32 %w1, %i1, 7; mul.wide.u32 %a3, %i1, 9; cvt.u16.u32 %h1, %i1; and.b32 %w2, %i1, 1;\n"
		"setp.ne.u32 %p1, %w2, 0; mov.u32 %w3, 0;\n"
		"TURN: setp.ne.u32 %p2, %w3, %i1; @%p2 bra NEXT;\n"
		"add.u32 %w1, %w1, 100; add.u64 %a3, %a3, 1000; add.u16 %h1, %h1, 5; not.pred %p1, %p1; "
		"setp.eq.u32 %p3, %w3, %i1;\n"
		"NEXT: add.u32 %w3, %w3, 1; setp.lt.u32 %p4, %w3, 32; @%p4 bra TURN;\n"
		"cvt.u32.u64 %w4, %a3; cvt.u32.u16 %w5, %h1; selp.u32 %w6, 100000, 0, %p1; selp.u32 %w7, 200000, 0, %p3;\n"
		"add.u32 %w0, %w1, %w4; add.u32 %w0, %w0, %w5; add.u32 %w0, %w0, %w6; add.u32 %w0, %w0, %w7;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t + 107 + t * 9 + 1000 + t + 5 + (t & 1 ? 0 : 100000) + 200000);
	device_reset();
}
END_TEST

START_TEST(a_lane_that_was_alone_meets_the_others_again)
{
	use_isa(_i);
	/* Lanes that are at one place at once: the one comes there from an instruction that is no branch. */
	uint32_t *out = run_words(KERNEL(
		"mov.u32 %w1, 0; mov.u32 %w2, 0;\n"
		"TURN: and.b32 %w3, %i1, 31; setp.ne.u32 %p1, %w2, %w3; @%p1 bra MEET;\n"
		"mov.u32 %w4, 50; LOOP: sub.u32 %w4, %w4, 1; setp.ne.u32 %p2, %w4, 0; @%p2 bra LOOP; mov.u32 %w4, 1;\n"
		"MEET: activemask.b32 %w5; setp.eq.u32 %p3, %w5, 0xffffffff; @%p3 add.u32 %w1, %w1, 1;\n"
		"add.u32 %w2, %w2, 1; setp.lt.u32 %p4, %w2, 32; @%p4 bra TURN; mov.u32 %w0, %w1;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], 32);
	device_reset();
}
END_TEST

START_TEST(a_lane_that_waits_for_lanes_behind_it_gives_way)
{
	use_isa(_i);
	/* The loop lies before the code of those that end it, so that by address it would have every turn. */
	uint32_t *out = run_words(".global .u32 flag;\n" KERNEL(
		"setp.ne.u32 %p1, %i1, 5; @%p1 bra OTHERS;\n"
		"SPIN: ld.volatile.global.u32 %w1, [flag]; setp.lt.u32 %p2, %w1, 31; @%p2 bra SPIN;\n"
		"mov.u32 %w0, %w1; bra END;\n"
		"OTHERS: mov.u32 %w0, 1; red.global.add.u32 [flag], 1;\nEND:"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t == 5 ? 31 : 1);
	device_reset();
}
END_TEST

START_TEST(a_lane_alone_reads_and_writes_memory_of_every_kind)
{
	use_isa(_i);
	/* Sizes and signs, in shared, local and generic addresses, by lane 19 alone. */
	uint32_t *out = run_words(".shared .align 8 .b8 cells[64];\n" KERNEL(
		".local .align 8 .b8 own[16];\n"
		"mov.u32 %w0, 0; mov.u32 %w1, own; setp.ne.u32 %p1, %i1, 19; mov.u32 %w2, 0x11; st.local.u8 [%w1+5], %w2;\n"
		"@%p1 bra END;\n"
		"mov.u32 %w3, cells; mov.u64 %a3, 0x8091a2b3c4d5e6f7; st.shared.u64 [%w3+8], %a3;\n"
		"ld.shared.s8 %w4, [%w3+15]; ld.shared.u8 %w5, [%w3+15]; ld.shared.s16 %w6, [%w3+14]; "
		"ld.shared.u16 %w7, [%w3+12]; ld.shared.u32 %w8, [%w3+12];\n"
		"add.u32 %w0, %w4, %w5; add.u32 %w0, %w0, %w6; add.u32 %w0, %w0, %w7; xor.b32 %w0, %w0, %w8;\n"
		"st.local.u32 [%w1+8], %w0; st.local.u16 [%w1+8], %w7; ld.local.u32 %w9, [%w1+8]; xor.b32 %w0, %w0, %w9;\n"
		"ld.local.u8 %w10, [%w1+5]; add.u32 %w0, %w0, %w10;\n"
		"cvta.shared.u64 %a4, cells; st.u8 [%a4+1], %w0; ld.shared.s8 %w11, [%w3+1]; add.u32 %w0, %w0, %w11;\n"
		"st.global.u16 [%a2], %w0; ld.global.s16 %w12, [%a2]; add.u32 %w0, %w0, %w12;\nEND:"), 1, 32);
	uint32_t high = 0x8091a2b3;
	uint32_t sum = (uint32_t)(int32_t)(int8_t)0x80 + 0x80u + (uint32_t)(int32_t)(int16_t)0x8091 + 0xa2b3u;
	uint32_t local = sum ^ high;
	local ^= (local & 0xffff0000) | 0xa2b3;
	local += 0x11;
	local += (uint32_t)(int32_t)(int8_t)local;
	local += (uint32_t)(int32_t)(int16_t)local;
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t == 19 ? local : 0);
	device_reset();
}
END_TEST

/* Lane 31 alone, by %p1 as well, after it has touched the allocation; "own" is 16 bytes of its local memory. */
#define BY_THE_LAST_LANE(body)                                                                                     \
	".shared .align 8 .b8 cells[64];\n" KERNEL(                                       \
		".local .align 8 .b8 own[16];\nmov.u32 %w0, 0; setp.ne.u32 %p1, %i1, 31; @%p1 bra END;\n"         \
		"setp.eq.u32 %p1, %i1, 31; mov.u64 %a3, %a1; mov.u32 %w2, 0;\n"                                   \
		"TWICE: ld.global.u32 %w1, [%a3];\n" body "\nadd.u32 %w2, %w2, 1; setp.lt.u32 %p2, %w2, 2; "       \
		"@%p2 bra TWICE;\nEND:")

START_TEST(a_lane_alone_is_stopped_at_memory_that_is_not_its_to_touch)
{
	static const struct {
		const char *text;
		CUresult result;
	} cases[] = {
		{ BY_THE_LAST_LANE(""), CUDA_SUCCESS },
		{ BY_THE_LAST_LANE("add.u64 %a3, %a3, 8192;"), CUDA_ERROR_ILLEGAL_ADDRESS },
		{ BY_THE_LAST_LANE("add.u64 %a3, %a3, 4094;"), CUDA_ERROR_MISALIGNED_ADDRESS },
		{ BY_THE_LAST_LANE("add.u64 %a3, %a3, 4096; @%p1 st.global.u8 [%a3], %w1;"), CUDA_ERROR_ILLEGAL_ADDRESS },
		{ BY_THE_LAST_LANE("mov.u32 %w3, 4096; ld.shared.u32 %w1, [%w3];"), CUDA_ERROR_ILLEGAL_ADDRESS },
		{ BY_THE_LAST_LANE("mov.u32 %w3, 61; st.shared.u16 [%w3], %h1;"), CUDA_ERROR_MISALIGNED_ADDRESS },
		{ BY_THE_LAST_LANE("mov.u32 %w3, 1048576; st.local.u32 [%w3], %w1;"), CUDA_ERROR_ILLEGAL_ADDRESS },
	};
	use_isa(_i);
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		uint32_t *out = device_alloc(4096);
		CUresult result = run_ptx(cases[n].text, 1, 32, &out);
		ck_assert_msg(result == cases[n].result, "case %zu: %d", n, (int)result);
		device_reset();
	}
}
END_TEST

START_TEST(a_lane_alone_calls_and_returns)
{
	use_isa(_i);
	/* Recursion, whose registers are saved, down to the lane's own depth; lane 0 does not call. */
	uint32_t *out = run_words(
		".func (.param .u32 r) sum(.param .u32 n)\n{\n.reg .u32 %n, %m; .reg .pred %q; .param .u32 x; .param .u32 y;\n"
		"ld.param.u32 %n, [n]; setp.eq.u32 %q, %n, 0; mov.u32 %m, 0; @%q bra OUT;\n"
		"sub.u32 %m, %n, 1; st.param.u32 [x], %m; call (y), sum, (x); ld.param.u32 %m, [y]; add.u32 %m, %m, %n;\n"
		"OUT: st.param.u32 [r], %m; ret;\n}\n"
		KERNEL(".param .u32 x; .param .u32 y; mov.u32 %w0, 0; mov.u32 %w1, 0;\n"
		       "TURN: setp.ne.u32 %p1, %w1, %i1; @%p1 bra NEXT;\n"
		       "st.param.u32 [x], %w1; call (y), sum, (x); ld.param.u32 %w0, [y];\n"
		       "NEXT: add.u32 %w1, %w1, 1; setp.lt.u32 %p2, %w1, 32; @%p2 bra TURN;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], t * (t + 1) / 2);
	device_reset();
}
END_TEST

int main(void)
{
	TCase *tcase = test_case("one lane");
	tcase_add_loop_test(tcase, each_lane_of_a_loop_that_all_leave_in_turn_computes_its_own, 0, ISAS);
	tcase_add_loop_test(tcase, a_lane_alone_changes_nothing_of_the_others, 0, ISAS);
	tcase_add_loop_test(tcase, a_lane_that_was_alone_meets_the_others_again, 0, ISAS);
	tcase_add_loop_test(tcase, a_lane_that_waits_for_lanes_behind_it_gives_way, 0, ISAS);
	tcase_add_loop_test(tcase, a_lane_alone_reads_and_writes_memory_of_every_kind, 0, ISAS);
	tcase_add_loop_test(tcase, a_lane_alone_is_stopped_at_memory_that_is_not_its_to_touch, 0, ISAS);
	tcase_add_loop_test(tcase, a_lane_alone_calls_and_returns, 0, ISAS);
	return run_tests();
}
