/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of the registration cache share: an adapter that they bring themselves, whose registrations remember
 * for each page which memory lay there (a number that the test changes whenever it changes the memory), so that a
 * registration that outlived its memory is found out when the cache hands it out; and a part of the address space.
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
	unsigned alive, made;      /* registrations */
	uint64_t pages_alive;      /* in them */
	uint64_t pages_made;
	uint64_t pages_most;       /* -ENOMEM beyond; 0: no limit */
	uintptr_t read_only;       /* this page cannot be registered for receiving */
	int refuse;                /* a negated errno for everything */
	void (*meanwhile)(void);   /* called once, when pages have been found and before registering returns */
};

extern struct cache_adapter adapter;
extern uint8_t *arena;       /* addresses that tests map and unmap */
extern uint64_t generations; /* memory ever put into the arena */
extern struct ib_cache *cache;
extern hr_conn_stats_t stats;
/* Called once, when a mapping has just been put under watch. */
extern void (*behind_watching)(void);

/* So many times, the kernel says that a change is under way whose event was not read. Atomic. */
extern unsigned changing_for;
/* Times that it was asked whether there is one. Atomic. */
extern unsigned asked_changing;

void open_with(const char *entries, const char *bytes);
/* The fixture. */
void make_arena(void);
void close_cache(void);

uint8_t *at_page(unsigned page);
/* That there is other memory in these pages now. */
void note(unsigned page, unsigned n, uint64_t value);
/* Fresh memory at pages of the arena, in place of what was there. */
void map(unsigned page, unsigned n);
void unmap(unsigned page, unsigned n);

/* Is every page that was asked for registered as it is now? */
bool is_current(const struct ib_cached *cached, const void *address, size_t len);
/* A registration, for sending, that covers the memory as it is now. */
struct ib_cached *get(const void *address, size_t len);
void use(const void *address, size_t len);
void use_pages(unsigned page, unsigned n);
/* Does using it hit? */
bool hits(const void *address, size_t len);
bool hits_pages(unsigned page, unsigned n);
/* Registers and gives back; the cache's error. */
int get_for(unsigned page, unsigned n, unsigned uses);
/* What has gone so far is deregistered. */
void sweep(void);

/* The tests, by file. */
void add_keeping(TCase *tests);
void add_going(TCase *tests);
void add_forking(TCase *tests);

#endif
