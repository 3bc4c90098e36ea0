/* SPDX-License-Identifier: BSD-3-Clause */
/* What calls do while a stream is captured: see capture_calls.h. Events are marked by captures in a table of their own. */
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"

#include "cuda_remote/client/graph/graph_client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* *captured: the node was added to the stream's graph. */
static CUresult add(CUstream given, CUgraphNodeParams *params, CUgraphNode *node, bool *captured)
{
	CUstream stream;
	*captured = false;
	if (!capture_possible())
		return CUDA_SUCCESS;
	CUresult result = rc_capture_stream(given, &stream);
	return result == CUDA_SUCCESS ? capture_add(stream, params, node, captured) : result;
}

CUresult rc_capture_launch(CUstream given, CUfunction function, launch_shape_t shape, void **parameters, void **extra,
			   const CUlaunchAttribute *attributes, unsigned count, bool *captured)
{
	CUgraphNode node;
	CUstream stream;
	*captured = false;
	if (!capture_possible())
		return CUDA_SUCCESS;
	CUresult result = rc_capture_stream(given, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	CUgraphNode last = capture_last(stream);
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_KERNEL,
		.kernel = { .func = function, .gridDimX = shape.grid[0], .gridDimY = shape.grid[1],
			    .gridDimZ = shape.grid[2], .blockDimX = shape.block[0], .blockDimY = shape.block[1],
			    .blockDimZ = shape.block[2], .sharedMemBytes = shape.dynamic_shared,
			    .kernelParams = parameters, .extra = extra },
	};
	result = capture_add(stream, &params, &node, captured);
	if (result == CUDA_SUCCESS && *captured)
		result = graph_attributes_take(node, last, attributes, count);
	if (result != CUDA_SUCCESS || !*captured || !shape.cooperative)
		return result;
	return graph_attribute_set(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
				   &(CUlaunchAttributeValue){ .cooperative = 1 });
}

/* ---- copies and fills ---- */

/* A call that works in a stream at once cannot be captured. */
static CUresult now(CUstream given)
{
	CUstream stream;
	if (!capture_possible())
		return CUDA_SUCCESS;
	CUresult result = rc_capture_stream(given, &stream);
	return result == CUDA_SUCCESS ? capture_refuse_stream(stream) : result;
}

CUresult rc_capture_now(void)
{
	return now(CU_STREAM_LEGACY);
}

CUresult rc_capture_copy(CUstream stream, const struct rc_capture_side *to, const struct rc_capture_side *from,
			 uint64_t width, uint64_t height, uint64_t depth, bool asynchronous, bool *captured)
{
	*captured = false;
	if (!capture_possible())
		return CUDA_SUCCESS;
	if (!asynchronous)
		return now(stream);
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };
	CUDA_MEMCPY3D *copy = &node.memcpy.copyParams;
	*copy = (CUDA_MEMCPY3D){ .WidthInBytes = width, .Height = height, .Depth = depth, .srcPitch = from->pitch,
				 .dstPitch = to->pitch };
	copy->srcHeight = from->pitch ? from->slice / from->pitch : 0;
	copy->dstHeight = to->pitch ? to->slice / to->pitch : 0;
	copy->srcMemoryType = from->device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	copy->dstMemoryType = to->device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	copy->srcHost = from->device ? NULL : (const void *)(uintptr_t)from->address;
	copy->srcDevice = from->device ? from->address : 0;
	copy->dstHost = to->device ? NULL : (void *)(uintptr_t)to->address;
	copy->dstDevice = to->device ? to->address : 0;
	return add(stream, &node, NULL, captured);
}

CUresult rc_capture_fill(CUstream stream, uint64_t to, uint64_t pitch, uint32_t value, unsigned element, uint64_t width,
			 uint64_t height)
{
	bool captured;
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEMSET,
				   .memset = { .dst = to, .pitch = pitch, .value = value, .elementSize = element,
					       .width = width, .height = height } };
	CUresult result = add(stream, &node, NULL, &captured);
	return result == CUDA_SUCCESS && captured ? RC_ANSWERED : result;
}

CUresult rc_capture_array_copy(CUstream stream, const CUDA_MEMCPY3D *copy, bool asynchronous, bool *captured)
{
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy.copyParams = *copy };
	*captured = false;
	return asynchronous ? add(stream, &node, NULL, captured) : now(stream);
}

CUresult rc_capture_memops(CUstream stream, const CUstreamBatchMemOpParams *list, unsigned count, bool *captured)
{
	CUstreamBatchMemOpParams copy[RC_MEMOPS_MAX];
	*captured = false;
	if (!capture_possible())
		return CUDA_SUCCESS;
	memcpy(copy, list, count * sizeof *copy);
	for (unsigned i = 0; i < count; i++) /* a flag of the calls of CUDA 11, which the node does not have */
		if (copy[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || copy[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
			copy[i].writeValue.flags = 0;
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = { .count = count, .paramArray = copy } };
	return add(stream, &node, NULL, captured);
}

/* ---- host functions, memory ---- */

CUresult rc_capture_host(CUstream stream, CUhostFn function, void *argument, bool *captured)
{
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = { .fn = function, .userData = argument } };
	*captured = false;
	return function ? add(stream, &node, NULL, captured) : now(stream); /* there is no node for a callback */
}

CUresult rc_capture_alloc(CUstream stream, size_t bytes, CUdeviceptr *address, bool *captured)
{
	CUdevice device = 0;
	*captured = false;
	if (!capture_possible())
		return CUDA_SUCCESS;
	cuCtxGetDevice(&device);
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
				   .alloc = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
									   .id = device } },
					      .bytesize = bytes } };
	CUresult result = add(stream, &node, NULL, captured);
	if (*captured)
		*address = node.alloc.dptr;
	return result;
}

CUresult rc_capture_free(CUstream stream, CUdeviceptr address, bool *captured)
{
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free.dptr = address };
	return add(stream, &node, NULL, captured);
}

/* ---- streams and events ---- */

CUresult capture_check_stream(CUstream stream)
{
	return now(stream);
}

CUresult capture_check_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size)
{
	(void)to;
	(void)to_context;
	(void)from;
	(void)from_context;
	(void)size;
	return now(CU_STREAM_LEGACY);
}

/* An event whose last cuEventRecord was in a capturing stream, and the mark of that capture. */
struct marked {
	struct marked *next;
	CUevent event;
	capture_mark_t *mark;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct marked *events;
static unsigned marks; /* events in the list; atomic */

/* Where the event's mark is, or would be; removed if it is NULL afterwards. Under the lock. */
static struct marked *marked_of(CUevent event, bool make)
{
	struct marked *found = events;
	while (found && found->event != event)
		found = found->next;
	if (found || !make || !(found = calloc(1, sizeof *found)))
		return found;
	found->event = event;
	found->next = events;
	events = found;
	__atomic_add_fetch(&marks, 1, __ATOMIC_RELAXED);
	return found;
}

/* Under the lock. */
static void drop_if_unmarked(struct marked *marked)
{
	struct marked **at = &events;
	if (!marked || marked->mark)
		return;
	while (*at != marked)
		at = &(*at)->next;
	*at = marked->next;
	free(marked);
	__atomic_sub_fetch(&marks, 1, __ATOMIC_RELAXED);
}

static bool no_marks(void)
{
	/* Orders nothing: CUDA does not let two threads use one event without synchronization of their own. */
	return !__atomic_load_n(&marks, __ATOMIC_RELAXED);
}

CUresult capture_check_event(CUevent event)
{
	if (no_marks())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	struct marked *marked = marked_of(event, false);
	bool refused = marked && capture_mark_refuse(&marked->mark);
	pthread_mutex_unlock(&lock);
	return refused ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

CUresult capture_done_event(CUevent event)
{
	if (no_marks())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	struct marked *marked = marked_of(event, false);
	if (marked)
		capture_mark_forget(&marked->mark);
	drop_if_unmarked(marked);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream given, bool external)
{
	CUstream stream;
	bool done = false;
	CUresult result = rc_route_in_stream(RC_KIND_EVENT, (uint64_t)(uintptr_t)event, given);
	if (result != CUDA_SUCCESS)
		return result;
	if (!capture_possible() && no_marks())
		return external ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	result = rc_handle_check(RC_KIND_EVENT, (uint64_t)(uintptr_t)event);
	if (result == CUDA_SUCCESS)
		result = rc_capture_stream(given, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct marked *marked = marked_of(event, true);
	result = marked ? capture_record(stream, event, &marked->mark, external, &done) : CUDA_ERROR_OUT_OF_MEMORY;
	drop_if_unmarked(marked);
	pthread_mutex_unlock(&lock);
	return result == CUDA_SUCCESS && done ? RC_ANSWERED : result;
}

CUresult capture_check_record(CUevent event, CUstream stream)
{
	return record(event, stream, false);
}

CUresult capture_check_record_flags(CUevent event, CUstream stream, unsigned flags)
{
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	return record(event, stream, flags & CU_EVENT_RECORD_EXTERNAL);
}

CUresult rc_capture_wait(CUstream given, CUevent event, unsigned flags)
{
	CUstream stream;
	bool done, external = flags & CU_EVENT_WAIT_EXTERNAL;
	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!capture_possible() && no_marks())
		return external ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	CUresult result = rc_handle_check(RC_KIND_EVENT, (uint64_t)(uintptr_t)event);
	if (result == CUDA_SUCCESS)
		result = rc_capture_stream(given, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct marked *marked = marked_of(event, false);
	capture_mark_t *none = NULL;
	result = capture_wait(stream, event, marked ? &marked->mark : &none, external, &done);
	pthread_mutex_unlock(&lock);
	return result == CUDA_SUCCESS && done ? RC_ANSWERED : result;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUresult result = graph_driver_enter();
	if (result != CUDA_SUCCESS)
		return result;
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	capture_mode_exchange(mode);
	return CUDA_SUCCESS;
}
