/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache of a channel's device: keeps the user's memory registered from one transfer to the next, as
 * registering costs more than sending what fits into a few pages.
 *
 *	struct ib_cached *cached;
 *	int error = ib_cache_get(cache, stats, address, len, IB_USE_SEND, &cached);
 *	... post requests with cached->lkey, or send cached->rkey to the peer; if error: copy instead ...
 *	ib_cache_put(cached);      (when no request of ours or the peer's uses the memory any more)
 *
 * Entries are ranges of whole pages. A miss takes in the neighbours that touch it and are no longer than what is being
 * registered, so that a long array sent piece by piece becomes few entries, and each page is registered again at most
 * as often as the logarithm of the array's length. No entry lies within another; so starts and ends are in the same
 * order, and the entry that covers a range is found by one binary search. What was not used for longest goes first when
 * HEADRACE_IB_CACHE_ENTRIES or HEADRACE_IB_CACHE_BYTES would be exceeded, or when the system refuses to register more;
 * what is between get and put never does.
 *
 * Memory that is unmapped, moved, replaced or given back to the kernel is not found by any get after that (ib_memory.h
 * says how; it stays pinned until the next get or sweep). Where the kernel does not tell us of such calls, and for
 * memory that it does not tell us about (all but private anonymous memory), nothing is kept: each get registers and
 * each put deregisters. So it is with memory that the peer may write, unless HEADRACE_IB_KEEP_EXPOSED says otherwise:
 * with the put the peer's key is worth nothing any more. So does a get that has waited in vain for a moment in which
 * all changes have been told, as other threads change memory without a pause.
 *
 * Threads: a cache belongs to its channel's thread. Inside, entries are protected by the lock of ib_memory.h.
 * After a fork the child's get fails with -ECHILD, its put and close leave the parent's registrations alone.
 */
#ifndef IB_CACHE_H
#define IB_CACHE_H

#include "headrace/channel.h"
#include "ib/ib_register.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ib_cache;

/* Registered memory in use. The keys are the caller's to read; the rest is the cache's. */
struct ib_cached {
	uint32_t lkey, rkey;

	struct ib_cache *cache;
	struct ib_registration registration;
	uintptr_t start, end; /* whole pages; covers what was asked for */
	unsigned uses;        /* set of IB_USE_* it is registered for */
	unsigned users;       /* gets without their put yet */
	bool kept;            /* in the cache; else gone with its last put */
	struct ib_cached *older, *newer; /* by use, while kept; older alone links the free and the doomed ones */
};

/* Makes the cache of a device. Settings out of range: -EINVAL. */
int ib_cache_open(struct ib_device *device, struct ib_cache **cache);
/* Deregisters everything. Nothing may be in use any more. NULL is allowed. */
void ib_cache_close(struct ib_cache *cache);

/*
 * Registers len > 0 bytes at address, or finds them registered, for all the uses. *cached is good until ib_cache_put,
 * whatever else is done with the cache. A hit costs a binary search, a lock and one short system call; no
 * allocation. Counts in stats (registration_hits, registration_misses).
 * Any error means that the memory cannot be registered (-ENOMEM over the limit of locked memory, -EFAULT for memory
 * that cannot be used so, and others): copy instead. The first one of a cache is logged.
 */
int ib_cache_get(struct ib_cache *cache, hr_conn_stats_t *stats, const void *address, size_t len, unsigned uses,
		 struct ib_cached **cached);
void ib_cache_put(struct ib_cached *cached);

/* Deregisters all that is kept and not in use: for who has to register other memory and is refused. */
void ib_cache_give_up(struct ib_cache *cache);

/* Deregisters what was found to be gone since the last get or put; cheap when there is nothing. To be called before
 * going to sleep, so that memory the user gave back does not stay pinned. */
void ib_cache_sweep(struct ib_cache *cache);

#endif
