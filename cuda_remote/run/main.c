/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headrace-run: sets the environment for Headrace's libraries and a server, then executes the CUDA program (execve). No
 * process remains in between, so exit status, signals and stdio need no forwarding.
 */
#define _GNU_SOURCE /* asprintf */
#include "cuda_remote/door/door.h"
#include "cuda_remote/run/layout.h"
#include "cuda_remote/run/private.h"
#include "cuda_remote/run/program.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Exit statuses as of env(1) and timeout(1). */
enum { EXIT_FAILED = 125, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static const char usage[] =
	"Usage: headrace-run [OPTION]... PROGRAM [ARGUMENT]...\n"
	"Runs a CUDA program, unmodified, on the GPUs of another host.\n"
	"\n"
	"  -s, --server=HOST[:PORT][/GPU],...  the servers, and which of their GPUs (default: all); unix:PATH for a\n"
	"                                      Unix socket; default: HEADRACE_SERVER\n"
	"  -k, --key-file=FILE                 the key that the servers ask for; default: HEADRACE_KEY_FILE\n"
	"  -l, --local                         run on the software GPU in the program's own process, without a server\n"
	"  -d, --driver=PATH                   start a server of its own with this driver: system, softgpu, or a\n"
	"                                      libcuda.so.1; with --local: system or softgpu\n"
	"      --help, --version\n"
	"\n"
	"Without a server: on this host's own GPU where it has one, else on a server started for this program with\n"
	"the software GPU. Exit status: the program's; 125 if headrace-run fails, 126 if the program cannot be run,\n"
	"127 if it is not found.\n";

struct options {
	const char *server, *driver;
	bool local;
	int done; /* exit status, -1: go on */
};

static int parse_options(int argc, char **argv, struct options *options)
{
	enum { HELP = 256, VERSION };
	static const struct option long_options[] = {
		{ "server", required_argument, NULL, 's' }, { "key-file", required_argument, NULL, 'k' },
		{ "local", no_argument, NULL, 'l' },        { "driver", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, HELP },        { "version", no_argument, NULL, VERSION },
		{ NULL, 0, NULL, 0 },
	};
	int option;
	*options = (struct options){ .server = getenv("HEADRACE_SERVER"), .done = -1 };
	/* "+": the arguments after the program's name are the program's. */
	while ((option = getopt_long(argc, argv, "+s:k:ld:", long_options, NULL)) != -1) {
		switch (option) {
		case 's': options->server = optarg; break;
		case 'k': setenv("HEADRACE_KEY_FILE", optarg, 1); break;
		case 'l': options->local = true; break;
		case 'd': options->driver = optarg; break;
		case HELP: fputs(usage, stdout); options->done = EXIT_SUCCESS; return 0;
		case VERSION: printf("headrace-run %s\n", HR_VERSION); options->done = EXIT_SUCCESS; return 0;
		default: return -EINVAL;
		}
	}
	if (options->server && !*options->server)
		options->server = NULL;
	if (optind == argc) {
		fputs("headrace-run: which program?\n", stderr);
		return -EINVAL;
	}
	return 0;
}

/* ---- environment ---- */

/* Puts folders in front of LD_LIBRARY_PATH; NULL: none. */
static int prepend_library_path(const char *first, const char *second)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *path;
	if (asprintf(&path, "%s%s%s%s%s", first, second ? ":" : "", second ? second : "", old && *old ? ":" : "",
		     old && *old ? old : "") < 0)
		return -ENOMEM;
	int error = setenv("LD_LIBRARY_PATH", path, 1) ? -errno : 0;
	free(path);
	return error;
}

/* Copies LD_PRELOAD without the files that have the name of path: an outer headrace-run may have preloaded them. */
static void copy_others(char *copy, const char *old, const char *path)
{
	const char *file = strrchr(path, '/');
	size_t file_n = strlen(file);
	for (*copy = 0; *old; old += strspn(old, ": ")) {
		size_t n = strcspn(old, ": ");
		if (n && (n < file_n || memcmp(old + n - file_n, file, file_n)))
			sprintf(copy + strlen(copy), "%.*s:", (int)n, old);
		old += n;
	}
}

/* Appends a library to LD_PRELOAD; it is the last, as a sanitizer must stay first. */
static int preload(const char *path)
{
	const char *old = getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "";
	char *all = malloc(strlen(old) + strlen(path) + 2); /* a colon and the NUL */
	if (!all)
		return -ENOMEM;
	copy_others(all, old, path);
	strcat(all, path);
	int error = setenv("LD_PRELOAD", all, 1) ? -errno : 0;
	free(all);
	return error;
}

/* Preloads a file of a part's folder. If it is missing, nothing is preloaded: the dynamic linker would print an error in
 * every process. */
static int preload_file(enum rc_layout_part part, const char *file)
{
	char folder[PATH_MAX], *path;
	int error = rc_layout_folder(part, folder);
	if (error)
		return error;
	if (asprintf(&path, "%s/%s", folder, file) < 0)
		return -ENOMEM;
	error = access(path, R_OK) ? 0 : preload(path);
	free(path);
	return error;
}

/*
 * Preloads, for the program and its children: Headrace's runtimes and driver, so that no RPATH leads to others; what
 * replaces NVIDIA's static runtime (cuda_remote/relink); what leads dlopen to Headrace's libraries (cuda_remote/redirect);
 * what makes NVIDIA's compilers return what the software GPU can execute (softgpu/nvrtc).
 */
static int preload_libraries(enum rc_layout_part driver)
{
	const struct {
		enum rc_layout_part part;
		const char *file;
	} files[] = {
		{ RC_LAYOUT_RUNTIME, "libcudart.so.13" },       { RC_LAYOUT_RUNTIME, "libcudart.so.12" },
		{ RC_LAYOUT_RUNTIME, "libheadrace-relink.so" }, { RC_LAYOUT_RUNTIME, "libheadrace-redirect.so" },
		{ driver, "libcuda.so.1" },                     { RC_LAYOUT_SOFTGPU, "libheadrace-nvrtc.so" },
	};
	int error = 0;
	for (size_t i = 0; i < sizeof files / sizeof *files && !error; i++)
		error = preload_file(files[i].part, files[i].file);
	return error;
}

/* Adds Headrace's runtime and a part's libcuda.so.1 to the library path. part NULL: the host's own libcuda.so.1. */
static int use_libraries(const enum rc_layout_part *part)
{
	char runtime[PATH_MAX], driver[PATH_MAX];
	int error = rc_layout_folder(RC_LAYOUT_RUNTIME, runtime);
	if (!error && part)
		error = rc_layout_folder(*part, driver);
	return error ? error : prepend_library_path(runtime, part ? driver : NULL);
}

/* ---- the ways to run ---- */

/* Connects to every server before the program starts, so that a wrong name, key or index is reported clearly. */
static int check_servers(const char *list)
{
	rc_server_t servers[RC_SERVER_MAX];
	char name[RC_SERVER_NAME_MAX + 16];
	size_t n = 0;
	int error = rc_server_parse(list, servers, RC_SERVER_MAX, &n);
	for (size_t i = 0; i < n && !error; i++) {
		rc_door_connect_t visit = { .server = servers[i], .purpose = RC_DOOR_STATUS };
		rc_door_welcome_t welcome;
		error = rc_door_connect(&visit, &welcome);
		if (error)
			break;
		close(welcome.fd);
		if (welcome.gpus && servers[i].gpu != RC_SERVER_ALL_GPUS && servers[i].gpu >= welcome.gpus) {
			fprintf(stderr, "headrace-run: server %s: no such GPU index %u: the server has %u\n",
				rc_server_name(&servers[i], name, sizeof name), servers[i].gpu, welcome.gpus);
			error = -ENODEV;
		}
	}
	return error;
}

static int use_server(const char *list)
{
	static const enum rc_layout_part client = RC_LAYOUT_CLIENT;
	int error = use_libraries(&client);
	if (!error)
		error = preload_libraries(client);
	if (!error && setenv("HEADRACE_SERVER", list, 1))
		error = -errno;
	return error;
}

static int use_private_server(const char *driver)
{
	char server[160];
	int error = private_start(driver, server, sizeof server);
	return error ? error : use_server(server);
}

static int use_local(const char *driver)
{
	static const enum rc_layout_part softgpu = RC_LAYOUT_SOFTGPU;
	if (!driver || !strcmp(driver, "softgpu")) {
		int error = use_libraries(&softgpu);
		return error ? error : preload_libraries(softgpu);
	}
	/* NVIDIA's static runtime works with NVIDIA's driver. */
	if (!strcmp(driver, "system"))
		return use_libraries(NULL);
	fputs("headrace-run: --local runs on the driver \"softgpu\" or \"system\"\n", stderr);
	return -EINVAL;
}

/* Sets the environment as the options require. */
static int arrange(const struct options *options)
{
	char driver[PATH_MAX];
	if (options->local) {
		unsetenv("HEADRACE_SERVER");
		return use_local(options->driver);
	}
	if (options->driver)
		return use_private_server(options->driver);
	if (options->server) {
		int error = check_servers(options->server);
		return error ? error : use_server(options->server);
	}
	if (!rc_layout_system_driver(driver)) {
		fputs("headrace-run: no server named: running on this host's own GPU\n", stderr);
		return use_libraries(NULL);
	}
	int error = use_private_server("softgpu");
	if (!error)
		fputs("headrace-run: no server named and no GPU here: started a server with the software GPU\n",
		      stderr);
	return error;
}

int main(int argc, char **argv)
{
	struct options options;
	char path[PATH_MAX];
	if (parse_options(argc, argv, &options)) {
		fputs("Try \"headrace-run --help\".\n", stderr);
		return EXIT_FAILED;
	}
	if (options.done >= 0)
		return options.done;
	char **program = argv + optind;
	int error = program_find(*program, path);
	if (error) {
		fprintf(stderr, "headrace-run: %s: %s\n", *program,
			error == -ENOENT ? "no such program" : "cannot be run: not an executable file");
		return error == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	program_check(path);
	if (arrange(&options))
		return EXIT_FAILED;
	execvp(*program, program);
	fprintf(stderr, "headrace-run: cannot run %s: %s\n", path, strerror(errno));
	return EXIT_CANNOT_RUN;
}
