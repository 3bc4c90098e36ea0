/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters: their barrier, and addresses of the shared memory of their blocks (PTX ISA, "barrier.cluster", "mapa"). */
#ifndef SOFTGPU_EXEC_CLUSTER_H
#define SOFTGPU_EXEC_CLUSTER_H

#include "cuda_remote/softgpu/exec/warp.h"

/* op_mapa: r[1] address, r[2] rank, size bytes. op_getctarank: r[1] address, size bytes. */
insn_handler op_mapa, op_getctarank, op_cluster_arrive, op_cluster_wait;

/* Releases the barrier if all live threads of the block's cluster have arrived. Also called when threads exit. */
void cluster_barrier_check(struct block *block);
/* Whether a path of the block waits at the barrier. */
bool cluster_barrier_waits(const struct block *block);

/* The rank that an address of shared memory (generic or not) names, which may be no block's. */
uint32_t cluster_rank(const struct block *block, uint64_t address);
/* The address in shared memory of the block of that rank that has the same offset there. */
uint64_t cluster_map(const struct block *block, uint64_t address, uint32_t rank);
/* The host address of bytes bytes at an address of shared memory (not generic); NULL if they are not all in one block's. */
char *cluster_shared(const struct block *block, uint64_t address, uint64_t bytes);
/* Returns whether the cluster has a block for each bit that is set. If not, reports a fault. */
bool cluster_has(struct warp *warp, const struct insn *insn, uint32_t lane, uint32_t blocks);
/* Whether that host address is in shared memory of some block of the cluster. */
bool cluster_holds(const struct block *block, const char *memory);

#endif
