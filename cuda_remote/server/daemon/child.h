/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a worker process between fork and exit. */
#ifndef RC_DAEMON_CHILD_H
#define RC_DAEMON_CHILD_H

#include <stdint.h>
#include <sys/types.h>

struct child_plan {
	const char *driver;
	int control;     /* SOCK_SEQPACKET socket to the daemon */
	uid_t other_uid; /* as root: the user to become for a client whose user is not known */
};

/* First words of a worker over its control socket: it stands ready. */
struct child_report {
	uint32_t gpus;
};

/* Makes this process die with its parent, which is (was) parent. -ESRCH: it is dead already. To be called again after a
 * change of user, which undoes it. */
int child_follow(pid_t parent);

/* Prepares, reports, waits for the client, becomes its user, serves it. Returns the exit status. */
int child_run(const struct child_plan *plan);

#endif
