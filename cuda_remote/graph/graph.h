/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs: nodes with parameters, and the edges between them. An executable graph (graph_exec.h) holds a clone of the
 * graph that it was made from. Child graph nodes and conditional nodes hold graphs of their own: the graphs below them.
 *
 * As in CUDA ("graph objects are not internally synchronized"), two threads must not use one graph at the same time.
 * Nothing here blocks.
 */
#ifndef RC_GRAPH_H
#define RC_GRAPH_H

#include "cuda_remote/graph/driver.h"

/* One end of an edge. */
typedef struct graph_edge {
	CUgraphNode node;
	CUgraphEdgeData data;
} graph_edge_t;

/* In the order in which they were added; cuGraphExecUpdate pairs nodes by this order. */
typedef struct graph_edges {
	graph_edge_t *at;
	uint32_t count, room;
} graph_edges_t;

/* What a kernel node launches; params.kernel is the program's view of the same. */
typedef struct graph_kernel {
	CUfunction function;  /* valid only while graph_kernel_loaded: its module may have been unloaded */
	uint64_t function_id;
	uint32_t parameters;  /* number of parameters */
	size_t bytes;         /* of the parameter block */
	launch_shape_t shape;
	uint32_t set; /* bit i: attribute i of CUlaunchAttributeID was given */
	CUlaunchAttributeValue *values; /* GRAPH_ATTRIBUTES elements; NULL until an attribute is given */
	void **pointers;                /* to the parameters; block is in the same allocation */
	unsigned char *block;           /* the parameter block, 16-byte aligned */
} graph_kernel_t;

#define GRAPH_ATTRIBUTES 32

static inline bool graph_kernel_loaded(const graph_kernel_t *kernel)
{
	return graph_driver_function_there(kernel->function, kernel->function_id);
}

struct graph_conditional;

struct CUgraphNode_st {
	handle_t handle;
	CUgraph graph;
	CUgraphNode previous, next; /* in the graph's list, in order of creation */
	uint64_t id, origin;        /* never used twice; origin: id of the node that this was cloned from, or 0 */
	graph_edges_t before, after;
	CUgraphNodeParams params;   /* pointers are to the node's own copies; conditional.phGraph_out: its bodies */
	uint64_t named[2];          /* ids of the event, or of source and destination array, that params refer to */
	graph_kernel_t *kernel;          /* CU_GRAPH_NODE_TYPE_KERNEL */
	graph_memory_t *memory;          /* CU_GRAPH_NODE_TYPE_MEM_ALLOC and _FREE; a reference */
	struct graph_conditional *value; /* CU_GRAPH_NODE_TYPE_CONDITIONAL; a reference */
	/* Only in the clone of an executable graph: */
	uint32_t index;      /* position in its graph */
	uint32_t event_slot; /* among the executable graph's event nodes */
	bool disabled;
	uint32_t number;     /* the driver's; its clones and what replaces it keep it */
};

/* A conditional handle. */
struct graph_conditional {
	unsigned references; /* atomic; held by graphs and nodes */
	CUcontext context;
	uint64_t handle; /* of the driver; freed with the last reference */
	void *part;      /* the driver's */
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
	uint64_t count; /* references that the graph holds */
} graph_object_t;

struct CUgraph_st {
	handle_t handle;
	uint64_t id, origin;
	CUgraphNode owner;       /* the node that this is child or body of; NULL: a graph of the program or an exec */
	CUgraphNode first, last;
	uint32_t count;
	bool capturing;          /* a stream is captured into it; under the captures' lock */
	graph_handle_t *conditionals;
	graph_object_t *objects;
	unsigned executables;    /* atomic; live executable graphs made from it */
	uint32_t references;     /* atomic; of an executable graph's clone: held by the exec and by running launches */
};

/* An empty graph. NULL: no memory. */
CUgraph graph_new(CUgraphNode owner);
/* Frees a graph with all its nodes and the graphs below it. */
void graph_free(CUgraph graph);

/*
 * Copies a graph: nodes, edges, conditional handles, references to user objects, and the graphs below. exact: the
 * copied nodes keep their origin, so that a copy of a clone refers to the nodes of the original.
 */
CUresult graph_clone(CUgraph from, bool exact, CUgraph *to);

/* Retires the handles of a graph, its nodes and the graphs below: it becomes the clone of an executable graph. */
void graph_hide(CUgraph graph);

/*
 * Adds a node with these parameters and dependencies (data may be NULL: plain edges). Outputs of the node (an address,
 * bodies) are written to params. CUDA_ERROR_INVALID_VALUE: invalid parameter or dependency.
 */
CUresult graph_add(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
		   CUgraphNodeParams *params, CUgraphNode *node);

/* Removes a node and its edges from its graph, and frees it. */
void graph_node_free(CUgraphNode node);

/* Moves a node to the end of another graph's list. The caller adds and removes the edges that this makes necessary. */
void graph_node_move(CUgraphNode node, CUgraph to);
/* Removes all edges from one node to another. */
void graph_disconnect(CUgraphNode from, CUgraphNode to);

/* Adds an edge. CUDA_ERROR_INVALID_VALUE: nodes of different graphs, an existing edge, or invalid data. */
CUresult graph_connect(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data);
/*
 * If "to", a kernel, depends on the kernel "from" and on nothing else, by a plain edge, the edge becomes a programmatic one, as
 * CUDA captures a launch with programmatic stream serialization. Otherwise, or if from is NULL, does nothing.
 */
void graph_edge_overlap(CUgraphNode from, CUgraphNode to);

/* The node of a clone, or of a graph below it, that was cloned from the node with this id; NULL: none. */
CUgraphNode graph_find(CUgraph graph, uint64_t origin);

/* The graphs below a node: a child graph, or the bodies of a conditional. */
CUgraph *graph_below(CUgraphNode node, unsigned *count);

/* Calls visit for each node of the graph and of the graphs below it, until a call fails. */
CUresult graph_visit(CUgraph graph, CUresult (*visit)(CUgraphNode node, void *with), void *with);

/* True if the graph, or with deep a graph below it, has a node of this type. */
bool graph_has(CUgraph graph, CUgraphNodeType type, bool deep);

/* True while a stream is captured into the graph or a graph below it. Such a graph must not be moved or destroyed. */
bool graph_capturing(CUgraph graph);

static inline bool graph_has_memory(CUgraph graph)
{
	return graph_has(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, true) ||
	       graph_has(graph, CU_GRAPH_NODE_TYPE_MEM_FREE, true);
}

/* True if the edges form a cycle. */
bool graph_circular(CUgraph graph);

/* ---- parameters (graph_params_copy.c) ---- */

/*
 * Checks parameters and gives the node its own copy of them, in place of those it had. The caller has checked the type,
 * and that the parameters may change.
 */
CUresult graph_params_take(CUgraphNode node, CUgraphNodeParams *given);
CUresult graph_params_clone(CUgraphNode to, CUgraphNode from, bool exact);
void graph_params_drop(CUgraphNode node);
/* Exchanges what graph_params_take and graph_params_clone set. */
void graph_params_swap(CUgraphNode one, CUgraphNode other);

/*
 * Checks that the objects which the node refers to still exist: kernel, event, arrays, memory.
 * CUDA_ERROR_INVALID_HANDLE; CUDA_ERROR_CONTEXT_IS_DESTROYED: the memory was freed with its context.
 */
CUresult graph_params_there(CUgraphNode node);

/* Attributes of a kernel node. CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE. */
CUresult graph_attribute_set(CUgraphNode node, CUlaunchAttributeID attribute, const CUlaunchAttributeValue *value);
/* Sets those attributes of a captured launch that nodes and edges have; the others are dropped. last: capture_last's result
 * before the launch. */
CUresult graph_attributes_take(CUgraphNode node, CUgraphNode last, const CUlaunchAttribute *attributes, unsigned count);
CUresult graph_attribute_get(CUgraphNode node, CUlaunchAttributeID attribute, CUlaunchAttributeValue *value);

/* ---- conditional handles (graph_conditional.c) ---- */

/* The value behind a handle of this graph, or of a graph above it; NULL: not found. */
struct graph_conditional *graph_conditional_find(CUgraph graph, CUgraphConditionalHandle handle);
/* True if a node of the graph, or of one below, reads the value. */
bool graph_conditional_bound(CUgraph graph, const struct graph_conditional *value);
void graph_conditional_hold(struct graph_conditional *value);
void graph_conditional_release(struct graph_conditional *value);
CUresult graph_conditional_list(CUgraph graph, struct graph_conditional *value);

/* ---- user objects (user_object.c) ---- */

/* Adds the references to user objects that graph from holds to graph to. */
CUresult graph_objects_clone(CUgraph to, CUgraph from);
void graph_objects_release(CUgraph graph);

#endif
