/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a worker process by exec of this program, with the descriptors of child.h and no others. */
#ifndef RC_DAEMON_LAUNCH_H
#define RC_DAEMON_LAUNCH_H

#include "cuda_remote/server/daemon/child.h"
#include "cuda_remote/server/worker.h"

#include <signal.h>

#define LAUNCH_DESCRIPTORS_MAX 13

struct launched {
	pid_t pid;
	int control;                      /* non-blocking: a worker that does not read must not stop the daemon */
	const struct worker_usage *usage; /* written by the worker, so it may hold any value */
};

/* Executes this program with one argument in a child process. descriptor[i] becomes 3 + i there, 0 is /dev/null, and the
 * child has no others beside 1 and 2. signals: its mask. Negated errno. */
int launch_process(const char *argument, const int *descriptors, size_t count, const sigset_t *signals, pid_t *pid);

/* signals: the worker's mask. Negated errno. */
int launch(const struct child_plan *plan, const sigset_t *signals, struct launched *worker);

/* Closes what launch opened. Reaping the process is left to the caller. */
void launch_forget(struct launched *worker);

#endif
