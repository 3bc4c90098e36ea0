/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs: chains of drawn nodes, instantiated in each way, launched, changed in each way and launched again. After each launch
 * the memory that the nodes change is noted.
 */
#include "test/cuda/echo/sequences.h"

#include <string.h>

#define NODES 10

enum kind { KERNEL, FILL, UP, DOWN, HOST, CHILD, RECORD, WAIT, MEMOP, EMPTY, CONDITION, KINDS };

struct built {
	CUgraph graph;
	CUgraphNode nodes[NODES];
	enum kind kinds[NODES];
	unsigned n;
	CUdeviceptr words;
	uint32_t *host; /* WORDS, pinned */
	CUevent events[2];
	/* of the drawn parameters; CUDA reads what they point to during the call */
	CUdeviceptr address;
	uint32_t count, value;
	void *arguments[3];
	CUstreamBatchMemOpParams operations[2];
};

/* ---- drawn parameters ---- */

static CUDA_KERNEL_NODE_PARAMS draw_kernel(struct side *s, struct built *b)
{
	b->address = b->words + 4 * below(s, WORDS / 2);
	b->count = (uint32_t)below(s, WORDS / 2);
	b->value = (uint32_t)below(s, 1000);
	b->arguments[0] = &b->address;
	b->arguments[1] = &b->count;
	b->arguments[2] = &b->value;
	return (CUDA_KERNEL_NODE_PARAMS){ .func = s->add, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32,
					  .blockDimY = 1, .blockDimZ = 1, .kernelParams = b->arguments };
}

static CUDA_MEMSET_NODE_PARAMS draw_fill(struct side *s, const struct built *b)
{
	return (CUDA_MEMSET_NODE_PARAMS){ .dst = b->words + 4 * below(s, WORDS / 2), .value = (unsigned)below(s, 1u << 31),
					  .elementSize = 4, .width = 1 + below(s, WORDS / 2), .height = 1 };
}

static CUDA_MEMCPY3D draw_copy(struct side *s, const struct built *b, enum kind kind)
{
	CUDA_MEMCPY3D copy = { .Height = 1, .Depth = 1, .WidthInBytes = 4 * (1 + below(s, WORDS / 2)) };
	copy.srcXInBytes = 4 * below(s, WORDS / 2);
	copy.dstXInBytes = 4 * below(s, WORDS / 2);
	copy.srcMemoryType = kind == UP ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	copy.dstMemoryType = kind == UP ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	copy.srcHost = kind == UP ? b->host : NULL;
	copy.dstHost = kind == UP ? NULL : b->host;
	copy.srcDevice = kind == UP ? 0 : b->words;
	copy.dstDevice = kind == UP ? b->words : 0;
	copy.srcPitch = copy.dstPitch = WORDS * 4;
	return copy;
}

static CUDA_HOST_NODE_PARAMS draw_host(struct side *s)
{
	return (CUDA_HOST_NODE_PARAMS){ append_value, host_function(s, (uint32_t)below(s, 1000)) };
}

static CUDA_BATCH_MEM_OP_NODE_PARAMS draw_operations(struct side *s, struct built *b)
{
	memset(b->operations, 0, sizeof b->operations);
	for (int i = 0; i < 2; i++) {
		b->operations[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
		b->operations[i].writeValue.address = b->words + 4 * below(s, WORDS);
		b->operations[i].writeValue.value = (cuuint32_t)below(s, 1000);
	}
	return (CUDA_BATCH_MEM_OP_NODE_PARAMS){ .ctx = s->context, .count = 1 + (unsigned)below(s, 2), .paramArray = b->operations };
}

/* ---- building ---- */

static CUgraph draw_child(struct side *s, struct built *b)
{
	CUgraph graph;
	CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS params = draw_kernel(s, b);
	CALL(cuGraphCreate, &graph, 0);
	CALL(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &params);
	return graph;
}

static void add_condition(struct side *s, struct built *b, CUgraphNode *node, const CUgraphNode *after, size_t n)
{
	CUgraphConditionalHandle handle;
	CUgraphNode setter, inside;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	uint32_t value = (uint32_t)below(s, 2);
	CALL(cuGraphConditionalHandleCreate, &handle, b->graph, s->context, (unsigned)below(s, 2), CU_GRAPH_COND_ASSIGN_DEFAULT);
	if (below(s, 2)) {
		void *arguments[] = { &handle, &value };
		CUDA_KERNEL_NODE_PARAMS set = { .func = s->set, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
						.blockDimY = 1, .blockDimZ = 1, .kernelParams = arguments };
		CALL(cuGraphAddKernelNode_v2, &setter, b->graph, after, n, &set);
		after = &setter;
		n = 1;
	}
	params.conditional.handle = handle;
	params.conditional.type = CU_GRAPH_COND_TYPE_IF;
	params.conditional.size = 1;
	if (CALL(cuGraphAddNode_v2, node, b->graph, after, NULL, n, &params) != CUDA_SUCCESS)
		return;
	CUDA_KERNEL_NODE_PARAMS body = draw_kernel(s, b);
	CALL(cuGraphAddKernelNode_v2, &inside, params.conditional.phGraph_out[0], NULL, 0, &body);
}

/* Adds a node behind all others, so that the order of the effects is known. */
static void add(struct side *s, struct built *b, enum kind kind)
{
	const CUgraphNode *after = b->n ? &b->nodes[b->n - 1] : NULL;
	CUgraphNode *node = &b->nodes[b->n];
	size_t n = b->n != 0;
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_MEMCPY3D copy;
	CUDA_HOST_NODE_PARAMS host;
	CUDA_BATCH_MEM_OP_NODE_PARAMS operations;
	CUgraph child;
	switch (kind) {
	case KERNEL:
		kernel = draw_kernel(s, b);
		CALL(cuGraphAddKernelNode_v2, node, b->graph, after, n, &kernel);
		break;
	case FILL:
		fill = draw_fill(s, b);
		CALL(cuGraphAddMemsetNode, node, b->graph, after, n, &fill, s->context);
		break;
	case UP:
	case DOWN:
		copy = draw_copy(s, b, kind);
		CALL(cuGraphAddMemcpyNode, node, b->graph, after, n, &copy, s->context);
		break;
	case HOST:
		host = draw_host(s);
		CALL(cuGraphAddHostNode, node, b->graph, after, n, &host);
		break;
	case CHILD:
		child = draw_child(s, b);
		CALL(cuGraphAddChildGraphNode, node, b->graph, after, n, child);
		CALL(cuGraphDestroy, child);
		break;
	case RECORD:
		CALL(cuGraphAddEventRecordNode, node, b->graph, after, n, b->events[below(s, 2)]);
		break;
	case WAIT:
		CALL(cuGraphAddEventWaitNode, node, b->graph, after, n, b->events[below(s, 2)]);
		break;
	case MEMOP:
		operations = draw_operations(s, b);
		CALL(cuGraphAddBatchMemOpNode, node, b->graph, after, n, &operations);
		break;
	case CONDITION:
		add_condition(s, b, node, after, n);
		break;
	default:
		CALL(cuGraphAddEmptyNode, node, b->graph, after, n);
	}
	b->kinds[b->n++] = kind;
}

static void build(struct side *s, struct built *b)
{
	unsigned n = 1 + (unsigned)below(s, NODES);
	memset(b, 0, sizeof *b);
	b->words = words(s);
	void *host;
	NEED(cuMemHostAlloc, &host, WORDS * 4, 0);
	b->host = host;
	for (int i = 0; i < WORDS; i++)
		b->host[i] = (uint32_t)below(s, 1000);
	for (int i = 0; i < 2; i++)
		NEED(cuEventCreate, &b->events[i], CU_EVENT_DISABLE_TIMING);
	CALL(cuGraphCreate, &b->graph, 0);
	while (b->n < n)
		add(s, b, below(s, 4) ? (enum kind)below(s, KINDS) : KERNEL);
}

static void take_down(struct side *s, struct built *b)
{
	CALL(cuGraphDestroy, b->graph);
	for (int i = 0; i < 2; i++)
		NEED(cuEventDestroy_v2, b->events[i]);
	NEED(cuMemFreeHost, b->host);
	NEED(cuMemFree_v2, b->words);
}

/* ---- instantiating and launching ---- */

static CUgraphExec instantiate(struct side *s, const struct built *b)
{
	CUgraphExec exec = NULL;
	CUgraphNode error = NULL;
	char text[200];
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { .flags = below(s, 2) ? CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD : 0, .hUploadStream = s->stream };
	unsigned long long flags = (below(s, 2) ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0) |
				   (below(s, 2) ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0) | (below(s, 8) ? 0 : 1u << 20);
	switch (below(s, 5)) {
	case 0:
		CALL(cuGraphInstantiate, &exec, b->graph, &error, text, sizeof text);
		break;
	case 1:
		CALL(cuGraphInstantiate_v2, &exec, below(s, 8) ? b->graph : NULL, &error, text, sizeof text);
		break;
	case 2:
		CALL(cuGraphInstantiateWithFlags, below(s, 8) ? &exec : NULL, b->graph, flags);
		break;
	case 3:
		CALL(cuGraphInstantiateWithParams, &exec, b->graph, &params);
		note(s, "how it ended", (int64_t)params.result_out);
		break;
	default:
		params.hUploadStream = NULL;
		CALL(cuGraphInstantiateWithParams_ptsz, &exec, b->graph, &params);
		note(s, "how it ended", (int64_t)params.result_out);
	}
	cuuint64_t found = 0;
	if (exec && CALL(cuGraphExecGetFlags, exec, &found) == CUDA_SUCCESS)
		note(s, "flags", (int64_t)found);
	return exec;
}

static void launch(struct side *s, const struct built *b, CUgraphExec exec)
{
	if (below(s, 2))
		CALL(cuGraphLaunch, exec, below(s, 2) ? s->stream : NULL);
	else
		CALL(cuGraphLaunch_ptsz, exec, below(s, 2) ? s->stream : NULL);
	CALL(cuCtxSynchronize, );
	note_words(s, "device memory", b->words);
	note_bytes(s, "host memory", b->host, WORDS * 4);
	note_host_functions(s);
}

/* ---- changing an executable graph ---- */

static void set_kernel(struct side *s, struct built *b, CUgraphExec exec, CUgraphNode node)
{
	CUDA_KERNEL_NODE_PARAMS params = draw_kernel(s, b);
	CUDA_KERNEL_NODE_PARAMS_v1 old = { params.func, params.gridDimX, params.gridDimY, params.gridDimZ, params.blockDimX,
					   params.blockDimY, params.blockDimZ, 0, params.kernelParams, NULL };
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	any.kernel.func = params.func;
	any.kernel.gridDimX = any.kernel.gridDimY = any.kernel.gridDimZ = any.kernel.blockDimY = any.kernel.blockDimZ = 1;
	any.kernel.blockDimX = params.blockDimX;
	any.kernel.kernelParams = params.kernelParams;
	switch (below(s, 3)) {
	case 0:
		CALL(cuGraphExecKernelNodeSetParams_v2, exec, node, &params);
		break;
	case 1:
		CALL(cuGraphExecKernelNodeSetParams, exec, node, &old);
		break;
	default:
		CALL(cuGraphExecNodeSetParams, exec, node, &any);
	}
}

/* Calls the setter for nodes of this kind; if the node is of another kind, the call must fail. */
static void set_node(struct side *s, struct built *b, CUgraphExec exec, CUgraphNode node, enum kind kind)
{
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_MEMCPY3D copy;
	CUDA_HOST_NODE_PARAMS host;
	CUDA_BATCH_MEM_OP_NODE_PARAMS operations;
	CUgraph child;
	switch (kind) {
	case KERNEL:
		set_kernel(s, b, exec, node);
		break;
	case FILL:
		fill = draw_fill(s, b);
		CALL(cuGraphExecMemsetNodeSetParams, exec, node, &fill, s->context);
		break;
	case UP:
	case DOWN:
		copy = draw_copy(s, b, kind);
		CALL(cuGraphExecMemcpyNodeSetParams, exec, node, &copy, s->context);
		break;
	case HOST:
		host = draw_host(s);
		CALL(cuGraphExecHostNodeSetParams, exec, node, &host);
		break;
	case CHILD:
		child = draw_child(s, b);
		CALL(cuGraphExecChildGraphNodeSetParams, exec, node, child);
		CALL(cuGraphDestroy, child);
		break;
	case RECORD:
		CALL(cuGraphExecEventRecordNodeSetEvent, exec, node, b->events[below(s, 2)]);
		break;
	case WAIT:
		CALL(cuGraphExecEventWaitNodeSetEvent, exec, node, b->events[below(s, 2)]);
		break;
	case MEMOP:
		operations = draw_operations(s, b);
		CALL(cuGraphExecBatchMemOpNodeSetParams, exec, node, &operations);
		break;
	default:
		break;
	}
}

/* Changes the graph itself and updates the executable graph from it. */
static void update(struct side *s, struct built *b, CUgraphExec exec)
{
	unsigned i = (unsigned)below(s, b->n);
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_HOST_NODE_PARAMS host;
	CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_SUCCESS };
	CUgraphExecUpdateResult how = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	CUgraphNode error = NULL;
	if (b->kinds[i] == KERNEL) {
		kernel = draw_kernel(s, b);
		CALL(cuGraphKernelNodeSetParams_v2, b->nodes[i], &kernel);
	} else if (b->kinds[i] == FILL) {
		fill = draw_fill(s, b);
		CALL(cuGraphMemsetNodeSetParams, b->nodes[i], &fill);
	} else if (b->kinds[i] == HOST) {
		host = draw_host(s);
		CALL(cuGraphHostNodeSetParams, b->nodes[i], &host);
	} else if (b->n < NODES && !below(s, 4)) {
		add(s, b, EMPTY); /* the update must fail: another number of nodes */
	}
	if (below(s, 2)) {
		CALL(cuGraphExecUpdate_v2, exec, b->graph, &info);
		note(s, "how the update ended", (int64_t)info.result);
	} else {
		CALL(cuGraphExecUpdate, exec, b->graph, &error, &how);
		note(s, "how the update ended", (int64_t)how);
	}
}

static void change(struct side *s, struct built *b, CUgraphExec exec)
{
	unsigned i = (unsigned)below(s, b->n), enabled = 2;
	switch (below(s, 4)) {
	case 0:
		update(s, b, exec);
		break;
	case 1:
		CALL(cuGraphNodeSetEnabled, exec, b->nodes[i], (unsigned)below(s, 2));
		if (CALL(cuGraphNodeGetEnabled, exec, b->nodes[i], &enabled) == CUDA_SUCCESS)
			note(s, "enabled", enabled);
		break;
	case 2:
		set_node(s, b, exec, b->nodes[i], (enum kind)below(s, KINDS));
		break;
	default:
		set_node(s, b, exec, b->nodes[i], b->kinds[i]);
	}
}

static void one_graph(struct side *s)
{
	struct built b;
	build(s, &b);
	CUgraphExec exec = instantiate(s, &b);
	for (int i = 0; exec && i < 6; i++) {
		launch(s, &b, exec);
		change(s, &b, exec);
	}
	if (exec) {
		launch(s, &b, exec);
		CALL(cuGraphExecDestroy, exec);
	}
	CALL(cuGraphExecDestroy, NULL);
	CALL(cuGraphLaunch, NULL, s->stream);
	take_down(s, &b);
}

void sequence_graphs(struct side *s)
{
	for (int i = 0; i < 4; i++)
		one_graph(s);
}

/* ---- functions of the host in streams ---- */

static void CUDA_CB callback(CUstream stream, CUresult result, void *appended)
{
	(void)stream;
	append_value(appended);
	if (result != CUDA_SUCCESS)
		append_value(appended);
}

void sequence_host_functions(struct side *s)
{
	CUdeviceptr memory = words(s);
	uint32_t seen[8] = { 0 };
	for (int i = 0; i < 8; i++) {
		struct appended *one = host_function(s, (uint32_t)below(s, 1000));
		switch (below(s, 4)) {
		case 0:
			CALL(cuLaunchHostFunc, s->stream, append_value, one);
			break;
		case 1:
			CALL(cuLaunchHostFunc_ptsz, s->stream, below(s, 8) ? append_value : NULL, one);
			break;
		case 2:
			CALL(cuStreamAddCallback, s->stream, callback, one, below(s, 8) ? 0 : 1);
			break;
		default:
			CALL(cuStreamAddCallback_ptsz, s->stream, callback, one, 0);
		}
		if (below(s, 2))
			run_add(s, s->add, memory, (uint32_t)below(s, WORDS), (uint32_t)below(s, 1000));
		CALL(cuMemcpyDtoHAsync_v2, &seen[i], memory, sizeof seen[i], s->stream);
	}
	CALL(cuStreamSynchronize, s->stream);
	note_host_functions(s);
	note_bytes(s, "copies", seen, sizeof seen);
	note_words(s, "device memory", memory);
	NEED(cuMemFree_v2, memory);
}
