/* SPDX-License-Identifier: BSD-3-Clause */
/* Short functions that add nodes, for the tests of graphs. */
#ifndef TEST_SOFTGPU_GRAPH_H
#define TEST_SOFTGPU_GRAPH_H

#include "driver.h"

#include <time.h>

static inline CUDA_KERNEL_NODE_PARAMS kernel_params(const char *name, void **parameters)
{
	return (CUDA_KERNEL_NODE_PARAMS){ .func = kernel(name), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
					  .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters };
}

/* A node that launches a kernel of the double with (u64, u32). */
static inline CUgraphNode add_kernel(CUgraph graph, const CUgraphNode *after, size_t count, const char *name,
				     CUdeviceptr first, uint32_t second)
{
	CUgraphNode node;
	void *parameters[] = { &first, &second };
	CUDA_KERNEL_NODE_PARAMS params = kernel_params(name, parameters);
	OK(cuGraphAddKernelNode(&node, graph, after, count, &params));
	return node;
}

/* A node that appends a value to a log. */
static inline CUgraphNode add_append(CUgraph graph, const CUgraphNode *after, size_t count, CUdeviceptr log,
				     uint32_t value)
{
	return add_kernel(graph, after, count, "append", log, value);
}

static inline CUgraphExec instantiated(CUgraph graph)
{
	CUgraphExec exec;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

/* Allocates pinned words, which host and kernels both access. */
static inline uint32_t *words(size_t count)
{
	void *memory;
	OK(cuMemAllocHost(&memory, count * sizeof(uint32_t)));
	memset(memory, 0, count * sizeof(uint32_t));
	return memory;
}

static inline CUdeviceptr at(const void *host)
{
	return (CUdeviceptr)(uintptr_t)host;
}

/* Waits until a word has a value, for at most a minute. False: time is up. */
static inline int comes_to(const uint32_t *word, uint32_t value)
{
	for (int i = 0; i < 60000; i++) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
			return 1;
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
	return 0;
}

#endif
