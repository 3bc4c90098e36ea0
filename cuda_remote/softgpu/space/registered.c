/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of registered host memory, sorted by address. */
#include "cuda_remote/softgpu/space/registered.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static softgpu_allocation_t *table;
static size_t count, room;
static size_t unkept; /* ranges to be verified; read without the lock too */

/* Returns the index of the first entry that ends after address. */
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

static void take_out(size_t at)
{
	if (!table[at].kept)
		__atomic_store_n(&unkept, unkept - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&count, count - 1, __ATOMIC_RELAXED);
	memmove(&table[at], &table[at + 1], (count - at) * sizeof *table);
}

static int insert(const softgpu_allocation_t *range)
{
	size_t at = position(range->base);
	/* A new range replaces hidden entries, whose memory the program has unmapped. */
	while (at < count && table[at].hidden && table[at].base < range->base + range->size)
		take_out(at);
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
	table[at].kept = table[at].given = false;
	__atomic_store_n(&unkept, unkept + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
	return 0;
}

int softgpu_registered_add(const softgpu_allocation_t *range)
{
	pthread_rwlock_wrlock(&lock);
	int error = insert(range);
	pthread_rwlock_unlock(&lock);
	return error;
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

int softgpu_registered_keep(uint64_t base, bool given)
{
	pthread_rwlock_wrlock(&lock);
	size_t at = position(base);
	bool found = at < count && table[at].base == base && !table[at].hidden;
	if (found && !table[at].kept) {
		table[at].kept = true;
		__atomic_store_n(&unkept, unkept - 1, __ATOMIC_RELAXED);
	}
	if (found)
		table[at].given |= given;
	pthread_rwlock_unlock(&lock);
	return found ? 0 : -EINVAL;
}

/* True if every page of the range is mapped. */
static bool is_mapped(const softgpu_allocation_t *range)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = range->base & ~(page - 1);
	return !msync((void *)(uintptr_t)start, range->base + range->size - start, MS_ASYNC);
}

bool softgpu_registered_verify(void)
{
	/* Relaxed: a range that is registered concurrently is mapped, so it need not be checked. */
	if (!__atomic_load_n(&unkept, __ATOMIC_RELAXED))
		return false;
	bool changed = false;
	pthread_rwlock_wrlock(&lock);
	for (size_t i = 0; i < count; i++)
		if (!table[i].hidden && !table[i].kept && !is_mapped(&table[i]))
			changed = table[i].hidden = true;
	pthread_rwlock_unlock(&lock);
	return changed;
}

bool softgpu_registered_verify_at(uint64_t address)
{
	if (!__atomic_load_n(&unkept, __ATOMIC_RELAXED))
		return false;
	pthread_rwlock_rdlock(&lock);
	size_t at = position(address);
	bool gone = at < count && address >= table[at].base && !table[at].hidden && !table[at].kept && !is_mapped(&table[at]);
	pthread_rwlock_unlock(&lock);
	return gone && softgpu_registered_verify();
}

bool softgpu_registered_find(uint64_t address, softgpu_allocation_t *found)
{
	pthread_rwlock_rdlock(&lock);
	size_t at = position(address);
	bool inside = at < count && address >= table[at].base && !table[at].hidden;
	if (inside)
		*found = table[at];
	pthread_rwlock_unlock(&lock);
	return inside;
}

/* With the lock held. */
static bool covers(uint64_t address, unsigned bytes, bool write)
{
	size_t at = position(address);
	return at < count && address >= table[at].base && !table[at].hidden && !(write && table[at].read_only) &&
	       table[at].size - (address - table[at].base) >= bytes;
}

bool softgpu_registered_load(uint64_t address, unsigned bytes, uint64_t *value)
{
	pthread_rwlock_rdlock(&lock);
	bool there = covers(address, bytes, false);
	if (there)
		*value = bytes == 8 ? __atomic_load_n((const uint64_t *)(uintptr_t)address, __ATOMIC_ACQUIRE)
				    : __atomic_load_n((const uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
	pthread_rwlock_unlock(&lock);
	return there;
}

bool softgpu_registered_store(uint64_t address, unsigned bytes, uint64_t value)
{
	pthread_rwlock_rdlock(&lock);
	bool there = covers(address, bytes, true);
	if (there && bytes == 8)
		__atomic_store_n((uint64_t *)(uintptr_t)address, value, __ATOMIC_RELEASE);
	else if (there)
		__atomic_store_n((uint32_t *)(uintptr_t)address, (uint32_t)value, __ATOMIC_RELEASE);
	pthread_rwlock_unlock(&lock);
	return there;
}
