/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the device. A small one comes with its call. A long one comes in chunks; each is received into a pinned slot and copied on
 * from there by the device, so that the connection brings the next chunk while the device takes this one.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <string.h>

#define WINDOW (sizeof ((struct server_up *)0)->window / sizeof ((struct server_up *)0)->window[0])

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
static CUresult part_up(const struct rc_wire_box *box, uint64_t offset, uint64_t len, const uint8_t *from, CUstream stream)
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

/* All of a small copy: the driver has taken pageable memory when the call returns. */
static CUresult small_up(const struct rc_wire_copy *copy, const uint8_t *bytes, uint64_t len, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	for (uint64_t offset = 0; offset < len && result == CUDA_SUCCESS;) {
		uint64_t part = rc_box_chunk(&copy->box, offset);
		result = part_up(&copy->box, offset, part, bytes + offset, stream);
		offset += part;
	}
	return result;
}

/* A failure is kept for the end: the chunks come all the same. The window stays from copy to copy. */
static void up_begin(struct server_up *up, const struct rc_wire_copy *copy, uint64_t bytes, CUstream stream, CUresult result)
{
	up->active = true;
	up->result = result;
	up->copy = copy->copy;
	up->offset = 0;
	up->bytes = bytes;
	up->box = copy->box;
	up->stream = stream;
}

CUresult serve_copy_up(struct server_call *call)
{
	struct server_up *up = &call->thread->up;
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
		return result == CUDA_SUCCESS ? small_up(&copy, from, bytes, stream) : result;
	}
	up_begin(up, &copy, bytes, result == CUDA_SUCCESS ? stream : NULL, result);
	return CUDA_SUCCESS;
}

CUresult server_up_refuse(struct server_call *call, CUresult result)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	if (!server_take_into(call, &copy, sizeof copy) || !copy.copy || !server_box_is_sound(&copy.box, &bytes))
		return result;
	up_begin(&call->thread->up, &copy, bytes, NULL, result);
	return CUDA_SUCCESS;
}

/* The window's next slot, when the device is done with what it held. */
static CUresult window_slot(struct server_up *up, struct server_slot **slot)
{
	struct server_slot **at = &up->window[up->turn];
	CUresult result = *at ? server_slot_wait(*at) : server_slot_get(RC_CHUNK_MAX, at);
	*slot = *at;
	return result;
}

static void chunk_arrived(void *context, int error, size_t len)
{
	struct server_thread *thread = context;
	struct server_up *up = &thread->up;
	if (error || thread->error)
		return;
	struct server_slot *slot = up->window[up->turn];
	if (up->result == CUDA_SUCCESS)
		up->result = part_up(&up->box, up->offset, len, slot->memory, up->stream);
	if (up->result == CUDA_SUCCESS)
		up->result = server_slot_record(slot, up->stream);
	up->turn = (up->turn + 1) % WINDOW;
	up->offset += len;
}

static void chunk_dropped(void *context, int error, size_t len)
{
	(void)context;
	(void)error;
	(void)len;
}

int server_up_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct server_thread *thread = context;
	struct server_up *up = &thread->up;
	struct rc_wire_chunk chunk;
	if (thread->error)
		return thread->error;
	if (incoming->header_len != sizeof chunk || incoming->rndv || !up->active || thread->busy || thread->deferred)
		return -EPROTO;
	memcpy(&chunk, incoming->header, sizeof chunk);
	if (chunk.copy != up->copy || chunk.offset != up->offset || chunk.offset >= up->bytes ||
	    incoming->payload_len != rc_box_chunk(&up->box, chunk.offset))
		return -EPROTO;
	struct server_slot *slot;
	if (up->result == CUDA_SUCCESS)
		up->result = window_slot(up, &slot);
	sink->context = thread;
	if (up->result != CUDA_SUCCESS) {
		up->offset += incoming->payload_len;
		sink->done = chunk_dropped;
		return 0;
	}
	sink->iov[0] = (struct iovec){ slot->memory, incoming->payload_len };
	sink->n = 1;
	sink->done = chunk_arrived;
	return 0;
}

/* The slots go back when the device is done with them. */
void server_up_abandon(struct server_thread *thread)
{
	struct server_up *up = &thread->up;
	for (size_t i = 0; i < WINDOW; i++) {
		if (up->window[i])
			server_slot_wait(up->window[i]);
		server_slot_put(up->window[i]);
		up->window[i] = NULL;
	}
	up->active = false;
}

/* The last chunk was issued before this call's turn came, so what follows in the sequence comes behind it. */
CUresult serve_copy_up_end(struct server_call *call)
{
	struct server_up *up = &call->thread->up;
	uint64_t copy;
	if (!server_take_into(call, &copy, sizeof copy) || !up->active || copy != up->copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = up->result;
	if (result == CUDA_SUCCESS && up->offset != up->bytes)
		result = CUDA_ERROR_UNKNOWN; /* the client gave up half-way */
	up->active = false;
	return result;
}

static CUresult row_across(CUdeviceptr to, CUdeviceptr from, const struct rc_wire_across *across, CUstream stream)
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
		result = row_across(across.to.device + z * across.to.slice, across.from.device + z * across.from.slice, &across,
				    stream);
	return result;
}
