/* SPDX-License-Identifier: BSD-3-Clause */
/* The registration cache of a process that forks, and its children's. */
#include "config.h"

#include "test/ib/cache.h"

#include "ib/ib_memory.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int in_child(int (*body)(void))
{
	fflush(NULL);
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(body());
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static struct ib_cached *parents;

static int child_of_the_parents(void)
{
	struct ib_cached *cached;
	if (ib_cache_get(cache, &stats, at_page(0), PAGE, IB_USE_SEND, &cached) != -ECHILD)
		return 1;
	munmap(at_page(2), PAGE); /* must neither hang nor be told to the parent */
	ib_cache_put(parents);
	unsigned alive = adapter.alive;
	ib_cache_sweep(cache);
	ib_cache_close(cache);
	return adapter.alive == alive ? 0 : 2;
}

START_TEST(a_child_leaves_the_parents_registrations_alone)
{
	map(0, 8);
	parents = get(at_page(0), 8 * PAGE);
	use_pages(0, 8);
	ck_assert_int_eq(in_child(child_of_the_parents), 0);
	ib_cache_put(parents);
	ck_assert(hits_pages(0, 8));
	map(1, 1);
	ck_assert(!hits_pages(0, 8));
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* which has no threads after the fork of a process with threads */
static int child_of_its_own(void)
{
	if (ib_cache_open(NULL, &cache))
		return 1;
	use_pages(0, 8);
	if (!hits_pages(0, 8))
		return 2;
	map(3, 1);
	if (hits_pages(0, 8))
		return 3;
	ib_cache_close(cache);
	return 0;
}

START_TEST(a_child_may_have_a_cache_of_its_own)
{
	map(0, 8);
	use_pages(0, 8);
	ck_assert_int_eq(in_child(child_of_its_own), 0);
	ck_assert(hits_pages(0, 8));
}
END_TEST
#endif

/* The child still has the descriptor of the watch, so the parent's close does not end it. */
START_TEST(memory_can_be_unmapped_when_only_a_child_has_the_watch)
{
	map(0, 8);
	use_pages(0, 8);
	void *moved = mremap(at_page(0), 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at_page(32));
	ck_assert_ptr_eq(moved, at_page(32));
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	ib_cache_close(cache);
	munmap(at_page(32), 8 * PAGE);
	munmap(at_page(40), 8 * PAGE);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	open_with("1", "1M");
}
END_TEST

/* The close comes between the moment when the reader has read the event of an unmapping and the moment when it takes the
 * range out of its list: the rest of the mapping must not stay watched. */
START_TEST(memory_behind_a_hole_is_unwatched_at_the_close)
{
	for (int i = 0; i < 20; i++) {
		map(0, 8);
		use_pages(0, 8);
		pid_t child = fork();
		if (child == 0) {
			pause();
			_exit(0);
		}
		ib_memory_lock();
		unmap(0, 1); /* returns when the reader has read the event; then the reader waits for the lock */
		ib_memory_unlock();
		ib_cache_close(cache);
		munmap(at_page(4), 4 * PAGE);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		open_with("100", "1G");
	}
}
END_TEST

/* ---- */

void add_forking(TCase *tests)
{
	tcase_add_test(tests, a_child_leaves_the_parents_registrations_alone);
#ifndef __SANITIZE_THREAD__
	tcase_add_test(tests, a_child_may_have_a_cache_of_its_own);
#endif
	tcase_add_test(tests, memory_can_be_unmapped_when_only_a_child_has_the_watch);
	tcase_add_test(tests, memory_behind_a_hole_is_unwatched_at_the_close);
}
