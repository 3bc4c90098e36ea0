/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the message paths and floors of a measurement, and takes samples of them. */
#include "config.h"
#include "contest.h"

#include "headrace/channel.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const char *const floor_names[] = { "flag", "memcpy", "raw TCP", "RDMA write", "RDMA read", NULL };

static const struct variant raw_tcp = { .layer = LAYER_RAW_TCP };

char *contest_buffer(size_t len)
{
	void *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bytes == MAP_FAILED) {
		fprintf(stderr, "headrace-perf: no memory for a buffer of %zu bytes\n", len);
		exit(EXIT_FAILURE);
	}
	memset(bytes, 0x5a, len);
	return bytes;
}

uint32_t contest_agree(const struct contest *contest, uint32_t value)
{
	if (contest->pair->rank == 0)
		control_write(contest->pair->control, &value, sizeof value);
	else
		control_read(contest->pair->control, &value, sizeof value);
	return value;
}

/* ---- samples ---- */

static double ping_pong(struct contest *c, endpoint_t *ep, size_t size, unsigned turns)
{
	endpoint_post(ep, c->receive, size);
	double begin = now_seconds();
	for (unsigned i = 0; i < turns; i++) {
		if (c->pair->rank == 0) {
			endpoint_send(ep, c->send, size);
			endpoint_receive(ep, c->receive, size);
		} else {
			endpoint_receive(ep, c->receive, size);
			endpoint_send(ep, c->send, size);
		}
	}
	return now_seconds() - begin;
}

/* Moves one window of messages from rank 0 to rank 1, answered by 8 bytes. */
static void window(struct contest *c, endpoint_t *ep, size_t size, unsigned messages)
{
	uint64_t answer = 0;
	if (c->pair->rank == 0) {
		endpoint_send_many(ep, c->send, size, messages, c->options->ahead);
		endpoint_receive(ep, &answer, sizeof answer);
	} else {
		endpoint_receive_many(ep, c->receive, size, messages, c->options->ahead);
		endpoint_send(ep, &answer, sizeof answer);
	}
}

static double stream(struct contest *c, endpoint_t *ep, size_t size, unsigned messages)
{
	unsigned most = c->options->window ? c->options->window : messages;
	double begin = now_seconds();
	for (unsigned left = messages; left;) {
		unsigned now = left < most ? left : most;
		window(c, ep, size, now);
		left -= now;
	}
	return now_seconds() - begin;
}

/* Copies as many bytes as the messages have from buffer to buffer. */
static double copy(struct contest *c, size_t size, unsigned messages)
{
	double begin = now_seconds();
	for (unsigned i = 0; i < messages; i++) {
		memcpy(c->receive, c->send, size);
		__asm__ volatile("" : : "r"(c->receive) : "memory");
	}
	return now_seconds() - begin;
}

static double run_floor(struct contest *c, enum floor floor, size_t size, unsigned count)
{
	bool latency = c->options->test == TEST_LAT;
	switch (floor) {
	case FLOOR_FLAG: return 2e-6 * count * pair_flag_one_way(c->pair, count);
	case FLOOR_MEMCPY: return copy(c, size, count);
	case FLOOR_TCP: return latency ? ping_pong(c, c->tcp, size, count) : stream(c, c->tcp, size, count);
	case FLOOR_WRITE:
		return latency ? raw_verbs_ping_pong(c->raw, size, count) :
				 raw_verbs_stream(c->raw, RAW_WRITE, size, count);
	case FLOOR_READ: return raw_verbs_stream(c->raw, RAW_READ, size, count);
	case NO_FLOOR: break;
	}
	return 0;
}

/*
 * Ends a sample: rank 0 says so after its last message. Until then rank 1 polls the library, as its last message may
 * still need progress. A program would wait for its next message at this point, and so poll too.
 */
static void end_sample(struct contest *c, const struct contender *contender)
{
	if (c->pair->rank == 0) {
		pair_tell_end(c->pair);
		return;
	}
	for (unsigned spins = 1; !pair_told_end(c->pair); spins++) {
		if (contender->path)
			endpoint_poll(contender->path);
		else if (contender->floor == FLOOR_WRITE || contender->floor == FLOOR_READ)
			raw_verbs_poll(c->raw);
		if (spins % (1u << 20) == 0)
			control_check(c->pair->control);
	}
}

static double run_path(struct contest *c, endpoint_t *path, size_t size, unsigned count)
{
	return c->options->test == TEST_LAT ? ping_pong(c, path, size, count) : stream(c, path, size, count);
}

double contest_run(struct contest *contest, const struct contender *contender, size_t size, unsigned count)
{
	/* Synchronize both ranks. Otherwise the sample would include waiting for a peer that ended the previous sample
	 * late. */
	pair_flag_one_way(contest->pair, 2);
	double seconds = contender->path ? run_path(contest, contender->path, size, count) :
					   run_floor(contest, contender->floor, size, count);
	end_sample(contest, contender);
	return seconds;
}

/* ---- contenders ---- */

static enum floor floor_of(const struct contest *c, const struct contender *contender)
{
	const char *transport = endpoint_transport(contender->path);
	bool latency = c->options->test == TEST_LAT;
	if (!strcmp(transport, "tcp"))
		return FLOOR_TCP;
	if (!strcmp(transport, "verbs")) {
		if (!c->raw)
			return NO_FLOOR;
		const char *design = variant_design(contender->variant);
		return !latency && design && !strcmp(design, "zerocopy") ? FLOOR_READ : FLOOR_WRITE;
	}
	if (latency)
		return c->pair->flags ? FLOOR_FLAG : NO_FLOOR;
	return c->options->test == TEST_BW ? FLOOR_MEMCPY : NO_FLOOR;
}

int contest_floor(const struct contest *contest, enum floor floor)
{
	for (unsigned i = 0; i < contest->floors; i++)
		if (contest->contender[i].floor == floor)
			return (int)i;
	return -1;
}

static void add_floor(struct contest *c, enum floor floor)
{
	if (floor != NO_FLOOR && contest_floor(c, floor) < 0)
		c->contender[c->floors++] = (struct contender){ .floor = floor };
}

static void open_paths(struct contest *c, struct contender *paths)
{
	for (unsigned i = 0; i < c->options->variants; i++) {
		paths[i] = (struct contender){ .variant = &c->options->variant[i], .floor = NO_FLOOR };
		paths[i].path = endpoint_open(paths[i].variant, c->pair->control);
	}
}

void contest_open(struct contest *c, struct pair *pair, const struct options *options)
{
	size_t largest = 8;
	struct contender paths[VARIANTS_MAX];
	for (unsigned i = 0; i < options->sizes; i++)
		largest = options->size[i] > largest ? options->size[i] : largest;
	*c = (struct contest){ .pair = pair, .options = options };
	c->buffer_bytes = largest;
	c->send = contest_buffer(largest);
	c->receive = contest_buffer(largest);
	open_paths(c, paths);
	/* All paths of a run use the same transport; they differ in other settings or in the layer. */
	const char *transport = endpoint_transport(paths[0].path);
	if (!strcmp(transport, "tcp"))
		c->tcp = endpoint_open(&raw_tcp, pair->control);
	if (!strcmp(transport, "verbs"))
		c->raw = raw_verbs_open(pair->rank, pair->control, largest);
	if (pair->flags)
		add_floor(c, FLOOR_FLAG);
	for (unsigned i = 0; i < options->variants; i++) {
		paths[i].floor = floor_of(c, &paths[i]);
		add_floor(c, paths[i].floor);
	}
	memcpy(&c->contender[c->floors], paths, options->variants * sizeof *paths);
	c->contenders = c->floors + options->variants;
}

void contest_close(struct contest *c)
{
	for (unsigned i = c->floors; i < c->contenders; i++)
		endpoint_close(c->contender[i].path);
	if (c->tcp)
		endpoint_close(c->tcp);
	raw_verbs_close(c->raw);
	munmap(c->send, c->buffer_bytes);
	munmap(c->receive, c->buffer_bytes);
}
