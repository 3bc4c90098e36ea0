/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A daemon for one program. It is not a child of the program, so a program that waits for its children does not get it.
 * It listens on an abstract Unix socket with a random name and serves this user only. It watches the calling process,
 * also after an execve. When that process ends, for whatever cause, the daemon ends its workers and itself. It makes no
 * file and no folder, so none can be left behind.
 */
#ifndef RC_RUN_PRIVATE_H
#define RC_RUN_PRIVATE_H

#include <stddef.h>

/* Starts the daemon and waits until it serves. server: gets the daemon's name, for HEADRACE_SERVER. driver: as
 * headraced --driver. Returns a negated errno on failure; the cause is on stderr. */
int private_start(const char *driver, char *server, size_t size);

#endif
