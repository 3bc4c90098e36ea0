/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table of queues. Nodes with the same key form a queue in the order of insertion. Finding, appending and removing
 * a node takes the same time for any number of nodes. Nothing is allocated but the buckets.
 */
#ifndef ADI_MESSAGE_QUEUE_H
#define ADI_MESSAGE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What a message and a receive must have in common. */
struct adi_key {
	uint32_t context;
	int32_t source;  /* world rank, or MPI_ANY_SOURCE */
	int32_t tag;     /* or MPI_ANY_TAG */
	uint32_t number; /* of a message of partitioned.c; 0: an ordinary message */
};
_Static_assert(sizeof(struct adi_key) == 16, "keys are compared as bytes, so they have no padding");

struct adi_queued {
	struct adi_key key;
	uint64_t order;                   /* of insertion, for the user of the table */
	struct adi_queued *chain;           /* if first of its queue: the first node of the next queue in the bucket */
	struct adi_queued *last;            /* if first of its queue: the last node of the queue */
	struct adi_queued *next, *previous; /* in the queue */
};

#define ADI_TABLE_SMALL 64

struct adi_table {
	struct adi_queued **bucket; /* [mask + 1]; allocated unless it is small */
	uint32_t mask;            /* number of buckets, a power of two, less 1 */
	uint32_t queues;
	struct adi_queued *small[ADI_TABLE_SMALL];
};

/* Zero bytes are not an empty table. init empties a table; free also releases its buckets. The nodes are the caller's. */
void adi_table_init(struct adi_table *table);
void adi_table_free(struct adi_table *table);
/* Doubles the number of buckets if there is memory. */
void adi_table_grow(struct adi_table *table);

static inline bool adi_key_same(const struct adi_key *a, const struct adi_key *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

static inline uint32_t adi_key_hash(const struct adi_key *key)
{
	uint64_t a = (uint64_t)key->context << 32 | (uint32_t)key->tag;
	uint64_t b = (uint64_t)key->number << 32 | (uint32_t)key->source;
	return (uint32_t)(((a ^ b * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u) >> 32);
}

/* Returns the pointer to the first node with this key; it points to NULL if there is none. Valid until the table
 * changes. hash: adi_key_hash of the key. */
static inline struct adi_queued **adi_table_find(struct adi_table *table, const struct adi_key *key, uint32_t hash)
{
	struct adi_queued **link = &table->bucket[hash & table->mask];
	while (*link && !adi_key_same(&(*link)->key, key))
		link = &(*link)->chain;
	return link;
}

static inline void adi_table_append(struct adi_table *table, struct adi_queued *node, uint32_t hash)
{
	struct adi_queued **link = adi_table_find(table, &node->key, hash), *first = *link;
	node->next = NULL;
	if (first) {
		node->previous = first->last;
		first->last->next = node;
		first->last = node;
		return;
	}
	node->previous = NULL;
	node->last = node;
	node->chain = NULL;
	*link = node;
	if (++table->queues > table->mask)
		adi_table_grow(table);
}

/* Removes the first node of a queue, to which link points. */
static inline void adi_table_pop(struct adi_table *table, struct adi_queued **link)
{
	struct adi_queued *first = *link, *next = first->next;
	if (next) {
		next->chain = first->chain;
		next->last = first->last;
		next->previous = NULL;
		*link = next;
	} else {
		*link = first->chain;
		table->queues--;
	}
}

/* Removes any node. */
void adi_table_remove(struct adi_table *table, struct adi_queued *node);

#endif
