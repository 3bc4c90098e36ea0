/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-perf wake: measures how long a message takes to a receiver that sleeps. */
#ifndef PERF_WAKE_H
#define PERF_WAKE_H

#include "options.h"

/* Prints, for each requested transport, the time from a put to the sleeping receiver's get, and in the same rounds the
 * time from write(2) to read(2) of an eventfd as its floor. Non-zero: failure. */
int measure_wake(const struct options *options);

#endif
