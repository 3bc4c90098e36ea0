/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints results as a table, JSON or CSV. */
#include "config.h"
#include "report.h"

#include "headrace/channel.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *placement(double flag_before_us, double flag_after_us)
{
	/* The geometric mean of the typical one-way times near and far, 0.057 and 0.240 us: see docs/BENCHMARKS.md. */
	const double border_us = 0.117;
	if (flag_before_us < border_us && flag_after_us < border_us)
		return "near";
	return flag_before_us >= border_us && flag_after_us >= border_us ? "far" : "mixed";
}

/* ---- the columns; the table leaves out columns that have no meaning in its test, the other formats have all ---- */

enum shown { ALWAYS, LATENCY, STREAM, VERBS, CH3, NO_TABLE };

struct column {
	const char *name;
	int width; /* in the table; negative: text, aligned to the left */
	int precision;
	enum shown shown;
};

static const struct column columns[] = {
	{ "test", -5, 0, NO_TABLE },
	{ "layer", -7, 0, ALWAYS },
	{ "transport", -9, 0, ALWAYS },
	{ "design", -9, 0, VERBS },
	{ "qps", 3, 0, VERBS },
	{ "depth", 5, 0, VERBS },
	{ "chunk", 7, 0, VERBS },
	{ "size", 9, 0, ALWAYS },
	{ "samples", 7, 0, ALWAYS },
	{ "iters", 9, 0, ALWAYS },
	{ "median_us", 10, 3, ALWAYS },
	{ "p99_us", 10, 3, ALWAYS },
	{ "MBps", 9, 1, STREAM },
	{ "msgs_per_s", 11, 0, STREAM },
	{ "floor", -10, 0, ALWAYS },
	{ "floor_us", 9, 3, LATENCY },
	{ "floor_p99_us", 12, 3, LATENCY },
	{ "floor_MBps", 10, 1, STREAM },
	{ "ratio", 6, 2, ALWAYS },
	{ "flag_us", 8, 3, ALWAYS },
	{ "flag_p99_us", 11, 3, ALWAYS },
	{ "placement", -9, 0, ALWAYS },
	{ "rendezvous", -10, 0, CH3 }, /* last: it was added later, and scripts may count columns */
};

enum { COLUMNS = sizeof columns / sizeof *columns };

/* A column's value: text if the column has text (NULL: none), otherwise a number (NaN: none). */
struct value {
	const char *text;
	double number;
};

static bool in_table(const struct column *column, const struct options *options)
{
	switch (column->shown) {
	case ALWAYS: return true;
	case LATENCY: return options->test == TEST_LAT;
	case STREAM: return options->test != TEST_LAT;
	case VERBS: return options->transports == HR_TRANSPORT_VERBS;
	case CH3: return options->rendezvous.n > 0;
	case NO_TABLE: break;
	}
	return false;
}

/* Returns the value of a setting, or NaN if it was left to its default. */
static double setting(uint32_t value)
{
	return value ? value : NAN;
}

/* Returns the ratio to the floor: of the times (latency), or of the bandwidths. */
static double ratio(const struct cell *cell)
{
	return isnan(cell->MBps) ? cell->median_us / cell->floor_us : cell->MBps / cell->floor_MBps;
}

static void fill_row(const struct cell *cell, struct value row[COLUMNS])
{
	const struct variant *v = cell->variant;
	bool verbs = !strcmp(cell->transport, "verbs");
	const struct value values[] = {
		{ cell->test, 0 },
		{ layer_names[v->layer], 0 },
		{ cell->transport, 0 },
		{ verbs ? variant_design(v) : NULL, 0 },
		{ NULL, setting(v->qps) },
		{ NULL, setting(v->depth) },
		{ NULL, setting(v->chunk) },
		{ NULL, (double)cell->size },
		{ NULL, cell->samples },
		{ NULL, cell->iters },
		{ NULL, cell->median_us },
		{ NULL, cell->p99_us },
		{ NULL, cell->MBps },
		{ NULL, cell->msgs_per_s },
		{ cell->floor, 0 },
		{ NULL, cell->floor_us },
		{ NULL, cell->floor_p99_us },
		{ NULL, cell->floor_MBps },
		{ NULL, ratio(cell) },
		{ NULL, cell->flag_us },
		{ NULL, cell->flag_p99_us },
		{ cell->placement, 0 },
		{ variant_rendezvous(v), 0 },
	};
	_Static_assert(sizeof values / sizeof *values == COLUMNS, "a value for each column");
	memcpy(row, values, sizeof values);
}

/* ---- the three formats ---- */

static void json_number(const char *name, double value)
{
	if (isfinite(value))
		printf(", \"%s\": %.9g", name, value);
	else
		printf(", \"%s\": null", name);
}

static void json_text(const char *name, const char *value)
{
	if (value)
		printf(", \"%s\": \"%s\"", name, value);
	else
		printf(", \"%s\": null", name);
}

static void json_row(const struct value row[COLUMNS])
{
	printf("{\"%s\": \"%s\"", columns[0].name, row[0].text);
	for (int i = 1; i < COLUMNS; i++)
		if (columns[i].width < 0)
			json_text(columns[i].name, row[i].text);
		else
			json_number(columns[i].name, row[i].number);
	printf("}\n");
}

static void csv_row(const struct value row[COLUMNS])
{
	for (int i = 0; i < COLUMNS; i++) {
		if (i)
			putchar(',');
		if (columns[i].width < 0)
			printf("%s", row[i].text ? row[i].text : "");
		else if (isfinite(row[i].number))
			printf("%.9g", row[i].number);
	}
	putchar('\n');
}

static void table_row(const struct options *options, const struct value row[COLUMNS])
{
	for (int i = 0; i < COLUMNS; i++) {
		if (!in_table(&columns[i], options))
			continue;
		if (columns[i].width < 0)
			printf("%*s ", columns[i].width, row[i].text ? row[i].text : "-");
		else if (isfinite(row[i].number))
			printf("%*.*f ", columns[i].width, columns[i].precision, row[i].number);
		else
			printf("%*s ", columns[i].width, "-");
	}
	putchar('\n');
}

void report_heading(const struct options *options)
{
	for (int i = 0; i < COLUMNS && options->format == FORMAT_CSV; i++)
		printf("%s%s", i ? "," : "", columns[i].name);
	for (int i = 0; i < COLUMNS && options->format == FORMAT_TABLE; i++)
		if (in_table(&columns[i], options))
			printf("%*s ", columns[i].width, columns[i].name);
	if (options->format != FORMAT_JSON)
		putchar('\n');
}

void report_cell(const struct options *options, const struct cell *cell)
{
	struct value row[COLUMNS];
	fill_row(cell, row);
	switch (options->format) {
	case FORMAT_JSON: json_row(row); break;
	case FORMAT_CSV: csv_row(row); break;
	case FORMAT_TABLE: table_row(options, row); break;
	}
	fflush(stdout);
}

void report_figure(const struct options *options, const char *name, double median_us, double p99_us,
		   const char *floor_name, double floor_us)
{
	if (options->format == FORMAT_CSV)
		return;
	if (options->format == FORMAT_JSON) {
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

static void print_seconds(const char *name, double seconds)
{
	if (isnan(seconds))
		printf("  %s       -", name);
	else
		printf("  %s %7.3f", name, seconds);
}

void report_processor_time(const struct options *options, const char *name, double client, double server, double local)
{
	if (options->format == FORMAT_CSV)
		return;
	if (options->format == FORMAT_JSON) {
		printf("{\"test\": \"%s\"", name);
		json_number("client_s_per_GB", client);
		json_number("server_s_per_GB", server);
		json_number("local_s_per_GB", local);
		printf("}\n");
	} else {
		printf("%-44s s/GB", name);
		print_seconds("client", client);
		print_seconds("server", server);
		print_seconds("local", local);
		printf("\n");
	}
	fflush(stdout);
}
