/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs over a worker: built and cloned here, instantiated there; copies of host memory read and write it when the graph
 * runs; updates; launches are one message each.
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <unistd.h>

#define WORDS 8

static CUdeviceptr memory_of(size_t words)
{
	CUdeviceptr address;
	OK(cuMemAlloc(&address, words * sizeof(uint32_t)));
	OK(cuMemsetD32(address, 0, words));
	OK(cuCtxSynchronize()); /* for streams that do not wait for the default stream */
	return address;
}

static uint32_t word(CUdeviceptr address)
{
	uint32_t value;
	OK(cuMemcpyDtoH(&value, address, sizeof value));
	return value;
}

static CUgraphNode add_kernel(CUgraph graph, const CUgraphNode *after, size_t count, const char *name, CUdeviceptr first,
			      uint32_t second)
{
	CUgraphNode node;
	void *parameters[] = { &first, &second };
	CUDA_KERNEL_NODE_PARAMS params = { .func = kernel(name), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
					   .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters };
	OK(cuGraphAddKernelNode(&node, graph, after, count, &params));
	return node;
}

static CUDA_MEMCPY3D up(CUdeviceptr to, const void *from, size_t bytes)
{
	return (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				.dstDevice = to, .WidthInBytes = bytes, .Height = 1, .Depth = 1 };
}

static CUDA_MEMCPY3D down(void *to, CUdeviceptr from, size_t bytes)
{
	return (CUDA_MEMCPY3D){ .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to, .srcMemoryType = CU_MEMORYTYPE_DEVICE,
				.srcDevice = from, .WidthInBytes = bytes, .Height = 1, .Depth = 1 };
}

static CUgraphNode add_copy(CUgraph graph, CUgraphNode after, CUDA_MEMCPY3D copy)
{
	CUgraphNode node;
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	OK(cuGraphAddMemcpyNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &copy, context));
	return node;
}

static CUgraphExec instantiated(CUgraph graph)
{
	CUgraphExec exec;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	return exec;
}

static void launched(CUgraphExec exec)
{
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
}

static CUgraph new_graph(void)
{
	CUgraph graph;
	OK(cuGraphCreate(&graph, 0));
	return graph;
}

/* The order of nodes, a diamond with a child graph in it, launched many times. */
static void order(void)
{
	CUdeviceptr log = memory_of(64);
	CUgraph graph = new_graph(), child = new_graph();
	CUgraphNode first = add_kernel(graph, NULL, 0, "append", log, 1), middle, last[2], empty;
	last[0] = add_kernel(child, NULL, 0, "append", log, 2);
	add_kernel(child, &last[0], 1, "append", log, 3);
	OK(cuGraphAddChildGraphNode(&middle, graph, &first, 1, child));
	OK(cuGraphDestroy(child));
	OK(cuGraphAddEmptyNode(&empty, graph, &first, 1));
	last[0] = middle;
	last[1] = empty;
	add_kernel(graph, last, 2, "append", log, 4);
	CUgraphExec exec = instantiated(graph);
	for (int i = 0; i < 5; i++)
		OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	uint32_t got[64];
	OK(cuMemcpyDtoH(got, log, sizeof got));
	CHECK(got[0] == 20);
	for (uint32_t i = 0; i < 20; i++)
		CHECK(got[1 + i] == 1 + i % 4);
	OK(cuGraphExecDestroy(exec));
	EXPECT(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(log));
}

static void add_one(void *argument)
{
	++*(uint32_t *)argument;
}

/* The copy reads what the host function before it has written, and the last one writes host memory. */
static void host_memory(void)
{
	static uint32_t source, result[3];
	CUdeviceptr device = memory_of(WORDS);
	CUgraph graph = new_graph();
	CUgraphNode node;
	CUDA_HOST_NODE_PARAMS host = { .fn = add_one, .userData = &source };
	OK(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
	node = add_copy(graph, node, up(device, &source, sizeof source));
	node = add_kernel(graph, &node, 1, "increase", device, 100);
	node = add_copy(graph, node, down(&result[0], device, sizeof result[0]));
	CUDA_MEMCPY3D across = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = &result[0], .dstMemoryType = CU_MEMORYTYPE_HOST,
				 .dstHost = &result[1], .WidthInBytes = sizeof result[1], .Height = 1, .Depth = 1 };
	add_copy(graph, node, across);
	CUgraphExec exec = instantiated(graph);
	for (uint32_t i = 1; i <= 50; i++) {
		OK(cuGraphLaunch(exec, NULL));
		if (i % 2)
			continue;
		OK(cuStreamSynchronize(NULL));
		CHECK(source == i && result[0] == i + 100 && result[1] == result[0]);
	}
	source = 1000; /* the next launch reads this */
	OK(cuGraphLaunch(exec, NULL));
	OK(cuGraphExecDestroy(exec)); /* the launch completes nevertheless */
	OK(cuStreamSynchronize(NULL));
	CHECK(source == 1001 && result[0] == 1101 && result[1] == 1101 && !result[2]);
	OK(cuMemFree(device));
}

/* The worker ends memory of copies of earlier graphs when a new one needs other memory. A driver may wait for all work before it
 * unpins memory; the call does not, as the work may wait for a later call. */
static void made_beside_held_work(void)
{
	enum { LARGE = 40 << 20, OTHER = 4096 };
	uint8_t *host = calloc(1, LARGE + OTHER);
	CUdeviceptr device = memory_of((LARGE + OTHER) / 4), flag;
	CUstream held, other;
	CHECK(host);
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemsetD32(flag, 0, 1));
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	kernel("wait"); /* loaded before a stream is held */
	for (size_t i = 0; i < 2; i++) {
		CUgraph graph = new_graph();
		add_copy(graph, NULL, up(device, host, LARGE + i * OTHER));
		OK(cuGraphExecDestroy(instantiated(graph)));
	}
	OK(cuCtxSynchronize());
	hold(held, flag);
	CUgraph graph = new_graph();
	add_copy(graph, NULL, up(device, host, 2 * OTHER));
	CUgraphExec exec = instantiated(graph);
	OK(cuMemsetD32Async(flag, 1, 1, other));
	OK(cuStreamSynchronize(held));
	OK(cuGraphLaunch(exec, other));
	OK(cuStreamSynchronize(other));
	OK(cuGraphExecDestroy(exec));
	OK(cuStreamDestroy(other));
	OK(cuStreamDestroy(held));
	OK(cuMemFree(flag));
	OK(cuMemFree(device));
	free(host);
}

/* Copies that may run at the same time, of more bytes together than the worker asks for at a time. */
static void many_copies(void)
{
	enum { COPIES = 24, BYTES = 1 << 20 };
	uint8_t *from = malloc((size_t)COPIES * BYTES), *to = calloc(COPIES, BYTES);
	CUdeviceptr device = memory_of(COPIES * BYTES / 4);
	CUgraph graph = new_graph();
	CHECK(from && to);
	for (size_t i = 0; i < COPIES; i++) {
		CUgraphNode node = add_copy(graph, NULL, up(device + i * BYTES, from + i * BYTES, BYTES));
		add_copy(graph, node, down(to + i * BYTES, device + i * BYTES, BYTES));
	}
	CUgraphExec exec = instantiated(graph);
	for (size_t round = 1; round <= 2; round++) {
		for (size_t i = 0; i < (size_t)COPIES * BYTES; i++)
			from[i] = (uint8_t)(i * 37 + (i >> 20) + round);
		OK(cuGraphLaunch(exec, NULL));
		OK(cuStreamSynchronize(NULL));
		CHECK(!memcmp(from, to, (size_t)COPIES * BYTES));
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(device));
	free(from);
	free(to);
}

static sem_t began, may_end;

static void block(void *unused)
{
	(void)unused;
	CHECK(!sem_post(&began));
	while (sem_wait(&may_end))
		;
}

/* Up, on the device, down, and from there on the host, for each word. Only the order within a word is given. */
static CUgraphExec copies_of_words(CUdeviceptr device, uint32_t *source, uint32_t (*result)[2], uint32_t words)
{
	CUgraph graph = new_graph();
	for (uint32_t i = 0; i < words; i++) {
		CUgraphNode node = add_copy(graph, NULL, up(device + 4 * i, &source[i], 4));
		node = add_kernel(graph, &node, 1, "increase", device + 4 * i, 1000);
		node = add_copy(graph, node, down(&result[i][0], device + 4 * i, 4));
		CUDA_MEMCPY3D across = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = &result[i][0],
					 .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = &result[i][1], .WidthInBytes = 4,
					 .Height = 1, .Depth = 1 };
		add_copy(graph, node, across);
	}
	return instantiated(graph);
}

/* A host function that blocks, of a stream or of a graph, does not hold up the copies of another graph. */
static void copies_beside_a_blocked_function(bool in_graph)
{
	enum { COPIES = 20 };
	static uint32_t source[COPIES], result[COPIES][2];
	CUdeviceptr device = memory_of(COPIES);
	CUgraph graph = new_graph();
	CUgraphNode node;
	CUgraphExec blocking, copies = NULL;
	CUstream held, other;
	CUDA_HOST_NODE_PARAMS host = { .fn = block };
	CHECK(!sem_init(&began, 0, 0) && !sem_init(&may_end, 0, 0));
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
	blocking = instantiated(graph);
	for (uint32_t round = 1; round <= 30; round++) {
		OK(in_graph ? cuGraphLaunch(blocking, held) : cuLaunchHostFunc(held, block, NULL));
		CHECK(!sem_wait(&began));
		if (!copies) /* the first copies of the session come while the function blocks */
			copies = copies_of_words(device, source, result, COPIES);
		for (uint32_t i = 0; i < COPIES; i++)
			source[i] = round + i;
		OK(cuGraphLaunch(copies, other));
		if (round % 3 == 0) /* the function ends while copies come */
			CHECK(!sem_post(&may_end));
		OK(cuStreamSynchronize(other));
		for (uint32_t i = 0; i < COPIES; i++)
			CHECK(result[i][0] == 1000 + round + i && result[i][1] == result[i][0]);
		if (round % 3) {
			EXPECT(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
			CHECK(!sem_post(&may_end));
		}
		if (round % 2)
			OK(cuStreamSynchronize(held));
	}
	OK(cuStreamSynchronize(held));
	OK(cuGraphExecDestroy(copies));
	OK(cuGraphExecDestroy(blocking));
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(other));
	OK(cuMemFree(device));
}

/* Rows with gaps on both sides, more bytes than one chunk. */
static void boxes(void)
{
	enum { WIDTH = 3000, ROWS = 300, PITCH = 4096 };
	CUdeviceptr device = memory_of(PITCH * ROWS / 4);
	unsigned char *from = malloc(PITCH * ROWS), *to = calloc(PITCH, ROWS);
	for (size_t i = 0; i < PITCH * ROWS; i++)
		from[i] = (unsigned char)(i * 7 + i / PITCH);
	CUgraph graph = new_graph();
	CUDA_MEMCPY3D copy = up(device, from, WIDTH);
	copy.Height = ROWS;
	copy.srcPitch = copy.dstPitch = PITCH;
	copy.srcXInBytes = 5;
	CUgraphNode node = add_copy(graph, NULL, copy);
	copy = down(to, device, WIDTH);
	copy.Height = ROWS;
	copy.srcPitch = copy.dstPitch = PITCH;
	copy.dstXInBytes = 9;
	add_copy(graph, node, copy);
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	for (size_t y = 0; y < ROWS; y++) {
		CHECK(!memcmp(to + y * PITCH + 9, from + y * PITCH + 5, WIDTH));
		CHECK(!to[y * PITCH + 8] && !to[y * PITCH + 9 + WIDTH]);
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(device));
	free(from);
	free(to);
}

/* Nodes of the executable graph get other parameters, alone or by a whole graph; one is disabled. */
static void updates(void)
{
	uint32_t source = 5, other = 70, result = 0;
	CUdeviceptr device = memory_of(WORDS);
	CUgraph graph = new_graph(), same;
	CUgraphNode copy = add_copy(graph, NULL, up(device, &source, sizeof source));
	CUgraphNode add = add_kernel(graph, &copy, 1, "increase", device, 1);
	add_copy(graph, add, down(&result, device, sizeof result));
	CUgraphExec exec;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(result == 6);
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	CUDA_MEMCPY3D changed = up(device, &other, sizeof other);
	OK(cuGraphExecMemcpyNodeSetParams(exec, copy, &changed, context));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(result == 71);
	OK(cuGraphNodeSetEnabled(exec, add, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(result == 70);
	OK(cuGraphNodeSetEnabled(exec, add, 1));
	OK(cuGraphClone(&same, graph));
	OK(cuGraphNodeFindInClone(&add, add, same));
	uint32_t by = 1000;
	void *parameters[] = { &device, &by };
	CUDA_KERNEL_NODE_PARAMS params;
	OK(cuGraphKernelNodeGetParams(add, &params));
	params.kernelParams = parameters;
	OK(cuGraphKernelNodeSetParams(add, &params));
	CUgraphExecUpdateResultInfo info;
	OK(cuGraphExecUpdate(exec, same, &info));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(result == 1005); /* the graph copies from source again */
	add_kernel(same, NULL, 0, "increase", device, 1);
	EXPECT(cuGraphExecUpdate(exec, same, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphDestroy(same));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(device));
}

/* The first node can be updated and the second cannot: the executable graph stays as it was. */
static void a_refused_update_changes_nothing(void)
{
	CUdeviceptr device = memory_of(2);
	CUcontext context;
	CUgraph graph, next;
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	CUDA_KERNEL_NODE_PARAMS params;
	uint32_t pageable = 7, by = 1000, *pinned;
	void *memory, *parameters[] = { &device, &by };
	OK(cuCtxGetCurrent(&context));
	OK(cuMemHostAlloc(&memory, 4, 0));
	pinned = memory;
	*pinned = 3;
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode add = add_kernel(graph, NULL, 0, "increase", device, 5);
	CUgraphNode copy = add_copy(graph, add, up(device + 4, pinned, 4));
	CUDA_MEMCPY3D from_pinned = up(device + 4, pinned, 4), from_pageable = up(device + 4, &pageable, 4);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphClone(&next, graph));
	OK(cuGraphNodeFindInClone(&add, add, next));
	OK(cuGraphNodeFindInClone(&copy, copy, next));
	OK(cuGraphKernelNodeGetParams(add, &params));
	params.kernelParams = parameters;
	OK(cuGraphKernelNodeSetParams(add, &params));
	OK(cuGraphMemcpyNodeSetParams(copy, &from_pageable));
	EXPECT(cuGraphExecUpdate(exec, next, &info), CUDA_ERROR_NOT_SUPPORTED);
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(word(device) == 5 && word(device + 4) == 3);
	/* A later update is of the graph as it was. */
	OK(cuGraphMemcpyNodeSetParams(copy, &from_pinned));
	OK(cuGraphExecUpdate(exec, next, &info));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(word(device) == 1005 && word(device + 4) == 3);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(next));
	OK(cuMemFreeHost(memory));
	OK(cuMemFree(device));
}

/* Fills, device copies and events. */
static void other_nodes(void)
{
	CUdeviceptr device = memory_of(2 * WORDS);
	CUgraph graph = new_graph();
	CUgraphNode node;
	CUevent event;
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	OK(cuEventCreate(&event, 0));
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = device, .elementSize = 4, .value = 0x01020304, .width = WORDS, .height = 1 };
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = device, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstDevice = device, .dstXInBytes = WORDS * 4, .WidthInBytes = WORDS * 4, .Height = 1, .Depth = 1 };
	node = add_copy(graph, node, copy);
	OK(cuGraphAddEventRecordNode(&node, graph, &node, 1, event));
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuEventSynchronize(event));
	CHECK(word(device + 4 * (2 * WORDS - 1)) == 0x01020304);
	OK(cuEventDestroy(event));
	EXPECT(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(device));
}

/* Copies of host memory are switched off and on, also between two places of the host; launches in between are not waited for. */
static void disabled_copies(void)
{
	uint32_t source = 1, result = 0, twice[2] = { 0, 0 };
	CUdeviceptr device = memory_of(WORDS);
	CUgraph graph = new_graph();
	CUgraphNode node[3];
	node[0] = add_copy(graph, NULL, up(device, &source, sizeof source));
	node[1] = add_copy(graph, node[0], down(&result, device, sizeof result));
	CUDA_MEMCPY3D across = down(&twice[1], 0, sizeof twice[1]);
	across.srcMemoryType = CU_MEMORYTYPE_HOST;
	across.srcHost = &result;
	node[2] = add_copy(graph, node[1], across);
	CUgraphExec exec;
	unsigned enabled = 2;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		source = 10 + (uint32_t)i;
		OK(cuGraphNodeSetEnabled(exec, node[0], 0));
		OK(cuGraphLaunch(exec, NULL));
		OK(cuGraphNodeSetEnabled(exec, node[0], 1));
		OK(cuGraphNodeSetEnabled(exec, node[1], 0));
		OK(cuGraphNodeSetEnabled(exec, node[2], 0));
		OK(cuGraphLaunch(exec, NULL));
		OK(cuStreamSynchronize(NULL));
		CHECK(word(device) == source && result == (i ? source - 1 : 0) && twice[1] == result);
		OK(cuGraphNodeSetEnabled(exec, node[1], 1));
		OK(cuGraphNodeGetEnabled(exec, node[2], &enabled));
		CHECK(!enabled);
		OK(cuGraphNodeSetEnabled(exec, node[2], 1));
	}
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(result == 12 && twice[1] == 12 && !twice[0]);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(device));
}

static bool unregisters; /* the main thread calls cuMemHostUnregister now */

static bool main_thread_sleeps(void)
{
	char path[64], line[256] = "";
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
	FILE *file = fopen(path, "r");
	CHECK(file && fgets(line, sizeof line, file));
	fclose(file);
	const char *state = strrchr(line, ')');
	return state && state[1] == ' ' && state[2] == 'S';
}

static void *release_later(void *flag)
{
	CUcontext context;
	CUdevice device;
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	while (!__atomic_load_n(&unregisters, __ATOMIC_ACQUIRE) || !main_thread_sleeps())
		usleep(1000);
	OK(cuStreamWriteValue32(CU_STREAM_PER_THREAD, *(CUdeviceptr *)flag, 1, 0));
	OK(cuDevicePrimaryCtxRelease(device));
	return NULL;
}

/* Memory that a graph still writes is unregistered only then. */
static void unregistered_in_use(void)
{
	CUdeviceptr device = memory_of(WORDS);
	uint32_t *host = calloc(1, 4096);
	CUgraph graph = new_graph();
	OK(cuMemHostRegister(host, 4096, 0));
	CUgraphNode node = add_kernel(graph, NULL, 0, "wait", device, 0);
	add_copy(graph, node, down(&host[5], device, sizeof *host));
	CUgraphExec exec = instantiated(graph);
	pthread_t thread;
	CUstream stream;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuGraphLaunch(exec, stream));
	CHECK(!pthread_create(&thread, NULL, release_later, &device));
	__atomic_store_n(&unregisters, true, __ATOMIC_RELEASE);
	OK(cuMemHostUnregister(host));
	CHECK(host[5] == 1);
	free(host);
	pthread_join(thread, NULL);
	OK(cuStreamDestroy(stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(device));
}

/* More bytes than the worker keeps for a session go through one node: it keeps no copy that a later change has replaced. */
static void replaced_often(void)
{
	enum { BYTES = 1 << 20, CHANGES = 1200 };
	uint8_t *from = calloc(1, BYTES);
	CUdeviceptr device = memory_of(BYTES / 4);
	CUgraph graph = new_graph();
	CUgraphNode node = add_copy(graph, NULL, up(device, from, BYTES));
	CUcontext context;
	CUgraphExec exec;
	OK(cuCtxGetCurrent(&context));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < CHANGES; i++) {
		CUDA_MEMCPY3D copy = up(device, from, BYTES);
		OK(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context));
		if (i % 100 < 3) /* most changes are not followed by a launch */
			OK(cuGraphLaunch(exec, NULL));
		if (i % 100 == 3)
			OK(cuStreamSynchronize(NULL));
	}
	from[BYTES - 1] = 77;
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(word(device + BYTES - 4) == 77u << 24);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(device));
	free(from);
}

/* Rows through an array, from the host and back, by way of the device; the array's end is noticed. */
static void arrays(void)
{
	enum { WIDTH = 16, ROWS = 4 };
	unsigned char from[ROWS][WIDTH], to[ROWS][WIDTH] = { { 0 } };
	CUDA_ARRAY_DESCRIPTOR like = { .Width = WIDTH, .Height = ROWS, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1 };
	CUdeviceptr device = memory_of(WIDTH * ROWS / 4);
	CUarray array;
	for (int i = 0; i < ROWS * WIDTH; i++)
		from[i / WIDTH][i % WIDTH] = (unsigned char)(i * 3);
	OK(cuArrayCreate(&array, &like));
	CUgraph graph = new_graph();
	CUDA_MEMCPY3D copy = up(0, from, WIDTH);
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array;
	copy.Height = ROWS, copy.srcPitch = WIDTH;
	CUgraphNode node = add_copy(graph, NULL, copy);
	copy = down(NULL, 0, 8);
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = array;
	copy.srcXInBytes = 4, copy.srcY = 1, copy.Height = 2;
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = device, copy.dstPitch = WIDTH;
	node = add_copy(graph, node, copy);
	copy = down(to, device, 8);
	copy.Height = 2, copy.srcPitch = copy.dstPitch = WIDTH;
	add_copy(graph, node, copy);
	copy = up(0, from, WIDTH + 1);
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array;
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	EXPECT(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context), CUDA_ERROR_INVALID_VALUE);
	CUgraphExec exec = instantiated(graph);
	launched(exec);
	for (int y = 0; y < 2; y++)
		CHECK(!memcmp(to[y], &from[y + 1][4], 8) && !to[y][8]);
	OK(cuArrayDestroy(array));
	EXPECT(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(device));
}

/* A graph waits for a value that another stream writes, and writes one; the words are changed. */
static void memory_operations(void)
{
	CUdeviceptr device = memory_of(WORDS);
	CUcontext context;
	CUstream stream;
	CUgraphNode node;
	OK(cuCtxGetCurrent(&context));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUstreamBatchMemOpParams list[] = {
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = device, .value = 3,
				 .flags = CU_STREAM_WAIT_VALUE_GEQ } },
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = device + 4, .value = 8 } },
	};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = { .ctx = context, .count = 2, .paramArray = list }, told;
	CUgraph graph = new_graph();
	OK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
	OK(cuGraphBatchMemOpNodeGetParams(node, &told));
	CHECK(told.count == 2 && told.paramArray[1].writeValue.address == device + 4);
	list[1].writeValue.address = device + 2;
	EXPECT(cuGraphBatchMemOpNodeSetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
	list[1].writeValue.address = device + 4;
	add_kernel(graph, &node, 1, "increase", device + 4, 100);
	CUgraphExec exec;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	OK(cuStreamWriteValue32(CU_STREAM_PER_THREAD, device, 3, 0));
	OK(cuStreamSynchronize(stream));
	CHECK(word(device + 4) == 108);
	list[0].waitValue.address = list[1].writeValue.address = device + 8;
	list[0].waitValue.value = 0;
	OK(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(word(device + 8) == 8 && word(device + 4) == 208);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(device));
}

/* ---- conditional nodes ---- */

static CUgraphNode add_condition(CUgraph graph, CUgraphNode after, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
				 unsigned bodies, CUgraph *body)
{
	CUgraphNode node;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
				     .conditional = { .handle = handle, .type = type, .size = bodies } };
	OK(cuGraphAddNode_v2(&node, graph, after ? &after : NULL, NULL, after ? 1 : 0, &params));
	memcpy(body, params.conditional.phGraph_out, bodies * sizeof *body);
	return node;
}

static CUgraphNode add_setter(CUgraph graph, CUgraphNode after, const char *name, uint64_t first, uint64_t second)
{
	CUgraphNode node;
	void *parameters[] = { &first, &second };
	CUDA_KERNEL_NODE_PARAMS params = { .func = kernel(name), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
					   .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters };
	OK(cuGraphAddKernelNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &params));
	return node;
}

static CUgraphConditionalHandle handle_of(CUgraph graph, unsigned value, unsigned flags)
{
	CUgraphConditionalHandle handle;
	OK(cuGraphConditionalHandleCreate(&handle, graph, NULL, value, flags));
	return handle;
}

/* A loop whose kernel ends it; the node in its body gets other parameters; again after the executable graph's end. */
static void a_loop(void)
{
	CUdeviceptr device = memory_of(WORDS);
	CUgraph graph = new_graph(), body;
	CUgraphConditionalHandle handle = handle_of(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	add_condition(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	CUgraphNode add = add_kernel(body, NULL, 0, "increase", device + 4, 10);
	add_setter(body, add, "decrease", device, handle);
	for (int round = 0; round < 2; round++) {
		CUgraphExec exec;
		OK(cuMemsetD32(device, 0, WORDS));
		OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
		OK(cuMemsetD32(device, 5, 1));
		launched(exec);
		CHECK(!word(device) && word(device + 4) == 50);
		CUdeviceptr at = device + 4;
		uint32_t by = 1;
		void *parameters[] = { &at, &by };
		CUDA_KERNEL_NODE_PARAMS params;
		OK(cuGraphKernelNodeGetParams(add, &params));
		params.kernelParams = parameters;
		OK(cuGraphExecKernelNodeSetParams(exec, add, &params));
		OK(cuMemsetD32(device, 7, 1));
		launched(exec);
		CHECK(word(device + 4) == 57);
		OK(cuGraphExecDestroy(exec));
	}
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(device));
}

/* A condition with two bodies, and a choice of three in the first of them; the bodies are captured. */
static void choices(void)
{
	CUdeviceptr log = memory_of(64);
	CUgraph graph = new_graph(), half[2], third[3], got;
	CUgraphConditionalHandle which = handle_of(graph, 0, 0);
	CUgraphNode set = add_setter(graph, NULL, "choose", which, 1);
	add_condition(graph, set, which, CU_GRAPH_COND_TYPE_IF, 2, half);
	add_kernel(half[1], NULL, 0, "append", log, 100);
	CUgraphConditionalHandle inner = handle_of(half[0], 2, CU_GRAPH_COND_ASSIGN_DEFAULT);
	add_condition(half[0], NULL, inner, CU_GRAPH_COND_TYPE_SWITCH, 3, third);
	CUstream stream;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t value = 10 + i;
		void *parameters[] = { &log, &value };
		OK(cuStreamBeginCaptureToGraph(stream, third[i], NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
		OK(cuLaunchKernel(kernel("append"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
		OK(cuStreamEndCapture(stream, &got));
		CHECK(got == third[i]);
	}
	CUgraphExec exec;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	launched(exec);
	CHECK(word(log) == 1 && word(log + 4) == 12);
	uint32_t no = 0;
	void *parameters[] = { &which, &no };
	CUDA_KERNEL_NODE_PARAMS params;
	OK(cuGraphKernelNodeGetParams(set, &params));
	params.kernelParams = parameters;
	OK(cuGraphExecKernelNodeSetParams(exec, set, &params));
	launched(exec);
	CHECK(word(log) == 2 && word(log + 8) == 100);
	EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_NOT_SUPPORTED); /* one at a time */
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(log));
}

static CUgraph conditional_copy(CUdeviceptr device, const uint32_t *source, uint32_t by, CUgraphNode *inside)
{
	CUgraph graph = new_graph(), body;
	CUgraphConditionalHandle handle = handle_of(graph, 0, 0);
	CUgraphNode copy = add_copy(graph, NULL, up(device, source, sizeof *source));
	CUgraphNode set = add_setter(graph, copy, "decrease", device, handle);
	add_condition(graph, set, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	*inside = add_kernel(body, NULL, 0, "increase", device, by);
	return graph;
}

/* The other graph's kernels name its own handle; a node is found by its old name afterwards. */
static void conditions_are_replaced(void)
{
	uint32_t source = 5, other = 1;
	CUdeviceptr device = memory_of(WORDS);
	CUgraphNode inside, unused;
	CUgraph graph = conditional_copy(device, &source, 100, &inside);
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	launched(exec);
	CHECK(word(device) == 104);
	CUgraph next = conditional_copy(device, &other, 1000, &unused);
	OK(cuGraphExecUpdate(exec, next, &info));
	OK(cuGraphDestroy(next));
	launched(exec);
	CHECK(!word(device)); /* 1 - 1: the body does not run */
	other = 3;
	launched(exec);
	CHECK(word(device) == 1002);
	uint32_t by = 7;
	void *parameters[] = { &device, &by };
	CUDA_KERNEL_NODE_PARAMS params;
	OK(cuGraphKernelNodeGetParams(inside, &params));
	params.kernelParams = parameters;
	OK(cuGraphExecKernelNodeSetParams(exec, inside, &params));
	launched(exec);
	CHECK(word(device) == 9);
	OK(cuGraphExecUpdate(exec, graph, &info));
	launched(exec);
	CHECK(word(device) == 104);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(device));
}

/* Pinned memory that the worker has mapped is copied in a loop's body: the source changes while the loop runs. */
static void pinned_memory_in_a_loop(void)
{
	CUdeviceptr device = memory_of(WORDS), mapped;
	uint32_t *host;
	OK(cuMemAllocHost((void **)&host, 4096));
	host[0] = 0;
	host[1] = 40;
	if (cuMemHostGetDevicePointer(&mapped, host, 0) != CUDA_SUCCESS) { /* the worker is on another host, or seems to be */
		OK(cuMemFreeHost(host));
		OK(cuMemFree(device));
		return;
	}
	CUgraph graph = new_graph(), body;
	CUgraphConditionalHandle handle = handle_of(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	add_condition(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	CUgraphNode node = add_copy(body, NULL, up(device + 4, &host[1], 4));
	node = add_kernel(body, &node, 1, "increase", device + 4, 1);
	node = add_copy(body, node, down(&host[1], device + 4, 4));
	CUDA_MEMCPY3D across = down(&host[2], 0, 4);
	across.srcMemoryType = CU_MEMORYTYPE_HOST;
	across.srcHost = &host[1];
	node = add_copy(body, node, across);
	add_setter(body, node, "decrease", device, handle);
	CUgraphExec exec = instantiated(graph);
	for (uint32_t round = 1; round < 4; round++) {
		OK(cuMemsetD32(device, 5, 1));
		launched(exec);
		CHECK(host[1] == 40 + 5 * round && host[2] == host[1] && !host[3] && !host[0]);
	}
	OK(cuMemsetD32(device, 1, 1));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuMemFreeHost(host)); /* waits for the launch */
	OK(cuStreamSynchronize(NULL));
	CHECK(word(device + 4) == 56);
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(device));
}

static void conditions_refused(void)
{
	static uint32_t source;
	CUdeviceptr device = memory_of(WORDS);
	CUgraph graph = new_graph(), other = new_graph(), body;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraphConditionalHandle handle;
	EXPECT(cuGraphConditionalHandleCreate(&handle, graph, NULL, 0, 2), CUDA_ERROR_INVALID_VALUE);
	handle = handle_of(graph, 1, 0);
	EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE); /* no node uses it */
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
				     .conditional = { .handle = handle_of(other, 0, 0), .type = CU_GRAPH_COND_TYPE_IF, .size = 1 } };
	EXPECT(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	add_condition(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	node = add_copy(body, NULL, up(device, &source, sizeof source));
	EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_NOT_SUPPORTED); /* the worker asks for the bytes */
	OK(cuGraphDestroyNode(node));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(other));
	OK(cuMemFree(device));
}

/* What CUDA refuses, and what the client does not send. */
static void errors(void)
{
	CUgraph graph = new_graph();
	CUgraphNode node[2];
	CUgraphExec exec;
	OK(cuGraphAddEmptyNode(&node[0], graph, NULL, 0));
	OK(cuGraphAddEmptyNode(&node[1], graph, &node[0], 1));
	OK(cuGraphAddDependencies(graph, &node[1], &node[0], NULL, 1));
	EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
	CUDA_MEMCPY3D copy = up(0x1000, &graph, 8);
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	EXPECT(cuGraphAddMemcpyNode(&node[0], graph, NULL, 0, &copy, context), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	EXPECT(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

/* For the script, which counts the calls in the log: a graph of many nodes, launched 100 times. */
static void many(void)
{
	CUdeviceptr device = memory_of(WORDS);
	CUgraph graph = new_graph();
	CUgraphNode node = NULL;
	for (int i = 0; i < 200; i++)
		node = add_kernel(graph, node ? &node : NULL, node ? 1 : 0, "increase", device, 1);
	CUgraphExec exec = instantiated(graph);
	for (int i = 0; i < 100; i++)
		OK(cuGraphLaunch(exec, NULL));
	CHECK(word(device) == 20000);
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(device));
}

static CUDA_MEMCPY3D across(CUdeviceptr to, CUdeviceptr from, size_t width, size_t height)
{
	return (CUDA_MEMCPY3D){ .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstPitch = 2 * width,
				.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .srcPitch = width,
				.WidthInBytes = width, .Height = height, .Depth = 1 };
}

/* Copies between the memory of two GPUs of the server, none of which has access to the other's: both directions in
 * the graphs of both contexts, in one piece and in rows; then the nodes of the copies in one piece change direction. */
static void between_two_gpus(void)
{
	enum { COUNT = 300000, ROW = 1000, ROWS = 100 };
	CUcontext context[2];
	CUdeviceptr memory[2];
	uint32_t *words = malloc(COUNT * sizeof *words);
	int access, devices;
	OK(cuDeviceGetCount(&devices));
	CHECK(words && devices == 2);
	for (int i = 0; i < 2; i++) {
		OK(cuDevicePrimaryCtxRetain(&context[i], i));
		OK(cuCtxSetCurrent(context[i]));
		OK(cuMemAlloc(&memory[i], COUNT * sizeof *words));
	}
	OK(cuDeviceCanAccessPeer(&access, 0, 1)); /* if it is so, it is not enabled */
	for (int i = 0; i < 16; i++) {
		int from = i & 1, at = i >> 1 & 1;
		bool rows = i >> 2 & 1, changed = i >> 3 & 1 && !rows;
		CUDA_MEMCPY3D copy = across(memory[!from], memory[from], rows ? ROW : COUNT * sizeof *words, rows ? ROWS : 1);
		CUDA_MEMCPY3D other = across(memory[from], memory[!from], copy.WidthInBytes, copy.Height);
		CUgraphExec exec;
		CUgraph graph;
		OK(cuCtxSetCurrent(context[at]));
		OK(cuGraphCreate(&graph, 0));
		CUgraphNode node = add_copy(graph, NULL, changed ? other : copy);
		OK(cuGraphInstantiate(&exec, graph, 0));
		if (changed)
			OK(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context[at]));
		OK(cuCtxSetCurrent(context[from]));
		OK(cuMemsetD32(memory[from], 100u + (unsigned)i, COUNT));
		OK(cuCtxSetCurrent(context[!from]));
		OK(cuMemsetD32(memory[!from], 0, COUNT));
		OK(cuCtxSynchronize());
		OK(cuCtxSetCurrent(context[from]));
		OK(cuCtxSynchronize());
		OK(cuCtxSetCurrent(context[at]));
		OK(cuGraphLaunch(exec, NULL));
		OK(cuCtxSynchronize());
		OK(cuCtxSetCurrent(context[!from]));
		OK(cuMemcpyDtoH(words, memory[!from], COUNT * sizeof *words));
		for (uint32_t at_word = 0; at_word < COUNT; at_word++) {
			uint32_t row = at_word * 4 / (2 * ROW), in_row = at_word * 4 % (2 * ROW);
			bool copied = !rows || (row < ROWS && in_row < ROW);
			CHECK(words[at_word] == (copied ? 100u + (unsigned)i : 0));
		}
		OK(cuGraphExecDestroy(exec));
		OK(cuGraphDestroy(graph));
	}
	free(words);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "two")) {
		OK(cuInit(0));
		between_two_gpus();
		return 0;
	}
	start();
	if (argc > 1 && !strcmp(argv[1], "many")) {
		many();
		return 0;
	}
	copies_beside_a_blocked_function(false);
	copies_beside_a_blocked_function(true);
	order();
	host_memory();
	made_beside_held_work();
	many_copies();
	boxes();
	updates();
	a_refused_update_changes_nothing();
	other_nodes();
	disabled_copies();
	unregistered_in_use();
	replaced_often();
	arrays();
	memory_operations();
	a_loop();
	pinned_memory_in_a_loop();
	choices();
	conditions_are_replaced();
	conditions_refused();
	errors();
	return 0;
}
