/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts of communicators. A context is a process's world rank in the high bits, a counter, and two bits for the four
 * contexts of a communicator. So a process chooses a context that no other process can choose, without a message. The
 * counter goes through its whole range before it gives a number again, and passes over those in use: a process that is late
 * in freeing its communicator does not meet a new one with the same context.
 */
#include "adi/comm/agree.h"

#include <stdlib.h>

enum {
	BITS = 30, /* of rank and counter */
	FIRST = ADI_CONTEXT_STRINGTAG / ADI_CONTEXT_STEP + 1, /* the numbers below are of predefined communicators */
};

/* A hash table of communicators by context. */
static struct {
	struct adi_comm **bucket; /* [buckets], a power of two */
	size_t buckets, n;
	uint32_t next; /* the counter */
} table;

static size_t place_of(uint32_t context, size_t buckets)
{
	return (size_t)((context / ADI_CONTEXT_STEP * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (buckets - 1);
}

static bool in_use(uint32_t context)
{
	if (!table.buckets)
		return false;
	struct adi_comm *comm = table.bucket[place_of(context, table.buckets)];
	while (comm && comm->context != context)
		comm = comm->next;
	return comm;
}

/* Numbers of each process. */
static uint32_t numbers(void)
{
	unsigned bits = BITS;
	while (((uint64_t)1 << BITS >> bits) < (uint64_t)adi_job.size)
		bits--;
	return (uint32_t)1 << bits;
}

uint32_t adi_context_new(void)
{
	uint32_t count = numbers();
	for (size_t i = 0; i <= table.n && i + FIRST < count; i++) {
		uint32_t number = table.next < FIRST || table.next >= count ? FIRST : table.next;
		table.next = number + 1;
		uint32_t context = ((uint32_t)adi_job.rank * count + number) * ADI_CONTEXT_STEP;
		/* The last number of the last rank would be ADI_CONTEXT_NONE. */
		if (context != ADI_CONTEXT_NONE && !in_use(context))
			return context;
	}
	return 0;
}

int adi_error_contexts(void)
{
	return adi_error(
		MPI_ERR_OTHER,
		"a process of the new communicator has used all its %u contexts; free communicators that are not needed",
		numbers() - FIRST);
}

/* Without memory the table stays as it is, and searches take longer. */
static void grow(void)
{
	size_t buckets = table.buckets ? 2 * table.buckets : 64;
	struct adi_comm **bucket = calloc(buckets, sizeof(struct adi_comm *));
	if (!bucket)
		return;
	for (size_t i = 0; i < table.buckets; i++) {
		for (struct adi_comm *comm = table.bucket[i], *next; comm; comm = next) {
			next = comm->next;
			struct adi_comm **head = &bucket[place_of(comm->context, buckets)];
			comm->next = *head;
			*head = comm;
		}
	}
	free(table.bucket);
	table.bucket = bucket;
	table.buckets = buckets;
}

bool adi_context_take(struct adi_comm *comm)
{
	if (table.n >= table.buckets)
		grow();
	if (!table.buckets)
		return false;
	struct adi_comm **head = &table.bucket[place_of(comm->context, table.buckets)];
	comm->next = *head;
	*head = comm;
	table.n++;
	return true;
}

void adi_context_return(struct adi_comm *comm)
{
	if (!table.buckets)
		return;
	struct adi_comm **link = &table.bucket[place_of(comm->context, table.buckets)];
	while (*link && *link != comm)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = comm->next;
	table.n--;
}

struct adi_comm *adi_context_any(void)
{
	for (size_t i = 0; i < table.buckets; i++)
		if (table.bucket[i])
			return table.bucket[i];
	return NULL;
}

void adi_contexts_end(void)
{
	free(table.bucket);
	table.bucket = NULL;
	table.buckets = table.n = 0;
}
