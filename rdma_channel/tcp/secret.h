/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encrypted records on a stream, for connections with keys (hr_connect_attr_t.cipher). Each direction is one
 * crypto_secretstream_xchacha20poly1305 stream of libsodium under the key of that direction:
 *
 *	header, 24 bytes, once
 *	record: length, 4 bytes little-endian; then that many bytes: 17 more than the plain bytes they hold
 *
 * A record that was changed, dropped, repeated, reordered or reflected does not authenticate: -EPROTO. The last record
 * is empty and has the tag FINAL: the peer closed in order (-ESHUTDOWN). A stream that ends without FINAL was cut off:
 * -ECONNRESET. Plain bytes leave this unit only after their record has authenticated.
 *
 * The functions read and write the socket, never block, and log nothing. One thread at a time.
 */
#ifndef HR_SECRET_H
#define HR_SECRET_H

#include "headrace/channel.h"
#include "rdma_channel/iov.h"

#include <stdbool.h>
#include <stddef.h>

struct hr_secret;

/* True if this build can encrypt (libsodium was found). */
bool hr_secret_supported(void);

/* Makes both directions' state; the caller wipes its keys. -ENOTSUP: not in this build; -ENOMEM. */
int hr_secret_open(const hr_cipher_keys_t *keys, struct hr_secret **secret);

/* Wipes and frees it. NULL is allowed. */
void hr_secret_close(struct hr_secret *secret);

/* Bytes that one takes. */
size_t hr_secret_bytes(void);

/*
 * Encrypts and sends the bytes from the place on. *accepted: the bytes whose whole record the kernel has taken. The rest
 * of a record that it has not taken goes out with the next call, which must offer the same bytes again; they are not
 * encrypted anew. 0, or a positive errno value of send(2).
 */
int hr_secret_put(struct hr_secret *secret, int stream, struct hr_iov_place place, size_t *accepted);

/* Sends FINAL. 1: the kernel has it, or it cannot be sent any more; 0: to be called again. */
int hr_secret_finish(struct hr_secret *secret, int stream);

/*
 * Reads what has arrived. 1: something; 0: nothing; -ECONNRESET: the stream has ended; else a positive errno value of
 * recv(2). Reads nothing while the buffer is full, and returns 1.
 */
int hr_secret_fill(struct hr_secret *secret, int stream);

/* Decrypts into the place, which moves on, what has been read; *delivered tells how much. 0; -ESHUTDOWN: FINAL came;
 * -EPROTO. Both come only after every byte before them, with *delivered 0, and then again and again. */
int hr_secret_deliver(struct hr_secret *secret, struct hr_iov_place *place, size_t *delivered);

/* Would hr_secret_deliver deliver a byte or return an error? */
bool hr_secret_ready(const struct hr_secret *secret);

/* Is the next thing that has arrived the peer's FINAL? Looks past nothing that is still to be delivered. */
bool hr_secret_is_final(struct hr_secret *secret);

#endif
