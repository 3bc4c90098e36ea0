/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters of nodes: checks them and keeps the node's own copy. */
#include "cuda_remote/graph/graph_memory.h"

#include <stdlib.h>
#include <string.h>

/* One allocation: the pointers to the parameters, which the caller sets, then the parameter block. */
static CUresult kernel_storage(graph_kernel_t *kernel)
{
	size_t pointers = (kernel->parameters * sizeof *kernel->pointers + 15) & ~(size_t)15;
	size_t bytes = (pointers + kernel->bytes + 31) & ~(size_t)15;
	kernel->pointers = aligned_alloc(16, bytes);
	if (!kernel->pointers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	kernel->block = (unsigned char *)kernel->pointers + pointers;
	memset(kernel->block, 0, bytes - pointers);
	return CUDA_SUCCESS;
}

static CUresult kernel_bind(graph_kernel_t *kernel, const graph_function_t *function)
{
	kernel->function = function->function;
	kernel->function_id = function->id;
	kernel->parameters = function->parameters;
	kernel->bytes = function->bytes;
	CUresult result = kernel_storage(kernel);
	for (uint32_t i = 0; i < kernel->parameters && !result; i++)
		kernel->pointers[i] = kernel->block + graph_driver_parameter_offset(kernel->function, i);
	return result;
}

static void kernel_free(graph_kernel_t *kernel)
{
	if (!kernel)
		return;
	free(kernel->pointers);
	free(kernel->values);
	free(kernel);
}

/* Sets the program's view of the kernel, which getters return and setters accept. */
static void kernel_view(CUgraphNode node)
{
	CUDA_KERNEL_NODE_PARAMS_v3 *view = &node->params.kernel;
	view->kernelParams = node->kernel->parameters ? node->kernel->pointers : NULL;
	view->extra = NULL;
}

static CUresult take_kernel(CUgraphNode node, const CUgraphNodeParams *given)
{
	const CUDA_KERNEL_NODE_PARAMS_v3 *from = &given->kernel;
	CUcontext context = from->func ? NULL : from->ctx;
	CUfunction handle = from->func ? from->func : (CUfunction)(void *)from->kern;
	CUresult result = graph_driver_context(&context);
	if (result)
		return result;
	graph_kernel_t *kernel = calloc(1, sizeof *kernel);
	if (!kernel)
		return CUDA_ERROR_OUT_OF_MEMORY;
	kernel->shape = (launch_shape_t){ .grid = { from->gridDimX, from->gridDimY, from->gridDimZ },
					  .block = { from->blockDimX, from->blockDimY, from->blockDimZ },
					  .dynamic_shared = from->sharedMemBytes };
	graph_function_t function;
	result = graph_driver_function(handle, context, &function);
	if (!result && from->kernelParams && from->extra)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = graph_driver_check_shape(function.function, &kernel->shape);
	if (!result)
		result = kernel_bind(kernel, &function);
	if (!result)
		result = graph_driver_parameters(kernel->function, from->kernelParams, from->extra, kernel->block);
	if (result) {
		kernel_free(kernel);
		return result;
	}
	node->kernel = kernel;
	node->params.kernel = *from;
	node->params.kernel.ctx = function.context ? function.context : context;
	kernel_view(node);
	return CUDA_SUCCESS;
}

static CUresult clone_kernel(CUgraphNode to, const struct CUgraphNode_st *from)
{
	graph_kernel_t *kernel = malloc(sizeof *kernel);
	if (!kernel)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*kernel = *from->kernel;
	kernel->pointers = NULL;
	kernel->values = NULL;
	CUresult result = kernel_storage(kernel);
	if (!result && from->kernel->values) {
		kernel->values = malloc(GRAPH_ATTRIBUTES * sizeof *kernel->values);
		if (kernel->values)
			memcpy(kernel->values, from->kernel->values, GRAPH_ATTRIBUTES * sizeof *kernel->values);
		else
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result) {
		kernel_free(kernel);
		return result;
	}
	memcpy(kernel->block, from->kernel->block, kernel->bytes);
	for (uint32_t i = 0; i < kernel->parameters; i++) {
		const unsigned char *parameter = from->kernel->pointers[i];
		kernel->pointers[i] = kernel->block + (parameter - from->kernel->block);
	}
	to->kernel = kernel;
	kernel_view(to);
	return CUDA_SUCCESS;
}

/* True if below is graph, or a graph below it. */
static bool holds(CUgraph graph, CUgraph below)
{
	while (below != graph && below->owner)
		below = below->owner->graph;
	return below == graph;
}

/* Takes a child graph: a clone of it, or, for ownership MOVE, the graph itself. */
static CUresult take_child(CUgraphNode node, CUgraphNodeParams *given)
{
	CUgraph child = given->graph.graph, mine;
	CUgraphChildGraphNodeOwnership ownership = given->graph.ownership;
	if (!handle_valid(child, HANDLE_GRAPH) || holds(child, node->graph) || graph_capturing(child) ||
	    ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE || graph_has(child, CU_GRAPH_NODE_TYPE_CONDITIONAL, true))
		return CUDA_ERROR_INVALID_VALUE;
	if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
		if (child->owner || __atomic_load_n(&child->executables, __ATOMIC_RELAXED))
			return CUDA_ERROR_INVALID_VALUE;
		mine = child;
	} else {
		if (graph_has_memory(child))
			return CUDA_ERROR_NOT_SUPPORTED;
		CUresult result = graph_clone(child, false, &mine);
		if (result)
			return result;
	}
	node->params.graph = (CUDA_CHILD_GRAPH_NODE_PARAMS){ mine, ownership };
	return CUDA_SUCCESS;
}

static CUresult take_event(CUgraphNode node, CUevent event)
{
	node->params.eventRecord.event = event;
	return graph_driver_event(event, &node->named[0]);
}

static CUresult take_memcpy(CUgraphNode node, const CUDA_MEMCPY_NODE_PARAMS *given)
{
	CUcontext context = given->copyCtx;
	CUresult result = graph_driver_context(&context);
	if (result)
		return result;
	if (given->flags || given->reserved)
		return CUDA_ERROR_INVALID_VALUE;
	node->params.memcpy = *given;
	node->params.memcpy.copyCtx = context;
	return graph_driver_check_copy(&given->copyParams, node->named);
}

static CUresult take_memset(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v2 *given)
{
	CUcontext context = given->ctx;
	CUresult result = graph_driver_context(&context);
	if (result)
		return result;
	node->params.memset = *given;
	node->params.memset.ctx = context;
	if (given->elementSize != 1 && given->elementSize != 2 && given->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	return graph_driver_check_fill(&node->params.memset);
}

static CUresult take_alloc(CUgraphNode node, CUgraphNodeParams *given)
{
	const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *from = &given->alloc;
	CUcontext context = NULL;
	CUresult result = graph_driver_context(&context);
	if (result)
		return result;
	if (node->graph->owner)
		return CUDA_ERROR_NOT_SUPPORTED; /* as cuGraphChildGraphNodeGetGraph says */
	if (from->poolProps.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!from->bytesize || (from->accessDescCount && !from->accessDescs) ||
	    from->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || from->poolProps.handleTypes ||
	    from->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	CUmemAccessDesc *access = NULL;
	if (from->accessDescCount) {
		access = calloc(from->accessDescCount, sizeof *access);
		if (!access)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(access, from->accessDescs, from->accessDescCount * sizeof *access);
	}
	result = graph_memory_new(context, from->poolProps.location.id, from->bytesize, &node->memory);
	if (result) {
		free(access);
		return result;
	}
	graph_memory_note_owner(node->memory, node->graph->id);
	node->params.alloc = *from;
	node->params.alloc.accessDescs = access;
	node->params.alloc.dptr = given->alloc.dptr = graph_memory_address(node->memory);
	return CUDA_SUCCESS;
}

static CUresult take_free(CUgraphNode node, CUdeviceptr address)
{
	if (node->graph->owner)
		return CUDA_ERROR_NOT_SUPPORTED;
	node->memory = graph_memory_find(address);
	if (!node->memory)
		return CUDA_ERROR_INVALID_VALUE;
	node->params.free.dptr = address;
	return graph_memory_note_free(node->memory, node->graph->id);
}

static CUresult take_memop(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *given)
{
	CUcontext context = given->ctx;
	CUresult result = graph_driver_context(&context);
	if (!result)
		result = graph_driver_check_memop(given->paramArray, given->count, given->flags);
	if (result)
		return result;
	CUstreamBatchMemOpParams *copy = malloc(given->count * sizeof *copy);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, given->paramArray, given->count * sizeof *copy);
	node->params.memOp = *given;
	node->params.memOp.ctx = context;
	node->params.memOp.paramArray = copy;
	return CUDA_SUCCESS;
}

static CUgraph *empty_bodies(CUgraphNode node, unsigned size)
{
	CUgraph *bodies = calloc(size, sizeof(CUgraph));
	for (unsigned i = 0; bodies && i < size; i++) {
		bodies[i] = graph_new(node);
		if (bodies[i])
			continue;
		while (i--)
			graph_free(bodies[i]);
		free(bodies);
		return NULL;
	}
	return bodies;
}

static CUresult take_conditional(CUgraphNode node, CUgraphNodeParams *given)
{
	const CUDA_CONDITIONAL_NODE_PARAMS *from = &given->conditional;
	struct graph_conditional *value = graph_conditional_find(node->graph, from->handle);
	CUgraph top = node->graph;
	while (top->owner)
		top = top->owner->graph;
	if (!value || graph_conditional_bound(top, value) || (from->ctx && from->ctx != value->context) || !from->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (from->type > CU_GRAPH_COND_TYPE_SWITCH || (from->type == CU_GRAPH_COND_TYPE_IF && from->size > 2) ||
	    (from->type == CU_GRAPH_COND_TYPE_WHILE && from->size > 1))
		return CUDA_ERROR_INVALID_VALUE;
	node->params.conditional = *from;
	node->params.conditional.ctx = value->context;
	node->params.conditional.phGraph_out = empty_bodies(node, from->size);
	if (!node->params.conditional.phGraph_out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph_conditional_hold(value);
	node->value = value;
	given->conditional.phGraph_out = node->params.conditional.phGraph_out;
	return CUDA_SUCCESS;
}

static CUresult take(CUgraphNode node, CUgraphNodeParams *given)
{
	switch (given->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return take_kernel(node, given);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return take_memcpy(node, &given->memcpy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return take_memset(node, &given->memset);
	case CU_GRAPH_NODE_TYPE_HOST:
		node->params.host = given->host;
		return given->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return take_child(node, given);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return take_event(node, given->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		return CUDA_ERROR_NOT_SUPPORTED; /* nothing can export a semaphore to this device */
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return take_alloc(node, given);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return take_free(node, given->free.dptr);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return take_memop(node, &given->memOp);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return take_conditional(node, given);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The graphs below belong to this node, through which their nodes find conditional handles. */
static void own_below(CUgraphNode node)
{
	unsigned count;
	CUgraph *below = graph_below(node, &count);
	for (unsigned i = 0; i < count; i++)
		below[i]->owner = node;
}

void graph_params_swap(CUgraphNode one, CUgraphNode other)
{
	struct CUgraphNode_st before = *one;
	one->params = other->params;
	memcpy(one->named, other->named, sizeof one->named);
	one->kernel = other->kernel;
	one->memory = other->memory;
	one->value = other->value;
	other->params = before.params;
	memcpy(other->named, before.named, sizeof other->named);
	other->kernel = before.kernel;
	other->memory = before.memory;
	other->value = before.value;
	own_below(one);
	own_below(other);
}

CUresult graph_params_take(CUgraphNode node, CUgraphNodeParams *given)
{
	struct CUgraphNode_st fresh = { .graph = node->graph, .params.type = given->type };
	CUresult result = take(&fresh, given);
	if (!result && node->kernel && (node->kernel->shape.cooperative || node->kernel->shape.cluster[0])) {
		fresh.kernel->shape.cooperative = node->kernel->shape.cooperative;
		memcpy(fresh.kernel->shape.cluster, node->kernel->shape.cluster, sizeof fresh.kernel->shape.cluster);
		result = graph_driver_check_shape(fresh.kernel->function, &fresh.kernel->shape);
	}
	if (result) {
		graph_params_drop(&fresh);
		return result;
	}
	if (node->kernel && fresh.kernel) { /* attributes keep their values */
		fresh.kernel->set = node->kernel->set;
		fresh.kernel->values = node->kernel->values;
		node->kernel->values = NULL;
	}
	graph_params_swap(node, &fresh);
	graph_params_drop(&fresh);
	return CUDA_SUCCESS;
}

static CUresult clone_bodies(CUgraphNode to, CUgraphNode from, bool exact)
{
	unsigned size = from->params.conditional.size;
	CUgraph *bodies = calloc(size, sizeof(CUgraph));
	if (!bodies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < size; i++) {
		CUresult result = graph_clone(from->params.conditional.phGraph_out[i], exact, &bodies[i]);
		if (!result)
			continue;
		while (i--)
			graph_free(bodies[i]);
		free(bodies);
		return result;
	}
	to->params.conditional.phGraph_out = bodies;
	return CUDA_SUCCESS;
}

/* Copies an array; *to becomes the copy's address. */
static CUresult clone_array(const void *array, size_t bytes, void **to)
{
	*to = bytes ? malloc(bytes) : NULL;
	if (bytes && !*to)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (bytes)
		memcpy(*to, array, bytes);
	return CUDA_SUCCESS;
}

CUresult graph_params_clone(CUgraphNode to, CUgraphNode from, bool exact)
{
	const CUgraphNodeParams *params = &from->params;
	CUgraphNodeParams copy = *params;
	CUresult result = CUDA_SUCCESS;
	to->params.type = params->type; /* so that there is nothing to drop if the rest fails */
	memcpy(to->named, from->named, sizeof to->named);
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		to->params = copy;
		return clone_kernel(to, from);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		result = graph_clone(params->graph.graph, exact, &copy.graph.graph);
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		to->params.conditional.size = params->conditional.size;
		result = clone_bodies(to, from, exact);
		copy.conditional.phGraph_out = to->params.conditional.phGraph_out;
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		result = clone_array(params->memOp.paramArray, params->memOp.count * sizeof *params->memOp.paramArray,
				     (void **)&copy.memOp.paramArray);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		result = clone_array(params->alloc.accessDescs,
				     params->alloc.accessDescCount * sizeof *params->alloc.accessDescs,
				     (void **)&copy.alloc.accessDescs);
		break;
	default:
		break;
	}
	if (result)
		return result;
	to->params = copy;
	to->memory = from->memory;
	to->value = from->value;
	if (to->memory)
		graph_memory_hold(to->memory);
	if (to->value)
		graph_conditional_hold(to->value);
	own_below(to);
	return CUDA_SUCCESS;
}

static bool array_there(CUmemorytype type, CUarray array, uint64_t id)
{
	return type != CU_MEMORYTYPE_ARRAY || graph_driver_array_there(array, id);
}

CUresult graph_params_there(CUgraphNode node)
{
	const CUDA_MEMCPY3D *copy = &node->params.memcpy.copyParams;
	CUevent event = node->params.eventRecord.event;
	bool there = true;
	switch (node->params.type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		there = graph_kernel_loaded(node->kernel);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		there = array_there(copy->srcMemoryType, copy->srcArray, node->named[0]) &&
			array_there(copy->dstMemoryType, copy->dstArray, node->named[1]);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		there = graph_driver_event_there(event, node->named[0]);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return graph_memory_there(node->memory) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	default:
		break;
	}
	return there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void graph_params_drop(CUgraphNode node)
{
	unsigned count;
	CUgraph *below = graph_below(node, &count);
	for (unsigned i = 0; i < count; i++)
		graph_free(below[i]);
	if (node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		free(node->params.conditional.phGraph_out);
	else if (node->params.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		free(node->params.memOp.paramArray);
	else if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		free((void *)(uintptr_t)node->params.alloc.accessDescs);
	kernel_free(node->kernel);
	if (node->memory)
		graph_memory_release(node->memory);
	if (node->value)
		graph_conditional_release(node->value);
}
