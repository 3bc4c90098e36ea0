/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory pools and stream-ordered allocation. A device's default pool is an alias (alias.c). The client keeps which pool is
 * the device's current one, as another thread may destroy it at any time: then the default pool is the current one.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

static uint64_t current[RC_SERVER_MAX * RC_DEVICES_MAX]; /* by the program's number of the device; 0: the default pool; atomic */

/* The stream that a per-thread variant means by NULL. */
static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* ---- pools ---- */

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	struct rc_device *device;
	if (!pool || !properties)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->allocType == CU_MEM_ALLOCATION_TYPE_INVALID)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc_host_pool_place(&properties->location, properties->allocType)) {
		struct rc_process *process;
		CUresult result = rc_process_get(&process);
		return result == CUDA_SUCCESS ? rc_host_pool_create(pool, properties) : result;
	}
	if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    (properties->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = rc_device_get(properties->location.id, &device);
	if (result != CUDA_SUCCESS)
		return result;
	CUmemPoolProps sent = *properties;
	sent.location.id = device->ordinal;
	struct {
		struct rc_wire_call head;
		uint64_t pool;
	} message = { .pool = 0 };
	struct iovec iov = { &sent, sizeof sent };
	struct rc_link *link;
	result = rc_link_to(device->session, device->primary, &link);
	if (result == CUDA_SUCCESS)
		result = rc_handle_new(RC_KIND_POOL, link->session, &message.pool);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_call(link, RC_CALL_pool_create, 0, &message.head, sizeof message, &iov, 1);
	if (result == CUDA_SUCCESS)
		*pool = (CUmemoryPool)(uintptr_t)message.pool;
	else
		rc_handle_delete(message.pool);
	return result;
}

CUresult pool_check_destroy(CUmemoryPool pool)
{
	CUresult result = rc_handle_check(RC_KIND_POOL, (uint64_t)(uintptr_t)pool);
	if (result == CUDA_SUCCESS && rc_host_pool_is(pool)) {
		result = rc_host_pool_destroy(pool);
		return result == CUDA_SUCCESS ? RC_ANSWERED : result;
	}
	if (result != CUDA_SUCCESS)
		return result;
	return rc_alias_is((uint64_t)(uintptr_t)pool) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; /* a default pool stays */
}

CUresult pool_check_set(CUdevice device, CUmemoryPool pool)
{
	struct rc_device *found;
	CUresult result = rc_handle_check(RC_KIND_POOL, (uint64_t)(uintptr_t)pool);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(device, &found);
	if (result != CUDA_SUCCESS)
		return result;
	return rc_handle_session((uint64_t)(uintptr_t)pool) == found->session ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult pool_done_set(CUdevice device, CUmemoryPool pool)
{
	__atomic_store_n(&current[device], (uint64_t)(uintptr_t)pool, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	struct rc_device *found;
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(device, &found);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t handle = __atomic_load_n(&current[device], __ATOMIC_RELAXED);
	if (!handle || rc_handle_check(RC_KIND_POOL, handle) != CUDA_SUCCESS)
		return cuDeviceGetDefaultMemPool(pool, device);
	*pool = (CUmemoryPool)(uintptr_t)handle;
	return CUDA_SUCCESS;
}

/* CUDA 13's calls with a location. *of_host: its pools are those of host_pool.c; else they are a device's. */
static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type, bool *of_host)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!location || (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
		return CUDA_ERROR_INVALID_VALUE;
	*of_host = rc_host_pool_place(location, type);
	return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	bool of_host;
	CUresult result = check_location(location, type, &of_host);
	if (result != CUDA_SUCCESS)
		return result;
	return of_host ? rc_host_pool_of_place(location, type, false, pool) : cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	bool of_host;
	CUresult result = check_location(location, type, &of_host);
	if (result != CUDA_SUCCESS)
		return result;
	return of_host ? rc_host_pool_of_place(location, type, true, pool) : cuDeviceGetMemPool(pool, location->id);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	bool of_host;
	CUresult result = check_location(location, type, &of_host);
	if (result == CUDA_SUCCESS)
		result = rc_handle_check(RC_KIND_POOL, (uint64_t)(uintptr_t)pool);
	if (result != CUDA_SUCCESS)
		return result;
	return of_host ? rc_host_pool_make_current(location, type, pool) : cuDeviceSetMemPool(location->id, pool);
}

/* ---- stream-ordered allocation ---- */

static CUresult free_async(struct rc_link *link, CUdeviceptr pointer, uint64_t stream, uint64_t *number)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_free call;
	} message = { .call = { pointer, stream } };
	CUresult result = rc_link_post(link, RC_CALL_memory_free_async, 0, &message.head, sizeof message, NULL, 0);
	*number = message.head.number;
	return result;
}

/* The current pool of the device that a call without a pool allocates on; 0: its default pool. */
static uint64_t current_of(const struct rc_route *route)
{
	CUcontext handle = route->context ? (CUcontext)(uintptr_t)route->context : rc_context_current();
	const struct rc_context *context = rc_handle_data(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)handle);
	uint64_t pool = context ? __atomic_load_n(&current[context->device], __ATOMIC_RELAXED) : 0;
	return pool && rc_handle_check(RC_KIND_POOL, pool) == CUDA_SUCCESS ? pool : 0;
}

/* pool: NULL for the device's current one. */
static CUresult alloc_async(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_alloc call;
	} message = { .call = { size, (uint64_t)(uintptr_t)stream, (uint64_t)(uintptr_t)pool } };
	if (!pointer)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool && rc_handle_check(RC_KIND_POOL, message.call.pool) == CUDA_SUCCESS && rc_host_pool_is(pool))
		return rc_host_pool_alloc(pointer, size, pool, stream);
	bool captured = false;
	struct rc_route route = { NULL, 0, false };
	CUresult result = size ? rc_capture_alloc(stream, size, pointer, &captured) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS || captured)
		return result;
	result = rc_route_handle(&route, RC_KIND_STREAM, message.call.stream);
	if (result == CUDA_SUCCESS && pool)
		result = rc_route_handle(&route, RC_KIND_POOL, message.call.pool);
	if (result == CUDA_SUCCESS && !size) {
		*pointer = 0;
		return CUDA_SUCCESS;
	}
	struct rc_link *link;
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_memory_alloc_async, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t address, number;
	if (link->reply_len != sizeof address)
		return rc_link_broken(link, RC_CALL_memory_alloc_async);
	memcpy(&address, link->reply, sizeof address);
	struct rc_span span = { .base = address, .size = size, .kind = RC_MEMORY_DEVICE, .session = link->session,
				.context = route.context ? (CUcontext)(uintptr_t)route.context : rc_context_current(),
				.pooled = true, .pool = message.call.pool ? message.call.pool : current_of(&route) };
	result = rc_memory_add(&span);
	if (result == CUDA_SUCCESS)
		*pointer = address;
	else
		free_async(link, address, message.call.stream, &number);
	if (result != CUDA_ERROR_ALREADY_MAPPED)
		return result;
	hr_log(HR_LOG_ERROR, "server %s allocates memory at %#llx, where the program has other memory; run the program again",
	       link->server, (unsigned long long)address);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream)
{
	return alloc_async(pointer, size, NULL, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
	return pool ? alloc_async(pointer, size, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	bool captured = false;
	struct rc_route route = { NULL, 0, false };
	CUresult result = pointer ? rc_capture_free(stream, pointer, &captured) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS || captured)
		return result;
	result = rc_route_handle(&route, RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	if (result == CUDA_SUCCESS)
		result = rc_route_address(&route, pointer);
	if (result != CUDA_SUCCESS || !pointer)
		return result;
	if (rc_host_pool_free(pointer, stream, &result))
		return result;
	if (rc_graph_memory_free_async(pointer, &result))
		return result;
	struct rc_link *link;
	struct rc_span span;
	uint64_t number;
	result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS && !rc_memory_take(pointer, RC_MEMORY_DEVICE, &span))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = free_async(link, pointer, (uint64_t)(uintptr_t)stream, &number);
	if (result == CUDA_SUCCESS && span.placing)
		rc_placing_leave(&span, number);
	if (result == CUDA_SUCCESS && span.imported)
		rc_ipc_gone(&span);
	return result;
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
	return cuMemAllocFromPoolAsync(pointer, size, pool, own(stream));
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t size, CUstream stream)
{
	return cuMemAllocAsync(pointer, size, own(stream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
	return cuMemFreeAsync(pointer, own(stream));
}
