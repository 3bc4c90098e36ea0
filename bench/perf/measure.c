/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every cell is measured in rounds; a round measures the floor and then the layer, so that both see the same placement of
 * the two cores and the same neighbours. A sample is the mean over one batch of messages: one clock reading a message
 * would weigh as much as the message.
 */
#include "config.h"
#include "measure.h"

#include "headrace/channel.h"
#include "pair.h"
#include "report.h"
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS 40
#define BATCHES 10          /* samples a round */
#define FLAG_TURNS 2000     /* a round */
#define WINDOW_BYTES (8u << 20)

struct job {
	const struct options *options;
	double *result; /* measure_channel_latency: two figures, shared with rank 0 by being in its process */
};

/* What both ranks hold while measuring. */
struct bench {
	struct pair *pair;
	const struct options *options;
	endpoint_t *path, *floor; /* floor: raw TCP beside tcp, else NULL */
	char *send, *receive;
};

static void *buffer(size_t len)
{
	void *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bytes == MAP_FAILED) {
		fprintf(stderr, "headrace-perf: no memory for a buffer of %zu bytes\n", len);
		exit(EXIT_FAILURE);
	}
	memset(bytes, 0x5a, len);
	return bytes;
}

static unsigned messages_per_cell(const struct options *options, size_t size)
{
	if (options->iters)
		return options->iters;
	size_t by_bytes = ((size_t)2 << 30) / (size + 4096);
	if (options->test == TEST_RATE)
		return 2000000;
	return by_bytes > 100000 ? 100000 : by_bytes < 400 ? 400 : (unsigned)by_bytes;
}

/* One batch of round trips; one-way microseconds. */
static double ping_pong(struct bench *b, endpoint_t *ep, size_t size, unsigned turns)
{
	double begin = now_seconds();
	for (unsigned i = 0; i < turns; i++) {
		if (b->pair->rank == 0) {
			endpoint_send(ep, b->send, size);
			endpoint_receive(ep, b->receive, size);
		} else {
			endpoint_receive(ep, b->receive, size);
			endpoint_send(ep, b->send, size);
		}
	}
	return 1e6 * (now_seconds() - begin) / turns / 2;
}

/* One window of messages one way, answered by 8 bytes; seconds. */
static double stream(struct bench *b, endpoint_t *ep, size_t size, unsigned messages)
{
	uint64_t answer = 0;
	double begin = now_seconds();
	if (b->pair->rank == 0) {
		for (unsigned i = 0; i < messages; i++)
			endpoint_send(ep, b->send, size);
		endpoint_receive(ep, &answer, sizeof answer);
	} else {
		for (unsigned i = 0; i < messages; i++)
			endpoint_receive(ep, b->receive, size);
		endpoint_send(ep, &answer, sizeof answer);
	}
	return now_seconds() - begin;
}

/* The bare copy of as many bytes as a window moves, from buffer to buffer; seconds. */
static double copy_window(struct bench *b, size_t size, unsigned messages)
{
	double begin = now_seconds();
	for (unsigned i = 0; i < messages; i++) {
		memcpy(b->receive, b->send, size);
		__asm__ volatile("" : : "r"(b->receive) : "memory");
	}
	return now_seconds() - begin;
}

static void measure_latency(struct bench *b, size_t size, struct cell *cell)
{
	unsigned turns = cell->iters / (ROUNDS * BATCHES);
	turns = turns ? turns : 1;
	struct samples path, floor;
	samples_init(&path, ROUNDS * BATCHES);
	samples_init(&floor, ROUNDS * BATCHES);
	ping_pong(b, b->path, size, turns);
	for (int round = 0; round < ROUNDS; round++) {
		double flag = pair_flag_one_way(b->pair, FLAG_TURNS);
		for (int i = 0; i < BATCHES; i++) {
			samples_add(&floor, b->floor ? ping_pong(b, b->floor, size, turns) : flag);
			samples_add(&path, ping_pong(b, b->path, size, turns));
		}
	}
	cell->median_us = samples_quantile(&path, 0.5);
	cell->p99_us = samples_quantile(&path, 0.99);
	if (strcmp(cell->transport, "verbs"))
		cell->floor_us = samples_quantile(&floor, 0.5);
	cell->iters = turns * ROUNDS * BATCHES;
	samples_free(&path);
	samples_free(&floor);
}

/* Bandwidth, and for small messages the rate: the two differ only in what is said of them. */
static void measure_stream(struct bench *b, size_t size, struct cell *cell)
{
	unsigned messages = cell->iters / ROUNDS, most = (unsigned)(WINDOW_BYTES / size) + 1;
	if (b->options->test == TEST_BW && messages > most)
		messages = most;
	messages = messages ? messages : 1;
	struct samples path, floor;
	samples_init(&path, ROUNDS);
	samples_init(&floor, ROUNDS);
	stream(b, b->path, size, messages);
	for (int round = 0; round < ROUNDS; round++) {
		samples_add(&floor, b->floor ? stream(b, b->floor, size, messages) : copy_window(b, size, messages));
		samples_add(&path, stream(b, b->path, size, messages));
	}
	double median = samples_quantile(&path, 0.5), bytes = 1e-6 * (double)size * messages;
	cell->median_us = 1e6 * median / messages;
	cell->p99_us = 1e6 * samples_quantile(&path, 0.99) / messages;
	cell->MBps = bytes / median;
	cell->msgs_per_s = messages / median;
	if (strcmp(cell->transport, "verbs") && (b->floor || b->options->test == TEST_BW))
		cell->floor_MBps = bytes / samples_quantile(&floor, 0.5);
	cell->iters = messages * ROUNDS;
	samples_free(&path);
	samples_free(&floor);
}

static void open_bench(struct bench *b, struct pair *pair, const struct options *options)
{
	size_t largest = 8;
	for (unsigned i = 0; i < options->sizes; i++)
		largest = options->size[i] > largest ? options->size[i] : largest;
	*b = (struct bench){ .pair = pair, .options = options };
	b->send = buffer(largest);
	b->receive = buffer(largest);
	b->path = endpoint_open(options->layer, options->transports, pair->control);
	if (!strcmp(endpoint_transport(b->path), "tcp"))
		b->floor = endpoint_open(LAYER_RAW_TCP, 0, pair->control);
}

static void close_bench(struct bench *b)
{
	endpoint_close(b->path);
	if (b->floor)
		endpoint_close(b->floor);
}

static void measure_all(struct pair *pair, void *argument)
{
	const struct options *options = ((struct job *)argument)->options;
	struct bench b;
	open_bench(&b, pair, options);
	if (pair->rank == 0)
		report_heading(options);
	for (unsigned i = 0; i < options->sizes; i++) {
		struct cell cell = {
			.test = test_names[options->test], .layer = layer_names[options->layer],
			.transport = endpoint_transport(b.path), .size = options->size[i],
			.iters = messages_per_cell(options, options->size[i]),
			.median_us = NAN, .p99_us = NAN, .MBps = NAN, .msgs_per_s = NAN, .floor_us = NAN, .floor_MBps = NAN,
		};
		cell.design = strcmp(cell.transport, "verbs") ? NULL : "piggyback";
		cell.flag_before_us = pair_flag_one_way(pair, FLAG_TURNS);
		if (options->test == TEST_LAT)
			measure_latency(&b, options->size[i], &cell);
		else
			measure_stream(&b, options->size[i], &cell);
		cell.flag_after_us = pair_flag_one_way(pair, FLAG_TURNS);
		if (pair->rank == 0)
			report_cell(options, &cell);
	}
	close_bench(&b);
}

/* The floors of this machine by themselves, whatever the transport was. */
static void measure_machine(struct pair *pair, void *argument)
{
	const struct options *options = ((struct job *)argument)->options;
	struct bench b = { .pair = pair, .options = options, .send = buffer(1 << 20), .receive = buffer(1 << 20) };
	endpoint_t *tcp = endpoint_open(LAYER_RAW_TCP, 0, pair->control);
	struct samples flag, copy, socket;
	samples_init(&flag, ROUNDS);
	samples_init(&copy, ROUNDS);
	samples_init(&socket, ROUNDS);
	for (int round = 0; round < ROUNDS; round++) {
		samples_add(&flag, pair_flag_one_way(pair, FLAG_TURNS));
		samples_add(&copy, 1e6 * copy_window(&b, 1 << 20, 8) / 8);
		samples_add(&socket, ping_pong(&b, tcp, 8, 100));
	}
	if (pair->rank == 0) {
		report_figure(options, "machine: flag, one way", samples_quantile(&flag, 0.5), samples_quantile(&flag, 0.99),
			      NULL, NAN);
		report_figure(options, "machine: memcpy of 1 MB", samples_quantile(&copy, 0.5),
			      samples_quantile(&copy, 0.99), NULL, NAN);
		report_figure(options, "machine: raw TCP of 8 bytes, one way", samples_quantile(&socket, 0.5),
			      samples_quantile(&socket, 0.99), NULL, NAN);
	}
	endpoint_close(tcp);
	samples_free(&flag);
	samples_free(&copy);
	samples_free(&socket);
}

int measure_messages(const struct options *options)
{
	struct job job = { .options = options };
	int error = pair_run(measure_all, &job);
	return error ? error : pair_run(measure_machine, &job);
}

static void channel_latency(struct pair *pair, void *argument)
{
	struct job *job = argument;
	struct bench b;
	open_bench(&b, pair, job->options);
	struct samples path, floor;
	samples_init(&path, ROUNDS * BATCHES);
	samples_init(&floor, ROUNDS * BATCHES);
	ping_pong(&b, b.path, 8, 1000);
	for (int round = 0; round < ROUNDS; round++) {
		double flag = pair_flag_one_way(pair, FLAG_TURNS);
		for (int i = 0; i < BATCHES; i++) {
			samples_add(&floor, b.floor ? ping_pong(&b, b.floor, 8, 200) : flag);
			samples_add(&path, ping_pong(&b, b.path, 8, 200));
		}
	}
	job->result[0] = samples_quantile(&path, 0.5);
	job->result[1] = samples_quantile(&floor, 0.5);
	samples_free(&path);
	samples_free(&floor);
	close_bench(&b);
}

int measure_channel_latency(uint32_t transports, double *median_us, double *floor_us)
{
	struct options options = { .test = TEST_LAT, .layer = LAYER_CHANNEL, .transports = transports, .size = { 8 }, .sizes = 1 };
	double result[2];
	struct job job = { .options = &options, .result = result };
	int error = pair_run(channel_latency, &job);
	if (error)
		return error;
	*median_us = result[0];
	*floor_us = result[1];
	return 0;
}
