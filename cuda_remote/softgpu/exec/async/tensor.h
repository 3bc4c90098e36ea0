/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of tiles by a tensor map (PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor"), done when they are
 * issued, as the other bulk copies are. In shared memory a tile's rows follow each other. With swizzling, 1, 2 or 3
 * bits of the address of each chunk of 16 bytes, from bit 4 on, are XORed with as many bits from bit 7 on (CUDA
 * Programming Guide, "Shared memory bank swizzling").
 */
#ifndef SOFTGPU_EXEC_TENSOR_H
#define SOFTGPU_EXEC_TENSOR_H

#include "cuda_remote/softgpu/exec/warp.h"

enum tensor_copy { TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE };

/*
 * r[0] the map, r[1] shared memory (64-bit rows), r[2] mbarrier (64-bit row) or -1, r[3] mask of blocks or -1; count:
 * an enum tensor_copy; slot: the atomic operation; size: dimensions. The next instruction's r[0] and on: coordinates.
 */
insn_handler op_tensor;

/* What changes a tensor map in memory: tensormap.replace of one field, or tensormap.cp_fenceproxy. */
enum tensor_map_change { TENSOR_MAP_ADDRESS, TENSOR_MAP_DIMENSION, TENSOR_MAP_STRIDE, TENSOR_MAP_COPY };

/*
 * r[0] the map (64-bit row); r[1] the new value (32 bits for a dimension, else 64), or the address in shared memory that
 * is copied from; count: an enum tensor_map_change; slot: the map's space; size: the dimension or the stride.
 */
insn_handler op_tensormap;

#endif
