/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measurements between two processes. Every size is measured in rounds. In each round every contender gives one sample,
 * so that all are measured with the same placement of the two cores and the same other load. A sample is the mean over
 * a batch of messages, as reading the clock for each message would take as long as the message. The batches of all
 * contenders take about the same time, so that interruptions of the machine hit each equally often. Therefore the
 * flag's p99 shows how much of a path's p99 is noise of the machine.
 */
#include "config.h"
#include "measure.h"

#include "contest.h"
#include "headrace/channel.h"
#include "machine.h"
#include "remote.h"
#include "report.h"
#include "stats.h"
#include "sweep.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum {
	ROUNDS_LAT = 400, /* maximum for lat; fewer if options->seconds is too short */
	ROUNDS_BW = 100,  /* maximum for the other tests */
	ROUNDS_LEAST = 10,
	STREAM_LEAST = 4, /* minimum number of messages in a sample; fewer would measure latency */
	COUNT_MOST = 1 << 22,
	TRIES = 4, /* number of tries to estimate the time of a sample */
};

struct job {
	const struct options *options;
	bool headed; /* the report has its heading */
	double *result; /* measure_channel_latency: two results, valid in rank 0 */
};

/* The plan for one size. */
struct plan {
	unsigned rounds;
	unsigned count[FLOORS + VARIANTS_MAX]; /* units of a contender's sample */
	struct samples samples[FLOORS + VARIANTS_MAX];
};

static unsigned clamp(double value, unsigned least, unsigned most)
{
	return value < least ? least : value > most ? most : (unsigned)value;
}

/* Returns the seconds that `count` units take, as the shortest of TRIES tries: a longer try may have had cold caches or
 * an interruption. */
static double try_out(struct contest *contest, const struct contender *contender, size_t size, unsigned count)
{
	double shortest = INFINITY;
	for (unsigned i = 0; i < TRIES; i++) {
		double took = contest_run(contest, contender, size, count);
		shortest = took < shortest ? took : shortest;
	}
	return shortest;
}

/* Returns the number of units of a contender that take about *seconds, and stores in *seconds the time that they take.
 * Also warms the contender up. */
static unsigned calibrate(struct contest *contest, const struct contender *contender, size_t size, double *seconds)
{
	unsigned least = contest->options->test == TEST_LAT ? 1 : STREAM_LEAST, count = least;
	for (;;) {
		double took = try_out(contest, contender, size, count), wanted = count * *seconds / took;
		bool done = wanted < 1.5 * count || count == COUNT_MOST;
		unsigned next = clamp(wanted < 8.0 * count ? wanted : 8.0 * count, least, COUNT_MOST);
		next = contest_agree(contest, done ? 0 : next);
		if (!next) {
			*seconds = took;
			return count;
		}
		count = next;
	}
}

static void make_plan(struct contest *contest, size_t size, struct plan *plan)
{
	const struct options *options = contest->options;
	unsigned most = options->test == TEST_LAT ? ROUNDS_LAT : ROUNDS_BW;
	double slowest = 0;
	for (unsigned i = 0; i < contest->contenders; i++) {
		double seconds = options->seconds / most;
		plan->count[i] = calibrate(contest, &contest->contender[i], size, &seconds);
		slowest = seconds > slowest ? seconds : slowest;
	}
	plan->rounds = contest_agree(contest, clamp(options->seconds / slowest, ROUNDS_LEAST, most));
	if (options->iters) {
		plan->rounds = options->iters < most ? options->iters : most;
		for (unsigned i = 0; i < contest->contenders; i++)
			plan->count[i] = options->iters / plan->rounds;
	}
	for (unsigned i = 0; i < contest->contenders; i++)
		samples_init(&plan->samples[i], plan->rounds);
}

/* Takes all samples of a size: seconds for one unit. */
static void run_plan(struct contest *contest, size_t size, struct plan *plan)
{
	for (unsigned round = 0; round < plan->rounds; round++)
		for (unsigned i = 0; i < contest->contenders; i++) {
			double seconds = contest_run(contest, &contest->contender[i], size, plan->count[i]);
			samples_add(&plan->samples[i], seconds / plan->count[i]);
		}
}

/* Returns the flag's one-way time in the first or the last tenth of a size's samples, us. */
static double flag_edge_us(const struct samples *flag, bool last)
{
	size_t n = flag->count / 10 + 1;
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += flag->value[last ? flag->count - 1 - i : i];
	return 1e6 * sum / (double)n / 2;
}

static void fill_floor(const struct contest *contest, struct plan *plan, enum floor floor, struct cell *cell)
{
	bool latency = contest->options->test == TEST_LAT;
	cell->floor_us = cell->floor_p99_us = cell->floor_MBps = NAN;
	cell->floor = floor_names[floor];
	int i = floor == NO_FLOOR ? -1 : contest_floor(contest, floor);
	if (i < 0)
		return;
	double unit = 1e6 / (latency ? 2 : 1), median = samples_quantile(&plan->samples[i], 0.5);
	cell->floor_us = unit * median;
	cell->floor_p99_us = unit * samples_quantile(&plan->samples[i], 0.99);
	if (!latency)
		cell->floor_MBps = 1e-6 * (double)cell->size / median;
}

static void fill_cell(const struct contest *contest, struct plan *plan, unsigned i, struct cell *cell)
{
	const struct contender *contender = &contest->contender[i];
	bool latency = contest->options->test == TEST_LAT;
	double unit = 1e6 / (latency ? 2 : 1), median = samples_quantile(&plan->samples[i], 0.5);
	cell->test = contest->options->test == TEST_SWEEP ? "bw" : test_names[contest->options->test];
	cell->variant = contender->variant;
	cell->transport = endpoint_transport(contender->path);
	cell->samples = plan->rounds;
	cell->iters = plan->rounds * plan->count[i];
	cell->median_us = unit * median;
	cell->p99_us = unit * samples_quantile(&plan->samples[i], 0.99);
	cell->MBps = latency ? NAN : 1e-6 * (double)cell->size / median;
	cell->msgs_per_s = latency ? NAN : 1 / median;
	fill_floor(contest, plan, contender->floor, cell);
	cell->flag_us = cell->flag_p99_us = NAN;
	if (!contest->pair->flags)
		return;
	struct samples *flag = &plan->samples[contest_floor(contest, FLOOR_FLAG)];
	cell->flag_us = 1e6 * samples_quantile(flag, 0.5) / 2;
	cell->flag_p99_us = 1e6 * samples_quantile(flag, 0.99) / 2;
}

static const char *find_placement(const struct contest *contest, const struct plan *plan)
{
	const struct samples *flag = &plan->samples[contest_floor(contest, FLOOR_FLAG)];
	return placement(flag_edge_us(flag, false), flag_edge_us(flag, true));
}

static void measure_size(struct contest *contest, size_t size, struct cell *cells)
{
	struct plan plan;
	make_plan(contest, size, &plan);
	run_plan(contest, size, &plan);
	/* Find the placement first, as samples_quantile sorts the samples. */
	const char *where = contest->pair->flags ? find_placement(contest, &plan) : "two hosts";
	for (unsigned i = contest->floors; i < contest->contenders; i++) {
		struct cell *cell = &cells[i - contest->floors];
		*cell = (struct cell){ .size = size, .placement = where };
		fill_cell(contest, &plan, i, cell);
	}
	for (unsigned i = 0; i < contest->contenders; i++)
		samples_free(&plan.samples[i]);
}

static void measure_all(struct pair *pair, void *argument)
{
	struct job *job = argument;
	const struct options *options = job->options;
	struct contest contest;
	struct cell cells[VARIANTS_MAX];
	contest_open(&contest, pair, options);
	if (pair->rank == 0 && !job->headed)
		report_heading(options);
	job->headed = true;
	for (unsigned i = 0; i < options->sizes; i++) {
		measure_size(&contest, options->size[i], cells);
		for (unsigned v = 0; v < options->variants && pair->rank == 0; v++)
			report_cell(options, &cells[v]);
		if (options->test == TEST_SWEEP && pair->rank == 0)
			sweep_note(cells, i);
	}
	if (options->test == TEST_SWEEP && pair->rank == 0)
		sweep_report(options);
	contest_close(&contest);
}

/* Measures between two hosts: over the named transport, or over every transport that both sides have. */
static int measure_remote(const struct options *options)
{
	static const uint32_t all[] = { HR_TRANSPORT_SHM, HR_TRANSPORT_VERBS, HR_TRANSPORT_TCP };
	struct options each = *options;
	struct job job = { .options = &each };
	uint32_t common = remote_transports(options->control);
	uint32_t wanted = options->transports ? options->transports : common;
	if (options->test == TEST_SWEEP)
		wanted = HR_TRANSPORT_VERBS;
	if (!(wanted & common)) {
		fprintf(stderr, "headrace-perf: the two hosts do not both have the transport\n");
		return -1;
	}
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (!(wanted & common & all[i]))
			continue;
		for (unsigned v = 0; v < each.variants; v++)
			each.variant[v].transports = all[i];
		pair_run_remote(options->control, options->rank, measure_all, &job);
	}
	return 0;
}

int measure_messages(const struct options *options)
{
	if (options->control >= 0)
		return measure_remote(options);
	struct job job = { .options = options };
	int error = pair_run(measure_all, &job);
	return error || options->format == FORMAT_CSV ? error : machine_measure(options);
}

static void one_size(struct pair *pair, void *argument)
{
	struct job *job = argument;
	struct contest contest;
	struct cell cell;
	contest_open(&contest, pair, job->options);
	measure_size(&contest, job->options->size[0], &cell);
	job->result[0] = cell.median_us;
	job->result[1] = cell.floor_us;
	contest_close(&contest);
}

int measure_channel_latency(uint32_t transports, double *median_us, double *floor_us)
{
	struct options options = { .test = TEST_LAT, .control = -1, .variants = 1, .size = { 8 }, .sizes = 1, .seconds = 0.4,
				   .variant = { { .layer = LAYER_CHANNEL, .transports = transports } } };
	double result[2];
	struct job job = { .options = &options, .result = result };
	int error = pair_run(one_size, &job);
	if (error)
		return error;
	*median_us = result[0];
	*floor_us = result[1];
	return 0;
}
