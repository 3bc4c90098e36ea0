/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs in the worker: what arrives for each type of node. The driver checks device addresses and shapes. */
#include "cuda_remote/api/attributes.h"
#include "cuda_remote/server/graph/graph.h"

#include <stdlib.h>
#include <string.h>

static bool travels(uint32_t attribute)
{
	return attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || rc_launch_attribute_travels((CUlaunchAttributeID)attribute);
}

static CUresult take_kernel(struct server_call *call, struct arrived *node)
{
	struct rc_wire_graph_kernel wire;
	if (!server_take_into(call, &wire, sizeof wire))
		return CUDA_ERROR_INVALID_VALUE;
	struct server_kernel *kernel = server_object_kernel(wire.function);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	CUDA_KERNEL_NODE_PARAMS_v3 *to = &node->params.kernel;
	/* The driver finds a library's kernel in the current context. */
	CUresult result = node->context ? driver.cuCtxSetCurrent(node->context) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = server_object(RC_KIND_FUNCTION, wire.function, (void **)&to->func);
	if (node->context)
		(void)driver.cuCtxSetCurrent(call->thread->current);
	if (result != CUDA_SUCCESS)
		return result;
	const uint8_t *block = server_take(call, ((uint64_t)wire.parameters + 7) / 8, 8);
	node->values = server_take(call, (uint64_t)__builtin_popcount(wire.set), sizeof(CUlaunchAttributeValue));
	if (!block || !node->values || wire.parameters != kernel->block)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < 32; i++)
		if (wire.set & 1u << i && !travels(i))
			return CUDA_ERROR_INVALID_VALUE;
	node->set = wire.set;
	void **pointers = node->temporary = calloc(kernel->parameters + 1, sizeof(void *));
	if (!pointers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < kernel->parameters; i++)
		pointers[i] = (void *)(uintptr_t)(block + kernel->parameter[i].offset);
	to->gridDimX = wire.grid[0];
	to->gridDimY = wire.grid[1];
	to->gridDimZ = wire.grid[2];
	to->blockDimX = wire.block[0];
	to->blockDimY = wire.block[1];
	to->blockDimZ = wire.block[2];
	to->sharedMemBytes = wire.shared;
	to->kernelParams = pointers;
	to->ctx = node->context;
	return CUDA_SUCCESS;
}

/* Bytes of a copy with a side on the host; 0: too many. */
static uint64_t copy_bytes(const struct rc_wire_graph_copy *wire)
{
	struct rc_wire_box box = { .width = wire->width, .height = wire->height, .depth = wire->depth };
	uint64_t bytes = rc_box_bytes(&box);
	return bytes <= RC_CALL_BYTES_MAX ? bytes : 0;
}

/* True if the rows of a side lie in that many bytes of pinned memory. */
static bool is_within(const struct rc_wire_side *side, const struct rc_wire_graph_copy *copy, uint64_t bytes)
{
	uint64_t pitch = side->pitch ? side->pitch : copy->width, rows = side->height ? side->height : copy->height;
	uint64_t slice, first, over;
	if (__builtin_mul_overflow(pitch, rows, &slice) || __builtin_mul_overflow(side->z, slice, &over) ||
	    __builtin_add_overflow(side->address, over, &first) || __builtin_mul_overflow(side->y, pitch, &over) ||
	    __builtin_add_overflow(first, over, &first) || __builtin_add_overflow(first, side->x, &first))
		return false;
	struct rc_wire_box box = { first, pitch, slice, copy->width, copy->height, copy->depth };
	uint64_t extent = rc_box_extent(&box);
	return extent && first <= bytes && extent <= bytes - first;
}

/* What a side is of, if it is not of unmapped host memory. The driver finds pinned memory at its address, as kernels do. */
static CUresult take_side(const struct rc_wire_side *side, const struct rc_wire_graph_copy *copy, CUmemorytype *type,
			  CUdeviceptr *address, CUarray *array)
{
	uint8_t *memory;
	uint64_t bytes;
	*type = CU_MEMORYTYPE_DEVICE;
	*address = side->address;
	if (!side->object)
		return CUDA_SUCCESS;
	if (rc_handle_kind(side->object) == RC_KIND_ARRAY) {
		*type = CU_MEMORYTYPE_ARRAY;
		*address = 0;
		return server_object(RC_KIND_ARRAY, side->object, (void **)array);
	}
	CUresult result = server_pinned_find(side->object, &memory, &bytes);
	if (result == CUDA_SUCCESS && !is_within(side, copy, bytes))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*address = (uint64_t)(uintptr_t)memory + side->address;
	return result;
}

/* Puts memory of the worker in the place of the client's. */
static CUresult take_host_side(const struct rc_wire_graph_copy *wire, struct arrived *node)
{
	CUDA_MEMCPY3D *to = &node->params.memcpy.copyParams;
	bool up = wire->kind == RC_GRAPH_COPY_UP;
	uint64_t bytes = copy_bytes(wire);
	CUresult result = bytes ? host_version_new(wire->function, bytes, up, &node->host)
				: CUDA_ERROR_NOT_SUPPORTED;
	if (result != CUDA_SUCCESS)
		return result;
	if (up) {
		to->srcMemoryType = CU_MEMORYTYPE_HOST;
		to->srcHost = host_version_memory(node->host);
		to->srcDevice = to->srcXInBytes = to->srcY = to->srcZ = 0;
		to->srcPitch = wire->width;
		to->srcHeight = wire->height;
	} else {
		to->dstMemoryType = CU_MEMORYTYPE_HOST;
		to->dstHost = host_version_memory(node->host);
		to->dstDevice = to->dstXInBytes = to->dstY = to->dstZ = 0;
		to->dstPitch = wire->width;
		to->dstHeight = wire->height;
	}
	return CUDA_SUCCESS;
}

static CUresult take_copy(struct server_call *call, struct arrived *node)
{
	struct rc_wire_graph_copy wire;
	CUDA_MEMCPY3D *to = &node->params.memcpy.copyParams;
	if (!server_take_into(call, &wire, sizeof wire) || wire.kind > RC_GRAPH_COPY_DOWN || !wire.width || !wire.height ||
	    !wire.depth)
		return CUDA_ERROR_INVALID_VALUE;
	node->params.memcpy.copyCtx = node->context;
	*to = (CUDA_MEMCPY3D){
		.srcXInBytes = wire.from.x, .srcY = wire.from.y, .srcZ = wire.from.z, .srcPitch = wire.from.pitch,
		.srcHeight = wire.from.height, .dstXInBytes = wire.to.x, .dstY = wire.to.y, .dstZ = wire.to.z,
		.dstPitch = wire.to.pitch, .dstHeight = wire.to.height,
		.WidthInBytes = wire.width, .Height = wire.height, .Depth = wire.depth,
	};
	node->kind = wire.kind;
	CUresult result = CUDA_SUCCESS;
	if (wire.kind != RC_GRAPH_COPY_UP)
		result = take_side(&wire.from, &wire, &to->srcMemoryType, &to->srcDevice, &to->srcArray);
	if (result == CUDA_SUCCESS && wire.kind != RC_GRAPH_COPY_DOWN)
		result = take_side(&wire.to, &wire, &to->dstMemoryType, &to->dstDevice, &to->dstArray);
	if (result == CUDA_SUCCESS && wire.kind != RC_GRAPH_COPY_ACROSS)
		result = take_host_side(&wire, node);
	return result;
}

static CUresult take_memops(struct server_call *call, struct arrived *node)
{
	uint64_t count;
	struct rc_wire_memop from;
	if (!server_take_into(call, &count, sizeof count) || !count || count > RC_MEMOPS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamBatchMemOpParams *list = calloc(count, sizeof *list);
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->temporary = list;
	node->params.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){ .ctx = node->context, .count = (unsigned)count, .paramArray = list };
	CUresult result = CUDA_SUCCESS;
	for (uint64_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = server_take_into(call, &from, sizeof from) ? server_memop(&from, &list[i]) : CUDA_ERROR_INVALID_VALUE;
	return result;
}

static CUresult take_fill(struct server_call *call, struct arrived *node)
{
	struct rc_wire_graph_fill wire;
	if (!server_take_into(call, &wire, sizeof wire))
		return CUDA_ERROR_INVALID_VALUE;
	node->params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){ .dst = wire.to, .pitch = wire.pitch, .value = wire.value,
							    .elementSize = wire.element, .width = wire.width,
							    .height = wire.height, .ctx = node->context };
	return CUDA_SUCCESS;
}

CUhostFn graph_host_function(const struct arrived *node)
{
	return node->wire.flags & RC_NODE_DISABLED ? host_skip : host_run;
}

static CUresult take_host(struct server_call *call, struct arrived *node)
{
	uint64_t id;
	if (!server_take_into(call, &id, sizeof id))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = host_version_new(id, 0, false, &node->host);
	if (result == CUDA_SUCCESS)
		node->params.host = (CUDA_HOST_NODE_PARAMS_v2){ .fn = graph_host_function(node), .userData = node->host };
	return result;
}

static CUresult take_event(struct server_call *call, struct arrived *node)
{
	uint64_t handle;
	void *event;
	if (!server_take_into(call, &handle, sizeof handle))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_EVENT, handle, &event);
	if (result == CUDA_SUCCESS)
		node->params.eventRecord.event = event; /* the member of both types of node */
	return result;
}

CUresult graph_take_node(struct server_call *call, struct arrived *node)
{
	node->params.type = (CUgraphNodeType)node->wire.type;
	CUresult result = CUDA_SUCCESS;
	if (node->wire.context)
		result = server_object(RC_KIND_CONTEXT, node->wire.context, (void **)&node->context);
	if (result != CUDA_SUCCESS)
		return result;
	switch (node->wire.type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return take_kernel(call, node);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return take_copy(call, node);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return take_fill(call, node);
	case CU_GRAPH_NODE_TYPE_HOST:
		return take_host(call, node);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return take_event(call, node);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return take_memops(call, node);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}
