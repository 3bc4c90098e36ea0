/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes descriptors between processes of one host: authenticated peers from the daemon to a worker, and the client's
 * pinned memory to its worker. */
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */
#include "cuda_remote/door/door.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union descriptor_space {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int rc_door_pass(int socket, const void *bytes, size_t size, int fd)
{
	union descriptor_space space = { .bytes = { 0 } };
	struct iovec part = { (void *)(uintptr_t)bytes, size };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof space
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	ssize_t n;
	do
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == (ssize_t)size ? 0 : -EPIPE;
}

int rc_door_take(int socket, void *bytes, size_t size, int *fd)
{
	union descriptor_space space;
	struct iovec part = { bytes, size };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof space
	};
	ssize_t n;
	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int taken = -1, more = -1; /* the space has room for two */
	bool right = header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS;
	if (right && header->cmsg_len >= CMSG_LEN(sizeof taken))
		memcpy(&taken, CMSG_DATA(header), sizeof taken);
	if (right && header->cmsg_len >= CMSG_LEN(2 * sizeof taken))
		memcpy(&more, CMSG_DATA(header) + sizeof taken, sizeof more);
	if (more >= 0) {
		close(more);
		close(taken);
		return -EPROTO;
	}
	if (n == (ssize_t)size && taken >= 0 && !(message.msg_flags & MSG_CTRUNC)) {
		*fd = taken;
		return 1;
	}
	if (taken >= 0)
		close(taken);
	/* If this process has no free descriptor, the kernel drops the one that was sent. */
	return n == (ssize_t)size && message.msg_flags & MSG_CTRUNC ? -EMFILE : -EPROTO;
}

int rc_door_peer_send(int socket, const rc_door_peer_t *peer)
{
	return rc_door_pass(socket, peer, sizeof *peer, peer->fd);
}

int rc_door_peer_receive(int socket, rc_door_peer_t *peer)
{
	rc_door_peer_t received;
	int fd, got = rc_door_take(socket, &received, sizeof received, &fd);
	if (got != 1)
		return got;
	*peer = received;
	peer->fd = fd;
	return 1;
}
