/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocation at addresses that the caller chooses: a private interface between the worker and the software GPU.
 * cuGetExportTable returns it for this UUID; other drivers do not know it. For them the worker implements it by virtual memory
 * management (server/placed/).
 *
 * The caller gives a device a window of addresses and a budget of the device's memory, and then allocates inside of both.
 * cuMemFree frees such an allocation; its bytes return to the budget. The functions act on the device of the current
 * context. An allocation belongs to the current context and ends with it; window and budget stay.
 */
#ifndef RC_CUDA_PLACED_MEMORY_H
#define RC_CUDA_PLACED_MEMORY_H

#include <cuda.h>
#include <stddef.h>

#define RC_PLACED_MEMORY_UUID { { 'h', 'r', '-', 'p', 'l', 'a', 'c', 'e', 'd', '-', 'm', 'e', 'm', '-', '0', '1' } }

struct rc_placed_memory {
	size_t size; /* of this struct */
	/* An allocation takes its size, rounded up to a multiple of granule, from the budget, and begins at a multiple of
	 * granule. One of up to small bytes lies within a page, a larger one begins at a multiple of page. */
	size_t granule, small, page;
	/* In what the budget is counted: granule as above; or page, where each page takes its size from the budget in which an
	 * allocation is. */
	size_t unit;
	/* Reserves addresses for the device's window, in multiples of page; once for each device. CUDA_ERROR_ALREADY_MAPPED:
	 * part of them is in use, or the device has a window. */
	CUresult (*window)(CUdeviceptr base, size_t bytes);
	/* Adds bytes (more) to the budget, or takes bytes (less) from it that are not in use; one of the two is 0.
	 * CUDA_ERROR_OUT_OF_MEMORY: the device has less free memory. */
	CUresult (*budget)(size_t more, size_t less);
	/* Allocates. CUDA_ERROR_ALREADY_MAPPED: overlaps another allocation; CUDA_ERROR_INVALID_VALUE: wrong address or size;
	 * CUDA_ERROR_OUT_OF_MEMORY: the budget is used up. */
	CUresult (*place)(CUdeviceptr address, size_t bytes);
};

#endif
