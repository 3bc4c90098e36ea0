/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor of verbs: RDMA writes and reads without the channel. The memory of a rank is one region:
 *
 *	send      largest bytes   source of the peer's reads and of own writes; zero except for a flag
 *	receive   largest bytes   target of the peer's writes and of own reads
 *	note      64 bytes        the peer writes one byte here to signal the start or the end
 *
 * A message's last byte is its flag: 1 when the message has arrived. The receiver clears the flag before it answers. So
 * the receive area is zero again, and the flag of a next message of any size is clear. The bytes of one RDMA write
 * become visible in address order; perftest and the channel rely on that too.
 */
#include "config.h"
#include "raw_verbs.h"

#include "endpoint.h"
#include "stats.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	DEPTH = 128,
	SIGNAL_EVERY = 32,
	INLINE_BYTES = 128,
	NOTE_BYTES = 64,
	READS_MOST = 16,
	PSN = 0x1234,
};

/* One rank's half of the connection, sent to the peer over the control socket. */
struct raw_half {
	uint64_t address; /* of the region */
	uint32_t rkey, qpn;
	union ibv_gid gid;
	uint16_t lid;
	uint8_t mtu, reads;
	uint32_t usable; /* 0: this rank has no device */
};

struct raw_verbs {
	int rank, control;
	struct ibv_context *device;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	size_t largest;
	uint32_t max_inline;
	uint64_t posted, completed;
	uint8_t port, gid_index;
	bool ethernet;
	struct raw_half peer;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "headrace-perf: raw verbs: %s: %s\n", what, strerror(error));
	exit(EXIT_FAILURE);
}

/* ---- device and address ---- */

static int setting(const char *name)
{
	const char *text = getenv(name);
	return text && *text >= '0' && *text <= '9' ? atoi(text) : -1;
}

/* Returns the rank of an entry of the GID table, the highest for the best entry. */
static int preference(const struct ibv_gid_entry *entry)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool ipv4 = !memcmp(entry->gid.raw, mapped, sizeof mapped);
	bool link_local = entry->gid.raw[0] == 0xfe && (entry->gid.raw[1] & 0xc0) == 0x80;
	int family = ipv4 ? 3 : link_local ? 1 : 2;
	switch (entry->gid_type) {
	case IBV_GID_TYPE_ROCE_V1: return family;
	case IBV_GID_TYPE_ROCE_V2: return 3 + family;
	default: return 9;
	}
}

static bool choose_gid(struct raw_verbs *raw, const struct ibv_port_attr *port, struct raw_half *mine)
{
	int wanted = setting("HEADRACE_IB_GID_INDEX"), liked = 0;
	for (int i = 0; i < port->gid_tbl_len && i < 256; i++) {
		struct ibv_gid_entry entry;
		if ((wanted >= 0 && i != wanted) || ibv_query_gid_ex(raw->device, raw->port, (uint32_t)i, &entry, 0) ||
		    preference(&entry) <= liked)
			continue;
		liked = preference(&entry);
		raw->gid_index = (uint8_t)i;
		mine->gid = entry.gid;
	}
	return liked;
}

/* Of a list of devices, the floor uses the first entry. */
static bool is_wanted(const char *name)
{
	const char *wanted = getenv("HEADRACE_IB_DEVICE");
	size_t len = wanted ? strcspn(wanted, ":,") : 0;
	return len == 0 || !strcmp(wanted, "auto") || (strlen(name) == len && !strncmp(wanted, name, len));
}

static int wanted_port(void)
{
	const char *wanted = getenv("HEADRACE_IB_DEVICE");
	size_t len = wanted ? strcspn(wanted, ":,") : 0;
	return len && wanted[len] == ':' ? atoi(wanted + len + 1) : setting("HEADRACE_IB_PORT");
}

static bool choose_port(struct raw_verbs *raw, struct raw_half *mine)
{
	struct ibv_device_attr limits;
	struct ibv_port_attr port;
	int wanted = wanted_port();
	if (ibv_query_device(raw->device, &limits))
		return false;
	for (int i = 1; i <= limits.phys_port_cnt; i++) {
		raw->port = (uint8_t)i;
		if ((wanted >= 0 && i != wanted) || ibv_query_port(raw->device, raw->port, &port) ||
		    port.state != IBV_PORT_ACTIVE || !choose_gid(raw, &port, mine))
			continue;
		raw->ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
		mine->lid = port.lid;
		mine->mtu = (uint8_t)port.active_mtu;
		mine->reads = (uint8_t)(limits.max_qp_rd_atom < READS_MOST ? limits.max_qp_rd_atom : READS_MOST);
		return true;
	}
	return false;
}

static bool choose_device(struct raw_verbs *raw, struct raw_half *mine)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	for (int i = 0; list && i < n && !raw->device; i++) {
		if (!is_wanted(ibv_get_device_name(list[i])))
			continue;
		raw->device = ibv_open_device(list[i]);
		if (raw->device && !choose_port(raw, mine)) {
			ibv_close_device(raw->device);
			raw->device = NULL;
		}
	}
	if (list)
		ibv_free_device_list(list);
	return raw->device;
}

/* ---- queue pair ---- */

static struct ibv_qp *create_qp(struct raw_verbs *raw, uint32_t inline_bytes)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = raw->cq, .recv_cq = raw->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = inline_bytes },
	};
	struct ibv_qp *qp = ibv_create_qp(raw->pd, &attr);
	raw->max_inline = qp ? attr.cap.max_inline_data : 0;
	return qp;
}

static size_t region_bytes(const struct raw_verbs *raw)
{
	return 2 * raw->largest + NOTE_BYTES;
}

static bool make_queue_pair(struct raw_verbs *raw, struct raw_half *mine)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	void *memory = mmap(NULL, region_bytes(raw), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	raw->memory = memory == MAP_FAILED ? NULL : memory;
	raw->pd = ibv_alloc_pd(raw->device);
	raw->cq = ibv_create_cq(raw->device, DEPTH + 1, NULL, NULL, 0);
	if (!raw->memory || !raw->pd || !raw->cq)
		return false;
	raw->mr = ibv_reg_mr(raw->pd, raw->memory, region_bytes(raw), access);
	raw->qp = create_qp(raw, INLINE_BYTES);
	if (!raw->qp)
		raw->qp = create_qp(raw, 0);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = raw->port,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	if (!raw->mr || !raw->qp ||
	    ibv_modify_qp(raw->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return false;
	mine->address = (uintptr_t)raw->memory;
	mine->rkey = raw->mr->rkey;
	mine->qpn = raw->qp->qp_num;
	mine->usable = 1;
	return true;
}

static void join(struct raw_verbs *raw, const struct raw_half *mine)
{
	const struct raw_half *peer = &raw->peer;
	uint8_t reads = peer->reads < mine->reads ? peer->reads : mine->reads;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = (enum ibv_mtu)(peer->mtu < mine->mtu ? peer->mtu : mine->mtu),
		.dest_qp_num = peer->qpn, .rq_psn = PSN, .max_dest_rd_atomic = mine->reads, .min_rnr_timer = 12,
		.ah_attr = { .dlid = peer->lid, .port_num = raw->port, .is_global = raw->ethernet },
	};
	if (raw->ethernet) {
		attr.ah_attr.grh.dgid = peer->gid;
		attr.ah_attr.grh.sgid_index = raw->gid_index;
		attr.ah_attr.grh.hop_limit = 64;
	}
	int error = ibv_modify_qp(raw->qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (error)
		die("ibv_modify_qp to RTR", error);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 17, .retry_cnt = 7, .rnr_retry = 7,
				     .sq_psn = PSN, .max_rd_atomic = reads };
	error = ibv_modify_qp(raw->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	if (error)
		die("ibv_modify_qp to RTS", error);
}

raw_verbs_t *raw_verbs_open(int rank, int control, size_t largest)
{
	struct raw_verbs *raw = calloc(1, sizeof *raw);
	struct raw_half mine = { 0 };
	if (!raw)
		die("open", ENOMEM);
	raw->rank = rank;
	raw->control = control;
	/* Whole pages, so that the areas share no page. */
	raw->largest = (largest + 4095) & ~(size_t)4095;
	bool usable = choose_device(raw, &mine) && make_queue_pair(raw, &mine);
	control_write(control, &mine, sizeof mine);
	control_read(control, &raw->peer, sizeof raw->peer);
	if (!usable || !raw->peer.usable) {
		if (rank == 0)
			fprintf(stderr, "headrace-perf: cannot open a queue pair for the floor of verbs: no floor\n");
		raw_verbs_close(raw);
		return NULL;
	}
	join(raw, &mine);
	/* Synchronize: neither rank may write before the other is ready to receive. */
	control_write(control, &rank, sizeof rank);
	control_read(control, &rank, sizeof rank);
	return raw;
}

void raw_verbs_close(raw_verbs_t *raw)
{
	if (!raw)
		return;
	if (raw->qp)
		ibv_destroy_qp(raw->qp);
	if (raw->cq)
		ibv_destroy_cq(raw->cq);
	if (raw->mr)
		ibv_dereg_mr(raw->mr);
	if (raw->pd)
		ibv_dealloc_pd(raw->pd);
	if (raw->device)
		ibv_close_device(raw->device);
	if (raw->memory)
		munmap(raw->memory, region_bytes(raw));
	free(raw);
}

/* ---- requests ---- */

static void reap(struct raw_verbs *raw)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(raw->cq, 16, wc);
	if (n < 0)
		die("ibv_poll_cq", EIO);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "headrace-perf: raw verbs: %s\n", ibv_wc_status_str(wc[i].status));
			exit(EXIT_FAILURE);
		}
		/* Requests complete in the order of posting, so all earlier requests are complete too. */
		raw->completed = wc[i].wr_id;
	}
}

/* Posts one request between own memory at `at` and the peer's memory at offset `there`. */
static void post(struct raw_verbs *raw, enum raw_direction direction, uint8_t *at, size_t there, size_t size,
		 bool signal)
{
	while (raw->posted - raw->completed >= DEPTH)
		reap(raw);
	raw->posted++;
	signal = signal || raw->posted % SIGNAL_EVERY == 0;
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = (uint32_t)size, .lkey = raw->mr->lkey };
	struct ibv_send_wr *bad, request = {
		.wr_id = raw->posted, .sg_list = &sge, .num_sge = 1,
		.opcode = direction == RAW_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
		.send_flags = signal ? IBV_SEND_SIGNALED : 0,
		.wr.rdma = { .remote_addr = raw->peer.address + there, .rkey = raw->peer.rkey },
	};
	if (direction == RAW_WRITE && size <= raw->max_inline)
		request.send_flags |= IBV_SEND_INLINE;
	int error = ibv_post_send(raw->qp, &request, &bad);
	if (error)
		die("ibv_post_send", error);
}

/* Waits for a message's flag and clears it. The acquire pairs with the order in which the adapter writes the bytes of a
 * message: if the last byte is visible, all are. Polls the completion queue now and then, as a program would: some
 * software devices make progress only then. */
static void take(struct raw_verbs *raw, volatile uint8_t *flag)
{
	for (unsigned spins = 1; !__atomic_load_n(flag, __ATOMIC_ACQUIRE); spins++) {
		if (spins % 16 == 0)
			reap(raw);
		if (spins % (1u << 20) == 0)
			control_check(raw->control);
	}
	*flag = 0;
}

static void wait_all(struct raw_verbs *raw)
{
	while (raw->completed != raw->posted)
		reap(raw);
}

/* Writes the peer's note. */
static void notify(struct raw_verbs *raw)
{
	uint8_t *at = raw->memory + 2 * raw->largest;
	at[1] = 1; /* source of the write; at[0] is this rank's own note, which the peer writes */
	post(raw, RAW_WRITE, at + 1, 2 * raw->largest, 1, true);
	wait_all(raw);
}

static void await_note(struct raw_verbs *raw)
{
	take(raw, raw->memory + 2 * raw->largest);
}

void raw_verbs_poll(raw_verbs_t *raw)
{
	reap(raw);
}

double raw_verbs_ping_pong(raw_verbs_t *raw, size_t size, unsigned turns)
{
	uint8_t *send = raw->memory, *flag = raw->memory + raw->largest + size - 1;
	double begin = now_seconds();
	send[size - 1] = 1;
	for (unsigned i = 0; i < turns; i++) {
		if (raw->rank == 1)
			take(raw, flag);
		post(raw, RAW_WRITE, send, raw->largest, size, i + 1 == turns);
		if (raw->rank == 0)
			take(raw, flag);
	}
	double seconds = now_seconds() - begin;
	wait_all(raw);
	send[size - 1] = 0;
	return seconds;
}

double raw_verbs_stream(raw_verbs_t *raw, enum raw_direction direction, size_t size, unsigned messages)
{
	bool active = raw->rank == (direction == RAW_WRITE ? 0 : 1);
	double begin = now_seconds();
	if (direction == RAW_READ && !active)
		notify(raw);
	else if (direction == RAW_READ)
		await_note(raw);
	if (active) {
		for (unsigned i = 0; i < messages; i++)
			post(raw, direction, raw->memory + (direction == RAW_READ ? raw->largest : 0),
			     direction == RAW_READ ? 0 : raw->largest, size, i + 1 == messages);
		wait_all(raw);
	}
	double seconds = now_seconds() - begin;
	if (active)
		notify(raw);
	else
		await_note(raw);
	return direction == RAW_READ ? now_seconds() - begin : seconds;
}
