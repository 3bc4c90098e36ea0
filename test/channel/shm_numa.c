/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings lie on their receiver's NUMA node: the kernel is asked what policy the memory of a connection has. It tells
 * that on a machine of one node too, once the ring is placed; the linker lets the test pretend to a second node.
 */
#include "config.h"

#include "test/channel/shm_ends.h"

#include <stdio.h>

#ifndef HAVE_NUMA

int main(void)
{
	printf("SKIP: built without libnuma\n");
	return 77;
}

#else

#include <check.h>
#include <errno.h>
#include <numaif.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static bool two_nodes;

long __real_get_mempolicy(int *mode, unsigned long *nodes, unsigned long most, void *at, unsigned flags);
long __wrap_get_mempolicy(int *mode, unsigned long *nodes, unsigned long most, void *at, unsigned flags);

/* As it is; or with nodes 0 and 1 allowed. */
long __wrap_get_mempolicy(int *mode, unsigned long *nodes, unsigned long most, void *at, unsigned flags)
{
	long result = __real_get_mempolicy(mode, nodes, most, at, flags);
	if (result == 0 && flags == MPOL_F_MEMS_ALLOWED)
		*nodes = two_nodes ? 3 : 1;
	return result;
}

/* Makes a connection, whose four mappings must have this policy, for this node. */
static void check_policy(int expected, unsigned node)
{
	struct shm_ends ends;
	struct shm_mapping mappings[8];
	shm_ends_make(&ends, 65536);
	shm_ends_join(&ends);
	int n = shm_mappings(mappings, 8);
	ck_assert_int_eq(n, 4); /* two rings, each mapped at both ends */
	for (int i = 0; i < n; i++) {
		unsigned long nodes[16] = { 0 };
		int mode = -1;
		ck_assert_int_eq(__real_get_mempolicy(&mode, nodes, 1024, mappings[i].start, MPOL_F_ADDR), 0);
		ck_assert_int_eq(mode, expected);
		if (expected == MPOL_PREFERRED)
			ck_assert_uint_eq(nodes[0], 1ul << node);
		uint8_t *last = mappings[i].start + mappings[i].size - 1; /* the control page */
		ck_assert_int_eq(__real_get_mempolicy(&mode, NULL, 0, last, MPOL_F_ADDR), 0);
		ck_assert_int_eq(mode, expected);
	}
	shm_ends_transfer(&ends, 200000);
	shm_ends_close(&ends);
}

START_TEST(ring_lies_on_the_receivers_node)
{
	unsigned cpu, node;
	ck_assert_int_eq(getcpu(&cpu, &node), 0);
	ck_assert_uint_lt(node, 2);
	two_nodes = true;
	check_policy(MPOL_PREFERRED, node);
}
END_TEST

START_TEST(nothing_on_one_node)
{
	two_nodes = false;
	check_policy(MPOL_DEFAULT, 0);
}
END_TEST

START_TEST(nothing_where_the_setting_says_so)
{
	two_nodes = true;
	setenv("HEADRACE_SHM_NUMA", "0", 1);
	check_policy(MPOL_DEFAULT, 0);
}
END_TEST

START_TEST(nothing_where_the_thread_has_a_policy)
{
	unsigned long nodes = 1;
	two_nodes = true;
	ck_assert_int_eq(set_mempolicy(MPOL_BIND, &nodes, 64), 0);
	check_policy(MPOL_DEFAULT, 0);
}
END_TEST

int main(void)
{
	int mode;
	unsetenv("HEADRACE_SHM_NUMA");
	if (__real_get_mempolicy(&mode, NULL, 0, NULL, 0)) {
		printf("SKIP: get_mempolicy: %s\n", strerror(errno));
		return 77;
	}
	Suite *suite = suite_create("NUMA placement");
	TCase *tcase = tcase_create("policies");
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, ring_lies_on_the_receivers_node);
	tcase_add_test(tcase, nothing_on_one_node);
	tcase_add_test(tcase, nothing_where_the_setting_says_so);
	tcase_add_test(tcase, nothing_where_the_thread_has_a_policy);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_FORK); /* each has its own environment and policy */
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
