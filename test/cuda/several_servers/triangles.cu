/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts the triangles of a graph on two GPUs, as the application in Reano and Silla, "On the support of inter-node P2P GPU
 * memory copies in rCUDA" (2019): the first GPU sorts the edges, the sorted edges are copied to the second GPU, and each GPU
 * counts the triangles of half of the edges. Prints the number, the two devices and the bytes copied between them. With one
 * GPU, both halves run on it. Exit status 1: a wrong result or a CUDA error.
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                               \
	do {                                                                                                      \
		cudaError_t error_ = (call);                                                                      \
		if (error_ != cudaSuccess) {                                                                      \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
			exit(1);                                                                                  \
		}                                                                                                 \
	} while (0)

/* An edge from the smaller vertex to the larger one: the smaller in the upper half. Sorted edges list the neighbours of a
 * vertex one after the other, in order. */
typedef uint64_t edge_t;
static const edge_t PADDING = ~(edge_t)0; /* sorts behind all edges */

/* One step of a bitonic sort of a power of two of edges: each thread orders a pair whose members are `distance` apart. */
__global__ void sort_step(edge_t *edges, uint32_t distance, uint32_t block)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, j = i ^ distance;
	if (j < i)
		return;
	bool descending = i & block;
	if ((edges[i] > edges[j]) != descending) {
		edge_t edge = edges[i];
		edges[i] = edges[j];
		edges[j] = edge;
	}
}

__device__ uint32_t first_not_below(const edge_t *edges, uint32_t n, edge_t wanted)
{
	uint32_t low = 0;
	while (low < n) {
		uint32_t middle = (low + n) / 2;
		if (edges[middle] < wanted)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

/* For each edge (u, v) of [begin, end): how many w > v are neighbours of both u and v. */
__global__ void count_triangles(const edge_t *edges, uint32_t n, uint32_t begin, uint32_t end, unsigned long long *total)
{
	uint32_t at = begin + blockIdx.x * blockDim.x + threadIdx.x, found = 0;
	if (at >= end)
		return;
	edge_t u = edges[at] >> 32, v = (uint32_t)edges[at];
	uint32_t of_u = at + 1, of_v = first_not_below(edges, n, v << 32);
	while (of_u < n && of_v < n && edges[of_u] >> 32 == u && edges[of_v] >> 32 == v) {
		uint32_t a = (uint32_t)edges[of_u], b = (uint32_t)edges[of_v];
		found += a == b;
		of_u += a <= b;
		of_v += b <= a;
	}
	if (found)
		atomicAdd(total, found);
}

/* A graph of `vertices` vertices and about n different edges, the same in each run, in no order. */
static std::vector<edge_t> make_graph(uint32_t vertices, uint32_t n)
{
	std::vector<edge_t> edges;
	uint64_t state = 2019;
	auto draw = [&] { return (uint32_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33); };
	while (edges.size() < n) {
		edge_t u = draw() % vertices, v = draw() % vertices;
		if (u != v)
			edges.push_back(std::min(u, v) << 32 | std::max(u, v));
	}
	std::sort(edges.begin(), edges.end());
	edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
	for (size_t i = edges.size() - 1; i > 0; i--)
		std::swap(edges[i], edges[draw() % (i + 1)]);
	return edges;
}

/* The same number by a table of all pairs of vertices, without sorting. */
static unsigned long long count_on_host(const std::vector<edge_t> &edges, uint32_t vertices)
{
	std::vector<std::vector<bool>> joined(vertices, std::vector<bool>(vertices));
	unsigned long long total = 0;
	for (edge_t edge : edges)
		joined[edge >> 32][(uint32_t)edge] = true;
	for (edge_t edge : edges)
		for (uint32_t w = (uint32_t)edge + 1; w < vertices; w++)
			total += joined[edge >> 32][w] && joined[(uint32_t)edge][w];
	return total;
}

static void sort_edges(edge_t *edges, uint32_t size, cudaStream_t stream)
{
	for (uint32_t block = 2; block <= size; block *= 2)
		for (uint32_t distance = block / 2; distance; distance /= 2)
			sort_step<<<size / 256, 256, 0, stream>>>(edges, distance, block);
	CHECK(cudaGetLastError());
}

int main()
{
	const uint32_t vertices = 700, size = 1 << 17;
	std::vector<edge_t> edges = make_graph(vertices, 110000);
	const uint32_t n = edges.size(), half = n / 2;
	unsigned long long expected = count_on_host(edges, vertices), *found;
	edges.resize(size, PADDING);

	int devices;
	CHECK(cudaGetDeviceCount(&devices));
	int device[2] = { 0, devices > 1 };
	cudaStream_t stream[2];
	cudaEvent_t copied;
	edge_t *list[2];
	unsigned long long *total[2];
	CHECK(cudaMallocHost(&found, 2 * sizeof *found));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaSetDevice(device[i]));
		CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
		CHECK(cudaMalloc(&list[i], size * sizeof(edge_t)));
		CHECK(cudaMalloc(&total[i], sizeof *total[i]));
		CHECK(cudaMemsetAsync(total[i], 0, sizeof *total[i], stream[i]));
	}
	CHECK(cudaSetDevice(device[0]));
	CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
	CHECK(cudaMemcpyAsync(list[0], edges.data(), size * sizeof(edge_t), cudaMemcpyHostToDevice, stream[0]));
	sort_edges(list[0], size, stream[0]);
	CHECK(cudaMemcpyPeerAsync(list[1], device[1], list[0], device[0], n * sizeof(edge_t), stream[0]));
	CHECK(cudaEventRecord(copied, stream[0]));
	count_triangles<<<(half + 255) / 256, 256, 0, stream[0]>>>(list[0], n, 0, half, total[0]);
	CHECK(cudaMemcpyAsync(&found[0], total[0], sizeof *found, cudaMemcpyDeviceToHost, stream[0]));
	CHECK(cudaSetDevice(device[1]));
	CHECK(cudaStreamWaitEvent(stream[1], copied, 0));
	count_triangles<<<(n - half + 255) / 256, 256, 0, stream[1]>>>(list[1], n, half, n, total[1]);
	CHECK(cudaMemcpyAsync(&found[1], total[1], sizeof *found, cudaMemcpyDeviceToHost, stream[1]));
	for (cudaStream_t each : stream)
		CHECK(cudaStreamSynchronize(each));

	printf("triangles %llu, devices %d and %d, bytes %zu\n", found[0] + found[1], device[0], device[1], n * sizeof(edge_t));
	if (found[0] + found[1] == expected && found[0] && found[1])
		return 0;
	fprintf(stderr, "found %llu and %llu, expected %llu in sum\n", found[0], found[1], expected);
	return 1;
}
