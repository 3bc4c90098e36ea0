/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The content of a CUtensorMap, in a form of the software GPU's own. The driver writes it (cuTensorMapEncodeTiled). The
 * engine reads it from the program's memory when an instruction names it (PTX ISA, "Tensor-map").
 */
#ifndef SOFTGPU_TENSOR_MAP_H
#define SOFTGPU_TENSOR_MAP_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define TENSOR_RANK_MAX 5
#define TENSOR_MAP_MAGIC UINT32_C(0x7e50a3d1)

typedef struct softgpu_tensor_map {
	uint32_t magic;
	uint8_t rank, element;                    /* element: bytes */
	uint8_t type, fill;                       /* CUtensorMapDataType; byte for elements that are out of bounds */
	uint64_t address;
	uint64_t strides[TENSOR_RANK_MAX - 1];    /* bytes from one to the next in dimensions 1 and on */
	uint32_t last[TENSOR_RANK_MAX];           /* the highest coordinate in each dimension */
	uint16_t box[TENSOR_RANK_MAX];            /* elements copied in each dimension */
	uint8_t steps[TENSOR_RANK_MAX];           /* coordinates from one copied element to the next */
	uint8_t swizzle;                          /* address bits that swizzling changes, 0 to 3: exec/async/tensor.h */
} softgpu_tensor_map_t;

_Static_assert(sizeof(softgpu_tensor_map_t) <= sizeof(CUtensorMap), "it fits");

/* Bytes of one element; 0 for types that are not supported: packed ones, and those that change what they copy. */
static inline uint32_t tensor_type_bytes(CUtensorMapDataType type)
{
	switch (type) {
	case CU_TENSOR_MAP_DATA_TYPE_UINT8:
		return 1;
	case CU_TENSOR_MAP_DATA_TYPE_UINT16:
	case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
	case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
		return 2;
	case CU_TENSOR_MAP_DATA_TYPE_UINT32:
	case CU_TENSOR_MAP_DATA_TYPE_INT32:
	case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
		return 4;
	case CU_TENSOR_MAP_DATA_TYPE_UINT64:
	case CU_TENSOR_MAP_DATA_TYPE_INT64:
	case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
		return 8;
	default:
		return 0;
	}
}

#endif
