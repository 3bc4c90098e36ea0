/* SPDX-License-Identifier: BSD-3-Clause */
/* Host functions of the program. */
#ifndef RC_CLIENT_HOSTFN_H
#define RC_CLIENT_HOSTFN_H

#include "ch3/ch3.h"

#include <cuda.h>
#include <stdbool.h>

struct rc_session;

/* Starts the thread that runs the session's host functions. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult rc_host_start(struct rc_session *session);
/* The same, and a second thread: the session's graphs copy host memory, also while a host function runs. */
CUresult rc_host_start_both(struct rc_session *session);

/* Handles the packet that asks to run a host function. */
int rc_host_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
/* True while a host function waits for its stream or runs. */
bool rc_host_any(void);
/* The session is lost: its functions that have not begun do not run. */
void rc_host_session_lost(const struct rc_session *session);

#endif
