/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions on connections for ch3 beside headrace/channel.h. For the layers of this tree, not for users of the
 * library. Threads and return values: as in headrace/channel.h.
 */
#ifndef HR_UPPER_H
#define HR_UPPER_H

#include "headrace/channel.h"

/*
 * Aborts a connection with error, a negated errno value. put and get return error from now on; hr_channel_ready,
 * hr_channel_arm and hr_channel_wait ignore the connection. The peer is not notified: it receives the bytes that have
 * reached it, then -ECONNRESET. After the call no peer or adapter writes into memory that get was offered or that
 * hr_remote_expose exposed, and bytes read from memory that put was offered are discarded. If the peer is in the middle
 * of a copy, the call waits for the end of that copy, up to the channel's timeout_ms. The caller still has to close the
 * connection.
 */
void hr_conn_abort(hr_conn_t *conn, int error);

/* As hr_channel_wait, but waits for an event of this one connection and ignores the others. */
int hr_conn_wait(hr_conn_t *conn, int want_put, int timeout_ms);

#endif
