/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts. A context owns streams, events, modules and memory; its first fault stays with it and every call made in it
 * returns that from then on, until it is destroyed or the primary context is reset.
 */
#ifndef SOFTGPU_CONTEXT_H
#define SOFTGPU_CONTEXT_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/driver/context/owned.h"
#include "cuda_remote/softgpu/driver/handle.h"
#include "cuda_remote/softgpu/driver/queue/queue.h"
#include "cuda_remote/softgpu/engine.h"
#include "cuda_remote/softgpu/memory_map.h"
#include "cuda_remote/softgpu/space/space.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CONTEXT_GREATEST_PRIORITY (-5)

struct CUctx_st {
	handle_t handle;
	/* Constant: */
	CUdevice device;
	int physical;  /* of device: what memory is accounted to */
	uint64_t id;
	bool primary;
	/* Atomic: */
	unsigned flags;
	unsigned attached; /* calls of cuCtxAttach that no call of cuCtxDetach has undone */
	/* Told each allocation that the context's destruction frees; NULL or pool.c's, once a pool has allocated. */
	void (*memory_freed)(const softgpu_allocation_t *allocation);
	queue_group_t group; /* streams and fault */
	owned_list_t owned;
	softgpu_heap_t heap; /* its limit is limits[CU_LIMIT_MALLOC_HEAP_SIZE]'s */
	/* Under lock: */
	pthread_mutex_t lock;
	size_t limits[CU_LIMIT_MAX];
	CUfunc_cache cache_config;
	unsigned peers; /* bit d: access to device d's memory was asked for */
	struct coredump *coredump; /* of coredump.c; NULL: the process's settings */
};

/* A green context: see green.h. */
struct CUgreenCtx_st {
	handle_t handle;
	/* Constant: */
	CUcontext primary;   /* retained; the program may reset it nevertheless */
	uint64_t primary_id; /* differs from primary->id after that */
	uint64_t id;
	CUdevResource resource;
	CUstream gate;       /* what its later streams wait for, see context_event.c; the primary context's streams have it */
};

/* A new context of device, nowhere current. */
CUresult context_new(CUdevice device, unsigned flags, bool primary, CUcontext *context);

/* Waits for its work, destroys what it owns and itself. Threads that have it current are left with a dead one. */
void context_destroy(CUcontext context);

/*
 * The start of every call that works in a context: init_check, then the calling thread's current context.
 * CUDA_ERROR_INVALID_CONTEXT: there is none; CUDA_ERROR_CONTEXT_IS_DESTROYED; else the context's fault.
 */
CUresult context_enter(CUcontext *context);

/*
 * The same for a call that CUDA calls potentially unsafe while a stream captures, such as an allocation:
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the mode of a capture prohibits it.
 */
CUresult context_enter_unsafe(CUcontext *context);

/* context_enter for a call on an object: CUDA_ERROR_INVALID_HANDLE if there is none of this kind. */
CUresult context_enter_handle(const void *handle, enum handle_kind kind);

/* context_enter for a context that was passed: NULL means the current one. */
CUresult context_enter_this(CUcontext *context);

/*
 * The context that a handle stands for: itself, or a green context's primary one. NULL: no context, or one that is gone.
 */
CUcontext context_of(CUcontext handle);

/* The calling thread's current context, NULL if there is none or it is dead. */
CUcontext context_current(void);

/* The green context that is current to the calling thread; NULL. */
CUgreenCtx context_current_green(void);

/* The primary context of a green context; NULL: not a green context, or its primary context was reset. */
CUcontext context_of_green(CUgreenCtx green);

/*
 * Retires a stream's handle: the stream finishes the work that it has, and leaves its capture. Does nothing if another
 * thread has retired it.
 */
void context_retire_stream(CUstream stream);

/* Records a fault; the first one stays. */
static inline void context_fault(CUcontext context, CUresult fault)
{
	queue_group_fail(&context->group, fault);
}
static inline CUresult context_error(CUcontext context)
{
	return queue_group_error(&context->group);
}

/* What a kernel that is launched in context now may use. */
softgpu_limits_t context_limits(CUcontext context);

/* Waits for everything submitted in context; its fault if it has one. */
CUresult context_synchronize(CUcontext context);

/* A context flag that may be set on creation and by cuCtxSetFlags. */
bool context_flags_valid(unsigned flags);

/* Makes context this thread's current one (the top of its stack); NULL pops the top. */
CUresult context_set_current(CUcontext context);

#endif
