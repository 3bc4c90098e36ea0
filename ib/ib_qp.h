/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pairs of one connection, with one completion queue for all of them, and registered memory. All requests are
 * RDMA writes and reads, so no receive requests are posted. One thread at a time; no function blocks.
 */
#ifndef IB_QP_H
#define IB_QP_H

#include "ib/ib_device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The purpose of a request. Completions are counted for each kind. */
enum ib_kind {
	IB_KIND_DATA,    /* a chunk; signaled now and then */
	IB_KIND_CONTROL, /* a write to the peer's control block; always signaled, as all kinds below */
	IB_KIND_PROBE,   /* a read of the peer's progress */
	IB_KIND_READ,    /* a zero-copy read of memory that the peer announced */
	IB_KIND_WRITE,   /* a write into memory that the peer exposed or shared (remote_access.h) */
	IB_KIND_FETCH,   /* a read of memory that the peer shared */
	IB_KIND_FLUSH,   /* a last read: once it is complete, all earlier writes are in the peer's memory */
	IB_KINDS,
};

enum {
	IB_CONTROL_DEPTH = 16, /* maximum number of control writes and probes in flight on one queue pair */
	IB_READS_DEPTH = 16,   /* maximum number of zero-copy reads in flight on one queue pair */
	IB_BESIDE_DATA = 2 * IB_CONTROL_DEPTH + IB_READS_DEPTH, /* requests of a queue pair beside `depth` */
	IB_INLINE_BYTES = 128, /* maximum size of a write that is posted inline, if the device can do that */
	IB_BATCH = 16,         /* maximum number of requests posted with one call */
};

struct ib_queue {
	struct ibv_qp *qp;
	uint32_t posted;    /* total number of requests posted */
	uint32_t completed; /* number of them that are known to be complete */
	uint32_t unsignaled; /* requests since the last signaled request */
};

/* A completion with an error, for the log. */
struct ib_failure {
	enum ibv_wc_status status;
	uint32_t vendor_error;
	unsigned queue;
};

/* Requests for one queue pair that are prepared, to be posted with one call. */
struct ib_batch {
	unsigned n;
	struct ibv_send_wr request[IB_BATCH];
	struct ibv_sge piece[IB_BATCH];
};

struct ib_queues {
	struct ibv_comp_channel *events; /* its descriptor is non-blocking */
	struct ibv_cq *cq;
	uint32_t n;
	uint32_t depth;       /* maximum number of data requests in flight per queue pair */
	uint32_t max_inline;  /* maximum size of an inline write, bytes; 0: none */
	uint32_t psn;         /* sequence number of the first packet sent, the same on each queue pair */
	uint32_t done[IB_KINDS]; /* number of completions */
	uint32_t reads;       /* maximum number of zero-copy reads in flight per queue pair; set by ib_queues_join */
	uint32_t reads_posted[IB_QPS_MAX], reads_done[IB_QPS_MAX]; /* total numbers of zero-copy reads */
	struct ib_queue queue[IB_QPS_MAX];
	struct ib_batch batch;
};

/* The peer's queue pairs, from its half. */
struct ib_remote {
	struct ib_address address;
	uint8_t mtu;    /* enum ibv_mtu */
	uint8_t n_qps;  /* at most IB_QPS_MAX */
	uint8_t reads;  /* RDMA reads that it serves at a time per queue pair */
	uint32_t psn;
	uint32_t qpn[IB_QPS_MAX];
};

/* Memory that an adapter may use. */
struct ib_region {
	uint8_t *base; /* NULL: none */
	size_t len;
	struct ibv_mr *mr;
};

/* Creates device->n_qps queue pairs, in the state before ib_queues_join. On failure nothing is left, and the cause is
 * logged. */
int ib_queues_open(struct ib_queues *queues, const struct ib_device *device);
/* Connects as many queue pairs as both sides have to the peer's, and destroys the rest. */
int ib_queues_join(struct ib_queues *queues, const struct ib_device *device, const struct ib_remote *remote);
/* Moves the queue pairs to the error state: the adapter accepts no further packets and sends none. */
void ib_queues_stop(struct ib_queues *queues);
/* Destroys the queue pairs. When it returns, the adapter no longer reads or writes memory for them. */
void ib_queues_destroy(struct ib_queues *queues);
/* Frees everything. May be called in any state, and twice. */
void ib_queues_close(struct ib_queues *queues);
/* Returns how many RDMA reads a peer may have in flight on one queue pair of this side. */
uint8_t ib_queues_reads(const struct ib_device *device);

/* Returns whether queue pair i has room for another chunk. */
bool ib_queues_room(const struct ib_queues *queues, unsigned i);
/* Returns how many chunks queue pair i has room for. */
uint32_t ib_queues_places(const struct ib_queues *queues, unsigned i);
/*
 * Prepares one RDMA write (DATA, CONTROL, WRITE) or RDMA read (other kinds) of len bytes between local memory and the
 * peer's memory. The caller has checked ib_queues_room or IB_CONTROL_DEPTH. The local memory must stay unchanged until
 * completion. Prepare at most IB_BATCH requests, all for one queue pair, and then call ib_queues_send.
 */
void ib_queues_stage(struct ib_queues *queues, unsigned i, enum ib_kind kind, uint32_t lkey, const void *at,
		     uint32_t len, uint64_t remote_address, uint32_t rkey);
/* Posts the prepared requests on queue pair i with one call. After a failure the connection is lost. */
int ib_queues_send(struct ib_queues *queues, unsigned i);
/* Prepares and posts one request whose local memory is in that region. */
int ib_queues_post(struct ib_queues *queues, unsigned i, enum ib_kind kind, const struct ib_region *local,
		   const void *at, uint32_t len, uint64_t remote_address, uint32_t rkey);
/* Handles the completions that are there. Returns 0, or -EIO if a request has failed, which *failure describes. */
int ib_queues_poll(struct ib_queues *queues, struct ib_failure *failure);

/*
 * Allocates and registers len bytes of zeroed memory, for the peer's writes and reads (shared) or for this side's
 * requests only. A forked child does not inherit the memory: otherwise, after a write of the parent, the adapter could
 * go on with pages that only the child has. If the system refuses the registration, the registration cache gives up its
 * unused entries, and the function tries again. ib_region_try does not log a failure; ib_region_open does.
 */
int ib_region_open(struct ib_region *region, const struct ib_device *device, size_t len, bool shared);
int ib_region_try(struct ib_region *region, const struct ib_device *device, size_t len, bool shared);
void ib_region_close(struct ib_region *region);

#endif
