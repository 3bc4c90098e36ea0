/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a message path between the two processes of a measurement: the channel, ch3 on it, or a raw TCP socket as
 * the floor. The tests are written once over these. Failures end the process with a message.
 */
#ifndef PERF_ENDPOINT_H
#define PERF_ENDPOINT_H

#include "variant.h"

#include <stddef.h>
#include <stdint.h>

typedef struct endpoint endpoint_t;

/*
 * Opens this process's end and connects it with the peer's. control: a stream socket to the peer process, used to swap
 * what the two must know of each other. Sets the environment to what the variant asks for (variant_settings).
 */
endpoint_t *endpoint_open(const struct variant *variant, int control);
void endpoint_close(endpoint_t *ep);

/* Hands all of the bytes over; returns when they may be overwritten. Spins, or sleeps where the variant says so. */
void endpoint_send(endpoint_t *ep, const void *bytes, size_t len);

/* Waits for exactly len bytes (one message of ch3). Spins or sleeps as above. */
void endpoint_receive(endpoint_t *ep, void *bytes, size_t len);

/* Goes through the library once, for a peer that may still wait for what was sent; nothing may be on its way here. */
void endpoint_poll(endpoint_t *ep);

/* Where messages that come before the next endpoint_receive may go: while sending, one may already arrive. */
void endpoint_post(endpoint_t *ep, void *bytes, size_t len);

/* "shm", "verbs", "tcp". */
const char *endpoint_transport(const endpoint_t *ep);

/* Whole-buffer reads and writes on a descriptor; they end the program on failure or early end. */
void control_write(int fd, const void *bytes, size_t len);
void control_read(int fd, void *bytes, size_t len);

/* For loops that spin on memory: ends the program when the peer process is gone. */
void control_check(int fd);

#endif
