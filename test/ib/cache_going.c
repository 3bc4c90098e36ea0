/* SPDX-License-Identifier: BSD-3-Clause */
/* The registration cache: memory that goes, whoever lets it go and whenever. */
#include "config.h"

#include "test/ib/cache.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- memory that goes ---- */

START_TEST(unmapped_memory_leaves_the_cache)
{
	map(0, 16);
	use_pages(0, 16);
	unmap(4, 1);
	sweep();
	ck_assert_uint_eq(adapter.alive, 0);
	map(4, 1);
	ck_assert(!hits_pages(0, 16));
	ck_assert(hits_pages(0, 16));
}
END_TEST

START_TEST(memory_mapped_over_leaves_the_cache)
{
	map(0, 16);
	use_pages(0, 8);
	use_pages(10, 4);
	map(7, 1);
	ck_assert(!hits_pages(0, 8));
	ck_assert(hits_pages(10, 4));
}
END_TEST

START_TEST(moved_memory_leaves_the_cache_at_both_ends)
{
	map(0, 32);
	use_pages(2, 4);
	use_pages(20, 8);
	void *moved = mremap(at_page(2), 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at_page(22));
	ck_assert_ptr_eq(moved, at_page(22));
	note(22, 4, ++generations);
	note(2, 4, 0);
	ck_assert(!hits_pages(20, 8));
	map(2, 4);
	ck_assert(!hits_pages(2, 4));
}
END_TEST

START_TEST(moved_memory_is_watched_where_it_is_now)
{
	map(0, 4);
	use_pages(0, 4);
	void *moved = mremap(at_page(0), 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at_page(40));
	ck_assert_ptr_eq(moved, at_page(40));
	note(40, 8, ++generations);
	use_pages(40, 8);
	ck_assert(hits_pages(40, 8));
	map(47, 1);
	ck_assert(!hits_pages(40, 8));
}
END_TEST

START_TEST(shrunk_and_grown_memory_leaves_the_cache)
{
	map(0, 8);
	use_pages(0, 8);
	ck_assert_ptr_eq(mremap(at_page(0), 8 * PAGE, 4 * PAGE, 0), at_page(0));
	note(4, 4, 0);
	ck_assert_ptr_eq(mremap(at_page(0), 4 * PAGE, 8 * PAGE, 0), at_page(0));
	note(4, 4, ++generations);
	ck_assert(!hits_pages(0, 8));
	ck_assert_ptr_eq(mremap(at_page(0), 8 * PAGE, 4 * PAGE, 0), at_page(0));
	note(4, 4, 0);
	sweep();
	ck_assert_uint_eq(adapter.alive, 0);
}
END_TEST

static void give_back(int advice)
{
	map(0, 16);
	use_pages(0, 16);
	ck_assert_int_eq(madvise(at_page(5), PAGE, advice), 0);
	note(5, 1, ++generations);
	ck_assert(!hits_pages(0, 16));
	ck_assert(hits_pages(0, 16));
}

START_TEST(memory_given_back_leaves_the_cache)
{
	give_back(MADV_DONTNEED);
	give_back(MADV_FREE);
}
END_TEST

START_TEST(memory_below_the_break_leaves_the_cache)
{
	uint8_t *base = sbrk(0);
	base += -(uintptr_t)base % PAGE;
	ck_assert_int_eq(brk(base + 16 * PAGE), 0);
	use(base, 16 * PAGE);
	ck_assert(hits(base, 16 * PAGE));
	ck_assert_int_eq(brk(base + 8 * PAGE), 0);
	sweep();
	ck_assert_uint_eq(adapter.alive, 0);
	ck_assert_int_eq(brk(base + 16 * PAGE), 0);
	ck_assert(!hits(base, 16 * PAGE));
}
END_TEST

#ifndef HR_SANITIZED /* they bring their own malloc */
START_TEST(freed_memory_leaves_the_cache)
{
	uint8_t *big = calloc(1 << 20, 1); /* a mapping of its own, which free unmaps */
	use(big, 1 << 20);
	ck_assert(hits(big, 1 << 20));
	free(big);
	sweep();
	ck_assert_uint_eq(adapter.alive, 0);
	big = calloc(1 << 20, 1);
	ck_assert(!hits(big, 1 << 20));
	big = realloc(big, 64 << 20);
	ck_assert(!hits(big, 1 << 20));
	free(big);
}
END_TEST

START_TEST(trimmed_memory_leaves_the_cache)
{
	enum { BLOCKS = 64, BYTES = 100 << 10 }; /* too small for mappings of their own */
	void *block[BLOCKS];
	for (int i = 0; i < BLOCKS; i++)
		block[i] = calloc(BYTES, 1);
	for (int i = 0; i < BLOCKS; i++)
		use(block[i], BYTES);
	ck_assert_uint_ne(adapter.alive, 0);
	for (int i = BLOCKS; i-- > 0;)
		free(block[i]);
	malloc_trim(0);
	sweep();
	ck_assert_uint_le(adapter.pages_alive, BYTES / PAGE);
}
END_TEST
#endif

START_TEST(memory_that_goes_while_in_use_is_deregistered_by_put)
{
	map(0, 8);
	struct ib_cached *used = get(at_page(0), 8 * PAGE);
	unmap(0, 8);
	sweep();
	ck_assert_uint_eq(adapter.alive, 1);
	map(0, 8);
	ck_assert(!hits_pages(0, 8));
	ib_cache_put(used);
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(0, 8));
}
END_TEST

static void replace_page_1(void)
{
	map(1, 1);
}

/* The neighbour that is taken in is not the caller's buffer, so another thread may do with it what it likes. */
START_TEST(a_neighbour_that_goes_while_it_is_registered_is_not_kept)
{
	map(0, 8);
	use_pages(0, 4);
	adapter.meanwhile = replace_page_1;
	use_pages(4, 4);
	ck_assert_ptr_null(adapter.meanwhile);
	ck_assert(!hits_pages(0, 4));
	ck_assert(!hits_pages(4, 4));
	ck_assert(hits_pages(0, 8));
}
END_TEST

static void unmap_page_0(void)
{
	unmap(0, 1);
}

/* Part of a mapping is watched, for page 4 is kept, and another thread changes the mapping while the rest of it is put
 * under watch. */
START_TEST(what_is_kept_stays_watched_when_its_mapping_changes_meanwhile)
{
	map(0, 8);
	use_pages(4, 2);
	ck_assert_ptr_eq(mremap(at_page(0), 8 * PAGE, 16 * PAGE, 0), at_page(0));
	note(8, 8, ++generations);
	behind_watching = unmap_page_0;
	use_pages(12, 2);
	ck_assert_ptr_null(behind_watching);
	ck_assert(hits_pages(4, 2));
	map(4, 2);
	ck_assert(!hits_pages(4, 2));
}
END_TEST

START_TEST(a_mapping_is_not_split_by_being_used)
{
	map(0, 16);
	use_pages(4, 2);
	void *moved = mremap(at_page(0), 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at_page(64));
	ck_assert_ptr_eq(moved, at_page(64));
}
END_TEST

START_TEST(memory_that_can_change_without_a_call_is_not_kept)
{
	int file = memfd_create("memory", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(file, 8 * PAGE), 0);
	static const struct {
		int flags;
		bool file;
	} kinds[] = { { MAP_SHARED | MAP_ANONYMOUS, false }, { MAP_SHARED, true }, { MAP_PRIVATE, true } };
	for (unsigned i = 0; i < 3; i++) {
		void *memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, kinds[i].flags,
				    kinds[i].file ? file : -1, 0);
		ck_assert_ptr_ne(memory, MAP_FAILED);
		use(memory, 8 * PAGE);
		ck_assert_uint_eq(adapter.alive, 0);
		ck_assert(!hits(memory, 8 * PAGE));
		munmap(memory, 8 * PAGE);
	}
	close(file);
}
END_TEST

START_TEST(two_caches_are_both_told)
{
	struct ib_cache *first = cache, *second;
	map(0, 8);
	ck_assert_int_eq(ib_cache_open(NULL, &second), 0);
	use_pages(0, 8);
	cache = second;
	use_pages(0, 8);
	ck_assert(hits_pages(0, 8));
	map(3, 1);
	ck_assert(!hits_pages(0, 8));
	cache = first;
	ck_assert(!hits_pages(0, 8));
	ib_cache_close(second);
	map(3, 1); /* after one of them has gone the other is still told */
	ck_assert(!hits_pages(0, 8));
}
END_TEST

/* ---- other threads ---- */

static void *unmap_and_give_way(void *unused)
{
	(void)unused;
	munmap(at_page(0), 4 * PAGE);
	return NULL;
}

/* Another thread unmaps; this one gets the same addresses the moment they are free, perhaps long before the other's
 * munmap returns, and uses them. */
START_TEST(addresses_freed_by_another_thread_are_not_found_registered)
{
	for (int i = 0; i < 300; i++) {
		map(0, 4);
		use_pages(0, 4);
		pthread_t thread;
		ck_assert_int_eq(pthread_create(&thread, NULL, unmap_and_give_way, NULL), 0);
		void *got;
		do
			got = mmap(at_page(0), 4 * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		while (got == MAP_FAILED);
		note(0, 4, ++generations);
		ck_assert(!hits_pages(0, 4));
		pthread_join(thread, NULL);
	}
}
END_TEST

static unsigned turns_left;

static void *change_other_half(void *unused)
{
	(void)unused;
	unsigned seed = 3;
	while (__atomic_load_n(&turns_left, __ATOMIC_RELAXED)) {
		unsigned page = ARENA_PAGES / 2 + (unsigned)rand_r(&seed) % (ARENA_PAGES / 2 - 8);
		void *at = at_page(page);
		if (rand_r(&seed) % 2)
			mmap(at, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		else
			madvise(at, 8 * PAGE, MADV_DONTNEED);
	}
	return NULL;
}

/* One step of the random test within the first n pages: the model is the generation of each page. The last one gives
 * back what is held. */
static void random_step(unsigned *seed, unsigned n, bool last)
{
	unsigned page = (unsigned)rand_r(seed) % n;
	unsigned len = 1 + (unsigned)rand_r(seed) % 12;
	len = page + len > n ? n - page : len;
	static struct ib_cached *held[4];
	switch (rand_r(seed) % 12) {
	case 0: map(page, len); break;
	case 1: unmap(page, len); map(page, len); break;
	case 2:
		madvise(at_page(page), (size_t)len * PAGE, MADV_DONTNEED);
		note(page, len, ++generations);
		break;
	case 3: { /* a move within, if it does not overlap itself */
		unsigned to = (unsigned)rand_r(seed) % (n - len + 1);
		if (to + len > page && page + len > to)
			break;
		/* Pages of several mappings cannot be moved in one call. */
		for (unsigned i = 0; i < len; i++)
			ck_assert_ptr_eq(mremap(at_page(page + i), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
						at_page(to + i)), at_page(to + i));
		note(to, len, ++generations);
		map(page, len);
		break;
	}
	case 4: {
		struct ib_cached **slot = &held[rand_r(seed) % 4];
		if (*slot)
			ib_cache_put(*slot);
		*slot = rand_r(seed) % 2 ? get(at_page(page), (size_t)len * PAGE) : NULL;
		break;
	}
	default: use(at_page(page) + 5, (size_t)len * PAGE - 10); break;
	}
	if (last)
		for (int i = 0; i < 4; i++) {
			if (held[i])
				ib_cache_put(held[i]);
			held[i] = NULL;
		}
}

static void random_turns(unsigned seed, unsigned turns, unsigned n)
{
	map(0, ARENA_PAGES);
	__atomic_store_n(&turns_left, turns, __ATOMIC_RELAXED);
	for (; turns > 0; turns--) {
		random_step(&seed, n, turns == 1);
		__atomic_store_n(&turns_left, turns - 1, __ATOMIC_RELAXED);
	}
	ck_assert_uint_gt(stats.registration_hits, 50);
	ck_assert_uint_gt(stats.registration_misses, 50);
}

/* Other threads change memory so busily that there is no moment without a change under way. */
START_TEST(without_a_quiet_moment_each_use_registers_for_itself)
{
	enum { WITHOUT_END = 100000 };
	map(0, 16);
	use_pages(0, 8);
	unsigned kept = adapter.alive;
	__atomic_store_n(&asked_changing, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&changing_for, WITHOUT_END, __ATOMIC_RELAXED);
	struct ib_cached *found = get(at_page(0), 8 * PAGE), *new = get(at_page(6), 4 * PAGE);
	ck_assert_uint_lt(__atomic_load_n(&asked_changing, __ATOMIC_RELAXED), 1000);
	ck_assert_uint_eq(stats.registration_hits, 0);
	ck_assert_uint_eq(adapter.alive, kept + 2);
	ck_assert_uint_eq(new->start, (uintptr_t)at_page(6));
	ck_assert_uint_eq(new->end, (uintptr_t)at_page(10));
	ib_cache_put(found);
	ib_cache_put(new);
	ck_assert_uint_eq(adapter.alive, kept);
	__atomic_store_n(&changing_for, 0, __ATOMIC_RELAXED);
	ck_assert(hits_pages(0, 8));
	ck_assert(!hits_pages(6, 4));
}
END_TEST

static void change_without_end(void)
{
	__atomic_store_n(&changing_for, 100000, __ATOMIC_RELAXED);
}

/* They begin while a registration is made. */
START_TEST(what_was_registered_before_a_quiet_moment_is_not_kept)
{
	map(0, 8);
	adapter.meanwhile = change_without_end;
	use_pages(0, 8);
	ck_assert_uint_eq(adapter.alive, 0);
	__atomic_store_n(&changing_for, 0, __ATOMIC_RELAXED);
	ck_assert(!hits_pages(0, 8));
	ck_assert(hits_pages(0, 8));
}
END_TEST

START_TEST(at_random_every_page_handed_out_is_the_one_that_is_there)
{
	ib_cache_close(cache);
	open_with("20", "512k");
	random_turns((unsigned)_i + 1, 20000, 96);
}
END_TEST

START_TEST(at_random_beside_another_thread_too)
{
	map(0, ARENA_PAGES);
	turns_left = 1;
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, NULL, change_other_half, NULL), 0);
	random_turns(99, 5000, ARENA_PAGES / 2);
	pthread_join(thread, NULL);
}
END_TEST

/* ---- */

void add_going(TCase *tests)
{
	tcase_add_test(tests, unmapped_memory_leaves_the_cache);
	tcase_add_test(tests, memory_mapped_over_leaves_the_cache);
	tcase_add_test(tests, moved_memory_leaves_the_cache_at_both_ends);
	tcase_add_test(tests, moved_memory_is_watched_where_it_is_now);
	tcase_add_test(tests, shrunk_and_grown_memory_leaves_the_cache);
	tcase_add_test(tests, memory_given_back_leaves_the_cache);
	tcase_add_test(tests, memory_below_the_break_leaves_the_cache);
#ifndef HR_SANITIZED
	tcase_add_test(tests, freed_memory_leaves_the_cache);
	tcase_add_test(tests, trimmed_memory_leaves_the_cache);
#endif
	tcase_add_test(tests, memory_that_goes_while_in_use_is_deregistered_by_put);
	tcase_add_test(tests, a_neighbour_that_goes_while_it_is_registered_is_not_kept);
	tcase_add_test(tests, what_is_kept_stays_watched_when_its_mapping_changes_meanwhile);
	tcase_add_test(tests, a_mapping_is_not_split_by_being_used);
	tcase_add_test(tests, memory_that_can_change_without_a_call_is_not_kept);
	tcase_add_test(tests, two_caches_are_both_told);
	tcase_add_test(tests, addresses_freed_by_another_thread_are_not_found_registered);
	tcase_add_test(tests, without_a_quiet_moment_each_use_registers_for_itself);
	tcase_add_test(tests, what_was_registered_before_a_quiet_moment_is_not_kept);
	tcase_add_loop_test(tests, at_random_every_page_handed_out_is_the_one_that_is_there, 0, 4);
	tcase_add_test(tests, at_random_beside_another_thread_too);
}
