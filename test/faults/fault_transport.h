/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault transports: each wraps one transport of this build and injects the faults of a plan. A program that links
 * fault_transport.c has them in hr_transports[]. The channel cannot tell the difference: names, cards and the bytes on
 * the wire are those of the wrapped transport.
 *
 * Plan and seed determine the faults of each connection: the same sequence of calls meets the same faults again. A
 * channel uses the plan that is set when it is opened: HR_FAULTS, for example "seed=3,shorten=50,delay=4" (the names
 * are those of the fields), or fault_plan if HR_FAULTS is not set.
 *
 * The wrapper keeps the contract of transport.h: after a put or get that it has shortened, the next call passes exactly
 * the rest to the wrapped transport; no byte is lost; and every event that a caller may sleep for still comes.
 */
#ifndef HR_FAULT_TRANSPORT_H
#define HR_FAULT_TRANSPORT_H

#include <stdint.h>

enum fault_descriptors {
	FAULT_FDS_SOUND,
	FAULT_FDS_REFUSED,  /* no descriptor arrives */
	FAULT_FDS_FOREIGN,  /* other descriptors arrive: of /dev/null */
	FAULT_FDS_SHORT,    /* memory of another size than announced */
	FAULT_FDS_UNSEALED, /* memory without seals, which its owner could shrink */
};

#define FAULT_NEVER UINT64_MAX

struct fault_plan {
	uint64_t seed;
	/* Percentages of puts and gets: */
	uint64_t refuse;   /* move nothing */
	uint64_t shorten;  /* are cut to one byte or a few bytes */
	uint64_t spurious; /* of those that moved nothing: the connection then reports once that it is ready */
	/* After a call that moved bytes, up to this many calls move nothing. */
	uint64_t delay;
	/* Number of bytes after which the process kills itself, or the stream to the peer is cut. FAULT_NEVER: never.
	 * 0: as soon as the connection is up. */
	uint64_t die_put_at, die_get_at;
	uint64_t cut_put_at, cut_get_at;
	/* Errors to return, positive errno values; 0: the result of the wrapped transport. */
	uint64_t open_error, conn_open_error, establish_error;
	uint64_t flip_half;    /* 1 + number of the bit of the peer's half to flip, after the check sums; 0: none */
	uint64_t descriptors;  /* enum fault_descriptors: the descriptors that arrive with the peer's half */
};

#define FAULT_PLAN_NONE \
	{ .die_put_at = FAULT_NEVER, .die_get_at = FAULT_NEVER, .cut_put_at = FAULT_NEVER, .cut_get_at = FAULT_NEVER }

extern struct fault_plan fault_plan;

#endif
