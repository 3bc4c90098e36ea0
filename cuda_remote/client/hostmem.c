/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host memory that the program asked for as pinned: marked so that copies from and to it are asynchronous, and shared with
 * the workers on this host (pinned.c), so that their kernels may use it. A worker on another host has a copy of the memory
 * that the program allocated as mapped (mirror/), or of all of it, by a setting, and its kernels use the copy. Other pinned
 * memory gets a copy once kernels use it (mirror/promote.c).
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/early.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <stdlib.h>
#include <string.h>

static bool wants_mapped(unsigned flags)
{
	return flags & CU_MEMHOSTALLOC_DEVICEMAP || rc_host_mapping() == RC_MAP_ALL;
}

/* Mapped memory of a device on another host: a mirror. *made false: the device does not have it, and nothing was allocated. */
static CUresult make_mirror(const struct rc_context *context, struct rc_span *span, bool *made)
{
	struct rc_device *device;
	CUresult result = rc_device_get(context->device, &device);
	*made = result == CUDA_SUCCESS && !device->session->local && rc_mirror_supported(device->session);
	if (!*made)
		return result;
	span->session = device->session;
	span->mapped_by = 1ull << device->session->index;
	return rc_mirror_allocate(span);
}

/* True if kernels of the current context may use the memory. */
static bool is_mapped(const struct rc_span *span)
{
	const struct rc_session *session = rc_context_session();
	if (session && span->mapped_by >> session->index & 1)
		return true;
	hr_log_once(HR_LOG_WARN, "kernels cannot use this host memory: only memory of cuMemHostAlloc and cuMemAllocHost, within "
				 "HEADRACE_SESSION_PINNED, on a server of this host that is reached by its Unix socket");
	return false;
}

CUresult rc_host_make(const struct rc_context *context, struct rc_span *span)
{
	bool mirror = false;
	CUresult result = CUDA_SUCCESS;
	if (wants_mapped(span->flags))
		result = make_mirror(context, span, &mirror);
	if (mirror || result != CUDA_SUCCESS)
		return result;
	bool mapped = span->flags & CU_MEMHOSTALLOC_DEVICEMAP;
	struct rc_session *session = mapped ? rc_context_session() : NULL;
	if (session && !session->local && !is_mapped(span)) /* no worker need take the memory */
		return CUDA_ERROR_NOT_SUPPORTED;
	result = rc_pinned_make(span, session);
	bool missing = mapped && (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED) && !is_mapped(span);
	if (result != CUDA_SUCCESS)
		return result;
	result = missing ? CUDA_ERROR_NOT_SUPPORTED : rc_memory_add(span);
	if (result == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	rc_pinned_end_unused(span);
	return missing ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags)
{
	struct rc_context *context;
	const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
	if (!pointer || !size || flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_span span = { .size = size, .kind = RC_MEMORY_HOST, .context = context->handle, .flags = flags };
	result = rc_host_make(context, &span);
	if (result == CUDA_SUCCESS)
		*pointer = (void *)(uintptr_t)span.base;
	return result;
}

CUresult cuMemAllocHost_v2(void **pointer, size_t size)
{
	return cuMemHostAlloc(pointer, size, 0);
}

/* Waits for asynchronous copies and for graphs. The first call may return the failure of an earlier call instead of
 * waiting; then the second one waits. */
static CUresult synchronize(CUcontext context)
{
	CUresult result = rc_context_wait(context);
	if (result != CUDA_SUCCESS && (rc_copy_any_later() || rc_graph_host_any()))
		rc_context_wait(context);
	return result;
}

static void synchronize_each(uint64_t handle, void *data, void *context)
{
	(void)data;
	(void)context;
	synchronize((CUcontext)(uintptr_t)handle);
}

/* Waits for what may still use memory that the program is freeing or unregistering. A graph that has failed does not use it any
 * more, nor one of a server that asks too late. */
static CUresult settle(uint64_t address, uint64_t size)
{
	bool graphs = rc_graph_host_pending(address, size);
	CUresult result = rc_copy_any_later() || graphs ? synchronize(NULL) : CUDA_SUCCESS;
	if ((rc_copy_pending(address, size) || rc_graph_host_pending(address, size)) && result != RC_LOST)
		rc_handle_each(RC_KIND_CONTEXT, synchronize_each, NULL);
	rc_peer_settle_memory(address, size);
	if (graphs)
		rc_graph_host_forget(address, size);
	return result;
}

/* settled: the result of the wait for copies. */
static CUresult free_mirror(const struct rc_span *span, CUresult settled)
{
	if (settled == RC_LOST || rc_copy_pending(span->base, span->size))
		return settled;
	if (!span->mapped_by) { /* its context has ended */
		rc_mirror_unmap(span);
		return settled;
	}
	CUresult result = rc_mirror_free(span);
	return settled == CUDA_SUCCESS ? result : settled;
}

CUresult cuMemFreeHost(void *pointer)
{
	struct rc_context *context;
	struct rc_span span;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t address = (uint64_t)(uintptr_t)pointer;
	if (!rc_memory_find(address, &span) || span.base != address || span.kind != RC_MEMORY_HOST || span.host_pool)
		return CUDA_ERROR_INVALID_VALUE;
	result = settle(address, span.size);
	rc_early_forget(address, span.size);
	CUresult ended = span.promoted ? rc_promote_end(&span) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = ended;
	if (rc_mirror_is(&span))
		return rc_memory_remove(span.base) ? free_mirror(&span, result) : CUDA_ERROR_INVALID_VALUE;
	bool over;
	CUresult freed = rc_pinned_free(&span, &over);
	if (result == CUDA_SUCCESS)
		result = freed;
	/* Memory that a copy or a worker may still write to is not given back: something else could be mapped there. */
	if (rc_memory_remove(address) && over && result != RC_LOST && !rc_copy_pending(address, span.size))
		rc_pinned_unmap(&span);
	return result;
}

/* Memory of a pool, which is never promoted. */
CUresult rc_host_end(const struct rc_span *span)
{
	bool over;
	CUresult result = settle(span->base, span->size);
	rc_early_forget(span->base, span->size);
	if (rc_mirror_is(span))
		return free_mirror(span, result);
	CUresult freed = rc_pinned_free(span, &over);
	if (result == CUDA_SUCCESS)
		result = freed;
	if (over && result != RC_LOST && !rc_copy_pending(span->base, span->size))
		rc_pinned_unmap(span);
	return result;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *pointer)
{
	struct rc_context *context;
	struct rc_span span;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!rc_memory_find((uint64_t)(uintptr_t)pointer, &span) || span.kind != RC_MEMORY_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	bool mapped = span.mapped_by || rc_promote_possible(rc_context_session(), &span);
	*flags = span.flags | (mapped ? CU_MEMHOSTALLOC_DEVICEMAP : 0);
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *pointer, unsigned flags)
{
	struct rc_context *context;
	struct rc_span span;
	const char *reason;
	if (!device || flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!rc_memory_find((uint64_t)(uintptr_t)pointer, &span) ||
	    (span.kind < RC_MEMORY_HOST && span.kind != RC_MEMORY_MANAGED))
		return CUDA_ERROR_INVALID_VALUE;
	bool promoted = rc_promote(rc_context_session(), (uint64_t)(uintptr_t)pointer, &reason) == CUDA_SUCCESS;
	if (span.kind != RC_MEMORY_MANAGED && !promoted && !is_mapped(&span))
		return CUDA_ERROR_NOT_SUPPORTED;
	*device = (CUdeviceptr)(uintptr_t)pointer;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t size, unsigned flags)
{
	struct rc_context *context;
	struct rc_span span;
	const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
			       CU_MEMHOSTREGISTER_READ_ONLY;
	if (!pointer || !size || flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	/* Mapped memory is pinned for copies. Its device address is what is missing: cuMemHostGetDevicePointer says so. */
	if (flags & ~(unsigned)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))
		return CUDA_ERROR_NOT_SUPPORTED;
	uint64_t address = (uint64_t)(uintptr_t)pointer;
	if (rc_memory_find(address, &span) || rc_memory_find(address + size - 1, &span))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return rc_memory_add(&(struct rc_span){ .base = address, .size = size, .kind = RC_MEMORY_REGISTERED,
						.context = context->handle, .flags = flags });
}

CUresult cuMemHostUnregister(void *pointer)
{
	struct rc_context *context;
	struct rc_span span;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t address = (uint64_t)(uintptr_t)pointer;
	if (!rc_memory_find(address, &span) || span.kind != RC_MEMORY_REGISTERED)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	if (span.base != address)
		return CUDA_ERROR_INVALID_VALUE;
	result = settle(address, span.size);
	CUresult ended = span.promoted ? rc_promote_end(&span) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = ended;
	/* The memory is the program's, which may free it now. */
	rc_copy_forget(address, span.size);
	rc_early_forget(address, span.size);
	rc_memory_remove(address);
	return result;
}

/* ---- what a pointer is ---- */

/* The only device of a server. */
static CUresult only_device(const struct rc_session *session, CUdevice *device)
{
	struct rc_device *known;
	unsigned found = 0;
	for (CUdevice i = 0; rc_device_get(i, &known) == CUDA_SUCCESS; i++)
		if (known->session == session && !found++)
			*device = i;
	return found == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Memory of another process's pool that was imported without a context has none. */
static CUresult device_of(const struct rc_span *span, CUdevice *device)
{
	if (!span->context && span->imported)
		return only_device(span->session, device);
	struct rc_context *context = rc_handle_data(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)span->context);
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*device = context->device;
	return CUDA_SUCCESS;
}

/* The attributes of the mapping that the pointer is in. Memory that is not of a reservation is one mapping. */
static CUresult mapping_attribute(void *data, CUpointer_attribute attribute, const struct rc_span *span, CUdeviceptr pointer)
{
	uint64_t base = span->base, size = span->size;
	unsigned long long types = 0;
	if (span->reserved && !rc_virtual_mapping(pointer, &base, &size, &types))
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR)
		*(CUdeviceptr *)data = base;
	else if (attribute == CU_POINTER_ATTRIBUTE_MAPPING_SIZE)
		*(size_t *)data = size;
	else if (span->pooled && !span->host_pool) /* those of its pool, which are not known here */
		return CUDA_ERROR_NOT_SUPPORTED;
	else
		*(unsigned long long *)data = types;
	return CUDA_SUCCESS;
}

/* The pool of an allocation; NULL: it is of none. */
static CUresult pool_of(const struct rc_span *span, CUmemoryPool *pool)
{
	CUdevice device;
	*pool = (CUmemoryPool)(uintptr_t)(span->host_pool ? span->host_pool : span->pool);
	if (*pool || !span->pooled)
		return CUDA_SUCCESS;
	if (span->imported)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = device_of(span, &device);
	return result == CUDA_SUCCESS ? cuDeviceGetDefaultMemPool(pool, device) : result;
}

static CUresult pointer_attribute(void *data, CUpointer_attribute attribute, const struct rc_span *span, CUdeviceptr pointer)
{
	bool device = span->kind <= RC_MEMORY_GLOBAL, managed = span->kind == RC_MEMORY_MANAGED;
	/* A launch with the address among its parameters maps pinned memory. */
	bool mapped = device || span->mapped_by || rc_promote_possible(rc_context_session(), span);
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		if (span->pooled || span->reserved)
			*(CUcontext *)data = NULL;
		else
			*(CUcontext *)data = span->context;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = mapped ? pointer : 0;
		return mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)data = device && !managed ? NULL : (void *)(uintptr_t)pointer;
		return device && !managed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = span->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)data = managed;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(bool *)data = rc_memory_exportable(span);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(bool *)data = false;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(bool *)data = span->synchronous;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		if (!span->reserved)
			return device_of(span, data);
		return rc_virtual_device(pointer, data) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = span->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = span->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(bool *)data = mapped;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return mapping_attribute(data, attribute, span, pointer);
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*(bool *)data = false;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned *)data = (unsigned)span->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return pool_of(span, data);
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		if (span->reserved) /* those of its mapping, which are not known here */
			return CUDA_ERROR_NOT_SUPPORTED;
		*(unsigned *)data = mapped ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct rc_process *process;
	struct rc_span span;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		result = rc_callback_check();
	if (result != CUDA_SUCCESS)
		return result;
	if (!rc_memory_find(pointer, &span))
		return CUDA_ERROR_INVALID_VALUE;
	return pointer_attribute(data, attribute, &span, pointer);
}

/* The value that cuPointerGetAttributes stores for an attribute that the pointer does not have. */
static void pointer_attribute_none(void *data, CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		memset(data, 0, 8);
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = -2;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)data = 0;
		break;
	default:
		*(bool *)data = false;
	}
}

CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *attributes, void **data, CUdeviceptr pointer)
{
	struct rc_process *process;
	struct rc_span span;
	if (!n || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		result = rc_callback_check();
	if (result != CUDA_SUCCESS)
		return result;
	bool found = rc_memory_find(pointer, &span);
	for (unsigned i = 0; i < n; i++) {
		result = found ? pointer_attribute(data[i], attributes[i], &span, pointer) : CUDA_ERROR_INVALID_VALUE;
		if (result == CUDA_ERROR_NOT_SUPPORTED)
			return result;
		if (result != CUDA_SUCCESS)
			pointer_attribute_none(data[i], attributes[i]);
	}
	return CUDA_SUCCESS;
}

/* Only SYNC_MEMOPS can be set. Calls on host memory wait in any case, so the server need not know of it. */
CUresult pointer_check_set(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct rc_context *context;
	struct rc_span span;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !rc_memory_find(pointer, &span))
		return CUDA_ERROR_INVALID_VALUE;
	if (span.kind == RC_MEMORY_DEVICE || span.kind == RC_MEMORY_GLOBAL)
		return CUDA_SUCCESS;
	(void)pointer_done_set(value, attribute, pointer);
	return RC_ANSWERED;
}

CUresult pointer_done_set(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	(void)attribute;
	rc_memory_set_synchronous(pointer, *(const unsigned *)value != 0);
	return CUDA_SUCCESS;
}
