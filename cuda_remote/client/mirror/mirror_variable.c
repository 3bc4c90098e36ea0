/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed variables. The server's driver has placed the variable. This process maps memory at the same address, which is a
 * mirror of the variable (cuda_remote/mirror/mirror.h). The pages can hold several variables, so they stay mapped until the
 * process ends.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_FIXED_NOREPLACE */
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Ranges of pages that were mapped for variables. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range {
	uint64_t start, end;
} *ranges;
static size_t n_ranges, ranges_room;

/* Under the lock. */
static bool is_mapped(uint64_t page)
{
	for (size_t i = 0; i < n_ranges; i++)
		if (page >= ranges[i].start && page < ranges[i].end)
			return true;
	return false;
}

static bool add_range(uint64_t start, uint64_t end)
{
	if (n_ranges == ranges_room) {
		size_t room = ranges_room ? 2 * ranges_room : 16;
		struct range *more = realloc(ranges, room * sizeof *more);
		if (!more)
			return false;
		ranges = more;
		ranges_room = room;
	}
	ranges[n_ranges++] = (struct range){ start, end };
	return true;
}

/* Only the server says how large variables are. All of them and their twins take at most half of this host's memory. Under the
 * lock. */
static bool is_too_much(uint64_t start, uint64_t end, uint64_t page)
{
	uint64_t pages = (end - start) / page, limit = (uint64_t)sysconf(_SC_PHYS_PAGES) / 4;
	if (pages >= limit)
		return true;
	for (size_t i = 0; i < n_ranges; i++)
		pages += (ranges[i].end - ranges[i].start) / page;
	for (uint64_t at = start; at < end && pages >= limit; at += page)
		pages -= is_mapped(at); /* it was counted twice */
	return pages >= limit;
}

/* Maps the pages from start to end that are not mapped for variables yet. False: there is other memory, or no memory. */
static bool map_pages(uint64_t start, uint64_t end, uint64_t page)
{
	while (start < end) {
		if (is_mapped(start)) {
			start += page;
			continue;
		}
		uint64_t until = start + page;
		while (until < end && !is_mapped(until))
			until += page;
		void *want = (void *)(uintptr_t)start;
		void *got = mmap(want, until - start, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (got != want) { /* an old kernel takes the address as a hint */
			if (got != MAP_FAILED)
				munmap(got, until - start);
			return false;
		}
		if (!add_range(start, until)) {
			munmap(got, until - start);
			return false;
		}
		start = until;
	}
	return true;
}

/* The twin holds zeros. A page that was mapped already may have held a variable of a library that was unloaded. New pages hold
 * zeros, and have no memory before somebody writes. Under the lock. */
static void clear_mapped(uint64_t start, uint64_t end, uint64_t page)
{
	while (start < end) {
		uint64_t until = (start & ~(page - 1)) + page;
		if (until > end)
			until = end;
		if (is_mapped(start & ~(page - 1)))
			memset((void *)(uintptr_t)start, 0, until - start);
		start = until;
	}
}

CUresult rc_mirror_variable(struct rc_link *link, const struct rc_span *span, const char *name)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = span->base & ~(page - 1), last = span->base + span->size;
	uint64_t end = (last + page - 1) & ~(page - 1);
	pthread_mutex_lock(&lock);
	bool too_much = is_too_much(start, end, page), mapped = false;
	if (!too_much) {
		clear_mapped(span->base, last, page);
		mapped = map_pages(start, end, page);
	}
	pthread_mutex_unlock(&lock);
	if (too_much) {
		hr_log(HR_LOG_ERROR, "server %s: with the managed variable %s, of %llu bytes, such variables exceed a quarter of "
		       "this host's memory", link->server, name, (unsigned long long)span->size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!mapped) {
		hr_log(HR_LOG_ERROR, "server %s: the managed variable %s is at %#llx, where the program has other memory; run the program "
		       "again", link->server, name, (unsigned long long)span->base);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return rc_mirror_begin(span) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
