/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between host and device: the driver's calls, and which way a copy takes. To the device, the bytes go out with the
 * call, or in chunks after it (chunks.c); once the last chunk has been sent the caller may reuse its memory. To the host, the
 * worker sends chunks as the device produces them. Each chunk names its copy. A copy to pageable memory waits, as in CUDA. A
 * copy to pinned memory is asynchronous: the data connection (data/) brings its chunks when its stream has come to it. From
 * and to pinned memory that a worker on this host has mapped, the worker copies by itself (pinned.c).
 */
#include "cuda_remote/client/array.h"
#include "cuda_remote/client/chunks.h"
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/early.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/hostfn.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/stream.h"

#include <stdlib.h>
#include <string.h>

/* An asynchronous copy from pinned memory of at most this size is sent during its call, if its source may be read then. A longer
 * one would keep the caller for about as long as it saves (docs/BENCHMARKS.md). */
#define EAGER_COPY (512u << 10)

/* ---- one side of a copy, to which every form of the driver's copy calls is converted ---- */

struct side {
	bool device;
	uint64_t address, pitch, slice;
};

bool rc_copy_is_staged(uint64_t bytes, bool asynchronous)
{
	return asynchronous && bytes <= RC_INLINE_COPY;
}

bool rc_copy_is_pinned(uint64_t address, uint64_t size)
{
	struct rc_span span;
	return rc_memory_find(address, &span) && span.kind >= RC_MEMORY_HOST && size <= span.size - (address - span.base);
}

/* Turns a box without gaps into one row, and slices that follow each other without a gap into one. */
static void flatten(uint64_t pitch, uint64_t slice, uint64_t *width, uint64_t *height, uint64_t *depth)
{
	if (*depth > 1 && slice == *height * pitch) {
		*height *= *depth;
		*depth = 1;
	}
	if (*height == 1 || pitch == *width) {
		if (*depth == 1 || slice == *width * *height) {
			*width *= *height * *depth;
			*height = *depth = 1;
		}
	}
}

static struct rc_wire_box box_of(const struct side *side, uint64_t width, uint64_t height, uint64_t depth)
{
	struct rc_wire_box box = { side->address, side->pitch, side->slice, width, height, depth };
	return box;
}

static CUresult side_check(const struct side *side, bool written, uint64_t width, uint64_t height, uint64_t depth)
{
	struct rc_wire_box box = box_of(side, width, height, depth);
	uint64_t extent = rc_box_extent(&box);
	if (!extent || (height > 1 && side->pitch < width) || (depth > 1 && side->slice < width))
		return CUDA_ERROR_INVALID_VALUE;
	if (side->device)
		return written ? rc_memory_check_written(side->address, extent) :
				 rc_memory_check_device(side->address, extent);
	return side->address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static struct rc_copy host_of(const struct side *side, uint64_t width, uint64_t height, uint64_t depth)
{
	struct rc_copy copy = { .host = (uint8_t *)(uintptr_t)side->address, .pitch = side->pitch, .slice = side->slice };
	flatten(side->pitch, side->slice, &width, &height, &depth);
	copy.width = width;
	copy.height = height;
	copy.depth = depth;
	return copy;
}

/* Records an event of the current context in the stream, and waits for it. */
static CUresult wait_by_event(uint64_t stream)
{
	CUevent event;
	CUresult result = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuEventRecord(event, (CUstream)(uintptr_t)stream);
	if (result == CUDA_SUCCESS)
		result = cuEventSynchronize(event);
	cuEventDestroy_v2(event);
	return result;
}

/* Waits until the stream would begin a new command: for its own work, and for that of the streams which it is ordered with
 * (the default stream and blocking streams). cuStreamSynchronize does not wait for the latter; an event does. */
CUresult rc_copy_wait_for_turn(uint64_t stream)
{
	const struct rc_stream *made = rc_handle_data(RC_KIND_STREAM, stream);
	CUcontext context = made ? made->context : NULL;
	if (!context || context == rc_context_current()) /* an event of another context cannot be recorded in the stream */
		return wait_by_event(stream);
	CUresult result = cuCtxPushCurrent_v2(context);
	if (result != CUDA_SUCCESS)
		return result;
	result = wait_by_event(stream);
	cuCtxPopCurrent_v2(&context);
	return result;
}

bool rc_copy_completes(const struct rc_session *session, bool pinned, uint64_t bytes)
{
	/* Copies between servers, and other processes, may read the bytes next. They do not wait for this session's calls. */
	return pinned || bytes > RC_INLINE_COPY || rc_peer_possible() ||
	       (session && __atomic_load_n(&session->shared, __ATOMIC_RELAXED));
}

CUresult rc_copy_await(const struct rc_route *route, uint64_t stream)
{
	struct {
		struct rc_wire_call head;
		uint64_t stream;
	} message = { .stream = stream };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	/* A server of another build may not have the call. */
	if (link->session->call_number && !link->session->call_number[RC_CALL_copy_wait])
		return route->context ? cuCtxSynchronize_v2((CUcontext)(uintptr_t)route->context) : rc_copy_wait_for_turn(stream);
	return rc_link_call(link, RC_CALL_copy_wait, 0, &message.head, sizeof message, NULL, 0);
}

/* Copies from host to host in a stream's order: waits for the stream's earlier work first. */
static CUresult copy_on_host(const struct side *to, const struct side *from, uint64_t width, uint64_t height, uint64_t depth,
			     CUstream stream)
{
	CUresult result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)stream);
	if (result != CUDA_SUCCESS)
		return result;
	for (uint64_t z = 0; z < depth; z++)
		for (uint64_t y = 0; y < height; y++)
			memmove((void *)(uintptr_t)(to->address + z * to->slice + y * to->pitch),
				(void *)(uintptr_t)(from->address + z * from->slice + y * from->pitch), width);
	return CUDA_SUCCESS;
}

static CUresult copy_across(const struct rc_route *route, const struct side *to, const struct side *from, uint64_t width,
			    uint64_t height, uint64_t depth, uint64_t stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_across call;
	} message = { .call = { stream, box_of(to, width, height, depth), box_of(from, width, height, depth) } };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	return rc_link_post(link, RC_CALL_copy_across, 0, &message.head, sizeof message, NULL, 0);
}

/*
 * Finds the copy's session, that of its device memory. *elsewhere: the stream is of another session, so the copy cannot be in
 * the stream's order on the server.
 */
static CUresult copy_route(const struct side *to, const struct side *from, CUstream stream, struct rc_route *route,
			   bool *elsewhere)
{
	CUresult result = CUDA_SUCCESS;
	*elsewhere = false;
	if (to->device)
		result = rc_route_address(route, to->address);
	if (result == CUDA_SUCCESS && from->device)
		result = rc_route_address(route, from->address);
	struct rc_route of_stream = { NULL, 0, false };
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&of_stream, RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	*elsewhere = result == CUDA_SUCCESS && route->session && of_stream.session && route->session != of_stream.session;
	return result;
}

/* A copy between device memory and pinned memory, from a small source in other host memory, or within a server, in a stream of
 * another server: this process makes it when the stream has come to it. False: the call must wait. */
static bool copy_follows(const struct side *to, const struct side *from, uint64_t width, uint64_t height, uint64_t depth,
			 CUstream stream, CUresult *result)
{
	struct rc_wire_box target = box_of(to, width, height, depth), source = box_of(from, width, height, depth);
	if (!to->device && !rc_copy_is_pinned(to->address, rc_box_extent(&target)))
		return false;
	uint8_t *staged = NULL;
	if (!from->device && !rc_copy_is_pinned(from->address, rc_box_extent(&source))) {
		/* CUDA reads a small pageable source during the call. */
		struct rc_copy host = host_of(from, width, height, depth);
		uint64_t bytes = rc_copy_bytes(&host);
		if (!rc_copy_is_staged(bytes, true) || !(staged = malloc(bytes)))
			return false;
		rc_copy_gather(&host, 0, bytes, staged);
		source = (struct rc_wire_box){ (uint64_t)(uintptr_t)staged, width, width * height, width, height, depth };
	}
	return rc_peer_copy_elsewhere(&target, to->device, &source, from->device, staged, stream, result);
}

/* Copies between the device and pinned memory that the worker has mapped. */
static CUresult copy_pinned(const struct rc_route *route, const struct side *to, const struct side *from, uint64_t width,
			    uint64_t height, uint64_t depth, uint64_t stream, bool wait, const struct rc_span *span)
{
	const struct side *device = to->device ? to : from, *host = to->device ? from : to;
	uint64_t row = width, rows = height, slices = depth;
	flatten(host->pitch, host->slice, &row, &rows, &slices);
	if (rows == 1 && slices == 1)
		flatten(device->pitch, device->slice, &width, &height, &depth);
	struct rc_wire_copy_pinned call = { .stream = stream, .pinned = span->pinned,
					    .offset = rc_pinned_offset(span, host->address),
					    .pitch = host->pitch, .slice = host->slice,
					    .box = box_of(device, width, height, depth), .to_device = to->device };
	return rc_pinned_copy(route, &call, wait);
}

/* True if an asynchronous copy from pinned memory, which no earlier work writes, may read its source during the call, and if
 * sending it takes about as long as a message. While a stream may be held, the program may change the source after the call. */
static bool may_send_now(const struct rc_route *route, const struct rc_wire_box *box)
{
	struct rc_link *link;
	uint64_t bytes = rc_box_bytes(box);
	if (bytes > EAGER_COPY || rc_link_get(route, true, &link) != CUDA_SUCCESS || rc_held_any(link->session))
		return false;
	return bytes <= RC_INLINE_COPY || rc_chunks_room(link, box);
}

/* A small copy of this kind behind a kernel is sent during its call too: otherwise each of them would cost its stream a round
 * trip. If the program changes the source, the bytes are sent once more. *sent: the copy is on its way. */
static CUresult copy_up_early(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *host,
			      uint64_t stream, bool *sent)
{
	struct rc_link *link;
	*sent = false;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS || !rc_held_any(link->session) || !rc_early_suits(link->session, rc_copy_bytes(host)))
		return result;
	return rc_early_copy(link, box, host, stream, sent);
}

/* True if the copy need not wait for a reply if nothing else is under way. Another process or server may read the bytes before the
 * worker has got the call. */
static bool may_settle(const struct rc_session *session, const struct rc_copy *copy)
{
	return rc_copy_bytes(copy) <= RC_INLINE_COPY && !rc_peer_possible() &&
	       !(session && __atomic_load_n(&session->shared, __ATOMIC_RELAXED));
}

/* A copy of one word to the device may be of a pointer to host memory that kernels will use (cudaMemcpyToSymbol). Longer copies
 * are not searched: that would take time, and many structures have pointers that only the host uses. */
static void look_for_pointer(struct rc_session *session, const struct rc_copy *host, bool asynchronous)
{
	uint64_t word;
	if (host->width != sizeof word || host->height != 1 || host->depth != 1 || !rc_memory_any_unmapped())
		return;
	memcpy(&word, host->host, sizeof word);
	rc_unmapped_copy(session, word, asynchronous);
}

static void nothing(void *unused)
{
	(void)unused;
}

/* The function runs when the bytes have arrived. Before the client reports its end, it compares the sources of small copies. */
CUresult rc_copy_changes_early(const struct rc_session *session, uint64_t address, uint64_t size, CUstream stream)
{
	return rc_early_reads(session, (uint64_t)(uintptr_t)stream, address, size) ? cuLaunchHostFunc(stream, nothing, NULL) :
										      CUDA_SUCCESS;
}

/* Copies between host and device. elsewhere: as copy_route says. */
static CUresult copy_with_host(const struct rc_route *route, const struct side *to, const struct side *from, uint64_t width,
			       uint64_t height, uint64_t depth, uint64_t stream, bool asynchronous, bool elsewhere)
{
	const struct side *device = to->device ? to : from, *host = to->device ? from : to;
	struct rc_span span;
	CUresult result = CUDA_SUCCESS;
	struct rc_wire_box extent = box_of(host, width, height, depth);
	uint64_t bytes = rc_box_extent(&extent);
	struct rc_session *session = route->session ? route->session : rc_context_session();
	struct rc_copy place = host_of(host, width, height, depth);
	uint64_t row = width, rows = height, slices = depth;
	flatten(device->pitch, device->slice, &row, &rows, &slices);
	struct rc_wire_box box = box_of(device, row, rows, slices);
	bool is_mapped = rc_pinned_in(session, host->address, bytes, &span);
	bool is_mine = is_mapped || rc_copy_is_pinned(host->address, bytes);
	bool changes = !is_mapped && to->device &&
		       (rc_host_any() || rc_copy_writes(host->address, bytes) || rc_pinned_shared(host->address));
	if (to->device && !changes)
		look_for_pointer(session, &place, asynchronous); /* makes calls of its own */
	bool completes = to->device && !asynchronous && rc_copy_completes(session, is_mine, rc_copy_bytes(&place));
	if (completes && !elsewhere && !changes && may_settle(session, &place)) {
		bool posted;
		result = rc_copy_up_settled(route, &box, &place, stream, &posted);
		if (posted || result != CUDA_SUCCESS)
			return result;
	}
	if (is_mapped)
		return copy_pinned(route, to, from, width, height, depth, stream, !asynchronous || elsewhere, &span);
	if (!to->device) {
		bool may_be_later = asynchronous && !elsewhere && is_mine;
		result = rc_copy_down(route, &box, &place, stream, may_be_later);
		return result == CUDA_SUCCESS && may_be_later ?
			       rc_copy_changes_early(session, host->address, bytes, (CUstream)(uintptr_t)stream) :
			       result;
	}
	bool is_later = asynchronous && !elsewhere && is_mine && session;
	if (is_later && !changes) {
		bool sent;
		result = copy_up_early(route, &box, &place, stream, &sent);
		if (sent || result != CUDA_SUCCESS)
			return result;
	}
	if (is_later && (changes || !may_send_now(route, &box)) && rc_data_open(session))
		return rc_copy_up_later(route, &box, &place, stream);
	/* Bytes to the device are read during this call. Earlier work of the stream may still write them: a copy to the
	 * host, a host function, which may write anywhere, or another server's worker, which has mapped them and for whose
	 * event the stream waits. So wait for it, unless CUDA reads the bytes in the call too. */
	if (!elsewhere && changes && (is_mine || !rc_copy_is_staged(rc_copy_bytes(&place), asynchronous)))
		result = rc_copy_wait_for_turn(stream);
	if (result == CUDA_SUCCESS)
		result = rc_copy_up(route, &box, &place, stream);
	if (result == CUDA_SUCCESS && elsewhere)
		return cuCtxSynchronize_v2((CUcontext)(uintptr_t)route->context);
	return result == CUDA_SUCCESS && completes ? rc_copy_await(route, stream) : result;
}

/* True if one side is host memory of which a server has a mirror, and the other side memory of another server. */
static bool is_mirror_apart(const struct side *mirror, const struct side *other)
{
	struct rc_span here, there;
	return rc_memory_find(mirror->address, &here) && here.kind >= RC_MEMORY_HOST && here.session &&
	       rc_memory_find(other->address, &there) && there.session && there.session != here.session;
}

/* Makes a copy between such memory and another server's one between this process's memory and that server: the call waits for the
 * stream, and takes over what the mirror's server has written. */
static CUresult bring_home(struct side *mirror, CUstream stream, bool *asynchronous)
{
	struct rc_span span;
	CUresult result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)stream);
	if (result == CUDA_SUCCESS && rc_memory_find(mirror->address, &span) && span.session)
		result = rc_mirror_host_begin(span.session);
	mirror->device = false;
	*asynchronous = false;
	return result;
}

static CUresult settle_apart(struct side *to, struct side *from, CUstream stream, bool *asynchronous)
{
	if (!rc_peer_possible() || !to->device || !from->device)
		return CUDA_SUCCESS;
	if (is_mirror_apart(to, from))
		return bring_home(to, stream, asynchronous);
	return is_mirror_apart(from, to) ? bring_home(from, stream, asynchronous) : CUDA_SUCCESS;
}

/* True if the side is host memory, also if its device address is given. *mirror: and a server has a mirror of it. */
static bool is_host(const struct side *side, bool *mirror)
{
	struct rc_span span;
	if (!side->device)
		return true;
	if (!rc_memory_find(side->address, &span) || span.kind < RC_MEMORY_HOST)
		return false;
	*mirror |= span.session != NULL;
	return true;
}

/* Every copy comes through copy below. *asynchronous: the caller allows the copy to complete after the call; on return false also if
 * CUDA does not allow that. */
static CUresult issue(const struct side *to, const struct side *from, uint64_t width, uint64_t height, uint64_t depth,
		     CUstream stream, bool *asynchronous)
{
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_handle_check(RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!width || !height || !depth)
		return CUDA_SUCCESS;
	result = side_check(to, true, width, height, depth);
	if (result == CUDA_SUCCESS)
		result = side_check(from, false, width, height, depth);
	if (result != CUDA_SUCCESS)
		return result;
	if (__atomic_load_n(&rc_context_session()->sick, __ATOMIC_RELAXED)) {
		struct rc_link *link;
		result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
		if (result == CUDA_SUCCESS)
			result = rc_link_error(link);
		if (result != CUDA_SUCCESS)
			return result;
	}
	bool captured;
	struct rc_capture_side into = { to->device, to->address, to->pitch, to->slice };
	struct rc_capture_side out_of = { from->device, from->address, from->pitch, from->slice };
	result = rc_capture_copy(stream, &into, &out_of, width, height, depth, *asynchronous, &captured);
	if (result != CUDA_SUCCESS || captured)
		return result;
	if (to->device && from->device && rc_peer_apart(to->address, from->address)) {
		struct rc_wire_box target = box_of(to, width, height, depth), source = box_of(from, width, height, depth);
		return rc_peer_copy(&target, &source, stream);
	}
	struct side here = *to, there = *from;
	bool mirror = false;
	/* CUDA makes a copy from host memory to host memory during the call. A worker makes it if one side is a mirror. */
	if (is_host(to, &mirror) && is_host(from, &mirror)) {
		here.device &= mirror;
		there.device &= mirror;
		*asynchronous &= !mirror;
	}
	result = settle_apart(&here, &there, stream, asynchronous);
	if (result != CUDA_SUCCESS)
		return result;
	to = &here;
	from = &there;
	if (!to->device && !from->device)
		return copy_on_host(to, from, width, height, depth, stream);
	struct rc_route route = { NULL, 0, false };
	bool elsewhere;
	result = copy_route(to, from, stream, &route, &elsewhere);
	if (result == CUDA_SUCCESS && elsewhere && *asynchronous &&
	    copy_follows(to, from, width, height, depth, stream, &result))
		return result;
	if (result == CUDA_SUCCESS && elsewhere) {
		/* The call waits for the stream, copies in the default stream of the memory's context, and waits for the copy. */
		result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)stream);
		stream = CU_STREAM_LEGACY;
	}
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t named = (uint64_t)(uintptr_t)stream;
	if (to->device && from->device) {
		result = copy_across(&route, to, from, width, height, depth, named);
		return result == CUDA_SUCCESS && elsewhere ? cuCtxSynchronize_v2((CUcontext)(uintptr_t)route.context) : result;
	}
	return copy_with_host(&route, to, from, width, height, depth, named, *asynchronous, elsewhere);
}

/* issue does not wait for copies to and between devices. If the host may use such memory itself, this call does. */
static CUresult copy(const struct side *to, const struct side *from, uint64_t width, uint64_t height, uint64_t depth,
		     CUstream stream, bool asynchronous)
{
	CUresult result = issue(to, from, width, height, depth, stream, &asynchronous);
	if (result == CUDA_SUCCESS && !asynchronous && to->device)
		result = rc_managed_settle(to->address, (uint64_t)(uintptr_t)stream);
	if (result == CUDA_SUCCESS && !asynchronous && to->device && from->device)
		result = rc_managed_settle(from->address, (uint64_t)(uintptr_t)stream);
	return result;
}

static CUresult copy_line(const struct side *to, const struct side *from, size_t size, CUstream stream, bool asynchronous)
{
	return copy(to, from, size, size ? 1 : 0, 1, stream, asynchronous);
}

/* Managed memory is copied by the worker, wherever a call takes its address. */
static struct side host_side(const void *pointer)
{
	uint64_t address = (uint64_t)(uintptr_t)pointer;
	return (struct side){ .device = rc_managed_at(address), .address = address };
}

static struct side device_side(CUdeviceptr pointer)
{
	return (struct side){ .device = true, .address = pointer };
}

static struct side either_side(CUdeviceptr pointer)
{
	return (struct side){ .device = rc_memory_is_device(pointer), .address = pointer };
}

/* ---- the driver's calls, one line of memory ---- */

static CUresult copy_h2d(CUdeviceptr to, const void *from, size_t size, CUstream stream, bool asynchronous)
{
	struct side a = device_side(to), b = host_side(from);
	return copy_line(&a, &b, size, stream, asynchronous);
}

static CUresult copy_d2h(void *to, CUdeviceptr from, size_t size, CUstream stream, bool asynchronous)
{
	struct side a = host_side(to), b = device_side(from);
	return copy_line(&a, &b, size, stream, asynchronous);
}

static CUresult copy_any(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, bool asynchronous)
{
	struct side a = either_side(to), b = either_side(from);
	return copy_line(&a, &b, size, stream, asynchronous);
}

/* The stream that a per-thread variant means by NULL. */
static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
	return copy_h2d(to, from, size, NULL, false);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size)
{
	return copy_h2d(to, from, size, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	return copy_h2d(to, from, size, stream, true);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	return copy_h2d(to, from, size, own(stream), true);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
	return copy_d2h(to, from, size, NULL, false);
}

CUresult cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t size)
{
	return copy_d2h(to, from, size, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_d2h(to, from, size, stream, true);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_d2h(to, from, size, own(stream), true);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy_any(to, from, size, NULL, false);
}

CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy_any(to, from, size, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_any(to, from, size, stream, true);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_any(to, from, size, own(stream), true);
}

static CUresult dtod_check(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	CUresult result = rc_memory_check_written(to, size);
	return result == CUDA_SUCCESS ? rc_memory_check_device(from, size) : result;
}

CUresult copy_check_dtod(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	CUresult result = dtod_check(to, from, size);
	if (result == CUDA_SUCCESS)
		result = rc_capture_now();
	/* The worker would execute no other call while the driver waits, as memset_now in memory.c says. */
	return result == CUDA_SUCCESS && (rc_managed_waits(to) || rc_managed_waits(from)) ?
		       rc_managed_answer(cuMemcpyDtoDAsync_v2(to, from, size, CU_STREAM_LEGACY)) :
		       result;
}

CUresult copy_check_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	bool captured;
	struct rc_capture_side into = { .device = true, .address = to }, out_of = { .device = true, .address = from };
	CUresult result = dtod_check(to, from, size);
	if (result == CUDA_SUCCESS)
		result = rc_capture_copy(stream, &into, &out_of, size, 1, 1, true, &captured);
	if (result != CUDA_SUCCESS)
		return result;
	bool mirror = false;
	struct side a = device_side(to), b = device_side(from);
	if (!captured && is_host(&a, &mirror) && is_host(&b, &mirror)) {
		result = copy_line(&a, &b, size, stream, true);
		return result == CUDA_SUCCESS ? RC_ANSWERED : result;
	}
	return captured ? RC_ANSWERED : CUDA_SUCCESS;
}

CUresult copy_check_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
			       CUstream stream)
{
	(void)to_context; /* the addresses say which device they belong to */
	(void)from_context;
	return copy_check_dtod_async(to, from, size, stream);
}

/* ---- and in two and three dimensions ---- */

static CUresult side_of(CUmemorytype type, const void *host, CUdeviceptr device, struct side *side)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		*side = host_side(host);
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
		*side = device_side(device);
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_UNIFIED:
		*side = either_side(device);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Moves a side to its first byte. A pitch of 0 is valid for a single row, a height of 0 for a single slice. */
static CUresult side_start(struct side *side, const CUDA_MEMCPY3D *p, size_t x, size_t y, size_t z, size_t pitch, size_t height)
{
	uint64_t across, row, rows;
	if (__builtin_add_overflow((uint64_t)x, (uint64_t)p->WidthInBytes, &row) ||
	    __builtin_add_overflow((uint64_t)y, (uint64_t)p->Height, &rows))
		return CUDA_ERROR_INVALID_VALUE;
	bool one_row = !pitch && rows <= 1, one_slice = !height && !z && p->Depth <= 1;
	if ((!one_row && pitch < row) || (!one_slice && height < rows))
		return CUDA_ERROR_INVALID_VALUE;
	side->pitch = one_row ? row : pitch;
	if (__builtin_mul_overflow(side->pitch, one_slice ? rows : (uint64_t)height, &side->slice) ||
	    __builtin_mul_overflow((uint64_t)z, side->slice, &across) ||
	    __builtin_add_overflow(side->address, across, &side->address) ||
	    __builtin_mul_overflow((uint64_t)y, side->pitch, &across) ||
	    __builtin_add_overflow(side->address, across, &side->address) ||
	    __builtin_add_overflow(side->address, (uint64_t)x, &side->address))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool asynchronous)
{
	struct side to, from;
	if (!p || p->srcLOD || p->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->dstMemoryType == CU_MEMORYTYPE_ARRAY || p->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		return rc_array_copy(p, stream, asynchronous);
	CUresult result = side_of(p->dstMemoryType, p->dstHost, p->dstDevice, &to);
	if (result == CUDA_SUCCESS)
		result = side_of(p->srcMemoryType, p->srcHost, p->srcDevice, &from);
	if (result == CUDA_SUCCESS)
		result = side_start(&to, p, p->dstXInBytes, p->dstY, p->dstZ, p->dstPitch, p->dstHeight);
	if (result == CUDA_SUCCESS)
		result = side_start(&from, p, p->srcXInBytes, p->srcY, p->srcZ, p->srcPitch, p->srcHeight);
	if (result != CUDA_SUCCESS)
		return result;
	return copy(&to, &from, p->WidthInBytes, p->Height, p->Depth, stream, asynchronous);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool asynchronous)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D box = {
		.srcXInBytes = p->srcXInBytes, .srcY = p->srcY, .srcMemoryType = p->srcMemoryType, .srcHost = p->srcHost,
		.srcDevice = p->srcDevice, .srcArray = p->srcArray, .srcPitch = p->srcPitch,
		.dstXInBytes = p->dstXInBytes, .dstY = p->dstY, .dstMemoryType = p->dstMemoryType, .dstHost = p->dstHost,
		.dstDevice = p->dstDevice, .dstArray = p->dstArray, .dstPitch = p->dstPitch,
		.WidthInBytes = p->WidthInBytes, .Height = p->Height, .Depth = 1,
	};
	return copy_3d(&box, stream, asynchronous);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *p)
{
	return copy_2d(p, NULL, false);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *p)
{
	return copy_2d(p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *p)
{
	return copy_2d(p, NULL, false);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *p)
{
	return copy_2d(p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream stream)
{
	return copy_2d(p, stream, true);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *p, CUstream stream)
{
	return copy_2d(p, own(stream), true);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *p)
{
	return copy_3d(p, NULL, false);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *p)
{
	return copy_3d(p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *p, CUstream stream)
{
	return copy_3d(p, stream, true);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *p, CUstream stream)
{
	return copy_3d(p, own(stream), true);
}
