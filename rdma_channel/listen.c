/* SPDX-License-Identifier: BSD-3-Clause */
/* Incoming peers: the listeners, and accepted streams until a connection of this process claims them. */
#include "config.h"

#include "rdma_channel/impl.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The system lowers this to net.core.somaxconn. If the queue is full, a peer must retry, which takes milliseconds over
 * a Unix socket and a second over TCP. */
#define LISTEN_BACKLOG 65535
#define KEEPALIVE_PROBES 3
#define SMALL_RING (128u * 1024)

static void set_option(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof value) < 0)
		hr_log(HR_LOG_WARN, "setsockopt %d/%d on a stream: %s", level, name, strerror(errno));
}

void hr_stream_prepare(int fd, bool is_unix, uint32_t timeout_ms)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && !(flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (is_unix)
		return;
	/* The kernel detects a silent peer: by TCP_USER_TIMEOUT if data is unacknowledged, by keep-alive probes if the
	 * stream is idle. The probes start after half of timeout_ms and share the other half. Their times are whole
	 * seconds, at least one. */
	int half = (int)(timeout_ms / 2000) ? (int)(timeout_ms / 2000) : 1;
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, half);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, half / KEEPALIVE_PROBES ? half / KEEPALIVE_PROBES : 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)timeout_ms);
}

void hr_stream_fit_segments(int fd, uint32_t ring_bytes)
{
	if (ring_bytes < SMALL_RING)
		set_option(fd, IPPROTO_TCP, TCP_MAXSEG, (int)(ring_bytes / 8));
}

/* ---- listeners ---- */

static int listen_on(struct hr_channel *channel, struct hr_watch *watch, const struct sockaddr *address, socklen_t len)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int off = 0;
	if (address->sa_family == AF_INET6) /* IPv4 peers may connect to the IPv6 socket too */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (address->sa_family != AF_UNIX) {
		hr_stream_fit_segments(fd, channel->ring_bytes);
		hr_stream_unpace_listener(fd, channel->congestion);
	}
	int error = 0;
	if (bind(fd, address, len) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		error = -errno;
	else
		error = hr_watch_add(channel, watch, fd);
	if (error)
		close(fd);
	return error;
}

static int open_unix_listener(struct hr_channel *channel)
{
	/* Bind without a name: the kernel chooses a name in the abstract namespace, so no file is made. */
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sa_family_t);
	int error = listen_on(channel, &channel->unix_listener, (struct sockaddr *)&address, len);
	if (error) {
		hr_log(HR_LOG_ERROR, "hr_channel_init: cannot listen on a Unix socket: %s", strerror(-error));
		return error;
	}
	len = sizeof address;
	if (getsockname(channel->unix_listener.fd, (struct sockaddr *)&address, &len) < 0)
		return -errno;
	size_t name_len = len - offsetof(struct sockaddr_un, sun_path);
	if (name_len < 2 || name_len - 1 > HR_UNIX_NAME_MAX)
		return -ENAMETOOLONG;
	channel->self.unix_len = (uint8_t)(name_len - 1);
	memcpy(channel->self.unix_name, address.sun_path + 1, name_len - 1);
	return 0;
}

static int open_tcp_listener(struct hr_channel *channel)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in any4 = { .sin_family = AF_INET };
	int error = listen_on(channel, &channel->tcp_listener, (struct sockaddr *)&any6, sizeof any6);
	if (error)
		error = listen_on(channel, &channel->tcp_listener, (struct sockaddr *)&any4, sizeof any4);
	struct sockaddr_storage bound;
	socklen_t len = sizeof bound;
	if (!error && getsockname(channel->tcp_listener.fd, (struct sockaddr *)&bound, &len) < 0)
		error = -errno;
	if (error) {
		hr_log(HR_LOG_ERROR, "hr_channel_init: cannot listen on a TCP socket: %s", strerror(-error));
		return error;
	}
	/* sin_port and sin6_port have the same offset. */
	channel->self.port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
	channel->self.n_addresses = hr_host_addresses(channel->self.addresses, HR_ADDRESSES_MAX);
	return 0;
}

int hr_listen_open(struct hr_channel *channel)
{
	bool tcp_needed = false, unix_useful = false;
	for (int i = 0; i < channel->n_opened; i++) {
		tcp_needed |= !channel->opened[i].transport->needs_unix;
		unix_useful |= channel->opened[i].transport->bit != HR_TRANSPORT_TCP;
	}
	int error = unix_useful ? open_unix_listener(channel) : 0;
	if (!error && tcp_needed)
		error = open_tcp_listener(channel);
	return error;
}

bool hr_stream_is_friend(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof peer;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	return peer.uid == geteuid() || peer.uid == 0 || geteuid() == 0;
}

/* Closes a pending stream. hr_pending_reap frees it once no event can point to it. */
static void let_die(struct hr_pending *pending)
{
	struct hr_channel *channel = pending->channel;
	if (pending->dead)
		return;
	TAILQ_REMOVE(pending->has_hello ? &channel->waiting : &channel->silent, pending, place);
	TAILQ_INSERT_TAIL(&channel->dead, pending, place);
	pending->dead = true;
	channel->n_pending--;
	/* An event that was taken already finds it dead; further events do not come. */
	hr_watch_remove(channel, &pending->watch);
	hr_wireup_close(&pending->wireup);
}

static void add_pending(struct hr_channel *channel, int fd, bool is_unix)
{
	struct hr_pending *pending = calloc(1, sizeof *pending);
	if (!pending) {
		close(fd);
		return;
	}
	hr_stream_prepare(fd, is_unix, channel->timeout_ms);
	if (!is_unix)
		hr_stream_accepted(fd, channel->congestion);
	pending->channel = channel;
	pending->deadline = hr_now_ns() + channel->timeout_ms * HR_NS_PER_MS;
	pending->watch = (struct hr_watch){ .kind = HR_WATCH_PENDING, .owner = pending, .fd = -1 };
	hr_wireup_init(&pending->wireup, fd, is_unix);
	TAILQ_INSERT_TAIL(&channel->silent, pending, place);
	channel->n_pending++;
	if (hr_watch_add(channel, &pending->watch, fd) < 0)
		let_die(pending);
	else
		hr_pending_step(pending);
}

/* Makes room by dropping the oldest stream that has sent no hello: a peer of this library sends its hello at once. */
static bool drop_silent(struct hr_channel *channel, const char *why)
{
	struct hr_pending *oldest = TAILQ_FIRST(&channel->silent);
	hr_log_once(HR_LOG_WARN, "%s; dropping %s", why, oldest ? "the oldest that sent no hello" : "the latest");
	if (!oldest)
		return false;
	let_die(oldest);
	return true;
}

static bool have_room(struct hr_channel *channel)
{
	return channel->n_pending < channel->pending_max ||
	       drop_silent(channel, "HEADRACE_PENDING_MAX streams wait for a connection of this process");
}

void hr_listen_accept(struct hr_channel *channel, struct hr_watch *listener)
{
	bool is_unix = listener == &channel->unix_listener;
	for (;;) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			if (errno == EAGAIN || errno == EWOULDBLOCK)
				return;
			if ((errno == EMFILE || errno == ENFILE) &&
			    drop_silent(channel, "no descriptors left for incoming streams"))
				continue;
			hr_log_once(HR_LOG_ERROR, "accept: %s", strerror(errno));
			channel->accept_again = true; /* the listener raises no further edge-triggered event */
			return;
		}
		if (is_unix && !hr_stream_is_friend(fd)) {
			hr_log(HR_LOG_WARN, "refused a connection from a process of another user");
			close(fd);
		} else if (!have_room(channel)) {
			close(fd);
		} else {
			add_pending(channel, fd, is_unix);
		}
	}
}

void hr_listen_accept_all(struct hr_channel *channel)
{
	channel->accept_again = false;
	if (channel->unix_listener.fd >= 0)
		hr_listen_accept(channel, &channel->unix_listener);
	if (channel->tcp_listener.fd >= 0)
		hr_listen_accept(channel, &channel->tcp_listener);
}

/* ---- accepted streams ---- */

static struct hr_conn *conn_for(const struct hr_channel *channel, const uint8_t uid[HR_UID_BYTES])
{
	struct hr_conn *conn;
	TAILQ_FOREACH(conn, &channel->conns, all)
		if (!memcmp(conn->peer.uid, uid, HR_UID_BYTES))
			return conn;
	return NULL;
}

static void hand_over(struct hr_pending *pending, struct hr_conn *conn)
{
	hr_conn_adopt(conn, &pending->wireup, &pending->watch, &pending->hello);
	let_die(pending);
	hr_conn_step(conn);
}

static void refuse(struct hr_pending *pending, const char *why)
{
	hr_log(HR_LOG_WARN, "refused a connection from a peer: %s", why);
	let_die(pending);
}

/* Tells the peer to use the stream that this side opened. If the kernel does not accept the message, the peer's set-up
 * times out. */
static void yield_to_ours(struct hr_pending *pending)
{
	hr_wireup_queue(&pending->wireup, HR_WIRE_YIELD, NULL, 0, NULL, 0);
	hr_wireup_flush(&pending->wireup);
	let_die(pending);
}

/* Checks the hello of an incoming peer. Returns the fault as a text, NULL if none. */
static const char *fault_of_hello(struct hr_pending *pending, const struct hr_wire_message *message)
{
	struct hr_identity peer;
	if (message->kind != HR_WIRE_HELLO || message->len < sizeof pending->hello)
		return "it did not send a hello";
	memcpy(&pending->hello, message->body, sizeof pending->hello);
	if (memcmp(pending->hello.receiver, pending->channel->self.uid, HR_UID_BYTES))
		return "it does not have this channel's card";
	size_t len = message->len - sizeof pending->hello;
	if (len != le32toh(pending->hello.card_len) || len > HR_CARD_MAX)
		return "its hello has the wrong length";
	pending->card.len = (uint32_t)len;
	memcpy(pending->card.data, (const uint8_t *)message->body + sizeof pending->hello, len);
	if (hr_card_decode(&pending->card, &peer) || memcmp(peer.uid, pending->hello.sender, HR_UID_BYTES))
		return "the card in its hello is invalid, or another channel's";
	return NULL;
}

/* Returns 1 if the hello has arrived and is valid, 0 if not yet or if the stream was closed. */
static int read_hello(struct hr_pending *pending)
{
	struct hr_channel *channel = pending->channel;
	struct hr_wire_message message;
	const char *reason;
	int got = hr_wireup_receive(&pending->wireup, &message, &reason);
	if (got == 0)
		return 0;
	if (got == -ECONNRESET && pending->wireup.in.have == 0) { /* the peer uses this side's stream, or gave up */
		let_die(pending);
		return 0;
	}
	if (got > 0)
		reason = fault_of_hello(pending, &message);
	if (reason) {
		refuse(pending, reason);
		return 0;
	}
	TAILQ_REMOVE(&channel->silent, pending, place);
	TAILQ_INSERT_TAIL(&channel->waiting, pending, place);
	pending->has_hello = true;
	pending->deadline = hr_now_ns() + channel->timeout_ms * HR_NS_PER_MS;
	return 1;
}

/* Closes a waiting stream that has ended: the peer has given up, and may connect again. The stream's end may have
 * arrived together with the hello, and then raises no event of its own. */
static void check_waiting(struct hr_pending *pending)
{
	char byte;
	ssize_t n = recv(pending->wireup.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
		let_die(pending);
}

void hr_pending_step(struct hr_pending *pending)
{
	struct hr_channel *channel = pending->channel;
	if (!pending->dead && pending->has_hello)
		check_waiting(pending);
	if (pending->dead || pending->has_hello || !read_hello(pending))
		return;
	struct hr_conn *conn = conn_for(channel, pending->hello.sender);
	if (!conn) { /* keep it until the caller calls hr_channel_connect */
		check_waiting(pending);
		channel->incoming_news |= !pending->dead;
		return;
	}
	switch (hr_conn_meets(conn)) {
	case HR_MEETING_ADOPT:
		hand_over(pending, conn);
		break;
	case HR_MEETING_YIELD:
		yield_to_ours(pending);
		break;
	case HR_MEETING_LATER:
		check_waiting(pending);
		break;
	case HR_MEETING_REFUSE:
		refuse(pending, "a connection to it is being set up already");
		break;
	}
}

bool hr_pending_waits(struct hr_channel *channel, const uint8_t uid[HR_UID_BYTES])
{
	struct hr_pending *pending = TAILQ_FIRST(&channel->waiting), *next;
	for (; pending; pending = next) {
		next = TAILQ_NEXT(pending, place);
		if (memcmp(pending->hello.sender, uid, HR_UID_BYTES))
			continue;
		check_waiting(pending);
		if (!pending->dead)
			return true;
	}
	return false;
}

bool hr_pending_claim(struct hr_conn *conn)
{
	struct hr_pending *pending;
	TAILQ_FOREACH(pending, &conn->channel->waiting, place) {
		if (memcmp(pending->hello.sender, conn->peer.uid, HR_UID_BYTES))
			continue;
		hand_over(pending, conn);
		return true;
	}
	return false;
}

int hr_channel_incoming(hr_channel_t *channel, hr_card_t *card)
{
	struct hr_pending *pending;
	if (channel->forked)
		return 0;
	hr_channel_step(channel);
	TAILQ_FOREACH(pending, &channel->waiting, place) {
		if (pending->told || conn_for(channel, pending->hello.sender))
			continue;
		pending->told = true;
		if (channel->flags & HR_CHANNEL_PATIENT)
			pending->deadline = hr_now_ns() + channel->timeout_ms * HR_NS_PER_MS;
		*card = pending->card;
		return 1;
	}
	channel->incoming_news = false;
	return 0;
}

/* Closes the streams of one list that are past their deadline. A patient channel closes only those that
 * hr_channel_incoming has returned: the caller may not have called the channel while the others waited. */
static void let_late_die(struct hr_channel *channel, struct hr_pending_list *list, uint64_t now)
{
	struct hr_pending *pending = TAILQ_FIRST(list), *next;
	bool patient = channel->flags & HR_CHANNEL_PATIENT;
	for (; pending && (patient || now >= pending->deadline); pending = next) {
		next = TAILQ_NEXT(pending, place);
		if (now >= pending->deadline && (!patient || pending->told))
			let_die(pending);
	}
}

void hr_pending_reap(struct hr_channel *channel)
{
	if (channel->n_pending) {
		uint64_t now = hr_now_coarse_ns();
		let_late_die(channel, &channel->silent, now);
		let_late_die(channel, &channel->waiting, now);
	}
	while (!TAILQ_EMPTY(&channel->dead)) {
		struct hr_pending *pending = TAILQ_FIRST(&channel->dead);
		TAILQ_REMOVE(&channel->dead, pending, place);
		free(pending);
	}
}

void hr_listen_close(struct hr_channel *channel)
{
	while (!TAILQ_EMPTY(&channel->silent))
		let_die(TAILQ_FIRST(&channel->silent));
	while (!TAILQ_EMPTY(&channel->waiting))
		let_die(TAILQ_FIRST(&channel->waiting));
	hr_pending_reap(channel);
	struct hr_watch *listeners[] = { &channel->unix_listener, &channel->tcp_listener };
	for (int i = 0; i < 2; i++) {
		int fd = listeners[i]->fd;
		hr_watch_remove(channel, listeners[i]);
		if (fd >= 0)
			close(fd);
	}
}
