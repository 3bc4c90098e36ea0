/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's insides, shared by the files of ch3/ only.
 *
 * Paths of a message: ch3_send builds the packet on the stack and puts it, straight from the caller's buffers. What the
 * pipe does not take becomes a request in the connection's send queue (send.c), which progress flushes in order. The
 * receiver gets bytes into the connection's inbox, finds packets there and calls handlers (receive.c); payload that is
 * not in the inbox yet is got straight into its sink. Rendezvous (rndv.c) finds its two ends by the ids in two tables.
 */
#ifndef HR_CH3_INTERNAL_H
#define HR_CH3_INTERNAL_H

#include "ch3/ch3.h"
#include "ch3/packet.h"
#include "rdma_channel/upper.h"

#include <sys/queue.h>
#include <time.h>

#define CH3_SINK_IOV ((int)(sizeof(((ch3_sink_t *)0)->iov) / sizeof(struct iovec)))

/* How many connections every poll looks at; those with writes under way or a failure to tell come on top. */
#define CH3_ACTIVE_MAX 16

/* Bytes of an inbox: one get brings in this much of small messages. */
#define CH3_INBOX 8192
/* What one get may bring in behind a large payload: the next packet's front and a little more. What lands in the inbox
 * is copied once again, so while large messages stream this stays small. */
#define CH3_INBOX_BEHIND 256

/* Where bytes come from or go to: piece[0..n-1] is what is left. The pieces are consumed in place. */
struct ch3_cursor {
	struct iovec *piece;
	int n;
};

/* Bytes left in a cursor; saturates at SIZE_MAX. */
size_t ch3_cursor_bytes(const struct ch3_cursor *cursor);
/* Consumes bytes, at most what is left. */
void ch3_cursor_advance(struct ch3_cursor *cursor, size_t bytes);
/* Shortens the cursor to at most bytes. */
void ch3_cursor_trim(struct ch3_cursor *cursor, uint64_t bytes);
/* Copies up to len bytes into the pieces; returns how many. */
size_t ch3_scatter(const struct iovec *iov, int n, const void *bytes, size_t len);
/* As scatter, and consumes them. */
size_t ch3_cursor_fill(struct ch3_cursor *cursor, const void *bytes, size_t len);

/* Names for objects that the peer refers to: index and generation in 32 bits, never 0; a stale or invented id finds
 * nothing. Grows by doubling. */
struct ch3_ids {
	struct ch3_id_slot {
		void *object;        /* NULL: free */
		uint32_t generation; /* counts uses of the slot; wraps */
		uint32_t next_free;  /* index + 1; 0 ends the list */
	} *slot;
	uint32_t n;
	uint32_t first_free; /* index + 1 */
};

int ch3_ids_add(struct ch3_ids *ids, void *object, uint32_t *id);
void *ch3_ids_find(const struct ch3_ids *ids, uint32_t id);
void ch3_ids_remove(struct ch3_ids *ids, uint32_t id);
void ch3_ids_destroy(struct ch3_ids *ids);

/* What goes before a payload: packet, perhaps more of it, header. */
#define CH3_FRONT_MAX (sizeof(struct ch3_packet) + sizeof(struct ch3_packet_more) + CH3_HEADER_MAX)

/* The same as a receiver sees it. */
struct ch3_front {
	unsigned type, flags;
	size_t header_len;
	const void *header;
	uint64_t payload_len;
	uint32_t sender_id, receiver_id;
};

/* A send that did not leave at once. */
enum ch3_request_stage {
	CH3_STAGE_QUEUED,   /* in the send queue: cursor is what remains to be put */
	CH3_STAGE_ANNOUNCE, /* in the send queue: the announcement of a payload that waits in iov[1..] */
	CH3_STAGE_WAITING,  /* announced; the receiver's CLEAR will queue the payload */
	CH3_STAGE_WRITING,  /* cleared; the payload is being written into the receiver's memory */
	CH3_STAGE_COMPLETE,
};

struct ch3_request {
	ch3_request_t *next; /* in the send queue or the free list */
	ch3_t *engine;
	enum ch3_request_stage stage;
	int error;
	bool detached;         /* the user gave it back, or never had it: freed on completion */
	uint32_t sender_id;    /* of an announced payload, else 0 */
	uint64_t payload_len;
	struct ch3_writes *writes; /* WRITING, owned */
	struct ch3_cursor cursor;
	int n;                 /* pieces in iov, the front included */
	struct iovec *iov;     /* iov[0] is the front, then the payload; inline_iov unless that is too small */
	void *copy;            /* CH3_SEND_COPY: the bytes, owned */
	struct iovec inline_iov[1 + 4];
	uint8_t front[CH3_FRONT_MAX];
};

/* The receiving end of a rendezvous. */
struct ch3_rndv {
	ch3_vc_t *vc;
	uint32_t sender_id, receiver_id; /* receiver_id 0: not accepted yet, not in the table */
	uint64_t payload_len;            /* announced */
	uint64_t wanted;                 /* what the CLEAR asked for */
	ch3_done_fn done;
	void *context;
	bool can_write;                  /* the sender said so */
	int n_exposed;                   /* memory that the sender may write until it is DONE */
	hr_exposed_t *exposed[CH3_PLACES_MAX];
	ch3_rndv_t *next, **link; /* in the connection's list of deferred ones, until accepted */
	struct ch3_cursor cursor;
	struct iovec *iov; /* inline_iov unless that is too small */
	struct iovec inline_iov[sizeof(((ch3_sink_t *)0)->iov) / sizeof(struct iovec)];
};

/* What one connection is receiving. */
struct ch3_receive {
	bool in_payload;          /* else at, or within, a packet's front */
	uint8_t sequence;         /* of the next packet */
	uint32_t begin, end;      /* bytes of the inbox not yet consumed */
	uint32_t ahead;           /* how much of the inbox the next get may fill */
	uint64_t left;            /* of the payload, to the sink and then dropped */
	size_t moved;             /* bytes that went into the sink */
	struct ch3_cursor cursor; /* the sink's rest */
	ch3_done_fn done;
	void *context;
	ch3_rndv_t *rndv;         /* whose payload this is, or NULL */
	ch3_sink_t sink;
	uint8_t *inbox;           /* CH3_INBOX bytes; NULL until the connection is opened */
};

struct ch3_vc {
	ch3_t *engine;
	hr_conn_t *conn; /* NULL: on demand, not opened yet */
	void *user;
	TAILQ_ENTRY(ch3_vc) all;    /* in engine->vcs */
	TAILQ_ENTRY(ch3_vc) active; /* in engine->active, if is_active */
	bool is_active;
	struct ch3_peer *peer; /* on demand: its place in the table of cards, owned; else NULL */
	int error;      /* the connection failed, its requests are complete, the layer above has been told */
	int send_error; /* put failed; what the peer sent before is still received, then this becomes error */
	uint8_t send_sequence; /* of the next packet */
	ch3_request_t *queue, **queue_end;
	ch3_request_t *writing; /* in CH3_STAGE_WRITING */
	struct ch3_ids announced; /* ch3_request_t: sends waiting for CLEAR */
	struct ch3_ids accepted;  /* ch3_rndv_t: receives waiting for DATA */
	ch3_rndv_t *deferred;
	struct ch3_receive receive;
};

TAILQ_HEAD(ch3_vc_list, ch3_vc);

/* peers.c: virtual connections on demand by the cards of their peers; a hash table that grows by doubling. */
struct ch3_peer {
	struct ch3_peer *next;
	uint64_t hash;
	ch3_vc_t *vc;
	hr_card_t card;
};
struct ch3_peers {
	struct ch3_peer **bucket;
	size_t n_buckets, n; /* a power of two, or 0 */
};

struct ch3 {
	hr_channel_t *channel;
	struct {
		ch3_handler_fn fn;
		void *context;
	} handler[CH3_TYPES];
	ch3_failure_fn on_failure;
	void *failure_context;
	uint64_t eager_max;
	bool writes;       /* HEADRACE_RENDEZVOUS=write */
	uint32_t close_ms; /* how long closing may wait for queued messages to leave */
	struct ch3_vc_list vcs;
	/* Those that every poll looks at: on which something moved of late, the latest first. The others are the
	 * channel's to tell of. */
	struct ch3_vc_list active;
	int n_active;
	int n_conns;
	unsigned polls;    /* since the channel was asked last */
	bool ask_who_came; /* a wait has ended since: it tells of a peer once, and may have done so */
	struct ch3_peers peers;
	unsigned queued;   /* connections whose send queue is not empty */
	unsigned ran;      /* handlers, completions and failures so far; wraps */
	ch3_request_t *free_requests;
	struct ch3_slab *slabs;
};

/* -EEXIST, -ENOMEM. */
int ch3_peers_add(struct ch3_peers *peers, const hr_card_t *card, ch3_vc_t *vc);
/* The one whose card that is, every byte of it; NULL. */
ch3_vc_t *ch3_peers_find(const struct ch3_peers *peers, const hr_card_t *card);
void ch3_peers_remove(struct ch3_peers *peers, struct ch3_peer *peer);
void ch3_peers_destroy(struct ch3_peers *peers);

static inline uint64_t ch3_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* request.c: NULL when memory runs out. A new request is QUEUED, with room for n payload pieces behind the front. */
ch3_request_t *ch3_request_new(ch3_t *engine, int n);
/* Completes it; gone at once if detached. */
void ch3_request_complete(ch3_request_t *request, int error);
void ch3_requests_destroy(ch3_t *engine);

/* send.c: writes a message's front with the next sequence number; returns its length. more: NULL where payload_len and
 * the flags need none. */
size_t ch3_front_write(ch3_vc_t *vc, uint8_t *front, unsigned type, unsigned flags, const void *header,
		       size_t header_len, uint32_t payload_len, const struct ch3_packet_more *more);
/* Appends a request whose cursor says what to put, and puts what can be put now. */
void ch3_queue_append(ch3_vc_t *vc, ch3_request_t *request);
/* Nothing more can be sent: what the peer has sent is still received, then progress fails the connection with error, as
 * the channel may have no reason to tell of it. */
void ch3_send_failed(ch3_vc_t *vc, int error);
/* Puts from the queue until the pipe is full or the queue empty. */
void ch3_queue_flush(ch3_vc_t *vc);
/* Sends one of CH3's own packets, without a payload. */
int ch3_send_own(ch3_vc_t *vc, unsigned type, const struct ch3_packet_more *more, const void *header,
		 size_t header_len);

/* rndv.c */
int ch3_rndv_send(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, const struct iovec *iov, int n,
		  uint64_t payload_len, unsigned flags, ch3_request_t **request);
/* A packet with CH3_PACKET_WAITS came: calls its handler. */
int ch3_rndv_announced(ch3_vc_t *vc, const struct ch3_front *front);
/* The receiver's CLEAR came: queues the payload. */
int ch3_rndv_cleared(ch3_vc_t *vc, const struct ch3_front *front);
/* Queues the payload for the pipe, as that receiver asked for it. */
void ch3_rndv_queue_data(ch3_vc_t *vc, ch3_request_t *send, uint64_t payload_len, uint32_t receiver_id);
/* DATA came: finds where its payload goes. */
int ch3_rndv_data(ch3_vc_t *vc, const struct ch3_front *front);
void ch3_rndv_free(ch3_rndv_t *rndv);

/* write.c: rendezvous by writing into the receiver's memory. May this payload go so, as far as we can tell? */
bool ch3_write_can(const ch3_vc_t *vc, uint64_t payload_len);
/* Exposes where an accepted payload goes and describes it; returns how many places, 0: it must come by the pipe. */
int ch3_write_expose(ch3_rndv_t *rndv, struct ch3_place place[CH3_PLACES_MAX]);
void ch3_write_hide(ch3_rndv_t *rndv);
/* The receiver's CLEAR came with places: starts to write. 0: it must go by the pipe; 1: under way; -EPROTO. */
int ch3_write_start(ch3_vc_t *vc, ch3_request_t *send, const struct ch3_front *front);
/* Goes on with all that are under way; each that is complete is told to the receiver and completed. */
void ch3_write_progress(ch3_vc_t *vc);
/* DONE came. */
int ch3_write_done(ch3_vc_t *vc, const struct ch3_front *front);
/* Of a connection that takes no more bytes: ends what is under way. */
void ch3_write_cancel(ch3_vc_t *vc, int error);

/* receive.c: one get and what follows from it. *more: the pipe may hold more. */
int ch3_receive_some(ch3_vc_t *vc, bool *more);

/* vc.c: fails the connection: ends it at once, completes everything of it with error and tells the layer above. */
void ch3_vc_fail(ch3_vc_t *vc, int error);
/* Has every poll look at it from now on, as long as it is among those used last. */
void ch3_vc_activate(ch3_vc_t *vc);

/* progress.c: one connection: puts what is queued, gets what has come. */
void ch3_vc_progress(ch3_vc_t *vc);

#endif
