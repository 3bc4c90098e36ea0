/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/softgpu/driver/memory/ipc.h"

#include "cuda_remote/softgpu/space/shared.h"
#include "cuda_remote/softgpu/space/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "HRSGIPC1"

/* Memory of another process that a context has opened, once however often. */
typedef struct opened {
	struct opened *next;
	CUcontext context;
	ipc_handle_t handle;
	uint64_t address;
	unsigned references;
} opened_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opened_t *opened;

CUresult ipc_describe(int file, ipc_handle_t *handle)
{
	struct stat about;
	if (fstat(file, &about))
		return CUDA_ERROR_OPERATING_SYSTEM;
	memset(handle, 0, sizeof *handle);
	memcpy(handle->magic, MAGIC, sizeof handle->magic);
	handle->process = (int32_t)getpid();
	handle->file = file;
	handle->inode = about.st_ino;
	return CUDA_SUCCESS;
}

bool ipc_describes(const ipc_handle_t *handle, int file)
{
	struct stat about;
	return !memcmp(handle->magic, MAGIC, sizeof handle->magic) && !fstat(file, &about) &&
	       about.st_ino == handle->inode;
}

CUresult ipc_open(const ipc_handle_t *handle, const char *purpose, int *file, int *device, uint64_t *bytes)
{
	if (memcmp(handle->magic, MAGIC, sizeof handle->magic) || handle->process <= 0 || handle->file < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	if (handle->process == (int32_t)getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	int own = softgpu_shared_open(handle->process, handle->file);
	if (own < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!softgpu_shared_check(own, purpose, device, bytes) || !ipc_describes(handle, own)) {
		close(own);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	*file = own;
	return CUDA_SUCCESS;
}

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
	/* The bytes move to where another process can map them: nothing may write them meanwhile. */
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

/* Maps a described allocation for context. */
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
	opened_t **at = &opened;
	while (*at && ((*at)->address != dptr || (*at)->context != context))
		at = &(*at)->next;
	opened_t *entry = *at;
	if (!entry) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (!--entry->references) {
		*at = entry->next;
		softgpu_space_free(entry->address);
		free(entry);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

void ipc_close_all(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (opened_t **at = &opened; *at;) {
		opened_t *entry = *at;
		if (entry->context != context) {
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		softgpu_space_free(entry->address);
		free(entry);
	}
	pthread_mutex_unlock(&lock);
}
