/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed memory on a server of this host: a memfd that client and worker map at one address, as mapped pinned memory is
 * (pinned.c). The calls that copy and fill see it as memory of the device. So the worker copies it in the order of streams,
 * and a call that CUDA lets wait waits for that. On a server of another host it is memory of the device, and this process has
 * a copy at the same address (mirror/).
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/managed/managed.h"
#include "rdma_channel/base/log.h"

#include <stdlib.h>

static uint64_t live; /* allocations; atomic */

bool rc_managed_at(uint64_t address)
{
	struct rc_span span;
	if (!__atomic_load_n(&live, __ATOMIC_RELAXED) && !rc_mirror_any())
		return false;
	return rc_memory_find(address, &span) && (span.kind == RC_MEMORY_MANAGED || rc_mirror_is(&span));
}

bool managed_driver_find(CUdeviceptr address, managed_memory_t *found)
{
	struct rc_span span;
	if (!rc_memory_find(address, &span) || span.kind != RC_MEMORY_MANAGED)
		return false;
	*found = (managed_memory_t){ span.base, span.size, span.id };
	return true;
}

void managed_driver_attach(const managed_memory_t *memory, unsigned flags)
{
	if (rc_mirror_any())
		rc_mirror_attach(memory->base, flags);
}

bool managed_driver_device(CUdevice device)
{
	struct rc_device *found;
	return device >= 0 && device < MANAGED_DEVICES && rc_device_get(device, &found) == CUDA_SUCCESS;
}

/* *mirrored: the device's server is on another host. */
static CUresult check_device(const struct rc_context *context, bool *mirrored)
{
	struct rc_device *device;
	CUresult result = rc_device_get(context->device, &device);
	if (result != CUDA_SUCCESS)
		return result;
	*mirrored = !rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
	if (rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
		return CUDA_SUCCESS;
	hr_log_once(HR_LOG_WARN, "device %d has no managed memory: its server must place memory at addresses of the client, as with the "
		    "software GPU; or be on this host, be reached by its Unix socket, and map pinned memory (HEADRACE_SESSION_PINNED)",
		    (int)context->device);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Maps and shares the memory. CUDA_ERROR_OUT_OF_MEMORY: also if the worker does not take it. */
static CUresult make_shared(struct rc_span *span)
{
	CUresult result = rc_pinned_make(span, span->session);
	if (result != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (span->mapped_by >> span->session->index & 1)
		result = rc_memory_add(span);
	else
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		rc_pinned_end_unused(span);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult rc_managed_make(const struct rc_context *context, struct rc_span *span)
{
	bool mirrored;
	CUresult result = check_device(context, &mirrored);
	if (result != CUDA_SUCCESS)
		return result;
	return mirrored ? rc_mirror_allocate(span) : make_shared(span);
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned flags)
{
	struct rc_context *context;
	CUresult result = capture_refuse_unsafe();
	if (result == CUDA_SUCCESS)
		result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pointer || !size || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	struct rc_span span = { .size = size, .kind = RC_MEMORY_MANAGED, .session = rc_context_session(),
				.context = context->handle, .flags = flags };
	result = rc_managed_make(context, &span);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && rc_host_pool_return())
		result = rc_managed_make(context, &span);
	if (result == CUDA_SUCCESS)
		*pointer = span.base;
	return result;
}

CUresult rc_managed_end(const struct rc_span *span)
{
	if (span->placing)
		return rc_mirror_free(span);
	CUresult result = rc_pinned_end(span);
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	return result;
}

bool rc_managed_free(CUdeviceptr pointer, CUresult *result)
{
	struct rc_span span;
	bool of_pool = rc_memory_find(pointer, &span) && span.host_pool;
	if (!of_pool && !rc_managed_at(pointer))
		return false;
	rc_peer_settle_allocation(pointer);
	*result = CUDA_ERROR_INVALID_VALUE;
	if (rc_memory_find(pointer, &span) && span.module)
		return true; /* a variable */
	bool host = of_pool && rc_memory_take(pointer, RC_MEMORY_HOST, &span);
	if (!host && !rc_memory_take(pointer, RC_MEMORY_MANAGED, &span))
		return true;
	*result = host ? rc_host_end(&span) : rc_managed_end(&span);
	if (of_pool)
		rc_host_pool_gone(&span);
	return true;
}

/* ---- calls that do not wait for device memory: the host may use managed and mapped memory when they return ---- */

bool rc_managed_waits(uint64_t address)
{
	struct rc_span span;
	return rc_memory_find(address, &span) && (span.mapped_by || span.synchronous || span.kind == RC_MEMORY_MANAGED);
}

CUresult rc_managed_settle(uint64_t address, uint64_t stream)
{
	return rc_managed_waits(address) ? rc_copy_wait_for_turn(stream) : CUDA_SUCCESS;
}

CUresult rc_managed_answer(CUresult result)
{
	if (result == CUDA_SUCCESS)
		result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)CU_STREAM_LEGACY);
	return result == CUDA_SUCCESS ? RC_ANSWERED : result;
}
