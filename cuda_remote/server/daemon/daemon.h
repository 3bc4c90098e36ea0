/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RC_DAEMON_H
#define RC_DAEMON_H

#include "cuda_remote/server/daemon/options.h"

/* Serves until a signal or the end of watch_fd. Returns the exit status. The command line is read again at SIGHUP, with the
 * configuration file; without such a file SIGHUP ends the daemon. */
int daemon_run(struct daemon_options *options, int argc, char **argv);

#endif
