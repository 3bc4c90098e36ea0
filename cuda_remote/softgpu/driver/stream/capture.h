/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream capture: what a capturing stream is given becomes nodes of a graph instead of work. A capture begins in one
 * stream; a stream that waits for an event recorded in it takes part from then on. Rules and errors: cuda.h,
 * cuStreamBeginCapture and cuThreadExchangeStreamCaptureMode; CUDA C++ Programming Guide, "Creating a graph using
 * stream capture". A call that breaks the rules invalidates the capture, as its own error says.
 *
 * One lock guards all captures. Any thread may call anything here.
 */
#ifndef SOFTGPU_CAPTURE_H
#define SOFTGPU_CAPTURE_H

#include "cuda_remote/softgpu/driver/graph/graph.h"

/* True while any stream of the process captures: what everybody else looks at first. */
extern unsigned capture_count;
static inline bool capture_possible(void)
{
	/* Orders nothing: a stream's own thread knows what it captures, and others take the lock. */
	return __atomic_load_n(&capture_count, __ATOMIC_RELAXED);
}

/*
 * Work for a stream: captured says whether it became a node, which is put out (node may be NULL).
 * CUDA_ERROR_STREAM_CAPTURE_INVALIDATED; _IMPLICIT: the legacy stream while a blocking stream of its context captures;
 * or why there can be no such node.
 */
CUresult capture_add_slowly(CUstream stream, CUgraphNodeParams *params, CUgraphNode *node, bool *captured);
static inline CUresult capture_add(CUstream stream, CUgraphNodeParams *params, CUgraphNode *node, bool *captured)
{
	*captured = false;
	return capture_possible() ? capture_add_slowly(stream, params, node, captured) : CUDA_SUCCESS;
}

/*
 * The same for a copy. One that the caller waits for cannot be captured: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
 */
CUresult capture_copy(CUstream stream, const CUDA_MEMCPY3D *copy, bool synchronous, bool *captured);

/* True if the stream takes part in a capture, or is a legacy stream that may not be used because of one. */
bool capture_stream_busy(CUstream stream);

/* A call that waits for a stream, or asks it: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED or _IMPLICIT. */
CUresult capture_refuse_stream(CUstream stream);
/* A call that waits for all of a context, none of whose streams may capture. */
CUresult capture_refuse_context(CUcontext context);
/* A call that CUDA calls potentially unsafe, such as an allocation: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult capture_refuse_unsafe(void);
/* The start of such a call: enters the current context, then the same. */
CUresult capture_enter_unsafe(CUcontext *context);

/*
 * cuEventRecord and cuStreamWaitEvent. done: the call was captured (or failed); else it is ordinary work.
 * external: a node, instead of an edge.
 */
CUresult capture_record(CUstream stream, CUevent event, bool external, bool *done);
CUresult capture_wait(CUstream stream, CUevent event, bool external, bool *done);
/* The event was recorded outside of any capture, or is destroyed: it marks no capture any more. */
void capture_event_forget(CUevent event);
/* True if the event's last recording was captured: it can be neither queried nor waited for. */
bool capture_event(CUevent event);

/* The stream is destroyed: a capture that began in it ends and is lost, any other goes on without it. */
void capture_stream_destroyed(CUstream stream);

/* The calls. */
CUresult capture_begin(CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
		       size_t count, CUstreamCaptureMode mode);
/* graph may be NULL where the program gave the graph itself. */
CUresult capture_end(CUstream stream, CUgraph *graph);

typedef struct capture_info {
	CUstreamCaptureStatus status;
	uint64_t id;
	CUgraph graph;
	const CUgraphNode *dependencies;
	const CUgraphEdgeData *data;
	size_t count;
	bool lossy; /* some edge's data is not the default */
} capture_info_t;
CUresult capture_info(CUstream stream, capture_info_t *info);
CUresult capture_update(CUstream stream, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
			unsigned flags);

/* This thread's mode; the one before in *mode. */
void capture_mode_exchange(CUstreamCaptureMode *mode);

#endif
