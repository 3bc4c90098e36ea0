/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launches of executable graphs: graph_launch.c creates a launch, graph_run.c runs it. A launch is one command of its
 * stream. The thread that runs the command runs nodes whose dependencies are complete; while there are several such
 * nodes, other worker threads help. A node with a graph below it runs that graph in the same way. Launches of one
 * executable graph run one after another.
 */
#ifndef SOFTGPU_GRAPH_RUN_H
#define SOFTGPU_GRAPH_RUN_H

#include "cuda_remote/softgpu/driver/stream/event.h"
#include "cuda_remote/graph/graph_exec.h"

#define GRAPH_HELPERS 15 /* how many other threads may help with one launch */

/* What an executable graph has for its launches; under its lock except as noted. */
struct graph_runner {
	uint32_t event_nodes;
	bool host_nodes;    /* has nodes that call the program: only a worker thread may run a launch */
	unsigned helpers;   /* how many helpers its widest level of nodes keeps busy */
	unsigned busy;      /* atomic; bit i: helper i runs or has been submitted */
	uint32_t leaving; /* atomic; helpers that have no more nodes to run and are about to clear their bits in busy */
	pthread_mutex_t short_lock;
	struct graph_run *first_short; /* under short_lock: runs that lack helpers; the next free helper takes one */
	/* The last launch, for which the next one waits; a reference to the stream. */
	CUstream last;
	uint64_t last_sequence;
	/* Streams without a handle and of no context in which helpers run; in use from index 0 on, NULL after the last. */
	CUstream helper[GRAPH_HELPERS];
};

typedef struct graph_launch {
	command_t command;
	CUgraphExec exec; /* a reference */
	CUgraph graph;    /* a reference: the clone at the time of the launch */
	CUcontext context;
	uint64_t newest;  /* id of the newest context at the launch: the nodes' contexts are not newer */
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
