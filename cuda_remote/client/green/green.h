/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Green contexts in the client. The handle of a green context is a context's handle, as programs use it as both. To the
 * calls that the client sends, the current context is the primary one: memory, modules and events belong to it. Streams
 * are made in the green context. So a green context on a thread's stack is kept beside its primary context.
 */
#ifndef RC_CLIENT_GREEN_H
#define RC_CLIENT_GREEN_H

#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct rc_context;
struct rc_session;

/* A resource as the program has it, from the server's answer; and the reverse. CUDA_ERROR_INVALID_VALUE: not from
 * this library, or changed. */
void rc_resource_from_wire(const struct rc_session *session, const struct rc_wire_resource *wire, CUdevResource *resource);
CUresult rc_resource_number(const CUdevResource *resource, struct rc_session **session, uint64_t *number);

/* ---- green.c: for the rest of the client ---- */

/* A green context; CUDA_ERROR_INVALID_CONTEXT; CUDA_ERROR_CONTEXT_IS_DESTROYED: its primary context was reset. */
CUresult rc_green_get(CUgreenCtx green, struct rc_context **found);
/* True if the handle is of a green context that has not ended. */
bool rc_green_is(CUgreenCtx green);
/* The current context if it is a green one, or NULL. */
CUgreenCtx rc_green_current(void);
/* Makes a stream in a green context. */
CUresult rc_green_stream(CUgreenCtx green, unsigned flags, int priority, CUstream *stream);
/* How many multiprocessors a launch in the stream may count on; 0: all of the device. */
unsigned rc_green_multiprocessors(CUstream stream);
/* True if the handle was that of a stream of a green context, and the green context was destroyed. */
bool rc_green_orphan(uint64_t stream);

#endif
