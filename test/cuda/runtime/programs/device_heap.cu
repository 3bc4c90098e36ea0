/* SPDX-License-Identifier: BSD-3-Clause */
/* malloc and free in kernels: the heap's limit, memory that outlives a launch, and what the host may do with it. */
#include "program.cuh"

static const size_t MEGABYTE = 1 << 20;

__device__ char *kept;

/* Takes pieces until there are no more; counts them, and gives them back. */
__global__ void take_all(size_t piece, unsigned *count)
{
	void *last = nullptr;
	*count = 0;
	for (void **next; (next = static_cast<void **>(malloc(piece))); ++*count) {
		*next = last;
		last = next;
	}
	while (last) {
		void *before = *static_cast<void **>(last);
		free(last);
		last = before;
	}
}

__global__ void keep(size_t size)
{
	kept = static_cast<char *>(malloc(size));
	for (size_t i = 0; kept && i < size; i++)
		kept[i] = static_cast<char>(i * 3);
}

__global__ void check_kept(size_t size, unsigned *right)
{
	*right = kept != nullptr;
	for (size_t i = 0; i < size && *right; i++)
		*right = kept[i] == static_cast<char>(i * 3);
	free(kept);
}

__global__ void free_other(char *what)
{
	free(what);
}

int main()
{
	unsigned *answer;
	size_t limit;
	skip_if_not_across("managed memory", cudaMallocManaged(&answer, sizeof *answer));
	CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
	EXPECT(limit == 8 * MEGABYTE);
	/* Twice, as what is freed can be had again. */
	for (int round = 0; round < 2; round++) {
		take_all<<<1, 1>>>(MEGABYTE, answer);
		CHECK(cudaDeviceSynchronize());
		EXPECT(*answer == 8);
	}
	/* The heap keeps its size once it is in use; that of a new context has none yet. */
	EXPECT_ERROR(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitMallocHeapSize, 20 * MEGABYTE));
	cudaGetLastError();
	CHECK(cudaDeviceReset());
	CHECK(cudaMallocManaged(&answer, sizeof *answer));
	CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 20 * MEGABYTE));
	take_all<<<1, 1>>>(MEGABYTE, answer);
	CHECK(cudaDeviceSynchronize());
	EXPECT(*answer == 20);
	keep<<<1, 1>>>(12 * MEGABYTE);
	take_all<<<1, 1>>>(MEGABYTE, answer);
	CHECK(cudaDeviceSynchronize());
	EXPECT(*answer == 8);
	char *address, byte;
	CHECK(cudaMemcpyFromSymbol(&address, kept, sizeof address));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpy(&byte, address, 1, cudaMemcpyDeviceToHost));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaFree(address));
	cudaGetLastError();
	check_kept<<<1, 1>>>(12 * MEGABYTE, answer);
	CHECK(cudaDeviceSynchronize());
	EXPECT(*answer == 1);
	/* What malloc did not return cannot be freed in a kernel. */
	CHECK(cudaMalloc(&address, 64));
	free_other<<<1, 1>>>(address);
	EXPECT_ERROR(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	return 0;
}
