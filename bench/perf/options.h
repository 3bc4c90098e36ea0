/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line of headrace-perf asks for. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "endpoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum test { TEST_LAT, TEST_BW, TEST_RATE, TEST_CUDA, TEST_CUDA_CLIENT };

#define SIZES_MAX 64

struct options {
	enum test test;
	enum layer layer;
	uint32_t transports; /* HR_TRANSPORT_* set; 0: automatic */
	size_t size[SIZES_MAX];
	unsigned sizes;
	unsigned iters; /* messages a cell; 0: chosen by size */
	bool json;
	int result_fd; /* TEST_CUDA_CLIENT: where the figures go */
};

/* Parses the command line; ends the program with a message on a bad one, and on --help and --version. */
void options_parse(struct options *options, int argc, char **argv);

extern const char *const test_names[];
extern const char *const layer_names[];

#endif
