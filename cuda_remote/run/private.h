/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A daemon for one program. It is nobody's child (a program that waits for its children does not meet it), listens
 * on an abstract Unix socket with a random name, serves this user only, and watches the calling process: when that
 * ends, in whatever way and also after it has become another program by execve, the daemon ends its workers and
 * itself. No file and no folder is made, so none can be left behind.
 */
#ifndef RC_RUN_PRIVATE_H
#define RC_RUN_PRIVATE_H

#include <stddef.h>

/* Starts it and waits until it serves; server gets its name for HEADRACE_SERVER. driver: as headraced --driver.
 * Negated errno; the daemon has said why on stderr. */
int private_start(const char *driver, char *server, size_t size);

#endif
