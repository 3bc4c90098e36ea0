/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that are destroyed while other objects refer to them: contexts, modules, events and graphs. */
#include "graph.h"

#include <pthread.h>

static CUcontext primary;
static CUstream stream;

/* Creates a context for one test and makes it current. */
static CUcontext fresh_context(void)
{
	CUcontext context;
	OK(cuCtxCreate(&context, NULL, 0, 0));
	return context;
}

static void leave_context(CUcontext context)
{
	OK(cuCtxDestroy(context));
	OK(cuCtxSetCurrent(primary));
}

static uint64_t usage(CUgraphMem_attribute attribute)
{
	cuuint64_t value;
	OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return value;
}

/* A graph's memory goes with its context, and trimming touches nobody's who got the addresses after it. */
static void graph_memory_goes_with_its_context(void)
{
	enum { BYTES = 4 << 20 };
	CUgraph graph;
	CUgraphNode alloc, node;
	CUdeviceptr memory = 0;
	uint32_t value = 0;
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
					      .bytesize = BYTES };
	CUcontext context = fresh_context();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	OK(cuGraphAddMemFreeNode(&node, graph, &alloc, 1, params.dptr));
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == BYTES);
	leave_context(context);
	/* An allocation of all free memory gets those addresses. */
	for (int i = 0; i < 64 && memory != params.dptr; i++)
		OK(cuMemAlloc(&memory, BYTES));
	CHECK(memory == params.dptr);
	OK(cuMemsetD32(memory, 7, BYTES / 4));
	OK(cuCtxSynchronize());
	OK(cuDeviceGraphMemTrim(0));
	OK(cuMemcpyDtoH(&value, memory + BYTES / 2, 4));
	CHECK(value == 7);
	CHECK(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
	EXPECT(cuGraphLaunch(exec, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuGraphDestroy(graph));
	OK(cuGraphCreate(&graph, 0));
	EXPECT(cuGraphAddMemFreeNode(&node, graph, NULL, 0, params.dptr), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(exec));
	OK(cuMemcpyDtoH(&value, memory + BYTES / 2, 4));
	CHECK(value == 7);
}

/* Conditions are their graph's, not their context's: a launch that sets them to their defaults sets nobody's memory. */
static void conditions_outlive_their_context(void)
{
	CUgraph graph;
	CUgraphNode node;
	CUgraphConditionalHandle handle;
	CUdeviceptr all[256];
	uint32_t value;
	CUcontext context = fresh_context();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
				     .conditional = { .handle = handle, .type = CU_GRAPH_COND_TYPE_IF, .size = 1 } };
	OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
	CUgraphExec exec = instantiated(graph);
	leave_context(context);
	for (int i = 0; i < 256; i++) {
		OK(cuMemAlloc(&all[i], 512));
		OK(cuMemsetD32(all[i], 0, 128));
	}
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	for (int i = 0; i < 256; i++) {
		OK(cuMemcpyDtoH(&value, all[i], 4));
		CHECK(value == 0);
		OK(cuMemFree(all[i]));
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static CUfunction load(CUmodule *module, const char *name)
{
	CUfunction function;
	OK(cuModuleLoadData(module, "double\nincrease nothing append wait fault write\n"));
	OK(cuModuleGetFunction(&function, *module, name));
	return function;
}

/* An unloaded kernel is not run, nor is the next kernel with its handle. */
static void unloaded_kernels_are_not_run(void)
{
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec, second;
	CUmodule module, next;
	CUkernelNodeAttrValue value;
	CUcontext context = fresh_context();
	uint32_t *word = words(1), one = 1;
	CUdeviceptr address = at(word);
	void *parameters[] = { &address, &one };
	CUfunction function = load(&module, "increase"), again = NULL;
	CUDA_KERNEL_NODE_PARAMS params = { .func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
					   .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters };
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	exec = instantiated(graph);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(*word == 1);
	OK(cuModuleUnload(module));
	for (int i = 0; i < 1000 && again != function; i++) {
		again = load(&next, "increase");
		if (again != function)
			OK(cuModuleUnload(next));
	}
	CHECK(again == function);
	second = instantiated(graph);
	EXPECT(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuGraphLaunch(second, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuGraphDebugDotPrint(graph, "/dev/null", CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
	value.cooperative = 1;
	EXPECT(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value),
	       CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxSynchronize());
	CHECK(*word == 1);
	OK(cuGraphExecKernelNodeSetParams(exec, node, &params)); /* the one that has the handle now */
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(*word == 2);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphExecDestroy(second));
	OK(cuGraphDestroy(graph));
	leave_context(context);
}

/* Nor is an event recorded, or an array written, that has the handle of the one which a node names. */
static void events_and_arrays_of_nodes_are_no_others(void)
{
	const CUDA_ARRAY_DESCRIPTOR shape = { .Width = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1 };
	CUgraph records, copies;
	CUgraphNode node;
	CUevent event, next = NULL;
	CUarray array, other = NULL;
	uint32_t from[16], back[16];
	float milliseconds;
	memset(from, 0x11, sizeof from);
	OK(cuEventCreate(&event, 0));
	OK(cuArrayCreate(&array, &shape));
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from,
			       .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = array,
			       .WidthInBytes = sizeof from, .Height = 1, .Depth = 1 };
	OK(cuGraphCreate(&records, 0));
	OK(cuGraphCreate(&copies, 0));
	OK(cuGraphAddEventRecordNode(&node, records, NULL, 0, event));
	OK(cuGraphAddMemcpyNode(&node, copies, NULL, 0, &copy, primary));
	CUgraphExec recording = instantiated(records), copying = instantiated(copies);
	OK(cuGraphLaunch(recording, stream));
	OK(cuGraphLaunch(copying, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyAtoH(back, array, 0, sizeof back));
	CHECK(!memcmp(from, back, sizeof back));
	OK(cuEventDestroy(event));
	OK(cuArrayDestroy(array));
	EXPECT(cuGraphLaunch(recording, stream), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuGraphLaunch(copying, stream), CUDA_ERROR_INVALID_HANDLE);
	/* Handles are used again in the order in which they were given up. */
	for (int i = 0; i < 2000 && next != event; i++)
		OK(cuEventCreate(&next, 0));
	for (int i = 0; i < 2000 && other != array; i++)
		OK(cuArrayCreate(&other, &shape));
	CHECK(next == event && other == array);
	EXPECT(cuGraphLaunch(recording, stream), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuGraphLaunch(copying, stream), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamSynchronize(stream));
	EXPECT(cuEventElapsedTime(&milliseconds, next, next), CUDA_ERROR_INVALID_HANDLE); /* never recorded */
	OK(cuGraphExecDestroy(recording));
	OK(cuGraphExecDestroy(copying));
	OK(cuGraphDestroy(records));
	OK(cuGraphDestroy(copies));
}

/* A handle that is used after its end never means what an executable graph holds, whoever has its place by then. */
static void executable_graphs_are_behind_no_other_handle(void)
{
	enum { OLD = 128, NEW = 200 };
	CUgraph graph, child, old[OLD];
	CUgraphNode node, old_nodes[OLD];
	CUgraphExec execs[NEW];
	CUgraphNodeType type;
	size_t count;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&child, 0));
	OK(cuGraphAddEmptyNode(&node, child, NULL, 0));
	OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	for (int i = 0; i < OLD; i++) {
		OK(cuGraphCreate(&old[i], 0));
		OK(cuGraphAddEmptyNode(&old_nodes[i], old[i], NULL, 0));
	}
	for (int i = 0; i < OLD; i++)
		OK(cuGraphDestroy(old[i]));
	for (int i = 0; i < NEW; i++)
		execs[i] = instantiated(graph);
	for (int i = 0; i < OLD; i++) {
		EXPECT(cuGraphGetNodes(old[i], NULL, &count), CUDA_ERROR_INVALID_VALUE);
		EXPECT(cuGraphNodeGetType(old_nodes[i], &type), CUDA_ERROR_INVALID_VALUE);
	}
	for (int i = 0; i < NEW; i++)
		OK(cuGraphExecDestroy(execs[i]));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(child));
}

static uint32_t *flag, waiting;
static CUevent waited;

static void *wait_for_event(void *kind)
{
	(void)kind;
	OK(cuCtxSetCurrent(primary));
	__atomic_store_n(&waiting, 1, __ATOMIC_RELEASE);
	CUresult result = cuEventSynchronize(waited);
	CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_HANDLE);
	return NULL;
}

/* An event may be destroyed before it is complete; its waiters continue to wait. */
static void events_are_destroyed_while_waited_for(unsigned flags)
{
	enum { MANY = 400 };
	CUgraph graphs[MANY];
	pthread_t thread;
	*flag = waiting = 0;
	OK(cuEventCreate(&waited, flags));
	hold(stream, at(flag));
	OK(cuEventRecord(waited, stream));
	CHECK(!pthread_create(&thread, NULL, wait_for_event, NULL));
	CHECK(comes_to(&waiting, 1));
	/* Time to begin the wait; one that begins too late is refused, which is right too. */
	nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	OK(cuEventDestroy(waited));
	/* What has the event's place next. */
	for (int i = 0; i < MANY; i++)
		OK(cuGraphCreate(&graphs[i], 0));
	let_go(flag);
	OK(cuStreamSynchronize(stream));
	for (int i = 0; i < MANY; i++)
		OK(cuGraphDestroy(graphs[i]));
	CHECK(!pthread_join(thread, NULL));
}

int main(void)
{
	primary = start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	flag = words(1);
	kernel("wait");
	graph_memory_goes_with_its_context();
	conditions_outlive_their_context();
	unloaded_kernels_are_not_run();
	events_and_arrays_of_nodes_are_no_others();
	executable_graphs_are_behind_no_other_handle();
	events_are_destroyed_while_waited_for(CU_EVENT_DEFAULT);
	events_are_destroyed_while_waited_for(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
	return 0;
}
