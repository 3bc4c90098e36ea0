/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program on a server of another build, whose table has its calls under other numbers, one call less and one with another
 * form (local.mk): these two are not supported, and everything else works. other_build same: the server is of this build.
 */
#include "test/cuda/softgpu/driver.h"

#include <stdbool.h>

static void check_work(void)
{
	enum { N = 1000 };
	uint32_t words[N], back[N];
	CUdeviceptr a, b;
	CUstream stream;
	CUevent event;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	OK(cuMemAlloc(&a, sizeof words));
	OK(cuMemAlloc(&b, sizeof words));
	for (uint32_t i = 0; i < N; i++)
		words[i] = 7 * i;
	OK(cuMemcpyHtoD(a, words, sizeof words));
	OK(cuCtxSynchronize()); /* the stream does not wait for the copy */
	OK(cuMemcpyDtoDAsync(b, a, sizeof words, stream));
	OK(cuMemsetD32Async(b, 42, N / 2, stream));
	OK(cuEventRecord(event, stream));
	OK(cuEventSynchronize(event));
	OK(cuMemcpyDtoH(back, b, sizeof back));
	for (uint32_t i = 0; i < N; i++)
		CHECK(back[i] == (i < N / 2 ? 42 : 7 * i));
	OK(cuMemFree(a));
	OK(cuMemFree(b));
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(stream));
}

int main(int argc, char **argv)
{
	bool same = argc == 2 && !strcmp(argv[1], "same");
	CUresult wanted = same ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
	CUfunc_cache config;
	size_t bytes;
	start();
	EXPECT(cuCtxGetCacheConfig(&config), wanted); /* the server does not have it */
	EXPECT(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1), wanted); /* it waits there, and not here */
	EXPECT(cuCtxGetCacheConfig(&config), wanted);
	OK(cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE));
	check_work();
	return 0;
}
