/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a message path between the two processes of a measurement: the channel, ch3, or a raw TCP socket as the
 * floor. All tests use these functions. A failure ends the process with a message.
 */
#ifndef PERF_ENDPOINT_H
#define PERF_ENDPOINT_H

#include "variant.h"

#include <stddef.h>
#include <stdint.h>

typedef struct endpoint endpoint_t;

/*
 * Opens this process's end and connects it with the peer's. control: a stream socket to the peer process, over which
 * the two exchange their addresses. Sets the environment for the variant (variant_settings).
 */
endpoint_t *endpoint_open(const struct variant *variant, int control);
void endpoint_close(endpoint_t *ep);

/* Sends all of the bytes. Returns when they may be overwritten. Spins; with variant->sleeps it sleeps. */
void endpoint_send(endpoint_t *ep, const void *bytes, size_t len);

#define ENDPOINT_AHEAD_MAX 64

/*
 * Sends the same bytes as `count` messages. Returns when they may be overwritten. If the channel or ch3 has not accepted
 * a message of HR_ZERO_COPY_MIN bytes or more, offers it together with the messages after it, `ahead` in all (1 to
 * ENDPOINT_AHEAD_MAX), as a program does that starts several sends and then waits for all of them.
 */
void endpoint_send_many(endpoint_t *ep, const void *bytes, size_t len, unsigned count, unsigned ahead);

/* Receives exactly len bytes (with ch3 one message). Spins or sleeps as endpoint_send. */
void endpoint_receive(endpoint_t *ep, void *bytes, size_t len);

/* Receives `count` messages into the same bytes. For messages of HR_ZERO_COPY_MIN bytes or more a get offers the buffers
 * of `ahead` messages, as a program does that has started several receives. */
void endpoint_receive_many(endpoint_t *ep, void *bytes, size_t len, unsigned count, unsigned ahead);

/* Calls the library once for progress, as the peer may still wait for sent bytes. The peer must not have sent any. */
void endpoint_poll(endpoint_t *ep);

/* Sets the buffer for a message that arrives before the next endpoint_receive, for example during endpoint_send. */
void endpoint_post(endpoint_t *ep, void *bytes, size_t len);

/* Returns "shm", "verbs" or "tcp". */
const char *endpoint_transport(const endpoint_t *ep);

/* Write and read the whole buffer. They end the program on failure or at the end of the stream. */
void control_write(int fd, const void *bytes, size_t len);
void control_read(int fd, void *bytes, size_t len);

/* Ends the program if the peer process is gone. For loops that spin on memory. */
void control_check(int fd);

#endif
