/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-info: the counters and the sessions of a server. */
#ifndef HR_INFO_SESSIONS_H
#define HR_INFO_SESSIONS_H

#include "cuda_remote/door/door.h"

/* Prints the server's counters, and a line for each session of the server that this user may see. 0, or a negated errno value if the server does
 * not answer. */
int print_sessions(const rc_server_t *server);

#endif
