/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts, and what the client keeps for each thread of the program. */
#ifndef RC_CLIENT_CONTEXT_H
#define RC_CLIENT_CONTEXT_H

#include "cuda_remote/client/session.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct rc_link;

struct rc_context {
	struct rc_context *next; /* once destroyed: in the list of structs for reuse */
	CUcontext handle;
	CUdevice device;
	unsigned flags;
	bool primary;
	unsigned attached; /* uses beyond the first one (cuCtxAttach); atomic */
	uint64_t id;
	uint64_t resets;   /* primary: how often it was reset; green: that number at its creation; atomic */
	struct rc_context *owner; /* of a green context: its primary context; else NULL */
	unsigned multiprocessors; /* of a green context */
};

#define RC_CONTEXT_STACK 64

/* What the client keeps for each of the program's threads. */
struct rc_thread {
	struct rc_link *link[RC_SERVER_MAX]; /* to each session; NULL: not opened */
	bool own;  /* a thread of this library: its waiting calls leave the failures of earlier calls to the program's */
	int depth; /* of the context stack; the current one is on top */
	struct {
		CUcontext handle; /* of a green context: that of its primary context */
		CUcontext given;  /* as the program named it */
		struct rc_session *session;
	} stack[RC_CONTEXT_STACK];
};

/* The calling thread's; NULL if there is no memory. */
struct rc_thread *rc_thread_get(void);
/* The current context's handle, or NULL. If a green context is current: its primary context's. */
CUcontext rc_context_current(void);
/* The current context's session, or NULL. */
struct rc_session *rc_context_session(void);
/* The current context; CUDA_ERROR_INVALID_CONTEXT if the thread has none; CUDA_ERROR_CONTEXT_IS_DESTROYED if it has ended. */
CUresult rc_context_get(struct rc_context **context);
/* The context of a handle that a call was given, of a green context its primary context; NULL means the current context. */
CUresult rc_context_meant(CUcontext handle, struct rc_context **context);
/* CUDA_ERROR_CONTEXT_IS_DESTROYED if the current context is a green context that has ended. */
CUresult rc_context_check_green(void);
/* Gives a context a new handle's data, which *value describes. */
CUresult rc_context_attach(uint64_t handle, const struct rc_context *value);
/* Keeps the struct of a context that has ended for reuse. */
void rc_context_recycle(struct rc_context *context);
/* A device's primary context, which has this handle. */
CUresult rc_context_add_primary(CUdevice device, uint64_t handle);
/* cuCtxSynchronize, also during a capture, which does not notice it. NULL: the current context. */
CUresult rc_context_wait(CUcontext context);

#endif
