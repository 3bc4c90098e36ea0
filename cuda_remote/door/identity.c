/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel which user owns the other end of a socket. */
#define _GNU_SOURCE /* struct ucred */
#include "cuda_remote/door/identity.h"

#include "rdma_channel/base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	struct sockaddr_storage storage;
};

static void fill_id(const union address *source, const union address *destination, struct inet_diag_sockid *id)
{
	if (source->any.sa_family == AF_INET) {
		id->idiag_sport = source->in.sin_port;
		id->idiag_dport = destination->in.sin_port;
		memcpy(id->idiag_src, &source->in.sin_addr, sizeof source->in.sin_addr);
		memcpy(id->idiag_dst, &destination->in.sin_addr, sizeof destination->in.sin_addr);
	} else {
		id->idiag_sport = source->in6.sin6_port;
		id->idiag_dport = destination->in6.sin6_port;
		memcpy(id->idiag_src, &source->in6.sin6_addr, sizeof source->in6.sin6_addr);
		memcpy(id->idiag_dst, &destination->in6.sin6_addr, sizeof destination->in6.sin6_addr);
	}
	id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
}

/*
 * The user that owns the TCP socket bound to source and connected to destination (sock_diag(7)). Only an established
 * socket with an inode counts: a socket that its process has closed, or not accepted yet, belongs to no process, and
 * kernels report user 0 for it.
 */
static uid_t socket_owner(const union address *source, const union address *destination)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 body;
	} query = { .header = { .nlmsg_len = sizeof query,
				.nlmsg_type = SOCK_DIAG_BY_FAMILY,
				.nlmsg_flags = NLM_F_REQUEST },
		    .body = { .sdiag_family = (uint8_t)source->any.sa_family,
			      .sdiag_protocol = IPPROTO_TCP,
			      .idiag_states = 1u << TCP_ESTABLISHED } };
	union {
		struct nlmsghdr header;
		char bytes[1024];
	} answer;
	uid_t uid = DOOR_UID_UNKNOWN;
	fill_id(source, destination, &query.body.id);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		return uid;
	struct timeval limit = { .tv_sec = 1 };
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (send(fd, &query, sizeof query, 0) == (ssize_t)sizeof query) {
		ssize_t n = recv(fd, &answer, sizeof answer, 0);
		const struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
		if (n >= (ssize_t)NLMSG_LENGTH(sizeof *found) && answer.header.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
		    found->idiag_state == TCP_ESTABLISHED && found->idiag_inode)
			uid = found->idiag_uid;
	}
	close(fd);
	return uid;
}

/* A socket for both families has IPv4 addresses in the form of IPv6. The kernel's tables, and limits, count them as IPv4. */
static void unmap(union address *address)
{
	if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->in6.sin6_addr))
		return;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = address->in6.sin6_port };
	memcpy(&in.sin_addr, (const uint8_t *)&address->in6.sin6_addr + 12, sizeof in.sin_addr);
	address->in = in;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->in.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
}

/* On this host a user can use any number of loopback addresses, so limits count the user, not the address. */
static void count_by_user(struct door_identity *peer)
{
	if (peer->uid == DOOR_UID_UNKNOWN)
		return;
	memset(peer->source, 0, sizeof peer->source);
	peer->source[0] = DOOR_SOURCE_USER;
	memcpy(peer->source + 1, &peer->uid, sizeof peer->uid);
}

static void identify_inet(const union address *theirs, const union address *ours, struct door_identity *peer)
{
	char text[INET6_ADDRSTRLEN] = "?";
	if (theirs->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &theirs->in.sin_addr, text, sizeof text);
		snprintf(peer->name, sizeof peer->name, "%s:%u", text, ntohs(theirs->in.sin_port));
		peer->source[0] = DOOR_SOURCE_IPV4;
		memcpy(peer->source + 1, &theirs->in.sin_addr, sizeof theirs->in.sin_addr);
	} else {
		/* A host usually has a /64 network, so limits count the first 64 bits. */
		inet_ntop(AF_INET6, &theirs->in6.sin6_addr, text, sizeof text);
		snprintf(peer->name, sizeof peer->name, "[%s]:%u", text, ntohs(theirs->in6.sin6_port));
		peer->source[0] = DOOR_SOURCE_IPV6;
		memcpy(peer->source + 1, &theirs->in6.sin6_addr, 8);
	}
	peer->loopback = is_loopback(theirs) && is_loopback(ours);
	if (peer->loopback)
		peer->uid = socket_owner(theirs, ours);
	count_by_user(peer);
}

static int identify_unix(int fd, struct door_identity *peer)
{
	struct ucred credentials;
	socklen_t length = sizeof credentials;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length))
		return -errno;
	peer->local = true;
	peer->uid = credentials.uid;
	peer->pid = credentials.pid;
	count_by_user(peer);
	snprintf(peer->name, sizeof peer->name, "unix:pid %d", (int)credentials.pid);
	return 0;
}

int door_identify(int fd, struct door_identity *peer)
{
	union address theirs = { 0 }, ours = { 0 };
	socklen_t their_length = sizeof theirs, our_length = sizeof ours;
	memset(peer, 0, sizeof *peer);
	peer->uid = DOOR_UID_UNKNOWN;
	if (getpeername(fd, &theirs.any, &their_length) || getsockname(fd, &ours.any, &our_length))
		return -errno;
	if (theirs.any.sa_family == AF_UNIX)
		return identify_unix(fd, peer);
	unmap(&theirs);
	unmap(&ours);
	if (theirs.any.sa_family != AF_INET && theirs.any.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	identify_inet(&theirs, &ours, peer);
	return 0;
}

bool door_server_trusts(const struct door_identity *client, bool own_user_only)
{
	if (client->uid == DOOR_UID_UNKNOWN)
		return false;
	return client->uid == 0 || client->uid == geteuid() || (geteuid() == 0 && !own_user_only);
}

bool door_client_trusts(const struct door_identity *server)
{
	if (server->uid == DOOR_UID_UNKNOWN)
		return false;
	return server->uid == 0 || server->uid == geteuid();
}
