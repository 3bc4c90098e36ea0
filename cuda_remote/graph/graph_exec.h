/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executable graphs. Each holds a clone of the graph that it was made from. How it is launched is the driver's matter
 * (driver.h). An update while a launch uses the clone makes a new clone; the launch continues with the old one.
 */
#ifndef RC_GRAPH_EXEC_H
#define RC_GRAPH_EXEC_H

#include "cuda_remote/graph/graph.h"

#include <pthread.h>

struct CUgraphExec_st {
	handle_t handle;
	pthread_mutex_t lock;
	CUgraph graph;      /* the clone; replaced by updates while launches use it */
	CUgraph source;     /* the graph that it was made from; only compared, as it may have been destroyed */
	uint64_t source_id;
	unsigned long long flags;
	unsigned references; /* atomic; held by the handle and by the driver's launches */
	struct graph_runner *run; /* the driver's own */
};

CUresult graph_exec_new(CUgraph graph, unsigned long long flags, CUDA_GRAPH_INSTANTIATE_PARAMS *told,
			CUgraphExec *exec);

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

/* Drops a reference to an executable graph, or to a clone. */
void graph_exec_release(CUgraphExec exec);
void graph_release(CUgraph clone);

#endif
