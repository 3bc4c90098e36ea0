/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the device, and between device addresses. A small copy comes with its call. A long copy comes in chunks. Each
 * chunk is received into a pinned slot, and the device copies from there while the connection brings the next chunk.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <string.h>

#define WINDOW (sizeof ((struct server_h2d *)0)->window / sizeof ((struct server_h2d *)0)->window[0])

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

/* Copies a chunk of a box from contiguous host memory. */
static CUresult part_h2d(const struct rc_wire_box *box, uint64_t offset, uint64_t len, const uint8_t *from, CUstream stream)
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

/* Issues all of a small copy. As the bytes are in pageable memory, the driver has read them when its call returns. */
static CUresult small_h2d(const struct rc_wire_copy *copy, const uint8_t *bytes, uint64_t len, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	for (uint64_t offset = 0; offset < len && result == CUDA_SUCCESS;) {
		uint64_t part = rc_box_chunk(&copy->box, offset);
		result = part_h2d(&copy->box, offset, part, bytes + offset, stream);
		offset += part;
	}
	return result;
}

/* Begins a copy that comes in chunks. A failure is kept until the copy's end, as the client sends the chunks
 * nevertheless. The slots of the window are kept from copy to copy. */
static void h2d_begin(struct server_h2d *h2d, const struct rc_wire_copy *copy, uint64_t bytes, CUresult result)
{
	h2d->active = true;
	h2d->result = result;
	h2d->copy = copy->copy;
	h2d->offset = 0;
	h2d->bytes = bytes;
	h2d->box = copy->box;
	h2d->stream = copy->stream;
}

CUresult serve_copy_up(struct server_call *call)
{
	struct server_h2d *h2d = &call->thread->h2d;
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
		return result == CUDA_SUCCESS ? small_h2d(&copy, from, bytes, stream) : result;
	}
	h2d_begin(h2d, &copy, bytes, result);
	return CUDA_SUCCESS;
}

CUresult server_h2d_refuse(struct server_call *call, CUresult result)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	if (!server_take_into(call, &copy, sizeof copy) || !copy.copy || !server_box_is_sound(&copy.box, &bytes))
		return result;
	h2d_begin(&call->thread->h2d, &copy, bytes, result);
	return CUDA_SUCCESS;
}

/* The window's next slot. Waits until the device has read what the slot held. */
static CUresult window_slot(struct server_h2d *h2d, struct server_slot **slot)
{
	struct server_slot **at = &h2d->window[h2d->next];
	CUresult result = *at ? server_slot_wait(*at) : server_slot_get(RC_CHUNK_MAX, at);
	*slot = *at;
	return result;
}

/* Issues the copy of the chunk in the window's next slot. Looks the stream up again: since the copy began, another
 * thread of the client may have destroyed it. */
static CUresult chunk_issue(struct server_thread *thread, size_t len)
{
	struct server_h2d *h2d = &thread->h2d;
	struct server_slot *slot = h2d->window[h2d->next];
	CUstream stream;
	CUresult result = server_stream_hold(thread, h2d->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = part_h2d(&h2d->box, h2d->offset, len, slot->memory, stream);
	if (result == CUDA_SUCCESS)
		result = server_slot_record(slot, stream);
	server_stream_let_go();
	return result;
}

static void chunk_arrived(void *context, int error, size_t len)
{
	struct server_thread *thread = context;
	struct server_h2d *h2d = &thread->h2d;
	if (error || thread->error)
		return;
	if (h2d->result == CUDA_SUCCESS)
		h2d->result = chunk_issue(thread, len);
	h2d->next = (h2d->next + 1) % WINDOW;
	h2d->offset += len;
}

static void chunk_dropped(void *context, int error, size_t len)
{
	(void)context;
	(void)error;
	(void)len;
}

int server_h2d_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct server_thread *thread = context;
	struct server_h2d *h2d = &thread->h2d;
	struct rc_wire_chunk chunk;
	if (thread->error)
		return thread->error;
	if (incoming->header_len != sizeof chunk || incoming->rndv || !h2d->active || thread->busy || thread->deferred)
		return -EPROTO;
	memcpy(&chunk, incoming->header, sizeof chunk);
	if (chunk.copy != h2d->copy || chunk.offset != h2d->offset || chunk.offset >= h2d->bytes ||
	    incoming->payload_len != rc_box_chunk(&h2d->box, chunk.offset))
		return -EPROTO;
	struct server_slot *slot;
	if (h2d->result == CUDA_SUCCESS)
		h2d->result = window_slot(h2d, &slot);
	sink->context = thread;
	if (h2d->result != CUDA_SUCCESS) {
		h2d->offset += incoming->payload_len;
		sink->done = chunk_dropped;
		return 0;
	}
	sink->iov[0] = (struct iovec){ slot->memory, incoming->payload_len };
	sink->n = 1;
	sink->done = chunk_arrived;
	return 0;
}

/* Returns the slots of the window, after the device has finished with them. */
void server_h2d_abandon(struct server_thread *thread)
{
	struct server_h2d *h2d = &thread->h2d;
	for (size_t i = 0; i < WINDOW; i++) {
		if (h2d->window[i])
			server_slot_wait(h2d->window[i]);
		server_slot_put(h2d->window[i]);
		h2d->window[i] = NULL;
	}
	h2d->active = false;
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
	for (uint64_t z = 0; z < across.to.depth && result == CUDA_SUCCESS; z++)
		result = row_d2d(across.to.device + z * across.to.slice, across.from.device + z * across.from.slice, &across,
				    stream);
	return result;
}
