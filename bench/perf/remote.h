/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measurements between two hosts. One host runs `headrace-perf --listen`, the other `headrace-perf TEST --connect
 * HOST`. The connecting process is rank 0 and sends its command line over the control socket. The listening process
 * forks rank 1. Both then run the same test, as the two processes of pair.h do on one host.
 */
#ifndef PERF_REMOTE_H
#define PERF_REMOTE_H

#include "options.h"
#include "pair.h"

#include <stdint.h>

#define REMOTE_PORT "27181" /* unless the command line names another */

/* Serves one measurement after the other until a signal ends the program. Returns only on failure, non-zero. */
int remote_listen(const struct options *options);

/* Connects to the listening host of options->connect and sends it the command line. Returns the control socket, or -1
 * after a message on stderr. */
int remote_connect(const struct options *options, int argc, char **argv);

/* Returns the set of HR_TRANSPORT_* that both sides can use for a connection between them. Both ranks call it. */
uint32_t remote_transports(int control);

#endif
