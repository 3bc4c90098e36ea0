/* SPDX-License-Identifier: BSD-3-Clause */
/* This process's host, network namespace and network addresses. Any thread. */
#ifndef HR_HOST_H
#define HR_HOST_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_ADDRESSES_MAX 6
#define HR_HOSTNAME_MAX 23

struct hr_address {
	uint8_t bytes[16]; /* network order; IPv4 uses the first 4 */
	uint8_t len;       /* 4 or 16 */
};

struct hr_host {
	uint64_t boot;  /* hash of the kernel's boot id: the same for all processes of one host until it reboots */
	uint64_t netns; /* inode of the network namespace */
	uint32_t pid;
	char name[HR_HOSTNAME_MAX + 1]; /* a longer name is cut off */
};

/* Describes this process. If /proc cannot be read, boot and netns are random, so that no peer seems to be on the same
 * host. */
void hr_host_describe(struct hr_host *host);

/* Stores the addresses of the interfaces that are up, at most max. Leaves out loopback and link-local addresses.
 * Returns their number. */
int hr_host_addresses(struct hr_address *addresses, int max);

/* Moves the addresses that are in a subnet of this host's interfaces to the front. */
void hr_host_sort_by_nearness(struct hr_address *addresses, int n);

/* Makes a socket address from address and port. Returns its length. */
socklen_t hr_address_to_sockaddr(const struct hr_address *address, uint16_t port, struct sockaddr_storage *out);

/* Stores n random bytes from the kernel. 0 or a negated errno value. */
int hr_random_bytes(void *out, size_t n);

#endif
