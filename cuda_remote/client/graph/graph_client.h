/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs and captures in the client. The model is cuda_remote/graph; here is what it needs of this driver (graph/driver.h):
 *
 *	graph_driver.c    how handles are looked up, and parameters are checked
 *	graph_allocation.c  memory of allocation nodes
 *	conditional.c     conditional handles
 *	graph_send.c      executable graphs: sent once, changed node by node or as a whole, launched
 *	graph_spread.c    executable graphs with nodes of several servers
 *	graph_host.c      host functions and host memory of graphs, which the worker asks for while a graph runs
 *	streams.c         the streams of captures
 *	capture_calls.c   what calls do in a capturing stream
 */
#ifndef RC_GRAPH_CLIENT_H
#define RC_GRAPH_CLIENT_H

#include "cuda_remote/client/session.h"
#include "cuda_remote/graph/graph_exec.h"

/* ---- graph_driver.c ---- */

/* A side of a copy: an array, or an address. host: of host memory; the address is not for the worker. */
struct rc_graph_side {
	bool host;
	struct rc_wire_side wire;
};
/* CUDA_ERROR_INVALID_VALUE: the copy leaves its memory. */
CUresult rc_graph_copy_sides(const CUDA_MEMCPY3D *copy, struct rc_graph_side *to, struct rc_graph_side *from);
/* If the session's worker has mapped the host memory of a side, the worker can use it: the side is no host's any more. */
void rc_graph_side_map(struct rc_graph_side *side, const CUDA_MEMCPY3D *copy, const struct rc_session *session);

/* ---- graph_allocation.c ---- */

/* Before and after a launch of a graph with memory nodes is sent. CUDA_ERROR_INVALID_VALUE: memory of the graph is still
 * allocated. If the first succeeds, the second must follow. */
CUresult rc_graph_memory_launch(CUgraphExec exec);
void rc_graph_memory_launched(CUgraphExec exec, bool sent);

/* ---- conditional.c ---- */

/* Outputs the handle of what has the graph's conditional handles on the server; 0: the graph has none. CUDA_ERROR_NOT_SUPPORTED:
 * they were made in several graphs. */
CUresult rc_graph_conditionals(CUgraph graph, const struct rc_session *session, uint64_t *handle);

/* ---- graph_host.c ---- */

struct rc_graph_host;

/* The host functions and the host memory of an executable graph, newest first. */
typedef struct rc_graph_hosts {
	struct rc_graph_host *first;
} rc_graph_hosts_t;

/* Adds a function of the program. Outputs the id that the worker will name. */
CUresult rc_graph_host_function(rc_graph_hosts_t *hosts, struct rc_session *session, uint32_t node, CUhostFn function,
				void *argument, uint64_t *id);
/* Adds a copy between two places on the host, or one (kind UP or DOWN) that the worker completes. */
CUresult rc_graph_host_copy(rc_graph_hosts_t *hosts, struct rc_session *session, uint32_t node,
			    const CUDA_MEMCPY3D *copy, const struct rc_graph_side *to, const struct rc_graph_side *from,
			    bool disabled, uint64_t *id);
/* A launch will ask for each of them once, except for disabled ones. The second: the launch was not sent. */
void rc_graph_hosts_launch(rc_graph_hosts_t *hosts);
void rc_graph_hosts_not_launched(rc_graph_hosts_t *hosts);
/* The graph launches the node's older entries no more: all but the newest. all: no entry of the graph any more. */
void rc_graph_hosts_retire(rc_graph_hosts_t *hosts, uint32_t node);
/* The same for an entry and all that are older. */
void rc_graph_hosts_retire_from(rc_graph_hosts_t *hosts, struct rc_graph_host *newest);
/* Removes those that are newer than `before`: the worker has refused their node. */
void rc_graph_hosts_undo(rc_graph_hosts_t *hosts, const struct rc_graph_host *before);
void rc_graph_hosts_end(rc_graph_hosts_t *hosts);

/* ---- graph_send.c ---- */

/* True if the worker needs not be told about the difference. */
bool rc_graph_nodes_same(CUgraphNode node, CUgraphNode other);

/* ---- streams.c ---- */

/* The stream's record for captures is created when first needed. */
CUresult rc_capture_stream(CUstream given, CUstream *stream);
/* The handle by which the program names the stream. */
uint64_t rc_capture_stream_handle(CUstream stream);

#endif
