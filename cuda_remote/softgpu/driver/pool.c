/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/softgpu/driver/pool.h"

#include "cuda_remote/softgpu/driver/device.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/memory/space.h"

#include <stdlib.h>
#include <string.h>

#define REUSE_POLICIES 3

/* A default pool is created with its device's first use and is never destroyed. */
struct CUmemPoolHandle_st {
	handle_t handle;
	CUdevice device;
	bool is_default;
	uint64_t most; /* bytes; 0: no limit of its own */
	/* Under the pools' lock: */
	bool dead;     /* destroyed, but some of its memory is in use */
	uint64_t used, high, threshold;
	int reuse[REUSE_POLICIES];
};

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static CUmemoryPool default_pools[SOFTGPU_MAX_DEVICES], current_pools[SOFTGPU_MAX_DEVICES];

static CUmemoryPool pool_new(CUdevice device, uint64_t most, bool is_default)
{
	CUmemoryPool pool = handle_new(HANDLE_POOL, sizeof *pool);
	if (!pool)
		return NULL;
	pool->device = device;
	pool->most = most;
	pool->is_default = is_default;
	for (int i = 0; i < REUSE_POLICIES; i++)
		pool->reuse[i] = 1;
	return pool;
}

/* With the lock held. NULL: no memory. */
static CUmemoryPool default_pool(CUdevice device)
{
	if (!default_pools[device])
		default_pools[device] = pool_new(device, 0, true);
	return default_pools[device];
}

static CUmemoryPool current_pool(CUdevice device)
{
	return current_pools[device] ? current_pools[device] : default_pool(device);
}

static CUresult charge(CUmemoryPool pool, uint64_t bytes)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&pools_lock);
	if (pool->most && (bytes > pool->most || pool->used > pool->most - bytes))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		pool->used += bytes;
	if (pool->used > pool->high)
		pool->high = pool->used;
	pthread_mutex_unlock(&pools_lock);
	return result;
}

static void discharge(CUmemoryPool pool, uint64_t bytes)
{
	pthread_mutex_lock(&pools_lock);
	pool->used -= bytes;
	bool gone = pool->dead && !pool->used;
	pthread_mutex_unlock(&pools_lock);
	if (gone)
		handle_release(pool);
}

void pool_note_free(const softgpu_allocation_t *allocation)
{
	if (allocation->pool)
		discharge((CUmemoryPool)(uintptr_t)allocation->pool, allocation->size);
}

CUresult pool_alloc(CUmemoryPool pool, size_t bytes, CUstream stream, CUdeviceptr *address)
{
	CUcontext context = stream->context;
	if (!address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!pool) {
		pthread_mutex_lock(&pools_lock);
		pool = current_pool(context->device);
		pthread_mutex_unlock(&pools_lock);
		if (!pool)
			return CUDA_ERROR_OUT_OF_MEMORY;
	} else if (!handle_valid(pool, HANDLE_POOL)) {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	CUresult result = charge(pool, bytes);
	if (result)
		return result;
	softgpu_allocation_t want = { .size = bytes, .kind = SOFTGPU_SPACE_DEVICE, .owner = context, .pool = pool,
				      .device = device_physical(pool->device) };
	/* What was freed in streams but not reached yet counts as free: wait for it. */
	if (softgpu_space_alloc(&want, SOFTGPU_GRANULE)) {
		queue_wait_group(&context->group);
		if (softgpu_space_alloc(&want, SOFTGPU_GRANULE)) {
			discharge(pool, bytes);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	*address = want.base;
	return CUDA_SUCCESS;
}

typedef struct free_command {
	command_t command;
	softgpu_allocation_t allocation;
} free_command_t;

/* In finish, not in run: memory comes back after a fault too. */
static void free_finish(command_t *command)
{
	const softgpu_allocation_t *allocation = &((free_command_t *)command)->allocation;
	softgpu_allocation_t found;
	/* Freed twice in streams: the second finds nothing, or somebody else's. */
	if (!softgpu_space_find(allocation->base, &found) || found.id != allocation->id)
		return;
	if (!softgpu_space_free(allocation->base))
		pool_note_free(allocation);
}

CUresult pool_free(CUdeviceptr address, CUstream stream)
{
	if (!address)
		return CUDA_SUCCESS;
	free_command_t *command = calloc(1, sizeof *command);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!softgpu_space_find(address, &command->allocation) || command->allocation.base != address ||
	    command->allocation.kind != SOFTGPU_SPACE_DEVICE) {
		free(command);
		return CUDA_ERROR_INVALID_VALUE;
	}
	command->command.finish = free_finish;
	queue_submit(stream, &command->command);
	return CUDA_SUCCESS;
}

static CUresult enter(CUmemoryPool pool)
{
	CUresult result = init_check();
	if (result)
		return result;
	return handle_valid(pool, HANDLE_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE || poolProps->handleTypes || poolProps->usage)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!device_valid(poolProps->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = pool_new(poolProps->location.id, poolProps->maxSize, false);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CUresult result = enter(pool);
	if (result)
		return result;
	if (pool->is_default || !handle_retire(pool))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools_lock);
	for (int i = 0; i < SOFTGPU_MAX_DEVICES; i++)
		if (current_pools[i] == pool)
			current_pools[i] = NULL;
	pool->dead = true;
	bool gone = !pool->used;
	pthread_mutex_unlock(&pools_lock);
	if (gone)
		handle_release(pool);
	return CUDA_SUCCESS;
}

/* A pool holds nothing back that could be given up. */
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	(void)minBytesToKeep;
	return enter(pool);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult result = enter(pool);
	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools_lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(const int *)value != 0;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(const cuuint64_t *)value;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(const cuuint64_t *)value)
			result = CUDA_ERROR_INVALID_VALUE; /* it can be reset, not set */
		else
			pool->high = pool->used;
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&pools_lock);
	return result;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult result = enter(pool);
	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools_lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = pool->threshold;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->used;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = pool->high;
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&pools_lock);
	return result;
}

/* All devices share one memory: access cannot be taken away, and need not be given. */
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	CUresult result = enter(pool);
	if (result)
		return result;
	if (count && !map)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!device_valid(map[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE && map[i].location.id == pool->device)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	CUresult result = enter(memPool);
	if (result)
		return result;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_valid(location->id))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

static CUresult get_pool(CUmemoryPool *pool, CUdevice device, CUmemoryPool (*which)(CUdevice))
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&pools_lock);
	*pool = which(device);
	pthread_mutex_unlock(&pools_lock);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	return get_pool(pool_out, dev, default_pool);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return get_pool(pool, dev, current_pool);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	CUresult result = enter(pool);
	if (result)
		return result;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (pool->device != dev)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools_lock);
	current_pools[dev] = pool;
	pthread_mutex_unlock(&pools_lock);
	return CUDA_SUCCESS;
}
