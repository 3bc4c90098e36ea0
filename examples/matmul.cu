/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * matmul [N [REPEATS]]: C = A*B for N x N floats (default 512; N a multiple of 32) in shared-memory tiles of 32 x 32,
 * timed with CUDA events and checked against the CPU.
 */
#include "cuda_check.h"

#include <cmath>
#include <vector>

constexpr int TILE = 32;

/* One block computes one tile of c, by looping over the tiles of a's row and b's column. */
__global__ void matmul(int n, const float *a, const float *b, float *c)
{
	__shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
	float sum = 0.0f;
	for (int t = 0; t < n; t += TILE) {
		tile_a[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
		tile_b[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
		__syncthreads();
#pragma unroll
		for (int k = 0; k < TILE; k++)
			sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
		__syncthreads();
	}
	c[row * n + column] = sum;
}

/* Largest difference to a product summed in double, relative to the size of the sums. */
static double worst_error(int n, const std::vector<float> &a, const std::vector<float> &b, const std::vector<float> &c)
{
	double worst = 0;
	std::vector<double> row(n);
	for (int i = 0; i < n; i++) {
		row.assign(n, 0.0);
		for (int k = 0; k < n; k++)
			for (int j = 0; j < n; j++)
				row[j] += static_cast<double>(a[i * n + k]) * b[k * n + j];
		for (int j = 0; j < n; j++)
			worst = std::fmax(worst, std::fabs(row[j] - c[i * n + j]) / n);
	}
	return worst;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? std::atoi(argv[1]) : 512, repeats = argc > 2 ? std::atoi(argv[2]) : 5;
	if (n <= 0 || n % TILE || repeats <= 0) {
		std::fprintf(stderr, "usage: %s [N [REPEATS]]   (N a multiple of %d)\n", argv[0], TILE);
		return EXIT_FAILURE;
	}
	std::vector<float> a(n * n), b(n * n), c(n * n);
	for (int i = 0; i < n * n; i++) {
		a[i] = static_cast<float>((i * 7919 + 13) % 101) / 101.0f - 0.5f;
		b[i] = static_cast<float>((i * 104729 + 7) % 103) / 103.0f - 0.5f;
	}
	cudaDeviceProp device;
	CUDA_CHECK(cudaGetDeviceProperties(&device, 0));

	size_t bytes = sizeof(float) * n * n;
	float *device_a, *device_b, *device_c;
	CUDA_CHECK(cudaMalloc(&device_a, bytes));
	CUDA_CHECK(cudaMalloc(&device_b, bytes));
	CUDA_CHECK(cudaMalloc(&device_c, bytes));
	CUDA_CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
	CUDA_CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));

	cudaEvent_t begin, end;
	CUDA_CHECK(cudaEventCreate(&begin));
	CUDA_CHECK(cudaEventCreate(&end));
	dim3 grid(n / TILE, n / TILE), block(TILE, TILE);
	matmul<<<grid, block>>>(n, device_a, device_b, device_c); /* the first launch also loads the module */
	CUDA_CHECK(cudaEventRecord(begin));
	for (int i = 0; i < repeats; i++)
		matmul<<<grid, block>>>(n, device_a, device_b, device_c);
	CUDA_CHECK(cudaEventRecord(end));
	CUDA_CHECK(cudaEventSynchronize(end));
	CUDA_CHECK(cudaGetLastError());
	float milliseconds;
	CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
	CUDA_CHECK(cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost));
	CUDA_CHECK(cudaEventDestroy(begin));
	CUDA_CHECK(cudaEventDestroy(end));
	CUDA_CHECK(cudaFree(device_a));
	CUDA_CHECK(cudaFree(device_b));
	CUDA_CHECK(cudaFree(device_c));

	double each = milliseconds / repeats, error = worst_error(n, a, b, c);
	std::printf("matmul: %d x %d on \"%s\": %.3f ms, %.2f GFLOP/s, largest error %.1e: %s\n", n, n, device.name, each,
		    2e-6 * n * n * n / each, error, error < 1e-6 ? "verified" : "WRONG");
	return error < 1e-6 ? EXIT_SUCCESS : EXIT_FAILURE;
}
