/* SPDX-License-Identifier: BSD-3-Clause */
/* A variable of 12 MiB, which a session of less memory must not get. Prints what the first use of it returns. */
#include <cstdio>

#include <cuda_runtime.h>

__device__ int table[3 << 20];

__global__ void fill(int value)
{
	table[threadIdx.x] = value;
}

int main()
{
	int found = 0;
	fill<<<1, 32>>>(7);
	cudaError_t error = cudaGetLastError();
	if (error == cudaSuccess)
		error = cudaMemcpyFromSymbol(&found, table, sizeof found, 4 * sizeof found);
	printf("%s %d\n", cudaGetErrorName(error), found);
	return 0;
}
