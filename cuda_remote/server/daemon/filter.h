/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The system calls of a worker. Those that a worker makes with the software GPU, with NVIDIA's driver and over each
 * transport are allowed. Those that only an intruder makes (execve, ptrace, mount ...) end the process. All others fail
 * with EPERM, and the log names each once.
 */
#ifndef RC_DAEMON_FILTER_H
#define RC_DAEMON_FILTER_H

#include <stdbool.h>
#include <sys/types.h>

/* True if this build has the filter (libseccomp). */
bool filter_supported(void);

/* Makes the filter, ahead of need; nothing is denied yet. Logged. */
int filter_prepare(void);

/* Loads it, for every thread of this process. reach: as in struct confinement. Logged. */
int filter_load(pid_t reach);

#endif
