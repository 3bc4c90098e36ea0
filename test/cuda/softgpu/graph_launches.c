/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of graphs: order along the edges, parallel branches, every type of node, faults, repeated launches. */
#include "graph.h"

#include "cuda_remote/softgpu/driver/queue/queue.h"

#include <pthread.h>

static CUcontext context;
static CUstream stream;
static uint32_t *record, *word; /* pinned */

static void run(CUgraphExec exec)
{
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
}

static void run_once(CUgraph graph)
{
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphDestroy(graph)); /* the executable graph needs it no more */
	run(exec);
	OK(cuGraphExecDestroy(exec));
}

static void nodes_run_after_what_they_depend_on(void)
{
	enum { WIDTH = 6, DEPTH = 20 };
	CUgraph graph;
	CUgraphNode row[WIDTH], before[WIDTH];
	memset(record, 0, 4096);
	OK(cuGraphCreate(&graph, 0));
	/*
	 * Each row waits for the whole row before. The log is not written by two at once: each row is a chain of its
	 * own.
	 */
	for (uint32_t i = 0; i < DEPTH; i++) {
		for (uint32_t j = 0; j < WIDTH; j++) {
			OK(cuGraphAddEmptyNode(&row[j], graph, i ? before : NULL, i ? WIDTH : 0));
			if (j == i % WIDTH)
				row[j] = add_append(graph, &row[j], 1, at(record), i);
		}
		memcpy(before, row, sizeof row);
	}
	run_once(graph);
	CHECK(record[0] == DEPTH);
	for (uint32_t i = 0; i < DEPTH; i++)
		CHECK(record[1 + i] == i);
}

/* Each branch waits for the other two: run one after another, they would never end. */
static void branches_run_at_once(void)
{
	CUgraph graph;
	CUgraphNode all[3];
	memset(record, 0, 4096);
	*word = 0;
	OK(cuGraphCreate(&graph, 0));
	for (int i = 0; i < 3; i++)
		all[i] = add_kernel(graph, NULL, 0, "meet", at(word), 3);
	add_append(graph, all, 3, at(record), 9);
	CUgraphExec exec = instantiated(graph);
	for (uint32_t i = 1; i <= 20; i++) {
		*word = 0;
		run(exec);
		CHECK(*word == 3 && record[0] == i);
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/* Branches of one child graph, and child graphs beside each other. */
static void children_run_at_once_too(void)
{
	CUgraph graph, child;
	CUgraphNode two[2];
	*word = 0;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&child, 0));
	add_kernel(child, NULL, 0, "meet", at(word), 4);
	add_kernel(child, NULL, 0, "meet", at(word), 4);
	OK(cuGraphAddChildGraphNode(&two[0], graph, NULL, 0, child));
	OK(cuGraphAddChildGraphNode(&two[1], graph, NULL, 0, child));
	memset(record, 0, 4096);
	add_append(graph, two, 2, at(record), 1);
	OK(cuGraphDestroy(child));
	run_once(graph);
	CHECK(*word == 4 && record[0] == 1);
}

static void launches_of_one_follow_each_other(void)
{
	CUgraph graph;
	CUstream other;
	uint32_t *flag = word;
	memset(record, 0, 4096);
	*flag = 0;
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode wait = add_kernel(graph, NULL, 0, "wait", at(flag), 0);
	add_append(graph, &wait, 1, at(record), 5);
	CUgraphExec exec = instantiated(graph), second = instantiated(graph);
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(exec, other));
	append(other, at(record), 6);
	EXPECT(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	let_go(flag);
	OK(cuStreamSynchronize(other));
	OK(cuStreamSynchronize(stream));
	CHECK(record[0] == 3 && record[1] == 5 && record[2] == 5 && record[3] == 6);
	/* A launch is ordered with its stream: later work waits for it, and it waits for earlier work. */
	*flag = 0;
	memset(record, 0, 4096);
	append(stream, at(record), 1);
	OK(cuGraphLaunch(second, stream));
	append(stream, at(record), 2);
	let_go(flag);
	OK(cuStreamSynchronize(stream));
	CHECK(record[0] == 3 && record[1] == 1 && record[2] == 5 && record[3] == 2);
	/* A graph that is destroyed while it runs completes. */
	*flag = 0;
	OK(cuGraphLaunch(second, stream));
	OK(cuGraphExecDestroy(second));
	EXPECT(cuGraphLaunch(second, stream), CUDA_ERROR_INVALID_VALUE);
	let_go(flag);
	OK(cuStreamSynchronize(stream));
	CHECK(record[0] == 4 && record[4] == 5);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(other));
}

static void copies_fills_and_children(void)
{
	enum { ROWS = 4, COLUMNS = 3, PITCH = 512 };
	CUgraph graph, child;
	CUgraphNode node, last;
	CUdeviceptr device;
	uint32_t from[ROWS][COLUMNS], back[2 * ROWS][COLUMNS];
	for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
		from[i / COLUMNS][i % COLUMNS] = 100 + i;
	OK(cuMemAlloc(&device, 2 * ROWS * PITCH));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&child, 0));
	/* In the child: 16-bit elements over rows 4 to 7 of a pitched area; one row less, one column of words less. */
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = device + ROWS * PITCH, .pitch = PITCH, .value = 0x1234, .elementSize =
			2,
					 .width = 2 * COLUMNS, .height = ROWS };
	OK(cuGraphAddMemsetNode(&node, child, NULL, 0, &fill, context));
	CUDA_MEMSET_NODE_PARAMS line = { .dst = device + (2 * ROWS - 1) * PITCH, .value = 0xAB, .elementSize = 1,
			.width = 4,
					 .height = 1 };
	OK(cuGraphAddMemsetNode(&last, child, &node, 1, &line, context));
	CUDA_MEMCPY3D up = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcPitch = sizeof from[0],
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = device, .dstPitch = PITCH,
			     .WidthInBytes = sizeof from[0], .Height = ROWS, .Depth = 1 };
	OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &up, context));
	OK(cuGraphAddChildGraphNode(&node, graph, &node, 1, child));
	CUDA_MEMCPY3D down = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = device, .srcPitch = PITCH,
			       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .dstPitch = sizeof back[0],
			       .WidthInBytes = sizeof back[0], .Height = ROWS + ROWS, .Depth = 1 };
	OK(cuGraphAddMemcpyNode(&node, graph, &node, 1, &down, context));
	OK(cuGraphDestroy(child));
	CUgraphExec exec = instantiated(graph);
	for (int round = 0; round < 3; round++) {
		memset(back, 0, sizeof back);
		from[0][0] = 1000u + (unsigned)round; /* host memory is read when the node runs */
		run(exec);
		CHECK(!memcmp(back, from, sizeof from));
		for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
			CHECK(back[ROWS + i / COLUMNS][i % COLUMNS] ==
			      (i == (ROWS - 1) * COLUMNS ? 0xABABABABu : 0x12341234u));
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(device));
}

static pthread_t caller;
static int calls, wrong_thread;

static void CUDA_CB count_call(void *data)
{
	CUdevice device;
	if (pthread_equal(pthread_self(), caller) || cuCtxGetDevice(&device) != CUDA_ERROR_NOT_PERMITTED)
		wrong_thread++;
	__atomic_add_fetch(&calls, *(int *)data, __ATOMIC_RELAXED);
}

static void host_nodes_run_on_a_worker(void)
{
	CUgraph graph;
	CUgraphNode node;
	int one = 1;
	CUDA_HOST_NODE_PARAMS params = { .fn = count_call, .userData = &one };
	calls = wrong_thread = 0;
	caller = pthread_self();
	OK(cuGraphCreate(&graph, 0));
	for (int i = 0; i < 5; i++)
		OK(cuGraphAddHostNode(&node, graph, NULL, 0, &params));
	CUgraphExec exec = instantiated(graph);
	for (int i = 0; i < 20; i++)
		run(exec);
	CHECK(calls == 100 && wrong_thread == 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void events_are_recorded_and_waited_for(void)
{
	CUgraph graph, waiting;
	CUgraphNode node, recorded;
	CUevent inner, outer;
	CUstream other;
	uint32_t *flag = word, *gate = word + 1;
	*flag = *gate = 0;
	memset(record, 0, 4096);
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&inner, 0));
	OK(cuEventCreate(&outer, CU_EVENT_DISABLE_TIMING));
	/* Recorded in the middle: complete before the graph is. */
	OK(cuGraphCreate(&graph, 0));
	node = add_kernel(graph, NULL, 0, "wait", at(flag), 0);
	OK(cuGraphAddEventRecordNode(&recorded, graph, &node, 1, inner));
	add_kernel(graph, &recorded, 1, "wait", at(gate), 0);
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, stream));
	EXPECT(cuEventQuery(inner), CUDA_ERROR_NOT_READY);
	let_go(flag);
	for (int i = 0; i < 60000 && cuEventQuery(inner) == CUDA_ERROR_NOT_READY; i++)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	OK(cuEventQuery(inner));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	let_go(gate);
	OK(cuStreamSynchronize(stream));
	/* The node waits for the recording before the launch; independent nodes run meanwhile. */
	*flag = 0;
	OK(cuGraphCreate(&waiting, 0));
	OK(cuGraphAddEventWaitNode(&node, waiting, NULL, 0, outer));
	CUgraphNode first = add_append(waiting, NULL, 0, at(record), 1);
	CUgraphNode both[] = { node, first };
	add_append(waiting, both, 2, at(record), 2);
	CUgraphExec waits = instantiated(waiting);
	hold(other, at(flag));
	OK(cuEventRecord(outer, other));
	OK(cuGraphLaunch(waits, stream));
	CHECK(comes_to(record, 1));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	let_go(flag);
	OK(cuStreamSynchronize(stream));
	CHECK(record[0] == 2 && record[1] == 1 && record[2] == 2);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphExecDestroy(waits));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(waiting));
	OK(cuEventDestroy(inner));
	OK(cuEventDestroy(outer));
	OK(cuStreamDestroy(other));
}

static CUgraphNode conditional(CUgraph graph, const CUgraphNode *after, CUgraphConditionalHandle handle,
			       CUgraphConditionalNodeType type, unsigned size, CUgraph *bodies)
{
	CUgraphNode node;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
				     .conditional = { .handle = handle, .type = type, .size = size } };
	OK(cuGraphAddNode_v2(&node, graph, after, NULL, after ? 1 : 0, &params));
	memcpy(bodies, params.conditional.phGraph_out, size * sizeof *bodies);
	return node;
}

static void conditions_choose_what_runs(void)
{
	CUgraph graph, bodies[3];
	CUgraphConditionalHandle handle;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0));
	CUgraphNode choice = add_kernel(graph, NULL, 0, "choose", handle, 0);
	CUgraphNode node = conditional(graph, &choice, handle, CU_GRAPH_COND_TYPE_SWITCH, 3, bodies);
	for (uint32_t i = 0; i < 3; i++)
		add_append(bodies[i], NULL, 0, at(record), 10 + i);
	add_append(graph, &node, 1, at(record), 99);
	CUgraphExec exec = instantiated(graph), another;
	EXPECT(cuGraphInstantiateWithFlags(&another, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	for (uint32_t value = 0; value < 5; value++) {
		CUdeviceptr to = handle;
		void *parameters[] = { &to, &value };
		CUDA_KERNEL_NODE_PARAMS params = kernel_params("choose", parameters);
		OK(cuGraphExecKernelNodeSetParams(exec, choice, &params));
		memset(record, 0, 4096);
		run(exec);
		if (value < 3)
			CHECK(record[0] == 2 && record[1] == 10 + value && record[2] == 99);
		else
			CHECK(record[0] == 1 && record[1] == 99);
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/* while (--outer) { inner = 3; while (--inner) append(7); }, the inner loop's condition by its default. */
static void loops_run_while_their_condition_holds(void)
{
	CUgraph graph, body, inside, otherwise[2];
	CUgraphConditionalHandle outer, inner, never;
	uint32_t *left = word, *innermost = word + 1;
	memset(record, 0, 4096);
	*left = 5;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&outer, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraphNode loop = conditional(graph, NULL, outer, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	OK(cuGraphConditionalHandleCreate(&inner, body, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraphNode set = add_kernel(body, NULL, 0, "increase", at(innermost), 3);
	CUgraphNode arm = add_kernel(body, &set, 1, "choose", inner, 1);
	CUgraphNode nested = conditional(body, &arm, inner, CU_GRAPH_COND_TYPE_WHILE, 1, &inside);
	CUdeviceptr count = at(innermost), counts = at(left);
	void *parameters[] = { &count, &inner }, *outermost[] = { &counts, &outer };
	CUDA_KERNEL_NODE_PARAMS down = kernel_params("decrease", parameters), down_outer = kernel_params("decrease",
			outermost);
	CUgraphNode step, end;
	CUgraphNode append_node = add_append(inside, NULL, 0, at(record), 7);
	OK(cuGraphAddKernelNode(&step, inside, &append_node, 1, &down));
	OK(cuGraphAddKernelNode(&end, body, &nested, 1, &down_outer));
	/* if, with its else: the value of the handle is 0 by default */
	OK(cuGraphConditionalHandleCreate(&never, graph, context, 0, CU_GRAPH_COND_ASSIGN_DEFAULT));
	conditional(graph, &loop, never, CU_GRAPH_COND_TYPE_IF, 2, otherwise);
	add_append(otherwise[0], NULL, 0, at(record), 1);
	add_append(otherwise[1], NULL, 0, at(record), 2);
	CUgraphExec exec = instantiated(graph);
	for (uint32_t round = 1; round <= 2; round++) {
		memset(record, 0, 4096);
		*left = 5;
		*innermost = 0;
		run(exec);
		CHECK(*left == 0 && *innermost == 0 && record[0] == 16); /* 5 times 3, and the else */
		CHECK(record[15] == 7 && record[16] == 2);
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void memory_operations_wait_and_write(void)
{
	CUgraph graph;
	CUgraphNode node;
	memset(record, 0, 4096);
	word[0] = word[1] = 0;
	CUstreamBatchMemOpParams batch[2] = {
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = at(&word[0]), .value = 4,
				 .flags = CU_STREAM_WAIT_VALUE_GEQ } },
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = at(&word[1]), .value =
				77 } },
	};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = { .ctx = context, .count = 2, .paramArray = batch }, back;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
	OK(cuGraphBatchMemOpNodeGetParams(node, &back));
	CHECK(back.count == 2 && back.paramArray != batch && back.paramArray[1].writeValue.value == 77);
	/* Another branch writes the value that the node waits for. */
	add_kernel(graph, NULL, 0, "increase", at(&word[0]), 4);
	add_append(graph, &node, 1, at(record), 3);
	CUgraphExec exec = instantiated(graph);
	run(exec);
	CHECK(word[0] == 4 && word[1] == 77 && record[0] == 1);
	/* Waiting for the host. */
	batch[0].waitValue.value = 100;
	OK(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
	word[1] = 0;
	OK(cuGraphLaunch(exec, stream));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	CHECK(comes_to(&word[0], 8) && word[1] == 0);
	__atomic_store_n(&word[0], 100, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize(stream));
	CHECK(word[1] == 77);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/*
 * 15 nodes hold the launch's other threads; the one that is left takes the rest by priority, the last of which lets the
 * others go.
 */
static void priorities_order_ready_nodes(void)
{
	enum { HELD = 15, COUNT = 5 };
	CUgraph graph;
	CUgraphExec exec;
	memset(record, 0, 4096);
	*word = 0;
	OK(cuGraphCreate(&graph, 0));
	CUkernelNodeAttrValue value = { 0 };
	add_kernel(graph, NULL, 0, "increase", at(word), 1);
	for (uint32_t i = 1; i < COUNT; i++) {
		value.priority = -(int)i;
		CUgraphNode node = add_append(graph, NULL, 0, at(record), i);
		OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	}
	value.priority = -COUNT;
	for (int i = 0; i < HELD; i++) {
		CUgraphNode node = add_kernel(graph, NULL, 0, "wait", at(word), 0);
		OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	}
	OK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
	cuuint64_t flags;
	OK(cuGraphExecGetFlags(exec, &flags));
	CHECK(flags == CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
	run(exec);
	CHECK(record[0] == COUNT - 1);
	for (uint32_t i = 1; i < COUNT; i++)
		CHECK(record[i] == COUNT - i);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static CUfunction loaded(CUmodule module, const char *name)
{
	CUfunction function;
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static CUgraphNode add_loaded(CUgraph graph, CUfunction function, void **parameters)
{
	CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS params = { .func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
					   .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters };
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	return node;
}

static void *synchronize(void *unused)
{
	(void)unused;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamSynchronize(stream));
	return NULL;
}

/*
 * Helpers that come after a fault, as all workers were at work before. Another launch, in a context that is sound,
 * finds all of them again, and gets along where it has more nodes than there are helpers: whether it begins when they
 * come, or has begun before, in a thread that waits for it.
 */
static void helpers_are_at_hand_after_a_fault(bool begins_before)
{
	enum { WIDTH = 20, AT_ONCE = 16 /* the launch's own thread and 15 helpers */ };
	static CUstream busy[QUEUE_MAX_WORKERS];
	CUcontext failing;
	CUmodule module;
	CUgraph graph;
	CUstream other;
	pthread_t waits;
	uint32_t code = CUDA_ERROR_ILLEGAL_ADDRESS, all = QUEUE_MAX_WORKERS + 1, many = 1000;
	uint32_t *met = word, *begun = word + 1;
	CUdeviceptr met_at = at(met), begun_at = at(begun);
	*met = *begun = 0;
	for (int i = 0; i < QUEUE_MAX_WORKERS; i++) {
		OK(cuStreamCreate(&busy[i], CU_STREAM_NON_BLOCKING));
		OK(launch("meet", busy[i], &met_at, &all));
	}
	CHECK(comes_to(met, QUEUE_MAX_WORKERS));
	OK(cuCtxCreate(&failing, NULL, 0, 0));
	OK(cuModuleLoadData(&module, "double\nmeet fault\n"));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode bad = add_loaded(graph, loaded(module, "fault"), (void *[]){ &code });
	for (int i = 0; i < WIDTH; i++)
		add_loaded(graph, loaded(module, "meet"), (void *[]){ &begun_at, &many });
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, other));
	EXPECT(cuStreamSynchronize(other), CUDA_ERROR_ILLEGAL_ADDRESS); /* this thread runs it */
	if (!begins_before)
		__atomic_add_fetch(met, 1, __ATOMIC_RELEASE);
	OK(cuCtxSetCurrent(context));
	OK(cuGraphNodeSetEnabled(exec, bad, 0));
	OK(cuGraphLaunch(exec, stream));
	CHECK(!pthread_create(&waits, NULL, synchronize, NULL));
	if (begins_before) {
		CHECK(comes_to(begun, 1));
		__atomic_add_fetch(met, 1, __ATOMIC_RELEASE);
	}
	CHECK(comes_to(begun, AT_ONCE));
	__atomic_add_fetch(begun, many, __ATOMIC_RELEASE);
	CHECK(!pthread_join(waits, NULL));
	CHECK(*begun == many + WIDTH);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuCtxDestroy(failing));
	for (int i = 0; i < QUEUE_MAX_WORKERS; i++) {
		OK(cuStreamSynchronize(busy[i])); /* it has seen the number before that begins anew */
		OK(cuStreamDestroy(busy[i]));
	}
}

/* Last test: the context fails. Nothing runs after the fault, and the error stays. */
static void a_fault_ends_the_launch(void)
{
	CUgraph graph;
	CUgraphNode bad;
	uint32_t code = CUDA_ERROR_ILLEGAL_ADDRESS;
	void *parameters[] = { &code };
	memset(record, 0, 4096);
	calls = 0;
	int one = 1;
	CUDA_HOST_NODE_PARAMS host = { .fn = count_call, .userData = &one };
	CUDA_KERNEL_NODE_PARAMS params = kernel_params("fault", parameters);
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode first = add_append(graph, NULL, 0, at(record), 1);
	OK(cuGraphAddKernelNode(&bad, graph, &first, 1, &params));
	CUgraphNode after = add_append(graph, &bad, 1, at(record), 2);
	OK(cuGraphAddHostNode(&after, graph, &after, 1, &host));
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, stream));
	EXPECT(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(record[0] == 1 && calls == 0);
	EXPECT(cuGraphLaunch(exec, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/* A node's context is destroyed while the launch waits, and another context gets its handle. */
static void a_fault_spares_a_newer_context_with_the_same_handle(void)
{
	CUcontext launching, gone, newer = NULL;
	CUstream in;
	CUgraph graph;
	CUgraphNode wait, node;
	CUdeviceptr memory, flag = at(word);
	word[0] = 0;
	OK(cuCtxCreate(&gone, NULL, 0, 0));
	OK(cuMemAlloc(&memory, 4096));
	OK(cuCtxCreate(&launching, NULL, 0, 0));
	OK(cuStreamCreate(&in, CU_STREAM_NON_BLOCKING));
	OK(cuGraphCreate(&graph, 0));
	CUstreamBatchMemOpParams until = { .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = flag,
							  .value = 1, .flags = CU_STREAM_WAIT_VALUE_EQ } };
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = { .ctx = launching, .count = 1, .paramArray = &until };
	OK(cuGraphAddBatchMemOpNode(&wait, graph, NULL, 0, &params));
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = memory, .value = 1, .elementSize = 1, .width = 4096, .height = 1 };
	OK(cuGraphAddMemsetNode(&node, graph, &wait, 1, &fill, gone));
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, in));
	OK(cuCtxDestroy(gone));
	/* The handle that was freed first is used first. */
	while (newer != gone) {
		if (newer)
			OK(cuCtxDestroy(newer));
		OK(cuCtxCreate(&newer, NULL, 0, 0));
	}
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	OK(cuCtxSetCurrent(launching));
	EXPECT(cuStreamSynchronize(in), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuCtxSetCurrent(newer));
	OK(cuCtxSynchronize());
	OK(cuCtxDestroy(newer));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuCtxSetCurrent(context));
}

/* One executable graph in two contexts at once; the first context is destroyed as soon as its own launch has ended. */
static void one_graph_is_launched_in_two_contexts_at_once(void)
{
	CUcontext second;
	CUstream there;
	CUgraph graph;
	CUdeviceptr flag = at(word);
	word[0] = word[1] = word[2] = 0;
	OK(cuGraphCreate(&graph, 0));
	CUstreamBatchMemOpParams until = { .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = flag,
							  .value = 1, .flags = CU_STREAM_WAIT_VALUE_GEQ } };
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = { .ctx = context, .count = 1, .paramArray = &until };
	CUgraphNode wait;
	OK(cuGraphAddBatchMemOpNode(&wait, graph, NULL, 0, &params));
	/* In each launch both must run at once: 2 in the first, 4 in the second. */
	add_kernel(graph, &wait, 1, "meet", at(&word[1]), 2);
	add_kernel(graph, &wait, 1, "meet", at(&word[1]), 2);
	CUgraphExec exec = instantiated(graph);
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuStreamCreate(&there, CU_STREAM_NON_BLOCKING));
	OK(cuGraphLaunch(exec, there));
	OK(cuCtxSetCurrent(context));
	OK(cuGraphLaunch(exec, stream));
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	OK(cuCtxDestroy(second));
	OK(cuStreamSynchronize(stream));
	CHECK(word[1] == 4);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

int main(void)
{
	context = start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	record = words(1024);
	word = words(16);
	nodes_run_after_what_they_depend_on();
	branches_run_at_once();
	children_run_at_once_too();
	launches_of_one_follow_each_other();
	copies_fills_and_children();
	host_nodes_run_on_a_worker();
	events_are_recorded_and_waited_for();
	conditions_choose_what_runs();
	loops_run_while_their_condition_holds();
	memory_operations_wait_and_write();
	priorities_order_ready_nodes();
	helpers_are_at_hand_after_a_fault(false);
	helpers_are_at_hand_after_a_fault(true);
	one_graph_is_launched_in_two_contexts_at_once();
	a_fault_spares_a_newer_context_with_the_same_handle();
	a_fault_ends_the_launch();
	return 0;
}
