/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that wants more memory than its quota: greedy MIB. It must get that many MiB in blocks of one, and no more;
 * each block must keep what was written. Then it frees all and begins again, ROUNDS times.
 */
#include "test/cuda/softgpu/driver.h"

#define MIB ((size_t)1 << 20)
#define ROUNDS 4
#define BLOCKS_MAX 256

/* Allocates until the quota is reached. Returns the number of blocks. */
static uint32_t take_all(CUdeviceptr *blocks, uint32_t quota)
{
	CUdeviceptr more;
	uint32_t n = 0;
	CUresult result;
	while (n < BLOCKS_MAX && (result = cuMemAlloc(&blocks[n], MIB)) == CUDA_SUCCESS)
		n++;
	CHECK(n == quota && result == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAlloc(&more, MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAllocAsync(&more, MIB, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAlloc(&more, MIB * 1024 * 1024) == CUDA_ERROR_OUT_OF_MEMORY);
	return n;
}

static void check_block(CUdeviceptr block, uint32_t value)
{
	static uint32_t words[MIB / 4];
	OK(cuMemcpyDtoH(words, block, MIB));
	for (size_t i = 0; i < MIB / 4; i++)
		CHECK(words[i] == value);
}

int main(int argc, char **argv)
{
	static CUdeviceptr blocks[BLOCKS_MAX];
	CHECK(argc == 2);
	start();
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t n = take_all(blocks, (uint32_t)atoi(argv[1]));
		for (uint32_t i = 0; i < n; i++)
			OK(cuMemsetD32(blocks[i], round * 1000 + i, MIB / 4));
		for (uint32_t i = 0; i < n; i++)
			check_block(blocks[i], round * 1000 + i);
		for (uint32_t i = 0; i < n; i++)
			OK(cuMemFree(blocks[i]));
	}
	return 0;
}
