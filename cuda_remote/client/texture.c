/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What texture and surface objects were made of: the program gets the description that it gave, with its own handles. Array
 * calls of CUDA's first version, whose descriptors have 32-bit sizes.
 */
#include "cuda_remote/client/array.h"
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"

#include <pthread.h>
#include <stdlib.h>

struct object {
	struct object *next;
	enum rc_number kind;
	uint64_t number;
	CUcontext context;
	CUDA_RESOURCE_DESC resource;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects;

/*
 * The link to an object of the current context, or else to one of another context of its server, or to the end: two servers may
 * give the same number, and a driver may do so in two contexts. Under the lock.
 */
static struct object **place(enum rc_number kind, uint64_t number)
{
	struct object **at = &objects, **other = NULL;
	for (; *at; at = &(*at)->next) {
		struct object *object = *at;
		if (object->number != number || object->kind != kind)
			continue;
		if (object->context == rc_context_current())
			return at;
		if (!other && rc_handle_session((uint64_t)(uintptr_t)object->context) == rc_context_session())
			other = at;
	}
	return other ? other : at;
}

/* Unlinks the object. of_current: only if it is of the current context. */
static void forget(enum rc_number kind, uint64_t number, bool of_current)
{
	pthread_mutex_lock(&lock);
	struct object **at = place(kind, number), *gone = *at;
	if (gone && of_current && gone->context != rc_context_current())
		gone = NULL;
	if (gone)
		*at = gone->next;
	pthread_mutex_unlock(&lock);
	free(gone);
}

static CUresult keep(enum rc_number kind, uint64_t number, const CUDA_RESOURCE_DESC *resource)
{
	struct object *made = malloc(sizeof *made);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	forget(kind, number, true); /* its object has ended without a call that says so */
	pthread_mutex_lock(&lock);
	*made = (struct object){ objects, kind, number, rc_context_current(), *resource };
	objects = made;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

void rc_textures_forget(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (struct object **at = &objects; *at;) {
		struct object *object = *at;
		if (object->context == context) {
			*at = object->next;
			free(object);
		} else {
			at = &object->next;
		}
	}
	pthread_mutex_unlock(&lock);
}

static CUresult resource_of(CUDA_RESOURCE_DESC *resource, enum rc_number kind, uint64_t number)
{
	struct rc_context *context;
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct object *object = *place(kind, number);
	if (object)
		*resource = object->resource;
	pthread_mutex_unlock(&lock);
	return object ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult texture_done_create(CUtexObject *object, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
			     const CUDA_RESOURCE_VIEW_DESC *view)
{
	(void)texture;
	(void)view;
	return keep(RC_NUMBER_TEXTURE, *object, resource);
}

CUresult texture_done_destroy(CUtexObject object)
{
	forget(RC_NUMBER_TEXTURE, object, false);
	return CUDA_SUCCESS;
}

CUresult surface_done_create(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource)
{
	return keep(RC_NUMBER_SURFACE, *object, resource);
}

CUresult surface_done_destroy(CUsurfObject object)
{
	forget(RC_NUMBER_SURFACE, object, false);
	return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject object)
{
	return resource_of(resource, RC_NUMBER_TEXTURE, object);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUsurfObject object)
{
	return resource_of(resource, RC_NUMBER_SURFACE, object);
}
