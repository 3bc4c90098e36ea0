/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transport around every transport of this build, that lets go wrong what a plan says. A program that links
 * fault_transport.c has these in hr_transports[], and the channel does not notice: names, cards and the bytes on the wire
 * are those of the transport within.
 *
 * Everything follows from the plan and its seed, per connection: the same calls meet the same faults again. A channel
 * takes the plan that holds when it is opened: the variable, unless HR_FAULTS is set, e.g. "seed=3,shorten=50,delay=4"
 * (the names are those of the fields).
 *
 * What is kept of the contract (transport.h): a put or get that was cut short here goes on with exactly the same rest
 * in the transport within; bytes that it did not take are not lost; what a caller may sleep on is still told.
 */
#ifndef HR_FAULT_TRANSPORT_H
#define HR_FAULT_TRANSPORT_H

#include <stdint.h>

enum fault_descriptors {
	FAULT_FDS_SOUND,
	FAULT_FDS_REFUSED,  /* none arrives */
	FAULT_FDS_FOREIGN,  /* others arrive: /dev/null */
	FAULT_FDS_SHORT,    /* memory of another size than it says */
	FAULT_FDS_UNSEALED, /* memory that its owner could take away */
};

#define FAULT_NEVER UINT64_MAX

struct fault_plan {
	uint64_t seed;
	/* Of 100 puts and gets each: */
	uint64_t refuse;   /* move nothing */
	uint64_t shorten;  /* are cut to one byte or a few */
	uint64_t spurious; /* if they moved nothing: make the connection look as if there were something, once */
	/* Calls after one that moved something that move nothing: 0 to that many. */
	uint64_t delay;
	/* Bytes after which the process kills itself, or the stream to the peer is cut; FAULT_NEVER. 0: as soon as the
	 * connection is up. */
	uint64_t die_put_at, die_get_at;
	uint64_t cut_put_at, cut_get_at;
	/* Results, positive errno values, 0 for what the transport within says. */
	uint64_t open_error, conn_open_error, establish_error;
	uint64_t flip_half;    /* 1 + the bit of the peer's half that arrives wrong, past the check sums; 0: none */
	uint64_t descriptors;  /* enum fault_descriptors: what arrives with the peer's half */
};

#define FAULT_PLAN_NONE \
	{ .die_put_at = FAULT_NEVER, .die_get_at = FAULT_NEVER, .cut_put_at = FAULT_NEVER, .cut_get_at = FAULT_NEVER }

extern struct fault_plan fault_plan;

#endif
