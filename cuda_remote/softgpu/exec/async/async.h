/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous copies (PTX ISA, "cp.async", "cp.async.bulk", "cp.reduce.async.bulk"). They are done when they are
 * issued, which the ISA allows: their groups are always complete, and the mbarrier that counts their bytes is updated at once.
 */
#ifndef SOFTGPU_EXEC_ASYNC_H
#define SOFTGPU_EXEC_ASYNC_H

#include "cuda_remote/softgpu/exec/warp.h"

#define BULK_COPY 255 /* op_bulk's variant that is no reduction */

/*
 * op_cp_async: r[0] destination, r[1] source (64-bit rows), r[2] bytes of the source or -1, r[3] the predicate that
 * ignores it or -1; count: bytes.
 * op_bulk: r[0] destination, r[1] source, r[2] bytes, r[3] mbarrier (64-bit row) or -1, r[5] mask of blocks or -1; slot
 * and size: spaces of destination and source; count: the atomic variant, or BULK_COPY; imm: bytes of an element.
 */
insn_handler op_cp_async, op_bulk;

#endif
