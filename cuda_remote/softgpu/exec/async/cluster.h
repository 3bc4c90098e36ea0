/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters of one block (PTX ISA, "barrier.cluster", "mapa"). */
#ifndef SOFTGPU_EXEC_CLUSTER_H
#define SOFTGPU_EXEC_CLUSTER_H

#include "cuda_remote/softgpu/exec/warp.h"

/* op_mapa: r[1] address, r[2] rank, size bytes. */
insn_handler op_mapa, op_cluster_arrive, op_cluster_wait;

/* Releases the barrier if all live threads have arrived. Also called when threads exit. */
void cluster_barrier_check(struct block *block);

#endif
