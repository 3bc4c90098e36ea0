/* SPDX-License-Identifier: BSD-3-Clause */
/* IPC of memory that is placed by virtual memory management: what the exporting worker tells, and memory that is imported. */
#ifndef RC_CUDA_PLACED_IPC_H
#define RC_CUDA_PLACED_IPC_H

#include "cuda_remote/server/internal.h"

/* In the place of a driver's handle. */
struct placed_exported {
	char magic[8];
	uint64_t extent;        /* bytes that are exported, of which the allocation is a part */
	uint64_t offset, bytes; /* the allocation */
	uint64_t worker, id;    /* drawn by the worker; unique in it */
	uint8_t zero[CU_IPC_HANDLE_SIZE - 48];
};
static_assert(sizeof(struct placed_exported) == CU_IPC_HANDLE_SIZE, "in the place of a driver's handle");

void placed_ipc_describe(struct placed_exported *exported, uint64_t extent, uint64_t offset, uint64_t bytes, uint64_t id);
/* True if it is of placed_ipc_describe, and not a handle of the driver. */
bool placed_ipc_is_placed(const struct placed_exported *exported, int file);
/* Maps the memory for the current context's device. CUDA_ERROR_INVALID_CONTEXT: it is the worker's own, which CUDA refuses. */
CUresult placed_ipc_import(const struct placed_exported *exported, int file, CUdeviceptr *address);
/* Waits for the current context and unmaps it. CUDA_ERROR_NOT_FOUND: it is not of placed_ipc_import. */
CUresult placed_ipc_close(CUdeviceptr address);
/* What was imported in one context is that of another one from now on. */
void placed_ipc_rename(CUcontext from, CUcontext to);
/* A context has ended, and what was imported in it. */
void placed_ipc_forget(CUcontext context);
/* Copies to memory that is not mapped. The work of the context is complete, before and after. */
CUresult placed_ipc_copy(CUmemGenericAllocationHandle memory, CUdeviceptr from, uint64_t bytes);

#endif
