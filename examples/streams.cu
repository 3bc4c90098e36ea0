/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * streams [N [STREAMS]]: N floats (default 2^22) are cut in pieces; each piece is copied in, computed on and copied out
 * on one of STREAMS streams (default 4), so that copies of one piece overlap the computing of another. The time is
 * compared with the same work on one stream.
 */
#include "cuda_check.h"

#include <cmath>
#include <vector>

__global__ void newton_sqrt(int n, const float *in, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	float value = in[i], root = value;
	for (int step = 0; step < 24; step++)
		root = 0.5f * (root + value / root);
	out[i] = root;
}

struct buffers {
	float *host_in, *host_out, *device_in, *device_out;
};

/* Runs all pieces round robin over the streams; returns milliseconds from first copy to last. */
static float run(const buffers &b, int n, int pieces, const std::vector<cudaStream_t> &streams)
{
	cudaEvent_t begin, end;
	CUDA_CHECK(cudaEventCreate(&begin));
	CUDA_CHECK(cudaEventCreate(&end));
	int each = n / pieces;
	size_t bytes = each * sizeof(float);
	CUDA_CHECK(cudaEventRecord(begin));
	for (int p = 0; p < pieces; p++) {
		cudaStream_t stream = streams[p % streams.size()];
		int at = p * each;
		CUDA_CHECK(cudaMemcpyAsync(b.device_in + at, b.host_in + at, bytes, cudaMemcpyHostToDevice, stream));
		newton_sqrt<<<(each + 255) / 256, 256, 0, stream>>>(each, b.device_in + at, b.device_out + at);
		CUDA_CHECK(cudaMemcpyAsync(b.host_out + at, b.device_out + at, bytes, cudaMemcpyDeviceToHost, stream));
	}
	CUDA_CHECK(cudaEventRecord(end)); /* the default stream waits for all other streams */
	CUDA_CHECK(cudaEventSynchronize(end));
	float milliseconds;
	CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
	CUDA_CHECK(cudaEventDestroy(begin));
	CUDA_CHECK(cudaEventDestroy(end));
	return milliseconds;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? std::atoi(argv[1]) : 1 << 22, count = argc > 2 ? std::atoi(argv[2]) : 4;
	const int pieces = 16;
	if (n <= 0 || n % pieces || count <= 0 || count > 64) {
		std::fprintf(stderr, "usage: %s [N [STREAMS]]   (N a multiple of %d, 1 to 64 streams)\n", argv[0], pieces);
		return EXIT_FAILURE;
	}
	buffers b;
	size_t bytes = n * sizeof(float);
	CUDA_CHECK(cudaMallocHost(&b.host_in, bytes));
	CUDA_CHECK(cudaMallocHost(&b.host_out, bytes));
	CUDA_CHECK(cudaMalloc(&b.device_in, bytes));
	CUDA_CHECK(cudaMalloc(&b.device_out, bytes));
	for (int i = 0; i < n; i++)
		b.host_in[i] = 1.0f + static_cast<float>(i % 4096);

	std::vector<cudaStream_t> streams(count);
	for (auto &stream : streams)
		CUDA_CHECK(cudaStreamCreate(&stream));
	run(b, n, pieces, streams); /* loads the module, touches every page */
	float one = run(b, n, pieces, std::vector<cudaStream_t>(1, streams[0]));
	for (int i = 0; i < n; i++)
		b.host_out[i] = 0.0f;
	float many = run(b, n, pieces, streams);

	int wrong = 0;
	for (int i = 0; i < n; i++)
		if (!(std::fabs(b.host_out[i] - std::sqrt(b.host_in[i])) <= 1e-5f * b.host_out[i]))
			wrong++;
	for (auto &stream : streams)
		CUDA_CHECK(cudaStreamDestroy(stream));
	CUDA_CHECK(cudaFreeHost(b.host_in));
	CUDA_CHECK(cudaFreeHost(b.host_out));
	CUDA_CHECK(cudaFree(b.device_in));
	CUDA_CHECK(cudaFree(b.device_out));
	std::printf("streams: %d floats in %d pieces: 1 stream %.2f ms, %d streams %.2f ms: %s\n", n, pieces, one, count, many,
		    wrong ? "WRONG" : "verified");
	return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
