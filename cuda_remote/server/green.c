/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Green contexts. The client names a green context by a context's handle, whose data says that it is one. Calls are made in
 * its primary context; the green context is made current only to make a blocking stream in it. The driver's structs of
 * multiprocessors stay here, as they may contain what the driver trusts; the client has their numbers.
 */
#include "cuda_remote/server/internal.h"

#include <stdlib.h>
#include <string.h>

#define RESOURCES_MAX 16384 /* of a session: 3 MB */
#define RESOURCE_BUCKETS 1024

struct server_green {
	struct server_green *next;
	CUgreenCtx green;
	CUcontext context, primary; /* context: the driver's name of the green context as a context */
	bool lost; /* the primary context was reset; under the lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct server_green *greens;

/* ---- multiprocessors ---- */

/*
 * A resource that the client was told of. CUDA has no call that frees one, so the one that was used least recently gives its place
 * to a new one when all places are taken. A number is the place and how often the place was taken.
 */
struct kept {
	CUdevResource resource;
	uint64_t number;
	uint32_t bucket, same;    /* same: the next place in the bucket, as the next two 1 more than its index; 0: none */
	uint32_t before, after;   /* used before and after this one */
};

static struct kept *kept;
static uint32_t kept_n, kept_room, buckets[RESOURCE_BUCKETS], oldest, newest;

static uint32_t bucket_of(const CUdevResource *resource)
{
	const uint8_t *bytes = (const uint8_t *)resource;
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	for (size_t i = 0; i < sizeof *resource; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	return (uint32_t)(hash >> 32) % RESOURCE_BUCKETS;
}

/* Takes the place at index - 1 out of the order of use. Under the lock, as the next four. */
static void order_remove(uint32_t index)
{
	const struct kept *at = &kept[index - 1];
	*(at->before ? &kept[at->before - 1].after : &oldest) = at->after;
	*(at->after ? &kept[at->after - 1].before : &newest) = at->before;
}

static void order_append(uint32_t index)
{
	kept[index - 1].before = newest;
	kept[index - 1].after = 0;
	*(newest ? &kept[newest - 1].after : &oldest) = index;
	newest = index;
}

static void bucket_remove(uint32_t index)
{
	uint32_t *at = &buckets[kept[index - 1].bucket];
	while (*at != index)
		at = &kept[*at - 1].same;
	*at = kept[index - 1].same;
}

/* A place that no resource has, with a number of its own. 0: no memory. */
static uint32_t place_new(void)
{
	if (kept_n == RESOURCES_MAX) {
		uint32_t index = oldest;
		order_remove(index);
		bucket_remove(index);
		kept[index - 1].number += RESOURCES_MAX;
		return index;
	}
	if (kept_n == kept_room) {
		uint32_t room = kept_room ? 2 * kept_room : 64;
		struct kept *more = realloc(kept, room * sizeof *more);
		if (!more)
			return 0;
		kept = more;
		kept_room = room;
	}
	kept[kept_n].number = RESOURCES_MAX + kept_n;
	return ++kept_n;
}

static uint32_t place_of(const CUdevResource *resource, uint32_t bucket)
{
	uint32_t index = buckets[bucket];
	while (index && memcmp(&kept[index - 1].resource, resource, sizeof *resource))
		index = kept[index - 1].same;
	return index;
}

/* The number of a resource, which is kept if it is new. *number 0: it has no multiprocessors. */
static CUresult resource_keep(const CUdevResource *resource, uint64_t *number)
{
	*number = 0;
	if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_SUCCESS;
	uint32_t bucket = bucket_of(resource);
	pthread_mutex_lock(&lock);
	uint32_t index = place_of(resource, bucket);
	if (index) {
		order_remove(index);
	} else if ((index = place_new())) {
		kept[index - 1].resource = *resource;
		kept[index - 1].bucket = bucket;
		kept[index - 1].same = buckets[bucket];
		buckets[bucket] = index;
	}
	if (index) {
		order_append(index);
		*number = kept[index - 1].number;
	}
	pthread_mutex_unlock(&lock);
	return index ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult resource_find(uint64_t number, CUdevResource *resource)
{
	uint32_t index = (uint32_t)(number % RESOURCES_MAX) + 1;
	pthread_mutex_lock(&lock);
	bool found = index <= kept_n && kept[index - 1].number == number;
	if (found) {
		order_remove(index);
		order_append(index);
		*resource = kept[index - 1].resource;
	}
	pthread_mutex_unlock(&lock);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult resource_give(struct server_call *call, const CUdevResource *resource)
{
	struct rc_wire_resource wire = { .number = 0 };
	CUresult result = resource_keep(resource, &wire.number);
	if (result != CUDA_SUCCESS)
		return result;
	if (wire.number) {
		wire.count = resource->sm.smCount;
		wire.partition = resource->sm.minSmPartitionSize;
		wire.alignment = resource->sm.smCoscheduledAlignment;
	}
	return server_give_bytes(call, &wire, sizeof wire);
}

static CUresult green_find(uint64_t handle, struct server_green **green)
{
	*green = server_object_data(RC_KIND_CONTEXT, handle);
	if (!*green)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	bool lost = (*green)->lost;
	pthread_mutex_unlock(&lock);
	return lost ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult serve_resource_get(struct server_call *call)
{
	struct rc_wire_resource_get args;
	struct server_green *green = NULL;
	CUdevice device = 0;
	CUdevResource resource;
	if (!server_take_into(call, &args, sizeof args) || args.type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_VALUE;
	if (args.green ? !driver.cuGreenCtxGetDevResource : !driver.cuDeviceGetDevResource)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = args.green ? green_find(args.green, &green) : server_device(args.device, &device);
	memset(&resource, 0, sizeof resource);
	if (result == CUDA_SUCCESS)
		result = args.green ? driver.cuGreenCtxGetDevResource(green->green, &resource, CU_DEV_RESOURCE_TYPE_SM) :
				      driver.cuDeviceGetDevResource(device, &resource, CU_DEV_RESOURCE_TYPE_SM);
	return result == CUDA_SUCCESS ? resource_give(call, &resource) : result;
}

/* Calls the driver and writes the answer. parts: args->room of them, or NULL. */
static CUresult split(struct server_call *call, const struct rc_wire_resource_split *args, CUdevResource *parts)
{
	struct rc_wire_resource_split answer = { .number = 0 };
	CUdevResource input, rest;
	unsigned made = args->room;
	CUresult result = resource_find(args->number, &input);
	memset(&rest, 0, sizeof rest);
	if (result == CUDA_SUCCESS)
		result = driver.cuDevSmResourceSplitByCount(parts, &made, &input, args->rest ? &rest : NULL, args->flags,
							    args->least);
	if (result != CUDA_SUCCESS)
		return result;
	if (parts && made > args->room)
		return CUDA_ERROR_UNKNOWN;
	answer.room = made;
	result = server_give_bytes(call, &answer, sizeof answer);
	for (unsigned i = 0; i < made && parts && result == CUDA_SUCCESS; i++)
		result = resource_give(call, &parts[i]);
	return result == CUDA_SUCCESS && args->rest ? resource_give(call, &rest) : result;
}

CUresult serve_resource_split(struct server_call *call)
{
	struct rc_wire_resource_split args;
	if (!server_take_into(call, &args, sizeof args) || args.room > RC_RESOURCES_MAX || args.rest > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuDevSmResourceSplitByCount)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUdevResource *parts = args.room ? calloc(args.room, sizeof *parts) : NULL;
	if (args.room && !parts)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = split(call, &args, parts);
	free(parts);
	return result;
}

CUresult serve_resource_describe(struct server_call *call)
{
	struct rc_wire_resource_describe args;
	CUdevResourceDesc descriptor;
	if (!server_take_into(call, &args, sizeof args) || !args.count || args.count > RC_RESOURCES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	const uint8_t *numbers = server_take(call, args.count, sizeof(uint64_t));
	if (!numbers)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuDevResourceGenerateDesc)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUdevResource *parts = calloc(args.count, sizeof *parts);
	CUresult result = parts ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < args.count && result == CUDA_SUCCESS; i++) {
		uint64_t number;
		memcpy(&number, numbers + i * sizeof number, sizeof number);
		result = resource_find(number, &parts[i]);
	}
	if (result == CUDA_SUCCESS)
		result = driver.cuDevResourceGenerateDesc(&descriptor, parts, args.count);
	free(parts);
	/* No call of CUDA frees a descriptor. */
	return result == CUDA_SUCCESS ? server_object_bind(RC_KIND_DESCRIPTOR, args.descriptor, descriptor, NULL) : result;
}

/* ---- green contexts ---- */

/* Gives the new green context its handle, and tells the client how many multiprocessors it has. */
static CUresult green_bind(struct server_call *call, uint64_t handle, struct server_green *made)
{
	CUdevResource resource;
	CUresult result = driver.cuGreenCtxGetDevResource(made->green, &resource, CU_DEV_RESOURCE_TYPE_SM);
	if (result == CUDA_SUCCESS)
		result = driver.cuCtxFromGreenCtx(&made->context, made->green);
	if (result == CUDA_SUCCESS)
		result = server_give_bytes(call, &(uint32_t){ resource.sm.smCount }, sizeof(uint32_t));
	if (result != CUDA_SUCCESS)
		return result;
	struct server_green *green = malloc(sizeof *green);
	if (!green)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*green = *made;
	result = server_object_bind(RC_KIND_CONTEXT, handle, made->context, green);
	if (result != CUDA_SUCCESS) {
		free(green);
		return result;
	}
	pthread_mutex_lock(&lock);
	green->next = greens;
	greens = green;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult serve_green_create(struct server_call *call)
{
	struct rc_wire_green_create args;
	struct server_green made = { .lost = false };
	CUdevice device;
	void *descriptor;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuGreenCtxCreate || !driver.cuGreenCtxDestroy || !driver.cuCtxFromGreenCtx ||
	    !driver.cuGreenCtxGetDevResource)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_device(args.device, &device);
	if (result == CUDA_SUCCESS)
		result = server_object(RC_KIND_DESCRIPTOR, args.descriptor, &descriptor);
	if (result == CUDA_SUCCESS)
		result = driver.cuGreenCtxCreate(&made.green, descriptor, device, args.flags);
	if (result != CUDA_SUCCESS)
		return result;
	made.primary = __atomic_load_n(&worker.primary[args.device], __ATOMIC_RELAXED);
	result = green_bind(call, args.green, &made);
	if (result != CUDA_SUCCESS)
		driver.cuGreenCtxDestroy(made.green);
	return result;
}

/* The handle and those of the streams end in the call order; then the driver may wait. */
CUresult serve_green_destroy(struct server_call *call)
{
	struct rc_wire_context args;
	struct server_green *green, **at = &greens;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	green = server_object_data(RC_KIND_CONTEXT, args.context);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	server_early_close();
	server_streams_lock();
	server_object_unbind(args.context);
	server_object_unbind_context(green->context);
	server_streams_unlock();
	pthread_mutex_lock(&lock);
	while (*at != green)
		at = &(*at)->next;
	*at = green->next;
	pthread_mutex_unlock(&lock);
	server_order_release(call);
	CUresult result = driver.cuGreenCtxDestroy(green->green);
	free(green);
	return result;
}

/* CUDA makes blocking streams in a green context only while it is current. */
static CUresult stream_new(struct server_call *call, const struct server_green *green, unsigned flags, int priority,
			   CUstream *stream)
{
	if (flags == CU_STREAM_NON_BLOCKING)
		return driver.cuGreenCtxStreamCreate(stream, green->green, flags, priority);
	CUresult result = driver.cuCtxSetCurrent(green->context);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamCreateWithPriority(stream, flags, priority);
	(void)driver.cuCtxSetCurrent(call->thread->current);
	return result;
}

CUresult serve_green_stream(struct server_call *call)
{
	struct rc_wire_green_stream args;
	struct server_green *green;
	CUstream stream;
	if (!server_take_into(call, &args, sizeof args) || args.flags & ~(uint32_t)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuGreenCtxStreamCreate || !driver.cuStreamCreateWithPriority || !driver.cuStreamDestroy_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = green_find(args.green, &green);
	if (result == CUDA_SUCCESS)
		result = stream_new(call, green, args.flags, args.priority, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_object_bind(RC_KIND_STREAM, args.stream, stream, NULL);
	if (result != CUDA_SUCCESS)
		driver.cuStreamDestroy_v2(stream);
	else
		server_object_set_context(args.stream, green->context);
	return result;
}

CUresult server_green_event(uint64_t handle, CUevent event, bool waits)
{
	struct server_green *green;
	CUresult result = green_find(handle, &green);
	if (result != CUDA_SUCCESS)
		return result;
	if (waits ? !driver.cuGreenCtxWaitEvent : !driver.cuGreenCtxRecordEvent)
		return CUDA_ERROR_NOT_SUPPORTED;
	return waits ? driver.cuGreenCtxWaitEvent(green->green, event) : driver.cuGreenCtxRecordEvent(green->green, event);
}

void server_greens_forget(CUcontext primary)
{
	pthread_mutex_lock(&lock);
	for (struct server_green *green = greens; green; green = green->next) {
		if (green->primary != primary)
			continue;
		green->lost = true;
		server_object_unbind_context(green->context);
	}
	pthread_mutex_unlock(&lock);
}
