/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of copies on connections: chunks and the staging area (chunks.c), and the data connection (data/). */
#ifndef RC_CLIENT_CHUNKS_H
#define RC_CLIENT_CHUNKS_H

#include "ch3/ch3.h"
#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct rc_copy;
struct rc_link;
struct rc_session;

/* ---- chunks.c ---- */

struct rc_copy;

/* True if the connection has a staging area. The first call makes it, if the worker is on this host. */
bool rc_chunks_staged(struct rc_link *link);
/* True if the connection has free slots for all chunks of the copy, so that sending them does not wait. */
bool rc_chunks_room(const struct rc_link *link, const struct rc_wire_box *box);
/* Takes the next slot for bytes that another call brings. Waits until the slot is free. */
CUresult rc_chunks_take(struct rc_link *link);
/* The other call was not sent: the slot was not used. */
void rc_chunks_untake(struct rc_link *link);
/* A REPLY says how many chunks have left their slots (struct rc_wire_reply). -EPROTO: more than there are. */
int rc_chunks_freed(struct rc_link *link, uint16_t freed);
/* Unmaps the staging area of a connection that is being closed. */
void rc_chunks_end(struct rc_link *link);
/* Sends in chunks the bytes of a copy to the device, after the call of the copy. The caller may reuse the bytes on return. */
CUresult rc_chunks_send(struct rc_link *link, const struct rc_wire_copy *call, const struct rc_copy *copy);
/* The pieces of bytes to send, at most CH3_IOV_MAX. If they are more, they are gathered in the connection's scratch memory.
 * -1: no memory. */
int rc_chunks_pieces(struct rc_link *link, const struct rc_copy *copy, uint64_t offset, uint64_t len, struct iovec *iov,
		     bool *gathered);
/* Handlers of the packets CHUNK, STAGED and CREDIT. context: the link. */
int rc_chunk_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
bool rc_chunk_may_ahead(void *context, const ch3_incoming_t *incoming);
int rc_staged_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int rc_credit_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);

/* ---- data/ ---- */

/* Opens the session's data connection, unless it is open. False: there is none. */
bool rc_data_open(struct rc_session *session);
/* True if the link is a data connection. */
bool rc_data_is(const struct rc_link *link);
/* Handler of the packet FETCH. context: the link. */
int rc_fetch_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);

#endif
