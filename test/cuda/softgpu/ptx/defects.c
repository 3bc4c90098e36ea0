/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HEADRACE_SOFTGPU_CHECK: each kind of defect is found, with its place, and the same program without the defect is not
 * reported. What is found must not depend on the order in which warps and blocks happened to run.
 */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * %i1 shared memory, %i2 the thread, %i3 the block, %i4 threads of a block, %i5 this thread's word of shared memory,
 * %i6 the warp; %a1 out, %a2 this thread's word of it.
 */
#define KERNEL(body)                                                                                               \
	".visible .entry k(.param .u64 out)\n{\n"                                                                 \
	".reg .pred %p<16>; .reg .b16 %h<8>; .reg .b32 %w<32>; .reg .b64 %a<16>; .reg .b32 %i<8>; "                \
	".shared .align 16 .b8 cells[8192];\n"                                                                     \
	"ld.param.u64 %a1, [out]; mov.u32 %i2, %tid.x; mov.u32 %i3, %ctaid.x; mov.u32 %i4, %ntid.x;\n"             \
	"mad.lo.u32 %w30, %i3, %i4, %i2; mul.wide.u32 %a2, %w30, 4; add.u64 %a2, %a2, %a1;\n"                       \
	"mov.u32 %i1, cells; shl.b32 %w31, %i2, 2; add.u32 %i5, %i1, %w31; shr.u32 %i6, %i2, 5;\n" body             \
	"\nret;\n}\n"
#define BODY_LINE 10 /* of the module's text, where body starts */

#define UNWRITTEN "read of shared memory that was never written"
#define SHARED_RACE "of shared memory races with"
#define GLOBAL_RACE "of global memory races with"
#define NEXT_WARP "add.u32 %w1, %i2, 32; rem.u32 %w1, %w1, %i4; shl.b32 %w1, %w1, 2; add.u32 %w1, %w1, %i1; "

static char said[65536];

static void check_for(const char *what)
{
	setenv("HEADRACE_LOG", "warn", 1);
	/* Kernels that race would race here, too: one thread runs their blocks, and finds it all the same. */
	setenv("HEADRACE_SOFTGPU_THREADS", "1", 1);
	setenv("HEADRACE_SOFTGPU_CHECK", what, 1);
}

/* Runs kernel k and keeps what the log says in said. */
static CUresult run(const char *text, uint32_t blocks, uint32_t threads)
{
	int screen = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	ck_assert(file != NULL && screen >= 0);
	uint32_t *out = device_alloc(65536);
	dup2(fileno(file), STDERR_FILENO);
	CUresult result = run_ptx(text, blocks, threads, &out);
	dup2(screen, STDERR_FILENO);
	close(screen);
	rewind(file);
	said[fread(said, 1, sizeof said - 1, file)] = '\0';
	fclose(file);
	device_reset();
	return result;
}

static void expect_quiet(const char *text, uint32_t blocks, uint32_t threads)
{
	ck_assert_int_eq(run(text, blocks, threads), CUDA_SUCCESS);
	ck_assert_str_eq(said, "");
}

static void expect_found(const char *what, const char *text, uint32_t blocks, uint32_t threads)
{
	ck_assert_int_eq(run(text, blocks, threads), CUDA_SUCCESS);
	ck_assert_msg(strstr(said, what) != NULL, "want \"%s\" in: %s", what, said);
}

/* ---- shared memory that nobody wrote */
START_TEST(a_read_of_shared_memory_that_nobody_wrote_is_found)
{
	check_for("init");
	expect_found(UNWRITTEN, KERNEL("ld.shared.u32 %w2, [%i5]; st.global.u32 [%a2], %w2;"), 1, 32);
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; ld.shared.u32 %w2, [%i5]; st.global.u32 [%a2], %w2;"), 1, 32);
	/* Three bytes of four. */
	expect_found(UNWRITTEN, KERNEL("st.shared.u8 [%i5], %i2; st.shared.u8 [%i5+1], %i2; st.shared.u8 [%i5+3], %i2;\n"
				       "ld.shared.u32 %w2, [%i5];"), 1, 32);
	expect_quiet(KERNEL("st.shared.u16 [%i5], %i2; st.shared.u16 [%i5+2], %i2; ld.shared.u32 %w2, [%i5];"), 1, 32);
	/* What lanes that take no part have not written. */
	expect_found(UNWRITTEN, KERNEL("setp.lt.u32 %p1, %i2, 31; @%p1 st.shared.u32 [%i5], %i2;\n"
				       "ld.shared.u32 %w2, [%i5];"), 1, 32);
	expect_quiet(KERNEL("setp.lt.u32 %p1, %i2, 31; @%p1 st.shared.u32 [%i5], %i2;\n"
			    "@%p1 ld.shared.u32 %w2, [%i5];"), 1, 32);
	/* The system's own counts as written. */
	expect_quiet(KERNEL("mov.b32 %w1, %reserved_smem_offset_1; ld.shared.u32 %w2, [%w1];"), 1, 32);
	/* Races are not looked for. */
	expect_quiet(KERNEL("st.shared.u32 [%i1], %i2;"), 1, 64);
	/* What is written with .release is written, also when nobody asks for order. */
	expect_quiet(KERNEL("st.release.cta.shared.u32 [%i5], %i2; ld.shared.u32 %w2, [%i5];"), 1, 32);
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; atom.acq_rel.cta.shared.add.u32 %w3, [%i5], 1; "
			    "ld.shared.u32 %w2, [%i5];"), 1, 32);
	expect_quiet(KERNEL("setp.eq.u32 %p1, %i2, 0; @!%p1 bra END; mbarrier.init.shared.b64 [%i1], 2;\n"
			    "mbarrier.arrive.shared.b64 %a3, [%i1]; mbarrier.arrive.shared.b64 %a3, [%i1];\n"
			    "END:"), 1, 32);
}
END_TEST

START_TEST(every_way_to_shared_memory_is_looked_at)
{
	check_for("init");
	expect_found(UNWRITTEN, KERNEL("mul.wide.u32 %a3, %i2, 4; mov.u64 %a4, cells; cvta.shared.u64 %a4, %a4; "
				       "add.u64 %a3, %a3, %a4; ld.u32 %w2, [%a3];"), 1, 32);
	expect_quiet(KERNEL("mul.wide.u32 %a3, %i2, 4; mov.u64 %a4, cells; cvta.shared.u64 %a4, %a4; "
			    "add.u64 %a3, %a3, %a4; st.u32 [%a3], %i2; ld.shared.u32 %w2, [%i5];"), 1, 32);
	expect_found(UNWRITTEN, KERNEL("shl.b32 %w1, %i2, 4; add.u32 %w1, %w1, %i1; "
				       "st.shared.v2.u32 [%w1], {%i2, %i2}; "
				       "ld.shared.v4.u32 {%w2, %w3, %w4, %w5}, [%w1];"), 1, 32);
	expect_quiet(KERNEL("shl.b32 %w1, %i2, 4; add.u32 %w1, %w1, %i1; "
			    "st.shared.v4.u32 [%w1], {%i2, %i2, %i2, %i2}; "
			    "ld.shared.v4.u32 {%w2, %w3, %w4, %w5}, [%w1];"), 1, 32);
	expect_found(UNWRITTEN, KERNEL("atom.shared.add.u32 %w2, [%i5], 1;"), 1, 32);
	expect_found(UNWRITTEN, KERNEL("red.shared.add.u32 [%i5], 1;"), 1, 32);
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; red.shared.add.u32 [%i5], 1;"), 1, 32);
}
END_TEST

START_TEST(copies_and_matrices_are_looked_at)
{
#define COPY16 "mul.wide.u32 %a3, %i2, 16; add.u64 %a3, %a3, %a1; shl.b32 %w1, %i2, 4; add.u32 %w1, %w1, %i1; "
	check_for("init");
	expect_quiet(KERNEL(COPY16 "cp.async.cg.shared.global [%w1], [%a3], 16; cp.async.wait_all;\n"
			    "ld.shared.v4.u32 {%w2, %w3, %w4, %w5}, [%w1];"), 1, 32);
	expect_found(UNWRITTEN, KERNEL(COPY16 "cp.async.ca.shared.global [%w1], [%a3], 8; cp.async.wait_all;\n"
				       "ld.shared.v4.u32 {%w2, %w3, %w4, %w5}, [%w1];"), 1, 32);
	expect_quiet(KERNEL(COPY16 "st.shared.v4.u32 [%w1], {%i2, %i2, %i2, %i2};\n"
			    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w2, %w3, %w4, %w5}, [%w1];"), 1, 32);
	expect_found(UNWRITTEN, KERNEL(COPY16 "setp.ne.u32 %p1, %i2, 31; "
				       "@%p1 st.shared.v4.u32 [%w1], {%i2, %i2, %i2, %i2};\n"
				       "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w2, %w3, %w4, %w5}, [%w1];"), 1, 32);
	/* Lanes whose address is not asked for read nothing. */
	expect_quiet(KERNEL(COPY16 "setp.lt.u32 %p1, %i2, 8; @%p1 st.shared.v4.u32 [%w1], {%i2, %i2, %i2, %i2};\n"
			    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%w2}, [%w1];"), 1, 32);
	/* A matrix of 16 rows of 16 halves: 512 bytes. */
#define TILE "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%w2, %w3, %w4, %w5, %w6, %w7, %w8, %w9}, [%i1], 16;"
	expect_quiet(KERNEL(COPY16 "st.shared.v4.u32 [%w1], {%i2, %i2, %i2, %i2};\n" TILE), 1, 32);
	expect_found(UNWRITTEN, KERNEL(COPY16 "setp.ne.u32 %p1, %i2, 9; "
				       "@%p1 st.shared.v4.u32 [%w1], {%i2, %i2, %i2, %i2};\n"
				       TILE), 1, 32);
}
END_TEST

START_TEST(what_an_earlier_block_wrote_does_not_count)
{
	check_for("init");
	expect_found(UNWRITTEN, KERNEL("setp.ne.u32 %p1, %i3, 0; @%p1 bra READ; st.shared.u32 [%i5], %i2; bra END;\n"
				       "READ: ld.shared.u32 %w2, [%i5];\nEND:"), 2, 32);
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; ld.shared.u32 %w2, [%i5];"), 8, 32);
}
END_TEST

START_TEST(a_report_names_kernel_block_thread_line_and_address)
{
	char want[160];
	check_for("init");
	ck_assert_int_eq(run(KERNEL("\n\nsetp.eq.u32 %p1, %i2, 37;\n@!%p1 st.shared.u32 [%i5], 0;\n"
				    "ld.shared.u32 %w2, [%i5];"), 1, 64), CUDA_SUCCESS);
	snprintf(want, sizeof want,
		 "kernel k: " UNWRITTEN ", address 0x%x, block (0,0,0), thread (37,0,0), ptx line %d\n", 37 * 4,
		 BODY_LINE + 4);
	ck_assert_msg(strstr(said, want) != NULL, "want \"%s\" in: %s", want, said);
	ck_assert_msg(strstr(said, "kernel k: 1 reads of shared memory that was never written, at 1 places") != NULL,
		      "%s", said);
}
END_TEST

START_TEST(an_access_is_reported_once)
{
	check_for("races");
	/* Whichever warp is first, the other has two accesses of 32 lanes that race, and four bytes in each. */
	ck_assert_int_eq(run(KERNEL("st.shared.u32 [%i5], %i2; " NEXT_WARP "ld.shared.u32 %w2, [%w1];"), 1, 64),
			 CUDA_SUCCESS);
	ck_assert_msg(strstr(said, "kernel k: 64 races between warps on shared memory") != NULL, "%s", said);
}
END_TEST

START_TEST(reports_of_one_place_are_few_and_all_are_counted)
{
	check_for("init");
	int lines = 0;
	ck_assert_int_eq(run(KERNEL("ld.shared.u32 %w2, [%i5];"), 10, 64), CUDA_SUCCESS);
	for (const char *at = said; (at = strchr(at, '\n')); at++)
		lines++;
	ck_assert_int_eq(lines, 5); /* four and the sum */
	ck_assert_msg(strstr(said, "kernel k: 640 reads") != NULL, "%s", said);
}
END_TEST

/* ---- warps of a block */
START_TEST(a_missing_barrier_is_found)
{
	check_for("races");
	/* A read of what another warp wrote. */
	expect_found(SHARED_RACE, KERNEL("st.shared.u32 [%i5], %i2; " NEXT_WARP "ld.shared.u32 %w2, [%w1];"), 1, 64);
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; bar.sync 0; " NEXT_WARP "ld.shared.u32 %w2, [%w1];"), 1, 64);
	/* A write over what another warp has read. */
	expect_found(SHARED_RACE, KERNEL("st.shared.u32 [%i5], %i2; bar.sync 0; " NEXT_WARP
					 "ld.shared.u32 %w2, [%w1]; st.shared.u32 [%i5], 0;"), 1, 64);
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; bar.sync 0; " NEXT_WARP
			    "ld.shared.u32 %w2, [%w1]; bar.sync 0; st.shared.u32 [%i5], 0;"), 1, 64);
	/* Two writes. */
	expect_found(SHARED_RACE, KERNEL("st.shared.u32 [%i1], %i2;"), 1, 64);
	/* A loop whose second turn races with the first. */
	expect_found(SHARED_RACE, KERNEL("mov.u32 %w3, 0;\nLOOP: st.shared.u32 [%i5], %w3; bar.sync 0; " NEXT_WARP
					 "ld.shared.u32 %w2, [%w1]; add.u32 %w3, %w3, 1; setp.lt.u32 %p1, %w3, 3; "
					 "@%p1 bra LOOP;"), 1, 128);
	expect_quiet(KERNEL("mov.u32 %w3, 0;\nLOOP: st.shared.u32 [%i5], %w3; bar.sync 0; " NEXT_WARP
			    "ld.shared.u32 %w2, [%w1]; bar.sync 0; add.u32 %w3, %w3, 1; setp.lt.u32 %p1, %w3, 3; "
			    "@%p1 bra LOOP;"), 1, 128);
}
END_TEST

START_TEST(races_are_looked_for_byte_by_byte_and_between_warps_only)
{
	check_for("races");
	/* Bytes side by side, of different warps: lane l of warp w has byte 2 l + w. */
	expect_quiet(KERNEL("and.b32 %w1, %i2, 31; shl.b32 %w1, %w1, 1; add.u32 %w1, %w1, %i6; add.u32 %w1, %w1, %i1; "
			    "st.shared.u8 [%w1], %i2; ld.shared.u8 %w2, [%w1]; st.shared.u8 [%w1], 0;"), 1, 64);
	expect_found(SHARED_RACE, KERNEL("shr.u32 %w1, %i2, 1; add.u32 %w1, %w1, %i1; sub.u32 %w1, %w1, %i6; "
					 "st.shared.u8 [%w1], %i2;"), 1, 64);
	/* Lanes of one warp are in step here, and are left alone. */
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; xor.b32 %w1, %i5, 4; ld.shared.u32 %w2, [%w1]; "
			    "st.shared.u32 [%w1], 0;"), 1, 64);
	/* Through generic addresses. */
	expect_found(SHARED_RACE, KERNEL("mov.u64 %a4, cells; cvta.shared.u64 %a4, %a4; st.u32 [%a4], %i2;"), 1, 64);
}
END_TEST

START_TEST(barriers_order_those_that_meet_at_them)
{
	check_for("races");
	/* Warps 0 and 1 meet at barrier 1, 2 and 3 at barrier 2; each reads its partner's word. */
#define PAIRS(partner, end)                                                                                        \
	KERNEL("st.shared.u32 [%i5], %i2; shr.u32 %w3, %i6, 1; add.u32 %w3, %w3, 1; bar.sync %w3, 64; "               \
	       "xor.b32 %w1, %i2, " partner "; shl.b32 %w1, %w1, 2; add.u32 %w1, %w1, %i1; "                          \
	       "ld.shared.u32 %w2, [%w1];" end)
	expect_quiet(PAIRS("32", ""), 1, 128);
	expect_found(SHARED_RACE, PAIRS("64", ""), 1, 128);
	/* A warp that arrives does not learn: it may be read from, and must not read. */
#define ARRIVES(last)                                                                                              \
	KERNEL("setp.eq.u32 %p1, %i6, 0; @!%p1 bra WAIT; st.shared.u32 [%i5], %i2; bar.arrive 3, 64; " last           \
	       " bra END;\nWAIT: st.shared.u32 [%i5], %i2; bar.sync 3, 64; ld.shared.u32 %w2, [%i5+-128];\nEND:")
	expect_quiet(ARRIVES(""), 1, 64);
	expect_found(SHARED_RACE, ARRIVES("ld.shared.u32 %w2, [%i5+128];"), 1, 64);
	/* What follows the arrival is not covered by it. */
	expect_found(SHARED_RACE, ARRIVES("st.shared.u32 [%i5], 0;"), 1, 64);
	/* Who met at a barrier before is not who meets there now. */
	expect_found(SHARED_RACE, KERNEL("st.shared.u32 [%i5], %i2; bar.sync 1, 64; setp.lt.u32 %p1, %i6, 2; "
					 "@%p1 bra END; sub.u32 %w1, %i5, 256; ld.shared.u32 %w2, [%w1];\nEND:"), 1, 128);
	/* The cluster's barrier is the block's here. */
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; barrier.cluster.arrive; barrier.cluster.wait; " NEXT_WARP
			    "ld.shared.u32 %w2, [%w1];"), 1, 64);
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; setp.eq.u32 %p1, %i2, 0; bar.red.popc.u32 %w4, 0, %p1; " NEXT_WARP
			    "ld.shared.u32 %w2, [%w1];"), 1, 64);
}
END_TEST

START_TEST(atomics_do_not_race_with_each_other_but_with_plain_accesses)
{
	check_for("races");
	expect_quiet(KERNEL("atom.shared.add.u32 %w2, [%i1], 1; red.shared.add.u32 [%i1], 1;"), 1, 128);
	expect_found(SHARED_RACE, KERNEL("red.shared.add.u32 [%i1], 1; ld.shared.u32 %w2, [%i1];"), 1, 128);
	expect_quiet(KERNEL("red.shared.add.u32 [%i1], 1; bar.sync 0; ld.shared.u32 %w2, [%i1];"), 1, 128);
	/* A count of relaxed atomics orders nothing else: a histogram's words need a barrier. */
	expect_found(SHARED_RACE, KERNEL("and.b32 %w1, %i2, 15; shl.b32 %w1, %w1, 2; add.u32 %w1, %w1, %i1; "
					 "red.shared.add.u32 [%w1], 1; setp.lt.u32 %p1, %i2, 16; "
					 "@%p1 ld.shared.u32 %w2, [%i5];"), 1, 64);
}
END_TEST

/* Warp 0 writes its words and sets a flag; the others wait for the flag and read them. */
#define FLAG(before, store, load, after)                                                                           \
	KERNEL("setp.ne.u32 %p1, %i6, 0; @%p1 bra WAIT; st.shared.u32 [%i5], %i2; " before                             \
	       "setp.ne.u32 %p2, %i2, 0; @!%p2 " store ".u32 [%i1+4096], 1; bra END;\n"                                \
	       "WAIT: " load ".u32 %w2, [%i1+4096]; setp.ne.u32 %p2, %w2, 1; @%p2 bra WAIT; " after                    \
	       "and.b32 %w1, %i2, 31; shl.b32 %w1, %w1, 2; add.u32 %w1, %w1, %i1; ld.shared.u32 %w2, [%w1];\nEND:")

START_TEST(flags_and_fences_order_warps)
{
	check_for("races");
	expect_quiet(FLAG("", "st.release.cta.shared", "ld.acquire.cta.shared", ""), 1, 96);
	expect_quiet(FLAG("fence.acq_rel.cta; ", "st.relaxed.cta.shared", "ld.relaxed.cta.shared", "fence.acq_rel.cta; "),
		     1, 96);
	expect_quiet(FLAG("membar.cta; ", "st.volatile.shared", "ld.volatile.shared", "membar.cta; "), 1, 96);
	/* What comes behind the fence, or behind the release, is not covered. */
	expect_found(SHARED_RACE, FLAG("fence.acq_rel.cta; st.shared.u32 [%i5], 5; ", "st.relaxed.cta.shared",
				       "ld.relaxed.cta.shared", "fence.acq_rel.cta; "), 1, 96);
	expect_found(SHARED_RACE, FLAG("st.release.cta.shared.u32 [%i1+4096], 1; st.shared.u32 [%i5], 5; ",
				       "st.relaxed.cta.shared", "ld.acquire.cta.shared", ""), 1, 96);
	/* Without a fence the flag says nothing of the words. */
	expect_found(SHARED_RACE, FLAG("", "st.relaxed.cta.shared", "ld.relaxed.cta.shared", ""), 1, 96);
}
END_TEST

START_TEST(mbarriers_order_warps)
{
	check_for("init,races");
#define MBARRIER(wait)                                                                                             \
	KERNEL("setp.eq.u32 %p1, %i2, 0; @%p1 mbarrier.init.shared.b64 [%i1+4096], 32; bar.sync 0; "                  \
	       "setp.ne.u32 %p1, %i6, 0; @%p1 bra WAIT; st.shared.u32 [%i5], %i2; "                                   \
	       "mbarrier.arrive.shared.b64 %a3, [%i1+4096]; bra END;\n"                                               \
	       "WAIT: " wait                                                                                          \
	       "and.b32 %w1, %i2, 31; shl.b32 %w1, %w1, 2; add.u32 %w1, %w1, %i1; ld.shared.u32 %w2, [%w1];\nEND:")
	expect_quiet(MBARRIER("mbarrier.try_wait.parity.shared.b64 %p2, [%i1+4096], 0; @!%p2 bra WAIT; "), 1, 96);
	expect_found(SHARED_RACE, MBARRIER(""), 1, 96);
	expect_found(UNWRITTEN, KERNEL("mbarrier.test_wait.parity.shared.b64 %p2, [%i1], 0;"), 1, 32);
	/* A bulk copy tells its mbarrier. */
#define BULK(wait)                                                                                                 \
	KERNEL("setp.ne.u32 %p1, %i2, 0; @!%p1 mbarrier.init.shared.b64 [%i1+4096], 1; bar.sync 0; @%p1 bra WAIT; "   \
	       "mbarrier.arrive.expect_tx.shared.b64 %a3, [%i1+4096], 128; "                                          \
	       "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%i1], [%a1], 128, [%i1+4096];\n"    \
	       "WAIT: " wait                                                                                          \
	       "and.b32 %w1, %i2, 31; shl.b32 %w1, %w1, 2; add.u32 %w1, %w1, %i1; ld.shared.u32 %w2, [%w1];")
	expect_quiet(BULK("mbarrier.try_wait.parity.shared.b64 %p2, [%i1+4096], 0; @!%p2 bra WAIT; "), 1, 96);
	expect_found(SHARED_RACE, BULK(""), 1, 96);
}
END_TEST

/* ---- blocks of a grid */
START_TEST(blocks_that_touch_the_same_words_are_found)
{
	check_for("races");
	expect_found(GLOBAL_RACE, KERNEL("st.global.u32 [%a1], %i3;"), 4, 1);
	expect_quiet(KERNEL("st.global.u32 [%a1], %i3;"), 1, 64);
	expect_quiet(KERNEL("atom.global.add.u32 %w2, [%a1], 1; red.global.add.u32 [%a1], 1;"), 4, 32);
	expect_found(GLOBAL_RACE,
		     KERNEL("ld.global.u32 %w2, [%a1]; add.u32 %w2, %w2, 1; st.global.u32 [%a1], %w2;"), 4, 1);
	expect_found(GLOBAL_RACE, KERNEL("red.global.add.u32 [%a1], 1; ld.global.u32 %w2, [%a1];"), 4, 32);
	/* Each its own words; the same words read by all; words of the next block. */
	expect_quiet(KERNEL("ld.global.u32 %w2, [%a2]; st.global.u32 [%a2], %w2;"), 8, 64);
	expect_quiet(KERNEL("ld.global.u32 %w2, [%a1]; st.global.u32 [%a2+4096], %w2;"), 8, 64);
	expect_found(GLOBAL_RACE, KERNEL("st.global.u32 [%a2], %w2; ld.global.u32 %w2, [%a2+128];"), 8, 32);
	/* Generic addresses; vectors; and bytes side by side, which are no race. */
	expect_found(GLOBAL_RACE, KERNEL("st.u32 [%a1], %i3;"), 4, 1);
	expect_found(GLOBAL_RACE, KERNEL("mul.wide.u32 %a3, %i3, 8; add.u64 %a3, %a3, %a1; and.b64 %a3, %a3, -16;\n"
					 "st.global.v4.u32 [%a3], {%i2, %i2, %i2, %i2};"), 2, 1);
	expect_quiet(KERNEL("cvt.u64.u32 %a3, %i3; add.u64 %a3, %a3, %a1; st.global.u8 [%a3], %i3; "
			    "ld.global.u8 %w2, [%a3];"), 8, 1);
	/* A block that reads, and writes what another has read too. */
	expect_found(GLOBAL_RACE, KERNEL("setp.eq.u32 %p1, %i3, 1; ld.global.u32 %w2, [%a1]; "
					 "@%p1 st.global.u32 [%a1], 1;"), 2, 1);
	/* A copy whose source is to be ignored does not read it. */
	expect_found(GLOBAL_RACE, KERNEL("setp.ne.u32 %p1, %i3, 0; @!%p1 st.global.u32 [%a1], 7;\n"
					 "cp.async.ca.shared.global [%i5], [%a1], 4;"), 2, 1);
	expect_quiet(KERNEL("setp.ne.u32 %p1, %i3, 0; @!%p1 st.global.u32 [%a1], 7;\n"
			    "cp.async.ca.shared.global [%i5], [%a1], 4, %p1;"), 2, 1);
	/* A third block that writes what two have read. */
	expect_found(GLOBAL_RACE, KERNEL("setp.eq.u32 %p1, %i3, 2; @!%p1 ld.global.u32 %w2, [%a1]; "
					 "@%p1 st.global.u32 [%a1], 1;"), 3, 1);
	expect_found(GLOBAL_RACE, KERNEL("setp.eq.u32 %p1, %i3, 0; @!%p1 ld.global.u32 %w2, [%a1]; "
					 "@%p1 st.global.u32 [%a1], 1;"), 3, 1);
}
END_TEST

/* Every block writes its word and counts; who counts last adds the words up (threadFenceReduction). */
#define LAST_BLOCK(fence)                                                                                          \
	KERNEL("st.global.u32 [%a2], %i3; " fence "atom.global.inc.u32 %w2, [%a1+4096], 7; "                           \
	       "setp.ne.u32 %p1, %w2, 7; @%p1 bra END; mov.u32 %w3, 0; mov.u64 %a3, %a1;\n"                            \
	       "LOOP: ld.global.u32 %w4, [%a3]; add.u64 %a3, %a3, 4; add.u32 %w3, %w3, 1; "                           \
	       "setp.lt.u32 %p1, %w3, 8; @%p1 bra LOOP; st.global.u32 [%a1+4096], 0;\nEND:")

START_TEST(the_last_block_may_read_what_a_fence_covers)
{
	check_for("races");
	expect_quiet(LAST_BLOCK("membar.gl; "), 8, 1);
	expect_found(GLOBAL_RACE, LAST_BLOCK(""), 8, 1);
}
END_TEST

START_TEST(blocks_may_run_at_the_same_time)
{
	check_for("init,races");
	setenv("HEADRACE_SOFTGPU_THREADS", "4", 1);
	for (int n = 0; n < 20; n++) {
		expect_quiet(LAST_BLOCK("membar.gl; "), 8, 1);
		expect_quiet(KERNEL("atom.global.add.u32 %w2, [%a1], 1; ld.global.u32 %w2, [%a2+4096]; "
				    "st.global.u32 [%a2+4096], %w2;"), 16, 64);
	}
}
END_TEST

START_TEST(a_flag_orders_blocks)
{
	check_for("races");
	/* Block 0 writes and sets the flag, by which the others wait; blocks begin in order. */
#define BLOCKS(store, load)                                                                                        \
	KERNEL("setp.ne.u32 %p1, %i3, 0; @%p1 bra WAIT; st.global.u32 [%a1], 7; "                                      \
	       store ".u32 [%a1+4096], 1; bra END;\n"                                                                 \
	       "WAIT: " load ".u32 %w2, [%a1+4096]; setp.ne.u32 %p2, %w2, 1; @%p2 bra WAIT; "                         \
	       "ld.global.u32 %w2, [%a1];\nEND:")
	expect_quiet(BLOCKS("st.release.gpu.global", "ld.acquire.gpu.global"), 4, 1);
	expect_quiet(BLOCKS("membar.gl; st.volatile.global", "ld.volatile.global"), 4, 1);
	expect_found(GLOBAL_RACE, BLOCKS("st.relaxed.gpu.global", "ld.relaxed.gpu.global"), 4, 1);
	/* Who has seen the flag may take it down, even without an atomic. */
	expect_quiet(KERNEL("setp.ne.u32 %p1, %i3, 0; @%p1 bra WAIT; st.release.gpu.global.u32 [%a1], 1; bra END;\n"
			    "WAIT: ld.acquire.gpu.global.u32 %w2, [%a1]; setp.ne.u32 %p2, %w2, 1; @%p2 bra WAIT; "
			    "st.global.u32 [%a1], 0;\nEND:"), 2, 1);
	/* What comes behind the release is not covered. */
	expect_found(GLOBAL_RACE, BLOCKS("st.release.gpu.global.u32 [%a1+4096], 1; st.global.u32 [%a1], 8; "
					 "st.relaxed.gpu.global", "ld.acquire.gpu.global"), 4, 1);
}
END_TEST

START_TEST(both_sides_of_a_race_are_named)
{
	char want[96];
	check_for("races");
	ck_assert_int_eq(run(KERNEL("setp.eq.u32 %p1, %i3, 0;\n@%p1 st.global.u32 [%a1], 1;\n"
				    "@!%p1 ld.global.u32 %w2, [%a1];"), 2, 1), CUDA_SUCCESS);
	snprintf(want, sizeof want, "read of global memory races with a write by block 0 (ptx line %d), address 0x",
		 BODY_LINE + 1);
	ck_assert_msg(strstr(said, want) != NULL, "%s", said);
	snprintf(want, sizeof want, "block (1,0,0), thread (0,0,0), ptx line %d\n", BODY_LINE + 2);
	ck_assert_msg(strstr(said, want) != NULL, "%s", said);
}
END_TEST

/* ---- the setting */
START_TEST(what_is_found_may_end_the_launch)
{
	check_for("init,races,fault");
	ck_assert_int_eq(run(KERNEL("ld.shared.u32 %w2, [%i5];"), 1, 32), CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_int_eq(run(KERNEL("st.shared.u32 [%i1], %i2;"), 1, 64), CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_int_eq(run(KERNEL("st.global.u32 [%a1], %i2;"), 4, 32), CUDA_ERROR_LAUNCH_FAILED);
	ck_assert_msg(strstr(said, "races with a write by block") != NULL, "%s", said);
	expect_quiet(KERNEL("st.shared.u32 [%i5], %i2; ld.shared.u32 %w2, [%i5]; st.global.u32 [%a2], %w2;"), 4, 64);
}
END_TEST

START_TEST(nothing_is_looked_for_unless_asked)
{
	check_for("none");
	expect_quiet(KERNEL("ld.shared.u32 %w2, [%i5]; st.shared.u32 [%i1], %i2; st.global.u32 [%a1], %i2;"), 4, 64);
	unsetenv("HEADRACE_SOFTGPU_CHECK");
	expect_quiet(KERNEL("ld.shared.u32 %w2, [%i5]; st.shared.u32 [%i1], %i2; st.global.u32 [%a1], %i2;"), 4, 64);
}
END_TEST

START_TEST(a_setting_that_is_not_known_is_refused)
{
	static const char *const wrong[] = { "init;races", "race", "fault", "init,", ",init", "all" };
	char text[256];
	for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
		check_for(wrong[n]);
		ck_assert_int_eq(load_bad_ptx(KERNEL(""), text, sizeof text), CUDA_ERROR_INVALID_VALUE);
		ck_assert_msg(strstr(text, "HEADRACE_SOFTGPU_CHECK") != NULL, "%s", text);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_read_of_shared_memory_that_nobody_wrote_is_found,
		every_way_to_shared_memory_is_looked_at,
		copies_and_matrices_are_looked_at,
		what_an_earlier_block_wrote_does_not_count,
		a_report_names_kernel_block_thread_line_and_address,
		an_access_is_reported_once,
		reports_of_one_place_are_few_and_all_are_counted,
		a_missing_barrier_is_found,
		races_are_looked_for_byte_by_byte_and_between_warps_only,
		barriers_order_those_that_meet_at_them,
		atomics_do_not_race_with_each_other_but_with_plain_accesses,
		flags_and_fences_order_warps,
		mbarriers_order_warps,
		blocks_that_touch_the_same_words_are_found,
		the_last_block_may_read_what_a_fence_covers,
		blocks_may_run_at_the_same_time,
		a_flag_orders_blocks,
		both_sides_of_a_race_are_named,
		what_is_found_may_end_the_launch,
		nothing_is_looked_for_unless_asked,
		a_setting_that_is_not_known_is_refused,
	};
	TCase *cases = test_case("ptx defects");
	for (size_t n = 0; n < sizeof tests / sizeof *tests; n++)
		tcase_add_test(cases, tests[n]);
	return run_tests();
}
