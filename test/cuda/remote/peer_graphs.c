/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs with nodes of three servers: captured, built, changed, launched in streams of each server. A graph of one server that is
 * launched in a stream of another.
 *	peer_graphs all     everything
 *	peer_graphs death   writes a line and reads one from stdin; by then the second server's workers must have been killed
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#define DEVICES 3
#define WORDS (96u << 10)
#define BYTES ((size_t)WORDS * 4)

static struct place {
	CUcontext context;
	CUstream stream, other;
	CUevent event;
	CUdeviceptr memory;
	CUfunction increase, choose;
} places[DEVICES];

static uint32_t found[WORDS];

static void use(int device)
{
	OK(cuCtxSetCurrent(places[device].context));
}

static void set_up(void)
{
	OK(cuInit(0));
	for (int i = 0; i < DEVICES; i++) {
		struct place *place = &places[i];
		CUmodule module;
		OK(cuDevicePrimaryCtxRetain(&place->context, i));
		use(i);
		OK(cuStreamCreate(&place->stream, CU_STREAM_NON_BLOCKING));
		OK(cuStreamCreate(&place->other, CU_STREAM_NON_BLOCKING));
		OK(cuEventCreate(&place->event, 0));
		OK(cuMemAlloc(&place->memory, BYTES));
		OK(cuModuleLoadData(&module, test_program("double\nincrease choose\n")));
		OK(cuModuleGetFunction(&place->increase, module, "increase"));
		OK(cuModuleGetFunction(&place->choose, module, "choose"));
	}
}

static void set(int device, uint32_t value)
{
	OK(cuMemsetD32(places[device].memory, value, WORDS));
	use(device);
	OK(cuCtxSynchronize());
}

/* The first and the last word were increased, the others were not. */
static void expect(int device, uint32_t first, uint32_t rest)
{
	OK(cuMemcpyDtoH(found, places[device].memory, BYTES));
	if (found[0] != first || found[1] != rest || found[WORDS - 1] != rest)
		fprintf(stderr, "device %d: %u %u %u, want %u %u\n", device, found[0], found[1], found[WORDS - 1], first, rest);
	CHECK(found[0] == first && found[1] == rest && found[WORDS - 1] == rest);
}

/* Increases the first word in the stream of the device. */
static void step(int device, CUstream stream, uint32_t by)
{
	void *parameters[] = { &places[device].memory, &by };
	use(device);
	OK(cuLaunchKernel(places[device].increase, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void follow(int later, int earlier)
{
	use(earlier);
	OK(cuEventRecord(places[earlier].event, places[earlier].stream));
	use(later);
	OK(cuStreamWaitEvent(places[later].stream, places[earlier].event, 0));
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	return exec;
}

/* A round through three servers: each increases what it gets by 1, 10, or 100, and hands it on. */
static CUgraph captured_ring(bool peer_calls)
{
	CUgraph graph;
	uint32_t by[] = { 1, 10, 100 };
	use(0);
	OK(cuStreamBeginCapture(places[0].stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (int i = 0; i < DEVICES; i++) {
		struct place *from = &places[i], *to = &places[(i + 1) % DEVICES];
		step(i, from->stream, by[i]);
		if (peer_calls)
			OK(cuMemcpyPeerAsync(to->memory, to->context, from->memory, from->context, BYTES, from->stream));
		else
			OK(cuMemcpyAsync(to->memory, from->memory, BYTES, from->stream));
		follow((i + 1) % DEVICES, i);
	}
	use(0);
	OK(cuStreamEndCapture(places[0].stream, &graph));
	return graph;
}

/* A launch comes behind the one before it, whatever their streams. */
static void rings(void)
{
	for (int peer_calls = 0; peer_calls < 2; peer_calls++) {
		uint32_t launches = 12;
		CUgraphExec exec = instantiate(captured_ring(peer_calls));
		for (int i = 0; i < DEVICES; i++)
			set(i, 5);
		for (uint32_t i = 0; i < launches; i++) {
			struct place *place = &places[i % DEVICES];
			use((int)(i % DEVICES));
			OK(cuGraphLaunch(exec, i % 2 ? place->stream : place->other));
		}
		for (int i = 0; i < DEVICES; i++) {
			use(i);
			OK(cuStreamSynchronize(places[i].stream));
			OK(cuStreamSynchronize(places[i].other));
		}
		expect(0, 5 + 111 * launches, 5);
		expect(1, 5 + 111 * launches - 100, 5);
		expect(2, 5 + 111 * launches, 5);
		OK(cuGraphExecDestroy(exec));
	}
}

/* ---- a launch waits for its stream, and the stream for the launch ---- */

struct held {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool released, reached;
};

static void hold_function(void *argument)
{
	struct held *held = argument;
	pthread_mutex_lock(&held->lock);
	while (!held->released)
		pthread_cond_wait(&held->changed, &held->lock);
	held->reached = true;
	pthread_mutex_unlock(&held->lock);
}

static void release(struct held *held)
{
	pthread_mutex_lock(&held->lock);
	held->released = true;
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
}

/* The launches complete although the executable graph is destroyed before they begin. */
static void in_the_order_of_its_stream(void)
{
	struct held held = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false };
	struct place *second = &places[1];
	CUgraphExec exec = instantiate(captured_ring(false));
	for (int i = 0; i < DEVICES; i++)
		set(i, 7);
	use(1);
	OK(cuLaunchHostFunc(second->stream, hold_function, &held));
	OK(cuGraphLaunch(exec, second->stream));
	OK(cuMemcpyAsync(second->memory + 4, places[0].memory, 4, second->stream));
	OK(cuGraphExecDestroy(exec));
	EXPECT(cuStreamQuery(second->stream), CUDA_ERROR_NOT_READY);
	OK(cuMemcpyDtoH(found, places[0].memory, 4));
	CHECK(found[0] == 7);
	release(&held);
	OK(cuStreamSynchronize(second->stream));
	OK(cuMemcpyDtoH(found, second->memory, 8));
	CHECK(found[0] == 7 + 11 && found[1] == 7 + 111);
	expect(0, 7 + 111, 7);
}

/* ---- graphs that are built node by node ---- */

static CUDA_MEMCPY3D across(int to, int from, size_t offset, size_t bytes)
{
	return (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = places[from].memory + offset,
				.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = places[to].memory + offset,
				.WidthInBytes = bytes, .Height = 1, .Depth = 1 };
}

static CUgraphNode add_copy(CUgraph graph, CUgraphNode after, const CUDA_MEMCPY3D *copy, int device)
{
	CUgraphNode node;
	OK(cuGraphAddMemcpyNode(&node, graph, after ? &after : NULL, after ? 1 : 0, copy, places[device].context));
	return node;
}

static CUDA_KERNEL_NODE_PARAMS one_thread(CUfunction function, void **parameters)
{
	return (CUDA_KERNEL_NODE_PARAMS){ .func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
					  .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters };
}

static CUDA_KERNEL_NODE_PARAMS increase(int device, void **parameters)
{
	return one_thread(places[device].increase, parameters);
}

static CUgraphNode add_step(CUgraph graph, const CUgraphNode *after, size_t count, int device, uint32_t by)
{
	CUgraphNode node;
	void *parameters[] = { &places[device].memory, &by };
	CUDA_KERNEL_NODE_PARAMS params = increase(device, parameters);
	use(device);
	OK(cuGraphAddKernelNode(&node, graph, after, count, &params));
	return node;
}

static void count_calls(void *counter)
{
	__atomic_add_fetch((int *)counter, 1, __ATOMIC_RELAXED);
}

struct built {
	CUgraphNode fork, second, third, copy, joined;
};

/* 0 hands its word to 1 and 2, which increase it; a host function comes behind both; then 2's word is copied to 0. */
static CUgraph build(struct built *built, int *calls, uint32_t by, bool below)
{
	CUgraph graph, inner;
	CUgraphNode both[2], node;
	CUDA_HOST_NODE_PARAMS host = { .fn = count_calls, .userData = calls };
	CUDA_MEMCPY3D to_1 = across(1, 0, 0, BYTES), to_2 = across(2, 0, 0, BYTES), back = across(0, 2, 0, BYTES);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&inner, 0));
	built->fork = add_step(below ? inner : graph, NULL, 0, 0, by);
	both[0] = add_copy(below ? inner : graph, built->fork, &to_1, 1);
	both[1] = add_copy(below ? inner : graph, built->fork, &to_2, 0);
	built->second = both[0] = add_step(below ? inner : graph, &both[0], 1, 1, 10 * by);
	built->third = both[1] = add_step(below ? inner : graph, &both[1], 1, 2, 100 * by);
	if (below) {
		OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, inner));
		OK(cuGraphAddHostNode(&built->joined, graph, &node, 1, &host));
	} else {
		OK(cuGraphAddHostNode(&built->joined, graph, both, 2, &host));
	}
	built->copy = add_copy(graph, built->joined, &back, 0);
	OK(cuGraphDestroy(inner));
	return graph;
}

static void launch_and_expect(CUgraphExec exec, int device, uint32_t first, uint32_t second, uint32_t third)
{
	for (int i = 0; i < DEVICES; i++)
		set(i, 0);
	use(device);
	OK(cuGraphLaunch(exec, places[device].stream));
	OK(cuStreamSynchronize(places[device].stream));
	expect(0, first, 0);
	expect(1, second, 0);
	expect(2, third, 0);
}

static void built_graphs(void)
{
	for (int below = 0; below < 2; below++) {
		int calls = 0;
		CUgraphExec exec;
		struct built built;
		CUgraph graph = build(&built, &calls, 1, below);
		OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
		for (int i = 0; i < DEVICES; i++)
			launch_and_expect(exec, i, 101, 11, 101);
		CHECK(calls == DEVICES);
		OK(cuGraphDestroy(graph));
		OK(cuGraphExecDestroy(exec));
	}
}

static void changes(void)
{
	int calls = 0;
	uint32_t by = 3;
	CUgraphExec exec;
	struct built built, other;
	CUgraphExecUpdateResultInfo info;
	CUgraph graph = build(&built, &calls, 1, false), next = build(&other, &calls, 2, false);
	void *parameters[] = { &places[1].memory, &by };
	CUDA_KERNEL_NODE_PARAMS params = increase(1, parameters);
	CUDA_MEMCPY3D half = across(0, 2, 0, 4), wrong = across(0, 1, 0, 4);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphExecKernelNodeSetParams(exec, built.second, &params));
	launch_and_expect(exec, 0, 101, 4, 101);
	OK(cuGraphNodeSetEnabled(exec, built.third, 0));
	launch_and_expect(exec, 1, 1, 4, 1);
	OK(cuGraphNodeSetEnabled(exec, built.copy, 0));
	OK(cuGraphNodeSetEnabled(exec, built.third, 1));
	launch_and_expect(exec, 2, 1, 4, 101);
	OK(cuGraphNodeSetEnabled(exec, built.copy, 1));
	OK(cuGraphExecMemcpyNodeSetParams(exec, built.copy, &half, places[0].context));
	launch_and_expect(exec, 0, 101, 4, 101);
	EXPECT(cuGraphExecMemcpyNodeSetParams(exec, built.copy, &wrong, places[0].context), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecUpdate(exec, next, &info));
	launch_and_expect(exec, 1, 202, 22, 202);
	OK(cuGraphDestroy(next));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(exec));
}

/* A copy gets other memory after the program has freed the earlier. */
static void memory_is_replaced(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CUDA_MEMCPY3D copy = across(0, 2, 0, 4);
	CUdeviceptr other;
	OK(cuGraphCreate(&graph, 0));
	use(2);
	OK(cuMemAlloc(&copy.srcDevice, 4));
	OK(cuMemAlloc(&other, 4));
	CUgraphNode node = add_copy(graph, NULL, &copy, 0);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuMemFree(copy.srcDevice));
	OK(cuGraphNodeSetEnabled(exec, node, 0));
	OK(cuGraphNodeSetEnabled(exec, node, 1));
	copy.srcDevice = other;
	OK(cuMemsetD32(other, 77, 1));
	OK(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, places[0].context));
	launch_and_expect(exec, 0, 77, 0, 0);
	OK(cuMemFree(other));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(exec));
}

/* ---- conditions ---- */

static CUgraphConditionalHandle handle_of(CUgraph graph, unsigned value)
{
	CUgraphConditionalHandle handle;
	OK(cuGraphConditionalHandleCreate(&handle, graph, places[0].context, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
	return handle;
}

static CUgraphNode add_condition(CUgraph graph, const CUgraphNode *after, CUgraphConditionalHandle handle, CUgraph *body)
{
	CUgraphNode node;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
				     .conditional = { .handle = handle, .type = CU_GRAPH_COND_TYPE_IF, .size = 1,
						      .ctx = places[0].context } };
	OK(cuGraphAddNode_v2(&node, graph, after, NULL, after ? 1 : 0, &params));
	*body = params.conditional.phGraph_out[0];
	return node;
}

/* A kernel of server 0 chooses whether the body's kernel runs. Then the word goes to server 1, which increases it. */
static CUgraph conditional_graph(uint32_t value, int device_of_body, CUgraphNode *choice)
{
	CUgraph graph, body, inner;
	use(0);
	OK(cuGraphCreate(&graph, 0));
	CUgraphConditionalHandle handle = handle_of(graph, 0);
	void *parameters[] = { &handle, &value };
	CUDA_KERNEL_NODE_PARAMS params = one_thread(places[0].choose, parameters);
	OK(cuGraphAddKernelNode(choice, graph, NULL, 0, &params));
	CUgraphNode node = add_condition(graph, choice, handle, &body);
	add_condition(body, NULL, handle_of(body, 1), &inner);
	add_step(inner, NULL, 0, device_of_body, 5);
	CUDA_MEMCPY3D copy = across(1, 0, 0, 4);
	node = add_copy(graph, node, &copy, 1);
	add_step(graph, &node, 1, 1, 10);
	return graph;
}

static void conditions(void)
{
	CUgraphExec exec;
	CUgraphNode choice, unused;
	CUgraphExecUpdateResultInfo info;
	uint64_t handle;
	uint32_t no = 0;
	CUgraph graph = conditional_graph(1, 0, &choice), other = conditional_graph(0, 0, &unused);
	CUDA_KERNEL_NODE_PARAMS params;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	launch_and_expect(exec, 0, 5, 15, 0);
	launch_and_expect(exec, 2, 5, 15, 0);
	/* The other graph's kernel would choose for its own condition. */
	EXPECT(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_NOT_SUPPORTED);
	launch_and_expect(exec, 1, 5, 15, 0);
	OK(cuGraphKernelNodeGetParams(choice, &params));
	memcpy(&handle, params.kernelParams[0], sizeof handle);
	void *parameters[] = { &handle, &no };
	params.kernelParams = parameters;
	OK(cuGraphExecKernelNodeSetParams(exec, choice, &params));
	launch_and_expect(exec, 0, 0, 10, 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(other));
	OK(cuGraphDestroy(graph));
}

static void conditions_refused(void)
{
	CUgraphExec exec;
	CUgraphNode unused, node;
	CUgraph graph = conditional_graph(1, 1, &unused);
	EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphDestroy(graph));
	/* Behind work of another server there is a kernel of server 0, which might set the condition. */
	graph = conditional_graph(1, 0, &unused);
	node = add_step(graph, NULL, 0, 1, 1);
	add_step(graph, &node, 1, 0, 1);
	EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphDestroy(graph));
}

/* Also memory that a graph allocates on one server and another server's node writes. */
static void allocated(void)
{
	CUgraph graph;
	CUgraphNode made, node;
	use(1);
	OK(cuGraphCreate(&graph, 0));
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } },
					      .bytesize = BYTES };
	OK(cuGraphAddMemAllocNode(&made, graph, NULL, 0, &params));
	CUDA_MEMCPY3D there = across(0, 0, 0, BYTES), back = there;
	there.dstDevice = params.dptr;
	back.srcDevice = params.dptr;
	back.dstDevice = places[2].memory;
	node = add_copy(graph, made, &there, 0);
	node = add_copy(graph, node, &back, 2);
	OK(cuGraphAddMemFreeNode(&node, graph, &node, 1, params.dptr));
	CUgraphExec exec = instantiate(graph);
	set(0, 31);
	for (int i = 0; i < 3; i++) {
		set(2, 0);
		OK(cuGraphLaunch(exec, places[2].stream));
		OK(cuStreamSynchronize(places[2].stream));
		expect(2, 31, 31);
	}
	OK(cuGraphExecDestroy(exec));
}

static void of_one_server_in_a_stream_of_another(void)
{
	CUgraph graph;
	use(1);
	OK(cuGraphCreate(&graph, 0));
	add_step(graph, NULL, 0, 1, 4);
	use(0);
	CUgraphExec exec = instantiate(graph);
	set(1, 1);
	for (uint32_t i = 1; i <= 6; i++) {
		use((int)i % DEVICES);
		OK(cuGraphLaunch(exec, places[i % DEVICES].stream));
		if (i % DEVICES == 0) {
			OK(cuMemcpyAsync(places[0].memory, places[1].memory, 4, places[0].stream));
			OK(cuStreamSynchronize(places[0].stream));
			OK(cuMemcpyDtoH(found, places[0].memory, 4));
			CHECK(found[0] == 1 + 4 * i);
		}
	}
	OK(cuGraphExecDestroy(exec));
}

/* ---- failures ---- */

/* The last part of the graph cannot be launched, as its context has ended. The stream waits for the part that was launched. */
static void half_of_a_launch(void)
{
	struct held held = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false };
	CUDA_HOST_NODE_PARAMS host = { .fn = hold_function, .userData = &held };
	CUDA_MEMCPY3D copy = across(2, 0, 0, 4);
	CUcontext context;
	CUgraph graph;
	CUgraphNode node;
	OK(cuCtxCreate(&context, NULL, 0, 2));
	OK(cuMemAlloc(&copy.dstDevice, 4));
	OK(cuGraphCreate(&graph, 0));
	node = add_step(graph, NULL, 0, 0, 1);
	OK(cuGraphAddHostNode(&node, graph, &node, 1, &host));
	add_copy(graph, node, &copy, 0);
	CUgraphExec exec = instantiate(graph);
	OK(cuCtxDestroy(context));
	use(1);
	CHECK(cuGraphLaunch(exec, places[1].stream) != CUDA_SUCCESS);
	EXPECT(cuStreamQuery(places[1].stream), CUDA_ERROR_NOT_READY);
	release(&held);
	OK(cuStreamSynchronize(places[1].stream));
	CHECK(held.reached);
	OK(cuGraphExecDestroy(exec));
}


static void death(void)
{
	char line[8];
	CUgraphExec exec = instantiate(captured_ring(false));
	use(0);
	OK(cuGraphLaunch(exec, places[0].stream));
	OK(cuStreamSynchronize(places[0].stream));
	puts("ready");
	fflush(stdout);
	CHECK(read(0, line, sizeof line) > 0);
	/* The client may notice the loss during one of the launches only. */
	CUresult result = CUDA_SUCCESS;
	for (int i = 0; i < 1000 && result == CUDA_SUCCESS; i++) {
		result = cuGraphLaunch(exec, places[0].stream);
		if (result == CUDA_SUCCESS)
			result = cuStreamSynchronize(places[0].stream);
	}
	CHECK(result == CUDA_ERROR_DEVICE_UNAVAILABLE);
	result = cuStreamSynchronize(places[0].stream);
	CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_DEVICE_UNAVAILABLE);
	EXPECT(cuGraphLaunch(exec, places[0].stream), CUDA_ERROR_DEVICE_UNAVAILABLE);
	cuStreamSynchronize(places[0].stream);
	OK(cuMemsetD32(places[0].memory, 9, WORDS));
	expect(0, 9, 9);
	OK(cuGraphExecDestroy(exec));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	set_up();
	if (!strcmp(what, "death")) {
		death();
		return 0;
	}
	rings();
	in_the_order_of_its_stream();
	built_graphs();
	changes();
	memory_is_replaced();
	conditions();
	conditions_refused();
	half_of_a_launch();
	allocated();
	of_one_server_in_a_stream_of_another();
	return 0;
}
