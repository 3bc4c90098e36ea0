/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is at the other end of a connected socket, as far as the kernel can tell. */
#ifndef RC_DOOR_IDENTITY_H
#define RC_DOOR_IDENTITY_H

#include "cuda_remote/door/door.h"

#define DOOR_UID_UNKNOWN ((uid_t)-1)

/* The first byte of a source. */
enum door_source {
	DOOR_SOURCE_USER = 1, /* a user of this host: the uid */
	DOOR_SOURCE_IPV4 = 2, /* the address */
	DOOR_SOURCE_IPV6 = 3, /* its first 64 bits: a host owns a /64 as a rule */
};

struct door_identity {
	bool local;          /* Unix socket */
	bool loopback;       /* TCP within this host */
	uid_t uid;           /* DOOR_UID_UNKNOWN: beyond this host, or the kernel would not tell */
	pid_t pid;           /* Unix socket; else 0 */
	uint8_t source[RC_DOOR_SOURCE_BYTES]; /* whom to count a connection against: enum door_source, then its value */
	char name[80];       /* for messages */
};

/*
 * 0, or what getpeername and the like say of a socket whose peer has gone. A server's process must have accepted the
 * connection before the kernel can name its user: a client calls this after the server has answered.
 */
int door_identify(int fd, struct door_identity *peer);

/* A server trusts root and its own user; a root server trusts every user it knows, unless own_user_only. */
bool door_server_trusts(const struct door_identity *client, bool own_user_only);

/* A client trusts a server of root or of its own user. */
bool door_client_trusts(const struct door_identity *server);

#endif
