/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <math.h>
#include <stdio.h>

const char *placement(double flag_before_us, double flag_after_us)
{
	/* The geometric mean of the typical one-way times, 0.057 and 0.240 us: see docs/BENCHMARKS.md. */
	const double border_us = 0.117;
	if (isnan(flag_before_us) || isnan(flag_after_us))
		return "unknown";
	if (flag_before_us < border_us && flag_after_us < border_us)
		return "near";
	return flag_before_us >= border_us && flag_after_us >= border_us ? "far" : "mixed";
}

void report_heading(const struct options *options)
{
	if (options->json)
		return;
	printf("%-5s %-7s %-6s %10s %8s %11s %11s %10s %12s %10s %10s  %s\n", "test", "layer", "via", "size", "iters",
	       "median us", "p99 us", "MB/s", "messages/s", "floor us", "floor MB/s", "placement (ratio to floor)");
}

static void json_number(const char *name, double value)
{
	if (isnan(value))
		printf(", \"%s\": null", name);
	else
		printf(", \"%s\": %.6g", name, value);
}

static void json_text(const char *name, const char *value)
{
	if (value)
		printf(", \"%s\": \"%s\"", name, value);
	else
		printf(", \"%s\": null", name);
}

static void json_cell(const struct cell *cell)
{
	printf("{\"test\": \"%s\"", cell->test);
	json_text("layer", cell->layer);
	json_text("transport", cell->transport);
	json_text("design", cell->design);
	printf(", \"size\": %zu, \"iters\": %u", cell->size, cell->iters);
	json_number("median_us", cell->median_us);
	json_number("p99_us", cell->p99_us);
	json_number("MBps", cell->MBps);
	json_number("msgs_per_s", cell->msgs_per_s);
	json_number("floor_us", cell->floor_us);
	json_number("floor_MBps", cell->floor_MBps);
	json_text("placement", placement(cell->flag_before_us, cell->flag_after_us));
	printf("}\n");
}

static void table_number(const char *format, int width, double value)
{
	if (isnan(value))
		printf(" %*s", width, "-");
	else
		printf(format, width, value);
}

void report_cell(const struct options *options, const struct cell *cell)
{
	if (options->json) {
		json_cell(cell);
		fflush(stdout);
		return;
	}
	printf("%-5s %-7s %-6s %10zu %8u", cell->test, cell->layer, cell->transport, cell->size, cell->iters);
	table_number(" %*.3f", 11, cell->median_us);
	table_number(" %*.3f", 11, cell->p99_us);
	table_number(" %*.0f", 10, cell->MBps);
	table_number(" %*.0f", 12, cell->msgs_per_s);
	table_number(" %*.3f", 10, cell->floor_us);
	table_number(" %*.0f", 10, cell->floor_MBps);
	printf("  %s", placement(cell->flag_before_us, cell->flag_after_us));
	if (!isnan(cell->floor_us))
		printf(" (%.2f x)", cell->median_us / cell->floor_us);
	else if (!isnan(cell->floor_MBps))
		printf(" (%.2f x)", cell->MBps / cell->floor_MBps);
	printf("\n");
	fflush(stdout);
}

void report_figure(const struct options *options, const char *name, double median_us, double p99_us,
		   const char *floor_name, double floor_us)
{
	if (options->json) {
		printf("{\"test\": \"%s\"", name);
		json_number("median_us", median_us);
		json_number("p99_us", p99_us);
		json_text("floor", floor_name);
		json_number("floor_us", floor_us);
		printf("}\n");
	} else {
		printf("%-44s median %9.3f us", name, median_us);
		if (!isnan(p99_us))
			printf("  p99 %9.3f us", p99_us);
		if (floor_name)
			printf("  = %.2f x %s (%.3f us)", median_us / floor_us, floor_name, floor_us);
		printf("\n");
	}
	fflush(stdout);
}
