/* SPDX-License-Identifier: BSD-3-Clause */
/* Identifies the process or host at the other end of a connected socket, as far as the kernel knows it. */
#ifndef RC_DOOR_IDENTITY_H
#define RC_DOOR_IDENTITY_H

#include "cuda_remote/door/door.h"

#define DOOR_UID_UNKNOWN ((uid_t)-1)

/* The first byte of a source. */
enum door_source {
	DOOR_SOURCE_USER = 1, /* a user of this host: the uid */
	DOOR_SOURCE_IPV4 = 2, /* the address */
	DOOR_SOURCE_IPV6 = 3, /* the address's first 64 bits, as a host usually has a /64 network */
};

struct door_identity {
	bool local;          /* Unix socket */
	bool loopback;       /* TCP within this host */
	uid_t uid;           /* DOOR_UID_UNKNOWN: on another host, or the kernel did not name it */
	pid_t pid;           /* Unix socket; else 0 */
	uint8_t source[RC_DOOR_SOURCE_BYTES]; /* for limits: enum door_source, then its value */
	char name[80];       /* for messages */
};

/*
 * Returns 0 or a negated errno, for example of getpeername if the peer has closed the connection. The kernel can name a
 * server's user only after the server's process has accepted the connection. So a client calls this after the server's
 * first answer.
 */
int door_identify(int fd, struct door_identity *peer);

/* A server trusts root and its own user. A root server trusts every known user, unless own_user_only. */
bool door_server_trusts(const struct door_identity *client, bool own_user_only);

/* A client trusts a server that runs as root or as its own user. */
bool door_client_trusts(const struct door_identity *server);

#endif
