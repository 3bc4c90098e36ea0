/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's counters for a monitoring system, in the text format of Prometheus. Another process answers the HTTP
 * requests: it has the listening sockets, is confined like a worker, and asks the daemon for the counters over a socket
 * pair. It asks at most 50 times a second and has at most one question open, and the daemon answers without waiting. So
 * nothing that a client of the metrics sends, or fails to read, delays the daemon. If the process ends, the daemon starts
 * another. These functions are the daemon's side, for one thread.
 */
#ifndef RC_DAEMON_METRICS_H
#define RC_DAEMON_METRICS_H

#include "cuda_remote/door/counters.h"
#include "cuda_remote/door/server_name.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct metrics;

struct metrics_options {
	rc_server_t place; /* to listen at */
	uint32_t uid;      /* daemon as root: the user of the process */
	bool seccomp;      /* filter its system calls */
	const char *driver; /* text for users */
	sigset_t signals;  /* its mask */
};

/* Listens and starts the process. Logged. */
int metrics_open(const struct metrics_options *options, struct metrics **metrics);

/* The descriptor to poll for questions; -1: none now. NULL is allowed here and below. */
int metrics_fd(const struct metrics *metrics);

/* True if a question has come: the caller gives the counters to metrics_answer. */
bool metrics_asked(struct metrics *metrics);
void metrics_answer(struct metrics *metrics, const struct rc_counters *counters);

/* Reaps the process if it has ended (after SIGCHLD), and starts another when it is time. Returns the ms until its next
 * call; -1: no need. */
int metrics_keep(struct metrics *metrics);

/* Ends the process and closes the sockets. */
void metrics_close(struct metrics *metrics);

#endif
