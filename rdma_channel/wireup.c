/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives the messages of connection set-up. */
#include "rdma_channel/wireup.h"

#include "rdma_channel/crc32.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Has room for one descriptor more than is allowed, so that a message with too many is detected, not silently cut. */
union fd_control {
	char bytes[CMSG_SPACE(sizeof(int) * (HR_HALF_FDS_MAX + 1))];
	struct cmsghdr align;
};

static void close_all(int *fds, int *n)
{
	for (int i = 0; i < *n; i++)
		close(fds[i]);
	*n = 0;
}

void hr_wireup_init(struct hr_wireup *wireup, int fd, bool is_unix)
{
	memset(wireup, 0, sizeof *wireup);
	wireup->fd = fd;
	wireup->is_unix = is_unix;
}

void hr_wireup_close(struct hr_wireup *wireup)
{
	close_all(wireup->in.fds, &wireup->in.n_fds);
	close_all(wireup->out.fds, &wireup->out.n_fds);
	if (wireup->fd >= 0)
		close(wireup->fd);
	hr_wireup_init(wireup, -1, false);
}

void hr_wireup_move(struct hr_wireup *to, struct hr_wireup *from)
{
	*to = *from;
	hr_wireup_init(from, -1, false);
}

uint32_t hr_wire_header_check(const struct hr_wire_header *header)
{
	return hr_crc32(header, offsetof(struct hr_wire_header, header_check));
}

void hr_wireup_queue(struct hr_wireup *wireup, enum hr_wire_kind kind, const void *body, size_t len, const int *fds,
		     int n_fds)
{
	struct hr_wire_header header = {
		.magic = htole32(HR_WIRE_MAGIC),
		.version = htole16(HR_WIRE_VERSION),
		.kind = (uint8_t)kind,
		.n_fds = (uint8_t)n_fds,
		.len = htole32((uint32_t)len),
		.body_check = htole32(hr_crc32(body, len)),
	};
	header.header_check = htole32(hr_wire_header_check(&header));
	if (n_fds > 0) {
		wireup->out.fds_at = wireup->out.len;
		wireup->out.n_fds = n_fds;
		memcpy(wireup->out.fds, fds, sizeof(int) * (size_t)n_fds);
	}
	memcpy(wireup->out.bytes + wireup->out.len, &header, sizeof header);
	wireup->out.len += sizeof header;
	if (len > 0)
		memcpy(wireup->out.bytes + wireup->out.len, body, len);
	wireup->out.len += len;
}

/* Sends the bytes from out.sent up to end. Sends the descriptors too if they belong to the first of these bytes. */
static ssize_t send_up_to(struct hr_wireup *wireup, size_t end)
{
	struct iovec iov = { wireup->out.bytes + wireup->out.sent, end - wireup->out.sent };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	union fd_control control;
	if (wireup->out.n_fds > 0 && wireup->out.sent == wireup->out.fds_at) {
		size_t size = sizeof(int) * (size_t)wireup->out.n_fds;
		memset(&control, 0, sizeof control);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(size);
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(cmsg), wireup->out.fds, size);
	}
	ssize_t sent = sendmsg(wireup->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent > 0 && message.msg_control)
		close_all(wireup->out.fds, &wireup->out.n_fds);
	return sent;
}

int hr_wireup_flush(struct hr_wireup *wireup)
{
	while (wireup->out.sent < wireup->out.len) {
		size_t end = wireup->out.len;
		if (wireup->out.n_fds > 0 && wireup->out.sent < wireup->out.fds_at)
			end = wireup->out.fds_at;
		ssize_t sent = send_up_to(wireup, end);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 1 : -errno;
		wireup->out.sent += (size_t)sent;
	}
	wireup->out.sent = wireup->out.len = 0;
	return 0;
}

static void collect_fds(struct hr_wireup *wireup, struct msghdr *message, bool *too_many)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof fd, sizeof fd);
			if (wireup->in.n_fds < HR_HALF_FDS_MAX) {
				wireup->in.fds[wireup->in.n_fds++] = fd;
			} else {
				close(fd);
				*too_many = true;
			}
		}
	}
	if (message->msg_flags & MSG_CTRUNC)
		*too_many = true;
}

/* Reads until in.have is want. Returns 1 if it is, 0 if the read would block, or a negated errno value. */
static int read_up_to(struct hr_wireup *wireup, size_t want, const char **reason)
{
	while (wireup->in.have < want) {
		struct iovec iov = { wireup->in.bytes + wireup->in.have, want - wireup->in.have };
		union fd_control control;
		struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
		if (wireup->is_unix) {
			message.msg_control = &control;
			message.msg_controllen = sizeof control;
		}
		ssize_t got = recvmsg(wireup->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		bool too_many = false;
		collect_fds(wireup, &message, &too_many);
		if (too_many) {
			*reason = "too many descriptors";
			return -EPROTO;
		}
		if (got == 0)
			return -ECONNRESET;
		wireup->in.have += (size_t)got;
	}
	return 1;
}

static const char *fault_of(const struct hr_wireup *wireup, const struct hr_wire_header *header)
{
	if (le32toh(header->magic) != HR_WIRE_MAGIC)
		return "it does not use this protocol";
	if (le16toh(header->version) != HR_WIRE_VERSION)
		return "it uses another version of the protocol";
	if (le32toh(header->header_check) != hr_wire_header_check(header))
		return "damaged on its way";
	if (header->kind < HR_WIRE_HELLO || header->kind > HR_WIRE_YIELD)
		return "unknown kind of message";
	if (le32toh(header->len) > HR_WIRE_BODY_MAX)
		return "message too long";
	if (header->n_fds != wireup->in.n_fds || (header->n_fds > 0 && header->kind != HR_WIRE_HALF))
		return "unexpected descriptors";
	return NULL;
}

int hr_wireup_receive(struct hr_wireup *wireup, struct hr_wire_message *message, const char **reason)
{
	struct hr_wire_header header;
	*reason = "the stream ended";
	int state = read_up_to(wireup, sizeof header, reason);
	if (state <= 0)
		return state;
	memcpy(&header, wireup->in.bytes, sizeof header);
	const char *fault = fault_of(wireup, &header);
	if (fault) {
		*reason = fault;
		return -EPROTO;
	}
	size_t len = le32toh(header.len);
	state = read_up_to(wireup, sizeof header + len, reason);
	if (state <= 0)
		return state;
	if (le32toh(header.body_check) != hr_crc32(wireup->in.bytes + sizeof header, len)) {
		*reason = "damaged on its way";
		return -EPROTO;
	}
	message->kind = header.kind;
	message->body = wireup->in.bytes + sizeof header;
	message->len = len;
	wireup->in.have = 0;
	return 1;
}

int hr_wireup_take_fds(struct hr_wireup *wireup, int fds[HR_HALF_FDS_MAX])
{
	int n = wireup->in.n_fds;
	memcpy(fds, wireup->in.fds, sizeof wireup->in.fds);
	wireup->in.n_fds = 0;
	return n;
}
