/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HEADRACE_SOFTGPU_CHECK over what compilers make: correct programs with shared memory, atomics, fences and grid
 * barriers are not reported, and the usual mistakes in them are.
 */
#include "program.cuh"

#include <cooperative_groups.h>
#include <cstring>
#include <string>
#include <unistd.h>

namespace cg = cooperative_groups;

static const int THREADS = 128, BLOCKS = 8, TILE = 16, N = 48;

/* A tree in shared memory, as in everybody's first reduction; a barrier is missing in its loop, or the start. */
template <bool BARRIERS, bool START> __global__ void reduce(const int *in, int *out)
{
	__shared__ int sums[THREADS];
	if (START || threadIdx.x % 7)
		sums[threadIdx.x] = in[blockIdx.x * THREADS + threadIdx.x];
	__syncthreads();
	for (int half = THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			sums[threadIdx.x] += sums[threadIdx.x + half];
		if (BARRIERS)
			__syncthreads();
	}
	if (threadIdx.x == 0)
		out[blockIdx.x] = sums[0];
}

/* By shuffles, one word a warp, and one atomic a block. */
__global__ void reduce_warps(const int *in, int *out)
{
	__shared__ int sums[THREADS / 32];
	int sum = in[blockIdx.x * THREADS + threadIdx.x];
	for (int step = 16; step; step /= 2)
		sum += __shfl_down_sync(0xffffffff, sum, step);
	if (threadIdx.x % 32 == 0)
		sums[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int i = 1; i < THREADS / 32; i++)
			sum += sums[i];
		atomicAdd(out, sum);
	}
}

/* One launch: the last block to finish adds up what all have written (threadFenceReduction). */
__device__ unsigned finished;
template <bool FENCE> __global__ void reduce_at_once(const int *in, int *partial, int *out)
{
	__shared__ bool last;
	__shared__ int sum;
	if (threadIdx.x == 0)
		sum = 0;
	__syncthreads();
	atomicAdd(&sum, in[blockIdx.x * THREADS + threadIdx.x]);
	__syncthreads();
	if (threadIdx.x == 0) {
		partial[blockIdx.x] = sum;
		if (FENCE)
			__threadfence();
		last = atomicInc(&finished, gridDim.x) == gridDim.x - 1;
	}
	__syncthreads();
	if (last && threadIdx.x == 0) {
		int total = 0;
		for (int i = 0; i < gridDim.x; i++)
			total += partial[i];
		*out = total;
		finished = 0;
	}
}

template <bool BARRIER> __global__ void multiply(const float *a, const float *b, float *c)
{
	__shared__ float as[TILE][TILE], bs[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;
	for (int at = 0; at < N; at += TILE) {
		as[threadIdx.y][threadIdx.x] = a[row * N + at + threadIdx.x];
		bs[threadIdx.y][threadIdx.x] = b[(at + threadIdx.y) * N + column];
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
		if (BARRIER)
			__syncthreads();
	}
	c[row * N + column] = sum;
}

/* Counts of a block in shared memory, byte by byte and word by word, added to the grid's. */
template <bool BARRIER> __global__ void histogram(const int *in, unsigned *counts)
{
	__shared__ unsigned words[16];
	__shared__ unsigned char flags[THREADS];
	if (threadIdx.x < 16)
		words[threadIdx.x] = 0;
	flags[threadIdx.x] = 1;
	__syncthreads();
	atomicAdd(&words[in[blockIdx.x * THREADS + threadIdx.x] & 15], (unsigned)flags[threadIdx.x]);
	if (BARRIER)
		__syncthreads();
	if (threadIdx.x < 16)
		atomicAdd(&counts[threadIdx.x], words[threadIdx.x]);
}

/* Each block shifts what its neighbour wrote, round after round. */
template <bool SYNC> __global__ void rounds(int *cells)
{
	cg::grid_group grid = cg::this_grid();
	for (int round = 0; round < 4; round++) {
		int from = cells[(blockIdx.x + 1) % gridDim.x * blockDim.x + threadIdx.x];
		if (SYNC)
			grid.sync();
		cells[blockIdx.x * blockDim.x + threadIdx.x] = from + 1;
		if (SYNC)
			grid.sync();
	}
}

/* Memory that one block frees and another is given. */
__global__ void borrow(int *out)
{
	int *mine = static_cast<int *>(malloc(64 * sizeof *mine));
	for (int i = 0; i < 64; i++)
		mine[i] = i;
	out[blockIdx.x] = mine[blockIdx.x];
	free(mine);
}

static int *in, *out, *partial;
static float *matrices;

/* What was reported since the last call. */
static std::string reports()
{
	static off_t seen;
	char text[65536];
	CHECK(cudaDeviceSynchronize());
	ssize_t n = pread(STDERR_FILENO, text, sizeof text, seen);
	EXPECT(n >= 0);
	seen += n;
	return std::string(text, (size_t)n);
}

static void expect(const char *what, const char *report)
{
	std::string said = reports();
	bool right = report ? said.find(report) != said.npos : said.find("check:") == said.npos;
	if (!right)
		printf("%s: want %s in:\n%s", what, report ? report : "no report", said.c_str());
	if (!right)
		exit(1);
}

int main()
{
	if (getenv("HEADRACE_TEST_REMOTE")) {
		printf("skipped: the check and its reports are the daemon's\n");
		return 77;
	}
	char name[] = "/tmp/checked.XXXXXX";
	int file = mkstemp(name);
	EXPECT(file >= 0);
	unlink(name);
	setenv("HEADRACE_LOG", "warn", 1);
	setenv("HEADRACE_SOFTGPU_CHECK", "init,races", 1);
	/* Kernels that race would race here, too. */
	setenv("HEADRACE_SOFTGPU_THREADS", "1", 1);
	EXPECT(dup2(file, STDERR_FILENO) >= 0);
	CHECK(cudaMallocManaged(&in, BLOCKS * THREADS * sizeof *in));
	CHECK(cudaMallocManaged(&out, BLOCKS * THREADS * sizeof *out));
	CHECK(cudaMallocManaged(&partial, BLOCKS * sizeof *partial));
	CHECK(cudaMallocManaged(&matrices, 3 * N * N * sizeof *matrices));
	for (int i = 0; i < BLOCKS * THREADS; i++)
		in[i] = i;
	for (int i = 0; i < 3 * N * N; i++)
		matrices[i] = 1;
	int total = BLOCKS * THREADS * (BLOCKS * THREADS - 1) / 2;

	const char *warps = "of shared memory races with", *blocks = "of global memory races with",
		   *unwritten = "shared memory that was never written";
	reduce<true, true><<<BLOCKS, THREADS>>>(in, out);
	expect("reduction", NULL);
	reduce<false, true><<<BLOCKS, THREADS>>>(in, out);
	expect("reduction without barriers", warps);
	reduce<true, false><<<BLOCKS, THREADS>>>(in, out);
	expect("reduction of what is not there", unwritten);

	*out = 0;
	reduce_warps<<<BLOCKS, THREADS>>>(in, out);
	expect("reduction by shuffles", NULL);
	EXPECT(*out == total);
	reduce_at_once<true><<<BLOCKS, THREADS>>>(in, partial, out);
	expect("reduction by the last block", NULL);
	EXPECT(*out == total);
	reduce_at_once<false><<<BLOCKS, THREADS>>>(in, partial, out);
	expect("reduction without a fence", blocks);

	dim3 grid(N / TILE, N / TILE), block(TILE, TILE);
	multiply<true><<<grid, block>>>(matrices, matrices + N * N, matrices + 2 * N * N);
	expect("product", NULL);
	EXPECT(matrices[3 * N * N - 1] == N);
	multiply<false><<<grid, block>>>(matrices, matrices + N * N, matrices + 2 * N * N);
	expect("product without a barrier", warps);

	histogram<true><<<BLOCKS, THREADS>>>(in, (unsigned *)out);
	expect("histogram", NULL);
	histogram<false><<<BLOCKS, THREADS>>>(in, (unsigned *)out);
	expect("histogram without a barrier", warps);

	int resident = 4;
	void *arguments[] = { &out };
	cudaError_t launched = cudaLaunchCooperativeKernel((void *)rounds<true>, dim3(resident), dim3(64), arguments);
	CHECK(launched);
	expect("rounds", NULL);
	CHECK(cudaLaunchCooperativeKernel((void *)rounds<false>, dim3(resident), dim3(64), arguments));
	expect("rounds without the grid's barrier", blocks);
	borrow<<<BLOCKS, 1>>>(out);
	expect("borrowed memory", NULL);
	return 0;
}
