/* SPDX-License-Identifier: BSD-3-Clause */
/* What the launches of an executable graph need: numbers of its nodes, and how many threads can work on it. */
#include "cuda_remote/softgpu/driver/graph/graph_run.h"

#include <stdlib.h>

static unsigned widest(CUgraph graph);

/* Threads that a node can keep busy. */
static unsigned width_of(CUgraphNode node)
{
	unsigned count, most = 1;
	CUgraph *below = graph_below(node, &count);
	for (unsigned i = 0; i < count; i++) {
		unsigned width = widest(below[i]);
		most = width > most ? width : most;
	}
	return most;
}

/* The depth of each node: the length of the longest path to it. */
static void measure_depth(CUgraph graph, uint32_t *depth)
{
	bool changed = true;
	while (changed) {
		changed = false;
		for (CUgraphNode node = graph->first; node; node = node->next)
			for (uint32_t i = 0; i < node->before.count; i++) {
				uint32_t over = depth[node->before.at[i].node->index] + 1;
				if (depth[node->index] >= over)
					continue;
				depth[node->index] = over;
				changed = true;
			}
	}
}

/* The maximum number of threads that the nodes of one depth can keep busy. */
static unsigned widest(CUgraph graph)
{
	unsigned most = 1;
	uint32_t *depth = calloc(graph->count + 1, sizeof *depth), *width = calloc(graph->count + 1, sizeof *width);
	/* If there is no memory for the count, the graph runs in one thread. */
	if (depth && width) {
		measure_depth(graph, depth);
		for (CUgraphNode node = graph->first; node; node = node->next) {
			uint32_t *here = &width[depth[node->index]];
			*here += width_of(node);
			most = *here > most ? *here : most;
		}
	}
	free(depth);
	free(width);
	return most;
}

/* Numbers the nodes of the clone, and counts event nodes and helpers for the launches. */
static void number(struct graph_runner *run, CUgraph graph)
{
	uint32_t index = 0;
	for (CUgraphNode node = graph->first; node; node = node->next) {
		node->index = index++;
		if (node->params.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ||
		    node->params.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
			node->event_slot = run->event_nodes++;
		if (node->params.type == CU_GRAPH_NODE_TYPE_HOST)
			run->host_nodes = true;
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count; i++)
			number(run, below[i]);
	}
}

static void prepare(CUgraphExec exec)
{
	exec->run->event_nodes = 0;
	exec->run->host_nodes = false;
	number(exec->run, exec->graph);
	unsigned width = widest(exec->graph);
	exec->run->helpers = width <= GRAPH_HELPERS ? width - 1 : GRAPH_HELPERS;
}

CUresult graph_driver_instantiate(CUgraphExec exec)
{
	exec->run = calloc(1, sizeof *exec->run);
	if (!exec->run)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&exec->run->short_lock, NULL);
	prepare(exec);
	return CUDA_SUCCESS;
}

void graph_driver_exec_free(CUgraphExec exec)
{
	struct graph_runner *run = exec->run;
	if (run->last)
		queue_stream_release(run->last);
	for (unsigned i = 0; i < GRAPH_HELPERS; i++)
		if (run->helper[i])
			queue_stream_release(run->helper[i]);
	pthread_mutex_destroy(&run->short_lock);
	free(run);
}

/* A launch reads the nodes' parameters where they are. */
CUresult graph_driver_node_changed(CUgraphExec exec, CUgraphNode node)
{
	(void)exec;
	(void)node;
	return CUDA_SUCCESS;
}

CUresult graph_driver_replaced(CUgraphExec exec, CUgraph old, CUgraph now)
{
	(void)old;
	(void)now;
	prepare(exec);
	return CUDA_SUCCESS;
}
