/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"
#include "options.h"

#include "headrace/channel.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

const char *argp_program_version = "headrace-perf " PACKAGE_VERSION;

const char *const test_names[] = { "lat", "bw", "rate", "cuda", "cuda-client" };
const char *const layer_names[] = { "channel", "ch3" };

static const size_t default_sizes[] = { 8, 64, 1024, 8192, 65536, 262144, 1 << 20, 4 << 20 };

enum { OPTION_LAYER = 256, OPTION_TRANSPORT, OPTION_SIZE, OPTION_ITERS, OPTION_JSON, OPTION_RESULT_FD };

static const struct argp_option option_table[] = {
	{ "layer", OPTION_LAYER, "LAYER", 0, "channel (default) or ch3", 0 },
	{ "transport", OPTION_TRANSPORT, "NAME", 0, "shm, tcp or verbs (default: the best both ends have)", 0 },
	{ "size", OPTION_SIZE, "N[,N...]", 0, "message sizes in bytes; k, M, G are powers of 1024", 0 },
	{ "iters", OPTION_ITERS, "N", 0, "messages a size (default: chosen so that a size takes about a second)", 0 },
	{ "json", OPTION_JSON, NULL, 0, "one JSON object a line instead of a table", 0 },
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

/* A positive number with an optional suffix; *end is left behind it. 0 if there is none. */
static size_t parse_size(const char *text, char **end)
{
	if (*text < '0' || *text > '9') {
		*end = (char *)text;
		return 0;
	}
	size_t value = strtoull(text, end, 10);
	switch (**end) {
	case 'k': case 'K': ++*end; return value << 10;
	case 'M': ++*end; return value << 20;
	case 'G': ++*end; return value << 30;
	default: return value;
	}
}

static void parse_sizes(struct options *options, const char *text, struct argp_state *state)
{
	options->sizes = 0;
	for (const char *at = text; ; at++) {
		char *end;
		size_t size = parse_size(at, &end);
		if (!size || size > (size_t)1 << 30 || (*end && *end != ',') || options->sizes == SIZES_MAX)
			argp_error(state, "--size %s: want up to %d sizes from 1 to 1G, separated by commas", text, SIZES_MAX);
		options->size[options->sizes++] = size;
		if (!*end)
			return;
		at = end;
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

static error_t parse_option(int key, char *text, struct argp_state *state)
{
	struct options *options = state->input;
	int index;
	char *end;
	switch (key) {
	case OPTION_LAYER:
		index = name_index(text, layer_names, 2);
		if (index < 0)
			argp_error(state, "--layer %s: want channel or ch3", text);
		options->layer = (enum layer)index;
		return 0;
	case OPTION_TRANSPORT:
		options->transports = parse_transport(text, state);
		return 0;
	case OPTION_SIZE:
		parse_sizes(options, text, state);
		return 0;
	case OPTION_ITERS:
		options->iters = (unsigned)strtoul(text, &end, 10);
		if (*end || !options->iters || *text == '-')
			argp_error(state, "--iters %s: want a positive number", text);
		return 0;
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_RESULT_FD:
		options->result_fd = atoi(text);
		return 0;
	case ARGP_KEY_ARG:
		index = name_index(text, test_names, sizeof test_names / sizeof *test_names);
		if (state->arg_num || index < 0)
			argp_error(state, "%s: want one test: lat, bw, rate or cuda", text);
		options->test = (enum test)index;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no test named: want lat, bw, rate or cuda");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	static const struct argp parser = {
		option_table, parse_option, "lat|bw|rate|cuda",
		"Measures latency, bandwidth or message rate between two processes of this machine, or the cost of remote CUDA "
		"calls, beside the machine's own floor in the same run.", NULL, NULL, NULL,
	};
	memset(options, 0, sizeof *options);
	argp_parse(&parser, argc, argv, 0, NULL, options);
	if (!options->sizes && options->test == TEST_RATE)
		options->size[options->sizes++] = 8;
	if (!options->sizes)
		for (size_t i = 0; i < sizeof default_sizes / sizeof *default_sizes; i++)
			options->size[options->sizes++] = default_sizes[i];
}
