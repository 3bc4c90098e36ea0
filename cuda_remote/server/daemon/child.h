/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker process, from its start to its exit. The daemon starts it by exec of headraced (launch.h), so that none of
 * the daemon's memory is in it. It inherits these descriptors and no others: 0 is /dev/null, 1 and 2 are the daemon's,
 * and the two below. Over the control socket it first receives its plan and answers with a report. Then it receives the
 * client's connections.
 */
#ifndef RC_DAEMON_CHILD_H
#define RC_DAEMON_CHILD_H

#include "cuda_remote/server/daemon/gpus.h"

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

/* headraced's only argument if it is to be a worker. */
#define CHILD_ARGUMENT "--worker"

enum {
	CHILD_CONTROL = 3, /* SOCK_SEQPACKET socket to the daemon */
	CHILD_USAGE = 4,   /* memory with the struct worker_usage */
	CHILD_DESCRIPTORS
};

/* The daemon's first message. */
struct child_plan {
	char driver[PATH_MAX];
	uint64_t memory[GPUS_MAX]; /* the session's quota on each GPU; 0: none */
	uint32_t gpu;         /* the server's index of the only GPU that it may use, or RC_SERVER_ALL_GPUS */
	uint32_t other_uid;   /* as root: the user to become for a client that is root or authenticated by key */
	uint8_t root_workers; /* a client that is root gets a worker that is root */
	uint8_t root_only;    /* every client is root, and so is every worker */
	uint8_t seccomp;      /* filter system calls */
	uint8_t reserved;
};

/* The worker's first message: it is ready. */
struct child_report {
	uint32_t gpus;
};

/* Makes the kernel kill this process when its parent ends. parent: the parent's process id; -ESRCH: it has ended
 * already. A change of user undoes this, so call it again after one. */
int child_follow(pid_t parent);

/* Receives the plan, loads the driver, reports, waits for the client, becomes its user, serves it. Returns the exit
 * status. */
int child_run(void);

#endif
