/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executable graphs with nodes of several servers. Such a graph is cut into pieces: a piece is an executable graph of one server,
 * or one copy between two servers. A launch gives the pieces to streams of their own, which wait for each other as streams of a
 * program do, by events. The launching stream waits for the pieces behind which no other comes.
 */
#ifndef RC_GRAPH_SPREAD_H
#define RC_GRAPH_SPREAD_H

#include "cuda_remote/client/graph/graph_client.h"
#include "cuda_remote/client/session.h"

/* Where a node's work is done. */
struct rc_graph_place {
	struct rc_session *session; /* NULL: the node names no server, as an empty node or a host function */
	CUcontext context;          /* of that server; that of the memory, for copies and fills */
	bool across;                /* it copies from another server to this one, or a graph below it is of several servers */
};
struct rc_graph_place rc_graph_place(CUgraphNode node);
/* The same for all nodes of a graph together. */
struct rc_graph_place rc_graph_place_all(CUgraph graph);

struct rc_graph_spread;

/* Cuts the clone of the executable graph into pieces and instantiates them. CUDA_ERROR_NOT_SUPPORTED: a condition cannot be cut
 * off from kernels that may set it. */
CUresult rc_graph_spread_make(CUgraphExec exec, struct rc_graph_spread **spread);
/* Launches all pieces behind the earlier work of the stream and behind the earlier launch. */
CUresult rc_graph_spread_launch(struct rc_graph_spread *spread, CUstream stream);
/* A node has other parameters, or was enabled or disabled. CUDA_ERROR_INVALID_VALUE: they are of another server. */
CUresult rc_graph_spread_changed(struct rc_graph_spread *spread, CUgraphNode node);
/* The graph has taken the place of the clone, or of a graph below it: tells the pieces of all its nodes.
 * CUDA_ERROR_NOT_SUPPORTED: a conditional node has another handle. */
CUresult rc_graph_spread_replaced(struct rc_graph_spread *spread, CUgraph now);
/* Launches that were made complete. */
void rc_graph_spread_end(struct rc_graph_spread *spread);

#endif
