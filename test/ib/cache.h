/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the tests of the registration cache: a double of the adapter, and an arena of addresses that the tests map
 * and unmap. Each page of the arena has a generation: a number that the test changes whenever it changes the memory. A
 * registration records the generation of each page. So if the cache returns a registration of memory that is gone, the
 * test detects it.
 */
#ifndef HR_TEST_VERBS_CACHE_H
#define HR_TEST_VERBS_CACHE_H

#include "ib/ib_cache.h"

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGE = 4096, ARENA_PAGES = 256 };

struct cache_adapter {
	unsigned alive, made;      /* number of registrations that exist, that were made */
	uint64_t pages_alive;      /* number of pages in them */
	uint64_t pages_made;
	uint64_t pages_most;       /* maximum number of pages, beyond it -ENOMEM; 0: no limit */
	uintptr_t read_only;       /* this page cannot be registered for receiving */
	int refuse;                /* negated errno value for every registration; 0: none */
	void (*meanwhile)(void);   /* called once during a registration, after the pages have been looked up */
};

extern struct cache_adapter adapter;
extern uint8_t *arena;       /* addresses that tests map and unmap */
extern uint64_t generations; /* the last generation */
extern struct ib_cache *cache;
extern hr_conn_stats_t stats;
/* Called once, just after a mapping has been registered with userfaultfd. */
extern void (*behind_watching)(void);

/* For this many checks, the kernel's answer is that a change is in progress whose event was not read. Atomic. */
extern unsigned changing_for;
/* Number of these checks. Atomic. */
extern unsigned asked_changing;

void open_with(const char *entries, const char *bytes);
/* The fixture. */
void make_arena(void);
void close_cache(void);

uint8_t *at_page(unsigned page);
/* Sets the generation of these pages. */
void note(unsigned page, unsigned n, uint64_t value);
/* Maps new memory at pages of the arena, in place of the old memory. */
void map(unsigned page, unsigned n);
void unmap(unsigned page, unsigned n);

/* Returns whether the registration has the current generation of every page of the range. */
bool is_current(const struct ib_cached *cached, const void *address, size_t len);
/* Gets a registration for sending, and checks that it is current. */
struct ib_cached *get(const void *address, size_t len);
void use(const void *address, size_t len);
void use_pages(unsigned page, unsigned n);
/* Use the memory, and return whether that was a hit in the cache. */
bool hits(const void *address, size_t len);
bool hits_pages(unsigned page, unsigned n);
/* Registers pages and releases them. Returns the cache's error. */
int get_for(unsigned page, unsigned n, unsigned uses);
/* Deregisters entries whose memory is lost. */
void sweep(void);

/* The tests, by file. */
void add_keeping(TCase *tests);
void add_going(TCase *tests);
void add_forking(TCase *tests);

#endif
