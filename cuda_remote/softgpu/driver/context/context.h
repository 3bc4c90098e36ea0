/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts. A context owns streams, events, modules and memory. It keeps its first fault: from then on every call in it
 * returns that fault, until the context is destroyed or, if it is a primary context, reset.
 */
#ifndef SOFTGPU_CONTEXT_H
#define SOFTGPU_CONTEXT_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/driver/context/owned.h"
#include "cuda_remote/handle.h"
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
	int physical;  /* index of the device in the machine; memory is accounted to it */
	uint64_t id;
	bool primary;
	/* Atomic: */
	unsigned flags;
	bool prints;   /* a kernel that may print was launched */
	unsigned attached; /* calls of cuCtxAttach that no call of cuCtxDetach has undone */
	/* Called with each allocation that the context's destruction frees; NULL, or pool.c's once a pool has
	 * allocated. */
	void (*memory_freed)(const softgpu_allocation_t *allocation);
	queue_group_t group; /* streams and fault */
	owned_list_t owned;
	softgpu_heap_t heap; /* of kernels' malloc; limits[CU_LIMIT_MALLOC_HEAP_SIZE] is its limit */
	/* Under lock: */
	pthread_mutex_t lock;
	size_t limits[CU_LIMIT_MAX];
	CUfunc_cache cache_config;
	unsigned peers; /* bit d: the program has enabled access to device d's memory */
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
	CUstream gate;       /* streams created later wait for it, see context_event.c; owned by the primary context */
};

/* The id of the newest context, which is the greatest. */
uint64_t context_newest(void);

/* Creates a context of device, which is current in no thread. */
CUresult context_new(CUdevice device, unsigned flags, bool primary, CUcontext *context);

/*
 * primary.c: retains the primary context of a device, and calls use while no other thread can reset or release it. If use returns
 * an error, the context is released again. use must not call functions of primary contexts.
 */
CUresult primary_retain(CUdevice device, CUresult (*use)(CUcontext primary, void *with), void *with);

/* primary.c: the legacy default stream of a device's primary context, with a reference, or NULL. Another thread may destroy the
 * context meanwhile; the stream then still takes commands. physical: as in struct CUctx_st. */
CUstream primary_default_stream(int physical);

/*
 * Waits for the context's work, then destroys its objects and the context. In threads where it is current, calls return
 * CUDA_ERROR_CONTEXT_IS_DESTROYED from then on.
 */
void context_destroy(CUcontext context);

/*
 * Every call that works in a context begins with this: init_check, then the calling thread's current context.
 * CUDA_ERROR_INVALID_CONTEXT: no context is current; CUDA_ERROR_CONTEXT_IS_DESTROYED; or the context's fault.
 */
CUresult context_enter(CUcontext *context);

/*
 * The same for a call that CUDA calls potentially unsafe while a stream captures, such as an allocation:
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the mode of a capture prohibits it.
 */
CUresult context_enter_unsafe(CUcontext *context);

/* context_enter for a call on an object: CUDA_ERROR_INVALID_HANDLE if handle is not of this kind. */
CUresult context_enter_handle(const void *handle, enum handle_kind kind);

/* context_enter for a call with a context argument; NULL means the current context. */
CUresult context_enter_this(CUcontext *context);

/*
 * The context that a handle refers to: the context itself, or the primary context of a green context. NULL: the handle
 * is not of a context, or the context was destroyed.
 */
CUcontext context_of(CUcontext handle);

/* The calling thread's current context; NULL: no context is current, or it was destroyed. */
CUcontext context_current(void);

/* The calling thread's current green context; NULL: the current context is not a green one. */
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

/* The limits of a kernel that is launched in context now: stack, printf buffer, heap. */
softgpu_limits_t context_limits(CUcontext context);

/* A kernel with these properties is being launched in the context. */
static inline void context_note_launch(CUcontext context, const softgpu_kernel_info_t *kernel)
{
	/* Orders nothing: if a thread sets a limit at the same time, it may have done so before the launch. */
	if (kernel->prints && !__atomic_load_n(&context->prints, __ATOMIC_RELAXED))
		__atomic_store_n(&context->prints, true, __ATOMIC_RELAXED);
}

/* Waits for all work submitted in context; returns the context's fault if it has one. */
CUresult context_synchronize(CUcontext context);

/* True if these flags may be given at creation and to cuCtxSetFlags. */
bool context_flags_valid(unsigned flags);

/* Replaces the top of this thread's stack, its current context; NULL pops the top. */
CUresult context_set_current(CUcontext context);

#endif
