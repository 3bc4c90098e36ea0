/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache without an adapter: verbs_cache_kit.c brings the registering itself. Here: what holds also
 * where nothing is kept.
 */
#include "config.h"

#include "test/ib/cache.h"

#include "ib/ib_maps.h"
#include "ib/ib_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- refusals ---- */

START_TEST(a_range_that_wraps_or_is_empty_is_refused)
{
	struct ib_cached *cached;
	ck_assert_int_eq(ib_cache_get(cache, &stats, arena, 0, IB_USE_SEND, &cached), -EINVAL);
	ck_assert_int_eq(ib_cache_get(cache, &stats, (void *)-8192, 16384, IB_USE_SEND, &cached), -EINVAL);
}
END_TEST

/* How many lines the log has when registering is refused that often. */
static unsigned lines_logged(unsigned times)
{
	FILE *file = tmpfile();
	int saved = dup(2);
	dup2(fileno(file), 2);
	adapter.refuse = -ENOMEM;
	for (unsigned i = 0; i < times; i++)
		ck_assert_int_eq(get_for(i, 1, IB_USE_SEND), -ENOMEM);
	adapter.refuse = 0;
	dup2(saved, 2);
	close(saved);
	rewind(file);
	unsigned lines = 0;
	for (int c; (c = fgetc(file)) != EOF;)
		lines += c == '\n';
	fclose(file);
	return lines;
}

START_TEST(a_refusal_is_an_error_and_logged_once)
{
	map(0, 8);
	ck_assert_uint_eq(lines_logged(5), 1);
	ck_assert_int_eq(get_for(0, 1, IB_USE_SEND), 0);
}
END_TEST

/* ---- without the mechanism ---- */

static void forbid_userfaultfd(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof rules / sizeof *rules, rules };
	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void every_use_registers(void)
{
	map(0, 8);
	use_pages(0, 8);
	ck_assert_uint_eq(adapter.alive, 0);
	ck_assert(!hits_pages(0, 8));
	struct ib_cached *a = get(at_page(0), PAGE), *b = get(at_page(0), PAGE);
	ck_assert_uint_eq(adapter.alive, 2);
	ib_cache_put(a);
	ib_cache_put(b);
	ck_assert_uint_eq(adapter.alive, 0);
}

START_TEST(without_userfaultfd_every_use_registers)
{
	ib_cache_close(cache);
	forbid_userfaultfd();
	open_with("1024", "1G");
	every_use_registers();
}
END_TEST

START_TEST(with_a_budget_of_nothing_every_use_registers)
{
	ib_cache_close(cache);
	open_with("0", "1G");
	every_use_registers();
	ib_cache_close(cache);
	open_with("100", "0");
	every_use_registers();
}
END_TEST

/* ---- the kernel's list of mappings ---- */

START_TEST(both_ways_to_ask_for_a_mapping_agree)
{
	int maps = open("/proc/self/maps", O_RDONLY);
	unsigned n = 0, private = 0;
	map(0, 2);
	map(4, 2);
	mprotect(at_page(5), PAGE, PROT_READ);
	struct ib_mapping query, text;
	uintptr_t at[] = { (uintptr_t)at_page(0), (uintptr_t)at_page(1) + 9, (uintptr_t)at_page(2),
			   (uintptr_t)at_page(4), (uintptr_t)at_page(5), (uintptr_t)&n, (uintptr_t)every_use_registers,
			   (uintptr_t)sbrk(0) - 1, (uintptr_t)strlen, 4096 };
	for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
		int error = ib_maps_find(maps, at[i], &query);
		ck_assert_int_eq(ib_maps_find_text(maps, at[i], &text), error);
		if (error)
			continue;
		ck_assert_uint_eq(query.start, text.start);
		ck_assert_uint_eq(query.end, text.end);
		ck_assert_int_eq(query.private_anonymous, text.private_anonymous);
		ck_assert(at[i] >= query.start && at[i] < query.end);
		n++;
		private += query.private_anonymous;
	}
	ck_assert_uint_ge(n, 7);
	ck_assert(private >= 4 && private < n);
	ck_assert_int_eq(ib_maps_find(maps, (uintptr_t)at_page(2), &query), -ENOENT);
	for (unsigned page = 0; page < 6; page++) {
		ck_assert_int_eq(ib_maps_next(maps, (uintptr_t)at_page(page), &query), 0);
		ck_assert_int_eq(ib_maps_next_text(maps, (uintptr_t)at_page(page), &text), 0);
		ck_assert_uint_eq(query.start, text.start);
		ck_assert_uint_eq(query.end, text.end);
		ck_assert_uint_gt(query.end, (uintptr_t)at_page(page));
	}
	ck_assert_int_eq(ib_maps_next(maps, (uintptr_t)at_page(2), &query), 0);
	ck_assert_uint_eq(query.start, (uintptr_t)at_page(4));
	ck_assert_int_eq(ib_maps_next(maps, UINTPTR_MAX - 8192, &query), -ENOENT);
	ck_assert_int_eq(ib_maps_next_text(maps, UINTPTR_MAX - 8192, &text), -ENOENT);
	close(maps);
}
END_TEST

/* ---- */

static bool is_told(void)
{
	struct ib_memory_user user = { .next = NULL };
	if (ib_memory_join(&user))
		return false;
	ib_memory_leave(&user);
	return true;
}

static TCase *new_case(const char *name)
{
	TCase *tests = tcase_create(name);
	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, make_arena, close_cache);
	return tests;
}

int main(void)
{
	setenv("HEADRACE_LOG", "warn", 1); /* read at the first message */
	bool told = is_told();
	Suite *suite = suite_create("verbs_cache");
	TCase *always = new_case("always");
	tcase_add_test(always, a_range_that_wraps_or_is_empty_is_refused);
	tcase_add_test(always, a_refusal_is_an_error_and_logged_once);
	tcase_add_test(always, without_userfaultfd_every_use_registers);
	tcase_add_test(always, with_a_budget_of_nothing_every_use_registers);
	tcase_add_test(always, both_ways_to_ask_for_a_mapping_agree);
	suite_add_tcase(suite, always);
	if (told) {
		TCase *keeping = new_case("keeping"), *going = new_case("going");
		TCase *forking = new_case("forking");
		add_keeping(keeping);
		add_going(going);
		add_forking(forking);
		suite_add_tcase(suite, keeping);
		suite_add_tcase(suite, going);
		suite_add_tcase(suite, forking);
	}
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	if (!failed && !told) {
		puts("userfaultfd is not allowed here: what the cache keeps was not tested");
		return 77;
	}
	return failed ? 1 : 0;
}
