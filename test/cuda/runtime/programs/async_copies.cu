/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous copies of pinned memory, from a few bytes to many windows of the worker, while kernels are loaded and other streams
 * copy too: every byte is checked. */
#include "program.cuh"

#include <cstdint>
#include <thread>

#define STREAMS 3
#define STRIDE 1024 /* words from one that the kernels change to the next */

/* Each kernel is launched for the first time behind a copy whose bytes are still to come. A driver that loads code at its first
 * use waits for the device then. */
template <int N> __global__ void mark(uint32_t *words, size_t n)
{
	for (size_t i = (size_t)(blockIdx.x * blockDim.x + threadIdx.x) * STRIDE; i < n; i += (size_t)gridDim.x * blockDim.x * STRIDE)
		words[i] = words[i] * 3 + N;
}

static uint32_t word(uint32_t seed, size_t i)
{
	return seed * 2654435761u + (uint32_t)i * 40503u;
}

struct lane {
	cudaStream_t stream;
	uint32_t *from, *to, *device; /* from and to: pinned */
	size_t words;
	uint32_t seed;
};

static void launch(int kernel, struct lane *lane)
{
	switch (kernel) {
	case 0: mark<0><<<4, 32, 0, lane->stream>>>(lane->device, lane->words); break;
	case 1: mark<1><<<4, 32, 0, lane->stream>>>(lane->device, lane->words); break;
	case 2: mark<2><<<4, 32, 0, lane->stream>>>(lane->device, lane->words); break;
	default: mark<3><<<4, 32, 0, lane->stream>>>(lane->device, lane->words);
	}
	CHECK(cudaGetLastError());
}

static void fill(struct lane *lane, size_t words, uint32_t seed)
{
	lane->words = words;
	lane->seed = seed;
	for (size_t i = 0; i < words; i++)
		lane->from[i] = word(seed, i);
}

static void verify(const struct lane *lane, int kernel)
{
	for (size_t i = 0; i < lane->words; i++) {
		uint32_t want = word(lane->seed, i);
		EXPECT(lane->to[i] == (i % STRIDE ? want : want * 3 + (uint32_t)kernel));
	}
}

static void there_and_back(struct lane lanes[STREAMS], size_t words, uint32_t round)
{
	int kernel = (int)(round % 4);
	for (int i = 0; i < STREAMS; i++) {
		struct lane *lane = &lanes[i];
		fill(lane, words + (size_t)i, round * STREAMS + (uint32_t)i);
		CHECK(cudaMemcpyAsync(lane->device, lane->from, lane->words * 4, cudaMemcpyHostToDevice, lane->stream));
		launch(kernel, lane);
		CHECK(cudaMemcpyAsync(lane->to, lane->device, lane->words * 4, cudaMemcpyDeviceToHost, lane->stream));
	}
	for (int i = 0; i < STREAMS; i++) {
		CHECK(cudaStreamSynchronize(lanes[i].stream));
		verify(&lanes[i], kernel);
	}
}

/* Many copies behind each other in one stream: the later ones use the worker's memory of the earlier ones. */
static void many(struct lane *lane)
{
	const int pieces = 40;
	size_t words = 150001;
	fill(lane, words * pieces, 77);
	for (int i = 0; i < pieces; i++)
		CHECK(cudaMemcpyAsync(lane->device + i * words, lane->from + i * words, words * 4, cudaMemcpyHostToDevice, lane->stream));
	launch(1, lane);
	for (int i = pieces - 1; i >= 0; i--)
		CHECK(cudaMemcpyAsync(lane->to + i * words, lane->device + i * words, words * 4, cudaMemcpyDeviceToHost, lane->stream));
	CHECK(cudaStreamSynchronize(lane->stream));
	verify(lane, 1);
}

/* Each thread has a default stream of its own, under the same handle. */
static void stream_of_each_thread(struct lane *lane, uint32_t seed)
{
	for (uint32_t round = 0; round < 6; round++) {
		int kernel = (int)(round % 4);
		fill(lane, 1500000 + seed, seed + round);
		CHECK(cudaMemcpyAsync(lane->device, lane->from, lane->words * 4, cudaMemcpyHostToDevice, lane->stream));
		launch(kernel, lane);
		CHECK(cudaMemcpyAsync(lane->to, lane->device, lane->words * 4, cudaMemcpyDeviceToHost, lane->stream));
		CHECK(cudaStreamSynchronize(lane->stream));
		verify(lane, kernel);
	}
}

static void threads(struct lane lanes[STREAMS])
{
	std::thread running[STREAMS];
	struct lane own[STREAMS];
	for (int i = 0; i < STREAMS; i++) {
		own[i] = lanes[i];
		own[i].stream = cudaStreamPerThread;
		running[i] = std::thread(stream_of_each_thread, &own[i], 100u * (uint32_t)(i + 1));
	}
	for (std::thread &thread : running)
		thread.join();
}

/* Rows with gaps on the device. */
static void rows(struct lane *lane)
{
	const size_t width = 700, height = 3000, pitch = 1024;
	fill(lane, width * height / 4, 5);
	CHECK(cudaMemsetAsync(lane->device, 0, pitch * height, lane->stream));
	CHECK(cudaMemcpy2DAsync(lane->device, pitch, lane->from, width, width, height, cudaMemcpyHostToDevice, lane->stream));
	CHECK(cudaMemcpy2DAsync(lane->to, width, lane->device, pitch, width, height, cudaMemcpyDeviceToHost, lane->stream));
	CHECK(cudaStreamSynchronize(lane->stream));
	for (size_t i = 0; i < lane->words; i++)
		EXPECT(lane->to[i] == word(5, i));
}

int main(void)
{
	const size_t most = 6100000;
	struct lane lanes[STREAMS];
	for (struct lane &lane : lanes) {
		CHECK(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
		CHECK(cudaMallocHost(&lane.from, most * 4));
		CHECK(cudaMallocHost(&lane.to, most * 4));
		CHECK(cudaMalloc(&lane.device, most * 4));
	}
	const size_t sizes[] = { 300000, 1, 65536, 1100000, 131071, 524288, 33, 2000000 };
	uint32_t round = 0;
	for (size_t size : sizes)
		there_and_back(lanes, size, round++);
	many(&lanes[0]);
	rows(&lanes[1]);
	threads(lanes);
	for (struct lane &lane : lanes) {
		CHECK(cudaStreamDestroy(lane.stream));
		CHECK(cudaFreeHost(lane.from));
		CHECK(cudaFreeHost(lane.to));
		CHECK(cudaFree(lane.device));
	}
	printf("async_copies: every byte is right\n");
	return 0;
}
