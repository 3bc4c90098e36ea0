/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver's calls on objects of two servers. As in CUDA, a copy is ordered in its stream. One in a default stream is
 * ordered in the default streams of both devices. cuMemcpyPeer waits for all work of both contexts.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/peer/peer.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/stream.h"

#include <stdlib.h>

bool rc_peer_possible(void)
{
	struct rc_process *process;
	return rc_process_get(&process) == CUDA_SUCCESS && process->sessions > 1;
}

static bool find_device_memory(uint64_t address, struct rc_span *span)
{
	return rc_memory_find(address, span) && span->kind <= RC_MEMORY_GLOBAL && span->session;
}

bool rc_peer_apart(uint64_t one, uint64_t other)
{
	struct rc_span a, b;
	return rc_peer_possible() && find_device_memory(one, &a) && find_device_memory(other, &b) && a.session != b.session;
}

void rc_peer_meet(struct rc_session *to, struct rc_session *from)
{
	rc_peer_link_await(&(struct rc_peer_op){ .copies = true, .to.session = to, .from.session = from });
}

/* ---- operations ---- */

/* The context of a stream; of one of CUDA's own, the current context. */
static CUresult context_of(uint64_t stream, CUcontext *context)
{
	CUresult result = rc_handle_check(RC_KIND_STREAM, stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (rc_stream_is_special(stream)) {
		*context = rc_context_current();
		return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	}
	struct rc_stream *known = rc_handle_data(RC_KIND_STREAM, stream);
	if (!known)
		return CUDA_ERROR_INVALID_HANDLE;
	*context = known->context;
	return CUDA_SUCCESS;
}

static struct rc_peer_part *part_add(struct rc_peer_op *op, CUcontext context, uint64_t object)
{
	struct rc_peer_part *part = &op->part[op->parts++];
	*part = (struct rc_peer_part){ .session = rc_handle_session((uint64_t)(uintptr_t)context), .context = context,
				       .object = object };
	return part;
}

/* The operation waits for the stream, and the stream for the operation. A stream counts once. */
static void part_add_both(struct rc_peer_op *op, CUcontext context, uint64_t stream)
{
	for (unsigned i = 0; i < op->parts; i++)
		if (op->part[i].context == context)
			return;
	struct rc_peer_part *part = part_add(op, context, stream);
	part->tells = part->holds = true;
}

static CUresult side_of(const struct rc_wire_box *box, struct rc_peer_side *side)
{
	struct rc_span span;
	if (!find_device_memory(box->device, &span))
		return CUDA_ERROR_INVALID_VALUE;
	*side = (struct rc_peer_side){ .session = span.session, .context = span.context, .box = *box };
	return CUDA_SUCCESS;
}

static CUresult op_of_copy(const struct rc_wire_box *to, const struct rc_wire_box *from, struct rc_peer_op *op)
{
	*op = (struct rc_peer_op){ .copies = true };
	CUresult result = side_of(to, &op->to);
	return result == CUDA_SUCCESS ? side_of(from, &op->from) : result;
}

/* Later work in this default stream of the context waits for what it has been given in the other context. */
static CUresult default_follows(CUcontext later, CUcontext earlier, CUstream stream)
{
	CUevent event;
	CUcontext popped;
	CUresult result = cuCtxPushCurrent_v2(earlier);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS) {
		result = cuEventRecord(event, stream);
		if (result == CUDA_SUCCESS)
			result = cuCtxSetCurrent(later);
		if (result == CUDA_SUCCESS)
			result = cuStreamWaitEvent(stream, event, 0);
		cuEventDestroy_v2(event);
	}
	cuCtxPopCurrent_v2(&popped);
	return result;
}

/* The side of a copy whose default stream follows that of a third context: if possible the side on that context's server. NULL:
 * there is no third context. */
static const struct rc_peer_side *side_beside(const struct rc_peer_op *op, CUcontext context)
{
	if (op->here || context == op->to.context || context == op->from.context)
		return NULL;
	return rc_handle_session((uint64_t)(uintptr_t)context) == op->to.session ? &op->to : &op->from;
}

/* A copy in a default stream, between two servers. The current context is the context of neither side. Events order the copy with
 * the current context's stream, so that the two workers know all streams of the copy. */
static CUresult issue_beside(struct rc_peer_op *op, const struct rc_peer_side *side, CUcontext context, CUstream stream)
{
	CUcontext of_side = side->context;
	struct rc_session *third = rc_handle_session((uint64_t)(uintptr_t)context);
	if (third != side->session) { /* before a stream is held */
		rc_peer_meet(side->session, third);
		rc_peer_meet(third, side->session);
	}
	part_add_both(op, op->to.context, (uint64_t)(uintptr_t)stream);
	part_add_both(op, op->from.context, (uint64_t)(uintptr_t)stream);
	CUresult result = default_follows(of_side, context, stream);
	if (result == CUDA_SUCCESS)
		result = rc_peer_issue(op);
	return result == CUDA_SUCCESS ? default_follows(context, of_side, stream) : result;
}

/* Issues a copy in the order of a stream; in a default stream also in the order of those of the copy's contexts. */
static CUresult issue_in_stream(struct rc_peer_op *op, CUstream stream)
{
	CUcontext context = NULL;
	uint64_t named = (uint64_t)(uintptr_t)stream;
	CUresult result = context_of(named, &context);
	/* Callers have made a node of a copy that can be captured. */
	if (result == CUDA_SUCCESS)
		result = capture_check_stream(stream);
	if (result != CUDA_SUCCESS) {
		free(op->owned);
		return result;
	}
	const struct rc_peer_side *side = rc_stream_is_special(named) ? side_beside(op, context) : NULL;
	if (side)
		return issue_beside(op, side, context, stream);
	part_add_both(op, context, named);
	if (rc_stream_is_special(named) && op->to.session)
		part_add_both(op, op->to.context, named);
	if (rc_stream_is_special(named) && op->from.session)
		part_add_both(op, op->from.context, named);
	return rc_peer_issue(op);
}

CUresult rc_peer_copy(const struct rc_wire_box *to, const struct rc_wire_box *from, CUstream stream)
{
	struct rc_peer_op op;
	CUresult result = op_of_copy(to, from, &op);
	return result == CUDA_SUCCESS ? issue_in_stream(&op, stream) : result;
}

/* ---- copies that this process makes ---- */

/* An end that is device or host memory. False: it is memory of another kind. */
static bool end_of(const struct rc_wire_box *box, bool device, struct rc_peer_side *side)
{
	*side = (struct rc_peer_side){ .box = *box };
	return !device || side_of(box, side) == CUDA_SUCCESS;
}

bool rc_peer_copy_elsewhere(const struct rc_wire_box *to, bool to_device, const struct rc_wire_box *from, bool from_device,
			    void *owned, CUstream stream, CUresult *result)
{
	struct rc_peer_op op = { .copies = true, .here = true, .owned = owned };
	if (!end_of(to, to_device, &op.to) || !end_of(from, from_device, &op.from)) {
		free(owned);
		return false;
	}
	*result = issue_in_stream(&op, stream);
	return true;
}

/* The box of an end of a copy, from its first byte on. */
static struct rc_wire_box box_of_end(const CUDA_MEMCPY3D *copy, bool source)
{
	uint64_t base = source ? copy->srcDevice : copy->dstDevice, pitch = source ? copy->srcPitch : copy->dstPitch;
	uint64_t x = source ? copy->srcXInBytes : copy->dstXInBytes, y = source ? copy->srcY : copy->dstY;
	uint64_t z = source ? copy->srcZ : copy->dstZ, rows = source ? copy->srcHeight : copy->dstHeight;
	if ((source ? copy->srcMemoryType : copy->dstMemoryType) == CU_MEMORYTYPE_HOST)
		base = (uint64_t)(uintptr_t)(source ? copy->srcHost : copy->dstHost);
	pitch = pitch ? pitch : copy->WidthInBytes;
	uint64_t slice = pitch * (rows ? rows : copy->Height);
	return (struct rc_wire_box){ base + z * slice + y * pitch + x, pitch, slice, copy->WidthInBytes, copy->Height,
				     copy->Depth };
}

/* False: host memory that is not pinned, or memory of another kind. */
static bool end_of_array_copy(const CUDA_MEMCPY3D *copy, bool source, struct rc_peer_side *side)
{
	CUmemorytype type = source ? copy->srcMemoryType : copy->dstMemoryType;
	CUarray array = source ? copy->srcArray : copy->dstArray;
	if (type != CU_MEMORYTYPE_ARRAY) {
		struct rc_wire_box box = box_of_end(copy, source);
		bool device = type == CU_MEMORYTYPE_DEVICE;
		return (device || rc_copy_is_pinned(box.device, rc_box_extent(&box))) && end_of(&box, device, side);
	}
	uint64_t handle = (uint64_t)(uintptr_t)array;
	*side = (struct rc_peer_side){ .session = rc_handle_session(handle), .context = rc_handle_data(RC_KIND_ARRAY, handle),
				       .box = { 0, 0, 0, copy->WidthInBytes, copy->Height, copy->Depth }, .array = array };
	side->x = source ? copy->srcXInBytes : copy->dstXInBytes;
	side->y = source ? copy->srcY : copy->dstY;
	side->z = source ? copy->srcZ : copy->dstZ;
	return side->session && side->context;
}

bool rc_peer_copy_array(const CUDA_MEMCPY3D *copy, CUstream stream, bool asynchronous, CUresult *result)
{
	struct rc_peer_op op = { .copies = true, .here = true };
	CUcontext context;
	bool some = copy->WidthInBytes && copy->Height && copy->Depth;
	if (!rc_peer_possible() || !some || context_of((uint64_t)(uintptr_t)stream, &context) != CUDA_SUCCESS ||
	    !end_of_array_copy(copy, false, &op.to) || !end_of_array_copy(copy, true, &op.from))
		return false;
	const struct rc_session *own = rc_handle_session((uint64_t)(uintptr_t)context);
	bool host = !op.to.session || !op.from.session;
	if (host && !asynchronous)
		return false;
	if ((!op.to.session || op.to.session == own) && (!op.from.session || op.from.session == own))
		return false;
	*result = issue_in_stream(&op, stream);
	return true;
}

/* ---- the hooks: true if the call concerns two servers ---- */

static struct rc_wire_box line_of(CUdeviceptr address, size_t size)
{
	return (struct rc_wire_box){ address, 0, 0, size, 1, 1 };
}

/* A call on memory of two servers needs a current context, and memory of the size. */
static CUresult line_check(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	if (!rc_context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult result = rc_memory_check_written(to, size);
	return result == CUDA_SUCCESS ? rc_memory_check_device(from, size) : result;
}

/* True if both addresses are in device memory of one server, and the stream is of another. CUDA's own are of the current context. */
static bool is_elsewhere(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
	struct rc_span a, b;
	uint64_t named = (uint64_t)(uintptr_t)stream;
	bool special = rc_stream_is_special(named);
	return rc_peer_possible() && (!special || rc_context_current()) && rc_handle_check(RC_KIND_STREAM, named) == CUDA_SUCCESS &&
	       find_device_memory(to, &a) && find_device_memory(from, &b) && a.session == b.session &&
	       a.session != (special ? rc_context_session() : rc_handle_session(named));
}

/* The copy becomes a node of a graph if its stream is being captured. */
static bool is_captured(const struct rc_wire_box *to, const struct rc_wire_box *from, CUstream stream, CUresult *result)
{
	struct rc_capture_side target = { .device = true, .address = to->device };
	struct rc_capture_side source = { .device = true, .address = from->device };
	bool captured;
	*result = rc_capture_copy(stream, &target, &source, to->width, 1, 1, true, &captured);
	return captured;
}

bool peer_dtod_async(uint16_t flags, CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, CUresult *result)
{
	(void)flags;
	struct rc_wire_box target = line_of(to, size), source = line_of(from, size);
	bool apart = rc_peer_apart(to, from);
	if (!apart && !is_elsewhere(to, from, stream))
		return false;
	*result = line_check(to, from, size);
	if (*result == CUDA_SUCCESS)
		*result = rc_handle_check(RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	if (*result != CUDA_SUCCESS || !size || is_captured(&target, &source, stream, result) || *result != CUDA_SUCCESS)
		return true;
	if (!apart)
		return rc_peer_copy_elsewhere(&target, true, &source, true, NULL, stream, result);
	*result = rc_peer_copy(&target, &source, stream);
	return true;
}

/* True if the host may use the memory of one of the sides when a call that is not asynchronous returns. */
static bool host_may_use(CUdeviceptr to, CUdeviceptr from)
{
	return rc_managed_waits(to) || rc_managed_waits(from);
}

/* Also in a default stream of the thread, a call that is not asynchronous cannot be captured. */
bool peer_dtod(uint16_t flags, CUdeviceptr to, CUdeviceptr from, size_t size, CUresult *result)
{
	CUstream stream = flags & RC_CALL_PER_THREAD ? CU_STREAM_PER_THREAD : NULL;
	*result = rc_peer_apart(to, from) || is_elsewhere(to, from, stream) ? capture_check_stream(stream) : CUDA_SUCCESS;
	if (*result != CUDA_SUCCESS)
		return true;
	if (!peer_dtod_async(flags, to, from, size, stream, result))
		return false;
	if (*result == CUDA_SUCCESS && host_may_use(to, from))
		*result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)stream);
	return true;
}

/* cuMemcpyPeer and its like name the contexts too. NULL is the current context. */
static CUresult contexts_check(CUcontext to, CUcontext from)
{
	CUresult result = to ? rc_handle_check(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)to) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS && from)
		result = rc_handle_check(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)from);
	return result;
}

bool peer_copy_async(uint16_t flags, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
		     size_t size, CUstream stream, CUresult *result)
{
	if (!rc_peer_apart(to, from) && !is_elsewhere(to, from, stream))
		return false;
	*result = contexts_check(to_context, from_context);
	return *result != CUDA_SUCCESS || peer_dtod_async(flags, to, from, size, stream, result);
}

/* Waits for all work of both contexts and of the current one. */
static CUresult synchronize(CUcontext one, CUcontext other)
{
	CUresult result = cuCtxSynchronize_v2(one);
	if (result == CUDA_SUCCESS)
		result = cuCtxSynchronize_v2(other);
	return result == CUDA_SUCCESS ? cuCtxSynchronize_v2(NULL) : result;
}

bool peer_copy(uint16_t flags, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
	       CUresult *result)
{
	(void)flags;
	if (!rc_peer_apart(to, from)) {
		/* The server of the memory waits for its own work only. */
		*result = is_elsewhere(to, from, NULL) ? cuCtxSynchronize_v2(NULL) : CUDA_SUCCESS;
		return *result != CUDA_SUCCESS;
	}
	struct rc_wire_box target = line_of(to, size), source = line_of(from, size);
	struct rc_peer_op op;
	*result = contexts_check(to_context, from_context);
	if (*result == CUDA_SUCCESS)
		*result = line_check(to, from, size);
	if (*result == CUDA_SUCCESS)
		*result = capture_check_stream(CU_STREAM_LEGACY);
	if (*result == CUDA_SUCCESS)
		*result = op_of_copy(&target, &source, &op);
	if (*result == CUDA_SUCCESS)
		*result = synchronize(op.to.context, op.from.context);
	if (*result == CUDA_SUCCESS && size)
		*result = rc_peer_perform(&op);
	if (*result == CUDA_SUCCESS && host_may_use(to, from))
		*result = synchronize(op.to.context, op.from.context);
	return true;
}

/* Within one server the driver may return before a copy between two device addresses is complete. */
CUresult peer_done_copy(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size)
{
	(void)size;
	return host_may_use(to, from) ? synchronize(to_context, from_context) : CUDA_SUCCESS;
}

bool peer_wait_event(uint16_t flags, CUstream stream, CUevent event, unsigned event_flags, CUresult *result)
{
	struct rc_peer_op op = { .copies = false };
	uint64_t waits = (uint64_t)(uintptr_t)stream, waited = (uint64_t)(uintptr_t)event;
	CUcontext context, of_event = rc_peer_possible() ? rc_handle_data(RC_KIND_EVENT, waited) : NULL;
	(void)flags;
	if (!of_event || context_of(waits, &context) != CUDA_SUCCESS ||
	    rc_handle_session(waited) == rc_handle_session((uint64_t)(uintptr_t)context))
		return false;
	*result = rc_capture_wait(stream, event, event_flags);
	if (*result != CUDA_SUCCESS) {
		*result = *result == RC_ANSWERED ? CUDA_SUCCESS : *result;
		return true;
	}
	struct rc_peer_part *part = part_add(&op, context, waits);
	part->holds = true;
	op.to = (struct rc_peer_side){ .session = part->session, .context = context };
	part = part_add(&op, of_event, waited);
	part->event = part->tells = true;
	op.from = (struct rc_peer_side){ .session = part->session, .context = of_event };
	*result = rc_peer_issue(&op);
	return true;
}

/* No other server's work would be waited for when the memory is freed. */
void rc_peer_settle_allocation(CUdeviceptr pointer)
{
	struct rc_span span;
	if (pointer && rc_peer_possible() && find_device_memory(pointer, &span))
		rc_peer_settle_memory(span.base, span.size);
}

CUresult array_check_destroy(CUarray array)
{
	(void)array;
	rc_peer_settle_arrays();
	return CUDA_SUCCESS;
}

CUresult array_check_destroy_mipmapped(CUmipmappedArray array)
{
	(void)array;
	rc_peer_settle_arrays();
	return CUDA_SUCCESS;
}

/* ---- cuMemcpy3DPeer: addresses say which device they belong to, so the contexts add nothing ---- */

static CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER *p)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes, .srcY = p->srcY, .srcZ = p->srcZ, .srcLOD = p->srcLOD,
		.srcMemoryType = p->srcMemoryType, .srcHost = p->srcHost, .srcDevice = p->srcDevice, .srcArray = p->srcArray,
		.srcPitch = p->srcPitch, .srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes, .dstY = p->dstY, .dstZ = p->dstZ, .dstLOD = p->dstLOD,
		.dstMemoryType = p->dstMemoryType, .dstHost = p->dstHost, .dstDevice = p->dstDevice, .dstArray = p->dstArray,
		.dstPitch = p->dstPitch, .dstHeight = p->dstHeight,
		.WidthInBytes = p->WidthInBytes, .Height = p->Height, .Depth = p->Depth,
	};
}

static CUresult copy_3d_async(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
	CUresult result = p ? contexts_check(p->dstContext, p->srcContext) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	CUDA_MEMCPY3D copy = without_contexts(p);
	return cuMemcpy3DAsync_v2(&copy, stream);
}

/* CUDA orders the copy with all work of both contexts. */
static CUresult copy_3d(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
	CUresult result = p ? contexts_check(p->dstContext, p->srcContext) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = capture_check_stream(stream);
	if (result == CUDA_SUCCESS)
		result = synchronize(p->dstContext, p->srcContext);
	if (result == CUDA_SUCCESS)
		result = copy_3d_async(p, stream);
	return result == CUDA_SUCCESS ? cuStreamSynchronize(stream) : result;
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *p)
{
	return copy_3d(p, NULL);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *p)
{
	return copy_3d(p, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
	return copy_3d_async(p, stream);
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
	return copy_3d_async(p, stream ? stream : CU_STREAM_PER_THREAD);
}
