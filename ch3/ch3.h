/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CH3: typed packets, virtual connections, requests and one progress loop over the RDMA channel.
 * The name and the place in the stack are MPICH's (ADI3 / CH3); cuda_remote/ and adi/ both stand on this.
 *
 * A message has a type, a small header (the type's own, at most CH3_HEADER_MAX bytes) and a payload of any length.
 * Short payloads go eagerly, straight behind the header; long ones by rendezvous unless the sender says EAGER.
 * Messages of one virtual connection reach their handlers in the order they were sent; payloads of rendezvous messages
 * may arrive later than those of messages sent after them.
 *
 * Returns: 0 on success, a negated errno value on failure; outputs come last and are set only on success.
 * Threads: an engine and everything of it belong to one thread at a time. Calls go down only: handlers and completion
 * callbacks run inside ch3_progress_* (or, for a completion, inside the call that completes the request), and may
 * themselves send and accept but not make progress or close.
 */
#ifndef HR_CH3_H
#define HR_CH3_H

#include "headrace/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define CH3_HEADER_MAX 128 /* bytes of a type's own header */
#define CH3_TYPES 64       /* packet types 0..CH3_TYPES-1; the first CH3_TYPE_FIRST are ch3's own */
#define CH3_TYPE_FIRST 8
#define CH3_IOV_MAX 64     /* pieces of one payload */

typedef struct ch3 ch3_t;                 /* engine: one channel, its virtual connections, one progress loop */
typedef struct ch3_vc ch3_vc_t;           /* virtual connection to one peer */
typedef struct ch3_request ch3_request_t; /* one operation under way */
typedef struct ch3_rndv ch3_rndv_t;       /* an announced payload whose buffer is not known yet */

/* Opens an engine on a channel of its own. attr as for hr_channel_init; the card is this process's. */
int ch3_open(const hr_channel_attr_t *attr, ch3_t **engine, hr_card_t *card);

/* Closes all virtual connections as ch3_vc_close does, delivers what was sent (up to the channel's time-out), frees
 * everything, requests included. NULL is allowed. */
void ch3_close(ch3_t *engine);

/* The engine's channel, for its accessors (descriptor, statistics, identity) only. */
hr_channel_t *ch3_channel(ch3_t *engine);

/* As hr_channel_connect. user: the layer above's own pointer, returned by ch3_vc_user. */
int ch3_connect(ch3_t *engine, const hr_card_t *card, const hr_connect_attr_t *attr, void *user, ch3_vc_t **vc);

/*
 * A virtual connection on demand, to one of many peers of whom most may never have anything to say: nothing is opened
 * before the first send to it, ch3_vc_open, or the peer's own connecting. Both sides must have added the other. A peer
 * that comes is known by its card, which must be one of those added; others are left to time out. The engine's channel
 * ought to be HR_CHANNEL_PATIENT. -EEXIST: that card has been added.
 */
int ch3_add(ch3_t *engine, const hr_card_t *card, void *user, ch3_vc_t **vc);

/* Opens one on demand, for who waits for that peer and wants to hear of its end. 0 also if it is open, or on its way;
 * errors as ch3_connect's (it may be tried again), or that of a connection that has failed. */
int ch3_vc_open(ch3_vc_t *vc);

/* How many connections of the channel the engine has, not counting those on demand that were never opened. */
int ch3_connections(const ch3_t *engine);

void *ch3_vc_user(const ch3_vc_t *vc);
/* NULL: on demand, and not opened yet. */
hr_conn_t *ch3_vc_conn(ch3_vc_t *vc);

/* 0 not opened or being set up, 1 up, negated errno once failed (the cause, from then on). */
int ch3_vc_state(ch3_vc_t *vc);

/* Closes one virtual connection. Eager messages still queued leave first, up to the channel's time-out (what the peer
 * sends meanwhile is dropped); then requests not complete, and receives, complete with -ECANCELED. */
void ch3_vc_close(ch3_vc_t *vc);

/* Called once, from progress, when a virtual connection fails or the peer closes it (-ESHUTDOWN). Its requests have
 * been completed with the same error, and nobody writes into their memory any more: progress has waited for a copy that
 * the peer was in the middle of, up to the channel's time-out. A peer that lives learns of it as of a death. May be
 * NULL. */
typedef void (*ch3_failure_fn)(void *context, ch3_vc_t *vc, int error);
void ch3_on_failure(ch3_t *engine, ch3_failure_fn on_failure, void *context);

/* Completion of a send or a receive: error is 0 or a negated errno; bytes is what was moved. */
typedef void (*ch3_done_fn)(void *context, int error, size_t bytes);

/* What arrived, as a handler sees it. header points into ch3's memory and is valid during the call only. */
typedef struct ch3_incoming {
	ch3_vc_t *vc;
	const void *header;
	size_t header_len;
	uint64_t payload_len;
	ch3_rndv_t *rndv; /* not NULL: the payload waits at the sender; see ch3_sink_t.defer */
} ch3_incoming_t;

/* Where a handler wants the payload. Zeroed before the handler is called; a handler whose message has no payload need
 * not touch it. If the pieces hold less than payload_len the rest is read and dropped (done's bytes tells). */
typedef struct ch3_sink {
	struct iovec iov[8];
	int n;            /* pieces used; 0 with a payload: drop it all */
	ch3_done_fn done; /* called when the payload is in place, also when it is empty; may be NULL */
	void *context;
	bool defer;       /* rendezvous only: the buffer follows later through ch3_rndv_accept */
} ch3_sink_t;

/* Handles the start of one message. Non-zero: the message breaks the type's protocol; the connection fails with it. */
typedef int (*ch3_handler_fn)(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);

/* Registers the handler of a packet type, CH3_TYPE_FIRST <= type < CH3_TYPES, before the first connect.
 * A packet of an unregistered type fails its connection with -EPROTO. */
int ch3_register(ch3_t *engine, unsigned type, ch3_handler_fn handler, void *context);

/* Gives a deferred payload its buffer: n <= CH3_IOV_MAX pieces; done as in ch3_sink_t. The rndv is gone afterwards.
 * Fails without calling done: with -EINVAL or -ENOMEM, when the rndv stays; or with the error of its connection, when
 * it is gone. Closing the connection takes it away too. */
int ch3_rndv_accept(ch3_rndv_t *rndv, const struct iovec *iov, int n, ch3_done_fn done, void *context);

enum {
	CH3_SEND_EAGER = 1u << 0, /* never rendezvous: the receiver is known to have a place for it */
	CH3_SEND_COPY = 1u << 1,  /* what cannot go out at once is copied: the buffers are free, *request is NULL */
	CH3_SEND_SYNC = 1u << 2,  /* complete only when the receiver has taken the message: rendezvous at any size */
};

/*
 * Sends a message. The header is copied. The payload's bytes (not the iov array) must stay until the request completes.
 * *request is NULL where the message left at once: then there is nothing to wait for and nothing to free.
 * request may be NULL with CH3_SEND_COPY. No allocation and no system call for a small message that leaves at once.
 * -EINVAL, -EMSGSIZE: the arguments; else the connection's error.
 */
int ch3_send(ch3_vc_t *vc, unsigned type, const void *header, size_t header_len, const struct iovec *iov, int n,
	     unsigned flags, ch3_request_t **request);

/* 1 complete (successfully or not), 0 not yet. Does not make progress. */
int ch3_request_test(const ch3_request_t *request);
/* The result of a complete request: 0 or a negated errno. */
int ch3_request_error(const ch3_request_t *request);
/* Gives the request back, complete or not (then it goes on by itself and buffers must still stay). NULL is allowed. */
void ch3_request_free(ch3_request_t *request);

/*
 * Moves what can be moved, calls handlers and completions. Returns how many of them ran; never blocks. Each call looks
 * at the connections at work of late, at most 16 of them; every 64 calls, and when waiting, the channel is asked which
 * of the others have something, and who has come.
 */
int ch3_progress_poll(ch3_t *engine);

/* As poll, but spins briefly, then sleeps, until at least one handler, completion or failure ran or timeout_ms passed
 * (-1: no limit). Returns as poll; 0 means that the time passed. */
int ch3_progress_wait(ch3_t *engine, int timeout_ms);

#endif
