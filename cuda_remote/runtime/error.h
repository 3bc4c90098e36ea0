/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors: the driver's codes as the runtime's, and the last error of each thread.
 *
 * A call that fails records its error for cudaGetLastError; success and cudaErrorNotReady, which is an answer and no
 * error, are not recorded. An error after which the context is lost (illegal address and its like) is sticky:
 * cudaGetLastError returns it again and again, until cudaDeviceReset.
 */
#ifndef RUNTIME_ERROR_H
#define RUNTIME_ERROR_H

#include "cuda_remote/runtime/cuda_headers.h"

/* What the runtime calls a driver's result. Records nothing. */
cudaError_t runtime_error_translate(CUresult result);

/* Records and returns error: how a public function that has found an error itself ends. */
cudaError_t runtime_fail(cudaError_t error);

/* Translates, records, returns: how a public function ends whose last step was a driver call. */
cudaError_t runtime_done(CUresult result);

/* After a reset of the device: the calling thread's sticky error is over. */
void runtime_error_clear(void);

#endif
