/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line of headrace-perf asks for. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "variant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum test { TEST_LAT, TEST_BW, TEST_RATE, TEST_SWEEP, TEST_WAKE, TEST_CUDA, TEST_CUDA_CLIENT };

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

#define SIZES_MAX 64
#define VALUES_MAX 16

/* The values of an option that takes a list; none given: n is 0. */
struct values {
	uint32_t value[VALUES_MAX];
	unsigned n;
};

struct options {
	enum test test;
	bool test_named; /* the command line has a test */
	uint32_t transports; /* HR_TRANSPORT_* set; 0: automatic */
	struct values layers, designs, qps, depths, chunks, rendezvous;
	size_t size[SIZES_MAX];
	unsigned sizes;
	struct variant variant[VARIANTS_MAX]; /* what is measured: each combination of the lists, or the sweep's */
	unsigned variants;
	unsigned iters;  /* messages a cell; 0: as many as fit in `seconds` */
	unsigned window; /* messages before an answer (bw, rate); 0: as many as a sample has */
	double seconds;  /* time for one variant's samples of a size */
	bool sleeps;     /* of each variant */
	bool quick;      /* sweep: fewer sizes, less time */
	enum format format;
	int result_fd; /* TEST_CUDA_CLIENT: where the figures go */
	const char *listen;  /* [ADDRESS][:PORT] to serve measurements of other hosts on; NULL: do not listen */
	const char *connect; /* HOST[:PORT] of the listening host; NULL: both processes run here */
	int control, rank;   /* with connect, and in the listening host: socket to the other process (else -1), own rank */
};

/* Parses the command line; ends the program with a message on a bad one, and on --help and --version. */
void options_parse(struct options *options, int argc, char **argv);

extern const char *const test_names[];

#endif
