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
	node->pointers = calloc(kernel->parameters + 1, sizeof(void *));
	if (!node->pointers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < kernel->parameters; i++)
		node->pointers[i] = (void *)(uintptr_t)(block + kernel->parameter[i].offset);
	to->gridDimX = wire.grid[0];
	to->gridDimY = wire.grid[1];
	to->gridDimZ = wire.grid[2];
	to->blockDimX = wire.block[0];
	to->blockDimY = wire.block[1];
	to->blockDimZ = wire.block[2];
	to->sharedMemBytes = wire.shared;
	to->kernelParams = node->pointers;
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

static CUresult take_copy(struct server_call *call, struct graph *graph, struct arrived *node)
{
	struct rc_wire_graph_copy wire;
	CUDA_MEMCPY3D *to = &node->params.memcpy.copyParams;
	if (!server_take_into(call, &wire, sizeof wire) || wire.kind > RC_GRAPH_COPY_DOWN || !wire.width || !wire.height ||
	    !wire.depth)
		return CUDA_ERROR_INVALID_VALUE;
	node->params.memcpy.copyCtx = node->context;
	*to = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = wire.from.address, .srcXInBytes = wire.from.x,
		.srcY = wire.from.y, .srcZ = wire.from.z, .srcPitch = wire.from.pitch, .srcHeight = wire.from.height,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = wire.to.address, .dstXInBytes = wire.to.x,
		.dstY = wire.to.y, .dstZ = wire.to.z, .dstPitch = wire.to.pitch, .dstHeight = wire.to.height,
		.WidthInBytes = wire.width, .Height = wire.height, .Depth = wire.depth,
	};
	node->kind = wire.kind;
	if (wire.kind == RC_GRAPH_COPY_ACROSS)
		return CUDA_SUCCESS;
	uint64_t bytes = copy_bytes(&wire);
	if (!bytes || node->wire.flags & RC_NODE_DISABLED)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_host_node_new(&graph->hosts, wire.function, bytes, wire.kind == RC_GRAPH_COPY_UP, &node->host);
	if (result != CUDA_SUCCESS)
		return result;
	if (wire.kind == RC_GRAPH_COPY_UP) {
		to->srcMemoryType = CU_MEMORYTYPE_HOST;
		to->srcHost = server_host_node_memory(node->host);
		to->srcDevice = to->srcXInBytes = to->srcY = to->srcZ = 0;
		to->srcPitch = wire.width;
		to->srcHeight = wire.height;
	} else {
		to->dstMemoryType = CU_MEMORYTYPE_HOST;
		to->dstHost = server_host_node_memory(node->host);
		to->dstDevice = to->dstXInBytes = to->dstY = to->dstZ = 0;
		to->dstPitch = wire.width;
		to->dstHeight = wire.height;
	}
	return CUDA_SUCCESS;
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

static CUresult take_host(struct server_call *call, struct graph *graph, struct arrived *node)
{
	uint64_t id;
	if (!server_take_into(call, &id, sizeof id))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_host_node_new(&graph->hosts, id, 0, false, &node->host);
	if (result == CUDA_SUCCESS)
		node->params.host = (CUDA_HOST_NODE_PARAMS_v2){ .fn = server_host_node_run, .userData = node->host };
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

CUresult graph_take_node(struct server_call *call, struct graph *graph, struct arrived *node)
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
		return take_copy(call, graph, node);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return take_fill(call, node);
	case CU_GRAPH_NODE_TYPE_HOST:
		return take_host(call, graph, node);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return take_event(call, node);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}
