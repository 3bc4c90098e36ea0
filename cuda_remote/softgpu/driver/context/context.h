/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts. A context owns streams, events, modules and memory; its first fault stays with it and every call made in it
 * returns that from then on, until it is destroyed or the primary context is reset.
 */
#ifndef SOFTGPU_CONTEXT_H
#define SOFTGPU_CONTEXT_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/driver/handle.h"
#include "cuda_remote/softgpu/driver/stream/queue.h"
#include "cuda_remote/softgpu/engine.h"
#include "cuda_remote/softgpu/memory_map.h"

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
	CUresult fault; /* CUDA_SUCCESS or the first one */
	unsigned attached; /* calls of cuCtxAttach without one of cuCtxDetach */
	/* Of the queue: */
	queue_group_t group;
	softgpu_heap_t heap; /* its limit is limits[CU_LIMIT_MALLOC_HEAP_SIZE]'s */
	/* Under lock: */
	pthread_mutex_t lock;
	size_t limits[CU_LIMIT_MAX];
	CUfunc_cache cache_config;
	unsigned peers; /* bit d: access to device d's memory was asked for */
	CUevent first_event;
	CUmodule first_module;
	struct owned *first_owned;
	struct coredump *coredump; /* of coredump.c; NULL: the process's settings */
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

/* The same for a call on an object: CUDA_ERROR_INVALID_HANDLE if there is none of this kind. */
CUresult context_enter_handle(const void *handle, enum handle_kind kind);

/* The same for a context that was passed: NULL means the current one. */
CUresult context_enter_this(CUcontext *context);

/*
 * The context that a handle stands for: itself, or a green context's primary one. NULL: no context, or one that is gone.
 */
CUcontext context_of(CUcontext handle);

/* The calling thread's current context, NULL if there is none or it is dead. */
CUcontext context_current(void);

/* The green context that is current to the calling thread; NULL. */
CUgreenCtx context_current_green(void);

/* Records a fault; the first one stays. */
void context_fault(CUcontext context, CUresult fault);
static inline CUresult context_error(CUcontext context)
{
	return __atomic_load_n(&context->fault, __ATOMIC_RELAXED);
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
