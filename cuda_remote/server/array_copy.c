/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies with an array on one side or both. The other side of array_up is device memory, another array or the bytes that
 * come with the call; that of array_down is the answer. The box of host memory has no gaps.
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
