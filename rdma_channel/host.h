/* SPDX-License-Identifier: BSD-3-Clause */
/* Where this process is: which host, which network namespace, which addresses. Any thread. */
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
	uint64_t boot;  /* hash of the kernel's boot id: the same for all processes of one booted host */
	uint64_t netns; /* inode of the network namespace */
	uint32_t pid;
	char name[HR_HOSTNAME_MAX + 1]; /* cut off if longer */
};

/* Describes this process. Where /proc does not tell, boot and netns are random: then nobody is on the same host. */
void hr_host_describe(struct hr_host *host);

/* Addresses of the interfaces that are up, without loopback and link-local ones; returns how many. */
int hr_host_addresses(struct hr_address *addresses, int max);

/* Sorts addresses that lie in a subnet of this host's interfaces to the front. */
void hr_host_sort_by_nearness(struct hr_address *addresses, int n);

/* Socket address of address and port; returns its length. */
socklen_t hr_address_to_sockaddr(const struct hr_address *address, uint16_t port, struct sockaddr_storage *out);

/* n random bytes from the kernel; 0 or a negated errno. */
int hr_random_bytes(void *out, size_t n);

#endif
