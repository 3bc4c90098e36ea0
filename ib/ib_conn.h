/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection over verbs. The files of ib/ that share it:
 *
 *	ib_transport.c  set-up and closing; the functions of struct hr_transport
 *	ib_access.c     access to the peer's memory (remote_access.h)
 *	ib_conn.c       completions, detection of a dead peer, control messages
 *	ib_basic.c, ib_piggyback.c, ib_pipeline.c, ib_zerocopy.c
 *	                put and get of the four designs
 *	ib_sleep.c      sleeping and waking
 *
 * A design consists of a put and a get. All designs use a ring (ib_ring.h; basic: ib_flat.h) and the functions below;
 * ib_transport.c calls the put and get of the connection's design. Source: Liu et al., "Design and Implementation of
 * MPICH2 over InfiniBand with RDMA Support", IPDPS 2004, section 4.
 */
#ifndef IB_CONN_H
#define IB_CONN_H

#include "ib/ib_qp.h"
#include "ib/ib_ring.h"
#include "rdma_channel/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* A request to be woken. bits comes before seq in memory, so that a reader that sees a new seq sees its bits. */
struct ib_wake_request {
	uint32_t bits; /* set of IB_WAKE_* */
	uint32_t seq;  /* number of the request; each is answered at most once */
};
_Static_assert(sizeof(struct ib_wake_request) == 8, "wire format");

enum {
	IB_WAKE_ON_DATA = 1u << 0,
	IB_WAKE_ON_ROOM = 1u << 1,
};

/* Counts of everything that a side has sent so far; the peer reads them before it sleeps (ib_sleep.c). */
struct ib_progress {
	uint32_t posted; /* chunks posted; bytes in the basic design */
	uint32_t tail;   /* tail in the last chunk or tail update */
	uint32_t acked;  /* announcements acknowledged */
	uint32_t reserved;
};
_Static_assert(sizeof(struct ib_progress) == 16, "wire format");

/* The control block, at the start of the memory that the peer may access; the ring follows it. Little-endian. The peer
 * may read all of that memory, to measure the link (ib_gauge.h). */
struct ib_control {
	/* Written by the peer with RDMA writes, read by this side. */
	uint32_t tail;  /* number of this side's chunks that the peer has consumed; its chunks carry it too */
	uint32_t acked; /* number of this side's announcements that the peer has read; in one write with tail */
	struct ib_wake_request wake; /* the peer's request to be woken */
	uint32_t head;  /* basic only: bytes that the peer has written to this side's ring */
	uint8_t reserved1[44];
	/* Written by this side, read by the peer with RDMA reads. */
	struct ib_progress progress;
	uint8_t reserved2[48];
};
_Static_assert(sizeof(struct ib_control) == 128, "wire format");
_Static_assert(offsetof(struct ib_control, progress) == 64, "written and read parts on cache lines of their own");

/* Size of the control block's memory; the ring starts after it. */
enum { IB_CONTROL_BYTES = 4096 };

/* Memory for this side's own requests; the staging area follows it. */
struct ib_scratch {
	uint64_t source[IB_CONTROL_DEPTH]; /* sources of control writes; each stays unchanged until its completion */
	struct ib_progress probed;         /* target of the probe: the peer's progress */
	struct ib_progress flushed;        /* target of the read that flushes; its value is not used */
	uint64_t reserved[12];
	uint8_t window[3840];              /* target of reads if the bounce buffer cannot be registered (ib_pull.h) */
};

enum { IB_SCRATCH_BYTES = 4096 };
_Static_assert(sizeof(struct ib_scratch) == IB_SCRATCH_BYTES, "staging area begins behind it");

/* One side's half of a connection. Written by its owner, checked by the peer. Integers are little-endian. */
struct ib_half {
	uint32_t version; /* IB_WIRE_VERSION */
	struct ib_address address;
	uint8_t mtu;   /* enum ibv_mtu: of its port */
	uint8_t n_qps; /* number of its queue pairs */
	uint8_t reads; /* RDMA reads that it serves at a time per queue pair, at least 1 */
	uint8_t design; /* enum hr_verbs_design; the lower of both is used */
	uint32_t chunk_bytes, n_chunks; /* of its ring */
	uint32_t psn;                   /* packet sequence number of its first packet */
	uint32_t rkey;                  /* of control block and ring */
	uint64_t control;               /* address of the control block */
	uint32_t qpn[IB_QPS_MAX];
};
_Static_assert(sizeof(struct ib_half) == 120, "wire format");
_Static_assert(sizeof(struct ib_half) <= HR_HALF_BLOB_MAX, "fits the transport's contract");

/* State of going to sleep; ib_sleep.c has the protocol. */
enum ib_sleep_state {
	IB_AWAKE,    /* no request to be woken is open: none was sent, or the peer has answered it */
	IB_REFUSED,  /* the request could not be posted yet */
	IB_PROBING,  /* request and probe are in flight */
	IB_ARMED,    /* the peer has the request, and the probe has returned the peer's progress before it */
};

struct ib_conn {
	const struct hr_conn_env *env;
	struct ib_device *device;
	LIST_ENTRY(ib_conn) place;    /* in device->conns */
	enum hr_verbs_design design;  /* in use; valid after conn_establish */
	struct ib_queues queues;
	struct ib_region shared;      /* control block and ring; the peer writes into them */
	struct ib_region own;         /* scratch and staging area */
	struct ib_control *control;   /* in shared */
	struct ib_scratch *scratch;   /* in own */
	struct ib_sender sender;
	struct ib_receiver receiver;
	uint64_t peer_control;        /* address of the peer's control block */
	uint32_t peer_rkey;
	uint32_t controls_posted;     /* number of control writes posted, each with a source in scratch */
	int stream;                   /* owned by the channel; -1 before conn_establish */
	int error;                    /* error of put, and of get after the last byte; 0: none */
	bool put_short;               /* the last put did not accept all bytes */
	unsigned idle_calls;          /* puts and gets that moved nothing */
	uint64_t checked_ns;          /* when the stream was last checked, coarse ns */
	bool flushing;                /* conn_shutdown has begun */
	bool said_goodbye;
	enum ib_sleep_state sleep;
	uint32_t wake_bits;           /* bits of this side's last request to be woken */
	uint32_t wake_seq;            /* seq of this side's last request */
	uint32_t answered_seq;        /* seq of the peer's last request that this side answered */
	uint32_t probes_posted;
	TAILQ_HEAD(, ib_access) accesses; /* accesses of which a part waits for room in the queue pairs (ib_access.c) */
	uint32_t accesses_posted;     /* their requests, and attempts that found no room */
	uint32_t accesses_seen;       /* completions of IB_KIND_WRITE and IB_KIND_FETCH when hr_remote_test last looked */
	uint32_t fetches_posted;      /* requests of IB_KIND_FETCH */
	uint32_t acks_told;           /* count of acknowledged announcements that was last sent to the peer */
	bool taking;                  /* ib_conn_progress is running */
	struct ib_zerocopy *zerocopy; /* state of the design zerocopy; NULL in the other designs */
};

/* ---- ib_conn.c ---- */

/* Ends the connection with an error. If the caller was the first to know the cause, it has logged the error. A second
 * call changes nothing. */
void ib_conn_fail(struct ib_conn *conn, int error);
/* Checks the stream now, for wake-ups, an orderly close and the peer's death. */
void ib_conn_check_stream(struct ib_conn *conn);
/* Polls for completions and handles them. A failed request ends the connection. */
void ib_conn_progress(struct ib_conn *conn);
/* Call this after a put or get that moved nothing: now and then it polls for completions and checks the stream. */
void ib_conn_idle(struct ib_conn *conn);
/* Returns whether get would deliver bytes, whether put would accept bytes. */
bool ib_conn_can_get(const struct ib_conn *conn);
bool ib_conn_can_put(struct ib_conn *conn);
/* Takes the tail that the peer wrote into the control block, and the tails in chunks that were not consumed yet. */
void ib_conn_take_tail(struct ib_conn *conn);
/* Returns whether a control write can be posted now. Polls for completions if there is no room. */
bool ib_conn_control_room(struct ib_conn *conn);
/* Writes len <= 8 bytes to that offset of the peer's control block. -EAGAIN: too many control writes are in flight. */
int ib_conn_write_control(struct ib_conn *conn, size_t offset, const void *bytes, uint32_t len);
/* Returns whether the ring and the next chunk's queue pair have room for the chunk. Looks for a new tail or completions
 * only if they have not. */
bool ib_conn_has_room(struct ib_conn *conn);
/* Posts the chunk that was built last. A failure ends the connection. */
int ib_conn_post_chunk(struct ib_conn *conn, const struct ib_span *span);
/* Copies bytes of the next chunk, at most left > 0, and takes the tail in it. Returns the number of bytes, 0 if no
 * chunk has arrived. An invalid chunk ends the connection. */
size_t ib_conn_take_chunk(struct ib_conn *conn, struct hr_iov_place *place, size_t left);
/* Ends the connection because the peer violated the protocol. what: the violation, for the log. */
void ib_conn_violated(struct ib_conn *conn, const char *what);
/* Handles a tail that came in a chunk. */
void ib_conn_credit(struct ib_conn *conn, uint32_t tail);
/*
 * The last step of a put of total bytes, of which `taken` were posted, and of a get that took `taken` bytes. If bytes
 * moved, wakes a sleeping peer (put) or sends the tail if it is due (get); otherwise calls ib_conn_idle. Returns what
 * put or get must return. If bytes moved and an error came after them, the next call returns the error.
 */
int ib_conn_end_put(struct ib_conn *conn, size_t total, size_t taken, uint32_t wake_bits, size_t *accepted);
int ib_conn_end_get(struct ib_conn *conn, size_t taken, size_t *delivered);
/* If it is due, sends the peer the tail and the count of acknowledged announcements by a control write. */
void ib_conn_pay_tail(struct ib_conn *conn);

/* ---- ib_sleep.c ---- */

/* Call this after posting chunks or a tail: publishes the progress, and wakes the peer if it has requested that. */
void ib_sleep_told(struct ib_conn *conn, uint32_t bits);
/* Call this after a wake-up on the stream: the request of this side has been answered. */
void ib_sleep_woken(struct ib_conn *conn);
void ib_sleep_arm(struct ib_conn *conn, bool want_put);
bool ib_sleep_pending(struct ib_conn *conn, bool want_put);
void ib_sleep_event(struct ib_conn *conn);

/* ---- the designs ---- */

int ib_basic_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted);
int ib_basic_get(struct ib_conn *conn, const struct iovec *iov, int n, size_t *delivered);
/* Returns whether the peer has written bytes that get has not taken. */
bool ib_basic_can_get(const struct ib_conn *conn);
/* Returns whether there is room for bytes and for requests. If not, first looks for a new tail and completions. */
bool ib_basic_can_put(struct ib_conn *conn);

/* Builds and posts one chunk of at most left > 0 bytes. Returns the number of bytes, 0 if there is no room. */
size_t ib_pipeline_chunk(struct ib_conn *conn, struct hr_iov_place *place, size_t left);
int ib_pipeline_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted);

int ib_piggyback_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted);
/* For piggyback and pipeline. */
int ib_piggyback_get(struct ib_conn *conn, const struct iovec *iov, int n, size_t *delivered);

int ib_zerocopy_open(struct ib_conn *conn);
/* Call this after the queue pairs have been destroyed. conn->zerocopy may be NULL. */
void ib_zerocopy_close(struct ib_conn *conn);
int ib_zerocopy_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted);
int ib_zerocopy_get(struct ib_conn *conn, const struct iovec *iov, int n, size_t *delivered);
/* The contract of hr_conn_ahead. */
size_t ib_zerocopy_ahead(struct ib_conn *conn, uint64_t skip, uint8_t *to, size_t len);
bool ib_zerocopy_can_get(const struct ib_conn *conn);
bool ib_zerocopy_can_put(struct ib_conn *conn);
/* Handles completed reads. Call this after completions have been polled. */
void ib_zerocopy_advance(struct ib_conn *conn);
/* Returns whether RDMA reads of this side are in flight. */
bool ib_zerocopy_under_way(const struct ib_conn *conn);
/* Returns how many of the peer's announcements this side has read completely. */
uint32_t ib_zerocopy_acknowledged(const struct ib_conn *conn);
/* Returns whether count, from a probe, contains acknowledgements that this side has not handled yet. */
bool ib_zerocopy_is_news(const struct ib_conn *conn, uint32_t count);

#endif
