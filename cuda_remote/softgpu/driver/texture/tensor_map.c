/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensor maps of tiles (cuTensorMapEncodeTiled), with the limits that cuda.h states there. */
#include "cuda_remote/softgpu/tensor_map.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "rdma_channel/base/log.h"

#include <string.h>

#define BOX_MAX 256
#define STEP_MAX 8
#define STRIDE_END (UINT64_C(1) << 40)

/* cuda.h wants a map aligned to 64 bytes. Python's cuda.core has its maps in objects that are aligned to 16 bytes, so
 * NVIDIA's driver cannot insist on it. */
static CUresult check(const void *map)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!map)
		return CUDA_ERROR_INVALID_VALUE;
	return device_capability() < 90 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* Logs a feature that cuda.h permits and this device does not support. */
static CUresult unsupported(const char *what)
{
	hr_log(HR_LOG_WARN, "software GPU: a tensor map with %s is not supported", what);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static bool enums_valid(CUtensorMapDataType type, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
			CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	bool is_float = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 ||
			(type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT32 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ);
	return (unsigned)type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B &&
	       (unsigned)interleave <= CU_TENSOR_MAP_INTERLEAVE_32B &&
	       (unsigned)swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
	       (unsigned)promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
	       (unsigned)fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA &&
	       (fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || is_float);
}

/* Dimensions, strides, box and steps. */
static bool shape_valid(uint32_t rank, const cuuint64_t *dimensions, const cuuint64_t *strides,
			const cuuint32_t *box, const cuuint32_t *steps)
{
	for (uint32_t i = 0; i < rank; i++)
		if (!dimensions[i] || dimensions[i] > UINT64_C(1) << 32 || !box[i] || box[i] > BOX_MAX || !steps[i] ||
		    steps[i] > STEP_MAX)
			return false;
	for (uint32_t i = 0; i + 1 < rank; i++)
		if (strides[i] % 16 || strides[i] >= STRIDE_END)
			return false;
	return true;
}

/* Bytes of a row that are swizzled together; 0: no swizzling. */
static uint32_t swizzle_bytes(CUtensorMapSwizzle swizzle)
{
	return swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0 : 16u << swizzle;
}

static CUresult supported(uint32_t row, uint32_t element, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
			  CUtensorMapFloatOOBfill fill)
{
	if (!element)
		return unsupported("a packed, flushing or tf32 type");
	if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
		return unsupported("interleaved channels");
	if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
		return unsupported("a swizzle of larger atoms");
	if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && element != 2)
		return unsupported("a NaN fill of wide floats");
	if (row % 16 || (swizzle && row > swizzle_bytes(swizzle)))
		return CUDA_ERROR_INVALID_VALUE;
	if (swizzle && row < swizzle_bytes(swizzle))
		return unsupported("rows shorter than their swizzle");
	return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
				void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
				const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
				CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
				CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	CUresult result = check(tensorMap);
	if (result)
		return result;
	if (!tensorRank || tensorRank > TENSOR_RANK_MAX || (uintptr_t)globalAddress % 16 || !globalDim || !boxDim ||
	    !elementStrides || (tensorRank > 1 && !globalStrides) ||
	    !enums_valid(tensorDataType, interleave, swizzle, l2Promotion, oobFill) ||
	    !shape_valid(tensorRank, globalDim, globalStrides, boxDim, elementStrides))
		return CUDA_ERROR_INVALID_VALUE;
	uint32_t element = tensor_type_bytes(tensorDataType);
	result = supported(boxDim[0] * element, element, interleave, swizzle, oobFill);
	if (result)
		return result;
	softgpu_tensor_map_t map = { .magic = TENSOR_MAP_MAGIC, .rank = (uint8_t)tensorRank,
				     .element = (uint8_t)element, .type = (uint8_t)tensorDataType,
				     .fill = oobFill ? 0xff : 0, .address = (uintptr_t)globalAddress,
				     .swizzle = (uint8_t)swizzle };
	for (uint32_t i = 0; i < tensorRank; i++) {
		map.last[i] = (uint32_t)(globalDim[i] - 1);
		map.steps[i] = i ? (uint8_t)elementStrides[i] : 1;
		map.box[i] = (uint16_t)((boxDim[i] + map.steps[i] - 1) / map.steps[i]);
		if (i)
			map.strides[i - 1] = globalStrides[i - 1];
	}
	uint8_t *bytes = (uint8_t *)tensorMap;
	memset(bytes, 0, sizeof *tensorMap);
	memcpy(bytes, &map, sizeof map);
	return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
	CUresult result = check(tensorMap);
	if (result)
		return result;
	softgpu_tensor_map_t map;
	uint8_t *bytes = (uint8_t *)tensorMap;
	memcpy(&map, bytes, sizeof map);
	if (map.magic != TENSOR_MAP_MAGIC || (uintptr_t)globalAddress % 16)
		return CUDA_ERROR_INVALID_VALUE;
	map.address = (uintptr_t)globalAddress;
	memcpy(bytes, &map, sizeof map);
	return CUDA_SUCCESS;
}
