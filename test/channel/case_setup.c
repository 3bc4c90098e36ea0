/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards, and setting connections up: in either order, over given sockets, and against what is not a peer. */
#include "config.h"

#include "test/channel/pair.h"

#include "rdma_channel/card.h"
#include "rdma_channel/crc32.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A few bytes each way, so that an end that only looks connected is noticed. */
static void exchange_greetings(struct side *side)
{
	uint64_t mine = 1000 + (uint64_t)side->index, theirs = 0;
	put_all(side, &mine, sizeof mine);
	get_all(side, &theirs, sizeof theirs);
	CHECK_IS(theirs, 1000 + !side->index);
}

static void connect_now(struct side *side, const hr_connect_attr_t *attr)
{
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, attr, &side->conn), 0);
}

/* first: the side that connects before the other has begun to. */
static void connect_in_order(struct side *side, int first)
{
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	if (side->index == first) {
		connect_now(side, NULL);
		uint8_t byte = 1;
		struct iovec iov = { &byte, 1 };
		size_t moved = 77;
		for (int i = 0; i < 50; i++) {
			CHECK_IS(hr_channel_put(side->conn, &iov, 1, &moved), 0);
			CHECK_IS(moved, 0);
			CHECK_IS(hr_channel_get(side->conn, &iov, 1, &moved), 0);
			CHECK_IS(moved, 0);
			CHECK_IS(hr_conn_state(side->conn), 0);
			CHECK(!strcmp(hr_conn_transport(side->conn), "none"));
			usleep(1000);
		}
		side_meet(side);
	} else {
		side_meet(side);
		connect_now(side, NULL);
	}
	side_wait_up(side, side->conn);
	exchange_greetings(side);
	CHECK(strchr(hr_conn_peer(side->conn), ':'));
}

static void first_one_then_the_other(struct side *side)
{
	connect_in_order(side, 0);
}

static void first_the_other_then_one(struct side *side)
{
	connect_in_order(side, 1);
}

/* Uids decide who connects, and they are random: so often that both come about. */
static void again_and_again(struct side *side)
{
	for (int i = 0; i < 12; i++) {
		hr_channel_attr_t attr = side_attr(side);
		side_open(side, &attr);
		connect_now(side, NULL);
		exchange_greetings(side); /* puts and gets before it is up */
		hr_channel_finalize(side->channel);
	}
	side->channel = NULL;
}

static void reconnect_on_one_channel(struct side *side)
{
	for (int i = 0; i < 5; i++) {
		exchange_greetings(side);
		side_meet(side);
		hr_conn_close(side->conn);
		side_meet(side);
		connect_now(side, NULL);
		side_wait_up(side, side->conn);
	}
	exchange_greetings(side);
}

static void over_a_given_socket(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.flags = HR_CHANNEL_NO_LISTEN;
	side_open(side, &attr);
	hr_connect_attr_t connect_attr = HR_CONNECT_ATTR_INIT;
	connect_attr.fd = side->given[side->index];
	side->given[side->index] = -1;
	connect_now(side, &connect_attr);
	side_wait_up(side, side->conn);
	exchange_greetings(side);
	uint64_t offset = 0;
	if (side->index == 1)
		CHECK_IS(get_until_error(side, 0, &offset), -ESHUTDOWN);
}

/* Shared memory needs a Unix socket; over TCP there is nothing left that could be used. */
static void over_a_given_tcp_socket(struct side *side)
{
	if (side->transport != HR_TRANSPORT_SHM) {
		over_a_given_socket(side);
		return;
	}
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	hr_connect_attr_t connect_attr = HR_CONNECT_ATTR_INIT;
	connect_attr.fd = side->given[side->index];
	side->given[side->index] = -1;
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, &connect_attr, &side->conn), -EHOSTUNREACH);
}

static void only_one_listens(struct side *side)
{
	for (int quiet = 0; quiet < 2; quiet++) {
		hr_channel_attr_t attr = side_attr(side);
		if (side->index == quiet)
			attr.flags = HR_CHANNEL_NO_LISTEN;
		side_open(side, &attr);
		connect_now(side, NULL);
		exchange_greetings(side);
		hr_channel_finalize(side->channel);
	}
	hr_channel_attr_t attr = side_attr(side);
	attr.flags = HR_CHANNEL_NO_LISTEN;
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), -EHOSTUNREACH);
}

enum { MANY = 12 };

/* One channel, connected to each of the other process's. */
static void be_hub(struct side *side, const hr_channel_attr_t *attr)
{
	hr_conn_t *conns[MANY];
	hr_card_t hub, cards[MANY];
	const uint64_t all = (1u << MANY) - 1;
	CHECK_IS(hr_channel_init(attr, &side->channel, &hub), 0);
	side_send(side, &hub, sizeof hub);
	side_receive(side, cards, sizeof cards);
	for (int i = 0; i < MANY; i++)
		CHECK_IS(hr_channel_connect(side->channel, &cards[i], NULL, &conns[i]), 0);
	uint64_t values[MANY] = { 0 };
	size_t have[MANY] = { 0 };
	for (uint64_t heard = 0; heard != all;) {
		bool some = false;
		for (int i = 0; i < MANY; i++) {
			struct iovec iov = { (char *)&values[i] + have[i], sizeof values[i] - have[i] };
			size_t delivered;
			CHECK_IS(hr_channel_get(conns[i], &iov, 1, &delivered), 0);
			have[i] += delivered;
			some |= delivered > 0;
			if (have[i] < sizeof values[i])
				continue;
			CHECK_IS(values[i], i);
			heard |= 1u << i;
		}
		if (!some && heard != all)
			CHECK_IS(hr_channel_wait(side->channel, 0, -1), 1);
	}
}

static void be_spokes(struct side *side, const hr_channel_attr_t *attr)
{
	hr_channel_t *channels[MANY];
	hr_conn_t *conns[MANY];
	hr_card_t hub, cards[MANY];
	side_receive(side, &hub, sizeof hub);
	for (int i = 0; i < MANY; i++)
		CHECK_IS(hr_channel_init(attr, &channels[i], &cards[i]), 0);
	side_send(side, cards, sizeof cards);
	for (int i = 0; i < MANY; i++)
		CHECK_IS(hr_channel_connect(channels[i], &hub, NULL, &conns[i]), 0);
	for (int i = MANY - 1; i >= 0; i--) {
		struct side one = *side;
		one.channel = channels[i];
		one.conn = conns[i];
		uint64_t value = (uint64_t)i;
		put_all(&one, &value, sizeof value);
		usleep(2000);
	}
	side_meet(side);
	for (int i = 0; i < MANY; i++)
		hr_channel_finalize(channels[i]);
}

/* The one that sleeps on all of them is woken by each. */
static void many_connections(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	if (side->index == 0) {
		be_hub(side, &attr);
		side_meet(side);
	} else {
		be_spokes(side, &attr);
	}
}

static void pass_descriptor(int stream, int fd)
{
	char byte = 'd';
	struct iovec iov = { &byte, 1 };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(cmsg), &fd, sizeof fd);
	CHECK_IS(sendmsg(stream, &message, 0), 1);
}

static int take_descriptor(int stream)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	CHECK_IS(recvmsg(stream, &message, MSG_CMSG_CLOEXEC), 1);
	int fd;
	CHECK(CMSG_FIRSTHDR(&message));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

struct thread_side {
	struct side side;
	pthread_t thread;
};

static void *channel_of_one_thread(void *argument)
{
	struct side *side = argument;
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	connect_now(side, NULL);
	for (int i = 0; i < 2000; i++)
		exchange_greetings(side);
	hr_channel_finalize(side->channel);
	return NULL;
}

/* Different channels are independent: two threads of one process use one each, at the same time. */
static void a_channel_per_thread(struct side *side)
{
	enum { THREADS = 2 };
	struct thread_side threads[THREADS];
	int syncs[2];
	for (int i = 0; i < THREADS; i++) {
		threads[i].side = *side;
		CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, syncs), 0);
		if (side->index == 0)
			pass_descriptor(side->sync, syncs[1]);
		threads[i].side.sync = side->index == 0 ? syncs[0] : take_descriptor(side->sync);
		close(syncs[1]);
		if (side->index == 1)
			close(syncs[0]);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_IS(pthread_create(&threads[i].thread, NULL, channel_of_one_thread, &threads[i].side), 0);
	for (int i = 0; i < THREADS; i++) {
		CHECK_IS(pthread_join(threads[i].thread, NULL), 0);
		close(threads[i].side.sync);
	}
}

/* ---- what must be refused ---- */

static void bad_cards(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	hr_conn_t *untouched = (hr_conn_t *)&attr, *conn = untouched;
	for (uint32_t i = 0; i < side->peer.len; i++) {
		hr_card_t damaged = side->peer;
		damaged.data[i] ^= (uint8_t)(1u << i % 8);
		CHECK_IS(hr_channel_connect(side->channel, &damaged, NULL, &conn), -EINVAL);
	}
	for (uint32_t len = 0; len < side->peer.len; len++) {
		hr_card_t cut = side->peer;
		cut.len = len;
		CHECK_IS(hr_channel_connect(side->channel, &cut, NULL, &conn), -EINVAL);
	}
	hr_card_t wrong = side->peer;
	wrong.len = HR_CARD_MAX + 1;
	CHECK_IS(hr_channel_connect(side->channel, &wrong, NULL, &conn), -EINVAL);
	wrong.len = UINT32_MAX;
	CHECK_IS(hr_channel_connect(side->channel, &wrong, NULL, &conn), -EINVAL);
	CHECK_IS(hr_channel_connect(side->channel, &side->own, NULL, &conn), -EINVAL);
	CHECK(conn == untouched);
	connect_now(side, NULL);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &conn), -EEXIST);
	exchange_greetings(side);
}

static void bad_attributes(struct side *side)
{
	hr_channel_t *channel = NULL;
	hr_card_t card;
	hr_channel_attr_t attr = side_attr(side);
	attr.ring_bytes = 10;
	CHECK_IS(hr_channel_init(&attr, &channel, &card), -EINVAL);
	attr = side_attr(side);
	attr.transports = 1u << 20;
	CHECK_IS(hr_channel_init(&attr, &channel, &card), -EINVAL);
	attr = side_attr(side);
	attr.flags = 1u << 9;
	CHECK_IS(hr_channel_init(&attr, &channel, &card), -EINVAL);
	attr = side_attr(side);
	attr.size = 3;
	CHECK_IS(hr_channel_init(&attr, &channel, &card), -EINVAL);
	static const char *const wrong[][2] = { { "HEADRACE_TRANSPORT", "smoke" }, { "HEADRACE_TRANSPORT", "shm,,tcp" },
						{ "HEADRACE_TIMEOUT_MS", "soon" }, { "HEADRACE_TIMEOUT_MS", "0" },
						{ "HEADRACE_RING_BYTES", "1" }, { "HEADRACE_SPIN_US", "-1" },
						{ "HEADRACE_PENDING_MAX", "3" }, { "HEADRACE_MEMBARRIER", "2" },
						{ "HEADRACE_SHM_ZERO_COPY", "16kB" }, { "HEADRACE_SHM_STREAM", "2G" } };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		setenv(wrong[i][0], wrong[i][1], 1);
		CHECK_IS(hr_channel_init(NULL, &channel, &card), -EINVAL);
		unsetenv(wrong[i][0]);
	}
	CHECK(!channel);
	setenv("HEADRACE_TRANSPORT", side->transport_name, 1);
	attr = side_attr(side);
	attr.transports = 0;
	side_open(side, &attr);
	connect_now(side, NULL);
	side_wait_up(side, side->conn);
}

static void absent_peer(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.timeout_ms = 150;
	side_open(side, &attr);
	if (side->index == 0) {
		connect_now(side, NULL);
		int state;
		while ((state = hr_conn_state(side->conn)) == 0)
			CHECK(hr_channel_wait(side->channel, 1, -1) >= 0); /* the time-out must end the sleep */
		CHECK_IS(state, -ETIMEDOUT);
		uint8_t byte;
		struct iovec iov = { &byte, 1 };
		size_t moved;
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &moved), -ETIMEDOUT);
		CHECK_IS(hr_channel_get(side->conn, &iov, 1, &moved), -ETIMEDOUT);
	}
	side_meet(side);
}

/* The card of a process that is gone: an error, within the time. */
static void peer_gone_before_connect(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.timeout_ms = 300;
	side_open(side, &attr);
	if (side->index == 0) {
		hr_channel_finalize(side->channel);
		side->channel = NULL;
		side_meet(side);
		return;
	}
	side_meet(side);
	connect_now(side, NULL);
	int state;
	while ((state = hr_conn_state(side->conn)) == 0)
		CHECK(hr_channel_wait(side->channel, 1, -1) >= 0);
	CHECK(state == -ETIMEDOUT || state == -ECONNRESET);
}

/* A raw stream to the listener that a card names. */
static int raw_stream(const hr_card_t *card)
{
	struct hr_identity identity;
	struct sockaddr_storage address;
	socklen_t len;
	CHECK_IS(hr_card_decode(card, &identity), 0);
	if (identity.unix_len) {
		struct sockaddr_un *un = (struct sockaddr_un *)&address;
		memset(&address, 0, sizeof address);
		un->sun_family = AF_UNIX;
		memcpy(un->sun_path + 1, identity.unix_name, identity.unix_len);
		len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + identity.unix_len);
	} else {
		struct hr_address loopback = { .bytes = { 127, 0, 0, 1 }, .len = 4 };
		len = hr_address_to_sockaddr(&loopback, identity.port, &address);
	}
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	CHECK_IS(connect(fd, (struct sockaddr *)&address, len), 0);
	return fd;
}

/* Writes n bytes to the peer's listener; the peer must hang up. */
static void intrude(struct side *side, const void *bytes, size_t n, bool hangs_up)
{
	int fd = raw_stream(&side->peer);
	CHECK_IS(send(fd, bytes, n, MSG_NOSIGNAL), n);
	uint8_t answer[64];
	if (hangs_up)
		CHECK(recv(fd, answer, sizeof answer, 0) <= 0);
	close(fd);
}

#define HELLO_BYTES (sizeof(struct hr_wire_header) + HR_WIRE_HELLO_MAX)

static struct hr_wire_header header_of(enum hr_wire_kind kind, const void *body, size_t len)
{
	struct hr_wire_header header = { htole32(HR_WIRE_MAGIC), htole16(HR_WIRE_VERSION), (uint8_t)kind, 0,
					 htole32((uint32_t)len), htole32(hr_crc32(body, len)), 0 };
	header.header_check = htole32(hr_wire_header_check(&header));
	return header;
}

/* Returns its length. */
static size_t hello_of(struct side *side, bool right_uid, uint8_t out[HELLO_BYTES])
{
	struct hr_identity peer, own;
	CHECK_IS(hr_card_decode(&side->peer, &peer), 0);
	CHECK_IS(hr_card_decode(&side->own, &own), 0);
	struct hr_wire_hello hello = { .transports = htole32(side->transport), .card_len = htole32(side->own.len) };
	uint8_t body[HR_WIRE_HELLO_MAX];
	size_t len = sizeof hello + side->own.len;
	memset(hello.note, 0xff, sizeof hello.note); /* verbs: all adapters are usable */
	memcpy(hello.sender, own.uid, HR_UID_BYTES);
	memcpy(hello.receiver, peer.uid, HR_UID_BYTES);
	if (!right_uid)
		hello.receiver[5] ^= 1;
	memcpy(body, &hello, sizeof hello);
	memcpy(body + sizeof hello, side->own.data, side->own.len);
	struct hr_wire_header header = header_of(HR_WIRE_HELLO, body, len);
	memcpy(out, &header, sizeof header);
	memcpy(out + sizeof header, body, len);
	return sizeof header + len;
}

static void send_garbage(struct side *side)
{
	uint8_t hello[HELLO_BYTES];
	uint64_t random = 3;
	for (int i = 0; i < 40; i++) {
		uint8_t bytes[300];
		for (size_t b = 0; b < sizeof bytes; b++)
			bytes[b] = (uint8_t)rng(&random);
		intrude(side, bytes, sizeof(struct hr_wire_header) + (size_t)i * 7, true);
	}
	size_t len = hello_of(side, false, hello);
	intrude(side, hello, len, true);
	hello_of(side, true, hello);
	intrude(side, hello, 5, false);                /* says half of it and leaves */
	intrude(side, hello, len - 1, false);
	hello[offsetof(struct hr_wire_header, version)]++;
	intrude(side, hello, len, true);
	hello_of(side, true, hello);
	hello[offsetof(struct hr_wire_header, len) + 3] = 0xff; /* 4 GB to follow */
	intrude(side, hello, len, true);
	hello_of(side, true, hello);
	hello[sizeof(struct hr_wire_header) + 3] ^= 1; /* damaged on its way */
	intrude(side, hello, len, true);
	for (int i = 0; i < 100; i++) /* more than may wait */
		intrude(side, hello, 1, false);
}

/* Strangers come to the listener while the channel waits; the peer gets through afterwards. */
static void garbage_at_the_listener(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	if (side->index == 0) {
		send_garbage(side);
		uint8_t done = 1;
		side_send(side, &done, 1);
	} else {
		uint8_t done;
		while (recv(side->sync, &done, 1, MSG_DONTWAIT) < 0)
			CHECK(hr_channel_wait(side->channel, 0, 5) >= 0);
	}
	connect_now(side, NULL);
	side_wait_up(side, side->conn);
	exchange_greetings(side);
}

/* A stream that is silent after it was let in neither blocks nor stays for ever. */
static void silent_strangers(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.timeout_ms = 6000;
	setenv("HEADRACE_PENDING_MAX", "64", 1); /* the oldest must make room for the peer */
	side_open(side, &attr);
	int fds[80];
	if (side->index == 0)
		for (int i = 0; i < 80; i++)
			fds[i] = raw_stream(&side->peer);
	side_meet(side);
	connect_now(side, NULL);
	side_wait_up(side, side->conn);
	exchange_greetings(side);
	if (side->index == 0)
		for (int i = 0; i < 80; i++)
			close(fds[i]);
}

/* A peer of ours, up to the hello; then its half of the connection is nonsense. */
static void nonsense_after_hello(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.flags = side->index == 0 ? HR_CHANNEL_NO_LISTEN : 0; /* so that 1 waits for us to come */
	attr.timeout_ms = 6000;
	side_open(side, &attr);
	if (side->index == 0) {
		/* One send, because the peer may close the stream as soon as it has read the header. */
		uint8_t sent[HELLO_BYTES + sizeof(struct hr_wire_header) + 77] = { 0 }, answer[1000];
		int fd = raw_stream(&side->peer);
		size_t len = hello_of(side, true, sent);
		struct hr_wire_header half = header_of(HR_WIRE_HALF, sent + len + sizeof half, 77);
		memcpy(sent + len, &half, sizeof half);
		len += sizeof half + 77;
		CHECK_IS(send(fd, sent, len, MSG_NOSIGNAL), len);
		while (recv(fd, answer, sizeof answer, 0) > 0)
			continue;
		close(fd);
		return;
	}
	connect_now(side, NULL);
	int state;
	while ((state = hr_conn_state(side->conn)) == 0)
		CHECK(hr_channel_wait(side->channel, 1, -1) >= 0);
	CHECK_IS(state, -EPROTO);
}

static void finalize_of_nothing(struct side *side)
{
	hr_channel_finalize(NULL);
	hr_conn_close(NULL);
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	connect_now(side, NULL); /* and is finalized in the middle of setting up */
	int major, minor, patch;
	CHECK_IS(sscanf(hr_channel_version(), "%d.%d.%d", &major, &minor, &patch), 3);
}

const struct test_case setup_cases[] = {
	{ "first-one-then-the-other", first_one_then_the_other, PAIR_OWN_SETUP },
	{ "first-the-other-then-one", first_the_other_then_one, PAIR_OWN_SETUP },
	{ "again-and-again", again_and_again, PAIR_OWN_SETUP },
	{ "reconnect-on-one-channel", reconnect_on_one_channel, 0 },
	{ "over-a-given-unix-socket", over_a_given_socket, PAIR_OWN_SETUP | PAIR_GIVEN_UNIX },
	{ "over-a-given-tcp-socket", over_a_given_tcp_socket, PAIR_OWN_SETUP | PAIR_GIVEN_TCP },
	{ "only-one-listens", only_one_listens, PAIR_OWN_SETUP },
	{ "many-connections", many_connections, PAIR_OWN_SETUP },
	{ "a-channel-per-thread", a_channel_per_thread, PAIR_OWN_SETUP },
	{ "bad-cards", bad_cards, PAIR_OWN_SETUP },
	{ "bad-attributes", bad_attributes, PAIR_OWN_SETUP },
	{ "absent-peer", absent_peer, PAIR_OWN_SETUP },
	{ "peer-gone-before-connect", peer_gone_before_connect, PAIR_OWN_SETUP },
	{ "garbage-at-the-listener", garbage_at_the_listener, PAIR_OWN_SETUP },
	{ "silent-strangers", silent_strangers, PAIR_OWN_SETUP },
	{ "nonsense-after-hello", nonsense_after_hello, PAIR_OWN_SETUP },
	{ "finalize-of-nothing", finalize_of_nothing, PAIR_OWN_SETUP },
	{ 0 },
};
