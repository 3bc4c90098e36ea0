/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ch3 asks of a connection beside headrace/channel.h: for the layers of this tree, not for the library's users.
 * Threads and returns as there.
 */
#ifndef HR_UPPER_H
#define HR_UPPER_H

#include "headrace/channel.h"

/*
 * Ends a connection at once, for error, a negated errno value: put and get fail with it from now on; hr_channel_ready,
 * hr_channel_arm and hr_channel_wait have nothing to say of it. No goodbye: the peer gets what has reached it, and then
 * -ECONNRESET. When this returns, nobody but the caller writes into memory that get was offered or hr_remote_expose
 * exposed, nor do bytes count that are read from what put was offered. A copy that the peer is in the middle of is
 * waited for, up to the channel's timeout_ms. The connection is still to be closed.
 */
void hr_conn_abort(hr_conn_t *conn, int error);

/* As hr_channel_wait, for one connection: sleeps until something may have happened there, whatever others have. */
int hr_conn_wait(hr_conn_t *conn, int want_put, int timeout_ms);

#endif
