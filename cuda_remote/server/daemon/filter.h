/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters the system calls of a worker. The calls that a worker makes with the software GPU, with NVIDIA's driver and
 * over each transport are allowed. Calls that only an intruder makes (execve, ptrace, mount ...) end the process. All
 * others fail with EPERM, and the log names each once.
 */
#ifndef RC_DAEMON_FILTER_H
#define RC_DAEMON_FILTER_H

#include <stdbool.h>
#include <sys/types.h>

/* True if this build has the filter (libseccomp). */
bool filter_supported(void);

/* Builds the filter in advance; nothing is denied yet. Logged. */
int filter_prepare(void);

/* Loads the filter, for every thread of this process. reach: as in struct confinement. Logged. */
int filter_load(pid_t reach);

#endif
