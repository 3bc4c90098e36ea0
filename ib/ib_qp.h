/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pairs of one connection, with one completion queue for all of them, and registered memory. Requests are
 * RDMA writes and reads only, so there is nothing to post for receiving. One thread at a time; nothing here blocks.
 */
#ifndef IB_QP_H
#define IB_QP_H

#include "ib/ib_device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a request is for. Completions are counted by it. */
enum ib_kind {
	IB_KIND_DATA,    /* a chunk; signaled now and then */
	IB_KIND_CONTROL, /* a write to the peer's control block; always signaled, like all that follow */
	IB_KIND_PROBE,   /* a read of the peer's progress */
	IB_KIND_READ,    /* a zero-copy read of the peer's user's memory */
	IB_KIND_WRITE,   /* a write into memory that the peer's user exposed (remote_write.h) */
	IB_KIND_FLUSH,   /* a read behind everything: when it is done, all that went before is in the peer's memory */
	IB_KINDS,
};

enum {
	IB_CONTROL_DEPTH = 16, /* requests other than data that may be under way on one queue pair */
	IB_READS_DEPTH = 16,   /* zero-copy reads that may be under way on one queue pair */
	IB_BESIDE_DATA = 2 * IB_CONTROL_DEPTH + IB_READS_DEPTH, /* what a queue pair holds beside its chunks */
	IB_INLINE_BYTES = 128, /* writes up to this size go out with the request where the device can do it */
	IB_BATCH = 16,         /* requests that one call hands to the adapter */
};

struct ib_queue {
	struct ibv_qp *qp;
	uint32_t posted;    /* requests ever posted */
	uint32_t completed; /* of those, known to be complete */
	uint32_t unsignaled; /* data requests since the last signaled one */
};

/* How an erroneous completion came about, for the log. */
struct ib_failure {
	enum ibv_wc_status status;
	uint32_t vendor_error;
	unsigned queue;
};

/* Requests of one queue pair that are ready to go out with one call. */
struct ib_batch {
	unsigned n;
	struct ibv_send_wr request[IB_BATCH];
	struct ibv_sge piece[IB_BATCH];
};

struct ib_queues {
	struct ibv_comp_channel *events; /* its descriptor is non-blocking */
	struct ibv_cq *cq;
	uint32_t n;
	uint32_t depth;       /* data requests under way per queue pair */
	uint32_t max_inline;  /* bytes; 0: the device has none */
	uint32_t psn;         /* of the first packet we send, the same on each queue pair */
	uint32_t done[IB_KINDS]; /* completions seen */
	uint32_t reads;       /* zero-copy reads that may be under way per queue pair; known once joined */
	uint32_t reads_posted[IB_QPS_MAX], reads_done[IB_QPS_MAX]; /* zero-copy reads, ever */
	struct ib_queue queue[IB_QPS_MAX];
	struct ib_batch batch;
};

/* The other end of every queue pair, as its half describes it. */
struct ib_remote {
	struct ib_address address;
	uint8_t mtu;    /* enum ibv_mtu */
	uint8_t n_qps;  /* at most IB_QPS_MAX */
	uint8_t reads;  /* RDMA reads it serves at once per queue pair */
	uint32_t psn;
	uint32_t qpn[IB_QPS_MAX];
};

/* Memory that an adapter may use. */
struct ib_region {
	uint8_t *base; /* NULL: none */
	size_t len;
	struct ibv_mr *mr;
};

/* Makes device->n_qps queue pairs, ready to be joined to a peer's. On failure nothing is left; the log has the
 * cause. */
int ib_queues_open(struct ib_queues *queues, const struct ib_device *device);
/* Joins the first min(own, peer's) of them to the peer's and destroys the rest. */
int ib_queues_join(struct ib_queues *queues, const struct ib_device *device, const struct ib_remote *remote);
/* Makes the adapter stop: nothing more arrives and nothing more is sent. */
void ib_queues_stop(struct ib_queues *queues);
/* The same for good: when it returns, nothing is read or written any more on their behalf. They are gone. */
void ib_queues_destroy(struct ib_queues *queues);
/* Safe in any state, also twice. */
void ib_queues_close(struct ib_queues *queues);
/* RDMA reads that a peer may have under way on one of our queue pairs. */
uint8_t ib_queues_reads(const struct ib_device *device);

/* May one more chunk be posted on queue pair i? */
bool ib_queues_room(const struct ib_queues *queues, unsigned i);
/* Free places for chunks on queue pair i; as ib_queues_room otherwise. */
uint32_t ib_queues_places(const struct ib_queues *queues, unsigned i);
/*
 * Prepares one RDMA write (DATA, CONTROL) or read (the others) of len bytes between local memory and the peer's. The
 * caller keeps to ib_queues_room and IB_CONTROL_DEPTH. The memory must not change until it is complete. At most
 * IB_BATCH requests, all of one queue pair; then ib_queues_send.
 */
void ib_queues_stage(struct ib_queues *queues, unsigned i, enum ib_kind kind, uint32_t lkey, const void *at,
		     uint32_t len, uint64_t remote_address, uint32_t rkey);
/* Posts what is prepared, all of it on queue pair i, with one call. After a failure the connection is lost. */
int ib_queues_send(struct ib_queues *queues, unsigned i);
/* Both, for one request whose memory is in that region. */
int ib_queues_post(struct ib_queues *queues, unsigned i, enum ib_kind kind, const struct ib_region *local,
		   const void *at, uint32_t len, uint64_t remote_address, uint32_t rkey);
/* Takes the completions that are there. 0, or -EIO when one was an error: then *failure tells which. */
int ib_queues_poll(struct ib_queues *queues, struct ib_failure *failure);

/*
 * Zeroed memory of len bytes, registered for the peer's writes and reads (shared) or for our own requests only. Not
 * inherited by a child process: after a fork the adapter would go on with pages that only the child has. Where the
 * system refuses to register so much, the registration cache gives up what is not in use. try says nothing in the log.
 */
int ib_region_open(struct ib_region *region, const struct ib_device *device, size_t len, bool shared);
int ib_region_try(struct ib_region *region, const struct ib_device *device, size_t len, bool shared);
void ib_region_close(struct ib_region *region);

#endif
