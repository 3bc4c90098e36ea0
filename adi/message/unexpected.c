/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected messages: those that have no receive yet. They are in a list in order of arrival and in a table by envelope. A
 * receive with wildcards searches the list. If that takes many steps, the messages are entered into the table for all wildcards
 * too, until no message is left.
 */
#include "adi/message/internal.h"
#include "adi/message/statistics.h"

#include "rdma_channel/base/log.h"

#include <stdlib.h>

#define MANY_STEPS 16

static struct adi_table table;
struct adi_unexpected *adi_unexpected_first;
static struct adi_unexpected *last;
static bool indexed; /* all messages have an index */

/* The key under which a message is found by receives with these wildcards. */
static struct adi_key index_key(const struct adi_key *key, int index)
{
	struct adi_key other = *key;
	if (index != ADI_BY_SOURCE)
		other.source = MPI_ANY_SOURCE;
	if (index != ADI_BY_TAG)
		other.tag = MPI_ANY_TAG;
	return other;
}

static void index_remove(struct adi_unexpected *message)
{
	for (int i = 0; message->index && i < ADI_INDEXES; i++)
		adi_table_remove(&table, &message->index->node[i]);
	free(message->index);
	message->index = NULL;
}

/* Without memory for all indexes there are none, and receives with wildcards search. */
static void indexes_remove(void)
{
	for (struct adi_unexpected *message = adi_unexpected_first; message; message = message->next)
		index_remove(message);
	indexed = false;
}

/* Wildcards do not match partitioned messages. */
static bool index_add(struct adi_unexpected *message)
{
	if (message->node.key.number)
		return true;
	message->index = malloc(sizeof *message->index);
	if (!message->index)
		return false;
	message->index->message = message;
	for (int i = 0; i < ADI_INDEXES; i++) {
		struct adi_queued *node = &message->index->node[i];
		node->key = index_key(&message->node.key, i);
		adi_table_append(&table, node, adi_key_hash(&node->key));
	}
	return true;
}

static void indexes_add(void)
{
	indexed = true;
	for (struct adi_unexpected *message = adi_unexpected_first; message; message = message->next)
		if (!index_add(message)) {
			indexes_remove();
			return;
		}
}

struct adi_unexpected *adi_unexpected_append(const struct adi_key *key, size_t bytes, size_t room)
{
	struct adi_unexpected *message = room > SIZE_MAX / 2 ? NULL : malloc(sizeof *message + room);
	if (!message) {
		hr_log(HR_LOG_ERROR, "adi: no memory for an unexpected message of %zu bytes from rank %d", bytes, key->source);
		return NULL;
	}
	message->object.magic = 0;
	message->bytes = bytes;
	message->number = adi_number_arrived(key->source);
	message->rndv = NULL;
	message->sender = message->claimed = NULL;
	message->comm = NULL;
	message->arrived = message->cancelled = false;
	message->error = 0;
	message->next = NULL;
	message->previous = last;
	*(last ? &last->next : &adi_unexpected_first) = message;
	last = message;
	message->node.key = *key;
	message->index = NULL;
	adi_table_append(&table, &message->node, adi_key_hash(key));
	if (indexed && !index_add(message))
		indexes_remove();
	return message;
}

void adi_unexpected_remove(struct adi_unexpected *message)
{
	adi_table_remove(&table, &message->node);
	index_remove(message);
	*(message->previous ? &message->previous->next : &adi_unexpected_first) = message->next;
	*(message->next ? &message->next->previous : &last) = message->previous;
	if (!adi_unexpected_first)
		indexed = false;
}

static struct adi_unexpected *search(const struct adi_key *want)
{
	int steps = 0;
	struct adi_unexpected *message = adi_unexpected_first;
	for (; message; message = message->next, steps++) {
		const struct adi_key *key = &message->node.key;
		if (key->context == want->context && key->number == want->number &&
		    (want->source == MPI_ANY_SOURCE || want->source == key->source) &&
		    (want->tag == MPI_ANY_TAG || want->tag == key->tag))
			break;
	}
	if (steps > MANY_STEPS)
		indexes_add();
	return message;
}

struct adi_unexpected *adi_unexpected_search(const struct adi_key *want)
{
	bool any_source = want->source == MPI_ANY_SOURCE, any_tag = want->tag == MPI_ANY_TAG;
	if ((any_source || any_tag) && !indexed)
		return search(want);
	struct adi_queued *node = *adi_table_find(&table, want, adi_key_hash(want));
	if (!node)
		return NULL;
	if (!any_source && !any_tag)
		return (struct adi_unexpected *)((char *)node - offsetof(struct adi_unexpected, node));
	node -= any_source && any_tag ? ADI_BY_CONTEXT : any_source ? ADI_BY_TAG : ADI_BY_SOURCE;
	return ((struct adi_unexpected_index *)((char *)node - offsetof(struct adi_unexpected_index, node)))->message;
}

struct adi_unexpected *adi_unexpected_numbered(int source, uint64_t number)
{
	struct adi_unexpected *message = adi_unexpected_first;
	while (message && (message->node.key.source != source || message->number != number))
		message = message->next;
	return message;
}

uint64_t adi_messages_unexpected(void)
{
	uint64_t n = 0;
	for (const struct adi_unexpected *message = adi_unexpected_first; message; message = message->next)
		n++;
	return n;
}

void adi_unexpected_free(struct adi_unexpected *message)
{
	free(message);
}

void adi_unexpected_start(void)
{
	adi_table_init(&table);
}

void adi_unexpected_end(void)
{
	while (adi_unexpected_first) {
		struct adi_unexpected *message = adi_unexpected_first;
		adi_unexpected_first = message->next;
		free(message->index);
		free(message);
	}
	last = NULL;
	indexed = false;
	adi_table_free(&table);
}
