/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the machine's floors by themselves, for the end of the report. */
#include "config.h"
#include "machine.h"

#include "contest.h"
#include "report.h"
#include "stats.h"

#include <math.h>

enum { ROUNDS = 100, COPY_BYTES = 1 << 20 };

/* One floor to measure. */
struct figure {
	const char *name;
	enum floor floor;
	size_t size;
	unsigned count;  /* units of one sample */
	double units_us; /* factor from the seconds of one unit to the reported microseconds */
	struct samples samples;
};

static void measure(struct pair *pair, void *argument)
{
	static const struct variant raw_tcp = { .layer = LAYER_RAW_TCP };
	const struct options *asked = argument;
	struct options options = { .test = TEST_LAT };
	struct contest contest = { .pair = pair, .options = &options, .send = contest_buffer(COPY_BYTES),
				   .receive = contest_buffer(COPY_BYTES),
				   .tcp = endpoint_open(&raw_tcp, pair->control) };
	struct figure figures[] = {
		{ .name = "machine: flag, one way", .floor = FLOOR_FLAG, .size = 8, .count = 2000, .units_us = 0.5e6 },
		{ .name = "machine: memcpy of 1 MB", .floor = FLOOR_MEMCPY, .size = COPY_BYTES, .count = 8,
		  .units_us = 1e6 },
		{ .name = "machine: raw TCP of 8 bytes, one way", .floor = FLOOR_TCP, .size = 8, .count = 100,
		  .units_us = 0.5e6 },
	};
	const unsigned n = sizeof figures / sizeof *figures;
	for (unsigned i = 0; i < n; i++)
		samples_init(&figures[i].samples, ROUNDS);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (struct figure *f = figures; f < figures + n; f++) {
			const struct contender floor = { .floor = f->floor };
			double seconds = contest_run(&contest, &floor, f->size, f->count);
			samples_add(&f->samples, f->units_us * seconds / f->count);
		}
	for (struct figure *f = figures; f < figures + n; f++) {
		if (pair->rank == 0)
			report_figure(asked, f->name, samples_quantile(&f->samples, 0.5),
				      samples_quantile(&f->samples, 0.99), NULL, NAN);
		samples_free(&f->samples);
	}
	endpoint_close(contest.tcp);
}

int machine_measure(const struct options *options)
{
	return pair_run(measure, (void *)options);
}
