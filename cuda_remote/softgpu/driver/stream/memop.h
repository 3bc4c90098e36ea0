/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory operations of streams and graphs, in batches: writes of values, waits for values, and barriers. A wait polls
 * the value in a worker thread, after 20 microseconds and then less often, and when memop_look is called; it ends early if
 * its context fails.
 */
#ifndef SOFTGPU_MEMOP_H
#define SOFTGPU_MEMOP_H

#include "cuda_remote/softgpu/driver/context/context.h"

#define MEMOP_MOST 255 /* in one batch, cuStreamBatchMemOp */

/* CUDA_ERROR_INVALID_VALUE: unknown operation or flag, or an address that is not device memory or not aligned. */
CUresult memop_check(const CUstreamBatchMemOpParams *operations, unsigned count, unsigned flags);

/*
 * Runs operations from index *next on. True: all are done. False: operation *next has to wait; call again later.
 * *fault becomes CUDA_ERROR_ILLEGAL_ADDRESS if an operation's memory was freed.
 */
bool memop_run(const CUstreamBatchMemOpParams *operations, unsigned count, unsigned *next, CUresult *fault);

/* Waits look at their words now. */
void memop_look(void);

/* Submits a checked batch, or adds it to the graph that the stream captures. */
CUresult memop_submit(CUstream stream, const CUstreamBatchMemOpParams *operations, unsigned count);

#endif
