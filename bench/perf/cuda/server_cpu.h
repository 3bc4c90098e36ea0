/* SPDX-License-Identifier: BSD-3-Clause */
/* The processor time that the server has used for this process. */
#ifndef PERF_SERVER_CPU_H
#define PERF_SERVER_CPU_H

/* Seconds of the worker of this process's session with the first server. NaN: there is no server, or several
 * sessions could be this process's. */
double server_cpu_seconds(void);

#endif
