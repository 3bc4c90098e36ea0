/* SPDX-License-Identifier: BSD-3-Clause */
/* The RDMA device of a channel: one port of one adapter, its address, and the settings of the verbs transport. */
#ifndef IB_DEVICE_H
#define IB_DEVICE_H

#include "rdma_channel/transport.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum { IB_WIRE_VERSION = 3, IB_QPS_MAX = 16 };

enum ib_link { IB_LINK_INFINIBAND = 1, IB_LINK_ROCE_V1 = 2, IB_LINK_ROCE_V2 = 3 };

/* The address of a port, a part of each half. Written by its owner, checked by the peer. Integers are little-endian. */
struct ib_address {
	uint8_t gid[16];
	uint16_t lid; /* 0 on Ethernet */
	uint8_t link; /* enum ib_link */
	uint8_t version; /* IB_WIRE_VERSION */
	uint16_t pkey; /* partition; highest bit: full membership. Two limited members cannot reach each other */
	uint16_t reserved;
};
_Static_assert(sizeof(struct ib_address) == 24, "wire format");

/* The part of an address that says which ports reach each other; in the card (ib_adapters.h). */
struct ib_network {
	uint8_t prefix[8]; /* of the GID; 0 on Ethernet */
	uint16_t pkey;     /* as in the address */
	uint8_t link;      /* enum ib_link */
	uint8_t kind;      /* enum ib_gid_kind */
};
_Static_assert(sizeof(struct ib_network) == 12, "wire format");

enum ib_gid_kind { IB_GID_OTHER = 0, IB_GID_IPV4 = 1, IB_GID_LINK_LOCAL = 2 }; /* InfiniBand: always IB_GID_OTHER */

struct ib_cache;
struct ib_conn;

struct ib_device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	uint8_t port;
	uint8_t gid_index;
	uint16_t pkey_index;   /* of address.pkey in the port's table */
	uint8_t service_level; /* HEADRACE_IB_SL */
	uint8_t traffic_class; /* HEADRACE_IB_TRAFFIC_CLASS; on Ethernet the DSCP, shifted by two */
	struct ibv_device_attr limits;
	struct ibv_port_attr port_attr;
	struct ib_address address;
	uint32_t n_qps;       /* queue pairs of a connection: HEADRACE_IB_QPS, or fewer if the device has less */
	uint32_t depth;       /* data requests per queue pair: HEADRACE_IB_DEPTH, or fewer if the device has less */
	uint32_t chunk_bytes; /* requested chunk size, HEADRACE_IB_CHUNK */
	uint32_t staging_bytes; /* maximum for a peer's ring that is larger than the own ring, HEADRACE_IB_STAGING */
	uint32_t zero_copy_bytes; /* minimum size of a piece for zero copy, HEADRACE_IB_ZERO_COPY; a default if it is measured */
	bool measures;        /* each connection measures that size (ib_gauge.h) */
	uint32_t announced_most; /* maximum number of announcements without acknowledgement, HEADRACE_IB_ANNOUNCED */
	uint32_t read_bytes;  /* size of one zero-copy read, HEADRACE_IB_READ */
	uint32_t timeout_ms;
	struct ib_cache *cache; /* of registrations of the user's memory */
	LIST_HEAD(, ib_conn) conns;
	LIST_HEAD(, ib_exposed) shared; /* memory that hr_remote_share has registered */
	int error; /* why no connection works now, a negated errno value; 0: connections work (ib_events.h) */
	bool dead; /* the device itself failed */
	enum hr_verbs_design design; /* from the attribute, else from HEADRACE_IB_DESIGN; never HR_VERBS_DEFAULT */
};

/* An entry of HEADRACE_IB_DEVICE. */
struct ib_wanted {
	const char *device; /* its name; NULL: any */
	int port;           /* -1: as HEADRACE_IB_PORT says */
};

/*
 * Opens a device, with the port, address and partition that HEADRACE_IB_PORT, HEADRACE_IB_GID_INDEX and HEADRACE_IB_PKEY
 * name. Each is "auto" by default: the first device with an active port; on Ethernet a RoCE v2 address, IPv4 before
 * IPv6 before link-local; the first partition of the port's table. -ENODEV: no such device, or it cannot be used
 * (logged). -EINVAL: a setting is out of range.
 */
int ib_device_open(const struct hr_channel_env *env, const struct ib_wanted *wanted, struct ib_device **device);
void ib_device_close(struct ib_device *device);

/* Returns the fault of the port as a text for the log: not active, or no longer with the address that is in the card.
 * NULL: no fault. */
const char *ib_device_fault(const struct ib_device *device);

/* Returns the design's name, such as "basic". Static storage. */
const char *ib_design_name(enum hr_verbs_design design);

struct ib_network ib_network_of(const struct ib_address *address);
/* Returns whether ports of these networks reach each other. */
bool ib_networks_meet(const struct ib_network *a, const struct ib_network *b);

/* Returns whether a peer with that address can be reached from this port. */
bool ib_device_reaches(const struct ib_device *device, const struct ib_address *peer);

#endif
