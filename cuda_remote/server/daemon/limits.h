/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of concurrent sessions: of one user (as identified by the kernel), from one network address, and of all
 * clients that authenticated by key. Clients that wait for a worker count too.
 */
#ifndef RC_DAEMON_LIMITS_H
#define RC_DAEMON_LIMITS_H

#include "cuda_remote/door/door.h"

struct session_limits {
	uint32_t user, address, key;
};

/* The owner of a session: a user, or for sessions by key an address. */
struct session_owner {
	uid_t uid;
	bool by_key;
	uint8_t source[sizeof((rc_door_peer_t *)0)->source];
};

struct session_owner limits_owner(const rc_door_peer_t *peer);

/* Adds a session of other to the counts that concern owner, where it counts against the same limits. */
void limits_count(const struct session_owner *owner, const struct session_owner *other, struct session_limits *counts);

/* True if the owner may have one more session. If not, text names the limit that is reached. */
bool limits_allow(const struct session_limits *limits, const struct session_owner *owner,
		  const struct session_limits *counts, char *text, size_t size);

#endif
