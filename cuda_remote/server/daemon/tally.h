/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adds up what the workers count. A worker writes its own figures, so the daemon trusts them only as that worker's word:
 * a figure that should only grow is never taken back, and none exceeds TALLY_MAX.
 */
#ifndef RC_DAEMON_TALLY_H
#define RC_DAEMON_TALLY_H

#include "cuda_remote/door/counters.h"
#include "cuda_remote/server/worker.h"

#define TALLY_MAX (UINT64_C(1) << 53) /* as far as a double, which monitoring systems use, counts every number */

/* The greatest figures of one worker that the daemon has seen. */
struct tally {
	uint64_t calls, kernel_launches, graph_launches, to_devices, from_devices, connections;
};

/* Reads the worker's figures. */
void tally_look(struct tally *tally, const struct worker_usage *usage);

/* Adds a worker's figures to the totals. */
void tally_add(const struct tally *tally, struct rc_counters *counters);

/* Adds what a session has now: connections, and memory of each of the host's GPUs. gpu: index, or RC_SERVER_ALL_GPUS. */
void tally_add_session(const struct worker_usage *usage, uint32_t gpu, struct rc_counters *counters);

#endif
