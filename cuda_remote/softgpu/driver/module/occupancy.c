/* SPDX-License-Identifier: BSD-3-Clause */
/* Occupancy queries. The model is the engine's (exec/occupancy.c), which keeps that number of blocks resident. */
#include "cuda_remote/softgpu/driver/module/occupancy.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/module/launch_shape.h"

unsigned occupancy_blocks(const struct CUfunc_st *function, unsigned threads, uint64_t dynamic_shared)
{
	if (threads > function->info.max_threads || threads > DEVICE_MAX_THREADS ||
	    function->info.static_shared + dynamic_shared > DEVICE_SHARED_OPTIN)
		return 0;
	return softgpu_occupancy(&function->info, threads, dynamic_shared);
}

static CUresult enter(CUfunction handle, CUfunction *function)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	return result ? result : function_resolve(handle, context, function);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
							      size_t dynamicSMemSize, unsigned int flags)
{
	CUresult result = enter(func, &func);
	if (result)
		return result;
	if (!numBlocks || blockSize <= 0 || (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		return CUDA_ERROR_INVALID_VALUE;
	*numBlocks = (int)occupancy_blocks(func, (unsigned)blockSize, dynamicSMemSize);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
						     size_t dynamicSMemSize)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

/* Chooses the block size with the most resident threads, the largest of equals; the grid fills the device. */
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
						   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
						   size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags)
{
	CUresult result = enter(func, &func);
	if (result)
		return result;
	if (!minGridSize || !blockSize || blockSizeLimit < 0 ||
	    (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		return CUDA_ERROR_INVALID_VALUE;
	unsigned most = func->info.max_threads, best = 0, best_threads = 0, best_blocks = 0;
	if (blockSizeLimit && (unsigned)blockSizeLimit < most)
		most = (unsigned)blockSizeLimit;
	for (unsigned threads = most; threads; threads = (threads - 1) & ~31u) {
		uint64_t shared =
			blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize((int)threads) : dynamicSMemSize;
		unsigned blocks = occupancy_blocks(func, threads, shared);
		if (blocks * threads > best) {
			best = blocks * threads;
			best_threads = threads;
			best_blocks = blocks;
		}
	}
	*blockSize = (int)best_threads;
	*minGridSize = (int)(best_blocks * softgpu_threads());
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
					  CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
					  int blockSizeLimit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
							 dynamicSMemSize, blockSizeLimit, 0);
}

/* The engine runs all blocks of a cluster on one of its threads, so that their resources limit only how many clusters are
 * resident, and one always is. */
CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	CUresult result = enter(func, &func);
	if (result)
		return result;
	if (!clusterSize || !config)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned required[3];
	uint32_t most = __atomic_load_n(&func->wide_cluster, __ATOMIC_RELAXED) ? SOFTGPU_CLUSTER_MAX : SOFTGPU_CLUSTER_PORTABLE;
	if (launch_required_cluster(func, required))
		most = required[0] * required[1] * required[2];
	else if (func->info.max_cluster && func->info.max_cluster < most)
		most = func->info.max_cluster;
	*clusterSize = device_capability() < 90 ? 1 : (int)most;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	CUresult result = enter(func, &func);
	if (result)
		return result;
	if (!numClusters || !config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	unsigned given[3] = { 0 }, cluster[3];
	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttributeValue *value = &config->attrs[i].value;
		if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			continue;
		given[0] = value->clusterDim.x;
		given[1] = value->clusterDim.y;
		given[2] = value->clusterDim.z;
	}
	result = launch_cluster(func, given, cluster);
	if (result)
		return result;
	uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
	unsigned capped = threads > DEVICE_MAX_THREADS ? DEVICE_MAX_THREADS + 1 : (unsigned)threads;
	unsigned blocks = occupancy_blocks(func, capped, config->sharedMemBytes);
	unsigned clusters = blocks * softgpu_threads() / (cluster[0] * cluster[1] * cluster[2]);
	*numClusters = blocks && !clusters ? 1 : (int)clusters;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	CUresult result = enter(func, &func);
	if (result)
		return result;
	if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0 ||
	    occupancy_blocks(func, (unsigned)blockSize, 0) < (unsigned)numBlocks)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t share = (DEVICE_SHARED_SM / (unsigned)numBlocks) & ~127u;
	share = share > DEVICE_SHARED_RESERVED ? share - DEVICE_SHARED_RESERVED : 0;
	uint64_t asked = func->info.static_shared + (uint64_t)__atomic_load_n(&func->max_dynamic_shared, __ATOMIC_RELAXED);
	uint64_t limit = asked > DEVICE_SHARED_BYTES ? DEVICE_SHARED_OPTIN : DEVICE_SHARED_BYTES;
	share = share > limit ? limit : share;
	*dynamicSmemSize = share > func->info.static_shared ? share - func->info.static_shared : 0;
	return CUDA_SUCCESS;
}
