/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access to the peer's memory by the adapter, beside the pipe. For the layers of this tree, not for users of the library.
 * Only verbs supports it; call hr_remote_can first.
 *
 * Memory becomes accessible in one of two ways, both of which give a token that its owner sends to the peer through the
 * pipe. Exposed memory is the target of one message, whose bytes the peer may write (Liu et al., IPDPS 2004, section 5: if
 * the layer above the channel does its own handshake for a long message, the sender can write into the receive buffer
 * directly). Shared memory may be read and written for as long as its owner likes, and by several peers (windows of
 * MPI). The owner ends both by hr_remote_hide, which invalidates the token (over verbs unless HEADRACE_IB_KEEP_EXPOSED is
 * set; shared memory: when it is hidden as often as it was shared). An access with an invalid token ends the connection
 * of the peer that made it with -EPROTO.
 *
 * The peer's bytes are in the owner's memory when the access is complete: the owner sees them before any message that
 * is sent afterwards, whichever process sends it.
 *
 * Threads and return values: as in headrace/channel.h. No function blocks. If the connection is aborted or closed, the
 * caller still releases memory (hr_remote_hide) and accesses (hr_remote_end), before it finalizes the channel.
 */
#ifndef HR_REMOTE_ACCESS_H
#define HR_REMOTE_ACCESS_H

#include "headrace/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The peer's handle of exposed memory. Written by the receiver's transport, read by the sender's transport, opaque to
 * the layers between. Integers are little-endian. */
struct hr_token {
	uint64_t address;
	uint32_t key;
	uint32_t reserved; /* 0 */
};
_Static_assert(sizeof(struct hr_token) == 16, "wire format");

typedef struct hr_exposed hr_exposed_t;             /* memory that peers may access */
typedef struct hr_remote_access hr_remote_access_t; /* a write or a read in progress */

/* Returns whether the connection is up and its transport supports access to remote memory. */
bool hr_remote_can(hr_conn_t *conn);

/* Allows the peer to write len > 0 bytes at address until hr_remote_hide. On an error (-ENOMEM beyond a limit,
 * -ENOTSUP, ...) use the pipe instead. */
int hr_remote_expose(hr_conn_t *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
/* Allows the peer to read and to write len > 0 bytes at address until hr_remote_hide. The same memory can be shared with
 * several peers, at the cost of one registration. Errors as those of hr_remote_expose. */
int hr_remote_share(hr_conn_t *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
/* Ends the exposure. Call it after the peer's message that its accesses are complete, or after the connection was aborted
 * (upper.h) or closed. */
void hr_remote_hide(hr_exposed_t *exposed);

/* Starts a write of len > 0 bytes at address into the peer's memory, offset bytes after the start of the token's
 * memory. The bytes must stay in place until the write is complete. The error is that of the connection, or says that
 * this memory cannot be the source of a remote write: use the pipe instead. Accesses may be executed in any order. */
int hr_remote_write(hr_conn_t *conn, const struct hr_token *token, uint64_t offset, const void *address, size_t len,
		    hr_remote_access_t **write);
/* Starts a read of len > 0 bytes of the peer's shared memory into the memory at address. Otherwise as hr_remote_write. After
 * an error of hr_remote_test, the adapter may still write there until the connection is aborted or closed. */
int hr_remote_read(hr_conn_t *conn, const struct hr_token *token, uint64_t offset, void *address, size_t len,
		   hr_remote_access_t **read);
/* Returns 1 if all bytes are in place, 0 if not yet, else the connection's error. Makes progress with all accesses of the
 * connection. After hr_channel_wait returns, call it for the oldest access in progress, at least. */
int hr_remote_test(hr_conn_t *conn, hr_remote_access_t *access);
/* Frees an access that is complete, has failed, or whose connection was aborted or closed. */
void hr_remote_end(hr_remote_access_t *access);

#endif
