/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixtures of the registration cache tests: a simulated adapter that records the memory behind each page. */
#include "config.h"

#include "test/ib/cache.h"

#include "ib/ib_memory.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the adapter ---- */

struct cache_adapter adapter;

struct made {
	uintptr_t start;
	size_t len;
	uint64_t *generation; /* of each page of the arena, when registered */
};

uint8_t *arena;
uint64_t generations;
static uint64_t generation[ARENA_PAGES]; /* of each page of the arena; 0: there is no memory */

static uint64_t generation_of(uintptr_t at)
{
	return at >= (uintptr_t)arena && at < (uintptr_t)arena + ARENA_PAGES * PAGE ?
		       generation[(at - (uintptr_t)arena) / PAGE] : 0;
}

int ib_register(struct ib_device *device, uintptr_t address, size_t len, unsigned uses,
		struct ib_registration *registration)
{
	(void)device;
	if (adapter.refuse)
		return adapter.refuse;
	if (adapter.pages_most && adapter.pages_alive + len / PAGE > adapter.pages_most)
		return -ENOMEM;
	if ((uses & IB_USE_RECEIVE) && adapter.read_only >= address && adapter.read_only < address + len)
		return -EFAULT;
	ck_assert_uint_eq(address % PAGE, 0);
	ck_assert_uint_eq(len % PAGE, 0);
	struct made *made = malloc(sizeof *made);
	*made = (struct made){ address, len, malloc(len / PAGE * sizeof(uint64_t)) };
	for (size_t i = 0; i < len / PAGE; i++)
		made->generation[i] = generation_of(address + i * PAGE);
	if (adapter.meanwhile)
		adapter.meanwhile();
	adapter.meanwhile = NULL;
	adapter.alive++;
	adapter.made++;
	adapter.pages_alive += len / PAGE;
	adapter.pages_made += len / PAGE;
	*registration = (struct ib_registration){ adapter.made, adapter.made, made };
	return 0;
}

void ib_deregister(struct ib_registration *registration)
{
	struct made *made = registration->handle;
	adapter.alive--;
	adapter.pages_alive -= made->len / PAGE;
	free(made->generation);
	free(made);
}

bool ib_register_survives_fork(void)
{
	return true;
}

/* ---- the kernel ---- */

void (*behind_watching)(void);

unsigned changing_for, asked_changing;

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	if (request == UFFDIO_WRITEPROTECT) {
		__atomic_add_fetch(&asked_changing, 1, __ATOMIC_RELAXED);
		unsigned left = __atomic_load_n(&changing_for, __ATOMIC_RELAXED);
		while (left && !__atomic_compare_exchange_n(&changing_for, &left, left - 1, true, __ATOMIC_RELAXED,
							    __ATOMIC_RELAXED))
			continue;
		if (left) {
			errno = EAGAIN;
			return -1;
		}
	}
	int result = (int)syscall(SYS_ioctl, fd, request, argument);
	/* The watch's own thread makes other requests. */
	if (request == UFFDIO_REGISTER && behind_watching) {
		void (*call)(void) = behind_watching;
		behind_watching = NULL;
		call();
	}
	return result;
}

/* ---- tools ---- */

struct ib_cache *cache;
hr_conn_stats_t stats;

void open_with(const char *entries, const char *bytes)
{
	setenv("HEADRACE_IB_CACHE_ENTRIES", entries, 1);
	setenv("HEADRACE_IB_CACHE_BYTES", bytes, 1);
	ck_assert_int_eq(ib_cache_open(NULL, &cache), 0);
}

void make_arena(void)
{
	arena = mmap(NULL, ARENA_PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(arena, MAP_FAILED);
	munmap(arena, ARENA_PAGES * PAGE);
	open_with("1024", "1G");
}

void close_cache(void)
{
	ib_cache_close(cache);
	ck_assert_uint_eq(adapter.alive, 0);
}

uint8_t *at_page(unsigned page)
{
	return arena + (size_t)page * PAGE;
}

void note(unsigned page, unsigned n, uint64_t value)
{
	for (unsigned i = page; i < page + n; i++)
		generation[i] = value;
}

void map(unsigned page, unsigned n)
{
	void *got = mmap(at_page(page), (size_t)n * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_ptr_eq(got, at_page(page));
	note(page, n, ++generations);
}

void unmap(unsigned page, unsigned n)
{
	ck_assert_int_eq(munmap(at_page(page), (size_t)n * PAGE), 0);
	note(page, n, 0);
}

bool is_current(const struct ib_cached *cached, const void *address, size_t len)
{
	const struct made *made = cached->registration.handle;
	uintptr_t first = (uintptr_t)address & ~(uintptr_t)(PAGE - 1);
	if (made->start > first || made->start + made->len < (uintptr_t)address + len)
		return false;
	for (uintptr_t at = first; at < (uintptr_t)address + len; at += PAGE)
		if (made->generation[(at - made->start) / PAGE] != generation_of(at))
			return false;
	return true;
}

struct ib_cached *get(const void *address, size_t len)
{
	struct ib_cached *cached;
	ck_assert_int_eq(ib_cache_get(cache, &stats, address, len, IB_USE_SEND, &cached), 0);
	ck_assert(is_current(cached, address, len));
	return cached;
}

void use(const void *address, size_t len)
{
	ib_cache_put(get(address, len));
}

void use_pages(unsigned page, unsigned n)
{
	use(at_page(page), (size_t)n * PAGE);
}

bool hits(const void *address, size_t len)
{
	uint64_t before = stats.registration_hits;
	use(address, len);
	return stats.registration_hits != before;
}

bool hits_pages(unsigned page, unsigned n)
{
	return hits(at_page(page), (size_t)n * PAGE);
}

int get_for(unsigned page, unsigned n, unsigned uses)
{
	struct ib_cached *cached;
	int error = ib_cache_get(cache, &stats, at_page(page), (size_t)n * PAGE, uses, &cached);
	if (error)
		return error;
	ck_assert_uint_eq(cached->uses & uses, uses);
	ib_cache_put(cached);
	return 0;
}

void sweep(void)
{
	ib_memory_settle();
	ib_cache_sweep(cache);
}
