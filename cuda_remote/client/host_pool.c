/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pools of managed memory and of pinned memory of the host. Both sides map such memory (managed.c, hostmem.c), so the client makes
 * it, and the server does not know of these pools: their handles, attributes and limits are the client's. An allocation has its
 * memory when the call returns. A free records an event in its stream. The memory counts as used until the event is complete;
 * from then on the pool keeps it for the next allocation of the same size in the same context. To unmap memory, the workers wait
 * for all work that they have; so a pool gives memory back only if no work is under way, or in a call that may wait.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/graph_client.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/stream.h"
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/managed/managed.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NODES 64 /* of NUMA: higher numbers are refused, as in the software GPU */
#define REUSE_POLICIES 3

struct place {
	bool managed;
	CUmemLocationType type;
	int id; /* 0 where the type has no number */
};

struct pool {
	struct pool *next;
	uint64_t handle;
	struct place place;
	bool is_default;   /* it is never destroyed */
	bool is_current;   /* of its place, instead of the default pool */
	uint64_t most;     /* bytes; 0: no limit */
	uint64_t used, used_high, reserved_high, threshold;
	uint64_t kept;     /* bytes of its memory in the list `kept` */
	int reuse[REUSE_POLICIES];
};

/* The event of a free. Several threads may query it at a time; the last one of them destroys it. */
struct mark {
	struct mark *next;
	CUevent event;
	unsigned askers;
	bool reached; /* by the stream: the memory is not pending any more */
};

/* Memory that the program has freed. It is in the table of allocations, marked as freed. */
struct freed {
	struct freed *next;
	uint64_t pool; /* which may have been destroyed */
	uint64_t base, size, id;
	CUcontext context;
	uint64_t number;   /* in the order of the frees */
	struct mark *mark; /* NULL: the stream has come to the free */
};

/* Guards the lists and the pools. The lock of the table of allocations may be taken under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools;
static struct freed *pending, **pending_end = &pending; /* in the order of their numbers */
static struct freed *kept;                              /* without event */
static uint64_t last_number;                            /* of a free */
static uint64_t asked;  /* number of the free whose event REAP_SOME has queried last */
static bool any_freed;  /* atomic; one of the two lists was not empty. Relaxed: it guards no data */

/* Under the lock. NULL: no such pool. */
static struct pool *find(uint64_t handle)
{
	struct pool *pool = pools;
	while (pool && pool->handle != handle)
		pool = pool->next;
	return pool;
}

bool rc_host_pool_is(CUmemoryPool pool)
{
	return rc_handle_data(RC_KIND_POOL, (uint64_t)(uintptr_t)pool);
}

/* ---- places ---- */

/* Node 0 exists on a host without NUMA too. */
static bool node_exists(int node)
{
	char path[64];
	snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
	return !node || (node > 0 && node < NODES && !access(path, F_OK));
}

static CUresult find_place(const CUmemLocation *location, CUmemAllocationType type, struct place *place)
{
	struct rc_device *device;
	*place = (struct place){ type == CU_MEM_ALLOCATION_TYPE_MANAGED, location->type, 0 };
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_NONE:
		return place->managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEM_LOCATION_TYPE_HOST:
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_DEVICE: /* of managed memory: pools of a device's pinned memory are the server's */
		place->id = location->id;
		return rc_device_get(location->id, &device);
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		place->id = location->id;
		if (!place->managed)
			return CUDA_ERROR_NOT_SUPPORTED; /* memory is not bound to nodes */
		return node_exists(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static bool same_place(const struct place *a, const struct place *b)
{
	return a->managed == b->managed && a->type == b->type && a->id == b->id;
}

bool rc_host_pool_place(const CUmemLocation *location, CUmemAllocationType type)
{
	return type == CU_MEM_ALLOCATION_TYPE_MANAGED ||
	       (type == CU_MEM_ALLOCATION_TYPE_PINNED && location->type != CU_MEM_LOCATION_TYPE_DEVICE);
}

/* Adds a pool. Under the lock. */
static CUresult add_pool(const struct place *place, uint64_t most, bool is_default, uint64_t *handle)
{
	struct pool *pool = calloc(1, sizeof *pool);
	CUresult result = pool ? rc_handle_new(RC_KIND_POOL, NULL, &pool->handle) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(pool);
		return result;
	}
	pool->place = *place;
	pool->most = most;
	pool->is_default = is_default;
	for (int i = 0; i < REUSE_POLICIES; i++)
		pool->reuse[i] = 1;
	rc_handle_attach(pool->handle, &pools); /* marks the handle: rc_host_pool_is */
	pool->next = pools;
	pools = pool;
	*handle = pool->handle;
	return CUDA_SUCCESS;
}

CUresult rc_host_pool_create(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	struct place place;
	uint64_t handle;
	CUresult result = find_place(&properties->location, properties->allocType, &place);
	if (result != CUDA_SUCCESS)
		return result;
	if (properties->handleTypes && !place.managed)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->handleTypes || properties->usage)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	result = add_pool(&place, properties->maxSize, false, &handle);
	pthread_mutex_unlock(&lock);
	if (result == CUDA_SUCCESS)
		*pool = (CUmemoryPool)(uintptr_t)handle;
	return result;
}

CUresult rc_host_pool_of_place(const CUmemLocation *location, CUmemAllocationType type, bool current, CUmemoryPool *pool)
{
	struct place place;
	uint64_t handle = 0;
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = find_place(location, type, &place);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	for (const struct pool *at = pools; at; at = at->next)
		if (same_place(&at->place, &place) && ((current && at->is_current) || (at->is_default && !handle)))
			handle = at->handle;
	if (!handle)
		result = add_pool(&place, 0, true, &handle);
	pthread_mutex_unlock(&lock);
	if (result == CUDA_SUCCESS)
		*pool = (CUmemoryPool)(uintptr_t)handle;
	return result;
}

CUresult rc_host_pool_make_current(const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	struct place place;
	CUresult result = find_place(location, type, &place);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct pool *found = find((uint64_t)(uintptr_t)pool);
	if (!found || !same_place(&found->place, &place))
		result = CUDA_ERROR_INVALID_VALUE;
	for (struct pool *at = pools; at && result == CUDA_SUCCESS; at = at->next)
		if (same_place(&at->place, &place))
			at->is_current = at == found && !at->is_default;
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- memory that was freed ---- */

/* Under the lock. */
static void note_high(struct pool *pool)
{
	uint64_t reserved = pool->used + pool->kept;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	if (reserved > pool->reserved_high)
		pool->reserved_high = reserved;
}

static void discharge(uint64_t handle, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	struct pool *pool = find(handle);
	if (pool)
		pool->used -= bytes;
	pthread_mutex_unlock(&lock);
}

/* Takes the memory at *at off the list of those that are kept. Under the lock. */
static struct freed *take_kept(struct freed **at)
{
	struct freed *freed = *at;
	struct pool *pool = find(freed->pool);
	*at = freed->next;
	if (pool)
		pool->kept -= freed->size;
	return freed;
}

void rc_host_pool_gone(const struct rc_span *span)
{
	if (!span->freed) {
		discharge(span->host_pool, span->size);
		return;
	}
	/* If the free is pending, it finds that the memory has gone. */
	pthread_mutex_lock(&lock);
	struct freed **at = &kept;
	while (*at && ((*at)->base != span->base || (*at)->id != span->id))
		at = &(*at)->next;
	if (*at)
		free(take_kept(at));
	pthread_mutex_unlock(&lock);
}

/* The stream has come to the free: takes it off the list of those that are pending. Under the lock. */
static void keep(struct freed *freed)
{
	struct pool *pool = find(freed->pool);
	struct freed **at = &pending;
	while (*at != freed)
		at = &(*at)->next;
	*at = freed->next;
	if (pending_end == &freed->next)
		pending_end = at;
	freed->mark->reached = true;
	freed->mark = NULL;
	if (pool)
		pool->used -= freed->size;
	if (!rc_memory_freed(freed->base, freed->id)) { /* it has gone with its context */
		free(freed);
		return;
	}
	freed->next = kept;
	kept = freed;
	if (pool) {
		pool->kept += freed->size;
		note_high(pool);
	}
}

static CUresult ask(CUevent event, bool wait)
{
	/* An event ends with its context. */
	if (rc_handle_check(RC_KIND_EVENT, (uint64_t)(uintptr_t)event) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	return wait ? cuEventSynchronize(event) : cuEventQuery(event);
}

static void end_marks(struct mark *list)
{
	while (list) {
		struct mark *mark = list;
		list = mark->next;
		(void)cuEventDestroy_v2(mark->event);
		free(mark);
	}
}

/* Returns the first pending free with a number greater than `after` and not greater than `last`; NULL: there is none. Under the
 * lock. */
static struct freed *pending_after(uint64_t after, uint64_t last)
{
	struct freed *freed = pending;
	while (freed && freed->number <= after)
		freed = freed->next;
	return freed && freed->number <= last ? freed : NULL;
}

/* After how many events that are not complete a call queries no more. REAP_WAIT: it waits for each event. */
enum reap { REAP_SOME = 4, REAP_ALL = INT_MAX, REAP_WAIT = 0 };

/* Keeps memory if its stream has come to the free. An error is that of an earlier call of the program, or stays with the context.
 * A free stays on the list while a thread queries its event, so that no other thread finds too few. */
static CUresult reap(enum reap most)
{
	CUresult result = CUDA_SUCCESS;
	struct mark *ended = NULL;
	if (!__atomic_load_n(&any_freed, __ATOMIC_RELAXED))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	/* REAP_SOME goes on behind the free that it has queried last, and then begins again at the oldest one. */
	uint64_t begin = most == REAP_SOME ? asked : 0, after = begin, last = last_number;
	for (int waiting = 0; !most || waiting < (int)most;) {
		struct freed *freed = pending_after(after, last);
		if (!freed && begin) {
			last = begin;
			begin = after = 0;
			continue;
		}
		if (!freed)
			break;
		struct mark *mark = freed->mark;
		after = freed->number;
		mark->askers++;
		pthread_mutex_unlock(&lock);
		CUresult done = ask(mark->event, !most);
		pthread_mutex_lock(&lock);
		if (mark->reached)
			done = CUDA_SUCCESS; /* another thread has found it complete */
		else if (done == CUDA_SUCCESS)
			keep(freed);
		if (!--mark->askers && mark->reached) {
			mark->next = ended;
			ended = mark;
		}
		if (done == CUDA_SUCCESS)
			continue;
		waiting++;
		if (most == REAP_SOME)
			asked = after;
		if (done != CUDA_ERROR_NOT_READY && result == CUDA_SUCCESS)
			result = done;
	}
	pthread_mutex_unlock(&lock);
	end_marks(ended);
	return result;
}

/* Gives memory back. Waits for the work that the workers have. */
static void give_back(struct freed *freed)
{
	struct rc_span span;
	if (rc_memory_take_freed(freed->base, freed->id, &span))
		(void)(span.kind == RC_MEMORY_MANAGED ? rc_managed_end(&span) : rc_host_end(&span));
	free(freed);
}

/* True if no work is under way, so that giving memory back does not wait. */
static bool is_idle(void)
{
	struct rc_process *process;
	bool idle = rc_process_get(&process) == CUDA_SUCCESS;
	for (unsigned i = 0; idle && i < process->sessions; i++)
		idle = rc_link_is_settled(&process->session[i]);
	return idle;
}

/* Takes off the list what the pool keeps beyond these bytes. pool 0: what all pools keep. */
static struct freed *take_beyond(uint64_t pool, uint64_t bytes)
{
	struct freed *taken = NULL, **at = &kept;
	pthread_mutex_lock(&lock);
	const struct pool *of = pool ? find(pool) : NULL;
	while (*at) {
		struct freed *freed = *at;
		if (pool && (freed->pool != pool || (of && of->kept <= bytes))) {
			at = &freed->next;
			continue;
		}
		take_kept(at);
		freed->next = taken;
		taken = freed;
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

static void give_back_all(struct freed *list)
{
	while (list) {
		struct freed *freed = list;
		list = freed->next;
		give_back(freed);
	}
}

/* If that does not wait, gives back what pools keep beyond their thresholds, and all that destroyed pools have kept. */
static void give_back_idle(void)
{
	struct freed *taken = NULL, **at = &kept;
	if (!__atomic_load_n(&any_freed, __ATOMIC_RELAXED) || !is_idle())
		return;
	pthread_mutex_lock(&lock);
	while (*at) {
		struct freed *freed = *at;
		const struct pool *pool = find(freed->pool);
		/* CUDA compares the threshold with the reserved memory, that is, with what is used and kept. */
		if (pool && pool->used + pool->kept <= pool->threshold) {
			at = &freed->next;
			continue;
		}
		take_kept(at);
		freed->next = taken;
		taken = freed;
	}
	pthread_mutex_unlock(&lock);
	give_back_all(taken);
}

bool rc_host_pool_return(void)
{
	if (!__atomic_load_n(&any_freed, __ATOMIC_RELAXED))
		return false;
	(void)reap(REAP_WAIT);
	struct freed *taken = take_beyond(0, 0);
	bool any = taken;
	give_back_all(taken);
	return any;
}

/* ---- allocations ---- */

/* Takes memory that the pool keeps, and puts it back into the table as an allocation. */
static bool reuse(uint64_t pool, uint64_t size, CUcontext context, CUdeviceptr *pointer)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (struct freed **at = &kept; *at && !found;) {
		struct freed *freed = *at;
		if (freed->pool != pool || freed->size != size || freed->context != context) {
			at = &freed->next;
			continue;
		}
		take_kept(at);
		found = rc_memory_unfree(freed->base, freed->id);
		*pointer = freed->base;
		free(freed);
	}
	pthread_mutex_unlock(&lock);
	if (found)
		managed_driver_attach(&(managed_memory_t){ *pointer, size, 0 }, CU_MEM_ATTACH_GLOBAL);
	return found;
}

/* Under the lock. */
static bool is_any_pending(uint64_t pool)
{
	const struct freed *freed = pending;
	while (freed && freed->pool != pool)
		freed = freed->next;
	return freed;
}

/* *fits_later: if there is no room, whether there may be some once streams have come to frees that are pending. */
static CUresult charge(uint64_t handle, uint64_t bytes, struct place *place, bool *fits_later)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	struct pool *pool = find(handle);
	*fits_later = pool && bytes <= pool->most && is_any_pending(handle);
	if (!pool) {
		result = CUDA_ERROR_INVALID_HANDLE;
	} else if (bytes > (pool->most ? pool->most : UINT64_MAX) - pool->used) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		pool->used += bytes;
		*place = pool->place;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static CUresult make(uint64_t pool, const struct place *place, size_t size, CUdeviceptr *pointer)
{
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (reuse(pool, size, context->handle, pointer))
		return CUDA_SUCCESS;
	give_back_idle();
	struct rc_span span = { .size = size, .kind = place->managed ? RC_MEMORY_MANAGED : RC_MEMORY_HOST, .context = context->handle,
				.session = place->managed ? rc_context_session() : NULL, .pooled = true, .host_pool = pool,
				.flags = place->managed ? CU_MEM_ATTACH_GLOBAL :
							  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP };
	struct rc_span wanted = span;
	result = place->managed ? rc_managed_make(context, &span) : rc_host_make(context, &span);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && rc_host_pool_return()) {
		span = wanted;
		result = place->managed ? rc_managed_make(context, &span) : rc_host_make(context, &span);
	}
	if (result == CUDA_SUCCESS)
		*pointer = span.base;
	return result;
}

/* The stream's context is the current one. */
static CUresult allocate(CUdeviceptr *pointer, size_t size, uint64_t pool)
{
	struct place place;
	bool fits_later;
	CUresult result = reap(REAP_SOME);
	if (result == CUDA_SUCCESS)
		result = charge(pool, size, &place, &fits_later);
	while (result == CUDA_ERROR_OUT_OF_MEMORY && fits_later) {
		result = reap(REAP_WAIT);
		if (result == CUDA_SUCCESS)
			result = charge(pool, size, &place, &fits_later);
	}
	if (result != CUDA_SUCCESS)
		return result;
	result = make(pool, &place, size, pointer);
	if (result != CUDA_SUCCESS) {
		discharge(pool, size);
		return result;
	}
	pthread_mutex_lock(&lock);
	struct pool *found = find(pool);
	if (found)
		note_high(found);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* Makes the stream's context the current one, if it is not. */
static CUresult enter(CUstream stream, bool *pushed)
{
	*pushed = false;
	CUresult result = rc_handle_check(RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	if (result != CUDA_SUCCESS)
		return result;
	const struct rc_stream *made = rc_handle_data(RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	if (!made || made->context == rc_context_current())
		return CUDA_SUCCESS;
	result = cuCtxPushCurrent_v2(made->context);
	*pushed = result == CUDA_SUCCESS;
	return result;
}

static void leave(bool pushed)
{
	CUcontext context;
	if (pushed)
		(void)cuCtxPopCurrent_v2(&context);
}

CUresult rc_host_pool_alloc(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
	CUstream captured;
	bool pushed;
	CUresult result = CUDA_SUCCESS;
	bool possible = capture_possible();
	if (possible)
		result = rc_capture_stream(stream, &captured);
	if (result == CUDA_SUCCESS && possible && capture_stream_busy(captured))
		result = CUDA_ERROR_NOT_SUPPORTED; /* nodes are of device memory only */
	if (result == CUDA_SUCCESS)
		result = enter(stream, &pushed);
	if (result != CUDA_SUCCESS)
		return result;
	if (!size)
		*pointer = 0;
	else
		result = allocate(pointer, size, (uint64_t)(uintptr_t)pool);
	leave(pushed);
	return result;
}

/* Records the free in its stream. */
static CUresult record(struct mark *mark, CUstream stream)
{
	bool pushed;
	CUresult result = enter(stream, &pushed);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuEventCreate(&mark->event, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS) {
		result = cuEventRecord(mark->event, stream);
		if (result != CUDA_SUCCESS)
			(void)cuEventDestroy_v2(mark->event);
	}
	leave(pushed);
	return result;
}

bool rc_host_pool_free(CUdeviceptr pointer, CUstream stream, CUresult *result)
{
	struct rc_span span;
	if (!rc_memory_find(pointer, &span) || !span.host_pool)
		return false;
	*result = CUDA_ERROR_INVALID_VALUE;
	if (span.base != pointer)
		return true;
	struct freed *freed = malloc(sizeof *freed);
	struct mark *mark = calloc(1, sizeof *mark);
	*result = freed && mark ? record(mark, stream) : CUDA_ERROR_OUT_OF_MEMORY;
	if (*result == CUDA_SUCCESS && !rc_memory_mark_freed(span.base, span.id)) { /* freed by another thread */
		(void)cuEventDestroy_v2(mark->event);
		*result = CUDA_ERROR_INVALID_VALUE;
	}
	if (*result != CUDA_SUCCESS) {
		free(freed);
		free(mark);
		return true;
	}
	*freed = (struct freed){ NULL, span.host_pool, span.base, span.size, span.id, span.context, 0, mark };
	pthread_mutex_lock(&lock);
	__atomic_store_n(&any_freed, true, __ATOMIC_RELAXED);
	freed->number = ++last_number;
	*pending_end = freed;
	pending_end = &freed->next;
	pthread_mutex_unlock(&lock);
	return true;
}

/* ---- calls with a pool ---- */

/* Memory in use stays, and is given back once it is freed (give_back_idle). */
CUresult rc_host_pool_destroy(CUmemoryPool pool)
{
	CUresult result = CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	for (struct pool **at = &pools; *at; at = &(*at)->next) {
		struct pool *found = *at;
		if (found->handle != (uint64_t)(uintptr_t)pool)
			continue;
		result = found->is_default ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
		if (!found->is_default) {
			*at = found->next;
			rc_handle_delete(found->handle);
			free(found);
		}
		break;
	}
	pthread_mutex_unlock(&lock);
	give_back_idle();
	return result;
}

/* bytes: of reserved memory, to which memory in use counts, as in CUDA. */
static CUresult trim(uint64_t handle, uint64_t bytes)
{
	CUresult result = reap(REAP_ALL);
	pthread_mutex_lock(&lock);
	const struct pool *pool = find(handle);
	uint64_t used = pool ? pool->used : 0;
	pthread_mutex_unlock(&lock);
	give_back_all(take_beyond(handle, bytes > used ? bytes - used : 0));
	return result;
}

CUresult pool_check_trim(CUmemoryPool pool, size_t bytes)
{
	if (!rc_host_pool_is(pool))
		return CUDA_SUCCESS;
	CUresult result = trim((uint64_t)(uintptr_t)pool, bytes);
	return result == CUDA_SUCCESS ? RC_ANSWERED : result;
}

/* Under the lock. */
static CUresult set_attribute(struct pool *pool, CUmemPool_attribute attribute, const void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(const int *)value != 0;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(const cuuint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(const cuuint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE; /* it can be reset, not set */
		if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
			pool->used_high = pool->used;
		else
			pool->reserved_high = pool->used + pool->kept;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Under the lock. */
static CUresult get_attribute(const struct pool *pool, CUmemPool_attribute attribute, void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = pool->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->used + pool->kept;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = pool->reserved_high;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = pool->used_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult attribute(CUmemoryPool handle, CUmemPool_attribute which, void *value, bool set)
{
	if (!rc_host_pool_is(handle))
		return CUDA_SUCCESS;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = reap(REAP_ALL);
	if (result != CUDA_SUCCESS)
		return result;
	give_back_idle();
	pthread_mutex_lock(&lock);
	struct pool *pool = find((uint64_t)(uintptr_t)handle);
	if (!pool)
		result = CUDA_ERROR_INVALID_HANDLE;
	else
		result = set ? set_attribute(pool, which, value) : get_attribute(pool, which, value);
	pthread_mutex_unlock(&lock);
	return result == CUDA_SUCCESS ? RC_ANSWERED : result;
}

CUresult pool_check_get_attribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
	return attribute(pool, which, value, false);
}

CUresult pool_check_set_attribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
	return attribute(pool, which, value, true);
}

static bool place_of(CUmemoryPool handle, struct place *place)
{
	pthread_mutex_lock(&lock);
	const struct pool *pool = find((uint64_t)(uintptr_t)handle);
	if (pool)
		*place = pool->place;
	pthread_mutex_unlock(&lock);
	return pool;
}

/* Host and devices share the memory: access cannot be revoked and need not be granted. */
CUresult pool_check_set_access(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count)
{
	struct place place;
	struct rc_device *device;
	if (!rc_host_pool_is(pool) || !place_of(pool, &place))
		return CUDA_SUCCESS;
	if (count && !list)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		const CUmemLocation *at = &list[i].location;
		bool host = at->type == CU_MEM_LOCATION_TYPE_HOST;
		if (at->type != CU_MEM_LOCATION_TYPE_DEVICE && !host)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!host && rc_device_get(at->id, &device) != CUDA_SUCCESS)
			return CUDA_ERROR_INVALID_DEVICE;
		bool own = host || (place.type == CU_MEM_LOCATION_TYPE_DEVICE && place.id == at->id);
		if (own && list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return RC_ANSWERED;
}

CUresult pool_check_get_access(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
	struct rc_device *device;
	if (!rc_host_pool_is(pool)) /* a pool of a device, whose memory the host cannot access */
		return location && location->type != CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	bool known = location->type == CU_MEM_LOCATION_TYPE_HOST ||
		     (location->type == CU_MEM_LOCATION_TYPE_DEVICE && rc_device_get(location->id, &device) == CUDA_SUCCESS);
	if (!known)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return RC_ANSWERED;
}
