/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes authenticated peers from the daemon to a worker. */
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

int rc_door_peer_send(int socket, const rc_door_peer_t *peer)
{
	union descriptor_space space = { .bytes = { 0 } };
	struct iovec part = { (void *)(uintptr_t)peer, sizeof *peer };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof space
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof peer->fd);
	memcpy(CMSG_DATA(header), &peer->fd, sizeof peer->fd);
	ssize_t n;
	do
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int rc_door_peer_receive(int socket, rc_door_peer_t *peer)
{
	union descriptor_space space;
	rc_door_peer_t received;
	struct iovec part = { &received, sizeof received };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof space
	};
	ssize_t n;
	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	/* If this process has no free descriptor, the kernel drops the one that was sent. */
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (n == (ssize_t)sizeof received && message.msg_flags & MSG_CTRUNC)
		return -EMFILE;
	if (n != (ssize_t)sizeof received || !header || header->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(&received.fd, CMSG_DATA(header), sizeof received.fd);
	*peer = received;
	return 1;
}
