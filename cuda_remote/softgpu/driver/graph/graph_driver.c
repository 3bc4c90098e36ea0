/* SPDX-License-Identifier: BSD-3-Clause */
/* What graphs and captures need of the software GPU (cuda_remote/graph/driver.h), except memory and launches. */
#include "cuda_remote/graph/graph.h"

#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/driver/memory/copy.h"
#include "cuda_remote/softgpu/driver/module/launch_shape.h"
#include "cuda_remote/softgpu/driver/stream/event.h"
#include "cuda_remote/softgpu/driver/stream/memop.h"
#include "cuda_remote/softgpu/driver/stream/stream.h"
#include "cuda_remote/softgpu/driver/texture/array.h"
#include "cuda_remote/softgpu/space/space.h"

CUresult graph_driver_enter(void)
{
	return init_check();
}

void graph_driver_in_callback(bool inside)
{
	init_in_callback(inside);
}

CUresult graph_driver_context(CUcontext *context)
{
	return context_enter_this(context);
}

/* ---- kernels ---- */

CUresult graph_driver_function(CUfunction handle, CUcontext context, graph_function_t *function)
{
	CUfunction found;
	CUresult result = function_resolve(handle, context, &found);
	if (!result)
		*function = (graph_function_t){ .function = found, .id = found->id, .context = found->module->context,
						.parameters = found->info.parameters,
						.bytes = found->info.parameter_bytes };
	return result;
}

bool graph_driver_function_there(CUfunction function, uint64_t id)
{
	return handle_valid(function, HANDLE_FUNCTION) && function->id == id;
}

const char *graph_driver_function_name(CUfunction function)
{
	return function->info.name;
}

size_t graph_driver_parameter_offset(CUfunction function, uint32_t parameter)
{
	return function->parameters[parameter].offset;
}

CUresult graph_driver_check_shape(CUfunction function, const launch_shape_t *shape)
{
	return launch_check_shape(function, shape);
}

CUresult graph_driver_parameters(CUfunction function, void **parameters, void **extra, unsigned char *block)
{
	return launch_copy_parameters(function, parameters, extra, block);
}

/* ---- events, arrays, memory ---- */

CUresult graph_driver_event(CUevent event, uint64_t *id)
{
	if (!handle_valid(event, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_VALUE;
	if (event->shared) /* a shared event can be used in streams only */
		return CUDA_ERROR_NOT_SUPPORTED;
	*id = event->id;
	return CUDA_SUCCESS;
}

bool graph_driver_event_there(CUevent event, uint64_t id)
{
	return handle_valid(event, HANDLE_EVENT) && event->id == id;
}

CUresult graph_driver_check_copy(const CUDA_MEMCPY3D *copy, uint64_t ids[2])
{
	CUresult result = copy_check_3d(copy);
	if (!result && copy->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		ids[0] = copy->srcArray->id;
	if (!result && copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		ids[1] = copy->dstArray->id;
	return result;
}

bool graph_driver_array_there(CUarray array, uint64_t id)
{
	return handle_valid(array, HANDLE_ARRAY) && array->id == id;
}

CUresult graph_driver_check_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *fill)
{
	fill_t what = { fill->dst, fill->pitch, fill->width, fill->height, fill->value, fill->elementSize };
	return fill_check(&what);
}

CUresult graph_driver_check_memop(const CUstreamBatchMemOpParams *operations, unsigned count, unsigned flags)
{
	return memop_check(operations, count, flags);
}

/* ---- conditional handles ---- */

/*
 * The handle is the device address of the value (softgpu_conditional_t of engine.h). Kernels set it with
 * cudaGraphSetConditional, an undefined function in PTX that the engine knows; they cannot store to it. It belongs to
 * no context: launches set the default as long as a graph has it.
 */
CUresult graph_driver_conditional_new(CUgraph graph, struct graph_conditional *value)
{
	(void)graph;
	softgpu_allocation_t want = { .size = sizeof(softgpu_conditional_t), .kind = SOFTGPU_SPACE_MODULE,
				      .device = value->context->physical, .read_only = true };
	if (softgpu_space_alloc(&want, SOFTGPU_GRANULE))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(softgpu_conditional_t *)(uintptr_t)want.base =
		(softgpu_conditional_t){ .value = value->default_value, .check = SOFTGPU_CONDITIONAL_CHECK };
	value->handle = want.base;
	return CUDA_SUCCESS;
}

void graph_driver_conditional_free(struct graph_conditional *value)
{
	softgpu_space_free(value->handle);
}

/* ---- streams ---- */

CUresult graph_driver_stream(CUstream given, CUstream *stream)
{
	CUcontext context;
	return stream_enter(given, &context, stream);
}

CUcontext graph_driver_stream_context(CUstream stream)
{
	return stream->context;
}

bool graph_driver_stream_legacy(CUstream stream)
{
	return stream->legacy;
}

bool graph_driver_stream_blocking(CUstream stream)
{
	return stream->blocking;
}

struct capture_stream **graph_driver_stream_part(CUstream stream)
{
	return &stream->capture;
}

void graph_driver_stream_hold(CUstream stream)
{
	queue_stream_hold(stream);
}

void graph_driver_stream_release(CUstream stream)
{
	queue_stream_release(stream);
}
