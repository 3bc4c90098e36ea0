/* SPDX-License-Identifier: BSD-3-Clause */
/* The second unit of separate.cu. */
#include "program.cuh"
#include "separate.cuh"

__device__ int counter = 40;
__managed__ int in_host_code_too;
static __device__ int own = 500;

__device__ int scaled(int x)
{
	return x * factors[2];
}

static __device__ __noinline__ int mine(int x)
{
	return 2 * x + 3;
}
__device__ function *chosen = mine;

static __global__ void all(int *values, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		values[i] = own + doubled(i);
}

void launch_other(int *values, int n)
{
	all<<<3, 128>>>(values, n);
	CHECK(cudaGetLastError());
}

int other_factor(int index)
{
	int value;
	CHECK(cudaMemcpyFromSymbol(&value, factors, sizeof value, index * sizeof value));
	return value;
}
