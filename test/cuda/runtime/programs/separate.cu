/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of several units, built with -rdc=true as users do: functions, variables, a template's instance in two
 * units, an address in an initialiser and static names that are the same in each unit, all joined by their PTX.
 */
#include "program.cuh"
#include "separate.cuh"

__constant__ int factors[4] = { 1, 10, 100, 1000 };
static __device__ int own = 1;

static __device__ __noinline__ int mine(int x)
{
	return x + own;
}

__global__ void all(int *values, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	atomicAdd(&counter, 1);
	values[i] = scaled(mine(i)) + doubled(i) + from_library(i) + chosen(i) + in_host_code_too;
}

int main()
{
	const int n = 300;
	int managed = 0;
	CHECK(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
	if (!managed) {
		puts("skipped: the device has no managed memory");
		return 77;
	}
	int host[n], *values, counted, two = 2;
	CHECK(cudaMalloc(&values, sizeof host));
	CHECK(cudaMemset(values, 0, sizeof host));
	in_host_code_too = 7;
	all<<<3, 128>>>(values, n);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		EXPECT(host[i] == (i + 1) * 100 + 2 * i + (i + 5000) + (2 * i + 3) + 7);
	CHECK(cudaMemcpyFromSymbol(&counted, counter, sizeof counted));
	EXPECT(counted == n + 40);
	/* The other unit has a kernel and an own variable of the same name. */
	CHECK(cudaMemcpyToSymbol(own, &two, sizeof two));
	launch_other(values, n);
	CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		EXPECT(host[i] == 500 + 2 * i);
	EXPECT(other_factor(3) == 1000);
	all<<<1, 1>>>(values, 1);
	CHECK(cudaMemcpy(host, values, sizeof(int), cudaMemcpyDeviceToHost));
	EXPECT(host[0] == 2 * 100 + 5000 + 3 + 7);
	CHECK(cudaFree(values));
	return 0;
}
