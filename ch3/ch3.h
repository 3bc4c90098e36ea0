/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CH3: typed packets, virtual connections, requests and a progress engine over the RDMA channel. The name and the place
 * in the stack are those of MPICH (ADI3 / CH3). cuda_remote/ and adi/ use CH3.
 *
 * A message has a type, a small header (defined by the type, at most CH3_HEADER_MAX bytes) and a payload of any length.
 * A short payload is sent eagerly, directly after the header. A long payload is sent by rendezvous unless the sender
 * passes CH3_SEND_EAGER. The handlers of one virtual connection see messages in the order in which they were sent. The
 * payload of a rendezvous message may arrive after the payloads of later messages. A handler is called when all earlier
 * eager payloads are there, unless its type allows otherwise (ch3_register_ahead).
 *
 * Return values: 0 on success, a negated errno value on failure. Output parameters come last and are set only on
 * success.
 * Threads: one thread at a time may use an engine and everything that belongs to it. Calls go down only: handlers and
 * completion callbacks run inside ch3_progress_* (a completion callback also inside the call that completes the
 * request). They may send and accept. They must not make progress or close anything.
 */
#ifndef HR_CH3_H
#define HR_CH3_H

#include "headrace/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define CH3_HEADER_MAX 128 /* maximum size of a type's header, bytes */
#define CH3_TYPES 64       /* packet types are 0..CH3_TYPES-1; those below CH3_TYPE_FIRST are ch3's */
#define CH3_TYPE_FIRST 8
#define CH3_IOV_MAX 64     /* maximum number of buffers of one payload */

typedef struct ch3 ch3_t;                 /* engine: a channel, its virtual connections, its progress */
typedef struct ch3_vc ch3_vc_t;           /* virtual connection to one peer */
typedef struct ch3_request ch3_request_t; /* an operation in progress */
typedef struct ch3_rndv ch3_rndv_t;       /* an announced payload that has no receive buffer yet */

/* Opens an engine and its channel. attr: as for hr_channel_init. Stores the channel's card in *card. */
int ch3_open(const hr_channel_attr_t *attr, ch3_t **engine, hr_card_t *card);

/* Closes all virtual connections as ch3_vc_close does, waits up to the channel's time-out until sent messages are
 * delivered, and frees everything, requests included. engine may be NULL. */
void ch3_close(ch3_t *engine);

/* The engine's channel. Callers may use only its accessors: descriptor, statistics, identity. */
hr_channel_t *ch3_channel(ch3_t *engine);

/* The longest payload that is sent eagerly without CH3_SEND_EAGER and CH3_SEND_SYNC, bytes: HEADRACE_EAGER_MAX. */
uint64_t ch3_eager_max(const ch3_t *engine);

/* As hr_channel_connect. user: a pointer for the caller, returned by ch3_vc_user. */
int ch3_connect(ch3_t *engine, const hr_card_t *card, const hr_connect_attr_t *attr, void *user, ch3_vc_t **vc);

/*
 * Adds a virtual connection on demand. Its connection is opened by the first send, by ch3_vc_open, or when the peer
 * connects. Both sides must add each other. An incoming peer is identified by its card; peers that were not added are
 * not answered and time out. The engine's channel should have HR_CHANNEL_PATIENT. -EEXIST: this card was added before.
 */
int ch3_add(ch3_t *engine, const hr_card_t *card, void *user, ch3_vc_t **vc);

/*
 * Peers by number: in a job of n numbered processes, a process need not know the cards of the others.
 *
 * ch3_number gives this process its number, stores it in the engine's card and replaces *card. Call it before the card
 * goes to another process, once. build: stored in the card too. A connection to a process with another build fails with
 * -EPROTO, and the log says why. find fetches the card of a peer: it returns 0 and stores the card, or returns a negated
 * errno value. It is called when this side opens the connection first. A peer that connects first brings its card, and
 * its number in it. -EINVAL, -ENOMEM.
 * ch3_add_number adds a virtual connection on demand to the process with this number, as ch3_add does for a card.
 * -EEXIST: this number was added before.
 */
typedef int (*ch3_find_fn)(void *context, uint32_t number, hr_card_t *card);
int ch3_number(ch3_t *engine, uint32_t number, uint32_t n, uint32_t build, ch3_find_fn find, void *context, hr_card_t *card);
int ch3_add_number(ch3_t *engine, uint32_t number, void *user, ch3_vc_t **vc);

/* Opens a virtual connection on demand, for a caller that waits for the peer and needs to know if the peer fails.
 * Returns 0 also if the connection is open or being set up. Errors: those of ch3_connect and of ch3_find_fn (the caller
 * may try again), or the error of a connection that has failed. */
int ch3_vc_open(ch3_vc_t *vc);

/* Returns the number of the engine's connections. Connections on demand that were never opened do not count. */
int ch3_connections(const ch3_t *engine);

void *ch3_vc_user(const ch3_vc_t *vc);
/* NULL if the virtual connection is on demand and not opened yet. */
hr_conn_t *ch3_vc_conn(ch3_vc_t *vc);

/* Returns 0 if the connection is not opened yet or is being set up, 1 if it is up, the error if it has failed. */
int ch3_vc_state(ch3_vc_t *vc);

/* Numbers of packets that were sent and received on a virtual connection so far. A packet that ch3_send has sent or queued is the
 * ch3_sent-th, and in its handler at the other end ch3_received returns the same number. */
uint64_t ch3_sent(const ch3_vc_t *vc);
uint64_t ch3_received(const ch3_vc_t *vc);

/* Closes one virtual connection. Queued eager messages are sent first, for at most the channel's time-out; messages
 * from the peer are dropped meanwhile. Then all incomplete requests and receives complete with -ECANCELED. */
void ch3_vc_close(ch3_vc_t *vc);

/* Called once, from progress, when a virtual connection fails or when the peer closes it (-ESHUTDOWN). All its requests
 * have been completed with the same error, and no peer or adapter writes into their memory any more: if the peer was in
 * the middle of a copy, progress has waited for the end of that copy, up to the channel's time-out. A live peer sees
 * the failure as the death of this process. on_failure may be NULL. */
typedef void (*ch3_failure_fn)(void *context, ch3_vc_t *vc, int error);
void ch3_on_failure(ch3_t *engine, ch3_failure_fn on_failure, void *context);

/* Completion callback of a send or a receive. error: 0 or a negated errno value. bytes: number of transferred bytes;
 * after an error a lower bound, as more bytes may have been stored in the buffers. */
typedef void (*ch3_done_fn)(void *context, int error, size_t bytes);

/* An incoming message. header points into ch3's memory and is valid only during the handler's call. */
typedef struct ch3_incoming {
	ch3_vc_t *vc;
	const void *header;
	size_t header_len;
	uint64_t payload_len;
	ch3_rndv_t *rndv; /* not NULL: rendezvous, the payload is still at the sender; see ch3_sink_t.defer */
} ch3_incoming_t;

/* Copy the next len bytes of a payload that is not contiguous: out of the caller's data, or into them. ch3 calls them in
 * progress, for the parts of the payload in order, and with each byte once. They must not call ch3. */
typedef void (*ch3_pack_fn)(void *context, void *to, size_t len);
typedef void (*ch3_unpack_fn)(void *context, const void *from, size_t len);

/* The handler's receive buffers for the payload. All fields are 0 when the handler is called; a handler whose message
 * has no payload may leave them 0. If the buffers are smaller than payload_len, the rest is read and dropped (see the
 * bytes of done). */
typedef struct ch3_sink {
	struct iovec iov[8];
	int n;            /* number of buffers; 0 with a payload: drop the whole payload */
	ch3_done_fn done; /* called when the payload is in place, also if it is empty; may be NULL */
	void *context;    /* of done and unpack */
	bool defer;       /* rendezvous only: ch3_rndv_accept supplies the buffers later */
	ch3_unpack_fn unpack; /* not NULL: takes the first `room` bytes of an eager payload; iov is not used */
	size_t room;
} ch3_sink_t;

/* Handles the start of a message. If it returns an error, the message violates the type's protocol and the connection
 * fails with that error. */
typedef int (*ch3_handler_fn)(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);

/* Registers the handler of a packet type, CH3_TYPE_FIRST <= type < CH3_TYPES, before the first connect.
 * A packet of an unregistered type fails its connection with -EPROTO. */
int ch3_register(ch3_t *engine, unsigned type, ch3_handler_fn handler, void *context);

/*
 * Handles, instead of the type's handler, a message without rendezvous all of whose bytes have arrived in the memory of the
 * pipe. header is a copy. The peer can change the bytes of the payload at any time: the function reads each of them once and
 * copies what it needs. Returns 1; 0 if the type's handler must be called, and nothing was done; or an error as the handler
 * does. May be called for any message of the type, or for none: it depends on the transport.
 */
typedef int (*ch3_short_fn)(void *context, ch3_vc_t *vc, const void *header, size_t header_len, const void *payload,
			    size_t payload_len);

/* Copies n > 0 bytes of the payload, for that function. */
void ch3_copy_short(ch3_vc_t *vc, void *to, const void *payload, size_t n);

/* Adds the function to a type that has a handler, before the first connect. context: as the handler's. */
int ch3_register_short(ch3_t *engine, unsigned type, ch3_short_fn function);

/*
 * Allows ch3 to call the type's handler while the payload of an earlier message is still incomplete. Handlers are still
 * called in the order of the messages, and done too. So several long payloads can be transferred at a time. Payloads that
 * are being transferred may arrive in any order: no two of them may have the same target. Before the first connect. The
 * type has a handler.
 *
 * may: NULL, or asked before each such call; it is given what the handler is given, and the handler's context. If it
 * returns false, the handler is called when all earlier payloads are there. It may be asked several times for a message,
 * and must not change anything.
 */
typedef bool (*ch3_ahead_fn)(void *context, const ch3_incoming_t *incoming);
int ch3_register_ahead(ch3_t *engine, unsigned type, ch3_ahead_fn may);

/* Supplies n <= CH3_IOV_MAX buffers for a deferred payload; done as in ch3_sink_t. On success rndv is no longer valid.
 * On failure done is not called: with -EINVAL, -ENOMEM or -ENOBUFS (too many accepted payloads) rndv stays valid; with
 * the error of its connection (-EIO in place of these three) rndv is no longer valid. Closing the connection also invalidates
 * rndv. */
int ch3_rndv_accept(ch3_rndv_t *rndv, const struct iovec *iov, int n, ch3_done_fn done, void *context);
/* The same for a payload of which unpack takes the first `room` bytes. context: of done and unpack. */
int ch3_rndv_accept_unpack(ch3_rndv_t *rndv, size_t room, ch3_unpack_fn unpack, ch3_done_fn done, void *context);

enum {
	CH3_SEND_EAGER = 1u << 0, /* never rendezvous: the caller knows that the receiver has a buffer */
	CH3_SEND_COPY = 1u << 1,  /* copy what cannot be sent at once: the buffers may be reused, *request is NULL */
	CH3_SEND_SYNC = 1u << 2,  /* complete only when the receiver has accepted the message: rendezvous at any size */
	CH3_SEND_MORE = 1u << 3,  /* with EAGER: more follows, so a small message may stay here, see ch3_flush */
};

/*
 * Sends a message. The header is copied. The bytes of the payload (not the iov array) must stay in place until the
 * request completes. If the whole message was sent at once, *request is NULL: there is nothing to wait for and nothing
 * to free. With CH3_SEND_COPY request may be NULL. A small message that is sent at once needs no allocation and no
 * system call.
 * -EINVAL, -EMSGSIZE: invalid arguments. Other errors are those of the connection.
 */
int ch3_send(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, const struct iovec *iov, int n,
	     unsigned flags, ch3_request_t **request);

/*
 * Small messages with CH3_SEND_MORE are gathered (copied, *request is NULL) if the connection is up and no earlier message waits
 * for room in the pipe, so that one system call or work request sends many of them. They leave before the next message without
 * CH3_SEND_MORE, when their memory is full, in ch3_flush, in progress, and before the connection is closed. Over transports
 * with records in place a message is gathered only if the pipe has no room for it.
 * ch3_flush sends what is gathered. Returns false if the pipe has not accepted all of it: progress or a later ch3_flush sends
 * the rest. The next send reports an error.
 */
bool ch3_flush(ch3_vc_t *vc);

/* Sends a message of at most ch3_eager_max payload bytes, if it can be built in the memory of the pipe now. The arguments are
 * those of ch3_send and valid. Returns false if that is not possible, and nothing was done: use ch3_send. */
bool ch3_send_short(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, const void *payload,
		    size_t payload_len);

/* As ch3_send, for a payload of payload_len bytes that pack copies, part by part, straight into the memory of the pipe
 * if the transport allows that. context must stay valid until the request completes. Not with CH3_SEND_COPY. */
int ch3_send_pack(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, size_t payload_len,
		  ch3_pack_fn pack, void *context, unsigned flags, ch3_request_t **request);

/* Returns 1 if the request is complete (successful or not), else 0. Does not make progress. */
int ch3_request_test(const ch3_request_t *request);
/* Returns the result of a complete request: 0 or a negated errno value. */
int ch3_request_error(const ch3_request_t *request);
/* Frees a request. An incomplete operation continues, and its buffers must still stay in place. request may be NULL. */
void ch3_request_free(ch3_request_t *request);

/*
 * Access to the memory of peers without their help, where the transport has it (verbs). The owner of memory shares it with
 * a peer and sends the key to the peer, in a message. The peer writes and reads with the key until the owner unshares the
 * memory; an access afterwards fails the peer's connection. Messages and accesses are not ordered with respect to each
 * other. When the callback of a write is called, its bytes are in the owner's memory, and messages that are sent from then
 * on are received after them.
 */
struct ch3_key { /* opaque; as bytes on the wire */
	uint64_t word[2];
};
_Static_assert(sizeof(struct ch3_key) == 16, "wire format");
typedef struct ch3_shared ch3_shared_t; /* memory that is shared with one peer */

/* Returns whether the connection is up and its transport has access to remote memory. */
bool ch3_access_can(const ch3_vc_t *vc);
/* Shares len > 0 bytes at address with the peer, for reading and writing. If this fails, send messages instead. May be
 * called by handlers. */
int ch3_share(ch3_vc_t *vc, void *address, size_t len, ch3_shared_t **shared, struct ch3_key *key);
/* Also if the connection has failed or was closed, but before ch3_close. */
void ch3_unshare(ch3_shared_t *shared);
/* Start a write of len > 0 bytes into the peer's memory, offset bytes behind the start of the key's memory, or a read of
 * them. The local memory must stay in place until done is called, from progress. On failure nothing was started and done is
 * not called: send messages instead. */
int ch3_write(ch3_vc_t *vc, const struct ch3_key *key, uint64_t offset, const void *from, size_t len, ch3_done_fn done,
	      void *context);
int ch3_read(ch3_vc_t *vc, const struct ch3_key *key, uint64_t offset, void *to, size_t len, ch3_done_fn done, void *context);

/*
 * Makes progress without blocking: transfers data, calls handlers and completion callbacks. Returns the number of these
 * calls. Each poll looks at the recently active connections, at most 16. From time to time, and before sleeping, it asks
 * the channel for other ready connections and for incoming peers.
 */
int ch3_progress_poll(ch3_t *engine);

/*
 * Handles the next messages of the latest active connection, up to `most` > 0, as long as they have arrived and are for
 * a function of ch3_register_short. Returns whether a handler or failure callback has run. Looking for a message that
 * has not arrived takes a cache miss: `most` is the number of messages that the caller waits for. It does not look at
 * other connections, so after at most 16 messages it returns false until ch3_progress_poll or ch3_progress_wait was
 * called: call one of these if it returns false.
 */
bool ch3_progress_short(ch3_t *engine, unsigned most);

/* As ch3_progress_poll, but spins briefly and then sleeps until at least one handler, completion callback or failure
 * callback has run, or until timeout_ms has passed (-1: no limit). Returns 0 after the time-out. */
int ch3_progress_wait(ch3_t *engine, int timeout_ms);

#endif
