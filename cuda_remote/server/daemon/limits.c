/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts sessions by user, by address and by key. */
#include "cuda_remote/server/daemon/limits.h"

#include <stdio.h>
#include <string.h>

struct session_owner limits_owner(const rc_door_peer_t *peer)
{
	struct session_owner owner = { .uid = peer->uid, .by_key = peer->by_key };
	memcpy(owner.source, peer->source, sizeof owner.source);
	return owner;
}

void limits_count(const struct session_owner *owner, const struct session_owner *other, struct session_limits *counts)
{
	if (owner->by_key != other->by_key)
		return;
	if (!owner->by_key) {
		counts->user += owner->uid == other->uid;
		return;
	}
	counts->key++;
	counts->address += !memcmp(owner->source, other->source, sizeof owner->source);
}

bool limits_allow(const struct session_limits *limits, const struct session_owner *owner,
		  const struct session_limits *counts, char *text, size_t size)
{
	if (!owner->by_key && counts->user >= limits->user)
		snprintf(text, size, "user %u has %u sessions here: the server's limit for each user (--max-per-user)",
			 (unsigned)owner->uid, counts->user);
	else if (owner->by_key && counts->address >= limits->address)
		snprintf(text, size, "this address has %u sessions here: the server's limit for each address "
			 "(--max-per-address)", counts->address);
	else if (owner->by_key && counts->key >= limits->key)
		snprintf(text, size, "%u sessions here came by this key: the server's limit for each key (--max-per-key)",
			 counts->key);
	else
		return true;
	return false;
}
