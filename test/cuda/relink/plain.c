/* SPDX-License-Identifier: BSD-3-Clause */
/* A library with the static runtime and without kernels, as the modules of Python's cuda.bindings are. */
#include <cuda_runtime.h>

int plain_doubled(int value);

int plain_doubled(int value)
{
	int devices = 0;
	return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 ? 2 * value : -1;
}
