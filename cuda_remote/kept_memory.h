/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered host memory that stays mapped: a private interface between the worker and the software GPU. cuGetExportTable
 * returns it for this UUID; other drivers do not know it.
 *
 * A program may unmap memory that it has registered. So the software GPU asks the kernel at each launch whether each
 * registered range is still mapped, a system call for each. The worker unmaps none before it has unregistered it.
 */
#ifndef RC_CUDA_KEPT_MEMORY_H
#define RC_CUDA_KEPT_MEMORY_H

#include <cuda.h>
#include <stddef.h>

#define RC_KEPT_MEMORY_UUID { { 'h', 'r', '-', 'k', 'e', 'p', 't', '-', 'm', 'e', 'm', 'o', 'r', 'y', '-', '2' } }

struct rc_kept_memory {
	size_t size; /* of this struct */
	/* The memory that cuMemHostRegister has registered at this address stays mapped until it is unregistered.
	 * CUDA_ERROR_INVALID_VALUE: none is registered there. */
	CUresult (*keep)(const void *memory);
	/* Another process reads next what copies write to the memory at this address, which is kept. So a copy may write it past
	 * the cache, if that is faster. The same error. */
	CUresult (*give)(const void *memory);
};

#endif
