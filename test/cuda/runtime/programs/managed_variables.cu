/* SPDX-License-Identifier: BSD-3-Clause */
/* A managed variable is the same bytes for host and device, initial value included. */
#include "program.cuh"

__managed__ int total = 30;
__managed__ float samples[64];

__global__ void count(int n)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x) {
		atomicAdd(&total, 1);
		samples[i % 64] = 0.5f * (i % 64);
	}
}

int main()
{
	int managed = 0;
	CHECK(cudaDeviceGetAttribute(&managed, cudaDevAttrDirectManagedMemAccessFromHost, 0));
	if (!managed) {
		puts("skipped: the host cannot access the device's memory");
		return 77;
	}
	EXPECT(total == 30);
	total += 12;
	samples[63] = -1;
	count<<<1, 32>>>(100);
	CHECK(cudaDeviceSynchronize());
	EXPECT(total == 142 && samples[63] == 31.5f);
	return 0;
}
