/* SPDX-License-Identifier: BSD-3-Clause */
/* A running launch of an executable graph: graph_launch.c creates it, graph_run.c runs it. */
#ifndef SOFTGPU_GRAPH_RUN_H
#define SOFTGPU_GRAPH_RUN_H

#include "cuda_remote/softgpu/driver/stream/event.h"
#include "cuda_remote/softgpu/driver/graph/graph_exec.h"

typedef struct graph_launch {
	command_t command;
	CUgraphExec exec; /* a reference */
	CUgraph graph;    /* a reference: the clone at the time of the launch */
	CUcontext context;
	CUresult fault;   /* atomic; the first fault: later nodes are skipped */
	bool by_priority;
	uint32_t event_count;
	event_in_graph_t events[]; /* by the nodes' event_slot */
} graph_launch_t;

/* Does the work of a node. False: the node has to wait; call again later with the same *progress. */
bool graph_node_run(graph_launch_t *launch, CUgraphNode node, unsigned *progress);

/*
 * Runs one graph, the launch's or a graph below it, in this thread and its helpers. Returns when all nodes are done.
 */
void graph_run_one(graph_launch_t *launch, CUgraph graph);

/* Records a node's fault in its context; the launch's other nodes are skipped. */
void graph_fault(graph_launch_t *launch, CUcontext context, CUresult fault);

#endif
