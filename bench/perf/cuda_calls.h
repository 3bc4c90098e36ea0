/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of remote CUDA calls, beside the channel's own latency in the same run. */
#ifndef PERF_CUDA_CALLS_H
#define PERF_CUDA_CALLS_H

#include "options.h"

/* headrace-perf cuda: measures the channel, then runs itself as a CUDA program under headrace-run, then the channel
 * again. */
int measure_cuda(const struct options *options, const char *self);

/* headrace-perf cuda-client: the CUDA program; writes its figures to options->result_fd. */
int measure_cuda_client(const struct options *options);

#endif
