/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executable graphs in the worker. The client sends the graph once; the worker builds it in its driver and instantiates it.
 * Where the client's graph has host memory or a host function, the worker's has a host function that asks the client
 * (hostfn.c): before a copy to the device, which reads memory of the worker, or after a copy to the host, which writes it.
 *
 *	arrive.c       what arrives for each type of node
 *	build.c        builds a graph
 *	host.c         host functions and host memory
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
	bool disabled;           /* only of types that the driver disables */
	struct host_place *host; /* of a host function, or of a copy's memory; NULL */
};

struct graph {
	CUgraph graph;
	CUgraphExec exec;
	uint32_t n, room;
	struct graph_node *node;
	struct host_place *hosts; /* until the driver has them, which frees them after the last launch */
	uint64_t launches;
	CUuserObject keeper;      /* of the driver's graph: frees the hosts; NULL: none */
	struct conditionals *conditionals; /* while it is built; NULL: none */
	uint64_t lender;          /* handle of the conditionals whose graph this is; 0: the graph is its own */
};

/* ---- arrive.c ---- */

/* A node as it arrives. kernelParams and the copies' memory are of the worker. */
struct arrived {
	struct rc_wire_node wire;
	CUgraphNodeParams params;
	struct host_version *host; /* NULL: none, or the node's place has it */
	enum rc_graph_copy kind;
	CUcontext context;
	uint32_t set; /* attributes of a kernel */
	const uint8_t *values;
	void *temporary; /* of params: pointers to a kernel's parameters, a list; freed after use */
};

/* Takes a node that holds no graph; wire is there. The caller frees node->temporary and node->host. */
CUresult graph_take_node(struct server_call *call, struct arrived *node);

/* What the driver calls for the client's part of the node. */
CUhostFn graph_host_function(const struct arrived *node);

/* ---- build.c ---- */

bool graph_can_be_disabled(CUgraphNodeType type);
/* Takes a graph from the call and builds it in graph->graph. */
CUresult graph_take(struct server_call *call, struct graph *graph);

/* ---- host.c ---- */

/* read: the client sends the bytes; else it gets them, if there are any. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult host_version_new(uint64_t function, uint64_t bytes, bool read, struct host_version **made);
/* NULL: none. */
void host_version_free(struct host_version *version);
void *host_version_memory(struct host_version *version);
/* For the driver; the argument is the version. The second: the node is disabled. */
void host_run(void *version);
void host_skip(void *version);
/* Adds a place with its first version to a list. */
CUresult host_place_new(struct host_place **list, struct host_version *version, struct host_place **made);
/* How many launches the executable graph had when it got the place. */
void host_place_born(struct host_place *place, uint64_t launches);
/* Gives the place a version after so many launches. replaced: further launches do not use the one before. */
void host_place_change(struct host_place *place, struct host_version *version, uint64_t launches, bool replaced);
/* The graph keeps them: the driver frees them when graph, executable graphs and launches have ended. *keeper: set
 * unless there are none. */
CUresult host_places_keep(CUgraph graph, struct host_place **list, CUuserObject *keeper);
/* Frees them. */
void host_places_drop(struct host_place **list);

/* ---- conditional.c ---- */

struct conditionals;
struct conditionals *graph_conditionals(uint64_t handle);
/* Sets graph->graph to a graph of the driver that has the handles: a copy, or, if the driver does not copy it, the
 * graph itself, unless another executable graph has it. */
CUresult graph_conditionals_copy(struct conditionals *from, uint64_t handle, struct graph *graph);
/* The executable graph has ended: ends its graph, or takes the nodes out of it and returns it to the conditionals
 * that lent it. */
void graph_conditionals_return(struct graph *graph);
/* True if this number is one of the handles. */
bool graph_conditionals_have(const struct conditionals *conditionals, uint64_t number);

#endif
