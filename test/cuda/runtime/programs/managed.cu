/* SPDX-License-Identifier: BSD-3-Clause */
/* Managed memory is the same bytes for host and device. */
#include "program.cuh"

__global__ void count(int *values, int n)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		values[i] += i;
}

int main()
{
	int managed = 0, *values;
	cudaPointerAttributes attributes;
	CHECK(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
	if (!managed) {
		puts("skipped: the device has no managed memory");
		return 77;
	}
	CHECK(cudaMallocManaged(&values, 100 * sizeof *values));
	for (int i = 0; i < 100; i++)
		values[i] = 1000;
	count<<<1, 32>>>(values, 100);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 100; i++)
		EXPECT(values[i] == 1000 + i);
	CHECK(cudaPointerGetAttributes(&attributes, values));
	EXPECT(attributes.type == cudaMemoryTypeManaged);
	CHECK(cudaFree(values));
	return 0;
}
