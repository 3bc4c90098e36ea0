/* SPDX-License-Identifier: BSD-3-Clause */
/* The physical memory of a window (placed_virtual.h). */
#include "cuda_remote/server/placed/placed_virtual.h"

#include "cuda_remote/server/placed/placed_ipc.h"

#include <stdlib.h>

/* An extent is at most this large, so that part of the memory of a large allocation can be used elsewhere after it was freed. */
#define EXTENT_MOST ((size_t)1 << 30)
/* A gap is not filled with smaller parts than 1 / PARTS_MOST of it. On an H200 cuMemSetAccess takes 45 us for each extent, and
 * creating memory takes 10 us. */
#define PARTS_MOST 2

/* ---- lists ---- */

static void push(struct virtual_list *list, struct virtual_extent *extent)
{
	extent->next = NULL;
	extent->previous = list->last;
	if (list->last)
		list->last->next = extent;
	else
		list->first = extent;
	list->last = extent;
}

static void take(struct virtual_list *list, struct virtual_extent *extent)
{
	if (extent->next)
		extent->next->previous = extent->previous;
	else
		list->last = extent->previous;
	if (extent->previous)
		extent->previous->next = extent->next;
	else
		list->first = extent->next;
	extent->previous = extent->next = NULL;
}

/* ---- memory ---- */

/* The new extent is spare. */
static CUresult create_one(struct virtual_window *window, size_t pages)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = window->device } };
	if (window->exportable)
		properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	struct virtual_extent *extent = malloc(sizeof *extent);
	if (!extent)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*extent = (struct virtual_extent){ .pages = pages, .at = VIRTUAL_NOWHERE };
	CUresult result = driver.cuMemCreate(&extent->memory, pages * window->page_bytes, &properties, 0);
	if (result != CUDA_SUCCESS) {
		free(extent);
		return result;
	}
	push(&window->spare, extent);
	window->created += pages;
	return CUDA_SUCCESS;
}

/* Unmaps an extent, which is in any list or in none. */
static CUresult detach(struct virtual_window *window, struct virtual_extent *extent)
{
	CUresult result = driver.cuMemUnmap(window->base + extent->at * window->page_bytes, extent->pages * window->page_bytes);
	if (result != CUDA_SUCCESS) {
		hr_log_once(HR_LOG_ERROR, "memory at %#llx cannot be unmapped: %s",
			    (unsigned long long)(window->base + extent->at * window->page_bytes), server_error_name(result));
		return result;
	}
	for (size_t i = 0; i < extent->pages; i++)
		window->page[extent->at + i].extent = NULL;
	extent->at = VIRTUAL_NOWHERE;
	return CUDA_SUCCESS;
}

/* Maps an extent, which is in any list or in none. */
static CUresult attach(struct virtual_window *window, struct virtual_extent *extent, size_t at)
{
	CUdeviceptr address = window->base + at * window->page_bytes;
	size_t bytes = extent->pages * window->page_bytes;
	CUresult result = driver.cuMemMap(address, bytes, 0, extent->memory, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuMemSetAccess(address, bytes, window->access, window->n_access);
	if (result != CUDA_SUCCESS) {
		(void)driver.cuMemUnmap(address, bytes);
		return result;
	}
	extent->at = at;
	for (size_t i = 0; i < extent->pages; i++)
		window->page[at + i].extent = extent;
	return CUDA_SUCCESS;
}

/* An idle extent becomes spare. After an error it is idle. */
static CUresult unmap(struct virtual_window *window, struct virtual_extent *extent)
{
	CUresult result = detach(window, extent);
	if (result != CUDA_SUCCESS)
		return result;
	take(&window->idle, extent);
	push(&window->spare, extent);
	return CUDA_SUCCESS;
}

/* Releases a spare extent. */
static void release(struct virtual_window *window, struct virtual_extent *extent)
{
	take(&window->spare, extent);
	window->created -= extent->pages;
	(void)driver.cuMemRelease(extent->memory);
	free(extent);
}

/* A spare extent becomes idle at this page. */
static CUresult map(struct virtual_window *window, struct virtual_extent *extent, size_t at)
{
	CUresult result = attach(window, extent, at);
	if (result != CUDA_SUCCESS)
		return result;
	take(&window->spare, extent);
	push(&window->idle, extent);
	return CUDA_SUCCESS;
}

static size_t extent_most(const struct virtual_window *window)
{
	return EXTENT_MOST > window->page_bytes ? EXTENT_MOST / window->page_bytes : 1;
}

/* Creates extents of the largest size that fits. Returns the number of pages that were created. */
static size_t create_many(struct virtual_window *window, size_t pages, CUresult *result)
{
	size_t most = extent_most(window), made = 0;
	while (made < pages) {
		size_t n = pages - made < most ? pages - made : most;
		*result = create_one(window, n);
		if (*result != CUDA_SUCCESS)
			break;
		made += n;
	}
	return made;
}

CUresult virtual_create(struct virtual_window *window, size_t pages)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t made = create_many(window, pages, &result); result != CUDA_SUCCESS && made;) {
		made -= window->spare.last->pages;
		release(window, window->spare.last);
	}
	return result;
}

/* Lies outside of the pages first..first+count-1. */
static bool is_outside(const struct virtual_extent *extent, size_t first, size_t count)
{
	return extent->at >= first + count || extent->at + extent->pages <= first;
}

static size_t release_spare(struct virtual_window *window, size_t pages)
{
	size_t released = 0;
	while (window->spare.first && released < pages) {
		released += window->spare.first->pages;
		release(window, window->spare.first);
	}
	return released;
}

/* Releases at least so many pages that no allocation uses, if there are so many. Idle extents at pages first..first+count-1
 * stay. */
static void shrink(struct virtual_window *window, size_t pages, size_t first, size_t count)
{
	size_t released = release_spare(window, pages);
	for (struct virtual_extent *extent = window->idle.first, *next; extent && released < pages; extent = next) {
		next = extent->next;
		if (is_outside(extent, first, count) && unmap(window, extent) == CUDA_SUCCESS)
			released += release_spare(window, pages - released);
	}
}

void virtual_settle(struct virtual_window *window)
{
	CUresult result = CUDA_SUCCESS;
	if (window->created > window->budget)
		shrink(window, window->created - window->budget, 0, 0);
	if (window->created < window->budget)
		(void)create_many(window, window->budget - window->created, &result); /* else the next virtual_back does */
}

/* ---- backing of pages ---- */

/* The largest extent of a list that fits and is worth mapping. */
static struct virtual_extent *best(const struct virtual_list *list, size_t wanted, size_t first, size_t count)
{
	struct virtual_extent *found = NULL;
	for (struct virtual_extent *extent = list->first; extent && (!found || found->pages < wanted); extent = extent->next)
		if (extent->pages <= wanted && extent->pages * PARTS_MOST >= wanted && (!found || extent->pages > found->pages) &&
		    (extent->at == VIRTUAL_NOWHERE || is_outside(extent, first, count)))
			found = extent;
	return found;
}

/* Gets a spare extent for a gap; memory that is created for it is at first more than the budget, if the device has room. */
static CUresult get(struct virtual_window *window, size_t gap, size_t first, size_t count, struct virtual_extent **found)
{
	size_t pages = gap < extent_most(window) ? gap : extent_most(window);
	*found = best(&window->spare, pages, first, count);
	if (*found)
		return CUDA_SUCCESS;
	*found = best(&window->idle, pages, first, count);
	if (*found)
		return unmap(window, *found);
	CUresult result = create_one(window, pages);
	for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && tries < 2; tries++) {
		shrink(window, tries ? window->created : pages, first, count);
		result = create_one(window, pages);
	}
	*found = window->spare.last;
	return result;
}

static CUresult fill(struct virtual_window *window, size_t at, size_t gap, size_t first, size_t count)
{
	CUresult result = CUDA_SUCCESS;
	while (gap && result == CUDA_SUCCESS) {
		struct virtual_extent *extent;
		result = get(window, gap, first, count, &extent);
		if (result == CUDA_SUCCESS)
			result = map(window, extent, at);
		if (result == CUDA_SUCCESS) {
			at += extent->pages;
			gap -= extent->pages;
		}
	}
	return result;
}

/* Unmaps the extents that lie only partly within the pages. */
static CUresult unmap_ends(struct virtual_window *window, size_t first, size_t count)
{
	CUresult result = CUDA_SUCCESS;
	struct virtual_extent *extent = window->page[first].extent;
	if (extent && (extent->at < first || extent->at + extent->pages > first + count))
		result = unmap(window, extent);
	extent = window->page[first + count - 1].extent;
	if (result == CUDA_SUCCESS && extent && extent->at + extent->pages > first + count)
		result = unmap(window, extent);
	return result;
}

CUresult virtual_back(struct virtual_window *window, size_t first, size_t count)
{
	CUresult result = unmap_ends(window, first, count);
	for (size_t at = first, end = first + count; at < end && result == CUDA_SUCCESS;) {
		size_t gap = 0;
		while (at + gap < end && !window->page[at + gap].extent)
			gap++;
		if (gap)
			result = fill(window, at, gap, first, count);
		at += gap ? gap : window->page[at].extent->pages;
	}
	for (size_t at = first; at < first + count && result == CUDA_SUCCESS; at += window->page[at].extent->pages)
		take(&window->idle, window->page[at].extent);
	if (window->created != window->budget)
		virtual_settle(window);
	return result;
}

void virtual_unback(struct virtual_window *window, size_t first, size_t count)
{
	for (size_t at = first, pages; at < first + count; at += pages) {
		struct virtual_extent *extent = window->page[at].extent;
		pages = extent ? extent->pages : 1;
		if (!extent) /* an error has left it without memory */
			continue;
		push(&window->idle, extent);
		if (extent->exported && unmap(window, extent) == CUDA_SUCCESS)
			release(window, extent);
	}
	if (window->created < window->budget)
		virtual_settle(window);
}

/* Maps the extents of a list again, one after the other from this page on. */
static void put_back(struct virtual_window *window, struct virtual_list *list, size_t at)
{
	for (struct virtual_extent *extent; (extent = list->first);) {
		size_t pages = extent->pages;
		take(list, extent);
		if (attach(window, extent, at) != CUDA_SUCCESS) {
			hr_log_once(HR_LOG_ERROR, "an allocation at %#llx has lost its memory",
				    (unsigned long long)(window->base + at * window->page_bytes));
			push(&window->spare, extent);
		}
		at += pages;
	}
}

/* Maps a spare extent in place of those that an allocation uses, which become spare. After an error nothing has changed. */
static CUresult replace(struct virtual_window *window, size_t first, struct virtual_extent *extent)
{
	struct virtual_list old = { NULL, NULL };
	CUresult result = CUDA_SUCCESS;
	for (size_t at = first, pages; at < first + extent->pages && result == CUDA_SUCCESS; at += pages) {
		struct virtual_extent *used = window->page[at].extent;
		pages = used ? used->pages : 1;
		result = used ? detach(window, used) : CUDA_ERROR_INVALID_VALUE;
		if (result == CUDA_SUCCESS)
			push(&old, used);
	}
	if (result == CUDA_SUCCESS)
		result = attach(window, extent, first);
	if (result != CUDA_SUCCESS) {
		put_back(window, &old, first);
		return result;
	}
	take(&window->spare, extent);
	for (struct virtual_extent *gone; (gone = old.first);) {
		take(&old, gone);
		push(&window->spare, gone);
	}
	return CUDA_SUCCESS;
}

CUresult virtual_join(struct virtual_window *window, size_t first, size_t count, struct virtual_extent **joined)
{
	struct virtual_extent *extent = window->page[first].extent;
	if (!extent)
		return CUDA_ERROR_INVALID_VALUE;
	if (extent->at != first || extent->pages != count) {
		CUresult result = create_one(window, count);
		if (result != CUDA_SUCCESS)
			return result;
		extent = window->spare.last;
		result = placed_ipc_copy(extent->memory, window->base + first * window->page_bytes, count * window->page_bytes);
		if (result == CUDA_SUCCESS)
			result = replace(window, first, extent);
		virtual_settle(window);
		if (result != CUDA_SUCCESS)
			return result;
	}
	extent->exported = true;
	*joined = extent;
	return CUDA_SUCCESS;
}

CUresult virtual_grant(struct virtual_window *window)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t at = 0; at < window->pages && result == CUDA_SUCCESS;) {
		const struct virtual_extent *extent = window->page[at].extent;
		if (extent)
			result = driver.cuMemSetAccess(window->base + at * window->page_bytes,
						       extent->pages * window->page_bytes,
						       &window->access[window->n_access - 1], 1);
		at += extent ? extent->pages : 1;
	}
	return result;
}
