/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache of a channel's device: keeps the user's memory registered from one transfer to the next, as
 * registering memory costs more than sending a few pages.
 *
 *	struct ib_cached *cached;
 *	int error = ib_cache_get(cache, stats, address, len, IB_USE_SEND, &cached);
 *	... post requests with cached->lkey, or send cached->rkey to the peer; if error: copy instead ...
 *	ib_cache_put(cached);      (when no request of this side or of the peer uses the memory any more)
 *
 * Entries are ranges of whole pages. A miss merges the new range with kept entries that touch it and are no longer than
 * it. So a long array that is sent piece by piece becomes few entries, and each page is registered again at most log(n)
 * times for an array of n pieces. No entry lies within another. So starts and ends are in the same order, and one
 * binary search finds the entry that covers a range. If HEADRACE_IB_CACHE_ENTRIES or HEADRACE_IB_CACHE_BYTES would be
 * exceeded, or the system refuses to register more, the least recently used entries are dropped; an entry between get
 * and put never is.
 *
 * After memory was unmapped, moved, replaced or given back to the kernel, no get finds its entry (ib_memory.h says
 * how); the memory stays pinned until the next get or sweep. No entry is kept, so that each get registers and each put
 * deregisters, in these cases: - the kernel does not report such calls, or not for this memory (it does only for
 * private anonymous memory); - the peer may write the memory, and HEADRACE_IB_KEEP_EXPOSED is not set: the put then
 * makes the peer's key invalid; - other threads change memory without a pause, so that ib_memory_settle has failed.
 *
 * Threads: a cache belongs to its channel's thread. The entries are protected by the lock of ib_memory.h. In a forked
 * child get fails with -ECHILD, and put and close leave the parent's registrations alone.
 */
#ifndef IB_CACHE_H
#define IB_CACHE_H

#include "headrace/channel.h"
#include "ib/ib_register.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ib_cache;

/* A range of registered memory. The caller may read the keys; all other fields belong to the cache. */
struct ib_cached {
	uint32_t lkey, rkey;

	struct ib_cache *cache;
	struct ib_registration registration;
	uintptr_t start, end; /* whole pages; covers the requested range */
	unsigned uses;        /* set of IB_USE_* that it is registered for */
	unsigned users;       /* number of gets without a put yet */
	bool kept;            /* in the cache; if not, its last put deregisters it */
	struct ib_cached *older, *newer; /* kept: neighbours by last use; free or doomed: older links the list */
};

/* Makes the cache of a device. -EINVAL: a setting is out of range. */
int ib_cache_open(struct ib_device *device, struct ib_cache **cache);
/* Deregisters everything and frees the cache. No entry may be in use. cache may be NULL. */
void ib_cache_close(struct ib_cache *cache);

/*
 * Registers len > 0 bytes at address for all of `uses`, or finds them registered. *cached is valid until ib_cache_put.
 * A hit costs a binary search, a lock and one short system call, and does not allocate. Counts in stats
 * (registration_hits, registration_misses).
 * An error means that the memory cannot be registered (-ENOMEM: over the limit of locked memory; -EFAULT: unsuitable
 * memory; and others): copy instead. The first error of a cache is logged.
 */
int ib_cache_get(struct ib_cache *cache, hr_conn_stats_t *stats, const void *address, size_t len, unsigned uses,
		 struct ib_cached **cached);
void ib_cache_put(struct ib_cached *cached);

/* Deregisters all kept entries that are not in use. Call it if registering other memory was refused. */
void ib_cache_give_up(struct ib_cache *cache);

/* Deregisters entries whose memory was lost since the last get or put. Cheap if there are none. Call it before going to
 * sleep, so that memory that the user gave back does not stay pinned. */
void ib_cache_sweep(struct ib_cache *cache);

#endif
