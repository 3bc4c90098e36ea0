/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel launches in streams: checks a launch, then submits it or adds it to the graph that the stream captures. */
#include "cuda_remote/softgpu/driver/stream/launch.h"

#include "cuda_remote/softgpu/driver/context/green.h"
#include "cuda_remote/graph/graph.h"
#include "cuda_remote/softgpu/driver/module/occupancy.h"
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/stream/event.h"
#include "cuda_remote/softgpu/driver/stream/stream.h"
#include "cuda_remote/softgpu/space/space.h"

#include <stdlib.h>
#include <string.h>

typedef struct launch_command {
	command_t command;
	softgpu_launch_t launch;
	_Alignas(16) unsigned char parameters[];
} launch_command_t;

static CUresult launch_run(command_t *command)
{
	softgpu_space_verify_registered();
	return softgpu_launch(&((launch_command_t *)command)->launch);
}

/* If the stream captures, the launch becomes a kernel node. */
static CUresult capture_launch(CUstream stream, CUfunction function, const launch_shape_t *shape, void **parameters,
			       void **extra, const CUlaunchConfig *config, bool *captured)
{
	*captured = false;
	if (!capture_possible())
		return CUDA_SUCCESS;
	CUgraphNode node, last = capture_last(stream);
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_KERNEL,
		.kernel = { .func = function, .gridDimX = shape->grid[0], .gridDimY = shape->grid[1],
			    .gridDimZ = shape->grid[2], .blockDimX = shape->block[0], .blockDimY = shape->block[1],
			    .blockDimZ = shape->block[2], .sharedMemBytes = shape->dynamic_shared,
			    .kernelParams = parameters, .extra = extra },
	};
	CUresult result = capture_add(stream, &params, &node, captured);
	if (!result && *captured && config)
		result = graph_attributes_take(node, last, config->attrs, config->numAttrs);
	if (result || !*captured || !shape->cooperative)
		return result;
	return graph_attribute_set(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
				   &(CUlaunchAttributeValue){ .cooperative = 1 });
}

CUresult launch_submit(CUfunction handle, const launch_shape_t *shape, CUstream stream_handle, void **parameters,
		       void **extra, const CUlaunchConfig *config, CUstream *output)
{
	CUcontext context;
	CUstream stream;
	CUfunction function;
	CUresult result = stream_enter(stream_handle, &context, &stream);
	if (!result)
		result = function_resolve(handle, stream->context, &function);
	if (result)
		return result;
	if (function->module->context != stream->context || (parameters && extra))
		return function->module->context != stream->context ? CUDA_ERROR_INVALID_HANDLE
								    : CUDA_ERROR_INVALID_VALUE;
	result = launch_check_shape(function, shape);
	if (result)
		return result;
	uint64_t blocks = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2];
	unsigned threads = shape->block[0] * shape->block[1] * shape->block[2];
	if (shape->cooperative && blocks > (uint64_t)occupancy_blocks(function, threads, shape->dynamic_shared) *
					   green_multiprocessors(stream))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	*output = stream;
	bool captured;
	result = capture_launch(stream, function, shape, parameters, extra, config, &captured);
	if (result || captured)
		return result;
	launch_command_t *launch = malloc(sizeof *launch + function->info.parameter_bytes);
	if (!launch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(&launch->command, 0, sizeof launch->command);
	result = launch_make(function, shape, &launch->launch);
	if (!result)
		result = launch_copy_parameters(function, parameters, extra, launch->parameters);
	if (result) {
		free(launch);
		return result;
	}
	launch->command.run = launch_run;
	launch->launch.parameters = launch->parameters;
	launch->launch.limits = context_limits(stream->context);
	context_note_launch(stream->context, &function->info);
	queue_submit(stream, &launch->command);
	return CUDA_SUCCESS;
}

/*
 * Attributes with an event that is recorded when the blocks have begun or trigger it. Recording after the launch is
 * permitted too.
 */
static CUresult note_event(CUevent event, CUevent *after)
{
	if (!handle_valid(event, HANDLE_EVENT) || *after)
		return CUDA_ERROR_INVALID_VALUE;
	*after = event;
	return CUDA_SUCCESS;
}

static CUresult one_block_cluster(unsigned x, unsigned y, unsigned z)
{
	return x <= 1 && y <= 1 && z <= 1 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult read_attribute(const CUlaunchAttribute *attribute, launch_shape_t *shape, CUevent *after)
{
	const CUlaunchAttributeValue *value = &attribute->value;
	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		shape->cooperative = value->cooperative;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		shape->cluster[0] = value->clusterDim.x;
		shape->cluster[1] = value->clusterDim.y;
		shape->cluster[2] = value->clusterDim.z;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
		return one_block_cluster(value->preferredClusterDim.x, value->preferredClusterDim.y,
					 value->preferredClusterDim.z);
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		return note_event(value->programmaticEvent.event, after);
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return note_event(value->launchCompletionEvent.event, after);
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return CUDA_SUCCESS; /* hints and permissions */
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult launch_submit_ex(const CUlaunchConfig *config, CUfunction function, CUstream handle, void **parameters,
			  void **extra)
{
	launch_shape_t shape = {
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.dynamic_shared = config->sharedMemBytes,
	};
	if (config->numAttrs && !config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	CUevent after = NULL;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		CUresult result = read_attribute(&config->attrs[i], &shape, &after);
		if (result)
			return result;
	}
	CUstream stream;
	CUresult result = launch_submit(function, &shape, handle, parameters, extra, config, &stream);
	return result || !after ? result : event_record(after, stream, false);
}
