/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies with an array on one side or both. The server's driver knows how an array lies in memory, so the copy's description
 * travels. Between arrays and device memory that is all. To and from host memory a copy is cut into parts of at most
 * RC_CHUNK_MAX bytes, as the driver accepts them: whole slices, whole rows of one slice, or part of one row. A part to the
 * array is in its call; a part to the host is in the answer. An asynchronous copy from or to pinned memory is one call: the worker
 * copies by itself if it has mapped the memory, otherwise the data connection carries the bytes (data/).
 */
#include "cuda_remote/client/array.h"
#include "cuda_remote/client/chunks.h"
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/hostfn.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <stdlib.h>
#include <string.h>

/* The host's side of a copy. */
struct host {
	uint8_t *start;
	size_t pitch, slice;
};

static CUresult host_of(const CUDA_MEMCPY3D *copy, bool up, struct host *host)
{
	size_t x = up ? copy->srcXInBytes : copy->dstXInBytes, y = up ? copy->srcY : copy->dstY;
	size_t z = up ? copy->srcZ : copy->dstZ, rows = up ? copy->srcHeight : copy->dstHeight;
	uint8_t *base = up ? (uint8_t *)(uintptr_t)copy->srcHost : copy->dstHost;
	size_t slices, across, down;
	host->pitch = up ? copy->srcPitch : copy->dstPitch;
	if (!host->pitch)
		host->pitch = copy->WidthInBytes;
	if (!base || (copy->Height > 1 && host->pitch < copy->WidthInBytes) ||
	    __builtin_mul_overflow(host->pitch, rows ? rows : copy->Height, &host->slice) ||
	    __builtin_mul_overflow(host->slice, z, &slices) || __builtin_mul_overflow(host->pitch, y, &across) ||
	    __builtin_add_overflow(slices, across, &down) || __builtin_add_overflow(down, x, &down))
		return CUDA_ERROR_INVALID_VALUE;
	host->start = base + down;
	struct rc_wire_box box = { (uint64_t)(uintptr_t)host->start, host->pitch, host->slice, copy->WidthInBytes,
				   copy->Height, copy->Depth };
	return rc_box_extent(&box) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Between the host's rows and the bytes of a part, which have no gaps. */
static void move(const struct host *host, const CUDA_MEMCPY3D *part, const size_t at[3], uint8_t *bytes, bool up)
{
	size_t width = part->WidthInBytes;
	for (size_t z = 0; z < part->Depth; z++)
		for (size_t y = 0; y < part->Height; y++, bytes += width) {
			uint8_t *row = host->start + (at[2] + z) * host->slice + (at[1] + y) * host->pitch + at[0];
			memcpy(up ? bytes : row, up ? row : bytes, width);
		}
}

/* Sends one part. If it takes a slot, waits for that. */
static CUresult part_send(struct rc_link *link, const struct rc_wire_array *call, const CUDA_MEMCPY3D *part, uint8_t *bytes)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_array call;
	} message = { .call = *call };
	size_t n = part->WidthInBytes * part->Height * part->Depth;
	struct iovec iov[] = { { (void *)(uintptr_t)part, sizeof *part }, { bytes, n } };
	CUresult result = call->parts ? rc_chunks_take(link) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_post(link, RC_CALL_array_up, 0, &message.head, sizeof message, iov, 2);
	if (result != CUDA_SUCCESS && call->parts)
		rc_chunks_untake(link);
	return result;
}

static CUresult part_fetch(struct rc_link *link, uint64_t stream, const CUDA_MEMCPY3D *part, uint8_t *bytes)
{
	struct {
		struct rc_wire_call head;
		uint64_t stream;
	} message = { .stream = stream };
	size_t n = part->WidthInBytes * part->Height * part->Depth;
	struct iovec iov = { (void *)(uintptr_t)part, sizeof *part };
	CUresult result = rc_link_call(link, RC_CALL_array_down, 0, &message.head, sizeof message, &iov, 1);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != n)
		return rc_link_broken(link, RC_CALL_array_down);
	memcpy(bytes, link->reply, n);
	return CUDA_SUCCESS;
}

/* The largest part that begins at a place of the box and is not larger than RC_CHUNK_MAX. */
static void part_size(const CUDA_MEMCPY3D *copy, const size_t at[3], size_t size[3])
{
	size_t width = copy->WidthInBytes, slice;
	size[0] = width;
	size[1] = size[2] = 1;
	if (width > RC_CHUNK_MAX) {
		size[0] = width - at[0] < RC_CHUNK_MAX ? width - at[0] : RC_CHUNK_MAX;
	} else if (!__builtin_mul_overflow(width, copy->Height, &slice) && slice <= RC_CHUNK_MAX) {
		size_t slices = RC_CHUNK_MAX / slice;
		size[1] = copy->Height;
		size[2] = copy->Depth - at[2] < slices ? copy->Depth - at[2] : slices;
	} else {
		size_t rows = RC_CHUNK_MAX / width;
		size[1] = copy->Height - at[1] < rows ? copy->Height - at[1] : rows;
	}
}

/* Moves at to the place behind a part. False: that was the last. */
static bool part_next(const CUDA_MEMCPY3D *copy, size_t at[3], const size_t size[3])
{
	at[0] += size[0];
	if (at[0] < copy->WidthInBytes)
		return true;
	at[0] = 0;
	at[1] += size[1];
	if (at[1] < copy->Height)
		return true;
	at[1] = 0;
	at[2] += size[2];
	return at[2] < copy->Depth;
}

/* The number of parts that take a slot each: 0 if all bytes are sent as the driver takes pageable memory. */
static uint64_t count_parts(const CUDA_MEMCPY3D *copy)
{
	size_t at[3] = { 0, 0, 0 }, size[3];
	struct rc_wire_box box = { .width = copy->WidthInBytes, .height = copy->Height, .depth = copy->Depth };
	uint64_t n = 0;
	if (rc_box_bytes(&box) <= RC_INLINE_COPY)
		return 0;
	do {
		part_size(copy, at, size);
		n++;
	} while (part_next(copy, at, size));
	return n;
}

static CUresult copy_parts(struct rc_link *link, uint64_t stream, const CUDA_MEMCPY3D *copy, const CUDA_MEMCPY3D *sent,
			   bool up)
{
	struct host host;
	CUresult result = host_of(copy, up, &host);
	uint8_t *bytes = result == CUDA_SUCCESS ? malloc(RC_CHUNK_MAX) : NULL;
	if (!bytes)
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
	struct rc_wire_array call = { stream, up ? count_parts(copy) : 0 };
	size_t at[3] = { 0, 0, 0 }, size[3] = { 0, 0, 0 };
	do {
		CUDA_MEMCPY3D part = *sent;
		part_size(copy, at, size);
		part.WidthInBytes = size[0];
		part.Height = size[1];
		part.Depth = size[2];
		*(up ? &part.dstXInBytes : &part.srcXInBytes) += at[0];
		*(up ? &part.dstY : &part.srcY) += at[1];
		*(up ? &part.dstZ : &part.srcZ) += at[2];
		if (up)
			move(&host, &part, at, bytes, true);
		result = up ? part_send(link, &call, &part, bytes) : part_fetch(link, stream, &part, bytes);
		if (result == CUDA_SUCCESS && !up)
			move(&host, &part, at, bytes, false);
		call.parts -= call.parts ? 1 : 0;
	} while (result == CUDA_SUCCESS && part_next(copy, at, size));
	free(bytes);
	return result;
}

static CUresult array_across(struct rc_link *link, uint64_t stream, const CUDA_MEMCPY3D *sent)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_array call;
	} message = { .call = { stream, 0 } };
	struct iovec iov = { (void *)(uintptr_t)sent, sizeof *sent };
	return rc_link_post(link, RC_CALL_array_up, 0, &message.head, sizeof message, &iov, 1);
}

/* A side of unified memory is host or device memory. Managed memory is memory of the device, wherever a call takes its address. */
static void settle_sides(CUDA_MEMCPY3D *copy)
{
	if (copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED) {
		copy->srcMemoryType = rc_memory_is_device(copy->srcDevice) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		copy->srcHost = (const void *)(uintptr_t)copy->srcDevice;
	}
	if (copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED) {
		copy->dstMemoryType = rc_memory_is_device(copy->dstDevice) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		copy->dstHost = (void *)(uintptr_t)copy->dstDevice;
	}
	if (copy->srcMemoryType == CU_MEMORYTYPE_HOST && rc_managed_at((uint64_t)(uintptr_t)copy->srcHost)) {
		copy->srcMemoryType = CU_MEMORYTYPE_DEVICE;
		copy->srcDevice = (CUdeviceptr)(uintptr_t)copy->srcHost;
	}
	if (copy->dstMemoryType == CU_MEMORYTYPE_HOST && rc_managed_at((uint64_t)(uintptr_t)copy->dstHost)) {
		copy->dstMemoryType = CU_MEMORYTYPE_DEVICE;
		copy->dstDevice = (CUdeviceptr)(uintptr_t)copy->dstHost;
	}
}

/* Returns whether a host function, or a copy to the host, may still write the source of a copy. Workers write pinned
 * memory that they have mapped without the client, also another server's, for whose event the stream waits. */
static bool may_change(uint64_t address, uint64_t size)
{
	return rc_host_any() || rc_copy_writes(address, size) || rc_pinned_shared(address);
}

/* Between an array and pinned memory that the worker has mapped. */
static CUresult copy_mapped(struct rc_link *link, uint64_t stream, CUDA_MEMCPY3D *sent, const struct host *host, bool up,
			    const struct rc_span *span)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_array_pinned call;
	} message = { .call = { stream, span->pinned, rc_pinned_offset(span, (uint64_t)(uintptr_t)host->start) } };
	struct iovec iov = { sent, sizeof *sent };
	*(up ? &sent->srcPitch : &sent->dstPitch) = host->pitch;
	*(up ? &sent->srcHeight : &sent->dstHeight) = host->pitch ? host->slice / host->pitch : 0;
	return rc_link_post(link, RC_CALL_array_pinned, 0, &message.head, sizeof message, &iov, 1);
}

static CUresult copy_later(struct rc_link *link, uint64_t stream, const CUDA_MEMCPY3D *sent, const struct host *host, bool up)
{
	struct rc_copy copy = { .host = host->start, .pitch = host->pitch, .slice = host->slice, .width = sent->WidthInBytes,
				.height = sent->Height, .depth = sent->Depth, .up = up };
	copy.box = (struct rc_wire_box){ 0, copy.width, copy.width * copy.height, copy.width, copy.height, copy.depth };
	return rc_copy_array_later(link, &copy, stream, sent);
}

/* A copy between host memory and an array. */
static CUresult copy_with_host(const struct rc_route *route, const CUDA_MEMCPY3D *copy, CUDA_MEMCPY3D *sent, uint64_t stream,
			       bool up, bool asynchronous)
{
	struct rc_session *session = route->session ? route->session : rc_context_session();
	struct rc_link *link;
	struct rc_span span;
	struct host host;
	CUresult result = host_of(copy, up, &host);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t address = (uint64_t)(uintptr_t)host.start;
	struct rc_wire_box box = { address, host.pitch, host.slice, copy->WidthInBytes, copy->Height, copy->Depth };
	uint64_t size = rc_box_extent(&box), bytes = rc_box_bytes(&box);
	if (asynchronous && rc_pinned_in(session, address, size, &span))
		return copy_mapped(link, stream, sent, &host, up, &span);
	bool changes = up && may_change(address, size), pinned = rc_copy_is_pinned(address, size);
	bool now = up && !changes && bytes <= RC_INLINE_COPY && !rc_held_any(link->session);
	if (asynchronous && pinned && !now && rc_data_open(link->session)) {
		result = copy_later(link, stream, sent, &host, up);
		return result == CUDA_SUCCESS && !up ?
			       rc_copy_changes_early(session, address, size, (CUstream)(uintptr_t)stream) :
			       result;
	}
	/* The bytes are read now, and earlier work of the stream may still write them. */
	if (changes && (pinned || !rc_copy_is_staged(bytes, asynchronous)))
		result = rc_copy_wait_for_turn(stream);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(route, true, &link);
	if (result == CUDA_SUCCESS)
		result = copy_parts(link, stream, copy, sent, up);
	bool completes = up && !asynchronous && rc_copy_completes(session, pinned, bytes);
	return result == CUDA_SUCCESS && completes ? rc_copy_await(route, stream) : result;
}

/* The session that has one side of a copy; NULL: the host. */
static struct rc_session *session_of(CUmemorytype type, CUdeviceptr device, CUarray array)
{
	struct rc_span span;
	if (type == CU_MEMORYTYPE_ARRAY)
		return rc_handle_session((uint64_t)(uintptr_t)array);
	return type == CU_MEMORYTYPE_DEVICE && rc_memory_find(device, &span) ? span.session : NULL;
}

/* Copies between an array and host memory of which another server has a mirror are not supported. */
static CUresult check_sessions(const CUDA_MEMCPY3D *copy)
{
	const struct rc_session *to = session_of(copy->dstMemoryType, copy->dstDevice, copy->dstArray);
	const struct rc_session *from = session_of(copy->srcMemoryType, copy->srcDevice, copy->srcArray);
	if (!to || !from || to == from)
		return CUDA_SUCCESS;
	CUresult result = rc_array_check(copy);
	if (result != CUDA_SUCCESS || !copy->WidthInBytes || !copy->Height || !copy->Depth)
		return result;
	hr_log_once(HR_LOG_WARN, "a copy between an array and memory that another server's kernels use is not supported; copy "
		    "through other memory");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* True if the array of a copy from or to the host is of another server than the stream. */
static bool is_elsewhere(CUarray array, uint64_t stream)
{
	const struct rc_session *own = rc_stream_is_special(stream) ? rc_context_session() : rc_handle_session(stream);
	const struct rc_session *session = rc_handle_session((uint64_t)(uintptr_t)array);
	return rc_peer_possible() && own && session && own != session;
}

/* Such a copy, if its host memory is not pinned: waits for the stream, copies in the default stream of the array's context, and
 * waits for the copy. */
static CUresult copy_elsewhere(const CUDA_MEMCPY3D *copy, CUarray array, CUstream stream)
{
	CUresult result = capture_check_stream(stream);
	if (result == CUDA_SUCCESS)
		result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)stream);
	if (result == CUDA_SUCCESS)
		result = cuCtxPushCurrent_v2(rc_handle_data(RC_KIND_ARRAY, (uint64_t)(uintptr_t)array));
	if (result != CUDA_SUCCESS)
		return result;
	CUcontext context;
	result = rc_array_copy(copy, CU_STREAM_LEGACY, false);
	cuCtxPopCurrent_v2(&context);
	return result;
}

CUresult rc_array_copy(const CUDA_MEMCPY3D *given, CUstream stream, bool asynchronous)
{
	CUDA_MEMCPY3D copy = *given, sent;
	struct rc_route route = { NULL, 0, false };
	struct rc_link *link;
	uint64_t named = (uint64_t)(uintptr_t)stream;
	settle_sides(&copy);
	bool up = copy.srcMemoryType == CU_MEMORYTYPE_HOST, down = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
	bool captured;
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS && rc_peer_possible() && rc_array_check(&copy) == CUDA_SUCCESS) {
		result = rc_capture_array_copy(stream, given, asynchronous, &captured);
		if (result != CUDA_SUCCESS || captured || rc_peer_copy_array(&copy, stream, asynchronous, &result))
			return result;
	}
	CUarray array = up ? copy.dstArray : copy.srcArray;
	if (result == CUDA_SUCCESS && (up || down) && rc_handle_check(RC_KIND_STREAM, named) == CUDA_SUCCESS &&
	    rc_array_check(&copy) == CUDA_SUCCESS && is_elsewhere(array, named))
		return copy_elsewhere(&copy, array, stream);
	if (result == CUDA_SUCCESS)
		result = check_sessions(&copy);
	if (result == CUDA_SUCCESS)
		result = rc_send_CUDA_MEMCPY3D(&route, &copy, &sent);
	if (result == CUDA_SUCCESS)
		result = rc_array_check(&copy);
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&route, RC_KIND_STREAM, named);
	if (result == CUDA_SUCCESS)
		result = rc_capture_array_copy(stream, given, asynchronous, &captured);
	if (result != CUDA_SUCCESS || captured)
		return result;
	result = rc_link_get(&route, true, &link);
	if (result != CUDA_SUCCESS || !copy.WidthInBytes || !copy.Height || !copy.Depth)
		return result;
	if (up || down)
		return copy_with_host(&route, &copy, &sent, named, up, asynchronous);
	result = array_across(link, named, &sent);
	/* Like a copy from an array to other memory of the host, it waits. */
	if (result == CUDA_SUCCESS && copy.dstMemoryType == CU_MEMORYTYPE_DEVICE && rc_managed_at(copy.dstDevice))
		result = rc_managed_settle(copy.dstDevice, named);
	return result;
}

/* ---- the driver's calls, one row of an array ---- */

struct end {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t offset;
};

static struct end host_end(const void *host)
{
	return (struct end){ .type = CU_MEMORYTYPE_HOST, .host = host };
}

static struct end device_end(CUdeviceptr device)
{
	return (struct end){ .type = CU_MEMORYTYPE_DEVICE, .device = device };
}

static struct end array_end(CUarray array, size_t offset)
{
	return (struct end){ .type = CU_MEMORYTYPE_ARRAY, .array = array, .offset = offset };
}

static CUresult row_copy(struct end to, struct end from, size_t bytes, CUstream stream, bool asynchronous)
{
	CUDA_MEMCPY3D copy = {
		.srcXInBytes = from.offset, .srcMemoryType = from.type, .srcHost = from.host, .srcDevice = from.device,
		.srcArray = from.array, .srcPitch = bytes,
		.dstXInBytes = to.offset, .dstMemoryType = to.type, .dstHost = (void *)(uintptr_t)to.host,
		.dstDevice = to.device, .dstArray = to.array, .dstPitch = bytes,
		.WidthInBytes = bytes, .Height = 1, .Depth = 1,
	};
	CUresult result = CUDA_SUCCESS;
	if (to.type == CU_MEMORYTYPE_ARRAY)
		result = rc_array_check_row(to.array);
	if (result == CUDA_SUCCESS && from.type == CU_MEMORYTYPE_ARRAY)
		result = rc_array_check_row(from.array);
	return result == CUDA_SUCCESS ? rc_array_copy(&copy, stream, asynchronous) : result;
}

static CUresult row(struct end to, struct end from, size_t bytes, CUstream stream)
{
	return row_copy(to, from, bytes, stream, false);
}

static CUresult row_async(struct end to, struct end from, size_t bytes, CUstream stream)
{
	return row_copy(to, from, bytes, stream, true);
}

/* The stream that a per-thread variant means by NULL. */
static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t size)
{
	return row(array_end(to, to_offset), array_end(from, from_offset), size, NULL);
}

CUresult cuMemcpyAtoA_v2_ptds(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t size)
{
	return row(array_end(to, to_offset), array_end(from, from_offset), size, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t size)
{
	return row(device_end(to), array_end(from, offset), size, NULL);
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr to, CUarray from, size_t offset, size_t size)
{
	return row(device_end(to), array_end(from, offset), size, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t size)
{
	return row(array_end(to, offset), device_end(from), size, NULL);
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray to, size_t offset, CUdeviceptr from, size_t size)
{
	return row(array_end(to, offset), device_end(from), size, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t size)
{
	return row(host_end(to), array_end(from, offset), size, NULL);
}

CUresult cuMemcpyAtoH_v2_ptds(void *to, CUarray from, size_t offset, size_t size)
{
	return row(host_end(to), array_end(from, offset), size, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t size, CUstream stream)
{
	return row_async(host_end(to), array_end(from, offset), size, stream);
}

CUresult cuMemcpyAtoHAsync_v2_ptsz(void *to, CUarray from, size_t offset, size_t size, CUstream stream)
{
	return row_async(host_end(to), array_end(from, offset), size, own(stream));
}

CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t size)
{
	return row(array_end(to, offset), host_end(from), size, NULL);
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray to, size_t offset, const void *from, size_t size)
{
	return row(array_end(to, offset), host_end(from), size, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t size, CUstream stream)
{
	return row_async(array_end(to, offset), host_end(from), size, stream);
}

CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray to, size_t offset, const void *from, size_t size, CUstream stream)
{
	return row_async(array_end(to, offset), host_end(from), size, own(stream));
}
