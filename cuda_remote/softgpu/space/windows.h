/* SPDX-License-Identifier: BSD-3-Clause */
/* The windows of the address space: their addresses and budgets. Called by space.c only, which holds its lock; windows_find
 * and windows_overlap need no lock. */
#ifndef SOFTGPU_WINDOWS_H
#define SOFTGPU_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#define WINDOWS_RESERVED (-1)

typedef struct window {
	uint64_t base, size;    /* constant */
	int device;             /* constant; WINDOWS_RESERVED: addresses reserved for mappings, where nothing is placed */
	uint64_t committed;     /* bytes from base that are readable and writable */
	uint64_t budget, used;  /* bytes that allocations in the window may use, and use */
	bool unused;            /* WINDOWS_RESERVED: not reserved now */
	unsigned empty_blocks;  /* number of pages in blocks that have no allocation */
} window_t;

/* Reserves the addresses. -EEXIST: part of them is in use, or the device has a window; -ENOMEM. */
int windows_add(int device, uint64_t base, uint64_t size);
/* Reserves addresses for mappings, or ends that. A range is kept, and only the same range can be reserved there again. reserve:
 * false: part of the addresses is in use, or there are too many windows. unreserve: false: not a range that windows_reserve
 * has reserved. */
bool windows_reserve(uint64_t base, uint64_t size);
bool windows_unreserve(uint64_t base, uint64_t size);
/* The window of a device. NULL: it has none. */
window_t *windows_of(int device);
/* The window that contains address, or NULL. */
window_t *windows_find(uint64_t address);
bool windows_overlap(uint64_t base, uint64_t size);
/* Makes the window readable and writable up to end. -ENOMEM. */
int windows_commit(window_t *window, uint64_t end);

#endif
