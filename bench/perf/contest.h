/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contenders of a measurement: the message paths that are compared, and their floors, all open at once in both
 * processes, so that they can take turns within milliseconds.
 */
#ifndef PERF_CONTEST_H
#define PERF_CONTEST_H

#include "endpoint.h"
#include "options.h"
#include "pair.h"
#include "raw_verbs.h"

#include <stdbool.h>
#include <stddef.h>

/* What a path is compared with; each moves the same messages with the least that the machine needs for it. */
enum floor {
	FLOOR_FLAG,   /* one flag handed back and forth in shared memory */
	FLOOR_MEMCPY, /* a copy of the bytes within one process */
	FLOOR_TCP,    /* a bare loopback socket that spins */
	FLOOR_WRITE,  /* bare RDMA writes */
	FLOOR_READ,   /* bare RDMA reads */
	FLOORS,
	NO_FLOOR = FLOORS,
};

extern const char *const floor_names[];

/* A floor (path is NULL) or a path. */
struct contender {
	enum floor floor; /* a floor: which; a path: the one it is compared with, or NO_FLOOR */
	const struct variant *variant;
	endpoint_t *path;
};

struct contest {
	struct pair *pair;
	const struct options *options;
	/* Floors first. On one host the flag always: it shows the placement of the cores and the noise of the machine. */
	struct contender contender[FLOORS + VARIANTS_MAX];
	unsigned floors, contenders;
	endpoint_t *tcp;  /* for FLOOR_TCP, else NULL */
	raw_verbs_t *raw; /* for FLOOR_WRITE and FLOOR_READ, else NULL */
	char *send, *receive;
};

/* Opens every path of options->variant and the floors they need; both ranks call it. Failures end the process. */
void contest_open(struct contest *contest, struct pair *pair, const struct options *options);
void contest_close(struct contest *contest);

/*
 * One sample of a contender; both ranks call it, rank 0's figure counts. Seconds that `count` units take: lat: round
 * trips of messages of size bytes; bw, rate, sweep: messages from rank 0 to rank 1, answered at the end (or of every
 * options->window messages) by 8 bytes.
 */
double contest_run(struct contest *contest, const struct contender *contender, size_t size, unsigned count);

/* The index of a floor among the contenders, or -1. */
int contest_floor(const struct contest *contest, enum floor floor);

/* Rank 0's value, at both. */
uint32_t contest_agree(const struct contest *contest, uint32_t value);

/* Populated memory; ends the program when there is none. */
char *contest_buffer(size_t len);

#endif
