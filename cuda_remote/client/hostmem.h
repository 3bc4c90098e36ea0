/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host memory that kernels use: managed memory (managed.c), pinned and registered memory (hostmem.c), pools of both (host_pool.c), and
 * memory of which a server on another host has a mirror (mirror/promote.c, unmapped.c).
 */
#ifndef RC_CLIENT_HOSTMEM_H
#define RC_CLIENT_HOSTMEM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rc_context;
struct rc_kernel;
struct rc_session;
struct rc_span;

/* ---- managed.c ---- */

/* True if the address is in managed memory, or in mapped memory of a server on another host: copies of it are made by the worker. */
bool rc_managed_at(uint64_t address);
/* Allocates span->size bytes of managed memory in the current context, and adds them to the table. */
CUresult rc_managed_make(const struct rc_context *context, struct rc_span *span);
/* Frees managed memory, or host memory of a pool, once the work that may use it is complete. False: the address is in neither. */
bool rc_managed_free(CUdeviceptr pointer, CUresult *result);
/* The same for an allocation that is not in the table any more. */
CUresult rc_managed_end(const struct rc_span *span);
/* If the host may use the memory at address itself, or the program wants calls on it to wait: waits for the stream's earlier
 * work. */
CUresult rc_managed_settle(uint64_t address, uint64_t stream);
/* True if it would wait. */
bool rc_managed_waits(uint64_t address);
/* For a hook check_* which has made, instead of the call, an asynchronous one in the legacy stream, with this result: waits for it.
 * The legacy stream waits for the threads' own default streams, so it serves both variants of a call. */
CUresult rc_managed_answer(CUresult result);

/* ---- hostmem.c ---- */

/* Allocates span->size bytes of pinned memory as span->flags say, and adds them to the table. */
CUresult rc_host_make(const struct rc_context *context, struct rc_span *span);
/* Frees such memory, which is not in the table any more. */
CUresult rc_host_end(const struct rc_span *span);

/* ---- host_pool.c ---- */

bool rc_host_pool_is(CUmemoryPool pool);
/* True if pools of this place and type are such pools. */
bool rc_host_pool_place(const CUmemLocation *location, CUmemAllocationType type);
CUresult rc_host_pool_create(CUmemoryPool *pool, const CUmemPoolProps *properties);
CUresult rc_host_pool_destroy(CUmemoryPool pool);
/* The place's current pool, or its default pool. */
CUresult rc_host_pool_of_place(const CUmemLocation *location, CUmemAllocationType type, bool current, CUmemoryPool *pool);
CUresult rc_host_pool_make_current(const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool);
CUresult rc_host_pool_alloc(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream);
/* Frees memory of such a pool in the stream's order. False: it is not of such a pool. */
bool rc_host_pool_free(CUdeviceptr pointer, CUstream stream, CUresult *result);
/* Gives back what all these pools keep, and waits for it. False: nothing. */
bool rc_host_pool_return(void);
/* An allocation of such a pool has left the table, without a free in a stream. */
void rc_host_pool_gone(const struct rc_span *span);

/* ---- mirror/promote.c: pinned memory that kernels of a server of another host use by its address ---- */

/* HEADRACE_MAP_HOST_MEMORY */
enum rc_host_mapping { RC_MAP_ASKED_FOR, RC_MAP_ALL, RC_MAP_USED };
enum rc_host_mapping rc_host_mapping(void);
/* True if rc_promote may succeed. */
bool rc_promote_possible(struct rc_session *session, const struct rc_span *span);
/* Makes the allocation of host memory that holds address a mirror, which kernels of the session can use, unless it is one.
 * CUDA_ERROR_NOT_SUPPORTED; *reason then says why not, in the words of rc_unmapped_fault. */
CUresult rc_promote(struct rc_session *session, uint64_t address, const char **reason);
/* Waits until no work uses the mirror, takes over what kernels have written, and ends the mirror. The memory is not in use as one:
 * it is about to be freed or unregistered. */
CUresult rc_promote_end(struct rc_span *span);
/* Finds addresses for pinned memory that a worker of another host can have too, so that it can be promoted. 0: anywhere. */
uint64_t rc_promote_place(uint64_t bytes);

/* ---- unmapped.c ---- */

/* A kernel with this parameter block is about to be launched on the session's server, or becomes part of a graph: promotes the host
 * memory that its parameters point to. */
void rc_unmapped_launch(struct rc_session *session, const struct rc_kernel *kernel, const uint8_t *block);
/* A word is copied to memory of the session's server: promotes the host memory that it points to, if it does. asynchronous: but
 * not if that would wait for a stream that may be held. */
void rc_unmapped_copy(struct rc_session *session, uint64_t word, bool asynchronous);
/* A kernel of the session has accessed an illegal address: logs the cause, if it is known. */
void rc_unmapped_fault(const struct rc_session *session);

#endif
