/* SPDX-License-Identifier: BSD-3-Clause */
/* What concerns two servers, as the rest of the client uses it (peer.c, peer_calls.c). */
#ifndef RC_CLIENT_PEER_CALLS_H
#define RC_CLIENT_PEER_CALLS_H

#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct rc_session;

/* Reads HEADRACE_PEER. CUDA_ERROR_INVALID_VALUE, logged. */
CUresult rc_peer_prepare(void);
/* True if there are several servers. */
bool rc_peer_possible(void);
/* True if the two addresses are in device memory of different servers. */
bool rc_peer_apart(uint64_t one, uint64_t other);
/* Opens the link from one server to another, and waits until it is open or has failed: before streams wait for copies. */
void rc_peer_meet(struct rc_session *to, struct rc_session *from);
/* Copies a box to another server, in the order of a stream. */
CUresult rc_peer_copy(const struct rc_wire_box *to, const struct rc_wire_box *from, CUstream stream);
/* Copies between device memory and pinned memory, or within a server, in the order of another server's stream. to_device,
 * from_device: which end is device memory. owned: memory from malloc that holds the source, or NULL; it is freed after the copy, or
 * at once if nothing is copied. False: an end is memory of another kind, and nothing is copied. */
bool rc_peer_copy_elsewhere(const struct rc_wire_box *to, bool to_device, const struct rc_wire_box *from, bool from_device,
			    void *owned, CUstream stream, CUresult *result);
/* Copies from or to an array or both, in the order of a stream, if the ends and the stream are of several servers. False: they are
 * not, or an end is host memory that is not pinned. The copy is checked. */
bool rc_peer_copy_array(const CUDA_MEMCPY3D *copy, CUstream stream, bool asynchronous, CUresult *result);
/* Waits for the copies that use the allocation at this address: it is about to be freed. */
void rc_peer_settle_allocation(CUdeviceptr pointer);
/* Waits for the copies between servers that use these bytes. */
void rc_peer_settle_memory(uint64_t address, uint64_t size);
/* True if copies of rc_peer_copy_elsewhere and rc_peer_copy_array are in progress; if one of them writes these bytes. */
bool rc_peer_any_host(void);
bool rc_peer_writes_host(uint64_t address, uint64_t size);
/* Waits for the copies and waits that use a context: it is about to end. */
void rc_peer_settle(CUcontext context);
/* The session has device memory. If others have too, links between their workers are opened, ahead of the first copy. */
void rc_peer_expect(struct rc_session *session);

#endif
