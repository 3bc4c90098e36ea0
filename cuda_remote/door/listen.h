/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that a daemon listens on. */
#ifndef RC_DOOR_LISTEN_H
#define RC_DOOR_LISTEN_H

#include "cuda_remote/door/server_name.h"

#include <stdbool.h>
#include <sys/types.h>

#define DOOR_LISTENERS_MAX 32

struct door_listener {
	int fd;
	char path[108]; /* Unix socket's file, "" for TCP and abstract names */
	dev_t device;   /* of the file, to recognise it; inode too */
	ino_t inode;
};

/*
 * Opens the non-blocking listening sockets of a place: one for a Unix socket, one for each address of a host's name. At
 * most max; *n is their number. allow_network: also addresses beyond loopback, which are -EPERM otherwise. Logged.
 */
int door_listen(const rc_server_t *place, bool allow_network, struct door_listener *listeners, size_t max, size_t *n);

/* Takes over a socket that listens already, for TCP or Unix clients; it stays the caller's if that fails. -ENOTSOCK,
 * -EPROTOTYPE: it is no listening stream socket; -EPERM as above. Logged. */
int door_adopt(int fd, bool allow_network, struct door_listener *listener);

/* True if clients of other hosts can reach the listener. */
bool door_listens_to_network(const struct door_listener *listener);

/* Writes the IP address of a listener that listens to the network. */
int door_listener_address(const struct door_listener *listener, char *text, size_t size);

/* Closes a listener and removes its socket file, unless another file has replaced it. */
void door_listener_close(struct door_listener *listener);

#endif
