/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The occupancy model: how many blocks of a kernel a multiprocessor holds. A multiprocessor (one thread of the engine)
 * is limited in blocks, threads (whole warps), registers (whole warps, in units of 256) and shared memory (1 KiB of it
 * reserved for each block), as CUDA's occupancy calculator counts for compute capability 9.0.
 */
#include "cuda_remote/softgpu/engine.h"

#define WARP_THREADS 32u

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t softgpu_occupancy(const softgpu_kernel_info_t *kernel, uint32_t threads, uint64_t dynamic_shared)
{
	uint32_t warps = (threads + WARP_THREADS - 1) / WARP_THREADS;
	uint64_t shared = kernel->static_shared + dynamic_shared;
	uint64_t block_shared = ((shared + 127) & ~UINT64_C(127)) + SOFTGPU_SM_SHARED_RESERVED;
	uint32_t warp_registers = (kernel->registers * WARP_THREADS + 255) & ~255u;
	if (!warps || block_shared > SOFTGPU_SM_SHARED)
		return 0;
	uint32_t blocks = smaller(SOFTGPU_SM_BLOCKS, SOFTGPU_SM_THREADS / (warps * WARP_THREADS));
	if (warp_registers)
		blocks = smaller(blocks, SOFTGPU_SM_REGISTERS / (warp_registers * warps));
	return smaller(blocks, SOFTGPU_SM_SHARED / (uint32_t)block_shared);
}
