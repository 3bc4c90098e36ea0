/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what a server has counted since it began. */
#include "bench/info/counters.h"

#include <inttypes.h>
#include <stdio.h>

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

/* Prints those of the counts that are not 0, with their names: " (denied 3, limit 1)". */
static void print_kinds(const uint64_t *counts, int kinds, const char *(*name)(int))
{
	const char *before = " (";
	for (int i = 0; i < kinds; i++) {
		if (!counts[i])
			continue;
		printf("%s%s %" PRIu64, before, name(i), counts[i]);
		before = ", ";
	}
	puts(*before == ',' ? ")" : "");
}

static uint64_t sum(const uint64_t *counts, int kinds)
{
	uint64_t n = 0;
	for (int i = 0; i < kinds; i++)
		n += counts[i];
	return n;
}

static const char *refused_name(int i)
{
	return rc_refused_name((enum rc_refused)i);
}

static const char *exit_name(int i)
{
	return rc_exit_name((enum rc_exit)i);
}

static void print_gpu(uint64_t i, const struct rc_gpu_counters *gpu)
{
	printf("    GPU %-8" PRIu64 "%s, sessions %" PRIu64 ", %.1f MiB in use", i, gpu->exclusive ? "exclusive" : "shared",
	       gpu->sessions, mib(gpu->used));
	if (gpu->granted)
		printf(", %.1f MiB granted", mib(gpu->granted));
	if (gpu->quota)
		printf(", quota %.1f MiB", mib(gpu->quota));
	puts("");
}

void print_counters(const struct rc_counters *counters)
{
	uint64_t seconds = counters->uptime_us / 1000000;
	printf("    up          %" PRIu64 " d %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "\n", seconds / 86400,
	       seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
	printf("    sessions    %" PRIu64 " now, %" PRIu64 " in total\n", counters->sessions, counters->sessions_total);
	printf("    refused     %" PRIu64 " of %" PRIu64 " connections", sum(counters->refused_total, RC_REFUSED_KINDS),
	       counters->handshakes_total);
	print_kinds(counters->refused_total, RC_REFUSED_KINDS, refused_name);
	printf("    workers     %" PRIu64 " have ended", sum(counters->exits_total, RC_EXIT_KINDS));
	print_kinds(counters->exits_total, RC_EXIT_KINDS, exit_name);
	printf("    connections %" PRIu64 " of sessions now, %" PRIu64 " in total\n", counters->connections,
	       counters->connections_total);
	printf("    calls       %" PRIu64 ", launches of kernels %" PRIu64 ", of graphs %" PRIu64 "\n",
	       counters->calls_total, counters->kernel_launches_total, counters->graph_launches_total);
	printf("    copies      %.1f MiB to devices, %.1f MiB from devices\n", mib(counters->to_devices_total),
	       mib(counters->from_devices_total));
	for (uint64_t i = 0; i < counters->gpus; i++)
		print_gpu(i, &counters->gpu[i]);
}
