/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements between two processes: latency, bandwidth, message rate, each with its floor. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "options.h"

/* Runs options->test for every size and variant, and prints the results. Non-zero: failure. */
int measure_messages(const struct options *options);

/* Measures the channel's one-way latency of 8 bytes over a transport and, in the same rounds, that of its floor: raw
 * TCP for tcp, otherwise the flag. Medians in us. */
int measure_channel_latency(uint32_t transports, double *median_us, double *floor_us);

#endif
