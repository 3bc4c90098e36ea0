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

/*
 * Ends the program with status 77 if the first call of its kind says that it is not supported, and HEADRACE_TEST_REMOTE says
 * that the device is behind a connection, which not everything crosses (docs/STATUS.md). In its own process it must work.
 */
static inline void skip_if_not_across(const char *what, cudaError_t answer)
{
	if (answer == cudaErrorNotSupported && getenv("HEADRACE_TEST_REMOTE")) {
		printf("skipped: %s do not cross the connection\n", what);
		exit(77);
	}
	CHECK(answer);
}

#endif
