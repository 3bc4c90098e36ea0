/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory operations of streams and graphs: write a value, wait for one, and barriers, in batches. A wait looks at the
 * value again every few microseconds, in a worker thread of its own; it ends early when its context has failed.
 */
#ifndef SOFTGPU_MEMOP_H
#define SOFTGPU_MEMOP_H

#include "cuda_remote/softgpu/driver/context/context.h"

#define MEMOP_MOST 255 /* in one batch, cuStreamBatchMemOp */

/* CUDA_ERROR_INVALID_VALUE: an unknown operation or flag, memory that is not the device's or not aligned. */
CUresult memop_check(const CUstreamBatchMemOpParams *operations, unsigned count, unsigned flags);

/*
 * Does operations from the one numbered *next on until one has to wait or all are done: true if all are. *next is where
 * to go on. CUDA_ERROR_ILLEGAL_ADDRESS in *fault: memory is gone.
 */
bool memop_run(const CUstreamBatchMemOpParams *operations, unsigned count, unsigned *next, CUresult *fault);

/* Queues a batch, which was checked, or adds it to the graph that the stream is captured into. */
CUresult memop_submit(CUstream stream, const CUstreamBatchMemOpParams *operations, unsigned count);

#endif
