/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Green contexts (cuda.h, "Green Contexts"): a device's primary context with a part of its multiprocessors. A green
 * context's handle is good as a CUcontext too, in which place it stands for the primary context (context_of), so that
 * memory, modules and events are the primary's. Its own are its streams. Its default stream is the primary context's:
 * that waits for more than it must.
 *
 * A part is a number of multiprocessors. It is told, and limits cooperative launches; blocks of all launches are run by
 * the device's threads as they come, as CUDA allows a green context's to run on more multiprocessors than it has.
 */
#ifndef SOFTGPU_GREEN_H
#define SOFTGPU_GREEN_H

#include "cuda_remote/softgpu/driver/context/context.h"

/* Multiprocessors that a launch in stream may count on. */
unsigned green_multiprocessors(const struct CUstream_st *stream);

#endif
