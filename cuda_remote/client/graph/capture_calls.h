/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What calls do while a stream is captured. Each function first tests whether any stream of the process captures. If the
 * call's stream does, the call becomes a node of its graph, and *captured is set; the caller then sends nothing. A call that
 * a capture forbids gets CUDA's error.
 */
#ifndef RC_CAPTURE_CALLS_H
#define RC_CAPTURE_CALLS_H

#include "cuda_remote/graph/capture.h"

CUresult rc_capture_launch(CUstream stream, CUfunction function, launch_shape_t shape, void **parameters, void **extra,
			   const CUlaunchAttribute *attributes, unsigned count, bool *captured);

/* One side of a copy, as client/copy.c has it. */
struct rc_capture_side {
	bool device;
	uint64_t address, pitch, slice;
};
CUresult rc_capture_copy(CUstream stream, const struct rc_capture_side *to, const struct rc_capture_side *from,
			 uint64_t width, uint64_t height, uint64_t depth, bool asynchronous, bool *captured);
CUresult rc_capture_array_copy(CUstream stream, const CUDA_MEMCPY3D *copy, bool asynchronous, bool *captured);
CUresult rc_capture_memops(CUstream stream, const CUstreamBatchMemOpParams *list, unsigned count, bool *captured);
CUresult rc_capture_host(CUstream stream, CUhostFn function, void *argument, bool *captured);
CUresult rc_capture_alloc(CUstream stream, size_t bytes, CUdeviceptr *address, bool *captured);
CUresult rc_capture_free(CUstream stream, CUdeviceptr address, bool *captured);

/* For hooks of the table. RC_ANSWERED: the call has become part of a graph. */
CUresult rc_capture_fill(CUstream stream, uint64_t to, uint64_t pitch, uint32_t value, unsigned element, uint64_t width,
			 uint64_t height);
CUresult rc_capture_wait(CUstream stream, CUevent event, unsigned flags);
/* A call that works in the legacy stream at once. */
CUresult rc_capture_now(void);

#endif
