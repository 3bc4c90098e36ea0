/* SPDX-License-Identifier: BSD-3-Clause */
/* Strong loads and stores (PTX ISA, "Memory Consistency Model"): those by which blocks and the host synchronise. */
#ifndef SOFTGPU_EXEC_STRONG_H
#define SOFTGPU_EXEC_STRONG_H

#include "cuda_remote/softgpu/exec/insn.h"

/*
 * r[0] to r[count - 1] elements of size bytes (-1: the element is discarded), r[4] the address, r[5] STRONG_OPERAND of
 * the access space and the bytes of an element's register; INSN_SIGNED extends with the sign.
 */
insn_handler op_strong_load, op_strong_store;

#define STRONG_OPERAND(space, width) ((int32_t)((uint32_t)(space) << 8 | (width)))
#define STRONG_SPACE(insn) ((enum access_space)((insn)->r[5] >> 8))
#define STRONG_WIDTH(insn) ((insn)->r[5] & 255)

#endif
