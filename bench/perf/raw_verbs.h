/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor of a message over verbs: one queue pair, one registered buffer, RDMA writes and reads, nothing else; what
 * perftest's ib_write_lat, ib_write_bw and ib_read_bw measure, within the run that it is compared with. It uses
 * nothing of the channel's own verbs code. Device, port and GID are chosen by HEADRACE_IB_DEVICE, _PORT and
 * _GID_INDEX, else as the channel does: the first active port, RoCE v2 before v1, IPv4 before IPv6.
 */
#ifndef PERF_RAW_VERBS_H
#define PERF_RAW_VERBS_H

#include <stddef.h>

typedef struct raw_verbs raw_verbs_t;

enum raw_direction { RAW_WRITE, RAW_READ };

/*
 * Both ranks call it. control: stream socket to the peer; largest: bytes of the longest message. NULL, with a line on
 * stderr, when one of the two has no device: there is no floor then.
 */
raw_verbs_t *raw_verbs_open(int rank, int control, size_t largest);
void raw_verbs_close(raw_verbs_t *raw);

/* Round trips of RDMA writes of size bytes, the last byte polled in memory; seconds. Both ranks call it. */
double raw_verbs_ping_pong(raw_verbs_t *raw, size_t size, unsigned turns);

/* Looks at the completion queue: a software device may move the last requests on only then. */
void raw_verbs_poll(raw_verbs_t *raw);

/*
 * Moves messages of size bytes from rank 0 to rank 1, by writes of rank 0 or by reads of rank 1, up to 128 under way.
 * Returns at rank 0 the seconds until all were complete; with reads that includes telling rank 1 to begin and hearing
 * that it is done. Both ranks call it.
 */
double raw_verbs_stream(raw_verbs_t *raw, enum raw_direction direction, size_t size, unsigned messages);

#endif
