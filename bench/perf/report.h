/* SPDX-License-Identifier: BSD-3-Clause */
/* One measured cell, and how it is printed: a row of a table, or a JSON object on a line. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "options.h"

/* A figure that was not measured is NaN: a dash in the table, null in JSON. */
struct cell {
	const char *test, *layer, *transport, *design;
	size_t size;
	unsigned iters;
	double median_us, p99_us; /* one way, over batches of messages */
	double MBps, msgs_per_s;
	double floor_us, floor_MBps; /* of the same transport: flag or raw TCP; memcpy or raw TCP stream */
	double flag_before_us, flag_after_us;
};

/* "near", "far" or "mixed": where the two cores stood, by the flag's one-way time before and after the cell. */
const char *placement(double flag_before_us, double flag_after_us);

void report_heading(const struct options *options);
void report_cell(const struct options *options, const struct cell *cell);

/* One figure with a name, for what has no size: "name: value unit (what it is compared with)". */
void report_figure(const struct options *options, const char *name, double median_us, double p99_us,
		   const char *floor_name, double floor_us);

#endif
