/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Green contexts (cuda.h, "Green Contexts"): a device's primary context with a part of its multiprocessors. A green
 * context's handle is good as a CUcontext too, in which place it stands for the primary context (context_of), so that
 * memory, modules and events are the primary's. Its own are its streams. Its default stream is the primary context's:
 * that waits for more than it must.
 *
 * A part is a number of multiprocessors. It is told, and limits cooperative launches; blocks of all launches are run by
 * the device's threads as they come, as CUDA allows a green context's to run on more multiprocessors than it has.
 */
#ifndef SOFTGPU_GREEN_H
#define SOFTGPU_GREEN_H

#include "cuda_remote/softgpu/driver/context/context.h"

struct CUgreenCtx_st {
	handle_t handle;
	/* Constant: */
	CUcontext primary;   /* retained; the program may reset it nevertheless */
	uint64_t primary_id; /* tells that */
	uint64_t id;
	CUdevResource resource;
	CUstream gate;       /* what its later streams wait for, see context_event.c; the primary's streams have it */
};

/* What a descriptor of cuDevResourceGenerateDesc holds. There is no call that frees one. */
struct CUdevResourceDesc_st {
	handle_t handle;
	CUdevResource resource; /* the sum of those it was made of */
};

/* The primary context of a green one; NULL: it is none, or the primary context was reset. */
CUcontext green_primary(CUgreenCtx green);

/* Multiprocessors that a launch in stream may count on. */
unsigned green_multiprocessors(const struct CUstream_st *stream);

/* A stream for programs in context, or in its green part (NULL: none). Flags were checked; priority is clamped. */
CUresult green_stream_new(CUcontext context, CUgreenCtx green, unsigned flags, int priority, CUstream *stream);

/* All multiprocessors of a device. */
void device_resource(CUdevice device, CUdevResource *resource);
/* The device that a resource of a descriptor is of. */
CUdevice device_resource_device(const CUdevResource *resource);
/* Makes of a descriptor's resource that of a green context, which may be split again. */
void device_resource_provision(CUdevResource *resource);

#endif
