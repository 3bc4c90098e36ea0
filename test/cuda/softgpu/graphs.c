/* SPDX-License-Identifier: BSD-3-Clause */
/* Building graphs: nodes, edges, queries, clones, and what is refused. */
#include "graph.h"

#include <limits.h>
#include <unistd.h>

static CUcontext context;
static uint32_t *record;

static CUgraphNode empty(CUgraph graph, const CUgraphNode *after, size_t count)
{
	CUgraphNode node;
	OK(cuGraphAddEmptyNode(&node, graph, after, count));
	return node;
}

/* a → b, a → c, b → d, c → d */
static void diamond(CUgraph graph, CUgraphNode node[4])
{
	node[0] = empty(graph, NULL, 0);
	node[1] = empty(graph, node, 1);
	node[2] = empty(graph, node, 1);
	node[3] = empty(graph, &node[1], 2);
}

static void nodes_and_edges_are_told_as_they_were_added(void)
{
	CUgraph graph;
	CUgraphNode node[4], told[6], to[6];
	size_t count = 0;
	OK(cuGraphCreate(&graph, 0));
	diamond(graph, node);
	OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK(count == 4);
	count = 6;
	OK(cuGraphGetNodes(graph, told, &count));
	CHECK(count == 4 && !memcmp(told, node, sizeof node) && !told[4] && !told[5]);
	count = 2;
	OK(cuGraphGetNodes(graph, told, &count));
	CHECK(count == 2 && told[1] == node[1]);
	count = 6;
	OK(cuGraphGetRootNodes(graph, told, &count));
	CHECK(count == 1 && told[0] == node[0]);
	OK(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &count));
	CHECK(count == 4);
	count = 6;
	OK(cuGraphGetEdges_v2(graph, told, to, NULL, &count));
	CHECK(count == 4 && told[0] == node[0] && to[0] == node[1] && told[1] == node[0] && to[1] == node[2]);
	CHECK(told[2] == node[1] && to[2] == node[3] && told[3] == node[2] && to[3] == node[3]);
	count = 6;
	OK(cuGraphNodeGetDependencies_v2(node[3], told, NULL, &count));
	CHECK(count == 2 && told[0] == node[1] && told[1] == node[2] && !told[2]);
	count = 6;
	OK(cuGraphNodeGetDependentNodes_v2(node[0], told, NULL, &count));
	CHECK(count == 2 && told[0] == node[1] && told[1] == node[2]);
	OK(cuGraphDestroyNode(node[1]));
	OK(cuGraphNodeGetDependencies_v2(node[3], NULL, NULL, &count));
	CHECK(count == 1);
	OK(cuGraphDestroy(graph));
	EXPECT(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphGetNodes(graph, NULL, &count), CUDA_ERROR_INVALID_VALUE);
}

static void edges_can_be_added_and_removed(void)
{
	CUgraph graph, other;
	CUgraphNode node[4], stranger;
	CUgraphExec exec;
	size_t count;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&other, 0));
	diamond(graph, node);
	stranger = empty(other, NULL, 0);
	EXPECT(cuGraphAddDependencies_v2(graph, &node[0], &node[1], NULL, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddDependencies_v2(graph, &node[0], &stranger, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddDependencies_v2(graph, &node[0], &node[0], NULL, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphRemoveDependencies_v2(graph, &node[0], &node[3], NULL, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddDependencies_v2(graph, &node[0], &node[3], NULL, 1));
	OK(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &count));
	CHECK(count == 5);
	OK(cuGraphRemoveDependencies_v2(graph, &node[0], &node[3], NULL, 1));
	OK(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &count));
	CHECK(count == 4);
	/* A cycle is detected at instantiation. */
	OK(cuGraphAddDependencies_v2(graph, &node[3], &node[0], NULL, 1));
	EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { 0 };
	EXPECT(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_VALUE);
	CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
	/* Duplicate dependencies of a new node are refused without any effect. */
	CUgraphNode twice[] = { node[1], node[1] }, made;
	EXPECT(cuGraphAddEmptyNode(&made, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK(count == 4);
	OK(cuGraphNodeGetDependentNodes_v2(node[1], NULL, NULL, &count));
	CHECK(count == 1);
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(other));
}

static void edge_data_stays_with_its_edge(void)
{
	CUgraph graph;
	CUgraphNode told[2];
	CUgraphEdgeData data = { .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
				 .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC }, back[2];
	size_t count = 2;
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode first = add_append(graph, NULL, 0, at(record), 1), second = add_append(graph, NULL, 0, at(record),
			2);
	CUgraphNode none = empty(graph, NULL, 0);
	OK(cuGraphAddDependencies_v2(graph, &first, &second, &data, 1));
	OK(cuGraphNodeGetDependencies_v2(second, told, back, &count));
	CHECK(count == 1 && told[0] == first && !memcmp(back, &data, sizeof data));
	count = 2;
	EXPECT(cuGraphNodeGetDependencies_v2(second, told, NULL, &count), CUDA_ERROR_LOSSY_QUERY);
	EXPECT(cuGraphRemoveDependencies_v2(graph, &first, &second, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphRemoveDependencies_v2(graph, &first, &second, &data, 1));
	/* Only between kernels, and only with a port. */
	EXPECT(cuGraphAddDependencies_v2(graph, &first, &none, &data, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddDependencies_v2(graph, &none, &first, &data, 1), CUDA_ERROR_INVALID_VALUE);
	data.from_port = 0;
	EXPECT(cuGraphAddDependencies_v2(graph, &first, &second, &data, 1), CUDA_ERROR_INVALID_VALUE);
	data = (CUgraphEdgeData){ .reserved = { 1 } };
	EXPECT(cuGraphAddDependencies_v2(graph, &first, &second, &data, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
}

static void parameters_are_the_nodes_own_copies(void)
{
	CUgraph graph;
	CUdeviceptr log = at(record);
	uint32_t value = 5;
	void *parameters[] = { &log, &value };
	CUDA_KERNEL_NODE_PARAMS params = kernel_params("append", parameters), back;
	CUgraphNode node;
	CUgraphNodeType type;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	log = 0;
	value = 0;
	OK(cuGraphKernelNodeGetParams(node, &back));
	CHECK(back.func == kernel("append") && back.gridDimX == 1 && !back.extra);
	CHECK(*(CUdeviceptr *)back.kernelParams[0] == at(record) && *(uint32_t *)back.kernelParams[1] == 5);
	OK(cuGraphNodeGetType(node, &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_KERNEL);
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = at(record), .value = 7, .elementSize = 4, .width = 4, .height = 1 },
			filled;
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
	OK(cuGraphMemsetNodeGetParams(node, &filled));
	CHECK(!memcmp(&fill, &filled, sizeof fill));
	fill.value = 8;
	OK(cuGraphMemsetNodeSetParams(node, &fill));
	OK(cuGraphMemsetNodeGetParams(node, &filled));
	CHECK(filled.value == 8);
	fill.elementSize = 3;
	EXPECT(cuGraphMemsetNodeSetParams(node, &fill), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphMemsetNodeGetParams(node, &filled));
	CHECK(filled.elementSize == 4);
	EXPECT(cuGraphKernelNodeGetParams(node, &back), CUDA_ERROR_INVALID_VALUE);
	/* The same through cuGraphAddNode, which adds all types. */
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	value = 9;
	log = at(record);
	memcpy(&any.kernel, &params, sizeof params);
	OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &any));
	OK(cuGraphKernelNodeGetParams(node, &back));
	CHECK(*(uint32_t *)back.kernelParams[1] == 9);
	any.reserved0[1] = 1;
	EXPECT(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &any), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
}

static void wrong_parameters_make_no_node(void)
{
	CUgraph graph;
	CUgraphNode node;
	size_t count;
	CUDA_KERNEL_NODE_PARAMS params = kernel_params("nothing", NULL);
	CUDA_HOST_NODE_PARAMS host = { 0 };
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = 4096, .dstMemoryType =
			CU_MEMORYTYPE_HOST,
			       .dstHost = &count, .WidthInBytes = 8, .Height = 1, .Depth = 1 };
	CUDA_EXT_SEM_SIGNAL_NODE_PARAMS semaphores = { 0 };
	OK(cuGraphCreate(&graph, 0));
	params.blockDimX = 2048;
	EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	params.func = (CUfunction)graph;
	EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddHostNode(&node, graph, NULL, 0, &host), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddEventRecordNode(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddChildGraphNode(&node, graph, NULL, 0, graph), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddMemFreeNode(&node, graph, NULL, 0, at(record)), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphAddExternalSemaphoresSignalNode(&node, graph, NULL, 0, &semaphores), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuGraphAddEmptyNode(&node, graph, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK(count == 0);
	OK(cuGraphDestroy(graph));
}

static void clones_are_copies_and_find_their_nodes(void)
{
	CUgraph graph, child, clone, in_node, in_clone;
	CUgraphNode node[4], same, inner, holder;
	size_t count;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&child, 0));
	inner = empty(child, NULL, 0);
	diamond(graph, node);
	OK(cuGraphAddChildGraphNode(&holder, graph, &node[3], 1, child));
	OK(cuGraphChildGraphNodeGetGraph(holder, &in_node));
	CHECK(in_node != child);
	OK(cuGraphNodeFindInClone(&same, inner, in_node));
	CHECK(same != inner);
	EXPECT(cuGraphDestroy(in_node), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphClone(&clone, graph));
	OK(cuGraphGetEdges_v2(clone, NULL, NULL, NULL, &count));
	CHECK(count == 5);
	OK(cuGraphNodeFindInClone(&same, node[3], clone));
	CHECK(same != node[3]);
	OK(cuGraphNodeGetDependencies_v2(same, NULL, NULL, &count));
	CHECK(count == 2);
	OK(cuGraphNodeFindInClone(&same, holder, clone));
	OK(cuGraphChildGraphNodeGetGraph(same, &in_clone));
	CHECK(in_clone != in_node);
	OK(cuGraphDestroyNode(node[0]));
	OK(cuGraphGetNodes(clone, NULL, &count));
	CHECK(count == 5);
	EXPECT(cuGraphNodeFindInClone(&same, holder, child), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(child));
	OK(cuGraphDestroy(clone));
}

static void attributes_of_kernel_nodes(void)
{
	CUgraph graph;
	CUkernelNodeAttrValue value = { .priority = -2 }, back = { .priority = 9 };
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode first = add_append(graph, NULL, 0, at(record), 1), second = add_append(graph, NULL, 0, at(record),
			2);
	OK(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	OK(cuGraphKernelNodeGetAttribute(second, CU_LAUNCH_ATTRIBUTE_PRIORITY, &back));
	CHECK(back.priority == 0);
	OK(cuGraphKernelNodeCopyAttributes(second, first));
	OK(cuGraphKernelNodeGetAttribute(second, CU_LAUNCH_ATTRIBUTE_PRIORITY, &back));
	CHECK(back.priority == -2);
	value.clusterDim.x = 2, value.clusterDim.y = value.clusterDim.z = 1;
	EXPECT(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value),
			CUDA_ERROR_INVALID_CLUSTER_SIZE); /* of a grid of one block */
	EXPECT(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
	       CUDA_ERROR_INVALID_VALUE);
	/* A cooperative node stays one, whose blocks must all find room: checked where it is changed. */
	CUDA_KERNEL_NODE_PARAMS params;
	value.cooperative = 1;
	OK(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
	OK(cuGraphKernelNodeGetParams(first, &params));
	params.gridDimX = 1000000;
	EXPECT(cuGraphKernelNodeSetParams(first, &params), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	params.gridDimX = 2;
	OK(cuGraphKernelNodeSetParams(first, &params));
	OK(cuGraphKernelNodeGetAttribute(first, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &back));
	CHECK(back.cooperative == 1);
	OK(cuGraphDestroy(graph));
}

static int destroyed;

static void CUDA_CB destroy(void *data)
{
	CUdevice device;
	destroyed += *(int *)data;
	/* No CUDA call is permitted in it. */
	CHECK(cuCtxGetDevice(&device) == CUDA_ERROR_NOT_PERMITTED);
}

static void user_objects_live_as_long_as_their_references(void)
{
	CUgraph graph, clone;
	CUgraphExec exec;
	CUuserObject object;
	int data = 3;
	destroyed = 0;
	EXPECT(cuUserObjectCreate(&object, &data, destroy, 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuUserObjectCreate(&object, &data, destroy, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	OK(cuGraphRetainUserObject(graph, object, 2, 0));
	OK(cuUserObjectRelease(object, 1)); /* the graph has three, nobody else any */
	OK(cuGraphClone(&clone, graph));
	exec = instantiated(graph);
	EXPECT(cuGraphReleaseUserObject(graph, object, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphReleaseUserObject(graph, object, 3));
	OK(cuGraphDestroy(clone));
	CHECK(destroyed == 0);
	OK(cuGraphDestroy(graph));
	CHECK(destroyed == 0);
	OK(cuGraphExecDestroy(exec));
	CHECK(destroyed == 3);
	EXPECT(cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
}

/* A graph with more references than a 32-bit number can count. */
static void user_objects_have_many_references(void)
{
	CUgraph graph;
	CUuserObject object;
	int data = 1;
	destroyed = 0;
	OK(cuUserObjectCreate(&object, &data, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuGraphCreate(&graph, 0));
	for (int i = 0; i < 3; i++)
		OK(cuGraphRetainUserObject(graph, object, INT_MAX, 0));
	for (int i = 0; i < 3; i++)
		OK(cuGraphReleaseUserObject(graph, object, INT_MAX));
	EXPECT(cuGraphReleaseUserObject(graph, object, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK(destroyed == 0);
	OK(cuUserObjectRelease(object, 1));
	CHECK(destroyed == 1);
	OK(cuGraphDestroy(graph));
}

static void conditions_belong_to_their_graph(void)
{
	CUgraph graph, other, body;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraphConditionalHandle handle, below, unknown;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&other, 0));
	EXPECT(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 2), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphConditionalHandleCreate(&handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	OK(cuGraphConditionalHandleCreate(&unknown, other, context, 1, 0));
	CUDA_GRAPH_INSTANTIATE_PARAMS told = { 0 };
	EXPECT(cuGraphInstantiateWithParams(&exec, graph, &told), CUDA_ERROR_INVALID_VALUE);
	CHECK(told.result_out == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
				     .conditional = { .handle = unknown, .type = CU_GRAPH_COND_TYPE_WHILE, .size =
						1 } };
	EXPECT(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	params.conditional.handle = handle;
	params.conditional.size = 2;
	EXPECT(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	params.conditional.size = 1;
	OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
	body = params.conditional.phGraph_out[0];
	EXPECT(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE); /* one node each */
	OK(cuGraphConditionalHandleCreate(&below, graph, context, 1, 0));
	EXPECT(cuGraphClone(&other, graph), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuGraphInstantiateWithFlags(&exec, body, 0), CUDA_ERROR_INVALID_VALUE);
	/* Who reads it may be further below. */
	params.conditional.handle = below;
	OK(cuGraphAddNode_v2(&node, body, NULL, NULL, 0, &params));
	EXPECT(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphExecDestroy(exec));
	/* A body does no host functions. */
	CUDA_HOST_NODE_PARAMS host = { .fn = destroy };
	OK(cuGraphAddHostNode(&node, body, NULL, 0, &host));
	EXPECT(cuGraphInstantiateWithParams(&exec, graph, &told), CUDA_ERROR_INVALID_VALUE);
	CHECK(told.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE && told.hErrNode_out == node);
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(other));
}

/* A graph cannot come to hold itself, and what is in another takes no nodes that allocate or free. */
static void graphs_hold_no_circles(void)
{
	CUgraph graph, child, inside;
	CUgraphNode node, other;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&child, 0));
	add_append(child, NULL, 0, at(record), 1);
	OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	OK(cuGraphChildGraphNodeGetGraph(node, &inside));
	EXPECT(cuGraphAddChildGraphNode(&other, inside, NULL, 0, graph), CUDA_ERROR_INVALID_VALUE);
	CUgraphNodeParams move = { .type = CU_GRAPH_NODE_TYPE_GRAPH,
				   .graph = { graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE } };
	EXPECT(cuGraphAddNode_v2(&other, inside, NULL, NULL, 0, &move), CUDA_ERROR_INVALID_VALUE);
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							    .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
					     .bytesize = 512 };
	EXPECT(cuGraphAddMemAllocNode(&other, inside, NULL, 0, &alloc), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphAddMemAllocNode(&other, child, NULL, 0, &alloc));
	EXPECT(cuGraphAddMemFreeNode(&other, inside, NULL, 0, alloc.dptr), CUDA_ERROR_NOT_SUPPORTED);
	size_t count;
	OK(cuGraphGetNodes(inside, NULL, &count));
	CHECK(count == 1);
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(child));
}

/* A stream that captures into a body graph keeps the graph above it from being destroyed. */
static void a_body_is_not_taken_away_from_a_capture(void)
{
	CUgraph graph, body, other, got;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraphConditionalHandle handle;
	CUstream stream;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&other, 0));
	OK(cuGraphConditionalHandleCreate(&handle, graph, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
				     .conditional = { .handle = handle, .type = CU_GRAPH_COND_TYPE_IF, .size = 1 } };
	OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
	body = params.conditional.phGraph_out[0];
	OK(cuStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
	append(stream, at(record), 1);
	EXPECT(cuGraphDestroyNode(node), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
	append(stream, at(record), 2);
	OK(cuStreamEndCapture(stream, &got));
	CHECK(got == body);
	size_t count;
	OK(cuGraphGetNodes(body, NULL, &count));
	CHECK(count == 2);
	OK(cuGraphDestroyNode(node));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(other));
	OK(cuStreamDestroy(stream));
}

static void graphs_are_drawn(void)
{
	CUgraph graph;
	char path[] = "/tmp/headrace-graph-XXXXXX", text[4096];
	int descriptor = mkstemp(path);
	CHECK(descriptor >= 0);
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode first = add_append(graph, NULL, 0, at(record), 1);
	add_append(graph, &first, 1, at(record), 2);
	OK(cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
	ssize_t length = read(descriptor, text, sizeof text - 1);
	CHECK(length > 0);
	text[length] = '\0';
	CHECK(!strncmp(text, "digraph", 7) && strstr(text, "append") && strstr(text, " -> ") && text[length - 2] ==
			'}');
	EXPECT(cuGraphDebugDotPrint(graph, "/nonexistent/graph", 0), CUDA_ERROR_OPERATING_SYSTEM);
	close(descriptor);
	unlink(path);
	OK(cuGraphDestroy(graph));
}

int main(void)
{
	context = start();
	record = words(64);
	nodes_and_edges_are_told_as_they_were_added();
	edges_can_be_added_and_removed();
	edge_data_stays_with_its_edge();
	parameters_are_the_nodes_own_copies();
	wrong_parameters_make_no_node();
	clones_are_copies_and_find_their_nodes();
	attributes_of_kernel_nodes();
	user_objects_live_as_long_as_their_references();
	user_objects_have_many_references();
	conditions_belong_to_their_graph();
	graphs_hold_no_circles();
	a_body_is_not_taken_away_from_a_capture();
	graphs_are_drawn();
	return 0;
}
