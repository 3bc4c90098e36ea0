/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory as the program sees it: the table of allocations (memory.c), virtual memory management (virtual.c), memory and events of
 * other processes (ipc/), and device memory with its budget (allocate.c).
 */
#ifndef RC_CLIENT_MEMORY_H
#define RC_CLIENT_MEMORY_H

#include "cuda_remote/api/calls.h"
#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rc_link;
struct rc_placing;
struct rc_session;
struct rc_slab;

/* ---- memory.c ---- */

/* Up to RC_MEMORY_GLOBAL: what calls see as memory of a device. */
enum rc_memory_kind { RC_MEMORY_DEVICE, RC_MEMORY_MANAGED, RC_MEMORY_GLOBAL, RC_MEMORY_HOST, RC_MEMORY_REGISTERED };

struct rc_span {
	uint64_t base, size;
	enum rc_memory_kind kind;
	struct rc_session *session; /* of device memory and mirrors; NULL for other host memory */
	CUcontext context;
	CUmodule module;   /* of a global or managed variable: the module that it is part of; else NULL */
	unsigned flags;    /* of host memory: as given */
	bool pooled;       /* from cuMemAllocAsync */
	bool freed;        /* of such a pool: the program has freed it. rc_memory_find does not find it */
	uint64_t host_pool; /* of managed and host memory: the handle of its pool (host_pool.c), or 0 */
	uint64_t pool;     /* of device memory that is pooled and not imported: the handle of its pool; 0: the default pool */
	bool of_graph;     /* an allocation node's */
	bool reserved;     /* by cuMemAddressReserve; virtual.c says what is mapped there */
	bool imported;     /* memory of another process (ipc/): if it is of a pool, it is freed, else closed */
	bool synchronous;  /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: synchronous calls on it always wait */
	struct rc_placing *placing; /* of memory whose address the client has chosen; else NULL. Managed and host memory that
				     * have one are mirrors (mirror/) */
	uint64_t id;       /* unique in the process */
	uint64_t pinned;   /* of host and managed memory: its handle with workers on this host, or 0 */
	uint64_t shared_with; /* set of sessions whose workers have mapped it, bit i for session i */
	uint64_t mapped_by;   /* those of them whose kernels may use it at this address */
	uint64_t place;       /* bytes of addresses that rc_shared_take gave for it; 0: it lies elsewhere */
	struct rc_slab *slab; /* of host and managed memory: the larger memory that it is part of, or NULL */
	bool promoted;     /* host memory of which a server has a mirror since its kernels use it (mirror/promote.c) */
	bool refused;      /* a server did not make such a mirror */
};

/* The allocation that holds address. Not one that was freed in a stream (freed). */
bool rc_memory_find(uint64_t address, struct rc_span *span);
/* True if the program has ever allocated host memory that no server's kernels can access. */
bool rc_memory_any_unmapped(void);
/* CUDA_ERROR_ALREADY_MAPPED: part of it is in the table, as memory of the host or of another session. */
CUresult rc_memory_add(const struct rc_span *span);
bool rc_memory_remove(uint64_t base);
/* A session has a mirror of the host memory that begins at base, of this handle; false: that memory is not in the table. session
 * NULL: it could not be made. */
bool rc_memory_promoted(uint64_t base, struct rc_session *session, uint64_t pinned);
/* Marks the allocation as an allocation node's. */
void rc_memory_set_of_graph(uint64_t base);
/* Removes the allocation of this kind that begins at base, unless it is an allocation node's. */
bool rc_memory_take(uint64_t base, enum rc_memory_kind kind, struct rc_span *taken);
/* Remove from the table the globals of a module, or all device memory of a context. is_free: the driver has freed it; if not, its
 * addresses are not used again. */
void rc_memory_forget_module(CUmodule module);
void rc_memory_forget_context(CUcontext context, bool is_free);
/* CUDA_ERROR_INVALID_VALUE unless address..address+size-1 is within one allocation that a device may use, or size is 0. Promotes
 * pinned memory of the host (rc_promote). */
CUresult rc_memory_check_device(uint64_t address, uint64_t size);
/* The same for memory that a call writes: virtual memory must not be read-only. */
CUresult rc_memory_check_written(uint64_t address, uint64_t size);
bool rc_memory_is_device(uint64_t address);
/* True if other processes may open it: memory of cuMemAlloc. */
bool rc_memory_exportable(const struct rc_span *span);
/* Memory of pools (host_pool.c) stays in the table when the program has freed it. Each of these takes the base and the id of an
 * allocation of such a pool, and returns false if there is none. mark_freed: the program frees it; false if it was freed before.
 * The others return false if it is not freed. freed: changes nothing. unfree: the pool gives it to the program again. take_freed:
 * removes it from the table. */
bool rc_memory_mark_freed(uint64_t base, uint64_t id);
bool rc_memory_freed(uint64_t base, uint64_t id);
bool rc_memory_unfree(uint64_t base, uint64_t id);
bool rc_memory_take_freed(uint64_t base, uint64_t id, struct rc_span *taken);
/* Sets the attribute SYNC_MEMOPS of the allocation that holds address. */
void rc_memory_set_synchronous(uint64_t address, bool synchronous);

/* ---- virtual.c ---- */

/* True if size bytes of a reservation are mapped, and a device has this access to them (CUmemAccess_flags). */
bool rc_virtual_covers(uint64_t address, uint64_t size, unsigned long long access);
/* The device of the memory that is mapped at address. False: nothing is. */
bool rc_virtual_device(uint64_t address, CUdevice *device);
/* The mapping at address, and the types of handles that its memory was created for. False: nothing is mapped. */
bool rc_virtual_mapping(uint64_t address, uint64_t *base, uint64_t *size, unsigned long long *handle_types);

/* ---- ipc/ ---- */

/* The answer to a call that has mapped memory of another process: keeps its addresses, and adds it to the table. Logged:
 * CUDA_ERROR_MAP_FAILED: the process has other memory there. */
CUresult rc_ipc_keep(struct rc_link *link, enum rc_call call, const struct rc_wire_opened *memory, bool pooled);
/* Memory of another process, which was removed from the table, is not mapped any more. */
void rc_ipc_gone(const struct rc_span *span);
/* A call on this event was posted. If other processes use the event: waits until the worker has issued the call. */
CUresult rc_ipc_event_settle(CUevent event);
/* True if other processes may use the event. */
bool rc_ipc_event_is(CUevent event);

/* ---- allocate.c ---- */

/* Gives the session's unused budgets back to the server, which had no memory for a call. False: there are none. */
bool rc_placing_return(struct rc_link *link);
/* The allocation, which was removed from the table, no longer exists: its address may be used again. */
void rc_placing_gone(const struct rc_span *span);
/* The same once the work of the call with this number, and of those before it, is complete. */
void rc_placing_leave(const struct rc_span *span, uint64_t number);

/* A mirror (mirror/): chooses its address and asks the server to allocate. Sets span->base and
 * span->placing, and adds the span to the table. The program's memory is still to be mapped. CUDA_ERROR_NOT_SUPPORTED: the server
 * chooses the addresses. */
CUresult rc_memory_allocate_managed(struct rc_span *span);
/* The error that stays with the current context, which the worker is asked for if a call has returned one. */
CUresult rc_memory_health(void);
/* The same for the context of the link's next call. */
CUresult rc_link_health(struct rc_link *link);
/* The error that stays with this context. CUDA_SUCCESS: there is none, or the server cannot be asked. */
CUresult rc_link_error(struct rc_link *link);
/* Allocates as cuMemAlloc, also during a capture. */
CUresult rc_memory_allocate(size_t size, CUdeviceptr *pointer);
/* The allocation was removed from the table, and no later call uses it: frees it, without a wait, once the work of earlier calls
 * is known to be complete. */
void rc_memory_leave(const struct rc_span *span);
/* The context has ended, and with it the memory that is still to be freed. */
void rc_memory_left_with(CUcontext context);
/* Frees the allocation after all work of its context, and allocates it again at its address: it takes no pages of the device
 * until it is used. False: not possible. */
bool rc_memory_renew(const struct rc_span *span);

#endif
