/* SPDX-License-Identifier: BSD-3-Clause */
/* A relay between two set-up streams, moved by the test, that injects a fault at a given byte. */
#include "config.h"

#include "test/faults/relay.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 64 /* bytes moved at once */
#define FDS_MAX 8

void relay_open(struct relay *relay, bool over_unix, int theirs[2])
{
	*relay = (struct relay){ .fault = RELAY_SOUND };
	for (int i = 0; i < 2; i++) {
		int pair[2];
		if (over_unix)
			CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		else
			tcp_pair(pair);
		relay->fds[i] = pair[0];
		theirs[i] = pair[1];
	}
}

void relay_close(struct relay *relay)
{
	close(relay->fds[0]);
	close(relay->fds[1]);
}

static void cut(struct relay *relay)
{
	for (int i = 0; i < 2; i++) {
		shutdown(relay->fds[i], SHUT_RDWR);
		relay->ended[i] = true;
	}
}

/* Bytes that may be taken from that end before its fault is due. */
static size_t allowed(const struct relay *relay, int from)
{
	bool here = relay->direction == from && (relay->fault == RELAY_CUT || relay->fault == RELAY_EXTRA_FD);
	if (!here || relay->at < relay->passed[from])
		return PIECE;
	uint64_t left = relay->at - relay->passed[from];
	return left < PIECE ? (size_t)left : PIECE;
}

union fd_control {
	char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	struct cmsghdr align;
};

static int descriptors_of(struct msghdr *message, int fds[FDS_MAX])
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(message);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS)
		return 0;
	int n = (int)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(cmsg), sizeof(int) * (size_t)n);
	return n;
}

/* Sends the piece on with its descriptors; false if that end is gone. */
static bool pass(int to, const void *bytes, size_t len, const int *fds, int n_fds)
{
	struct iovec iov = { (void *)bytes, len };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	union fd_control control;
	if (n_fds) {
		memset(&control, 0, sizeof control);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n_fds);
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n_fds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * (size_t)n_fds);
	}
	ssize_t sent = sendmsg(to, &message, MSG_NOSIGNAL);
	return sent == (ssize_t)len;
}

/* Applies the faults that are not cuts to a piece whose first byte has that number. */
static void spoil(const struct relay *relay, int from, uint8_t *bytes, size_t len, int fds[FDS_MAX], int *n_fds)
{
	uint64_t first = relay->passed[from];
	if (relay->direction != from)
		return;
	if (relay->fault == RELAY_FLIP && relay->at >= first && relay->at < first + len)
		bytes[relay->at - first] ^= (uint8_t)(1u << relay->bit);
	if (relay->fault == RELAY_DROP_FDS)
		while (*n_fds > 0)
			close(fds[--*n_fds]);
	if (relay->fault == RELAY_EXTRA_FD && relay->at == first)
		fds[(*n_fds)++] = dup(0);
}

static bool move_from(struct relay *relay, int from)
{
	if (relay->ended[from])
		return false;
	size_t most = allowed(relay, from);
	if (!most && relay->fault == RELAY_CUT) {
		cut(relay);
		return true;
	}
	uint8_t bytes[PIECE];
	int fds[FDS_MAX], n_fds;
	union fd_control control;
	struct iovec iov = { bytes, most ? most : PIECE };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	ssize_t got = recvmsg(relay->fds[from], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		relay->ended[from] = true;
		shutdown(relay->fds[!from], SHUT_WR);
		return true;
	}
	n_fds = descriptors_of(&message, fds);
	spoil(relay, from, bytes, (size_t)got, fds, &n_fds);
	bool passed = pass(relay->fds[!from], bytes, (size_t)got, fds, n_fds);
	while (n_fds > 0)
		close(fds[--n_fds]);
	relay->passed[from] += (uint64_t)got;
	if (!passed)
		cut(relay);
	return true;
}

bool relay_move(struct relay *relay)
{
	bool moved = false;
	for (int from = 0; from < 2; from++)
		moved |= move_from(relay, from);
	return moved;
}
