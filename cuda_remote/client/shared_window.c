/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses of memory that the client and workers on this host map at the same place: windows of the process's own
 * addresses. If a worker has other memory there, which is rare, the client tries another address (pinned.c). The software GPU
 * of a worker may have reserved all addresses of a window. So if several addresses of a window were refused, the client opens
 * another window.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/window.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((uint64_t)2 << 20) /* a huge page: larger allocations begin at a multiple of it */
#define SMALL (PAGE / 2)
#define UNIT ((uint64_t)1 << 30)
#define LEAST (64 * UNIT)
#define WINDOWS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rc_window windows[WINDOWS];
static unsigned opened;   /* windows so far; addresses are taken from the last one */
static bool none;         /* no window can be opened */

/* Four times the host's memory: addresses cost nothing. Under the lock. */
static void open_window(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
	struct rc_window window = { .bytes = (4 * memory + UNIT - 1) / UNIT * UNIT, .granule = page, .small = SMALL,
				    .page = PAGE, .unit = page };
	if (window.bytes < LEAST)
		window.bytes = LEAST;
	window.base = rc_window_reserve(window.bytes, true, 0);
	none = !window.base || rc_window_open(&window);
	if (!none)
		windows[opened++] = window;
	else if (window.base)
		rc_window_release(window.base, window.bytes);
}

/* Under the lock. */
static struct rc_window *window_of(uint64_t address)
{
	unsigned i = 0;
	while (address - windows[i].base >= windows[i].bytes)
		i++;
	return &windows[i];
}

uint64_t rc_shared_take(uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	if (!opened && !none)
		open_window();
	uint64_t address = opened ? rc_window_take(&windows[opened - 1], bytes) : 0;
	pthread_mutex_unlock(&lock);
	return address;
}

void rc_shared_avoid(uint64_t address)
{
	pthread_mutex_lock(&lock);
	if (opened < WINDOWS && window_of(address) == &windows[opened - 1])
		open_window();
	pthread_mutex_unlock(&lock);
}

void rc_shared_give(uint64_t address, uint64_t bytes)
{
	void *at = mmap((void *)(uintptr_t)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
			-1, 0);
	if (at == MAP_FAILED) { /* other memory may be mapped there now, so the addresses are not used again */
		munmap((void *)(uintptr_t)address, bytes);
		return;
	}
	pthread_mutex_lock(&lock);
	rc_window_give(window_of(address), address, bytes);
	pthread_mutex_unlock(&lock);
}
