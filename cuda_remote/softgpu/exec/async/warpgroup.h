/* SPDX-License-Identifier: BSD-3-Clause */
/* The groups of products of wgmma (PTX ISA, "wgmma.commit_group", "wgmma.wait_group"). */
#ifndef SOFTGPU_EXEC_WARPGROUP_H
#define SOFTGPU_EXEC_WARPGROUP_H

#include "cuda_remote/softgpu/exec/warp.h"

/* op_wgmma_wait: count, the groups that may be pending. */
insn_handler op_wgmma_commit, op_wgmma_wait;

/* A warp has computed its part of a product. */
void warpgroup_multiplied(struct warp *warp);
/* Threads have exited: lets warps of the block go on that waited for them. */
void warpgroup_check(struct block *block);

#endif
