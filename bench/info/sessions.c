/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the sessions of a server. Two reports, half a second apart, give the rate of calls. */
#include "bench/info/sessions.h"

#include "bench/info/counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define INTERVAL_NS 500000000L

static const rc_door_session_t *find(const rc_door_report_t *report, uint64_t number)
{
	for (uint32_t i = 0; i < report->count; i++)
		if (report->session[i].number == number)
			return &report->session[i];
	return NULL;
}

/* Returns a session's rate of calls between the two reports; before is NULL: since the session began. */
static double calls_per_second(const rc_door_session_t *now, const rc_door_session_t *before)
{
	uint64_t calls = now->calls - (before ? before->calls : 0), time = now->age_us - (before ? before->age_us : 0);
	return time ? (double)calls * 1e6 / (double)time : 0;
}

static void print_session(const rc_door_session_t *session, const rc_door_session_t *before)
{
	char user[32] = "by key", gpu[16] = "all";
	if (session->uid != UINT32_MAX)
		snprintf(user, sizeof user, "%u", session->uid);
	if (session->gpu != RC_SERVER_ALL_GPUS)
		snprintf(gpu, sizeof gpu, "%u", session->gpu);
	printf("    %-10s %-20s %-24s %4s %10.1f %12" PRIu64 " %10.0f %8" PRIu64 " %10.3f\n", user, session->program,
	       session->client, gpu, (double)session->memory / (1 << 20), session->calls,
	       calls_per_second(session, before), session->age_us / 1000000, (double)session->cpu_us / 1e6);
}

int print_sessions(const rc_server_t *server)
{
	rc_door_connect_t ask = { .server = *server, .purpose = RC_DOOR_REPORT };
	rc_door_welcome_t welcome;
	rc_door_report_t *reports = calloc(2, sizeof *reports);
	int error = reports ? rc_door_ask_report(&ask, &welcome, &reports[0]) : -1;
	if (!error)
		print_counters(&reports[0].counters);
	if (!error && reports[0].count) {
		nanosleep(&(struct timespec){ .tv_nsec = INTERVAL_NS }, NULL);
		error = rc_door_ask_report(&ask, &welcome, &reports[1]);
	}
	if (!error && reports[1].count)
		printf("    %-10s %-20s %-24s %4s %10s %12s %10s %8s %10s\n", "user", "program", "client", "GPU", "memory/MiB",
		       "calls", "calls/s", "age/s", "CPU/s");
	for (uint32_t i = 0; !error && i < reports[1].count; i++)
		print_session(&reports[1].session[i], find(&reports[0], reports[1].session[i].number));
	if (!error && reports[0].hidden)
		printf("    and %u sessions of others\n", reports[0].hidden);
	free(reports);
	return error;
}
