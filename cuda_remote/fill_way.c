/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses between writes through the cache and past it, by the mean times of both. */
#include "cuda_remote/fill_way.h"

#include "rdma_channel/base/setting.h"

#include <pthread.h>

/* One of this many writes goes the slower way, to measure this way again. */
#define TRIAL 64

HR_SETTING(cache_setting, "HEADRACE_FILL_CACHE", "2", 0, 2,
	   "buffers that client and worker share are written: 0: past the cache; 1: through it; 2: as is faster");

enum { PAST, THROUGH, FASTER };

static uint64_t wanted = FASTER;

static void read_setting(void)
{
	if (hr_setting_u64(&cache_setting, &wanted))
		wanted = FASTER; /* logged */
}

bool hr_fill_past(struct hr_fill_way *way)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, read_setting);
	if (wanted != FASTER)
		return wanted == PAST;
	uint64_t through = __atomic_load_n(&way->ns[0], __ATOMIC_RELAXED), past = __atomic_load_n(&way->ns[1], __ATOMIC_RELAXED);
	bool other = __atomic_add_fetch(&way->n, 1, __ATOMIC_RELAXED) % TRIAL == 0;
	return (past && 2 * through > 3 * past) != other;
}

void hr_fill_took(struct hr_fill_way *way, bool past, uint64_t ns)
{
	uint64_t mean = __atomic_load_n(&way->ns[past], __ATOMIC_RELAXED);
	/* A write that was interrupted counts as twice the mean at most. */
	mean = !mean ? ns : (3 * mean + (ns < 2 * mean ? ns : 2 * mean)) / 4;
	__atomic_store_n(&way->ns[past], mean, __ATOMIC_RELAXED);
}
