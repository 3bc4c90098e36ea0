/* SPDX-License-Identifier: BSD-3-Clause */
/* Selects and opens the RDMA device, its port, address and partition key; reads the settings of verbs. */
#include "config.h"

#include "ib/ib_device.h"

#include "ib/ib_cache.h"
#include "ib/ib_events.h"
#include "ib/ib_offer.h"
#include "ib/ib_qp.h"
#include "ib/ib_ring.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DEPTH_MIN = 2, ZERO_COPY_BYTES = 65536 };

HR_SETTING(port_setting, "HEADRACE_IB_PORT", "auto", 1, 255,
	   "verbs: port of devices that are listed without one, or auto (first active)");
HR_SETTING(gid_setting, "HEADRACE_IB_GID_INDEX", "auto", 0, 255, "verbs: index in the port's GID table, or auto");
HR_SETTING(pkey_setting, "HEADRACE_IB_PKEY", "auto", 0, 0, "verbs: partition key, such as 0x8001, or auto (the first)");
HR_SETTING(sl_setting, "HEADRACE_IB_SL", "0", 0, 15, "verbs: service level");
HR_SETTING(class_setting, "HEADRACE_IB_TRAFFIC_CLASS", "0", 0, 255, "verbs: traffic class of RoCE packets");
HR_SETTING(qps_setting, "HEADRACE_IB_QPS", "2", 1, IB_QPS_MAX, "verbs: queue pairs per connection");
HR_SETTING(depth_setting, "HEADRACE_IB_DEPTH", "128", DEPTH_MIN, 8192, "verbs: send queue depth per queue pair");
HR_SETTING(design_setting, "HEADRACE_IB_DESIGN", "zerocopy", 0, 0, "verbs: basic, piggyback, pipeline or zerocopy");
HR_SETTING(zero_copy_setting, "HEADRACE_IB_ZERO_COPY", "auto", HR_ZERO_COPY_MIN, UINT32_MAX,
	   "verbs: minimum size for zero copy, bytes, or auto (measured for each connection)");
HR_SETTING(announced_setting, "HEADRACE_IB_ANNOUNCED", "32", 1, IB_OFFERS_MAX,
	   "verbs: zero-copy pieces that are announced before the receiver has read the first");
HR_SETTING(read_setting, "HEADRACE_IB_READ", "256k", 4096, 1 << 26, "verbs: size of one RDMA read of zero copy, bytes");
HR_SETTING(staging_setting, "HEADRACE_IB_STAGING", "16M", 0, IB_RING_BYTES_MAX,
	   "verbs: maximum staging memory for a peer's larger ring, bytes; at least the size of the own ring");
HR_SETTING(chunk_setting, "HEADRACE_IB_CHUNK", "16k", 256, 1 << 20, "verbs: chunk size of the ring, bytes");

/* The device that the settings ask for; -1: auto. */
struct wish {
	const char *device; /* NULL: any */
	int port;
	char port_text[12]; /* for messages */
	int gid_index;
	int pkey;
};

static bool is_auto(const struct hr_setting *setting)
{
	return !strcmp(hr_setting_text(setting), "auto");
}

static int read_number(const struct hr_setting *setting, int *number)
{
	uint64_t value;
	*number = -1;
	if (is_auto(setting))
		return 0;
	int error = hr_setting_u64(setting, &value);
	if (!error)
		*number = (int)value;
	return error;
}

static int read_u32(const struct hr_setting *setting, uint32_t *number)
{
	uint64_t value;
	int error = hr_setting_u64(setting, &value);
	if (!error)
		*number = (uint32_t)value;
	return error;
}

/* Reads the minimum size for zero copy. auto: until it has been measured, a default is in use. */
static int read_zero_copy(struct ib_device *device)
{
	device->measures = is_auto(&zero_copy_setting);
	device->zero_copy_bytes = ZERO_COPY_BYTES;
	return device->measures ? 0 : read_u32(&zero_copy_setting, &device->zero_copy_bytes);
}

/* Reads the partition key, which may be hexadecimal: subnet managers show it so. */
static int read_pkey(int *pkey)
{
	const char *text = hr_setting_text(&pkey_setting);
	char *end;
	*pkey = -1;
	if (is_auto(&pkey_setting))
		return 0;
	unsigned long value = strtoul(text, &end, 0);
	if (*text < '0' || *text > '9' || *end || value > 0xffff || (value & 0x7fff) == 0) {
		hr_log(HR_LOG_ERROR, "HEADRACE_IB_PKEY=%s: invalid value; valid values: a partition key from 1 to 0xffff, auto", text);
		return -EINVAL;
	}
	*pkey = (int)value;
	return 0;
}

/* Reads service level and traffic class, for all packets that this side sends. */
static int read_service(struct ib_device *device)
{
	uint64_t level, class = 0;
	int error = hr_setting_u64(&sl_setting, &level);
	if (!error)
		error = hr_setting_u64(&class_setting, &class);
	if (error)
		return error;
	device->service_level = (uint8_t)level;
	device->traffic_class = (uint8_t)class;
	return 0;
}

static int read_settings(struct ib_device *device, struct wish *wish)
{
	int error;
	if ((wish->port < 0 && (error = read_number(&port_setting, &wish->port))) ||
	    (error = read_number(&gid_setting, &wish->gid_index)) || (error = read_pkey(&wish->pkey)) ||
	    (error = read_service(device)) ||
	    (error = read_u32(&qps_setting, &device->n_qps)) || (error = read_u32(&depth_setting, &device->depth)) ||
	    (error = read_u32(&chunk_setting, &device->chunk_bytes)) ||
	    (error = read_zero_copy(device)) ||
	    (error = read_u32(&announced_setting, &device->announced_most)) ||
	    (error = read_u32(&staging_setting, &device->staging_bytes)) ||
	    (error = read_u32(&read_setting, &device->read_bytes)))
		return error;
	return 0;
}

/* ---- the address ---- */

static enum ib_link link_of(const struct ibv_gid_entry *entry)
{
	switch (entry->gid_type) {
	case IBV_GID_TYPE_ROCE_V1: return IB_LINK_ROCE_V1;
	case IBV_GID_TYPE_ROCE_V2: return IB_LINK_ROCE_V2;
	default: return IB_LINK_INFINIBAND;
	}
}

static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	return !memcmp(gid, mapped, sizeof mapped);
}

static bool is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* Returns the rank of an entry of the GID table, the highest for the best entry; 0: unusable. */
static int preference(const struct ibv_gid_entry *entry)
{
	switch (link_of(entry)) {
	case IB_LINK_INFINIBAND: return 9;
	case IB_LINK_ROCE_V2: return is_ipv4(entry->gid.raw) ? 8 : is_link_local(entry->gid.raw) ? 6 : 7;
	case IB_LINK_ROCE_V1: return is_ipv4(entry->gid.raw) ? 3 : is_link_local(entry->gid.raw) ? 1 : 2;
	}
	return 0;
}

static int choose_gid(struct ib_device *device, int wanted)
{
	struct ibv_gid_entry best, entry;
	int liked = 0;
	int first = wanted < 0 ? 0 : wanted;
	int end = wanted < 0 ? device->port_attr.gid_tbl_len : wanted + 1;
	/* The GID index in an address handle has eight bits. */
	for (int i = first; i < end && i < 256; i++) {
		if (ibv_query_gid_ex(device->verbs, device->port, (uint32_t)i, &entry, 0))
			continue;
		if (preference(&entry) > liked) {
			liked = preference(&entry);
			best = entry;
		}
	}
	if (!liked)
		return -ENODEV;
	device->gid_index = (uint8_t)best.gid_index;
	memcpy(device->address.gid, best.gid.raw, sizeof device->address.gid);
	device->address.link = (uint8_t)link_of(&best);
	device->address.lid = htole16(device->port_attr.lid);
	device->address.version = IB_WIRE_VERSION;
	return 0;
}

/* Chooses the port's partition with that key, with full or limited membership; -1: the port's first partition. */
static int choose_pkey(struct ib_device *device, int wanted)
{
	bool found = false;
	for (int i = 0; i < device->port_attr.pkey_tbl_len; i++) {
		__be16 entry;
		if (ibv_query_pkey(device->verbs, device->port, i, &entry))
			continue;
		uint16_t pkey = be16toh(entry);
		if ((pkey & 0x7fff) == 0 || (wanted >= 0 && (pkey & 0x7fff) != (wanted & 0x7fff)))
			continue;
		/* If the table has both memberships, take the full one. */
		if (found && !(pkey & 0x8000))
			continue;
		device->pkey_index = (uint16_t)i;
		device->address.pkey = htole16(pkey);
		found = true;
		if (wanted < 0 || pkey & 0x8000)
			break;
	}
	if (!found && wanted >= 0)
		hr_log(HR_LOG_ERROR, "HEADRACE_IB_PKEY=%#x: port %u of %s is not in that partition", (unsigned)wanted,
		       device->port, ibv_get_device_name(device->verbs->device));
	return found ? 0 : -ENODEV;
}

const char *ib_device_fault(const struct ib_device *device)
{
	struct ibv_port_attr port;
	struct ibv_gid_entry gid;
	__be16 pkey;
	if (device->dead)
		return "the device failed";
	if (ibv_query_port(device->verbs, device->port, &port) || port.state != IBV_PORT_ACTIVE)
		return "the port is down";
	if (htole16(port.lid) != device->address.lid)
		return "the port has another LID";
	if (ibv_query_gid_ex(device->verbs, device->port, device->gid_index, &gid, 0) ||
	    memcmp(gid.gid.raw, device->address.gid, sizeof gid.gid.raw))
		return "the port has lost its GID";
	if (ibv_query_pkey(device->verbs, device->port, device->pkey_index, &pkey) ||
	    htole16(be16toh(pkey)) != device->address.pkey)
		return "the port has left its partition";
	return NULL;
}

/* ---- choosing device and port ---- */

static int choose_port(struct ib_device *device, const struct wish *wish)
{
	int first = wish->port < 0 ? 1 : wish->port;
	int last = wish->port < 0 ? device->limits.phys_port_cnt : wish->port;
	/* Without a name the next device may have such a port. */
	if (wish->port > device->limits.phys_port_cnt)
		hr_log(wish->device ? HR_LOG_ERROR : HR_LOG_INFO, "verbs: device %s has ports 1 to %u: port %d of the settings does not exist",
		       ibv_get_device_name(device->verbs->device), device->limits.phys_port_cnt, wish->port);
	for (int port = first; port <= last && port <= device->limits.phys_port_cnt; port++) {
		if (ibv_query_port(device->verbs, (uint8_t)port, &device->port_attr) ||
		    device->port_attr.state != IBV_PORT_ACTIVE)
			continue;
		device->port = (uint8_t)port;
		if (!choose_gid(device, wish->gid_index) && !choose_pkey(device, wish->pkey))
			return 0;
	}
	return -ENODEV;
}

/* Tries to register as much memory as one connection needs. If the limit of locked memory is lower, the transport is
 * not opened at all: otherwise each connection would fail later. */
static bool can_register(const struct ib_device *device)
{
	enum { TRIED = 2 << 20 }; /* bytes that one connection takes by default */
	void *memory = mmap(NULL, TRIED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	struct ibv_mr *mr = ibv_reg_mr(device->pd, memory, TRIED, IBV_ACCESS_LOCAL_WRITE);
	int error = errno;
	if (mr)
		ibv_dereg_mr(mr);
	else
		hr_log(HR_LOG_WARN, "verbs: transport disabled: cannot register %d bytes: %s (see ulimit -l)", TRIED,
		       strerror(error));
	munmap(memory, TRIED);
	return mr != NULL;
}

/* Returns whether the device's queues are large enough for one connection of the minimum depth. */
static bool queues_suffice(const struct ib_device *device)
{
	uint32_t requests = (uint32_t)device->limits.max_qp_wr, completions = (uint32_t)device->limits.max_cqe;
	uint32_t least = IB_BESIDE_DATA + DEPTH_MIN;
	if (requests >= least && completions >= least)
		return true;
	hr_log(HR_LOG_WARN, "verbs: device %s skipped: its queue pairs hold %u requests and its completion queues %u; a "
	       "connection needs %u", ibv_get_device_name(device->verbs->device), requests, completions, least);
	return false;
}

/* Opens one adapter if it matches the settings. On failure leaves device as it was. */
static int try_adapter(struct ib_device *device, struct ibv_device *adapter, const struct wish *wish)
{
	const char *name = ibv_get_device_name(adapter);
	/* iWARP has no address handles. */
	if (adapter->transport_type != IBV_TRANSPORT_IB)
		return -ENODEV;
	device->verbs = ibv_open_device(adapter);
	if (!device->verbs) {
		hr_log(HR_LOG_INFO, "verbs: cannot open %s: %s", name, strerror(errno));
		return -ENODEV;
	}
	if (ibv_query_device(device->verbs, &device->limits)) {
		hr_log(HR_LOG_INFO, "verbs: cannot query %s", name);
		goto close_verbs;
	}
	if (device->limits.max_qp_rd_atom < 1 || device->limits.max_qp_init_rd_atom < 1) {
		hr_log(HR_LOG_INFO, "verbs: %s does not support RDMA read", name);
		goto close_verbs;
	}
	if (!queues_suffice(device))
		goto close_verbs;
	if (choose_port(device, wish)) {
		hr_log(HR_LOG_INFO, "verbs: %s has no active port with a usable address", name);
		goto close_verbs;
	}
	device->pd = ibv_alloc_pd(device->verbs);
	if (!device->pd) {
		hr_log(HR_LOG_INFO, "verbs: no protection domain on %s: %s", name, strerror(errno));
		goto close_verbs;
	}
	if (can_register(device))
		return 0;
	ibv_dealloc_pd(device->pd);
close_verbs:
	ibv_close_device(device->verbs);
	device->verbs = NULL;
	return -ENODEV;
}

/* Logs why no device was opened. found: there is a device of that name. */
static void log_no_adapter(const struct wish *wish, struct ibv_device **list, int n, bool found)
{
	char names[256] = "none";
	size_t at = 0;
	for (int i = 0; list && i < n && at < sizeof names; i++)
		at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", ibv_get_device_name(list[i]));
	if (wish->device && !found)
		hr_log(HR_LOG_ERROR, "HEADRACE_IB_DEVICE: there is no RDMA device %s; devices of this host: %s",
		       wish->device, names);
	else if (wish->device || wish->port >= 0 || wish->gid_index >= 0)
		hr_log(HR_LOG_ERROR, "HEADRACE_IB_DEVICE: %s cannot be used: no active port with port=%s, "
		       "HEADRACE_IB_GID_INDEX=%s (HEADRACE_LOG=info prints more)", wish->device ? wish->device : names,
		       wish->port_text, hr_setting_text(&gid_setting));
	else
		hr_log(HR_LOG_INFO, "verbs: no usable RDMA device among %d", n);
}

static int choose_adapter(struct ib_device *device, const struct wish *wish)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	int error = -ENODEV;
	bool found = false;
	for (int i = 0; list && i < n && error; i++) {
		if (wish->device && strcmp(wish->device, ibv_get_device_name(list[i])))
			continue;
		found = true;
		error = try_adapter(device, list[i], wish);
	}
	if (error)
		log_no_adapter(wish, list, n, found);
	if (list)
		ibv_free_device_list(list);
	return error;
}

static void log_choice(const struct ib_device *device)
{
	char gid[INET6_ADDRSTRLEN] = "?";
	inet_ntop(AF_INET6, device->address.gid, gid, sizeof gid);
	hr_log(HR_LOG_INFO, "verbs: %s port %u, lid %u, gid %u %s%s", ibv_get_device_name(device->verbs->device),
	       device->port, device->port_attr.lid, device->gid_index, gid,
	       device->address.link == IB_LINK_ROCE_V2 ? " (RoCE v2)" :
	       device->address.link == IB_LINK_ROCE_V1 ? " (RoCE v1)" : "");
}

/* Lowers depth and n_qps to what the device supports, in a queue pair and in the completion queue, which has an entry
 * for each request of all queue pairs. queues_suffice has checked the minimum. */
static void fit_queues(struct ib_device *device)
{
	uint32_t requests = (uint32_t)device->limits.max_qp_wr, completions = (uint32_t)device->limits.max_cqe;
	if (device->n_qps > completions / (IB_BESIDE_DATA + DEPTH_MIN)) {
		uint32_t n = completions / (IB_BESIDE_DATA + DEPTH_MIN);
		hr_log(HR_LOG_WARN, "HEADRACE_IB_QPS=%u: the device's completion queues suffice for %u",
		       device->n_qps, n);
		device->n_qps = n;
	}
	uint32_t each = completions / device->n_qps;
	uint32_t most = (requests < each ? requests : each) - IB_BESIDE_DATA;
	if (device->depth > most) {
		hr_log(HR_LOG_WARN, "HEADRACE_IB_DEPTH=%u: the device supports %u with %u queue pairs", device->depth,
		       most, device->n_qps);
		device->depth = most;
	}
}

static const char *const design_names[] = {
	[HR_VERBS_BASIC] = "basic",
	[HR_VERBS_PIGGYBACK] = "piggyback",
	[HR_VERBS_PIPELINE] = "pipeline",
	[HR_VERBS_ZEROCOPY] = "zerocopy",
};

const char *ib_design_name(enum hr_verbs_design design)
{
	return design_names[design];
}

static int choose_design(struct ib_device *device, uint32_t wanted)
{
	const char *text = hr_setting_text(&design_setting);
	device->design = (enum hr_verbs_design)wanted;
	for (int i = HR_VERBS_BASIC; i <= HR_VERBS_ZEROCOPY && device->design == HR_VERBS_DEFAULT; i++)
		if (!strcmp(text, design_names[i]))
			device->design = (enum hr_verbs_design)i;
	if (device->design != HR_VERBS_DEFAULT)
		return 0;
	hr_log(HR_LOG_ERROR, "HEADRACE_IB_DESIGN=%s: invalid value; valid values: basic, piggyback, pipeline, zerocopy", text);
	return -EINVAL;
}

int ib_device_open(const struct hr_channel_env *env, const struct ib_wanted *wanted, struct ib_device **device)
{
	struct ib_device *made = calloc(1, sizeof *made);
	if (!made)
		return -ENOMEM;
	struct wish wish = { .device = wanted->device, .port = wanted->port };
	if (wish.port < 0)
		snprintf(wish.port_text, sizeof wish.port_text, "%s", hr_setting_text(&port_setting));
	else
		snprintf(wish.port_text, sizeof wish.port_text, "%d", wish.port);
	made->timeout_ms = env->timeout_ms;
	int error = choose_design(made, env->verbs_design);
	if (!error)
		error = read_settings(made, &wish);
	if (!error)
		error = choose_adapter(made, &wish);
	if (error) {
		free(made);
		return error;
	}
	LIST_INIT(&made->conns);
	LIST_INIT(&made->shared);
	fit_queues(made);
	error = ib_events_open(made);
	if (!error)
		error = ib_cache_open(made, &made->cache);
	if (error) {
		ib_device_close(made);
		return error;
	}
	log_choice(made);
	*device = made;
	return 0;
}

void ib_device_close(struct ib_device *device)
{
	if (!device)
		return;
	ib_cache_close(device->cache);
	ibv_dealloc_pd(device->pd);
	ibv_close_device(device->verbs);
	free(device);
}

struct ib_network ib_network_of(const struct ib_address *address)
{
	struct ib_network network = { .pkey = address->pkey, .link = address->link };
	if (address->link == IB_LINK_INFINIBAND)
		memcpy(network.prefix, address->gid, sizeof network.prefix);
	else
		network.kind = is_ipv4(address->gid)       ? IB_GID_IPV4 :
			       is_link_local(address->gid) ? IB_GID_LINK_LOCAL :
							     IB_GID_OTHER;
	return network;
}

bool ib_networks_meet(const struct ib_network *a, const struct ib_network *b)
{
	uint16_t pkey = le16toh(a->pkey), other = le16toh(b->pkey);
	if ((pkey & 0x7fff) != (other & 0x7fff) || !((pkey | other) & 0x8000))
		return false;
	return a->link == b->link && a->kind == b->kind && !memcmp(a->prefix, b->prefix, sizeof a->prefix);
}

bool ib_device_reaches(const struct ib_device *device, const struct ib_address *peer)
{
	struct ib_network own = ib_network_of(&device->address), other = ib_network_of(peer);
	return peer->version == device->address.version && !device->error && ib_networks_meet(&own, &other);
}
