/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that graphs allocate and free, over a worker: launched again and again, freed by calls and by other graphs, given
 * back to the device, lost with its context. With the argument "driver": the server's driver chooses the addresses.
 */
#include "test/cuda/softgpu/driver.h"

#include <stdbool.h>

#define COUNT 50000
#define BYTES (COUNT * sizeof(uint32_t))

static CUcontext context;
static CUstream stream;
static bool driver_places;
static size_t rounding; /* to so many bytes the server rounds memory that is still to be freed */

static uint64_t usage(CUgraphMem_attribute attribute)
{
	cuuint64_t value;
	OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return value;
}

static uint64_t used(void)
{
	return usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
}

static uint64_t reserved(void)
{
	return usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
}

static CUDA_MEM_ALLOC_NODE_PARAMS of_size(size_t bytes)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){ .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							    .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } },
					     .bytesize = bytes };
}

static CUgraphNode add_alloc(CUgraph graph, size_t bytes, CUdeviceptr *address)
{
	CUgraphNode node;
	CUDA_MEM_ALLOC_NODE_PARAMS params = of_size(bytes);
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	CHECK(params.dptr);
	*address = params.dptr;
	return node;
}

static CUgraphNode add_fill(CUgraph graph, CUgraphNode after, CUdeviceptr address, uint32_t value, size_t count)
{
	CUgraphNode node;
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = address, .value = value, .elementSize = 4, .width = count, .height = 1 };
	OK(cuGraphAddMemsetNode(&node, graph, &after, 1, &fill, context));
	return node;
}

/* Adds to the word at address. */
static CUgraphNode add_increase(CUgraph graph, CUgraphNode after, CUdeviceptr address, uint32_t by)
{
	CUgraphNode node;
	void *parameters[] = { &address, &by };
	CUDA_KERNEL_NODE_PARAMS params = { .func = kernel("increase"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
					   .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters };
	OK(cuGraphAddKernelNode(&node, graph, &after, 1, &params));
	return node;
}

static CUgraph new_graph(void)
{
	CUgraph graph;
	OK(cuGraphCreate(&graph, 0));
	return graph;
}

static CUgraphExec instantiated(CUgraph graph)
{
	CUgraphExec exec;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static uint32_t word(CUdeviceptr address)
{
	uint32_t value;
	OK(cuMemcpyDtoHAsync(&value, address, sizeof value, stream));
	OK(cuStreamSynchronize(stream));
	return value;
}

/* A kernel and a copy use the memory between its two nodes; a trim between launches takes its contents only. */
static void allocated_and_freed_in_one_graph(void)
{
	static uint32_t back[COUNT];
	CUdeviceptr address, told;
	CUgraph graph = new_graph(), clone;
	CUgraphExec exec, second;
	CUgraphNode copy, node = add_alloc(graph, BYTES, &address), again;
	node = add_fill(graph, node, address, 7, COUNT);
	node = add_increase(graph, node, address + 4, 30);
	CUDA_MEMCPY3D down = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = address,
			       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .WidthInBytes = BYTES, .Height = 1,
			       .Depth = 1 };
	OK(cuGraphAddMemcpyNode(&copy, graph, &node, 1, &down, context));
	OK(cuGraphAddMemFreeNode(&node, graph, &copy, 1, address));
	EXPECT(cuGraphAddMemFreeNode(&again, graph, &copy, 1, address), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddMemFreeNode(&again, graph, &copy, 1, address + 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphMemFreeNodeGetParams(node, &told));
	CHECK(told == address);
	EXPECT(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
	exec = instantiated(graph);
	EXPECT(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	CHECK(reserved() == 0);
	for (int i = 0; i < 4; i++) {
		memset(back, 0, sizeof back);
		OK(cuGraphLaunch(exec, stream));
		OK(cuGraphLaunch(exec, stream));
		CHECK(reserved() == BYTES);
		OK(cuStreamSynchronize(stream));
		CHECK(back[0] == 7 && back[1] == 37 && back[2] == 7 && back[COUNT - 1] == 7 && used() == 0);
		if (i == 1)
			OK(cuDeviceGraphMemTrim(0));
		CHECK(reserved() == (i == 1 && !driver_places ? 0 : BYTES));
	}
	cuuint64_t zero = 0, one = 1;
	CHECK(usage(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == BYTES && usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) == BYTES);
	OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
	CHECK(usage(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == 0);
	EXPECT(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDeviceGetGraphMemAttribute(99, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuMemFree(address), CUDA_ERROR_INVALID_VALUE); /* its own graph frees it */
	EXPECT(cuMemFreeAsync(address, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	CHECK(reserved() == 0);
	EXPECT(cuMemcpyDtoH(back, address, 4), CUDA_ERROR_INVALID_VALUE);
}

/* Memory that a graph leaves allocated: freed by a call, by another graph, or by the last reference. */
static void allocations_outlive_their_graph(void)
{
	CUgraph graph = new_graph(), other = new_graph();
	CUdeviceptr address;
	CUgraphNode node, alloc = add_alloc(graph, BYTES, &address);
	node = add_fill(graph, alloc, address, 5, 16);
	add_increase(graph, node, address + 60, 90);
	CUgraphExec exec = instantiated(graph), frees;
	OK(cuGraphLaunch(exec, stream));
	EXPECT(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE); /* not freed yet */
	CHECK(word(address + 60) == 95 && used() == BYTES);
	OK(cuDeviceGraphMemTrim(0)); /* in use: stays */
	CHECK(reserved() == BYTES && word(address + 60) == 95);
	OK(cuMemFreeAsync(address, stream));
	EXPECT(cuMemFreeAsync(address, stream), CUDA_ERROR_INVALID_VALUE);
	CHECK(used() == 0);
	OK(cuGraphLaunch(exec, stream));
	OK(cuMemFree(address));
	EXPECT(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
	/* From now on the allocation's own graph cannot have a free node. */
	OK(cuGraphAddMemFreeNode(&node, other, NULL, 0, address));
	EXPECT(cuGraphAddMemFreeNode(&node, graph, &alloc, 1, address), CUDA_ERROR_INVALID_VALUE);
	frees = instantiated(other);
	for (int i = 0; i < 3; i++) {
		OK(cuGraphLaunch(exec, stream));
		CHECK(word(address + 60) == 95 && used() == BYTES);
		if (i < 2)
			OK(cuGraphLaunch(frees, stream));
	}
	OK(cuGraphExecDestroy(frees));
	OK(cuGraphDestroy(other));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	CHECK(word(address + 60) == 95); /* lives on without graph and executable graph */
	OK(cuMemFree(address));
	CHECK(used() == 0 && reserved() == 0);
	EXPECT(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
}

static void freed_by_the_next_launch(void)
{
	CUdeviceptr address;
	CUgraph graph = new_graph();
	CUgraphExec exec;
	CUgraphNode node = add_alloc(graph, BYTES, &address);
	node = add_fill(graph, node, address, 1, 1);
	add_increase(graph, node, address, 10);
	OK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 5; i++) {
		OK(cuGraphLaunch(exec, stream));
		CHECK(used() == BYTES);
	}
	CHECK(word(address) == 11);
	OK(cuMemFreeAsync(address, stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamSynchronize(stream));
}

static void stream_ordered_allocations_are_captured(void)
{
	CUgraph graph;
	CUdeviceptr first, second;
	CUgraphNode nodes[8];
	CUgraphNodeType type;
	uint32_t back[4] = { 0 };
	size_t count = 8;
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&first, 4096, stream));
	OK(cuMemAllocAsync(&second, 4096, stream));
	OK(cuMemsetD32Async(first, 11, 4, stream));
	OK(cuMemcpyDtoDAsync(second, first, 16, stream));
	OK(cuMemcpyDtoHAsync(back, second, 16, stream));
	OK(cuMemFreeAsync(first, stream));
	OK(cuMemFreeAsync(second, stream));
	OK(cuStreamEndCapture(stream, &graph));
	CHECK(first != second);
	OK(cuGraphGetNodes(graph, nodes, &count));
	CHECK(count == 7);
	OK(cuGraphNodeGetType(nodes[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	OK(cuGraphNodeGetType(nodes[6], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_MEM_FREE);
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(back[0] == 11 && back[3] == 11 && used() == 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/* Graphs that are gone leave their memory to later ones; a graph in which it is too much is refused. */
static void memory_is_used_again(void)
{
	size_t available, after, total;
	CUdeviceptr address;
	OK(cuCtxSynchronize());
	OK(cuMemGetInfo(&available, &total));
	size_t part = available / 5 * 2 / 4096 * 4096;
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t back[2];
		CUgraph graph = new_graph();
		CUgraphNode node = add_alloc(graph, part, &address);
		node = add_fill(graph, node, address + part - 8, i, 2);
		CUgraphExec exec = instantiated(graph);
		OK(cuGraphLaunch(exec, stream));
		OK(cuMemcpyDtoHAsync(back, address + part - 8, sizeof back, stream));
		OK(cuMemFreeAsync(address, stream));
		OK(cuGraphExecDestroy(exec));
		OK(cuGraphDestroy(graph));
		OK(cuStreamSynchronize(stream));
		CHECK(back[0] == i && back[1] == i);
	}
	OK(cuCtxSynchronize());
	OK(cuMemGetInfo(&after, &total));
	/* The client does not know to how many bytes the server's driver rounds memory that is still to be freed. */
	CHECK(after == available || (after > available && after - available <= rounding));
	CUgraph graph = new_graph();
	CUgraphNode node;
	CUDA_MEM_ALLOC_NODE_PARAMS params = of_size(2 * total);
	EXPECT(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), CUDA_ERROR_OUT_OF_MEMORY);
	params = of_size(0);
	EXPECT(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	params = of_size(64);
	params.poolProps.location.id = 99;
	EXPECT(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
}

static void memory_goes_with_its_context(void)
{
	CUcontext other;
	CUdeviceptr address, next;
	CUgraph graph = new_graph();
	OK(cuCtxCreate(&other, NULL, 0, 0));
	add_alloc(graph, BYTES, &address);
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, NULL));
	CHECK(used() == BYTES);
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(context));
	CHECK(used() == 0 && reserved() == 0);
	EXPECT(cuGraphLaunch(exec, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	EXPECT(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	/* With several contexts the client does not know which calls are complete: memory that is left over is no obstacle. */
	OK(cuCtxCreate(&other, NULL, 0, 0));
	for (int i = 0; i < 3; i++) {
		graph = new_graph();
		add_alloc(graph, BYTES, &address);
		OK(cuGraphDestroy(graph));
	}
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc(&next, BYTES));
	OK(cuMemsetD32(next, 3, COUNT));
	OK(cuCtxSynchronize());
	CHECK(word(next + BYTES - 4) == 3);
	OK(cuMemFree(next));
}

int main(int argc, char **argv)
{
	driver_places = argc > 1 && !strcmp(argv[1], "driver");
	rounding = driver_places ? 4096 : argc > 1 && !strcmp(argv[1], "pages") ? (size_t)2 << 20 : 0;
	context = start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	allocated_and_freed_in_one_graph();
	allocations_outlive_their_graph();
	freed_by_the_next_launch();
	stream_ordered_allocations_are_captured();
	memory_is_used_again();
	memory_goes_with_its_context();
	return 0;
}
