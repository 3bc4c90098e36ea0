/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libibverbs double keeps the rules of verbs. Written against the public interface only. Runs on the double alone,
 * by rules.sh: without it the real library would find no device.
 */
#include "test/ibverbs_double/ends.h"

#include <stdlib.h>

int main(void)
{
	Suite *suite = suite_create("libibverbs double");
	TCase *(*const cases[])(void) = { rules_of_data, rules_of_keys, rules_of_queues, rules_of_peers,
					  rules_of_faults };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		TCase *made = cases[i]();
		tcase_set_timeout(made, 300);
		suite_add_tcase(suite, made);
	}
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
