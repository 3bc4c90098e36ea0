/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor of a message over verbs: one queue pair, one registered buffer, RDMA writes and reads. It measures the same
 * as perftest's ib_write_lat, ib_write_bw and ib_read_bw, but in the same run as the channel. It does not use the
 * channel's verbs code. HEADRACE_IB_DEVICE, HEADRACE_IB_PORT and HEADRACE_IB_GID_INDEX choose device, port and GID; by
 * default it takes the first active port, RoCE v2 before v1, IPv4 before IPv6, as the channel does.
 */
#ifndef PERF_RAW_VERBS_H
#define PERF_RAW_VERBS_H

#include <stddef.h>

typedef struct raw_verbs raw_verbs_t;

enum raw_direction { RAW_WRITE, RAW_READ };

/*
 * Opens the floor. Both ranks call it. control: stream socket to the peer. largest: size of the longest message, bytes.
 * Returns NULL, with a line on stderr, if either rank has no device; then there is no floor.
 */
raw_verbs_t *raw_verbs_open(int rank, int control, size_t largest);
void raw_verbs_close(raw_verbs_t *raw);

/* Makes round trips of RDMA writes of size bytes; each rank polls the last byte in memory. Returns the seconds. Both
 * ranks call it. */
double raw_verbs_ping_pong(raw_verbs_t *raw, size_t size, unsigned turns);

/* Polls the completion queue: some software devices make progress only then. */
void raw_verbs_poll(raw_verbs_t *raw);

/*
 * Moves messages of size bytes from rank 0 to rank 1, by writes of rank 0 or by reads of rank 1, up to 128 in flight.
 * Both ranks call it. Returns in rank 0 the seconds until all were complete; with reads this includes one message to
 * rank 1 to begin and one message from rank 1 at the end.
 */
double raw_verbs_stream(raw_verbs_t *raw, enum raw_direction direction, size_t size, unsigned messages);

#endif
