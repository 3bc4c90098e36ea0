/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test double of libcuda.so.1: two devices whose memory is host memory, and kernels that are only recorded. A test
 * reads which calls reached the driver and sets their results. Functions that the double does not implement return
 * CUDA_ERROR_NOT_SUPPORTED.
 */
#ifndef TEST_RUNTIME_DOUBLE_H
#define TEST_RUNTIME_DOUBLE_H

#include <cuda.h>
#include <stdatomic.h>

enum { DOUBLE_DEVICES = 2, DOUBLE_VARIABLE_BYTES = 64 };

struct double_record {
	/* Calls to the driver since the test's last reset of this count, in total and by kind. */
	atomic_int calls, loads, unloads, launches, get_current;
	/* The last launch. */
	char kernel[64];
	unsigned grid[3], block[3], shared;
	CUstream stream;
	CUcontext context;
	void **args;
	/* The last copy or fill. */
	const char *copy;
	CUstream copy_stream;
	/* Results of the next calls: of a launch, cuStreamQuery, cuCtxSynchronize, cuModuleLoadData. */
	CUresult launch_result, query_result, synchronize_result, load_result;
	/* The last loaded image, and an image that this driver refuses. */
	const void *image, *no_image;
	/* If true, a launch checks for a current context, as NVIDIA's driver does: CUDA_ERROR_INVALID_CONTEXT. */
	int check_context;
};

extern struct double_record double_record;

/* Calls that the program itself may make to the driver. */
CUresult double_make_context(CUcontext *context);

#endif
