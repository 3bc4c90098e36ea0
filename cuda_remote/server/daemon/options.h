/* SPDX-License-Identifier: BSD-3-Clause */
/* headraced's command line and configuration file. */
#ifndef RC_DAEMON_OPTIONS_H
#define RC_DAEMON_OPTIONS_H

#include "cuda_remote/door/door.h"
#include "cuda_remote/server/daemon/gpus.h"
#include "cuda_remote/server/daemon/limits.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define OPTION_KINDS_MAX 48

struct daemon_options {
	const char *config;      /* NULL: no configuration file */
	char *text, *first_text; /* the file's text, as read last and first; values point into both */
	uint64_t given[OPTION_KINDS_MAX]; /* of each option: a hash of its values; 0: not given */
	rc_server_t places[16];  /* to listen at; must succeed */
	size_t place_count;
	bool loopback;           /* also at loopback's default port, if that is free */
	const char *link_address; /* as HEADRACE_LINK_ADDRESS; NULL: not given */
	const char *key_file;    /* NULL: none */
	bool munge;              /* accept credentials of MUNGE */
	char driver[PATH_MAX];   /* for dlopen */
	bool software;           /* the driver is the software GPU */
	const char *user;        /* daemon as root: user of workers whose client is root or authenticated by key */
	bool root_workers;       /* a root client gets a root worker */
	bool seccomp;            /* filter workers' system calls */
	struct session_limits limits; /* 0: not set */
	uint32_t workers;        /* kept ready */
	uint32_t max_clients;
	struct gpu_settings gpus;
	bool metrics;            /* answer HTTP requests for counters at metrics_place */
	rc_server_t metrics_place;
	uint32_t idle_s;         /* a session without a call for this long ends; 0: never */
	uint32_t drain_s;        /* after SIGTERM: time for sessions to end, s */
	const char *log;         /* "stderr", "journal" or a file */
	int ready_fd, watch_fd;  /* -1: none */
	bool quiet;
	bool encrypt;            /* require encryption from every TCP client */
	bool private_use;        /* serve this user only, also as root */
	const char *make_key;    /* not NULL: write a key file there and end */
};

/* Reads the command line, and the configuration file that it names. An option of the command line overrides the file's.
 * 0: run; 1: done (help, version); negative: a wrong option. Prints the help or the error. */
int daemon_options_parse(int argc, char **argv, struct daemon_options *options);

/* Fills in the defaults of socket, limits and driver. activated: sockets came from systemd, so there is no default
 * socket. Errors are logged. */
int daemon_options_complete(struct daemon_options *options, bool activated);

/* Reads command line and file again. Options that a running daemon cannot change keep their value; if one differs, the
 * log names it. Negative, and *options is unchanged: a wrong option. */
int daemon_options_reload(int argc, char **argv, struct daemon_options *options);

void daemon_options_free(struct daemon_options *options);

#endif
