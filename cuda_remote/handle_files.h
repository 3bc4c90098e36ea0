/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files behind handles for other processes: a private interface between the worker and the software GPU.
 * cuGetExportTable returns it for this UUID; other drivers do not know it.
 *
 * A CUipcMemHandle or CUipcEventHandle of the software GPU names a file of its process. Workers may not open each other's
 * files through /proc, so they pass descriptors.
 */
#ifndef RC_CUDA_HANDLE_FILES_H
#define RC_CUDA_HANDLE_FILES_H

#include <cuda.h>
#include <stddef.h>

#define RC_HANDLE_FILES_UUID { { 'h', 'r', '-', 'h', 'a', 'n', 'd', 'l', 'e', '-', 'f', 'i', 'l', 'e', '0', '1' } }

struct rc_handle_files {
	size_t size; /* of this struct */
	/* A new descriptor of the file that a handle (CU_IPC_HANDLE_SIZE bytes) of this process names; -1: it names none. */
	int (*file)(const void *handle);
	/* The calling thread's next calls that open a handle use this file instead of /proc; the caller keeps it. -1: none. */
	void (*offer)(int file);
};

#endif
