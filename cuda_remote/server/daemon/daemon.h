/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RC_DAEMON_H
#define RC_DAEMON_H

#include "cuda_remote/server/daemon/options.h"

/* Serves until SIGTERM, SIGINT, SIGHUP or the end of watch_fd. Returns the exit status. */
int daemon_run(const struct daemon_options *options);

#endif
