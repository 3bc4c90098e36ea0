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

__managed__ unsigned char large[1000000];

__global__ void poke(int at, unsigned char value)
{
	large[at] = value;
}

int main()
{
	int managed = 0;
	CHECK(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
	if (!managed) {
		puts("skipped: the device has no managed memory");
		return 77;
	}
	EXPECT(total == 30);
	total += 12;
	samples[63] = -1;
	count<<<1, 32>>>(100);
	CHECK(cudaDeviceSynchronize());
	EXPECT(total == 142 && samples[63] == 31.5f);
	/* Copies see the same bytes, and the host sees theirs. */
	int value = 1000;
	CHECK(cudaMemcpy(&total, &value, sizeof value, cudaMemcpyDefault));
	EXPECT(total == 1000);
	count<<<1, 32>>>(1);
	CHECK(cudaMemcpy(&value, &total, sizeof value, cudaMemcpyDefault));
	EXPECT(value == 1001 && total == 1001);
	CHECK(cudaMemset(samples, 0, sizeof samples));
	CHECK(cudaDeviceSynchronize());
	EXPECT(samples[63] == 0 && samples[1] == 0);
	/* Many launches, and what the host changes between them. */
	for (int i = 0; i < 20; i++) {
		total += 1;
		count<<<1, 32>>>(2);
		CHECK(cudaDeviceSynchronize());
	}
	EXPECT(total == 1061);
	/* A large one, of which the device changes a byte in the middle and the host its neighbour. */
	large[500001] = 7;
	poke<<<1, 1>>>(500000, 9);
	CHECK(cudaDeviceSynchronize());
	EXPECT(large[500000] == 9 && large[500001] == 7 && large[499999] == 0);
	/* A reset ends the variable; a new one begins with its first value. */
	CHECK(cudaDeviceReset());
	count<<<1, 32>>>(1);
	CHECK(cudaDeviceSynchronize());
	EXPECT(total == 31);
	return 0;
}
