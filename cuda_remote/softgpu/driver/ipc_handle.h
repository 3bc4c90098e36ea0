/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles for other processes. A handle names a file (space/shared.h) by the process that has it open and its
 * descriptor there. Another process of the same user opens /proc/PROCESS/fd/NUMBER. A handle is valid as long as its
 * process keeps the file open.
 */
#ifndef SOFTGPU_IPC_HANDLE_H
#define SOFTGPU_IPC_HANDLE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"

#include <stdbool.h>
#include <stdint.h>

/* The contents of a CUipcMemHandle, CUipcEventHandle or CUmemPoolPtrExportData. */
typedef struct ipc_handle {
	char magic[8];
	int32_t process, file;
	uint64_t inode;        /* of the file; the descriptor may belong to another file by now */
	uint64_t offset, size; /* of the allocation in the file */
	uint64_t id;
} ipc_handle_t;
_Static_assert(sizeof(ipc_handle_t) <= CU_IPC_HANDLE_SIZE, "a handle fits into CUDA's");

/* Fills in a handle of the file, except offset, size and id. CUDA_ERROR_OPERATING_SYSTEM. */
CUresult ipc_describe(int file, ipc_handle_t *handle);

/*
 * Opens the file of a handle; the file must have been made for this purpose. CUDA_ERROR_INVALID_HANDLE: the file is
 * closed, or this process may not open it; CUDA_ERROR_INVALID_CONTEXT: it is this process's own handle, which CUDA
 * refuses too.
 */
CUresult ipc_open(const ipc_handle_t *handle, const char *purpose, int *file, int *device, uint64_t *bytes);

/* The functions of struct rc_handle_files (handle_files.h). */
int ipc_file(const void *handle);
void ipc_offer(int file);

/* True if the handle is valid in form and describes this file. */
bool ipc_describes(const ipc_handle_t *handle, int file);

#endif
