/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two workers meet. One listens: at a Unix socket in the abstract namespace, for a worker on this host, and at its
 * addresses (places.c). The other connects to these in turn. Both prove that they have the ticket, which the client has
 * brought from one to the other; a process that cannot is left, and the next address is tried. A connection over the Unix
 * socket is not encrypted: its bytes stay in the kernel. The listeners are closed when the ticket was used or the time is
 * over.
 *
 * In a build without libsodium a proof is the ticket itself, and tells the ticket to whoever receives it. So the workers of
 * such builds meet over a Unix socket only, and each demands that the other has its own user.
 */
#define _GNU_SOURCE /* accept4, struct ucred */
#include "cuda_remote/server/peer/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define STRANGERS_MAX 16 /* connections whose hello has not arrived completely */
/* For the connections to all addresses of an invitation. Each address has an equal share; time that one of them does not
 * use is not passed on to the next. */
#define CONNECT_MS 5000
#define NAME_PREFIX "hrlink-" /* of the names of the Unix sockets */

static bool encrypts; /* the daemon encrypts every TCP connection */

void peer_meet_prepare(bool encrypt)
{
	encrypts = encrypt;
}

bool peer_meet_encrypts(void)
{
	return encrypts;
}

int64_t peer_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int draw(void *bytes, size_t size)
{
	return getrandom(bytes, size, 0) == (ssize_t)size ? 0 : -EIO;
}

/* In a time that does not depend on the contents. */
static bool is_equal(const uint8_t *a, const uint8_t *b, size_t size)
{
	uint8_t different = 0;
	for (size_t i = 0; i < size; i++)
		different |= a[i] ^ b[i];
	return !different;
}

/* ---- proofs ---- */

static void prove_hello(const uint8_t *ticket, const struct rc_wire_peer_hello *hello, uint8_t proof[RC_DOOR_KEY_BYTES])
{
	rc_door_secret_proof(ticket, "headrace link hello", hello, offsetof(struct rc_wire_peer_hello, proof), proof);
}

struct conversation {
	struct rc_wire_peer_hello hello;
	struct rc_wire_peer_welcome welcome;
};

static void prove(const uint8_t *ticket, const struct conversation *said, const char *label, uint8_t proof[RC_DOOR_KEY_BYTES])
{
	rc_door_secret_proof(ticket, label, said, offsetof(struct conversation, welcome.proof), proof);
}

/* Each direction has a key of its own; both depend on the ticket and on both nonces. */
static void make_keys(const uint8_t *ticket, const struct conversation *said, bool joined, hr_cipher_keys_t *keys)
{
	prove(ticket, said, "headrace link joining stream", joined ? keys->put : keys->get);
	prove(ticket, said, "headrace link inviting stream", joined ? keys->get : keys->put);
}

/* ---- the channel ---- */

static int open_channel(hr_channel_t **channel, hr_card_t *card)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN | HR_CHANNEL_SLEEPS;
	return hr_channel_init(&attr, channel, card);
}

/* False: no transport of the channel works over a TCP connection, as with HEADRACE_TRANSPORT=shm. */
static bool uses_network(const hr_channel_t *channel)
{
	return hr_channel_conn_bytes(channel, HR_TRANSPORT_TCP) || hr_channel_conn_bytes(channel, HR_TRANSPORT_VERBS);
}

static bool is_on_host(int fd)
{
	union peer_address own;
	socklen_t bytes = sizeof own;
	return !getsockname(fd, &own.any, &bytes) && own.any.sa_family == AF_UNIX;
}

/* False: the other side could learn the ticket from a proof without having a right to it. */
static bool may_meet(int fd)
{
	struct ucred other;
	socklen_t bytes = sizeof other;
	return rc_door_keys_supported() ||
	       (is_on_host(fd) && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &bytes) && other.uid == geteuid());
}

/* Makes the socket that both sides have agreed on the connection's. Takes over channel and socket, also if it fails. */
static int connect_channel(hr_channel_t *channel, const hr_card_t *card, int fd, const hr_cipher_keys_t *keys,
			   struct peer_connection *connection)
{
	hr_connect_attr_t attr = HR_CONNECT_ATTR_INIT;
	int spare = fcntl(fd, F_DUPFD_CLOEXEC, 0), flags = fcntl(fd, F_GETFL);
	if (spare < 0 || flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK)) {
		int error = -errno;
		close(fd);
		if (spare >= 0)
			close(spare);
		hr_channel_finalize(channel);
		return error;
	}
	attr.fd = fd;
	attr.cipher = keys;
	*connection = (struct peer_connection){ .channel = channel, .socket = spare, .on_host = is_on_host(fd) };
	int error = hr_channel_connect(channel, card, &attr, &connection->conn);
	if (error)
		peer_connection_close(connection);
	return error;
}

void peer_connection_close(struct peer_connection *connection)
{
	if (!connection->channel)
		return;
	hr_channel_finalize(connection->channel);
	connection->channel = NULL;
	close(connection->socket);
}

static int take_card(const uint8_t *bytes, uint32_t size, hr_card_t *card)
{
	if (!size || size > HR_CARD_MAX)
		return -EPROTO;
	card->len = size;
	memcpy(card->data, bytes, size);
	return 0;
}

/* ---- inviting ---- */

static int listen_at(const union peer_address *address, socklen_t bytes)
{
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, &address->any, bytes) || listen(fd, STRANGERS_MAX)) {
		int error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

static socklen_t name_address(const char *name, size_t size, union peer_address *address)
{
	size_t length = strnlen(name, size);
	*address = (union peer_address){ .un = { .sun_family = AF_UNIX } };
	memcpy(address->un.sun_path + 1, name, length); /* a NUL comes first: the abstract namespace */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int listen_on_host(struct rc_wire_peer_invitation *invitation)
{
	uint8_t random[12];
	union peer_address address;
	int error = draw(random, sizeof random);
	if (error)
		return error;
	char *at = invitation->name + snprintf(invitation->name, sizeof invitation->name, NAME_PREFIX);
	for (size_t i = 0; i < sizeof random; i++)
		at += snprintf(at, 3, "%02x", random[i]);
	int fd = listen_at(&address, name_address(invitation->name, sizeof invitation->name, &address));
	if (fd < 0)
		invitation->name[0] = '\0';
	return fd;
}

static int listen_at_place(union peer_address *address, struct rc_wire_peer_address *entry)
{
	socklen_t bytes = peer_address_bytes(address);
	int fd = listen_at(address, bytes);
	if (fd < 0) {
		char text[INET6_ADDRSTRLEN] = "?";
		peer_address_print(address, text, sizeof text);
		hr_log(HR_LOG_WARN, "cannot listen for links at %s: %s", text, strerror(-fd));
		return fd;
	}
	if (getsockname(fd, &address->any, &bytes) || peer_address_print(address, entry->text, sizeof entry->text)) {
		close(fd);
		return -EIO;
	}
	entry->port = ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
	return fd;
}

/* 0 if there is at least one listener. */
static int listen_on_network(struct peer_meeting *meeting, struct rc_wire_peer_invitation *invitation)
{
	union peer_address place[RC_PEER_ADDRESSES_MAX];
	size_t n = 0, places = peer_places(place, RC_PEER_ADDRESSES_MAX);
	int error = -EADDRNOTAVAIL;
	if (!rc_door_keys_supported())
		return -EPROTONOSUPPORT;
	for (size_t i = 0; i < places; i++) {
		int fd = listen_at_place(&place[i], &invitation->address[n]);
		if (fd >= 0)
			meeting->listener[1 + n++] = fd;
		else
			error = fd;
	}
	return n ? 0 : error;
}

void peer_meeting_init(struct peer_meeting *meeting)
{
	*meeting = (struct peer_meeting){ .channel = NULL };
	for (int i = 0; i < PEER_LISTENERS; i++)
		meeting->listener[i] = -1;
}

int peer_meet_invite(struct peer_meeting *meeting, struct rc_wire_peer_invitation *invitation)
{
	peer_meeting_init(meeting);
	memset(invitation, 0, sizeof *invitation);
	int error = draw(meeting->ticket, sizeof meeting->ticket);
	if (!error)
		error = open_channel(&meeting->channel, &meeting->card);
	if (error)
		return error;
	if (hr_channel_conn_bytes(meeting->channel, HR_TRANSPORT_SHM))
		meeting->listener[0] = listen_on_host(invitation);
	error = uses_network(meeting->channel) ? listen_on_network(meeting, invitation) : -EPROTONOSUPPORT;
	if (meeting->listener[0] < 0 && error) {
		peer_meeting_end(meeting);
		return error;
	}
	memcpy(invitation->ticket, meeting->ticket, sizeof invitation->ticket);
	invitation->card_bytes = meeting->card.len;
	memcpy(invitation->card, meeting->card.data, meeting->card.len);
	return 0;
}

void peer_meeting_end(struct peer_meeting *meeting)
{
	for (int i = 0; i < PEER_LISTENERS; i++) {
		if (meeting->listener[i] >= 0)
			close(meeting->listener[i]);
		meeting->listener[i] = -1;
	}
	if (meeting->channel)
		hr_channel_finalize(meeting->channel);
	meeting->channel = NULL;
	explicit_bzero(meeting->ticket, sizeof meeting->ticket);
}

/* A connection whose hello is arriving. */
struct stranger {
	int fd; /* -1: none */
	size_t got;
	struct rc_wire_peer_hello hello;
};

static void stranger_close(struct stranger *stranger)
{
	close(stranger->fd);
	stranger->fd = -1;
}

/* Accepts one connection. If all places are taken, the oldest stranger loses its place. */
static void stranger_accept(int listener, struct stranger strangers[STRANGERS_MAX], unsigned *next)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (!may_meet(fd)) {
		close(fd);
		return;
	}
	struct stranger *stranger = &strangers[(*next)++ % STRANGERS_MAX];
	if (stranger->fd >= 0)
		stranger_close(stranger);
	*stranger = (struct stranger){ .fd = fd };
}

/* True if the other side has closed, or its connection has been reset. A worker that gives one socket up tries the next, so the ticket must not be spent on
 * the one that it has left. It sends nothing behind its hello until it is welcomed. */
static bool stranger_has_left(const struct stranger *stranger)
{
	char byte;
	ssize_t n = recv(stranger->fd, &byte, sizeof byte, MSG_PEEK);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Reads. 1: it has the ticket; 0: more is to come; a negated errno: it is none of ours. */
static int stranger_read(struct stranger *stranger, const struct peer_meeting *meeting, bool encrypt)
{
	uint8_t proof[RC_DOOR_KEY_BYTES];
	struct rc_wire_peer_hello *hello = &stranger->hello;
	ssize_t n = recv(stranger->fd, (uint8_t *)hello + stranger->got, sizeof *hello - stranger->got, 0);
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -ECONNRESET;
	stranger->got += (size_t)n;
	if (stranger->got < sizeof *hello)
		return 0;
	prove_hello(meeting->ticket, hello, proof);
	if (memcmp(hello->magic, RC_PEER_MAGIC, sizeof hello->magic) || !is_equal(proof, hello->proof, sizeof proof))
		return -EACCES;
	if (stranger_has_left(stranger))
		return -ECONNRESET;
	encrypt = encrypt && !is_on_host(stranger->fd);
	return hello->encrypt >= encrypt && hello->encrypt <= 1 && hello->card_bytes && hello->card_bytes <= HR_CARD_MAX ?
		       1 : -EPROTO;
}

#define SET (PEER_LISTENERS + 1 + STRANGERS_MAX)

/* Waits for something to do. The set: the listeners, the descriptor stop, the strangers. */
static int listen_poll(const struct peer_meeting *meeting, const struct stranger *strangers, int stop, int64_t until,
		       struct pollfd set[SET])
{
	int64_t left = until - peer_now_ms();
	for (int i = 0; i < PEER_LISTENERS; i++)
		set[i] = (struct pollfd){ .fd = meeting->listener[i], .events = POLLIN };
	set[PEER_LISTENERS] = (struct pollfd){ .fd = stop, .events = POLLIN };
	for (int i = 0; i < STRANGERS_MAX; i++)
		set[PEER_LISTENERS + 1 + i] = (struct pollfd){ .fd = strangers[i].fd, .events = POLLIN };
	int n = left > 0 ? poll(set, SET, (int)left) : 0;
	if (!n)
		return -ETIMEDOUT;
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return set[PEER_LISTENERS].revents ? -ECANCELED : n;
}

static int listen_for(const struct peer_meeting *meeting, bool encrypt, int64_t until, int stop,
		      struct stranger strangers[STRANGERS_MAX], struct stranger **found)
{
	struct pollfd set[SET];
	unsigned next = 0;
	for (;;) {
		int ready = listen_poll(meeting, strangers, stop, until, set);
		if (ready < 0)
			return ready;
		for (int i = 0; i < STRANGERS_MAX && ready; i++) {
			bool came = strangers[i].fd >= 0 && set[PEER_LISTENERS + 1 + i].revents;
			int got = came ? stranger_read(&strangers[i], meeting, encrypt) : 0;
			if (got > 0) {
				*found = &strangers[i];
				return 0;
			}
			if (got < 0) {
				hr_log(HR_LOG_WARN, "a link was refused: %s", got == -EACCES ? "wrong ticket" : strerror(-got));
				stranger_close(&strangers[i]);
			}
		}
		for (int i = 0; i < PEER_LISTENERS && ready; i++)
			if (set[i].revents)
				stranger_accept(meeting->listener[i], strangers, &next);
	}
}

/* Answers the worker that has the ticket. If it has left, the channel stays in the meeting. */
static int welcome(struct peer_meeting *meeting, struct stranger *guest, struct peer_connection *connection)
{
	struct conversation said = { .hello = guest->hello };
	hr_cipher_keys_t keys;
	hr_card_t card;
	int fd = guest->fd, error = draw(said.welcome.nonce, sizeof said.welcome.nonce);
	guest->fd = -1;
	prove(meeting->ticket, &said, "headrace link welcome", said.welcome.proof);
	if (!error)
		error = take_card(said.hello.card, said.hello.card_bytes, &card);
	if (!error && send(fd, &said.welcome, sizeof said.welcome, MSG_NOSIGNAL) != (ssize_t)sizeof said.welcome)
		error = -EPIPE;
	if (error) {
		close(fd);
		return error;
	}
	make_keys(meeting->ticket, &said, false, &keys);
	hr_channel_t *channel = meeting->channel;
	meeting->channel = NULL;
	error = connect_channel(channel, &card, fd, said.hello.encrypt ? &keys : NULL, connection);
	explicit_bzero(&keys, sizeof keys);
	return error;
}

int peer_meet_accept(struct peer_meeting *meeting, bool encrypt, uint32_t timeout_ms, int stop,
		     struct peer_connection *connection)
{
	struct stranger *strangers = calloc(STRANGERS_MAX, sizeof *strangers), *guest = NULL;
	int error = strangers ? 0 : -ENOMEM;
	for (int i = 0; i < STRANGERS_MAX && strangers; i++)
		strangers[i].fd = -1;
	int64_t until = peer_now_ms() + timeout_ms;
	bool left;
	do {
		if (!error)
			error = listen_for(meeting, encrypt, until, stop, strangers, &guest);
		if (!error)
			error = welcome(meeting, guest, connection);
		left = error == -EPIPE && meeting->channel;
		if (left)
			error = 0;
	} while (left);
	for (int i = 0; i < STRANGERS_MAX && strangers; i++)
		if (strangers[i].fd >= 0)
			stranger_close(&strangers[i]);
	free(strangers);
	peer_meeting_end(meeting);
	return error;
}

/* ---- joining ---- */

static int await(int fd, short events, int64_t until)
{
	for (;;) {
		struct pollfd set = { .fd = fd, .events = events };
		int64_t left = until - peer_now_ms();
		int n = left > 0 ? poll(&set, 1, (int)left) : 0;
		if (n > 0)
			return 0;
		if (!n)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int connect_to(const union peer_address *address, socklen_t bytes, int64_t until)
{
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int error = connect(fd, &address->any, bytes) ? -errno : 0;
	if (error == -EINPROGRESS) {
		socklen_t size = sizeof error;
		error = await(fd, POLLOUT, until);
		if (!error && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
			error = -error;
	}
	if (error) {
		close(fd);
		return error;
	}
	return fd;
}

static int read_all(int fd, void *to, size_t size, int64_t until)
{
	for (size_t got = 0; got < size;) {
		ssize_t n = recv(fd, (uint8_t *)to + got, size - got, 0);
		if (n > 0) {
			got += (size_t)n;
			continue;
		}
		if (!n || (errno != EAGAIN && errno != EINTR))
			return n ? -errno : -ECONNRESET;
		int error = await(fd, POLLIN, until);
		if (error)
			return error;
	}
	return 0;
}

/* What the joining side needs to approach the other. */
struct guest {
	const uint8_t *ticket;
	const hr_card_t *card; /* its own */
	bool encrypt;
	int64_t until;
	unsigned places, places_left; /* addresses, and those not tried yet */
};

static int introduce(int fd, const uint8_t *ticket, const hr_card_t *own, bool encrypt, int64_t until,
		     struct conversation *said)
{
	uint8_t proof[RC_DOOR_KEY_BYTES];
	struct rc_wire_peer_hello *hello = &said->hello;
	*said = (struct conversation){ .hello = { .magic = RC_PEER_MAGIC, .card_bytes = own->len, .encrypt = encrypt } };
	memcpy(hello->card, own->data, own->len);
	int error = draw(hello->nonce, sizeof hello->nonce);
	if (error)
		return error;
	prove_hello(ticket, hello, hello->proof);
	if (send(fd, hello, sizeof *hello, MSG_NOSIGNAL) != (ssize_t)sizeof *hello)
		return -EPIPE;
	error = read_all(fd, &said->welcome, sizeof said->welcome, until);
	if (error)
		return error;
	prove(ticket, said, "headrace link welcome", proof);
	return is_equal(proof, said->welcome.proof, sizeof proof) ? 0 : -EACCES;
}

/* One try at a place. Returns the socket over which the other worker has proved that it has the ticket. */
static int approach(const union peer_address *address, socklen_t bytes, const struct guest *guest, int64_t connect_until,
		    struct conversation *said)
{
	int fd = connect_to(address, bytes, connect_until);
	if (fd < 0)
		return fd;
	int64_t left = guest->until - peer_now_ms();
	int64_t until = guest->places_left ? guest->until - left / 2 : guest->until;
	int error = !may_meet(fd) ? -EPERM :
		    introduce(fd, guest->ticket, guest->card, guest->encrypt && !is_on_host(fd), until, said);
	if (error) {
		close(fd);
		return error;
	}
	return fd;
}

/* The socket on this host is found only by a worker on this host. The client may have made the invitation up: a socket whose
 * name is not of a worker's may be another program's. */
static int approach_on_host(const struct rc_wire_peer_invitation *invitation, const struct guest *guest,
			    struct conversation *said)
{
	union peer_address address;
	if (strncmp(invitation->name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
		return -EHOSTUNREACH;
	return approach(&address, name_address(invitation->name, sizeof invitation->name, &address), guest, guest->until, said);
}

/* Tries the addresses in turn. Each has its part of the time that is left. The kernel of the other host makes the
 * connection, whatever its processes do, so that takes less time. */
static int approach_on_network(const struct rc_wire_peer_invitation *invitation, struct guest *guest, struct conversation *said)
{
	int result = -EHOSTUNREACH;
	while (guest->places_left) {
		const struct rc_wire_peer_address *entry = &invitation->address[guest->places - guest->places_left];
		char text[sizeof entry->text];
		union peer_address address;
		int64_t now = peer_now_ms(), part = (guest->until - now) / guest->places_left--;
		int64_t most = CONNECT_MS / (int64_t)guest->places;
		memcpy(text, entry->text, sizeof text);
		text[sizeof text - 1] = '\0';
		if (!entry->port || entry->port > 65535 || !peer_address_parse(text, &address)) {
			result = -EINVAL;
			continue;
		}
		peer_address_set_port(&address, (uint16_t)entry->port);
		result = approach(&address, peer_address_bytes(&address), guest, now + (part < most ? part : most), said);
		if (result >= 0)
			return result;
		hr_log(HR_LOG_INFO, "the other worker cannot be reached at %s port %u: %s", text, (unsigned)entry->port,
		       result == -EACCES ? "the process there does not have the ticket" : strerror(-result));
	}
	return result;
}

static int find(const struct rc_wire_peer_invitation *invitation, struct guest *guest, bool network, struct conversation *said)
{
	while (network && guest->places < RC_PEER_ADDRESSES_MAX && invitation->address[guest->places].text[0])
		guest->places++;
	guest->places_left = guest->places;
	int fd = approach_on_host(invitation, guest, said);
	return fd >= 0 || !guest->places ? fd : approach_on_network(invitation, guest, said);
}

int peer_meet_join(const struct rc_wire_peer_invitation *invitation, bool encrypt, uint32_t timeout_ms,
		   struct peer_connection *connection)
{
	struct conversation said;
	hr_cipher_keys_t keys;
	hr_channel_t *channel;
	hr_card_t own, card;
	int error = take_card(invitation->card, invitation->card_bytes, &card);
	if (!error)
		error = open_channel(&channel, &own);
	if (error)
		return error;
	struct guest guest = { .ticket = invitation->ticket, .card = &own, .encrypt = encrypt,
			       .until = peer_now_ms() + timeout_ms };
	int fd = find(invitation, &guest, uses_network(channel), &said);
	if (fd < 0) {
		hr_channel_finalize(channel);
		return fd;
	}
	make_keys(invitation->ticket, &said, true, &keys);
	error = connect_channel(channel, &card, fd, said.hello.encrypt ? &keys : NULL, connection);
	explicit_bzero(&keys, sizeof keys);
	return error;
}
