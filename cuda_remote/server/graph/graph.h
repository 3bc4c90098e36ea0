/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executable graphs in the worker. The client sends the graph once; the worker builds it in its driver and instantiates it.
 * Where the client's graph has host memory or a host function, the worker's has a host function that asks the client
 * (hostfn.c): before a copy to the device, which reads memory of the worker, or after a copy to the host, which writes it.
 *
 *	arrive.c       what arrives for each type of node
 *	build.c        builds a graph
 *	conditional.c  conditional handles
 *	calls.c        instantiation, updates, launches
 */
#ifndef RC_SERVER_GRAPH_H
#define RC_SERVER_GRAPH_H

#include "cuda_remote/server/internal.h"

/* A node of the client's graph. */
struct graph_node {
	CUgraphNode first, last; /* edges to the node end at first, edges from it begin at last */
	CUgraphNode work;        /* that an update changes; one of the two */
	CUgraphNodeType type;    /* of work */
	bool disabled;           /* when the graph arrived */
	struct server_host_node *host; /* of a host function, or of a copy's memory; NULL */
};

struct graph {
	CUgraph graph;
	CUgraphExec exec;
	uint32_t n, room;
	struct graph_node *node;
	struct server_host_node *hosts; /* freed with the executable graph, after its last launch */
	struct conditionals *conditionals; /* while it is built; NULL: none */
};

/* ---- arrive.c ---- */

/* A node as it arrives. kernelParams and the copies' memory are of the worker. */
struct arrived {
	struct rc_wire_node wire;
	CUgraphNodeParams params;
	struct server_host_node *host;
	enum rc_graph_copy kind;
	CUcontext context;
	uint32_t set; /* attributes of a kernel */
	const uint8_t *values;
	void **pointers; /* to a kernel's parameters; freed after use */
};

/* Takes a node that holds no graph; wire is there. The caller frees node->pointers. */
CUresult graph_take_node(struct server_call *call, struct graph *graph, struct arrived *node);

/* ---- build.c ---- */

/* Takes a graph from the call and builds it in graph->graph. */
CUresult graph_take(struct server_call *call, struct graph *graph);

/* ---- conditional.c ---- */

struct conditionals;
struct conditionals *graph_conditionals(uint64_t handle);
/* A new graph of the driver that has the handles. */
CUresult graph_conditionals_copy(const struct conditionals *from, CUgraph *graph);
/* True if this number is one of the handles. */
bool graph_conditionals_have(const struct conditionals *conditionals, uint64_t number);

#endif
