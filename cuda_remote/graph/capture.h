/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream capture: work that a program submits to a capturing stream becomes nodes of a graph instead. A capture begins
 * in one stream; a stream that waits for an event recorded in the capture takes part from then on. Rules and errors:
 * cuda.h, cuStreamBeginCapture and cuThreadExchangeStreamCaptureMode; CUDA C++ Programming Guide, "Creating a graph
 * using stream capture". A call that breaks the rules invalidates the capture, and returns its own error.
 *
 * This unit knows which streams capture and which calls a capture forbids. How a graph is built is not its matter:
 * graph_capture.c begins each capture and passes the functions that build its graph.
 *
 * One lock guards all captures. Any thread may call anything here.
 */
#ifndef RC_CAPTURE_H
#define RC_CAPTURE_H

#include "cuda_remote/graph/driver.h"

/* True while any stream of the process captures. Calls test this before they take the lock. */
extern unsigned capture_count;
static inline bool capture_possible(void)
{
	/* Orders nothing: a stream's own thread knows what it captures, and others take the lock. */
	return __atomic_load_n(&capture_count, __ATOMIC_RELAXED);
}

/*
 * Work for a stream. If the stream captures, adds a node with these parameters to the graph, sets *captured, and
 * returns the node (node may be NULL); else the caller submits the work. CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
 * _IMPLICIT: the legacy stream, while a blocking stream of its context captures; or the error of adding the node.
 */
CUresult capture_add_slowly(CUstream stream, CUgraphNodeParams *params, CUgraphNode *node, bool *captured);
static inline CUresult capture_add(CUstream stream, CUgraphNodeParams *params, CUgraphNode *node, bool *captured)
{
	*captured = false;
	return capture_possible() ? capture_add_slowly(stream, params, node, captured) : CUDA_SUCCESS;
}

/*
 * The node that the stream captured last, if the stream's next node will depend on it only; else NULL. Only for comparisons: the
 * program may have destroyed the node.
 */
CUgraphNode capture_last(CUstream stream);

/* capture_add for a copy. A synchronous copy cannot be captured: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult capture_copy(CUstream stream, const CUDA_MEMCPY3D *copy, bool synchronous, bool *captured);

/* True if the stream takes part in a capture, or is a legacy stream that a capture forbids to use. */
bool capture_stream_busy(CUstream stream);

/* ---- calls that a capture forbids: each error invalidates the capture ---- */

/* A call that waits for a stream, or queries it: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED or _IMPLICIT. */
CUresult capture_refuse_stream(CUstream stream);
/* A call that waits for a whole context, none of whose streams may capture. */
CUresult capture_refuse_context(CUcontext context);
/* A call that CUDA calls potentially unsafe, such as an allocation: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult capture_refuse_unsafe(void);

/* ---- events: mark is the event's, NULL unless its last recording was captured ---- */

typedef struct capture_mark capture_mark_t;

/*
 * cuEventRecord and cuStreamWaitEvent. *done: the call was captured or has failed; else the caller does it.
 * external: becomes a node instead of an edge.
 */
CUresult capture_record(CUstream stream, CUevent event, capture_mark_t **mark, bool external, bool *done);
CUresult capture_wait(CUstream stream, CUevent event, capture_mark_t *const *mark, bool external, bool *done);
/* The event was recorded outside of any capture, or is destroyed: frees its mark. */
void capture_mark_forget(capture_mark_t **mark);
/* A call that queries or awaits an event: true, and the capture is invalid, if its last recording was captured. */
bool capture_mark_refuse(capture_mark_t **mark);

/* ---- beginning and end ---- */

/* How a capture builds its graph. Called with the captures' lock held. */
typedef struct capture_builder {
	/* Reserves the graph for one capture; false: a stream is being captured into it. */
	bool (*claim)(CUgraph graph);
	/* Ends that; drop: frees the graph too, which was made for a capture that failed. */
	void (*release)(CUgraph graph, bool drop);
	/* Adds a node that depends on count others. */
	CUresult (*add)(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
			CUgraphNodeParams *params, CUgraphNode *node);
	/* CUDA_ERROR_STREAM_CAPTURE_UNJOINED unless each of nodes is among last or comes before one of them. */
	CUresult (*check_joined)(CUgraph graph, const CUgraphNode *last, size_t last_count, const CUgraphNode *nodes,
				 size_t count);
} capture_builder_t;

typedef struct capture_start {
	const capture_builder_t *builder;
	CUgraph graph;
	bool own_graph; /* made for this capture; freed unless capture_end hands it out. Not if capture_begin fails. */
	const CUgraphNode *dependencies; /* nodes of graph that the first node depends on; data may be NULL */
	const CUgraphEdgeData *data;
	size_t count;
	CUstreamCaptureMode mode;
} capture_start_t;

/* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: the legacy stream; _ILLEGAL_STATE: stream or graph is in a capture. */
CUresult capture_begin(CUstream stream, const capture_start_t *start);
/* graph may be NULL if the program gave the graph itself. */
CUresult capture_end(CUstream stream, CUgraph *graph);
/* The stream is destroyed: a capture that began in it is lost; any other goes on without the stream. */
void capture_stream_destroyed(CUstream stream);

typedef struct capture_info {
	CUstreamCaptureStatus status;
	uint64_t id;
	CUgraph graph;
	const CUgraphNode *dependencies;
	const CUgraphEdgeData *data;
	size_t count;
	bool lossy; /* the data of some edge is not the default */
} capture_info_t;
CUresult capture_info(CUstream stream, capture_info_t *info);

/* cuStreamUpdateCaptureDependencies with a valid flag; dependencies are nodes of the capture's graph. */
CUresult capture_update(CUstream stream, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
			unsigned flags);

/* Sets this thread's mode to *mode; *mode becomes the one before. */
void capture_mode_exchange(CUstreamCaptureMode *mode);

#endif
