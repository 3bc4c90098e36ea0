/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between host and device.
 *
 *	copy.c        the driver's calls, and which way a copy takes
 *	copy_ways.c   the ways by which the bytes pass through this process
 *	copy_table.c  the copies that are in progress: those to the host, and asynchronous ones from it
 *	rows.c        where the bytes of a copy lie on the host
 */
#ifndef RC_CLIENT_COPY_H
#define RC_CLIENT_COPY_H

#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct rc_link;
struct rc_route;
struct rc_session;

/* ---- copy_table.c ---- */

struct rc_copy {
	struct rc_copy *next;
	uint64_t id;      /* unique in the process */
	struct rc_session *session;
	uint8_t *host;
	uint64_t pitch, slice, width, height, depth; /* of the host's side, as in struct rc_wire_box */
	const struct rc_link *link; /* of a copy that a call waits for: the only connection that may bring it */
	bool later;         /* asynchronous: freed when complete, not by a call */
	bool up;            /* to the device, asynchronous: the server asks for the bytes */
	bool kept;          /* to the host, asynchronous: its bytes count in the session's `staged` */
	struct rc_wire_box box; /* of such a copy: the device's side */
	uint64_t left;      /* bytes that have not arrived, or have not been sent; atomic */
	/* Under the lock of copy.c. */
	uint64_t unclaimed; /* bytes that no chunk has announced, or that the server has not asked for yet */
	unsigned receiving; /* chunks that are being received, or sent at a time; each of them keeps the struct */
	bool listed;        /* a chunk may name it */
	bool ending;        /* its last bytes are being sent */
	unsigned *forgotten; /* NULL, or it is not listed: copies that rc_copy_forget waits for; one less when `receiving` is 0 */
};

/*
 * The server has announced a chunk of this size on link. Returns its copy, which stays until rc_copy_arrived or
 * rc_copy_failed. NULL: the server may not send it: no such copy, one that another connection waits for, or more bytes
 * than the copy has.
 */
struct rc_copy *rc_copy_claim(const struct rc_link *link, uint64_t id, uint64_t bytes);
/* The chunk's bytes are stored. */
void rc_copy_arrived(struct rc_copy *copy, uint64_t bytes);
/* Receiving the chunk failed, or sending bytes. */
void rc_copy_failed(struct rc_copy *copy);
/* The server has requested bytes of a copy to the device on link: finds the copy. It stays valid until rc_copy_sent or
 * rc_copy_failed. NULL: there is no such copy, or the bytes are not its next ones. */
struct rc_copy *rc_copy_claim_source(const struct rc_link *link, uint64_t id, uint64_t offset, uint64_t bytes);
/* Some copies to the device may be sending their last bytes: waits until these copies have ended. If the device
 * has all bytes of a copy, the program may write to the source of this copy afterwards. */
void rc_copy_await_sources(struct rc_session *session);
/* The bytes are sent. */
void rc_copy_sent(struct rc_copy *copy, uint64_t bytes);
/* The server says on link that this asynchronous copy has failed: no chunk of it follows. False: there is no such copy. */
bool rc_copy_refused(const struct rc_link *link, uint64_t id);
/* True if the copy, an asynchronous one, has ended: its memory is the program's again. Its chunks may still come on link. */
bool rc_copy_has_ended(const struct rc_link *link, uint64_t id);

/* A number for a copy that is not in the table. */
uint64_t rc_copy_new_id(void);
/* Adds a new copy with the same host side as *host to the table. link: of the call that waits for its bytes; NULL: the copy is
 * asynchronous, and from then on the data connection's thread may end it. NULL: no memory. */
struct rc_copy *rc_copy_begin(struct rc_session *session, const struct rc_copy *host, const struct rc_link *link,
			      uint64_t *id);
/* Takes a copy that a call has waited for out of the table. */
void rc_copy_end(struct rc_copy *copy);
/* Bytes from the first to the last of a copy's host memory. */
uint64_t rc_copy_extent(const struct rc_copy *copy);

/* ---- rows.c ---- */

/* The places of the bytes offset..offset+len-1 of a copy: up to max pieces. Returns the number of pieces; 0 if that is
 * more than max; -1 if the bytes lie outside the copy. */
int rc_copy_pieces(const struct rc_copy *copy, uint64_t offset, uint64_t len, struct iovec *iov, int max);
/* Copy such bytes, which lie inside the copy, from contiguous memory to their places, and back. */
void rc_copy_scatter(const struct rc_copy *copy, uint64_t offset, uint64_t len, const uint8_t *bytes);
void rc_copy_gather(const struct rc_copy *copy, uint64_t offset, uint64_t len, uint8_t *bytes);
/* The same, past the cache, which pays only if the rows are long. */
void rc_copy_gather_streaming(const struct rc_copy *copy, uint64_t offset, uint64_t len, uint8_t *bytes);
bool rc_copy_has_long_rows(const struct rc_copy *copy);
uint64_t rc_copy_bytes(const struct rc_copy *copy);

/* ---- copy.c ---- */

/* Waits for the asynchronous copies from and to these bytes, or until the current context has an error that stays. */
void rc_copy_await_memory(uint64_t address, uint64_t size);
/* True while asynchronous copies from or to the host are in progress; from or to these bytes; to these bytes. */
bool rc_copy_any_later(void);
bool rc_copy_pending(uint64_t address, uint64_t size);
bool rc_copy_writes(uint64_t address, uint64_t size);
/* True while asynchronous copies of this session to the host are in progress. */
bool rc_copy_brings(const struct rc_session *session);
/* Waits for all of them. */
void rc_copy_settle(void);
/* The session is lost: its asynchronous copies end. */
void rc_copy_session_lost(struct rc_session *session);
/* True if the bytes are in one allocation of pinned or registered memory. */
bool rc_copy_is_pinned(uint64_t address, uint64_t size);
/* Issues an asynchronous copy between pinned memory and an array, which the data connection carries. host: the memory, `up`, and
 * the box of the copy without gaps. array: the copy as the driver is to get it, without the host's side. */
CUresult rc_copy_array_later(struct rc_link *link, const struct rc_copy *host, uint64_t stream, const CUDA_MEMCPY3D *array);
/* True if CUDA reads a pageable source of this size during the call, whatever the stream waits for: the driver stages an
 * asynchronous copy of up to 64 KB. For a longer one, CUDA's call may wait for the stream. */
bool rc_copy_is_staged(uint64_t bytes, bool asynchronous);
/* Called after an asynchronous copy to the host was put into the stream. If it writes the source of a small copy that has been sent
 * (early.c), the stream goes on only when the client has compared the source, and has sent it again if it differs. */
CUresult rc_copy_changes_early(const struct rc_session *session, uint64_t address, uint64_t size, CUstream stream);
/* Waits until the stream would begin a new command, also for streams that it is ordered with. */
CUresult rc_copy_wait_for_turn(uint64_t stream);
/* True if a copy to the device that is not asynchronous must be complete when its call returns. CUDA completes it if the source is
 * pinned. If the source is pageable and longer than 64 KB, CUDA waits for the stream's earlier work. */
bool rc_copy_completes(const struct rc_session *session, bool pinned, uint64_t bytes);
/* Waits for the copies that the calling thread has put into the stream of the current context. */
CUresult rc_copy_await(const struct rc_route *route, uint64_t stream);
/* Ends the copies into these bytes. On return no connection writes there: waits for chunks that are being received. */
void rc_copy_forget(uint64_t address, uint64_t size);

/* ---- copy_ways.c ---- */

/* To the device. The source has been read when the call returns. */
CUresult rc_copy_up(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *copy, uint64_t stream);
/* An asynchronous copy from pinned memory: the data connection's thread sends the bytes when the stream has come to the copy. */
CUresult rc_copy_up_later(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *host,
			  uint64_t stream);
/* A small copy that the program must find complete. If nothing else is under way, the worker completes it before it issues the
 * next call, so this call need not wait. *posted: that is the case. */
CUresult rc_copy_up_settled(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *copy,
			    uint64_t stream, bool *posted);
/* To the host. may_be_later: the memory is pinned, and the call need not wait. */
CUresult rc_copy_down(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *host,
		      uint64_t stream, bool may_be_later);

#endif
