/* SPDX-License-Identifier: BSD-3-Clause */
/* What graphs need of the client: how handles are looked up, and parameters are checked (cuda_remote/graph/driver.h). */
#include "cuda_remote/client/array.h"
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/graph/graph_client.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"

#include <string.h>

CUresult graph_driver_enter(void)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	return result == CUDA_SUCCESS ? rc_callback_check() : result;
}

void graph_driver_in_callback(bool inside)
{
	rc_callback_enter(inside);
}

CUresult graph_driver_context(CUcontext *context)
{
	struct rc_context *current;
	CUresult result = graph_driver_enter();
	if (result == CUDA_SUCCESS)
		result = rc_context_meant(*context, &current);
	if (result == CUDA_SUCCESS)
		*context = current->handle;
	return result;
}

/* ---- kernels; a handle is never used twice, so it is its own id ---- */

static struct rc_kernel *kernel_of(CUfunction function)
{
	return rc_kernel_find((uint64_t)(uintptr_t)function);
}

CUresult graph_driver_function(CUfunction handle, CUcontext context, graph_function_t *function)
{
	struct rc_kernel *kernel = kernel_of(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	/* A function of a module belongs to the module's context, whatever is current. */
	struct rc_session *session = rc_handle_session((uint64_t)(uintptr_t)context);
	CUresult result = kernel->module->context ? CUDA_SUCCESS : rc_kernel_on(session, &kernel);
	if (result == CUDA_SUCCESS)
		*function = (graph_function_t){ .function = (CUfunction)(uintptr_t)kernel->handle, .id = kernel->handle, .context = kernel->module->context,
						.parameters = kernel->parameters, .bytes = kernel->block };
	return result;
}

bool graph_driver_function_there(CUfunction function, uint64_t id)
{
	struct rc_kernel *kernel = kernel_of(function);
	return kernel && kernel->handle == id;
}

const char *graph_driver_function_name(CUfunction function)
{
	return kernel_of(function)->name;
}

size_t graph_driver_parameter_offset(CUfunction function, uint32_t parameter)
{
	return kernel_of(function)->parameter[parameter].offset;
}

CUresult graph_driver_check_shape(CUfunction function, const launch_shape_t *shape)
{
	return rc_launch_check_shape(kernel_of(function), shape->grid, shape->block, shape->dynamic_shared, shape->cluster);
}

CUresult graph_driver_parameters(CUfunction function, void **parameters, void **extra, unsigned char *block)
{
	return rc_launch_pack(kernel_of(function), parameters, extra, block);
}

/* ---- events, arrays, memory ---- */

CUresult graph_driver_event(CUevent event, uint64_t *id)
{
	uint64_t handle = (uint64_t)(uintptr_t)event;
	if (rc_handle_check(RC_KIND_EVENT, handle) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	*id = handle;
	rc_done_event_in_graph(event);
	/* A launch of the graph may wait for another process. */
	struct rc_session *session = rc_handle_session(handle);
	if (session && rc_ipc_event_is(event))
		__atomic_store_n(&session->held.graphs, true, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

bool graph_driver_event_there(CUevent event, uint64_t id)
{
	return (uint64_t)(uintptr_t)event == id && rc_handle_check(RC_KIND_EVENT, id) == CUDA_SUCCESS;
}

static CUresult side_of(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array, struct rc_graph_side *side)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		side->host = true;
		side->wire.address = (uint64_t)(uintptr_t)host;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
		side->host = false;
		side->wire.address = device;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_UNIFIED:
		side->host = !rc_memory_is_device(device);
		side->wire.address = device;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_ARRAY:
		side->wire.object = (uint64_t)(uintptr_t)array;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* First byte and extent of the rows of a side that is no array. False: they are not in any memory. */
static bool side_bounds(const struct rc_graph_side *side, const CUDA_MEMCPY3D *copy, uint64_t *first, uint64_t *extent)
{
	const struct rc_wire_side *at = &side->wire;
	uint64_t slice, over;
	if (__builtin_mul_overflow(at->pitch, at->height, &slice) || __builtin_mul_overflow(at->z, slice, &over) ||
	    __builtin_add_overflow(at->address, over, first) || __builtin_mul_overflow(at->y, at->pitch, &over) ||
	    __builtin_add_overflow(*first, over, first) || __builtin_add_overflow(*first, at->x, first))
		return false;
	struct rc_wire_box box = { *first, at->pitch, slice, copy->WidthInBytes, copy->Height, copy->Depth };
	*extent = rc_box_extent(&box);
	return *extent && rc_box_bytes(&box) && (box.height == 1 || box.pitch >= box.width) &&
	       (box.depth == 1 || slice >= box.width);
}

/* Checks that a side's rows lie in its memory. */
static CUresult side_check(const struct rc_graph_side *side, const CUDA_MEMCPY3D *copy)
{
	uint64_t first, extent;
	if (side->wire.object)
		return CUDA_SUCCESS;
	if (!side_bounds(side, copy, &first, &extent))
		return CUDA_ERROR_INVALID_VALUE;
	if (side->host)
		return side->wire.address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	return rc_memory_check_device(first, extent);
}

/* Arrays are checked against the size that the server tells, with the elements of both sides. */
static CUresult check_arrays(const CUDA_MEMCPY3D *copy, const struct rc_graph_side *to, const struct rc_graph_side *from)
{
	CUDA_MEMCPY3D settled = *copy;
	if (!to->wire.object && !from->wire.object)
		return CUDA_SUCCESS;
	if (settled.srcMemoryType == CU_MEMORYTYPE_UNIFIED)
		settled.srcMemoryType = from->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	if (settled.dstMemoryType == CU_MEMORYTYPE_UNIFIED)
		settled.dstMemoryType = to->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	return rc_array_check(&settled);
}

CUresult rc_graph_copy_sides(const CUDA_MEMCPY3D *copy, struct rc_graph_side *to, struct rc_graph_side *from)
{
	*to = (struct rc_graph_side){ .wire = { .x = copy->dstXInBytes, .y = copy->dstY, .z = copy->dstZ,
						.pitch = copy->dstPitch ? copy->dstPitch : copy->WidthInBytes,
						.height = copy->dstHeight ? copy->dstHeight : copy->Height } };
	*from = (struct rc_graph_side){ .wire = { .x = copy->srcXInBytes, .y = copy->srcY, .z = copy->srcZ,
						  .pitch = copy->srcPitch ? copy->srcPitch : copy->WidthInBytes,
						  .height = copy->srcHeight ? copy->srcHeight : copy->Height } };
	CUresult result = side_of(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray, to);
	if (result == CUDA_SUCCESS)
		result = side_of(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray, from);
	if (result == CUDA_SUCCESS)
		result = check_arrays(copy, to, from);
	if (result != CUDA_SUCCESS || !copy->WidthInBytes || !copy->Height || !copy->Depth)
		return result;
	result = side_check(to, copy);
	return result == CUDA_SUCCESS ? side_check(from, copy) : result;
}

void rc_graph_side_map(struct rc_graph_side *side, const CUDA_MEMCPY3D *copy, const struct rc_session *session)
{
	uint64_t first, extent;
	struct rc_span span;
	if (!side->host || !side_bounds(side, copy, &first, &extent) || !rc_pinned_in(session, first, extent, &span) ||
	    side->wire.address < span.base)
		return;
	side->host = false;
	side->wire.object = span.pinned;
	side->wire.address = rc_pinned_offset(&span, side->wire.address);
}

CUresult graph_driver_check_copy(const CUDA_MEMCPY3D *copy, uint64_t ids[2])
{
	struct rc_graph_side to, from;
	CUresult result = rc_graph_copy_sides(copy, &to, &from);
	ids[0] = from.wire.object;
	ids[1] = to.wire.object;
	return result;
}

bool graph_driver_array_there(CUarray array, uint64_t id)
{
	return (uint64_t)(uintptr_t)array == id && rc_handle_check(RC_KIND_ARRAY, id) == CUDA_SUCCESS;
}

CUresult graph_driver_check_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *fill)
{
	uint64_t row;
	if (fill->dst % fill->elementSize || (fill->height > 1 && fill->pitch % fill->elementSize) ||
	    __builtin_mul_overflow((uint64_t)fill->width, (uint64_t)fill->elementSize, &row))
		return CUDA_ERROR_INVALID_VALUE;
	if (!row || !fill->height)
		return CUDA_SUCCESS;
	struct rc_wire_box box = { fill->dst, fill->pitch, 0, row, fill->height, 1 };
	uint64_t extent = rc_box_extent(&box);
	if (!extent || (fill->height > 1 && row > fill->pitch))
		return CUDA_ERROR_INVALID_VALUE;
	return rc_memory_check_device(fill->dst, extent);
}

CUresult graph_driver_check_memop(const CUstreamBatchMemOpParams *operations, unsigned count, unsigned flags)
{
	struct rc_wire_memop sent[RC_MEMOPS_MAX];
	return rc_memops_translate(rc_context_session(), operations, count, flags, sent);
}
