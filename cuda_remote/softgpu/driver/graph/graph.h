/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs: nodes with parameters, and the edges between them. An executable graph (graph_exec.h) holds a clone of the
 * graph it was made from, a child graph node and a conditional node hold the graphs below them.
 *
 * As CUDA says ("graph objects are not internally synchronized"), calls on one graph may not run at the same time;
 * calls on different graphs may. Nothing here waits.
 */
#ifndef SOFTGPU_GRAPH_H
#define SOFTGPU_GRAPH_H

#include "cuda_remote/softgpu/driver/module/launch_shape.h"

/* One end of an edge. */
typedef struct graph_edge {
	CUgraphNode node;
	CUgraphEdgeData data;
} graph_edge_t;

/* In the order they were added, which cuGraphExecUpdate pairs nodes by. */
typedef struct graph_edges {
	graph_edge_t *at;
	uint32_t count, room;
} graph_edges_t;

/* What a kernel node launches, beside the program's own view of it in params.kernel. */
typedef struct graph_kernel {
	CUfunction function;  /* only if graph_kernel_loaded: its module may have been unloaded since */
	uint64_t function_id;
	uint32_t parameters;  /* how many, and the bytes of their block */
	size_t bytes;
	launch_shape_t shape;
	uint32_t set; /* bit i: attribute i of CUlaunchAttributeID was given */
	CUlaunchAttributeValue *values; /* GRAPH_ATTRIBUTES of them; NULL while none was given */
	void **pointers;                /* to the parameters, in one allocation with them */
	unsigned char *block;           /* the parameter block, 16-byte aligned */
} graph_kernel_t;

#define GRAPH_ATTRIBUTES 32

static inline bool graph_kernel_loaded(const graph_kernel_t *kernel)
{
	return handle_valid(kernel->function, HANDLE_FUNCTION) && kernel->function->id == kernel->function_id;
}

struct graph_memory;      /* graph_allocation.h */
struct graph_conditional;

struct CUgraphNode_st {
	handle_t handle;
	CUgraph graph;
	CUgraphNode previous, next; /* of the graph's, in order of creation */
	uint64_t id, origin;        /* never used twice; origin: of the node it was cloned from, or 0 */
	graph_edges_t before, after;
	CUgraphNodeParams params;   /* pointers in it are the node's own; conditional.phGraph_out its bodies */
	uint64_t named[2];          /* numbers of the event, or of the arrays copied from and to, that params name */
	graph_kernel_t *kernel;          /* CU_GRAPH_NODE_TYPE_KERNEL */
	struct graph_memory *memory;     /* CU_GRAPH_NODE_TYPE_MEM_ALLOC and _FREE; a reference */
	struct graph_conditional *value; /* CU_GRAPH_NODE_TYPE_CONDITIONAL; a reference */
	/* Of the executable graph's clone: */
	uint32_t index;      /* in its graph's order */
	uint32_t event_slot; /* among the executable graph's event nodes */
	bool disabled;
};

/* A conditional handle: the device address of its value (softgpu_conditional_t of engine.h). */
struct graph_conditional {
	unsigned references; /* atomic: graphs and nodes */
	CUcontext context;
	uint64_t address; /* its memory goes with the last reference */
	uint32_t default_value;
	bool assign_default;
};

typedef struct graph_handle {
	struct graph_handle *next;
	struct graph_conditional *value;
} graph_handle_t;

typedef struct graph_object {
	struct graph_object *next;
	CUuserObject object;
	unsigned count; /* references that the graph holds */
} graph_object_t;

struct CUgraph_st {
	handle_t handle;
	uint64_t id, origin;
	CUgraphNode owner;       /* whose child or body this is; NULL: the program's, or an executable graph's */
	CUgraphNode first, last;
	uint32_t count;
	bool capturing;          /* a stream is captured into it; under the captures' lock */
	graph_handle_t *conditionals;
	graph_object_t *objects;
	unsigned executables;    /* atomic: that were made from it and live */
	uint32_t references;     /* atomic; of an executable graph's clone: it, and launches under way */
};

/* An empty graph. NULL: no memory. */
CUgraph graph_new(CUgraphNode owner);
/* With all nodes and what they hold. */
void graph_free(CUgraph graph);

/*
 * A copy of nodes, edges, conditional handles and references to user objects, and of the graphs below. exact: nodes
 * keep the origin they have (a copy of a copy stands for the first one's original).
 */
CUresult graph_clone(CUgraph from, bool exact, CUgraph *to);

/* From now on no handle of the program's means it, its nodes or the graphs below: it is an executable graph's. */
void graph_hide(CUgraph graph);

/*
 * Adds a node with these parameters and dependencies (data may be NULL: plain edges). What the node makes itself (an
 * address, bodies) is put out in params. CUDA_ERROR_INVALID_VALUE: a wrong parameter or dependency.
 */
CUresult graph_add(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
		   CUgraphNodeParams *params, CUgraphNode *node);

/* Takes a node out of its graph, with its edges. */
void graph_node_free(CUgraphNode node);

/* An edge more. CUDA_ERROR_INVALID_VALUE: not of one graph, there already, or data that CUDA does not know. */
CUresult graph_connect(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data);

/* The node that stands for the one with this id in a clone, or in a graph below it; NULL. */
CUgraphNode graph_find(CUgraph graph, uint64_t origin);

/* The graphs that a node holds: a child, or the bodies of a conditional. */
CUgraph *graph_below(CUgraphNode node, unsigned *count);

/* True if a node of this type is in the graph, or (deep) in a graph below it. */
bool graph_has(CUgraph graph, CUgraphNodeType type, bool deep);

/* True while a stream is captured into the graph or one below it: nobody may take it away. */
bool graph_capturing(CUgraph graph);

static inline bool graph_has_memory(CUgraph graph)
{
	return graph_has(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, true) ||
	       graph_has(graph, CU_GRAPH_NODE_TYPE_MEM_FREE, true);
}

/* True if the edges form a circle. */
bool graph_circular(CUgraph graph);

/* ---- parameters (graph_params.c) ---- */

/*
 * Checks parameters and gives the node its own copy of them; those it had before are dropped, if this succeeds. Type
 * and what cannot be changed afterwards are the caller's to check.
 */
CUresult graph_params_take(CUgraphNode node, CUgraphNodeParams *given);
CUresult graph_params_clone(CUgraphNode to, CUgraphNode from, bool exact);
void graph_params_drop(CUgraphNode node);

/*
 * What the node names and does not hold is still there: the kernel, the event, the arrays, the memory.
 * CUDA_ERROR_INVALID_HANDLE; CUDA_ERROR_CONTEXT_IS_DESTROYED: memory that went with its context.
 */
CUresult graph_params_there(CUgraphNode node);

/* Attributes of a kernel node. CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE. */
CUresult graph_attribute_set(CUgraphNode node, CUlaunchAttributeID attribute, const CUlaunchAttributeValue *value);
CUresult graph_attribute_get(CUgraphNode node, CUlaunchAttributeID attribute, CUlaunchAttributeValue *value);

/* ---- conditional handles (graph_conditional.c) ---- */

/* The value that a handle of this graph, or of a graph it is below of, stands for; NULL. */
struct graph_conditional *graph_conditional_find(CUgraph graph, CUgraphConditionalHandle handle);
/* True if a node of the graph, or of one below, reads the value. */
bool graph_conditional_bound(CUgraph graph, const struct graph_conditional *value);
void graph_conditional_hold(struct graph_conditional *value);
void graph_conditional_release(struct graph_conditional *value);
CUresult graph_conditional_list(CUgraph graph, struct graph_conditional *value);

/* ---- user objects (user_object.c) ---- */

/* Gives a graph the references that another one holds. */
CUresult graph_objects_clone(CUgraph to, CUgraph from);
void graph_objects_release(CUgraph graph);

#endif
