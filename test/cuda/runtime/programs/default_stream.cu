/* SPDX-License-Identifier: BSD-3-Clause */
/* Several host threads, each with launches, copies and synchronization in the default stream of this compilation. */
#include "program.cuh"

#include <thread>
#include <vector>

__global__ void step(int *values, int n, int what)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		values[i] = values[i] * 3 + what;
}

static void work(int id)
{
	const int n = 1000;
	std::vector<int> host(n), expected(n);
	int *values;
	for (int i = 0; i < n; i++)
		host[i] = expected[i] = i + id;
	CHECK(cudaMalloc(&values, n * sizeof *values));
	CHECK(cudaMemcpy(values, host.data(), n * sizeof *values, cudaMemcpyHostToDevice));
	for (int round = 0; round < 10; round++) {
		step<<<(n + 127) / 128, 128>>>(values, n, round + id);
		for (int &value : expected)
			value = value * 3 + round + id;
		if (round == 5) {
			CHECK(cudaMemcpyAsync(host.data(), values, n * sizeof *values, cudaMemcpyDeviceToHost, 0));
			CHECK(cudaStreamSynchronize(0));
			EXPECT(host == expected);
		}
	}
	CHECK(cudaMemcpy(host.data(), values, n * sizeof *values, cudaMemcpyDeviceToHost));
	EXPECT(host == expected);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
	CHECK(cudaStreamQuery(0));
#else
	/* Other threads may have queued more in the one stream they share; that is no error. */
	cudaError_t state = cudaStreamQuery(0);
	EXPECT(state == cudaSuccess || state == cudaErrorNotReady);
#endif
	CHECK(cudaFree(values));
	CHECK(cudaGetLastError());
}

int main()
{
	std::vector<std::thread> threads;
	for (int id = 0; id < 4; id++)
		threads.emplace_back(work, id);
	for (auto &thread : threads)
		thread.join();
	return 0;
}
