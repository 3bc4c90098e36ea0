/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the program in a stream. They run in a worker thread and must not call CUDA. */
#ifndef SOFTGPU_HOST_FUNCTION_H
#define SOFTGPU_HOST_FUNCTION_H

#include "cuda_remote/softgpu/driver/queue/queue.h"

/* cuLaunchHostFunc. The function is not called after the context has failed. CUDA_ERROR_INVALID_VALUE: it is NULL. */
CUresult host_function_submit(CUstream stream, CUhostFn function, void *data);

/* cuStreamAddCallback. The callback is always called: with the program's handle and the context's fault. */
CUresult host_callback_submit(CUstream stream, CUstream handle, CUstreamCallback callback, void *data);

#endif
