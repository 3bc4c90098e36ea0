/* SPDX-License-Identifier: BSD-3-Clause */
/* A program built with -rdc=true: its machine code is linked, its PTX stays in the unit it came from. */
#include "program.cuh"

__device__ int factor = 3;

__device__ __noinline__ int scaled(int x)
{
	return x * factor;
}

__global__ void scale(int *values, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		values[i] = scaled(values[i]);
}

int main()
{
	int host[200], *values, seven = 7;
	for (int i = 0; i < 200; i++)
		host[i] = i;
	CHECK(cudaMalloc(&values, sizeof host));
	CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
	scale<<<2, 128>>>(values, 200);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyToSymbol(factor, &seven, sizeof seven));
	scale<<<2, 128>>>(values, 200);
	CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 200; i++)
		EXPECT(host[i] == i * 21);
	CHECK(cudaFree(values));
	return 0;
}
