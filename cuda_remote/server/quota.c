/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The session's quota of memory on each GPU. Every allocation is charged before the driver makes it and released when it
 * has been freed. The caller charges; usage.c does so for the driver's functions that allocate.
 */
#include "cuda_remote/server/internal.h"

#include <string.h>

static uint64_t quota[RC_DEVICES_MAX]; /* by the server's index; 0: none. Set before the worker has a second thread */
static uint64_t own[RC_DEVICES_MAX];
static uint64_t *used = own; /* atomic; relaxed, as it guards no other data */

_Static_assert(RC_DEVICES_MAX == WORKER_GPUS_MAX, "struct worker_usage");

void server_quota_count_in(uint64_t *bytes)
{
	used = bytes;
}

void worker_limit_memory(const uint64_t *bytes, uint32_t count)
{
	memcpy(quota, bytes, sizeof *quota * (count < RC_DEVICES_MAX ? count : RC_DEVICES_MAX));
}

bool server_quota_is_set(void)
{
	for (uint32_t i = 0; i < RC_DEVICES_MAX; i++)
		if (quota[i])
			return true;
	return false;
}

uint32_t server_quota_index(uint32_t gpu)
{
	return worker.grant == RC_SERVER_ALL_GPUS ? gpu : worker.grant;
}

uint32_t server_quota_gpu(void)
{
	CUcontext context = NULL;
	CUdevice device;
	driver.cuCtxGetCurrent(&context);
	for (uint32_t i = 0; i < worker.gpus; i++)
		if (context == __atomic_load_n(&worker.primary[i], __ATOMIC_RELAXED))
			return server_quota_index(i);
	if (driver.cuCtxGetDevice && driver.cuCtxGetDevice(&device) == CUDA_SUCCESS)
		for (uint32_t i = 0; i < worker.gpus; i++)
			if (worker.device[i] == device)
				return server_quota_index(i);
	return server_quota_index(0);
}

/*
 * The last refusal on the calling thread, which is not logged yet. If the client holds unused budget, it gives the budget back and
 * repeats the call. The refusal is logged at the first later call that is not part of this, and if the call is refused again.
 */
static _Thread_local struct refusal {
	uint64_t bytes, before, limit; /* limit 0: there is none */
	uint32_t gpu;
	uint16_t function; /* the refused call; 0: it has not ended yet */
	bool returned;     /* the client has given budget back since */
} refused;

static void tell(const struct refusal *what)
{
	if (what->limit)
		hr_log(HR_LOG_WARN, "refused: %llu bytes of memory of GPU %u, where the session has %llu of its %llu (gpu-memory)",
		       (unsigned long long)what->bytes, what->gpu, (unsigned long long)what->before,
		       (unsigned long long)what->limit);
}

void server_quota_returned(void)
{
	refused.returned = true;
}

void server_quota_served(uint16_t function, CUresult result)
{
	if (!refused.limit)
		return;
	if (!refused.function && result != CUDA_SUCCESS) {
		refused.function = function;
		return;
	}
	if (function == RC_CALL_context_synchronize || (function == RC_CALL_memory_budget && refused.returned && result == CUDA_SUCCESS &&
							refused.function != function))
		return;
	if (refused.function && (!refused.returned || function != refused.function || result != CUDA_SUCCESS))
		tell(&refused);
	refused = (struct refusal){ 0 };
}

/* True if the quota has room for the memory that pools keep beside the charged bytes. */
static bool has_room_for_kept(uint32_t gpu, uint64_t charged)
{
	uint64_t room = quota[gpu] - charged;
	return server_usage_kept(gpu, false) <= room || server_usage_kept(gpu, true) <= room;
}

bool server_quota_charge(uint32_t gpu, uint64_t bytes)
{
	uint64_t limit = quota[gpu], before;
	if (limit && bytes > limit) {
		/* Not added for a moment either: the sum could wrap, and another thread's allocation pass. */
		before = __atomic_load_n(&used[gpu], __ATOMIC_RELAXED);
	} else {
		before = __atomic_fetch_add(&used[gpu], bytes, __ATOMIC_RELAXED);
		if (!limit || (before <= limit - bytes && has_room_for_kept(gpu, before + bytes)))
			return true;
		server_quota_release(gpu, bytes);
	}
	if (refused.function && !refused.returned)
		tell(&refused);
	refused = (struct refusal){ bytes, before, limit, gpu, 0, false };
	return false;
}

void server_quota_release(uint32_t gpu, uint64_t bytes)
{
	__atomic_fetch_sub(&used[gpu], bytes, __ATOMIC_RELAXED);
}

void server_quota_report(uint32_t gpu, size_t *free_bytes, size_t *total)
{
	uint64_t limit = quota[gpu], now = __atomic_load_n(&used[gpu], __ATOMIC_RELAXED);
	if (!limit)
		return;
	now += server_usage_kept(gpu, false);
	uint64_t left = now < limit ? limit - now : 0;
	if (*total > limit)
		*total = limit;
	if (*free_bytes > left)
		*free_bytes = left;
}
