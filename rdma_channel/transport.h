/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between the channel and its transports. struct hr_transport is the only function table of the tree.
 *
 * Calls go down only, to prevent recursive entry and deadlock: a transport never calls the channel, never sleeps on its
 * descriptors, and keeps a pointer that it was given only where this header says so.
 * Threads: one thread at a time uses a channel and everything that belongs to it, so a transport needs no lock for
 * these. Two threads may use two channels, so a transport must protect the state that its channels share.
 *
 * Life of a connection. The channel connects one stream socket to the peer (wireup.h). Over that socket:
 *
 * 	conn_open       on both sides: creates the local half and describes it in a blob
 * 	                (the channel exchanges the blobs, and descriptors if the stream is a Unix socket)
 * 	conn_establish  on both sides: joins the peer's half to the local one
 * 	                (the channel sends "ready" and waits for the peer's "ready")
 * 	put, get, …     only after the peer's conn_establish has returned
 * 	conn_shutdown   called until it returns 1 or the time is up
 * 	conn_close
 *
 * The channel may call conn_close at any time after conn_open. If put or get may have been called, and conn_shutdown
 * was not, the channel calls conn_stop first. The stream stays open from conn_establish to conn_close. tcp uses the
 * stream as its data path. Shared memory and verbs use it through stream.h: for wake-ups, for an orderly close, and to
 * detect the death of the peer.
 *
 * Functions return 0 or a negated errno value and set outputs only on success. The function that first knows the cause
 * of an error logs it: a transport logs its own errors (a failed system call, a damaged ring), not the peer's orderly
 * close.
 */
#ifndef HR_TRANSPORT_H
#define HR_TRANSPORT_H

#include "headrace/channel.h"
#include "rdma_channel/remote_access.h"
#include "rdma_channel/upper.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define HR_SECTION_MAX 104   /* maximum size of a transport's section of the card, bytes */
#define HR_NOTE_BYTES 8      /* size of the note in a hello, bytes */
#define HR_HALF_BLOB_MAX 256 /* maximum size of the description of one half, bytes */
#define HR_HALF_FDS_MAX 4    /* maximum number of descriptors sent with the description */

/* One side's half of a connection in the form that is sent to the peer. The transport encodes its own blob (flat bytes,
 * little-endian) and checks every field of the peer's blob. */
struct hr_half {
	size_t len;
	uint8_t blob[HR_HALF_BLOB_MAX];
	int n_fds; /* always 0 if the stream cannot carry descriptors */
	int fds[HR_HALF_FDS_MAX];
};

/* What both sides know before they open their halves. With the two sections of the cards, it determines the adapter and
 * port of each side: both sides calculate the same. */
struct hr_agreement {
	const uint8_t *section; /* the peer's section of the card */
	size_t section_len;
	uint8_t own[HR_NOTE_BYTES], peer[HR_NOTE_BYTES]; /* the notes in this side's and in the peer's hello */
	bool leads; /* true on one side, false on the other; the same for all channels of two processes */
};

/* Parameters of a connection. Valid as long as the connection. */
struct hr_conn_env {
	uint32_t ring_bytes;    /* receive ring that the user asked for, or the default; a multiple of 4096 */
	bool ring_is_default;   /* the user asked for no size */
	uint32_t timeout_ms;    /* a peer that does not answer for this time has failed */
	const char *peer;       /* "host:pid", for messages */
	hr_conn_stats_t *stats; /* the transport counts tail_updates, wakeups_sent, memory_bytes; the channel the rest */
	const hr_cipher_keys_t *cipher; /* valid during conn_open only; NULL: in the clear. For tcp, which then encrypts */
	const struct hr_agreement *agreement; /* valid during conn_open only */
};

/* Parameters of a channel that transports need. */
struct hr_channel_env {
	uint32_t timeout_ms;
	uint32_t verbs_design; /* enum hr_verbs_design */
	bool sleeps;           /* HR_CHANNEL_SLEEPS */
};

/* A transport's own structures for exposed memory and remote accesses (remote_access.h) begin with these. */
struct hr_exposed {
	const struct hr_transport *transport;
};
struct hr_remote_access {
	const struct hr_transport *transport;
};

struct hr_transport {
	const char *name; /* in hr_conn_transport and HEADRACE_TRANSPORT */
	uint32_t bit;     /* one HR_TRANSPORT_* */
	bool needs_unix;  /* works over Unix streams only, as its half carries descriptors */
	bool puts_on_stream; /* put writes to the stream: room in it is an event */
	bool arms_in_memory; /* conn_arm stores flags that the peer's put loads; the channel issues a barrier after it */

	/* ---- per channel ---- */

	/*
	 * Probes the transport and opens the resources of one channel. Writes the transport's section of the card: what
	 * a peer needs to decide whether it can reach this channel; at most HR_SECTION_MAX bytes, may be empty.
	 * -ENODEV: not available on this host (no device, no permission). The channel then works without this transport
	 * and logs that (info).
	 */
	int (*open)(const struct hr_channel_env *env, void **context, uint8_t section[HR_SECTION_MAX],
		    size_t *section_len);
	/* Frees the context. All its connections have been closed. */
	void (*close)(void *context);
	/* Returns whether a peer with this section can be reached. same_host: both cards name the same host and the
	 * same network namespace. Both sides ask; the connection uses the best transport for which both get true. */
	bool (*reaches)(void *context, const uint8_t *section, size_t section_len, bool same_host);
	/* Returns a non-blocking descriptor of the transport that the channel watches edge-triggered, or -1. The
	 * transport owns it. Called once, after open. NULL: no such descriptor. */
	int (*fd)(void *context);
	/* Handles an event of that descriptor. Afterwards any connection of the transport may have data or an error. */
	void (*event)(void *context);

	/* ---- setting a connection up and taking it down ---- */

	/* Writes what the peer must know of this side beside the card, for one new connection. The hello contains it.
	 * peer: a hash that all channels of the peer's process have in common. NULL: nothing; the note is 0. */
	void (*note)(void *context, uint64_t peer, uint8_t note[HR_NOTE_BYTES]);
	/* Returns whether the connection can use this transport, now that both notes are known. Both sides ask, and must
	 * get the same answer: if it is false, they use the next transport that both have. NULL: always true. */
	bool (*agrees)(void *context, const struct hr_agreement *agreement);

	/*
	 * Creates and describes the local half of a connection. The channel sends and then closes the descriptors in
	 * own->fds. Must not block.
	 */
	int (*conn_open)(void *context, const struct hr_conn_env *env, struct hr_half *own, void **conn);
	/*
	 * Joins the peer's half. After it returns 0 the peer may put. The transport owns the descriptors in peer->fds
	 * from the call on, also if the call fails. The channel owns stream, which is non-blocking; the transport may
	 * use it until conn_close. Must not block. -EPROTO: the peer's blob is invalid.
	 */
	int (*conn_establish)(void *conn, const struct hr_half *peer, int stream);
	/*
	 * Ends the outgoing direction: the peer receives all accepted bytes, then -ESHUTDOWN. Returns 1 when this side
	 * is no longer needed to deliver these bytes (or they cannot be delivered), 0 if the channel must call again.
	 * The channel calls neither put nor get afterwards, but may call conn_event. Idempotent.
	 */
	int (*conn_shutdown)(void *conn);
	/*
	 * Called before conn_close if conn_shutdown was not. Returns 1 when no peer or adapter writes any more into
	 * memory that get was offered, nor relies on memory that put was offered; 0 if the channel must call again.
	 * Does not notify the peer. The channel may call conn_event afterwards, and no other function but conn_close.
	 * NULL: conn_close does this.
	 */
	int (*conn_stop)(void *conn);
	/* Frees the connection in any state. */
	void (*conn_close)(void *conn);

	/* ---- data: the contracts of hr_channel_put and hr_channel_get ---- */

	/* n > 0 and the sum of lengths > 0. Sets *accepted also if it is 0. Sends a wake-up if the peer sleeps. */
	int (*put)(void *conn, const struct iovec *iov, int n, size_t *accepted);
	/* As put. Returns an error only after every byte that arrived before the error. If called repeatedly, it must
	 * detect the death of the peer in bounded time, but not by a system call in each call. */
	int (*get)(void *conn, const struct iovec *iov, int n, size_t *delivered);

	/* ---- records in place: the contracts of upper.h; all NULL if the two sides share no memory ---- */

	void *(*reserve)(void *conn, size_t front, size_t len);
	void (*fill)(void *conn, void *to, const void *from, size_t len);
	void (*drain)(void *conn, void *to, const void *from, size_t len);
	void (*commit)(void *conn, size_t len);
	bool (*post)(void *conn, const void *front, size_t front_len, const void *payload, size_t len);
	enum hr_arrival (*peek)(void *conn, const uint8_t **bytes, size_t *len);
	void (*consume)(void *conn, size_t count);
	/* Returns the number of records consumed, whose bytes it adds to *bytes, or fn's error. */
	int (*take)(void *conn, hr_record_fn fn, void *context, unsigned most, uint64_t *bytes);
	struct hr_awaited *(*watch)(void *conn); /* may be NULL alone */

	/* The contract of hr_conn_ahead. NULL: the transport transfers nothing ahead. */
	size_t (*ahead)(void *conn, uint64_t skip, void *to, size_t len);

	/* ---- sleeping ---- */

	/*
	 * The channel sleeps on stream and conn_fd, both registered edge-triggered in one epoll set, in these steps:
	 * 1. conn_event on each connection whose descriptors had an event.
	 * 2. conn_arm on each connection that is awake.
	 * 3. If arms_in_memory is set: one barrier that orders, across processes, all stores of step 2 before all loads
	 *    of step 4 (barrier.h).
	 * 4. conn_pending on each connection that is awake. A connection with nothing pending is asleep from now on.
	 * 5. If no connection has anything pending: sleep.
	 * If step 4 does not see a put of the peer, that put must cause an event: the channel neither arms nor polls a
	 * sleeping connection again before the connection's next event, put or get, however often the channel itself
	 * sleeps.
	 */

	/* Requests a wake-up by the peer's next put. With want_put: also when there is room again after a put that was
	 * not fully accepted. */
	int (*conn_arm)(void *conn, bool want_put);
	/* Returns whether get would deliver bytes or report an error. With want_put: also true if the last put was not
	 * fully accepted and put would now accept bytes or report an error. Never blocks. May be called in a spin loop
	 * without conn_arm. */
	bool (*conn_pending)(void *conn, bool want_put);
	/* Handles an event of a descriptor of this connection: drains wake-ups until the descriptor would block, and
	 * records the death of the peer for the next put or get. */
	void (*conn_event)(void *conn);
	/*
	 * For transports on which a peer's silence raises no event. Called at most once in a quarter of timeout_ms, for
	 * a connection that has put bytes since the last call. Returns 1 if the peer still has to acknowledge bytes, so
	 * that the channel calls again; 0 if all bytes are acknowledged; a negated errno value if the peer is lost,
	 * which conn_pending reports from then on. NULL: the descriptors report silence.
	 */
	int (*conn_check)(void *conn);
	/* Returns the memory_bytes of a connection with that ring size. NULL: not known before the connection
	 * exists. */
	size_t (*conn_bytes)(void *context, uint32_t ring_bytes);
	/* Returns a non-blocking descriptor, beside the stream, to sleep on, or -1. The transport owns it. Called once,
	 * after conn_establish. NULL: no such descriptor. */
	int (*conn_fd)(void *conn);

	/* ---- remote access: the contracts of remote_access.h; all NULL if the transport has none ---- */

	int (*remote_expose)(void *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
	int (*remote_share)(void *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
	void (*remote_hide)(hr_exposed_t *exposed);
	int (*remote_write)(void *conn, const struct hr_token *token, uint64_t offset, const void *address, size_t len,
			    hr_remote_access_t **write);
	int (*remote_read)(void *conn, const struct hr_token *token, uint64_t offset, void *address, size_t len,
			   hr_remote_access_t **read);
	int (*remote_test)(void *conn, hr_remote_access_t *access);
	void (*remote_end)(hr_remote_access_t *access);
};

/* The transports of this build, best first; NULL ends the list (transports.c). */
extern const struct hr_transport *const hr_transports[];

extern const struct hr_transport hr_transport_shm;
extern const struct hr_transport hr_transport_verbs; /* ib/ */
extern const struct hr_transport hr_transport_tcp;

#endif
