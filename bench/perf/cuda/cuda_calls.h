/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the cost of remote CUDA calls, and the channel's latency in the same run. */
#ifndef PERF_CUDA_CALLS_H
#define PERF_CUDA_CALLS_H

#include "options.h"

/* headrace-perf cuda: runs this program as a CUDA program under headrace-run --local; measures the channel, runs it under
 * headrace-run, and measures the channel again. */
int measure_cuda(const struct options *options, const char *self);

/* headrace-perf cuda-client: the CUDA program. Writes its results to options->result_fd. */
int measure_cuda_client(const struct options *options);

#endif
