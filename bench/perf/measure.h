/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements between two processes: latency, bandwidth, message rate, each beside its floor. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "options.h"

/* Runs the test that the options ask for, for every size and variant, and prints it. Non-zero: it failed. */
int measure_messages(const struct options *options);

/* The channel's 8-byte one-way latency over a transport and, in the same rounds, its floor's: the flag, or raw TCP
 * beside tcp (medians, us). */
int measure_channel_latency(uint32_t transports, double *median_us, double *floor_us);

#endif
