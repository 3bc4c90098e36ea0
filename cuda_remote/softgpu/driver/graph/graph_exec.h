/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executable graphs. Each holds a clone of the graph that it was made from. A launch is one command of its stream. The
 * thread that runs the command runs nodes whose dependencies are complete; while there are several such nodes, other
 * worker threads help. A node with a graph below it runs that graph in the same way. Launches of one executable graph
 * run one after another. An update during a launch makes a new clone; the launch continues with the old one.
 */
#ifndef SOFTGPU_GRAPH_EXEC_H
#define SOFTGPU_GRAPH_EXEC_H

#include "cuda_remote/softgpu/driver/graph/graph.h"

#define GRAPH_HELPERS 15 /* how many other threads may help with one launch */

struct CUgraphExec_st {
	handle_t handle;
	pthread_mutex_t lock;
	CUgraph graph;      /* the clone; replaced by updates while launches use it */
	CUgraph source;     /* the graph that it was made from; only compared, as it may have been destroyed */
	uint64_t source_id;
	unsigned long long flags;
	uint32_t event_nodes;
	bool host_nodes;    /* has nodes that call the program: only a worker thread may run a launch */
	unsigned helpers;   /* how many helpers its widest level of nodes keeps busy */
	unsigned references; /* atomic; held by the handle, launches and helpers */
	unsigned busy;       /* atomic; bit i: helper i runs or has been submitted */
	uint32_t leaving; /* atomic; helpers that have no more nodes to run and are about to clear their bits in busy */
	pthread_mutex_t short_lock;
	struct graph_run *first_short; /* under short_lock: runs that lack helpers; the next free helper takes one */
	/* The last launch, for which the next one waits; a reference to the stream. */
	CUstream last;
	uint64_t last_sequence;
	/* Streams without a handle in which helpers run, of context helping_id. */
	CUcontext helping;
	uint64_t helping_id;
	CUstream helper[GRAPH_HELPERS]; /* in use from index 0 on; NULL after the last */
};

CUresult graph_exec_new(CUgraph graph, unsigned long long flags, CUDA_GRAPH_INSTANTIATE_PARAMS *told,
			CUgraphExec *exec);

/* Numbers the clone's nodes, and counts event nodes and helpers for the launches. With exec's lock held. */
void graph_exec_prepare(CUgraphExec exec);

/*
 * Replaces the whole clone (at is NULL) or the graph of child node at by a clone of graph. The lock of exec is held;
 * for a child, no launch uses the clone. CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: graph differs too much; the reason is in
 * info.
 */
CUresult graph_exec_replace(CUgraphExec exec, CUgraphNode at, CUgraph graph, CUgraphExecUpdateResultInfo *info);

/*
 * Outputs the clone's node for a node of the source graph, in a clone that no launch uses. On success exec's lock is
 * held. CUDA_ERROR_INVALID_VALUE: not found.
 */
CUresult graph_exec_lock_node(CUgraphExec exec, CUgraphNode original, CUgraphNode *node);

/* cuGraphExecNodeSetParams for all types of node except child graphs. */
CUresult graph_exec_change(CUgraphExec exec, CUgraphNode original, CUgraphNodeParams *params);

/* Makes sure that no launch uses exec's clone: replaces the clone by a copy if necessary. With exec's lock held. */
CUresult graph_exec_own(CUgraphExec exec);

/* cuGraphLaunch. If the stream captures, adds a child graph node instead. */
CUresult graph_launch(CUgraphExec exec, CUstream stream);

void graph_exec_release(CUgraphExec exec);
void graph_release(CUgraph clone);

#endif
