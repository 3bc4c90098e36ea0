/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures from which size on zero copy is faster than the ring. This file does not use verbs, so that it can be tested
 * with plain numbers.
 *
 * A message by zero copy takes one more round trip than one through the ring: the receiver's adapter asks for the bytes
 * when the announcement has arrived. Against that stand the copies, whose time grows with the message. Both times are
 * fractions of the time of the message on the link, so the threshold is the size that takes a fixed number of round trips
 * on the link (docs/decisions/verbs.md has the measurements). The round trip is the time of a short RDMA read, and the
 * link's rate comes from longer ones. The shortest of several reads counts: a busy processor only prolongs them.
 */
#ifndef IB_GAUGE_H
#define IB_GAUGE_H

#include <stdbool.h>
#include <stdint.h>

enum { IB_GAUGE_SHORT = 8, IB_GAUGE_LONG = 65536, IB_GAUGE_READS = 16 }; /* bytes, bytes, reads of each length */
enum { IB_GAUGE_MIN = 16384, IB_GAUGE_MAX = 4 << 20 };                  /* smallest and largest threshold */

struct ib_gauge {
	unsigned reads;              /* that have ended: the short ones first */
	uint64_t short_ns, long_ns;  /* time of the shortest read of each length */
};

/* Returns the length of the next read, 0 if all have ended. */
uint32_t ib_gauge_next(const struct ib_gauge *gauge);
/* Records the time of the read. */
void ib_gauge_ended(struct ib_gauge *gauge, uint64_t ns);
/* Returns the threshold: a power of two. All reads have ended. */
uint32_t ib_gauge_threshold(const struct ib_gauge *gauge);

#endif
