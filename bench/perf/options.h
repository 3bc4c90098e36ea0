/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of headrace-perf's command line. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "peer_version.h"
#include "variant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum test { TEST_LAT, TEST_BW, TEST_RATE, TEST_SWEEP, TEST_WAKE, TEST_CUDA, TEST_PEER, TEST_CUDA_CLIENT, TEST_PEER_CLIENT };

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

#define SIZES_MAX 64
#define VALUES_MAX 16

/* The values of an option that takes a list. n is 0 if the option was not given. */
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
	struct variant variant[VARIANTS_MAX]; /* to measure: each combination of the lists, or the sweep's */
	unsigned variants;
	unsigned iters;  /* messages for each cell; 0: as many as fit in `seconds` */
	unsigned window; /* messages before an answer (bw, rate); 0: all of a sample */
	unsigned ahead;  /* long messages that a put or get offers at a time (bw, rate) */
	double seconds;  /* time for the samples of one variant and size */
	bool sleeps;     /* for all variants */
	bool quick;      /* sweep, peer: fewer sizes, less time */
	struct peer_versions peer; /* TEST_PEER */
	bool peer_all;   /* the versions are those of the default: some may be missing */
	const char *local_driver; /* TEST_CUDA: softgpu or system; NULL: softgpu */
	enum format format;
	int result_fd; /* TEST_CUDA_CLIENT, TEST_PEER_CLIENT: descriptor to write the results to */
	const char *listen;  /* [ADDRESS][:PORT] on which to serve measurements of other hosts; NULL: do not listen */
	const char *connect; /* HOST[:PORT] of the listening host; NULL: both processes run on this host */
	int control, rank;   /* two hosts: socket to the other process, own rank; control is -1 on one host */
};

/* Parses the command line. If it is invalid, and for --help and --version, ends the program. */
void options_parse(struct options *options, int argc, char **argv);

extern const char *const test_names[];

#endif
