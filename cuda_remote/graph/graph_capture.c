/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures that build graphs: begins them, checks dependencies against the graph, and that all streams were joined. */
#include "cuda_remote/graph/graph_capture.h"

#include "cuda_remote/graph/capture.h"

#include <stdlib.h>

/* Marks in reached (by index) these nodes and all that come before them. stack has room for all nodes. */
static void reach(const CUgraphNode *from, size_t count, bool *reached, CUgraphNode *stack)
{
	size_t depth = 0;
	for (size_t i = 0; i < count; i++)
		if (!reached[from[i]->index]) {
			reached[from[i]->index] = true;
			stack[depth++] = from[i];
		}
	while (depth) {
		CUgraphNode node = stack[--depth];
		for (uint32_t i = 0; i < node->before.count; i++) {
			CUgraphNode before = node->before.at[i].node;
			if (reached[before->index])
				continue;
			reached[before->index] = true;
			stack[depth++] = before;
		}
	}
}

static CUresult check_joined(CUgraph graph, const CUgraphNode *last, size_t last_count, const CUgraphNode *nodes,
			     size_t count)
{
	uint32_t index = 0;
	bool *reached = calloc(graph->count + 1, sizeof *reached);
	CUgraphNode *stack = calloc(graph->count + 1, sizeof(CUgraphNode));
	CUresult result = reached && stack ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (!result) {
		for (CUgraphNode node = graph->first; node; node = node->next)
			node->index = index++;
		reach(last, last_count, reached, stack);
	}
	for (size_t i = 0; i < count && !result; i++)
		if (!reached[nodes[i]->index])
			result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	free(reached);
	free(stack);
	return result;
}

static bool claim(CUgraph graph)
{
	bool free_before = !graph->capturing;
	graph->capturing = true;
	return free_before;
}

static void release(CUgraph graph, bool drop)
{
	graph->capturing = false;
	if (drop)
		graph_free(graph);
}

static const capture_builder_t builder = {
	.claim = claim, .release = release, .add = graph_add, .check_joined = check_joined
};

static bool all_of_graph(CUgraph graph, const CUgraphNode *nodes, size_t count)
{
	if (count && !nodes)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!handle_valid(nodes[i], HANDLE_GRAPH_NODE) || nodes[i]->graph != graph)
			return false;
	return true;
}

CUresult graph_capture_begin(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
			     const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode)
{
	capture_info_t info;
	if (mode > CU_STREAM_CAPTURE_MODE_RELAXED || (graph && !handle_valid(graph, HANDLE_GRAPH)))
		return CUDA_ERROR_INVALID_VALUE;
	if (graph_driver_stream_legacy(stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (!capture_info(stream, &info) && info.status != CU_STREAM_CAPTURE_STATUS_NONE)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (graph && graph->capturing)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (!all_of_graph(graph, dependencies, count))
		return CUDA_ERROR_INVALID_VALUE;
	capture_start_t start = { .builder = &builder, .graph = graph ? graph : graph_new(NULL), .own_graph = !graph,
				  .dependencies = dependencies, .data = data, .count = count, .mode = mode };
	if (!start.graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = capture_begin(stream, &start);
	if (result && start.own_graph)
		graph_free(start.graph);
	return result;
}

CUresult graph_capture_update(CUstream stream, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
			      size_t count, unsigned flags)
{
	capture_info_t info;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		return CUDA_ERROR_INVALID_VALUE;
	/* capture_update refuses a stream that does not capture. */
	if (!capture_info(stream, &info) && info.status == CU_STREAM_CAPTURE_STATUS_ACTIVE &&
	    !all_of_graph(info.graph, dependencies, count))
		return CUDA_ERROR_INVALID_VALUE;
	return capture_update(stream, dependencies, data, count, flags);
}
