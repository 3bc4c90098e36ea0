/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one process gives another: a descriptor of a file (memory/shared.h), named by process and number, which another
 * process of the same user opens as /proc/PROCESS/fd/NUMBER. A handle is valid as long as the process keeps the thing.
 */
#ifndef SOFTGPU_IPC_HANDLE_H
#define SOFTGPU_IPC_HANDLE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"

#include <stdbool.h>
#include <stdint.h>

/* In a CUipcMemHandle, CUipcEventHandle or CUmemPoolPtrExportData. */
typedef struct ipc_handle {
	char magic[8];
	int32_t process, file;
	uint64_t inode;        /* of the file: its number may have gone to another one */
	uint64_t offset, size; /* of the allocation in it */
	uint64_t id;
} ipc_handle_t;
_Static_assert(sizeof(ipc_handle_t) <= CU_IPC_HANDLE_SIZE, "a handle fits into CUDA's");

/* Fills in all but offset, size and id. CUDA_ERROR_OPERATING_SYSTEM. */
CUresult ipc_describe(int file, ipc_handle_t *handle);

/*
 * Opens the described file, made for purpose. CUDA_ERROR_INVALID_HANDLE: there is no such file any more, or it is not to
 * be had by this process; CUDA_ERROR_INVALID_CONTEXT: it is this process's own, which CUDA refuses too.
 */
CUresult ipc_open(const ipc_handle_t *handle, const char *purpose, int *file, int *device, uint64_t *bytes);

/* Whether file is the one that the handle describes, and the handle one of ours. */
bool ipc_describes(const ipc_handle_t *handle, int file);

#endif
