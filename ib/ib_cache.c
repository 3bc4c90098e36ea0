/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "ib/ib_cache.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ib_cache {
	struct ib_device *device;
	uintptr_t page;
	bool refused; /* a registration was, and the log has it */
};

int ib_cache_open(struct ib_device *device, struct ib_cache **cache)
{
	struct ib_cache *made = calloc(1, sizeof *made);
	if (!made)
		return -ENOMEM;
	made->device = device;
	made->page = (uintptr_t)sysconf(_SC_PAGESIZE);
	*cache = made;
	return 0;
}

void ib_cache_close(struct ib_cache *cache)
{
	free(cache);
}

static void log_refusal(struct ib_cache *cache, size_t len, int error)
{
	if (cache->refused)
		return;
	cache->refused = true;
	hr_log(HR_LOG_WARN, "verbs: cannot register %zu bytes, so they are copied: %s%s", len, strerror(-error),
	       error == -ENOMEM ? " (see ulimit -l)" : "");
}

/* Memory that is only to be sent may be read-only. */
static int register_entry(struct ib_cached *entry, unsigned uses)
{
	struct ib_device *device = entry->cache->device;
	size_t len = entry->end - entry->start;
	entry->uses = uses | IB_USE_SEND | IB_USE_RECEIVE;
	int error = ib_register(device, entry->start, len, entry->uses, &entry->registration);
	if (error && !(uses & IB_USE_RECEIVE)) {
		entry->uses = uses;
		error = ib_register(device, entry->start, len, uses, &entry->registration);
	}
	return error;
}

int ib_cache_get(struct ib_cache *cache, hr_conn_stats_t *stats, const void *address, size_t len, unsigned uses,
		 struct ib_cached **cached)
{
	uintptr_t start = (uintptr_t)address & ~(cache->page - 1);
	uintptr_t end = ((uintptr_t)address + len + cache->page - 1) & ~(cache->page - 1);
	if (len == 0 || end <= start)
		return -EINVAL;
	struct ib_cached *entry = calloc(1, sizeof *entry);
	if (!entry)
		return -ENOMEM;
	stats->registration_misses++;
	entry->cache = cache;
	entry->start = start;
	entry->end = end;
	entry->users = 1;
	int error = register_entry(entry, uses);
	if (error) {
		log_refusal(cache, len, error);
		free(entry);
		return error;
	}
	entry->lkey = entry->registration.lkey;
	entry->rkey = entry->registration.rkey;
	*cached = entry;
	return 0;
}

void ib_cache_put(struct ib_cached *cached)
{
	if (--cached->users > 0)
		return;
	ib_deregister(&cached->registration);
	free(cached);
}

void ib_cache_sweep(struct ib_cache *cache)
{
	(void)cache; /* nothing is kept */
}
