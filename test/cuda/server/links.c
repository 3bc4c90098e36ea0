/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's links, with this program in the place of the client and of the other worker, which lies, stalls or dies.
 *	links doors    who may use an invitation, and where a worker may be sent
 *	links frames   what comes over a link
 *	links limit    HEADRACE_SESSION_LINKS=1
 *	links leave    ends in the middle of a transfer
 *	links here     a worker whose channel has shared memory only
 *	links secret   a build without libsodium, whose proofs are the ticket itself: who does not get it
 * Status 77: not in this build.
 */
#define _GNU_SOURCE /* struct ucred */
#include "test/cuda/server/raw_client.h"

#include <arpa/inet.h>
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BYTES 65536u

static raw_t raw, waiter; /* one connection for calls, one for peer_wait */
static uint64_t number, links, transfers, memory;
static uint32_t context;

#define CHECK(condition) RAW_CHECK(raw, condition)

static void begin(void)
{
	uint64_t size = BYTES;
	CHECK(!raw_connect(&raw, NULL, RC_SERVER_ALL_GPUS));
	context = raw_hello(&raw, ++number, 0, NULL);
	CHECK(context && !raw_connect(&waiter, &raw, RC_SERVER_ALL_GPUS));
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&memory, raw.results, sizeof memory);
}

static int invite(uint32_t flags, uint32_t timeout_ms, struct rc_wire_peer_invitation *invitation)
{
	struct rc_wire_peer_invite ask = { ++links, flags, timeout_ms };
	int result = raw_call(&raw, ++number, RC_CALL_peer_invite, context, &ask, sizeof ask, NULL, 0);
	if (!result) {
		CHECK(raw.results_len == sizeof *invitation);
		memcpy(invitation, raw.results, sizeof *invitation);
	}
	return result;
}

static int join(uint32_t timeout_ms, const struct rc_wire_peer_invitation *invitation, size_t size)
{
	struct rc_wire_peer_join ask = { ++links, RC_PEER_SOURCE, timeout_ms };
	return raw_call(&raw, ++number, RC_CALL_peer_join, context, &ask, sizeof ask, invitation, size);
}

static void close_link(uint64_t link)
{
	struct rc_wire_peer_close ask = { link };
	CHECK(!raw_send(&raw, ++number, RC_CALL_peer_close, context, &ask, sizeof ask, NULL, 0));
}

/* ---- the other worker ---- */

static int connect_to(const struct rc_wire_peer_invitation *invitation, bool unix_socket)
{
	struct sockaddr_in tcp = { .sin_family = AF_INET, .sin_port = htons((uint16_t)invitation->address[0].port) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t name = strlen(invitation->name);
	CHECK(unix_socket || inet_pton(AF_INET, invitation->address[0].text, &tcp.sin_addr) == 1);
	memcpy(un.sun_path + 1, invitation->name, name);
	int fd = socket(unix_socket ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name);
	int error = unix_socket ? connect(fd, (struct sockaddr *)&un, size) : connect(fd, (struct sockaddr *)&tcp, sizeof tcp);
	if (!error)
		return fd;
	close(fd);
	return -1;
}

static void make_hello(const uint8_t *ticket, const hr_card_t *card, struct rc_wire_peer_hello *hello)
{
	*hello = (struct rc_wire_peer_hello){ .magic = RC_PEER_MAGIC, .card_bytes = card->len };
	memcpy(hello->card, card->data, card->len);
	rc_door_secret_proof(ticket, "headrace link hello", hello, offsetof(struct rc_wire_peer_hello, proof), hello->proof);
}

/* True if the worker welcomes this hello. */
static bool greet(int fd, const struct rc_wire_peer_hello *hello)
{
	struct rc_wire_peer_welcome welcome;
	return fd >= 0 && send(fd, hello, sizeof *hello, MSG_NOSIGNAL) == (ssize_t)sizeof *hello &&
	       recv(fd, &welcome, sizeof welcome, MSG_WAITALL) == (ssize_t)sizeof welcome;
}

struct link {
	uint64_t number;
	hr_channel_t *channel;
	hr_conn_t *conn;
};

static void put(struct link *link, const void *bytes, size_t size)
{
	struct iovec rest = { (void *)(uintptr_t)bytes, size };
	while (rest.iov_len) {
		size_t n;
		CHECK(!hr_channel_put(link->conn, &rest, 1, &n));
		rest.iov_base = (char *)rest.iov_base + n;
		rest.iov_len -= n;
		if (!n)
			CHECK(hr_channel_wait(link->channel, 1, 10000) == 1);
	}
}

static struct link open_link(uint32_t flags, uint32_t timeout_ms)
{
	struct link link = { .number = 0 };
	struct rc_wire_peer_invitation invitation;
	struct rc_wire_peer_hello hello;
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	hr_connect_attr_t connect = HR_CONNECT_ATTR_INIT;
	hr_card_t card, worker;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	CHECK(!hr_channel_init(&attr, &link.channel, &card) && !invite(flags, timeout_ms, &invitation));
	link.number = links;
	connect.fd = connect_to(&invitation, links % 2);
	make_hello(invitation.ticket, &card, &hello);
	CHECK(greet(connect.fd, &hello));
	worker.len = invitation.card_bytes;
	memcpy(worker.data, invitation.card, worker.len);
	CHECK(!hr_channel_connect(link.channel, &worker, &connect, &link.conn));
	while (!hr_conn_state(link.conn))
		CHECK(hr_channel_wait(link.channel, 0, 10000) == 1);
	CHECK(hr_conn_state(link.conn) == 1);
	return link;
}

/* ---- who may enter ---- */

static void only_the_ticket_enters(bool unix_socket)
{
	struct rc_wire_peer_invitation invitation;
	struct rc_wire_peer_hello hello;
	uint8_t wrong[RC_PEER_TICKET_BYTES];
	hr_card_t card = { .len = 8 };
	int silent[20];
	CHECK(!invite(0, 20000, &invitation));
	memcpy(wrong, invitation.ticket, sizeof wrong);
	wrong[31] ^= 1;
	make_hello(wrong, &card, &hello);
	CHECK(!greet(connect_to(&invitation, unix_socket), &hello));
	make_hello(invitation.ticket, &card, &hello);
	hello.nonce[0] ^= 1; /* not what was proved */
	CHECK(!greet(connect_to(&invitation, unix_socket), &hello));
	hello.nonce[0] ^= 1;
	memset(hello.magic, 'x', sizeof hello.magic);
	CHECK(!greet(connect_to(&invitation, unix_socket), &hello));
	/* More silent connections than the worker has places for. */
	for (int i = 0; i < 20; i++) {
		silent[i] = connect_to(&invitation, unix_socket);
		CHECK(silent[i] >= 0 && send(silent[i], &hello, (size_t)i, MSG_NOSIGNAL) == i);
	}
	make_hello(invitation.ticket, &card, &hello);
	int right = connect_to(&invitation, unix_socket);
	CHECK(greet(right, &hello));
	/* The same ticket does not enter again, by no door. */
	CHECK(!greet(connect_to(&invitation, unix_socket), &hello));
	CHECK(!greet(connect_to(&invitation, !unix_socket), &hello));
	for (int i = 0; i < 20; i++)
		close(silent[i]);
	close(right);
	close_link(links);
}

/* A worker gave up a socket before the worker that had invited it came to accept, and tries the next address: the ticket has not
 * been used. It closed a Unix socket, or it reset a TCP connection. */
static void a_guest_that_has_left_does_not_spend_the_ticket(bool reset)
{
	struct rc_wire_peer_invitation invitation;
	struct rc_wire_peer_hello hello;
	struct ucred inviting;
	socklen_t size = sizeof inviting;
	CHECK(!invite(0, 20000, &invitation));
	make_hello(invitation.ticket, &(hr_card_t){ .len = 8 }, &hello);
	int other = connect_to(&invitation, true), fd = reset ? connect_to(&invitation, false) : other;
	CHECK(!getsockopt(other, SOL_SOCKET, SO_PEERCRED, &inviting, &size));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = reset }, sizeof(struct linger)));
	CHECK(!kill(inviting.pid, SIGSTOP));
	ssize_t sent = send(fd, &hello, sizeof hello, MSG_NOSIGNAL);
	close(fd);
	CHECK(!kill(inviting.pid, SIGCONT) && sent == (ssize_t)sizeof hello);
	fd = connect_to(&invitation, false);
	CHECK(greet(fd, &hello));
	close(fd);
	if (reset)
		close(other);
	close_link(links);
}

/* A worker that is sent to a place where nobody, or somebody else, waits. */
static void a_join_ends(void)
{
	struct rc_wire_peer_invitation invitation = { .address = { { .text = "127.0.0.1" } }, .card_bytes = 8 };
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct rc_wire_peer_welcome welcome = { .nonce = { 1 } };
	socklen_t size = sizeof own;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(listener, (struct sockaddr *)&own, sizeof own) && !listen(listener, 5));
	CHECK(!getsockname(listener, (struct sockaddr *)&own, &size));
	invitation.address[0].port = ntohs(own.sin_port);
	CHECK(join(300, &invitation, sizeof invitation) == CUDA_ERROR_TIMEOUT); /* nobody answers */
	close(accept(listener, NULL, NULL));
	/* Somebody answers who does not know the ticket. */
	struct rc_wire_peer_join ask = { ++links, 0, 10000 };
	CHECK(!raw_send(&raw, ++number, RC_CALL_peer_join, context, &ask, sizeof ask, &invitation, sizeof invitation));
	int fd = accept(listener, NULL, NULL);
	CHECK(send(fd, &welcome, sizeof welcome, 0) == (ssize_t)sizeof welcome);
	CHECK(raw_await(&raw, raw.replies + 1) && raw.reply.result == CUDA_ERROR_NOT_PERMITTED);
	close(fd);
	close(listener);
	CHECK(join(10000, &invitation, sizeof invitation) == CUDA_ERROR_NOT_FOUND); /* connection refused */
	invitation.address[0].port = 65536;
	CHECK(join(10000, &invitation, sizeof invitation) == CUDA_ERROR_NOT_FOUND);
	invitation.address[0].port = 80;
	memset(invitation.address, 'x', sizeof invitation.address);
	memset(invitation.name, 'y', sizeof invitation.name);
	CHECK(join(10000, &invitation, sizeof invitation) == CUDA_ERROR_NOT_FOUND);
	invitation.card_bytes = HR_CARD_MAX + 1;
	CHECK(join(10000, &invitation, sizeof invitation) == CUDA_ERROR_NOT_FOUND);
	CHECK(join(10000, &invitation, sizeof invitation - 1) == CUDA_ERROR_INVALID_VALUE);
	CHECK(join(0, &invitation, sizeof invitation) == CUDA_ERROR_INVALID_VALUE);
	CHECK(join(RC_PEER_TIMEOUT_MAX + 1, &invitation, sizeof invitation) == CUDA_ERROR_INVALID_VALUE);
	CHECK(invite(0x80, 1000, &invitation) == CUDA_ERROR_INVALID_VALUE);
}

static int listen_somewhere(uint32_t *port)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof own;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(listener, (struct sockaddr *)&own, sizeof own) && !listen(listener, 5));
	CHECK(!getsockname(listener, (struct sockaddr *)&own, &size));
	*port = ntohs(own.sin_port);
	return listener;
}

/* Accepts the worker, and checks that it proves to have the ticket. */
static int accept_worker(int listener, const uint8_t *ticket)
{
	struct rc_wire_peer_hello hello;
	uint8_t proof[sizeof hello.proof];
	int fd = accept(listener, NULL, NULL);
	CHECK(recv(fd, &hello, sizeof hello, MSG_WAITALL) == (ssize_t)sizeof hello);
	rc_door_secret_proof(ticket, "headrace link hello", &hello, offsetof(struct rc_wire_peer_hello, proof), proof);
	CHECK(!memcmp(proof, hello.proof, sizeof proof));
	return fd;
}

/* Nobody listens at the first address, a process without the ticket listens at the second, and the third is no IP address. */
static void addresses_are_tried_in_turn(void)
{
	struct rc_wire_peer_invitation invitation = { .ticket = { 7, 7 }, .card_bytes = 8 };
	struct rc_wire_peer_welcome welcome = { .nonce = { 1 } };
	struct rc_wire_peer_join ask = { ++links, 0, 60000 };
	int listener[4];
	for (int i = 0; i < 4; i++) {
		strcpy(invitation.address[i].text, i == 2 ? "nowhere" : "127.0.0.1");
		listener[i] = listen_somewhere(&invitation.address[i].port);
	}
	close(listener[0]);
	CHECK(!raw_send(&raw, ++number, RC_CALL_peer_join, context, &ask, sizeof ask, &invitation, sizeof invitation));
	int impostor = accept_worker(listener[1], invitation.ticket);
	CHECK(send(impostor, &welcome, sizeof welcome, 0) == (ssize_t)sizeof welcome);
	close(accept_worker(listener[3], invitation.ticket));
	CHECK(raw_await(&raw, raw.replies + 1) && raw.reply.result == CUDA_ERROR_NOT_FOUND); /* the right one has gone again */
	close(impostor);
	for (int i = 1; i < 4; i++)
		close(listener[i]);
}

/* A client cannot make its worker connect to the Unix socket of another program. */
static void other_sockets_are_not_connected_to(void)
{
	struct rc_wire_peer_invitation invitation = { .card_bytes = 8 };
	struct sockaddr_un own = { .sun_family = AF_UNIX };
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	size += (socklen_t)snprintf(invitation.name, sizeof invitation.name, "other-%d", (int)getpid());
	memcpy(own.sun_path + 1, invitation.name, strlen(invitation.name));
	CHECK(!bind(listener, (struct sockaddr *)&own, size) && !listen(listener, 5));
	CHECK(join(300, &invitation, sizeof invitation) == CUDA_ERROR_NOT_FOUND);
	CHECK(accept(listener, NULL, NULL) < 0 && errno == EAGAIN);
	close(listener);
}

/* Over TCP no connection could be made between channels with shared memory only: the worker invites to no address, and goes
 * to none if it gets no answer at the Unix socket. */
static void shared_memory_is_not_looked_for_in_the_network(void)
{
	struct rc_wire_peer_invitation invitation;
	struct sockaddr_un own = { .sun_family = AF_UNIX };
	CHECK(!invite(0, 10000, &invitation) && invitation.name[0] && !invitation.address[0].text[0]);
	close_link(links);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1);
	size += (socklen_t)snprintf(invitation.name, sizeof invitation.name, "hrlink-%d", (int)getpid());
	memcpy(own.sun_path + 1, invitation.name, strlen(invitation.name));
	int silent = socket(AF_UNIX, SOCK_STREAM, 0), listener = listen_somewhere(&invitation.address[0].port);
	strcpy(invitation.address[0].text, "127.0.0.1");
	CHECK(!bind(silent, (struct sockaddr *)&own, size) && !listen(silent, 5));
	CHECK(join(300, &invitation, sizeof invitation) == CUDA_ERROR_TIMEOUT);
	CHECK(!fcntl(listener, F_SETFL, O_NONBLOCK) && accept(listener, NULL, NULL) < 0 && errno == EAGAIN);
	close(accept(silent, NULL, NULL)); /* there the worker was */
	close(silent);
	close(listener);
}

/* As root, this program has another user than its worker. Without libsodium the worker says nothing to it, over whatever
 * socket. */
static void other_users_do_not_get_the_ticket(void)
{
	struct rc_wire_peer_invitation invitation = { .address = { { .text = "127.0.0.1" } }, .name = "hrlink-of-another-user", .card_bytes = 8 };
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_un un;
	} own = { .in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } } };
	socklen_t size = sizeof own.in;
	for (int i = 0; i < 2; i++) {
		char byte;
		int listener = socket(own.any.sa_family, SOCK_STREAM, 0);
		CHECK(!bind(listener, &own.any, size) && !listen(listener, 5) && !getsockname(listener, &own.any, &size));
		invitation.address[0].port = i ? 0 : ntohs(own.in.sin_port);
		CHECK(join(10000, &invitation, sizeof invitation) == CUDA_ERROR_NOT_FOUND);
		int fd = accept(listener, NULL, NULL);
		CHECK(fd >= 0 && recv(fd, &byte, 1, 0) <= 0);
		close(fd);
		close(listener);
		own.un = (struct sockaddr_un){ .sun_family = AF_UNIX };
		memcpy(own.un.sun_path + 1, invitation.name, strlen(invitation.name));
		size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(invitation.name));
	}
	CHECK(!invite(0, 1000, &invitation) && !invitation.address[0].port);
	struct rc_wire_peer_hello hello;
	make_hello(invitation.ticket, &(hr_card_t){ .len = 8 }, &hello);
	CHECK(!greet(connect_to(&invitation, true), &hello));
}

/* An invitation that nobody uses ends. Copies of its link fail. */
static void an_invitation_ends(void);

/* ---- frames ---- */

static const struct rc_wire_peer_plan by_host = { RC_PEER_BY_HOST, 2, RC_PEER_CHUNK_MIN, 0 };

static void receive(uint64_t link, const struct rc_wire_peer_plan *plan, uint64_t address, uint64_t bytes)
{
	struct rc_wire_peer_copy ask = { 0, link, ++transfers, RC_PEER_COPY_LOUD, 0, *plan, { address, 0, 0, bytes, 1, 1 } };
	CHECK(!raw_send(&raw, ++number, RC_CALL_peer_copy, context, &ask, sizeof ask, NULL, 0));
}

/* How the newest transfer has ended. */
static struct rc_wire_peer_state outcome(void)
{
	struct rc_wire_peer_state state;
	CHECK(!raw_call(&waiter, ++number, RC_CALL_peer_wait, context, NULL, 0, NULL, 0));
	CHECK(waiter.results_len == sizeof state);
	memcpy(&state, waiter.results, sizeof state);
	CHECK(state.gate == transfers);
	return state;
}

static void an_invitation_ends(void)
{
	struct rc_wire_peer_invitation invitation;
	CHECK(!invite(0, 50, &invitation));
	receive(links, &by_host, memory, 16);
	CHECK(outcome().flags == RC_PEER_LINK_FAILED);
	/* Of a link that there is not, and in the wrong direction. */
	receive(4711, &by_host, memory, 16);
	CHECK(outcome().flags == RC_PEER_LINK_FAILED);
	CHECK(!invite(RC_PEER_SOURCE, 10000, &invitation));
	receive(links, &by_host, memory, 16);
	CHECK(outcome().flags == RC_PEER_LINK_FAILED);
	close_link(links);
}

static void frame(struct link *link, uint64_t transfer, uint64_t total, uint64_t offset, uint32_t bytes)
{
	struct rc_wire_peer_frame head = { transfer, total, offset, bytes, 0 };
	put(link, &head, sizeof head);
}

static uint8_t *pattern(void)
{
	static uint8_t bytes[BYTES];
	for (unsigned i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i * 7 + transfers);
	return bytes;
}

/* Frames of all sizes, into buffers that are smaller and larger, in one piece and in rows. */
static void what_is_right_arrives(struct link *link)
{
	static const struct rc_wire_peer_plan plans[] = {
		{ RC_PEER_BY_HOST, 2, 4096, 0 }, { RC_PEER_BY_HOST, 64, 65536, 0 }, { RC_PEER_BY_DEVICE, 3, 5000, 0 },
		{ RC_PEER_BY_NONE, 0, 0, 0 },
	};
	for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
		receive(link->number, &plans[i], memory, BYTES);
		uint8_t *bytes = pattern();
		for (uint32_t at = 0, step = 1; at < BYTES; step = step * 3 + 1) {
			uint32_t n = step < BYTES - at ? step : BYTES - at;
			frame(link, transfers, BYTES, at, n);
			put(link, bytes + at, n);
			at += n;
		}
		struct rc_wire_peer_state state = outcome();
		CHECK(!state.result && !state.flags);
	}
}

/* Failures of a transfer leave the link as it is. */
static void a_failed_transfer_leaves_the_link(struct link *link)
{
	static const struct rc_wire_peer_plan wrong[] = {
		{ RC_PEER_WAYS, 1, 4096, 0 }, { RC_PEER_BY_HOST, 0, 4096, 0 },
		{ RC_PEER_BY_HOST, RC_PEER_BUFFERS_MAX + 1, 4096, 0 },
		{ RC_PEER_BY_HOST, 1, 100, 0 }, { RC_PEER_BY_DEVICE, 1, UINT32_MAX, 0 },
	};
	static const struct rc_wire_peer_plan none = { .way = RC_PEER_BY_NONE };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		receive(link->number, &wrong[i], memory, 16);
		frame(link, transfers, 16, 0, 16);
		put(link, pattern(), 16);
		struct rc_wire_peer_state state = outcome();
		CHECK(state.result == CUDA_ERROR_INVALID_VALUE && !state.flags);
	}
	/* Memory that is none: the worker must not write there itself. */
	const uint64_t nowhere[] = { 0, 4096, memory + BYTES - 8, UINT64_MAX - 4, (uintptr_t)&number };
	for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
		receive(link->number, i % 2 ? &by_host : &none, nowhere[i], 16);
		frame(link, transfers, 16, 0, 16);
		put(link, pattern(), 16);
		struct rc_wire_peer_state state = outcome();
		CHECK(state.result && !state.flags);
	}
	/* The source names other bytes than the client; then it says that it has failed. */
	receive(link->number, &by_host, memory, 16);
	frame(link, transfers, 32, 0, 32);
	put(link, pattern(), 32);
	CHECK(outcome().result == CUDA_ERROR_INVALID_VALUE);
	receive(link->number, &by_host, memory, 32);
	frame(link, transfers, 32, 0, 8);
	put(link, pattern(), 8);
	frame(link, transfers, 32, 8, 0);
	CHECK(outcome().result == CUDA_ERROR_UNKNOWN);
	what_is_right_arrives(link);
}

/* What no worker sends ends the link: the transfer is reported as one whose link has failed. */
static void a_lie_ends_the_link(void)
{
	static const struct {
		uint64_t total, offset;
		uint32_t bytes;
	} lies[] = {
		{ BYTES, 16, 16 }, { BYTES, 0, BYTES + 1 }, { 16, 0, UINT32_MAX }, { BYTES, UINT64_MAX, 16 },
		{ UINT64_MAX, UINT64_MAX, UINT32_MAX },
	};
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		struct link link = open_link(0, 10000);
		receive(link.number, &by_host, memory, BYTES);
		frame(&link, transfers, lies[i].total, lies[i].offset, lies[i].bytes);
		CHECK(outcome().flags == RC_PEER_LINK_FAILED);
		receive(link.number, &by_host, memory, BYTES);
		CHECK(outcome().flags == RC_PEER_LINK_FAILED);
		close_link(link.number);
		hr_channel_finalize(link.channel);
	}
}

/* The worker waits for the client's call for a transfer that it does not know, longer than two workers may take to
 * meet. */
static void a_call_may_come_late(void)
{
	struct link link = open_link(0, 500);
	frame(&link, transfers + 1, BYTES, 0, BYTES);
	put(&link, pattern(), BYTES);
	CHECK(hr_channel_wait(link.channel, 0, 800) >= 0 && hr_conn_state(link.conn) == 1); /* the worker has not given up */
	receive(link.number, &by_host, memory, BYTES);
	struct rc_wire_peer_state state = outcome();
	CHECK(!state.result && !state.flags);
	/* The call does not come before the client closes the link. */
	frame(&link, transfers + 2, BYTES, 0, 16);
	receive(link.number, &by_host, memory, BYTES);
	close_link(link.number);
	CHECK(outcome().flags == RC_PEER_LINK_FAILED);
	hr_channel_finalize(link.channel);
}

static void a_death_or_a_stall_ends(void)
{
	for (int i = 0; i < 4; i++) {
		struct link link = open_link(0, 10000);
		receive(link.number, &by_host, memory, BYTES);
		if (i % 2) {
			frame(&link, transfers, BYTES, 0, BYTES);
			put(&link, pattern(), 5000);
		}
		/* The other worker ends in the middle; or it says nothing, and the client closes the link. */
		if (i / 2)
			hr_channel_finalize(link.channel);
		else
			close_link(link.number);
		CHECK(outcome().flags == RC_PEER_LINK_FAILED);
		if (i / 2)
			close_link(link.number);
		else
			hr_channel_finalize(link.channel);
	}
}

/* The other worker reads nothing. */
static void a_target_that_does_not_read_is_given_up(void)
{
	struct link link = open_link(RC_PEER_SOURCE, 10000);
	for (int i = 0; i < 200; i++) {
		struct rc_wire_peer_copy ask = { 0, link.number, ++transfers, RC_PEER_COPY_SEND, 0, by_host, { memory, 0, 0, BYTES, 1, 1 } };
		CHECK(!raw_send(&raw, ++number, RC_CALL_peer_copy, context, &ask, sizeof ask, NULL, 0));
	}
	close_link(link.number);
	for (size_t n, reported = 0; reported < 200; reported += n) {
		CHECK(!raw_call(&waiter, ++number, RC_CALL_peer_wait, context, NULL, 0, NULL, 0));
		n = waiter.results_len / sizeof(struct rc_wire_peer_state);
		CHECK(n && n <= RC_PEER_STATES_MAX);
	}
	hr_channel_finalize(link.channel);
}

static int try_out(struct link *link, unsigned rounds)
{
	struct rc_wire_peer_trial ask = { link->number, 16, rounds, by_host };
	return raw_call(&raw, ++number, RC_CALL_peer_trial, context, &ask, sizeof ask, NULL, 0);
}

/* Trials with a worker that does not answer, and more of them than a worker keeps. */
static void trials_end(void)
{
	struct link link = open_link(RC_PEER_SOURCE, 2000);
	CHECK(try_out(&link, 1) == CUDA_ERROR_UNKNOWN);
	close_link(link.number);
	hr_channel_finalize(link.channel);
	link = open_link(0, 60000);
	for (int i = 0; i < 64; i++)
		CHECK(!try_out(&link, 1));
	CHECK(try_out(&link, 1) == CUDA_ERROR_INVALID_VALUE);
	close_link(link.number);
	hr_channel_finalize(link.channel);
}

/* ---- the tests ---- */

static void doors(void)
{
	begin();
	only_the_ticket_enters(false);
	only_the_ticket_enters(true);
	a_guest_that_has_left_does_not_spend_the_ticket(false);
	a_guest_that_has_left_does_not_spend_the_ticket(true);
	a_join_ends();
	addresses_are_tried_in_turn();
	other_sockets_are_not_connected_to();
	an_invitation_ends();
	CHECK(!raw_call_hello(&raw, ++number));
}

static void frames(void)
{
	begin();
	struct link link = open_link(0, 10000);
	what_is_right_arrives(&link);
	a_failed_transfer_leaves_the_link(&link);
	a_lie_ends_the_link();
	a_call_may_come_late();
	a_death_or_a_stall_ends();
	a_target_that_does_not_read_is_given_up();
	trials_end();
	what_is_right_arrives(&link);
	CHECK(!raw_call_hello(&raw, ++number));
}

static void limit(void)
{
	struct rc_wire_peer_invitation invitation;
	begin();
	CHECK(!invite(0, RC_PEER_TIMEOUT_MAX, &invitation));
	uint64_t first = links;
	CHECK(invite(0, 1000, &invitation) == CUDA_ERROR_NOT_PERMITTED);
	CHECK(join(1000, &invitation, sizeof invitation) == CUDA_ERROR_NOT_PERMITTED);
	close_link(first);
	int result = CUDA_ERROR_NOT_PERMITTED;
	for (int i = 0; i < 1000 && result == CUDA_ERROR_NOT_PERMITTED; i++) { /* until its thread has ended */
		result = invite(0, 1000, &invitation);
		usleep(10000);
	}
	CHECK(!result);
}

static void here(void)
{
	begin();
	shared_memory_is_not_looked_for_in_the_network();
	CHECK(!raw_call_hello(&raw, ++number));
}

static void secret(void)
{
	begin();
	if (!geteuid())
		other_users_do_not_get_the_ticket();
	CHECK(!raw_call_hello(&raw, ++number));
}

static void leave(void)
{
	begin();
	struct link link = open_link(0, 10000);
	receive(link.number, &by_host, memory, BYTES);
	frame(&link, transfers, BYTES, 0, BYTES);
	put(&link, pattern(), 5000);
	_exit(0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = { { "doors", doors }, { "frames", frames }, { "limit", limit }, { "leave", leave },
		    { "here", here }, { "secret", secret } };
	if (argc == 2 && !strcmp(argv[1], "secret") == rc_door_keys_supported())
		return 77;
	for (size_t i = 0; argc == 2 && i < sizeof tests / sizeof tests[0]; i++)
		if (!strcmp(argv[1], tests[i].name)) {
			tests[i].run();
			return 0;
		}
	return 2;
}
