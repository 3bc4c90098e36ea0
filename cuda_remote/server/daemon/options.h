/* SPDX-License-Identifier: BSD-3-Clause */
/* headraced's command line. */
#ifndef RC_DAEMON_OPTIONS_H
#define RC_DAEMON_OPTIONS_H

#include "cuda_remote/door/door.h"
#include "cuda_remote/server/daemon/limits.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct daemon_options {
	rc_server_t places[16];  /* to listen at; must succeed */
	size_t place_count;
	bool loopback;           /* also at loopback's default port, if that is free */
	const char *key_file;    /* NULL: none */
	char driver[PATH_MAX];   /* for dlopen */
	bool software;           /* the driver is the software GPU */
	const char *user;        /* daemon as root: user of workers whose client is root or authenticated by key */
	bool root_workers;       /* a root client gets a root worker */
	bool seccomp;            /* filter workers' system calls */
	struct session_limits limits; /* 0: not set */
	uint32_t workers;        /* kept ready */
	uint32_t max_clients;
	int ready_fd, watch_fd;  /* -1: none */
	bool quiet;
	bool encrypt;            /* require encryption from every TCP client */
	bool private_use;        /* serve this user only, also as root */
	const char *make_key;    /* not NULL: write a key file there and end */
};

/* 0: run; 1: done (help, version); negative: a wrong option. Prints the help or the error. */
int daemon_options_parse(int argc, char **argv, struct daemon_options *options);

/* Fills in the defaults of socket, limits and driver. Errors are logged. */
int daemon_options_complete(struct daemon_options *options);

#endif
