/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocation at addresses that the client chooses, by virtual memory management: for drivers that lack the private interface
 * of placed_memory.h. Any thread.
 *
 * A window is one reservation of addresses. Physical memory is created in extents: when the budget grows, so that an
 * allocation within the budget finds its memory. An extent that is larger than a page belongs to one allocation. After a
 * free it stays mapped and idle, and an allocation at the same addresses uses it without a call of the driver. Only if
 * memory is needed elsewhere, an idle extent is unmapped.
 *
 *	virtual_extents.c  physical memory: created, mapped, idle, released
 *	placed_virtual.c   windows, the budget, allocations
 *	placed_ipc.c       memory of other workers
 *	device_mirror.c    managed memory of a client on another host
 */
#ifndef RC_CUDA_PLACED_VIRTUAL_H
#define RC_CUDA_PLACED_VIRTUAL_H

#include "cuda_remote/placed_memory.h"
#include "cuda_remote/server/internal.h"

/* NULL: the driver or one of the session's GPUs lacks virtual memory management. */
const struct rc_placed_memory *placed_virtual_find(void);

/* ---- virtual_extents.c; the caller holds the lock of placed_virtual.c ---- */

#define VIRTUAL_NOWHERE SIZE_MAX

struct virtual_extent {
	struct virtual_extent *previous, *next; /* in the list of idle or of spare extents; NULL if an allocation uses it */
	CUmemGenericAllocationHandle memory;
	size_t pages;
	size_t at; /* first page of the window; VIRTUAL_NOWHERE: not mapped */
	bool exported; /* another process may have mapped it: it is not used for another allocation */
};

/* Granules of a page that small allocations use. */
struct virtual_block {
	uint64_t taken[64];
	size_t used;
};

struct virtual_page {
	struct virtual_extent *extent; /* mapped there */
	struct virtual_block *block;   /* NULL: no small allocation is in the page */
	bool whole;                    /* part of a large allocation */
};

struct virtual_list {
	struct virtual_extent *first, *last;
};

/* The window of one GPU. */
struct virtual_window {
	CUdevice device;
	CUdeviceptr base;
	size_t page_bytes;
	size_t pages;
	struct virtual_page *page;
	struct virtual_list idle;  /* mapped, and no allocation uses them; the longest idle first */
	struct virtual_list spare; /* not mapped */
	size_t budget, used;       /* pages */
	size_t created;            /* pages of all extents: the budget, except during a change or after an error */
	bool exportable;           /* the driver exports its memory as descriptors */
	CUmemAccessDesc access[RC_DEVICES_MAX];
	size_t n_access;
};

/* Creates memory for more pages of the budget. CUDA_ERROR_OUT_OF_MEMORY: nothing was created. */
CUresult virtual_create(struct virtual_window *window, size_t pages);
/* Makes the created memory as large as the budget again: releases idle memory, or creates what is missing if it can. */
void virtual_settle(struct virtual_window *window);
/* Maps memory at pages that no allocation uses, so that each extent there lies within them. Afterwards these extents are not
 * idle. After an error they are. */
CUresult virtual_back(struct virtual_window *window, size_t first, size_t count);
/* No allocation uses these pages any more; their extents become idle. */
void virtual_unback(struct virtual_window *window, size_t first, size_t count);
/* Makes one extent of the pages of an allocation, which is exported then, and outputs it. The work of the context is complete. */
CUresult virtual_join(struct virtual_window *window, size_t first, size_t count, struct virtual_extent **joined);
/* Lets the last entry of access use all memory that is mapped. */
CUresult virtual_grant(struct virtual_window *window);

#endif
