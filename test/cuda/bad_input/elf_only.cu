/* SPDX-License-Identifier: BSD-3-Clause */
/* Built with machine code alone and no PTX: the software GPU cannot run it, and says so as CUDA does. */
#include <cstdio>

#include <cuda_runtime.h>

__global__ void nothing()
{
}

int main()
{
	nothing<<<1, 1>>>();
	cudaError_t error = cudaGetLastError();
	printf("%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
	return error == cudaErrorNoKernelImageForDevice ? 0 : 1;
}
