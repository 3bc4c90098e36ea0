/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices: their list, their limits, their ports and addresses. */
#include "test/ibverbs_double/double.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define GUID 0x0248520000000001ull /* locally administered */

enum { LID = 7, MTU = IBV_MTU_4096, PORT_PHYS_DOWN = 3, PORT_PHYS_UP = 5 };

#define DEVICE(n)                                                                                               \
	{                                                                                                       \
		.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "double" #n,              \
		.dev_name = "uverbs" #n, .dev_path = "/sys/class/infiniband_verbs/uverbs" #n,                   \
		.ibdev_path = "/sys/class/infiniband/double" #n,                                                \
	}

static struct ibv_device devices[VD_DEVICES] = { DEVICE(0), DEVICE(1), DEVICE(2), DEVICE(3) };

static uint64_t guid_of(unsigned device)
{
	return GUID + ((uint64_t)device << 8);
}

/* ---- the list ---- */

static int number(const char *name, double fallback, double *value);

VD_EXPORT struct ibv_device **ibv_get_device_list(int *n)
{
	double count;
	if (number("HR_VERBS_DOUBLE_DEVICES", 1, &count) || count > VD_DEVICES) {
		errno = EINVAL;
		return NULL;
	}
	struct ibv_device **list = calloc(VD_DEVICES + 1, sizeof *list);
	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	for (int i = 0; i < (int)count; i++)
		list[i] = &devices[i];
	if (n)
		*n = (int)count;
	return list;
}

VD_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

VD_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

VD_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return -1; /* the kernel knows no such device */
}

VD_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(guid_of((unsigned)(device - devices)));
}

/* ---- settings ---- */

static int number(const char *name, double fallback, double *value)
{
	const char *text = getenv(name);
	char *end;
	*value = fallback;
	if (!text || !*text)
		return 0;
	*value = strtod(text, &end);
	if (!*end && *value >= 0 && *value < 1e15)
		return 0;
	fprintf(stderr, "verbs double: %s=%s is not a number\n", name, text);
	return EINVAL;
}

static int read_gpu(struct vd_settings *set)
{
	const char *text = getenv("HR_VERBS_DOUBLE_GPU");
	double rate, reg_ns, reg_ns_per_mb;
	if (number("HR_VERBS_DOUBLE_GPU_RATE_MBPS", 0, &rate) || number("HR_VERBS_DOUBLE_GPU_REG_NS", 0, &reg_ns) ||
	    number("HR_VERBS_DOUBLE_GPU_REG_NS_PER_MB", 0, &reg_ns_per_mb))
		return EINVAL;
	set->gpu_ns_per_byte = rate > 0 ? 1e3 / rate : 0;
	set->gpu_reg_ns = reg_ns;
	set->gpu_reg_ns_per_byte = reg_ns_per_mb / (1 << 20);
	if (!text || !*text)
		return 0;
	char *end;
	set->gpu_begin = strtoull(text, &end, 16);
	set->gpu_end = *end == '-' ? strtoull(end + 1, &end, 16) : 0;
	if (!*end && set->gpu_begin < set->gpu_end)
		return 0;
	fprintf(stderr, "verbs double: HR_VERBS_DOUBLE_GPU=%s is not BEGIN-END in hexadecimal\n", text);
	return EINVAL;
}

static int read_times(struct vd_settings *set)
{
	double latency, rate, qp_rate, overhead, grace, retry_ms;
	if (number("HR_VERBS_DOUBLE_LATENCY_NS", 0, &latency) || number("HR_VERBS_DOUBLE_RATE_MBPS", 0, &rate) ||
	    number("HR_VERBS_DOUBLE_QP_RATE_MBPS", 0, &qp_rate) ||
	    number("HR_VERBS_DOUBLE_OVERHEAD_NS", 0, &overhead) ||
	    number("HR_VERBS_DOUBLE_GRACE_NS", 200000, &grace) || number("HR_VERBS_DOUBLE_RETRY_MS", 0, &retry_ms))
		return EINVAL;
	set->latency_ns = (uint64_t)latency;
	set->overhead_ns = (uint64_t)overhead;
	set->grace_ns = (uint64_t)grace;
	set->retry_ns = (uint64_t)(retry_ms * 1e6);
	set->ns_per_byte = rate > 0 ? 1e3 / rate : 0;
	set->qp_ns_per_byte = qp_rate > 0 ? 1e3 / qp_rate : 0;
	int error = read_gpu(set);
	set->timed = latency > 0 || overhead > 0 || rate > 0 || qp_rate > 0 || set->gpu_ns_per_byte > 0;
	return error;
}

/* Returns whether HR_VERBS_DOUBLE_DOWN lists that port. */
static bool is_listed_down(unsigned device, unsigned port)
{
	const char *list = getenv("HR_VERBS_DOUBLE_DOWN");
	char name[80];
	size_t len = (size_t)snprintf(name, sizeof name, "%s:%u", devices[device].name, port);
	for (const char *at = list; at && (at = strstr(at, name)); at += len)
		if ((at == list || at[-1] == ',') && (at[len] == ',' || !at[len]))
			return true;
	return false;
}

static int read_settings(struct vd_settings *set, unsigned device, char dir[100])
{
	static const struct { const char *name; enum ibv_port_state state; } states[] = {
		{ "active", IBV_PORT_ACTIVE }, { "down", IBV_PORT_DOWN }, { "init", IBV_PORT_INIT },
		{ "armed", IBV_PORT_ARMED },
	};
	const char *text = getenv("HR_VERBS_DOUBLE_DIR");
	double max_inline, ports, rails;
	if (number("HR_VERBS_DOUBLE_INLINE", 256, &max_inline) || max_inline > 4096 || read_times(set) ||
	    number("HR_VERBS_DOUBLE_PORTS", 1, &ports) || ports < 1 || ports > VD_PORTS ||
	    number("HR_VERBS_DOUBLE_RAILS", 0, &rails))
		return EINVAL;
	set->ports = (unsigned)ports;
	set->rails = rails > 0;
	set->max_inline = (uint32_t)max_inline;
	int len = text && *text ? snprintf(dir, 100, "%s", text) :
				  snprintf(dir, 100, "/dev/shm/hr-verbs-double-%u", (unsigned)getuid());
	if (len >= 100)
		return ENAMETOOLONG;
	set->dir = dir;
	text = getenv("HR_VERBS_DOUBLE_LINK");
	set->infiniband = text && !strcmp(text, "infiniband");
	text = getenv("HR_VERBS_DOUBLE_PORT");
	uint32_t state = text && *text ? IBV_PORT_NOP : IBV_PORT_ACTIVE;
	for (size_t i = 0; text && i < sizeof states / sizeof *states; i++)
		if (!strcmp(text, states[i].name))
			state = states[i].state;
	for (unsigned i = 0; i < VD_PORTS; i++)
		set->port_state[i] = is_listed_down(device, i + 1) ? (uint32_t)IBV_PORT_DOWN : state;
	return state == IBV_PORT_NOP ? EINVAL : 0;
}

/* ---- what it can ---- */

static void fill_limits(const struct vd_context *context, struct ibv_device_attr *attr)
{
	uint64_t guid = htobe64(guid_of(context->device));
	*attr = (struct ibv_device_attr){
		.fw_ver = "0.1", .node_guid = guid, .sys_image_guid = guid,
		.max_mr_size = UINT64_MAX, .page_size_cap = 0xfffff000, .max_qp = VD_QPS, .max_qp_wr = VD_WR_MAX,
		.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT,
		.max_sge = VD_SGE_MAX, .max_sge_rd = VD_SGE_MAX, .max_cq = VD_CQS, .max_cqe = VD_CQE_MAX,
		.max_mr = VD_MRS - 1, .max_pd = 1 << 20, .max_qp_rd_atom = VD_READS_MAX,
		.max_res_rd_atom = VD_READS_MAX * VD_QPS, .max_qp_init_rd_atom = VD_READS_MAX,
		.atomic_cap = IBV_ATOMIC_HCA, .max_srq = VD_RQS, .max_srq_wr = VD_WR_MAX, .max_srq_sge = VD_SGE_MAX,
		.max_pkeys = VD_PKEYS, .local_ca_ack_delay = 15,
		.phys_port_cnt = (uint8_t)context->set.ports,
	};
}

#undef ibv_query_device
VD_EXPORT int ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *attr)
{
	fill_limits(vd_context_of(verbs), attr);
	return 0;
}

static int query_device_ex(struct ibv_context *verbs, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	(void)input;
	if (size < sizeof attr->orig_attr)
		return EINVAL;
	memset(attr, 0, size);
	fill_limits(vd_context_of(verbs), &attr->orig_attr);
	if (size >= sizeof *attr)
		attr->phys_port_cnt_ex = attr->orig_attr.phys_port_cnt;
	return 0;
}

static bool has_port(const struct vd_context *context, uint32_t port)
{
	return port >= 1 && port <= context->set.ports;
}

static uint16_t lid_of(unsigned device, unsigned port)
{
	return (uint16_t)(LID + device * VD_PORTS + port - 1);
}

static int query_port(struct ibv_context *verbs, uint8_t port, struct ibv_port_attr *to, size_t size)
{
	struct vd_context *context = vd_context_of(verbs);
	bool ib = context->set.infiniband;
	if (!has_port(context, port))
		return EINVAL;
	enum ibv_port_state state =
		(enum ibv_port_state)__atomic_load_n(&context->node->port_state[port - 1], __ATOMIC_RELAXED);
	struct ibv_port_attr attr = {
		.state = state, .max_mtu = (enum ibv_mtu)MTU, .active_mtu = (enum ibv_mtu)MTU, .gid_tbl_len = VD_GIDS,
		.max_msg_sz = 1u << 31, .pkey_tbl_len = VD_PKEYS, .lid = ib ? lid_of(context->device, port) : 0, .sm_lid = ib ? 1 : 0,
		.max_vl_num = 1, .active_width = 2, .active_speed = 32,
		.phys_state = state == IBV_PORT_DOWN ? PORT_PHYS_DOWN : PORT_PHYS_UP,
		.link_layer = ib ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET,
	};
	memset(to, 0, size);
	memcpy(to, &attr, size < sizeof attr ? size : sizeof attr);
	return 0;
}

#undef ibv_query_port
/* For programs built before the structure grew. */
VD_EXPORT int ibv_query_port(struct ibv_context *verbs, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return query_port(verbs, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* ---- addresses ---- */

/* RoCE: link-local and an IPv4 address, each as version 1 and 2. InfiniBand: the port's own, at index 0. */
static bool gid_entry(const struct vd_context *context, unsigned device, unsigned port, uint32_t index,
		      struct ibv_gid_entry *entry)
{
	static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff, [12] = 192, [13] = 168, [14] = 77, [15] = 1 };
	unsigned nth = device * VD_PORTS + port - 1;
	*entry = (struct ibv_gid_entry){ .gid_index = index, .port_num = port };
	if (index >= VD_GIDS || (context->set.infiniband && index > 0))
		return false;
	entry->gid.global.subnet_prefix = htobe64(0xfe80000000000000ull);
	entry->gid.global.interface_id = htobe64(guid_of(device) + port - 1);
	if (context->set.infiniband) {
		if (context->set.rails) /* subnets of their own */
			entry->gid.global.subnet_prefix = htobe64(0xfec0000000000000ull + nth);
		entry->gid_type = IBV_GID_TYPE_IB;
		return true;
	}
	if (index >= 2) {
		memcpy(entry->gid.raw, mapped, sizeof mapped);
		entry->gid.raw[15] = (uint8_t)(1 + nth);
	}
	entry->gid_type = index % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	return true;
}

bool vd_path_leads(const struct vd_context *context, const struct ibv_ah_attr *path, unsigned device, unsigned port)
{
	struct ibv_gid_entry source, entry;
	if (context->set.rails && (device != context->device || port != path->port_num))
		return false;
	if (!path->is_global)
		return context->set.infiniband && path->dlid == lid_of(device, port);
	if (!gid_entry(context, context->device, path->port_num, path->grh.sgid_index, &source))
		return false;
	for (uint32_t i = 0; i < VD_GIDS; i++)
		if (gid_entry(context, device, port, i, &entry) && entry.gid_type == source.gid_type &&
		    !memcmp(entry.gid.raw, path->grh.dgid.raw, sizeof entry.gid.raw))
			return true;
	return false;
}

VD_EXPORT int ibv_query_gid(struct ibv_context *verbs, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	const struct vd_context *context = vd_context_of(verbs);
	if (!has_port(context, port) || index < 0 || index >= VD_GIDS) {
		errno = EINVAL;
		return -1;
	}
	gid_entry(context, context->device, port, (uint32_t)index, &entry);
	*gid = entry.gid;
	return 0;
}

VD_EXPORT int _ibv_query_gid_ex(struct ibv_context *verbs, uint32_t port, uint32_t index, struct ibv_gid_entry *to,
				uint32_t flags, size_t size)
{
	struct ibv_gid_entry entry;
	const struct vd_context *context = vd_context_of(verbs);
	if (flags || !has_port(context, port) || index >= VD_GIDS)
		return EINVAL;
	if (!gid_entry(context, context->device, port, index, &entry))
		return ENODATA;
	memcpy(to, &entry, size < sizeof entry ? size : sizeof entry);
	return 0;
}

VD_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *verbs, struct ibv_gid_entry *to, size_t most,
				       uint32_t flags, size_t size)
{
	ssize_t n = 0;
	if (flags || size != sizeof *to)
		return -EINVAL;
	const struct vd_context *context = vd_context_of(verbs);
	for (unsigned port = 1; port <= context->set.ports; port++)
		for (uint32_t i = 0; i < VD_GIDS && (size_t)n < most; i++)
			if (gid_entry(context, context->device, port, i, &to[n]))
				n++;
	return n;
}

/* Private between the library and its tools: 0 is InfiniBand or RoCE version 1, 1 is RoCE version 2. */
VD_EXPORT int ibv_query_gid_type(struct ibv_context *verbs, uint8_t port, unsigned index, unsigned *type);
VD_EXPORT int ibv_query_gid_type(struct ibv_context *verbs, uint8_t port, unsigned index, unsigned *type)
{
	struct ibv_gid_entry entry;
	const struct vd_context *context = vd_context_of(verbs);
	if (!has_port(context, port) || !gid_entry(context, context->device, port, index, &entry)) {
		errno = EINVAL;
		return -1;
	}
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	return 0;
}

/* Full member of the default partition and of 1; limited member of 2; an empty entry. */
uint32_t vd_pkey(unsigned index)
{
	static const uint16_t keys[VD_PKEYS] = { 0xffff, 0x8001, 0x0002, 0 };
	return index < VD_PKEYS ? keys[index] : 0;
}

VD_EXPORT int ibv_query_pkey(struct ibv_context *verbs, uint8_t port, int index, __be16 *pkey)
{
	if (!has_port(vd_context_of(verbs), port) || index < 0 || index >= VD_PKEYS) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16((uint16_t)vd_pkey((unsigned)index));
	return 0;
}

VD_EXPORT int ibv_get_pkey_index(struct ibv_context *verbs, uint8_t port, __be16 pkey)
{
	for (unsigned i = 0; has_port(vd_context_of(verbs), port) && i < VD_PKEYS; i++)
		if (vd_pkey(i) == be16toh(pkey))
			return (int)i;
	errno = EINVAL;
	return -1;
}

/* ---- opening and closing ---- */

static void fill_operations(struct vd_context *context)
{
	struct verbs_context *verbs = &context->verbs;
	verbs->sz = sizeof *verbs;
	verbs->query_port = query_port;
	verbs->query_device_ex = query_device_ex;
	verbs->context.device = &devices[context->device];
	verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs->context.cmd_fd = -1;
	verbs->context.num_comp_vectors = 1;
	verbs->context.ops.poll_cq = vd_poll_cq;
	verbs->context.ops.req_notify_cq = vd_req_notify_cq;
	verbs->context.ops.post_send = vd_post_send;
	verbs->context.ops.post_recv = vd_post_recv;
	verbs->context.ops.post_srq_recv = vd_post_srq_recv;
	pthread_mutex_init(&verbs->context.mutex, NULL);
}

static int open_fds(struct vd_context *context)
{
	context->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	context->verbs.context.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	return context->timer_fd < 0 || context->verbs.context.async_fd < 0 ? errno : 0;
}

static void close_fds(struct vd_context *context)
{
	if (context->timer_fd >= 0)
		close(context->timer_fd);
	if (context->verbs.context.async_fd >= 0)
		close(context->verbs.context.async_fd);
}

VD_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct vd_context *context = calloc(1, sizeof *context);
	if (!context) {
		errno = ENOMEM;
		return NULL;
	}
	context->device = (unsigned)(device - devices);
	context->timer_fd = context->verbs.context.async_fd = -1;
	int error = read_settings(&context->set, context->device, context->dir);
	if (!error)
		error = vd_fault_parse(&context->faults, getenv("HR_VERBS_DOUBLE_FAULT"));
	if (!error)
		error = vd_fault_call(context, VD_CALL_OPEN_DEVICE, 0);
	if (!error)
		error = open_fds(context);
	if (!error)
		error = vd_node_open(context);
	if (error) {
		close_fds(context);
		free(context);
		errno = error;
		return NULL;
	}
	fill_operations(context);
	/* Keys of two nodes differ, and a key does not come back at once in the next process. */
	if (getrandom(&context->next_mr, sizeof context->next_mr, GRND_NONBLOCK) < 0 ||
	    getrandom(&context->mr_count, sizeof context->mr_count, GRND_NONBLOCK) < 0)
		context->next_mr = context->mr_count = context->node->id * 4099;
	context->node->async_fd = context->verbs.context.async_fd;
	context->due_ns = context->timer_ns = UINT64_MAX;
	pthread_mutex_init(&context->lock, NULL);
	return &context->verbs.context;
}

VD_EXPORT int ibv_close_device(struct ibv_context *verbs)
{
	struct vd_context *context = vd_context_of(verbs);
	vd_engine_stop(context);
	while (context->peers) {
		context->peers->users = 1;
		vd_peer_put(context, context->peers);
	}
	close_fds(context);
	vd_node_close(context);
	pthread_mutex_destroy(&context->lock);
	pthread_mutex_destroy(&verbs->mutex);
	free(context);
	return 0;
}
