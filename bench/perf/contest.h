/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contenders of a measurement: the message paths that are compared, and their floors. All are open at the same time
 * in both processes, so that they can be measured in turn within milliseconds.
 */
#ifndef PERF_CONTEST_H
#define PERF_CONTEST_H

#include "endpoint.h"
#include "options.h"
#include "pair.h"
#include "raw_verbs.h"

#include <stdbool.h>
#include <stddef.h>

/* The floor that a path is compared with: the cheapest operation of the machine that moves the same messages. */
enum floor {
	FLOOR_FLAG,   /* a ping-pong with one flag in shared memory */
	FLOOR_MEMCPY, /* a copy of the bytes within one process */
	FLOOR_TCP,    /* a TCP socket without the channel, spinning */
	FLOOR_WRITE,  /* RDMA writes without the channel */
	FLOOR_READ,   /* RDMA reads without the channel */
	FLOORS,
	NO_FLOOR = FLOORS,
};

extern const char *const floor_names[];

/* A floor (path is NULL) or a path. */
struct contender {
	enum floor floor; /* of a floor: its kind; of a path: the floor that it is compared with, or NO_FLOOR */
	const struct variant *variant;
	endpoint_t *path;
};

struct contest {
	struct pair *pair;
	const struct options *options;
	/* Floors first. On one host FLOOR_FLAG is always among them: it shows the placement of the cores and the noise
	 * of the machine. */
	struct contender contender[FLOORS + VARIANTS_MAX];
	unsigned floors, contenders;
	endpoint_t *tcp;  /* for FLOOR_TCP, else NULL */
	raw_verbs_t *raw; /* for FLOOR_WRITE and FLOOR_READ, else NULL */
	char *send, *receive;
	size_t buffer_bytes; /* size of send and of receive */
};

/* Opens every path of options->variant and the floors for them. Both ranks call it. A failure ends the process. */
void contest_open(struct contest *contest, struct pair *pair, const struct options *options);
void contest_close(struct contest *contest);

/*
 * Takes one sample of a contender. Both ranks call it; the result of rank 0 is valid: the seconds that `count` units
 * take. A unit of lat is a round trip of a message of size bytes. A unit of bw, rate and sweep is a message from rank 0
 * to rank 1; rank 1 answers with 8 bytes after every options->window messages, or after all.
 */
double contest_run(struct contest *contest, const struct contender *contender, size_t size, unsigned count);

/* Returns the index of a floor among the contenders, or -1. */
int contest_floor(const struct contest *contest, enum floor floor);

/* Returns rank 0's value in both ranks. */
uint32_t contest_agree(const struct contest *contest, uint32_t value);

/* Returns a buffer whose pages are populated. Ends the program if there is no memory. */
char *contest_buffer(size_t len);

#endif
