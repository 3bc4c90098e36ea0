/* SPDX-License-Identifier: BSD-3-Clause */
/* The five functions of the channel, and the other functions of headrace/channel.h that do not sleep. */
#include "config.h"

#include "rdma_channel/impl.h"
#include "rdma_channel/tcp/secret.h"
#include "rdma_channel/upper.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_GRAIN 4096u

/* ---- init ---- */

/* Watches the transport's descriptor, if it has one. */
static int watch_opened(struct hr_channel *channel, struct hr_opened *opened)
{
	opened->watch = (struct hr_watch){ .kind = HR_WATCH_OPENED, .owner = opened, .fd = -1 };
	int fd = opened->transport->fd ? opened->transport->fd(opened->context) : -1;
	return fd < 0 ? 0 : hr_watch_add(channel, &opened->watch, fd);
}

static int open_transports(struct hr_channel *channel, const hr_channel_attr_t *attr)
{
	const struct hr_channel_env env = { attr->timeout_ms, attr->verbs_design, attr->flags & HR_CHANNEL_SLEEPS };
	for (const struct hr_transport *const *t = hr_transports; *t; t++) {
		if (!((*t)->bit & attr->transports))
			continue;
		struct hr_opened *opened = &channel->opened[channel->n_opened];
		struct hr_section *section = &channel->self.sections[channel->self.n_sections];
		size_t len = 0;
		int error = (*t)->open(&env, &opened->context, section->data, &len);
		if (error == -ENODEV)
			hr_log(HR_LOG_INFO, "transport %s is not available on this host", (*t)->name);
		if (error == -ENODEV)
			continue;
		if (error)
			return error;
		opened->transport = *t;
		section->transport = (*t)->bit;
		section->len = (uint8_t)len;
		channel->n_opened++;
		channel->self.n_sections++;
		error = watch_opened(channel, opened);
		if (error)
			return error;
	}
	if (channel->n_opened)
		return 0;
	char names[64];
	hr_log(HR_LOG_ERROR, "hr_channel_init: cannot open any of the requested transports:%s (HEADRACE_LOG=info "
	       "prints the reasons)", hr_transport_names(attr->transports, names, sizeof names));
	return -ENODEV;
}

static void free_channel(struct hr_channel *channel)
{
	hr_listen_close(channel);
	for (int i = 0; i < channel->n_opened; i++) {
		hr_watch_remove(channel, &channel->opened[i].watch);
		channel->opened[i].transport->close(channel->opened[i].context);
	}
	hr_events_close(channel);
	hr_fork_forget(channel);
	free(channel);
}

static int open_channel(struct hr_channel *channel, const hr_channel_attr_t *attr)
{
	hr_host_describe(&channel->self.host);
	channel->self.listens = !(channel->flags & HR_CHANNEL_NO_LISTEN);
	int error = hr_random_bytes(channel->self.uid, HR_UID_BYTES);
	if (!error)
		error = hr_events_open(channel);
	if (!error)
		error = open_transports(channel, attr);
	if (!error && channel->self.listens)
		error = hr_listen_open(channel);
	return error;
}

static void clear_lists(struct hr_channel *channel)
{
	TAILQ_INIT(&channel->conns);
	TAILQ_INIT(&channel->setting_up);
	TAILQ_INIT(&channel->awake);
	TAILQ_INIT(&channel->silent);
	TAILQ_INIT(&channel->waiting);
	TAILQ_INIT(&channel->dead);
	channel->setup_due = channel->check_due = channel->timer_at = UINT64_MAX;
}

int hr_channel_init(const hr_channel_attr_t *given, hr_channel_t **out, hr_card_t *card)
{
	hr_channel_attr_t attr;
	uint64_t spin_us, pending_max;
	bool ring_is_default;
	int error = hr_channel_gather_attr(given, &attr, &spin_us, &pending_max, &ring_is_default);
	if (error)
		return error;
	struct hr_channel *channel = calloc(1, sizeof *channel);
	if (!channel)
		return -ENOMEM;
	clear_lists(channel);
	channel->pending_max = (unsigned)pending_max;
	channel->flags = attr.flags;
	channel->timeout_ms = attr.timeout_ms;
	channel->ring_bytes = (attr.ring_bytes + RING_GRAIN - 1) / RING_GRAIN * RING_GRAIN;
	channel->ring_is_default = ring_is_default;
	channel->spin_ns = spin_us * 1000;
	channel->epoll = -1;
	channel->unix_listener = (struct hr_watch){ .kind = HR_WATCH_LISTENER, .owner = channel, .fd = -1 };
	channel->tcp_listener = (struct hr_watch){ .kind = HR_WATCH_LISTENER, .owner = channel, .fd = -1 };
	channel->timer = (struct hr_watch){ .kind = HR_WATCH_TIMER, .owner = channel, .fd = -1 };
	error = hr_fork_register(channel);
	if (error) {
		free(channel);
		return error;
	}
	error = open_channel(channel, &attr);
	if (error) {
		free_channel(channel);
		return error;
	}
	hr_card_encode(&channel->self, &channel->card);
	*card = channel->card;
	*out = channel;
	return 0;
}

void hr_channel_label(hr_channel_t *channel, struct hr_label label, hr_card_t *card)
{
	const uint32_t wire[2] = { htole32(label.number), htole32(label.build) };
	struct hr_section section = { .transport = HR_SECTION_LABEL, .len = sizeof wire };
	memcpy(section.data, wire, sizeof wire);
	channel->self.sections[channel->self.n_sections++] = section;
	hr_card_encode(&channel->self, &channel->card);
	*card = channel->card;
}

/* ---- connect ---- */

static int check_peer(const struct hr_channel *channel, const struct hr_identity *peer)
{
	if (!memcmp(peer->uid, channel->self.uid, HR_UID_BYTES)) {
		hr_log(HR_LOG_ERROR, "hr_channel_connect: the card is that of this channel");
		return -EINVAL;
	}
	const struct hr_conn *conn;
	TAILQ_FOREACH(conn, &channel->conns, all)
		if (!memcmp(peer->uid, conn->peer.uid, HR_UID_BYTES))
			return -EEXIST;
	return 0;
}

static int check_stream(int fd)
{
	int type = 0;
	socklen_t len = sizeof type;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM)
		return 0;
	hr_log(HR_LOG_ERROR, "hr_channel_connect: attr->fd is not a stream socket");
	return -EINVAL;
}

static struct hr_conn *new_conn(struct hr_channel *channel, const struct hr_identity *peer)
{
	struct hr_conn *conn = calloc(1, sizeof *conn);
	if (!conn)
		return NULL;
	conn->channel = channel;
	conn->peer = *peer;
	snprintf(conn->peer_name, sizeof conn->peer_name, "%s:%u", peer->host.name, peer->host.pid);
	conn->env = (struct hr_conn_env){ .ring_bytes = channel->ring_bytes,
					  .ring_is_default = channel->ring_is_default,
					  .timeout_ms = channel->timeout_ms,
					  .peer = conn->peer_name,
					  .stats = &conn->stats };
	conn->stream_watch = (struct hr_watch){ .kind = HR_WATCH_CONN, .owner = conn, .fd = -1 };
	conn->extra_watch = (struct hr_watch){ .kind = HR_WATCH_CONN, .owner = conn, .fd = -1 };
	hr_wireup_init(&conn->wireup, -1, false);
	conn->sleeps_before = channel->sleeps;
	conn->puts_checked = UINT64_MAX; /* the set-up's last message may not have been acknowledged */
	hr_fork_lock();
	TAILQ_INSERT_HEAD(&channel->conns, conn, all);
	hr_fork_unlock();
	TAILQ_INSERT_TAIL(&channel->setting_up, conn, place);
	channel->n_conns++;
	channel->n_setting_up++;
	return conn;
}

static void free_conn(struct hr_conn *conn)
{
	struct hr_channel *channel = conn->channel;
	hr_conn_leave_set_up(conn);
	hr_conn_rouse(conn);
	TAILQ_REMOVE(&channel->awake, conn, place);
	hr_fork_lock();
	TAILQ_REMOVE(&channel->conns, conn, all);
	hr_fork_unlock();
	channel->n_conns--;
	hr_conn_unwatch(conn);
	hr_watch_remove(channel, &conn->extra_watch);
	hr_watch_remove(channel, &conn->stream_watch);
	if (conn->data)
		conn->transport->conn_close(conn->data);
	hr_wireup_close(&conn->wireup);
	explicit_bzero(&conn->cipher, sizeof conn->cipher);
	free(conn);
	if (!TAILQ_EMPTY(&channel->waiting)) /* the same peer may have connected again in the meantime */
		channel->incoming_news = true;
}

static int check_cipher(const hr_cipher_keys_t *cipher)
{
	if (!cipher || hr_secret_supported())
		return 0;
	hr_log(HR_LOG_ERROR, "hr_channel_connect: this build cannot encrypt (configured without libsodium)");
	return -ENOTSUP;
}

static int connect_to(struct hr_channel *channel, const hr_card_t *card, const hr_connect_attr_t *attr, hr_conn_t **out)
{
	struct hr_identity peer;
	int fd = attr->fd;
	int error = channel->forked ? -ECHILD : hr_card_decode(card, &peer);
	if (!error)
		error = check_cipher(attr->cipher);
	if (!error)
		error = check_peer(channel, &peer);
	if (!error && fd >= 0)
		error = check_stream(fd);
	/* The peer may be connecting to this side: accept its stream first. If its stream waits already, do not step:
	 * the step could drop the stream as too old. */
	if (!error && !hr_pending_waits(channel, peer.uid))
		hr_channel_step(channel);
	struct hr_conn *conn = error ? NULL : new_conn(channel, &peer);
	if (!error && !conn)
		error = -ENOMEM;
	if (error) {
		if (fd >= 0)
			close(fd);
		return error;
	}
	if (attr->cipher) {
		conn->encrypted = true;
		conn->cipher = *attr->cipher;
		conn->env.cipher = &conn->cipher;
	}
	error = hr_conn_start(conn, fd);
	if (error) {
		free_conn(conn);
		return error;
	}
	hr_conn_step(conn);
	*out = conn;
	return 0;
}

int hr_channel_connect(hr_channel_t *channel, const hr_card_t *card, const hr_connect_attr_t *given, hr_conn_t **conn)
{
	hr_connect_attr_t attr = HR_CONNECT_ATTR_INIT;
	if (given) {
		if (given->size != sizeof attr) {
			hr_log(HR_LOG_ERROR, "hr_channel_connect: attr->size is %zu; use HR_CONNECT_ATTR_INIT",
			       given->size);
			return -EINVAL;
		}
		attr = *given;
	}
	return connect_to(channel, card, &attr, conn);
}

void hr_conn_fail(struct hr_conn *conn, int error)
{
	hr_conn_leave_set_up(conn);
	hr_conn_rouse(conn);
	conn->phase = HR_PHASE_FAILED;
	conn->error = error;
	conn->attention |= HR_CONN_NEWS;
	hr_watch_remove(conn->channel, &conn->extra_watch);
	hr_watch_remove(conn->channel, &conn->stream_watch);
	if (conn->data)
		conn->transport->conn_close(conn->data);
	conn->data = NULL;
	hr_wireup_close(&conn->wireup);
}

void hr_conn_abort(hr_conn_t *conn, int error)
{
	struct hr_channel *channel = conn->channel;
	if (channel->forked)
		return;
	uint64_t deadline = hr_now_ns() + channel->timeout_ms * HR_NS_PER_MS;
	while (conn->phase == HR_PHASE_UP && conn->transport->conn_stop && !conn->transport->conn_stop(conn->data) &&
	       hr_now_ns() < deadline)
		hr_events_take(channel, 1);
	hr_conn_unwatch(conn);
	hr_conn_fail(conn, error);
	conn->attention &= (uint8_t)~HR_CONN_NEWS; /* the caller knows of the failure */
}

/* ---- put and get ---- */

/* The slow path before a put or get. Returns 1 if the connection is up, 0 if not yet, or its error. */
static int not_up(struct hr_conn *conn)
{
	if (conn->phase < HR_PHASE_UP)
		hr_channel_step(conn->channel);
	conn->attention &= (uint8_t)~HR_CONN_NEWS;
	hr_conn_rouse(conn); /* after a put or get the connection may have to be armed again */
	if (conn->phase == HR_PHASE_FAILED)
		return conn->error;
	return conn->phase == HR_PHASE_UP;
}

static bool has_bytes(const struct iovec *iov, int n)
{
	for (int i = 0; i < n; i++)
		if (iov[i].iov_len > 0)
			return true;
	return false;
}

static int before_transfer(struct hr_conn *conn, const struct iovec *iov, int n)
{
	if (__builtin_expect(conn->phase != HR_PHASE_UP || conn->attention, 0)) {
		int state = not_up(conn);
		if (state <= 0)
			return state;
	}
	if (n < 0)
		return -EINVAL;
	return has_bytes(iov, n);
}

static size_t total_of(const struct iovec *iov, int n)
{
	size_t total = 0;
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
}

int hr_channel_put(hr_conn_t *conn, const struct iovec *iov, int n, size_t *accepted)
{
	int ready = before_transfer(conn, iov, n);
	if (ready < 0)
		return ready;
	conn->stats.put_calls++;
	*accepted = 0;
	if (!ready) {
		if (has_bytes(iov, n)) {
			conn->stats.put_short++;
			conn->put_short = true;
			conn->attention |= HR_CONN_EARLY_PUT;
		}
		return 0;
	}
	if (__builtin_expect(conn->attention, 0))
		conn->attention &= (uint8_t)~HR_CONN_EARLY_PUT;
	if (conn->error)
		return conn->error;
	int error = conn->transport->put(conn->data, iov, n, accepted);
	if (error) {
		conn->error = error;
		return error;
	}
	conn->put_short = n == 1 ? *accepted < iov->iov_len : *accepted < total_of(iov, n);
	conn->stats.put_bytes += *accepted;
	conn->stats.put_short += conn->put_short;
	return 0;
}

int hr_channel_get(hr_conn_t *conn, const struct iovec *iov, int n, size_t *delivered)
{
	int ready = before_transfer(conn, iov, n);
	if (ready < 0)
		return ready;
	conn->stats.get_calls++;
	*delivered = 0;
	int error = ready ? conn->transport->get(conn->data, iov, n, delivered) : 0;
	if (error) {
		conn->get_failed = true;
		conn->error = error;
		return error;
	}
	conn->stats.get_bytes += *delivered;
	conn->stats.get_empty += *delivered == 0;
	return 0;
}

/* ---- closing ---- */

static bool is_shut_down(const struct hr_conn *conn)
{
	return conn->phase != HR_PHASE_UP || conn->transport->conn_shutdown(conn->data);
}

/* Ends the outgoing direction of one connection (only), or of all connections (only is NULL). Waits up to timeout_ms
 * until this side is no longer needed to deliver the accepted bytes. */
static void shut_down(struct hr_channel *channel, struct hr_conn *only)
{
	uint64_t deadline = hr_now_ns() + channel->timeout_ms * HR_NS_PER_MS;
	for (;;) {
		struct hr_conn *conn;
		bool done = true;
		if (only)
			done = is_shut_down(only);
		else
			TAILQ_FOREACH(conn, &channel->conns, all)
				done &= is_shut_down(conn);
		if (done || hr_now_ns() >= deadline)
			return;
		hr_events_take(channel, 1);
	}
}

void hr_conn_close(hr_conn_t *conn)
{
	if (!conn || conn->channel->forked)
		return;
	shut_down(conn->channel, conn);
	free_conn(conn);
}

void hr_channel_finalize(hr_channel_t *channel)
{
	if (!channel || channel->forked)
		return;
	shut_down(channel, NULL);
	while (!TAILQ_EMPTY(&channel->conns))
		free_conn(TAILQ_FIRST(&channel->conns));
	free_channel(channel);
}

/* ---- accessors ---- */

int hr_conn_state(hr_conn_t *conn)
{
	int state = conn->phase == HR_PHASE_UP ? 1 : not_up(conn);
	conn->attention &= (uint8_t)~HR_CONN_NEWS;
	return conn->error ? conn->error : state;
}

void hr_conn_set_user(hr_conn_t *conn, void *user)
{
	conn->user = user;
}

void *hr_conn_user(const hr_conn_t *conn)
{
	return conn->user;
}

const char *hr_conn_transport(const hr_conn_t *conn)
{
	return conn->phase == HR_PHASE_UP ? conn->transport->name : "none";
}

const char *hr_conn_peer(const hr_conn_t *conn)
{
	return conn->peer_name;
}

int hr_conn_stats(const hr_conn_t *conn, hr_conn_stats_t *stats)
{
	size_t size = stats->size;
	if (size < sizeof stats->size || size > sizeof *stats)
		return -EINVAL;
	hr_conn_stats_t now = conn->stats;
	now.size = size;
	now.sleeps = conn->channel->sleeps - conn->sleeps_before;
	now.memory_bytes += sizeof *conn;
	memcpy(stats, &now, size);
	return 0;
}

size_t hr_channel_conn_bytes(const hr_channel_t *channel, uint32_t transport)
{
	for (int i = 0; i < channel->n_opened; i++) {
		const struct hr_opened *opened = &channel->opened[i];
		if (opened->transport->bit == transport && opened->transport->conn_bytes)
			return sizeof(struct hr_conn) +
			       opened->transport->conn_bytes(opened->context, channel->ring_bytes);
	}
	return 0;
}

const char *hr_channel_version(void)
{
	return PACKAGE_VERSION;
}
