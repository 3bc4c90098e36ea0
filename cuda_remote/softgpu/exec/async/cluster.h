/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters of one block (PTX ISA, "barrier.cluster", "mapa"), and elect. */
#ifndef SOFTGPU_EXEC_CLUSTER_H
#define SOFTGPU_EXEC_CLUSTER_H

#include "cuda_remote/softgpu/exec/warp.h"

/* op_elect: r[0] the leader, r[1] members, r[5] whether a lane is it. op_mapa: r[1] address, r[2] rank, size bytes. */
insn_handler op_elect, op_mapa, op_cluster_arrive, op_cluster_wait;

/* Lets go those who wait if all live threads have arrived; for a thread that exits, too. */
void cluster_barrier_check(struct block *block);

#endif
