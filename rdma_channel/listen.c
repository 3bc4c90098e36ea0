/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that come to us: the listeners, and accepted streams until a connection of ours claims them. */
#include "config.h"

#include "rdma_channel/impl.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN_BACKLOG 128
#define KEEPALIVE_PROBES 3

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
	/* Silence is noticed by the kernel: unacknowledged data by the user time-out, an idle line by probes after half
	 * of the time, the rest of it divided among them. Whole seconds, at least one. */
	int half = (int)(timeout_ms / 2000) ? (int)(timeout_ms / 2000) : 1;
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, half);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, half / KEEPALIVE_PROBES ? half / KEEPALIVE_PROBES : 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)timeout_ms);
}

/* ---- listeners ---- */

static int listen_on(struct hr_channel *channel, struct hr_watch *watch, const struct sockaddr *address, socklen_t len)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int off = 0;
	if (address->sa_family == AF_INET6) /* IPv4 peers may come to the IPv6 socket too */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
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
	/* Bound without a name: the kernel chooses one in the abstract namespace, so nothing lies in a file system. */
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
	/* The port lies at the same place in both kinds of address. */
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

static void add_pending(struct hr_channel *channel, int fd, bool is_unix)
{
	struct hr_pending *pending = calloc(1, sizeof *pending);
	if (!pending) {
		close(fd);
		return;
	}
	hr_stream_prepare(fd, is_unix, channel->timeout_ms);
	pending->channel = channel;
	pending->deadline = hr_now_ns() + channel->timeout_ms * HR_NS_PER_MS;
	pending->watch = (struct hr_watch){ HR_WATCH_PENDING, pending, -1 };
	hr_wireup_init(&pending->wireup, fd, is_unix);
	pending->next = channel->pending;
	channel->pending = pending;
	if (hr_watch_add(channel, &pending->watch, fd) < 0)
		pending->dead = true;
	else
		hr_pending_step(pending);
}

/* Makes room for one more: the oldest that has not even said hello must go, as a peer of ours says it at once. */
static bool have_room(struct hr_channel *channel)
{
	int n = 0;
	struct hr_pending *oldest = NULL;
	for (struct hr_pending *p = channel->pending; p; p = p->next) {
		if (p->dead)
			continue;
		n++;
		if (!p->has_hello)
			oldest = p;
	}
	if (n < HR_PENDING_MAX)
		return true;
	hr_log(HR_LOG_WARN, "more than %d streams wait for a connection of this process; dropped one", HR_PENDING_MAX);
	if (oldest)
		oldest->dead = true;
	return oldest;
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
			hr_log_once(HR_LOG_ERROR, "accept: %s", strerror(errno));
			channel->accept_again = true; /* its edge is gone */
			return;
		}
		if (is_unix && !hr_stream_is_friend(fd)) {
			hr_log(HR_LOG_WARN, "refused a stream from a process of another user");
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

static struct hr_conn *conn_for(const struct hr_pending *pending)
{
	for (struct hr_conn *conn = pending->channel->conns; conn; conn = conn->next)
		if (!memcmp(conn->peer.uid, pending->hello.sender, HR_UID_BYTES))
			return conn;
	return NULL;
}

static void hand_over(struct hr_pending *pending, struct hr_conn *conn)
{
	hr_watch_move(pending->channel, &conn->stream_watch, &pending->watch);
	hr_conn_adopt(conn, &pending->wireup, &pending->hello);
	pending->dead = true;
	hr_conn_step(conn);
}

static void refuse(struct hr_pending *pending, const char *why)
{
	hr_log(HR_LOG_WARN, "refused a stream from a peer: %s", why);
	pending->dead = true;
}

/* 1: the hello is there; 0: not yet, or refused. */
static int read_hello(struct hr_pending *pending)
{
	struct hr_wire_message message;
	const char *reason;
	int got = hr_wireup_receive(&pending->wireup, &message, &reason);
	if (got < 0) {
		refuse(pending, reason);
		return 0;
	}
	if (got == 0)
		return 0;
	if (message.kind != HR_WIRE_HELLO || message.len != sizeof pending->hello) {
		refuse(pending, "it did not say hello");
		return 0;
	}
	memcpy(&pending->hello, message.body, sizeof pending->hello);
	if (memcmp(pending->hello.receiver, pending->channel->self.uid, HR_UID_BYTES)) {
		refuse(pending, "it does not hold this process's card");
		return 0;
	}
	pending->has_hello = true;
	return 1;
}

void hr_pending_step(struct hr_pending *pending)
{
	if (pending->dead || pending->has_hello || !read_hello(pending))
		return;
	struct hr_conn *conn = conn_for(pending);
	if (!conn)
		return; /* kept until hr_channel_connect */
	if (conn->phase == HR_PHASE_WAIT)
		hand_over(pending, conn);
	else
		refuse(pending, "it is connected already");
}

void hr_pending_claim(struct hr_conn *conn)
{
	for (struct hr_pending *p = conn->channel->pending; p; p = p->next) {
		if (!p->dead && p->has_hello && !memcmp(p->hello.sender, conn->peer.uid, HR_UID_BYTES)) {
			hand_over(p, conn);
			return;
		}
	}
}

void hr_pending_reap(struct hr_channel *channel)
{
	if (!channel->pending)
		return;
	uint64_t now = hr_now_ns();
	for (struct hr_pending **link = &channel->pending; *link;) {
		struct hr_pending *pending = *link;
		if (!pending->dead && now < pending->deadline) {
			link = &pending->next;
			continue;
		}
		*link = pending->next;
		hr_watch_remove(channel, &pending->watch);
		hr_wireup_close(&pending->wireup);
		free(pending);
	}
}

void hr_listen_close(struct hr_channel *channel)
{
	for (struct hr_pending *p = channel->pending; p; p = p->next)
		p->dead = true;
	hr_pending_reap(channel);
	struct hr_watch *listeners[] = { &channel->unix_listener, &channel->tcp_listener };
	for (int i = 0; i < 2; i++) {
		int fd = listeners[i]->fd;
		hr_watch_remove(channel, listeners[i]);
		if (fd >= 0)
			close(fd);
	}
}
