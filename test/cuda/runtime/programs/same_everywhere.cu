/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints what many kinds of computation give, every bit of it: the same whatever instruction set the software GPU runs
 * on and however many workers it has. No result depends on the order of threads: floats are summed in a fixed order.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum { BLOCKS = 37, THREADS = 192, COUNT = BLOCKS * THREADS };

#define OK(call)                                                                        \
	do {                                                                            \
		cudaError_t error_ = (call);                                            \
		if (error_ != cudaSuccess) {                                            \
			printf("%s: %s\n", #call, cudaGetErrorString(error_));          \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

__device__ uint32_t random_word(uint32_t i)
{
	i = (i ^ 61) ^ (i >> 16);
	i *= 9;
	i ^= i >> 4;
	i *= 0x27d4eb2d;
	return i ^ i >> 15;
}

__global__ void floats(uint32_t *out)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	float a = __uint_as_float(random_word(i)), b = __uint_as_float(random_word(i + COUNT)), x = (float)i * 0.37f;
	float r = __fadd_rz(a, b) * 0.5f + __fdividef(a, b) + fmodf(x, 7.0f) + sinf(x) * expf(-x) + __powf(x, 0.3f);
	r += tanhf(x) + erff(x * 0.01f) + rsqrtf(x + 1) + a * b;
	out[i] = __float_as_uint(r) ^ __float_as_uint(fminf(a, b)) ^ __float_as_uint(__fsqrt_ru(fabsf(a)));
}

__global__ void doubles(uint64_t *out)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	double a = __longlong_as_double((int64_t)((uint64_t)random_word(i) << 32 | random_word(i + 1)));
	double x = i * 0.61;
	out[i] = (uint64_t)__double_as_longlong(a / (x + 1) + sqrt(x) * cos(x) + __fma_rd(a, x, a) + log1p(x));
}

__global__ void halves(uint32_t *out)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, w = random_word(i);
	__half a = __ushort_as_half((unsigned short)w), b = __ushort_as_half((unsigned short)(w >> 16));
	__nv_bfloat16 c = __ushort_as_bfloat16((unsigned short)w), d = __float2bfloat16_rn((float)i);
	out[i] = __half_as_ushort(__hfma(a, b, a)) | (uint32_t)__bfloat16_as_ushort(__hadd(c, d)) << 16;
}

/* Shuffles, votes, shared memory, divergence; integer atomics between blocks. */
__global__ void together(uint32_t *out, unsigned long long *total, uint32_t *bins)
{
	__shared__ float sums[THREADS];
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, w = random_word(i), t = threadIdx.x;
	sums[t] = (float)(w & 0xffff) * 1.5f;
	__syncthreads();
	for (unsigned step = THREADS / 2; step > 2; step /= 2) {
		if (t < step)
			sums[t] += sums[t + step];
		__syncthreads();
	}
	uint32_t value = w;
	for (int n = 0; n < (int)(w % 7); n++)
		value = value * 1664525 + 1013904223;
	value ^= __shfl_xor_sync(0xffffffff, value, 5) + __ballot_sync(0xffffffff, w & 1);
	atomicAdd(total, (unsigned long long)value);
	atomicAdd(&bins[value % 16], 1);
	atomicMax(&bins[16], value);
	out[i] = value ^ __float_as_uint(sums[0]) ^ __dp4a(w, value, (unsigned)t) ^ __brev(w);
}

template <class T> static void print(const char *name, const T *device, size_t count)
{
	T *host = (T *)malloc(count * sizeof *host);
	OK(cudaMemcpy(host, device, count * sizeof *host, cudaMemcpyDeviceToHost));
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
	for (size_t n = 0; n < count; n++)
		hash = (hash ^ (uint64_t)host[n]) * 0x100000001b3ull;
	printf("%s %016llx", name, (unsigned long long)hash);
	for (size_t n = 0; n < count; n += count / 8 + 1)
		printf(" %llx", (unsigned long long)host[n]);
	printf("\n");
	free(host);
}

int main()
{
	uint32_t *words, *bins;
	uint64_t *wide;
	unsigned long long *total;
	OK(cudaMalloc(&words, COUNT * sizeof *words));
	OK(cudaMalloc(&wide, COUNT * sizeof *wide));
	OK(cudaMalloc(&total, sizeof *total));
	OK(cudaMalloc(&bins, 17 * sizeof *bins));
	OK(cudaMemset(total, 0, sizeof *total));
	OK(cudaMemset(bins, 0, 17 * sizeof *bins));
	floats<<<BLOCKS, THREADS>>>(words);
	print("floats", words, COUNT);
	doubles<<<BLOCKS, THREADS>>>(wide);
	print("doubles", wide, COUNT);
	halves<<<BLOCKS, THREADS>>>(words);
	print("halves", words, COUNT);
	together<<<BLOCKS, THREADS>>>(words, total, bins);
	print("together", words, COUNT);
	print("total", total, 1);
	print("bins", bins, 17);
	OK(cudaDeviceSynchronize());
	return 0;
}
