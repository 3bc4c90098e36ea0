/* SPDX-License-Identifier: BSD-3-Clause */
/* Where threads go: divergence, loops, locks inside a warp, calls, barriers, warp collectives. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every kernel: out[global thread] = %w0. */
#define KERNEL(registers, body)                                                                                   \
	".visible .entry k(.param .u64 out)\n{\n"                                                                 \
	".reg .pred %p<16>; .reg .b32 %w<32>; .reg .b64 %a<8>; .reg .b32 %i<8>;" registers "\n"                    \
	"ld.param.u64 %a1, [out]; mov.u32 %i2, %tid.x; mov.u32 %i3, %ctaid.x; mov.u32 %i4, %ntid.x;\n"             \
	"mad.lo.u32 %i5, %i3, %i4, %i2; mul.wide.u32 %a2, %i5, 4; add.u64 %a2, %a2, %a1;\n" body                   \
	"\nst.global.b32 [%a2], %w0; ret;\n}\n"

START_TEST(nested_branches_reach_every_lane)
{
	use_isa(_i);
	uint32_t *out = run_words(KERNEL("",
		"mov.b32 %w0, 0; and.b32 %w1, %i2, 1; setp.eq.u32 %p1, %w1, 0; @%p1 bra EVEN;\n"
		"add.u32 %w0, %w0, 100; and.b32 %w2, %i2, 2; setp.eq.u32 %p2, %w2, 0; @%p2 bra JOIN;\n"
		"add.u32 %w0, %w0, 1000; bra JOIN;\n"
		"EVEN: add.u32 %w0, %w0, 1; setp.gt.u32 %p3, %i2, 20; @!%p3 bra JOIN; add.u32 %w0, %w0, 10;\n"
		"JOIN: add.u32 %w0, %w0, 5;"), 2, 77);
	for (uint32_t t = 0; t < 77; t++) {
		uint32_t want = t & 1 ? (t & 2 ? 1105 : 105) : t > 20 ? 16 : 6;
		ck_assert_uint_eq(out[t], want);
		ck_assert_uint_eq(out[77 + t], want);
	}
}
END_TEST

START_TEST(each_lane_turns_its_own_number_of_times)
{
	use_isa(_i);
	uint32_t *out = run_words(KERNEL("",
		"mov.b32 %w0, 0; mov.b32 %w1, 0;\n"
		"LOOP: add.u32 %w0, %w0, %w1; add.u32 %w1, %w1, 1; setp.le.u32 %p1, %w1, %i2; @%p1 bra LOOP;"), 1, 64);
	for (uint32_t t = 0; t < 64; t++)
		ck_assert_uint_eq(out[t], t * (t + 1) / 2);
}
END_TEST

START_TEST(lanes_meet_again_after_a_branch)
{
	use_isa(_i);
	/* If they did not, activemask after the join would not be the whole warp. */
	uint32_t *out = run_words(KERNEL("",
		"setp.lt.u32 %p1, %i2, 7; @%p1 bra A; mov.b32 %w1, 1; bra B; A: mov.b32 %w1, 2; "
		"B: activemask.b32 %w0;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], 0xffffffff);
}
END_TEST

START_TEST(a_spin_lock_inside_a_warp_is_released)
{
	use_isa(_i);
	/* The lane that gets the lock leaves the loop to the code that follows; the others must not keep it waiting. */
	uint32_t *out = run_words(".global .u32 lock; .global .u32 total;\n" KERNEL("",
		"SPIN: atom.global.cas.b32 %w1, [lock], 0, 1; setp.ne.u32 %p1, %w1, 0; @%p1 bra SPIN;\n"
		"ld.volatile.global.u32 %w2, [total]; add.u32 %w2, %w2, 1; st.volatile.global.u32 [total], %w2;\n"
		"membar.gl; atom.global.exch.b32 %w3, [lock], 0; mov.b32 %w0, %w2;"), 4, 96);
	uint64_t sum = 0;
	for (uint32_t t = 0; t < 4 * 96; t++)
		sum += out[t];
	ck_assert_uint_eq(sum, 384 * 385 / 2);
}
END_TEST

START_TEST(a_warp_that_waits_for_another_gets_its_value)
{
	use_isa(_i);
	uint32_t *out = run_words(".shared .align 4 .u32 flag;\n" KERNEL("",
		"setp.ne.u32 %p1, %i2, 0; @%p1 bra A; st.shared.u32 [flag], 0; A: bar.sync 0;\n"
		"setp.ge.u32 %p2, %i2, 32; @%p2 bra WRITER;\n"
		"WAIT: ld.volatile.shared.u32 %w0, [flag]; setp.eq.u32 %p3, %w0, 0; @%p3 bra WAIT; bra END;\n"
		"WRITER: mov.b32 %w0, 42; st.volatile.shared.u32 [flag], %w0; END:"), 1, 64);
	for (uint32_t t = 0; t < 64; t++)
		ck_assert_uint_eq(out[t], 42);
}
END_TEST

START_TEST(jump_tables_send_each_lane_its_way)
{
	use_isa(_i);
	uint32_t *out = run_words(KERNEL("",
		"rem.u32 %w1, %i2, 3; TABLE: .branchtargets L0, L1, L2; brx.idx %w1, TABLE;\n"
		"L0: mov.b32 %w0, 10; bra END; L1: mov.b32 %w0, 20; bra END; L2: mov.b32 %w0, 30; END:"), 1, 50);
	for (uint32_t t = 0; t < 50; t++)
		ck_assert_uint_eq(out[t], (t % 3 + 1) * 10);
}
END_TEST

#define FIBONACCI                                                                                                  \
	".func (.param .b32 r) fib(.param .b32 n);\n"                                                              \
	".func (.param .b32 r) fib(.param .b32 n)\n{\n.reg .b32 %w<9>; .reg .pred %p<3>;\n"                        \
	"ld.param.u32 %w1, [n]; setp.lt.u32 %p1, %w1, 2; mov.b32 %w5, %w1; @%p1 bra END;\n"                        \
	"{ .param .b32 x; .param .b32 y; sub.u32 %w2, %w1, 1; st.param.b32 [x], %w2; call.uni (y), fib, (x); " \
		"ld.param.b32 %w3, [y]; }\n" \
	"{ .param .b32 x; .param .b32 y; sub.u32 %w2, %w1, 2; st.param.b32 [x], %w2; call.uni (y), fib, (x); " \
		"ld.param.b32 %w4, [y]; }\n" \
	"add.u32 %w5, %w3, %w4;\nEND: st.param.b32 [r], %w5; ret;\n}\n"

START_TEST(recursive_calls_keep_their_own_registers)
{
	use_isa(_i);
	uint32_t fib[16] = { 0, 1 };
	for (int n = 2; n < 16; n++)
		fib[n] = fib[n - 1] + fib[n - 2];
	uint32_t *out = run_words(FIBONACCI KERNEL("",
		"rem.u32 %w1, %i2, 13;\n"
		"{ .param .b32 x; .param .b32 y; st.param.b32 [x], %w1; call (y), fib, (x); "
		"ld.param.b32 %w0, [y]; }"), 2, 40);
	for (uint32_t t = 0; t < 40; t++)
		ck_assert_uint_eq(out[t], fib[t % 13]);
}
END_TEST

/*
 * Two functions that call each other, each with a value that lives across the call; %CALL is how the second calls the
 * first. f(0) = 1, f(n) = 2 g(n - 1) + n; g(n) = f(n) + 3 n.
 */
#define ROUND_ABOUT(call)                                                                                          \
	".func (.param .b32 r) g(.param .b32 n);\n"                                                                 \
	".func (.param .b32 r) f(.param .b32 n)\n{\n.reg .b32 %w<9>; .reg .pred %p<3>;\n"                         \
	"ld.param.u32 %w1, [n]; mov.b32 %w5, 1; setp.eq.u32 %p1, %w1, 0; @%p1 bra END;\n"                          \
	"{ .param .b32 x; .param .b32 y; sub.u32 %w2, %w1, 1; st.param.b32 [x], %w2; call (y), g, (x); "           \
	"ld.param.b32 %w3, [y]; }\nmad.lo.u32 %w5, %w3, 2, %w1;\nEND: st.param.b32 [r], %w5; ret;\n}\n"            \
	".global .align 8 .u64 pointer;\n"                                                                         \
	".func (.param .b32 r) g(.param .b32 n)\n{\n.reg .b32 %w<9>; .reg .b64 %a<3>;\nld.param.u32 %w1, [n];\n"  \
	"{ .param .b32 x; .param .b32 y; st.param.b32 [x], %w1; " call " ld.param.b32 %w3, [y]; }\n"              \
	"mad.lo.u32 %w5, %w1, 3, %w3; st.param.b32 [r], %w5; ret;\n}\n"

static void check_round_about(const char *text)
{
	uint32_t f[10] = { 1 }, *out = run_words(text, 2, 40);
	for (uint32_t n = 1; n < 10; n++)
		f[n] = 2 * (f[n - 1] + 3 * (n - 1)) + n;
	for (uint32_t t = 0; t < 80; t++)
		ck_assert_uint_eq(out[t], f[t % 40 % 10] + 3 * (t % 40 % 10));
	device_reset();
}

START_TEST(functions_that_call_each_other_keep_their_registers)
{
	use_isa(_i);
	check_round_about(ROUND_ABOUT("call (y), f, (x);") KERNEL("",
		"rem.u32 %w1, %i2, 10; { .param .b32 x; .param .b32 y; st.param.b32 [x], %w1; call (y), g, (x); "
		"ld.param.b32 %w0, [y]; }"));
}
END_TEST

START_TEST(a_recursion_without_end_overflows_the_stack)
{
	/* Neither function has a frame of its own. */
	uint32_t *out = device_alloc(4 * 64);
	use_isa(_i);
	ck_assert_int_eq(run_ptx(".func g();\n.func f()\n{ call g; ret; }\n.func g()\n{ call f; ret; }\n"
				 KERNEL("", "call f; mov.b32 %w0, 1;"), 1, 64, &out), CUDA_ERROR_HARDWARE_STACK_ERROR);
}
END_TEST

#define CHAIN 20000
#define SMALL_STACK ((size_t)128 << 10)

static void *load_and_unload(void *text)
{
	softgpu_program_unload(load_ptx(text));
	return NULL;
}

START_TEST(a_thread_with_a_small_stack_loads_a_long_chain_of_calls)
{
	static const char head[] = ".func f0()\n{\nret;\n}\n", tail[] = ".visible .entry k()\n{\ncall f%d; ret;\n}\n";
	size_t room = sizeof head + sizeof tail + (size_t)CHAIN * 64, used;
	char *text = malloc(room);
	ck_assert_ptr_nonnull(text);
	used = (size_t)snprintf(text, room, "%s", head);
	for (int n = 1; n < CHAIN; n++)
		used += (size_t)snprintf(text + used, room - used, ".func f%d()\n{\ncall f%d; ret;\n}\n", n, n - 1);
	snprintf(text + used, room - used, tail, CHAIN - 1);
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	ck_assert_int_eq(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
	ck_assert_int_eq(pthread_create(&thread, &attributes, load_and_unload, text), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	free(text);
}
END_TEST

START_TEST(a_cycle_of_calls_may_go_through_a_pointer)
{
	use_isa(_i);
	/* Only the kernel takes the function's address. */
	check_round_about(ROUND_ABOUT("ld.volatile.global.u64 %a1, [pointer]; "
				      "P: .callprototype (.param .b32 _) _ (.param .b32 _); call (y), %a1, (x), P;") KERNEL("",
		"mov.u64 %a3, f; st.volatile.global.u64 [pointer], %a3; rem.u32 %w1, %i2, 10; "
		"{ .param .b32 x; .param .b32 y; st.param.b32 [x], %w1; call (y), g, (x); ld.param.b32 %w0, [y]; }"));
}
END_TEST

START_TEST(calls_through_pointers_go_where_each_lane_points)
{
	use_isa(_i);
	uint32_t *out = run_words(
		".func (.param .b32 r) twice(.param .b32 n) { .reg .b32 %w<3>; ld.param.b32 %w1, [n]; "
		"shl.b32 %w1, %w1, 1; st.param.b32 [r], %w1; ret; }\n"
		".func (.param .b32 r) square(.param .b32 n) { .reg .b32 %w<3>; ld.param.b32 %w1, [n]; "
		"mul.lo.u32 %w1, %w1, %w1; st.param.b32 [r], %w1; ret; }\n"
		".global .align 8 .u64 table[2] = { twice, square };\n"
		KERNEL(".reg .b64 %f<4>;",
		"and.b32 %w1, %i2, 1; mul.wide.u32 %f1, %w1, 8; mov.u64 %f2, table; add.u64 %f2, %f2, %f1; "
		"ld.global.u64 %f3, [%f2];\n"
		"{ .param .b32 x; .param .b32 y; st.param.b32 [x], %i2; "
		"P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (y), %f3, (x), P; ld.param.b32 %w0, [y]; }"), 1, 64);
	for (uint32_t t = 0; t < 64; t++)
		ck_assert_uint_eq(out[t], t & 1 ? t * t : 2 * t);
}
END_TEST

START_TEST(barriers_order_shared_memory)
{
	use_isa(_i);
	/* Reverses the block, twice over, through shared memory. */
	uint32_t *out = run_words(".extern .shared .align 16 .b8 none[];\n" KERNEL(
		".shared .align 4 .b8 row[4096]; .reg .b32 %s<4>;",
		"mov.b32 %s1, row; shl.b32 %s2, %i2, 2; add.u32 %s1, %s1, %s2; st.shared.u32 [%s1], %i5; bar.sync 0;\n"
		"sub.u32 %w1, %i4, %i2; sub.u32 %w1, %w1, 1; shl.b32 %w1, %w1, 2; mov.b32 %w2, row; "
		"add.u32 %w2, %w2, %w1;\n"
		"ld.shared.u32 %w0, [%w2]; bar.sync 0; st.shared.u32 [%s1], %w0; barrier.sync 0; "
		"ld.shared.u32 %w3, [%w2];\n"
		"mad.lo.u32 %w0, %w3, 10000, %w0;"), 3, 200);
	for (uint32_t b = 0; b < 3; b++)
		for (uint32_t t = 0; t < 200; t++)
			ck_assert_uint_eq(out[b * 200 + t], (b * 200 + t) * 10000 + b * 200 + 199 - t);
}
END_TEST

START_TEST(exited_threads_are_not_waited_for)
{
	use_isa(_i);
	uint32_t *out = run_words(KERNEL("", "mov.b32 %w0, 7; st.global.b32 [%a2], %w0; setp.gt.u32 %p1, %i2, 40; "
		"@%p1 exit; bar.sync 0; mov.b32 %w0, 8;"),
			    1, 128);
	for (uint32_t t = 0; t < 128; t++)
		ck_assert_uint_eq(out[t], t > 40 ? 7 : 8);
}
END_TEST

START_TEST(barriers_reduce_predicates)
{
	use_isa(_i);
	uint32_t *out = run_words(KERNEL("",
		"rem.u32 %w1, %i2, 3; setp.eq.u32 %p1, %w1, 0; bar.red.popc.u32 %w2, 0, %p1; "
		"bar.red.and.pred %p2, 1, %p1;\n"
		"bar.red.or.pred %p3, 2, %p1; selp.u32 %w3, 1000, 0, %p2; selp.u32 %w4, 2000, 0, %p3; "
		"add.u32 %w0, %w2, %w3; add.u32 %w0, %w0, %w4;"),
		1, 100);
	for (uint32_t t = 0; t < 100; t++)
		ck_assert_uint_eq(out[t], 2034);
}
END_TEST

START_TEST(a_barrier_with_a_count_takes_in_a_last_warp_that_is_not_full)
{
	use_isa(_i);
	/* The lanes that are not there count as arrived, but bring no false. */
	uint32_t *out = run_words(KERNEL("",
		"setp.lt.u32 %p1, %i2, 48; setp.lt.u32 %p2, %i2, 47; bar.red.and.pred %p3, 1, 64, %p1; "
		"bar.red.and.pred %p4, 1, 64, %p2; bar.red.popc.u32 %w1, 1, 64, %p2;\n"
		"selp.u32 %w2, 100, 0, %p3; selp.u32 %w3, 1000, 0, %p4; add.u32 %w0, %w1, %w2; "
		"add.u32 %w0, %w0, %w3;"),
		1, 48);
	for (uint32_t t = 0; t < 48; t++)
		ck_assert_uint_eq(out[t], 147);
}
END_TEST

START_TEST(warps_pair_up_at_named_barriers)
{
	use_isa(_i);
	uint32_t *out = run_words(".shared .align 4 .u32 cell[2];\n" KERNEL("",
		"shr.u32 %w1, %i2, 6; mov.b32 %w5, cell; shl.b32 %w6, %w1, 2; add.u32 %w5, %w5, %w6; "
		"add.u32 %w7, %w1, 1;\n"
		"and.b32 %w2, %i2, 63; setp.ge.u32 %p1, %w2, 32; @%p1 bra TAKE;\n"
		"st.shared.u32 [%w5], %w7; bar.arrive %w7, 64; mov.b32 %w0, 0; bra END;\n"
		"TAKE: bar.sync %w7, 64; ld.shared.u32 %w0, [%w5]; END:"), 1, 128);
	for (uint32_t t = 0; t < 128; t++)
		ck_assert_uint_eq(out[t], t % 64 < 32 ? 0 : t / 64 + 1);
}
END_TEST

START_TEST(shuffles_read_the_lane_they_name)
{
	use_isa(_i);
	uint32_t *out = run_words(KERNEL("",
		"mul.lo.u32 %w1, %i2, 3; shfl.sync.down.b32 %w2|%p1, %w1, 5, 0x1f, -1; "
		"shfl.sync.up.b32 %w3, %w1, 2, 0x1000, -1;\n"
		"shfl.sync.bfly.b32 %w4, %w1, 16, 0x1f, -1; shfl.sync.idx.b32 %w5, %w1, 9, 0x181f, -1;\n"
		"selp.u32 %w6, 1, 0, %p1; mad.lo.u32 %w0, %w2, 128, %w3; mad.lo.u32 %w0, %w0, 128, %w4; "
		"mad.lo.u32 %w0, %w0, 128, %w5;\n"
		"xor.b32 %w0, %w0, %w6;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++) {
		uint32_t down = t + 5 <= 31 ? t + 5 : t, up = t % 16 >= 2 ? t - 2 : t, fly = t ^ 16,
			 index = (t & 24) | (9 & 7);
		uint32_t want = ((down * 3 * 128 + up * 3) * 128 + fly * 3) * 128 + index * 3;
		ck_assert_uint_eq(out[t], want ^ (t + 5 <= 31));
	}
}
END_TEST

START_TEST(a_shuffle_from_a_lane_that_is_not_there_gives_zero)
{
	use_isa(_i);
	/* The last warp has 20 lanes, and of the first one the odd lanes take another way. */
	uint32_t *out = run_words(KERNEL("",
		"add.u32 %w1, %i2, 100; mov.b32 %w0, 7; and.b32 %w2, %i2, 1; setp.ne.u32 %p1, %w2, 0; "
		"setp.lt.u32 %p2, %i2, 32; and.pred %p3, %p1, %p2; @%p3 bra END; activemask.b32 %w3;\n"
		"shfl.sync.down.b32 %w0|%p4, %w1, 1, 0x1f, %w3; @%p4 bra END; add.u32 %w0, %w0, 5000; END:"),
		1, 52);
	for (uint32_t t = 0; t < 52; t++) {
		uint32_t want = t < 32 ? (t & 1 ? 7 : 0) : t < 51 ? t + 101 : 0;
		ck_assert_uint_eq(out[t], want);
	}
}
END_TEST

START_TEST(a_loop_of_one_block_keeps_what_its_last_turn_wrote)
{
	use_isa(_i);
	/* %w6 and, under a guard, %w8: only the loop names them, first to read; the others' rows are not theirs. */
	uint32_t *out = run_words(KERNEL("",
		"mov.b32 %w0, 0; mov.b32 %w5, 0;\n"
		"LOOP: mul.lo.u32 %w10, %w5, 1000; add.u32 %w11, %w10, %i2; setp.eq.u32 %p1, %w5, 0; "
		"selp.b32 %w7, 5, %w6, %p1; add.u32 %w0, %w0, %w7; mov.b32 %w6, %w11;\n"
		"add.u32 %w5, %w5, 1; xor.b32 %w12, %w5, 3; add.u32 %w13, %w12, %w12; add.u32 %w0, %w0, %w13; "
		"@%p1 mov.b32 %w8, %w13; add.u32 %w0, %w0, %w8; add.u32 %w14, %w5, 0; setp.lt.u32 %p2, %w14, 4; "
		"@%p2 bra LOOP;"), 1, 40);
	for (uint32_t t = 0; t < 40; t++) {
		uint32_t want = 0, last = 5, first = 0;
		for (uint32_t turn = 0; turn < 4; turn++) {
			uint32_t doubled = ((turn + 1) ^ 3) * 2;
			first = turn == 0 ? doubled : first;
			want += last + doubled + first;
			last = turn * 1000 + t;
		}
		ck_assert_uint_eq(out[t], want);
	}
}
END_TEST

START_TEST(collectives_wait_for_lanes_that_took_another_way)
{
	use_isa(_i);
	/* Both ways come to the same vote through code of different length. */
	uint32_t *out = run_words(KERNEL("",
		"setp.lt.u32 %p1, %i2, 9; mov.b32 %w1, 0; @!%p1 bra GO; SLOW: add.u32 %w1, %w1, 1; "
		"setp.lt.u32 %p2, %w1, 50; @%p2 bra SLOW;\n"
		"GO: setp.gt.u32 %p3, %i2, 3; vote.sync.ballot.b32 %w2, %p3, -1; "
		"vote.sync.any.pred %p4, %p1, -1; vote.sync.all.pred %p5, %p3, -1;\n"
		"selp.u32 %w3, 1, 0, %p4; selp.u32 %w4, 2, 0, %p5; xor.b32 %w0, %w2, %w3; "
		"xor.b32 %w0, %w0, %w4;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], 0xfffffff0 ^ 1);
}
END_TEST

START_TEST(matches_and_reductions_see_their_members)
{
	use_isa(_i);
	uint32_t *out = run_words(KERNEL("",
		"shr.u32 %w1, %i2, 3; match.any.sync.b32 %w2, %w1, -1; redux.sync.add.s32 %w3, %i2, -1; "
		"match.all.sync.b32 %w4|%p1, %w3, -1;\n"
		"selp.u32 %w5, 1, 0, %p1; add.u32 %w0, %w2, %w3; add.u32 %w0, %w0, %w4; "
		"add.u32 %w0, %w0, %w5;"), 1, 32);
	for (uint32_t t = 0; t < 32; t++)
		ck_assert_uint_eq(out[t], (0xffu << (t / 8 * 8)) + 496 + 0xffffffff + 1);
}
END_TEST

START_TEST(bit_fields_carries_and_lookups)
{
	use_isa(_i);
	uint32_t *out = run_words(KERNEL(".reg .b32 %c<9>;",
		"bfi.b32 %w1, %i2, 0xffffffff, 8, 6; lop3.b32 %w2, %i2, 0x33, 0x0f, 0xe8; mov.b32 %c1, 0xfffffff0;\n"
		"add.cc.u32 %w3, %c1, %i2; addc.u32 %w4, 0, 0; sub.cc.u32 %w5, %i2, 7; subc.u32 %w6, 0, 0; "
		"xor.b32 %w0, %w1, %w2;\n"
		"mad.lo.u32 %w0, %w4, 3, %w0; mad.lo.u32 %w0, %w6, 5, %w0;"), 1, 64);
	for (uint32_t t = 0; t < 64; t++) {
		uint32_t field = (0xffffffff & ~0x3f00u) | (t & 63) << 8,
			 majority = (t & 0x33) | (t & 0x0f) | (0x33 & 0x0f);
		ck_assert_uint_eq(out[t], (field ^ majority) + 3 * (t >= 16) - 5 * (t < 7));
	}
}
END_TEST

START_TEST(a_barrier_that_cannot_complete_ends_the_launch)
{
	uint32_t *out = device_alloc(4096);
	setenv("HEADRACE_LOG", "error", 1);
	ck_assert_int_eq(run_ptx(KERNEL("", "bar.sync 1, 128;"), 1, 64, &out), CUDA_ERROR_LAUNCH_FAILED);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		nested_branches_reach_every_lane,
		each_lane_turns_its_own_number_of_times,
		lanes_meet_again_after_a_branch,
		a_spin_lock_inside_a_warp_is_released,
		a_warp_that_waits_for_another_gets_its_value,
		jump_tables_send_each_lane_its_way,
		recursive_calls_keep_their_own_registers,
		functions_that_call_each_other_keep_their_registers,
		a_recursion_without_end_overflows_the_stack,
		a_cycle_of_calls_may_go_through_a_pointer,
		calls_through_pointers_go_where_each_lane_points,
		barriers_order_shared_memory,
		exited_threads_are_not_waited_for,
		barriers_reduce_predicates,
		a_barrier_with_a_count_takes_in_a_last_warp_that_is_not_full,
		warps_pair_up_at_named_barriers,
		shuffles_read_the_lane_they_name,
		a_shuffle_from_a_lane_that_is_not_there_gives_zero,
		a_loop_of_one_block_keeps_what_its_last_turn_wrote,
		collectives_wait_for_lanes_that_took_another_way,
		matches_and_reductions_see_their_members,
		bit_fields_carries_and_lookups,
	};
	TCase *cases = test_case("ptx control");
	for (size_t n = 0; n < sizeof tests / sizeof *tests; n++)
		tcase_add_loop_test(cases, tests[n], 0, ISAS);
	tcase_add_test(cases, a_barrier_that_cannot_complete_ends_the_launch);
	tcase_add_test(cases, a_thread_with_a_small_stack_loads_a_long_chain_of_calls);
	return run_tests();
}
