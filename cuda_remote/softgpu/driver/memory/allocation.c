/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation: device, pitched, managed, pinned and registered memory. */
#include "cuda_remote/softgpu/space/space.h"

#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/graph/graph_allocation.h"
#include "cuda_remote/softgpu/driver/memory/pool.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_ALIGN 4096u
#define MAX_PITCH UINT64_C(2147483647)

static CUresult allocate(CUcontext context, enum softgpu_space_kind kind, size_t bytes, unsigned flags,
			 uint64_t *address)
{
	softgpu_allocation_t want = { .size = bytes, .kind = kind, .device = context->physical, .flags = flags,
				      .owner = context };
	if (softgpu_space_alloc(&want, kind == SOFTGPU_SPACE_DEVICE ? SOFTGPU_GRANULE : PAGE_ALIGN))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*address = want.base;
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	uint64_t free_now, all;
	softgpu_space_usage(context->physical, &free_now, &all);
	if (free_bytes)
		*free_bytes = free_now;
	if (total)
		*total = all;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result)
		return result;
	if (!dptr || !bytesize)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address;
	result = allocate(context, SOFTGPU_SPACE_DEVICE, bytesize, 0, &address);
	if (!result)
		*dptr = address;
	return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
			    unsigned int ElementSizeBytes)
{
	if (!pPitch || (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
		return CUDA_ERROR_INVALID_VALUE;
	size_t pitch, bytes;
	if (__builtin_add_overflow(WidthInBytes, SOFTGPU_GRANULE - 1, &pitch))
		return CUDA_ERROR_INVALID_VALUE;
	pitch &= ~(size_t)(SOFTGPU_GRANULE - 1);
	if (pitch > MAX_PITCH || __builtin_mul_overflow(pitch, Height, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = cuMemAlloc_v2(dptr, bytes);
	if (!result)
		*pPitch = pitch;
	return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result)
		return result;
	if (!dptr || !bytesize || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address;
	result = allocate(context, SOFTGPU_SPACE_MANAGED, bytesize, flags, &address);
	if (!result)
		*dptr = address;
	return result;
}

/*
 * Submitted work may still use the memory: freeing waits for it, as in CUDA. Memory that was imported without a current
 * context has no owner; the current context is the one that has used it.
 */
static CUresult free_range(CUcontext current, const softgpu_allocation_t *found)
{
	CUcontext owner = found->owner ? (CUcontext)(uintptr_t)found->owner : current;
	if (handle_valid(owner, HANDLE_CONTEXT))
		queue_wait_group(&owner->group);
	if (softgpu_space_free(found->base))
		return CUDA_ERROR_INVALID_VALUE;
	pool_note_free(found);
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result || !dptr)
		return result;
	softgpu_allocation_t found;
	if (!softgpu_space_find(dptr, &found) || found.base != dptr ||
	    (found.kind != SOFTGPU_SPACE_DEVICE && found.kind != SOFTGPU_SPACE_MANAGED && !found.pool) ||
	    (found.imported && !found.pool)) /* cuIpcCloseMemHandle's */
		return CUDA_ERROR_INVALID_VALUE;
	if (found.flags & GRAPH_MEMORY_FLAG) {
		graph_memory_t *memory;
		result = graph_memory_freed_by_call(dptr, &memory);
		if (result)
			return result;
		queue_wait_group(&context->group);
		graph_memory_release(memory);
		return CUDA_SUCCESS;
	}
	return free_range(context, &found);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	softgpu_allocation_t found;
	if (!softgpu_space_find(dptr, &found))
		return CUDA_ERROR_NOT_FOUND;
	if (pbase)
		*pbase = found.base;
	if (psize)
		*psize = found.size;
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result)
		return result;
	const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
	if (!pp || !bytesize || (Flags & ~known))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address;
	result = allocate(context, SOFTGPU_SPACE_HOST, bytesize, Flags, &address);
	if (!result)
		*pp = (void *)(uintptr_t)address;
	return result;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void *p)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result || !p)
		return result;
	softgpu_allocation_t found;
	if (!softgpu_space_find((uint64_t)(uintptr_t)p, &found) || found.kind != SOFTGPU_SPACE_HOST ||
	    found.base != (uint64_t)(uintptr_t)p || found.pool)
		return CUDA_ERROR_INVALID_VALUE;
	return free_range(context, &found);
}

/* The pinned, registered or managed allocation that contains p. */
static CUresult find_host(const void *p, softgpu_allocation_t *found)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!softgpu_space_find((uint64_t)(uintptr_t)p, found) || found->kind == SOFTGPU_SPACE_DEVICE ||
	    found->kind == SOFTGPU_SPACE_MODULE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	softgpu_allocation_t found;
	CUresult result = find_host(p, &found);
	if (result)
		return result;
	if (!pdptr || Flags)
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = (CUdeviceptr)(uintptr_t)p;
	return CUDA_SUCCESS;
}

/* All host memory is mapped into the device, with or without the flag. */
CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	softgpu_allocation_t found;
	CUresult result = find_host(p, &found);
	if (result)
		return result;
	if (!pFlags)
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = found.flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

/*
 * True if every page of the range is mapped. Otherwise a kernel's access would be a segmentation fault of the program.
 */
static bool is_mapped(uint64_t base, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = base & ~(page - 1);
	return !msync((void *)(uintptr_t)start, base + bytes - start, MS_ASYNC);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result)
		return result;
	const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
			       CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
	uint64_t end, base = (uint64_t)(uintptr_t)p;
	if (!p || !bytesize || (Flags & ~known) || __builtin_add_overflow(base, bytesize, &end) ||
	    !is_mapped(base, bytesize))
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CUDA_ERROR_NOT_SUPPORTED;
	softgpu_allocation_t range = { .base = base, .size = bytesize, .device = context->physical,
				       .flags = Flags & ~(unsigned)CU_MEMHOSTREGISTER_READ_ONLY,
				       .read_only = Flags & CU_MEMHOSTREGISTER_READ_ONLY, .owner = context };
	switch (softgpu_space_register(&range)) {
	case 0:
		return CUDA_SUCCESS;
	case -EEXIST:
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	case -EINVAL:
		return CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
}

CUresult cuMemHostUnregister(void *p)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result)
		return result;
	softgpu_allocation_t found;
	uint64_t base = (uint64_t)(uintptr_t)p;
	if (!softgpu_space_find(base, &found) || found.kind != SOFTGPU_SPACE_REGISTERED)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	if (found.base != base)
		return CUDA_ERROR_INVALID_VALUE;
	CUcontext owner = (CUcontext)(uintptr_t)found.owner;
	if (handle_valid(owner, HANDLE_CONTEXT))
		queue_wait_group(&owner->group);
	return softgpu_space_unregister(base) ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_SUCCESS;
}
