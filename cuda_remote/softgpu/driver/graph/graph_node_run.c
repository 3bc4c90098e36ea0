/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one node of a launch. */
#include "cuda_remote/softgpu/driver/graph/graph_run.h"

#include "cuda_remote/softgpu/driver/memory/copy.h"
#include "cuda_remote/softgpu/driver/graph/graph_allocation.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/driver/module/launch_shape.h"
#include "cuda_remote/softgpu/driver/module/module.h"
#include "cuda_remote/softgpu/driver/stream/memop.h"
#include "cuda_remote/softgpu/space/space.h"

#include <string.h>

void graph_fault(graph_launch_t *launch, CUcontext context, CUresult fault)
{
	CUresult none = CUDA_SUCCESS;
	/* The node's context was destroyed; a newer one may have its handle. */
	if (!handle_valid(context, HANDLE_CONTEXT) || context->id > launch->newest)
		context = launch->context;
	/* Orders nothing: readers need only the code. */
	__atomic_compare_exchange_n(&launch->fault, &none, fault, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	context_fault(context, fault);
	if (context != launch->context)
		context_fault(launch->context, fault);
}

static bool failed(const graph_launch_t *launch)
{
	return __atomic_load_n(&launch->fault, __ATOMIC_RELAXED) || context_error(launch->context);
}

static CUresult run_kernel(const graph_kernel_t *kernel)
{
	const struct CUfunc_st *function = kernel->function;
	/* The module was unloaded since the launch, with a context that is not the launch's. */
	if (!graph_kernel_loaded(kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	softgpu_launch_t launch;
	CUresult result = launch_make(function, &kernel->shape, &launch);
	if (result)
		return result;
	launch.parameters = kernel->block;
	launch.limits = context_limits(function->module->context);
	return softgpu_launch(&launch);
}

/* Memory that was freed after the node was made: an access is a fault. */
static CUresult as_access(CUresult result)
{
	return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_ILLEGAL_ADDRESS : result;
}

static CUresult run_memset(const CUDA_MEMSET_NODE_PARAMS_v2 *params)
{
	fill_t fill = { params->dst, params->pitch, params->width, params->height, params->value, params->elementSize };
	return as_access(fill_run(&fill));
}

static void run_host(const CUDA_HOST_NODE_PARAMS_v2 *params)
{
	queue_rest_begin();
	init_in_callback(true);
	params->fn(params->userData);
	init_in_callback(false);
	queue_rest_end();
	/* The function may have unmapped registered memory; for what was unmapped before see graph_launch.c. */
	softgpu_space_verify_registered();
}

static uint32_t condition(const struct CUgraphNode_st *node)
{
	const softgpu_conditional_t *value = (const void *)(uintptr_t)node->value->handle;
	/* The kernels that set the value have ended, in this thread or in a thread whose end this thread has seen. */
	return __atomic_load_n(&value->value, __ATOMIC_RELAXED);
}

static void run_conditional(graph_launch_t *launch, CUgraphNode node)
{
	const CUDA_CONDITIONAL_NODE_PARAMS *params = &node->params.conditional;
	uint32_t value = condition(node);
	switch (params->type) {
	case CU_GRAPH_COND_TYPE_IF:
		if (value)
			graph_run_one(launch, params->phGraph_out[0]);
		else if (params->size == 2)
			graph_run_one(launch, params->phGraph_out[1]);
		break;
	case CU_GRAPH_COND_TYPE_WHILE:
		for (; value && !failed(launch); value = condition(node))
			graph_run_one(launch, params->phGraph_out[0]);
		break;
	default:
		if (value < params->size)
			graph_run_one(launch, params->phGraph_out[value]);
	}
}

/* Runs work that belongs to a context, and records its fault there. */
static CUresult run_work(const struct CUgraphNode_st *node, CUcontext *context)
{
	switch (node->params.type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		*context = node->params.kernel.ctx;
		return run_kernel(node->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		*context = node->params.memcpy.copyCtx;
		return as_access(copy_run_3d(&node->params.memcpy.copyParams));
	default:
		*context = node->params.memset.ctx;
		return run_memset(&node->params.memset);
	}
}

static bool run_memop(graph_launch_t *launch, CUgraphNode node, unsigned *progress)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params = &node->params.memOp;
	CUresult fault;
	bool done = memop_run(params->paramArray, params->count, progress, &fault);
	if (fault)
		graph_fault(launch, params->ctx, fault);
	return done;
}

/*
 * If its own graph frees the memory, it is allocated when the node runs; otherwise it was allocated at the launch
 * (graph_launch.c).
 */
static void run_memory(CUgraphNode node)
{
	if (!graph_memory_balanced(node->memory))
		return;
	if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		graph_memory_allocate(node->memory);
	else
		graph_memory_free(node->memory);
}

static bool event_passed(const event_in_graph_t *event)
{
	return !event->on || queue_done(event->on, event->sequence);
}

bool graph_node_run(graph_launch_t *launch, CUgraphNode node, unsigned *progress)
{
	CUcontext context = launch->context;
	CUresult result;
	CUgraphNodeType type = node->params.type;
	/* After a fault nodes are skipped, but memory is still allocated and freed, as in streams. */
	if ((failed(launch) || node->disabled) && type != CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
	    type != CU_GRAPH_NODE_TYPE_MEM_FREE)
		return true;
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
		result = run_work(node, &context);
		if (result)
			graph_fault(launch, context, result);
		return true;
	case CU_GRAPH_NODE_TYPE_HOST:
		run_host(&node->params.host);
		return true;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		graph_run_one(launch, node->params.graph.graph);
		return true;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		run_conditional(launch, node);
		return true;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		event_graph_reached(&launch->events[node->event_slot]);
		return true;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return event_passed(&launch->events[node->event_slot]);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		run_memory(node);
		return true;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return run_memop(launch, node, progress);
	default:
		return true;
	}
}
