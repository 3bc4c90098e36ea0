/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that launch kernels, as nvcc compiles them for the device runtime (-rdc=true, cudadevrt). */
#include "program.cuh"

struct range {
	long first, count;
};

/* Fills a range with its indices: halves it, by launches in streams, until it is short. */
__global__ void fill(int *values, range part, int depth)
{
	if (part.count <= 16 || depth == 20) {
		for (long i = 0; i < part.count; i++)
			values[part.first + i] += (int)(part.first + i);
		return;
	}
	cudaStream_t stream;
	if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
		return;
	range left = { part.first, part.count / 2 };
	range right = { part.first + part.count / 2, part.count - part.count / 2 };
	fill<<<1, 1, 0, stream>>>(values, left, depth + 1);
	fill<<<1, 1>>>(values, right, depth + 1);
	cudaStreamDestroy(stream);
}

__global__ void sum(const int *values, int count, unsigned long long *total)
{
	extern __shared__ unsigned long long part[];
	part[threadIdx.x] = 0;
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		part[threadIdx.x] += values[i];
	__syncthreads();
	if (threadIdx.x == 0)
		for (unsigned i = 0; i < blockDim.x; i++)
			*total += part[i];
}

__global__ void start(int *values, int count, unsigned long long *total)
{
	sum<<<1, 64, 64 * sizeof *total, cudaStreamTailLaunch>>>(values, count, total);
	fill<<<1, 1>>>(values, range{ 0, count }, 0);
	*total = 1;
}

int main()
{
	const int count = 1000;
	int *values;
	unsigned long long *total, got;
	CHECK(cudaMalloc(&values, count * sizeof *values));
	CHECK(cudaMemset(values, 0, count * sizeof *values));
	CHECK(cudaMalloc(&total, sizeof *total));
	start<<<1, 1>>>(values, count, total);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost));
	EXPECT(got == 1 + count * (count - 1) / 2);
	return 0;
}
