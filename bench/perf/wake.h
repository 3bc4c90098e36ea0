/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a message takes to a receiver that sleeps. */
#ifndef PERF_WAKE_H
#define PERF_WAKE_H

#include "options.h"

/* Prints, for each transport asked for, the time from a put to the sleeping receiver's get, beside a bare eventfd's from
 * write to read in the same rounds. Non-zero: it failed. */
int measure_wake(const struct options *options);

#endif
