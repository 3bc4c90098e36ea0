/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Green contexts (cuda.h, "Green Contexts"): a device's primary context with a part of its multiprocessors. The handle
 * of a green context also serves as a CUcontext and then refers to the primary context (context_of). Memory, modules
 * and events belong to the primary context; streams belong to the green context. Its default stream is the primary
 * context's, which therefore waits for more work than CUDA demands.
 *
 * A green context's part is a number of multiprocessors: queries return it and cooperative launches are limited by it.
 * The device's threads run blocks of all launches as they come; CUDA permits a green context's blocks to run on more
 * multiprocessors than it has. struct CUgreenCtx_st is in context.h.
 */
#ifndef SOFTGPU_GREEN_H
#define SOFTGPU_GREEN_H

#include "cuda_remote/softgpu/driver/context/context.h"

/* Multiprocessors that a launch in stream may count on. */
unsigned green_multiprocessors(const struct CUstream_st *stream);

#endif
