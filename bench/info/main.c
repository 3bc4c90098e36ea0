/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-info: shows versions, transports, GPUs and settings. See headrace-info(1). */
#include "bench/info/info.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: headrace-info [OPTION]... [versions|transports|devices|settings|collectives]...\n"
	"Shows all sections, or the named sections.\n"
	"\n"
	"  -s, --server=HOST[:PORT],...  also the GPUs of these servers; default: HEADRACE_SERVER\n"
	"  -k, --key-file=FILE           the key that the servers require; default: HEADRACE_KEY_FILE\n"
	"      --help, --version\n";

static const char *const names[] = { "versions", "transports", "devices", "settings", "collectives" };
enum { VERSIONS, TRANSPORTS, DEVICES, SETTINGS, COLLECTIVES, SECTIONS };

/* Marks the named sections, or all if none is named. False: there is no section of that name. */
static bool choose(char **arguments, bool *wanted)
{
	if (!*arguments)
		memset(wanted, true, SECTIONS);
	for (; *arguments; arguments++) {
		int i = 0;
		while (i < SECTIONS && strcmp(*arguments, names[i]))
			i++;
		if (i == SECTIONS) {
			fprintf(stderr, "headrace-info: there is no section \"%s\": want versions, transports, devices, "
				"settings or collectives\n", *arguments);
			return false;
		}
		wanted[i] = true;
	}
	return true;
}

int main(int argc, char **argv)
{
	enum { HELP = 256, VERSION };
	static const struct option options[] = {
		{ "server", required_argument, NULL, 's' }, { "key-file", required_argument, NULL, 'k' },
		{ "help", no_argument, NULL, HELP },        { "version", no_argument, NULL, VERSION },
		{ NULL, 0, NULL, 0 },
	};
	bool wanted[SECTIONS] = { false };
	const char *server = NULL;
	int option, status = 0;
	while ((option = getopt_long(argc, argv, "s:k:", options, NULL)) != -1) {
		switch (option) {
		case 's': server = optarg; break;
		case 'k': setenv("HEADRACE_KEY_FILE", optarg, 1); break;
		case HELP: fputs(usage, stdout); return EXIT_SUCCESS;
		case VERSION: puts("headrace-info " HR_VERSION); return EXIT_SUCCESS;
		default: fputs("Try \"headrace-info --help\".\n", stderr); return EXIT_FAILURE;
		}
	}
	if (!choose(argv + optind, wanted))
		return EXIT_FAILURE;
	if (wanted[VERSIONS])
		info_versions();
	if (wanted[TRANSPORTS])
		info_transports();
	if (wanted[DEVICES])
		status = info_devices(server);
	if (wanted[SETTINGS])
		info_settings();
	if (wanted[COLLECTIVES])
		info_collectives();
	return status || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
