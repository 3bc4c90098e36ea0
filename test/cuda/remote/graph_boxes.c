/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and fills of several rows in executable graphs. A driver changes them as part of a whole graph only. Here they are
 * disabled, enabled, changed by an update, and left as they are by an update. Each GPU fills rows of its own, so with several
 * servers the graph has nodes of all of them.
 */
#include "test/cuda/softgpu/driver.h"

#include <stdbool.h>

#define DEVICES 3
#define ROWS 3
#define WIDTH 8  /* bytes of a row */
#define PITCH 20 /* bytes from row to row */
#define BYTES (ROWS * PITCH)

/* Bytes of each kind: what a copy up reads, what a copy down writes, what a copy within the host writes. */
static uint8_t source[2][BYTES], target[BYTES], beside[BYTES];
static CUdeviceptr memory[DEVICES], filled[DEVICES];
static CUcontext contexts[DEVICES];
static CUstream streams[DEVICES];
static int devices;

enum node { UP, DOWN, BESIDE, FILL, NODES };

static CUDA_MEMCPY3D rows(void *to, const void *from, CUdeviceptr there, CUdeviceptr here)
{
	return (CUDA_MEMCPY3D){ .dstMemoryType = to ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, .dstHost = to, .dstDevice = there,
				.srcMemoryType = from ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, .srcHost = from,
				.srcDevice = here, .srcPitch = PITCH, .dstPitch = PITCH, .WidthInBytes = WIDTH, .Height = ROWS,
				.Depth = 1 };
}

/* A chain: up, down, and down's rows within the host; a fill of each GPU. */
static CUgraph build(int which, uint8_t value, CUgraphNode *node)
{
	CUgraph graph;
	CUgraphNode last;
	CUDA_MEMCPY3D up = rows(NULL, source[which], memory[0], 0), down = rows(target, NULL, 0, memory[0]);
	CUDA_MEMCPY3D across = rows(beside, target, 0, 0);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemcpyNode(&node[UP], graph, NULL, 0, &up, contexts[0]));
	OK(cuGraphAddMemcpyNode(&node[DOWN], graph, &node[UP], 1, &down, contexts[0]));
	OK(cuGraphAddMemcpyNode(&node[BESIDE], graph, &node[DOWN], 1, &across, contexts[0]));
	last = node[BESIDE];
	for (int i = 0; i < devices; i++) {
		CUDA_MEMSET_NODE_PARAMS fill = { .dst = filled[i], .pitch = PITCH, .value = value, .elementSize = 1,
						 .width = WIDTH, .height = ROWS };
		OK(cuGraphAddMemsetNode(&node[FILL], graph, &last, 1, &fill, contexts[i]));
		last = node[FILL];
	}
	return graph;
}

static bool has(const uint8_t *bytes, uint8_t value)
{
	for (size_t i = 0; i < BYTES; i++)
		if (bytes[i] != (i % PITCH < WIDTH ? value : 0))
			return false;
	return true;
}

static bool device_has(CUdeviceptr at, uint8_t value)
{
	uint8_t found[BYTES];
	OK(cuMemcpyDtoH(found, at, BYTES));
	return has(found, value);
}

static void write_rows(uint8_t *bytes, uint8_t value)
{
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = i % PITCH < WIDTH ? value : 0;
}

static void launch_graph(CUgraphExec exec)
{
	for (int i = 0; i < devices; i++) {
		OK(cuCtxSetCurrent(contexts[i]));
		OK(cuMemsetD8(filled[i], 0, BYTES));
		OK(cuCtxSynchronize());
	}
	OK(cuCtxSetCurrent(contexts[0]));
	OK(cuGraphLaunch(exec, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
}

/* What each launch leaves, whichever node is disabled. */
static void disabled(CUgraphExec exec, const CUgraphNode *node)
{
	uint8_t before = 0;
	for (int off = 0; off < NODES; off++) {
		uint8_t value = (uint8_t)(10 + off);
		OK(cuGraphNodeSetEnabled(exec, node[off], 0));
		write_rows(source[0], value);
		launch_graph(exec);
		CHECK(device_has(memory[0], off == UP ? before : value));
		CHECK(has(target, off == UP || off == DOWN ? before : value));
		CHECK(has(beside, off == FILL ? value : before));
		CHECK(device_has(filled[devices - 1], off == FILL ? 0 : 5));
		OK(cuGraphNodeSetEnabled(exec, node[off], 1));
		launch_graph(exec);
		CHECK(device_has(memory[0], value) && has(target, value) && has(beside, value));
		CHECK(device_has(filled[devices - 1], 5));
		before = value;
	}
}

/* A disabled node stays so; the copy up reads other rows, and the others stay as they are. */
static void updated(CUgraphExec exec, const CUgraphNode *node)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphNode other[NODES];
	CUgraph same = build(0, 5, other), next = build(1, 5, other);
	OK(cuGraphExecUpdate(exec, same, &info));
	write_rows(source[0], 30);
	launch_graph(exec);
	CHECK(has(target, 30) && has(beside, 30) && device_has(filled[0], 5));
	OK(cuGraphNodeSetEnabled(exec, node[BESIDE], 0));
	OK(cuGraphExecUpdate(exec, next, &info));
	write_rows(source[1], 40);
	launch_graph(exec);
	CHECK(has(target, 40) && has(beside, 30) && device_has(filled[0], 5) && device_has(filled[devices - 1], 5));
	OK(cuGraphNodeSetEnabled(exec, node[BESIDE], 1));
	launch_graph(exec);
	CHECK(has(target, 40) && has(beside, 40));
	OK(cuGraphDestroy(same));
	OK(cuGraphDestroy(next));
}

/* A server has other nodes for a copy from the host than for one from the device, so this change is refused, each time. The node
 * stays as it was, and the whole graph can still be changed. */
static void refused(void)
{
	CUgraph graph;
	CUgraphNode copy, fill;
	CUgraphExec exec;
	uint8_t value = 90, found;
	CUDA_MEMCPY3D up = { .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = memory[0], .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
			     .srcDevice = (CUdeviceptr)(uintptr_t)&value, .WidthInBytes = 1, .Height = 1, .Depth = 1 };
	CUDA_MEMCPY3D within = up;
	within.srcDevice = filled[0];
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &up, contexts[0]));
	for (int i = 0; i < devices; i++) {
		CUDA_MEMSET_NODE_PARAMS rows_of = { .dst = filled[i], .pitch = PITCH, .value = 6, .elementSize = 1,
						    .width = WIDTH, .height = ROWS };
		OK(cuGraphAddMemsetNode(&fill, graph, &copy, 1, &rows_of, contexts[i]));
	}
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 2; i++)
		EXPECT(cuGraphExecMemcpyNodeSetParams(exec, copy, &within, contexts[0]), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphNodeSetEnabled(exec, fill, 0));
	launch_graph(exec);
	OK(cuMemcpyDtoH(&found, memory[0], 1));
	CHECK(found == value && device_has(filled[devices - 1], 0));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

int main(void)
{
	CUgraphNode node[NODES];
	CUgraphExec exec;
	OK(cuInit(0));
	OK(cuDeviceGetCount(&devices));
	devices = devices < DEVICES ? devices : DEVICES;
	for (int i = 0; i < devices; i++) {
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		OK(cuCtxSetCurrent(contexts[i]));
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc(&memory[i], BYTES));
		OK(cuMemAlloc(&filled[i], BYTES));
		OK(cuMemsetD8(memory[i], 0, BYTES));
		OK(cuCtxSynchronize());
	}
	CUgraph graph = build(0, 5, node);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	disabled(exec, node);
	updated(exec, node);
	refused();
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	for (int i = 0; i < devices; i++) {
		OK(cuMemFree(memory[i]));
		OK(cuMemFree(filled[i]));
		OK(cuStreamDestroy(streams[i]));
		OK(cuDevicePrimaryCtxRelease(i));
	}
	return 0;
}
