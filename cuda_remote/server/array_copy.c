/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies with an array on one side or both. The other side of array_up is device memory, another array or the bytes that
 * come with the call; that of array_down is the answer. The box of host memory has no gaps.
 */
#include "cuda_remote/server/internal.h"

#include <string.h>

/* The copy as the client described it, without its host's side. bytes: of the box. */
static CUresult copy_take(struct server_call *call, CUDA_MEMCPY3D *copy, CUstream *stream, uint64_t *bytes)
{
	uint64_t named;
	if (!server_take_into(call, &named, sizeof named) || !server_take_into(call, copy, sizeof *copy))
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

CUresult serve_array_up(struct server_call *call)
{
	CUDA_MEMCPY3D copy;
	CUstream stream;
	uint64_t bytes;
	CUresult result = copy_take(call, &copy, &stream, &bytes);
	if (result != CUDA_SUCCESS)
		return result;
	if (copy.dstMemoryType == CU_MEMORYTYPE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy.srcMemoryType == CU_MEMORYTYPE_HOST) {
		/* Pageable memory: the driver has read it when its call returns. */
		copy.srcHost = server_take(call, bytes, 1);
		copy.srcXInBytes = copy.srcY = copy.srcZ = 0;
		copy.srcPitch = copy.WidthInBytes;
		copy.srcHeight = copy.Height;
		if (!copy.srcHost)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return driver.cuMemcpy3DAsync_v2(&copy, stream);
}

CUresult serve_array_down(struct server_call *call)
{
	CUDA_MEMCPY3D copy;
	CUstream stream;
	uint64_t bytes;
	struct server_slot *slot;
	CUresult result = copy_take(call, &copy, &stream, &bytes);
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
