/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensor maps. Only the driver that the kernel runs on knows their form, so the server's driver encodes them. */
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"

#include <string.h>

_Static_assert(sizeof(CUtensorMap) == RC_TENSOR_MAP_BYTES, "wire format");

/* Sends a call whose answer is a map. The map need not be aligned to 64 bytes. */
static CUresult ask(enum rc_call call, uint64_t address, const void *arguments, size_t len, void *map)
{
	struct iovec iov = { (void *)(uintptr_t)arguments, len };
	struct rc_wire_call head;
	struct rc_route route = { NULL, 0, false };
	struct rc_link *link;
	CUresult result = rc_route_address(&route, address);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, false, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, call, 0, &head, sizeof head, &iov, 1);
	if (result == CUDA_SUCCESS && link->reply_len != RC_TENSOR_MAP_BYTES)
		result = rc_link_broken(link, call);
	if (result == CUDA_SUCCESS)
		memcpy(map, link->reply, RC_TENSOR_MAP_BYTES);
	return result;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
				const cuuint64_t *dimensions, const cuuint64_t *strides, const cuuint32_t *box,
				const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
				CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	struct rc_wire_tensor sent = { .address = (uint64_t)(uintptr_t)address, .type = type, .rank = rank,
				       .interleave = interleave, .swizzle = swizzle, .promotion = promotion, .fill = fill };
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!map || !rank || rank > RC_TENSOR_RANK_MAX || !dimensions || (rank > 1 && !strides) || !box ||
	    !steps)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < rank; i++) {
		sent.dimensions[i] = dimensions[i];
		sent.box[i] = box[i];
		sent.steps[i] = steps[i];
		if (i + 1 < rank)
			sent.strides[i] = strides[i];
	}
	return ask(RC_CALL_tensor_map, sent.address, &sent, sizeof sent, map);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	struct rc_wire_tensor_address sent = { .address = (uint64_t)(uintptr_t)address };
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!map)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(sent.map, (const uint8_t *)map, sizeof sent.map);
	return ask(RC_CALL_tensor_map_address, sent.address, &sent, sizeof sent, map);
}
