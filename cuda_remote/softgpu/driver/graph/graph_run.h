/* SPDX-License-Identifier: BSD-3-Clause */
/* One launch of an executable graph while it runs: what graph_launch.c hands to graph_run.c. */
#ifndef SOFTGPU_GRAPH_RUN_H
#define SOFTGPU_GRAPH_RUN_H

#include "cuda_remote/softgpu/driver/stream/event.h"
#include "cuda_remote/softgpu/driver/graph/graph_exec.h"

typedef struct graph_launch {
	command_t command;
	CUgraphExec exec; /* a reference */
	CUgraph graph;    /* a reference to the clone of that time */
	CUcontext context;
	CUresult fault;   /* atomic: the first one; what comes after is left out */
	bool by_priority;
	uint32_t event_count;
	event_in_graph_t events[]; /* by the nodes' event_slot */
} graph_launch_t;

/* Does what one node does; false: it has to wait, and is to be tried again, with *progress as it was left. */
bool graph_node_run(graph_launch_t *launch, CUgraphNode node, unsigned *progress);

/*
 * Runs one graph, that of the launch or one below it, in this thread and its helpers'; returns when all nodes are done.
 */
void graph_run_one(graph_launch_t *launch, CUgraph graph);

/* A node's fault: it stays with the context, and the launch's other nodes are left out. */
void graph_fault(graph_launch_t *launch, CUcontext context, CUresult fault);

#endif
