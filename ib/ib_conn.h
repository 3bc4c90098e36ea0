/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection over verbs, as the parts of ib/ share it:
 *
 *	ib_transport.c  its life, and the channel's contract
 *	ib_write.c      writing into the peer's memory beside the ring
 *	ib_conn.c       completions, the peer's life, control messages
 *	ib_basic.c, ib_piggyback.c, ib_pipeline.c, ib_zerocopy.c
 *	                the designs that move the data: put and get
 *	ib_sleep.c      going to sleep and being woken
 *
 * A design is a put and a get that share a ring (ib_ring.h; basic: ib_flat.h) and what is below; ib_transport.c
 * calls the one in use. The paper: Liu et al., "Design and Implementation of MPICH2 over InfiniBand with RDMA
 * Support", IPDPS 2004, section 4.
 */
#ifndef IB_CONN_H
#define IB_CONN_H

#include "ib/ib_qp.h"
#include "ib/ib_ring.h"
#include "rdma_channel/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A request to be woken. bits lies before seq in memory, so that who sees a new seq sees its bits. */
struct ib_wake_request {
	uint32_t bits; /* set of IB_WAKE_* */
	uint32_t seq;  /* another one each time; answered at most once */
};
_Static_assert(sizeof(struct ib_wake_request) == 8, "wire format");

enum {
	IB_WAKE_ON_DATA = 1u << 0,
	IB_WAKE_ON_ROOM = 1u << 1,
};

/* What a process has told its peer so far, for a peer that is about to sleep. */
struct ib_progress {
	uint32_t posted; /* chunks; bytes in the basic design */
	uint32_t tail;   /* the tail in the last chunk or tail update */
	uint32_t acked;  /* announcements acknowledged */
	uint32_t reserved;
};
_Static_assert(sizeof(struct ib_progress) == 16, "wire format");

/* The control block, at the start of the memory that the peer may access; the ring follows it. Little-endian. */
struct ib_control {
	/* Written by the peer with RDMA writes, read here. */
	uint32_t tail;  /* of our chunks, how many the peer has consumed; the same count rides in its chunks */
	uint32_t acked; /* of our announcements, how many the peer has read to the end; in one write with tail */
	struct ib_wake_request wake; /* the peer wants to be woken */
	uint32_t head;  /* basic only: bytes that the peer has written to our ring */
	uint8_t reserved1[44];
	/* Written here, read by the peer with RDMA reads. */
	struct ib_progress progress;
	uint8_t reserved2[48];
};
_Static_assert(sizeof(struct ib_control) == 128, "wire format");
_Static_assert(offsetof(struct ib_control, progress) == 64, "written and read parts on cache lines of their own");

/* The control block's memory; the ring begins behind it. */
enum { IB_CONTROL_BYTES = 4096 };

/* Beside the staging area, in memory for our own requests. */
struct ib_scratch {
	uint64_t source[IB_CONTROL_DEPTH]; /* what control writes send; one each, as it must not change under way */
	struct ib_progress probed;         /* where the peer's progress arrives */
	struct ib_progress flushed;        /* where the flushing read's result goes */
	uint64_t reserved[12];
	uint8_t window[3840];              /* reads for a bounce buffer that cannot be registered (ib_zerocopy.c) */
};

enum { IB_SCRATCH_BYTES = 4096 };
_Static_assert(sizeof(struct ib_scratch) == IB_SCRATCH_BYTES, "staging area begins behind it");

/* One side's half of a connection. Written by its owner, checked by the peer; integers little-endian. */
struct ib_half {
	uint32_t version; /* IB_WIRE_VERSION */
	struct ib_address address;
	uint8_t mtu;   /* enum ibv_mtu: of its port */
	uint8_t n_qps; /* queue pairs it has */
	uint8_t reads; /* RDMA reads it serves at once per queue pair, at least 1 */
	uint8_t design; /* enum hr_verbs_design; the lower of both is used */
	uint32_t chunk_bytes, n_chunks; /* its ring */
	uint32_t psn;                   /* of its first packet */
	uint32_t rkey;                  /* of control block and ring */
	uint64_t control;               /* address of the control block */
	uint32_t qpn[IB_QPS_MAX];
};
_Static_assert(sizeof(struct ib_half) == 120, "wire format");
_Static_assert(sizeof(struct ib_half) <= HR_HALF_BLOB_MAX, "fits the transport's contract");

/* Where a connection is with going to sleep; ib_sleep.c has the protocol. */
enum ib_sleep_state {
	IB_AWAKE,    /* the peer does not know that we want to be woken, or has answered */
	IB_REFUSED,  /* the request could not be posted yet */
	IB_PROBING,  /* request and probe are under way */
	IB_ARMED,    /* the peer has our request, and we know what it had told before it had it */
};

struct ib_conn {
	const struct hr_conn_env *env;
	struct ib_device *device;
	LIST_ENTRY(ib_conn) place;    /* in device->conns */
	enum hr_verbs_design design;  /* in use; known once it is established */
	struct ib_queues queues;
	struct ib_region shared;      /* control block, ring: the peer writes */
	struct ib_region own;         /* scratch, staging area */
	struct ib_control *control;   /* in shared */
	struct ib_scratch *scratch;   /* in own */
	struct ib_sender sender;
	struct ib_receiver receiver;
	uint64_t peer_control;        /* address of the peer's control block */
	uint32_t peer_rkey;
	uint32_t controls_posted;     /* requests with a source in scratch */
	int stream;                   /* the channel's; -1 before it is established */
	int error;                    /* what put returns, and get after the last byte; 0 while all is well */
	bool put_short;               /* the last put took less than offered */
	unsigned idle_calls;          /* puts and gets that moved nothing */
	uint64_t checked_ns;          /* when the stream was looked at last */
	bool flushing;                /* conn_shutdown has begun */
	bool said_goodbye;
	enum ib_sleep_state sleep;
	uint32_t wake_bits;           /* of our last request */
	uint32_t wake_seq;            /* of our last request */
	uint32_t answered_seq;        /* of the peer's last request that we answered */
	uint32_t probes_posted;
	uint32_t writes_posted;       /* requests of IB_KIND_WRITE, and turns that found no room */
	uint32_t writes_seen;         /* completions of them when one was asked for last */
	uint32_t writes_short;        /* writes of which a part waits for room in the queue pairs */
	uint32_t acks_told;           /* the count of the peer's announcements that it was last told */
	bool taking;                  /* completions are being taken */
	struct ib_zerocopy *zerocopy; /* that design's own; NULL in the others */
};

/* ---- ib_conn.c ---- */

/* Ends the connection with that error, which the caller has logged if it was the first to know. The first error
 * stays. */
void ib_conn_fail(struct ib_conn *conn, int error);
/* Looks at the stream now: wake-ups, goodbye, death. */
void ib_conn_check_stream(struct ib_conn *conn);
/* Takes completions; an erroneous one ends the connection. */
void ib_conn_progress(struct ib_conn *conn);
/* To be called by a put or get that moved nothing: takes completions and looks at the stream, now and then. */
void ib_conn_idle(struct ib_conn *conn);
/* Has something arrived that get would deliver or report? Would put accept something now? */
bool ib_conn_can_get(const struct ib_conn *conn);
bool ib_conn_can_put(struct ib_conn *conn);
/* Takes the tail that the peer wrote into the control block, and those in chunks not yet consumed. */
void ib_conn_take_tail(struct ib_conn *conn);
/* May a control write be posted now? Takes completions when it looks as if not. */
bool ib_conn_control_room(struct ib_conn *conn);
/* Writes len <= 8 bytes to that offset of the peer's control block. -EAGAIN: too many are under way. */
int ib_conn_write_control(struct ib_conn *conn, size_t offset, const void *bytes, uint32_t len);
/* Can the next chunk be built and posted, for the ring and the queue pair that it goes out on? Looks for news only when
 * not. */
bool ib_conn_has_room(struct ib_conn *conn);
/* Posts the chunk that was built last. A failure ends the connection. */
int ib_conn_post_chunk(struct ib_conn *conn, const struct ib_span *span);
/* Takes what has arrived of the next chunk, at most left > 0 bytes, and the tail in it. Returns the bytes, 0 if
 * there is none; a chunk that cannot be ends the connection. */
size_t ib_conn_take_chunk(struct ib_conn *conn, struct hr_iov_place *place, size_t left);
/* The peer sent what no peer sends: ends the connection, with that reason in the log. */
void ib_conn_violated(struct ib_conn *conn, const char *what);
/* Takes a tail that came in a chunk. */
void ib_conn_credit(struct ib_conn *conn, uint32_t tail);
/*
 * How a put of total bytes, of which some have been posted, and a get end: tells a peer that sleeps or waits for its
 * tail, looks for news where nothing moved, and returns what the caller returns. What was posted counts as accepted,
 * and what was taken as delivered; an error that came after it is returned by the next call.
 */
int ib_conn_end_put(struct ib_conn *conn, size_t total, size_t taken, uint32_t wake_bits, size_t *accepted);
int ib_conn_end_get(struct ib_conn *conn, size_t taken, size_t *delivered);
/* Tells the peer our tail and what we have read of its memory by a message of its own if that is due. */
void ib_conn_pay_tail(struct ib_conn *conn);

/* ---- ib_sleep.c ---- */

/* To be called after chunks or a tail have been posted: publishes that, and wakes the peer if it asked for it. */
void ib_sleep_told(struct ib_conn *conn, uint32_t bits);
/* The stream had wake-ups: our request has been answered. */
void ib_sleep_woken(struct ib_conn *conn);
void ib_sleep_arm(struct ib_conn *conn, bool want_put);
bool ib_sleep_pending(struct ib_conn *conn, bool want_put);
void ib_sleep_event(struct ib_conn *conn);

/* ---- the designs ---- */

int ib_basic_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted);
int ib_basic_get(struct ib_conn *conn, const struct iovec *iov, int n, size_t *delivered);
/* Has the peer written bytes that get has not taken? */
bool ib_basic_can_get(const struct ib_conn *conn);
/* Is there room for bytes and for requests? Looks for news. */
bool ib_basic_can_put(struct ib_conn *conn);

/* Builds and posts one chunk of at most left > 0 bytes; returns the bytes, 0 if there is no room. */
size_t ib_pipeline_chunk(struct ib_conn *conn, struct hr_iov_place *place, size_t left);
int ib_pipeline_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted);

int ib_piggyback_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted);
/* Of piggyback and pipeline. */
int ib_piggyback_get(struct ib_conn *conn, const struct iovec *iov, int n, size_t *delivered);

int ib_zerocopy_open(struct ib_conn *conn);
/* After the queue pairs are gone. NULL inside is allowed. */
void ib_zerocopy_close(struct ib_conn *conn);
int ib_zerocopy_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted);
int ib_zerocopy_get(struct ib_conn *conn, const struct iovec *iov, int n, size_t *delivered);
bool ib_zerocopy_can_get(const struct ib_conn *conn);
bool ib_zerocopy_can_put(struct ib_conn *conn);
/* Completions have been taken: acts on those of reads. */
void ib_zerocopy_advance(struct ib_conn *conn);
/* Are reads of ours under way? */
bool ib_zerocopy_under_way(const struct ib_conn *conn);
/* The peer's announcements that we have read, ever. */
uint32_t ib_zerocopy_acknowledged(const struct ib_conn *conn);
/* Has the peer acknowledged more than that many of ours that we knew of? count: what a probe says. */
bool ib_zerocopy_is_news(const struct ib_conn *conn, uint32_t count);

#endif
