/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: the pipe over the stream socket itself, TCP or Unix. What one put hands to the kernel travels as a frame: its
 * length, 4 bytes little-endian, then the bytes. The length exists for one reason: the end. FRAME_GOODBYE in its place
 * says that the peer finalized, whereas a stream that ends without it means that the peer died; TCP alone cannot tell
 * the two apart, as the kernel closes the sockets of a killed process in good order.
 *
 * A frame whose bytes the kernel did not all take is continued by the next put. If the connection is closed in the
 * middle of one, there is no place for the goodbye, and the peer sees a death (-ECONNRESET): its message was cut off.
 *
 * No copy on the way out. On the way in, one read takes what is left of a frame directly to the caller and the rest
 * (the next lengths and small messages) to a buffer, so that a small message costs one system call.
 */
#include "rdma_channel/iov.h"
#include "rdma_channel/transport.h"

#include "rdma_channel/base/log.h"

#include <endian.h>
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define FRAME_GOODBYE 0xffffffffu
#define FRAME_MAX (1u << 30) /* bytes */
#define IN_BUFFER 32768      /* bytes */
#define DIRECT_MIN 4096      /* bytes still to come of a frame, from which on they are read past the buffer */
#define PIECES_MAX 64        /* of one system call */

struct tcp_conn {
	int stream; /* the channel's */
	bool is_unix;
	const char *peer;
	struct {
		uint32_t length; /* little-endian; its last length_left bytes are still to be sent */
		unsigned length_left;
		uint32_t left; /* bytes of the frame not handed over yet */
		bool was_short;
		bool goodbye_begun, ended;
	} out;
	struct {
		uint8_t length[4];
		unsigned length_have;
		uint32_t left; /* bytes of the frame not delivered yet */
		size_t at, end; /* of buffer */
		int error;      /* what get says when the buffer is empty; 0: none */
		uint8_t buffer[IN_BUFFER];
	} in;
};

/* ---- the channel's end of it ---- */

static int tcp_open(const struct hr_channel_env *env, void **context, uint8_t *section, size_t *section_len)
{
	(void)env;
	(void)section;
	*context = NULL;
	*section_len = 0;
	return 0;
}

static void tcp_close(void *context)
{
	(void)context;
}

static bool tcp_reaches(void *context, const uint8_t *section, size_t section_len, bool same_host)
{
	(void)context;
	(void)section;
	(void)section_len;
	(void)same_host;
	return true;
}

static int tcp_conn_open(void *context, const struct hr_conn_env *env, struct hr_half *own, void **out)
{
	(void)context;
	struct tcp_conn *conn = malloc(sizeof *conn);
	if (!conn)
		return -ENOMEM;
	memset(conn, 0, offsetof(struct tcp_conn, in.buffer));
	conn->stream = -1;
	conn->peer = env->peer;
	own->len = 0;
	own->n_fds = 0;
	*out = conn;
	return 0;
}

static int tcp_conn_establish(void *data, const struct hr_half *peer, int stream)
{
	struct tcp_conn *conn = data;
	if (peer->len != 0 || peer->n_fds != 0) {
		hr_log(HR_LOG_ERROR, "tcp: %s describes its half in an unknown way", conn->peer);
		return -EPROTO;
	}
	int domain = 0;
	socklen_t len = sizeof domain;
	getsockopt(stream, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	conn->is_unix = domain == AF_UNIX;
	conn->stream = stream;
	return 0;
}

static void tcp_conn_close(void *data)
{
	free(data);
}

/* What a failed send or read means to the caller of put or get. */
static int error_of_stream(const struct tcp_conn *conn, int number)
{
	if (number == ECONNRESET || number == EPIPE)
		return -ECONNRESET;
	hr_log(HR_LOG_ERROR, "tcp: connection to %s: %s", conn->peer, strerror(number));
	return number == ETIMEDOUT || number == EHOSTUNREACH || number == ENETUNREACH ? -ETIMEDOUT : -ECONNRESET;
}

/* ---- get ---- */

/* One read. Returns its result, 0 where it would block; notes the end and errors in in.error and returns -1. */
static ssize_t read_some(struct tcp_conn *conn, struct iovec *iov, int n)
{
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = (size_t)n };
	ssize_t got;
	do
		got = recvmsg(conn->stream, &message, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		return got;
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	conn->in.error = got == 0 ? -ECONNRESET : error_of_stream(conn, errno);
	return -1;
}

/* Reads into the empty buffer. As read_some. */
static ssize_t fill(struct tcp_conn *conn)
{
	if (conn->in.error)
		return -1;
	struct iovec iov = { conn->in.buffer, IN_BUFFER };
	ssize_t got = read_some(conn, &iov, 1);
	conn->in.at = 0;
	conn->in.end = got > 0 ? (size_t)got : 0;
	return got;
}

static int on_length(struct tcp_conn *conn)
{
	uint32_t length;
	memcpy(&length, conn->in.length, sizeof length);
	length = le32toh(length);
	conn->in.length_have = 0;
	if (length == FRAME_GOODBYE)
		return -ESHUTDOWN;
	if (length == 0 || length > FRAME_MAX) {
		hr_log(HR_LOG_ERROR, "tcp: %s sent a frame of impossible length", conn->peer);
		return -EPROTO;
	}
	conn->in.left = length;
	return 0;
}

/* Takes a length from the buffer where one is due; true if payload is in the buffer afterwards. */
static bool payload_buffered(struct tcp_conn *conn)
{
	while (!conn->in.left && conn->in.at < conn->in.end) {
		conn->in.length[conn->in.length_have++] = conn->in.buffer[conn->in.at++];
		if (conn->in.length_have < sizeof conn->in.length)
			continue;
		int error = on_length(conn);
		if (error) { /* nothing behind it means anything */
			conn->in.error = error;
			conn->in.at = conn->in.end = 0;
		}
	}
	return conn->in.at < conn->in.end;
}

/* Delivers from the buffer as much as there is and fits. */
static size_t deliver_buffered(struct tcp_conn *conn, struct hr_iov_place *place)
{
	size_t delivered = 0;
	uint8_t *to;
	size_t room;
	while ((room = hr_iov_piece(place, &to)) > 0 && payload_buffered(conn)) {
		size_t count = conn->in.end - conn->in.at;
		if (count > conn->in.left)
			count = conn->in.left;
		if (count > room)
			count = room;
		memcpy(to, conn->in.buffer + conn->in.at, count);
		conn->in.at += count;
		conn->in.left -= (uint32_t)count;
		hr_iov_advance(place, count);
		delivered += count;
	}
	return delivered;
}

/* The caller's pieces from the place on, at most limit bytes and max pieces. Returns how many; *size is their sum. */
static int pieces_from(struct hr_iov_place place, size_t limit, struct iovec *pieces, int max, size_t *size)
{
	int n = 0;
	*size = 0;
	uint8_t *bytes;
	size_t len;
	while (n < max && *size < limit && (len = hr_iov_piece(&place, &bytes)) > 0) {
		if (len > limit - *size)
			len = limit - *size;
		pieces[n++] = (struct iovec){ bytes, len };
		*size += len;
		hr_iov_advance(&place, len);
	}
	return n;
}

/* The buffer is empty and the rest of the frame is long: reads it to the caller, and what follows it to the buffer.
 * Returns the bytes delivered; *more: all that was asked for came, so there may be more. */
static size_t deliver_direct(struct tcp_conn *conn, struct hr_iov_place *place, bool *more)
{
	struct iovec pieces[PIECES_MAX + 1];
	size_t asked, to_caller;
	int n = pieces_from(*place, conn->in.left, pieces, PIECES_MAX, &to_caller);
	asked = to_caller;
	if (to_caller == conn->in.left) {
		pieces[n++] = (struct iovec){ conn->in.buffer, IN_BUFFER };
		asked += IN_BUFFER;
	}
	ssize_t got = read_some(conn, pieces, n);
	*more = got == (ssize_t)asked;
	if (got <= 0)
		return 0;
	size_t delivered = (size_t)got < to_caller ? (size_t)got : to_caller;
	conn->in.at = 0;
	conn->in.end = (size_t)got - delivered;
	conn->in.left -= (uint32_t)delivered;
	hr_iov_advance(place, delivered);
	return delivered;
}

static int tcp_get(void *data, const struct iovec *iov, int n, size_t *delivered)
{
	struct tcp_conn *conn = data;
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n);
	size_t done = deliver_buffered(conn, &place);
	bool more = true;
	while (done < total && more && !conn->in.error) {
		if (conn->in.left >= DIRECT_MIN && total - done >= DIRECT_MIN) {
			done += deliver_direct(conn, &place, &more);
		} else {
			more = fill(conn) == IN_BUFFER;
		}
		done += deliver_buffered(conn, &place);
	}
	*delivered = done;
	return done ? 0 : conn->in.error;
}

/* ---- put ---- */

/* Hands the rest of the length and of the frame to the kernel. Returns the bytes of the caller's taken, or -1. */
static ssize_t send_frame(struct tcp_conn *conn, const struct hr_iov_place *place, bool *full)
{
	struct iovec pieces[PIECES_MAX + 1];
	int n = 0;
	if (conn->out.length_left > 0) {
		uint8_t *end = (uint8_t *)&conn->out.length + sizeof conn->out.length;
		pieces[n++] = (struct iovec){ end - conn->out.length_left, conn->out.length_left };
	}
	size_t size;
	n += pieces_from(*place, conn->out.left, pieces + n, PIECES_MAX, &size);
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = (size_t)n };
	ssize_t sent;
	do
		sent = sendmsg(conn->stream, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
		return -1;
	if (sent < 0)
		sent = 0;
	*full = (size_t)sent < size + conn->out.length_left;
	size_t of_length = (size_t)sent < conn->out.length_left ? (size_t)sent : conn->out.length_left;
	conn->out.length_left -= (unsigned)of_length;
	conn->out.left -= (uint32_t)((size_t)sent - of_length);
	return sent - (ssize_t)of_length;
}

static void begin_frame(struct tcp_conn *conn, size_t length)
{
	conn->out.left = length < FRAME_MAX ? (uint32_t)length : FRAME_MAX;
	conn->out.length = htole32(conn->out.left);
	conn->out.length_left = sizeof conn->out.length;
}

/* The peer does not read any more. If it finalized, that it said so may be on its way to the caller still. */
static int error_of_put(struct tcp_conn *conn, int number)
{
	if (!payload_buffered(conn) && !conn->in.error)
		fill(conn);
	payload_buffered(conn);
	return conn->in.error == -ESHUTDOWN ? -ESHUTDOWN : error_of_stream(conn, number);
}

static int tcp_put(void *data, const struct iovec *iov, int n, size_t *accepted)
{
	struct tcp_conn *conn = data;
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n), done = 0;
	bool full = false;
	while (done < total && !full) {
		if (!conn->out.left)
			begin_frame(conn, total - done);
		ssize_t sent = send_frame(conn, &place, &full);
		if (sent < 0 && !done)
			return error_of_put(conn, errno);
		if (sent < 0)
			break; /* the next put tells */
		hr_iov_advance(&place, (size_t)sent);
		done += (size_t)sent;
	}
	conn->out.was_short = done < total;
	*accepted = done;
	return 0;
}

/* ---- the end ---- */

/* True when the goodbye has been handed to the kernel, or cannot be. */
static bool say_goodbye(struct tcp_conn *conn)
{
	if (!conn->out.goodbye_begun) {
		if (conn->out.left)
			return true; /* in the middle of a frame: see above */
		conn->out.goodbye_begun = true;
		conn->out.length = htole32(FRAME_GOODBYE);
		conn->out.length_left = sizeof conn->out.length;
	}
	bool full = false;
	struct hr_iov_place none = hr_iov_begin(NULL, 0);
	while (conn->out.length_left && !full)
		if (send_frame(conn, &none, &full) < 0)
			return true;
	return !conn->out.length_left;
}

/* Reads and drops what has arrived: a socket closed over unread data answers with a reset. True at the end. */
static bool drop_input(struct tcp_conn *conn)
{
	while (!conn->in.error)
		if (fill(conn) <= 0)
			break;
	return conn->in.error;
}

static int tcp_conn_shutdown(void *data)
{
	struct tcp_conn *conn = data;
	if (!conn->out.ended) {
		if (!say_goodbye(conn))
			return drop_input(conn); /* so that a peer that closes too gets rid of its own */
		shutdown(conn->stream, SHUT_WR);
		conn->out.ended = true;
	}
	int unsent = 0;
	if (drop_input(conn) || conn->is_unix) /* what went into a Unix socket lies in the peer's queue */
		return 1;
	return ioctl(conn->stream, SIOCOUTQ, &unsent) < 0 || unsent == 0;
}

/* ---- sleeping: the stream is in the channel's epoll set for both directions ---- */

static int tcp_conn_arm(void *data, bool want_put)
{
	(void)data;
	(void)want_put;
	return 0;
}

static bool has_room(const struct tcp_conn *conn)
{
	struct pollfd entry = { .fd = conn->stream, .events = POLLOUT };
	return poll(&entry, 1, 0) > 0;
}

static bool tcp_conn_pending(void *data, bool want_put)
{
	struct tcp_conn *conn = data;
	if (payload_buffered(conn) || conn->in.error)
		return true;
	fill(conn);
	if (payload_buffered(conn) || conn->in.error)
		return true;
	return want_put && conn->out.was_short && has_room(conn);
}

/* Nothing to take from the descriptor: pending and get look at it themselves. */
static void tcp_conn_event(void *data)
{
	(void)data;
}

const struct hr_transport hr_transport_tcp = {
	.name = "tcp",
	.bit = HR_TRANSPORT_TCP,
	.open = tcp_open,
	.close = tcp_close,
	.reaches = tcp_reaches,
	.conn_open = tcp_conn_open,
	.conn_establish = tcp_conn_establish,
	.conn_shutdown = tcp_conn_shutdown,
	.conn_close = tcp_conn_close,
	.put = tcp_put,
	.get = tcp_get,
	.conn_arm = tcp_conn_arm,
	.conn_pending = tcp_conn_pending,
	.conn_event = tcp_conn_event,
};
