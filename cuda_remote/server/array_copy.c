/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies with an array on one side or both. The other side of array_up is device memory, another array or the bytes that
 * come with the call; that of array_down is the answer. The box of host memory has no gaps. The bytes of array_up_later and
 * array_down_later come and go over the data connection (data/). The host memory of array_pinned is the worker's own mapping.
 */
#include "cuda_remote/server/internal.h"

#include <string.h>

/* The copy as the client described it, without its host's side. bytes: of the box. */
static CUresult copy_take(struct server_call *call, uint64_t named, CUDA_MEMCPY3D *copy, CUstream *stream, uint64_t *bytes)
{
	if (!server_take_into(call, copy, sizeof *copy))
		return CUDA_ERROR_INVALID_VALUE;
	struct rc_wire_box box = { .width = copy->WidthInBytes, .height = copy->Height, .depth = copy->Depth };
	*bytes = rc_box_bytes(&box);
	if (!*bytes || (copy->srcMemoryType == CU_MEMORYTYPE_HOST && copy->dstMemoryType == CU_MEMORYTYPE_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemcpy3DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_read_CUDA_MEMCPY3D(copy);
	return result == CUDA_SUCCESS ? server_object(RC_KIND_STREAM, named, (void **)stream) : result;
}

/* Takes the bytes that came with the call. slot: NULL, or where they are to be kept. */
static CUresult source_take(struct server_call *call, CUDA_MEMCPY3D *copy, uint64_t bytes, struct server_slot *slot)
{
	const void *from = server_take(call, bytes, 1);
	if (!from || bytes > (slot ? RC_CHUNK_MAX : RC_INLINE_COPY))
		return CUDA_ERROR_INVALID_VALUE;
	if (slot)
		memcpy(slot->memory, from, bytes);
	/* Pageable memory: the driver has read it when its call returns. */
	copy->srcHost = slot ? slot->memory : from;
	copy->srcXInBytes = copy->srcY = copy->srcZ = 0;
	copy->srcPitch = copy->WidthInBytes;
	copy->srcHeight = copy->Height;
	return CUDA_SUCCESS;
}

/* slot: NULL, or that of the part. */
static CUresult part_issue(struct server_call *call, uint64_t named, struct server_slot *slot)
{
	CUDA_MEMCPY3D copy;
	CUstream stream;
	uint64_t bytes;
	CUresult result = copy_take(call, named, &copy, &stream, &bytes);
	if (result != CUDA_SUCCESS)
		return result;
	if (copy.dstMemoryType == CU_MEMORYTYPE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy.srcMemoryType == CU_MEMORYTYPE_HOST)
		result = source_take(call, &copy, bytes, slot);
	if (result == CUDA_SUCCESS)
		result = driver.cuMemcpy3DAsync_v2(&copy, stream);
	return result == CUDA_SUCCESS && slot ? server_slot_record(slot, stream) : result;
}

CUresult serve_array_up(struct server_call *call)
{
	struct rc_wire_array args;
	struct server_slot *slot = NULL;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!args.parts)
		return part_issue(call, args.stream, NULL);
	server_ring_expect(call->thread, args.parts);
	int error = server_ring_slot(call->thread, RC_CHUNK_MAX, &slot);
	if (error && !call->thread->error)
		call->thread->error = error; /* the client has sent more than there are slots for */
	if (error)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = slot ? part_issue(call, args.stream, slot) : CUDA_ERROR_OUT_OF_MEMORY;
	server_ring_advance(call->thread);
	return result;
}

/* The client has counted the part's slot. */
CUresult server_array_refuse(struct server_call *call, CUresult result)
{
	struct rc_wire_array args;
	struct server_slot *slot;
	if (!server_take_into(call, &args, sizeof args) || !args.parts)
		return result;
	server_ring_expect(call->thread, args.parts);
	int error = server_ring_slot(call->thread, RC_CHUNK_MAX, &slot);
	if (!error)
		server_ring_advance(call->thread);
	else if (!call->thread->error)
		call->thread->error = error;
	return result;
}

CUresult serve_array_down(struct server_call *call)
{
	CUDA_MEMCPY3D copy;
	CUstream stream;
	uint64_t named, bytes;
	struct server_slot *slot;
	if (!server_take_into(call, &named, sizeof named))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = copy_take(call, named, &copy, &stream, &bytes);
	if (result != CUDA_SUCCESS)
		return result;
	if (copy.dstMemoryType != CU_MEMORYTYPE_HOST || bytes > RC_CHUNK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	result = server_slot_get(bytes, &slot);
	if (result != CUDA_SUCCESS)
		return result;
	copy.dstHost = slot->memory;
	copy.dstXInBytes = copy.dstY = copy.dstZ = 0;
	copy.dstPitch = copy.WidthInBytes;
	copy.dstHeight = copy.Height;
	result = driver.cuMemcpy3DAsync_v2(&copy, stream);
	if (result == CUDA_SUCCESS)
		result = server_slot_record(slot, stream);
	server_order_release(call);
	CUresult waited = server_slot_wait(slot);
	if (result == CUDA_SUCCESS)
		result = waited;
	if (result == CUDA_SUCCESS)
		result = server_give_bytes(call, slot->memory, bytes);
	server_slot_put(slot);
	return result;
}

/* ---- copies that no call waits for ---- */

CUresult server_part_array(const CUDA_MEMCPY3D *array, const struct rc_wire_box *box, uint64_t offset, uint64_t len,
			   uint8_t *memory, bool up, CUstream stream)
{
	CUDA_MEMCPY3D part = *array;
	uint64_t row = offset / box->width, width = len < box->width ? len : box->width;
	*(up ? &part.dstXInBytes : &part.srcXInBytes) += offset % box->width;
	*(up ? &part.dstY : &part.srcY) += row % box->height;
	*(up ? &part.dstZ : &part.srcZ) += row / box->height;
	part.WidthInBytes = width;
	part.Height = len / width;
	part.Depth = 1;
	if (up) {
		part.srcHost = memory;
		part.srcXInBytes = part.srcY = part.srcZ = 0;
		part.srcPitch = width;
		part.srcHeight = part.Height;
	} else {
		part.dstHost = memory;
		part.dstXInBytes = part.dstY = part.dstZ = 0;
		part.dstPitch = width;
		part.dstHeight = part.Height;
	}
	return driver.cuMemcpy3DAsync_v2(&part, stream);
}

/* The arguments of array_up_later and array_down_later. */
static CUresult later_take(struct server_call *call, const struct rc_wire_copy *copy, bool up, CUDA_MEMCPY3D *array,
			   uint64_t *bytes)
{
	CUstream stream;
	uint64_t also;
	CUresult result = copy_take(call, copy->stream, array, &stream, bytes);
	if (result != CUDA_SUCCESS)
		return result;
	CUmemorytype host = up ? array->srcMemoryType : array->dstMemoryType, other = up ? array->dstMemoryType : array->srcMemoryType;
	struct rc_wire_box want = { 0, array->WidthInBytes, array->WidthInBytes * array->Height, array->WidthInBytes, array->Height,
				    array->Depth };
	bool sound = host == CU_MEMORYTYPE_HOST && other == CU_MEMORYTYPE_ARRAY && server_box_is_sound(&copy->box, &also) &&
		     !memcmp(&copy->box, &want, sizeof want);
	return sound ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult serve_later(struct server_call *call, bool up)
{
	struct rc_wire_copy copy;
	CUDA_MEMCPY3D array;
	uint64_t bytes;
	if (!server_take_into(call, &copy, sizeof copy))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = later_take(call, &copy, up, &array, &bytes);
	if (result == CUDA_SUCCESS)
		return up ? server_fetch_issue(call, &copy, bytes, &array) : server_push_begin(call, &copy, bytes, &array);
	return server_data_refuse(copy.copy) ? result : server_data_no_memory(call);
}

CUresult serve_array_up_later(struct server_call *call)
{
	return serve_later(call, true);
}

CUresult serve_array_down_later(struct server_call *call)
{
	return serve_later(call, false);
}

/* The host's side of the copy, as far as it is inside of the pinned memory. NULL: it is not. */
static uint8_t *pinned_side(const struct rc_wire_array_pinned *args, const CUDA_MEMCPY3D *copy, bool up, uint8_t *memory,
			    uint64_t size)
{
	struct rc_wire_box box = { args->offset, up ? copy->srcPitch : copy->dstPitch, 0, copy->WidthInBytes, copy->Height,
				   copy->Depth };
	bool overflows = __builtin_mul_overflow(box.pitch, (uint64_t)(up ? copy->srcHeight : copy->dstHeight), &box.slice);
	uint64_t extent = overflows ? 0 : rc_box_extent(&box);
	return extent && args->offset <= size && extent <= size - args->offset ? memory + args->offset : NULL;
}

CUresult serve_array_pinned(struct server_call *call)
{
	struct rc_wire_array_pinned args;
	CUDA_MEMCPY3D copy;
	CUstream stream;
	uint8_t *memory;
	uint64_t bytes, size;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = copy_take(call, args.stream, &copy, &stream, &bytes);
	if (result == CUDA_SUCCESS)
		result = server_pinned_find(args.pinned, &memory, &size);
	if (result != CUDA_SUCCESS)
		return result;
	bool up = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
	uint8_t *host = up || copy.dstMemoryType == CU_MEMORYTYPE_HOST ? pinned_side(&args, &copy, up, memory, size) : NULL;
	if (!host)
		return CUDA_ERROR_INVALID_VALUE;
	if (up) {
		copy.srcHost = host;
		copy.srcXInBytes = copy.srcY = copy.srcZ = 0;
	} else {
		copy.dstHost = host;
		copy.dstXInBytes = copy.dstY = copy.dstZ = 0;
	}
	return driver.cuMemcpy3DAsync_v2(&copy, stream);
}
