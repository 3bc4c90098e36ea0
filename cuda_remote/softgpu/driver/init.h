/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether cuInit was called, and the check that every call begins with. */
#ifndef SOFTGPU_INIT_H
#define SOFTGPU_INIT_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/handle.h"

#include <stdbool.h>

/*
 * Every call except the few that work without cuInit begins with this check. CUDA_ERROR_NOT_INITIALIZED: before cuInit,
 * or in a child that was forked after cuInit; CUDA_ERROR_NOT_PERMITTED: inside a host function or stream callback.
 */
CUresult init_check(void);
/* init_check for a call on an object: CUDA_ERROR_INVALID_HANDLE if handle is not of this kind. */
CUresult init_check_handle(const void *handle, enum handle_kind kind);

/* Says that this thread enters (true) or leaves (false) a host function of the program. */
void init_in_callback(bool inside);

#endif
