/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies without end in the direction asked for, says when it begins, and with which error it ends. up, down; asynchronous: later
 * (to mapped memory), delivered, fetched (to and from memory that the worker has not mapped). */
#include "test/cuda/softgpu/driver.h"

int main(int argc, char **argv)
{
	enum { SIZE = 32 << 20 };
	CUdeviceptr device;
	void *host;
	CUresult result = CUDA_SUCCESS;
	CHECK(argc == 2);
	start();
	OK(cuMemAlloc(&device, SIZE));
	if (!strcmp(argv[1], "delivered") || !strcmp(argv[1], "fetched")) {
		host = malloc(SIZE);
		CHECK(host);
		OK(cuMemHostRegister(host, SIZE, 0));
	} else {
		OK(cuMemHostAlloc(&host, SIZE, 0));
	}
	memset(host, 1, SIZE);
	OK(cuCtxSynchronize());
	printf("copying\n");
	fflush(stdout);
	while (result == CUDA_SUCCESS) {
		if (!strcmp(argv[1], "up"))
			result = cuMemcpyHtoD(device, host, SIZE);
		else if (!strcmp(argv[1], "down"))
			result = cuMemcpyDtoH(host, device, SIZE);
		else if (!strcmp(argv[1], "fetched"))
			result = cuMemcpyHtoDAsync(device, host, SIZE, NULL);
		else
			result = cuMemcpyDtoHAsync(host, device, SIZE, NULL);
		if (result == CUDA_SUCCESS)
			result = cuCtxSynchronize();
	}
	const char *name = "?";
	cuGetErrorName(result, &name);
	printf("%s\n", name);
	/* Every further call fails too, and none hangs. */
	size_t free_bytes, total;
	CHECK(cuMemGetInfo(&free_bytes, &total) == result && cuCtxSynchronize() == result);
	return 0;
}
