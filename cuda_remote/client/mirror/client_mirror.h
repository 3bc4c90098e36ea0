/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed and mapped memory of a server on another host (cuda_remote/mirror/mirror.h): what this process has changed is sent before a
 * call that gives the device work. What the device has changed is fetched after a call that has waited for work.
 */
#ifndef RC_CLIENT_MIRROR_H
#define RC_CLIENT_MIRROR_H

#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/session.h"

/* True if the session's devices can have such memory. May ask the server. */
bool rc_mirror_supported(struct rc_session *session);

/* True if the allocation has a copy in this process. */
static inline bool rc_mirror_is(const struct rc_span *span)
{
	return span->promoted || (span->placing && span->kind != RC_MEMORY_DEVICE);
}

/* ---- mirror_memory.c ---- */

/* Allocates span->size bytes on the server, maps the copy, and adds the span to the table. */
CUresult rc_mirror_allocate(struct rc_span *span);
/* Frees memory that is not in the table any more. */
CUresult rc_mirror_free(const struct rc_span *span);
/* Unmaps the copy of memory that does not exist on the server any more. */
void rc_mirror_unmap(const struct rc_span *span);

/* ---- mirror_variable.c ---- */

/* Maps a copy of a managed variable, which is in the table, and takes changes of it from then on. The worker does not mirror the
 * variable yet. */
CUresult rc_mirror_variable(struct rc_link *link, const struct rc_span *span, const char *name);

/* ---- client_mirror.c ---- */

/* The worker has allocated the memory of a new mirror, and it is mapped here. flags: of cuMemAllocManaged. False: no memory. */
bool rc_mirror_begin(const struct rc_span *span);
/* Fetches what the device has changed now. */
CUresult rc_mirror_fetch(struct rc_link *link);
/* The memory is about to be freed: nothing more is sent for it. ending false: it was not freed after all. */
void rc_mirror_ending(uint64_t address, bool ending);
/* The same for all memory of a context, or all variables of a module; ending false: it has not ended after all. */
void rc_mirror_context_ending(CUcontext context, bool ending);
void rc_mirror_module_ending(CUmodule module, bool ending);
/* The worker's memory does not exist any more: one mirror, all of a context, all variables of a module. */
void rc_mirror_end(uint64_t address);
void rc_mirror_context_end(CUcontext context);
void rc_mirror_module_end(CUmodule module);
/* The memory is now attached as flags say (cuStreamAttachMemAsync). */
void rc_mirror_attach(uint64_t address, unsigned flags);

/* True if there is any mirror. */
bool rc_mirror_any(void);
/* A call is about to be sent on link. *work: for rc_mirror_after. Not if there is no mirror. */
CUresult rc_mirror_before(struct rc_link *link, enum rc_call function, uint64_t *work);
/* A call has waited for RC_MIRROR_LONG_WAIT ms: says so, once, if a kernel may wait for a change that it cannot see. */
#define RC_MIRROR_LONG_WAIT 10000
void rc_mirror_long_wait(const struct rc_session *session, enum rc_call function);
/* A waiting call has succeeded. Keeps the results of the call in link. */
CUresult rc_mirror_after(struct rc_link *link, enum rc_call function, uint64_t work);

/* A host function of the session is about to be called; has returned. Also moves changes of other servers' mirrors: their
 * streams may be ordered with the host function's by events. */
CUresult rc_mirror_host_begin(struct rc_session *session);
CUresult rc_mirror_host_end(struct rc_session *session);

#endif
