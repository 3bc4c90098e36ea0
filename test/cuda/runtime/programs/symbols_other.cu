/* SPDX-License-Identifier: BSD-3-Clause */
/* The second object of symbols.cu: it has a variable of the same name. */
#include "program.cuh"
#include "symbols.cuh"

static __device__ int same_name = 2;

static __global__ void read_it(int *out)
{
	*out = same_name;
}

int same_name_of_another_object(void)
{
	int value = 0, *out;
	CHECK(cudaMalloc(&out, sizeof value));
	read_it<<<1, 1>>>(out);
	CHECK(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(out));
	return value;
}
