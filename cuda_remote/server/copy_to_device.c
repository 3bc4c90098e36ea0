/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the device, and between device addresses. A small copy comes with its call. A long copy comes in chunks. Each
 * chunk is received into a pinned slot, or is in the staging area already, and the device copies from there while the
 * connection brings the next chunk.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <string.h>

bool server_box_is_sound(const struct rc_wire_box *box, uint64_t *bytes)
{
	*bytes = rc_box_bytes(box);
	return *bytes && rc_box_extent(box);
}

void server_box_part(const struct rc_wire_box *box, uint64_t offset, uint64_t len, CUdeviceptr *address, uint64_t *width,
		     uint64_t *rows)
{
	uint64_t row = offset / box->width, x = offset % box->width;
	*address = box->device + row / box->height * box->slice + row % box->height * box->pitch + x;
	*width = len < box->width ? len : box->width;
	*rows = len / *width;
}

CUresult server_part_h2d(const struct rc_wire_box *box, uint64_t offset, uint64_t len, const uint8_t *from, CUstream stream)
{
	CUdeviceptr to;
	uint64_t width, rows;
	server_box_part(box, offset, len, &to, &width, &rows);
	if (rows == 1)
		return driver.cuMemcpyHtoDAsync_v2(to, from, width, stream);
	if (!driver.cuMemcpy2DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcPitch = width,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstPitch = box->pitch,
		.WidthInBytes = width, .Height = rows,
	};
	return driver.cuMemcpy2DAsync_v2(&copy, stream);
}

CUresult server_small_h2d(const struct rc_wire_box *box, const uint8_t *bytes, uint64_t len, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	for (uint64_t offset = 0; offset < len && result == CUDA_SUCCESS;) {
		uint64_t part = rc_box_chunk(box, offset);
		result = server_part_h2d(box, offset, part, bytes + offset, stream);
		offset += part;
	}
	return result;
}

/* Begins a copy that comes in chunks. A failure is kept until the copy's end, as the client sends the chunks
 * nevertheless. */
static void h2d_begin(struct server_thread *thread, const struct rc_wire_copy *copy, uint64_t bytes, CUresult result)
{
	struct server_h2d *h2d = &thread->h2d;
	h2d->active = true;
	h2d->result = result;
	h2d->copy = copy->copy;
	h2d->offset = h2d->coming = 0;
	h2d->bytes = bytes;
	h2d->box = copy->box;
	h2d->stream = copy->stream;
	h2d->staged = copy->staged;
	server_ring_expect(thread, rc_box_chunks(&copy->box));
}

CUresult serve_copy_up(struct server_call *call)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	void *stream;
	if (!server_take_into(call, &copy, sizeof copy) || !server_box_is_sound(&copy.box, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, copy.stream, &stream);
	if (!copy.copy) {
		const uint8_t *from = server_take(call, bytes, 1);
		if (result == CUDA_SUCCESS && !from)
			result = CUDA_ERROR_INVALID_VALUE;
		return result == CUDA_SUCCESS ? server_small_h2d(&copy.box, from, bytes, stream) : result;
	}
	h2d_begin(call->thread, &copy, bytes, result);
	return CUDA_SUCCESS;
}

/* As copy_up with its bytes, complete before the next call is issued. The client sends it if the device is idle. */
CUresult serve_copy_up_settled(struct server_call *call)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	void *stream;
	if (!server_take_into(call, &copy, sizeof copy) || copy.copy || !server_box_is_sound(&copy.box, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	const uint8_t *from = server_take(call, bytes, 1);
	CUresult result = server_object(RC_KIND_STREAM, copy.stream, &stream);
	if (result == CUDA_SUCCESS && !from)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = server_small_h2d(&copy.box, from, bytes, stream);
	return result == CUDA_SUCCESS ? driver.cuStreamSynchronize(stream) : result;
}

CUresult server_h2d_refuse(struct server_call *call, CUresult result)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	if (!server_take_into(call, &copy, sizeof copy) || !copy.copy || !server_box_is_sound(&copy.box, &bytes))
		return result;
	h2d_begin(call->thread, &copy, bytes, result);
	return CUDA_SUCCESS;
}

/* Issues the copy of a chunk from memory, which its slot guards. Looks the stream up again: since the copy began, another
 * thread of the client may have destroyed it. */
static CUresult chunk_issue(struct server_thread *thread, struct server_slot *slot, const uint8_t *memory, size_t len)
{
	struct server_h2d *h2d = &thread->h2d;
	CUstream stream;
	CUresult result = server_stream_hold(thread, h2d->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_part_h2d(&h2d->box, h2d->offset, len, memory, stream);
	if (result == CUDA_SUCCESS)
		result = server_slot_record(slot, stream);
	server_stream_let_go();
	return result;
}

/* The chunk is there. A failure is kept: the client sends the other chunks nevertheless. */
static void chunk_take(struct server_thread *thread, struct server_slot *slot, const uint8_t *memory, size_t len)
{
	struct server_h2d *h2d = &thread->h2d;
	if (h2d->result == CUDA_SUCCESS)
		h2d->result = !slot ? CUDA_ERROR_OUT_OF_MEMORY : chunk_issue(thread, slot, memory, len);
	h2d->offset += len;
	server_ring_advance(thread);
}

static void chunk_arrived(void *context, int error, size_t len)
{
	struct server_thread *thread = context;
	struct server_slot *slot = thread->ring.slot[thread->ring.chunks % RC_WINDOW];
	if (!error && !thread->error)
		chunk_take(thread, slot, slot ? slot->memory : NULL, len);
}

/* True if a chunk of the copy may arrive now, and this one is the next. */
static bool chunk_is_next(const struct server_thread *thread, uint64_t copy, uint64_t offset, uint64_t bytes)
{
	const struct server_h2d *h2d = &thread->h2d;
	return h2d->active && !thread->busy && !thread->deferred && !thread->ring.wanted && copy == h2d->copy &&
	       offset == h2d->coming && offset < h2d->bytes && bytes == rc_box_chunk(&h2d->box, offset);
}

/* Chunks of one copy have different slots. Before the first one, a call may have to be executed. */
bool server_h2d_may_ahead(void *context, const ch3_incoming_t *incoming)
{
	const struct server_thread *thread = context;
	struct rc_wire_chunk chunk;
	if (thread->error || incoming->header_len != sizeof chunk || !incoming->payload_len)
		return false;
	memcpy(&chunk, incoming->header, sizeof chunk);
	if (thread->data)
		return server_data_may_ahead(&chunk);
	return thread->ring.arriving && thread->h2d.active && chunk.copy == thread->h2d.copy;
}

int server_h2d_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct server_thread *thread = context;
	struct rc_wire_chunk chunk;
	struct server_slot *slot;
	if (thread->error)
		return thread->error;
	if (thread->data)
		return server_data_arrived(thread, incoming, sink);
	if (incoming->header_len != sizeof chunk || incoming->rndv || thread->h2d.staged)
		return -EPROTO;
	memcpy(&chunk, incoming->header, sizeof chunk);
	if (!chunk_is_next(thread, chunk.copy, chunk.offset, incoming->payload_len))
		return -EPROTO;
	int error = server_ring_slot(thread, RC_CHUNK_MAX, &slot);
	if (error)
		return error;
	thread->h2d.coming += incoming->payload_len;
	sink->context = thread;
	sink->done = chunk_arrived;
	if (slot) /* without memory the chunk is received and dropped */
		sink->iov[sink->n++] = (struct iovec){ slot->memory, incoming->payload_len };
	return 0;
}

int server_h2d_staged(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct server_thread *thread = context;
	struct rc_wire_staged chunk;
	struct server_slot *slot;
	(void)sink;
	if (thread->error)
		return thread->error;
	if (incoming->header_len != sizeof chunk || incoming->payload_len || !thread->h2d.staged)
		return -EPROTO;
	memcpy(&chunk, incoming->header, sizeof chunk);
	uint8_t *memory = server_staging_place(thread);
	if (!memory || !chunk_is_next(thread, chunk.copy, chunk.offset, chunk.bytes))
		return -EPROTO;
	int error = server_ring_slot(thread, 1, &slot);
	thread->h2d.coming += error ? 0 : chunk.bytes;
	if (!error)
		chunk_take(thread, slot, memory, chunk.bytes);
	return error;
}

/* The last chunk was issued before this call, so the calls with higher numbers are issued after the whole copy. */
CUresult serve_copy_up_end(struct server_call *call)
{
	struct server_h2d *h2d = &call->thread->h2d;
	uint64_t copy;
	if (!server_take_into(call, &copy, sizeof copy) || !h2d->active || copy != h2d->copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = h2d->result;
	if (result == CUDA_SUCCESS && h2d->offset != h2d->bytes)
		result = CUDA_ERROR_UNKNOWN; /* the client stopped half-way */
	h2d->active = false;
	server_ring_expect(call->thread, 0);
	return result;
}

static CUresult row_d2d(CUdeviceptr to, CUdeviceptr from, const struct rc_wire_across *across, CUstream stream)
{
	if (across->to.height == 1) {
		if (!driver.cuMemcpyDtoDAsync_v2)
			return CUDA_ERROR_NOT_SUPPORTED;
		return driver.cuMemcpyDtoDAsync_v2(to, from, across->to.width, stream);
	}
	if (!driver.cuMemcpy2DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .srcPitch = across->from.pitch,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstPitch = across->to.pitch,
		.WidthInBytes = across->to.width, .Height = across->to.height,
	};
	return driver.cuMemcpy2DAsync_v2(&copy, stream);
}

/* The same, of memory of two devices. */
static CUresult row_peer(CUdeviceptr to, CUdeviceptr from, const struct rc_wire_across *across,
			 const struct server_placed_sides *sides, CUstream stream)
{
	if (across->to.height == 1) {
		if (!driver.cuMemcpyPeerAsync)
			return CUDA_ERROR_NOT_SUPPORTED;
		return driver.cuMemcpyPeerAsync(to, sides->to, from, sides->from, across->to.width, stream);
	}
	if (!driver.cuMemcpy3DPeerAsync)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUDA_MEMCPY3D_PEER copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .srcContext = sides->from,
		.srcPitch = across->from.pitch, .srcHeight = across->from.height,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstContext = sides->to,
		.dstPitch = across->to.pitch, .dstHeight = across->to.height,
		.WidthInBytes = across->to.width, .Height = across->to.height, .Depth = 1,
	};
	return driver.cuMemcpy3DPeerAsync(&copy, stream);
}

CUresult serve_copy_across(struct server_call *call)
{
	struct rc_wire_across across;
	uint64_t bytes, also;
	void *stream;
	if (!server_take_into(call, &across, sizeof across) || !server_box_is_sound(&across.to, &bytes) ||
	    !server_box_is_sound(&across.from, &also) || across.to.width != across.from.width ||
	    across.to.height != across.from.height || across.to.depth != across.from.depth)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, across.stream, &stream);
	struct server_placed_sides sides;
	bool apart = server_placed_apart(across.to.device, across.from.device, &sides);
	for (uint64_t z = 0; z < across.to.depth && result == CUDA_SUCCESS; z++) {
		CUdeviceptr to = across.to.device + z * across.to.slice, from = across.from.device + z * across.from.slice;
		result = apart ? row_peer(to, from, &across, &sides, stream) : row_d2d(to, from, &across, stream);
	}
	return result;
}
