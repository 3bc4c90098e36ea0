/* SPDX-License-Identifier: BSD-3-Clause */
/* headraced's command line. */
#include "cuda_remote/server/daemon/options.h"

#include "cuda_remote/run/layout.h"
#include "cuda_remote/server/daemon/config.h"
#include "cuda_remote/server/daemon/log_place.h"
#include "cuda_remote/server/worker.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <assert.h>
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
	"  -c, --config=FILE            read options from FILE as well, headraced.conf(5); SIGHUP reads it again\n"
	"  -l, --listen=ADDRESS[:PORT]  listen at this address as well; beyond loopback only with --key-file\n"
	"  -s, --socket=PATH            listen at this Unix socket, not at the default one; @NAME: abstract\n"
	"      --link-address=LIST      where workers of other servers connect, the best first; auto: as the client did\n"
	"      --no-loopback            do not listen at loopback's port 27180\n"
	"  -k, --key-file=FILE          ask every TCP client for the key in FILE (mode 0600)\n"
	"      --credential=KIND        munge: accept credentials of MUNGE too; key (default): the key file only\n"
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
	"      --gpu-mode=[GPU:]MODE    exclusive: one session at a time has the GPU; shared (default)\n"
	"      --gpu-memory=[GPU:]SIZE  memory of the GPU that each session may have (default none: all)\n"
	"      --idle-timeout=SECONDS   end sessions that make no call for so long (default 0: never)\n"
	"      --metrics=PLACE          answer HTTP GET /metrics (Prometheus) at ADDRESS:PORT or at the Unix socket PATH\n"
	"  -u, --user=NAME              as root: the user of workers whose clients come by key or are root (default nobody)\n"
	"      --root-workers           as root: root's clients get workers that are root\n"
	"      --no-seccomp             do not filter the system calls of workers\n"
	"      --private                serve the daemon's own user only (as root: otherwise every user of this host)\n"
	"      --drain-timeout=SECONDS  after SIGTERM: how long sessions may go on (default 30)\n"
	"      --log=PLACE              stderr, journal or the path of a file (default stderr)\n"
	"      --ready-fd=N             write a line to descriptor N when clients may come\n"
	"      --watch-fd=N             end when descriptor N reaches its end of file\n"
	"  -q, --quiet                  log warnings and errors only (HEADRACE_LOG overrides)\n"
	"      --help, --version\n"
	"\n"
	"Stays in the foreground. SIGTERM lets its sessions end first, SIGINT or a second SIGTERM does not.\n";

enum option_id {
	OPTION_CONFIG,
	OPTION_LISTEN,
	OPTION_LINK_ADDRESS,
	OPTION_SOCKET,
	OPTION_NO_LOOPBACK,
	OPTION_KEY_FILE,
	OPTION_CREDENTIAL,
	OPTION_ENCRYPT,
	OPTION_MAKE_KEY,
	OPTION_DRIVER,
	OPTION_WORKERS,
	OPTION_MAX_CLIENTS,
	OPTION_PER_USER,
	OPTION_PER_ADDRESS,
	OPTION_PER_KEY,
	OPTION_USER,
	OPTION_ROOT_WORKERS,
	OPTION_NO_SECCOMP,
	OPTION_PRIVATE,
	OPTION_GPU_MODE,
	OPTION_GPU_MEMORY,
	OPTION_IDLE,
	OPTION_DRAIN,
	OPTION_LOG,
	OPTION_METRICS,
	OPTION_READY_FD,
	OPTION_WATCH_FD,
	OPTION_QUIET,
	OPTION_HELP,
	OPTION_VERSION,
	OPTIONS
};
static_assert(OPTIONS <= OPTION_KINDS_MAX, "struct daemon_options");

enum option_trait {
	VALUE = 1,  /* has a value; otherwise a switch, "yes" or "no" in the file */
	ONLY_COMMAND = 2, /* not in the file */
	LIVE = 4,   /* SIGHUP can change it */
};

static const struct known_option {
	const char *name;
	int letter; /* 0: none */
	unsigned traits;
} known[OPTIONS] = {
	[OPTION_CONFIG] = { "config", 'c', VALUE | ONLY_COMMAND },
	[OPTION_LISTEN] = { "listen", 'l', VALUE },
	[OPTION_SOCKET] = { "socket", 's', VALUE },
	[OPTION_LINK_ADDRESS] = { "link-address", 0, VALUE },
	[OPTION_NO_LOOPBACK] = { "no-loopback", 0, 0 },
	[OPTION_KEY_FILE] = { "key-file", 'k', VALUE | LIVE },
	[OPTION_CREDENTIAL] = { "credential", 0, VALUE | LIVE },
	[OPTION_ENCRYPT] = { "encrypt", 0, LIVE },
	[OPTION_MAKE_KEY] = { "make-key", 0, VALUE | ONLY_COMMAND },
	[OPTION_DRIVER] = { "driver", 'd', VALUE },
	[OPTION_WORKERS] = { "workers", 'w', VALUE | LIVE },
	[OPTION_MAX_CLIENTS] = { "max-clients", 'm', VALUE | LIVE },
	[OPTION_PER_USER] = { "max-per-user", 0, VALUE | LIVE },
	[OPTION_PER_ADDRESS] = { "max-per-address", 0, VALUE | LIVE },
	[OPTION_PER_KEY] = { "max-per-key", 0, VALUE | LIVE },
	[OPTION_USER] = { "user", 'u', VALUE },
	[OPTION_ROOT_WORKERS] = { "root-workers", 0, 0 },
	[OPTION_NO_SECCOMP] = { "no-seccomp", 0, 0 },
	[OPTION_PRIVATE] = { "private", 0, 0 },
	[OPTION_GPU_MODE] = { "gpu-mode", 0, VALUE | LIVE },
	[OPTION_GPU_MEMORY] = { "gpu-memory", 0, VALUE | LIVE },
	[OPTION_IDLE] = { "idle-timeout", 0, VALUE | LIVE },
	[OPTION_DRAIN] = { "drain-timeout", 0, VALUE | LIVE },
	[OPTION_LOG] = { "log", 0, VALUE },
	[OPTION_METRICS] = { "metrics", 0, VALUE },
	[OPTION_READY_FD] = { "ready-fd", 0, VALUE | ONLY_COMMAND },
	[OPTION_WATCH_FD] = { "watch-fd", 0, VALUE | ONLY_COMMAND },
	[OPTION_QUIET] = { "quiet", 'q', 0 },
	[OPTION_HELP] = { "help", 0, ONLY_COMMAND },
	[OPTION_VERSION] = { "version", 0, ONLY_COMMAND },
};

/* ---- one option ---- */

/* Where an option stands. line NULL: on the command line. */
struct origin {
	struct daemon_options *options;
	const struct config_line *line;
	bool command[OPTIONS]; /* given on the command line, so the file's value does not count */
};

/* Logs what is wrong with an option's value, and where it stands. */
static int complain(const struct origin *origin, enum option_id id, const char *value, const char *want)
{
	if (origin->line)
		hr_log(HR_LOG_ERROR, "%s:%u: %s = %s: %s", origin->line->file, origin->line->number, known[id].name, value, want);
	else
		hr_log(HR_LOG_ERROR, "--%s=%s: %s", known[id].name, value, want);
	return -EINVAL;
}

static int parse_number(const struct origin *origin, enum option_id id, const char *text, long min, long max,
			uint32_t *number)
{
	char *end, want[80];
	errno = 0;
	long value = strtol(text, &end, 10);
	if (errno || !*text || *end || value < min || value > max) {
		snprintf(want, sizeof want, "want a number from %ld to %ld", min, max);
		return complain(origin, id, text, want);
	}
	*number = (uint32_t)value;
	return 0;
}

static int parse_descriptor(const struct origin *origin, enum option_id id, const char *text, int *fd)
{
	uint32_t number;
	int error = parse_number(origin, id, text, 0, INT_MAX, &number);
	if (!error)
		*fd = (int)number;
	return error;
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
		hr_log(HR_LOG_ERROR, "socket \"%s\": the path is too long", text);
		return -ENAMETOOLONG;
	}
	int error = rc_server_parse_place(socket ? place : text, &options->places[options->place_count]);
	if (!error)
		options->place_count++;
	return error;
}

static int parse_place(const struct origin *origin, enum option_id id, const char *value)
{
	int error = add_place(origin->options, value, id == OPTION_SOCKET);
	if (error && origin->line)
		(void)complain(origin, id, value, id == OPTION_SOCKET ? "want a path, or @NAME" : "want ADDRESS or ADDRESS:PORT");
	return error;
}

static int parse_text(const struct origin *origin, enum option_id id, const char *value, const char **text)
{
	if (!*value)
		return complain(origin, id, value, "want a value");
	*text = value;
	return 0;
}

static int parse_driver(const struct origin *origin, enum option_id id, const char *value)
{
	if (!*value || strlen(value) >= sizeof origin->options->driver)
		return complain(origin, id, value, "want system, softgpu or the path of a libcuda.so.1");
	memcpy(origin->options->driver, value, strlen(value) + 1);
	return 0;
}

static int parse_link_address(const struct origin *origin, enum option_id id, const char *value)
{
	if (!server_link_addresses_valid(value))
		return complain(origin, id, value, "want IP addresses of this host, or auto, with commas between them");
	origin->options->link_address = value;
	return 0;
}

static int parse_gpu(const struct origin *origin, enum option_id id, const char *value)
{
	const char *want;
	struct gpu_settings *gpus = &origin->options->gpus;
	int error = id == OPTION_GPU_MODE ? gpus_set_mode(gpus, value, &want) : gpus_set_memory(gpus, value, &want);
	return error ? complain(origin, id, value, want) : 0;
}

static int parse_credential(const struct origin *origin, enum option_id id, const char *value)
{
	bool munge = !strcmp(value, "munge");
	if (!munge && strcmp(value, "key") != 0)
		return complain(origin, id, value, "want key or munge");
	if (munge && !rc_door_munge_supported())
		return complain(origin, id, value, "this build has no MUNGE: it needs libmunge and libsodium");
	origin->options->munge = munge;
	return 0;
}

static int parse_log(const struct origin *origin, enum option_id id, const char *value)
{
	if (log_place_check(value))
		return complain(origin, id, value, "want stderr, journal or the path of a file, which begins with /");
	origin->options->log = value;
	return 0;
}

/* A path, "@NAME" or ADDRESS:PORT. The port is not left out, as the default port is headraced's. */
static int parse_metrics(const struct origin *origin, enum option_id id, const char *value)
{
	struct daemon_options *options = origin->options;
	char place[sizeof options->places->path + 8];
	bool socket = *value == '/' || *value == '@';
	const char *bracket = strrchr(value, ']'), *colon = strchr(bracket ? bracket : value, ':');
	int n = snprintf(place, sizeof place, "%s%s", socket ? "unix:" : "", value);
	options->metrics = (socket || (colon && colon[1])) && (size_t)n < sizeof place &&
			   !rc_server_parse_place(place, &options->metrics_place);
	return options->metrics ? 0 : complain(origin, id, value, "want ADDRESS:PORT, or the path of a Unix socket, or @NAME");
}

/* Options with a value. */
static int apply_value(const struct origin *origin, enum option_id id, const char *value)
{
	struct daemon_options *options = origin->options;
	switch (id) {
	case OPTION_CONFIG: return parse_text(origin, id, value, &options->config);
	case OPTION_LISTEN:
	case OPTION_SOCKET: return parse_place(origin, id, value);
	case OPTION_LINK_ADDRESS: return parse_link_address(origin, id, value);
	case OPTION_KEY_FILE: return parse_text(origin, id, value, &options->key_file);
	case OPTION_CREDENTIAL: return parse_credential(origin, id, value);
	case OPTION_MAKE_KEY: return parse_text(origin, id, value, &options->make_key);
	case OPTION_DRIVER: return parse_driver(origin, id, value);
	case OPTION_WORKERS: return parse_number(origin, id, value, 1, 64, &options->workers);
	case OPTION_MAX_CLIENTS: return parse_number(origin, id, value, 1, 4096, &options->max_clients);
	case OPTION_PER_USER: return parse_number(origin, id, value, 1, 4096, &options->limits.user);
	case OPTION_PER_ADDRESS: return parse_number(origin, id, value, 1, 4096, &options->limits.address);
	case OPTION_PER_KEY: return parse_number(origin, id, value, 1, 4096, &options->limits.key);
	case OPTION_USER: return parse_text(origin, id, value, &options->user);
	case OPTION_GPU_MODE:
	case OPTION_GPU_MEMORY: return parse_gpu(origin, id, value);
	case OPTION_IDLE: return parse_number(origin, id, value, 0, 30 * 86400, &options->idle_s);
	case OPTION_DRAIN: return parse_number(origin, id, value, 0, 86400, &options->drain_s);
	case OPTION_LOG: return parse_log(origin, id, value);
	case OPTION_METRICS: return parse_metrics(origin, id, value);
	case OPTION_READY_FD: return parse_descriptor(origin, id, value, &options->ready_fd);
	case OPTION_WATCH_FD: return parse_descriptor(origin, id, value, &options->watch_fd);
	default: return -EINVAL;
	}
}

/* Options without a value. */
static int apply_switch(struct daemon_options *options, enum option_id id, bool on)
{
	switch (id) {
	case OPTION_NO_LOOPBACK: options->loopback = !on; return 0;
	case OPTION_ENCRYPT: options->encrypt = on; return 0;
	case OPTION_ROOT_WORKERS: options->root_workers = on; return 0;
	case OPTION_NO_SECCOMP: options->seccomp = !on; return 0;
	case OPTION_PRIVATE: options->private_use = on; return 0;
	case OPTION_QUIET: options->quiet = on; return 0;
	case OPTION_HELP: fputs(usage, stdout); return 1;
	case OPTION_VERSION: printf("headraced %s, protocol %d\n", HR_VERSION, RC_DOOR_VERSION); return 1;
	default: return -EINVAL;
	}
}

/* FNV-1a over the values of an option, in their order. */
static void note(struct daemon_options *options, enum option_id id, const char *value)
{
	uint64_t hash = options->given[id] ? options->given[id] : 0xcbf29ce484222325u;
	for (size_t i = 0; i <= strlen(value); i++)
		hash = (hash ^ (uint8_t)value[i]) * 0x100000001b3u;
	options->given[id] = hash;
}

/* ---- the file ---- */

/* Returns OPTIONS if there is no such option. */
static enum option_id find_option(const char *name)
{
	enum option_id id = 0;
	while (id < OPTIONS && strcmp(known[id].name, name) != 0)
		id++;
	return id;
}

static int parse_switch(const struct origin *origin, enum option_id id, const char *value, bool *on)
{
	*on = !strcmp(value, "yes");
	return *on || !strcmp(value, "no") ? 0 : complain(origin, id, value, "want yes or no");
}

static int take_line(void *context, const struct config_line *line)
{
	struct origin *origin = context;
	enum option_id id = find_option(line->name);
	bool on = true;
	int error = 0;
	origin->line = line;
	if (id == OPTIONS || known[id].traits & ONLY_COMMAND) {
		hr_log(HR_LOG_ERROR, "%s:%u: \"%s\" is no setting of this file: %s", line->file, line->number, line->name,
		       id == OPTIONS ? "headraced.conf(5) lists them" : "it is an option of the command line only");
		return -EINVAL;
	}
	if (!(known[id].traits & VALUE))
		error = parse_switch(origin, id, line->value, &on);
	if (error || origin->command[id])
		return error;
	error = known[id].traits & VALUE ? apply_value(origin, id, line->value) : apply_switch(origin->options, id, on);
	if (!error && on)
		note(origin->options, id, line->value);
	return error;
}

static int read_config(struct origin *origin)
{
	struct daemon_options *options = origin->options;
	int error = config_read(options->config, &options->text);
	return error ? error : config_parse(options->config, options->text, take_line, origin);
}

/* ---- the command line ---- */

#define LETTERS_MAX (2 * OPTIONS + 1)

static void make_getopt(struct option *list, char *letters)
{
	for (enum option_id id = 0; id < OPTIONS; id++) {
		bool value = known[id].traits & VALUE;
		list[id] = (struct option){ known[id].name, value ? required_argument : no_argument, NULL, 256 + (int)id };
		if (known[id].letter)
			*letters++ = (char)known[id].letter;
		if (known[id].letter && value)
			*letters++ = ':';
	}
	list[OPTIONS] = (struct option){ NULL, 0, NULL, 0 };
	*letters = 0;
}

static enum option_id id_of(int found)
{
	enum option_id id = 0;
	if (found >= 256)
		return (enum option_id)(found - 256);
	while (id < OPTIONS && known[id].letter != found)
		id++;
	return id;
}

static int read_command(int argc, char **argv, struct origin *origin)
{
	struct option list[OPTIONS + 1];
	char letters[LETTERS_MAX];
	int found;
	make_getopt(list, letters);
	optind = 0; /* a reload begins again */
	while ((found = getopt_long(argc, argv, letters, list, NULL)) != -1) {
		enum option_id id = id_of(found);
		if (id == OPTIONS) {
			fputs("Try \"headraced --help\".\n", stderr);
			return -EINVAL;
		}
		int status = optarg ? apply_value(origin, id, optarg) : apply_switch(origin->options, id, true);
		if (status)
			return status;
		origin->command[id] = true;
		note(origin->options, id, optarg ? optarg : "yes");
	}
	if (optind < argc) {
		hr_log(HR_LOG_ERROR, "\"%s\": headraced takes options only; try \"headraced --help\"", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

int daemon_options_parse(int argc, char **argv, struct daemon_options *options)
{
	struct origin origin = { .options = options };
	*options = (struct daemon_options){ .loopback = true, .workers = 1, .max_clients = 64, .user = "nobody", .drain_s = 30,
					    .log = "stderr", .ready_fd = -1, .watch_fd = -1 };
	options->seccomp = strcmp(hr_setting_text(&seccomp_setting), "off") != 0;
	int status = read_command(argc, argv, &origin);
	if (!status && options->config && !options->make_key)
		status = read_config(&origin);
	if (status)
		daemon_options_free(options);
	return status;
}

void daemon_options_free(struct daemon_options *options)
{
	free(options->text);
	free(options->first_text);
	options->text = options->first_text = NULL;
}

/* ---- defaults ---- */

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

int daemon_options_complete(struct daemon_options *options, bool activated)
{
	bool socket = activated;
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

/* ---- reload ---- */

/* Logs the options that have changed and cannot change in a running daemon. */
static void report_fixed(const struct daemon_options *before, const struct daemon_options *after)
{
	for (enum option_id id = 0; id < OPTIONS; id++)
		if (!(known[id].traits & LIVE) && before->given[id] != after->given[id])
			hr_log(HR_LOG_WARN, "%s: %s has changed: this takes effect when headraced is started again", after->config,
			       known[id].name);
}

int daemon_options_reload(int argc, char **argv, struct daemon_options *options)
{
	struct daemon_options fresh;
	int error = daemon_options_parse(argc, argv, &fresh);
	if (error)
		return error < 0 ? error : -EINVAL;
	report_fixed(options, &fresh);
	complete_limits(&fresh);
	options->encrypt = fresh.encrypt;
	options->workers = fresh.workers;
	options->max_clients = fresh.max_clients;
	options->limits = fresh.limits;
	options->gpus = fresh.gpus;
	options->idle_s = fresh.idle_s;
	options->drain_s = fresh.drain_s;
	options->key_file = fresh.key_file;
	options->munge = fresh.munge;
	/* Options that keep their value may point into the text that was read first. */
	if (options->first_text)
		free(options->text);
	else
		options->first_text = options->text;
	options->text = fresh.text;
	return 0;
}
