/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned memory that workers on this host map (pinned.c), small allocations of it (slab.c), and its addresses (shared_window.c).
 */
#ifndef RC_CLIENT_PINNED_H
#define RC_CLIENT_PINNED_H

#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct rc_route;
struct rc_session;
struct rc_span;

/* ---- pinned.c ---- */

/* Maps memory of span->size bytes and shares it with the workers on this host. Sets the span's fields from pinned to
 * slab, and base. It is not an error if no worker takes the memory. mapped_by: NULL, or a session whose kernels must be able to use
 * the memory. If the worker of this session is on this host and refuses the memory, the result is CUDA_ERROR_NOT_SUPPORTED, and no
 * worker keeps the memory. After a success, span->mapped_by may still lack the session: the caller must check it. */
CUresult rc_pinned_make(struct rc_span *span, const struct rc_session *mapped_by);
/* The same for a slab: kernels of all workers on this host may use it, and their drivers need not know which parts of it are
 * allocations. Otherwise CUDA_ERROR_NOT_SUPPORTED. */
CUresult rc_pinned_make_divisible(struct rc_span *span);
/* Ends the sharing: waits for the workers' copies from and to the memory, and for kernels. Does not unmap the client's
 * memory. *over: it may be unmapped. Else a worker may still use it, as a wait has failed or a session is lost: it must not be
 * used for anything else, so it is never given back. */
CUresult rc_pinned_free(const struct rc_span *span, bool *over);
/* Unmaps the client's memory, which no worker shares any more. */
void rc_pinned_unmap(const struct rc_span *span);
/* Both, as far as the memory may be unmapped. */
CUresult rc_pinned_end(const struct rc_span *span);
/* Both, for memory that no work uses. */
void rc_pinned_end_unused(struct rc_span *span);
/* True if a session that shares the memory is lost. */
bool rc_pinned_any_lost(const struct rc_span *span);
/* The offset of an address of the allocation in the memory that span->pinned names. */
uint64_t rc_pinned_offset(const struct rc_span *span, uint64_t address);
/* Maps memory of this size, a multiple of the page size, and shares it with one session's worker. */
CUresult rc_pinned_lend(struct rc_session *session, uint64_t bytes, uint64_t *handle, uint8_t **memory);
/* True if the session's worker has mapped these bytes; *span is their allocation. */
bool rc_pinned_in(const struct rc_session *session, uint64_t address, uint64_t size, struct rc_span *span);
/* True if a worker has mapped the host memory at this address, and so may write it without the client. */
bool rc_pinned_shared(uint64_t address);
/* Memory operations of a graph of this session, as they are sent: room for RC_MEMOPS_MAX. CUDA_ERROR_NOT_SUPPORTED: of host memory
 * that the worker has not mapped. */
CUresult rc_memops_translate(struct rc_session *session, const CUstreamBatchMemOpParams *list, unsigned count, unsigned flags,
			     struct rc_wire_memop *sent);
/* Copies between such memory and the device in the stream's order. wait: until the copy is complete. */
CUresult rc_pinned_copy(const struct rc_route *route, const struct rc_wire_copy_pinned *copy, bool wait);

/* ---- slab.c ---- */

/* As rc_pinned_make. False: the allocation is too large, or there are no slabs. */
bool rc_slab_take(struct rc_span *span);
/* Ends the use of the addresses. */
void rc_slab_give(const struct rc_span *span);
/* Ends the slabs without an allocation. False: there are none. */
bool rc_slab_end_unused(void);
/* The address of the slab that the allocation is part of. */
uint64_t rc_slab_base(const struct rc_span *span);

/* ---- shared_window.c ---- */

/* Finds addresses for bytes, a multiple of the page size, at which the caller may map memory. 0: there are none. */
uint64_t rc_shared_take(uint64_t bytes);
/* Call it if a worker has other memory at this address, which rc_shared_take has returned, and at several addresses near it.
 * Later addresses then come from another window. */
void rc_shared_avoid(uint64_t address);
/* Unmaps what is mapped there, and ends the use of the addresses. */
void rc_shared_give(uint64_t address, uint64_t bytes);

#endif
