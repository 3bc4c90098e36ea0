/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of allocation nodes (cuda_remote/graph/graph_memory.h). The client allocates it when the node is made, as cuMemAlloc
 * does, and frees it when neither a graph nor the program refers to it. So the worker's graph has an empty node in the place of
 * an allocation node or a free node, and what is in use is known here: memory that its own graph frees counts as used while the
 * call of the launch runs.
 */
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/graph/graph_client.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/graph/graph_memory.h"
#include "rdma_channel/base/log.h"

#include <pthread.h>
#include <stdlib.h>

struct graph_memory_part {
	graph_memory_part_t *next;
	graph_memory_t *memory;
	CUdeviceptr address;
	CUcontext context;
};

static graph_usage_t usages[RC_SERVER_MAX * RC_DEVICES_MAX]; /* by the program's number of the device */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static graph_memory_part_t *parts; /* whose contexts exist */
static pthread_rwlock_t launches = PTHREAD_RWLOCK_INITIALIZER; /* read: a launch is being sent; write: a trim */

CUresult graph_driver_usage(CUdevice device, graph_usage_t **usage)
{
	struct rc_device *found;
	CUresult result = rc_device_get(device, &found);
	if (result == CUDA_SUCCESS)
		*usage = &usages[device];
	return result;
}

CUresult graph_driver_memory_new(CUcontext context, CUdevice device, size_t bytes, graph_memory_t *memory,
				 graph_memory_part_t **part, CUdeviceptr *address)
{
	CUdevice current;
	CUresult result = cuCtxGetDevice(&current);
	if (result == CUDA_SUCCESS && current != device) {
		hr_log_once(HR_LOG_WARN, "an allocation node must allocate memory of the current context's device");
		result = CUDA_ERROR_NOT_SUPPORTED;
	}
	graph_memory_part_t *made = calloc(1, sizeof *made);
	if (result == CUDA_SUCCESS)
		result = made ? rc_memory_allocate(bytes, address) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(made);
		return result;
	}
	rc_memory_set_of_graph(*address);
	*made = (graph_memory_part_t){ .memory = memory, .address = *address, .context = context };
	pthread_mutex_lock(&lock);
	made->next = parts;
	parts = made;
	pthread_mutex_unlock(&lock);
	*part = made;
	return CUDA_SUCCESS;
}

/* Takes the first part of the context, or this part, out of the list. */
static graph_memory_part_t *take(CUcontext context, const graph_memory_part_t *part)
{
	pthread_mutex_lock(&lock);
	graph_memory_part_t **at = &parts;
	while (*at && (part ? *at != part : (*at)->context != context))
		at = &(*at)->next;
	graph_memory_part_t *taken = *at;
	if (taken)
		*at = taken->next;
	pthread_mutex_unlock(&lock);
	return taken;
}

bool graph_driver_memory_free(graph_memory_part_t *part)
{
	struct rc_span span;
	if (!take(NULL, part))
		return false;
	if (rc_memory_find(part->address, &span) && span.of_graph && rc_memory_remove(part->address))
		rc_memory_leave(&span);
	free(part);
	return true;
}

void rc_graph_memory_context_ended(CUcontext context)
{
	graph_memory_part_t *part;
	while ((part = take(context, NULL))) {
		graph_memory_lost(part->memory);
		free(part);
	}
}

void graph_driver_trim_begin(void)
{
	pthread_rwlock_wrlock(&launches);
}

void graph_driver_trim_end(void)
{
	pthread_rwlock_unlock(&launches);
}

bool graph_driver_memory_discard(graph_memory_part_t *part)
{
	struct rc_span span;
	return rc_memory_find(part->address, &span) && span.of_graph && rc_memory_renew(&span);
}

/* ---- launches of graphs with memory nodes ---- */

static CUresult check(CUgraphNode node, void *with)
{
	const unsigned long long *flags = with;
	CUresult result = node->memory ? graph_params_there(node) : CUDA_SUCCESS;
	return result == CUDA_SUCCESS ? graph_memory_check_launch(node, *flags) : result;
}

CUresult rc_graph_memory_launch(CUgraphExec exec)
{
	pthread_rwlock_rdlock(&launches);
	CUresult result = graph_visit(exec->graph, check, &exec->flags);
	if (result != CUDA_SUCCESS)
		pthread_rwlock_unlock(&launches);
	return result;
}

/* Counts what the launch uses at a time, as if its nodes ran in the order in which they were added. */
static CUresult note(CUgraphNode node, void *with)
{
	(void)with;
	graph_memory_note_launch(node);
	if (!node->memory || !graph_memory_balanced(node->memory))
		return CUDA_SUCCESS;
	if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		graph_memory_allocate(node->memory);
	else
		graph_memory_free(node->memory);
	return CUDA_SUCCESS;
}

static CUresult note_end(CUgraphNode node, void *with)
{
	(void)with;
	if (node->memory && graph_memory_balanced(node->memory))
		graph_memory_free(node->memory);
	return CUDA_SUCCESS;
}

void rc_graph_memory_launched(CUgraphExec exec, bool sent)
{
	if (sent) {
		graph_visit(exec->graph, note, NULL);
		graph_visit(exec->graph, note_end, NULL);
	}
	pthread_rwlock_unlock(&launches);
}

/* ---- memory that a graph leaves allocated ---- */

static bool taken_from_graph(CUdeviceptr address, graph_memory_t **memory, CUresult *result)
{
	struct rc_span span;
	if (!rc_memory_find(address, &span) || !span.of_graph)
		return false;
	*result = span.base == address ? graph_memory_freed_by_call(address, memory) : CUDA_ERROR_INVALID_VALUE;
	return true;
}

bool rc_graph_memory_free(CUdeviceptr address, CUresult *result)
{
	graph_memory_t *memory;
	if (!taken_from_graph(address, &memory, result))
		return false;
	if (*result != CUDA_SUCCESS)
		return true;
	*result = cuCtxSynchronize();
	graph_memory_release(memory);
	return true;
}

bool rc_graph_memory_free_async(CUdeviceptr address, CUresult *result)
{
	graph_memory_t *memory;
	if (!taken_from_graph(address, &memory, result))
		return false;
	if (*result == CUDA_SUCCESS)
		graph_memory_release(memory);
	return true;
}
