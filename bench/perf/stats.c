/* SPDX-License-Identifier: BSD-3-Clause */
/* Median and percentiles of samples. */
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void samples_init(struct samples *s, size_t room)
{
	s->value = malloc(room * sizeof *s->value);
	if (!s->value) {
		fprintf(stderr, "headrace-perf: no memory for %zu samples\n", room);
		exit(EXIT_FAILURE);
	}
	s->count = 0;
	s->room = room;
}

void samples_add(struct samples *s, double value)
{
	if (s->count < s->room)
		s->value[s->count++] = value;
}

void samples_free(struct samples *s)
{
	free(s->value);
	s->value = NULL;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double samples_quantile(struct samples *s, double q)
{
	if (!s->count)
		return NAN;
	qsort(s->value, s->count, sizeof *s->value, ascending);
	size_t rank = (size_t)(q * (double)(s->count - 1) + 0.5);
	return s->value[rank];
}

double now_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
