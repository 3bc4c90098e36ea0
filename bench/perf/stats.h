/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of one measurement, and their quantiles. */
#ifndef PERF_STATS_H
#define PERF_STATS_H

#include <stddef.h>

struct samples {
	double *value;
	size_t count, room;
};

/* Allocates room for `room` samples; samples_add drops further ones. Ends the program if there is no memory. */
void samples_init(struct samples *s, size_t room);
void samples_add(struct samples *s, double value);
void samples_free(struct samples *s);

/* Returns the q-quantile (0..1) by nearest rank; NaN if there are no samples. Sorts the samples. */
double samples_quantile(struct samples *s, double q);

/* Returns the time of the monotonic clock in seconds. */
double now_seconds(void);

#endif
