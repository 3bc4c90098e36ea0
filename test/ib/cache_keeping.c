/* SPDX-License-Identifier: BSD-3-Clause */
/* The registration cache: what it keeps, for how long, and for which uses. */
#include "config.h"

#include "test/ib/cache.h"

#include <errno.h>
#include <stdlib.h>

/* ---- keeping ---- */

START_TEST(what_was_used_is_found_registered)
{
	map(0, 16);
	use(at_page(2) + 100, 3 * PAGE);
	ck_assert_uint_eq(stats.registration_misses, 1);
	ck_assert(hits(at_page(2) + 100, 3 * PAGE));
	ck_assert(hits(at_page(2), 1));
	ck_assert(hits(at_page(5) + 4095, 1));
	ck_assert(!hits(at_page(6), 1));
	ck_assert(!hits(at_page(1) + 4095, 2));
	ck_assert_uint_eq(stats.registration_hits, 3);
	ck_assert_uint_eq(stats.registration_misses, 3);
}
END_TEST

START_TEST(neighbours_become_one_entry)
{
	map(0, 16);
	use_pages(4, 2);
	use_pages(6, 2); /* right of it */
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(4, 4));
	use_pages(0, 4); /* left of it */
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(0, 8));
	use_pages(10, 2);
	use_pages(8, 2); /* between two: joins what is no longer than itself */
	ck_assert(hits_pages(8, 4));
}
END_TEST

START_TEST(a_long_array_piece_by_piece_is_registered_in_few_steps)
{
	map(0, 256);
	for (unsigned i = 0; i < 256; i++)
		use_pages(i, 1);
	ck_assert_uint_le(adapter.alive, 9);
	ck_assert_uint_le(adapter.pages_made, 256 * 9);
	for (unsigned i = 0; i < 256; i++)
		ck_assert(hits_pages(i, 1));
	/* The same in pieces that are not whole pages, so that each overlaps the one before. */
	ib_cache_close(cache);
	open_with("1024", "1G");
	adapter.pages_made = 0;
	for (unsigned i = 0; i + 1 < 256; i++)
		use(at_page(i) + 2000, PAGE);
	ck_assert_uint_le(adapter.pages_made, 256 * 18);
	for (unsigned i = 0; i + 1 < 256; i++)
		ck_assert(hits(at_page(i) + 2000, PAGE));
}
END_TEST

START_TEST(a_longer_range_takes_in_what_lies_within)
{
	map(0, 32);
	for (unsigned i = 1; i < 30; i += 3)
		use_pages(i, 1);
	use_pages(0, 32);
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(0, 32));
}
END_TEST

START_TEST(the_least_recently_used_goes_when_there_are_too_many)
{
	ib_cache_close(cache);
	open_with("3", "1G");
	map(0, 32);
	use_pages(0, 1);
	use_pages(4, 1);
	use_pages(8, 1);
	ck_assert(hits_pages(0, 1)); /* now the one at 4 is the oldest */
	use_pages(12, 1);
	ck_assert_uint_eq(adapter.alive, 3);
	ck_assert(hits_pages(0, 1));
	ck_assert(hits_pages(8, 1));
	ck_assert(hits_pages(12, 1));
	ck_assert(!hits_pages(4, 1));
}
END_TEST

START_TEST(the_least_recently_used_goes_when_bytes_run_out)
{
	ib_cache_close(cache);
	open_with("1000", "40k");
	map(0, 64);
	use_pages(0, 4);
	use_pages(10, 4);
	use_pages(20, 4);
	ck_assert_uint_eq(adapter.pages_alive, 8);
	ck_assert(hits_pages(10, 4));
	ck_assert(hits_pages(20, 4));
	ck_assert(!hits_pages(0, 4));
	/* More than there may ever be is registered for once, and costs no other its place. */
	unsigned alive = adapter.alive;
	use_pages(30, 11);
	ck_assert_uint_eq(adapter.alive, alive);
	ck_assert(!hits_pages(30, 11));
}
END_TEST

START_TEST(what_is_in_use_never_goes)
{
	ib_cache_close(cache);
	open_with("2", "1G");
	map(0, 32);
	struct ib_cached *a = get(at_page(0), PAGE), *b = get(at_page(4), PAGE), *c = get(at_page(8), PAGE);
	ck_assert_uint_eq(adapter.alive, 3);
	ib_cache_put(c); /* for which there was no place */
	ck_assert_uint_eq(adapter.alive, 2);
	ck_assert(!hits_pages(8, 1));
	ib_cache_put(a);
	use_pages(12, 1);
	ck_assert(hits_pages(4, 1));
	ck_assert(!hits_pages(0, 1));
	ib_cache_put(b);
}
END_TEST

START_TEST(what_is_in_use_may_be_taken_in_by_a_longer_range)
{
	map(0, 8);
	struct ib_cached *a = get(at_page(2), PAGE);
	struct ib_cached *b = get(at_page(0), 8 * PAGE);
	ck_assert_uint_eq(adapter.alive, 2);
	ck_assert(is_current(a, at_page(2), PAGE));
	ib_cache_put(a);
	ck_assert_uint_eq(adapter.alive, 1);
	ib_cache_put(b);
	ck_assert(hits_pages(0, 8));
}
END_TEST

/* ---- uses and refusals ---- */

START_TEST(read_only_memory_can_be_sent_and_later_received_into)
{
	map(0, 8);
	adapter.read_only = (uintptr_t)at_page(1);
	ck_assert_int_eq(get_for(0, 2, IB_USE_SEND), 0);
	ck_assert_int_eq(get_for(0, 2, IB_USE_SEND), 0);
	ck_assert_uint_eq(stats.registration_hits, 1);
	ck_assert_int_eq(get_for(0, 2, IB_USE_RECEIVE), -EFAULT);
	adapter.read_only = 0;
	ck_assert_int_eq(get_for(0, 2, IB_USE_RECEIVE), 0);
	ck_assert_int_eq(get_for(0, 2, IB_USE_SEND | IB_USE_RECEIVE), 0);
	ck_assert_uint_eq(stats.registration_hits, 2);
}
END_TEST

START_TEST(what_the_peer_may_write_is_not_kept)
{
	struct ib_cached *cached;
	map(0, 8);
	use_pages(0, 4);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(ib_cache_get(cache, &stats, at_page(0), 2 * PAGE, IB_USE_RECEIVE | IB_USE_REMOTE_WRITE,
					      &cached), 0);
		ck_assert_uint_eq(adapter.alive, 2);
		/* Nothing else becomes writable with it. */
		ck_assert_uint_eq(cached->start, (uintptr_t)at_page(0));
		ck_assert_uint_eq(cached->end, (uintptr_t)at_page(2));
		ib_cache_put(cached);
		ck_assert_uint_eq(adapter.alive, 1);
	}
	ck_assert_uint_eq(stats.registration_misses, 3);
	cached = get(at_page(0), 4 * PAGE);
	ck_assert_uint_eq(cached->uses & IB_USE_REMOTE_WRITE, 0);
	ck_assert_uint_eq(stats.registration_hits, 1);
	ib_cache_put(cached);
}
END_TEST

START_TEST(the_peer_may_write_only_where_that_was_asked_for)
{
	setenv("HEADRACE_IB_KEEP_EXPOSED", "1", 1);
	ib_cache_close(cache);
	open_with("1024", "1G");
	map(0, 8);
	struct ib_cached *cached = get(at_page(0), 2 * PAGE);
	ck_assert_uint_eq(cached->uses & IB_USE_REMOTE_WRITE, 0);
	ib_cache_put(cached);
	ck_assert_int_eq(get_for(0, 1, IB_USE_RECEIVE | IB_USE_REMOTE_WRITE), 0);
	ck_assert_uint_eq(stats.registration_misses, 2);
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(0, 2));
	/* Its neighbour does not become writable by touching it. */
	cached = get(at_page(2), 2 * PAGE);
	ck_assert_uint_eq(cached->uses & IB_USE_REMOTE_WRITE, 0);
	ib_cache_put(cached);
}
END_TEST

START_TEST(over_the_limit_what_is_not_in_use_is_given_up)
{
	map(0, 64);
	adapter.pages_most = 10;
	use_pages(0, 4);
	use_pages(10, 4);
	use_pages(20, 4);
	ck_assert_uint_eq(adapter.pages_alive, 4);
	struct ib_cached *used = get(at_page(20), 4 * PAGE);
	ck_assert_int_eq(get_for(30, 7, IB_USE_SEND), -ENOMEM);
	ib_cache_put(used);
	ck_assert_int_eq(get_for(30, 7, IB_USE_SEND), 0);
}
END_TEST

/* ---- */

void add_keeping(TCase *tests)
{
	tcase_add_test(tests, what_was_used_is_found_registered);
	tcase_add_test(tests, neighbours_become_one_entry);
	tcase_add_test(tests, a_long_array_piece_by_piece_is_registered_in_few_steps);
	tcase_add_test(tests, a_longer_range_takes_in_what_lies_within);
	tcase_add_test(tests, the_least_recently_used_goes_when_there_are_too_many);
	tcase_add_test(tests, the_least_recently_used_goes_when_bytes_run_out);
	tcase_add_test(tests, what_is_in_use_never_goes);
	tcase_add_test(tests, what_is_in_use_may_be_taken_in_by_a_longer_range);
	tcase_add_test(tests, read_only_memory_can_be_sent_and_later_received_into);
	tcase_add_test(tests, what_the_peer_may_write_is_not_kept);
	tcase_add_test(tests, the_peer_may_write_only_where_that_was_asked_for);
	tcase_add_test(tests, over_the_limit_what_is_not_in_use_is_given_up);
}
