/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headrace-perf peer: compares the versions of HEADRACE_PEER. Each version runs in a process of its own, as the library reads
 * the setting once. All versions run in turn, several times, so that the machine's state is the same for all.
 */
#include "config.h"
#include "peer_copies.h"

#include "cuda_run.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3

struct figures {
	unsigned samples;
	double median_us, p99_us, MBps, stream_MBps, of_best, client_s_per_GB;
};

static void set(const char *variable, const char *value)
{
	if (*value)
		setenv(variable, value, 1);
	else
		unsetenv(variable);
}

/* The sizes and the time, as arguments of the CUDA program. */
struct arguments {
	char sizes[SIZES_MAX * 12], seconds[32];
	char *words[6];
};

static void arguments_make(const struct options *options, struct arguments *arguments)
{
	size_t at = 0;
	for (unsigned i = 0; i < options->sizes; i++)
		at += (size_t)snprintf(arguments->sizes + at, sizeof arguments->sizes - at, "%s%zu", i ? "," : "",
				       options->size[i]);
	snprintf(arguments->seconds, sizeof arguments->seconds, "%g", options->seconds);
	char *const words[] = { "peer-client", "--size", arguments->sizes, "--seconds", arguments->seconds, NULL };
	memcpy(arguments->words, words, sizeof words);
}

/* The servers do not have a version. It is left out if it was not asked for by name. */
static int leave_out(struct options *options, unsigned v)
{
	struct peer_versions *versions = &options->peer;
	fprintf(stderr, "headrace-perf: peer: the servers do not have version %s%s\n", versions->version[v].name,
		options->peer_all ? ": left out" : "");
	versions->n--;
	memmove(versions->version + v, versions->version + v + 1, (versions->n - v) * sizeof *versions->version);
	return options->peer_all ? 0 : -1;
}

/* Runs every version once for each round; results by round, version, size. The first round finds out which versions there are. */
static int run_all(struct options *options, const char *self, unsigned rounds, struct peer_result *results)
{
	struct arguments arguments;
	unsigned sizes = options->sizes;
	char *const no_options[] = { NULL };
	arguments_make(options, &arguments);
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned v = 0; v < options->peer.n;) {
			const struct peer_version *version = &options->peer.version[v];
			set("HEADRACE_PEER", version->name);
			set("HEADRACE_PEER_BUFFERS", version->buffers);
			set("HEADRACE_PEER_CHUNK", version->chunk);
			int status = cuda_run(self, no_options, arguments.words, results, sizes * sizeof *results);
			if (status && (status != CUDA_RUN_MISSING || round || leave_out(options, v)))
				return -1;
			if (status)
				continue;
			results += sizes;
			v++;
		}
	return 0;
}

/* The figures of one version and size, over the rounds. stride: from round to round. */
static struct figures summarise(const struct peer_result *results, unsigned rounds, size_t stride, size_t size)
{
	struct figures figures = { .samples = 0 };
	struct samples times, streams, client;
	samples_init(&times, (size_t)rounds * PEER_SAMPLES);
	samples_init(&streams, rounds);
	samples_init(&client, rounds);
	for (unsigned round = 0; round < rounds; round++, results += stride) {
		for (unsigned i = 0; i < results->n && i < PEER_SAMPLES; i++)
			samples_add(&times, results->us[i]);
		samples_add(&streams, results->stream_MBps);
		samples_add(&client, results->client_s_per_GB);
	}
	figures.samples = (unsigned)times.count;
	figures.median_us = samples_quantile(&times, 0.5);
	figures.p99_us = samples_quantile(&times, 0.99);
	figures.MBps = (double)size / figures.median_us;
	figures.stream_MBps = samples_quantile(&streams, 0.5);
	figures.client_s_per_GB = samples_quantile(&client, 0.5);
	samples_free(&client);
	samples_free(&times);
	samples_free(&streams);
	return figures;
}

static void print(const struct options *options, const struct peer_version *version, size_t size, const struct figures *f)
{
	switch (options->format) {
	case FORMAT_TABLE:
		printf("%9zu  %-7s %3s %6s %7u %11.1f %11.1f %9.1f %11.1f %7.2f %15.4f\n", size, version->name, version->buffers,
		       version->chunk, f->samples, f->median_us, f->p99_us, f->MBps, f->stream_MBps, f->of_best,
		       f->client_s_per_GB);
		break;
	case FORMAT_CSV:
		printf("peer,%s,%s,%s,%zu,%u,%.3f,%.3f,%.1f,%.1f,%.3f,%.6f\n", version->name, version->buffers, version->chunk, size,
		       f->samples, f->median_us, f->p99_us, f->MBps, f->stream_MBps, f->of_best, f->client_s_per_GB);
		break;
	case FORMAT_JSON:
		printf("{\"test\":\"peer\",\"version\":\"%s\",\"buffers\":\"%s\",\"chunk\":\"%s\",\"size\":%zu,\"samples\":%u,"
		       "\"median_us\":%.3f,\"p99_us\":%.3f,\"MBps\":%.1f,\"stream_MBps\":%.1f,\"of_best\":%.3f,"
		       "\"client_s_per_GB\":%.6f}\n",
		       version->name, version->buffers, version->chunk, size, f->samples, f->median_us, f->p99_us, f->MBps,
		       f->stream_MBps, f->of_best, f->client_s_per_GB);
		break;
	}
}

static void print_heading(enum format format)
{
	if (format == FORMAT_TABLE)
		printf("%9s  %-7s %3s %6s %7s %11s %11s %9s %11s %7s %15s\n", "size", "version", "n", "bytes", "samples",
		       "median_us", "p99_us", "MBps", "stream_MBps", "of_best", "client_s_per_GB");
	else if (format == FORMAT_CSV)
		printf("test,version,buffers,chunk,size,samples,median_us,p99_us,MBps,stream_MBps,of_best,client_s_per_GB\n");
}

static void report(const struct options *options, unsigned rounds, const struct peer_result *results)
{
	unsigned versions = options->peer.n, sizes = options->sizes;
	struct figures figures[PEER_VERSIONS_MAX];
	print_heading(options->format);
	for (unsigned i = 0; i < sizes; i++) {
		double best = 0;
		for (unsigned v = 0; v < versions; v++) {
			figures[v] = summarise(results + v * sizes + i, rounds, (size_t)versions * sizes, options->size[i]);
			best = !v || figures[v].median_us < best ? figures[v].median_us : best;
		}
		for (unsigned v = 0; v < versions; v++) {
			figures[v].of_best = best / figures[v].median_us;
			print(options, &options->peer.version[v], options->size[i], &figures[v]);
		}
	}
}

int measure_peer(const struct options *options, const char *self)
{
	const char *servers = getenv("HEADRACE_SERVER");
	unsigned rounds = options->quick ? 1 : ROUNDS;
	if (!servers || !strchr(servers, ',')) {
		fprintf(stderr, "headrace-perf: peer: name two servers in HEADRACE_SERVER, separated by a comma\n");
		return -1;
	}
	struct peer_result *results = calloc((size_t)rounds * options->peer.n * options->sizes, sizeof *results);
	if (!results) {
		fprintf(stderr, "headrace-perf: no memory\n");
		return -1;
	}
	struct options present = *options;
	int error = run_all(&present, self, rounds, results);
	if (!error)
		report(&present, rounds, results);
	free(results);
	return error;
}
