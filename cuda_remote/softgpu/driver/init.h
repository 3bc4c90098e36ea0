/* SPDX-License-Identifier: BSD-3-Clause */
/* cuInit's state. */
#ifndef SOFTGPU_INIT_H
#define SOFTGPU_INIT_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/driver/handle.h"

#include <stdbool.h>

/*
 * What every function but the first few checks: CUDA_ERROR_NOT_INITIALIZED before cuInit and in a child that was forked
 * after it; CUDA_ERROR_NOT_PERMITTED inside a host function or stream callback.
 */
CUresult init_check(void);
/* The same for a call on an object: CUDA_ERROR_INVALID_HANDLE if there is none of this kind. */
CUresult init_check_handle(const void *handle, enum handle_kind kind);

/* Marks this thread as running a program's host function, or not. */
void init_in_callback(bool inside);

#endif
