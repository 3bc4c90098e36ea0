/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver below: whatever libcuda.so.1 the dynamic linker finds, opened at first use. A program that links the
 * runtime starts without one and learns cudaErrorInsufficientDriver from its first call.
 */
#ifndef RUNTIME_DRIVER_H
#define RUNTIME_DRIVER_H

#include "cuda_remote/runtime/cuda_headers.h"

struct runtime_driver {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* three that programs still call */
#define CALL(name) __typeof__(&name) name;
#define CALL_BOTH(name) __typeof__(&name) name; __typeof__(&name) name##_ptds;
#include "cuda_remote/runtime/driver_calls.h"
#undef CALL
#undef CALL_BOTH
#pragma GCC diagnostic pop
};

/*
 * Usable after runtime_driver_open has returned cudaSuccess; constant from then on. A function that the driver does not
 * export is answered by CUDA_ERROR_NOT_SUPPORTED, so no entry is NULL.
 */
extern struct runtime_driver runtime_driver;

/*
 * Opens the driver once in the process; later calls return the first answer. Does not call into it.
 * cudaErrorInsufficientDriver: there is none, or it lacks the very basics. Any thread.
 */
cudaError_t runtime_driver_open(void);

/* runtime_driver_open and cuInit, once. cudaErrorNoDevice and the like as the driver says. */
cudaError_t runtime_driver_init(void);

#endif
