/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache without an adapter: this program brings the registering itself. Its registrations remember
 * for each page which memory lay there (a number that the test changes whenever it changes the memory), so that a
 * registration that outlived its memory is found out when the cache hands it out.
 */
#include "config.h"

#include "ib/ib_cache.h"
#include "ib/ib_maps.h"
#include "ib/ib_memory.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* ---- the adapter ---- */

static struct {
	unsigned alive, made;      /* registrations */
	uint64_t pages_alive;      /* in them */
	uint64_t pages_made;
	uint64_t pages_most;       /* -ENOMEM beyond; 0: no limit */
	uintptr_t read_only;       /* this page cannot be registered for receiving */
	int refuse;                /* a negated errno for everything */
	void (*meanwhile)(void);   /* called once, when pages have been found and before registering returns */
} adapter;

struct made {
	uintptr_t start;
	size_t len;
	uint64_t *generation; /* of each page of the arena, when registered */
};

/* Addresses that tests map and unmap, and which memory lies in each page: 0 is none. */
enum { ARENA_PAGES = 256 };
static uint8_t *arena;
static uint64_t generation[ARENA_PAGES], generations;

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

static void (*behind_watching)(void); /* called once, when a mapping has just been put under watch */

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
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

static struct ib_cache *cache;
static hr_conn_stats_t stats;

static void open_with(const char *entries, const char *bytes)
{
	setenv("HEADRACE_IB_CACHE_ENTRIES", entries, 1);
	setenv("HEADRACE_IB_CACHE_BYTES", bytes, 1);
	ck_assert_int_eq(ib_cache_open(NULL, &cache), 0);
}

static void make_arena(void)
{
	arena = mmap(NULL, ARENA_PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(arena, MAP_FAILED);
	munmap(arena, ARENA_PAGES * PAGE);
	open_with("1024", "1G");
}

static void close_cache(void)
{
	ib_cache_close(cache);
	ck_assert_uint_eq(adapter.alive, 0);
}

static uint8_t *at_page(unsigned page)
{
	return arena + (size_t)page * PAGE;
}

static void note(unsigned page, unsigned n, uint64_t value)
{
	for (unsigned i = page; i < page + n; i++)
		generation[i] = value;
}

/* Fresh memory at pages of the arena, in place of what was there. */
static void map(unsigned page, unsigned n)
{
	void *got = mmap(at_page(page), (size_t)n * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_ptr_eq(got, at_page(page));
	note(page, n, ++generations);
}

static void unmap(unsigned page, unsigned n)
{
	ck_assert_int_eq(munmap(at_page(page), (size_t)n * PAGE), 0);
	note(page, n, 0);
}

/* Is every page that was asked for registered as it is now? */
static bool is_current(const struct ib_cached *cached, const void *address, size_t len)
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

static struct ib_cached *get(const void *address, size_t len)
{
	struct ib_cached *cached;
	ck_assert_int_eq(ib_cache_get(cache, &stats, address, len, IB_USE_SEND, &cached), 0);
	ck_assert(is_current(cached, address, len));
	return cached;
}

static void use(const void *address, size_t len)
{
	ib_cache_put(get(address, len));
}

static void use_pages(unsigned page, unsigned n)
{
	use(at_page(page), (size_t)n * PAGE);
}

/* Does using it hit? */
static bool hits(const void *address, size_t len)
{
	uint64_t before = stats.registration_hits;
	use(address, len);
	return stats.registration_hits != before;
}

static bool hits_pages(unsigned page, unsigned n)
{
	return hits(at_page(page), (size_t)n * PAGE);
}

/* What has gone so far is deregistered. */
static void sweep(void)
{
	ib_memory_settle();
	ib_cache_sweep(cache);
}

/* ---- keeping ---- */

START_TEST(what_was_used_is_found_registered)
{
	map(0, 16);
	use(at_page(2) + 100, 3 * PAGE);
	ck_assert_uint_eq(stats.registration_misses, 1);
	ck_assert(hits(at_page(2) + 100, 3 * PAGE));
	ck_assert(hits(at_page(2), 1));
	ck_assert(hits(at_page(5) + 4095, 1));
	ck_assert(!hits(at_page(6), 1));
	ck_assert(!hits(at_page(1) + 4095, 2));
	ck_assert_uint_eq(stats.registration_hits, 3);
	ck_assert_uint_eq(stats.registration_misses, 3);
}
END_TEST

START_TEST(a_range_that_wraps_or_is_empty_is_refused)
{
	struct ib_cached *cached;
	ck_assert_int_eq(ib_cache_get(cache, &stats, arena, 0, IB_USE_SEND, &cached), -EINVAL);
	ck_assert_int_eq(ib_cache_get(cache, &stats, (void *)-8192, 16384, IB_USE_SEND, &cached), -EINVAL);
}
END_TEST

START_TEST(neighbours_become_one_entry)
{
	map(0, 16);
	use_pages(4, 2);
	use_pages(6, 2); /* right of it */
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(4, 4));
	use_pages(0, 4); /* left of it */
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(0, 8));
	use_pages(10, 2);
	use_pages(8, 2); /* between two: joins what is no longer than itself */
	ck_assert(hits_pages(8, 4));
}
END_TEST

START_TEST(a_long_array_piece_by_piece_is_registered_in_few_steps)
{
	map(0, 256);
	for (unsigned i = 0; i < 256; i++)
		use_pages(i, 1);
	ck_assert_uint_le(adapter.alive, 9);
	ck_assert_uint_le(adapter.pages_made, 256 * 9);
	for (unsigned i = 0; i < 256; i++)
		ck_assert(hits_pages(i, 1));
	/* The same in pieces that are not whole pages, so that each overlaps the one before. */
	ib_cache_close(cache);
	open_with("1024", "1G");
	adapter.pages_made = 0;
	for (unsigned i = 0; i + 1 < 256; i++)
		use(at_page(i) + 2000, PAGE);
	ck_assert_uint_le(adapter.pages_made, 256 * 18);
	for (unsigned i = 0; i + 1 < 256; i++)
		ck_assert(hits(at_page(i) + 2000, PAGE));
}
END_TEST

START_TEST(a_longer_range_takes_in_what_lies_within)
{
	map(0, 32);
	for (unsigned i = 1; i < 30; i += 3)
		use_pages(i, 1);
	use_pages(0, 32);
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(0, 32));
}
END_TEST

START_TEST(the_least_recently_used_goes_when_there_are_too_many)
{
	ib_cache_close(cache);
	open_with("3", "1G");
	map(0, 32);
	use_pages(0, 1);
	use_pages(4, 1);
	use_pages(8, 1);
	ck_assert(hits_pages(0, 1)); /* now the one at 4 is the oldest */
	use_pages(12, 1);
	ck_assert_uint_eq(adapter.alive, 3);
	ck_assert(hits_pages(0, 1));
	ck_assert(hits_pages(8, 1));
	ck_assert(hits_pages(12, 1));
	ck_assert(!hits_pages(4, 1));
}
END_TEST

START_TEST(the_least_recently_used_goes_when_bytes_run_out)
{
	ib_cache_close(cache);
	open_with("1000", "40k");
	map(0, 64);
	use_pages(0, 4);
	use_pages(10, 4);
	use_pages(20, 4);
	ck_assert_uint_eq(adapter.pages_alive, 8);
	ck_assert(hits_pages(10, 4));
	ck_assert(hits_pages(20, 4));
	ck_assert(!hits_pages(0, 4));
	/* More than there may ever be is registered for once, and costs no other its place. */
	unsigned alive = adapter.alive;
	use_pages(30, 11);
	ck_assert_uint_eq(adapter.alive, alive);
	ck_assert(!hits_pages(30, 11));
}
END_TEST

START_TEST(what_is_in_use_never_goes)
{
	ib_cache_close(cache);
	open_with("2", "1G");
	map(0, 32);
	struct ib_cached *a = get(at_page(0), PAGE), *b = get(at_page(4), PAGE), *c = get(at_page(8), PAGE);
	ck_assert_uint_eq(adapter.alive, 3);
	ib_cache_put(c); /* for which there was no place */
	ck_assert_uint_eq(adapter.alive, 2);
	ck_assert(!hits_pages(8, 1));
	ib_cache_put(a);
	use_pages(12, 1);
	ck_assert(hits_pages(4, 1));
	ck_assert(!hits_pages(0, 1));
	ib_cache_put(b);
}
END_TEST

START_TEST(what_is_in_use_may_be_taken_in_by_a_longer_range)
{
	map(0, 8);
	struct ib_cached *a = get(at_page(2), PAGE);
	struct ib_cached *b = get(at_page(0), 8 * PAGE);
	ck_assert_uint_eq(adapter.alive, 2);
	ck_assert(is_current(a, at_page(2), PAGE));
	ib_cache_put(a);
	ck_assert_uint_eq(adapter.alive, 1);
	ib_cache_put(b);
	ck_assert(hits_pages(0, 8));
}
END_TEST

/* ---- uses and refusals ---- */

static int get_for(unsigned page, unsigned n, unsigned uses)
{
	struct ib_cached *cached;
	int error = ib_cache_get(cache, &stats, at_page(page), (size_t)n * PAGE, uses, &cached);
	if (error)
		return error;
	ck_assert_uint_eq(cached->uses & uses, uses);
	ib_cache_put(cached);
	return 0;
}

START_TEST(read_only_memory_can_be_sent_and_later_received_into)
{
	map(0, 8);
	adapter.read_only = (uintptr_t)at_page(1);
	ck_assert_int_eq(get_for(0, 2, IB_USE_SEND), 0);
	ck_assert_int_eq(get_for(0, 2, IB_USE_SEND), 0);
	ck_assert_uint_eq(stats.registration_hits, 1);
	ck_assert_int_eq(get_for(0, 2, IB_USE_RECEIVE), -EFAULT);
	adapter.read_only = 0;
	ck_assert_int_eq(get_for(0, 2, IB_USE_RECEIVE), 0);
	ck_assert_int_eq(get_for(0, 2, IB_USE_SEND | IB_USE_RECEIVE), 0);
	ck_assert_uint_eq(stats.registration_hits, 2);
}
END_TEST

START_TEST(the_peer_may_write_only_where_that_was_asked_for)
{
	map(0, 8);
	struct ib_cached *cached = get(at_page(0), 2 * PAGE);
	ck_assert_uint_eq(cached->uses & IB_USE_REMOTE_WRITE, 0);
	ib_cache_put(cached);
	ck_assert_int_eq(get_for(0, 1, IB_USE_RECEIVE | IB_USE_REMOTE_WRITE), 0);
	ck_assert_uint_eq(stats.registration_misses, 2);
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(0, 2));
	/* Its neighbour does not become writable by touching it. */
	cached = get(at_page(2), 2 * PAGE);
	ck_assert_uint_eq(cached->uses & IB_USE_REMOTE_WRITE, 0);
	ib_cache_put(cached);
}
END_TEST

START_TEST(over_the_limit_what_is_not_in_use_is_given_up)
{
	map(0, 64);
	adapter.pages_most = 10;
	use_pages(0, 4);
	use_pages(10, 4);
	use_pages(20, 4);
	ck_assert_uint_eq(adapter.pages_alive, 4);
	struct ib_cached *used = get(at_page(20), 4 * PAGE);
	ck_assert_int_eq(get_for(30, 7, IB_USE_SEND), -ENOMEM);
	ib_cache_put(used);
	ck_assert_int_eq(get_for(30, 7, IB_USE_SEND), 0);
}
END_TEST

/* How many lines the log has when registering is refused that often. */
static unsigned lines_logged(unsigned times)
{
	FILE *file = tmpfile();
	int saved = dup(2);
	dup2(fileno(file), 2);
	adapter.refuse = -ENOMEM;
	for (unsigned i = 0; i < times; i++)
		ck_assert_int_eq(get_for(i, 1, IB_USE_SEND), -ENOMEM);
	adapter.refuse = 0;
	dup2(saved, 2);
	close(saved);
	rewind(file);
	unsigned lines = 0;
	for (int c; (c = fgetc(file)) != EOF;)
		lines += c == '\n';
	fclose(file);
	return lines;
}

START_TEST(a_refusal_is_an_error_and_logged_once)
{
	map(0, 8);
	ck_assert_uint_eq(lines_logged(5), 1);
	ck_assert_int_eq(get_for(0, 1, IB_USE_SEND), 0);
}
END_TEST

/* ---- memory that goes ---- */

START_TEST(unmapped_memory_leaves_the_cache)
{
	map(0, 16);
	use_pages(0, 16);
	unmap(4, 1);
	sweep();
	ck_assert_uint_eq(adapter.alive, 0);
	map(4, 1);
	ck_assert(!hits_pages(0, 16));
	ck_assert(hits_pages(0, 16));
}
END_TEST

START_TEST(memory_mapped_over_leaves_the_cache)
{
	map(0, 16);
	use_pages(0, 8);
	use_pages(10, 4);
	map(7, 1);
	ck_assert(!hits_pages(0, 8));
	ck_assert(hits_pages(10, 4));
}
END_TEST

START_TEST(moved_memory_leaves_the_cache_at_both_ends)
{
	map(0, 32);
	use_pages(2, 4);
	use_pages(20, 8);
	void *moved = mremap(at_page(2), 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at_page(22));
	ck_assert_ptr_eq(moved, at_page(22));
	note(22, 4, ++generations);
	note(2, 4, 0);
	ck_assert(!hits_pages(20, 8));
	map(2, 4);
	ck_assert(!hits_pages(2, 4));
}
END_TEST

START_TEST(moved_memory_is_watched_where_it_is_now)
{
	map(0, 4);
	use_pages(0, 4);
	void *moved = mremap(at_page(0), 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at_page(40));
	ck_assert_ptr_eq(moved, at_page(40));
	note(40, 8, ++generations);
	use_pages(40, 8);
	ck_assert(hits_pages(40, 8));
	map(47, 1);
	ck_assert(!hits_pages(40, 8));
}
END_TEST

START_TEST(shrunk_and_grown_memory_leaves_the_cache)
{
	map(0, 8);
	use_pages(0, 8);
	ck_assert_ptr_eq(mremap(at_page(0), 8 * PAGE, 4 * PAGE, 0), at_page(0));
	note(4, 4, 0);
	ck_assert_ptr_eq(mremap(at_page(0), 4 * PAGE, 8 * PAGE, 0), at_page(0));
	note(4, 4, ++generations);
	ck_assert(!hits_pages(0, 8));
	ck_assert_ptr_eq(mremap(at_page(0), 8 * PAGE, 4 * PAGE, 0), at_page(0));
	note(4, 4, 0);
	sweep();
	ck_assert_uint_eq(adapter.alive, 0);
}
END_TEST

static void give_back(int advice)
{
	map(0, 16);
	use_pages(0, 16);
	ck_assert_int_eq(madvise(at_page(5), PAGE, advice), 0);
	note(5, 1, ++generations);
	ck_assert(!hits_pages(0, 16));
	ck_assert(hits_pages(0, 16));
}

START_TEST(memory_given_back_leaves_the_cache)
{
	give_back(MADV_DONTNEED);
	give_back(MADV_FREE);
}
END_TEST

START_TEST(memory_below_the_break_leaves_the_cache)
{
	uint8_t *base = sbrk(0);
	base += -(uintptr_t)base % PAGE;
	ck_assert_int_eq(brk(base + 16 * PAGE), 0);
	use(base, 16 * PAGE);
	ck_assert(hits(base, 16 * PAGE));
	ck_assert_int_eq(brk(base + 8 * PAGE), 0);
	sweep();
	ck_assert_uint_eq(adapter.alive, 0);
	ck_assert_int_eq(brk(base + 16 * PAGE), 0);
	ck_assert(!hits(base, 16 * PAGE));
}
END_TEST

#ifndef HR_SANITIZED /* they bring their own malloc */
START_TEST(freed_memory_leaves_the_cache)
{
	uint8_t *big = calloc(1 << 20, 1); /* a mapping of its own, which free unmaps */
	use(big, 1 << 20);
	ck_assert(hits(big, 1 << 20));
	free(big);
	sweep();
	ck_assert_uint_eq(adapter.alive, 0);
	big = calloc(1 << 20, 1);
	ck_assert(!hits(big, 1 << 20));
	big = realloc(big, 64 << 20);
	ck_assert(!hits(big, 1 << 20));
	free(big);
}
END_TEST

START_TEST(trimmed_memory_leaves_the_cache)
{
	enum { BLOCKS = 64, BYTES = 100 << 10 }; /* too small for mappings of their own */
	void *block[BLOCKS];
	for (int i = 0; i < BLOCKS; i++)
		block[i] = calloc(BYTES, 1);
	for (int i = 0; i < BLOCKS; i++)
		use(block[i], BYTES);
	ck_assert_uint_ne(adapter.alive, 0);
	for (int i = BLOCKS; i-- > 0;)
		free(block[i]);
	malloc_trim(0);
	sweep();
	ck_assert_uint_le(adapter.pages_alive, BYTES / PAGE);
}
END_TEST
#endif

START_TEST(memory_that_goes_while_in_use_is_deregistered_by_put)
{
	map(0, 8);
	struct ib_cached *used = get(at_page(0), 8 * PAGE);
	unmap(0, 8);
	sweep();
	ck_assert_uint_eq(adapter.alive, 1);
	map(0, 8);
	ck_assert(!hits_pages(0, 8));
	ib_cache_put(used);
	ck_assert_uint_eq(adapter.alive, 1);
	ck_assert(hits_pages(0, 8));
}
END_TEST

static void replace_page_1(void)
{
	map(1, 1);
}

/* The neighbour that is taken in is not the caller's buffer, so another thread may do with it what it likes. */
START_TEST(a_neighbour_that_goes_while_it_is_registered_is_not_kept)
{
	map(0, 8);
	use_pages(0, 4);
	adapter.meanwhile = replace_page_1;
	use_pages(4, 4);
	ck_assert_ptr_null(adapter.meanwhile);
	ck_assert(!hits_pages(0, 4));
	ck_assert(!hits_pages(4, 4));
	ck_assert(hits_pages(0, 8));
}
END_TEST

static void unmap_page_0(void)
{
	unmap(0, 1);
}

/* Part of a mapping is watched, for page 4 is kept, and another thread changes the mapping while the rest of it is put
 * under watch. */
START_TEST(what_is_kept_stays_watched_when_its_mapping_changes_meanwhile)
{
	map(0, 8);
	use_pages(4, 2);
	ck_assert_ptr_eq(mremap(at_page(0), 8 * PAGE, 16 * PAGE, 0), at_page(0));
	note(8, 8, ++generations);
	behind_watching = unmap_page_0;
	use_pages(12, 2);
	ck_assert_ptr_null(behind_watching);
	ck_assert(hits_pages(4, 2));
	map(4, 2);
	ck_assert(!hits_pages(4, 2));
}
END_TEST

START_TEST(a_mapping_is_not_split_by_being_used)
{
	map(0, 16);
	use_pages(4, 2);
	void *moved = mremap(at_page(0), 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at_page(64));
	ck_assert_ptr_eq(moved, at_page(64));
}
END_TEST

START_TEST(memory_that_can_change_without_a_call_is_not_kept)
{
	int file = memfd_create("memory", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(file, 8 * PAGE), 0);
	static const struct {
		int flags;
		bool file;
	} kinds[] = { { MAP_SHARED | MAP_ANONYMOUS, false }, { MAP_SHARED, true }, { MAP_PRIVATE, true } };
	for (unsigned i = 0; i < 3; i++) {
		void *memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, kinds[i].flags,
				    kinds[i].file ? file : -1, 0);
		ck_assert_ptr_ne(memory, MAP_FAILED);
		use(memory, 8 * PAGE);
		ck_assert_uint_eq(adapter.alive, 0);
		ck_assert(!hits(memory, 8 * PAGE));
		munmap(memory, 8 * PAGE);
	}
	close(file);
}
END_TEST

START_TEST(two_caches_are_both_told)
{
	struct ib_cache *first = cache, *second;
	map(0, 8);
	ck_assert_int_eq(ib_cache_open(NULL, &second), 0);
	use_pages(0, 8);
	cache = second;
	use_pages(0, 8);
	ck_assert(hits_pages(0, 8));
	map(3, 1);
	ck_assert(!hits_pages(0, 8));
	cache = first;
	ck_assert(!hits_pages(0, 8));
	ib_cache_close(second);
	map(3, 1); /* after one of them has gone the other is still told */
	ck_assert(!hits_pages(0, 8));
}
END_TEST

/* ---- other threads ---- */

static void *unmap_and_give_way(void *unused)
{
	(void)unused;
	munmap(at_page(0), 4 * PAGE);
	return NULL;
}

/* Another thread unmaps; this one gets the same addresses the moment they are free, perhaps long before the other's
 * munmap returns, and uses them. */
START_TEST(addresses_freed_by_another_thread_are_not_found_registered)
{
	for (int i = 0; i < 300; i++) {
		map(0, 4);
		use_pages(0, 4);
		pthread_t thread;
		ck_assert_int_eq(pthread_create(&thread, NULL, unmap_and_give_way, NULL), 0);
		void *got;
		do
			got = mmap(at_page(0), 4 * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		while (got == MAP_FAILED);
		note(0, 4, ++generations);
		ck_assert(!hits_pages(0, 4));
		pthread_join(thread, NULL);
	}
}
END_TEST

static unsigned turns_left;

static void *change_other_half(void *unused)
{
	(void)unused;
	unsigned seed = 3;
	while (__atomic_load_n(&turns_left, __ATOMIC_RELAXED)) {
		unsigned page = ARENA_PAGES / 2 + (unsigned)rand_r(&seed) % (ARENA_PAGES / 2 - 8);
		void *at = at_page(page);
		if (rand_r(&seed) % 2)
			mmap(at, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		else
			madvise(at, 8 * PAGE, MADV_DONTNEED);
	}
	return NULL;
}

/* One step of the random test within the first n pages: the model is the generation of each page. The last one gives
 * back what is held. */
static void random_step(unsigned *seed, unsigned n, bool last)
{
	unsigned page = (unsigned)rand_r(seed) % n;
	unsigned len = 1 + (unsigned)rand_r(seed) % 12;
	len = page + len > n ? n - page : len;
	static struct ib_cached *held[4];
	switch (rand_r(seed) % 12) {
	case 0: map(page, len); break;
	case 1: unmap(page, len); map(page, len); break;
	case 2:
		madvise(at_page(page), (size_t)len * PAGE, MADV_DONTNEED);
		note(page, len, ++generations);
		break;
	case 3: { /* a move within, if it does not overlap itself */
		unsigned to = (unsigned)rand_r(seed) % (n - len + 1);
		if (to + len > page && page + len > to)
			break;
		/* Pages of several mappings cannot be moved in one call. */
		for (unsigned i = 0; i < len; i++)
			ck_assert_ptr_eq(mremap(at_page(page + i), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
						at_page(to + i)), at_page(to + i));
		note(to, len, ++generations);
		map(page, len);
		break;
	}
	case 4: {
		struct ib_cached **slot = &held[rand_r(seed) % 4];
		if (*slot)
			ib_cache_put(*slot);
		*slot = rand_r(seed) % 2 ? get(at_page(page), (size_t)len * PAGE) : NULL;
		break;
	}
	default: use(at_page(page) + 5, (size_t)len * PAGE - 10); break;
	}
	if (last)
		for (int i = 0; i < 4; i++) {
			if (held[i])
				ib_cache_put(held[i]);
			held[i] = NULL;
		}
}

static void random_turns(unsigned seed, unsigned turns, unsigned n)
{
	map(0, ARENA_PAGES);
	__atomic_store_n(&turns_left, turns, __ATOMIC_RELAXED);
	for (; turns > 0; turns--) {
		random_step(&seed, n, turns == 1);
		__atomic_store_n(&turns_left, turns - 1, __ATOMIC_RELAXED);
	}
	ck_assert_uint_gt(stats.registration_hits, 50);
	ck_assert_uint_gt(stats.registration_misses, 50);
}

START_TEST(at_random_every_page_handed_out_is_the_one_that_is_there)
{
	ib_cache_close(cache);
	open_with("20", "512k");
	random_turns((unsigned)_i + 1, 20000, 96);
}
END_TEST

START_TEST(at_random_beside_another_thread_too)
{
	map(0, ARENA_PAGES);
	turns_left = 1;
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, NULL, change_other_half, NULL), 0);
	random_turns(99, 5000, ARENA_PAGES / 2);
	pthread_join(thread, NULL);
}
END_TEST

/* ---- fork ---- */

static int in_child(int (*body)(void))
{
	fflush(NULL);
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(body());
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static struct ib_cached *parents;

static int child_of_the_parents(void)
{
	struct ib_cached *cached;
	if (ib_cache_get(cache, &stats, at_page(0), PAGE, IB_USE_SEND, &cached) != -ECHILD)
		return 1;
	munmap(at_page(2), PAGE); /* must neither hang nor be told to the parent */
	ib_cache_put(parents);
	unsigned alive = adapter.alive;
	ib_cache_sweep(cache);
	ib_cache_close(cache);
	return adapter.alive == alive ? 0 : 2;
}

START_TEST(a_child_leaves_the_parents_registrations_alone)
{
	map(0, 8);
	parents = get(at_page(0), 8 * PAGE);
	use_pages(0, 8);
	ck_assert_int_eq(in_child(child_of_the_parents), 0);
	ib_cache_put(parents);
	ck_assert(hits_pages(0, 8));
	map(1, 1);
	ck_assert(!hits_pages(0, 8));
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* which has no threads after the fork of a process with threads */
static int child_of_its_own(void)
{
	if (ib_cache_open(NULL, &cache))
		return 1;
	use_pages(0, 8);
	if (!hits_pages(0, 8))
		return 2;
	map(3, 1);
	if (hits_pages(0, 8))
		return 3;
	ib_cache_close(cache);
	return 0;
}

START_TEST(a_child_may_have_a_cache_of_its_own)
{
	map(0, 8);
	use_pages(0, 8);
	ck_assert_int_eq(in_child(child_of_its_own), 0);
	ck_assert(hits_pages(0, 8));
}
END_TEST
#endif

/* The child still has the descriptor of the watch, so the parent's close does not end it. */
START_TEST(memory_can_be_unmapped_when_only_a_child_has_the_watch)
{
	map(0, 8);
	use_pages(0, 8);
	void *moved = mremap(at_page(0), 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at_page(32));
	ck_assert_ptr_eq(moved, at_page(32));
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	ib_cache_close(cache);
	munmap(at_page(32), 8 * PAGE);
	munmap(at_page(40), 8 * PAGE);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	open_with("1", "1M");
}
END_TEST

/* ---- without the mechanism ---- */

static void forbid_userfaultfd(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof rules / sizeof *rules, rules };
	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void every_use_registers(void)
{
	map(0, 8);
	use_pages(0, 8);
	ck_assert_uint_eq(adapter.alive, 0);
	ck_assert(!hits_pages(0, 8));
	struct ib_cached *a = get(at_page(0), PAGE), *b = get(at_page(0), PAGE);
	ck_assert_uint_eq(adapter.alive, 2);
	ib_cache_put(a);
	ib_cache_put(b);
	ck_assert_uint_eq(adapter.alive, 0);
}

START_TEST(without_userfaultfd_every_use_registers)
{
	ib_cache_close(cache);
	forbid_userfaultfd();
	open_with("1024", "1G");
	every_use_registers();
}
END_TEST

START_TEST(with_a_budget_of_nothing_every_use_registers)
{
	ib_cache_close(cache);
	open_with("0", "1G");
	every_use_registers();
	ib_cache_close(cache);
	open_with("100", "0");
	every_use_registers();
}
END_TEST

/* ---- the kernel's list of mappings ---- */

START_TEST(both_ways_to_ask_for_a_mapping_agree)
{
	int maps = open("/proc/self/maps", O_RDONLY);
	unsigned n = 0, private = 0;
	map(0, 2);
	map(4, 2);
	mprotect(at_page(5), PAGE, PROT_READ);
	struct ib_mapping query, text;
	uintptr_t at[] = { (uintptr_t)at_page(0), (uintptr_t)at_page(1) + 9, (uintptr_t)at_page(2),
			   (uintptr_t)at_page(4), (uintptr_t)at_page(5), (uintptr_t)&n, (uintptr_t)every_use_registers,
			   (uintptr_t)sbrk(0) - 1, (uintptr_t)strlen, 4096 };
	for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
		int error = ib_maps_find(maps, at[i], &query);
		ck_assert_int_eq(ib_maps_find_text(maps, at[i], &text), error);
		if (error)
			continue;
		ck_assert_uint_eq(query.start, text.start);
		ck_assert_uint_eq(query.end, text.end);
		ck_assert_int_eq(query.private_anonymous, text.private_anonymous);
		ck_assert(at[i] >= query.start && at[i] < query.end);
		n++;
		private += query.private_anonymous;
	}
	ck_assert_uint_ge(n, 7);
	ck_assert(private >= 4 && private < n);
	ck_assert_int_eq(ib_maps_find(maps, (uintptr_t)at_page(2), &query), -ENOENT);
	close(maps);
}
END_TEST

/* ---- */

static bool is_told(void)
{
	struct ib_memory_user user = { .next = NULL };
	if (ib_memory_join(&user))
		return false;
	ib_memory_leave(&user);
	return true;
}

static void add_keeping(TCase *tests)
{
	tcase_add_test(tests, what_was_used_is_found_registered);
	tcase_add_test(tests, neighbours_become_one_entry);
	tcase_add_test(tests, a_long_array_piece_by_piece_is_registered_in_few_steps);
	tcase_add_test(tests, a_longer_range_takes_in_what_lies_within);
	tcase_add_test(tests, the_least_recently_used_goes_when_there_are_too_many);
	tcase_add_test(tests, the_least_recently_used_goes_when_bytes_run_out);
	tcase_add_test(tests, what_is_in_use_never_goes);
	tcase_add_test(tests, what_is_in_use_may_be_taken_in_by_a_longer_range);
	tcase_add_test(tests, read_only_memory_can_be_sent_and_later_received_into);
	tcase_add_test(tests, the_peer_may_write_only_where_that_was_asked_for);
	tcase_add_test(tests, over_the_limit_what_is_not_in_use_is_given_up);
}

static void add_going(TCase *tests)
{
	tcase_add_test(tests, unmapped_memory_leaves_the_cache);
	tcase_add_test(tests, memory_mapped_over_leaves_the_cache);
	tcase_add_test(tests, moved_memory_leaves_the_cache_at_both_ends);
	tcase_add_test(tests, moved_memory_is_watched_where_it_is_now);
	tcase_add_test(tests, shrunk_and_grown_memory_leaves_the_cache);
	tcase_add_test(tests, memory_given_back_leaves_the_cache);
	tcase_add_test(tests, memory_below_the_break_leaves_the_cache);
#ifndef HR_SANITIZED
	tcase_add_test(tests, freed_memory_leaves_the_cache);
	tcase_add_test(tests, trimmed_memory_leaves_the_cache);
#endif
	tcase_add_test(tests, memory_that_goes_while_in_use_is_deregistered_by_put);
	tcase_add_test(tests, a_neighbour_that_goes_while_it_is_registered_is_not_kept);
	tcase_add_test(tests, what_is_kept_stays_watched_when_its_mapping_changes_meanwhile);
	tcase_add_test(tests, a_mapping_is_not_split_by_being_used);
	tcase_add_test(tests, memory_that_can_change_without_a_call_is_not_kept);
	tcase_add_test(tests, two_caches_are_both_told);
	tcase_add_test(tests, addresses_freed_by_another_thread_are_not_found_registered);
	tcase_add_loop_test(tests, at_random_every_page_handed_out_is_the_one_that_is_there, 0, 4);
	tcase_add_test(tests, at_random_beside_another_thread_too);
	tcase_add_test(tests, a_child_leaves_the_parents_registrations_alone);
#ifndef __SANITIZE_THREAD__
	tcase_add_test(tests, a_child_may_have_a_cache_of_its_own);
#endif
	tcase_add_test(tests, memory_can_be_unmapped_when_only_a_child_has_the_watch);
}

static TCase *new_case(const char *name)
{
	TCase *tests = tcase_create(name);
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, make_arena, close_cache);
	return tests;
}

int main(void)
{
	setenv("HEADRACE_LOG", "warn", 1); /* read at the first message */
	bool told = is_told();
	Suite *suite = suite_create("verbs_cache");
	TCase *always = new_case("always");
	tcase_add_test(always, a_range_that_wraps_or_is_empty_is_refused);
	tcase_add_test(always, a_refusal_is_an_error_and_logged_once);
	tcase_add_test(always, without_userfaultfd_every_use_registers);
	tcase_add_test(always, with_a_budget_of_nothing_every_use_registers);
	tcase_add_test(always, both_ways_to_ask_for_a_mapping_agree);
	suite_add_tcase(suite, always);
	if (told) {
		TCase *keeping = new_case("keeping"), *going = new_case("going");
		add_keeping(keeping);
		add_going(going);
		suite_add_tcase(suite, keeping);
		suite_add_tcase(suite, going);
	}
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	if (!failed && !told) {
		puts("userfaultfd is not allowed here: what the cache keeps was not tested");
		return 77;
	}
	return failed ? 1 : 0;
}
