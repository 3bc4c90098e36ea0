/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executable graphs. Each holds a clone of the graph it was made from. A launch is one command of its stream; the
 * thread that runs it runs nodes whose dependencies are done, and asks for the help of other workers while there is
 * more than one such node. A node with a graph below it runs that graph in the same way. Launches of one executable
 * graph follow each other. An update while launches are under way makes a new clone: they go on with the one they began
 * with.
 */
#ifndef SOFTGPU_GRAPH_EXEC_H
#define SOFTGPU_GRAPH_EXEC_H

#include "cuda_remote/softgpu/driver/graph/graph.h"

#define GRAPH_HELPERS 15 /* most threads beside the launch's own that run one launch's nodes */

struct CUgraphExec_st {
	handle_t handle;
	pthread_mutex_t lock;
	CUgraph graph;      /* the clone; replaced by updates while launches use it */
	CUgraph source;     /* what it was made from; only ever compared, as it may be gone */
	uint64_t source_id;
	unsigned long long flags;
	uint32_t event_nodes;
	bool host_nodes;    /* the program's own functions: only a worker runs a launch */
	unsigned helpers;   /* threads that its widest place keeps busy, less one */
	unsigned references; /* atomic: the handle, launches, helpers */
	unsigned busy;       /* atomic; bit i: helper i runs, or is about to */
	uint32_t leaving; /* atomic: helpers that have no more to run, and whose bits will be gone in a moment */
	pthread_mutex_t short_lock;
	struct graph_run *first_short; /* under short_lock: runs that found no helper, for the next one that has done */
	/* The last launch: the next one waits for it. A reference to the stream. */
	CUstream last;
	uint64_t last_sequence;
	/* Streams without a handle in which helpers run, of context helping_id. */
	CUcontext helping;
	uint64_t helping_id;
	CUstream helper[GRAPH_HELPERS]; /* those there are come first */
};

CUresult graph_exec_new(CUgraph graph, unsigned long long flags, CUDA_GRAPH_INSTANTIATE_PARAMS *told,
			CUgraphExec *exec);

/* Numbers the clone's nodes and counts what a launch must know before it begins. With exec's lock held. */
void graph_exec_prepare(CUgraphExec exec);

/*
 * A clone of graph in place of the whole (at is NULL) or of a child node's graph, if it may be: with exec's lock held,
 * and for a child on a clone that no launch uses. CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, and why.
 */
CUresult graph_exec_replace(CUgraphExec exec, CUgraphNode at, CUgraph graph, CUgraphExecUpdateResultInfo *info);

/*
 * The node that stands for one of the source graph, in a clone that may be changed; exec's lock is held if it is found.
 * CUDA_ERROR_INVALID_VALUE.
 */
CUresult graph_exec_lock_node(CUgraphExec exec, CUgraphNode original, CUgraphNode *node);

/* cuGraphExecNodeSetParams of all kinds but child graphs. */
CUresult graph_exec_change(CUgraphExec exec, CUgraphNode original, CUgraphNodeParams *params);

/* A clone that no launch uses: exec's own, or a new one in its place. With exec's lock held. */
CUresult graph_exec_own(CUgraphExec exec);

/* cuGraphLaunch: as a child graph where the stream captures. */
CUresult graph_launch(CUgraphExec exec, CUstream stream);

void graph_exec_release(CUgraphExec exec);
void graph_release(CUgraph clone);

#endif
