/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The set-up stream of a connection, as shared memory and verbs use it once the connection is up: it carries wake-ups
 * and the orderly close, one byte each, and shows the peer's death. Any other byte is a protocol violation. tcp does
 * not use this file, as the stream is its data path. One thread at a time; no function blocks.
 */
#ifndef HR_STREAM_H
#define HR_STREAM_H

#include <stdbool.h>

/*
 * Takes all bytes that have arrived, until the socket would block.
 * 0: the peer lives, and wake-ups may have arrived. -ESHUTDOWN: the peer closed in order. -ECONNRESET: it died.
 * -ETIMEDOUT: the network has lost it. -EPROTO: an unknown byte, or more wake-ups than a correct peer sends.
 * When an error is returned, the bytes that the peer put before it can be read. Shared memory: this call synchronizes
 * with the peer's last store. Verbs: poll the ring once more when the queue pair is quiet, as the stream can overtake
 * the data.
 */
int hr_stream_check(int stream);

/* As hr_stream_check; also sets *woken if a wake-up was among the bytes, whatever is returned. */
int hr_stream_take(int stream, bool *woken);

/* Wakes the peer. Ignores errors: if the socket buffer is full, the peer has enough wake-ups, and if the stream is
 * broken, it needs none. */
void hr_stream_wake(int stream);

/* Tells the peer that nothing more will be put. */
void hr_stream_goodbye(int stream);

#endif
