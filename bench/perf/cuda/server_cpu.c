/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the daemon for its sessions, and looks for the one of this process. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "config.h"
#include "server_cpu.h"

#include "cuda_remote/door/door.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Over a Unix socket the daemon knows the client's process. Over TCP the session must be the only one of a program
 * of this name. */
static const rc_door_session_t *own_session(const rc_door_report_t *report)
{
	const rc_door_session_t *found = NULL;
	unsigned named = 0;
	char client[sizeof found->client];
	snprintf(client, sizeof client, "unix:pid %d", (int)getpid());
	for (uint32_t i = 0; i < report->count; i++) {
		const rc_door_session_t *session = &report->session[i];
		if (!strcmp(session->client, client))
			return session;
		if (strncmp(session->program, program_invocation_short_name, sizeof session->program - 1) != 0)
			continue;
		found = session;
		named++;
	}
	return named == 1 ? found : NULL;
}

double server_cpu_seconds(void)
{
	const char *list = getenv("HEADRACE_SERVER");
	rc_server_t servers[RC_SERVER_MAX];
	size_t n = 0;
	if (!list || !*list || rc_server_parse(list, servers, RC_SERVER_MAX, &n) || !n)
		return NAN;
	rc_door_connect_t ask = { .server = servers[0], .purpose = RC_DOOR_REPORT };
	rc_door_welcome_t welcome;
	rc_door_report_t *report = malloc(sizeof *report);
	const rc_door_session_t *own = report && !rc_door_ask_report(&ask, &welcome, report) ? own_session(report) : NULL;
	double seconds = own && own->cpu_us ? 1e-6 * (double)own->cpu_us : NAN;
	free(report);
	return seconds;
}
