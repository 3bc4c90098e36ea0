/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies back and forth until something ends it: the program to be killed in mid-copy, or whose server is. Says
 * "copying" when it has begun; an error of CUDA's is printed and is exit status 3, wrong data 4. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

static void check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(error));
	exit(3);
}

int main(int argc, char **argv)
{
	const size_t size = size_t(64) << 20;
	const long rounds = argc > 1 ? atol(argv[1]) : 100000;
	std::vector<char> out(size, 1), back(size);
	char *device;
	check(cudaMalloc(&device, size), "cudaMalloc");
	for (long i = 0; i < rounds; i++) {
		out[i % size]++;
		check(cudaMemcpy(device, out.data(), size, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
		check(cudaMemcpy(back.data(), device, size, cudaMemcpyDeviceToHost), "cudaMemcpy from the device");
		if (memcmp(out.data(), back.data(), size))
			return 4;
		if (i == 0) {
			puts("copying");
			fflush(stdout);
		}
	}
	check(cudaFree(device), "cudaFree");
	puts("done");
	return 0;
}
