/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of executable graphs: of one node, and of the whole by another graph. */
#include "graph.h"

static CUcontext context;
static CUstream stream;
static uint32_t *record, *word; /* pinned */

static void run(CUgraphExec exec)
{
	memset(record, 0, 4096);
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
}

static CUresult set_append(CUgraphExec exec, CUgraphNode node, uint32_t value)
{
	CUdeviceptr log = at(record);
	void *parameters[] = { &log, &value };
	CUDA_KERNEL_NODE_PARAMS params = kernel_params("append", parameters);
	return cuGraphExecKernelNodeSetParams(exec, node, &params);
}

static int called_with;

static void CUDA_CB note(void *data)
{
	called_with = *(int *)data;
}

static void nodes_are_changed_for_later_launches_only(void)
{
	CUgraph graph;
	CUgraphNode node, fill, copy, host;
	uint32_t *to = word + 4, from = 21;
	int one = 1, two = 2;
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode wait = add_kernel(graph, NULL, 0, "wait", at(word), 0);
	node = add_append(graph, &wait, 1, at(record), 1);
	CUDA_MEMSET_NODE_PARAMS set = { .dst = at(to), .value = 3, .elementSize = 4, .width = 1, .height = 1 };
	OK(cuGraphAddMemsetNode(&fill, graph, &node, 1, &set, context));
	CUDA_MEMCPY3D move = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = &from, .dstMemoryType =
			CU_MEMORYTYPE_DEVICE,
			       .dstDevice = at(to + 1), .WidthInBytes = 4, .Height = 1, .Depth = 1 };
	OK(cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &move, context));
	CUDA_HOST_NODE_PARAMS call = { .fn = note, .userData = &one };
	OK(cuGraphAddHostNode(&host, graph, &copy, 1, &call));
	CUgraphExec exec = instantiated(graph);
	*word = 0;
	memset(record, 0, 4096);
	OK(cuGraphLaunch(exec, stream));
	/* The launch waits for the flag; later changes do not affect it. */
	OK(set_append(exec, node, 2));
	set.value = 4;
	OK(cuGraphExecMemsetNodeSetParams(exec, fill, &set, context));
	move.dstDevice = at(to + 2);
	OK(cuGraphExecMemcpyNodeSetParams(exec, copy, &move, context));
	call.userData = &two;
	OK(cuGraphExecHostNodeSetParams(exec, host, &call));
	let_go(word);
	OK(cuStreamSynchronize(stream));
	CHECK(record[1] == 1 && to[0] == 3 && to[1] == 21 && to[2] == 0 && called_with == 1);
	run(exec);
	CHECK(record[1] == 2 && to[0] == 4 && to[2] == 21 && called_with == 2);
	/* The graph itself is as it was. */
	CUDA_KERNEL_NODE_PARAMS back;
	OK(cuGraphKernelNodeGetParams(node, &back));
	CHECK(*(uint32_t *)back.kernelParams[1] == 1);
	EXPECT(cuGraphExecMemsetNodeSetParams(exec, node, &set, context), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGraphExecKernelNodeSetParams(exec, node, NULL), CUDA_ERROR_INVALID_VALUE);
	set.height = 2, set.pitch = 512;
	EXPECT(cuGraphExecMemsetNodeSetParams(exec, fill, &set, context), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	EXPECT(set_append(exec, node, 3), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
}

static void nodes_are_left_out_while_disabled(void)
{
	CUgraph graph;
	unsigned enabled;
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode first = add_append(graph, NULL, 0, at(record), 1), second = add_append(graph, &first, 1, at(record),
			2);
	CUgraphNode third = add_append(graph, &second, 1, at(record), 3), none;
	OK(cuGraphAddEmptyNode(&none, graph, NULL, 0));
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphNodeSetEnabled(exec, second, 0));
	OK(cuGraphNodeGetEnabled(exec, second, &enabled));
	CHECK(!enabled);
	OK(cuGraphNodeGetEnabled(exec, third, &enabled));
	CHECK(enabled);
	run(exec);
	CHECK(record[0] == 2 && record[1] == 1 && record[2] == 3);
	OK(set_append(exec, second, 9)); /* stays disabled */
	run(exec);
	CHECK(record[0] == 2);
	OK(cuGraphNodeSetEnabled(exec, second, 1));
	run(exec);
	CHECK(record[0] == 3 && record[2] == 9);
	EXPECT(cuGraphNodeSetEnabled(exec, none, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/* a → b, a → c, b → d, c → d; the middle ones are added in the order asked for, their edges in the same one. */
static CUgraph diamond(uint32_t base, int other_way_round, CUgraphNode node[4])
{
	CUgraph graph;
	OK(cuGraphCreate(&graph, 0));
	node[0] = add_append(graph, NULL, 0, at(record), base);
	if (other_way_round)
		node[2] = add_append(graph, node, 1, at(record), base + 2);
	node[1] = add_append(graph, node, 1, at(record), base + 1);
	if (!other_way_round)
		node[2] = add_append(graph, node, 1, at(record), base + 2);
	node[3] = add_append(graph, &node[1], 2, at(record), base + 3);
	return graph;
}

static void a_graph_of_the_same_shape_replaces_parameters(void)
{
	CUgraphNode old[4], new[4];
	CUgraph graph = diamond(10, 0, old), same = diamond(20, 0, new), turned;
	CUgraphExec exec = instantiated(graph);
	CUgraphExecUpdateResultInfo info;
	OK(cuGraphNodeSetEnabled(exec, old[3], 0));
	OK(cuGraphExecUpdate(exec, same, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && !info.errorNode);
	run(exec);
	CHECK(record[0] == 3 && record[1] == 20);
	/* The handles of the graph that was instantiated still name its nodes, and what was disabled is. */
	OK(cuGraphNodeSetEnabled(exec, old[3], 1));
	OK(set_append(exec, old[0], 5));
	run(exec);
	CHECK(record[0] == 4 && record[1] == 5 && record[4] == 23);
	EXPECT(set_append(exec, new[0], 5), CUDA_ERROR_INVALID_VALUE);
	/* Nodes are paired by edges, not by the order of their creation. */
	turned = diamond(30, 1, new);
	OK(cuGraphExecUpdate(exec, turned, &info));
	OK(cuGraphNodeSetEnabled(exec, old[1], 0));
	run(exec);
	CHECK(record[0] == 3 && record[1] == 30 && record[2] == 32 && record[3] == 33);
	OK(cuGraphDestroy(turned));
	OK(cuGraphDestroy(same));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(exec));
}

static CUgraphExecUpdateResult refused(CUgraphExec exec, CUgraph graph, CUgraphNode node, CUgraphNode from)
{
	CUgraphExecUpdateResultInfo info;
	EXPECT(cuGraphExecUpdate(exec, graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK(info.errorNode == node && info.errorFromNode == from);
	return info.result;
}

static void other_shapes_are_refused_and_change_nothing(void)
{
	CUgraphNode old[4], new[4], extra;
	CUgraph graph = diamond(10, 0, old), other = diamond(20, 0, new);
	CUgraphExec exec = instantiated(graph);
	extra = add_append(other, NULL, 0, at(record), 99);
	CHECK(refused(exec, other, NULL, NULL) == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphDestroyNode(extra));
	OK(cuGraphAddDependencies_v2(other, &new[0], &new[3], NULL, 1));
	CHECK(refused(exec, other, new[3], NULL) == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphRemoveDependencies_v2(other, &new[0], &new[3], NULL, 1));
	OK(cuGraphRemoveDependencies_v2(other, &new[2], &new[3], NULL, 1));
	CHECK(refused(exec, other, new[3], NULL) == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphDestroy(other));
	/* d's second dependency is a, which is paired already. */
	other = diamond(20, 0, new);
	OK(cuGraphRemoveDependencies_v2(other, &new[2], &new[3], NULL, 1));
	OK(cuGraphAddDependencies_v2(other, &new[0], &new[3], NULL, 1));
	OK(cuGraphAddDependencies_v2(other, &new[2], &new[1], NULL, 1));
	CUgraphExecUpdateResultInfo info;
	EXPECT(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphDestroy(other));
	/* The type of one node; a copy's kinds of memory. */
	other = diamond(20, 0, new);
	OK(cuGraphDestroyNode(new[3]));
	OK(cuGraphAddEmptyNode(&new[3], other, &new[1], 2));
	CHECK(refused(exec, other, new[3], NULL) == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
	OK(cuGraphDestroy(other));
	run(exec);
	CHECK(record[0] == 4 && record[1] == 10 && record[4] == 13);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void copies_keep_their_kinds_of_memory(void)
{
	CUgraph graph, other;
	CUgraphNode node, changed;
	uint32_t plain = 1;
	CUDA_MEMCPY3D move = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = at(word), .dstMemoryType =
			CU_MEMORYTYPE_DEVICE,
			       .dstDevice = at(word + 1), .WidthInBytes = 4, .Height = 1, .Depth = 1 };
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&other, 0));
	OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &move, context));
	CUgraphExec exec = instantiated(graph);
	move.srcMemoryType = CU_MEMORYTYPE_HOST;
	move.srcHost = &plain;
	OK(cuGraphAddMemcpyNode(&changed, other, NULL, 0, &move, context));
	CHECK(refused(exec, other, changed, NULL) == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
	EXPECT(cuGraphExecMemcpyNodeSetParams(exec, node, &move, context), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(other));
}

static void copies_of_several_rows_do_not_change(void)
{
	CUgraph graph;
	CUgraphNode node;
	CUDA_MEMCPY3D move = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = at(word), .srcPitch = 8,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = at(word + 8), .dstPitch = 8,
			       .WidthInBytes = 4, .Height = 1, .Depth = 1 };
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &move, context));
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphExecMemcpyNodeSetParams(exec, node, &move, context));
	move.Height = 2;
	EXPECT(cuGraphExecMemcpyNodeSetParams(exec, node, &move, context), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphMemcpyNodeSetParams(node, &move));
	exec = instantiated(graph);
	move.Height = 1;
	EXPECT(cuGraphExecMemcpyNodeSetParams(exec, node, &move, context), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void kernels_stay_in_their_context(void)
{
	CUcontext other;
	CUmodule module[2];
	CUfunction function[2];
	CUgraph graph;
	CUgraphNode node;
	for (int i = 0; i < 2; i++) {
		if (i)
			OK(cuCtxCreate(&other, NULL, 0, 0));
		OK(cuModuleLoadData(&module[i], "double\nnothing\n"));
		OK(cuModuleGetFunction(&function[i], module[i], "nothing"));
	}
	OK(cuCtxSetCurrent(context));
	CUDA_KERNEL_NODE_PARAMS params = { .func = function[0], .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
					   .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1 };
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphExecKernelNodeSetParams(exec, node, &params));
	params.func = function[1];
	EXPECT(cuGraphExecKernelNodeSetParams(exec, node, &params), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuModuleUnload(module[0]));
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(context));
}

static void children_are_replaced_as_a_whole(void)
{
	CUgraphNode node[4], replaced[4], holder;
	CUgraph graph, child = diamond(10, 0, node), other = diamond(40, 0, replaced), wrong;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddChildGraphNode(&holder, graph, NULL, 0, child));
	CUgraphExec exec = instantiated(graph);
	OK(cuGraphExecChildGraphNodeSetParams(exec, holder, other));
	run(exec);
	CHECK(record[0] == 4 && record[1] == 40 && record[4] == 43);
	OK(cuGraphCreate(&wrong, 0));
	EXPECT(cuGraphExecChildGraphNodeSetParams(exec, holder, wrong), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	/* A node in the child, by its handle there. */
	CUgraph inside;
	CUgraphNode inner;
	OK(cuGraphChildGraphNodeGetGraph(holder, &inside));
	OK(cuGraphNodeFindInClone(&inner, node[0], inside));
	OK(set_append(exec, inner, 77));
	run(exec);
	CHECK(record[1] == 77);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(child));
	OK(cuGraphDestroy(other));
	OK(cuGraphDestroy(wrong));
}

int main(void)
{
	context = start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	record = words(1024);
	word = words(16);
	nodes_are_changed_for_later_launches_only();
	nodes_are_left_out_while_disabled();
	a_graph_of_the_same_shape_replaces_parameters();
	other_shapes_are_refused_and_change_nothing();
	copies_keep_their_kinds_of_memory();
	copies_of_several_rows_do_not_change();
	kernels_stay_in_their_context();
	children_are_replaced_as_a_whole();
	return 0;
}
