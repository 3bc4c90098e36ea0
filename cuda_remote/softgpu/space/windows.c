/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of windows. Entries are added and never removed, so that readers need no lock. */
#include "cuda_remote/softgpu/space/windows.h"

#include "cuda_remote/softgpu/space/space.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#define COMMIT_STEP (UINT64_C(64) << 20)

#define WINDOWS (4 * SOFTGPU_MAX_DEVICES)

static window_t windows[WINDOWS];
static unsigned count; /* atomic */

int windows_add(int device, uint64_t base, uint64_t size)
{
	if ((device != WINDOWS_RESERVED && windows_of(device)) || count == WINDOWS)
		return -EEXIST;
	/* Kernels before 4.17 take the flag as a hint, so the address is compared. */
	void *at = mmap((void *)(uintptr_t)base, size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == MAP_FAILED)
		return errno == EEXIST ? -EEXIST : -ENOMEM;
	if ((uintptr_t)at != base) {
		munmap(at, size);
		return -EEXIST;
	}
	windows[count] = (window_t){ .base = base, .size = size, .device = device };
	/* Orders the window's fields before the count; pairs with the acquire in windows_find and windows_overlap. */
	__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
	return 0;
}

static window_t *reserved(uint64_t base, uint64_t size)
{
	for (unsigned i = 0; i < count; i++)
		if (windows[i].device == WINDOWS_RESERVED && windows[i].base == base && windows[i].size == size)
			return &windows[i];
	return NULL;
}

bool windows_reserve(uint64_t base, uint64_t size)
{
	window_t *known = reserved(base, size);
	if (!known)
		return !windows_add(WINDOWS_RESERVED, base, size);
	bool unused = known->unused;
	known->unused = false;
	return unused;
}

bool windows_unreserve(uint64_t base, uint64_t size)
{
	window_t *known = reserved(base, size);
	if (known)
		known->unused = true;
	return known;
}

window_t *windows_of(int device)
{
	for (unsigned i = 0; i < count; i++)
		if (windows[i].device == device)
			return &windows[i];
	return NULL;
}

window_t *windows_find(uint64_t address)
{
	for (unsigned i = 0, n = __atomic_load_n(&count, __ATOMIC_ACQUIRE); i < n; i++)
		if (address - windows[i].base < windows[i].size)
			return &windows[i];
	return NULL;
}

bool windows_overlap(uint64_t base, uint64_t size)
{
	for (unsigned i = 0, n = __atomic_load_n(&count, __ATOMIC_ACQUIRE); i < n; i++)
		if (base < windows[i].base + windows[i].size && base + size > windows[i].base)
			return true;
	return false;
}

int windows_commit(window_t *window, uint64_t end)
{
	uint64_t wanted = end - window->base;
	if (wanted <= window->committed)
		return 0;
	wanted = (wanted + COMMIT_STEP - 1) / COMMIT_STEP * COMMIT_STEP;
	if (wanted > window->size)
		wanted = window->size;
	if (mprotect((void *)(uintptr_t)(window->base + window->committed), wanted - window->committed, PROT_READ | PROT_WRITE))
		return -ENOMEM;
	window->committed = wanted;
	return 0;
}
