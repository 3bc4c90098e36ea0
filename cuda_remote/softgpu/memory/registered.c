/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/softgpu/memory/registered.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static softgpu_allocation_t *table;
static size_t count, room;

/* First entry that ends behind address. */
static size_t position(uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (table[middle].base + table[middle].size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert(const softgpu_allocation_t *range)
{
	size_t at = position(range->base);
	if (at < count && table[at].base < range->base + range->size)
		return -EEXIST;
	if (count == room) {
		size_t more = room ? room * 2 : 16;
		softgpu_allocation_t *grown = realloc(table, more * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		table = grown;
		room = more;
	}
	memmove(&table[at + 1], &table[at], (count - at) * sizeof *table);
	table[at] = *range;
	count++;
	return 0;
}

int softgpu_registered_add(const softgpu_allocation_t *range)
{
	pthread_rwlock_wrlock(&lock);
	int error = insert(range);
	pthread_rwlock_unlock(&lock);
	return error;
}

static void take_out(size_t at)
{
	count--;
	memmove(&table[at], &table[at + 1], (count - at) * sizeof *table);
}

int softgpu_registered_remove(uint64_t base)
{
	pthread_rwlock_wrlock(&lock);
	size_t at = position(base);
	bool found = at < count && table[at].base == base;
	if (found)
		take_out(at);
	pthread_rwlock_unlock(&lock);
	return found ? 0 : -EINVAL;
}

void softgpu_registered_remove_owned(const void *owner)
{
	pthread_rwlock_wrlock(&lock);
	for (size_t i = count; i-- > 0;)
		if (table[i].owner == owner)
			take_out(i);
	pthread_rwlock_unlock(&lock);
}

bool softgpu_registered_find(uint64_t address, softgpu_allocation_t *found)
{
	pthread_rwlock_rdlock(&lock);
	size_t at = position(address);
	bool inside = at < count && address >= table[at].base;
	if (inside)
		*found = table[at];
	pthread_rwlock_unlock(&lock);
	return inside;
}
