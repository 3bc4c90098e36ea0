/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory between processes: cuIpcGetMemHandle, cuIpcOpenMemHandle and cuIpcCloseMemHandle. */
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/ipc_handle.h"
#include "cuda_remote/softgpu/space/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Memory of another process that a context has opened, mapped once however often it was opened. */
typedef struct opened {
	struct opened *next;
	owned_t owned; /* by context */
	CUcontext context;
	ipc_handle_t handle;
	uint64_t address;
	unsigned references;
} opened_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opened_t *opened;

typedef struct share {
	softgpu_allocation_t found;
	int file;
	uint64_t start, bytes;
} share_t;

static int share(void *argument)
{
	share_t *s = argument;
	return softgpu_space_share(s->found.base, &s->file, &s->start, &s->bytes);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	share_t s;
	if (!pHandle || !softgpu_space_find(dptr, &s.found) || s.found.kind != SOFTGPU_SPACE_DEVICE || s.found.pool ||
	    s.found.imported)
		return CUDA_ERROR_INVALID_VALUE;
	/* The bytes move to a file that another process can map. No command may write them meanwhile. */
	int error = queue_alone(share, &s);
	if (error)
		return error == -EINVAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	ipc_handle_t handle;
	result = ipc_describe(s.file, &handle);
	if (result)
		return result;
	handle.offset = s.found.base - s.start;
	handle.size = s.found.size;
	handle.id = s.found.id;
	memset(pHandle, 0, sizeof *pHandle);
	memcpy(pHandle, &handle, sizeof handle);
	return CUDA_SUCCESS;
}

/* Maps the allocation of a handle for context. */
static CUresult map(CUcontext context, const ipc_handle_t *handle, uint64_t *address)
{
	int file, device;
	uint64_t bytes, at;
	CUresult result = ipc_open(handle, "ipc", &file, &device, &bytes);
	if (result)
		return result;
	if (!handle->size || handle->offset > bytes || handle->size > bytes - handle->offset) {
		close(file);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	softgpu_allocation_t want = { .size = handle->size, .kind = SOFTGPU_SPACE_DEVICE, .device = context->physical,
				      .owner = context, .imported = true };
	result = CUDA_ERROR_MAP_FAILED;
	if (!softgpu_space_reserve(bytes, 0, 0, &at)) {
		want.base = at + handle->offset;
		if (softgpu_space_map(&want, at, file, 0))
			softgpu_space_unreserve(at, bytes);
		else
			result = CUDA_SUCCESS;
	}
	close(file);
	*address = want.base;
	return result;
}

static opened_t *find(CUcontext context, const ipc_handle_t *handle)
{
	opened_t *entry = opened;
	while (entry && (entry->context != context || memcmp(&entry->handle, handle, sizeof *handle)))
		entry = entry->next;
	return entry;
}

/* With the lock held. */
static void unlist(const opened_t *entry)
{
	opened_t **at = &opened;
	while (*at && *at != entry)
		at = &(*at)->next;
	if (*at)
		*at = entry->next;
}

/* The context is being destroyed. */
static void destroy_opened(owned_t *owned)
{
	opened_t *entry = OWNER_OF(owned, opened_t);
	pthread_mutex_lock(&lock);
	unlist(entry);
	pthread_mutex_unlock(&lock);
	softgpu_space_free(entry->address);
	free(entry);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!pdptr || (Flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))
		return CUDA_ERROR_INVALID_VALUE;
	ipc_handle_t described;
	memcpy(&described, &handle, sizeof described);
	pthread_mutex_lock(&lock);
	opened_t *entry = find(context, &described);
	if (!entry) {
		entry = calloc(1, sizeof *entry);
		result = entry ? map(context, &described, &entry->address) : CUDA_ERROR_OUT_OF_MEMORY;
		if (!result) {
			entry->context = context;
			entry->handle = described;
			entry->next = opened;
			opened = entry;
			owned_add(&context->owned, &entry->owned, OWNED_MAPPING, destroy_opened);
		} else {
			free(entry);
		}
	}
	if (!result) {
		entry->references++;
		*pdptr = entry->address;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	/* What was submitted may still use it. */
	queue_wait_group(&context->group);
	pthread_mutex_lock(&lock);
	opened_t *entry = opened;
	while (entry && (entry->address != dptr || entry->context != context))
		entry = entry->next;
	if (!entry) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (!--entry->references) {
		unlist(entry);
		if (owned_take(&entry->owned)) {
			softgpu_space_free(entry->address);
			free(entry);
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}
