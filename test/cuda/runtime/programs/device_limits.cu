/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a thread's stack and of printf's buffer are held. */
#include "program.cuh"

#include <cstring>
#include <string>
#include <unistd.h>

/* The sum of 1 to n; each call has 96 bytes of its own, at least. */
__device__ __noinline__ int deep(int n)
{
	volatile int own[24];
	own[n % 24] = n;
	return n == 0 ? 0 : deep(n - 1) + own[n % 24];
}

__global__ void sum(int n, int *result)
{
	*result = deep(n);
}

__global__ void print_lines(int lines)
{
	for (int i = 0; i < lines; i++)
		printf("%d\n", blockIdx.x * 100 + i);
}

/* What a launch prints. */
static std::string printed(int blocks, int lines)
{
	char name[] = "/tmp/limits.XXXXXX", text[4096];
	int file = mkstemp(name), screen = dup(STDOUT_FILENO);
	EXPECT(file >= 0);
	unlink(name);
	fflush(stdout);
	EXPECT(dup2(file, STDOUT_FILENO) >= 0);
	print_lines<<<blocks, 1>>>(lines);
	CHECK(cudaDeviceSynchronize());
	fflush(stdout);
	dup2(screen, STDOUT_FILENO);
	ssize_t n = pread(file, text, sizeof text, 0);
	EXPECT(n >= 0 && n < (ssize_t)sizeof text);
	close(file);
	close(screen);
	return std::string(text, (size_t)n);
}

static std::string numbers(int from, int count)
{
	std::string text;
	for (int i = 0; i < count; i++)
		text += std::to_string(from + i) + "\n";
	return text;
}

static void printing()
{
	/* A call with one argument counts 24 bytes: ten of them fit. */
	skip_if_not_across("limits", cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 255));
	EXPECT(printed(1, 5) == numbers(0, 5));
	EXPECT(printed(1, 10) == numbers(0, 10));
	EXPECT(printed(1, 95) == numbers(85, 10));
	EXPECT(printed(7, 4) == numbers(402, 2) + numbers(500, 4) + numbers(600, 4));
	/* The size is set before the first launch that prints. */
	EXPECT(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 20) == cudaErrorInvalidValue);
	CHECK(cudaDeviceReset());
	CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 20));
	EXPECT(printed(7, 4) == numbers(0, 4) + numbers(100, 4) + numbers(200, 4) + numbers(300, 4) + numbers(400, 4) +
					numbers(500, 4) + numbers(600, 4));
}

static void stacks()
{
	int *result;
	size_t limit;
	skip_if_not_across("managed memory", cudaMallocManaged(&result, sizeof *result));
	CHECK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
	EXPECT(limit == 1024);
	sum<<<1, 1>>>(5, result);
	CHECK(cudaDeviceSynchronize());
	EXPECT(*result == 15);
	CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 256 << 10));
	sum<<<1, 1>>>(500, result);
	CHECK(cudaDeviceSynchronize());
	EXPECT(*result == 125250);
	EXPECT_ERROR(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitStackSize, 1 << 20));
	cudaGetLastError();
	CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 8 << 10));
	sum<<<1, 1>>>(500, result);
	EXPECT_ERROR(cudaErrorHardwareStackError, cudaDeviceSynchronize());
}

int main()
{
	printing();
	stacks();
	return 0;
}
