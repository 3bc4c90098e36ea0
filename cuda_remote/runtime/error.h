/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors: translation of the driver's codes, and the last error of each thread.
 *
 * A call that fails records its error for cudaGetLastError. cudaErrorNotReady is a result, not an error, and is not
 * recorded. An error after which the context cannot be used, such as an illegal address, is sticky: cudaGetLastError
 * returns it until cudaDeviceReset.
 */
#ifndef RUNTIME_ERROR_H
#define RUNTIME_ERROR_H

#include "cuda_remote/runtime/cuda_headers.h"

/* The runtime's code for a driver's result. Records nothing. */
cudaError_t runtime_error_translate(CUresult result);

/* Records error and returns it. A public function that detects an error ends with this. */
cudaError_t runtime_fail(cudaError_t error);

/* Translates, records and returns. A public function whose last step is a driver call ends with this. */
cudaError_t runtime_done(CUresult result);

/* Clears the calling thread's sticky error, after a reset of the device. */
void runtime_error_clear(void);

#endif
