/* SPDX-License-Identifier: BSD-3-Clause */
/* Encrypted records on a stream, by libsodium's secretstream. */
#include "rdma_channel/tcp/secret.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PLAIN_MAX 16384 /* bytes of plain text in one record */
#define EXTRA crypto_secretstream_xchacha20poly1305_ABYTES
#define HEADER crypto_secretstream_xchacha20poly1305_HEADERBYTES
#define LENGTH 4u
#define RECORD_MAX (LENGTH + PLAIN_MAX + EXTRA)
#define RECORDS 4 /* maximum number of records encrypted for one system call; few enough to stay in the cache */

_Static_assert(crypto_secretstream_xchacha20poly1305_KEYBYTES == HR_CIPHER_KEY_BYTES, "key size");

struct hr_secret {
	struct {
		crypto_secretstream_xchacha20poly1305_state state;
		size_t at, end; /* bytes[at..end-1] are still to be sent */
		size_t plain;   /* number of the caller's bytes that are encrypted in bytes and not yet accepted */
		bool finished;  /* FINAL has been encrypted */
		uint8_t bytes[HEADER + RECORDS * RECORD_MAX];
	} out;
	struct {
		crypto_secretstream_xchacha20poly1305_state state;
		bool begun; /* the peer's header has been used */
		int error;  /* error that hr_secret_deliver returns: -ESHUTDOWN or -EPROTO; 0: none */
		size_t at, end;             /* bytes[at..end-1] have arrived and are not decrypted */
		size_t plain_at, plain_end; /* plain[plain_at..plain_end-1] are decrypted and not delivered */
		uint8_t plain[PLAIN_MAX];
		uint8_t bytes[HEADER + RECORDS * RECORD_MAX];
	} in;
};

bool hr_secret_supported(void)
{
	return true;
}

size_t hr_secret_bytes(void)
{
	return sizeof(struct hr_secret);
}

int hr_secret_open(const hr_cipher_keys_t *keys, struct hr_secret **out)
{
	if (sodium_init() < 0) /* chooses the code for this CPU; may be called any number of times, by any thread */
		return -EIO;
	struct hr_secret *secret = malloc(sizeof *secret);
	if (!secret)
		return -ENOMEM;
	memset(secret, 0, sizeof *secret);
	crypto_secretstream_xchacha20poly1305_init_push(&secret->out.state, secret->out.bytes, keys->put);
	secret->out.end = HEADER;
	/* Keep the key here until the peer's header has arrived. */
	memcpy(secret->in.plain, keys->get, sizeof keys->get);
	*out = secret;
	return 0;
}

void hr_secret_close(struct hr_secret *secret)
{
	if (!secret)
		return;
	sodium_memzero(secret, sizeof *secret);
	free(secret);
}

/* ---- out ---- */

static void seal(struct hr_secret *secret, const uint8_t *bytes, size_t size, unsigned char tag)
{
	uint8_t *to = secret->out.bytes + secret->out.end;
	uint32_t length = htole32((uint32_t)(size + EXTRA));
	memcpy(to, &length, LENGTH);
	crypto_secretstream_xchacha20poly1305_push(&secret->out.state, to + LENGTH, NULL, bytes, size, NULL, 0, tag);
	secret->out.end += LENGTH + size + EXTRA;
	secret->out.plain += size;
}

/* Encrypts as many bytes from `place` on as out.bytes has room for, and moves `place` on. Each contiguous piece becomes
 * a record or more; small pieces share a record. */
static void seal_from(struct hr_secret *secret, struct hr_iov_place *place)
{
	uint8_t gathered[1024], *piece;
	size_t len;
	while (secret->out.end + RECORD_MAX <= sizeof secret->out.bytes && (len = hr_iov_piece(place, &piece)) > 0) {
		if (len >= sizeof gathered) {
			len = len < PLAIN_MAX ? len : PLAIN_MAX;
			hr_iov_advance(place, len);
			seal(secret, piece, len, 0);
			continue;
		}
		size_t have = 0;
		while ((len = hr_iov_piece(place, &piece)) > 0 && len <= sizeof gathered - have) {
			memcpy(gathered + have, piece, len);
			have += len;
			hr_iov_advance(place, len);
		}
		seal(secret, gathered, have, 0);
		sodium_memzero(gathered, have);
	}
}

/* Sends the encrypted bytes. Returns 0 if all were sent, EAGAIN if the kernel's buffer is full, or another errno
 * value. */
static int flush(struct hr_secret *secret, int stream)
{
	while (secret->out.at < secret->out.end) {
		ssize_t sent = send(stream, secret->out.bytes + secret->out.at, secret->out.end - secret->out.at,
				    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EWOULDBLOCK ? EAGAIN : errno;
		secret->out.at += (size_t)sent;
	}
	secret->out.at = secret->out.end = 0;
	return 0;
}

static size_t left_from(struct hr_iov_place place)
{
	size_t total = 0, len;
	uint8_t *piece;
	while ((len = hr_iov_piece(&place, &piece)) > 0) {
		total += len;
		hr_iov_advance(&place, len);
	}
	return total;
}

int hr_secret_put(struct hr_secret *secret, int stream, struct hr_iov_place place, size_t *accepted)
{
	*accepted = 0;
	for (;;) {
		int error = flush(secret, stream);
		if (error)
			return error == EAGAIN || *accepted ? 0 : error;
		/* The records of the first out.plain bytes have been sent now, so these bytes are accepted. */
		size_t left = left_from(place), gone = secret->out.plain < left ? secret->out.plain : left;
		hr_iov_advance(&place, gone);
		secret->out.plain -= gone;
		*accepted += gone;
		if (secret->out.plain || left == gone)
			return 0;
		struct hr_iov_place ahead = place;
		seal_from(secret, &ahead);
	}
}

int hr_secret_finish(struct hr_secret *secret, int stream)
{
	if (!secret->out.finished) {
		if (secret->out.plain)
			return 1; /* put has not accepted the last record: the peer must see a cut stream */
		secret->out.finished = true;
		if (secret->out.end + LENGTH + EXTRA <= sizeof secret->out.bytes)
			seal(secret, NULL, 0, crypto_secretstream_xchacha20poly1305_TAG_FINAL);
	}
	return flush(secret, stream) != EAGAIN;
}

/* ---- in ---- */

int hr_secret_fill(struct hr_secret *secret, int stream)
{
	if (secret->in.at) {
		memmove(secret->in.bytes, secret->in.bytes + secret->in.at, secret->in.end - secret->in.at);
		secret->in.end -= secret->in.at;
		secret->in.at = 0;
	}
	if (secret->in.end == sizeof secret->in.bytes)
		return 1;
	ssize_t got;
	do
		got = recv(stream, secret->in.bytes + secret->in.end, sizeof secret->in.bytes - secret->in.end,
			   MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
	secret->in.end += (size_t)got;
	return got ? 1 : -ECONNRESET;
}

/* Stores the length field of the next record. Returns whether the record is complete or its length is invalid. */
static bool next_record(const struct hr_secret *secret, uint32_t *length)
{
	size_t skip = secret->in.begun ? 0 : HEADER, have = secret->in.end - secret->in.at;
	if (have < skip + LENGTH)
		return false;
	memcpy(length, secret->in.bytes + secret->in.at + skip, LENGTH);
	*length = le32toh(*length);
	return *length < EXTRA || *length > PLAIN_MAX + EXTRA || have >= skip + LENGTH + *length;
}

static void begin(struct hr_secret *secret)
{
	uint8_t key[HR_CIPHER_KEY_BYTES];
	if (secret->in.begun)
		return;
	memcpy(key, secret->in.plain, sizeof key);
	sodium_memzero(secret->in.plain, sizeof key);
	if (crypto_secretstream_xchacha20poly1305_init_pull(&secret->in.state, secret->in.bytes + secret->in.at, key))
		secret->in.error = -EPROTO;
	sodium_memzero(key, sizeof key);
	secret->in.at += HEADER;
	secret->in.begun = true;
}

/* Decrypts the next record, which is complete, to `to`, which has room for it. Returns the number of plain bytes. Sets
 * in.error on failure and for FINAL. */
static size_t open_record(struct hr_secret *secret, uint32_t length, uint8_t *to)
{
	unsigned char tag = 0;
	begin(secret);
	const uint8_t *record = secret->in.bytes + secret->in.at + LENGTH;
	if (secret->in.error)
		return 0;
	if (length < EXTRA || length > PLAIN_MAX + EXTRA ||
	    crypto_secretstream_xchacha20poly1305_pull(&secret->in.state, to, NULL, &tag, record, length, NULL, 0))
		secret->in.error = -EPROTO;
	else if (tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL && length == EXTRA)
		secret->in.error = -ESHUTDOWN;
	else if (tag || length == EXTRA)
		secret->in.error = -EPROTO;
	if (secret->in.error)
		return 0;
	secret->in.at += LENGTH + length;
	return length - EXTRA;
}

/* Delivers bytes that are decrypted already. */
static size_t deliver_plain(struct hr_secret *secret, struct hr_iov_place *place)
{
	size_t delivered = 0, room;
	uint8_t *to;
	while (secret->in.begun && secret->in.plain_at < secret->in.plain_end && (room = hr_iov_piece(place, &to)) > 0) {
		size_t count = secret->in.plain_end - secret->in.plain_at;
		count = count < room ? count : room;
		memcpy(to, secret->in.plain + secret->in.plain_at, count);
		secret->in.plain_at += count;
		hr_iov_advance(place, count);
		delivered += count;
	}
	return delivered;
}

int hr_secret_deliver(struct hr_secret *secret, struct hr_iov_place *place, size_t *delivered)
{
	uint32_t length;
	uint8_t *to;
	size_t room;
	*delivered = deliver_plain(secret, place);
	while ((room = hr_iov_piece(place, &to)) > 0 && !secret->in.error && next_record(secret, &length)) {
		if (length > EXTRA && room >= length - EXTRA) {
			size_t count = open_record(secret, length, to);
			hr_iov_advance(place, count);
			*delivered += count;
			continue;
		}
		secret->in.plain_at = 0;
		secret->in.plain_end = 0;
		secret->in.plain_end = open_record(secret, length, secret->in.plain);
		*delivered += deliver_plain(secret, place);
	}
	return *delivered ? 0 : secret->in.error;
}

bool hr_secret_ready(const struct hr_secret *secret)
{
	uint32_t length;
	return (secret->in.begun && secret->in.plain_at < secret->in.plain_end) || secret->in.error ||
	       next_record(secret, &length);
}

bool hr_secret_is_final(struct hr_secret *secret)
{
	uint32_t length;
	if (secret->in.begun && secret->in.plain_at < secret->in.plain_end)
		return false;
	if (!secret->in.error && next_record(secret, &length) && length == EXTRA)
		open_record(secret, length, secret->in.plain);
	return secret->in.error == -ESHUTDOWN;
}
