/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the command line of headrace-perf. */
#include "config.h"
#include "options.h"

#include "endpoint.h"
#include "headrace/channel.h"
#include "sweep.h"

#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *argp_program_version = "headrace-perf " PACKAGE_VERSION;

const char *const test_names[] = { "lat", "bw", "rate", "sweep", "wake", "cuda", "peer", "cuda-client", "peer-client" };

#define AHEAD_DEFAULT 16
#define TESTS_WANTED "lat, bw, rate, sweep, wake, cuda or peer"

static const size_t default_sizes[] = { 8, 64, 1024, 8192, 65536, 262144, 1 << 20, 4 << 20 };

enum {
	OPTION_LAYER = 256, OPTION_TRANSPORT, OPTION_DESIGN, OPTION_QPS, OPTION_DEPTH, OPTION_CHUNK, OPTION_RENDEZVOUS,
	OPTION_SIZE, OPTION_ITERS, OPTION_SECONDS, OPTION_WINDOW, OPTION_AHEAD, OPTION_SLEEP, OPTION_QUICK,
	OPTION_JSON, OPTION_CSV, OPTION_RESULT_FD, OPTION_LISTEN, OPTION_CONNECT, OPTION_PEER, OPTION_LOCAL_DRIVER,
};

static const struct argp_option option_table[] = {
	{ "layer", OPTION_LAYER, "LAYER[,LAYER]", 0, "channel (default) or ch3", 0 },
	{ "transport", OPTION_TRANSPORT, "NAME", 0, "shm, tcp or verbs (default: the best that both sides have)", 0 },
	{ "design", OPTION_DESIGN, "NAME[,NAME...]", 0, "verbs: basic, piggyback, pipeline or zerocopy", 0 },
	{ "qps", OPTION_QPS, "N[,N...]", 0, "verbs: queue pairs per connection", 0 },
	{ "depth", OPTION_DEPTH, "N[,N...]", 0, "verbs: maximum send requests in flight per queue pair", 0 },
	{ "chunk", OPTION_CHUNK, "N[,N...]", 0, "verbs: bytes of one chunk of the ring", 0 },
	{ "rendezvous", OPTION_RENDEZVOUS, "NAME[,NAME]", 0, "ch3: long messages by read, by write or eagerly (none)", 0 },
	{ "size", OPTION_SIZE, "N[,N...]", 0, "message sizes in bytes; k, M, G are powers of 1024", 0 },
	{ "iters", OPTION_ITERS, "N", 0, "messages for each size (default: by time)", 0 },
	{ "seconds", OPTION_SECONDS, "S", 0, "time for the samples of a size (default 0.4)", 0 },
	{ "window", OPTION_WINDOW, "N", 0, "bw, rate: messages before an answer (default: by time)", 0 },
	{ "ahead", OPTION_AHEAD, "N", 0, "bw, rate: messages of 16 KB and more that are under way (default 16)", 0 },
	{ "sleep", OPTION_SLEEP, NULL, 0, "both sides sleep after a short spin, as if they shared processors", 0 },
	{ "quick", OPTION_QUICK, NULL, 0,
	  "sweep: eight sizes instead of 22, a tenth of the time each; peer: four sizes, one round", 0 },
	{ "peer", OPTION_PEER, "VERSION[,...]", 0, "peer: values of HEADRACE_PEER, 3a and 3b also as 3b:8x256k; or sweep", 0 },
	{ "local-driver", OPTION_LOCAL_DRIVER, "NAME", 0, "cuda: driver of the local figures: softgpu (default) or system", 0 },
	{ "json", OPTION_JSON, NULL, 0, "one JSON object a line instead of a table", 0 },
	{ "csv", OPTION_CSV, NULL, 0, "comma-separated values with a heading instead of a table", 0 },
	{ "listen", OPTION_LISTEN, "[ADDRESS][:PORT]", OPTION_ARG_OPTIONAL,
	  "serve measurements of other hosts (default: port 27181 of every address)", 0 },
	{ "connect", OPTION_CONNECT, "HOST[:PORT]", 0, "measure between this host and HOST, which runs --listen", 0 },
	{ "result-fd", OPTION_RESULT_FD, "FD", OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

static int name_index(const char *name, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -1;
}

/* Parses a number from 1 to 1G with an optional suffix. *end: the first character after it. 0: not such a number. */
static size_t parse_size(const char *text, char **end)
{
	const size_t most = (size_t)1 << 30;
	*end = (char *)text;
	if (*text < '0' || *text > '9')
		return 0;
	unsigned long long value = strtoull(text, end, 10);
	unsigned shift = 0;
	switch (**end) {
	case 'k': case 'K': shift = 10; break;
	case 'M': shift = 20; break;
	case 'G': shift = 30; break;
	}
	if (shift)
		++*end;
	return value > most >> shift ? 0 : (size_t)value << shift;
}

static void parse_sizes(struct options *options, const char *text, struct argp_state *state)
{
	options->sizes = 0;
	for (const char *at = text; ; at++) {
		char *end;
		size_t size = parse_size(at, &end);
		if (!size || (*end && *end != ',') || options->sizes == SIZES_MAX)
			argp_error(state, "--size %s: want up to %d sizes from 1 to 1G, separated by commas", text,
				   SIZES_MAX);
		options->size[options->sizes++] = size;
		if (!*end)
			return;
		at = end;
	}
}

static void parse_numbers(struct values *values, const char *option, const char *variable, const char *text,
			  struct argp_state *state)
{
	values->n = 0;
	for (const char *at = text; ; at++) {
		char *end;
		size_t value = parse_size(at, &end);
		if (!value || (*end && *end != ',') || values->n == VALUES_MAX)
			argp_error(state, "--%s %s: want up to %d positive numbers, separated by commas", option, text,
				   VALUES_MAX);
		uint64_t least, most;
		if (!variant_in_range(variable, (uint32_t)value, &least, &most))
			argp_error(state, "--%s %s: want numbers from %" PRIu64 " to %" PRIu64, option, text, least,
				   most);
		values->value[values->n++] = (uint32_t)value;
		if (!*end)
			return;
		at = end;
	}
}

static int layer_by_name(const char *name)
{
	return name_index(name, layer_names, 2);
}

static void parse_names(struct values *values, const char *option, const char *text, int (*by_name)(const char *),
			const char *wanted, struct argp_state *state)
{
	char names[128], *rest = names;
	values->n = 0;
	if (strlen(text) >= sizeof names)
		argp_error(state, "--%s %s: want %s", option, text, wanted);
	strcpy(names, text);
	for (char *name; (name = strsep(&rest, ","));) {
		int value = by_name(name);
		if (value < 0 || values->n == VALUES_MAX)
			argp_error(state, "--%s %s: want %s", option, text, wanted);
		values->value[values->n++] = (uint32_t)value;
	}
}

static uint32_t parse_transport(const char *text, struct argp_state *state)
{
	if (!strcmp(text, "shm"))
		return HR_TRANSPORT_SHM;
	if (!strcmp(text, "tcp"))
		return HR_TRANSPORT_TCP;
	if (!strcmp(text, "verbs"))
		return HR_TRANSPORT_VERBS;
	argp_error(state, "--transport %s: want shm, tcp or verbs", text);
	return 0;
}

static unsigned parse_count(const char *option, const char *text, struct argp_state *state)
{
	char *end;
	size_t count = parse_size(text, &end);
	if (!count || *end)
		argp_error(state, "--%s %s: want a positive number", option, text);
	return (unsigned)count;
}

static double parse_seconds(const char *text, struct argp_state *state)
{
	char *end;
	double seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0.001 && seconds <= 3600))
		argp_error(state, "--seconds %s: want a number from 0.001 to 3600", text);
	return seconds;
}

static void parse_test(struct options *options, const char *text, struct argp_state *state)
{
	int index = name_index(text, test_names, sizeof test_names / sizeof *test_names);
	if (options->test_named || index < 0)
		argp_error(state, "%s: want one test: " TESTS_WANTED, text);
	options->test_named = true;
	options->test = (enum test)index;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case OPTION_LAYER: parse_names(&o->layers, "layer", text, layer_by_name, "channel or ch3", state); break;
	case OPTION_DESIGN:
		parse_names(&o->designs, "design", text, design_by_name, "basic, piggyback, pipeline or zerocopy",
			    state);
		break;
	case OPTION_RENDEZVOUS:
		parse_names(&o->rendezvous, "rendezvous", text, rendezvous_by_name, "read, write or none", state);
		break;
	case OPTION_TRANSPORT: o->transports = parse_transport(text, state); break;
	case OPTION_QPS: parse_numbers(&o->qps, "qps", "HEADRACE_IB_QPS", text, state); break;
	case OPTION_DEPTH: parse_numbers(&o->depths, "depth", "HEADRACE_IB_DEPTH", text, state); break;
	case OPTION_CHUNK: parse_numbers(&o->chunks, "chunk", "HEADRACE_IB_CHUNK", text, state); break;
	case OPTION_SIZE: parse_sizes(o, text, state); break;
	case OPTION_ITERS: o->iters = parse_count("iters", text, state); break;
	case OPTION_WINDOW: o->window = parse_count("window", text, state); break;
	case OPTION_AHEAD:
		o->ahead = parse_count("ahead", text, state);
		if (o->ahead > ENDPOINT_AHEAD_MAX)
			argp_error(state, "--ahead %s: want a number from 1 to %d", text, ENDPOINT_AHEAD_MAX);
		break;
	case OPTION_SECONDS: o->seconds = parse_seconds(text, state); break;
	case OPTION_SLEEP: o->sleeps = true; break;
	case OPTION_QUICK: o->quick = true; break;
	case OPTION_LOCAL_DRIVER:
		if (strcmp(text, "softgpu") && strcmp(text, "system"))
			argp_error(state, "--local-driver %s: want softgpu or system", text);
		o->local_driver = text;
		break;
	case OPTION_JSON: o->format = FORMAT_JSON; break;
	case OPTION_CSV: o->format = FORMAT_CSV; break;
	case OPTION_PEER:
		if (!peer_versions_parse(&o->peer, text))
			argp_error(state, "--peer %s: want sweep, or up to %d of " PEER_VERSIONS_WANTED, text,
				   PEER_VERSIONS_MAX);
		break;
	case OPTION_RESULT_FD: o->result_fd = atoi(text); break;
	case OPTION_LISTEN: o->listen = text ? text : ""; break;
	case OPTION_CONNECT: o->connect = text; break;
	case ARGP_KEY_ARG:
		/* getopt takes the value of an optional argument only as --listen=VALUE. */
		if (o->listen && !*o->listen)
			o->listen = text;
		else
			parse_test(o, text, state);
		break;
	case ARGP_KEY_NO_ARGS:
		if (!o->listen)
			argp_error(state, "no test named: want " TESTS_WANTED);
		break;
	case ARGP_KEY_END:
		if (o->listen && (name_index(o->listen, test_names, TEST_PEER + 1) >= 0 || o->test_named || o->connect))
			argp_error(state, "--listen: want no test and no --connect; the connecting side names the test");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* Returns the value number *i of a list, modulo its length; 0 for an empty list. Divides *i by the length, so that one
 * call for each list, with a single counter, goes through all combinations. */
static uint32_t pick(const struct values *values, unsigned *i)
{
	if (!values->n)
		return 0;
	uint32_t value = values->value[*i % values->n];
	*i /= values->n;
	return value;
}

static unsigned at_least_one(unsigned n)
{
	return n ? n : 1;
}

/* Makes a variant for each combination of the lists. False: there are too many. */
static bool combine(struct options *o)
{
	unsigned n = at_least_one(o->layers.n) * at_least_one(o->designs.n) * at_least_one(o->qps.n) *
		     at_least_one(o->depths.n) * at_least_one(o->chunks.n) * at_least_one(o->rendezvous.n);
	if (n > VARIANTS_MAX)
		return false;
	for (unsigned v = 0; v < n; v++) {
		unsigned i = v;
		/* This order is that of the rows in the report: the first setting changes fastest. */
		struct variant *variant = &o->variant[v];
		variant->transports = o->transports;
		variant->depth = pick(&o->depths, &i);
		variant->qps = pick(&o->qps, &i);
		variant->chunk = pick(&o->chunks, &i);
		variant->design = pick(&o->designs, &i);
		variant->rendezvous = pick(&o->rendezvous, &i);
		variant->layer = (enum layer)pick(&o->layers, &i);
		variant->sleeps = o->sleeps;
	}
	o->variants = n;
	return true;
}

/* Parses each option, and after the last one checks the combination. argp_error needs the parser's state, so the check
 * is part of the parser. */
static error_t check_options(int key, char *text, struct argp_state *state)
{
	struct options *o = state->input;
	error_t known = parse_option(key, text, state);
	if (key != ARGP_KEY_SUCCESS)
		return known;
	bool of_verbs = o->designs.n || o->qps.n || o->depths.n || o->chunks.n || o->test == TEST_SWEEP;
	if (of_verbs && o->transports && o->transports != HR_TRANSPORT_VERBS)
		argp_error(state, "sweep, --design, --qps, --depth and --chunk are for --transport verbs");
	if (of_verbs)
		o->transports = HR_TRANSPORT_VERBS;
	bool is_peer = o->test == TEST_PEER || o->test == TEST_PEER_CLIENT;
	bool of_messages = o->layers.n || of_verbs || o->rendezvous.n || o->iters || o->sleeps;
	if (o->test >= TEST_WAKE && !is_peer && (of_messages || o->sizes || o->seconds))
		argp_error(state, "wake and cuda want no options but --json or --csv, wake --transport and cuda --local-driver");
	if (is_peer && (of_messages || o->transports))
		argp_error(state, "peer wants no options but --peer, --size, --seconds, --quick, --json and --csv");
	if (o->local_driver && o->test != TEST_CUDA)
		argp_error(state, "--local-driver is for cuda");
	if (o->peer.n && !is_peer)
		argp_error(state, "--peer is for peer");
	if (o->connect && o->test > TEST_WAKE)
		argp_error(state, "--connect is not for cuda and peer: name the servers in HEADRACE_SERVER");
	if (o->window && o->test != TEST_BW && o->test != TEST_RATE && o->test != TEST_SWEEP)
		argp_error(state, "--window is for bw, rate and sweep");
	if (o->ahead && o->test != TEST_BW && o->test != TEST_RATE && o->test != TEST_SWEEP)
		argp_error(state, "--ahead is for bw, rate and sweep");
	o->ahead = o->ahead ? o->ahead : AHEAD_DEFAULT;
	if (o->quick && o->test != TEST_SWEEP && !is_peer)
		argp_error(state, "--quick is for sweep and peer");
	if (o->rendezvous.n && !(o->layers.n == 1 && o->layers.value[0] == LAYER_CH3))
		argp_error(state, "--rendezvous is for --layer ch3");
	if (o->test == TEST_SWEEP && (o->qps.n || o->depths.n))
		argp_error(state, "sweep goes through the queue pairs and depths itself: no --qps, no --depth");
	if (o->test == TEST_SWEEP && (o->designs.n > 1 || o->chunks.n > 1 || o->layers.n > 1 || o->rendezvous.n > 1))
		argp_error(state, "sweep: want one design, one chunk size and one layer");
	if (!combine(o))
		argp_error(state, "the lists have more than %d combinations", VARIANTS_MAX);
	return 0;
}

/* The defaults of the test peer. */
static void peer_fill(struct options *options)
{
	static const size_t sizes[] = { 4, 1024, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20 };
	static const size_t quick[] = { 4, 65536, 1 << 20, 16 << 20 };
	if (!options->seconds)
		options->seconds = 0.02;
	if (!options->sizes && options->quick)
		memcpy(options->size, quick, sizeof quick);
	else if (!options->sizes)
		memcpy(options->size, sizes, sizeof sizes);
	if (!options->sizes)
		options->sizes = options->quick ? sizeof quick / sizeof *quick : sizeof sizes / sizeof *sizes;
	options->peer_all = !options->peer.n;
	if (options->peer_all)
		peer_versions_parse(&options->peer, PEER_VERSIONS_ALL);
}

void options_parse(struct options *options, int argc, char **argv)
{
	static const struct argp parser = {
		option_table, check_options, "lat|bw|rate|sweep|wake|cuda|peer",
		"Measures latency, bandwidth or message rate between two processes of this host or of two hosts, the effect "
		"of queue pairs and depths over verbs, or the cost of remote CUDA calls, beside a floor in the same run.",
		NULL, NULL, NULL,
	};
	memset(options, 0, sizeof *options);
	options->control = -1;
	argp_parse(&parser, argc, argv, 0, NULL, options);
	if (options->test == TEST_SWEEP)
		sweep_fill(options);
	if (options->test == TEST_PEER)
		peer_fill(options);
	if (!options->seconds)
		options->seconds = 0.4;
	if (!options->sizes && options->test == TEST_RATE)
		options->size[options->sizes++] = 8;
	if (!options->sizes)
		for (size_t i = 0; i < sizeof default_sizes / sizeof *default_sizes; i++)
			options->size[options->sizes++] = default_sizes[i];
}
