/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensor maps. They hold numbers and device addresses, which kernels use; the driver follows none of them. */
#include "cuda_remote/server/internal.h"

#include <string.h>

CUresult serve_tensor_map(struct server_call *call)
{
	struct rc_wire_tensor args;
	CUtensorMap map;
	if (!server_take_into(call, &args, sizeof args) || !args.rank || args.rank > RC_TENSOR_RANK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuTensorMapEncodeTiled)
		return CUDA_ERROR_NOT_SUPPORTED;
	cuuint64_t dimensions[RC_TENSOR_RANK_MAX], strides[RC_TENSOR_RANK_MAX];
	memcpy(dimensions, args.dimensions, sizeof dimensions);
	memcpy(strides, args.strides, sizeof args.strides);
	CUresult result = driver.cuTensorMapEncodeTiled(&map, (CUtensorMapDataType)args.type, args.rank,
							(void *)(uintptr_t)args.address, dimensions, strides, args.box,
							args.steps, (CUtensorMapInterleave)args.interleave,
							(CUtensorMapSwizzle)args.swizzle,
							(CUtensorMapL2promotion)args.promotion,
							(CUtensorMapFloatOOBfill)args.fill);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &map, sizeof map) : result;
}

CUresult serve_tensor_map_address(struct server_call *call)
{
	struct rc_wire_tensor_address args;
	CUtensorMap map;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuTensorMapReplaceAddress)
		return CUDA_ERROR_NOT_SUPPORTED;
	memcpy(&map, args.map, sizeof map);
	CUresult result = driver.cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)args.address);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &map, sizeof map) : result;
}
