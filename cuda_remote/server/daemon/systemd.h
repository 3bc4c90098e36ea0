/* SPDX-License-Identifier: BSD-3-Clause */
/* What systemd and the daemon tell each other: readiness (sd_notify(3)) and sockets (sd_listen_fds(3)). */
#ifndef RC_DAEMON_SYSTEMD_H
#define RC_DAEMON_SYSTEMD_H

#include <stdbool.h>
#include <stddef.h>

#define SYSTEMD_SOCKETS_MAX 16

/* Sends lines VARIABLE=VALUE to the socket that NOTIFY_SOCKET names. Without that variable it does nothing. */
void systemd_notify(const char *state);
void systemd_notify_reloading(void);

/* True if systemd has opened sockets for this process. */
bool systemd_activated(void);

/* The descriptors of these sockets. Returns their number. */
size_t systemd_sockets(int fds[SYSTEMD_SOCKETS_MAX]);

#endif
