/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer sends any bytes over tcp, in pieces of any size, and get takes them in any sizes. The delivered bytes and the
 * final error must be those of a simple parser of the format (frames of a length and bytes; tcp.c).
 *
 * Input: four sizes of pieces to send, four to get, then the stream.
 */
#include "rdma_channel/transport.h"
#include "test/fuzz/input.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define GOODBYE 0xffffffffu
#define FRAME_MAX (1u << 30)
#define SIZES 4

struct expected {
	uint8_t *payload;
	size_t len;
	int error;
};

static struct expected read_plainly(const uint8_t *stream, size_t size)
{
	struct expected expected = { malloc(size + 1), 0, -ECONNRESET };
	while (size >= 4) {
		uint32_t length;
		memcpy(&length, stream, sizeof length);
		length = le32toh(length);
		stream += 4;
		size -= 4;
		if (length == GOODBYE || length == 0 || length > FRAME_MAX) {
			expected.error = length == GOODBYE ? -ESHUTDOWN : -EPROTO;
			break;
		}
		size_t count = length < size ? length : size;
		memcpy(expected.payload + expected.len, stream, count);
		expected.len += count;
		stream += count;
		size -= count;
	}
	return expected;
}

struct talk {
	void *conn;
	int ours; /* the peer's end of the stream */
	const uint8_t *stream;
	size_t left;
	size_t sent_sizes[SIZES], got_sizes[SIZES];
};

static void send_piece(struct talk *talk, unsigned turn)
{
	size_t n = talk->sent_sizes[turn % SIZES];
	if (n > talk->left)
		n = talk->left;
	ssize_t sent = n ? send(talk->ours, talk->stream, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	if (sent > 0) {
		talk->stream += sent;
		talk->left -= (size_t)sent;
	}
	if (!talk->left)
		shutdown(talk->ours, SHUT_WR);
}

/* Calls get once, with one or two buffers of exact size, and compares the bytes. Returns the error of get. */
static int get_once(struct talk *talk, unsigned turn, const struct expected *expected, size_t *at)
{
	size_t n = talk->got_sizes[turn % SIZES], first = turn % 3 ? n : n / 2;
	uint8_t *a = malloc(first ? first : 1), *b = malloc(n - first ? n - first : 1);
	struct iovec iov[2] = { { a, first }, { b, n - first } };
	size_t delivered = 0;
	int error = hr_transport_tcp.get(talk->conn, iov, 2, &delivered);
	if (!error) {
		size_t in_a = delivered < first ? delivered : first;
		if (delivered > n || delivered > expected->len - *at || memcmp(a, expected->payload + *at, in_a) ||
		    memcmp(b, expected->payload + *at + in_a, delivered - in_a))
			abort();
		*at += delivered;
	}
	free(a);
	free(b);
	return error;
}

static void converse(struct talk *talk, const struct expected *expected)
{
	size_t at = 0;
	int error = 0;
	for (unsigned turn = 0; !error; turn++) {
		if (turn > 1000000)
			abort(); /* the stream has ended, and get has not reported it */
		send_piece(talk, turn);
		if (turn % 5 == 4)
			hr_transport_tcp.conn_pending(talk->conn, turn & 1);
		error = get_once(talk, turn, expected, &at);
	}
	if (error != expected->error || at != expected->len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	struct talk talk = { 0 };
	for (int i = 0; i < SIZES; i++) {
		talk.sent_sizes[i] = (size_t)fuzz_u16(&input) + 1;
		talk.got_sizes[i] = (size_t)fuzz_u16(&input) + 1;
	}
	talk.stream = input.at;
	talk.left = input.left;
	int fds[2];
	hr_conn_stats_t stats = { .size = sizeof stats };
	struct hr_conn_env env = { .ring_bytes = 65536, .timeout_ms = 1000, .peer = "fuzz:0", .stats = &stats };
	struct hr_channel_env channel_env = { .timeout_ms = 1000 };
	struct hr_half own = { 0 }, half = { 0 };
	uint8_t section[HR_SECTION_MAX];
	size_t section_len;
	void *context;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) ||
	    hr_transport_tcp.open(&channel_env, &context, section, &section_len) ||
	    hr_transport_tcp.conn_open(context, &env, &own, &talk.conn))
		abort();
	memcpy(half.blob, own.blob, own.len); /* the peer's is like ours */
	half.len = own.len;
	if (hr_transport_tcp.conn_establish(talk.conn, &half, fds[0]))
		abort();
	talk.ours = fds[1];
	struct expected expected = read_plainly(talk.stream, talk.left);
	converse(&talk, &expected);
	free(expected.payload);
	hr_transport_tcp.conn_shutdown(talk.conn);
	hr_transport_tcp.conn_close(talk.conn);
	hr_transport_tcp.close(context);
	close(fds[0]);
	close(fds[1]);
	return 0;
}
