/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a ring: its size, seals and kind of pages; and that a peer that describes it wrongly is refused. */
#include "config.h"

#include "test/channel/shm_ends.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define HUGE (2u << 20)
#define CONTROL 4096u

static size_t size_of(int fd)
{
	struct stat status;
	ck_assert_int_eq(fstat(fd, &status), 0);
	return (size_t)status.st_size;
}

/* Makes a connection whose segments must have this size; checks that it is what the channel says before, that it is
 * sealed, and that bytes pass more than twice around the ring. Returns in *mappings what the kernel says. */
static int check_ring(uint32_t ring_bytes, size_t segment, struct shm_mapping mappings[8])
{
	struct shm_ends ends;
	shm_ends_make(&ends, ring_bytes);
	for (int i = 0; i < 2; i++) {
		int fd = ends.end[i].half.fds[0];
		ck_assert_uint_eq(size_of(fd), segment);
		ck_assert_int_eq(ftruncate(fd, 0), -1);
		ck_assert_int_eq(errno, EPERM);
		ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW);
	}
	shm_ends_join(&ends);
	ck_assert_uint_eq(ends.end[0].stats.memory_bytes, hr_transport_shm.conn_bytes(ends.context, ring_bytes));
	ck_assert_uint_ge(ends.end[0].stats.memory_bytes, 2 * segment);
	shm_ends_transfer(&ends, 2 * ring_bytes + 100000);
	int n = shm_mappings(mappings, 8);
	shm_ends_close(&ends);
	struct shm_mapping left;
	ck_assert_int_eq(shm_mappings(&left, 1), 0);
	return n;
}

static void set_pages(const char *value)
{
	setenv("HEADRACE_SHM_HUGE_PAGES", value, 1);
	setenv("HEADRACE_SHM_ZERO_COPY", "0", 1);
}

START_TEST(small_pages)
{
	struct shm_mapping mappings[8];
	set_pages("0");
	int n = check_ring(2 * HUGE, 2 * HUGE + CONTROL, mappings);
	ck_assert_int_eq(n, 4);
	for (int i = 0; i < n; i++)
		ck_assert(!mappings[i].advised);
}
END_TEST

START_TEST(auto_wastes_nothing)
{
	struct shm_mapping mappings[8];
	set_pages("auto");
	int n = check_ring(HUGE / 2, HUGE / 2 + CONTROL, mappings);
	ck_assert_int_eq(n, 4);
	for (int i = 0; i < n; i++)
		ck_assert(!mappings[i].advised);
}
END_TEST

/* The part of each mapping that whole pages fill is advised, and lies where huge pages can. */
static void check_advised(const struct shm_mapping *mappings, int n, size_t size)
{
	int advised = 0;
	for (int i = 0; i < n; i++) {
		if (!mappings[i].advised)
			continue;
		advised++;
		ck_assert_uint_eq((uintptr_t)mappings[i].start % HUGE, 0);
		ck_assert_uint_eq(mappings[i].size, size);
	}
	ck_assert_int_eq(advised, 4);
}

START_TEST(auto_asks_for_large_rings)
{
	struct shm_mapping mappings[8];
	set_pages("auto");
	check_advised(mappings, check_ring(HUGE, HUGE + CONTROL, mappings), HUGE);
	check_advised(mappings, check_ring(2 * HUGE, 2 * HUGE + CONTROL, mappings), 2 * HUGE);
}
END_TEST

/* Can memory that is shared be made huge by who insists? */
static bool collapses_here(void)
{
	int fd = memfd_create("try", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(fd, HUGE), 0);
	uint8_t *all = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = all + (-(uintptr_t)all & (HUGE - 1));
	ck_assert_ptr_eq(mmap(at, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), at);
	memset(at, 1, HUGE);
	madvise(at, HUGE, MADV_HUGEPAGE);
	bool collapses = madvise(at, HUGE, MADV_COLLAPSE) == 0;
	munmap(all, 2 * HUGE);
	close(fd);
	return collapses;
}

static long count_of(const char *path)
{
	long n = 0;
	FILE *file = fopen(path, "re");
	if (file && fscanf(file, "%ld", &n) != 1)
		n = 0;
	if (file)
		fclose(file);
	return n;
}

/* Reserved pages that nobody has or has been promised. */
static long reserved_pages(void)
{
	return count_of("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") -
	       count_of("/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages");
}

/* All of each ring is huge, for both ends. */
static void check_huge(uint32_t ring_bytes, size_t segment)
{
	struct shm_mapping mappings[8];
	size_t huge = 0;
	int n = check_ring(ring_bytes, segment, mappings);
	for (int i = 0; i < n; i++)
		huge += mappings[i].huge_bytes;
	ck_assert_uint_ge(huge, 4 * (size_t)(ring_bytes < HUGE ? HUGE : ring_bytes));
}

START_TEST(insisting_makes_them_huge)
{
	long reserved = reserved_pages();
	if (reserved < 6 && !collapses_here()) { /* two rings of three pages */
		printf("not tried: too few reserved huge pages, and no MADV_COLLAPSE of shared memory\n");
		return;
	}
	set_pages("1");
	check_huge(HUGE / 2, HUGE); /* filled up to one page */
	check_huge(2 * HUGE, reserved > 0 ? 3 * HUGE : 2 * HUGE + CONTROL);
}
END_TEST

START_TEST(too_small_to_insist)
{
	struct shm_mapping mappings[8];
	set_pages("1");
	ck_assert_int_eq(check_ring(65536, 65536 + CONTROL, mappings), 4);
}
END_TEST

START_TEST(unknown_setting)
{
	static const struct hr_channel_env env = { .timeout_ms = 1000 };
	uint8_t section[HR_SECTION_MAX];
	size_t section_len;
	void *context;
	set_pages("yes");
	ck_assert_int_eq(hr_transport_shm.open(&env, &context, section, &section_len), -EINVAL);
}
END_TEST

/* The half of end 1 says `size` of its memory, which has `real` bytes; end 0 must refuse it. */
static void check_refused(uint32_t size, off_t real)
{
	struct shm_ends ends;
	set_pages("0");
	shm_ends_make(&ends, 65536);
	struct hr_half *half = &ends.end[1].half;
	memcpy(half->blob + 28, &size, sizeof size); /* segment_bytes of shm_half_wire */
	close(half->fds[0]);
	half->fds[0] = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_eq(ftruncate(half->fds[0], real), 0);
	ck_assert_int_eq(fcntl(half->fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	ck_assert_int_eq(hr_transport_shm.conn_establish(ends.end[0].conn, half, ends.end[0].stream), -EPROTO);
	close(ends.end[0].half.fds[0]);
	shm_ends_close(&ends);
}

START_TEST(wrong_sizes)
{
	check_refused(0, 0);
	check_refused(65536, 65536); /* no control page */
	check_refused(65536 + CONTROL + 4096, 65536 + CONTROL); /* possible, but not true */
	check_refused(65536 + CONTROL, 65536 + CONTROL + 4096);
	check_refused(HUGE + CONTROL, HUGE + CONTROL); /* more than fills one page up */
	check_refused(UINT32_MAX, UINT32_MAX);
}
END_TEST

/* Memory of the right size that the peer kept the right to shrink. */
START_TEST(memory_that_is_not_sealed)
{
	struct shm_ends ends;
	set_pages("0");
	shm_ends_make(&ends, 65536);
	struct hr_half *half = &ends.end[1].half;
	close(half->fds[0]);
	half->fds[0] = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_eq(ftruncate(half->fds[0], 65536 + CONTROL), 0);
	ck_assert_int_eq(hr_transport_shm.conn_establish(ends.end[0].conn, half, ends.end[0].stream), -EPROTO);
	close(ends.end[0].half.fds[0]);
	shm_ends_close(&ends);
}
END_TEST

/* Puts a stream of short records. Returns the bytes of memory that the ring has then; fd: of the ring. */
static size_t memory_after_stream(struct shm_ends *ends, int fd, int records)
{
	void *sender = ends->end[0].conn, *receiver = ends->end[1].conn;
	const uint8_t *at;
	size_t len;
	struct stat status;
	for (int i = 0; i < records; i++) {
		ck_assert(hr_transport_shm.post(sender, "front", 5, "payload", 7));
		if (i % 32 < 31) /* otherwise these are no stream, but single messages */
			continue;
		while (hr_transport_shm.peek(receiver, &at, &len) == HR_ARRIVED)
			hr_transport_shm.consume(receiver, len);
	}
	ck_assert_int_eq(fstat(fd, &status), 0);
	return (size_t)status.st_blocks * 512;
}

/* Returns how many of `n` rings of 1 MB have all their memory after a short stream over each. */
static int whole_rings(void *context, int n)
{
	static struct shm_ends ends[64];
	int whole = 0;
	for (int i = 0; i < n; i++) {
		shm_ends_make_in(context, &ends[i], 1 << 20);
		int fd = dup(ends[i].end[1].half.fds[0]); /* the other end closes its descriptor */
		ck_assert_int_ge(fd, 0);
		shm_ends_join(&ends[i]);
		whole += memory_after_stream(&ends[i], fd, 200) >= 1 << 20;
		close(fd);
	}
	for (int i = 0; i < n; i++)
		shm_ends_close_conns(&ends[i]);
	return whole;
}

/* A process may send a few messages to each of very many others. */
START_TEST(few_rings_are_made_present_whole)
{
	struct shm_ends first;
	set_pages("0");
	shm_ends_make(&first, 65536);
	shm_ends_join(&first);
	int whole = whole_rings(first.context, 64);
	ck_assert_int_le(whole, 16);
	ck_assert_int_eq(whole_rings(first.context, 64), whole); /* those of closed connections do not count */
	shm_ends_close(&first);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory of rings");
	TCase *tcase = tcase_create("pages");
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, small_pages);
	tcase_add_test(tcase, auto_wastes_nothing);
	tcase_add_test(tcase, auto_asks_for_large_rings);
	tcase_add_test(tcase, insisting_makes_them_huge);
	tcase_add_test(tcase, too_small_to_insist);
	tcase_add_test(tcase, unknown_setting);
	tcase_add_test(tcase, wrong_sizes);
	tcase_add_test(tcase, memory_that_is_not_sealed);
	tcase_add_test(tcase, few_rings_are_made_present_whole);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_FORK); /* each has its own environment */
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
