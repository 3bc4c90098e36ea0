/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with machine code for one GPU and no PTX: a device of another kind says so at the launch, and lives on. */
#include "program.cuh"

__global__ void nothing()
{
}

__device__ int variable;

int main()
{
	int value = 7, back = 0, *p;
	nothing<<<1, 1>>>();
	EXPECT_ERROR(cudaErrorNoKernelImageForDevice, cudaGetLastError());
	EXPECT_ERROR(cudaErrorNoKernelImageForDevice, cudaMemcpyToSymbol(variable, &value, sizeof value));
	EXPECT_ERROR(cudaErrorNoKernelImageForDevice, cudaGetLastError());
	CHECK(cudaMalloc(&p, sizeof *p));
	CHECK(cudaMemcpy(p, &value, sizeof value, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(&back, p, sizeof back, cudaMemcpyDeviceToHost));
	EXPECT(back == 7);
	CHECK(cudaDeviceSynchronize());
	return 0;
}
