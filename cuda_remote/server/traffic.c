/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts of kernel and graph launches, and of the bytes that copies move between host and devices. The driver's functions
 * are replaced by functions that call them and count what succeeded. A copy that a graph makes does not count.
 */
#include "cuda_remote/server/internal.h"

static struct worker_usage own;
static struct worker_usage *usage = &own;

/* The driver's own functions. */
static struct server_driver real;

void server_traffic_count_in(struct worker_usage *shared)
{
	usage = shared;
}

static CUresult count(uint64_t *counter, uint64_t n, CUresult result)
{
	if (result == CUDA_SUCCESS)
		__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
	return result;
}

/* Counts a copy with the kinds of memory of its two ends. */
static CUresult count_copy(CUmemorytype from, CUmemorytype to, uint64_t bytes, CUresult result)
{
	bool from_host = from == CU_MEMORYTYPE_HOST, to_host = to == CU_MEMORYTYPE_HOST;
	if (from_host == to_host)
		return result;
	return count(from_host ? &usage->to_devices : &usage->from_devices, bytes, result);
}

static CUresult count_up(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return count(&usage->to_devices, bytes, real.cuMemcpyHtoDAsync_v2(to, from, bytes, stream));
}

static CUresult count_down(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return count(&usage->from_devices, bytes, real.cuMemcpyDtoHAsync_v2(to, from, bytes, stream));
}

static CUresult count_up_now(CUdeviceptr to, const void *from, size_t bytes)
{
	return count(&usage->to_devices, bytes, real.cuMemcpyHtoD_v2(to, from, bytes));
}

static CUresult count_down_now(void *to, CUdeviceptr from, size_t bytes)
{
	return count(&usage->from_devices, bytes, real.cuMemcpyDtoH_v2(to, from, bytes));
}

static CUresult count_rows(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return count_copy(copy->srcMemoryType, copy->dstMemoryType, (uint64_t)copy->WidthInBytes * copy->Height,
			  real.cuMemcpy2DAsync_v2(copy, stream));
}

static CUresult count_box(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return count_copy(copy->srcMemoryType, copy->dstMemoryType,
			  (uint64_t)copy->WidthInBytes * copy->Height * copy->Depth, real.cuMemcpy3DAsync_v2(copy, stream));
}

static CUresult count_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
			     unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
			     void **extra)
{
	return count(&usage->kernel_launches, 1,
		     real.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters,
					 extra));
}

static CUresult count_cooperative(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
				  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
				  void **parameters)
{
	return count(&usage->kernel_launches, 1,
		     real.cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
						    parameters));
}

static CUresult count_kernel_ex(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
	return count(&usage->kernel_launches, 1, real.cuLaunchKernelEx(config, function, parameters, extra));
}

static CUresult count_graph(CUgraphExec graph, CUstream stream)
{
	return count(&usage->graph_launches, 1, real.cuGraphLaunch(graph, stream));
}

void server_traffic_watch(void)
{
	real = driver;
#define WATCH(name, counting) driver.name = real.name ? counting : NULL;
	WATCH(cuMemcpyHtoDAsync_v2, count_up)
	WATCH(cuMemcpyDtoHAsync_v2, count_down)
	WATCH(cuMemcpyHtoD_v2, count_up_now)
	WATCH(cuMemcpyDtoH_v2, count_down_now)
	WATCH(cuMemcpy2DAsync_v2, count_rows)
	WATCH(cuMemcpy3DAsync_v2, count_box)
	WATCH(cuLaunchKernel, count_kernel)
	WATCH(cuLaunchCooperativeKernel, count_cooperative)
	WATCH(cuLaunchKernelEx, count_kernel_ex)
	WATCH(cuGraphLaunch, count_graph)
#undef WATCH
}
