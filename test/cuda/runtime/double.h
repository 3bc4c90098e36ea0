/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test double of libcuda.so.1: two devices whose memory is the host's, kernels that are only recorded. It tells a
 * test what reached the driver and answers as the test says. Functions of the runtime's table that it does not play
 * return CUDA_ERROR_NOT_SUPPORTED.
 */
#ifndef TEST_RUNTIME_DOUBLE_H
#define TEST_RUNTIME_DOUBLE_H

#include <cuda.h>
#include <stdatomic.h>

enum { DOUBLE_DEVICES = 2, DOUBLE_VARIABLE_BYTES = 64 };

struct double_record {
	/* Calls into the driver since the test's last reset of it, all of them and by kind. */
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
	/* Results that the next calls give: of a launch, of cuStreamQuery, of cuCtxSynchronize, of cuModuleLoadData. */
	CUresult launch_result, query_result, synchronize_result, load_result;
	/* The image loaded last, and one that is not an image to this driver. */
	const void *image, *no_image;
	/* Where a launch looks at its context as NVIDIA's driver does: CUDA_ERROR_INVALID_CONTEXT without one. */
	int check_context;
};

extern struct double_record double_record;

/* What the program itself may do through the driver. */
CUresult double_make_context(CUcontext *context);

#endif
