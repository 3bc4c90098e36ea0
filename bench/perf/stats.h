/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of one measured cell, and what is said of them. */
#ifndef PERF_STATS_H
#define PERF_STATS_H

#include <stddef.h>

struct samples {
	double *value;
	size_t count, room;
};

/* Room for at most `room` samples; ends the program when there is no memory. */
void samples_init(struct samples *s, size_t room);
void samples_add(struct samples *s, double value);
void samples_free(struct samples *s);

/* The q-quantile (0..1) by nearest rank; sorts the samples. NaN when there are none. */
double samples_quantile(struct samples *s, double q);

/* Seconds on the monotonic clock. */
double now_seconds(void);

#endif
