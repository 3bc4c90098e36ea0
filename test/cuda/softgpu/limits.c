/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits and hints that the device stores and returns, and functions that programs find by name. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>

static size_t limit(CUlimit which)
{
	size_t value;
	OK(cuCtxGetLimit(&value, which));
	return value;
}

static void launches_that_wait_may_be_any_number(void)
{
	CHECK(limit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) == 2048);
	OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4096));
	CHECK(limit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) == 4096);
	EXPECT(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

static void the_buffer_of_printf_is_fixed_by_the_first_kernel_that_prints(void)
{
	CUmodule module;
	CUfunction nothing, print;
	CUcontext context;
	OK(cuCtxCreate(&context, NULL, 0, 0));
	OK(cuModuleLoadData(&module, "double\nprint nothing\n"));
	OK(cuModuleGetFunction(&nothing, module, "nothing"));
	OK(cuModuleGetFunction(&print, module, "print"));
	OK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4096));
	OK(cuLaunchKernel(print, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	EXPECT(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 8192), CUDA_ERROR_INVALID_VALUE);
	CHECK(limit(CU_LIMIT_PRINTF_FIFO_SIZE) == 4096);
	OK(cuCtxDestroy(context));
}

static void so_it_is_by_a_graph_that_prints(void)
{
	CUmodule module;
	CUfunction print;
	CUcontext context;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	OK(cuCtxCreate(&context, NULL, 0, 0));
	OK(cuModuleLoadData(&module, "double\nprint\n"));
	OK(cuModuleGetFunction(&print, module, "print"));
	OK(cuGraphCreate(&graph, 0));
	CUDA_KERNEL_NODE_PARAMS params = { .func = print, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
					   .blockDimY = 1, .blockDimZ = 1 };
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4096));
	OK(cuGraphLaunch(exec, NULL));
	EXPECT(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 8192), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuCtxDestroy(context));
}

static void persisting_accesses_are_a_hint_within_the_cache(void)
{
	int cache, most, window;
	OK(cuDeviceGetAttribute(&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0));
	OK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0));
	OK(cuDeviceGetAttribute(&window, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 0));
	CHECK(most <= cache && window <= cache && (most > 0) == (cache > 0));
	CHECK(limit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == 0);
	OK(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, (size_t)most));
	CHECK(limit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == (size_t)most);
	EXPECT(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, (size_t)most + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxResetPersistingL2Cache());
}

static void every_name_can_be_looked_up_in_the_library(void)
{
	static const char *const names[] = { "cuInit", "cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop",
					     "cuCtxResetPersistingL2Cache", "cuGetProcAddress_v2" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!dlsym(RTLD_DEFAULT, names[i])) {
			fprintf(stderr, "%s is not exported\n", names[i]);
			exit(1);
		}
}

int main(void)
{
	start();
	launches_that_wait_may_be_any_number();
	the_buffer_of_printf_is_fixed_by_the_first_kernel_that_prints();
	so_it_is_by_a_graph_that_prints();
	persisting_accesses_are_a_hint_within_the_cache();
	every_name_can_be_looked_up_in_the_library();
	return 0;
}
