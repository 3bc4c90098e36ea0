/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between host and device, inside. client.h has what the rest of the client uses.
 *
 *	copy.c        the driver's calls, and which way a copy takes
 *	copy_ways.c   the ways by which the bytes pass through this process
 *	copy_table.c  the copies that are under way
 */
#ifndef RC_CLIENT_COPY_H
#define RC_CLIENT_COPY_H

#include "cuda_remote/client/client.h"

/* ---- copy_table.c ---- */

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
