/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream capture: the nodes that calls become, forks and joins, and the errors of forbidden calls. */
#include "graph.h"

#include <pthread.h>

static CUstream stream, other; /* non-blocking */
static uint32_t *record, *word; /* pinned */

static size_t nodes_of(CUgraph graph, CUgraphNode *nodes, size_t room)
{
	size_t count = room;
	OK(cuGraphGetNodes(graph, nodes, &count));
	return count;
}

static void run_and_end(CUgraph graph)
{
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static CUstreamCaptureStatus status(CUstream of)
{
	CUstreamCaptureStatus now;
	OK(cuStreamIsCapturing(of, &now));
	return now;
}

static void begin(CUstream in)
{
	OK(cuStreamBeginCapture(in, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static int called;

static void CUDA_CB call(void *data)
{
	called += *(int *)data;
}

static void calls_become_nodes_in_their_order(void)
{
	static const CUgraphNodeType types[] = { CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMSET,
						 CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_HOST,
						 CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_MEMCPY };
	enum { COUNT = sizeof types / sizeof *types };
	CUgraph graph;
	CUgraphNode nodes[COUNT + 1], before;
	uint32_t back[4][2] = { { 0 } };
	int three = 3;
	memset(record, 0, 4096);
	CHECK(status(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
	begin(stream);
	CHECK(status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	append(stream, at(record), 1);
	OK(cuMemsetD32Async(at(word), 5, 8, stream));
	OK(cuMemcpyAsync(at(word + 8), at(word), 4, stream));
	OK(cuLaunchHostFunc(stream, call, &three));
	OK(cuStreamWriteValue32(stream, at(word + 1), 6, 0));
	CUDA_MEMCPY2D down = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = at(word), .srcPitch = 8,
			       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .dstPitch = 8, .WidthInBytes = 8,
			       .Height = 4 };
	OK(cuMemcpy2DAsync(&down, stream));
	OK(cuStreamEndCapture(stream, &graph));
	CHECK(status(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
	/* Nothing has happened yet. */
	OK(cuStreamSynchronize(stream));
	CHECK(record[0] == 0 && word[8] == 0 && called == 0);
	CHECK(nodes_of(graph, nodes, COUNT + 1) == COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		CUgraphNodeType type;
		size_t one = 1;
		OK(cuGraphNodeGetType(nodes[i], &type));
		CHECK(type == types[i]);
		OK(cuGraphNodeGetDependencies_v2(nodes[i], &before, NULL, &one));
		CHECK(i ? one == 1 && before == nodes[i - 1] : one == 0);
	}
	run_and_end(graph);
	CHECK(record[0] == 1 && word[8] == 5 && called == 3);
	CHECK(back[0][0] == 5 && back[0][1] == 6 && back[3][1] == 5);
}

/* Forked by an event, both branches wait for each other, and are joined by another event. */
/* A row has no pitch, which would be limited to 2^31 - 1. Nothing is copied here: it would take long. */
static void rows_of_more_than_2_gib_become_nodes(void)
{
	size_t bytes = ((size_t)1 << 31) + 4096, start_at = 0;
	CUmemcpyAttributes plain = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	CUdeviceptr memory, to, from;
	CUgraph graph;
	CUgraphNode nodes[2];
	CUDA_MEMCPY3D copy;
	if (cuMemAlloc(&memory, bytes + 8192)) {
		printf("captures: no device memory of 2 GiB for long rows\n");
		return;
	}
	to = memory;
	from = memory + 8192;
	begin(stream);
	OK(cuMemcpyDtoDAsync(to, from, bytes, stream));
	OK(cuMemcpyBatchAsync(&to, &from, &bytes, 1, &plain, &start_at, 1, stream));
	OK(cuStreamEndCapture(stream, &graph));
	CHECK(nodes_of(graph, nodes, 2) == 2);
	for (int i = 0; i < 2; i++) {
		OK(cuGraphMemcpyNodeGetParams(nodes[i], &copy));
		CHECK(copy.WidthInBytes == bytes && copy.Height == 1 && copy.Depth == 1);
		copy.srcPitch = bytes; /* one that is given is checked */
		EXPECT(cuGraphMemcpyNodeSetParams(nodes[i], &copy), CUDA_ERROR_INVALID_VALUE);
	}
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(memory));
}

static void streams_fork_and_join(void)
{
	CUgraph graph;
	CUevent fork, joined;
	uint32_t two = 2;
	CUdeviceptr place = at(word);
	memset(record, 0, 4096);
	*word = 0;
	OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
	begin(stream);
	append(stream, at(record), 1);
	OK(cuEventRecord(fork, stream));
	OK(cuStreamWaitEvent(other, fork, 0));
	CHECK(status(other) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(launch("meet", stream, &place, &two));
	OK(launch("meet", other, &place, &two));
	EXPECT(cuEventSynchronize(fork), CUDA_ERROR_CAPTURED_EVENT);
	CHECK(status(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(!graph && status(other) == CU_STREAM_CAPTURE_STATUS_NONE);
	/* Again, without a query of the event. */
	begin(stream);
	append(stream, at(record), 1);
	OK(cuEventRecord(fork, stream));
	OK(cuStreamWaitEvent(other, fork, 0));
	OK(launch("meet", stream, &place, &two));
	OK(launch("meet", other, &place, &two));
	OK(cuEventRecord(joined, other));
	OK(cuStreamWaitEvent(stream, joined, 0));
	append(stream, at(record), 2);
	OK(cuStreamEndCapture(stream, &graph));
	CHECK(status(other) == CU_STREAM_CAPTURE_STATUS_NONE);
	CUgraphNode nodes[5];
	size_t edges;
	CHECK(nodes_of(graph, nodes, 5) == 4);
	OK(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &edges));
	CHECK(edges == 4);
	OK(cuGraphNodeGetDependencies_v2(nodes[3], NULL, NULL, &edges));
	CHECK(edges == 2);
	run_and_end(graph);
	CHECK(*word == 2 && record[0] == 2 && record[1] == 1 && record[2] == 2);
	/* The events belong to a capture that is over. */
	EXPECT(cuEventQuery(joined), CUDA_ERROR_CAPTURED_EVENT);
	EXPECT(cuStreamWaitEvent(stream, joined, 0), CUDA_ERROR_CAPTURED_EVENT);
	OK(cuEventRecord(joined, stream));
	OK(cuEventSynchronize(joined));
	OK(cuEventDestroy(fork));
	OK(cuEventDestroy(joined));
}

static void branches_must_come_back(void)
{
	CUgraph graph = (CUgraph)1;
	CUevent fork;
	OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	begin(stream);
	OK(cuEventRecord(fork, stream));
	OK(cuStreamWaitEvent(other, fork, 0));
	append(other, at(record), 1);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	CHECK(!graph && status(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
	/* A branch without nodes need not be joined. */
	begin(stream);
	append(stream, at(record), 1);
	OK(cuEventRecord(fork, stream));
	OK(cuStreamWaitEvent(other, fork, 0));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	/* Only the stream where it began can end it. */
	begin(stream);
	OK(cuEventRecord(fork, stream));
	OK(cuStreamWaitEvent(other, fork, 0));
	EXPECT(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
	OK(cuEventDestroy(fork));
}

/* A joined stream may be destroyed; destroying the origin ends the capture. */
static void streams_may_go_before_the_end(void)
{
	CUgraph graph;
	CUstream branch;
	CUevent event;
	memset(record, 0, 4096);
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamCreate(&branch, CU_STREAM_NON_BLOCKING));
	begin(stream);
	OK(cuEventRecord(event, stream));
	OK(cuStreamWaitEvent(branch, event, 0));
	append(branch, at(record), 1);
	OK(cuEventRecord(event, branch));
	OK(cuStreamWaitEvent(stream, event, 0));
	OK(cuStreamDestroy(branch));
	OK(cuEventDestroy(event));
	OK(cuStreamEndCapture(stream, &graph));
	run_and_end(graph);
	CHECK(record[0] == 1);
	OK(cuStreamCreate(&branch, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	begin(stream);
	OK(cuEventRecord(event, stream));
	OK(cuStreamWaitEvent(branch, event, 0));
	append(branch, at(record), 1);
	OK(cuStreamDestroy(branch));
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	OK(cuEventDestroy(event));
}

static void captures_do_not_mix(void)
{
	CUgraph graph;
	CUevent mine, outside;
	OK(cuEventCreate(&mine, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(outside, other));
	begin(stream);
	EXPECT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
	append(stream, at(record), 1);
	EXPECT(cuStreamWaitEvent(stream, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	EXPECT(launch("nothing", stream, NULL, NULL), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(stream);
	begin(other);
	OK(cuEventRecord(mine, stream));
	EXPECT(cuStreamWaitEvent(other, mine, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	EXPECT(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuEventDestroy(mine));
	OK(cuEventDestroy(outside));
}

static void external_events_are_nodes(void)
{
	CUgraph graph;
	CUevent event;
	CUgraphNode nodes[3];
	CUgraphNodeType type;
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	EXPECT(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
	begin(stream);
	OK(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL));
	OK(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
	OK(cuStreamEndCapture(stream, &graph));
	CHECK(nodes_of(graph, nodes, 3) == 2);
	OK(cuGraphNodeGetType(nodes[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
	OK(cuGraphNodeGetType(nodes[1], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	run_and_end(graph);
	OK(cuEventSynchronize(event));
	OK(cuEventDestroy(event));
}

static void waiting_and_asking_are_forbidden(void)
{
	CUgraph graph;
	CUdeviceptr memory;
	OK(cuMemAlloc(&memory, 64));
	EXPECT(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(cuStreamBeginCapture(stream, (CUstreamCaptureMode)3), CUDA_ERROR_INVALID_VALUE);
	begin(stream);
	EXPECT(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(stream);
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(stream);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(stream);
	EXPECT(cuMemAlloc(&memory, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	/* Other streams can be used meanwhile, the legacy stream too if the captured stream is non-blocking. */
	begin(stream);
	OK(cuStreamSynchronize(other));
	OK(cuMemsetD8(memory, 1, 64));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(memory));
}

static void the_legacy_stream_keeps_away_from_blocking_captures(void)
{
	CUgraph graph;
	CUstream blocking;
	CUstreamCaptureStatus now;
	CUdeviceptr memory;
	OK(cuMemAlloc(&memory, 64));
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	begin(blocking);
	EXPECT(cuStreamIsCapturing(CU_STREAM_LEGACY, &now), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	CHECK(status(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	EXPECT(cuMemsetD8(memory, 1, 64), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	CHECK(status(blocking) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	EXPECT(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(blocking);
	EXPECT(launch("nothing", NULL, NULL, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	OK(cuStreamDestroy(blocking)); /* and the capture with it */
	OK(launch("nothing", NULL, NULL, NULL));
	OK(cuMemFree(memory));
}

static CUresult elsewhere;
static CUstreamCaptureMode elsewhere_mode;

static void *allocate_elsewhere(void *with)
{
	CUdeviceptr memory;
	CUstreamCaptureMode mode = elsewhere_mode;
	OK(cuCtxSetCurrent(with));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	elsewhere = cuMemAlloc(&memory, 64);
	if (!elsewhere)
		OK(cuMemFree(memory));
	return NULL;
}

static CUresult allocated_elsewhere(CUstreamCaptureMode mode)
{
	pthread_t thread;
	CUcontext context;
	elsewhere_mode = mode;
	OK(cuCtxGetCurrent(&context));
	CHECK(!pthread_create(&thread, NULL, allocate_elsewhere, context));
	CHECK(!pthread_join(thread, NULL));
	return elsewhere;
}

static void *end_elsewhere(void *with)
{
	CUgraph graph;
	OK(cuCtxSetCurrent(with));
	elsewhere = cuStreamEndCapture(stream, &graph);
	if (!elsewhere)
		OK(cuGraphDestroy(graph));
	return NULL;
}

static CUresult ended_elsewhere(void)
{
	pthread_t thread;
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	CHECK(!pthread_create(&thread, NULL, end_elsewhere, context));
	CHECK(!pthread_join(thread, NULL));
	return elsewhere;
}

static void modes_say_what_is_forbidden_to_whom(void)
{
	CUgraph graph;
	CUdeviceptr memory;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	/* A global capture forbids unsafe calls in all threads that have not changed their mode. */
	begin(stream);
	OK(allocated_elsewhere(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(allocated_elsewhere(CU_STREAM_CAPTURE_MODE_RELAXED));
	EXPECT(allocated_elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	/* A thread-local capture forbids them only in its thread, unless that is in relaxed mode. */
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(allocated_elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuMemAlloc(&memory, 64));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
	EXPECT(ended_elsewhere(), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(memory));
	/* A relaxed capture forbids nothing, and any thread may end it. */
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemAlloc(&memory, 64));
	OK(ended_elsewhere());
	OK(cuMemFree(memory));
	mode = (CUstreamCaptureMode)3;
	EXPECT(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
}

static void captures_go_on_in_a_given_graph(void)
{
	CUgraph graph, same;
	cuuint64_t id = 0;
	const CUgraphNode *dependencies;
	const CUgraphEdgeData *data;
	size_t count;
	CUstreamCaptureStatus now;
	memset(record, 0, 4096);
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode first = add_append(graph, NULL, 0, at(record), 1), second = add_append(graph, &first, 1, at(record),
			2);
	OK(cuStreamBeginCaptureToGraph(stream, graph, &second, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamGetCaptureInfo(stream, &now, &id, &same, &dependencies, &data, &count));
	CHECK(now == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && same == graph && count == 1 && dependencies[0] == second);
	append(stream, at(record), 3);
	/* The next node depends only on the first node. */
	OK(cuStreamUpdateCaptureDependencies(stream, &first, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	append(stream, at(word), 4);
	OK(cuStreamGetCaptureInfo(stream, &now, NULL, NULL, &dependencies, NULL, &count));
	CHECK(count == 1);
	CUgraphNode last = dependencies[0];
	OK(cuStreamEndCapture(stream, &same));
	CHECK(same == graph);
	OK(cuStreamBeginCaptureToGraph(stream, graph, &last, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamEndCapture(stream, NULL));
	begin(stream);
	EXPECT(cuStreamEndCapture(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK(status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuStreamEndCapture(stream, &same));
	OK(cuGraphDestroy(same));
	CUgraphNode before;
	size_t one = 1;
	OK(cuGraphNodeGetDependencies_v2(last, &before, NULL, &one));
	CHECK(one == 1 && before == first);
	word[0] = 0;
	run_and_end(graph);
	CHECK(record[0] == 3 && record[3] == 3 && word[0] == 1 && word[1] == 4);
	EXPECT(cuStreamUpdateCaptureDependencies(stream, &first, NULL, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
}

static void launched_graphs_become_children(void)
{
	CUgraph inner, graph;
	CUgraphNode nodes[2];
	CUgraphNodeType type;
	memset(record, 0, 4096);
	OK(cuGraphCreate(&inner, 0));
	add_append(inner, NULL, 0, at(record), 1);
	CUgraphExec exec = instantiated(inner);
	begin(stream);
	OK(cuGraphLaunch(exec, stream));
	append(stream, at(record), 2);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(inner));
	CHECK(nodes_of(graph, nodes, 2) == 2);
	OK(cuGraphNodeGetType(nodes[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_GRAPH);
	run_and_end(graph);
	CHECK(record[0] == 2 && record[1] == 1 && record[2] == 2);
}

static void launch_overlapping(CUstream in)
{
	uint32_t value = 1;
	void *parameters[] = { &record, &value };
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
					.value.programmaticStreamSerializationAllowed = 1 };
	CUlaunchConfig config = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
				  .hStream = in, .attrs = &attribute, .numAttrs = 1 };
	OK(cuLaunchKernelEx(&config, kernel("append"), parameters, NULL));
}

static CUgraphEdgeData only_edge_to(CUgraphNode node)
{
	CUgraphNode from[2];
	CUgraphEdgeData data[2];
	size_t count = 2;
	OK(cuGraphNodeGetDependencies_v2(node, from, data, &count));
	CHECK(count == 1);
	return data[0];
}

/* Kernel, kernel, fill, kernel; another stream, which waits for the last kernel, adds one. */
static void launches_that_may_overlap_get_programmatic_edges(void)
{
	CUgraph graph;
	CUgraphNode nodes[6], told;
	CUgraphEdgeData back;
	CUevent fork, join;
	size_t count = 1;
	OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	record[0] = 0;
	begin(stream);
	launch_overlapping(stream);
	launch_overlapping(stream);
	OK(cuMemsetD32Async(at(word), 3, 1, stream));
	launch_overlapping(stream);
	OK(cuEventRecord(fork, stream));
	OK(cuStreamWaitEvent(other, fork, 0));
	launch_overlapping(other);
	OK(cuEventRecord(join, other));
	OK(cuStreamWaitEvent(stream, join, 0));
	OK(cuStreamEndCapture(stream, &graph));
	CHECK(nodes_of(graph, nodes, 6) == 5);
	const CUgraphEdgeData first = only_edge_to(nodes[1]);
	CHECK(first.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && first.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
	OK(cuGraphNodeGetDependentNodes_v2(nodes[0], &told, &back, &count));
	CHECK(told == nodes[1] && !memcmp(&back, &first, sizeof back));
	for (int i = 2; i < 5; i++)
		CHECK(only_edge_to(nodes[i]).type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
	run_and_end(graph);
	CHECK(record[0] == 4 && word[0] == 3);
	OK(cuEventDestroy(fork));
	OK(cuEventDestroy(join));
}

int main(void)
{
	start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	record = words(1024);
	word = words(64);
	calls_become_nodes_in_their_order();
	rows_of_more_than_2_gib_become_nodes();
	streams_fork_and_join();
	branches_must_come_back();
	streams_may_go_before_the_end();
	captures_do_not_mix();
	external_events_are_nodes();
	waiting_and_asking_are_forbidden();
	the_legacy_stream_keeps_away_from_blocking_captures();
	modes_say_what_is_forbidden_to_whom();
	captures_go_on_in_a_given_graph();
	launched_graphs_become_children();
	launches_that_may_overlap_get_programmatic_edges();
	return 0;
}
