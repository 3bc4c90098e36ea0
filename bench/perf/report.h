/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a measured cell: as a row of a table, a JSON object on one line, or a line of comma-separated values. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "options.h"

/* The results of one variant and size. A figure that was not measured is NaN; it is printed as a dash in the table, as
 * null in JSON, and as an empty field in CSV. */
struct cell {
	const char *test, *transport;
	const struct variant *variant;
	size_t size;
	unsigned samples, iters;  /* number of samples, and of messages in all of them */
	double median_us, p99_us; /* one-way time of a message, over the samples; a sample is the mean of a batch */
	double MBps, msgs_per_s;  /* from the median */
	const char *floor;        /* name of the floor; NULL: none */
	double floor_us, floor_p99_us, floor_MBps;
	double flag_us, flag_p99_us; /* one-way time of the flag in the same rounds */
	const char *placement;
};

/* Returns "near", "far" or "mixed": the placement of the two cores, by the flag's one-way time at the start and at the
 * end of the measurement, us. */
const char *placement(double flag_before_us, double flag_after_us);

void report_heading(const struct options *options);
void report_cell(const struct options *options, const struct cell *cell);

/* Prints one named figure that belongs to no size, with its ratio to a floor. Prints nothing in format CSV. */
void report_figure(const struct options *options, const char *name, double median_us, double p99_us,
		   const char *floor_name, double floor_us);

/* Prints the processor time of both sides of a copy, and that of a local copy, in seconds for a GB. Prints nothing
 * in format CSV. */
void report_processor_time(const struct options *options, const char *name, double client, double server, double local);

#endif
