/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/server/daemon/daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct daemon_options options;
	int status = daemon_options_parse(argc, argv, &options);
	if (status)
		return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	/* A daemon says what it does; who wants less or more sets HEADRACE_LOG. */
	setenv("HEADRACE_LOG", options.quiet ? "warn" : "info", 0);
	if (options.make_key)
		return rc_door_key_make(options.make_key) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (daemon_options_complete(&options))
		return EXIT_FAILURE;
	return daemon_run(&options);
}
