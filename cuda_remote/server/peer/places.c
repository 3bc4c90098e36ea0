/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses at which this worker listens for other workers. The daemon puts them into HEADRACE_LINK_ADDRESS, if the
 * administrator has not: the address at which the client has reached this worker, then those at which the daemon listens.
 */
#define _GNU_SOURCE /* strchrnul */
#include "cuda_remote/server/peer/link.h"

#include "rdma_channel/base/setting.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

HR_SETTING(address_setting, "HEADRACE_LINK_ADDRESS", "auto", 0, 0,
	   "server: addresses at which workers of other servers connect, the best first; auto: where the client has reached it");

static union peer_address reached; /* where the client reaches this worker; without a port */

void server_links_prepare(const rc_door_peer_t *first)
{
	union peer_address own = { .space = { 0 } };
	socklen_t bytes = sizeof own;
	if (getsockname(first->fd, &own.any, &bytes) || (own.any.sa_family != AF_INET && own.any.sa_family != AF_INET6))
		own = (union peer_address){ .v4 = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } } };
	reached = own;
	peer_address_set_port(&reached, 0);
	peer_meet_prepare(first->encrypts);
}

/* ---- addresses ---- */

socklen_t peer_address_bytes(const union peer_address *address)
{
	return address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
}

void peer_address_set_port(union peer_address *address, uint16_t port)
{
	if (address->any.sa_family == AF_INET)
		address->v4.sin_port = htons(port);
	else
		address->v6.sin6_port = htons(port);
}

static const void *number_of(const union peer_address *address, size_t *size)
{
	bool v4 = address->any.sa_family == AF_INET;
	*size = v4 ? sizeof address->v4.sin_addr : sizeof address->v6.sin6_addr;
	return v4 ? (const void *)&address->v4.sin_addr : (const void *)&address->v6.sin6_addr;
}

bool peer_address_parse(const char *text, union peer_address *address)
{
	*address = (union peer_address){ .v4 = { .sin_family = AF_INET } };
	if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1)
		return true;
	*address = (union peer_address){ .v6 = { .sin6_family = AF_INET6 } };
	return inet_pton(AF_INET6, text, &address->v6.sin6_addr) == 1;
}

int peer_address_print(const union peer_address *address, char *text, size_t size)
{
	size_t bytes;
	const void *number = number_of(address, &bytes);
	return inet_ntop(address->any.sa_family, number, text, (socklen_t)size) ? 0 : -EIO;
}

static bool is_any(const union peer_address *address)
{
	return address->any.sa_family == AF_INET ? address->v4.sin_addr.s_addr == htonl(INADDR_ANY) :
						   IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

/* ---- the list ---- */

struct places {
	union peer_address *address;
	size_t max, n;
};

/* A link-local address means something else on another host. */
static void add(struct places *places, const union peer_address *address)
{
	size_t size, other_size;
	const void *number = number_of(address, &size);
	if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address->v6.sin6_addr))
		return;
	for (size_t i = 0; i < places->n; i++)
		if (places->address[i].any.sa_family == address->any.sa_family &&
		    !memcmp(number_of(&places->address[i], &other_size), number, size))
			return;
	if (places->n < places->max)
		places->address[places->n++] = *address;
}

/* Adds the addresses of the interfaces that are up: of IPv4, and of IPv6 too if the daemon listens to all of both. */
static void add_interfaces(struct places *places, bool v6)
{
	struct ifaddrs *list;
	if (getifaddrs(&list)) {
		hr_log(HR_LOG_WARN, "getifaddrs: %s; links use the other addresses of HEADRACE_LINK_ADDRESS", strerror(errno));
		return;
	}
	for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
		union peer_address address = { .space = { 0 } };
		int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
		if (!(at->ifa_flags & IFF_UP) || at->ifa_flags & IFF_LOOPBACK || (family != AF_INET && (!v6 || family != AF_INET6)))
			continue;
		memcpy(&address, at->ifa_addr, family == AF_INET ? sizeof address.v4 : sizeof address.v6);
		add(places, &address);
	}
	freeifaddrs(list);
}

/* Takes the next element of a list. False: there is none. */
static bool next_element(const char **list, char *text, size_t size)
{
	if (!*list)
		return false;
	const char *end = strchrnul(*list, ',');
	snprintf(text, size, "%.*s", (int)(end - *list), *list);
	*list = *end ? end + 1 : NULL;
	return true;
}

bool server_link_addresses_valid(const char *list)
{
	char text[64];
	union peer_address address;
	while (next_element(&list, text, sizeof text))
		if (strcmp(text, "auto") != 0 && !peer_address_parse(text, &address))
			return false;
	return true;
}

size_t peer_places(union peer_address *addresses, size_t max)
{
	struct places places = { addresses, max, 0 };
	const char *list = hr_setting_text(&address_setting);
	char text[64];
	while (next_element(&list, text, sizeof text)) {
		union peer_address address;
		if (!strcmp(text, "auto"))
			add(&places, &reached);
		else if (!peer_address_parse(text, &address))
			hr_log(HR_LOG_ERROR, "HEADRACE_LINK_ADDRESS: \"%s\" is no IP address; want addresses of this host, or auto", text);
		else if (is_any(&address))
			add_interfaces(&places, address.any.sa_family == AF_INET6);
		else
			add(&places, &address);
	}
	return places.n;
}
