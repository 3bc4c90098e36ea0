/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C++ kernels: templates, classes and lambdas as arguments, occupancy, attributes, dynamic and opted-in shared memory.
 */
#include "program.cuh"

#include <vector>

template <typename T> struct Affine {
	T a, b;
	__host__ __device__ T operator()(T x) const { return a * x + b; }
};

struct alignas(16) Wide {
	double x, y;
	char tag;
};

template <typename T, typename F> __global__ void map(T *out, const T *in, unsigned n, F f)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = f(in[i]);
}

template <unsigned N> __global__ void many(double *out, char c, Wide w, short s, float f, long long l)
{
	*out = c + w.x * w.y + w.tag + s + f + l + N;
}

template <typename T> static void mapped(T a, T b)
{
	const unsigned n = 10000;
	std::vector<T> host(n);
	T *in, *out;
	int grid, block;
	for (unsigned i = 0; i < n; i++)
		host[i] = (T)i;
	CHECK(cudaMalloc(&in, n * sizeof(T)));
	CHECK(cudaMalloc(&out, n * sizeof(T)));
	CHECK(cudaMemcpy(in, host.data(), n * sizeof(T), cudaMemcpyHostToDevice));
	CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, map<T, Affine<T>>, 0, 0));
	EXPECT(grid >= 1 && block >= 32 && block <= 1024);
	map<<<grid, block>>>(out, in, n, Affine<T>{ a, b });
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(host.data(), out, n * sizeof(T), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < n; i++)
		EXPECT(host[i] == (T)(a * (T)i + b));
	CHECK(cudaFree(in));
	CHECK(cudaFree(out));
}

extern __shared__ int scratch[];

__global__ void reverse(int *values)
{
	scratch[threadIdx.x] = values[threadIdx.x];
	__syncthreads();
	values[threadIdx.x] = scratch[blockDim.x - 1 - threadIdx.x];
}

__global__ void __launch_bounds__(128) bounded(int *values)
{
	__shared__ int sum;
	if (!threadIdx.x)
		sum = 0;
	__syncthreads();
	atomicAdd(&sum, values[threadIdx.x]);
	__syncthreads();
	values[threadIdx.x] = sum;
}

__global__ void large(int *out, int n)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		scratch[i] = i;
	__syncthreads();
	if (!threadIdx.x)
		for (int i = 0; i < n; i++)
			*out += scratch[i] == i;
}

static void shared_memory(void)
{
	int host[256], *values, blocks, optin;
	cudaFuncAttributes attributes;
	for (int i = 0; i < 256; i++)
		host[i] = i;
	CHECK(cudaMalloc(&values, sizeof host));
	CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
	reverse<<<1, 256, sizeof host>>>(values);
	CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 256; i++)
		EXPECT(host[i] == 255 - i);
	bounded<<<1, 128>>>(values);
	CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
	EXPECT(host[0] == (128 + 255) * 128 / 2);

	CHECK(cudaFuncGetAttributes(&attributes, bounded));
	EXPECT(attributes.maxThreadsPerBlock == 128 && attributes.sharedSizeBytes >= sizeof(int));
	CHECK(cudaFuncGetAttributes(&attributes, reverse));
	EXPECT(attributes.maxThreadsPerBlock >= 256 && attributes.ptxVersion >= 50);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 256, 1024));
	EXPECT(blocks >= 1);
	EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&attributes, (void *)shared_memory));
	EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaGetLastError());

	CHECK(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
	CHECK(cudaMemset(values, 0, sizeof host));
	CHECK(cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, optin));
	large<<<1, 64, (size_t)optin>>>(values, optin / 4);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(host, values, sizeof *host, cudaMemcpyDeviceToHost));
	EXPECT(host[0] == optin / 4);
	CHECK(cudaFree(values));
}

static void many_parameters(void)
{
	double *out, host;
	CHECK(cudaMalloc(&out, sizeof host));
	many<7><<<1, 1>>>(out, 'a', Wide{ 3, 4, 5 }, -2, 0.5f, 1LL << 40);
	CHECK(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
	EXPECT(host == 'a' + 12 + 5 - 2 + 0.5 + (double)(1LL << 40) + 7);

	cudaLaunchConfig_t config = {};
	config.gridDim = dim3(1);
	config.blockDim = dim3(1);
	CHECK(cudaLaunchKernelEx(&config, many<9>, out, 'b', Wide{ 1, 1, 1 }, (short)1, 1.0f, 1LL));
	CHECK(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
	EXPECT(host == 'b' + 1 + 1 + 1 + 1 + 1 + 9);
	CHECK(cudaFree(out));
}

int main()
{
	mapped<int>(3, -4);
	mapped<unsigned char>(5, 6);
	mapped<float>(0.5f, 2);
	mapped<double>(1.25, -7);
	shared_memory();
	many_parameters();
	CHECK(cudaGetLastError());
	return 0;
}
