/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles by which another process opens a file of this one. */
#include "cuda_remote/softgpu/driver/ipc_handle.h"

#include "cuda_remote/softgpu/space/shared.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "HRSGIPC1"

static __thread int offered = -1; /* ipc_offer */

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
	int own = offered >= 0 ? fcntl(offered, F_DUPFD_CLOEXEC, 0) : softgpu_shared_open(handle->process, handle->file);
	if (own < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!softgpu_shared_check(own, purpose, device, bytes) || !ipc_describes(handle, own)) {
		close(own);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	*file = own;
	return CUDA_SUCCESS;
}

void ipc_offer(int file)
{
	offered = file;
}

int ipc_file(const void *handle)
{
	ipc_handle_t described;
	memcpy(&described, handle, sizeof described);
	if (described.process != (int32_t)getpid() || described.file < 0)
		return -1;
	/* The descriptor is looked at once it is this function's own: another thread may close the number meanwhile. */
	int own = fcntl(described.file, F_DUPFD_CLOEXEC, 0);
	if (own >= 0 && !ipc_describes(&described, own)) {
		close(own);
		own = -1;
	}
	return own;
}
