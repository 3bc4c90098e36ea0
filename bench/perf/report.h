/* SPDX-License-Identifier: BSD-3-Clause */
/* One measured cell, and how it is printed: a row of a table, a JSON object on a line, or a line of comma-separated
 * values. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "options.h"

/* A figure that was not measured is NaN: a dash in the table, null in JSON, nothing in CSV. */
struct cell {
	const char *test, *transport;
	const struct variant *variant;
	size_t size;
	unsigned samples, iters;  /* samples, and messages in all of them */
	double median_us, p99_us; /* of a message, one way, over the samples; each is the mean of a batch of messages */
	double MBps, msgs_per_s;  /* by the median */
	const char *floor;        /* what it is compared with; NULL: nothing */
	double floor_us, floor_p99_us, floor_MBps;
	double flag_us, flag_p99_us; /* a bare flag between the two cores meanwhile, one way */
	const char *placement;
};

/* "near", "far" or "mixed": where the two cores stood, by the flag's one-way time before and after the cell, us. */
const char *placement(double flag_before_us, double flag_after_us);

void report_heading(const struct options *options);
void report_cell(const struct options *options, const struct cell *cell);

/* One figure with a name, for what has no size: "name: value unit (what it is compared with)". Nothing in format CSV.
 * */
void report_figure(const struct options *options, const char *name, double median_us, double p99_us,
		   const char *floor_name, double floor_us);

#endif
