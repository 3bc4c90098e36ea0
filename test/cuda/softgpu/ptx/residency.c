/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks that wait for each other in an ordinary launch: as many as the occupancy model promises make progress, in rings,
 * chains and grid barriers that programs make by hand, on fewer threads than there are blocks.
 */
#include "test/cuda/softgpu/ptx/engine.h"

#include "rdma_channel/base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Every kernel: %a1 the parameter, words of 32 bits; %i1 the thread, %i2 the block, %i3 the number of blocks, %p1 whether
 * the thread is not the block's first. The first word is for the host, the others belong to one block each.
 */
#define KERNEL(body)                                                                                               \
	".visible .entry k(.param .u64 words)\n{\n"                                                               \
	".reg .pred %p<8>; .reg .b32 %w<16>; .reg .b64 %a<8>; .reg .b32 %i<8>;\n"                                  \
	"ld.param.u64 %a1, [words]; mov.u32 %i1, %tid.x; mov.u32 %i2, %ctaid.x; mov.u32 %i3, %nctaid.x;\n"         \
	"setp.ne.u32 %p1, %i1, 0; mul.wide.u32 %a2, %i2, 4; add.u64 %a2, %a2, %a1;\n" body "\nret;\n}\n"

/* Each block waits for the token of the one before it, three times around; block 0 makes it. */
static const char ring[] = KERNEL(
	"add.u32 %w1, %i2, 1; rem.u32 %w1, %w1, %i3; mul.wide.u32 %a3, %w1, 4; add.u64 %a3, %a3, %a1; mov.u32 %w2, %i2;\n"
	"mov.u32 %w5, 0; setp.eq.u32 %p2, %i2, 0; @%p1 bra NEXT; @%p2 bra PASS;\n"
	"WAIT: ld.volatile.global.u32 %w3, [%a2+4]; setp.ne.u32 %p3, %w3, %w2; @%p3 bra WAIT;\n"
	"PASS: add.u32 %w4, %w2, 1; fence.acq_rel.gpu; st.volatile.global.u32 [%a3+4], %w4; add.u32 %w2, %w2, %i3;\n"
	"NEXT: bar.sync 0; add.u32 %w5, %w5, 1; setp.ge.u32 %p4, %w5, 3; @%p4 bra END; @%p1 bra NEXT; bra WAIT;\n"
	"END:");

/* Each thread waits for the block behind its own, and the first one then lets the block before it go. */
static const char chain[] = KERNEL(
	"sub.u32 %w1, %i3, 1; setp.eq.u32 %p2, %i2, %w1; mov.u32 %w2, 1000; @%p2 bra GO;\n"
	"WAIT: ld.acquire.gpu.global.u32 %w2, [%a2+8]; setp.eq.u32 %p3, %w2, 0; @%p3 bra WAIT;\n"
	"GO: bar.sync 0; add.u32 %w2, %w2, 1; @!%p1 st.release.gpu.global.u32 [%a2+4], %w2;");

/* A barrier of the grid, four times: each block's word must be there behind it. 7 in the first word says it was not. */
static const char barrier[] = ".global .u32 arrived;\n" KERNEL(
	"mov.u32 %w1, 0; mov.u32 %w2, 0; add.u32 %w6, %i2, %i1; rem.u32 %w6, %w6, %i3; mul.wide.u32 %a3, %w6, 4;\n"
	"add.u64 %a3, %a3, %a1;\n"
	"ROUND: add.u32 %w1, %w1, 1; add.u32 %w2, %w2, %i3; @!%p1 st.volatile.global.u32 [%a2+4], %w1; bar.sync 0;\n"
	"@%p1 bra MET; fence.sc.gpu; atom.global.add.u32 %w3, [arrived], 1;\n"
	"WAIT: atom.global.add.u32 %w3, [arrived], 0; setp.lt.u32 %p2, %w3, %w2; @%p2 bra WAIT; fence.sc.gpu;\n"
	"MET: bar.sync 0; ld.volatile.global.u32 %w4, [%a3+4]; setp.lt.u32 %p3, %w4, %w1; mov.u32 %w5, 7;\n"
	"@%p3 st.volatile.global.u32 [%a1], %w5; setp.lt.u32 %p4, %w1, 4; @%p4 bra ROUND;");

/* Chains whose loops also count, sleep, call, or meet at barriers while they wait. */
static const char counting_chain[] = KERNEL(
	"sub.u32 %w1, %i3, 1; setp.eq.u32 %p2, %i2, %w1; mov.u32 %w2, 1000; mov.u32 %w3, 0; @%p2 bra GO;\n"
	"WAIT: add.u32 %w3, %w3, 1; ld.acquire.gpu.global.u32 %w2, [%a2+8]; setp.eq.u32 %p3, %w2, 0; @%p3 bra WAIT;\n"
	"GO: bar.sync 0; add.u32 %w2, %w2, 1; @!%p1 st.release.gpu.global.u32 [%a2+4], %w2;");
static const char sleeping_chain[] = KERNEL(
	"sub.u32 %w1, %i3, 1; setp.eq.u32 %p2, %i2, %w1; mov.u32 %w2, 1000; @%p2 bra GO;\n"
	"WAIT: nanosleep.u32 100; ld.acquire.gpu.global.u32 %w2, [%a2+8]; setp.eq.u32 %p3, %w2, 0; @%p3 bra WAIT;\n"
	"GO: bar.sync 0; add.u32 %w2, %w2, 1; @!%p1 st.release.gpu.global.u32 [%a2+4], %w2;");
static const char calling_chain[] =
	".func (.param .u32 result) look(.param .u64 at)\n{\n.reg .b32 %w<3>; .reg .b64 %a<3>; ld.param.u64 %a1, [at]; "
	"ld.volatile.u32 %w1, [%a1]; st.param.u32 [result], %w1; ret;\n}\n" KERNEL(
	"sub.u32 %w1, %i3, 1; setp.eq.u32 %p2, %i2, %w1; mov.u32 %w2, 1000; add.u64 %a3, %a2, 8; @%p2 bra GO;\n"
	"WAIT: { .param .u64 at; .param .u32 result; st.param.u64 [at], %a3; call (result), look, (at); "
	"ld.param.u32 %w2, [result]; } setp.eq.u32 %p3, %w2, 0; @%p3 bra WAIT;\n"
	"GO: bar.sync 0; add.u32 %w2, %w2, 1; @!%p1 st.release.gpu.global.u32 [%a2+4], %w2;");
static const char meeting_chain[] = ".shared .u32 seen;\n" KERNEL(
	"sub.u32 %w1, %i3, 1; setp.eq.u32 %p2, %i2, %w1; mov.u32 %w2, 1000; @%p2 bra GO;\n"
	"WAIT: @%p1 bra MEET; ld.acquire.gpu.global.u32 %w2, [%a2+8]; st.shared.u32 [seen], %w2;\n"
	"MEET: bar.sync 0; ld.shared.u32 %w2, [seen]; bar.sync 0; setp.eq.u32 %p3, %w2, 0; @%p3 bra WAIT;\n"
	"GO: add.u32 %w2, %w2, 1; @!%p1 st.release.gpu.global.u32 [%a2+4], %w2;");

/* A chain in which the last lane of each warp waits. Behind the loop the warp adds up its lanes' values in shared memory without
 * a barrier, as programs do that count on lanes that have met again. */
static const char adding_chain[] = ".shared .align 4 .b8 sums[4096];\n" KERNEL(
	"sub.u32 %w1, %i3, 1; setp.eq.u32 %p2, %i2, %w1; and.b32 %w5, %i1, 31; setp.ne.u32 %p3, %w5, 31; mov.u32 %w2, 0;\n"
	"@%p3 bra MEET; mov.u32 %w2, 1000; @%p2 bra MEET;\n"
	"WAIT: ld.volatile.global.u32 %w2, [%a2+8]; setp.eq.u32 %p3, %w2, 0; @%p3 bra WAIT;\n"
	"MEET: mov.u32 %w3, sums; shl.b32 %w4, %i1, 2; add.u32 %w3, %w3, %w4; st.volatile.shared.u32 [%w3], %w2;\n"
	"mov.u32 %w6, 16;\n"
	"ADD: setp.ge.u32 %p4, %w5, %w6; shl.b32 %w7, %w6, 2; add.u32 %w7, %w3, %w7; @%p4 bra ADDED;\n"
	"ld.volatile.shared.u32 %w8, [%w7]; add.u32 %w2, %w2, %w8; st.volatile.shared.u32 [%w3], %w2;\n"
	"ADDED: shr.u32 %w6, %w6, 1; setp.ne.u32 %p5, %w6, 0; @%p5 bra ADD;\n"
	"add.u32 %w2, %w2, 1; fence.acq_rel.gpu; @!%p1 st.volatile.global.u32 [%a2+4], %w2;");

/* The lanes of each warp enter one after the other: the word is a lock for all of the grid. */
static const char locking[] = ".global .u32 lock;\n" KERNEL(
	"mov.u32 %w2, 0;\n"
	"SPIN: @@ atom.global.cas.b32 %w1, [lock], 0, 1; setp.ne.u32 %p2, %w1, 0; @%p2 bra SPIN;\n"
	"fence.acq_rel.gpu; ld.volatile.global.u32 %w3, [%a1]; add.u32 %w3, %w3, 1; st.volatile.global.u32 [%a1], %w3;\n"
	"fence.acq_rel.gpu; atom.global.exch.b32 %w1, [lock], 0;");

/* Each block writes the number of its multiprocessor, waits until all blocks have done so, and traps if the number has
 * changed. */
static const char placed[] = KERNEL(
	"@%p1 bra END; mov.u32 %w1, %smid; st.global.u32 [%a2+4], %w1; atom.global.add.u32 %w2, [%a1], 1;\n"
	"WAIT: ld.volatile.global.u32 %w2, [%a1]; setp.lt.u32 %p2, %w2, %i3; @%p2 bra WAIT;\n"
	"mov.u32 %w3, %smid; setp.ne.u32 %p3, %w1, %w3; @%p3 trap; mov.u32 %w4, %nsmid; setp.ge.u32 %p4, %w1, %w4;\n"
	"@%p4 trap; END:");

static const uint32_t block_sizes[] = { 32, 256, 1024 };
static const unsigned thread_counts[] = { 1, 2, 4 };
#define SHAPES (ISAS * 9)

static void use_threads(unsigned threads)
{
	char text[16];
	snprintf(text, sizeof text, "%u", threads);
	setenv("HEADRACE_SOFTGPU_THREADS", text, 1);
}

static uint32_t resident_blocks(const softgpu_kernel_t *kernel, uint32_t threads)
{
	softgpu_kernel_info_t info;
	softgpu_kernel_info(kernel, &info);
	return softgpu_occupancy(&info, threads, 0) * softgpu_threads();
}

/* Runs the kernel with as many blocks as occupancy promises; their words. *blocks: how many. */
static uint32_t *run_full(const char *text, uint32_t threads, uint32_t *blocks)
{
	softgpu_program_t *program = load_ptx(text);
	softgpu_kernel_t *kernel = kernel_of(program, "k");
	*blocks = resident_blocks(kernel, threads);
	ck_assert_uint_gt(*blocks, softgpu_threads());
	uint32_t *words = device_alloc((*blocks + 2) * sizeof *words);
	ck_assert_int_eq(launch_1d(kernel, *blocks, threads, &words), CUDA_SUCCESS);
	softgpu_program_unload(program);
	return words;
}

/* One of the shapes: its instruction set and threads are used from now on, its block size is returned. */
static uint32_t use_shape(int shape)
{
	use_isa(shape / 9);
	use_threads(thread_counts[shape / 3 % 3]);
	return block_sizes[shape % 3];
}

START_TEST(blocks_of_a_ring_pass_a_token_on)
{
	uint32_t blocks, threads = use_shape(_i), *words = run_full(ring, threads, &blocks);
	for (uint32_t n = 0; n < blocks; n++)
		ck_assert_uint_eq(words[1 + n], n ? 2 * blocks + n : 3 * blocks);
}
END_TEST

static void check_chain(const char *text, uint32_t threads)
{
	uint32_t blocks, *words = run_full(text, threads, &blocks);
	for (uint32_t n = 0; n < blocks; n++)
		ck_assert_uint_eq(words[1 + n], 1000 + blocks - n);
}

START_TEST(blocks_of_a_chain_wait_for_the_last_one)
{
	check_chain(chain, use_shape(_i));
}
END_TEST

START_TEST(blocks_meet_at_a_barrier_of_the_grid)
{
	uint32_t blocks, threads = use_shape(_i), *words = run_full(barrier, threads, &blocks);
	ck_assert_uint_eq(words[0], 0);
	for (uint32_t n = 0; n < blocks; n++)
		ck_assert_uint_eq(words[1 + n], 4);
}
END_TEST

START_TEST(blocks_may_wait_in_loops_of_any_kind)
{
	static const char *const chains[] = { counting_chain, sleeping_chain, calling_chain, meeting_chain };
	use_threads(2);
	check_chain(chains[_i / 2], _i % 2 ? 1024 : 256);
}
END_TEST

START_TEST(lanes_meet_again_behind_a_loop_that_waits_for_blocks)
{
	check_chain(adding_chain, use_shape(_i));
}
END_TEST

START_TEST(lanes_of_a_warp_take_turns_at_a_lock)
{
	/* A loop that only looks, and one whose state never repeats. Lanes go ahead sooner or later, and later launches of the kernel
	 * need not find that out again. */
	static const char *const loops[] = { "", "add.u32 %w2, %w2, 1;" };
	const char *place = strstr(locking, "@@");
	char text[2048];
	snprintf(text, sizeof text, "%.*s%s%s", (int)(place - locking), locking, loops[_i], place + 2);
	use_threads(2);
	softgpu_program_t *program = load_ptx(text);
	softgpu_kernel_t *kernel = kernel_of(program, "k");
	uint32_t *words = device_alloc(sizeof *words);
	for (int n = 0; n < 20; n++)
		ck_assert_int_eq(launch_1d(kernel, 3, 64, &words), CUDA_SUCCESS);
	ck_assert_uint_eq(words[0], 20 * 3 * 64);
	softgpu_program_unload(program);
}
END_TEST

START_TEST(blocks_wait_for_earlier_ones_in_a_grid_of_any_size)
{
	/* Eight times what is resident: each block waits for the one before it. */
	uint32_t *words = device_alloc(5000 * sizeof *words);
	use_threads(2);
	ck_assert_int_eq(run_ptx(KERNEL(
		"setp.eq.u32 %p2, %i2, 0; mov.u32 %w2, 0; @%p2 bra GO;\n"
		"WAIT: ld.acquire.gpu.global.u32 %w2, [%a2]; setp.eq.u32 %p3, %w2, 0; @%p3 bra WAIT;\n"
		"GO: bar.sync 0; add.u32 %w2, %w2, 1; @!%p1 st.release.gpu.global.u32 [%a2+4], %w2;"), 512, 64, &words),
		CUDA_SUCCESS);
	for (uint32_t n = 0; n < 512; n++)
		ck_assert_uint_eq(words[1 + n], n + 1);
}
END_TEST

/* ---- a grid that is too large */

/* How fast the engine's clock goes. The blocks spin until the report comes, which takes 10 s of this clock. */
static int clock_rate = 1;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int status = __real_clock_gettime(clock, time);
	if (clock == CLOCK_MONOTONIC) {
		int64_t ns = (time->tv_sec * INT64_C(1000000000) + time->tv_nsec) * clock_rate;
		time->tv_sec = ns / 1000000000;
		time->tv_nsec = ns % 1000000000;
	}
	return status;
}

static struct {
	uint32_t *words;
	char text[512];
} reported;

static void keep_report(enum hr_log_level level, const char *text, size_t length)
{
	if (level > HR_LOG_WARN || length >= sizeof reported.text)
		return;
	memcpy(reported.text, text, length);
	reported.text[length] = 0;
	/* The kernel's blocks wait for this word, too. */
	__atomic_store_n(&reported.words[0], 1, __ATOMIC_RELEASE);
}

START_TEST(each_multiprocessor_has_the_blocks_that_fit_there)
{
	uint32_t blocks, threads = thread_counts[_i], loads[4] = { 0 };
	use_threads(threads);
	uint32_t *words = run_full(placed, 256, &blocks);
	for (uint32_t b = 0; b < blocks; b++)
		loads[words[b + 1]]++;
	for (uint32_t n = 0; n < threads; n++)
		ck_assert_uint_eq(loads[n], blocks / threads);
}
END_TEST

START_TEST(blocks_of_a_small_grid_are_on_different_multiprocessors)
{
	use_threads(4);
	uint32_t *words = device_alloc(5 * sizeof *words);
	ck_assert_int_eq(run_ptx(KERNEL("mov.u32 %w1, %smid; st.global.u32 [%a2], %w1;"), 4, 32, &words), CUDA_SUCCESS);
	for (uint32_t b = 0; b < 4; b++)
		ck_assert_uint_eq(words[b], b);
}
END_TEST

START_TEST(a_grid_that_can_make_no_progress_is_reported)
{
	use_threads(2);
	softgpu_program_t *program = load_ptx(KERNEL(
		"sub.u32 %w1, %i3, 1; setp.eq.u32 %p2, %i2, %w1; @%p2 bra GO;\n"
		"WAIT: ld.acquire.gpu.global.u32 %w2, [%a2+8]; ld.volatile.global.u32 %w3, [%a1]; or.b32 %w2, %w2, %w3; "
		"setp.eq.u32 %p3, %w2, 0; @%p3 bra WAIT;\n"
		"GO: bar.sync 0; mov.u32 %w2, 1; @!%p1 st.release.gpu.global.u32 [%a2+4], %w2;"));
	softgpu_kernel_t *kernel = kernel_of(program, "k");
	uint32_t resident = resident_blocks(kernel, 256);
	reported.words = device_alloc((resident + 3) * sizeof(uint32_t));
	hr_log_set_tap(keep_report);
	clock_rate = 20;
	ck_assert_int_eq(launch_1d(kernel, resident + 1, 256, &reported.words), CUDA_SUCCESS);
	clock_rate = 1;
	hr_log_set_tap(NULL);
	char want[96];
	snprintf(want, sizeof want, "kernel k: %u of the grid's %u blocks are resident", resident, resident + 1);
	ck_assert_msg(strstr(reported.text, want) != NULL, "reported: %s", reported.text);
	softgpu_program_unload(program);
}
END_TEST

START_TEST(idle_grids_are_found_without_a_clock)
{
	/* Lanes go ahead because all blocks are idle: the clock stands still. */
	softgpu_program_t *program;
	uint32_t *words = device_alloc(sizeof *words);
	char text[2048];
	const char *place = strstr(locking, "@@");
	snprintf(text, sizeof text, "%.*s%s", (int)(place - locking), locking, place + 2);
	use_threads(2);
	program = load_ptx(text);
	softgpu_launch_t launch = { .kernel = kernel_of(program, "k"), .grid = { 3, 1, 1 }, .block = { 64, 1, 1 },
				    .parameters = &words, .cooperative = true };
	clock_rate = 0;
	ck_assert_int_eq(softgpu_launch(&launch), CUDA_SUCCESS);
	clock_rate = 1;
	ck_assert_uint_eq(words[0], 3 * 64);
	softgpu_program_unload(program);
}
END_TEST

int main(void)
{
	TCase *cases = test_case("ptx residency");
	tcase_add_loop_test(cases, blocks_of_a_ring_pass_a_token_on, 0, SHAPES);
	tcase_add_loop_test(cases, blocks_of_a_chain_wait_for_the_last_one, 0, SHAPES);
	tcase_add_loop_test(cases, blocks_meet_at_a_barrier_of_the_grid, 0, SHAPES);
	tcase_add_loop_test(cases, blocks_may_wait_in_loops_of_any_kind, 0, 8);
	tcase_add_loop_test(cases, lanes_meet_again_behind_a_loop_that_waits_for_blocks, 0, SHAPES);
	tcase_add_loop_test(cases, lanes_of_a_warp_take_turns_at_a_lock, 0, 2);
	tcase_add_test(cases, blocks_wait_for_earlier_ones_in_a_grid_of_any_size);
	tcase_add_loop_test(cases, each_multiprocessor_has_the_blocks_that_fit_there, 0, 3);
	tcase_add_test(cases, blocks_of_a_small_grid_are_on_different_multiprocessors);
	tcase_add_test(cases, idle_grids_are_found_without_a_clock);
	tcase_add_test(cases, a_grid_that_can_make_no_progress_is_reported);
	return run_tests();
}
