/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between the channel and its transports: the one function table of the tree.
 *
 * Calls go down only. A transport never calls into the channel, never logs into or sleeps on its descriptors, and never
 * keeps a pointer it was given beyond what is said here; that prevents recursion and deadlock by construction.
 * A channel and all that belongs to it is used by one thread at a time, so a transport needs no lock; two channels may
 * be used by two threads, so what a transport shares between channels it must protect itself.
 *
 * Life of a connection. The channel connects one stream socket to the peer (the wireup, wireup.h). Over it:
 *
 *	conn_open       on both sides: each makes its own half and describes it in a blob
 *	                (the channel exchanges the blobs, with descriptors where the stream is a Unix socket)
 *	conn_establish  on both sides: each joins the peer's half to its own
 *	                (the channel tells the peer "ready" and waits for the peer's)
 *	put, get, …     only now: the peer's conn_establish has returned
 *	conn_shutdown   until it returns 1, or time is up
 *	conn_close
 *
 * conn_close may follow conn_open directly at any point of that; once there may have been a put or a get, behind
 * conn_stop. The stream stays open from conn_establish to
 * conn_close: it is tcp's data path; shared memory and verbs leave it to stream.h, which tells the peer's death, an
 * orderly close, and carries wake-ups.
 *
 * Returns are 0 or a negated errno value; outputs are set only on success. Who first knows the cause of an error logs
 * it: a transport logs what it met itself (a failed system call, a damaged ring), not the peer's orderly close.
 */
#ifndef HR_TRANSPORT_H
#define HR_TRANSPORT_H

#include "headrace/channel.h"
#include "rdma_channel/remote_write.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define HR_SECTION_MAX 48    /* bytes of a transport's section of the card */
#define HR_HALF_BLOB_MAX 256 /* bytes of one side's description of its half of a connection */
#define HR_HALF_FDS_MAX 4    /* descriptors that may accompany it */

/* One side's half of a connection, as it travels to the other side. Flat bytes; a transport encodes its blob itself
 * (little-endian) and checks every field of the peer's. */
struct hr_half {
	size_t len;
	uint8_t blob[HR_HALF_BLOB_MAX];
	int n_fds; /* always 0 where the stream cannot carry descriptors */
	int fds[HR_HALF_FDS_MAX];
};

/* What a connection is opened with. Valid as long as the connection. */
struct hr_conn_env {
	uint32_t ring_bytes;    /* capacity to receive that the user asked for; a multiple of 4096 */
	uint32_t timeout_ms;    /* a silent peer is given up after this */
	const char *peer;       /* "host:pid", for messages */
	hr_conn_stats_t *stats; /* transport counts tail_updates, wakeups_sent, memory_bytes; the channel the rest */
};

/* What a channel was opened with, as far as transports need to know. */
struct hr_channel_env {
	uint32_t timeout_ms;
	uint32_t verbs_design; /* enum hr_verbs_design */
};

/* What a transport's own structures for these begin with (remote_write.h). */
struct hr_exposed {
	const struct hr_transport *transport;
};
struct hr_remote_write {
	const struct hr_transport *transport;
};

struct hr_transport {
	const char *name; /* what hr_conn_transport and HEADRACE_TRANSPORT call it */
	uint32_t bit;     /* its HR_TRANSPORT_* */
	bool needs_unix;  /* only over a Unix stream: its half has descriptors */
	bool arms_in_memory; /* conn_arm stores flags that the peer's put loads: the channel puts a barrier behind it */

	/* ---- per channel ---- */

	/*
	 * Probes, and opens what a channel needs of it. Writes its section of the card (what a peer must know to judge
	 * whether it reaches us; at most HR_SECTION_MAX bytes, may be empty).
	 * -ENODEV: not here (no device, not allowed); the channel then does without it, and says so in the log (info).
	 */
	int (*open)(const struct hr_channel_env *env, void **context, uint8_t section[HR_SECTION_MAX],
		    size_t *section_len);
	/* Frees it; all its connections have been closed. */
	void (*close)(void *context);
	/* Can a peer with this section be reached? same_host: both cards name the same host and network namespace.
	 * Both sides ask; the connection uses the best transport that both say yes to. */
	bool (*reaches)(void *context, const uint8_t *section, size_t section_len, bool same_host);
	/* A descriptor of the transport itself to watch, edge-triggered, non-blocking, the transport's; -1 for none.
	 * NULL: none. Asked once, after open. */
	int (*fd)(void *context);
	/* It had something: takes it. Any connection of the transport may have something to report afterwards. */
	void (*event)(void *context);

	/* ---- setting a connection up and taking it down ---- */

	/*
	 * Makes this side's half and describes it. The descriptors in own->fds become the channel's, which sends and
	 * closes them. Must not block.
	 */
	int (*conn_open)(void *context, const struct hr_conn_env *env, struct hr_half *own, void **conn);
	/*
	 * Joins the peer's half. When it returns 0 the peer may put at once. The descriptors in peer->fds become the
	 * transport's, also when it fails. stream stays the channel's, is non-blocking, and may be used until
	 * conn_close.
	 * Must not block. -EPROTO: the peer's blob is none.
	 */
	int (*conn_establish)(void *conn, const struct hr_half *peer, int stream);
	/*
	 * Ends our direction: the peer gets what put accepted, then -ESHUTDOWN. Returns 1 when nothing here is needed
	 * any more to deliver it (or it cannot be delivered), 0 to be called again. No put or get follows, but
	 * conn_event may. Idempotent.
	 */
	int (*conn_shutdown)(void *conn);
	/*
	 * Before a conn_close that no conn_shutdown precedes: returns 1 when nobody writes any more into memory that get
	 * was offered, nor relies on memory that put was offered; 0 to be called again. Says no goodbye. conn_event may
	 * follow, nothing else. NULL: conn_close sees to that.
	 */
	int (*conn_stop)(void *conn);
	/* Frees the connection, in whatever state. */
	void (*conn_close)(void *conn);

	/* ---- data; as hr_channel_put and hr_channel_get say ---- */

	/* n > 0 and the sum of lengths > 0. Sets *accepted also when it is 0. Sends a wake-up if the peer sleeps. */
	int (*put)(void *conn, const struct iovec *iov, int n, size_t *accepted);
	/* As put. Errors come only after every byte that arrived before. Must notice the peer's death by itself when
	 * called again and again, in bounded time, but not with a system call each time. */
	int (*get)(void *conn, const struct iovec *iov, int n, size_t *delivered);

	/* ---- sleeping ---- */

	/*
	 * The channel sleeps on the stream and on conn_fd, both registered edge-triggered in one epoll set, as follows:
	 * 1. conn_event on each connection whose descriptors had something; 2. conn_arm on each that is awake; 3. where
	 * arms_in_memory, one barrier that orders, across processes, all stores of step 2 before all loads of step 4
	 * (barrier.h); 4. conn_pending on each that is awake; one that has nothing is asleep from now on; 5. if none
	 * has anything, sleep. A put of the peer that step 4 does not see must cause an event: a connection asleep is
	 * neither armed nor looked at again before it had one, or before its next put or get, however often the channel
	 * sleeps for the sake of others.
	 */

	/* Asks that the peer's next put (and with want_put: the next room after a put that was short) wake us. */
	int (*conn_arm)(void *conn, bool want_put);
	/* Would get deliver something or report an error? With want_put: had the last put been short, and would one now
	 * accept something or report an error? Never blocks; may be called in a spin loop without conn_arm. */
	bool (*conn_pending)(void *conn, bool want_put);
	/* A descriptor of this connection had something: takes it (drains wake-ups until the descriptor would block,
	 * notes the peer's death for the next put or get). */
	void (*conn_event)(void *conn);
	/*
	 * Where a peer's silence raises no event: called at most every quarter of timeout_ms on a connection that has put
	 * something since it was called last. 1: to be called again, as the peer has still to acknowledge something; 0:
	 * it has; negative: it is gone, and conn_pending says so from now on. NULL: the descriptors tell.
	 */
	int (*conn_check)(void *conn);
	/* What a connection with that ring size takes on this side, bytes: what memory_bytes will say. NULL: not known
	 * before there is one. */
	size_t (*conn_bytes)(void *context, uint32_t ring_bytes);
	/* A descriptor beside the stream to sleep on, non-blocking, the transport's; -1 for none. NULL: none. Asked
	 * once, after conn_establish. */
	int (*conn_fd)(void *conn);

	/* ---- writing into the peer's memory: as remote_write.h says; all NULL where the transport has none ---- */

	int (*remote_expose)(void *conn, void *address, size_t len, hr_exposed_t **exposed, struct hr_token *token);
	void (*remote_hide)(hr_exposed_t *exposed);
	int (*remote_write)(void *conn, const struct hr_token *token, uint64_t offset, const void *address, size_t len,
			    hr_remote_write_t **write);
	int (*remote_test)(void *conn, hr_remote_write_t *write);
	void (*remote_end)(hr_remote_write_t *write);
};

/* The transports built in, best first; NULL ends the list (transports.c). */
extern const struct hr_transport *const hr_transports[];

extern const struct hr_transport hr_transport_shm;
extern const struct hr_transport hr_transport_verbs; /* ib/ */
extern const struct hr_transport hr_transport_tcp;

#endif
