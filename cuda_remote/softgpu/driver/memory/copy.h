/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and fills of linear memory, as boxes of bytes: depth slices of height rows of width bytes. What every variant
 * of cuMemcpy and cuMemset comes down to.
 *
 * Every range of device-accessible memory is checked against the allocations before anything is submitted. Pageable
 * memory is treated as the driver API's "API synchronization behavior" says: a source is read before the call returns,
 * a destination written before it returns.
 */
#ifndef SOFTGPU_COPY_H
#define SOFTGPU_COPY_H

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/memory/copy_box.h"

/*
 * Copies in stream; a synchronous call returns when host memory is done with. CUDA_ERROR_INVALID_VALUE: a wrong range.
 */
CUresult copy_submit(CUstream stream, const copy_box_t *box, bool synchronous);

/* The checks of copy_submit alone, and that there is something to copy. */
CUresult copy_check(const copy_box_t *box);

/* One row. */
CUresult copy_linear(CUstream stream, copy_side_t to, copy_side_t from, size_t bytes, bool synchronous);

/* The box of CUDA_MEMCPY2D or 3D, where a side may be an array. */
CUresult copy_box_from_2d(const CUDA_MEMCPY2D *copy, copy_box_t *box);
CUresult copy_box_from_3d(const CUDA_MEMCPY3D *copy, copy_box_t *box);

/* Copies in the current context's stream with the handle, after all checks that copies between contexts need. */
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
 * What a graph's nodes do: the checks that are made when a copy or fill is submitted, and the work itself in the
 * calling thread, after them. CUDA_ERROR_INVALID_VALUE: a wrong range.
 */
CUresult copy_check_3d(const CUDA_MEMCPY3D *copy);
CUresult copy_run_3d(const CUDA_MEMCPY3D *copy);
CUresult fill_check(const fill_t *fill);
CUresult fill_run(const fill_t *fill);

#endif
