/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's own functions in a stream. They run on a worker thread, where no CUDA call is permitted. */
#ifndef SOFTGPU_HOST_FUNCTION_H
#define SOFTGPU_HOST_FUNCTION_H

#include "cuda_remote/softgpu/driver/queue/queue.h"

/* cuLaunchHostFunc: not called once the context has failed. CUDA_ERROR_INVALID_VALUE: no function. */
CUresult host_function_submit(CUstream stream, CUhostFn function, void *data);

/* cuStreamAddCallback: called in any case, with the context's error and the handle as the program knows it. */
CUresult host_callback_submit(CUstream stream, CUstream handle, CUstreamCallback callback, void *data);

#endif
