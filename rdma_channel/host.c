/* SPDX-License-Identifier: BSD-3-Clause */
/* Identifies the host and network namespace of this process, and lists its network addresses. */
#include "rdma_channel/host.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int hr_random_bytes(void *out, size_t n)
{
	uint8_t *bytes = out;
	while (n > 0) {
		ssize_t got = getrandom(bytes, n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			hr_log(HR_LOG_ERROR, "getrandom: %s", strerror(errno));
			return -errno;
		}
		bytes += got;
		n -= (size_t)got;
	}
	return 0;
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo; public domain). */
static uint64_t hash_bytes(const void *bytes, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ull;
	return hash;
}

static uint64_t boot_id(void)
{
	uint64_t hash = 0;
	char text[64];
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
	if (fd >= 0)
		close(fd);
	if (n > 0)
		hash = hash_bytes(text, (size_t)n);
	else
		hr_random_bytes(&hash, sizeof hash);
	return hash;
}

static uint64_t network_namespace(void)
{
	struct stat status;
	uint64_t id = 0;
	if (stat("/proc/self/ns/net", &status) == 0)
		id = (uint64_t)status.st_ino;
	else
		hr_random_bytes(&id, sizeof id);
	return id;
}

void hr_host_describe(struct hr_host *host)
{
	memset(host, 0, sizeof *host);
	host->boot = boot_id();
	host->netns = network_namespace();
	host->pid = (uint32_t)getpid();
	if (gethostname(host->name, sizeof host->name) < 0 && errno != ENAMETOOLONG)
		strcpy(host->name, "?");
	host->name[HR_HOSTNAME_MAX] = '\0';
}

/* Returns the bytes of an IPv4 or IPv6 address; NULL for other families. */
static const void *address_bytes(const struct sockaddr *sa, uint8_t *len)
{
	if (sa && sa->sa_family == AF_INET) {
		*len = 4;
		return &((const struct sockaddr_in *)(const void *)sa)->sin_addr;
	}
	if (sa && sa->sa_family == AF_INET6) {
		*len = 16;
		return &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	}
	return NULL;
}

static bool is_usable(const struct ifaddrs *interface)
{
	if (!(interface->ifa_flags & IFF_UP) || (interface->ifa_flags & IFF_LOOPBACK))
		return false;
	uint8_t len;
	const void *bytes = address_bytes(interface->ifa_addr, &len);
	if (!bytes)
		return false;
	/* A link-local address is valid only together with an interface, and the peer's interfaces have other names. */
	return len == 4 || !IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)bytes);
}

int hr_host_addresses(struct hr_address *addresses, int max)
{
	struct ifaddrs *list;
	if (getifaddrs(&list) < 0) {
		hr_log(HR_LOG_WARN, "getifaddrs: %s; peers on other hosts cannot connect to this process",
		       strerror(errno));
		return 0;
	}
	int n = 0;
	for (const struct ifaddrs *i = list; i && n < max; i = i->ifa_next) {
		if (!is_usable(i))
			continue;
		memset(&addresses[n], 0, sizeof addresses[n]);
		const void *bytes = address_bytes(i->ifa_addr, &addresses[n].len);
		memcpy(addresses[n].bytes, bytes, addresses[n].len);
		n++;
	}
	freeifaddrs(list);
	return n;
}

static bool in_subnet(const struct hr_address *address, const struct ifaddrs *interface)
{
	uint8_t len, mask_len;
	const uint8_t *own = address_bytes(interface->ifa_addr, &len);
	const uint8_t *mask = address_bytes(interface->ifa_netmask, &mask_len);
	if (!own || !mask || len != address->len || mask_len != len)
		return false;
	for (int i = 0; i < len; i++)
		if ((own[i] ^ address->bytes[i]) & mask[i])
			return false;
	return true;
}

void hr_host_sort_by_nearness(struct hr_address *addresses, int n)
{
	struct ifaddrs *list;
	if (getifaddrs(&list) < 0)
		return;
	int near = 0;
	for (int i = 0; i < n; i++) {
		const struct ifaddrs *own = list;
		while (own && !in_subnet(&addresses[i], own))
			own = own->ifa_next;
		if (!own)
			continue;
		struct hr_address moved = addresses[i];
		memmove(&addresses[near + 1], &addresses[near], (size_t)(i - near) * sizeof moved);
		addresses[near++] = moved;
	}
	freeifaddrs(list);
}

socklen_t hr_address_to_sockaddr(const struct hr_address *address, uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof *out);
	if (address->len == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)out;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, address->bytes, 4);
		return sizeof *in;
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, address->bytes, 16);
	return sizeof *in6;
}
