/* SPDX-License-Identifier: BSD-3-Clause */
/* Registration cache: keeps memory regions until the kernel reports that the memory was unmapped. */
#include "config.h"

#include "ib/ib_cache.h"

#include "ib/ib_memory.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

HR_SETTING(entries_setting, "HEADRACE_IB_CACHE_ENTRIES", "1024", 0, 65536,
	   "verbs: registration cache: maximum entries; 0: no cache");
HR_SETTING(bytes_setting, "HEADRACE_IB_CACHE_BYTES", "1G", 0, 1ull << 50,
	   "verbs: registration cache: maximum bytes; 0: no cache");
HR_SETTING(exposed_setting, "HEADRACE_IB_KEEP_EXPOSED", "0", 0, 1,
	   "verbs: 1: keep memory exposed for remote writes registered, and writable by the peer, while it is cached");

struct ib_cache {
	struct ib_memory_user user; /* first field: `lost` casts it back to struct ib_cache */
	struct ib_device *device;
	uintptr_t page;
	pid_t owner;
	bool watched; /* changes of memory are reported (ib_memory.h); if not, no entry is kept */
	bool keeps_exposed; /* entries with IB_USE_REMOTE_WRITE are kept too */
	bool refused; /* a registration was refused, and that was logged */

	/* If watched: the fields from here to window_lost may be used only with the lock of ib_memory.h held. */
	struct ib_cached **kept; /* ordered by start, and so by end */
	size_t n_kept, most_kept;
	uint64_t bytes, most_bytes; /* of the kept entries */
	struct ib_cached *oldest, *newest; /* by last use */
	struct ib_cached *doomed; /* entries that are neither kept nor used: to be deregistered */
	/* The range being registered, and whether memory in it was lost since; start == end: none. */
	uintptr_t window_start, window_end;
	bool window_lost;

	struct ib_cached *spare; /* free structures; used by the channel's thread only, without the lock */
};

static void lock(const struct ib_cache *cache)
{
	if (cache->watched)
		ib_memory_lock();
}

static void unlock(const struct ib_cache *cache)
{
	if (cache->watched)
		ib_memory_unlock();
}

/* Returns whether this process opened the cache, and is not a forked child. Makes a system call only if every get
 * registers memory anyway. */
static bool is_ours(const struct ib_cache *cache)
{
	return cache->watched ? ib_memory_is_here(&cache->user) : getpid() == cache->owner;
}

/* ---- the order of use ---- */

static void use_unlink(struct ib_cache *cache, struct ib_cached *entry)
{
	*(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
	*(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
}

static void use_newest(struct ib_cache *cache, struct ib_cached *entry)
{
	entry->older = cache->newest;
	entry->newer = NULL;
	*(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
	cache->newest = entry;
}

/* ---- the kept entries ---- */

/* Returns the index of the first kept entry that ends after the address. */
static size_t first_after(const struct ib_cache *cache, uintptr_t at)
{
	size_t low = 0, high = cache->n_kept;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (cache->kept[middle]->end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Returns the kept entry that covers a range, or NULL. No entry lies within another, so of all entries that reach the
 * end of the range, the first has the lowest start. */
static struct ib_cached *covering(const struct ib_cache *cache, uintptr_t start, uintptr_t end)
{
	size_t i = first_after(cache, end - 1);
	return i < cache->n_kept && cache->kept[i]->start <= start ? cache->kept[i] : NULL;
}

/* Takes kept[first..last-1] out of the cache. Entries in use are deregistered by their last put, the others by the next
 * sweep. */
static void drop(struct ib_cache *cache, size_t first, size_t last)
{
	for (size_t i = first; i < last; i++) {
		struct ib_cached *entry = cache->kept[i];
		use_unlink(cache, entry);
		cache->bytes -= entry->end - entry->start;
		entry->kept = false;
		if (entry->users == 0) {
			entry->older = cache->doomed;
			/* Relaxed: see ib_cache_sweep. */
			__atomic_store_n(&cache->doomed, entry, __ATOMIC_RELAXED);
		}
	}
	memmove(cache->kept + first, cache->kept + last, (cache->n_kept - last) * sizeof *cache->kept);
	cache->n_kept -= last - first;
}

static void drop_one(struct ib_cache *cache, const struct ib_cached *entry)
{
	size_t i = first_after(cache, entry->end - 1);
	drop(cache, i, i + 1);
}

/* Drops the least recently used entries until there is room for one entry of that size. */
static bool make_room(struct ib_cache *cache, uint64_t bytes)
{
	struct ib_cached *entry = cache->oldest;
	if (bytes > cache->most_bytes)
		return false;
	while (cache->n_kept >= cache->most_kept || cache->bytes + bytes > cache->most_bytes) {
		while (entry && entry->users > 0)
			entry = entry->newer;
		if (!entry)
			return false;
		struct ib_cached *newer = entry->newer;
		drop_one(cache, entry);
		entry = newer;
	}
	return true;
}

void ib_cache_give_up(struct ib_cache *cache)
{
	if (!is_ours(cache))
		return;
	lock(cache);
	for (size_t i = cache->n_kept; i-- > 0;)
		if (cache->kept[i]->users == 0)
			drop(cache, i, i + 1);
	unlock(cache);
	ib_cache_sweep(cache);
}

/* Called by ib_memory.c, in any thread, with the lock held. */
static void lost(struct ib_memory_user *user, uintptr_t start, uintptr_t end)
{
	struct ib_cache *cache = (struct ib_cache *)user;
	size_t first = first_after(cache, start), last = first;
	while (last < cache->n_kept && cache->kept[last]->start < end)
		last++;
	drop(cache, first, last);
	if (start < cache->window_end && cache->window_start < end)
		cache->window_lost = true;
}

/* ---- opening and closing ---- */

static int read_settings(struct ib_cache *cache)
{
	uint64_t entries, bytes, exposed;
	int error = hr_setting_u64(&entries_setting, &entries);
	if (!error)
		error = hr_setting_u64(&bytes_setting, &bytes);
	if (!error)
		error = hr_setting_u64(&exposed_setting, &exposed);
	if (error)
		return error;
	cache->keeps_exposed = exposed;
	cache->most_kept = (size_t)entries;
	cache->most_bytes = bytes;
	return 0;
}

int ib_cache_open(struct ib_device *device, struct ib_cache **cache)
{
	struct ib_cache *made = calloc(1, sizeof *made);
	if (!made)
		return -ENOMEM;
	int error = read_settings(made);
	made->kept = error ? NULL : calloc(made->most_kept + 1, sizeof(struct ib_cached *));
	if (!made->kept) {
		free(made);
		return error ? error : -ENOMEM;
	}
	made->device = device;
	made->page = (uintptr_t)sysconf(_SC_PAGESIZE);
	made->owner = getpid();
	made->user.lost = lost;
	if (made->most_kept > 0 && made->most_bytes > 0 && ib_register_survives_fork())
		made->watched = !ib_memory_join(&made->user);
	*cache = made;
	return 0;
}

static void free_list(struct ib_cached *list)
{
	while (list) {
		struct ib_cached *next = list->older;
		free(list);
		list = next;
	}
}

void ib_cache_close(struct ib_cache *cache)
{
	if (!cache)
		return;
	ib_cache_give_up(cache);
	ib_memory_leave(&cache->user);
	/* In a forked child these are copies of the parent's structures. */
	for (size_t i = 0; i < cache->n_kept; i++)
		free(cache->kept[i]);
	free_list(cache->doomed);
	free_list(cache->spare);
	free(cache->kept);
	free(cache);
}

void ib_cache_sweep(struct ib_cache *cache)
{
	/* Relaxed: if an entry is not seen now, a later call sees it. The list itself is taken with the lock held. */
	if (!__atomic_load_n(&cache->doomed, __ATOMIC_RELAXED) || !is_ours(cache))
		return;
	lock(cache);
	struct ib_cached *list = cache->doomed;
	__atomic_store_n(&cache->doomed, NULL, __ATOMIC_RELAXED);
	unlock(cache);
	/* Without the lock: deregistering may unmap memory. munmap(2) then waits for the reader of ib_memory.c, which
	 * may be waiting for the lock. */
	while (list) {
		struct ib_cached *next = list->older;
		ib_deregister(&list->registration);
		list->older = cache->spare;
		cache->spare = list;
		list = next;
	}
}

/* ---- a hit ---- */

/* Finds a kept entry. Call it when all changes of memory have been reported (ib_memory_settle). */
static struct ib_cached *take_kept(struct ib_cache *cache, uintptr_t start, uintptr_t end, unsigned uses)
{
	lock(cache);
	struct ib_cached *entry = covering(cache, start, end);
	if (entry && (entry->uses & uses) == uses) {
		entry->users++;
		if (entry->newer) {
			use_unlink(cache, entry);
			use_newest(cache, entry);
		}
	} else {
		entry = NULL;
	}
	unlock(cache);
	return entry;
}

/* ---- a miss ---- */

/* Widens the new entry by kept entries that touch it, and drops those. */
static void take_in(struct ib_cache *cache, struct ib_cached *made)
{
	size_t i = first_after(cache, made->start - 1); /* the first entry that ends at made->start or later */
	while (i < cache->n_kept && cache->kept[i]->start <= made->end) {
		const struct ib_cached *near = cache->kept[i];
		uintptr_t start = near->start < made->start ? near->start : made->start;
		uintptr_t end = near->end > made->end ? near->end : made->end;
		bool within = start == made->start && end == made->end;
		if (within || (near->uses == made->uses && near->end - near->start <= made->end - made->start &&
			       end - start <= cache->most_bytes)) {
			made->start = start;
			made->end = end;
			made->uses |= near->uses;
			drop(cache, i, i + 1);
			i = first_after(cache, made->start - 1);
		} else {
			i++;
		}
	}
}

/* Decides which range to register for the requested range, and makes room. False: the entry will not be kept. */
static bool plan(struct ib_cache *cache, struct ib_cached *made)
{
	lock(cache);
	/* If the range is registered, but not for these uses: register that whole entry again, for all uses. */
	struct ib_cached *narrow = covering(cache, made->start, made->end);
	if (narrow) {
		made->start = narrow->start;
		made->end = narrow->end;
		made->uses |= narrow->uses;
		drop_one(cache, narrow);
	}
	take_in(cache, made);
	bool keep = make_room(cache, made->end - made->start);
	cache->window_start = made->start;
	cache->window_end = keep ? made->end : made->start;
	cache->window_lost = false;
	unlock(cache);
	ib_cache_sweep(cache);
	return keep;
}

/* Puts the new entry into the cache, unless its memory may have been unmapped since. */
static void keep_entry(struct ib_cache *cache, struct ib_cached *made)
{
	bool settled = ib_memory_settle();
	lock(cache);
	if (settled && !cache->window_lost && !covering(cache, made->start, made->end)) {
		size_t first = first_after(cache, made->start), last = first;
		while (first < cache->n_kept && cache->kept[first]->start < made->start)
			first++;
		for (last = first; last < cache->n_kept && cache->kept[last]->end <= made->end;)
			last++;
		drop(cache, first, last);
		memmove(cache->kept + first + 1, cache->kept + first,
			(cache->n_kept - first) * sizeof(struct ib_cached *));
		cache->kept[first] = made;
		cache->n_kept++;
		cache->bytes += made->end - made->start;
		made->kept = true;
		use_newest(cache, made);
	}
	cache->window_end = cache->window_start;
	unlock(cache);
}

static int register_range(struct ib_cached *made, uintptr_t start, uintptr_t end, unsigned uses)
{
	made->start = start;
	made->end = end;
	made->uses = uses;
	return ib_register(made->cache->device, start, end - start, uses, &made->registration);
}

/* Registers the planned range. If that is refused, gives up all unused entries and registers the requested range only.
 * If that is refused too, registers it for the requested uses only, as memory to be sent may be read-only. */
static int register_entry(struct ib_cached *made, uintptr_t start, uintptr_t end, unsigned uses)
{
	unsigned most = made->uses;
	int error = register_range(made, made->start, made->end, most);
	if (error && error != -EFAULT && error != -EACCES)
		ib_cache_give_up(made->cache);
	if (error)
		error = register_range(made, start, end, most);
	if (error && most != uses)
		error = register_range(made, start, end, uses);
	return error;
}

static struct ib_cached *entry_new(struct ib_cache *cache)
{
	struct ib_cached *entry = cache->spare;
	if (entry)
		cache->spare = entry->older;
	else
		entry = malloc(sizeof *entry);
	if (entry)
		*entry = (struct ib_cached){ .cache = cache, .users = 1 };
	return entry;
}

static void entry_free(struct ib_cached *entry)
{
	entry->older = entry->cache->spare;
	entry->cache->spare = entry;
}

static void log_refusal(struct ib_cache *cache, size_t len, int error)
{
	if (cache->refused)
		return;
	cache->refused = true;
	hr_log(HR_LOG_WARN, "verbs: cannot register %zu bytes, copying them instead: %s%s", len, strerror(-error),
	       error == -ENOMEM ? " (see ulimit -l)" : "");
}

/* A miss. If may_keep is false, registers the range for this one use, and leaves the kept entries as they are. */
static int take_new(struct ib_cache *cache, uintptr_t start, uintptr_t end, unsigned uses, bool may_keep,
		    struct ib_cached **cached)
{
	struct ib_cached *made = entry_new(cache);
	if (!made)
		return -ENOMEM;
	made->start = start;
	made->end = end;
	made->uses = may_keep ? uses | IB_USE_SEND | IB_USE_RECEIVE : uses;
	bool keep = may_keep && plan(cache, made) && !ib_memory_watch(made->start, made->end);
	if (!keep) {
		made->start = start;
		made->end = end;
	}
	int error = register_entry(made, start, end, uses);
	if (error) {
		log_refusal(cache, end - start, error);
		entry_free(made);
		return error;
	}
	made->lkey = made->registration.lkey;
	made->rkey = made->registration.rkey;
	if (keep)
		keep_entry(cache, made);
	*cached = made;
	return 0;
}

/* ---- the interface ---- */

int ib_cache_get(struct ib_cache *cache, hr_conn_stats_t *stats, const void *address, size_t len, unsigned uses,
		 struct ib_cached **cached)
{
	uintptr_t start = (uintptr_t)address & ~(cache->page - 1);
	uintptr_t end = ((uintptr_t)address + len + cache->page - 1) & ~(cache->page - 1);
	if (len == 0 || end <= start)
		return -EINVAL;
	if (!is_ours(cache))
		return -ECHILD;
	ib_cache_sweep(cache);
	bool keeps = cache->watched && (cache->keeps_exposed || !(uses & IB_USE_REMOTE_WRITE));
	bool settled = keeps && ib_memory_settle();
	struct ib_cached *entry = settled ? take_kept(cache, start, end, uses) : NULL;
	if (entry) {
		stats->registration_hits++;
		*cached = entry;
		return 0;
	}
	stats->registration_misses++;
	return take_new(cache, start, end, uses, settled, cached);
}

void ib_cache_put(struct ib_cached *cached)
{
	struct ib_cache *cache = cached->cache;
	if (!is_ours(cache))
		return;
	lock(cache);
	bool gone = --cached->users == 0 && !cached->kept;
	unlock(cache);
	if (gone) {
		ib_deregister(&cached->registration);
		entry_free(cached);
	}
}
