/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internal declarations of ch3. Only the files of ch3/ include this header.
 *
 * Sending (send.c): ch3_send builds a short message in the memory of the pipe (hr_conn_reserve). If that is not
 * possible, it builds the front on the stack and calls hr_channel_put with the front and the caller's buffers. If the
 * pipe does not accept the whole message, the rest becomes a request in the connection's send queue. Progress sends the
 * queue in order.
 * Receiving (receive.c): progress reads packets in the memory of the pipe (hr_conn_peek) or in the connection's inbox,
 * which hr_channel_get fills, and calls their handlers. Payload that has not arrived in the inbox yet is received
 * directly into the buffers of its sink.
 * While the bytes of a payload are being transferred, the fronts of later messages are handled already (ahead.c).
 * Access to the memory of peers (access.c) goes beside the pipe.
 * Rendezvous (rndv.c): packets name the send and the receive by ids, which two tables of the connection resolve.
 */
#ifndef HR_CH3_INTERNAL_H
#define HR_CH3_INTERNAL_H

#include "ch3/ch3.h"
#include "ch3/packet.h"
#include "rdma_channel/base/copy.h"
#include "rdma_channel/upper.h"

#include <string.h>
#include <sys/queue.h>
#include <time.h>

#define CH3_SINK_IOV ((int)(sizeof(((ch3_sink_t *)0)->iov) / sizeof(struct iovec)))

/* Maximum number of connections that every poll looks at. Connections with incomplete remote writes or accesses,
 * or with an unreported send error are polled in addition. */
#define CH3_ACTIVE_MAX 16

/* Progress counts the cost of polls, to decide when to do work that takes a system call. The unit is one hr_conn_peek,
 * about 6 ns. This is the cost of one hr_channel_get. */
#define CH3_COST_GET 16u

/* Memory of a batch: messages with CH3_SEND_MORE that were gathered, bytes. About 60 launches of CUDA kernels. */
#define CH3_BATCH 8192

/* Size of an inbox, bytes: the most that one get receives of small messages. */
#define CH3_INBOX 8192
/* Bytes that a get may receive into the inbox behind a large payload: enough for the next packet's front. Bytes in the
 * inbox are copied a second time, so the limit is small while large messages are received. */
#define CH3_INBOX_BEHIND 256

typedef struct ch3_access ch3_access_t; /* an access to a peer's memory (access.c) */

/* Position in a vector of buffers: piece[0..n-1] are the bytes that are left. Advancing changes the pieces. */
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
/* Copies up to len bytes into the buffers. conn: as in struct ch3_source. Returns the number of bytes copied. */
size_t ch3_scatter(const struct iovec *iov, int n, const void *bytes, size_t len, hr_conn_t *conn);
/* As ch3_scatter, and advances the cursor by the bytes copied. */
size_t ch3_cursor_fill(struct ch3_cursor *cursor, const void *bytes, size_t len, hr_conn_t *conn);

/* Table of ids that the peer uses to refer to local objects. An id has 32 bits, an index and a generation, and is never
 * 0. An id that was never issued or that was removed is not found, unless the generation has wrapped (256 uses of a
 * slot). The table grows by doubling. */
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

/* Maximum size of a front, bytes: everything before the payload of a packet. */
#define CH3_FRONT_MAX (sizeof(struct ch3_packet) + sizeof(struct ch3_packet_more) + CH3_HEADER_MAX)

/* A front that was received and checked. */
struct ch3_front {
	unsigned type, flags;
	size_t header_len;
	uint64_t payload_len;
	uint32_t sender_id, receiver_id;
	uint8_t header[CH3_HEADER_MAX]; /* header_len bytes */
};

/* State of a send that the pipe did not accept completely in the call of ch3_send. */
enum ch3_request_stage {
	CH3_STAGE_QUEUED,   /* in the send queue: the bytes of cursor are not sent yet */
	CH3_STAGE_ANNOUNCE, /* in the send queue: announces the payload iov[1..] */
	CH3_STAGE_WAITING,  /* announced; waits for the receiver's CLEAR, then the payload is queued or written */
	CH3_STAGE_WRITING,  /* CLEAR received; remote writes of the payload are in progress */
	CH3_STAGE_COMPLETE,
};

struct ch3_request {
	ch3_request_t *next; /* in the send queue or the free list */
	ch3_t *engine;
	enum ch3_request_stage stage;
	int error;
	bool detached;         /* the caller has no pointer to the request: freed on completion */
	uint32_t sender_id;    /* id of an announced payload, else 0 */
	uint64_t payload_len;
	struct ch3_writes *writes; /* CH3_STAGE_WRITING: owned */
	struct ch3_cursor cursor;
	int n;                 /* pieces in iov, the front included */
	struct iovec *iov;     /* iov[0] is the front, then the payload; inline_iov unless that is too small */
	void *copy;            /* CH3_SEND_COPY: copy of the payload; with pack: a part of the payload; owned */
	ch3_pack_fn pack;      /* not NULL: copies the payload; iov holds the front and the part in copy */
	void *context;         /* of pack */
	size_t part_max;       /* size of copy if there is pack, bytes */
	uint64_t to_pack;      /* bytes of the payload to be packed and sent after those of cursor */
	bool put_was_short;    /* with pack: the last put did not accept the bytes of cursor */
	struct iovec inline_iov[1 + 4];
	uint8_t front[CH3_FRONT_MAX];
};

/* The receiver's state of a rendezvous. */
struct ch3_rndv {
	ch3_vc_t *vc;
	uint32_t sender_id, receiver_id; /* receiver_id 0: not accepted yet, not in the table */
	uint64_t payload_len;            /* announced length, bytes */
	uint64_t wanted;                 /* bytes that the CLEAR requested */
	ch3_done_fn done;
	void *context;
	bool can_write;                  /* the announcement had CH3_PACKET_WRITES */
	int n_exposed;                   /* exposed[0..n_exposed-1]: memory that the sender may write until its DONE */
	hr_exposed_t *exposed[CH3_PLACES_MAX];
	ch3_unpack_fn unpack; /* not NULL: takes the wanted bytes; iov is not used */
	ch3_rndv_t *next, **link; /* in vc->deferred, until the rendezvous is accepted */
	struct ch3_cursor cursor;
	struct iovec *iov; /* inline_iov unless that is too small */
	struct iovec inline_iov[sizeof(((ch3_sink_t *)0)->iov) / sizeof(struct iovec)];
};

/* A payload that is being received, or will be. */
struct ch3_payload {
	uint64_t left;            /* bytes that are missing: first fills the sink, the rest is dropped */
	size_t moved;             /* bytes that were stored in the sink */
	struct ch3_cursor cursor; /* the free part of the sink's buffers */
	ch3_done_fn done;
	void *context;
	ch3_unpack_fn unpack;     /* not NULL: takes the next `room` bytes; the cursor is empty */
	uint64_t room;
	ch3_rndv_t *rndv;         /* the rendezvous that the payload belongs to; NULL: eager payload */
	ch3_sink_t sink;
};

/* Receive state of one connection. */
struct ch3_receive {
	bool in_payload;          /* the next byte belongs to a payload, else to a packet's front, unless ch3_ahead_pending */
	uint64_t sequence;        /* number of packets received; the next packet carries the low 8 bits */
	uint32_t begin, end;      /* inbox[begin..end-1] is not consumed yet */
	uint32_t ahead;           /* number of bytes of the inbox that the next get may fill */
	struct ch3_payload payload;
	struct ch3_ahead *segments; /* the messages behind the payload whose fronts were handled; NULL until there is one */
	uint64_t dropped;         /* bytes of the payload and of the segments that were received while closing */
	uint8_t *inbox;           /* CH3_INBOX bytes; NULL until the connection is opened */
};

struct ch3_vc {
	ch3_t *engine;
	hr_conn_t *conn; /* NULL: on demand, not opened yet */
	void *user;
	TAILQ_ENTRY(ch3_vc) all;    /* in engine->vcs */
	TAILQ_ENTRY(ch3_vc) active; /* in engine->active, if is_active */
	bool is_active;
	struct ch3_peer *peer; /* on demand: its entry in engine->peers, owned; NULL: its card is not known */
	uint32_t number; /* engine->numbers.vc[number] is this virtual connection; CH3_NO_NUMBER: it has none */
	struct hr_awaited *watch; /* what the next bytes will change (hr_conn_watch); NULL: not known */
	int error;      /* error of a failed connection; its requests are complete and on_failure has been called */
	int send_error; /* a send failed: bytes that have arrived are still received, then the connection fails */
	uint64_t send_sequence; /* number of packets sent; the low 8 bits go into the next packet */
	bool held_back; /* the last pass over the queue completed a send and therefore did not receive (progress.c) */
	ch3_request_t *queue, **queue_end;
	ch3_request_t *batch; /* the only request of the queue, if it still gathers messages (CH3_SEND_MORE); else NULL */
	ch3_request_t *writing; /* requests in CH3_STAGE_WRITING */
	ch3_access_t *accesses, **accesses_end; /* accesses to the peer's memory, the oldest first */
	struct ch3_ids announced; /* of ch3_request_t: sends that wait for CLEAR */
	struct ch3_ids accepted;  /* of ch3_rndv_t: receives that wait for DATA or DONE */
	ch3_rndv_t *deferred;
	struct ch3_receive receive;
};

TAILQ_HEAD(ch3_vc_list, ch3_vc);

/* peers.c: hash table of virtual connections on demand. The key is the peer's card. Grows by doubling. */
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

/* numbers.c: virtual connections on demand by the number of the peer. */
#define CH3_NO_NUMBER UINT32_MAX
struct ch3_numbers {
	ch3_vc_t **vc; /* [n]; NULL: the engine has no numbers, or this number was not added */
	uint32_t n;
	uint32_t build; /* of this process */
	ch3_find_fn find;
	void *context;
};

struct ch3 {
	hr_channel_t *channel;
	struct {
		ch3_handler_fn fn;
		ch3_short_fn short_fn; /* or NULL */
		bool ahead;            /* ch3_register_ahead */
		ch3_ahead_fn may_ahead; /* or NULL */
		void *context;
	} handler[CH3_TYPES];
	ch3_failure_fn on_failure;
	void *failure_context;
	uint64_t eager_max;
	bool writes;       /* HEADRACE_RENDEZVOUS=write */
	uint32_t close_ms; /* how long closing may wait for queued messages to leave */
	struct ch3_vc_list vcs;
	/* Connections that every poll looks at: the recently active ones, the latest first. For all others progress
	 * asks the channel (hr_channel_ready). */
	struct ch3_vc_list active;
	int n_active;
	int n_conns;
	unsigned cost;      /* sum over all polls, in the unit of CH3_COST_GET; wraps */
	unsigned in_a_row;  /* messages of ch3_progress_short since the last ch3_progress_poll, at most SHORT_IN_A_ROW */
	unsigned looked_at; /* value of cost at the last call of hr_channel_ready */
	bool sleeps;       /* the channel has HR_CHANNEL_SLEEPS */
	bool ask_who_came; /* hr_channel_incoming must be called: the last wait may have ended for an incoming peer */
	struct ch3_peers peers;
	struct ch3_numbers numbers;
	unsigned queued;   /* number of connections whose send queue is not empty */
	unsigned ran;      /* number of handler, completion and failure callbacks so far; wraps */
	unsigned moved;    /* number of gets and puts that moved bytes of a message's rest so far; wraps */
	ch3_request_t *free_requests;
	ch3_access_t *free_accesses;
	struct ch3_slab *slabs;
};

/* -EEXIST, -ENOMEM. */
int ch3_peers_add(struct ch3_peers *peers, const hr_card_t *card, ch3_vc_t *vc);
/* Returns the virtual connection with exactly this card, or NULL. */
ch3_vc_t *ch3_peers_find(const struct ch3_peers *peers, const hr_card_t *card);
void ch3_peers_remove(struct ch3_peers *peers, struct ch3_peer *peer);
void ch3_peers_destroy(struct ch3_peers *peers);

/* numbers.c: makes sure that the card of a virtual connection is known; asks the caller of ch3_number for it. */
int ch3_numbers_find(ch3_vc_t *vc);
/* Returns the virtual connection of an incoming peer whose card is not known, by the number in the card, and stores the card.
 * NULL: no such peer was added, or this peer's card is another one. */
ch3_vc_t *ch3_numbers_incoming(ch3_t *engine, const hr_card_t *card);

static inline uint64_t ch3_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* request.c: returns NULL if out of memory. The request's stage is CH3_STAGE_QUEUED; iov has room for the front and n
 * payload pieces. */
ch3_request_t *ch3_request_new(ch3_t *engine, int n);
/* Completes a request. If the request is detached, it is freed. */
void ch3_request_complete(ch3_request_t *request, int error);
void ch3_requests_destroy(ch3_t *engine);

/* send.c: writes a message's front with the next sequence number. Returns the front's length. more: NULL if the packet
 * has no struct ch3_packet_more. */
size_t ch3_front_write(ch3_vc_t *vc, uint8_t *front, unsigned type, unsigned flags, const void *header,
		       size_t header_len, uint32_t payload_len, const struct ch3_packet_more *more);
/* Appends a request to the send queue; its cursor holds the bytes to send. Sends what the pipe accepts. */
void ch3_queue_append(ch3_vc_t *vc, ch3_request_t *request);
/* Records that nothing more can be sent. Progress still receives the bytes that have arrived, then fails the connection
 * with error. The connection becomes active, because hr_channel_ready need not return it. */
void ch3_send_failed(ch3_vc_t *vc, int error);
/* Checks the arguments of a send, and that the connection has not failed. */
int ch3_send_check(const ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, int n, unsigned flags,
		   ch3_request_t **request);
/* Sends from the queue until the pipe is full or the queue is empty. */
void ch3_queue_flush(ch3_vc_t *vc);
/* Sends a packet of one of CH3's own types, without a payload. */
int ch3_send_own(ch3_vc_t *vc, unsigned type, const struct ch3_packet_more *more, const void *header,
		 size_t header_len);

/* pack.c: sends bytes of a request with pack in records in place, as far as there is room. If there is no room and
 * cursor is empty, packs a part into copy and makes it the cursor. */
void ch3_pack_some(ch3_vc_t *vc, ch3_request_t *request);

/* rndv.c */
/* Announces the payload of a request, and queues it. On failure the caller frees the request. */
int ch3_rndv_announce(ch3_vc_t *vc, ch3_request_t *send, unsigned type, const void *header, size_t header_len,
		      uint64_t payload_len);
int ch3_rndv_send(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, const struct iovec *iov, int n,
		  uint64_t payload_len, unsigned flags, ch3_request_t **request);
/* Handles a packet with CH3_PACKET_WAITS: calls the handler of its type. */
int ch3_rndv_announced(ch3_vc_t *vc, const struct ch3_front *front);
/* Handles the receiver's CLEAR: queues the payload or starts remote writes. */
int ch3_rndv_cleared(ch3_vc_t *vc, const struct ch3_front *front);
/* Queues the first payload_len bytes of the payload as CH3_PACKET_DATA. */
void ch3_rndv_queue_data(ch3_vc_t *vc, ch3_request_t *send, uint64_t payload_len, uint32_t receiver_id);
/* Handles the front of a DATA packet: makes the buffers of its rendezvous the target of *payload. */
int ch3_rndv_data(ch3_vc_t *vc, const struct ch3_front *front, struct ch3_payload *payload);
void ch3_rndv_free(ch3_rndv_t *rndv);

/* write.c: rendezvous by remote write. Returns whether setting, length and connection allow it on this side. */
bool ch3_write_can(const ch3_vc_t *vc, uint64_t payload_len);
/* Exposes the buffers of an accepted rendezvous and describes them in place. Returns the number of places; 0: the
 * payload must be sent through the pipe. */
int ch3_write_expose(ch3_rndv_t *rndv, struct ch3_place place[CH3_PLACES_MAX]);
void ch3_write_hide(ch3_rndv_t *rndv);
/* Handles a CLEAR with places: starts the writes. Returns 1 if writes are in progress, 0 if the payload must be sent
 * through the pipe, -EPROTO if the places are invalid. */
int ch3_write_start(ch3_vc_t *vc, ch3_request_t *send, const struct ch3_front *front);
/* Makes progress with all writes of the connection. If the writes of a request are complete, sends DONE and completes
 * the request. */
void ch3_write_progress(ch3_vc_t *vc);
/* Handles a DONE packet: completes the receive. */
int ch3_write_done(ch3_vc_t *vc, const struct ch3_front *front);
/* After an abort or a close of the connection: releases its writes and completes their requests with error. */
void ch3_write_cancel(ch3_vc_t *vc, int error);

/* access.c: completes the accesses of a connection that have ended. */
void ch3_access_progress(ch3_vc_t *vc);
/* After an abort or a close of the connection: completes its accesses with error. */
void ch3_access_cancel(ch3_vc_t *vc, int error);
void ch3_accesses_destroy(ch3_t *engine);

/* receive.c: receives once from the pipe and handles what arrived. *more: the pipe may hold more bytes. */
int ch3_receive_some(ch3_vc_t *vc, bool *more);
/* Bytes of the pipe that are not parsed yet, in the inbox, in a record in place or ahead. */
struct ch3_source {
	const uint8_t *at;
	size_t left;
	hr_conn_t *conn; /* whose record in place has the bytes; NULL: they lie in memory of ch3 */
};
/* Copies a front and checks the copy. Returns 1, 0 if the front is not complete yet, or a negated errno value. */
int ch3_front_take(ch3_vc_t *vc, struct ch3_source *source, struct ch3_front *front);
/* Handles the front of a message. *payload, which must be zero, then describes how to receive the payload. */
int ch3_front_handle(ch3_vc_t *vc, const struct ch3_front *front, struct ch3_payload *payload);
/* The payload that is received from now on. *payload has received nothing yet. */
void ch3_payload_begin(struct ch3_receive *receive, const struct ch3_payload *payload);

/* ahead.c: handles the fronts behind the payload that is being received, as far as they have arrived. */
void ch3_ahead_look(ch3_vc_t *vc);
/* Whether such messages wait to be received. */
bool ch3_ahead_pending(const ch3_vc_t *vc);
/* Whether the inbox may follow the buffers of ch3_ahead_vector. */
bool ch3_ahead_goes_on(const ch3_vc_t *vc);
/* Buffers of a get: at most 2 * CH3_IOV_MAX of payloads, at most 16 for fronts, the inbox. */
#define CH3_AHEAD_IOV (2 * CH3_IOV_MAX + 16 + 1)
/* Stores the buffers of the payload that is being received and of the messages behind it. Returns their number. */
int ch3_ahead_vector(const ch3_vc_t *vc, struct iovec iov[CH3_AHEAD_IOV]);
/* Receives bytes of the front of the next such message, at most *bytes, and subtracts them from *bytes. Returns 1 if its
 * payload is received from now on, 0 if its front is not complete, or the error of the message. */
int ch3_ahead_next(ch3_vc_t *vc, size_t *bytes);
/* After an abort or a close of the connection: completes the receives of these messages with error. */
void ch3_ahead_cancel(ch3_vc_t *vc, int error);

/* vc.c: a virtual connection that is not opened yet; NULL: no memory. */
ch3_vc_t *ch3_vc_new(ch3_t *engine, void *user);
void ch3_vc_free(ch3_vc_t *vc);
/* Aborts the connection, completes all its requests and receives with error and calls on_failure. */
void ch3_vc_fail(ch3_vc_t *vc, int error);
/* Puts the connection at the head of engine->active, unless it is in the list. */
void ch3_vc_activate_now(ch3_vc_t *vc);
static inline void ch3_vc_activate(ch3_vc_t *vc)
{
	if (!vc->is_active)
		ch3_vc_activate_now(vc);
}

/* receive.c: handles the records at the head of the pipe, up to `most` > 0, as long as they are for a function of
 * ch3_register_short. Returns how many, or an error as the function does. The connection expects a front, and its inbox is
 * empty. */
int ch3_receive_short(ch3_vc_t *vc, unsigned most);

/* progress.c: makes progress with one connection: sends queued bytes, continues writes, receives. */
void ch3_vc_progress(ch3_vc_t *vc);

#endif
