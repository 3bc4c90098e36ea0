/* SPDX-License-Identifier: BSD-3-Clause */
/* headraced: the daemon, or with --worker one of its workers, or with --metrics-process the process of its metrics. */
#include "cuda_remote/server/daemon/child.h"
#include "cuda_remote/server/daemon/daemon.h"
#include "cuda_remote/server/daemon/log_place.h"
#include "cuda_remote/server/daemon/metrics_process.h"
#include "cuda_remote/server/daemon/systemd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Defined in a program built with -fsanitize=address. LeakSanitizer looks for leaks at exit(), which a worker does not
 * call: destructors of the driver's libraries may wait for threads that never end. */
extern void __lsan_do_leak_check(void) __attribute__((weak));

/* Never returns. */
static void work(void)
{
	int status = child_run();
	if (__lsan_do_leak_check)
		__lsan_do_leak_check();
	_exit(status);
}

int main(int argc, char **argv)
{
	struct daemon_options options;
	log_place_note();
	if (argc == 2 && !strcmp(argv[1], CHILD_ARGUMENT))
		work();
	if (argc == 2 && !strcmp(argv[1], METRICS_ARGUMENT))
		return metrics_process_run();
	int status = daemon_options_parse(argc, argv, &options);
	if (status)
		return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	/* The daemon logs at level info unless HEADRACE_LOG is set. */
	setenv("HEADRACE_LOG", options.quiet ? "warn" : "info", 0);
	if (options.make_key)
		return rc_door_key_make(options.make_key) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (log_place_open(options.log))
		return EXIT_FAILURE;
	if (!daemon_options_complete(&options, systemd_activated()))
		status = daemon_run(&options, argc, argv);
	else
		status = EXIT_FAILURE;
	daemon_options_free(&options);
	return status;
}
