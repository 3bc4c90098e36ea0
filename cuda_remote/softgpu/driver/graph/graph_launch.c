/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of executable graphs: the checks and reservations at the call, and the command that runs the graph. */
#include "cuda_remote/softgpu/driver/graph/graph_run.h"

#include "cuda_remote/softgpu/driver/graph/graph_allocation.h"
#include "cuda_remote/softgpu/driver/module/module.h"

#include <stdlib.h>
#include <string.h>

static void set_defaults(CUgraph graph)
{
	for (graph_handle_t *handle = graph->conditionals; handle; handle = handle->next) {
		softgpu_conditional_t *value = (void *)(uintptr_t)handle->value->handle;
		if (handle->value->assign_default)
			__atomic_store_n(&value->value, handle->value->default_value, __ATOMIC_RELAXED);
	}
	for (CUgraphNode node = graph->first; node; node = node->next) {
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count; i++)
			set_defaults(below[i]);
	}
}

static CUresult run_command(command_t *command)
{
	graph_launch_t *launch = (graph_launch_t *)command;
	/* Once for all kernels of the launch: it is a system call for each registered range. */
	softgpu_space_verify_registered();
	set_defaults(launch->graph);
	graph_run_one(launch, launch->graph);
	return CUDA_SUCCESS;
}

static void finish(command_t *command)
{
	graph_launch_t *launch = (graph_launch_t *)command;
	for (uint32_t i = 0; i < launch->event_count; i++)
		event_graph_end(&launch->events[i]);
	graph_release(launch->graph);
	graph_exec_release(launch->exec);
}

/*
 * Creates the streams of the helpers. Fewer than wanted are enough. They belong to no context, as the executable graph may be
 * launched in several; the launch's own command, which is in its context's stream, ends after its helpers' nodes.
 */
static void make_helpers(CUgraphExec exec)
{
	static queue_group_t group;
	struct graph_runner *run = exec->run;
	for (unsigned i = 0; i < run->helpers; i++) {
		if (run->helper[i])
			continue;
		run->helper[i] = queue_stream_new(NULL, &group, CU_STREAM_NON_BLOCKING, 0, false);
		if (!run->helper[i])
			return;
		handle_retire(run->helper[i]); /* the program never gets this handle */
	}
}

/* Finds the place that each event node waits for, before this launch's own recordings change it. */
static CUresult note_wait(CUgraphNode node, void *with)
{
	graph_launch_t *launch = with;
	if (node->params.type != CU_GRAPH_NODE_TYPE_WAIT_EVENT && node->params.type != CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		return CUDA_SUCCESS;
	CUevent event = node->params.eventRecord.event;
	event_in_graph_t *slot = &launch->events[node->event_slot];
	if (node->params.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
		slot->on = event_place(event, &slot->sequence);
	else
		slot->event = event;
	return CUDA_SUCCESS;
}

/* Checks that the node's objects still exist, and that its memory is free. */
static CUresult check_node(CUgraphNode node, void *with)
{
	const unsigned long long *flags = with;
	CUresult result = graph_params_there(node);
	return result ? result : graph_memory_check_launch(node, *flags);
}

/* Notes what the launch, which cannot fail any more, does to contexts and memory. */
static CUresult note_node(CUgraphNode node, void *with)
{
	(void)with;
	if (node->params.type == CU_GRAPH_NODE_TYPE_KERNEL && graph_kernel_loaded(node->kernel))
		context_note_launch(node->kernel->function->module->context, &node->kernel->function->info);
	graph_memory_note_launch(node);
	return CUDA_SUCCESS;
}

/* First everything that may fail, before anything is changed. */
static CUresult prepare(CUgraphExec exec, CUstream stream, graph_launch_t **output)
{
	graph_launch_t *launch = calloc(1, sizeof *launch + exec->run->event_nodes * sizeof *launch->events);
	if (!launch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	launch->command.run = run_command;
	launch->command.finish = finish;
	launch->command.host_code = exec->run->host_nodes;
	launch->context = stream->context;
	launch->newest = context_newest();
	launch->exec = exec;
	launch->graph = exec->graph;
	launch->by_priority = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	launch->event_count = exec->run->event_nodes;
	CUresult result = graph_visit(exec->graph, check_node, &exec->flags);
	if (!result && exec->run->event_nodes)
		result = graph_visit(exec->graph, note_wait, launch);
	/* Launches of one executable graph run one after another, in whichever streams. */
	if (!result && exec->run->last && !queue_submit_wait(stream, exec->run->last, exec->run->last_sequence))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result) {
		*output = launch;
		return CUDA_SUCCESS;
	}
	for (uint32_t i = 0; i < launch->event_count; i++)
		if (launch->events[i].on)
			queue_stream_release(launch->events[i].on);
	free(launch);
	return result;
}

CUresult graph_driver_launch(CUgraphExec exec, CUstream stream)
{
	struct graph_runner *run = exec->run;
	graph_launch_t *launch;
	make_helpers(exec);
	CUresult result = prepare(exec, stream, &launch);
	if (result)
		return result;
	graph_visit(exec->graph, note_node, NULL);
	__atomic_add_fetch(&exec->references, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&exec->graph->references, 1, __ATOMIC_RELAXED);
	uint64_t sequence = event_graph_submit(stream, &launch->command, launch->events, launch->event_count);
	if (run->last != stream) {
		queue_stream_hold(stream);
		if (run->last)
			queue_stream_release(run->last);
	}
	run->last = stream;
	run->last_sequence = sequence;
	return CUDA_SUCCESS;
}
