/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash table of queues: growing, and removing from the middle of a queue. */
#include "adi/message/queue.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BUCKETS (1u << 30)

void adi_table_init(struct adi_table *table)
{
	memset(table, 0, sizeof *table);
	table->bucket = table->small;
	table->mask = ADI_TABLE_SMALL - 1;
}

void adi_table_free(struct adi_table *table)
{
	if (table->bucket != table->small)
		free(table->bucket);
	adi_table_init(table);
}

void adi_table_grow(struct adi_table *table)
{
	uint32_t old = table->mask + 1;
	struct adi_queued **bucket = old < MOST_BUCKETS ? calloc(2 * (size_t)old, sizeof *bucket) : NULL;
	if (!bucket)
		return;
	uint32_t mask = 2 * old - 1;
	for (uint32_t i = 0; i < old; i++) {
		struct adi_queued *first = table->bucket[i];
		while (first) {
			struct adi_queued *chain = first->chain, **place = &bucket[adi_key_hash(&first->key) & mask];
			first->chain = *place;
			*place = first;
			first = chain;
		}
	}
	if (table->bucket != table->small)
		free(table->bucket);
	table->bucket = bucket;
	table->mask = mask;
}

void adi_table_remove(struct adi_table *table, struct adi_queued *node)
{
	struct adi_queued **link = adi_table_find(table, &node->key, adi_key_hash(&node->key));
	if (!node->previous) {
		adi_table_pop(table, link);
		return;
	}
	node->previous->next = node->next;
	if (node->next)
		node->next->previous = node->previous;
	else
		(*link)->last = node->previous;
}
