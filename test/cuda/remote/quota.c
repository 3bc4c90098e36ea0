/* SPDX-License-Identifier: BSD-3-Clause */
/* A session that may have 16 MiB of the device's memory: what counts, what is refused, what cuMemGetInfo shows. */
#include "test/cuda/softgpu/driver.h"

#define MIB ((size_t)1 << 20)

static void check_info(size_t left)
{
	size_t free_bytes, total;
	OK(cuMemGetInfo(&free_bytes, &total));
	CHECK(total == 16 * MIB && free_bytes == left);
}

static void check_linear(void)
{
	CUdeviceptr a, b;
	OK(cuMemAlloc(&a, 12 * MIB));
	check_info(4 * MIB);
	CHECK(cuMemAlloc(&b, 5 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc(&b, 4 * MIB));
	check_info(0);
	OK(cuMemFree(a));
	OK(cuMemFree(b));
	check_info(16 * MIB);
	/* As much as the number of bytes can say, so that a sum would overflow. */
	OK(cuMemAlloc(&a, MIB));
	CHECK(cuMemAlloc(&b, SIZE_MAX - MIB / 2) != CUDA_SUCCESS);
	OK(cuMemFree(a));
	check_info(16 * MIB);
}

static void check_pitch(void)
{
	CUdeviceptr a;
	size_t pitch;
	CHECK(cuMemAllocPitch(&a, &pitch, MIB, 17, 4) == CUDA_ERROR_OUT_OF_MEMORY);
	check_info(16 * MIB);
	OK(cuMemAllocPitch(&a, &pitch, MIB, 15, 4));
	check_info(16 * MIB - 15 * pitch);
	OK(cuMemFree(a));
	check_info(16 * MIB);
}

static void check_pools(void)
{
	CUdeviceptr a, b;
	CUmemoryPool pool;
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	OK(cuMemAllocAsync(&a, 10 * MIB, NULL));
	CHECK(cuMemAllocAsync(&b, 7 * MIB, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemPoolCreate(&pool, &props));
	CHECK(cuMemAllocFromPoolAsync(&b, 7 * MIB, pool, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAllocFromPoolAsync(&b, 6 * MIB, pool, NULL));
	check_info(0);
	OK(cuMemFreeAsync(a, NULL));
	OK(cuMemFreeAsync(b, NULL));
	OK(cuStreamSynchronize(NULL));
	check_info(16 * MIB);
	OK(cuMemPoolDestroy(pool));
}

static void check_context(void)
{
	CUdeviceptr a;
	CUcontext primary, second;
	OK(cuCtxGetCurrent(&primary));
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuMemAlloc(&a, 12 * MIB));
	check_info(4 * MIB);
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(primary));
	check_info(16 * MIB);
}

int main(void)
{
	start();
	check_info(16 * MIB);
	check_linear();
	check_pitch();
	check_pools();
	check_context();
	end();
	return 0;
}
