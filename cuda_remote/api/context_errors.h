/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors that stay with a context. */
#ifndef RC_API_CONTEXT_ERRORS_H
#define RC_API_CONTEXT_ERRORS_H

#include <cuda.h>
#include <stdbool.h>

/* True for the errors that every later call in the context returns too. */
static inline bool rc_error_stays(CUresult result)
{
	switch (result) {
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
		return true;
	default:
		return false;
	}
}

#endif
