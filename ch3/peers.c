/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash table of virtual connections on demand, by the card of the peer. */
#include "ch3/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_FIRST 16

/* FNV-1a (Fowler, Noll, Vo), 64 bits. A card contains 128 random bits, so a process that does not know a card cannot
 * compute its bucket. */
static uint64_t card_hash(const hr_card_t *card)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (uint32_t i = 0; i < card->len; i++)
		hash = (hash ^ card->data[i]) * 0x100000001b3;
	return hash;
}

static struct ch3_peer *find(const struct ch3_peers *peers, const hr_card_t *card, uint64_t hash)
{
	struct ch3_peer *peer = peers->n ? peers->bucket[hash & (peers->n_buckets - 1)] : NULL;
	for (; peer; peer = peer->next)
		if (peer->hash == hash && peer->card.len == card->len &&
		    !memcmp(peer->card.data, card->data, card->len))
			return peer;
	return NULL;
}

static int grow(struct ch3_peers *peers)
{
	size_t n = peers->n_buckets ? 2 * peers->n_buckets : BUCKETS_FIRST;
	struct ch3_peer **bucket = calloc(n, sizeof *bucket);
	if (!bucket)
		return -ENOMEM;
	for (size_t i = 0; i < peers->n_buckets; i++) {
		struct ch3_peer *peer = peers->bucket[i], *next;
		for (; peer; peer = next) {
			next = peer->next;
			peer->next = bucket[peer->hash & (n - 1)];
			bucket[peer->hash & (n - 1)] = peer;
		}
	}
	free(peers->bucket);
	peers->bucket = bucket;
	peers->n_buckets = n;
	return 0;
}

int ch3_peers_add(struct ch3_peers *peers, const hr_card_t *card, ch3_vc_t *vc)
{
	uint64_t hash = card_hash(card);
	if (find(peers, card, hash))
		return -EEXIST;
	if (peers->n == peers->n_buckets && grow(peers))
		return -ENOMEM;
	struct ch3_peer *peer = malloc(sizeof *peer);
	if (!peer)
		return -ENOMEM;
	struct ch3_peer **bucket = &peers->bucket[hash & (peers->n_buckets - 1)];
	*peer = (struct ch3_peer){ *bucket, hash, vc, *card };
	*bucket = peer;
	peers->n++;
	vc->peer = peer;
	return 0;
}

ch3_vc_t *ch3_peers_find(const struct ch3_peers *peers, const hr_card_t *card)
{
	const struct ch3_peer *peer = find(peers, card, card_hash(card));
	return peer ? peer->vc : NULL;
}

void ch3_peers_remove(struct ch3_peers *peers, struct ch3_peer *peer)
{
	struct ch3_peer **link = &peers->bucket[peer->hash & (peers->n_buckets - 1)];
	while (*link != peer)
		link = &(*link)->next;
	*link = peer->next;
	peers->n--;
	free(peer);
}

void ch3_peers_destroy(struct ch3_peers *peers)
{
	free(peers->bucket);
	*peers = (struct ch3_peers){ NULL, 0, 0 };
}
