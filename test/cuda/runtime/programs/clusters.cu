/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters of blocks through cooperative groups: a histogram in the shared memory of all blocks of a cluster, launched in every
 * way that gives a cluster its size; and the sizes that are refused. */
#include "program.cuh"

#include <cooperative_groups.h>
#include <cstdint>
#include <cstring>
#include <vector>

namespace cg = cooperative_groups;

#define THREADS 96
#define BINS 64 /* of each block */

struct place {
	uint32_t rank, blocks, x, y, dim_x, dim_y, cluster;
};

/* Each cluster counts all values: bin b is in block b / BINS % blocks. Its block 0 writes the counts to counts[cluster]. */
__device__ static void count(const uint32_t *values, uint32_t n, uint32_t *counts, place *places)
{
	extern __shared__ uint32_t bins[];
	cg::cluster_group cluster = cg::this_cluster();
	uint32_t blocks = cluster.num_blocks(), rank = cluster.block_rank();
	for (uint32_t i = threadIdx.x; i < BINS; i += blockDim.x)
		bins[i] = 0;
	cluster.sync();
	for (uint32_t i = cluster.thread_rank(); i < n; i += cluster.num_threads()) {
		uint32_t bin = values[i] % (BINS * blocks);
		atomicAdd(cluster.map_shared_rank(bins, bin / BINS) + bin % BINS, 1);
	}
	cg::cluster_group::arrival_token token = cluster.barrier_arrive();
	dim3 at = cluster.block_index(), dim = cluster.dim_blocks();
	uint32_t block = blockIdx.x + blockIdx.y * gridDim.x;
	uint32_t number = blockIdx.x / dim.x + blockIdx.y / dim.y * (gridDim.x / dim.x);
	if (threadIdx.x == 0)
		places[block] = { rank, blocks, at.x, at.y, dim.x, dim.y, number };
	cluster.barrier_wait(std::move(token));
	/* Block 0 reads the others' bins, which stay until all have arrived again. */
	for (uint32_t i = threadIdx.x; rank == 0 && i < BINS * blocks; i += blockDim.x) {
		uint32_t *bin = cluster.map_shared_rank(&bins[i % BINS], i / BINS);
		counts[number * BINS * 16 + i] = cluster.query_shared_rank(bin) == i / BINS ? *bin : 0xbadbad;
	}
	cluster.sync();
}

__global__ void any_size(const uint32_t *values, uint32_t n, uint32_t *counts, place *places)
{
	count(values, n, counts, places);
}

__global__ void __cluster_dims__(2, 2, 1) four(const uint32_t *values, uint32_t n, uint32_t *counts, place *places)
{
	count(values, n, counts, places);
}

typedef void kernel(const uint32_t *, uint32_t, uint32_t *, place *);

static std::vector<uint32_t> values(10007);
static uint32_t *device_values, *counts;
static place *places;

static void prepare()
{
	for (size_t i = 0; i < values.size(); i++)
		values[i] = (uint32_t)i * 2654435761u >> 7;
	CHECK(cudaMalloc(&device_values, values.size() * 4));
	CHECK(cudaMemcpy(device_values, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
	CHECK(cudaMalloc(&counts, 64 * BINS * 16 * 4));
	CHECK(cudaMalloc(&places, 64 * sizeof *places));
}

static void clear()
{
	CHECK(cudaMemset(counts, 0xff, 64 * BINS * 16 * 4));
	CHECK(cudaMemset(places, 0xff, 64 * sizeof *places));
}

/* What a grid of clusters must have left. */
static void verify(dim3 grid, dim3 size)
{
	uint32_t blocks = size.x * size.y, clusters = grid.x * grid.y / blocks;
	std::vector<uint32_t> want(BINS * blocks), got(64 * BINS * 16);
	std::vector<place> seen(grid.x * grid.y);
	for (uint32_t value : values)
		want[value % (BINS * blocks)]++;
	CHECK(cudaMemcpy(got.data(), counts, got.size() * 4, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(seen.data(), places, seen.size() * sizeof(place), cudaMemcpyDeviceToHost));
	for (uint32_t c = 0; c < clusters; c++)
		EXPECT(!memcmp(&got[c * BINS * 16], want.data(), want.size() * 4));
	for (uint32_t y = 0; y < grid.y; y++) {
		for (uint32_t x = 0; x < grid.x; x++) {
			place p = seen[y * grid.x + x];
			EXPECT(p.x == x % size.x && p.y == y % size.y && p.dim_x == size.x && p.dim_y == size.y);
			EXPECT(p.rank == p.x + p.y * size.x && p.blocks == blocks);
			EXPECT(p.cluster == x / size.x + y / size.y * (grid.x / size.x));
		}
	}
	clear();
}

static cudaLaunchAttribute attribute;

static cudaLaunchConfig_t configure(dim3 grid, dim3 size, cudaStream_t stream)
{
	cudaLaunchConfig_t config = {};
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = size.x;
	attribute.val.clusterDim.y = size.y;
	attribute.val.clusterDim.z = size.z;
	config.gridDim = grid;
	config.blockDim = THREADS;
	config.dynamicSmemBytes = BINS * 4;
	config.stream = stream;
	config.attrs = &attribute;
	config.numAttrs = 1;
	return config;
}

static cudaError_t launch(kernel *function, dim3 grid, dim3 size, cudaStream_t stream = 0)
{
	cudaLaunchConfig_t config = configure(grid, size, stream);
	return cudaLaunchKernelEx(&config, function, (const uint32_t *)device_values, (uint32_t)values.size(), counts, places);
}

static void launches()
{
	for (dim3 size : { dim3(1), dim3(2), dim3(8), dim3(1, 4), dim3(3, 2) }) {
		dim3 grid(size.x * 2, size.y * 3);
		CHECK(launch(any_size, grid, size));
		CHECK(cudaDeviceSynchronize());
		verify(grid, size);
	}
	four<<<dim3(4, 6), THREADS, BINS * 4>>>(device_values, (uint32_t)values.size(), counts, places);
	CHECK(cudaGetLastError());
	verify(dim3(4, 6), dim3(2, 2));
	any_size<<<3, THREADS, BINS * 4>>>(device_values, (uint32_t)values.size(), counts, places);
	verify(3, 1);
}

static void wrong_sizes_are_refused()
{
	EXPECT_ERROR(cudaErrorInvalidClusterSize, launch(any_size, 6, 4));      /* not whole clusters */
	EXPECT_ERROR(cudaErrorInvalidClusterSize, launch(any_size, 9, 9));      /* more than every device has */
	EXPECT_ERROR(cudaErrorInvalidClusterSize, cudaGetLastError());
	EXPECT_ERROR(cudaErrorInvalidClusterSize, launch(four, dim3(4, 6), dim3(2))); /* not the size that it requires */
	EXPECT_ERROR(cudaErrorInvalidClusterSize, cudaGetLastError());
	four<<<dim3(4, 3), THREADS, BINS * 4>>>(device_values, (uint32_t)values.size(), counts, places);
	EXPECT_ERROR(cudaErrorInvalidClusterSize, cudaGetLastError());
	CHECK(cudaFuncSetAttribute(any_size, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
	CHECK(launch(any_size, 32, 16));
	verify(32, 16);
	CHECK(cudaFuncSetAttribute(any_size, cudaFuncAttributeNonPortableClusterSizeAllowed, 0));
	EXPECT_ERROR(cudaErrorInvalidClusterSize, launch(any_size, 32, 16));
	cudaGetLastError();
}

static void graphs()
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	size_t nodes = 1;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(launch(any_size, 12, 4, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	verify(12, 4);
	/* The node keeps its clusters, and gets others. */
	cudaLaunchAttributeValue value;
	CHECK(cudaGraphGetNodes(graph, &node, &nodes));
	CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
	EXPECT(value.clusterDim.x == 4 && value.clusterDim.y == 1 && value.clusterDim.z == 1);
	value.clusterDim.x = 5;
	EXPECT_ERROR(cudaErrorInvalidClusterSize,
		     cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
	cudaGetLastError();
	value.clusterDim.x = 6;
	CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	verify(12, 6);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(stream));
}

static void queries()
{
	int possible = 0, size = 0, clusters = 0, pairs = 0;
	cudaFuncAttributes attributes;
	cudaLaunchConfig_t config = configure(8, 4, 0);
	CHECK(cudaDeviceGetAttribute(&possible, cudaDevAttrClusterLaunch, 0));
	EXPECT(possible == 1);
	CHECK(cudaOccupancyMaxPotentialClusterSize(&size, any_size, &config));
	EXPECT(size == 8);
	CHECK(cudaOccupancyMaxActiveClusters(&clusters, any_size, &config));
	attribute.val.clusterDim.x = 2;
	CHECK(cudaOccupancyMaxActiveClusters(&pairs, any_size, &config));
	EXPECT(clusters >= 1 && pairs >= clusters * 2 && pairs <= clusters * 2 + 1);
	CHECK(cudaFuncGetAttributes(&attributes, four));
	EXPECT(attributes.requiredClusterWidth == 2 && attributes.requiredClusterHeight == 2 &&
	       attributes.requiredClusterDepth == 1 && !attributes.nonPortableClusterSizeAllowed);
	CHECK(cudaFuncGetAttributes(&attributes, any_size));
	EXPECT(!attributes.requiredClusterWidth && !attributes.clusterDimMustBeSet);
	EXPECT_ERROR(cudaErrorNotPermitted, cudaFuncSetAttribute(four, cudaFuncAttributeRequiredClusterWidth, 4));
	cudaGetLastError();
}

int main()
{
	prepare();
	clear();
	launches();
	wrong_sizes_are_refused();
	graphs();
	queries();
	return 0;
}
