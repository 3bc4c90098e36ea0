/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory pools and stream-ordered allocation. */
#include "config.h"

#include "cuda_remote/softgpu/driver/memory/pool.h"

#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/graph/graph_allocation.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/driver/ipc_handle.h"
#include "cuda_remote/softgpu/driver/memory/pool_place.h"
#include "cuda_remote/softgpu/space/shared.h"
#include "cuda_remote/softgpu/space/space.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_ALIGN 4096u
#define REUSE_POLICIES 3
#define PURPOSE "pool"

/* The default pool of a place is created at its first use and never destroyed. */
struct CUmemPoolHandle_st {
	handle_t handle;
	pool_place_t place;
	bool is_default;
	uint64_t most; /* bytes; 0: no limit of its own */
	int file;      /* descriptor plus 1 of the file of a pool that can be exported; 0: none */
	bool imported; /* imported from another process: no allocations, only imported pointers */
	/* Under the pools' lock: */
	bool dead;     /* destroyed, but with memory in use */
	uint64_t used, used_high, reserved_high, threshold; /* as much is reserved as is used */
	uint64_t file_end; /* pages of file given out, never twice */
	int reuse[REUSE_POLICIES];
};

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static CUmemoryPool default_pools[POOL_PLACES], current_pools[POOL_PLACES];

static CUmemoryPool pool_new(const pool_place_t *place, uint64_t most, bool is_default)
{
	CUmemoryPool pool = handle_new(HANDLE_POOL, sizeof *pool);
	if (!pool)
		return NULL;
	pool->place = *place;
	pool->most = most;
	pool->is_default = is_default;
	for (int i = 0; i < REUSE_POLICIES; i++)
		pool->reuse[i] = 1;
	return pool;
}

/* With the lock held. NULL: no memory. */
static CUmemoryPool default_pool(const pool_place_t *place)
{
	if (!default_pools[place->index])
		default_pools[place->index] = pool_new(place, 0, true);
	return default_pools[place->index];
}

static CUmemoryPool current_pool(const pool_place_t *place)
{
	return current_pools[place->index] ? current_pools[place->index] : default_pool(place);
}

static CUresult charge(CUmemoryPool pool, uint64_t bytes)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&pools_lock);
	if (pool->most && (bytes > pool->most || pool->used > pool->most - bytes))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		pool->used += bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	if (pool->used > pool->reserved_high)
		pool->reserved_high = pool->used;
	pthread_mutex_unlock(&pools_lock);
	return result;
}

/* Frees a retired pool without memory in use. */
static void release(CUmemoryPool pool)
{
	if (pool->file)
		close(pool->file - 1);
	handle_release(pool);
}

static void discharge(CUmemoryPool pool, uint64_t bytes)
{
	pthread_mutex_lock(&pools_lock);
	pool->used -= bytes;
	bool gone = pool->dead && !pool->used;
	pthread_mutex_unlock(&pools_lock);
	if (gone)
		release(pool);
}

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + SOFTGPU_SPACE_PAGE - 1) & ~(SOFTGPU_SPACE_PAGE - 1);
}

void pool_note_free(const softgpu_allocation_t *allocation)
{
	CUmemoryPool pool = (CUmemoryPool)(uintptr_t)allocation->pool;
	if (!pool)
		return;
	/* The memory of a shared pool is in its file: punching a hole frees it for all processes. */
	if (pool->file && !pool->imported)
		(void)fallocate(pool->file - 1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)(allocation->flags * SOFTGPU_SPACE_PAGE), (off_t)whole_pages(allocation->size));
	discharge(pool, allocation->size);
}

unsigned pool_handle_types(const void *pool)
{
	return ((const struct CUmemPoolHandle_st *)pool)->file ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
}

/*
 * An allocation that context will own; NULL: no context, and the pool is of a device. The context tells the pool when it
 * frees the allocation.
 */
static softgpu_allocation_t new_allocation(CUcontext context, CUmemoryPool pool, size_t bytes)
{
	/* Orders nothing: only the context's destruction reads it, and no other call may overlap that. */
	if (context)
		__atomic_store_n(&context->memory_freed, pool_note_free, __ATOMIC_RELAXED);
	return (softgpu_allocation_t){ .size = bytes, .kind = pool->place.kind, .owner = context, .pool = pool,
				       .flags = pool->place.kind == SOFTGPU_SPACE_MANAGED ? CU_MEM_ATTACH_GLOBAL : 0,
				       .device = pool->place.device < 0 ? context->physical :
									  device_physical(pool->place.device) };
}

/* Maps pages of the pool's file, from this page on. Freeing the allocation unmaps them. */
static int map_file(CUmemoryPool pool, softgpu_allocation_t *want, uint64_t page)
{
	uint64_t at, bytes = whole_pages(want->size);
	int error = softgpu_space_reserve(bytes, 0, 0, &at);
	if (error)
		return error;
	want->base = at;
	error = softgpu_space_map(want, at, pool->file - 1, page * SOFTGPU_SPACE_PAGE);
	if (error)
		softgpu_space_unreserve(at, bytes);
	return error;
}

/*
 * Allocates memory of a pool: from the device or from the pool's file. In a file, flags of the allocation are its page.
 */
static int take(CUmemoryPool pool, softgpu_allocation_t *want)
{
	if (!pool->file)
		return softgpu_space_alloc(want, want->kind == SOFTGPU_SPACE_DEVICE ? SOFTGPU_GRANULE : PAGE_ALIGN);
	pthread_mutex_lock(&pools_lock);
	uint64_t page = pool->file_end, end = page + whole_pages(want->size) / SOFTGPU_SPACE_PAGE;
	bool grown = end <= UINT32_MAX && !ftruncate(pool->file - 1, (off_t)(end * SOFTGPU_SPACE_PAGE));
	if (grown)
		pool->file_end = end;
	pthread_mutex_unlock(&pools_lock);
	want->flags = (unsigned)page;
	return grown ? map_file(pool, want, page) : -1;
}

/* Adds an allocation node to the graph of a stream that captures. Nodes are of device memory only. */
static CUresult capture_alloc(CUmemoryPool pool, size_t bytes, CUstream stream, CUdeviceptr *address, bool *captured)
{
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
				   .alloc = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
									   .id = pool->place.device } },
					      .bytesize = bytes } };
	*captured = false;
	if (pool->place.kind != SOFTGPU_SPACE_DEVICE)
		return capture_possible() && capture_stream_busy(stream) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
	CUresult result = capture_add(stream, &node, NULL, captured);
	if (*captured && !result)
		*address = node.alloc.dptr;
	return result;
}

CUresult pool_alloc(CUmemoryPool pool, size_t bytes, CUstream stream, CUdeviceptr *address)
{
	CUcontext context = stream->context;
	if (!address)
		return CUDA_ERROR_INVALID_VALUE;
	if (!pool) {
		pool_place_t place = pool_place_device(context->device);
		pthread_mutex_lock(&pools_lock);
		pool = current_pool(&place);
		pthread_mutex_unlock(&pools_lock);
		if (!pool)
			return CUDA_ERROR_OUT_OF_MEMORY;
	} else if (!handle_valid(pool, HANDLE_POOL)) {
		return CUDA_ERROR_INVALID_HANDLE;
	} else if (pool->imported) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!bytes) { /* not an error, unlike in cuMemAlloc */
		*address = 0;
		return CUDA_SUCCESS;
	}
	bool captured;
	CUresult result = capture_alloc(pool, bytes, stream, address, &captured);
	if (result || captured)
		return result;
	/* Memory whose free a stream has not reached yet still counts as used: wait for the streams, then try again. */
	result = charge(pool, bytes);
	if (result && bytes <= pool->most) {
		queue_wait_group(&context->group);
		result = charge(pool, bytes);
	}
	if (result)
		return result;
	softgpu_allocation_t want = new_allocation(context, pool, bytes);
	if (take(pool, &want)) {
		queue_wait_group(&context->group);
		if (take(pool, &want)) {
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
	graph_memory_t *of_graph; /* a reference, or NULL */
} free_command_t;

/* In finish, not in run: memory is freed after a fault too. */
static void free_finish(command_t *command)
{
	const softgpu_allocation_t *allocation = &((free_command_t *)command)->allocation;
	softgpu_allocation_t found;
	if (((free_command_t *)command)->of_graph) {
		graph_memory_release(((free_command_t *)command)->of_graph);
		return;
	}
	/* cuMemFree may have freed it meanwhile: then there is no allocation here, or a different one. */
	if (!softgpu_space_find(allocation->base, &found) || found.id != allocation->id)
		return;
	if (!softgpu_space_free(allocation->base))
		pool_note_free(allocation);
}

CUresult pool_free(CUdeviceptr address, CUstream stream)
{
	if (!address)
		return CUDA_SUCCESS;
	bool captured;
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free.dptr = address };
	CUresult result = capture_add(stream, &node, NULL, &captured);
	if (result || captured)
		return result;
	free_command_t *command = calloc(1, sizeof *command);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!softgpu_space_find(address, &command->allocation) || command->allocation.base != address ||
	    (command->allocation.kind != SOFTGPU_SPACE_DEVICE && !command->allocation.pool) ||
	    (command->allocation.imported && !command->allocation.pool)) { /* cuIpcCloseMemHandle's */
		free(command);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (command->allocation.flags & GRAPH_MEMORY_FLAG)
		result = graph_memory_freed_by_call(address, &command->of_graph);
	else if (!softgpu_space_set_freeing(address))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result) {
		free(command);
		return result;
	}
	command->command.finish = free_finish;
	queue_submit(stream, &command->command);
	return CUDA_SUCCESS;
}

/* Takes ownership of the file (-1: none). */
static CUresult pool_with_file(const pool_place_t *place, uint64_t most, int file, bool imported, CUmemoryPool *output)
{
	CUmemoryPool pool = pool_new(place, most, false);
	if (!pool) {
		if (file >= 0)
			close(file);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pool->file = file + 1;
	pool->imported = imported;
	*output = pool;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!pool || !poolProps || poolProps->allocType == CU_MEM_ALLOCATION_TYPE_INVALID)
		return CUDA_ERROR_INVALID_VALUE;
	pool_place_t place;
	result = pool_place_find(&poolProps->location, poolProps->allocType, &place);
	if (result)
		return result;
	bool shared = poolProps->handleTypes;
	if (shared && place.kind == SOFTGPU_SPACE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	if (poolProps->usage || (shared && (place.kind != SOFTGPU_SPACE_DEVICE ||
					    poolProps->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)))
		return CUDA_ERROR_NOT_SUPPORTED;
	int file = shared ? softgpu_shared_file(PURPOSE, device_physical(place.device), 0) : -1;
	if (shared && file < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return pool_with_file(&place, poolProps->maxSize, file, false, pool);
}

CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
					  unsigned long long flags)
{
	CUresult result = init_check_handle(pool, HANDLE_POOL);
	if (result)
		return result;
	if (!handle_out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!pool->file || pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	int file = fcntl(pool->file - 1, F_DUPFD_CLOEXEC, 0);
	if (file < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)handle_out = file;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType,
					    unsigned long long flags)
{
	CUresult result = init_check();
	if (result)
		return result;
	int physical, file = (int)(intptr_t)handle;
	uint64_t bytes;
	if (!pool_out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!softgpu_shared_check(file, PURPOSE, &physical, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	CUdevice device = 0;
	for (CUdevice i = 0; i < device_count(); i++)
		if (device_physical(i) == physical)
			device = i;
	pool_place_t place = pool_place_device(device);
	file = fcntl(file, F_DUPFD_CLOEXEC, 0);
	return file < 0 ? CUDA_ERROR_OPERATING_SYSTEM : pool_with_file(&place, 0, file, true, pool_out);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	CUresult result = init_check();
	if (result)
		return result;
	softgpu_allocation_t found;
	ipc_handle_t handle;
	_Static_assert(sizeof handle <= sizeof *shareData_out, "a handle fits into CUDA's");
	if (!shareData_out || !softgpu_space_find(ptr, &found) || found.base != ptr || !found.pool || found.imported)
		return CUDA_ERROR_INVALID_VALUE;
	const struct CUmemPoolHandle_st *pool = found.pool;
	if (!pool->file)
		return CUDA_ERROR_INVALID_VALUE;
	result = ipc_describe(pool->file - 1, &handle);
	if (result)
		return result;
	handle.offset = found.flags * SOFTGPU_SPACE_PAGE;
	handle.size = found.size;
	handle.id = found.id;
	memset(shareData_out, 0, sizeof *shareData_out);
	memcpy(shareData_out, &handle, sizeof handle);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	CUcontext context = NULL;
	CUresult result = context_enter(&context);
	if (!result || result == CUDA_ERROR_INVALID_CONTEXT) /* a pool is of a device, and this call needs no context */
		result = init_check_handle(pool, HANDLE_POOL);
	if (result)
		return result;
	ipc_handle_t handle;
	int physical;
	uint64_t bytes;
	if (!ptr_out || !shareData || !pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&handle, shareData, sizeof handle);
	if (!ipc_describes(&handle, pool->file - 1) ||
	    !softgpu_shared_check(pool->file - 1, PURPOSE, &physical, &bytes) || !handle.size ||
	    handle.offset % SOFTGPU_SPACE_PAGE || handle.offset > bytes || handle.size > bytes - handle.offset)
		return CUDA_ERROR_INVALID_VALUE;
	softgpu_allocation_t want = new_allocation(context, pool, handle.size);
	want.imported = true;
	result = charge(pool, handle.size);
	if (result)
		return result;
	if (map_file(pool, &want, handle.offset / SOFTGPU_SPACE_PAGE)) {
		discharge(pool, handle.size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ptr_out = want.base;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CUresult result = init_check_handle(pool, HANDLE_POOL);
	if (result)
		return result;
	if (pool->is_default || !handle_retire(pool))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools_lock);
	if (current_pools[pool->place.index] == pool)
		current_pools[pool->place.index] = NULL;
	pool->dead = true;
	bool gone = !pool->used;
	pthread_mutex_unlock(&pools_lock);
	if (gone)
		release(pool);
	return CUDA_SUCCESS;
}

/* A pool keeps no free memory that it could trim. */
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	(void)minBytesToKeep;
	return init_check_handle(pool, HANDLE_POOL);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult result = init_check_handle(pool, HANDLE_POOL);
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
		else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
			pool->used_high = pool->used;
		else
			pool->reserved_high = pool->used;
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&pools_lock);
	return result;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult result = init_check_handle(pool, HANDLE_POOL);
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
		*(cuuint64_t *)value = pool->reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = pool->used_high;
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&pools_lock);
	return result;
}

/* True for the host and memory that it may access. */
static bool is_of_host(const struct CUmemPoolHandle_st *pool, const CUmemLocation *location)
{
	return pool->place.kind != SOFTGPU_SPACE_DEVICE && location->type == CU_MEM_LOCATION_TYPE_HOST;
}

/* All devices share one memory: access cannot be revoked and need not be granted. */
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	CUresult result = init_check_handle(pool, HANDLE_POOL);
	if (result)
		return result;
	if (count && !map)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		bool host = is_of_host(pool, &map[i].location);
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE && !host)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!host && !device_valid(map[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE && (host || map[i].location.id == pool->place.device))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	CUresult result = init_check_handle(memPool, HANDLE_POOL);
	if (result)
		return result;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE && device_valid(location->id);
	if (!device && !is_of_host(memPool, location))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

static CUresult get_pool(CUmemoryPool *pool, const pool_place_t *place, CUmemoryPool (*which)(const pool_place_t *))
{
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools_lock);
	*pool = which(place);
	pthread_mutex_unlock(&pools_lock);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult get_pool_of_device(CUmemoryPool *pool, CUdevice device, CUmemoryPool (*which)(const pool_place_t *))
{
	CUresult result = init_check();
	if (result)
		return result;
	pool_place_t place = pool_place_device(device);
	return device_valid(device) ? get_pool(pool, &place, which) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	return get_pool_of_device(pool_out, dev, default_pool);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return get_pool_of_device(pool, dev, current_pool);
}

static CUresult set_pool(const pool_place_t *place, CUmemoryPool pool)
{
	if (pool->place.index != place->index || pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools_lock);
	current_pools[place->index] = pool;
	pthread_mutex_unlock(&pools_lock);
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	CUresult result = init_check_handle(pool, HANDLE_POOL);
	if (result)
		return result;
	pool_place_t place = pool_place_device(dev);
	return device_valid(dev) ? set_pool(&place, pool) : CUDA_ERROR_INVALID_DEVICE;
}

/* ---- CUDA 13's calls with a location ---- */

static CUresult find_place(const CUmemLocation *location, CUmemAllocationType type, pool_place_t *place)
{
	CUresult result = init_check();
	if (result)
		return result;
	return location ? pool_place_find(location, type, place) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	pool_place_t place;
	CUresult result = find_place(location, type, &place);
	return result ? result : get_pool(pool_out, &place, default_pool);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	pool_place_t place;
	CUresult result = find_place(location, type, &place);
	return result ? result : get_pool(pool, &place, current_pool);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	pool_place_t place;
	CUresult result = find_place(location, type, &place);
	if (!result)
		result = init_check_handle(pool, HANDLE_POOL);
	return result ? result : set_pool(&place, pool);
}
