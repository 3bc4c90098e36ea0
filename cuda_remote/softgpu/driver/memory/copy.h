/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and fills of linear memory, as boxes of bytes: depth slices of height rows of width bytes. Every variant of
 * cuMemcpy and cuMemset uses these functions.
 *
 * Every range of device-accessible memory is checked against the allocations before anything is submitted. Pageable
 * memory follows the driver API's "API synchronization behavior": a pageable source is read, and a pageable destination
 * is written, before the call returns.
 */
#ifndef SOFTGPU_COPY_H
#define SOFTGPU_COPY_H

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/memory/copy_box.h"

/*
 * Copies in stream. A synchronous call returns when host memory has been read or written. CUDA_ERROR_INVALID_VALUE: a
 * range is outside of its allocation, or not of the kind that its side names.
 */
CUresult copy_submit(CUstream stream, const copy_box_t *box, bool synchronous);

/* The checks of copy_submit alone. An empty box is CUDA_ERROR_INVALID_VALUE. */
CUresult copy_check(const copy_box_t *box);

/* Copies one row. */
CUresult copy_linear(CUstream stream, copy_side_t to, copy_side_t from, size_t bytes, bool synchronous);

/* The box of a CUDA_MEMCPY2D or CUDA_MEMCPY3D. A side may be an array. */
CUresult copy_box_from_2d(const CUDA_MEMCPY2D *copy, copy_box_t *box);
CUresult copy_box_from_3d(const CUDA_MEMCPY3D *copy, copy_box_t *box);

/* cuMemcpyPeer and its like: copies between contexts, in the stream of the current context with this handle. */
CUresult copy_peer(CUstream handle, CUcontext to, CUcontext from, const copy_box_t *box, bool synchronous);

/* Fills height rows of count elements of 1, 2 or 4 bytes. */
typedef struct fill {
	uint64_t address;
	size_t pitch, count, height;
	uint32_t value;
	unsigned element;
} fill_t;
CUresult fill_submit(CUstream stream, const fill_t *fill, bool synchronous);

/*
 * For nodes of graphs. _check: the checks of a submission. _run: the checks, then the work in the calling thread.
 * CUDA_ERROR_INVALID_VALUE: as copy_submit.
 */
CUresult copy_check_3d(const CUDA_MEMCPY3D *copy);
CUresult copy_run_3d(const CUDA_MEMCPY3D *copy);
CUresult fill_check(const fill_t *fill);
CUresult fill_run(const fill_t *fill);

#endif
