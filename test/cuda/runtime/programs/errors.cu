/* SPDX-License-Identifier: BSD-3-Clause */
/* Mistakes are answered with the documented errors, leave no harm, and a lost context stays lost. */
#include "program.cuh"

__global__ void nothing()
{
}

__global__ void store(int *where)
{
	*where = 1;
}

static void launches(void)
{
	nothing<<<0, 1>>>();
	EXPECT_ERROR(cudaErrorInvalidConfiguration, cudaGetLastError());
	nothing<<<1, 0>>>();
	EXPECT_ERROR(cudaErrorInvalidConfiguration, cudaGetLastError());
	nothing<<<1, 2048>>>();
	EXPECT_ERROR(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
	EXPECT_ERROR(cudaErrorInvalidConfiguration, cudaGetLastError());
	nothing<<<dim3(1, 65536), 1>>>();
	EXPECT_ERROR(cudaErrorInvalidConfiguration, cudaGetLastError());
	nothing<<<1, 1, 64 << 20>>>();
	EXPECT_ERROR(cudaErrorInvalidValue, cudaGetLastError());
	EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaLaunchKernel((void *)launches, dim3(1), dim3(1), NULL, 0, 0));
	EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaGetLastError());
	nothing<<<1, 1>>>();
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

static void memory(void)
{
	int *p = NULL, host = 0, device = -1;
	CHECK(cudaMalloc(&p, 0));
	EXPECT(!p);
	CHECK(cudaFree(NULL));
	EXPECT_ERROR(cudaErrorMemoryAllocation, cudaMalloc(&p, (size_t)1 << 50));
	EXPECT_ERROR(cudaErrorMemoryAllocation, cudaGetLastError());
	CHECK(cudaMalloc(&p, 64));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaFree((char *)p + 4));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpy(p, &host, 65, cudaMemcpyHostToDevice));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaMemset(p, 0, 65));
	EXPECT_ERROR(cudaErrorInvalidMemcpyDirection, cudaMemcpy(p, &host, 4, (cudaMemcpyKind)7));
	CHECK(cudaFree(p));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaFree(p));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaFreeHost(&host));
	EXPECT_ERROR(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(&host));
	EXPECT_ERROR(cudaErrorInvalidDevice, cudaSetDevice(1000));
	CHECK(cudaGetDevice(&device));
	EXPECT(device == 0);
	EXPECT_ERROR(cudaErrorInvalidDevice, cudaGetLastError());
}

static void lost_context(void)
{
	int *p;
	CHECK(cudaMalloc(&p, 64));
	store<<<1, 1>>>((int *)0x10);
	CHECK(cudaGetLastError());
	EXPECT_ERROR(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	EXPECT_ERROR(cudaErrorIllegalAddress, cudaGetLastError());
	EXPECT_ERROR(cudaErrorIllegalAddress, cudaMalloc(&p, 64));
	nothing<<<1, 1>>>();
	EXPECT_ERROR(cudaErrorIllegalAddress, cudaGetLastError());
}

int main()
{
	launches();
	memory();
	CHECK(cudaDeviceSynchronize());
	lost_context();
	return 0;
}
