/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * saxpy [N]: y = a*x + y for N floats (default 2^20), checked against the CPU.
 * The smallest whole CUDA program: it knows nothing of Headrace.
 */
#include "cuda_check.h"

#include <cmath>
#include <vector>

__global__ void saxpy(int n, float a, const float *x, float *y)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = a * x[i] + y[i];
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? std::atoi(argv[1]) : 1 << 20;
	if (n <= 0) {
		std::fprintf(stderr, "usage: %s [N]   (N > 0 floats)\n", argv[0]);
		return EXIT_FAILURE;
	}
	std::vector<float> x(n), y(n);
	for (int i = 0; i < n; i++) {
		x[i] = static_cast<float>(i % 1000);
		y[i] = 1.0f;
	}
	size_t bytes = n * sizeof(float);
	float *device_x, *device_y;
	CUDA_CHECK(cudaMalloc(&device_x, bytes));
	CUDA_CHECK(cudaMalloc(&device_y, bytes));
	CUDA_CHECK(cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice));
	CUDA_CHECK(cudaMemcpy(device_y, y.data(), bytes, cudaMemcpyHostToDevice));
	saxpy<<<(n + 255) / 256, 256>>>(n, 2.0f, device_x, device_y);
	CUDA_CHECK(cudaGetLastError());
	CUDA_CHECK(cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost));
	CUDA_CHECK(cudaFree(device_x));
	CUDA_CHECK(cudaFree(device_y));

	for (int i = 0; i < n; i++) {
		float want = 2.0f * x[i] + 1.0f; /* exact in float: small integers */
		if (y[i] != want) {
			std::fprintf(stderr, "saxpy: y[%d] = %g, want %g\n", i, y[i], want);
			return EXIT_FAILURE;
		}
	}
	std::printf("saxpy: %d elements, all correct\n", n);
	return EXIT_SUCCESS;
}
