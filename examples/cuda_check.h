/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA_CHECK: ends the program at the first CUDA call that fails, and prints the call and the error. */
#ifndef EXAMPLES_CUDA_CHECK_H
#define EXAMPLES_CUDA_CHECK_H

#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call)                                                                                     \
	do {                                                                                                 \
		cudaError_t cuda_check_error = (call);                                                       \
		if (cuda_check_error != cudaSuccess) {                                                       \
			std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                   \
				     cudaGetErrorString(cuda_check_error));                                  \
			std::exit(EXIT_FAILURE);                                                             \
		}                                                                                            \
	} while (0)

#endif
