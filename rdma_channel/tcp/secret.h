/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encrypted records on a stream, for connections with keys (hr_connect_attr_t.cipher). Each direction is one
 * crypto_secretstream_xchacha20poly1305 stream of libsodium with the key of that direction:
 *
 *	header, 24 bytes, once
 *	record: length, 4 bytes little-endian; then that many bytes of encrypted data, 17 more than the plain bytes
 *
 * If a record was changed, dropped, repeated, reordered, or sent back to its sender, authentication fails: -EPROTO. If
 * the peer closes in order, its last record is empty and has the tag FINAL: -ESHUTDOWN. If the stream ends without
 * FINAL, it was cut off: -ECONNRESET. Plain bytes are delivered only after their record has been authenticated.
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

/* Returns whether this build can encrypt (libsodium was found). */
bool hr_secret_supported(void);

/* Creates the state of both directions. The caller wipes its copy of the keys. -ENOTSUP: not in this build; -ENOMEM. */
int hr_secret_open(const hr_cipher_keys_t *keys, struct hr_secret **secret);

/* Wipes and frees the state. secret may be NULL. */
void hr_secret_close(struct hr_secret *secret);

/* Returns the size of a struct hr_secret, bytes. */
size_t hr_secret_bytes(void);

/*
 * Encrypts and sends the bytes from `place` on. *accepted: the bytes of complete records that the kernel has accepted.
 * If the kernel accepts only a part of a record, the next call sends the rest; it must offer the same bytes again, and
 * does not encrypt them again. Returns 0, or a positive errno value of send(2).
 */
int hr_secret_put(struct hr_secret *secret, int stream, struct hr_iov_place place, size_t *accepted);

/* Sends FINAL. Returns 1 if the kernel has accepted it or it can no longer be sent; 0 if the caller must call again. */
int hr_secret_finish(struct hr_secret *secret, int stream);

/*
 * Reads bytes from the stream into the buffer. Returns 1 if bytes have arrived or the buffer is full; 0 if none have
 * arrived; -ECONNRESET if the stream has ended; otherwise a positive errno value of recv(2).
 */
int hr_secret_fill(struct hr_secret *secret, int stream);

/* Decrypts buffered records into the memory at `place`, and moves `place` on. *delivered: the number of bytes. Returns
 * 0; -ESHUTDOWN if FINAL has arrived; -EPROTO if authentication failed. An error is returned only after every byte
 * before it was delivered, with *delivered 0, and again by every later call. */
int hr_secret_deliver(struct hr_secret *secret, struct hr_iov_place *place, size_t *delivered);

/* Returns whether hr_secret_deliver would deliver a byte or return an error. */
bool hr_secret_ready(const struct hr_secret *secret);

/* Returns whether the next record is the peer's FINAL. False if there are bytes before it that were not delivered. */
bool hr_secret_is_final(struct hr_secret *secret);

#endif
