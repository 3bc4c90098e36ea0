/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Green contexts in the client. The handle of a green context is a context's handle, as programs use it as both. To the
 * calls that the client sends, the current context is the primary one: memory, modules and events belong to it. Streams
 * are made in the green context. So a green context on a thread's stack is kept beside its primary context.
 */
#ifndef RC_CLIENT_GREEN_H
#define RC_CLIENT_GREEN_H

#include "cuda_remote/client/client.h"

/* A resource as the program has it, from the server's answer; and the reverse. CUDA_ERROR_INVALID_VALUE: not from
 * this library, or changed. */
void rc_resource_from_wire(const struct rc_session *session, const struct rc_wire_resource *wire, CUdevResource *resource);
CUresult rc_resource_number(const CUdevResource *resource, struct rc_session **session, uint64_t *number);

#endif
