/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mbarrier objects (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier"): 64 bits in shared
 * memory. A block runs on one thread and a cluster is one block, so no other thread changes an object at the same time.
 */
#ifndef SOFTGPU_EXEC_MBARRIER_H
#define SOFTGPU_EXEC_MBARRIER_H

#include "cuda_remote/softgpu/exec/warp.h"

enum mbarrier_op { MBARRIER_INIT, MBARRIER_INVAL, MBARRIER_EXPECT_TX, MBARRIER_COMPLETE_TX, MBARRIER_ARRIVE,
		   MBARRIER_ARRIVE_EXPECT_TX, MBARRIER_TEST_WAIT, MBARRIER_TEST_PARITY };

enum mbarrier_flag { MBARRIER_DROP = 1, MBARRIER_NO_COMPLETE = 2, MBARRIER_SUSPENDS = 4 };

/* Takes bytes off what the current phase expects, which may complete it. False after a fault of the lane. */
bool mbarrier_complete_tx(struct warp *warp, const struct insn *insn, uint32_t lane, enum access_space space,
			  uint64_t address, uint32_t bytes);

/* count: an mbarrier_op; size: flags; slot: the space; r[0] a result or -1, r[1] the operand, r[4] the address. */
insn_handler op_mbarrier, op_mbarrier_pending;

#endif
