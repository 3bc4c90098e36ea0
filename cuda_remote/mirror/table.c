/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of mirrors of one side. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "cuda_remote/mirror/mirror.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TRACKED_LEAST (64u << 10) /* a smaller mirror is compared in less time than a system call takes */

/* Index of the first mirror whose address is above the given one. */
static size_t above(const struct mirror_table *table, uint64_t address)
{
	size_t low = 0, high = table->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (table->list[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct mirror *mirror_find(const struct mirror_table *table, uint64_t address)
{
	size_t i = above(table, address);
	struct mirror *mirror = i ? &table->list[i - 1] : NULL;
	return mirror && address - mirror->address < mirror->size ? mirror : NULL;
}

struct mirror *mirror_at_or_after(const struct mirror_table *table, uint64_t address)
{
	struct mirror *mirror = mirror_find(table, address);
	size_t i = above(table, address);
	if (mirror)
		return mirror;
	return i < table->n ? &table->list[i] : NULL;
}

static bool make_room(struct mirror_table *table)
{
	size_t room = table->room ? 2 * table->room : 16;
	if (table->n < table->room)
		return true;
	struct mirror *larger = realloc(table->list, room * sizeof *larger);
	if (!larger)
		return false;
	table->list = larger;
	table->room = room;
	return true;
}

/* The twin takes pages of the host only where the two sides have stored something. */
bool mirror_add(struct mirror_table *table, const struct mirror *mirror)
{
	if (!make_room(table))
		return false;
	void *twin = mmap(NULL, mirror->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (twin == MAP_FAILED)
		return false;
	size_t at = above(table, mirror->address);
	memmove(table->list + at + 1, table->list + at, (table->n - at) * sizeof *table->list);
	table->list[at] = *mirror;
	table->list[at].twin = twin;
	if (mirror->size >= TRACKED_LEAST && !mirror->shared_pages && !mirror->device)
		table->list[at].tracked = mirror_pages_begin(&table->list[at]);
	table->n++;
	return true;
}

void mirror_remove(struct mirror_table *table, struct mirror *mirror)
{
	size_t at = (size_t)(mirror - table->list);
	if (mirror->tracked)
		mirror_pages_end(mirror);
	munmap(mirror->twin, mirror->size);
	table->n--;
	memmove(table->list + at, table->list + at + 1, (table->n - at) * sizeof *table->list);
}
