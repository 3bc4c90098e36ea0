/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters of several blocks: their registers, their barrier, and the shared memory of the other blocks. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdio.h>
#include <string.h>

#define REGISTERS ".reg .pred %p<16>; .reg .b16 %h<4>; .reg .b32 %w<40>; .reg .f32 %f<4>; .reg .b64 %a<16>;"
/*
 * k(out): %w1 the thread, %w2 the rank, %w3 the number of ranks, %w4 the tile, %w5 the thread's word in it, %a1 the
 * thread's word in out, by block in x and thread; the body leaves its result in %w0.
 */
#define KERNEL_WITH(directives, body)                                                                             \
	".visible .entry k(.param .u64 out) " directives "\n{\n" REGISTERS                                         \
	" .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar[2];\n"                                      \
	"ld.param.u64 %a0, [out]; mov.u32 %w1, %tid.x; mov.u32 %w2, %cluster_ctarank; "                            \
	"mov.u32 %w3, %cluster_nctarank; mov.u32 %w4, tile; shl.b32 %w5, %w1, 2; add.u32 %w5, %w5, %w4; "          \
	"mov.u32 %w6, %ctaid.x; mov.u32 %w7, %ntid.x; mad.lo.u32 %w6, %w6, %w7, %w1; "                             \
	"mul.wide.u32 %a1, %w6, 4; add.u64 %a1, %a1, %a0; setp.eq.u32 %p1, %w1, 0; setp.eq.u32 %p2, %w2, 0;\n"     \
	body "\nst.global.b32 [%a1], %w0; ret;\n}\n"
#define KERNEL(body) KERNEL_WITH("", body)
#define BARRIER "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"

static CUresult launch_in(const char *text, const uint32_t grid[3], const uint32_t cluster[3], uint32_t threads, void *out)
{
	softgpu_program_t *program = load_ptx(text);
	softgpu_launch_t launch = { .kernel = kernel_of(program, "k"), .block = { threads, 1, 1 }, .parameters = &out };
	memcpy(launch.grid, grid, sizeof launch.grid);
	if (cluster)
		memcpy(launch.cluster, cluster, sizeof launch.cluster);
	CUresult result = softgpu_launch(&launch);
	softgpu_program_unload(program);
	return result;
}

/* Clusters of so many blocks along x. */
static CUresult run(const char *text, uint32_t blocks, uint32_t size, uint32_t threads, void *out)
{
	return launch_in(text, (uint32_t[]){ blocks, 1, 1 }, (uint32_t[]){ size, 1, 1 }, threads, out);
}

static uint32_t *run_well(const char *text, uint32_t blocks, uint32_t size, uint32_t threads)
{
	uint32_t *out = device_alloc((size_t)blocks * threads * 4);
	ck_assert_int_eq(run(text, blocks, size, threads, out), CUDA_SUCCESS);
	return out;
}

/* ---- registers */
START_TEST(registers_tell_the_place_in_the_cluster)
{
	static const uint32_t grid[3] = { 4, 6, 2 }, cluster[3] = { 2, 3, 1 };
	static const char text[] =
		".visible .entry k(.param .u64 out)\n{\n.reg .b32 %w<8>; .reg .b64 %a<4>; .reg .pred %p<2>;\n"
		"ld.param.u64 %a0, [out]; mov.u32 %w0, %ctaid.z; mov.u32 %w1, %ctaid.y; mad.lo.u32 %w0, %w0, 6, %w1; "
		"mov.u32 %w1, %ctaid.x; mad.lo.u32 %w0, %w0, 4, %w1; mul.wide.u32 %a1, %w0, 64; add.u64 %a0, %a0, %a1;\n"
#define PUT(offset, name) "mov.u32 %w1, " name "; st.global.u32 [%a0+" #offset "], %w1;\n"
		PUT(0, "%clusterid.x") PUT(4, "%clusterid.y") PUT(8, "%clusterid.z") PUT(12, "%nclusterid.x")
		PUT(16, "%nclusterid.y") PUT(20, "%nclusterid.z") PUT(24, "%cluster_ctaid.x") PUT(28, "%cluster_ctaid.y")
		PUT(32, "%cluster_ctaid.z") PUT(36, "%cluster_nctaid.x") PUT(40, "%cluster_nctaid.y")
		PUT(44, "%cluster_nctaid.z") PUT(48, "%cluster_ctarank") PUT(52, "%cluster_nctarank")
		"mov.pred %p0, %is_explicit_cluster; selp.u32 %w1, 1, 0, %p0; st.global.u32 [%a0+56], %w1;\n"
		PUT(60, "%cluster_ctaid.w") "ret;\n}\n";
	uint32_t *out = device_alloc(48 * 64);
	for (int given = 0; given < 2; given++) {
		const uint32_t one[3] = { 1, 1, 1 }, *c = given ? cluster : one;
		ck_assert_int_eq(launch_in(text, grid, given ? cluster : NULL, 1, out), CUDA_SUCCESS);
		for (uint32_t n = 0; n < 48; n++) {
			const uint32_t at[3] = { n % 4, n / 4 % 6, n / 24 };
			for (int i = 0; i < 3; i++) {
				ck_assert_uint_eq(out[n * 16 + i], at[i] / c[i]);
				ck_assert_uint_eq(out[n * 16 + 3 + i], grid[i] / c[i]);
				ck_assert_uint_eq(out[n * 16 + 6 + i], at[i] % c[i]);
				ck_assert_uint_eq(out[n * 16 + 9 + i], c[i]);
			}
			ck_assert_uint_eq(out[n * 16 + 12], at[0] % c[0] + at[1] % c[1] * c[0]);
			ck_assert_uint_eq(out[n * 16 + 13], given ? 6 : 1);
			ck_assert_uint_eq(out[n * 16 + 14], (uint32_t)given);
			ck_assert_uint_eq(out[n * 16 + 15], 0);
		}
	}
}
END_TEST

/* ---- shared memory of other blocks */

/* Each thread leaves 1000 * block + thread in its own block, then reads the same thread's word of a neighbour. */
#define FILL "mov.u32 %w8, %ctaid.x; mad.lo.u32 %w8, %w8, 1000, %w1; st.shared.u32 [%w5], %w8;\n" BARRIER
#define NEXT_RANK "add.u32 %w9, %w2, 1; rem.u32 %w9, %w9, %w3;\n"

START_TEST(blocks_read_each_others_shared_memory)
{
	static const char *const reads[] = {
		/* by shared address, constant distance, one lane, and generic address */
		NEXT_RANK "mapa.shared::cluster.u32 %w10, %w5, %w9; ld.shared::cluster.u32 %w0, [%w10];\n",
		NEXT_RANK "mapa.shared::cluster.u32 %w10, tile, %w9; sub.u32 %w11, %w5, %w4; add.u32 %w10, %w10, %w11; "
			  "sub.u32 %w10, %w10, 64; ld.shared::cluster.u32 %w0, [%w10+64];\n",
		NEXT_RANK "mapa.shared::cluster.u32 %w10, %w5, %w9; mov.u32 %w12, 0; "
			  "EACH: setp.ne.u32 %p3, %w12, %w1; @%p3 bra SKIP; ld.shared::cluster.u32 %w0, [%w10]; "
			  "SKIP: add.u32 %w12, %w12, 1; setp.lt.u32 %p3, %w12, 64; @%p3 bra EACH;\n",
		NEXT_RANK "cvt.u64.u32 %a2, %w5; cvta.shared.u64 %a2, %a2; mapa.u64 %a3, %a2, %w9; ld.u32 %w0, [%a3];\n",
		NEXT_RANK "cvt.u64.u32 %a2, %w5; cvta.shared.u64 %a2, %a2; mapa.u64 %a3, %a2, %w9; "
			  "cvta.to.shared.u64 %a3, %a3; ld.volatile.shared::cluster.u32 %w0, [%a3];\n",
	};
	static const char whole[] = KERNEL(FILL "@@" BARRIER);
	const char *mark = strstr(whole, "@@");
	for (size_t n = 0; n < sizeof reads / sizeof *reads; n++) {
		char text[4096];
		snprintf(text, sizeof text, "%.*s%s%s", (int)(mark - whole), whole, reads[n], mark + 2);
		uint32_t *out = run_well(text, 12, 4, 64);
		for (uint32_t b = 0; b < 12; b++)
			for (uint32_t t = 0; t < 64; t++)
				ck_assert_uint_eq(out[b * 64 + t], 1000 * (b / 4 * 4 + (b + 1) % 4) + t);
	}
}
END_TEST

START_TEST(lanes_of_a_warp_access_different_blocks)
{
	/* Lane t reads from rank t % 8 and writes to it, behind the first words. */
	uint32_t *out = run_well(KERNEL(FILL
		"rem.u32 %w9, %w1, %w3; mapa.shared::cluster.u32 %w10, %w5, %w9; ld.shared::cluster.u32 %w11, [%w10];\n"
		"mul.lo.u32 %w12, %w2, 128; add.u32 %w12, %w12, %w10; st.shared::cluster.u32 [%w12+1024], %w11;\n" BARRIER
		/* what rank r wrote at word t of its row in this block, if t % 8 is this rank: from each row one */
		"mov.u32 %w0, 0; mov.u32 %w13, 0; SUM: mad.lo.u32 %w14, %w13, 128, %w4; shl.b32 %w15, %w2, 2; "
		"add.u32 %w14, %w14, %w15; ld.shared.u32 %w16, [%w14+1024]; add.u32 %w0, %w0, %w16; "
		"add.u32 %w13, %w13, 1; setp.lt.u32 %p3, %w13, 8; @%p3 bra SUM;\n"), 8, 8, 32);
	for (uint32_t n = 0; n < 8 * 32; n++)
		ck_assert_uint_eq(out[n], 8 * (1000 * (n / 32) + n / 32));
}
END_TEST

START_TEST(addresses_tell_their_block)
{
	uint32_t *out = run_well(KERNEL(NEXT_RANK
		"mapa.shared::cluster.u32 %w10, %w5, %w9; getctarank.shared::cluster.u32 %w11, %w10;\n"
		"cvt.u64.u32 %a2, %w5; cvta.shared.u64 %a2, %a2; mapa.u64 %a3, %a2, %w9; getctarank.u64 %w12, %a3; "
		"getctarank.u64 %w13, %a2; isspacep.shared::cta %p3, %a3; isspacep.shared::cluster %p4, %a3; "
		"mapa.u64 %a4, %a3, %w2; isspacep.shared %p5, %a4; isspacep.shared::cta %p6, %a2;\n"
		"st.shared.u32 [%w5], 77; ld.u32 %w14, [%a4];\n"
		"mad.lo.u32 %w0, %w11, 10, %w12; mad.lo.u32 %w0, %w0, 10, %w13; selp.u32 %w15, 1, 0, %p3; "
		"mad.lo.u32 %w0, %w0, 10, %w15; selp.u32 %w15, 1, 0, %p4; mad.lo.u32 %w0, %w0, 10, %w15; "
		"selp.u32 %w15, 1, 0, %p5; mad.lo.u32 %w0, %w0, 10, %w15; selp.u32 %w15, 1, 0, %p6; "
		"mad.lo.u32 %w0, %w0, 10, %w15; mad.lo.u32 %w0, %w0, 100, %w14;"), 3, 3, 32);
	for (uint32_t n = 0; n < 96; n++) {
		uint32_t rank = n / 32, next = (rank + 1) % 3;
		ck_assert_uint_eq(out[n], ((next * 100 + next * 10 + rank) * 10000 + 111) * 100 + 77);
	}
}
END_TEST

START_TEST(atomics_of_all_blocks_meet_in_one)
{
	uint32_t *out = run_well(KERNEL(
		"@%p1 st.shared.u32 [tile], 0; @%p1 st.shared.f32 [tile+4], 0f00000001;\n" BARRIER
		"mapa.shared::cluster.u32 %w10, tile, 0; red.relaxed.cluster.shared::cluster.add.u32 [%w10], %w1; "
		"mov.b32 %f1, 0f00000002; @%p1 red.shared::cluster.add.f32 [%w10+4], %f1;\n" BARRIER
		"ld.shared::cluster.u32 %w11, [%w10]; ld.shared::cluster.u32 %w12, [%w10+4]; "
		"mad.lo.u32 %w0, %w12, 100000, %w11;\n" BARRIER), 16, 16, 64);
	/* Subnormal sums stay in shared memory, another block's too: 1 + 16 * 2. */
	for (uint32_t n = 0; n < 16 * 64; n++)
		ck_assert_uint_eq(out[n], 33 * 100000u + 16 * (63 * 64 / 2));
}
END_TEST

/* ---- barriers */
START_TEST(the_barrier_waits_for_all_blocks)
{
	/*
	 * Round after round one block writes a word into all others between two barriers. Threads of odd blocks arrive, and
	 * do other things before they wait; one thread of each block has exited.
	 */
	uint32_t *out = run_well(KERNEL(
		"st.shared.u32 [%w5], 0; mov.u32 %w0, 5; st.global.b32 [%a1], %w0; setp.eq.u32 %p3, %w1, 40; @%p3 exit;\n"
		"mov.u32 %w0, 0; mov.u32 %w20, 0; and.b32 %w21, %w2, 1; setp.ne.u32 %p4, %w21, 0;\n"
		"ROUND: barrier.cluster.arrive; @%p4 add.u32 %w22, %w20, 1; barrier.cluster.wait;\n"
		"rem.u32 %w23, %w20, %w3; setp.eq.u32 %p5, %w23, %w2; @!%p5 bra DONE; mov.u32 %w24, 0;\n"
		"SEND: mapa.shared::cluster.u32 %w25, %w5, %w24; add.u32 %w26, %w20, 100; "
		"st.shared::cluster.u32 [%w25], %w26; add.u32 %w24, %w24, 1; setp.lt.u32 %p6, %w24, %w3; @%p6 bra SEND;\n"
		"DONE: " BARRIER "ld.shared.u32 %w27, [%w5]; mad.lo.u32 %w0, %w0, 3, %w27;\n"
		"add.u32 %w20, %w20, 1; setp.lt.u32 %p7, %w20, 9; @%p7 bra ROUND;"), 8, 4, 96);
	uint32_t want = 0;
	for (uint32_t round = 0; round < 9; round++)
		want = want * 3 + 100 + round;
	for (uint32_t n = 0; n < 8 * 96; n++)
		ck_assert_uint_eq(out[n], n % 96 == 40 ? 5 : want);
}
END_TEST

START_TEST(blocks_spin_for_each_other)
{
	/* A word goes round through the blocks of each cluster, and no block ends before it has come back. */
	uint32_t *out = run_well(KERNEL(
		"@%p1 st.shared.u32 [tile], 0;\n" BARRIER NEXT_RANK "mapa.shared::cluster.u32 %w10, tile, %w9;\n"
		"@!%p1 bra JOIN; mov.u32 %w12, 0;\n"
		"AGAIN: mad.lo.u32 %w11, %w12, %w3, %w2; @%p2 bra PASS;\n"
		"SPIN: ld.acquire.cluster.shared.u32 %w13, [tile]; setp.lt.u32 %p3, %w13, %w11; @%p3 bra SPIN;\n"
		"PASS: add.u32 %w14, %w11, 1; st.release.cluster.shared::cluster.u32 [%w10], %w14; @!%p2 bra NEXT;\n"
		"BACK: ld.acquire.cluster.shared.u32 %w13, [tile]; add.u32 %w15, %w11, %w3; setp.lt.u32 %p3, %w13, %w15; "
		"@%p3 bra BACK;\n"
		"NEXT: add.u32 %w12, %w12, 1; setp.lt.u32 %p4, %w12, 20; @%p4 bra AGAIN;\n"
		"JOIN: " BARRIER "ld.shared.u32 %w0, [tile];"), 64, 4, 64);
	for (uint32_t b = 0; b < 64; b++)
		ck_assert_uint_eq(out[b * 64 + 63], 19 * 4 + (b % 4 ? b % 4 : 4));
}
END_TEST

START_TEST(a_cluster_that_waits_for_ever_ends_with_an_error)
{
	uint32_t *out = device_alloc(4096);
	/* Block 1 waits at a barrier of its own for more threads than it has. */
	ck_assert_int_eq(run(KERNEL("mov.u32 %w0, 0; @%p2 bra MEET; bar.sync 1, 64; MEET: " BARRIER), 2, 2, 32, out),
			 CUDA_ERROR_LAUNCH_FAILED);
}
END_TEST

/* ---- mbarriers and asynchronous copies */
START_TEST(blocks_arrive_at_another_ones_mbarrier)
{
	/* Each thread sends its word to rank 0 by st.async, and arrives there; rank 0 waits for words and arrivals. */
	uint32_t *out = run_well(KERNEL(
		"mov.u32 %w0, 0; @%p1 mbarrier.init.shared.b64 [bar], 97; @%p1 mbarrier.init.shared.b64 [bar+8], 1;\n" BARRIER
		"mapa.shared::cluster.u32 %w10, bar, 0; mad.lo.u32 %w11, %w2, 128, %w5; mapa.shared::cluster.u32 %w11, %w11, 0;\n"
		"@!%p2 bra SEND; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 384; bra TAKE;\n"
		"SEND: mad.lo.u32 %w12, %w2, 1000, %w1; "
		"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%w11], %w12, [%w10];\n"
		"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%w10]; bra DONE;\n"
		"TAKE: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], 0; @!%p3 bra TAKE;\n"
		"ld.shared.u32 %w0, [%w5+128]; ld.shared.u32 %w13, [%w5+256]; add.u32 %w0, %w0, %w13; "
		"ld.shared.u32 %w13, [%w5+384]; add.u32 %w0, %w0, %w13;\n"
		"DONE: " BARRIER), 4, 4, 32);
	for (uint32_t n = 0; n < 128; n++)
		ck_assert_uint_eq(out[n], n < 32 ? 6000 + 3 * n : 0);
}
END_TEST

START_TEST(bulk_copies_go_to_several_blocks)
{
	/* Rank 1 copies 128 bytes of out, which has 500 + n, to ranks 0, 1 and 3; rank 2 sends its tile to rank 3. */
	uint32_t *out = device_alloc(4 * 32 * 4);
	for (uint32_t n = 0; n < 32; n++)
		out[n] = 500 + n;
	ck_assert_int_eq(run(KERNEL(
		"@%p1 mbarrier.init.shared.b64 [bar], 1; mov.u32 %w8, 9; st.shared.u32 [%w5], %w8; "
		"add.u32 %w9, %w1, 70; st.shared.u32 [%w5+256], %w9; st.shared.u32 [%w5+128], %w8;\n"
		"fence.proxy.async.shared::cta; setp.eq.u32 %p3, %w2, 1; setp.eq.u32 %p4, %w2, 2; setp.eq.u32 %p5, %w2, 3;\n"
		"mov.u32 %w10, 128; @%p5 mov.u32 %w10, 256; @%p4 mov.u32 %w10, 0; "
		"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %w10;\n" BARRIER
		"and.pred %p6, %p1, %p3; @!%p6 bra SECOND; mov.b16 %h1, 11;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%a0], 128, [bar], "
		"%h1;\n"
		"SECOND: and.pred %p6, %p1, %p4; @!%p6 bra WAIT; mapa.shared::cluster.u32 %w11, %w4, 3; "
		"mapa.shared::cluster.u32 %w12, bar, 3; "
		"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%w11+128], [%w4+256], 128, [%w12];\n"
		"WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p7, [bar], 0; @!%p7 bra WAIT;\n"
		"ld.shared.u32 %w13, [%w5]; ld.shared.u32 %w14, [%w5+128]; mad.lo.u32 %w0, %w13, 1000, %w14;\n" BARRIER),
		4, 4, 32, out), CUDA_SUCCESS);
	for (uint32_t n = 0; n < 128; n++)
		ck_assert_uint_eq(out[n], (n / 32 == 2 ? 9 : 500 + n % 32) * 1000 + (n / 32 == 3 ? 70 + n % 32 : 9));
}
END_TEST

/* ---- what is checked */
START_TEST(accesses_beyond_the_cluster_are_faults)
{
	static const char *const bodies[] = {
		KERNEL("mapa.shared::cluster.u32 %w0, %w4, %w3;"),
		KERNEL("mapa.shared::cluster.u32 %w8, %w4, 1; ld.shared::cluster.u32 %w0, [%w8+65536];"),
		KERNEL("mov.u32 %w8, 0x3000000; ld.shared::cluster.u32 %w0, [%w8];"),
		KERNEL("mov.b16 %h1, 4; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
		       "[tile], [%a0], 16, [bar], %h1; mov.u32 %w0, 0;"),
	};
	uint32_t *out = device_alloc(4096);
	for (size_t n = 0; n < sizeof bodies / sizeof *bodies; n++)
		ck_assert_int_eq(run(bodies[n], 2, 2, 32, out), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(run(KERNEL("mapa.shared::cluster.u32 %w8, %w4, 1; ld.shared::cluster.u32 %w0, [%w8+2];"), 2, 2, 32, out),
			 CUDA_ERROR_MISALIGNED_ADDRESS);
	/* mapa does not turn an address beyond a cluster of one into one of the block's own. */
	ck_assert_int_eq(run(KERNEL("mov.u32 %w8, 0x3000000; mapa.shared::cluster.u32 %w8, %w8, 0; "
				    "ld.shared::cluster.u32 %w0, [%w8];"), 2, 1, 32, out), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(the_size_comes_from_the_launch_or_the_kernel)
{
	static const uint32_t six[3] = { 6, 1, 1 }, five[3] = { 5, 1, 1 }, pair[3] = { 2, 1, 1 }, wide[3] = { 17, 1, 1 };
	uint32_t *out = device_alloc(4096);
	const char *text = KERNEL_WITH(".explicitcluster .reqnctapercluster 3, 1, 1", "mov.u32 %w0, %w3;");
	ck_assert_int_eq(launch_in(text, six, NULL, 32, out), CUDA_SUCCESS);
	ck_assert_uint_eq(out[6 * 32 - 1], 3);
	ck_assert_int_eq(launch_in(text, five, NULL, 32, out), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	ck_assert_int_eq(launch_in(KERNEL("mov.u32 %w0, %w3;"), six, pair, 32, out), CUDA_SUCCESS);
	ck_assert_uint_eq(out[6 * 32 - 1], 2);
	ck_assert_int_eq(launch_in(KERNEL("mov.u32 %w0, %w3;"), five, pair, 32, out), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	ck_assert_int_eq(launch_in(KERNEL("mov.u32 %w0, %w3;"), wide, wide, 32, out), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}
END_TEST

START_TEST(launches_of_clusters_and_of_blocks_take_turns)
{
	/* They use the same memory of blocks, one after the other. */
	for (uint32_t size = 1; size <= 16; size++) {
		uint32_t *out = run_well(KERNEL(FILL NEXT_RANK "mapa.shared::cluster.u32 %w10, %w5, %w9; "
						"ld.shared::cluster.u32 %w0, [%w10];\n" BARRIER), 5 * size, size, 33);
		for (uint32_t n = 0; n < 5 * size * 33; n++) {
			uint32_t block = n / 33;
			ck_assert_uint_eq(out[n], 1000 * (block / size * size + (block % size + 1) % size) + n % 33);
		}
		device_reset();
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		registers_tell_the_place_in_the_cluster,
		blocks_read_each_others_shared_memory,
		lanes_of_a_warp_access_different_blocks,
		addresses_tell_their_block,
		atomics_of_all_blocks_meet_in_one,
		the_barrier_waits_for_all_blocks,
		blocks_spin_for_each_other,
		a_cluster_that_waits_for_ever_ends_with_an_error,
		blocks_arrive_at_another_ones_mbarrier,
		bulk_copies_go_to_several_blocks,
		accesses_beyond_the_cluster_are_faults,
		the_size_comes_from_the_launch_or_the_kernel,
		launches_of_clusters_and_of_blocks_take_turns,
	};
	TCase *all = test_case("clusters");
	for (size_t n = 0; n < sizeof tests / sizeof *tests; n++)
		tcase_add_test(all, tests[n]);
	return run_tests();
}
