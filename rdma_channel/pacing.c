/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP streams within a host: which congestion control they use. */
#include "rdma_channel/pacing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

static const char unpaced[] = "reno";

static bool is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
	if (address->ss_family != AF_INET6)
		return false;
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
	return IN6_IS_ADDR_LOOPBACK(in6) || (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
}

bool hr_stream_is_local(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof peer;
	return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && is_loopback(&peer);
}

void hr_stream_unpace(int fd, const struct sockaddr_storage *to)
{
	if (is_loopback(to))
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, unpaced, sizeof unpaced - 1); /* else it is only slower */
}

void hr_stream_unpace_listener(int fd, char system[HR_CONGESTION_MAX])
{
	socklen_t len = HR_CONGESTION_MAX;
	memset(system, 0, HR_CONGESTION_MAX);
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, system, &len) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, unpaced, sizeof unpaced - 1) < 0)
		system[0] = '\0';
}

void hr_stream_accepted(int fd, const char system[HR_CONGESTION_MAX])
{
	if (system[0] && !hr_stream_is_local(fd))
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, system, (socklen_t)strnlen(system, HR_CONGESTION_MAX));
}
