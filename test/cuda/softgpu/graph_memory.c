/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that graphs allocate and free. */
#include "graph.h"

static CUcontext context;
static CUstream stream;

static uint64_t usage(CUgraphMem_attribute attribute)
{
	cuuint64_t value;
	OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return value;
}

static CUgraphNode add_alloc(CUgraph graph, const CUgraphNode *after, size_t bytes, CUdeviceptr *address)
{
	CUgraphNode node;
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
					      .bytesize = bytes };
	OK(cuGraphAddMemAllocNode(&node, graph, after, after ? 1 : 0, &params));
	CHECK(params.dptr);
	*address = params.dptr;
	return node;
}

static CUgraphNode add_fill(CUgraph graph, const CUgraphNode *after, CUdeviceptr address, uint32_t value, size_t count)
{
	CUgraphNode node;
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = address, .value = value, .elementSize = 4, .width = count, .height =
			1 };
	OK(cuGraphAddMemsetNode(&node, graph, after, 1, &fill, context));
	return node;
}

static void allocated_and_freed_in_one_graph(void)
{
	enum { COUNT = 100000 };
	CUgraph graph, clone;
	CUgraphNode node, copy, again;
	CUdeviceptr address, told;
	CUgraphExec exec, second;
	static uint32_t back[COUNT];
	uint64_t used = usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
	uint32_t *flag = words(1);
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode alloc = add_alloc(graph, NULL, sizeof back, &address);
	node = add_fill(graph, &alloc, address, 7, COUNT);
	CUDA_MEMCPY3D down = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = address, .dstMemoryType =
			CU_MEMORYTYPE_HOST,
			       .dstHost = back, .WidthInBytes = sizeof back, .Height = 1, .Depth = 1 };
	OK(cuGraphAddMemcpyNode(&copy, graph, &node, 1, &down, context));
	OK(cuGraphAddMemFreeNode(&node, graph, &copy, 1, address));
	EXPECT(cuGraphAddMemFreeNode(&again, graph, &copy, 1, address), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphMemFreeNodeGetParams(node, &told));
	CHECK(told == address);
	EXPECT(cuGraphDestroyNode(copy), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuGraphRemoveDependencies_v2(graph, &copy, &node, NULL, 1), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
	CHECK(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
	exec = instantiated(graph);
	EXPECT(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	for (int i = 0; i < 3; i++) {
		memset(back, 0, sizeof back);
		*flag = 0;
		hold(stream, at(flag));
		OK(cuGraphLaunch(exec, stream));
		CHECK(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == sizeof back);
		let_go(flag);
		OK(cuStreamSynchronize(stream));
		CHECK(back[0] == 7 && back[COUNT - 1] == 7);
		CHECK(usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == used);
		CHECK(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == sizeof back);
	}
	CHECK(usage(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= sizeof back);
	EXPECT(cuMemFree(address), CUDA_ERROR_INVALID_VALUE); /* its own graph frees it */
	OK(cuDeviceGraphMemTrim(0));
	CHECK(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
	cuuint64_t zero = 0, one = 1;
	OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
	CHECK(usage(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == used);
	EXPECT(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	exec = instantiated(graph);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/* Memory that a graph leaves allocated: freed by a call, by another graph, or by its next launch. */
static void allocations_outlive_their_graph(void)
{
	CUgraph graph, other;
	CUdeviceptr address;
	CUgraphNode node;
	uint32_t value = 0;
	size_t free_before, free_after, total;
	kernel("write"); /* its module takes memory */
	OK(cuMemGetInfo(&free_before, &total));
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode alloc = add_alloc(graph, NULL, 1 << 20, &address);
	add_fill(graph, &alloc, address, 5, 16);
	CUgraphExec exec = instantiated(graph), frees;
	OK(cuGraphLaunch(exec, stream));
	EXPECT(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE); /* not freed yet */
	OK(cuMemcpyDtoHAsync(&value, address + 60, 4, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(value == 5 && usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 1 << 20);
	OK(cuDeviceGraphMemTrim(0)); /* in use: stays */
	CHECK(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 1 << 20);
	OK(cuMemFreeAsync(address, stream));
	EXPECT(cuMemFreeAsync(address, stream), CUDA_ERROR_INVALID_VALUE);
	CHECK(usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
	OK(cuGraphLaunch(exec, stream));
	OK(cuMemFree(address));
	/* Another graph's free node: from then on the allocation's own graph cannot have one. */
	OK(cuGraphCreate(&other, 0));
	OK(cuGraphAddMemFreeNode(&node, other, NULL, 0, address));
	EXPECT(cuGraphAddMemFreeNode(&node, graph, &alloc, 1, address), CUDA_ERROR_INVALID_VALUE);
	frees = instantiated(other);
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(frees, stream));
	OK(cuGraphLaunch(exec, stream));
	CHECK(usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 1 << 20);
	OK(cuGraphExecDestroy(frees));
	OK(cuGraphDestroy(other));
	OK(cuStreamSynchronize(stream));
	/* The allocation lives on without graph and executable graph. */
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemcpyDtoH(&value, address, 4));
	CHECK(value == 5);
	/* Freed in a stream: the address is valid until the stream has reached the free. */
	uint32_t *flag = words(1);
	hold(stream, at(flag));
	OK(launch("write", stream, &address, (uint32_t[]){ 64 }));
	OK(cuMemFreeAsync(address, stream));
	OK(cuMemcpyDtoH(&value, address, 4));
	CHECK(value == 5);
	let_go(flag);
	OK(cuStreamSynchronize(stream));
	OK(cuMemFreeHost(flag));
	EXPECT(cuMemcpyDtoH(&value, address, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemGetInfo(&free_after, &total));
	CHECK(free_after == free_before);
}

static void freed_by_the_next_launch(void)
{
	CUgraph graph;
	CUdeviceptr address;
	CUgraphExec exec;
	OK(cuGraphCreate(&graph, 0));
	add_alloc(graph, NULL, 4096, &address);
	OK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 5; i++) {
		OK(cuGraphLaunch(exec, stream));
		CHECK(usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 4096);
	}
	OK(cuStreamSynchronize(stream));
	OK(cuMemFree(address));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void stream_ordered_allocations_are_captured(void)
{
	CUgraph graph;
	CUdeviceptr first, second;
	CUgraphNode nodes[8];
	CUgraphNodeType type;
	size_t count = 8;
	uint32_t *back = words(4);
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
	CHECK(back[0] == 11 && back[3] == 11 && usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFreeHost(back));
}

int main(void)
{
	context = start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	allocated_and_freed_in_one_graph();
	allocations_outlive_their_graph();
	freed_by_the_next_launch();
	stream_ordered_allocations_are_captured();
	return 0;
}
