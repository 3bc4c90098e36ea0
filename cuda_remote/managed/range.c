/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments that do not overlap, in one array sorted by address. Addresses between them have no state. A segment belongs
 * to the allocation whose id it has; segments of a freed allocation are dropped when their addresses are used again.
 */
#include "cuda_remote/managed/range.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct segment {
	uint64_t base, end, id;
	managed_state_t state;
} segment_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static segment_t *segments;
static size_t count, room;

/* The first segment that ends behind address. */
static size_t position(uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (segments[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool make_room(size_t more)
{
	if (count + more <= room)
		return true;
	size_t larger = (count + more) * 2;
	segment_t *grown = realloc(segments, larger * sizeof *grown);
	if (!grown)
		return false;
	segments = grown;
	room = larger;
	return true;
}

static void insert(size_t at, segment_t segment)
{
	memmove(&segments[at + 1], &segments[at], (count - at) * sizeof *segments);
	segments[at] = segment;
	count++;
}

static void take_out(size_t at, size_t how_many)
{
	memmove(&segments[at], &segments[at + how_many], (count - at - how_many) * sizeof *segments);
	count -= how_many;
}

/* Drops segments of freed allocations that had addresses in this range. */
static void drop_old(const managed_memory_t *memory)
{
	size_t at = position(memory->base);
	while (at < count && segments[at].base < memory->base + memory->size)
		if (segments[at].id != memory->id)
			take_out(at, 1);
		else
			at++;
}

/* Splits the segment that contains address, if any, at address. The array has room for one more. */
static void split(uint64_t address)
{
	size_t at = position(address);
	if (at == count || segments[at].base >= address)
		return;
	segment_t second = segments[at];
	second.base = segments[at].end = address;
	insert(at + 1, second);
}

static bool same_location(const CUmemLocation *a, const CUmemLocation *b)
{
	return a->type == b->type && a->id == b->id;
}

static bool same(const segment_t *a, const segment_t *b)
{
	const managed_state_t *x = &a->state, *y = &b->state;
	return a->id == b->id && a->end == b->base && x->read_mostly == y->read_mostly &&
	       x->host_accesses == y->host_accesses && x->device_accesses == y->device_accesses &&
	       same_location(&x->preferred, &y->preferred) && same_location(&x->prefetched, &y->prefetched);
}

static void join(uint64_t from, uint64_t to)
{
	size_t at = position(from);
	if (at)
		at--;
	while (at + 1 < count && segments[at].base < to)
		if (same(&segments[at], &segments[at + 1])) {
			segments[at].end = segments[at + 1].end;
			take_out(at + 1, 1);
		} else {
			at++;
		}
}

/* Fills the gaps of the range with segments without state. False: no memory. */
static bool fill_gaps(uint64_t base, uint64_t end, uint64_t id)
{
	for (size_t at = position(base); base < end; at++) {
		uint64_t next = at < count && segments[at].base < end ? segments[at].base : end;
		if (base < next) {
			if (!make_room(1))
				return false;
			insert(at, (segment_t){ .base = base, .end = next, .id = id });
		}
		base = segments[at].end;
	}
	return true;
}

CUresult managed_range_change(const managed_memory_t *memory, uint64_t base, uint64_t bytes,
			      void (*change)(managed_state_t *state, const void *argument), const void *argument)
{
	uint64_t end = base + bytes;
	pthread_mutex_lock(&lock);
	drop_old(memory);
	bool done = make_room(2);
	if (done) {
		split(base);
		split(end);
		done = fill_gaps(base, end, memory->id);
	}
	for (size_t at = position(base); done && at < count && segments[at].base < end; at++)
		change(&segments[at].state, argument);
	join(base, end);
	pthread_mutex_unlock(&lock);
	return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void managed_range_each(const managed_memory_t *memory, uint64_t base, uint64_t bytes,
			void (*look)(const managed_state_t *state, void *argument), void *argument)
{
	const managed_state_t nothing = { false };
	uint64_t end = base + bytes;
	pthread_mutex_lock(&lock);
	drop_old(memory);
	for (size_t at = position(base); base < end; at++) {
		if (at == count || segments[at].base >= end) {
			look(&nothing, argument);
			break;
		}
		if (segments[at].base > base)
			look(&nothing, argument);
		look(&segments[at].state, argument);
		base = segments[at].end;
	}
	pthread_mutex_unlock(&lock);
}
