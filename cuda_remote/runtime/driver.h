/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA driver: the libcuda.so.1 that the dynamic linker finds, opened at first use. A program that links the
 * runtime starts without a driver too; its first call then returns cudaErrorInsufficientDriver.
 */
#ifndef RUNTIME_DRIVER_H
#define RUNTIME_DRIVER_H

#include "cuda_remote/runtime/cuda_headers.h"

struct runtime_driver {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* three deprecated functions that programs still call */
#define CALL(name) __typeof__(&name) name;
#define CALL_BOTH(name) __typeof__(&name) name; __typeof__(&name) name##_ptds;
#include "cuda_remote/runtime/driver_calls.h"
#undef CALL
#undef CALL_BOTH
#pragma GCC diagnostic pop
};

/*
 * The driver's functions. Valid and constant once runtime_driver_open has returned cudaSuccess. No entry is NULL: a
 * function that the driver does not export returns CUDA_ERROR_NOT_SUPPORTED.
 */
extern struct runtime_driver runtime_driver;

/*
 * Opens the driver library once in the process; later calls return the first result. Calls none of its functions.
 * cudaErrorInsufficientDriver: there is no driver, or it lacks cuInit or cuDeviceGetCount. Any thread.
 */
cudaError_t runtime_driver_open(void);

/* runtime_driver_open, then cuInit, once. Fails with cuInit's error, such as cudaErrorNoDevice. */
cudaError_t runtime_driver_init(void);

#endif
