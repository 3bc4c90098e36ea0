/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream that a connection was set up over, as a transport with a faster data path uses it afterwards: it tells the
 * peer's death and its orderly close, and carries wake-ups. Single bytes; a byte of no meaning breaks the protocol.
 * Not for tcp, whose data path it is. One thread at a time; never blocks.
 */
#ifndef HR_STREAM_H
#define HR_STREAM_H

#include <stdbool.h>

/*
 * Takes everything that has arrived, until the socket would block.
 * 0: the peer lives (wake-ups may have been among it); -ESHUTDOWN: it closed in order; -ECONNRESET: it died;
 * -ETIMEDOUT: the network lost it; -EPROTO, also for wake-ups without end. What the peer put before is visible to this
 * process when an error is returned (memory shared with it: this call synchronizes with its last store; verbs: look at
 * the ring once more after the queue pair is quiet, as the stream may overtake the data).
 */
int hr_stream_check(int stream);

/* The same, and sets *woken if wake-ups were among it (whatever is returned). */
int hr_stream_take(int stream, bool *woken);

/* Wakes the peer. A full socket buffer means that it has wake-ups enough, and a broken stream that it needs none. */
void hr_stream_wake(int stream);

/* Says that nothing more will be put. */
void hr_stream_goodbye(int stream);

#endif
