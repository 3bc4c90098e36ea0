/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that sends anything while a connection is set up, over a Unix or a TCP stream, with descriptors of any kind.
 * What must hold: no crash, no hang, an error or a connection, and no leaked descriptor. If a connection is made, the
 * rest of the input is its stream.
 *
 * Input: a byte of options, then messages: flags, kind, length, body. Header and check sums are right unless the flags
 * say otherwise. A hello can be given the right identities, as no input would have them by chance.
 */
#include "config.h"

#include "rdma_channel/card.h"
#include "rdma_channel/crc32.h"
#include "rdma_channel/shm/ring.h"
#include "test/fuzz/input.h"

#include <endian.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { /* of the first byte */
	OVER_TCP = 1u << 0,
	PEER_STAYS = 1u << 1,
};

enum { /* of a message */
	WRONG_HEADER_SUM = 1u << 0,
	WRONG_BODY_SUM = 1u << 1,
	FDS_SHIFT = 2, /* three bits: number of descriptors */
	RIGHT_IDENTITY = 1u << 5,
	RIGHT_MEMORY = 1u << 6, /* the descriptors are rings of the size in the body's first word */
	RAW = 1u << 7,          /* the rest of the input is sent as it is */
};

#define LONG_LENGTH 0x80 /* in the kind: the header's length is 256 bytes too large */

static hr_channel_t *channel, *peer;
static hr_card_t peer_card;
static struct hr_identity self_identity, peer_identity;
static int listener = -1;

static void open_channels(void)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	hr_card_t card;
	attr.transports = HR_TRANSPORT_SHM | HR_TRANSPORT_TCP;
	attr.ring_bytes = 65536;
	attr.timeout_ms = 1000;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (hr_channel_init(&attr, &channel, &card) || hr_card_decode(&card, &self_identity) ||
	    hr_channel_init(&attr, &peer, &peer_card) || hr_card_decode(&peer_card, &peer_identity) || listener < 0 ||
	    bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1))
		abort();
}

/* The lowest descriptor that is free. */
static int first_free(void)
{
	int fd = dup(0);
	close(fd);
	return fd;
}

/* Blocks or unblocks libFuzzer's timer. Its handler has no SA_RESTART, so it would interrupt a connect that waits. */
static void hold_timer(int how)
{
	sigset_t timer;
	sigemptyset(&timer);
	sigaddset(&timer, SIGALRM);
	pthread_sigmask(how, &timer, NULL);
}

static void make_pair(bool over_tcp, int fds[2])
{
	struct sockaddr_in address;
	socklen_t len = sizeof address;
	struct linger reset = { 1, 0 }; /* closing resets the connection, so no port stays in TIME_WAIT */
	if (!over_tcp) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
			abort();
		return;
	}
	hold_timer(SIG_BLOCK);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (fds[0] < 0 || getsockname(listener, (struct sockaddr *)&address, &len) ||
	    connect(fds[0], (struct sockaddr *)&address, len) || (fds[1] = accept(listener, NULL, NULL)) < 0)
		abort();
	hold_timer(SIG_UNBLOCK);
	setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

static int make_descriptor(bool right, uint32_t ring_bytes)
{
	if (!right)
		return open("/dev/null", O_RDWR);
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, 4096 + (off_t)(ring_bytes & 0xffffff)))
		abort();
	/* The tail that the owner of an empty ring writes there. */
	uint32_t tail = SHM_FIRST_POSITION;
	if (pwrite(fd, &tail, sizeof tail, (off_t)(ring_bytes & 0xffffff) + (off_t)offsetof(struct shm_control, tail)) !=
	    sizeof tail)
		abort();
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

static void send_with_fds(int stream, const void *bytes, size_t n, const int *fds, int n_fds)
{
	struct iovec iov = { (void *)bytes, n };
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 8)];
		struct cmsghdr align;
	} control = { { 0 } };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (n_fds) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n_fds);
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n_fds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * (size_t)n_fds);
	}
	sendmsg(stream, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Sends one message; false if that was the last. */
static bool say(int stream, bool is_unix, struct fuzz_input *input)
{
	uint8_t flags = fuzz_u8(input), kind = fuzz_u8(input), body[256];
	if (flags & RAW) {
		send_with_fds(stream, input->at, input->left, NULL, 0);
		return false;
	}
	size_t len = fuzz_u8(input);
	fuzz_take(input, body, len);
	if (flags & RIGHT_IDENTITY && len >= sizeof(struct hr_wire_hello)) {
		memcpy(body + offsetof(struct hr_wire_hello, sender), peer_identity.uid, HR_UID_BYTES);
		memcpy(body + offsetof(struct hr_wire_hello, receiver), self_identity.uid, HR_UID_BYTES);
	}
	int fds[8], n_fds = is_unix ? flags >> FDS_SHIFT & 7 : 0;
	uint32_t word = 0;
	memcpy(&word, body, len < sizeof word ? len : sizeof word);
	for (int i = 0; i < n_fds; i++)
		fds[i] = make_descriptor(flags & RIGHT_MEMORY, le32toh(word));
	uint32_t said = (uint32_t)len + (kind & LONG_LENGTH ? 256 : 0);
	struct hr_wire_header header = { htole32(HR_WIRE_MAGIC), htole16(HR_WIRE_VERSION), kind & 0x7f,
					 (uint8_t)n_fds, htole32(said), htole32(hr_crc32(body, len)), 0 };
	header.body_check ^= flags & WRONG_BODY_SUM;
	header.header_check = htole32(hr_wire_header_check(&header)) ^ (flags & WRONG_HEADER_SUM);
	uint8_t bytes[sizeof header + sizeof body];
	memcpy(bytes, &header, sizeof header);
	memcpy(bytes + sizeof header, body, len);
	send_with_fds(stream, bytes, sizeof header + len, fds, n_fds);
	for (int i = 0; i < n_fds; i++)
		close(fds[i]);
	return input->left > 0;
}

static void use(hr_conn_t *conn)
{
	for (int i = 0; i < 8; i++) {
		uint8_t bytes[64] = { 0 };
		struct iovec iov = { bytes, (size_t)(i * 9) };
		size_t moved = 0;
		int error = hr_channel_put(conn, &iov, 1, &moved);
		if (!error)
			error = hr_channel_get(conn, &iov, 1, &moved);
		if (moved > sizeof bytes || error > 0)
			abort();
		hr_channel_arm(channel, 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	if (!channel)
		open_channels();
	uint8_t options = fuzz_u8(&input);
	int free_before = first_free();
	int fds[2];
	make_pair(options & OVER_TCP, fds);
	hr_connect_attr_t attr = HR_CONNECT_ATTR_INIT;
	attr.fd = fds[0];
	hr_conn_t *conn;
	if (hr_channel_connect(channel, &peer_card, &attr, &conn))
		abort();
	while (say(fds[1], !(options & OVER_TCP), &input))
		hr_conn_state(conn);
	if (!(options & PEER_STAYS))
		shutdown(fds[1], SHUT_WR);
	use(conn);
	close(fds[1]);
	hr_conn_close(conn);
	if (first_free() != free_before)
		abort();
	return 0;
}
