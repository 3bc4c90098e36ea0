/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that pools keep after the program has freed it. It counts against the session's quota beside what is charged: an
 * allocation that the quota would not permit gives it back first. A pool keeps memory once its release threshold is above 0.
 */
#include "cuda_remote/server/usage.h"

#include <stdlib.h>

/* A pool for which the program has set a threshold. gpu: the GPU of the context that was current at that call; allocations from
 * pools are charged to the current GPU too. */
struct keeping {
	struct keeping *next;
	CUmemoryPool pool;
	uint32_t gpu;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct keeping *list;
static bool any; /* atomic; the list is not empty. Relaxed: it guards no data */

/* The driver's own functions. */
static struct server_driver real;

static uint64_t kept_by(CUmemoryPool pool)
{
	cuuint64_t reserved = 0, used = 0;
	if (real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS ||
	    real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) != CUDA_SUCCESS)
		return 0;
	return reserved > used ? reserved - used : 0;
}

uint64_t server_usage_kept(uint32_t gpu, bool give_back)
{
	uint64_t kept = 0;
	if (!__atomic_load_n(&any, __ATOMIC_RELAXED))
		return 0;
	pthread_mutex_lock(&lock);
	for (const struct keeping *at = list; at; at = at->next) {
		if (at->gpu != gpu)
			continue;
		if (give_back && real.cuMemPoolTrimTo)
			(void)real.cuMemPoolTrimTo(at->pool, 0);
		kept += kept_by(at->pool);
	}
	pthread_mutex_unlock(&lock);
	return kept;
}

static void insert(struct keeping *keeping)
{
	pthread_mutex_lock(&lock);
	keeping->next = list;
	list = keeping;
	__atomic_store_n(&any, true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

/* Removes the pool from the list. NULL: it is not there. */
static struct keeping *take(CUmemoryPool pool)
{
	pthread_mutex_lock(&lock);
	struct keeping **at = &list, *found;
	while (*at && (*at)->pool != pool)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- functions that replace the driver's ---- */

/* A pool's list entry is taken out for the call, and is back behind it if the pool may keep memory then. */
static CUresult watch_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || !value || !*(const cuuint64_t *)value)
		return real.cuMemPoolSetAttribute(pool, attribute, value);
	struct keeping *before = take(pool), *keeping = before ? before : malloc(sizeof *keeping);
	if (!keeping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!before)
		*keeping = (struct keeping){ .pool = pool, .gpu = server_quota_gpu() };
	CUresult result = real.cuMemPoolSetAttribute(pool, attribute, value);
	if (before || result == CUDA_SUCCESS)
		insert(keeping);
	else
		free(keeping);
	return result;
}

/* Taken out before the driver destroys the pool: afterwards another thread's new pool may have the same address. */
static CUresult watch_destroy(CUmemoryPool pool)
{
	struct keeping *keeping = take(pool);
	CUresult result = real.cuMemPoolDestroy(pool);
	if (keeping && result != CUDA_SUCCESS)
		insert(keeping);
	else
		free(keeping);
	return result;
}

void server_usage_watch_pools(void)
{
	real = driver;
	if (!real.cuMemPoolGetAttribute)
		return;
#define WATCH(name, counting) driver.name = real.name ? counting : NULL;
	WATCH(cuMemPoolSetAttribute, watch_attribute)
	WATCH(cuMemPoolDestroy, watch_destroy)
#undef WATCH
}
