/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel launches. The parameters in the client's message are checked against the layout that the module's load
 * found. */
#include "cuda_remote/api/attributes.h"
#include "cuda_remote/server/internal.h"

#include "cuda_remote/call_follows.h"

#include <stdlib.h>
#include <string.h>

/* Up to this many parameters need no allocation; most kernels have fewer. */
#define FEW 64

struct launch {
	struct rc_wire_launch wire;
	CUfunction function;
	CUstream stream;
	void **parameters;
	CUlaunchAttribute attributes[RC_LAUNCH_ATTRIBUTES_MAX + 1]; /* and the cooperative flag */
};

/* The cooperative flag becomes one more attribute. */
static CUlaunchConfig make_config(struct launch *launch)
{
	const uint32_t *grid = launch->wire.grid, *block = launch->wire.block;
	unsigned n = launch->wire.attributes;
	if (launch->wire.flags & RC_LAUNCH_COOPERATIVE) {
		launch->attributes[n].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
		launch->attributes[n++].value.cooperative = 1;
	}
	return (CUlaunchConfig){
		.gridDimX = grid[0], .gridDimY = grid[1], .gridDimZ = grid[2],
		.blockDimX = block[0], .blockDimY = block[1], .blockDimZ = block[2],
		.sharedMemBytes = launch->wire.shared, .hStream = launch->stream, .attrs = launch->attributes, .numAttrs = n,
	};
}

static CUresult issue(struct launch *launch)
{
	const uint32_t *grid = launch->wire.grid, *block = launch->wire.block;
	bool cooperative = launch->wire.flags & RC_LAUNCH_COOPERATIVE;
	if (!launch->wire.attributes && !cooperative && driver.cuLaunchKernel)
		return driver.cuLaunchKernel(launch->function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
					     launch->wire.shared, launch->stream, launch->parameters, NULL);
	if (!launch->wire.attributes && cooperative && driver.cuLaunchCooperativeKernel)
		return driver.cuLaunchCooperativeKernel(launch->function, grid[0], grid[1], grid[2], block[0], block[1],
							block[2], launch->wire.shared, launch->stream, launch->parameters);
	if (!driver.cuLaunchKernelEx)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUlaunchConfig config = make_config(launch);
	return driver.cuLaunchKernelEx(&config, launch->function, launch->parameters, NULL);
}

static CUresult take_attributes(struct server_call *call, struct launch *launch)
{
	if (launch->wire.attributes > RC_LAUNCH_ATTRIBUTES_MAX ||
	    !server_take_into(call, launch->attributes, launch->wire.attributes * sizeof launch->attributes[0]))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < launch->wire.attributes; i++)
		if (!rc_launch_attribute_travels(launch->attributes[i].id))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult serve_launch(struct server_call *call)
{
	struct launch launch;
	if (!server_take_into(call, &launch.wire, sizeof launch.wire))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t handle = launch.wire.function;
	struct server_kernel *kernel = server_object_kernel(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = server_object(RC_KIND_FUNCTION, handle, (void **)&launch.function);
	if (result == CUDA_SUCCESS)
		result = server_object(RC_KIND_STREAM, launch.wire.stream, (void **)&launch.stream);
	if (result != CUDA_SUCCESS)
		return result;
	uint8_t *block = (uint8_t *)(uintptr_t)server_take(call, launch.wire.parameters, 1);
	if (!block || launch.wire.parameters != kernel->block)
		return CUDA_ERROR_INVALID_VALUE;
	result = take_attributes(call, &launch);
	if (result != CUDA_SUCCESS)
		return result;
	void *few[FEW];
	launch.parameters = kernel->parameters <= FEW ? few : malloc(kernel->parameters * sizeof(void *));
	if (!launch.parameters)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < kernel->parameters; i++)
		launch.parameters[i] = block + kernel->parameter[i].offset;
	result = issue(&launch);
	if (launch.parameters != few)
		free(launch.parameters);
	return result;
}

/* ---- launches that another call follows ---- */

static void (*driver_follows)(bool); /* NULL: the driver needs no hint */

static void find_follows(void)
{
	static const CUuuid id = RC_CALL_FOLLOWS_UUID;
	const void *table;
	if (!driver.cuGetExportTable || driver.cuGetExportTable(&table, &id) != CUDA_SUCCESS)
		return;
	const struct rc_call_follows *found = table;
	if (found->size == sizeof *found)
		driver_follows = found->follows;
}

void server_wake_hold(struct server_thread *thread)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_follows);
	if (!driver_follows)
		return;
	if (!thread->holds)
		thread->looked_ahead = 0;
	thread->holds = true;
	driver_follows(true);
}

void server_wake_let_go(struct server_thread *thread)
{
	if (!thread->holds)
		return;
	thread->holds = false;
	driver_follows(false);
}

/* ---- occupancy of clusters ---- */

typedef CUresult (*cluster_query)(int *answer, CUfunction function, const CUlaunchConfig *config);

static CUresult ask_clusters(struct server_call *call, cluster_query query)
{
	struct launch launch;
	int answer;
	if (!server_take_into(call, &launch.wire, sizeof launch.wire) || launch.wire.parameters)
		return CUDA_ERROR_INVALID_VALUE;
	if (!query)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_object(RC_KIND_FUNCTION, launch.wire.function, (void **)&launch.function);
	if (result == CUDA_SUCCESS)
		result = server_object(RC_KIND_STREAM, launch.wire.stream, (void **)&launch.stream);
	if (result == CUDA_SUCCESS)
		result = take_attributes(call, &launch);
	if (result != CUDA_SUCCESS)
		return result;
	CUlaunchConfig config = make_config(&launch);
	result = query(&answer, launch.function, &config);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &answer, sizeof answer) : result;
}

CUresult serve_occupancy_clusters(struct server_call *call)
{
	return ask_clusters(call, driver.cuOccupancyMaxActiveClusters);
}

CUresult serve_occupancy_cluster_size(struct server_call *call)
{
	return ask_clusters(call, driver.cuOccupancyMaxPotentialClusterSize);
}
