/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that answers HTTP requests for the daemon's counters: see metrics.h. */
#ifndef RC_DAEMON_METRICS_PROCESS_H
#define RC_DAEMON_METRICS_PROCESS_H

#include "cuda_remote/door/counters.h"

#include <stdint.h>

/* headraced's only argument if it is to be this process. */
#define METRICS_ARGUMENT "--metrics-process"

enum {
	METRICS_CONTROL = 3,   /* SOCK_SEQPACKET socket to the daemon */
	METRICS_LISTENERS = 4, /* the first of the listening sockets */
	METRICS_LISTENERS_MAX = 8,
};

/* The daemon's first message. */
struct metrics_plan {
	uint32_t listeners;
	uint32_t uid; /* as root: the user to become */
	uint8_t seccomp;
	uint8_t reserved[3];
	char driver[32]; /* NUL-terminated */
};

/* Each question of the process is one byte. The daemon's answer is a struct rc_counters. */

/* Serves until the daemon ends. Returns the exit status. */
int metrics_process_run(void);

#endif
