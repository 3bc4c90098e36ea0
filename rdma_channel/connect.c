/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection set-up: decides which side dials and which transport is used, and handles the messages of wireup.h. */
#include "rdma_channel/impl.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DIAL_RETRY_NS (10 * HR_NS_PER_MS)

static void *context_of(const struct hr_channel *channel, uint32_t bit)
{
	for (int i = 0; i < channel->n_opened; i++)
		if (channel->opened[i].transport->bit == bit)
			return channel->opened[i].context;
	return NULL;
}

/* Returns the transports that both sides have and that can reach the peer; if the connection has keys, only tcp. */
static uint32_t usable_transports(const struct hr_conn *conn, bool same_host)
{
	const struct hr_channel *channel = conn->channel;
	const struct hr_identity *peer = &conn->peer;
	uint32_t usable = 0;
	for (int i = 0; i < channel->n_opened; i++) {
		const struct hr_transport *transport = channel->opened[i].transport;
		const struct hr_section *section = hr_identity_section(peer, transport->bit);
		if (section && transport->reaches(channel->opened[i].context, section->data, section->len, same_host))
			usable |= transport->bit;
	}
	return conn->env.cipher ? usable & HR_TRANSPORT_TCP : usable;
}

static const struct hr_transport *best_of(uint32_t transports)
{
	for (const struct hr_transport *const *t = hr_transports; *t; t++)
		if ((*t)->bit & transports)
			return *t;
	return NULL;
}

static uint32_t without_unix_only(uint32_t transports)
{
	for (const struct hr_transport *const *t = hr_transports; *t; t++)
		if ((*t)->needs_unix)
			transports &= ~(*t)->bit;
	return transports;
}

/* Writes the note of the one transport that has one. */
static void make_note(struct hr_conn *conn)
{
	const struct hr_channel *channel = conn->channel;
	uint64_t process = (conn->peer.host.boot ^ conn->peer.host.pid) * 0x9e3779b97f4a7c15ull >> 16;
	memset(conn->note, 0, sizeof conn->note);
	for (int i = 0; i < channel->n_opened; i++)
		if (channel->opened[i].transport->note && channel->opened[i].transport->bit & conn->usable)
			channel->opened[i].transport->note(channel->opened[i].context, process, conn->note);
}

/* Queues this side's hello. If this side dialled, the hello carries its card, as the peer may not have it yet. */
static void queue_hello(struct hr_conn *conn)
{
	const hr_card_t *card = &conn->channel->card;
	uint32_t card_len = conn->dialled ? card->len : 0;
	uint32_t encrypts = conn->env.cipher ? HR_WIRE_ENCRYPTS : 0;
	struct hr_wire_hello hello = { .transports = htole32(conn->usable | encrypts), .card_len = htole32(card_len) };
	uint8_t body[HR_WIRE_HELLO_MAX];
	memcpy(hello.sender, conn->channel->self.uid, HR_UID_BYTES);
	memcpy(hello.receiver, conn->peer.uid, HR_UID_BYTES);
	make_note(conn);
	memcpy(hello.note, conn->note, sizeof hello.note);
	memcpy(body, &hello, sizeof hello);
	memcpy(body + sizeof hello, card->data, card_len);
	hr_wireup_queue(&conn->wireup, HR_WIRE_HELLO, body, sizeof hello + card_len, NULL, 0);
}

/* ---- the messages ---- */

/* Returns whether this side's stream is used if both sides have opened one. The two sides get opposite answers. */
static bool ours_counts(const struct hr_conn *conn)
{
	return memcmp(conn->channel->self.uid, conn->peer.uid, HR_UID_BYTES) < 0;
}

/* Returns whether this side comes first, by process if the two differ. The two sides get opposite answers. */
static bool leads(const struct hr_conn *conn)
{
	const struct hr_host *own = &conn->channel->self.host, *peer = &conn->peer.host;
	if (own->pid != peer->pid)
		return own->pid < peer->pid;
	return own->boot != peer->boot ? own->boot < peer->boot : ours_counts(conn);
}

/* Returns the best transport that both sides can use, now that the peer's hello is here; NULL: none. */
static const struct hr_transport *agree(const struct hr_conn *conn, const struct hr_wire_hello *hello,
					struct hr_agreement *agreement)
{
	uint32_t common = conn->usable & le32toh(hello->transports);
	*agreement = (struct hr_agreement){ .leads = leads(conn) };
	memcpy(agreement->own, conn->note, sizeof agreement->own);
	memcpy(agreement->peer, hello->note, sizeof agreement->peer);
	for (const struct hr_transport *best; (best = best_of(common)); common &= ~best->bit) {
		const struct hr_section *section = hr_identity_section(&conn->peer, best->bit);
		agreement->section = section->data;
		agreement->section_len = section->len;
		if (!best->agrees || best->agrees(context_of(conn->channel, best->bit), agreement))
			return best;
	}
	return NULL;
}

static int on_hello(struct hr_conn *conn, const struct hr_wire_hello *hello)
{
	if (memcmp(hello->sender, conn->peer.uid, HR_UID_BYTES) ||
	    memcmp(hello->receiver, conn->channel->self.uid, HR_UID_BYTES)) {
		hr_log(HR_LOG_ERROR, "connection to %s: a different channel answered", conn->peer_name);
		return -EPROTO;
	}
	bool encrypts = le32toh(hello->transports) & HR_WIRE_ENCRYPTS;
	if (encrypts != (conn->env.cipher != NULL)) {
		hr_log(HR_LOG_ERROR, "connection to %s: %s encrypts and %s does not: give both sides keys, or neither",
		       conn->peer_name, encrypts ? "the peer" : "this side", encrypts ? "this side" : "the peer");
		return -EPROTO;
	}
	struct hr_agreement agreement;
	const struct hr_transport *transport = agree(conn, hello, &agreement);
	if (!transport) {
		hr_log(HR_LOG_ERROR, "connection to %s: the two sides have no transport in common", conn->peer_name);
		return -EHOSTUNREACH;
	}
	struct hr_half own = { 0 };
	conn->env.agreement = &agreement;
	int error = transport->conn_open(context_of(conn->channel, transport->bit), &conn->env, &own, &conn->data);
	conn->env.agreement = NULL;
	explicit_bzero(&conn->cipher, sizeof conn->cipher); /* the transport has a copy, or the connection fails */
	conn->env.cipher = NULL;
	if (error)
		return error;
	conn->transport = transport;
	hr_wireup_queue(&conn->wireup, HR_WIRE_HALF, own.blob, own.len, own.fds, own.n_fds);
	conn->phase = HR_PHASE_HALF;
	return 0;
}

static int on_half(struct hr_conn *conn, const struct hr_wire_message *message)
{
	struct hr_half half = { .len = message->len };
	memcpy(half.blob, message->body, message->len);
	half.n_fds = hr_wireup_take_fds(&conn->wireup, half.fds);
	int error = conn->transport->conn_establish(conn->data, &half, conn->wireup.fd);
	if (error)
		return error;
	hr_wireup_queue(&conn->wireup, HR_WIRE_READY, NULL, 0, NULL, 0);
	conn->phase = HR_PHASE_READY;
	return 0;
}

static void drop_stream(struct hr_conn *conn)
{
	hr_watch_remove(conn->channel, &conn->stream_watch);
	hr_wireup_close(&conn->wireup);
}

static bool is_patient(const struct hr_conn *conn)
{
	return conn->channel->flags & HR_CHANNEL_PATIENT;
}

/* Returns when set-up times out, ns. Once a patient channel has a stream, it never times out: as long as the peer
 * lives, its kernel keeps the stream open, even if the peer computes for a long time. If the stream ends, set-up
 * fails. */
static uint64_t given_up_at(const struct hr_conn *conn)
{
	bool has_stream = conn->phase >= HR_PHASE_HELLO;
	return is_patient(conn) && has_stream ? UINT64_MAX : conn->deadline;
}

/* The peer opened a stream at the same time, and that stream is used: close this side's, wait for the peer's hello. */
static int on_yield(struct hr_conn *conn)
{
	drop_stream(conn);
	conn->phase = HR_PHASE_WAIT;
	if (is_patient(conn)) /* the peer could take as long as it liked until now: start the time-out again */
		conn->deadline = hr_now_ns() + conn->env.timeout_ms * HR_NS_PER_MS;
	hr_pending_claim(conn);
	return 0;
}

static int on_message(struct hr_conn *conn, const struct hr_wire_message *message)
{
	if (conn->phase == HR_PHASE_HELLO && message->kind == HR_WIRE_HELLO &&
	    message->len == sizeof(struct hr_wire_hello))
		return on_hello(conn, message->body);
	if (conn->phase == HR_PHASE_HELLO && message->kind == HR_WIRE_YIELD && message->len == 0 && conn->dialled &&
	    !ours_counts(conn))
		return on_yield(conn);
	if (conn->phase == HR_PHASE_HALF && message->kind == HR_WIRE_HALF && message->len <= HR_HALF_BLOB_MAX)
		return on_half(conn, message);
	if (conn->phase == HR_PHASE_READY && message->kind == HR_WIRE_READY && message->len == 0) {
		conn->peer_ready = true;
		return 0;
	}
	hr_log(HR_LOG_ERROR, "connection to %s: protocol violation during set-up: unexpected message %d of %zu bytes", conn->peer_name,
	       message->kind, message->len);
	return -EPROTO;
}

/* ---- dialling ---- */

static void watch_stream(struct hr_conn *conn)
{
	int error = hr_watch_add(conn->channel, &conn->stream_watch, conn->wireup.fd);
	if (error)
		hr_conn_fail(conn, error);
}

static socklen_t unix_sockaddr(const struct hr_identity *peer, struct sockaddr_storage *out)
{
	struct sockaddr_un *un = (struct sockaddr_un *)out;
	memset(out, 0, sizeof *out);
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path + 1, peer->unix_name, peer->unix_len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + peer->unix_len);
}

/* Starts to connect to the current address. 0, or a negated errno value if that fails at once. */
static int dial_once(struct hr_conn *conn)
{
	const struct hr_address *address = &conn->addresses[conn->next_address];
	struct sockaddr_storage to;
	socklen_t len = conn->over_unix ? unix_sockaddr(&conn->peer, &to)
					: hr_address_to_sockaddr(address, conn->peer.port, &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	hr_stream_prepare(fd, conn->over_unix, conn->channel->timeout_ms);
	if (!conn->over_unix) {
		hr_stream_fit_segments(fd, conn->channel->ring_bytes);
		hr_stream_unpace(fd, &to);
	}
	if (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
		int error = -errno;
		close(fd);
		return error;
	}
	/* If the peer is gone, the kernel may have given its abstract name to another process. */
	if (conn->over_unix && !hr_stream_is_friend(fd)) {
		close(fd);
		return -ECONNREFUSED;
	}
	hr_wireup_init(&conn->wireup, fd, conn->over_unix);
	conn->dialled = true;
	queue_hello(conn);
	watch_stream(conn);
	return 0;
}

/* Returns the deadline of the current address: the time that is left is divided among the addresses not yet tried. */
static uint64_t dial_share(const struct hr_conn *conn, uint64_t now)
{
	uint64_t left = conn->deadline > now ? conn->deadline - now : 0;
	int untried = conn->n_addresses - conn->next_address;
	return now + (untried > 1 ? left / (uint64_t)untried : left);
}

/* Returns the error for put and get when dialling fails. A refused connection means that the peer is gone. So does EPIPE:
 * the peer closed its Unix socket during connect. */
static int error_of_dial(int error)
{
	return error == -ECONNREFUSED || error == -EPIPE ? -ECONNRESET : error;
}

/* Goes on to the next address; without one, the connection fails. */
static void dial_failed(struct hr_conn *conn, int error)
{
	drop_stream(conn);
	conn->retry_at = 0;
	if (conn->over_unix || ++conn->next_address >= conn->n_addresses) {
		hr_log(HR_LOG_ERROR, "connection to %s: connect: %s", conn->peer_name, strerror(-error));
		hr_conn_fail(conn, error_of_dial(error));
	}
}

static void dial(struct hr_conn *conn)
{
	while (conn->phase == HR_PHASE_DIAL && conn->wireup.fd < 0) {
		uint64_t now = hr_now_ns();
		if (now < conn->retry_at)
			return;
		int error = dial_once(conn);
		if (error == -EAGAIN) { /* the listener's queue is full */
			conn->retry_at = now + DIAL_RETRY_NS;
			return;
		}
		conn->dial_deadline = dial_share(conn, now);
		if (error)
			dial_failed(conn, error);
	}
}

/* ---- stepping ---- */

static void stream_failed(struct hr_conn *conn, int error, const char *reason)
{
	if (conn->phase == HR_PHASE_DIAL) {
		dial_failed(conn, error);
		return;
	}
	if (error == -EPROTO || error == -ECONNRESET)
		hr_log(HR_LOG_ERROR, "connection to %s failed during set-up: %s", conn->peer_name, reason);
	else
		hr_log(HR_LOG_ERROR, "connection to %s failed during set-up: %s", conn->peer_name, strerror(-error));
	hr_conn_fail(conn, error == -EPIPE ? -ECONNRESET : error);
}

static void come_up(struct hr_conn *conn)
{
	hr_conn_leave_set_up(conn);
	conn->phase = HR_PHASE_UP;
	conn->attention |= HR_CONN_NEWS;
	int fd = conn->transport->conn_fd ? conn->transport->conn_fd(conn->data) : -1;
	if (fd >= 0 && hr_watch_add(conn->channel, &conn->extra_watch, fd) < 0)
		hr_log(HR_LOG_WARN, "connection to %s: cannot add its descriptor to the epoll set", conn->peer_name);
	/* Over a Unix stream there would be such an event whenever the peer reads a wake-up: it would wake this side. */
	if (!conn->transport->puts_on_stream)
		hr_watch_input(conn->channel, &conn->stream_watch);
	/* Bytes that arrived together with "ready" raise no further edge-triggered event: look for them now. */
	conn->transport->conn_event(conn->data);
	hr_log(HR_LOG_INFO, "connection to %s is up over %s%s", conn->peer_name, conn->transport->name,
	       conn->encrypted ? ", encrypted" : "");
}

/* Sends and receives without blocking. Returns true if there may be more to do: the phase changed or a message was
 * handled. */
static bool step_stream(struct hr_conn *conn)
{
	enum hr_phase before = conn->phase;
	int unsent = hr_wireup_flush(&conn->wireup);
	if (unsent < 0) {
		stream_failed(conn, unsent, "the stream ended");
		return true;
	}
	if (conn->phase == HR_PHASE_DIAL) {
		if (unsent)
			return false;
		conn->phase = HR_PHASE_HELLO;
	}
	if (conn->phase == HR_PHASE_READY && conn->peer_ready) {
		if (!unsent)
			come_up(conn);
		return conn->phase != before;
	}
	struct hr_wire_message message;
	const char *reason;
	int got = hr_wireup_receive(&conn->wireup, &message, &reason);
	if (got < 0) {
		stream_failed(conn, got, reason);
		return true;
	}
	if (got == 0)
		return conn->phase != before;
	int error = on_message(conn, &message);
	if (error)
		hr_conn_fail(conn, error);
	return true;
}

/* Logs once that a patient channel is still waiting. */
static void tell_of_patience(struct hr_conn *conn)
{
	conn->told_of_patience = true;
	hr_log(HR_LOG_INFO, "connection to %s: no answer for %u ms; still waiting",
	       conn->peer_name, conn->env.timeout_ms);
}

/* Handles time-outs. Returns true if the set-up, or the attempt at one address, has timed out. */
static bool step_late(struct hr_conn *conn)
{
	uint64_t now = hr_now_ns();
	if (now >= conn->deadline && now < given_up_at(conn) && !conn->told_of_patience)
		tell_of_patience(conn);
	if (now >= given_up_at(conn)) {
		hr_log(HR_LOG_ERROR, "connection to %s: not set up after %u ms: %s", conn->peer_name,
		       conn->env.timeout_ms, conn->phase == HR_PHASE_WAIT ? "the peer did not connect" : "the peer did not answer");
		hr_conn_fail(conn, -ETIMEDOUT);
		return true;
	}
	if (conn->phase != HR_PHASE_DIAL || conn->wireup.fd < 0 || now < conn->dial_deadline)
		return false;
	dial_failed(conn, -ETIMEDOUT);
	return true;
}

/* Reads the stream before it looks at the clock: if the caller has not called for a long time and the peer's answer has
 * arrived, the answer counts, not the time-out. */
static void step_while_possible(struct hr_conn *conn)
{
	while (conn->phase < HR_PHASE_UP) {
		if (conn->phase == HR_PHASE_DIAL)
			dial(conn);
		if (conn->phase >= HR_PHASE_UP)
			return;
		if ((conn->wireup.fd < 0 || !step_stream(conn)) && !step_late(conn))
			return;
	}
}

void hr_conn_step(struct hr_conn *conn)
{
	step_while_possible(conn);
	if (conn->phase >= HR_PHASE_UP)
		return;
	uint64_t next = hr_conn_next_time(conn);
	if (next < conn->channel->setup_due)
		conn->channel->setup_due = next;
}

uint64_t hr_conn_next_time(const struct hr_conn *conn)
{
	uint64_t next = conn->told_of_patience ? given_up_at(conn) : conn->deadline;
	if (conn->phase == HR_PHASE_DIAL && conn->wireup.fd >= 0 && conn->dial_deadline < next)
		next = conn->dial_deadline;
	if (conn->phase == HR_PHASE_DIAL && conn->wireup.fd < 0 && conn->retry_at < next)
		next = conn->retry_at;
	return next;
}

enum hr_meeting hr_conn_meets(const struct hr_conn *conn)
{
	switch (conn->phase) {
	case HR_PHASE_WAIT:
	case HR_PHASE_DIAL: /* this side's hello has not been sent, so the peer does not expect another stream */
		return HR_MEETING_ADOPT;
	case HR_PHASE_HELLO:
		if (!conn->dialled)
			return HR_MEETING_REFUSE;
		return ours_counts(conn) ? HR_MEETING_YIELD : HR_MEETING_ADOPT;
	case HR_PHASE_HALF:
	case HR_PHASE_READY:
		return HR_MEETING_REFUSE;
	case HR_PHASE_UP:
	case HR_PHASE_FAILED:
		break;
	}
	return HR_MEETING_LATER;
}

void hr_conn_adopt(struct hr_conn *conn, struct hr_wireup *wireup, struct hr_watch *watch,
		   const struct hr_wire_hello *hello)
{
	drop_stream(conn);
	conn->dialled = false;
	hr_wireup_move(&conn->wireup, wireup);
	hr_watch_move(conn->channel, &conn->stream_watch, watch);
	if (!conn->wireup.is_unix)
		conn->usable = without_unix_only(conn->usable);
	conn->phase = HR_PHASE_HELLO;
	queue_hello(conn);
	int error = on_hello(conn, hello);
	if (error)
		hr_conn_fail(conn, error);
}

/* ---- starting ---- */

static int unreachable(const struct hr_conn *conn, const char *why)
{
	hr_log(HR_LOG_ERROR, "hr_channel_connect: cannot reach %s: %s", conn->peer_name, why);
	return -EHOSTUNREACH;
}

static bool is_unix_socket(int fd)
{
	int domain = 0;
	socklen_t len = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

static int start_on_given_stream(struct hr_conn *conn, int fd)
{
	bool is_unix = is_unix_socket(fd);
	/* The ends of a Unix socket are on one kernel, even if their network namespaces differ. */
	bool same_host = hr_identity_same_host(&conn->channel->self, &conn->peer) ||
			 (is_unix && conn->channel->self.host.boot == conn->peer.host.boot);
	conn->usable = usable_transports(conn, same_host);
	hr_stream_prepare(fd, is_unix, conn->channel->timeout_ms);
	hr_wireup_init(&conn->wireup, fd, is_unix);
	if (!is_unix)
		conn->usable = without_unix_only(conn->usable);
	if (!conn->usable)
		return unreachable(conn, "no transport in common");
	conn->phase = HR_PHASE_HELLO;
	queue_hello(conn);
	watch_stream(conn);
	return conn->error;
}

static void list_addresses(struct hr_conn *conn, bool same_host)
{
	conn->n_addresses = 0;
	if (same_host)
		conn->addresses[conn->n_addresses++] = (struct hr_address){ .bytes = { 127, 0, 0, 1 }, .len = 4 };
	memcpy(&conn->addresses[conn->n_addresses], conn->peer.addresses, sizeof conn->peer.addresses);
	hr_host_sort_by_nearness(&conn->addresses[conn->n_addresses], conn->peer.n_addresses);
	conn->n_addresses += conn->peer.n_addresses;
}

int hr_conn_start(struct hr_conn *conn, int fd)
{
	struct hr_channel *channel = conn->channel;
	bool same_host = hr_identity_same_host(&channel->self, &conn->peer);
	hr_wireup_init(&conn->wireup, fd, false); /* from here on freeing the connection closes fd */
	conn->deadline = hr_now_ns() + channel->timeout_ms * HR_NS_PER_MS;
	if (fd >= 0)
		return start_on_given_stream(conn, fd);
	conn->usable = usable_transports(conn, same_host);
	/* tcp uses the stream as its data path, so it needs a TCP stream. The others can use a Unix stream. */
	const struct hr_transport *best = best_of(conn->usable);
	conn->over_unix = same_host && best && best->bit != HR_TRANSPORT_TCP;
	if (!conn->over_unix)
		conn->usable = without_unix_only(conn->usable);
	if (!conn->usable)
		return unreachable(conn, "no transport in common");
	if (!channel->self.listens && !conn->peer.listens)
		return unreachable(conn, "neither side listens");
	conn->phase = HR_PHASE_WAIT;
	if (hr_pending_claim(conn) || !conn->peer.listens)
		return 0;
	if (conn->over_unix ? !conn->peer.unix_len : !conn->peer.port)
		return unreachable(conn, "it has no listener that this side can connect to");
	list_addresses(conn, same_host);
	if (!conn->over_unix && !conn->n_addresses)
		return unreachable(conn, "its card has no address");
	conn->phase = HR_PHASE_DIAL;
	return 0;
}
