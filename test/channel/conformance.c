/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conformance suite of the channel: what every transport must do, by the contract in headrace/channel.h.
 *
 *	conformance --transport shm|tcp|verbs [--design NAME] [--scale F] [--case NAME] [--list]
 *
 * --design: of verbs: basic, piggyback, pipeline or zerocopy (as HEADRACE_IB_DESIGN).
 * --scale multiplies how much is transferred (0 < F <= 1), for machines where everything takes long. So does
 * HEADRACE_TEST_SCALE.
 * Exit status 0: all passed; 1: some failed; 77: this machine lacks the transport.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
	const char *transport;
	const char *design;
	const char *only;
	unsigned scale;
	bool list;
};

static const struct test_case *const all_cases[] = { data_cases, long_cases, several_cases, sleep_cases, end_cases,
							   setup_cases, demand_cases };

static int usage(const char *program)
{
	fprintf(stderr, "usage: %s --transport shm|tcp|verbs [--design NAME] [--scale F] [--case NAME] [--list]\n",
		program);
	return 2;
}

static uint32_t transport_bit(const char *name)
{
	if (!strcmp(name, "shm"))
		return HR_TRANSPORT_SHM;
	if (!strcmp(name, "verbs"))
		return HR_TRANSPORT_VERBS;
	return strcmp(name, "tcp") ? 0 : HR_TRANSPORT_TCP;
}

/* The cases divide by a whole number; 0 for a factor out of range. */
static unsigned divisor_of(const char *text)
{
	char *end;
	double factor = strtod(text, &end);
	return *end || !(factor >= 0.001 && factor <= 1) ? 0 : (unsigned)(1 / factor + 0.5);
}

static bool parse(int argc, char **argv, struct options *options)
{
	static const struct option long_options[] = {
		{ "transport", required_argument, NULL, 't' },
		{ "design", required_argument, NULL, 'd' },
		{ "scale", required_argument, NULL, 's' },
		{ "case", required_argument, NULL, 'c' },
		{ "list", no_argument, NULL, 'l' },
		{ 0 },
	};
	int option;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case 't': options->transport = optarg; break;
		case 'd': options->design = optarg; break;
		case 's': options->scale = divisor_of(optarg); break;
		case 'c': options->only = optarg; break;
		case 'l': options->list = true; break;
		default: return false;
		}
	}
	if (optind != argc || options->scale < 1)
		return false;
	return options->list || (options->transport && transport_bit(options->transport));
}

/* Can a channel with this transport alone be opened here? */
static bool is_here(uint32_t transport)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = transport;
	hr_channel_t *channel;
	hr_card_t card;
	int error = hr_channel_init(&attr, &channel, &card);
	if (!error)
		hr_channel_finalize(channel);
	return error != -ENODEV;
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool run_case(const struct test_case *test, const struct options *options)
{
	double start = seconds();
	bool passed = pair_run(test, transport_bit(options->transport), options->transport, options->scale);
	printf("%s: %s: %s (%.1f s)\n", passed ? "PASS" : "FAIL", options->transport, test->name, seconds() - start);
	fflush(stdout);
	return passed;
}

int main(int argc, char **argv)
{
	const char *scale = getenv("HEADRACE_TEST_SCALE");
	struct options options = { .scale = 1 };
	unsigned everywhere = scale ? divisor_of(scale) : 1;
	if (!parse(argc, argv, &options) || !everywhere)
		return usage(argv[0]);
	options.scale *= everywhere;
	if (options.design)
		setenv("HEADRACE_IB_DESIGN", options.design, 1);
	if (!options.list && !is_here(transport_bit(options.transport))) {
		printf("SKIP: transport %s is not available on this machine\n", options.transport);
		return 77;
	}
	int passed = 0, failed = 0;
	for (size_t i = 0; i < sizeof all_cases / sizeof all_cases[0]; i++) {
		for (const struct test_case *test = all_cases[i]; test->name; test++) {
			if (options.only && strcmp(options.only, test->name))
				continue;
			if ((test->flags & PAIR_UNDISTURBED) && getenv("HR_FAULTS"))
				continue;
			if (options.list)
				puts(test->name);
			else if (run_case(test, &options))
				passed++;
			else
				failed++;
		}
	}
	if (!options.list)
		printf("%s: %d passed, %d failed\n", options.transport, passed, failed);
	return failed || (!passed && !options.list) ? 1 : 0;
}
