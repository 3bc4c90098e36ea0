/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses of memory that the client and workers on this host map at the same place: a window of the process's own
 * addresses. A worker has other memory there rarely; then the client tries another place of the window (pinned.c).
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "cuda_remote/client/client.h"
#include "cuda_remote/client/window.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((uint64_t)2 << 20) /* a huge page: larger allocations begin at a multiple of it */
#define SMALL (PAGE / 2)
#define UNIT ((uint64_t)1 << 30)
#define LEAST (64 * UNIT)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rc_window window;
static enum { STATE_NEW, STATE_OPEN, STATE_NONE } state;

/* Four times the host's memory: addresses cost nothing. Under the lock. */
static void open_window(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
	window = (struct rc_window){ .bytes = (4 * memory + UNIT - 1) / UNIT * UNIT, .granule = page, .small = SMALL,
				     .page = PAGE };
	if (window.bytes < LEAST)
		window.bytes = LEAST;
	window.base = rc_window_reserve(window.bytes, 0);
	state = window.base && !rc_window_open(&window) ? STATE_OPEN : STATE_NONE;
	if (state == STATE_NONE && window.base)
		rc_window_release(window.base, window.bytes);
}

uint64_t rc_shared_take(uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	if (state == STATE_NEW)
		open_window();
	uint64_t address = state == STATE_OPEN ? rc_window_take(&window, bytes) : 0;
	pthread_mutex_unlock(&lock);
	return address;
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
	rc_window_give(&window, address, bytes);
	pthread_mutex_unlock(&lock);
}
