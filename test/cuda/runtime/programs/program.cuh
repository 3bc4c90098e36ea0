/* SPDX-License-Identifier: BSD-3-Clause */
/* For the test programs: each stops at its first failure, with the line and what was seen, and exit status 1. */
#ifndef TEST_RUNTIME_PROGRAM_CUH
#define TEST_RUNTIME_PROGRAM_CUH

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define EXPECT(condition)                                                                            \
	do {                                                                                         \
		if (!(condition)) {                                                                  \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);      \
			exit(1);                                                                     \
		}                                                                                    \
	} while (0)

#define EXPECT_ERROR(expected, call)                                                                 \
	do {                                                                                         \
		cudaError_t got_ = (call);                                                           \
		if (got_ != (expected)) {                                                            \
			fprintf(stderr, "%s:%d: %s: got %s, expected %s\n", __FILE__, __LINE__, #call, \
				cudaGetErrorName(got_), cudaGetErrorName(expected));                 \
			exit(1);                                                                     \
		}                                                                                    \
	} while (0)

#define CHECK(call) EXPECT_ERROR(cudaSuccess, call)

#endif
