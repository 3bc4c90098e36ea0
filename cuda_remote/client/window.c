/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of addresses: where they lie, and which of their addresses are in use. The caller holds a lock. */
#include "cuda_remote/client/window.h"

#include "cuda_remote/bitmap.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#define GRANULES_MAX 4096 /* in a page */
#define PAGE_LEAST ((uint64_t)1 << 20)

struct rc_window_block {
	uint64_t taken[GRANULES_MAX / 64];
	size_t page, free, largest;              /* free granules; upper bound of the longest run of them */
	struct rc_window_block *previous, *next; /* in the list of blocks with room; next also in the list of spare ones */
};

/* NVIDIA's driver reserves addresses at a place that it is given only if this is a multiple of 32 MiB (measured with
 * driver 580); otherwise it chooses another place. */
#define PLACES_UNIT ((uint64_t)1 << 30)
#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer lets a program map only the ends of the address space: the last 1.5 TiB are one of them. */
#define DEVICES_BEGIN 0x7e8000000000u
#define DEVICES_MASK 0x1ffu
#define SHARED_BEGIN DEVICES_BEGIN
#define SHARED_MASK DEVICES_MASK
#else
/* Programs, libraries and stacks lie at both ends of the address space, and position-independent programs at 85 TiB. A window
 * of a device's memory lies between 16 and 80 TiB, one of shared memory between 96 and 112 TiB: a process that opens memory of
 * another one has to have it at the address that the other one chose. */
#define DEVICES_BEGIN ((uint64_t)16 << 40)
#define DEVICES_MASK 0xffffu
#define SHARED_BEGIN ((uint64_t)96 << 40)
#define SHARED_MASK 0x3fffu
#endif
#define DRAWN_ATTEMPTS 12 /* in later ones the kernel chooses */

/* The addresses nearest to the kernel's choice that begin at a multiple of PLACES_UNIT. */
static uint64_t reserve_anywhere(uint64_t bytes)
{
	char *at = mmap(NULL, bytes + PLACES_UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return 0;
	uint64_t base = ((uintptr_t)at + PLACES_UNIT - 1) & ~(PLACES_UNIT - 1), before = base - (uintptr_t)at;
	if (before)
		munmap(at, before);
	if (before < PLACES_UNIT)
		munmap((void *)(uintptr_t)(base + bytes), PLACES_UNIT - before);
	return base;
}

bool rc_window_reserve_at(uint64_t base, uint64_t bytes)
{
	void *at = mmap((void *)(uintptr_t)base, bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == MAP_FAILED)
		return false;
	if ((uintptr_t)at == base)
		return true;
	munmap(at, bytes); /* a kernel before 4.17 takes the address as a hint */
	return false;
}

uint64_t rc_window_reserve(uint64_t bytes, bool shared, unsigned attempt)
{
	uint32_t drawn;
	if (attempt >= DRAWN_ATTEMPTS || getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
		return reserve_anywhere(bytes);
	uint64_t base = shared ? SHARED_BEGIN + (drawn & SHARED_MASK) * PLACES_UNIT :
				 DEVICES_BEGIN + (drawn & DEVICES_MASK) * PLACES_UNIT;
	return rc_window_reserve_at(base, bytes) ? base : reserve_anywhere(bytes);
}

void rc_window_release(uint64_t base, uint64_t bytes)
{
	munmap((void *)(uintptr_t)base, bytes);
}

int rc_window_open(struct rc_window *window)
{
	if (!window->granule || window->page < PAGE_LEAST || window->granule & (window->granule - 1) ||
	    window->page & (window->page - 1) ||
	    window->granule > window->page || window->small > window->page || window->page / window->granule > GRANULES_MAX ||
	    window->base % window->page || window->bytes < window->page ||
	    (window->unit != window->granule && window->unit != window->page))
		return -EINVAL;
	window->pages = window->bytes / window->page;
	window->taken = calloc((window->pages + 63) / 64, sizeof *window->taken);
	window->block = calloc(window->pages, sizeof(struct rc_window_block *));
	if (window->taken && window->block)
		return 0;
	free(window->taken);
	free(window->block);
	return -ENOMEM;
}

void rc_window_close(struct rc_window *window)
{
	while (window->spare) {
		struct rc_window_block *block = window->spare;
		window->spare = block->next;
		free(block);
	}
	free(window->taken);
	free(window->block);
}

static size_t take_pages(struct rc_window *window, size_t count)
{
	size_t from = window->first_free & ~(size_t)63;
	if (from >= window->pages)
		return BITMAP_NONE;
	size_t at = bitmap_find_run(window->taken + from / 64, window->pages - from, 0, count, 1);
	if (at == BITMAP_NONE)
		return BITMAP_NONE;
	at += from;
	bitmap_fill(window->taken, at, count, true);
	if (window->unit == window->page)
		window->used += count * window->page;
	if (bitmap_next(window->taken, window->pages, window->first_free, false) >= at + count)
		window->first_free = at + count;
	return at;
}

static void give_pages(struct rc_window *window, size_t first, size_t count)
{
	bitmap_fill(window->taken, first, count, false);
	if (window->unit == window->page)
		window->used -= count * window->page;
	if (first < window->first_free)
		window->first_free = first;
}

static void list_block(struct rc_window *window, struct rc_window_block *block)
{
	block->previous = NULL;
	block->next = window->roomy;
	if (window->roomy)
		window->roomy->previous = block;
	window->roomy = block;
}

static void unlist_block(struct rc_window *window, struct rc_window_block *block)
{
	if (block->next)
		block->next->previous = block->previous;
	if (block->previous)
		block->previous->next = block->next;
	else
		window->roomy = block->next;
}

static struct rc_window_block *new_block(struct rc_window *window)
{
	struct rc_window_block *block = window->spare;
	if (block)
		window->spare = block->next;
	else if (!(block = calloc(1, sizeof *block)))
		return NULL;
	block->page = take_pages(window, 1);
	if (block->page == BITMAP_NONE) {
		block->next = window->spare;
		window->spare = block;
		return NULL;
	}
	block->free = block->largest = window->page / window->granule;
	window->block[block->page] = block;
	list_block(window, block);
	return block;
}

static uint64_t take_small(struct rc_window *window, size_t count)
{
	size_t at = BITMAP_NONE, granules = window->page / window->granule;
	struct rc_window_block *block;
	for (block = window->roomy; block; block = block->next) {
		if (block->largest < count)
			continue;
		at = bitmap_find_run(block->taken, granules, 0, count, 1);
		if (at != BITMAP_NONE)
			break;
		block->largest = count - 1;
	}
	if (!block) {
		block = new_block(window);
		if (!block)
			return 0;
		at = 0;
	}
	bitmap_fill(block->taken, at, count, true);
	block->free -= count;
	if (!block->free)
		unlist_block(window, block);
	return window->base + block->page * window->page + at * window->granule;
}

static uint64_t take_large(struct rc_window *window, uint64_t bytes)
{
	if (bytes > window->bytes)
		return 0;
	size_t at = take_pages(window, (bytes + window->page - 1) / window->page);
	return at == BITMAP_NONE ? 0 : window->base + at * window->page;
}

uint64_t rc_window_take(struct rc_window *window, uint64_t bytes)
{
	uint64_t address = bytes <= window->small ? take_small(window, bytes / window->granule) : take_large(window, bytes);
	if (address && window->unit == window->granule)
		window->used += bytes;
	return address;
}

static void give_small(struct rc_window *window, struct rc_window_block *block, size_t at, size_t count)
{
	bitmap_fill(block->taken, at, count, false);
	if (!block->free)
		list_block(window, block);
	block->free += count;
	block->largest = block->free;
	if (block->free < window->page / window->granule)
		return;
	unlist_block(window, block);
	window->block[block->page] = NULL;
	give_pages(window, block->page, 1);
	block->next = window->spare;
	window->spare = block;
}

void rc_window_give(struct rc_window *window, uint64_t address, uint64_t bytes)
{
	uint64_t offset = address - window->base;
	size_t page = offset / window->page;
	if (window->unit == window->granule)
		window->used -= bytes;
	if (window->block[page])
		give_small(window, window->block[page], offset % window->page / window->granule, bytes / window->granule);
	else
		give_pages(window, page, (bytes + window->page - 1) / window->page);
}
