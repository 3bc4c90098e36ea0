/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An attacker on the network between two ends of an encrypted tcp stream: the sender's records arrive changed, cut,
 * repeated, or mixed with bytes of the attacker. What must hold: the receiver delivers the bytes that were sent, from the
 * first one on, and nothing else; it reports -ESHUTDOWN only if the sender finished and every byte was delivered; after
 * an error it delivers nothing.
 *
 * Input: operations, each a byte and its arguments.
 */
#include "rdma_channel/tcp/secret.h"
#include "test/fuzz/input.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define WIRE_MAX 65536
#define SOCKET_BYTES (1 << 20)

static struct {
	struct hr_secret *sender, *receiver;
	int sent[2], received[2]; /* socket pairs: sender to attacker, attacker to receiver */
	uint64_t put, offered, got; /* plain bytes: accepted by put, offered to it, delivered */
	bool finished;
	int error;                /* that the receiver has returned */
	uint8_t wire[WIRE_MAX];   /* bytes that the attacker holds */
	size_t held;
} it;

static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 31 + (position >> 8));
}

static void open_pair(int pair[2])
{
	int bytes = SOCKET_BYTES;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
		abort();
	for (int i = 0; i < 2; i++)
		setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static void put(size_t len)
{
	static uint8_t bytes[65536];
	size_t accepted;
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_at(it.put + i);
	struct iovec iov = { bytes, len };
	if (it.finished)
		return;
	if (it.offered < it.put + len)
		it.offered = it.put + len;
	if (hr_secret_put(it.sender, it.sent[0], hr_iov_begin(&iov, 1), &accepted))
		return;
	it.put += accepted;
}

/* Takes what the sender has sent; what does not fit is lost. */
static void take(void)
{
	uint8_t rest[4096];
	ssize_t n = recv(it.sent[1], it.wire + it.held, WIRE_MAX - it.held, MSG_DONTWAIT);
	if (n > 0)
		it.held += (size_t)n;
	while (it.held == WIRE_MAX && recv(it.sent[1], rest, sizeof rest, MSG_DONTWAIT) > 0)
		continue;
}

/* Passes on len of the held bytes from `at` on. keep: they stay held, and can be passed on again. */
static void pass_on(size_t at, size_t len, bool keep)
{
	if (at > it.held)
		at = it.held;
	if (len > it.held - at)
		len = it.held - at;
	ssize_t n = len ? send(it.received[0], it.wire + at, len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	if (n <= 0 || keep)
		return;
	memmove(it.wire + at, it.wire + at + n, it.held - at - (size_t)n);
	it.held -= (size_t)n;
}

static void deliver(size_t room)
{
	uint8_t *bytes = malloc(room ? room : 1);
	struct iovec iov = { bytes, room };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	size_t delivered;
	hr_secret_fill(it.receiver, it.received[1]);
	int error = hr_secret_deliver(it.receiver, &place, &delivered);
	if (delivered > room || (error && delivered) || (it.error && error != it.error && room))
		abort();
	for (size_t i = 0; i < delivered; i++)
		if (bytes[i] != byte_at(it.got + i))
			abort();
	it.got += delivered;
	if (it.got > it.offered || (error == -ESHUTDOWN && (!it.finished || it.got != it.put)))
		abort();
	if (error)
		it.error = error;
	free(bytes);
}

static void operate(struct fuzz_input *input)
{
	switch (fuzz_u8(input) % 9) {
	case 0:
	case 1: put(fuzz_u8(input)); break;
	case 2: put(fuzz_u16(input)); break;
	case 3: take(); break;
	case 4: /* an honest network */
		take();
		pass_on(0, it.held, false);
		break;
	case 5: {
		size_t at = fuzz_u16(input), len = fuzz_u16(input);
		pass_on(at, len, fuzz_u8(input) & 1);
		break;
	}
	case 6: {
		size_t at = fuzz_u16(input);
		it.wire[at] ^= fuzz_u8(input);
		break;
	}
	case 7: deliver(fuzz_u16(input)); break;
	case 8: it.finished |= hr_secret_finish(it.sender, it.sent[0]) == 1; break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	hr_cipher_keys_t keys = { .put = "to the receiver", .get = "to the sender" }, mirrored;
	if (!hr_secret_supported())
		return 0;
	memcpy(mirrored.put, keys.get, sizeof keys.get);
	memcpy(mirrored.get, keys.put, sizeof keys.put);
	memset(&it, 0, sizeof it);
	open_pair(it.sent);
	open_pair(it.received);
	if (hr_secret_open(&keys, &it.sender) || hr_secret_open(&mirrored, &it.receiver))
		abort();
	while (input.left)
		operate(&input);
	/* The rest arrives, then the stream ends. */
	take();
	pass_on(0, it.held, false);
	close(it.received[0]);
	for (int i = 0; i < 16 && !it.error; i++)
		deliver(65535);
	hr_secret_is_final(it.receiver);
	hr_secret_close(it.sender);
	hr_secret_close(it.receiver);
	close(it.sent[0]);
	close(it.sent[1]);
	close(it.received[1]);
	return 0;
}
