/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream captures: which streams take part, what their next node depends on, and which calls a capture forbids. */
#include "cuda_remote/graph/capture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The nodes that a stream's next node depends on, and the data of these edges. */
typedef struct frontier {
	CUgraphNode *nodes;
	CUgraphEdgeData *data;
	size_t count, room;
} frontier_t;

typedef struct capture_stream {
	struct capture_stream *next; /* of the capture's */
	struct capture *capture;
	CUstream stream;             /* a reference; NULL once it is destroyed */
	frontier_t at;
	CUgraphNode last; /* the node that the stream captured last, if its next node depends on it only; else NULL */
} capture_stream_t;

typedef struct capture {
	struct capture *next; /* of all */
	uint64_t id;
	const capture_builder_t *builder;
	CUgraph graph;
	bool own_graph;       /* made for the capture, not given by the program */
	bool invalid;
	CUstreamCaptureMode mode;
	uint64_t thread;      /* number of the thread that began it */
	capture_stream_t *streams, *origin;
} capture_t;

/* A place in a capture, held by the event that was recorded there. */
struct capture_mark {
	uint64_t id; /* of the capture, which may be over */
	frontier_t at;
};

unsigned capture_count;
static pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;
static capture_t *captures;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* Unlike pthread_self, no later thread has the number of one that has ended. */
static uint64_t thread_number(void)
{
	static uint64_t newest; /* atomic */
	static __thread uint64_t own;
	if (!own)
		own = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);
	return own;
}

static void frontier_free(frontier_t *at)
{
	free(at->nodes);
	free(at->data);
	*at = (frontier_t){ 0 };
}

static bool frontier_add(frontier_t *at, CUgraphNode node, const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;
	for (size_t i = 0; i < at->count; i++)
		if (at->nodes[i] == node && !memcmp(&at->data[i], data ? data : &plain, sizeof plain))
			return true;
	if (at->count == at->room) {
		size_t room = at->room ? 2 * at->room : 4;
		CUgraphNode *nodes = realloc(at->nodes, room * sizeof *nodes);
		if (nodes)
			at->nodes = nodes;
		CUgraphEdgeData *edges = nodes ? realloc(at->data, room * sizeof *edges) : NULL;
		if (!edges)
			return false;
		at->data = edges;
		at->room = room;
	}
	at->nodes[at->count] = node;
	at->data[at->count++] = data ? *data : plain;
	return true;
}

static bool frontier_join(frontier_t *at, const frontier_t *other)
{
	bool done = true;
	for (size_t i = 0; i < other->count && done; i++)
		done = frontier_add(at, other->nodes[i], &other->data[i]);
	return done;
}

/* The stream's next node depends on this node only. */
static bool frontier_set(frontier_t *at, CUgraphNode node)
{
	at->count = 0;
	return frontier_add(at, node, NULL);
}

static capture_stream_t *join(capture_t *capture, CUstream stream)
{
	capture_stream_t *part = calloc(1, sizeof *part);
	if (!part)
		return NULL;
	part->capture = capture;
	part->stream = stream;
	part->next = capture->streams;
	capture->streams = part;
	*graph_driver_stream_part(stream) = part;
	graph_driver_stream_hold(stream);
	return part;
}

static void leave(capture_stream_t *part)
{
	if (!part->stream)
		return;
	*graph_driver_stream_part(part->stream) = NULL;
	graph_driver_stream_release(part->stream);
	part->stream = NULL;
}

static CUresult invalidate(capture_t *capture, CUresult why)
{
	capture->invalid = true;
	return why;
}

/* Frees the capture, but not its graph. */
static void capture_free(capture_t *capture)
{
	capture_t **at = &captures;
	while (*at != capture)
		at = &(*at)->next;
	*at = capture->next;
	__atomic_store_n(&capture_count, capture_count - 1, __ATOMIC_RELAXED);
	while (capture->streams) {
		capture_stream_t *part = capture->streams;
		capture->streams = part->next;
		leave(part);
		frontier_free(&part->at);
		free(part);
	}
	free(capture);
}

static capture_t *find(uint64_t id)
{
	capture_t *capture = captures;
	while (capture && capture->id != id)
		capture = capture->next;
	return capture;
}

/* A capture with a blocking stream of this context, with which the legacy stream would synchronize. */
static capture_t *find_blocking(CUcontext context)
{
	for (capture_t *capture = captures; capture; capture = capture->next)
		for (capture_stream_t *part = capture->streams; part; part = part->next)
			if (part->stream && graph_driver_stream_context(part->stream) == context &&
			    graph_driver_stream_blocking(part->stream))
				return capture;
	return NULL;
}

/* The capture that a legacy stream, but no other, would synchronize with; NULL: none. */
static capture_t *blocking_of(CUstream stream)
{
	return graph_driver_stream_legacy(stream) ? find_blocking(graph_driver_stream_context(stream)) : NULL;
}

/* Outputs the stream's part in a valid capture; NULL: it takes part in none. */
static CUresult part_of(CUstream stream, capture_stream_t **part)
{
	*part = *graph_driver_stream_part(stream);
	if (*part)
		return (*part)->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
	capture_t *blocking = blocking_of(stream);
	return blocking ? invalidate(blocking, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

static CUresult add_node(capture_stream_t *part, CUgraphNodeParams *params, CUgraphNode *output)
{
	CUgraphNode node;
	capture_t *capture = part->capture;
	CUresult result = capture->builder->add(capture->graph, part->at.nodes, part->at.data, part->at.count,
						params, &node);
	if (!result && !frontier_set(&part->at, node))
		result = invalidate(capture, CUDA_ERROR_OUT_OF_MEMORY);
	part->last = result ? NULL : node;
	if (!result && output)
		*output = node;
	return result;
}

CUresult capture_copy(CUstream stream, const CUDA_MEMCPY3D *copy, bool synchronous, bool *captured)
{
	*captured = false;
	if (!capture_possible())
		return CUDA_SUCCESS;
	if (synchronous)
		return capture_refuse_stream(stream);
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEMCPY,
				   .memcpy = { .copyCtx = graph_driver_stream_context(stream), .copyParams = *copy } };
	return capture_add_slowly(stream, &node, NULL, captured);
}

CUresult capture_add_slowly(CUstream stream, CUgraphNodeParams *params, CUgraphNode *node, bool *captured)
{
	capture_stream_t *part;
	pthread_mutex_lock(&captures_lock);
	CUresult result = part_of(stream, &part);
	if (!result && part) {
		result = add_node(part, params, node);
		*captured = !result;
	}
	pthread_mutex_unlock(&captures_lock);
	return result;
}

CUgraphNode capture_last(CUstream stream)
{
	if (!capture_possible())
		return NULL;
	pthread_mutex_lock(&captures_lock);
	const capture_stream_t *part = *graph_driver_stream_part(stream);
	CUgraphNode last = part ? part->last : NULL;
	pthread_mutex_unlock(&captures_lock);
	return last;
}

bool capture_stream_busy(CUstream stream)
{
	if (!capture_possible())
		return false;
	pthread_mutex_lock(&captures_lock);
	bool busy = *graph_driver_stream_part(stream) || blocking_of(stream);
	pthread_mutex_unlock(&captures_lock);
	return busy;
}

CUresult capture_refuse_stream(CUstream stream)
{
	capture_stream_t *part;
	if (!capture_possible())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&captures_lock);
	CUresult result = part_of(stream, &part);
	if (part)
		result = invalidate(part->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	pthread_mutex_unlock(&captures_lock);
	return result;
}

CUresult capture_refuse_context(CUcontext context)
{
	CUresult result = CUDA_SUCCESS;
	if (!capture_possible())
		return result;
	pthread_mutex_lock(&captures_lock);
	for (capture_t *capture = captures; capture; capture = capture->next)
		for (capture_stream_t *part = capture->streams; part; part = part->next)
			if (part->stream && graph_driver_stream_context(part->stream) == context)
				result = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	pthread_mutex_unlock(&captures_lock);
	return result;
}

/* cuThreadExchangeStreamCaptureMode in cuda.h. */
static bool prohibits(const capture_t *capture)
{
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (capture->thread == thread_number())
		return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_refuse_unsafe(void)
{
	CUresult result = CUDA_SUCCESS;
	if (!capture_possible())
		return result;
	pthread_mutex_lock(&captures_lock);
	for (capture_t *capture = captures; capture; capture = capture->next)
		if (prohibits(capture))
			result = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	pthread_mutex_unlock(&captures_lock);
	return result;
}

void capture_mode_exchange(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = thread_mode;
	thread_mode = *mode;
	*mode = before;
}

/* ---- events ---- */

static void forget_mark(capture_mark_t **mark)
{
	if (!*mark)
		return;
	frontier_free(&(*mark)->at);
	free(*mark);
	*mark = NULL;
}

void capture_mark_forget(capture_mark_t **mark)
{
	/*
	 * Orders nothing: CUDA does not let two threads use one event at a time without synchronization of their own.
	 */
	if (!__atomic_load_n(mark, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&captures_lock);
	forget_mark(mark);
	pthread_mutex_unlock(&captures_lock);
}

bool capture_mark_refuse(capture_mark_t **mark)
{
	if (!__atomic_load_n(mark, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&captures_lock);
	bool captured = *mark;
	capture_t *capture = captured ? find((*mark)->id) : NULL;
	if (capture)
		invalidate(capture, CUDA_ERROR_CAPTURED_EVENT);
	pthread_mutex_unlock(&captures_lock);
	return captured;
}

static CUresult set_mark(const capture_stream_t *part, capture_mark_t **mark)
{
	capture_mark_t *made = calloc(1, sizeof *made);
	if (!made || !frontier_join(&made->at, &part->at)) {
		if (made)
			frontier_free(&made->at);
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	made->id = part->capture->id;
	forget_mark(mark);
	__atomic_store_n(mark, made, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult capture_record(CUstream stream, CUevent event, capture_mark_t **mark, bool external, bool *done)
{
	capture_stream_t *part = NULL;
	CUresult result = CUDA_SUCCESS;
	*done = false;
	if (capture_possible()) {
		pthread_mutex_lock(&captures_lock);
		result = part_of(stream, &part);
		if (!result && part && external) {
			CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
						   .eventRecord.event = event };
			result = add_node(part, &node, NULL);
		} else if (!result && part) {
			result = set_mark(part, mark);
		}
		pthread_mutex_unlock(&captures_lock);
	}
	*done = result || part;
	if (*done)
		return result;
	capture_mark_forget(mark);
	return external ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* The stream joins the event's capture and continues after the place that the event marks. */
static CUresult wait_marked(CUstream stream, const capture_mark_t *mark, capture_t *capture)
{
	capture_stream_t *part;
	CUresult result = part_of(stream, &part);
	if (result)
		return result;
	if (capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (graph_driver_stream_legacy(stream))
		return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	if (part && part->capture != capture) {
		invalidate(part->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
		return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	if (!part)
		part = join(capture, stream);
	if (!part || !frontier_join(&part->at, &mark->at))
		return invalidate(capture, CUDA_ERROR_OUT_OF_MEMORY);
	part->last = NULL;
	return CUDA_SUCCESS;
}

CUresult capture_wait(CUstream stream, CUevent event, capture_mark_t *const *mark, bool external, bool *done)
{
	capture_stream_t *part;
	*done = false;
	if (!capture_possible() && !__atomic_load_n(mark, __ATOMIC_RELAXED)) {
		*done = external;
		return external ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	}
	pthread_mutex_lock(&captures_lock);
	capture_t *capture = *mark ? find((*mark)->id) : NULL;
	CUresult result;
	if (capture && !external) {
		result = wait_marked(stream, *mark, capture);
		*done = true;
	} else {
		result = part_of(stream, &part);
		*done = result || part || external || *mark;
		if (!result && part && external) {
			CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait.event = event };
			result = add_node(part, &node, NULL);
		} else if (!result && part) {
			result = invalidate(part->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
		} else if (!result && *done) {
			result = external ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_CAPTURED_EVENT;
		}
	}
	pthread_mutex_unlock(&captures_lock);
	return result;
}

/* ---- beginning and end ---- */

static bool set_frontier(frontier_t *at, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count)
{
	bool done = true;
	for (size_t i = 0; i < count && done; i++)
		done = frontier_add(at, nodes[i], data ? &data[i] : NULL);
	return done;
}

static CUresult begin_locked(CUstream stream, const capture_start_t *start)
{
	static uint64_t last_id;
	if (*graph_driver_stream_part(stream) || !start->builder->claim(start->graph))
		return CUDA_ERROR_ILLEGAL_STATE;
	capture_t *capture = calloc(1, sizeof *capture);
	if (!capture) {
		start->builder->release(start->graph, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	capture->id = ++last_id;
	capture->builder = start->builder;
	capture->graph = start->graph;
	capture->own_graph = start->own_graph;
	capture->mode = start->mode;
	capture->thread = thread_number();
	capture->next = captures;
	captures = capture;
	__atomic_store_n(&capture_count, capture_count + 1, __ATOMIC_RELAXED);
	capture->origin = join(capture, stream);
	if (capture->origin && set_frontier(&capture->origin->at, start->dependencies, start->data, start->count))
		return CUDA_SUCCESS;
	capture->builder->release(capture->graph, false);
	capture_free(capture);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult capture_begin(CUstream stream, const capture_start_t *start)
{
	if (graph_driver_stream_legacy(stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&captures_lock);
	CUresult result = begin_locked(stream, start);
	pthread_mutex_unlock(&captures_lock);
	return result;
}

/* Every stream that took part must have been joined to the first one. */
static CUresult check_joined(const capture_t *capture)
{
	frontier_t ends = { 0 };
	bool known = true;
	for (const capture_stream_t *part = capture->streams; part && known; part = part->next)
		known = frontier_join(&ends, &part->at);
	const frontier_t *origin = &capture->origin->at;
	CUresult result = known ? capture->builder->check_joined(capture->graph, origin->nodes, origin->count,
								 ends.nodes, ends.count)
				: CUDA_ERROR_OUT_OF_MEMORY;
	frontier_free(&ends);
	return result;
}

static CUresult end_locked(CUstream stream, CUgraph *graph)
{
	capture_stream_t *part = *graph_driver_stream_part(stream);
	if (!part)
		return CUDA_ERROR_ILLEGAL_STATE;
	capture_t *capture = part->capture;
	if (capture->origin != part)
		return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread_number())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (!graph && capture->own_graph) /* it would be lost */
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(capture);
	if (graph)
		*graph = result ? NULL : capture->graph;
	capture->builder->release(capture->graph, result && capture->own_graph);
	capture_free(capture);
	return result;
}

CUresult capture_end(CUstream stream, CUgraph *graph)
{
	pthread_mutex_lock(&captures_lock);
	CUresult result = end_locked(stream, graph);
	pthread_mutex_unlock(&captures_lock);
	return result;
}

void capture_stream_destroyed(CUstream stream)
{
	if (!capture_possible())
		return;
	pthread_mutex_lock(&captures_lock);
	capture_stream_t *part = *graph_driver_stream_part(stream);
	if (part && part->capture->origin == part) { /* no call can end it any more */
		capture_t *capture = part->capture;
		capture->builder->release(capture->graph, capture->own_graph);
		capture_free(capture);
	} else if (part) {
		leave(part); /* its nodes stay in the graph, and must be joined before the capture ends */
	}
	pthread_mutex_unlock(&captures_lock);
}

CUresult capture_info(CUstream stream, capture_info_t *info)
{
	static const CUgraphEdgeData plain;
	*info = (capture_info_t){ .status = CU_STREAM_CAPTURE_STATUS_NONE };
	if (!capture_possible())
		return CUDA_SUCCESS;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&captures_lock);
	const capture_stream_t *part = *graph_driver_stream_part(stream);
	if (part) {
		info->status = part->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
						      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		info->id = part->capture->id;
		info->graph = part->capture->graph;
		info->dependencies = part->at.nodes;
		info->data = part->at.data;
		info->count = part->at.count;
		for (size_t i = 0; i < part->at.count; i++)
			info->lossy = info->lossy || memcmp(&part->at.data[i], &plain, sizeof plain);
	} else if (blocking_of(stream)) {
		result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; /* a query does not invalidate the capture */
	}
	pthread_mutex_unlock(&captures_lock);
	return result;
}

CUresult capture_update(CUstream stream, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
			unsigned flags)
{
	capture_stream_t *part;
	pthread_mutex_lock(&captures_lock);
	CUresult result = part_of(stream, &part);
	if (!result && !part)
		result = CUDA_ERROR_ILLEGAL_STATE;
	if (!result) {
		/* The program may pass the array that cuStreamGetCaptureInfo returned, which is part->at itself. */
		frontier_t before = part->at;
		part->last = NULL;
		part->at = (frontier_t){ 0 };
		if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES && !frontier_join(&part->at, &before))
			result = CUDA_ERROR_OUT_OF_MEMORY;
		if (!result && !set_frontier(&part->at, dependencies, data, count))
			result = CUDA_ERROR_OUT_OF_MEMORY;
		frontier_t *gone = result ? &part->at : &before;
		frontier_t kept = result ? before : part->at;
		frontier_free(gone);
		part->at = kept;
	}
	pthread_mutex_unlock(&captures_lock);
	return result;
}
