/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts for headrace-info: calls served, and device memory in use. The driver's functions that allocate and free are
 * replaced by functions that charge the session's quota, count, and call them. Destroying or resetting a context
 * subtracts the memory that was allocated in it. Arrays and limits: usage_objects.c. Pools: usage_pools.c.
 */
#include "cuda_remote/server/usage.h"

#include <stdlib.h>

static struct worker_usage own;
static struct worker_usage *usage = &own;

/* An allocation that has not been freed, in a hash table by address. */
struct allocation {
	struct allocation *next;
	CUdeviceptr address;
	uint64_t bytes;
	CUcontext context;
	uint64_t charged; /* bytes of the quota that it holds; 0: its bytes are part of the budget (memory.c) */
	uint32_t gpu;     /* charged there */
};

#define BUCKETS 1024
static struct allocation *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The driver's own functions. */
static struct server_driver real;

void worker_count_in(struct worker_usage *shared)
{
	usage = shared;
	server_quota_count_in(shared->gpu_charged);
	server_traffic_count_in(shared);
}

void server_usage_connection(bool begins)
{
	__atomic_fetch_add(begins ? &usage->connections : &usage->connections_ended, 1, __ATOMIC_RELAXED);
}

/* Adds 1 to a count that only the call order's holder changes, without a locked instruction. */
static void count_in_order(uint64_t *count)
{
	__atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* A client may begin a call on one connection because it has the reply to another one's. This order passes through the
 * client's process. The release and the acquire make it an order of this process's threads, among which a link's threads read
 * and write memory of the software GPU themselves. A call that has not left the call order needs neither: the next call comes
 * after it by that order. */
void server_usage_call(bool counts)
{
	if (counts)
		count_in_order(&usage->calls);
	(void)__atomic_load_n(&usage->ended_outside, __ATOMIC_ACQUIRE);
}

void server_usage_call_end(bool counts, bool in_order)
{
	if (!in_order)
		__atomic_fetch_add(&usage->ended_outside, counts, __ATOMIC_RELEASE);
	else if (counts)
		count_in_order(&usage->ended);
}

void server_usage_add(uint32_t gpu, uint64_t bytes)
{
	__atomic_fetch_add(&usage->memory, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&usage->gpu_used[gpu], bytes, __ATOMIC_RELAXED);
}

void server_usage_sub(uint32_t gpu, uint64_t bytes)
{
	__atomic_fetch_sub(&usage->memory, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&usage->gpu_used[gpu], bytes, __ATOMIC_RELAXED);
}

static struct allocation **bucket_of(CUdeviceptr address)
{
	return &buckets[(address >> 8) % BUCKETS];
}

static void insert(struct allocation *allocation)
{
	pthread_mutex_lock(&lock);
	struct allocation **bucket = bucket_of(allocation->address);
	allocation->next = *bucket;
	*bucket = allocation;
	pthread_mutex_unlock(&lock);
	server_usage_add(allocation->gpu, allocation->bytes);
}

/* In the place of an allocation's context: it ends with none. No context has this address, nor has the name of an ending one. */
#define NO_CONTEXT ((CUcontext)(uintptr_t)2)

/* Makes a record of an allocation. False: there is no memory for it, and the allocation is not counted. */
static bool record(CUdeviceptr address, uint64_t bytes, uint64_t charged, bool outlasts)
{
	struct allocation *allocation = malloc(sizeof *allocation);
	if (!allocation)
		return false;
	*allocation = (struct allocation){ .address = address, .bytes = bytes, .charged = charged, .gpu = server_quota_gpu() };
	if (outlasts)
		allocation->context = NO_CONTEXT;
	else
		real.cuCtxGetCurrent(&allocation->context);
	insert(allocation);
	return true;
}

/* Counts an allocation that has been charged. */
static void note_allocation(CUdeviceptr address, uint64_t bytes, bool outlasts)
{
	if (!record(address, bytes, bytes, outlasts))
		server_quota_release(server_quota_gpu(), bytes);
}

void server_usage_placed(CUdeviceptr address, uint64_t bytes)
{
	record(address, bytes, 0, false);
}

/* Removes *at from its list and subtracts its bytes. Under the lock. */
static struct allocation *take(struct allocation **at)
{
	struct allocation *allocation = *at;
	*at = allocation->next;
	server_usage_sub(allocation->gpu, allocation->bytes);
	return allocation;
}

/* Subtracts the allocation at this address. NULL: it is not counted. */
struct allocation *server_usage_take(uint64_t address)
{
	struct allocation *allocation = NULL;
	pthread_mutex_lock(&lock);
	struct allocation **at = bucket_of(address);
	while (*at && (*at)->address != address)
		at = &(*at)->next;
	if (*at)
		allocation = take(at);
	pthread_mutex_unlock(&lock);
	return allocation;
}

/* Frees a record. Its memory is no longer charged. */
static void discard(struct allocation *allocation)
{
	server_quota_release(allocation->gpu, allocation->charged);
	free(allocation);
}

/* Frees the record of an allocation that the driver was asked to free; counts it again if the driver refused. */
CUresult server_usage_settle(struct allocation *allocation, CUresult result)
{
	if (allocation && result == CUDA_SUCCESS)
		discard(allocation);
	else if (allocation)
		insert(allocation);
	return result;
}

bool server_usage_charge(struct server_charge *charge, uint64_t address, uint64_t bytes)
{
	struct allocation *before = address ? server_usage_take(address) : NULL;
	uint64_t held = before ? before->charged : 0;
	*charge = (struct server_charge){ .before = before, .bytes = bytes, .more = bytes > held ? bytes - held : 0,
					  .gpu = server_quota_gpu() };
	if (server_quota_charge(charge->gpu, charge->more))
		return true;
	server_usage_settle(before, CUDA_ERROR_OUT_OF_MEMORY);
	return false;
}

void server_usage_charged(const struct server_charge *charge, uint64_t address)
{
	struct allocation *before = charge->before;
	if (!address) {
		server_quota_release(charge->gpu, charge->more);
		server_usage_settle(before, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	if (before && before->charged > charge->bytes)
		server_quota_release(charge->gpu, before->charged - charge->bytes);
	free(before);
	note_allocation(address, charge->bytes, charge->outlasts);
}

/* What ends with a context. */
struct ending {
	CUcontext context;
	CUcontext name; /* owns the opened memory of other processes meanwhile: no context has it, as contexts are aligned */
	struct allocation *counted;
	struct server_placed *placed;
};

/* Takes it out before the driver ends the context: afterwards another thread's new context may have the same address. */
static struct ending context_ending(CUcontext context)
{
	static uint64_t endings;
	struct ending ending = { .context = context, .placed = server_placed_take(context) };
	ending.name = (CUcontext)(uintptr_t)(2 * __atomic_add_fetch(&endings, 1, __ATOMIC_RELAXED) + 1);
	if (context) /* NULL: of a device whose primary context nobody has used */
		server_ipc_rename(context, ending.name);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < BUCKETS; i++)
		for (struct allocation **at = &buckets[i]; *at;) {
			if ((*at)->context != context) {
				at = &(*at)->next;
				continue;
			}
			struct allocation *taken = take(at);
			taken->next = ending.counted;
			ending.counted = taken;
		}
	pthread_mutex_unlock(&lock);
	return ending;
}

/* result: of the driver's call. If the context has not ended, everything is as before. */
static CUresult context_end(struct ending *ending, CUresult result)
{
	if (result == CUDA_SUCCESS) {
		server_ipc_forget(ending->name);
		server_placed_end(ending->placed, ending->context);
	} else {
		server_ipc_rename(ending->name, ending->context);
		server_placed_put(ending->placed);
	}
	for (struct allocation *taken; (taken = ending->counted);) {
		ending->counted = taken->next;
		if (result == CUDA_SUCCESS)
			discard(taken);
		else
			insert(taken);
	}
	return result;
}

/* ---- functions that replace the driver's ---- */

/* After an allocation that has been charged: counts it, or if it failed takes the charge back. */
static CUresult note(CUresult result, uint32_t gpu, const CUdeviceptr *address, uint64_t bytes)
{
	if (result == CUDA_SUCCESS)
		note_allocation(*address, bytes, false);
	else
		server_quota_release(gpu, bytes);
	return result;
}

static CUresult count_alloc(CUdeviceptr *address, size_t bytes)
{
	uint32_t gpu = server_quota_gpu();
	if (!server_quota_charge(gpu, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return note(real.cuMemAlloc_v2(address, bytes), gpu, address, bytes);
}

/* The driver chooses the pitch, so this is charged when it has. */
static CUresult count_alloc_pitch(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
	CUresult result = real.cuMemAllocPitch_v2(address, pitch, width, height, element);
	if (result != CUDA_SUCCESS)
		return result;
	if (!server_quota_charge(server_quota_gpu(), *pitch * height)) {
		(void)real.cuMemFree_v2(*address);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	note_allocation(*address, *pitch * height, false);
	return CUDA_SUCCESS;
}

static CUresult count_alloc_async(CUdeviceptr *address, size_t bytes, CUstream stream)
{
	uint32_t gpu = server_quota_gpu();
	if (!server_quota_charge(gpu, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return note(real.cuMemAllocAsync(address, bytes, stream), gpu, address, bytes);
}

static CUresult count_alloc_from_pool(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	uint32_t gpu = server_quota_gpu();
	if (!server_quota_charge(gpu, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return note(real.cuMemAllocFromPoolAsync(address, bytes, pool, stream), gpu, address, bytes);
}

static CUresult quota_info(size_t *free_bytes, size_t *total)
{
	CUresult result = real.cuMemGetInfo_v2(free_bytes, total);
	if (result == CUDA_SUCCESS)
		server_quota_report(server_quota_gpu(), free_bytes, total);
	return result;
}

/* Subtracts before it frees: once the memory is free, another thread may get the same address. */
static CUresult count_free(CUdeviceptr address)
{
	struct allocation *allocation = server_usage_take(address);
	if (server_placed_at(address))
		return server_usage_settle(allocation, server_placed_free(address, true));
	struct server_opened *opened = allocation ? NULL : server_ipc_freeing(address);
	CUresult result = server_usage_settle(allocation, real.cuMemFree_v2(address));
	server_ipc_freed(opened, result);
	return result;
}

CUresult server_usage_unplace(CUdeviceptr address)
{
	if (server_placed_at(address))
		return server_usage_settle(server_usage_take(address), server_placed_free(address, false));
	return driver.cuMemFree_v2 ? driver.cuMemFree_v2(address) : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult count_free_async(CUdeviceptr address, CUstream stream)
{
	struct allocation *allocation = server_usage_take(address);
	if (server_placed_at(address))
		return server_usage_settle(allocation, server_placed_free_async(address, stream));
	struct server_opened *opened = allocation ? NULL : server_ipc_freeing(address);
	CUresult result = server_usage_settle(allocation, real.cuMemFreeAsync(address, stream));
	server_ipc_freed(opened, result);
	return result;
}

static CUresult count_context_destroy(CUcontext context)
{
	struct ending ending = context_ending(context);
	return context_end(&ending, real.cuCtxDestroy_v2(context));
}

static CUresult count_context_reset(CUdevice device)
{
	CUcontext context = NULL;
	for (uint32_t i = 0; i < worker.gpus; i++)
		if (worker.device[i] == device)
			context = __atomic_load_n(&worker.primary[i], __ATOMIC_RELAXED);
	struct ending ending = context_ending(context);
	return context_end(&ending, real.cuDevicePrimaryCtxReset_v2(device));
}

/* The device of a context. */
static CUresult device_of(CUcontext context, CUdevice *device)
{
	CUcontext current;
	CUresult result = real.cuCtxGetDevice ? real.cuCtxGetCurrent(&current) : CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = real.cuCtxSetCurrent(context);
	if (result != CUDA_SUCCESS)
		return result;
	CUresult known = real.cuCtxGetDevice(device);
	result = real.cuCtxSetCurrent(current);
	return known == CUDA_SUCCESS ? result : known;
}

/* The memory of a window is accessible to those devices only that are named when it is mapped. */
static CUresult grant_enable_peer(CUcontext peer, unsigned flags)
{
	CUdevice user, owner;
	CUresult result = real.cuCtxEnablePeerAccess(peer, flags);
	if (result != CUDA_SUCCESS || !real.cuCtxGetDevice)
		return result;
	result = real.cuCtxGetDevice(&user);
	if (result == CUDA_SUCCESS)
		result = device_of(peer, &owner);
	if (result == CUDA_SUCCESS)
		result = server_placed_grant(owner, user);
	if (result != CUDA_SUCCESS && real.cuCtxDisablePeerAccess)
		(void)real.cuCtxDisablePeerAccess(peer);
	return result;
}

void server_usage_watch(void)
{
	real = driver;
#define WATCH(name, counting) driver.name = real.name ? counting : NULL;
	WATCH(cuMemAlloc_v2, count_alloc)
	WATCH(cuMemAllocPitch_v2, count_alloc_pitch)
	WATCH(cuMemAllocAsync, count_alloc_async)
	WATCH(cuMemAllocFromPoolAsync, count_alloc_from_pool)
	WATCH(cuMemGetInfo_v2, quota_info)
	WATCH(cuMemFree_v2, count_free)
	WATCH(cuMemFreeAsync, count_free_async)
	WATCH(cuCtxDestroy_v2, count_context_destroy)
	WATCH(cuDevicePrimaryCtxReset_v2, count_context_reset)
	WATCH(cuCtxEnablePeerAccess, grant_enable_peer)
#undef WATCH
	server_usage_watch_objects();
	server_usage_watch_pools();
}
