/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many sessions clients of one kind may have: those of a user (whom the kernel names), those of a network address,
 * and those that came by key. Sessions that wait for a worker count too.
 */
#ifndef RC_DAEMON_LIMITS_H
#define RC_DAEMON_LIMITS_H

#include "cuda_remote/door/door.h"

struct session_limits {
	uint32_t user, address, key;
};

/* Whose session it is. */
struct session_owner {
	uid_t uid;
	bool by_key;
	uint8_t source[sizeof((rc_door_peer_t *)0)->source];
};

struct session_owner limits_owner(const rc_door_peer_t *peer);

/* Adds another owner's session to what counts against this owner. */
void limits_count(const struct session_owner *owner, const struct session_owner *other, struct session_limits *counts);

/* True if the owner may have one more. If not, text says which limit it has reached. */
bool limits_allow(const struct session_limits *limits, const struct session_owner *owner,
		  const struct session_limits *counts, char *text, size_t size);

#endif
