/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tcp transport: the pipe over the stream socket itself, TCP or Unix. Each put sends its bytes as a frame: a
 * length, 4 bytes little-endian, then the bytes. The length is needed only to mark the end: FRAME_GOODBYE in its place
 * says that the peer has finalized. If the stream ends without it, the peer has died. TCP alone cannot distinguish the
 * two, as the kernel closes the sockets of a killed process in order.
 *
 * If the kernel does not accept all bytes of a frame, the next put continues the frame. If the connection is closed in
 * the middle of a frame, FRAME_GOODBYE cannot be sent, and the peer gets -ECONNRESET: its message was cut off.
 *
 * put copies only small messages: copying them after their length is cheaper than a vector of two elements. get reads
 * the rest of a long frame directly into the caller's memory, and in the same system call the next few bytes (lengths
 * and small messages) into a buffer, so that a small message costs one system call.
 *
 * Between loopback addresses the kernel gathers small frames (Nagle's algorithm): while one is not acknowledged, the
 * next ones wait in the kernel and leave as one segment. A segment costs some microseconds, so a window of small
 * messages takes a fraction of the time. The receiver has to acknowledge early, whether it gathers itself or not: if a
 * read finds nothing after reads that found bytes, or if the receiver goes to sleep, it makes the kernel acknowledge.
 * The same system call then delivers the bytes that waited. So bytes wait only for a receiver that does not read.
 * Between hosts they would wait for the network. A side with small kernel buffers (tcp_shares_of) does not gather.
 *
 * With keys (hr_connect_attr_t.cipher) encrypted records replace the frames (secret.h).
 *
 * Memory: the kernel's two buffers and the buffer of struct tcp_conn. If the ring size is KERNEL_SIZES or more, the
 * kernel chooses the sizes of its buffers by the path (tcp_rmem, tcp_wmem). A smaller ring size limits all three
 * (tcp_shares_of).
 *
 * Dead peers. A peer that does not read for hours is alive; a peer whose machine is gone is dead. TCP_USER_TIMEOUT does
 * not distinguish them: it also ends a connection whose peer answers every probe of its closed window. So it is off
 * here. If no data is in flight, the kernel's keep-alive probes detect a dead peer. If data is in flight,
 * tcp_conn_check looks at the time of the last acknowledgement. A stopped peer (SIGSTOP) counts as alive, as its kernel
 * answers.
 */
#include "rdma_channel/tcp/secret.h"

#include "rdma_channel/clock.h"
#include "rdma_channel/iov.h"
#include "rdma_channel/pacing.h"
#include "rdma_channel/transport.h"

#include "rdma_channel/base/copy.h"
#include "rdma_channel/base/log.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define FRAME_GOODBYE 0xffffffffu
#define FRAME_MAX (1u << 30) /* bytes */
#define BUFFER_MAX 32768     /* bytes, of in.buffer */
#define BUFFER_MIN 4096
/* Bytes after a frame that a direct read puts into the buffer: few, as they are copied; and enough to fill the 256
 * bytes that ch3 asks for after a long payload, so that it asks again at once. */
#define BEHIND (256 + sizeof(uint32_t))
#define DIRECT_MIN 4096      /* from this many bytes left of a frame on, they are read directly to the caller */
#define PIECES_MAX 64        /* maximum number of the caller's pieces in one system call */
#define COPIED_MAX 2048      /* maximum size of a message that is copied after its length, bytes */
#define KERNEL_SIZES (1u << 20) /* from this ring size on the kernel sizes its buffers itself */
#define SILENCE_MIN_MS 2000  /* kernels delay answers, and do not answer probes less than half a second apart */
#define IDLE_CALLS 64        /* after this many puts and gets that moved nothing, check_sometimes reads the clock */

struct tcp_conn {
	int stream; /* owned by the channel */
	bool is_unix;
	bool gathers;      /* this side lets the kernel gather small frames, from its first put on */
	bool gathering;    /* it has begun */
	bool acknowledges; /* the peer's kernel may be gathering frames */
	bool owes;         /* acknowledges, and bytes have been read since the last acknowledgement */
	bool armed;   /* conn_arm was called after the last put and get: bytes that arrive raise an event */
	bool drained; /* the last read found nothing more; cleared by an event */
	const struct hr_conn_env *env;
	const char *peer;
	struct hr_secret *secret; /* NULL: in the clear */
	struct {
		uint64_t since; /* the peer has not answered since then, ns; 0: no answer is outstanding */
		uint64_t asked; /* when check_sometimes last checked, coarse ns */
		unsigned idle_calls; /* puts and gets that moved nothing since check_sometimes last read the clock */
		int error; /* -ETIMEDOUT: the peer is lost; bytes that have arrived can be read; 0: not lost */
	} silence;
	struct {
		uint32_t length; /* of the current frame, little-endian */
		unsigned length_left; /* the last length_left bytes of length are still to be sent */
		uint32_t left; /* bytes of the frame that the kernel has not accepted yet */
		bool was_short; /* the last put did not accept all bytes */
		bool goodbye_begun, ended;
	} out;
	struct {
		uint8_t length[4];    /* of the next frame; its first length_have bytes have arrived */
		unsigned length_have;
		uint32_t left; /* bytes of the frame not delivered yet */
		size_t at, end; /* buffer[at..end-1] have arrived and are not delivered */
		int error;      /* error that get returns once the buffer is empty; 0: none */
		uint32_t size;  /* of buffer, bytes */
	} in;
	uint8_t buffer[];
};

/* How a connection's memory is divided, bytes. kernel_receive and kernel_send are 0 if the kernel chooses them. */
struct tcp_shares {
	uint32_t buffer, kernel_receive, kernel_send;
};

static struct tcp_shares tcp_shares_of(uint32_t ring_bytes)
{
	struct tcp_shares shares = { BUFFER_MAX, 0, 0 };
	if (ring_bytes >= KERNEL_SIZES)
		return shares;
	uint32_t buffer = ring_bytes / 4;
	shares.buffer = buffer < BUFFER_MIN ? BUFFER_MIN : buffer > BUFFER_MAX ? BUFFER_MAX : buffer;
	shares.kernel_receive = shares.kernel_send = ring_bytes;
	return shares;
}

static size_t tcp_conn_bytes(void *context, uint32_t ring_bytes)
{
	(void)context;
	struct tcp_shares shares = tcp_shares_of(ring_bytes);
	return sizeof(struct tcp_conn) + shares.buffer + shares.kernel_receive + shares.kernel_send;
}

/* ---- opening and closing ---- */

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
	struct tcp_shares shares = tcp_shares_of(env->ring_bytes);
	struct tcp_conn *conn = malloc(sizeof *conn + shares.buffer);
	if (!conn)
		return -ENOMEM;
	memset(conn, 0, sizeof *conn);
	int error = env->cipher ? hr_secret_open(env->cipher, &conn->secret) : 0;
	if (error) {
		free(conn);
		return error;
	}
	conn->stream = -1;
	conn->env = env;
	conn->peer = env->peer;
	conn->in.size = shares.buffer;
	env->stats->memory_bytes = tcp_conn_bytes(context, env->ring_bytes) + (conn->secret ? hr_secret_bytes() : 0);
	own->len = 0;
	own->n_fds = 0;
	*out = conn;
	return 0;
}

static void set_stream_option(const struct tcp_conn *conn, int level, int name, int value)
{
	if (setsockopt(conn->stream, level, name, &value, sizeof value) < 0)
		hr_log(HR_LOG_WARN, "tcp: connection to %s: setsockopt %d/%d: %s", conn->peer, level, name,
		       strerror(errno));
}

static int tcp_conn_establish(void *data, const struct hr_half *peer, int stream)
{
	struct tcp_conn *conn = data;
	if (peer->len != 0 || peer->n_fds != 0) {
		hr_log(HR_LOG_ERROR, "tcp: peer %s: invalid description of its half of the connection", conn->peer);
		return -EPROTO;
	}
	int domain = 0;
	socklen_t len = sizeof domain;
	getsockopt(stream, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	conn->is_unix = domain == AF_UNIX;
	conn->stream = stream;
	if (!conn->is_unix)
		set_stream_option(conn, IPPROTO_TCP, TCP_USER_TIMEOUT, 0); /* see "Dead peers" above */
	/* The kernel doubles the values of SO_RCVBUF and SO_SNDBUF, for its own bookkeeping. */
	struct tcp_shares shares = tcp_shares_of(conn->env->ring_bytes);
	conn->acknowledges = !conn->is_unix && !conn->secret && hr_stream_is_local(stream);
	conn->owes = conn->acknowledges; /* the peer's last message of the set-up, which the channel reads */
	/* A socket with a small buffer has no room until its frames are acknowledged, so each acknowledgement would be
	 * an event. */
	conn->gathers = conn->acknowledges && !shares.kernel_send;
	if (shares.kernel_receive)
		set_stream_option(conn, SOL_SOCKET, SO_RCVBUF, (int)shares.kernel_receive / 2);
	if (shares.kernel_send)
		set_stream_option(conn, SOL_SOCKET, SO_SNDBUF, (int)shares.kernel_send / 2);
	return 0;
}

static void tcp_conn_close(void *data)
{
	struct tcp_conn *conn = data;
	hr_secret_close(conn->secret);
	free(conn);
}

/* Returns the error of put or get for the errno value of a failed send or read. */
static int error_of_stream(const struct tcp_conn *conn, int number)
{
	if (number == ECONNRESET || number == EPIPE)
		return -ECONNRESET;
	hr_log(HR_LOG_ERROR, "tcp: connection to %s: %s", conn->peer, strerror(number));
	return number == ETIMEDOUT || number == EHOSTUNREACH || number == ENETUNREACH ? -ETIMEDOUT : -ECONNRESET;
}

/* ---- detecting a dead peer ---- */

/*
 * Returns whether an answer of the peer is outstanding: to data sent after its last acknowledgement, or, if no data is
 * in flight because the peer's window is closed, to a probe of that window (RFC 9293, 3.8.6.1). The kernel sends
 * unacknowledged data again at growing intervals. If the next sending is overdue, the kernel has no route to the peer;
 * that counts as outstanding too.
 */
static bool owes_answer(const struct tcp_info *info)
{
	if (!info->tcpi_unacked)
		return info->tcpi_probes > 0;
	return info->tcpi_last_ack_recv > info->tcpi_last_data_sent ||
	       info->tcpi_last_data_sent > info->tcpi_rto / 1000 + 100;
}

/*
 * Checks by TCP_INFO whether the peer still answers. Returns 1 if bytes are still to be acknowledged or sent, 0 if none
 * are, -ETIMEDOUT if an answer has been outstanding for timeout_ms. A peer that answers is alive, even if it accepts no
 * data for a long time.
 */
static int ask_kernel(struct tcp_conn *conn)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof info;
	uint64_t now = hr_now_ns(), since = conn->silence.since;
	conn->silence.since = 0;
	if (conn->is_unix || getsockopt(conn->stream, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return 0;
	if (!info.tcpi_unacked && !info.tcpi_notsent_bytes)
		return 0;
	if (now - info.tcpi_last_ack_recv * HR_NS_PER_MS > since)
		since = 0; /* the peer has answered in the meantime */
	if (!since && !owes_answer(&info))
		return 1;
	conn->silence.since = since ? since : now;
	uint64_t limit = conn->env->timeout_ms < SILENCE_MIN_MS ? SILENCE_MIN_MS : conn->env->timeout_ms;
	if (now - conn->silence.since < limit * HR_NS_PER_MS)
		return 1;
	hr_log(HR_LOG_ERROR, "tcp: connection to %s: no answer for %" PRIu64 " ms", conn->peer, limit);
	return -ETIMEDOUT;
}

static int tcp_conn_check(void *data)
{
	struct tcp_conn *conn = data;
	if (conn->in.error || conn->silence.error)
		return conn->in.error ? conn->in.error : conn->silence.error;
	int state = ask_kernel(conn);
	if (state < 0)
		conn->silence.error = state;
	return state;
}

/* Call this after a put or get that moved nothing. Checks the peer now and then, for a caller that never sleeps. */
static void check_sometimes(struct tcp_conn *conn)
{
	if (++conn->silence.idle_calls < IDLE_CALLS)
		return;
	conn->silence.idle_calls = 0;
	uint64_t now = hr_now_coarse_ns();
	if (now - conn->silence.asked < conn->env->timeout_ms * HR_NS_PER_MS / 4)
		return;
	conn->silence.asked = now;
	tcp_conn_check(conn);
}

/* ---- get ---- */

/* Makes the kernel acknowledge what was read, if no frame of this side has done that. */
static void acknowledge(struct tcp_conn *conn)
{
	conn->owes = false;
	set_stream_option(conn, IPPROTO_TCP, TCP_QUICKACK, 1);
	/* Later reads do not acknowledge: often an answer does. */
	set_stream_option(conn, IPPROTO_TCP, TCP_QUICKACK, 0);
}

/* recvmsg without waiting. If nothing has arrived, but the peer's kernel may be gathering bytes, acknowledges and looks
 * again. */
static ssize_t receive(struct tcp_conn *conn, struct iovec *pieces, int n)
{
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = (size_t)n };
	for (;;) {
		ssize_t got = n == 1 ? recv(conn->stream, pieces->iov_base, pieces->iov_len, MSG_DONTWAIT) :
				       recvmsg(conn->stream, &message, MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && conn->owes && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			acknowledge(conn);
			continue;
		}
		conn->owes |= conn->acknowledges && got > 0;
		return got;
	}
}

/* Evaluates the result of a read. Returns the number of bytes, 0 if the read would block, or -1 at the end of the
 * stream or after an error, which it stores in in.error. */
static ssize_t judge_read(struct tcp_conn *conn, ssize_t got)
{
	if (got > 0)
		return got;
	conn->drained = true;
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	conn->in.error = got == 0 ? -ECONNRESET : error_of_stream(conn, errno);
	return -1;
}

/* Reads into the empty buffer. Returns as judge_read. */
static ssize_t fill(struct tcp_conn *conn)
{
	if (conn->in.error)
		return -1;
	ssize_t got = judge_read(conn, receive(conn, &(struct iovec){ conn->buffer, conn->in.size }, 1));
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
		hr_log(HR_LOG_ERROR, "tcp: peer %s: protocol violation: invalid frame length", conn->peer);
		return -EPROTO;
	}
	conn->in.left = length;
	return 0;
}

/* If a length comes next, takes it from the buffer. Returns whether the buffer then contains payload. */
static bool payload_buffered(struct tcp_conn *conn)
{
	while (!conn->in.left && conn->in.at < conn->in.end) {
		conn->in.length[conn->in.length_have++] = conn->buffer[conn->in.at++];
		if (conn->in.length_have < sizeof conn->in.length)
			continue;
		int error = on_length(conn);
		if (error) { /* bytes after a goodbye or an invalid length have no meaning: drop them */
			conn->in.error = error;
			conn->in.at = conn->in.end = 0;
		}
	}
	return conn->in.at < conn->in.end;
}

/* Delivers as many bytes from the buffer as there are and as fit. */
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
		memcpy(to, conn->buffer + conn->in.at, count);
		conn->in.at += count;
		conn->in.left -= (uint32_t)count;
		hr_iov_advance(place, count);
		delivered += count;
	}
	return delivered;
}

/* Stores the caller's pieces from `place` on, at most limit bytes and max pieces. Returns their number; *size: their
 * sum, bytes. */
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

/* Reads the rest of a long frame directly to the caller, and up to BEHIND bytes after the frame into the buffer, which
 * must be empty. Returns the number of bytes delivered. *more: the read was complete, so more bytes may have
 * arrived. */
static size_t deliver_direct(struct tcp_conn *conn, struct hr_iov_place *place, bool *more)
{
	struct iovec pieces[PIECES_MAX + 1];
	size_t asked, to_caller;
	int n = pieces_from(*place, conn->in.left, pieces, PIECES_MAX, &to_caller);
	asked = to_caller;
	if (to_caller == conn->in.left) {
		pieces[n++] = (struct iovec){ conn->buffer, BEHIND };
		asked += BEHIND;
	}
	ssize_t got = judge_read(conn, receive(conn, pieces, n));
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

/* Reads encrypted bytes into the buffer. Returns whether any have arrived. */
static bool fill_secret(struct tcp_conn *conn)
{
	int got = hr_secret_fill(conn->secret, conn->stream);
	if (got == 1)
		return true;
	conn->drained = true;
	if (got)
		conn->in.error = got < 0 ? got : error_of_stream(conn, got);
	return false;
}

/* Reads and delivers from encrypted records, as deliver_buffered and deliver_direct do from frames. */
static size_t deliver_secret(struct tcp_conn *conn, struct hr_iov_place *place, size_t total)
{
	size_t done = 0, delivered;
	for (;;) {
		int error = hr_secret_deliver(conn->secret, place, &delivered);
		done += delivered;
		if (error == -EPROTO && conn->in.error != error)
			hr_log(HR_LOG_ERROR,
			       "tcp: connection to %s: a record does not authenticate: it was changed on its way, or the "
			       "peer has another key",
			       conn->peer);
		if (error)
			conn->in.error = error;
		if (error || done == total || conn->in.error || !fill_secret(conn))
			return done;
	}
}

/* Returns whether get would deliver a byte, or report an error of the encrypted stream, without a read. */
static bool has_payload(struct tcp_conn *conn)
{
	return conn->secret ? hr_secret_ready(conn->secret) : payload_buffered(conn);
}

/* Reads bytes that have arrived. Call it only if has_payload is false. */
static void look(struct tcp_conn *conn)
{
	if (conn->secret && !conn->in.error)
		fill_secret(conn);
	else if (!conn->secret)
		fill(conn);
}

static int tcp_get(void *data, const struct iovec *iov, int n, size_t *delivered)
{
	struct tcp_conn *conn = data;
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n);
	conn->armed = false;
	size_t done = conn->secret ? deliver_secret(conn, &place, total) : deliver_buffered(conn, &place);
	bool more = !done || conn->in.left; /* after a whole frame a read would often find nothing */
	while (!conn->secret && done < total && more && !conn->in.error) {
		bool is_long = conn->in.left >= DIRECT_MIN;
		if (is_long && total - done >= DIRECT_MIN) {
			done += deliver_direct(conn, &place, &more);
		} else if (is_long && done) {
			/* Only few bytes fit, and what is read into the buffer is copied. When the caller has seen the
			 * bytes delivered, it may have a place for the frame. */
			break;
		} else {
			more = fill(conn) == (ssize_t)conn->in.size;
		}
		done += deliver_buffered(conn, &place);
	}
	if (!done)
		check_sometimes(conn);
	*delivered = done;
	if (done)
		return 0;
	return conn->in.error ? conn->in.error : conn->silence.error; /* nothing more has arrived */
}

/* ---- put ---- */

/* Sends the rest of the length and of the frame. Returns how many of the caller's bytes the kernel accepted, or -1.
 * *full: the kernel did not accept everything. */
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

/* Returns the error of put after a failed send: the peer no longer reads. If the peer has finalized, its goodbye may
 * have arrived and not been read yet. */
static int error_of_put(struct tcp_conn *conn, int number)
{
	if (conn->secret) {
		look(conn);
		return hr_secret_is_final(conn->secret) ? -ESHUTDOWN : error_of_stream(conn, number);
	}
	if (!payload_buffered(conn) && !conn->in.error)
		fill(conn);
	payload_buffered(conn);
	return conn->in.error == -ESHUTDOWN ? -ESHUTDOWN : error_of_stream(conn, number);
}

/* Copies the pieces behind one another. */
static void gather(uint8_t *to, const struct iovec *iov, int n)
{
	for (int i = 0; i < n; to += iov[i].iov_len, i++)
		hr_copy(to, iov[i].iov_base, iov[i].iov_len);
}

/*
 * Copies a small message of total bytes after its length and sends both in one piece. If the kernel accepts only a
 * part, the frame has begun, and the next put continues it.
 */
static int put_copied(struct tcp_conn *conn, const struct iovec *iov, int n, size_t total, size_t *accepted)
{
	uint8_t bytes[sizeof conn->out.length + COPIED_MAX];
	size_t size = sizeof conn->out.length + total;
	uint32_t length = htole32((uint32_t)total);
	memcpy(bytes, &length, sizeof length);
	gather(bytes + sizeof length, iov, n);
	ssize_t sent;
	do
		sent = send(conn->stream, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent == (ssize_t)size) {
		*accepted = total;
		conn->out.was_short = false;
		return 0;
	}
	if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
		return error_of_put(conn, errno);
	if (sent > 0) {
		size_t of_length = (size_t)sent < sizeof length ? (size_t)sent : sizeof length;
		begin_frame(conn, total);
		conn->out.length_left -= (unsigned)of_length;
		conn->out.left -= (uint32_t)((size_t)sent - of_length);
		*accepted = (size_t)sent - of_length;
	}
	conn->out.was_short = true;
	check_sometimes(conn);
	return 0;
}

static int put_secret(struct tcp_conn *conn, const struct iovec *iov, int n, size_t *accepted)
{
	int error = hr_secret_put(conn->secret, conn->stream, hr_iov_begin(iov, n), accepted);
	if (error)
		return error_of_put(conn, error);
	conn->out.was_short = *accepted < hr_iov_total(iov, n);
	if (!*accepted)
		check_sometimes(conn);
	return 0;
}

/* Not earlier: the channel, which reads the messages of the set-up, does not acknowledge at once. */
static void begin_gathering(struct tcp_conn *conn)
{
	conn->gathering = true;
	set_stream_option(conn, IPPROTO_TCP, TCP_NODELAY, 0);
}

static int tcp_put(void *data, const struct iovec *iov, int n, size_t *accepted)
{
	struct tcp_conn *conn = data;
	conn->armed = false;
	if (conn->in.error == -ETIMEDOUT || conn->silence.error)
		return -ETIMEDOUT;
	*accepted = 0;
	if (conn->secret)
		return put_secret(conn, iov, n, accepted);
	if (__builtin_expect(conn->gathers != conn->gathering, 0))
		begin_gathering(conn);
	size_t total = hr_iov_total(iov, n), done = 0;
	if (total - 1 < COPIED_MAX && !conn->out.left)
		return put_copied(conn, iov, n, total, accepted);
	struct hr_iov_place place = hr_iov_begin(iov, n);
	bool full = false;
	while (done < total && !full) {
		if (!conn->out.left)
			begin_frame(conn, total - done);
		ssize_t sent = send_frame(conn, &place, &full);
		if (sent < 0 && !done)
			return error_of_put(conn, errno);
		if (sent < 0)
			break; /* the next put returns the error */
		hr_iov_advance(&place, (size_t)sent);
		done += (size_t)sent;
	}
	conn->out.was_short = done < total;
	if (!done)
		check_sometimes(conn);
	*accepted = done;
	return 0;
}

/* ---- the end ---- */

/* Sends the goodbye. Returns true if the kernel has accepted it, or if it can no longer be sent. */
static bool say_goodbye(struct tcp_conn *conn)
{
	if (conn->secret)
		return hr_secret_finish(conn->secret, conn->stream);
	if (!conn->out.goodbye_begun) {
		if (conn->out.left)
			return true; /* in the middle of a frame no goodbye can be sent: see the top of this file */
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

/* Reads and drops the bytes that have arrived: if a socket is closed with unread data, the kernel sends a reset.
 * Returns true at the end of the stream. */
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
	if (conn->silence.error)
		return 1;
	if (!conn->out.ended) {
		if (!say_goodbye(conn))
			return drop_input(conn); /* make room: the peer may be closing too, and sending its goodbye */
		shutdown(conn->stream, SHUT_WR);
		conn->out.ended = true;
	}
	int unsent = 0;
	if (drop_input(conn) || conn->is_unix) /* bytes sent over a Unix socket are in the peer's queue already */
		return 1;
	return ioctl(conn->stream, SIOCOUTQ, &unsent) < 0 || unsent == 0;
}

/* ---- sleeping: the stream is in the channel's epoll set for both directions ---- */

static int tcp_conn_arm(void *data, bool want_put)
{
	struct tcp_conn *conn = data;
	(void)want_put;
	conn->armed = true;
	if (conn->owes)
		acknowledge(conn);
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
	if (has_payload(conn) || conn->in.error || conn->silence.error)
		return true;
	/* If armed and drained, bytes that arrived since then raise an event, which has not been handled yet: no read
	 * is needed. */
	if (!conn->armed || !conn->drained)
		look(conn);
	if (has_payload(conn) || conn->in.error)
		return true;
	return want_put && conn->out.was_short && has_room(conn);
}

/* Reads nothing from the stream: conn_pending and get do. */
static void tcp_conn_event(void *data)
{
	struct tcp_conn *conn = data;
	conn->drained = false;
}

const struct hr_transport hr_transport_tcp = {
	.name = "tcp",
	.bit = HR_TRANSPORT_TCP,
	.puts_on_stream = true,
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
	.conn_check = tcp_conn_check,
	.conn_bytes = tcp_conn_bytes,
};
