/* SPDX-License-Identifier: BSD-3-Clause */
/* headraced's command line. */
#include "cuda_remote/server/daemon/options.h"

#include "cuda_remote/run/layout.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

HR_SETTING(seccomp_setting, "HEADRACE_SECCOMP", "on", 0, 0, "off: headraced does not filter the system calls of workers");

static const char usage[] =
	"Usage: headraced [OPTION]...\n"
	"Lets CUDA programs of this and other hosts use the GPUs of this one.\n"
	"\n"
	"  -l, --listen=ADDRESS[:PORT]  listen at this address as well; beyond loopback only with --key-file\n"
	"  -s, --socket=PATH            listen at this Unix socket, not at the default one; @NAME: abstract\n"
	"      --no-loopback            do not listen at loopback's port 27180\n"
	"  -k, --key-file=FILE          ask every TCP client for the key in FILE (mode 0600)\n"
	"      --encrypt                encrypt every TCP connection; refuse clients that cannot\n"
	"      --make-key=FILE          write a new key to FILE and end\n"
	"  -d, --driver=PATH            system: NVIDIA's libcuda.so.1; softgpu: the software GPU; or a path to one;\n"
	"                               default: system where there is a GPU, else softgpu\n"
	"  -w, --workers=N              worker processes kept ready for new clients (default 1)\n"
	"  -m, --max-clients=N          clients served at a time (default 64)\n"
	"      --max-per-user=N         sessions of each user (default: three quarters of --max-clients; as --max-clients\n"
	"                               where the daemon serves its own user only)\n"
	"      --max-per-address=N      sessions from each address, by key (default: half of --max-clients)\n"
	"      --max-per-key=N          sessions by key (default: three quarters of --max-clients)\n"
	"  -u, --user=NAME              as root: the user of workers whose clients come by key or are root (default nobody)\n"
	"      --root-workers           as root: root's clients get workers that are root\n"
	"      --no-seccomp             do not filter the system calls of workers\n"
	"      --private                serve the daemon's own user only (as root: otherwise every user of this host)\n"
	"      --ready-fd=N             write a line to descriptor N when clients may come\n"
	"      --watch-fd=N             end when descriptor N reaches its end of file\n"
	"  -q, --quiet                  log warnings and errors only (HEADRACE_LOG overrides)\n"
	"      --help, --version\n"
	"\n"
	"Stays in the foreground; SIGTERM ends it.\n";

enum {
	OPTION_NO_LOOPBACK = 256,
	OPTION_MAKE_KEY,
	OPTION_ENCRYPT,
	OPTION_READY_FD,
	OPTION_WATCH_FD,
	OPTION_PRIVATE,
	OPTION_PER_USER,
	OPTION_PER_ADDRESS,
	OPTION_PER_KEY,
	OPTION_ROOT_WORKERS,
	OPTION_NO_SECCOMP,
	OPTION_HELP,
	OPTION_VERSION
};

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, 'l' },
	{ "socket", required_argument, NULL, 's' },
	{ "no-loopback", no_argument, NULL, OPTION_NO_LOOPBACK },
	{ "key-file", required_argument, NULL, 'k' },
	{ "make-key", required_argument, NULL, OPTION_MAKE_KEY },
	{ "encrypt", no_argument, NULL, OPTION_ENCRYPT },
	{ "driver", required_argument, NULL, 'd' },
	{ "workers", required_argument, NULL, 'w' },
	{ "max-clients", required_argument, NULL, 'm' },
	{ "user", required_argument, NULL, 'u' },
	{ "ready-fd", required_argument, NULL, OPTION_READY_FD },
	{ "watch-fd", required_argument, NULL, OPTION_WATCH_FD },
	{ "private", no_argument, NULL, OPTION_PRIVATE },
	{ "max-per-user", required_argument, NULL, OPTION_PER_USER },
	{ "max-per-address", required_argument, NULL, OPTION_PER_ADDRESS },
	{ "max-per-key", required_argument, NULL, OPTION_PER_KEY },
	{ "root-workers", no_argument, NULL, OPTION_ROOT_WORKERS },
	{ "no-seccomp", no_argument, NULL, OPTION_NO_SECCOMP },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

static int parse_number(const char *option, const char *text, long min, long max, long *number)
{
	char *end;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (errno || !*text || *end || value < min || value > max) {
		hr_log(HR_LOG_ERROR, "--%s=%s: want a number from %ld to %ld", option, text, min, max);
		return -EINVAL;
	}
	*number = value;
	return 0;
}

static int add_place(struct daemon_options *options, const char *text, bool socket)
{
	size_t max = sizeof options->places / sizeof *options->places;
	char place[sizeof options->places->path + 8];
	if (options->place_count == max) {
		hr_log(HR_LOG_ERROR, "more than %zu places to listen at", max);
		return -E2BIG;
	}
	if (socket && (size_t)snprintf(place, sizeof place, "unix:%s", text) >= sizeof place) {
		hr_log(HR_LOG_ERROR, "--socket=%s: the path is too long", text);
		return -ENAMETOOLONG;
	}
	int error = rc_server_parse_place(socket ? place : text, &options->places[options->place_count]);
	if (!error)
		options->place_count++;
	return error;
}

static int parse_limit(const char *option, const char *value, uint32_t *limit)
{
	long number = 0;
	int error = parse_number(option, value, 1, 4096, &number);
	*limit = (uint32_t)number;
	return error;
}

/* A limit that is not below --max-clients is dropped, so that a refusal names --max-clients. */
static uint32_t limit_or_none(uint32_t given, uint32_t otherwise, uint32_t max_clients)
{
	uint32_t limit = given ? given : otherwise;
	return limit < max_clients ? limit : UINT32_MAX;
}

/* By default no user and no address, and not the clients by key together, may use up --max-clients. If the daemon
 * serves one user only, that user may. */
static void complete_limits(struct daemon_options *options)
{
	uint32_t all = options->max_clients, most = all - all / 4, half = all - all / 2;
	struct session_limits *limits = &options->limits;
	limits->user = limit_or_none(limits->user, geteuid() || options->private_use ? all : most, all);
	limits->address = limit_or_none(limits->address, half, all);
	limits->key = limit_or_none(limits->key, most, all);
}

static int apply(struct daemon_options *options, int option, const char *value)
{
	long number = 0;
	int error = 0;
	switch (option) {
	case 'l': return add_place(options, value, false);
	case 's': return add_place(options, value, true);
	case OPTION_NO_LOOPBACK: options->loopback = false; return 0;
	case 'k': options->key_file = value; return 0;
	case OPTION_ENCRYPT: options->encrypt = true; return 0;
	case OPTION_MAKE_KEY: options->make_key = value; return 0;
	case 'd': return snprintf(options->driver, sizeof options->driver, "%s", value) < PATH_MAX ? 0 : -ENAMETOOLONG;
	case 'w':
		error = parse_number("workers", value, 1, 64, &number);
		options->workers = (uint32_t)number;
		return error;
	case 'm':
		error = parse_number("max-clients", value, 1, 4096, &number);
		options->max_clients = (uint32_t)number;
		return error;
	case 'u': options->user = value; return 0;
	case OPTION_READY_FD:
		error = parse_number("ready-fd", value, 0, INT_MAX, &number);
		options->ready_fd = (int)number;
		return error;
	case OPTION_WATCH_FD:
		error = parse_number("watch-fd", value, 0, INT_MAX, &number);
		options->watch_fd = (int)number;
		return error;
	case OPTION_PRIVATE: options->private_use = true; return 0;
	case OPTION_PER_USER: return parse_limit("max-per-user", value, &options->limits.user);
	case OPTION_PER_ADDRESS: return parse_limit("max-per-address", value, &options->limits.address);
	case OPTION_PER_KEY: return parse_limit("max-per-key", value, &options->limits.key);
	case OPTION_ROOT_WORKERS: options->root_workers = true; return 0;
	case OPTION_NO_SECCOMP: options->seccomp = false; return 0;
	case 'q': options->quiet = true; return 0;
	case OPTION_HELP: fputs(usage, stdout); return 1;
	case OPTION_VERSION: printf("headraced %s, protocol %d\n", HR_VERSION, RC_DOOR_VERSION); return 1;
	default: fputs("Try \"headraced --help\".\n", stderr); return -EINVAL;
	}
}

int daemon_options_parse(int argc, char **argv, struct daemon_options *options)
{
	int option;
	*options = (struct daemon_options){ .loopback = true, .workers = 1, .max_clients = 64, .user = "nobody",
					    .seccomp = strcmp(hr_setting_text(&seccomp_setting), "off") != 0, .ready_fd = -1, .watch_fd = -1 };
	while ((option = getopt_long(argc, argv, "l:s:k:d:w:m:u:q", long_options, NULL)) != -1) {
		int status = apply(options, option, optarg);
		if (status)
			return status;
	}
	if (optind < argc) {
		hr_log(HR_LOG_ERROR, "\"%s\": headraced takes options only; try \"headraced --help\"", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

static int complete_driver(struct daemon_options *options)
{
	bool automatic = !*options->driver, software = !strcmp(options->driver, "softgpu");
	if (automatic || !strcmp(options->driver, "system")) {
		int error = rc_layout_system_driver(options->driver);
		if (error && !automatic)
			hr_log(HR_LOG_ERROR,
			       "--driver=system: this host has no NVIDIA driver, or no device that this user may open");
		if (!error || !automatic)
			return error;
		hr_log(HR_LOG_INFO, "no NVIDIA GPU here: serving the software GPU");
		software = true;
	}
	options->software = software;
	return software ? rc_layout_library(RC_LAYOUT_SOFTGPU, options->driver) : 0;
}

int daemon_options_complete(struct daemon_options *options)
{
	bool socket = false;
	for (size_t i = 0; i < options->place_count; i++)
		socket |= *options->places[i].path != 0;
	if (!socket) {
		char path[sizeof options->places->path];
		int error = rc_server_default_socket(path, sizeof path);
		if (!error)
			error = add_place(options, path, true);
		if (error)
			return error;
	}
	complete_limits(options);
	return complete_driver(options);
}
