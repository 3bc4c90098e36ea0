/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA write into the peer's memory, beside the pipe. For the layers of this tree, not for users of the library.
 * Source: Liu et al., IPDPS 2004, section 5: if the layer above the channel does its own handshake for a long message,
 * the sender can write into the receive buffer directly. Only verbs supports it; call hr_remote_can first.
 *
 * The receiver exposes memory and sends the token to the peer through the pipe. The peer writes with the token, and
 * sends a message through the pipe when its writes are complete. Then the receiver hides the memory, which invalidates
 * the token (over verbs unless HEADRACE_IB_KEEP_EXPOSED is set): a write with an invalid token ends the writer's
 * connection with -EPROTO.
 *
 * Threads and return values: as in headrace/channel.h. No function blocks. If the connection is aborted or closed, the
 * caller still releases exposed memory (hr_remote_hide) and writes (hr_remote_end), before it finalizes the channel.
 */
#ifndef HR_REMOTE_WRITE_H
#define HR_REMOTE_WRITE_H

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

typedef struct hr_exposed hr_exposed_t;           /* memory that the peer may write */
typedef struct hr_remote_write hr_remote_write_t; /* a write in progress */

/* Returns whether the connection is up and its transport supports remote writes. */
bool hr_remote_can(hr_conn_t *conn);

/* Allows the peer to write len > 0 bytes at address until hr_remote_hide. On an error (-ENOMEM beyond a limit,
 * -ENOTSUP, ...) use the pipe instead. */
int hr_remote_expose(hr_conn_t *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
/* Ends the exposure. Call it after the peer's message that its writes are complete, or after the connection was aborted
 * (upper.h) or closed. */
void hr_remote_hide(hr_exposed_t *exposed);

/* Starts a write of len > 0 bytes at address into the peer's memory, offset bytes after the start of the token's
 * memory. The bytes must stay in place until the write is complete. The error is that of the connection, or says that
 * this memory cannot be the source of a remote write: use the pipe instead. */
int hr_remote_write(hr_conn_t *conn, const struct hr_token *token, uint64_t offset, const void *address, size_t len,
		    hr_remote_write_t **write);
/* Returns 1 if every byte is in the peer's memory, 0 if not yet, else the connection's error. Makes progress with the
 * write. After hr_channel_wait returns, call it for every write in progress. */
int hr_remote_test(hr_conn_t *conn, hr_remote_write_t *write);
/* Frees a write that is complete, has failed, or whose connection was aborted or closed. */
void hr_remote_end(hr_remote_write_t *write);

#endif
