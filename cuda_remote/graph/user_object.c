/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User objects: reference counts for resources of the program. Graphs hold some of the references. The thread that
 * drops the last one calls the program's destructor, which must not call CUDA.
 */
#include "cuda_remote/graph/graph.h"

#include <limits.h>
#include <stdlib.h>

struct CUuserObject_st {
	handle_t handle;
	void *data;
	CUhostFn destroy;
	uint64_t references; /* atomic */
};

static CUresult enter(CUuserObject object, unsigned count)
{
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	if (!handle_valid(object, HANDLE_USER_OBJECT) || !count || count > INT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static void hold(CUuserObject object, uint64_t count)
{
	__atomic_add_fetch(&object->references, count, __ATOMIC_RELAXED);
}

static void release(CUuserObject object, uint64_t count)
{
	/* Orders what each holder did with the resource before the destructor: all releases pair with each other. */
	if (__atomic_sub_fetch(&object->references, count, __ATOMIC_ACQ_REL))
		return;
	handle_retire(object);
	graph_driver_in_callback(true);
	object->destroy(object->data);
	graph_driver_in_callback(false);
	handle_release(object);
}

CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount,
			    unsigned int flags)
{
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	if (!object_out || !destroy || !initialRefcount || initialRefcount > INT_MAX ||
	    flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	CUuserObject object = handle_new(HANDLE_USER_OBJECT, sizeof *object);
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->data = ptr;
	object->destroy = destroy;
	object->references = initialRefcount;
	*object_out = object;
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	CUresult result = enter(object, count);
	if (!result)
		hold(object, count);
	return result;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	CUresult result = enter(object, count);
	if (result)
		return result;
	if (count > __atomic_load_n(&object->references, __ATOMIC_RELAXED))
		return CUDA_ERROR_INVALID_VALUE;
	release(object, count);
	return CUDA_SUCCESS;
}

static CUresult list(CUgraph graph, CUuserObject object, uint64_t count)
{
	graph_object_t *entry = graph->objects;
	while (entry && entry->object != object)
		entry = entry->next;
	if (!entry) {
		entry = malloc(sizeof *entry);
		if (!entry)
			return CUDA_ERROR_OUT_OF_MEMORY;
		*entry = (graph_object_t){ graph->objects, object, 0 };
		graph->objects = entry;
	}
	entry->count += count;
	return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
	CUresult result = enter(object, count);
	if (result)
		return result;
	if (!handle_valid(graph, HANDLE_GRAPH) || (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE))
		return CUDA_ERROR_INVALID_VALUE;
	bool move = flags & CU_GRAPH_USER_OBJECT_MOVE;
	if (move && count > __atomic_load_n(&object->references, __ATOMIC_RELAXED))
		return CUDA_ERROR_INVALID_VALUE;
	result = list(graph, object, count);
	if (!result && !move)
		hold(object, count);
	return result;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	CUresult result = enter(object, count);
	if (result)
		return result;
	if (!handle_valid(graph, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	graph_object_t **at = &graph->objects;
	while (*at && (*at)->object != object)
		at = &(*at)->next;
	graph_object_t *entry = *at;
	if (!entry || entry->count < count)
		return CUDA_ERROR_INVALID_VALUE;
	entry->count -= count;
	if (!entry->count) {
		*at = entry->next;
		free(entry);
	}
	release(object, count);
	return CUDA_SUCCESS;
}

CUresult graph_objects_clone(CUgraph to, CUgraph from)
{
	for (graph_object_t *entry = from->objects; entry; entry = entry->next) {
		CUresult result = list(to, entry->object, entry->count);
		if (result)
			return result;
		hold(entry->object, entry->count);
	}
	return CUDA_SUCCESS;
}

void graph_objects_release(CUgraph graph)
{
	while (graph->objects) {
		graph_object_t *entry = graph->objects;
		graph->objects = entry->next;
		release(entry->object, entry->count);
		free(entry);
	}
}
