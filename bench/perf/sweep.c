/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-perf sweeps: bandwidth over numbers of queue pairs and queue depths. */
#include "config.h"
#include "sweep.h"

#include <stdio.h>

enum { SMALLEST = 2, LARGEST = 4 << 20, QUICK_FACTOR = 8 }; /* bytes; 22 sizes, quick 8 */

static const uint32_t qps[] = { 1, 2, 4, 8 };
static const uint32_t depths[] = { 2, 4, 8, 16, 32, 64, 128, 256 };

enum { QPS = sizeof qps / sizeof *qps, DEPTHS = sizeof depths / sizeof *depths };

_Static_assert(QPS + DEPTHS <= VARIANTS_MAX, "all settings are open at once");

static double measured[SIZES_MAX][QPS + DEPTHS]; /* MB/s */

void sweep_fill(struct options *options)
{
	/* Each list has at most one value, so there is one variant: the base of all variants here. */
	struct variant base = options->variant[0];
	for (unsigned i = 0; i < QPS + DEPTHS; i++) {
		options->variant[i] = base;
		if (i < QPS)
			options->variant[i].qps = qps[i];
		else
			options->variant[i].depth = depths[i - QPS];
	}
	options->variants = QPS + DEPTHS;
	if (!options->seconds)
		options->seconds = options->quick ? 0.01 : 0.1;
	if (options->sizes)
		return;
	for (size_t size = SMALLEST; size <= LARGEST; size *= options->quick ? QUICK_FACTOR : 2)
		options->size[options->sizes++] = size;
}

void sweep_note(const struct cell *cells, unsigned i)
{
	for (unsigned v = 0; v < QPS + DEPTHS; v++)
		measured[i][v] = cells[v].MBps;
}

static void table(const struct options *options, const char *title, const uint32_t *settings, unsigned first,
		  unsigned n)
{
	printf("\n%s; MB/s\n%10s", title, "size");
	for (unsigned v = 0; v < n; v++)
		printf(" %9u", settings[v]);
	for (unsigned i = 0; i < options->sizes; i++) {
		printf("\n%10zu", options->size[i]);
		for (unsigned v = first; v < first + n; v++)
			printf(" %9.4g", measured[i][v]);
	}
	/* Computed as in the studies: the gain over the first setting, averaged over the sizes. */
	printf("\n%10s", "mean gain");
	for (unsigned v = first; v < first + n; v++) {
		double sum = 0;
		for (unsigned i = 0; i < options->sizes; i++)
			sum += measured[i][v] / measured[i][first] - 1;
		printf(" %+8.1f%%", 100 * sum / options->sizes);
	}
	printf("\n");
}

void sweep_report(const struct options *options)
{
	if (options->format != FORMAT_TABLE)
		return;
	table(options, "Queue pairs of a connection", qps, 0, QPS);
	table(options, "Requests under way per queue pair", depths, QPS, DEPTHS);
	fflush(stdout);
}
