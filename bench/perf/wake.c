/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures waking a sleeping receiver. Rank 1 sleeps, rank 0 puts. On one host both read the same clock, so the message
 * contains the time of its put. Before each put there is a pause, long enough for rank 1 to fall asleep and its
 * processor to become idle. Floor and channel are measured in turn.
 */
#include "config.h"
#include "wake.h"

#include "endpoint.h"
#include "headrace/channel.h"
#include "pair.h"
#include "remote.h"
#include "report.h"
#include "stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAKES 400
#define PAUSE_US 500

struct job {
	const struct options *options;
	uint32_t transport;
	const char *name;
	int event; /* shared by both ranks */
};

static void fail(const char *what, int error)
{
	fprintf(stderr, "headrace-perf: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(EXIT_FAILURE);
}

static hr_conn_t *connect_pair(struct pair *pair, uint32_t transport, hr_channel_t **channel)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = transport;
	hr_card_t mine, theirs;
	hr_conn_t *conn;
	int error = hr_channel_init(&attr, channel, &mine);
	if (error)
		fail("hr_channel_init", error);
	control_write(pair->control, &mine, sizeof mine);
	control_read(pair->control, &theirs, sizeof theirs);
	error = hr_channel_connect(*channel, &theirs, NULL, &conn);
	while (!error && (error = hr_conn_state(conn)) == 0)
		hr_channel_wait(*channel, 1, 100);
	if (error < 0)
		fail("connecting", error);
	return conn;
}

static double by_channel(struct pair *pair, hr_channel_t *channel, hr_conn_t *conn)
{
	double time = 0;
	struct iovec iov = { &time, sizeof time };
	size_t moved = 0;
	int error = 0;
	if (pair->rank == 0) {
		usleep(PAUSE_US);
		time = now_seconds();
		error = hr_channel_put(conn, &iov, 1, &moved);
	}
	while (!error && !moved && pair->rank == 1) {
		error = hr_channel_get(conn, &iov, 1, &moved);
		if (!error && !moved && hr_channel_wait(channel, 0, -1) < 0)
			error = -EIO;
	}
	if (error || moved != sizeof time)
		fail("putting or getting", error ? error : -EIO);
	return pair->rank == 1 ? 1e6 * (now_seconds() - time) : 0;
}

/* Between two hosts, which have different clocks: rank 0 measures the time from its put to the answer of rank 1. */
static double round_trip_by_channel(struct pair *pair, hr_channel_t *channel, hr_conn_t *conn)
{
	char byte = 0;
	double begin = 0;
	for (int step = 0; step < 2; step++) {
		struct iovec iov = { &byte, 1 };
		size_t moved = 0;
		int error = 0;
		if (step == 0 && pair->rank == 0) {
			usleep(PAUSE_US);
			begin = now_seconds();
		}
		if (step == pair->rank)
			error = hr_channel_put(conn, &iov, 1, &moved);
		while (!error && !moved && step != pair->rank) {
			error = hr_channel_get(conn, &iov, 1, &moved);
			if (!error && !moved && pair->rank == 1 && hr_channel_wait(channel, 0, -1) < 0)
				error = -EIO;
		}
		if (error || moved != 1)
			fail("putting or getting", error ? error : -EIO);
	}
	return 1e6 * (now_seconds() - begin);
}

static double round_trip_by_socket(struct pair *pair)
{
	if (pair->rank == 0)
		usleep(PAUSE_US);
	return 2 * pair_flag_one_way(pair, 1);
}

/* The floor on one host: the eventfd wakes rank 1; shared memory contains the time of the write. */
static double by_event(struct pair *pair, int event)
{
	uint64_t one = 1;
	volatile double *time = (volatile double *)(void *)&pair->flags[2].value;
	if (pair->rank == 0) {
		usleep(PAUSE_US);
		*time = now_seconds();
	}
	ssize_t n = pair->rank == 0 ? write(event, &one, sizeof one) : read(event, &one, sizeof one);
	if (n != sizeof one)
		fail("eventfd", errno);
	return pair->rank == 1 ? 1e6 * (now_seconds() - *time) : 0;
}

static void meet(struct pair *pair)
{
	char byte = 0;
	control_write(pair->control, &byte, 1);
	control_read(pair->control, &byte, 1);
}

static void report_round_trip(const struct pair *pair, const struct job *job, struct samples *path, struct samples *floor)
{
	char name[48];
	if (pair->rank)
		return;
	snprintf(name, sizeof name, "wake, round trip: %s", job->name);
	report_figure(job->options, name, samples_quantile(path, 0.5), samples_quantile(path, 0.99), "raw TCP",
		      samples_quantile(floor, 0.5));
}

static void wake_pair(struct pair *pair, void *argument)
{
	const struct job *job = argument;
	hr_channel_t *channel;
	hr_conn_t *conn = connect_pair(pair, job->transport, &channel);
	struct samples path, floor;
	samples_init(&path, WAKES);
	samples_init(&floor, WAKES);
	for (int i = 0; i < WAKES; i++) {
		samples_add(&floor, pair->flags ? by_event(pair, job->event) : round_trip_by_socket(pair));
		meet(pair);
		samples_add(&path, pair->flags ? by_channel(pair, channel, conn) :
						 round_trip_by_channel(pair, channel, conn));
		meet(pair);
	}
	if (!pair->flags) {
		report_round_trip(pair, job, &path, &floor);
	} else if (pair->rank == 1) {
		double figures[] = { samples_quantile(&path, 0.5), samples_quantile(&path, 0.99),
				     samples_quantile(&floor, 0.5) };
		control_write(pair->control, figures, sizeof figures);
	} else {
		double figures[3];
		char name[40];
		control_read(pair->control, figures, sizeof figures);
		snprintf(name, sizeof name, "wake: %s", job->name);
		report_figure(job->options, name, figures[0], figures[1], "eventfd", figures[2]);
	}
	hr_channel_finalize(channel);
	samples_free(&path);
	samples_free(&floor);
}

/* Returns whether the transport is available. An unavailable transport is left out, unless the command line names
 * it. */
static bool is_here(uint32_t transport)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	/* Ask for all transports: if none of the requested transports can be opened, the channel logs an error. */
	attr.transports = HR_TRANSPORT_SHM | HR_TRANSPORT_VERBS | HR_TRANSPORT_TCP;
	hr_channel_t *channel;
	hr_card_t card;
	if (hr_channel_init(&attr, &channel, &card))
		return false;
	bool here = hr_channel_conn_bytes(channel, transport) > 0;
	hr_channel_finalize(channel);
	return here;
}

int measure_wake(const struct options *options)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} all[] = { { "shm", HR_TRANSPORT_SHM }, { "verbs", HR_TRANSPORT_VERBS }, { "tcp", HR_TRANSPORT_TCP } };
	int error = 0;
	uint32_t common = options->control >= 0 ? remote_transports(options->control) : 0;
	if (setenv("HEADRACE_SPIN_US", "0", 1)) /* the receiver must sleep, not spin */
		fail("setenv", errno);
	for (size_t i = 0; i < sizeof all / sizeof *all && !error; i++) {
		if (options->transports && !(options->transports & all[i].bit))
			continue;
		if (options->control >= 0 ? !(common & all[i].bit) : !options->transports && !is_here(all[i].bit))
			continue;
		struct job job = { options, all[i].bit, all[i].name, eventfd(0, EFD_CLOEXEC) };
		if (job.event < 0)
			fail("eventfd", errno);
		error = options->control >= 0 ?
				pair_run_remote(options->control, options->rank, wake_pair, &job) :
				pair_run(wake_pair, &job);
		close(job.event);
	}
	return error;
}
