/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing straight into the peer's memory, beside the pipe: for the layers of this tree, not for the library's users.
 * After Liu et al., IPDPS 2004, section 5: where the layer above the channel does its own handshake for a long message,
 * the sender can write into the receive buffer itself. Only some transports have it (verbs); ask first.
 *
 * The receiver exposes memory and sends the token to the peer through the pipe. The peer writes with it, and says so
 * through the pipe when the writes are complete. Then the receiver hides the memory, and the token is worth nothing any
 * more (over verbs unless HEADRACE_IB_KEEP_EXPOSED is set): a write with it ends the writer's connection with -EPROTO.
 *
 * Threads and returns as in headrace/channel.h; nothing here blocks. What is exposed or being written when the
 * connection is aborted or closed is given back (hide, end) after that, and before the channel is finalized.
 */
#ifndef HR_REMOTE_WRITE_H
#define HR_REMOTE_WRITE_H

#include "headrace/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names exposed memory for the peer. Made by the receiver's transport, read by the sender's, opaque to all between;
 * integers little-endian. */
struct hr_token {
	uint64_t address;
	uint32_t key;
	uint32_t reserved; /* 0 */
};
_Static_assert(sizeof(struct hr_token) == 16, "wire format");

typedef struct hr_exposed hr_exposed_t;           /* memory that the peer may write */
typedef struct hr_remote_write hr_remote_write_t; /* one write under way */

/* Is the connection up, over a transport that has this? */
bool hr_remote_can(hr_conn_t *conn);

/* Lets the peer write len > 0 bytes at address until hr_remote_hide. An error means that it cannot be (-ENOMEM over a
 * limit, -ENOTSUP, ...): use the pipe. */
int hr_remote_expose(hr_conn_t *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
/* The peer has said that it is done, or the connection has been aborted (upper.h) or closed. */
void hr_remote_hide(hr_exposed_t *exposed);

/* Starts to write len > 0 bytes at address, which must stay, into the peer's memory, offset bytes behind where the
 * token begins. An error of the connection, or one that means that this memory cannot be written from: use the pipe. */
int hr_remote_write(hr_conn_t *conn, const struct hr_token *token, uint64_t offset, const void *address, size_t len,
		    hr_remote_write_t **write);
/* 1: every byte is in the peer's memory; 0: not yet (goes on with it); else the connection's error. Ask for all that are
 * under way when hr_channel_wait returns: one may have completed, or find room to go on. */
int hr_remote_test(hr_conn_t *conn, hr_remote_write_t *write);
/* Frees it: complete, or failed, or the connection has been aborted or closed. */
void hr_remote_end(hr_remote_write_t *write);

#endif
