/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RDMA channel: a FIFO byte pipe in each direction between two processes, five functions in all.
 * After Liu et al., "Design and Implementation of MPICH2 over InfiniBand with RDMA Support", IPDPS 2004, section 3.2.
 *
 * Life of a pipe: each process calls hr_channel_init and gets its card; the two exchange cards by any means they
 * have (a file, a socket, PMIx); each calls hr_channel_connect with the other's card; then both put and get.
 *
 * Returns: 0 on success, a negated errno value on failure; outputs come last and are set only on success.
 * Threads: a channel and its connections belong to one thread at a time; different channels are independent.
 * Nothing here blocks except hr_channel_wait and, for a bounded time, hr_channel_finalize.
 * Fork: channels stay the parent's. The child's copies of their descriptors are closed as it begins, so that they do not
 * hide the parent's death from its peers; in it every call that can fail fails with -ECHILD, hr_channel_ready and
 * hr_channel_incoming find nothing, hr_channel_fd is -1, and closing and finalizing do nothing. It may open channels of
 * its own.
 */
#ifndef HEADRACE_CHANNEL_H
#define HEADRACE_CHANNEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HR_API __attribute__((visibility("default")))

/* No piece shorter than this many bytes is ever transferred zero-copy. */
#define HR_ZERO_COPY_MIN (16 * 1024)

/* Upper bound of a card's size in bytes. */
#define HR_CARD_MAX 256

typedef struct hr_channel hr_channel_t; /* one process's end of everything: open transports, listener, connections */
typedef struct hr_conn hr_conn_t;       /* one pipe pair to one peer */

/* A process's business card: flat bytes, no pointers, the same on every architecture. Whoever holds it can connect
 * to the channel it came from, so carry it over a path you trust. */
typedef struct hr_card {
	uint32_t len; /* bytes used of data, 1..HR_CARD_MAX */
	uint8_t data[HR_CARD_MAX];
} hr_card_t;

/* Transports, as a set. 0 in an attribute means: HEADRACE_TRANSPORT where set, else all that were built in. */
enum {
	HR_TRANSPORT_SHM = 1u << 0,
	HR_TRANSPORT_VERBS = 1u << 1,
	HR_TRANSPORT_TCP = 1u << 2,
};

enum {
	/* Do not listen for peers: this side opens every connection itself, or hands in sockets (hr_connect_attr_t.fd). */
	HR_CHANNEL_NO_LISTEN = 1u << 0,
	/* Peers that have our stream are waited for as long as they live: one that computes answers when it next calls its
	 * channel. timeout_ms is then how long it may take to find a peer, and nobody who came to us is sent away for
	 * waiting too long. For both sides of connections on demand between processes that are not always listening. */
	HR_CHANNEL_PATIENT = 1u << 1,
};

/*
 * How verbs moves the bytes: the designs of the paper, section 4, each one step beyond the one before. The lower of both
 * sides' is used. The other transports take no notice.
 */
enum hr_verbs_design {
	HR_VERBS_DEFAULT = 0,   /* HEADRACE_IB_DESIGN, and where that is not set the last one */
	HR_VERBS_BASIC = 1,     /* data, head and tail in RDMA writes of their own */
	HR_VERBS_PIGGYBACK = 2, /* flags, size and tail in the data's own write */
	HR_VERBS_PIPELINE = 3,  /* a chunk is written while the next is copied */
	HR_VERBS_ZEROCOPY = 4,  /* long pieces are read by the receiver from where they lie */
};

/* Attributes of a channel; start from HR_CHANNEL_ATTR_INIT. A zero field means the setting's default. */
typedef struct hr_channel_attr {
	size_t size;         /* sizeof(hr_channel_attr_t) of the caller */
	uint32_t transports; /* set of HR_TRANSPORT_* */
	uint32_t flags;      /* set of HR_CHANNEL_* */
	uint32_t ring_bytes; /* receive ring of one connection, bytes; 16 KB keeps the whole connection below 64 KB */
	uint32_t timeout_ms; /* a silent or absent peer is given up after this time (HEADRACE_TIMEOUT_MS) */
	uint32_t verbs_design; /* enum hr_verbs_design */
	uint32_t reserved;     /* 0 */
} hr_channel_attr_t;
#define HR_CHANNEL_ATTR_INIT { sizeof(hr_channel_attr_t), 0, 0, 0, 0, 0, 0 }

/* Attributes of a connection; start from HR_CONNECT_ATTR_INIT. */
typedef struct hr_connect_attr {
	size_t size; /* sizeof(hr_connect_attr_t) of the caller */
	/* A connected stream socket (TCP or Unix) to the peer's channel to set the connection up over, or -1 to open one
	 * from the addresses in the cards. Both sides hand in their end of the same socket. The channel owns it from the
	 * call on, also when the call fails. Shared memory over a given socket needs a Unix one. */
	int fd;
} hr_connect_attr_t;
#define HR_CONNECT_ATTR_INIT { sizeof(hr_connect_attr_t), -1 }

/*
 * Opens the transports asked for and describes this process in *card.
 * attr: NULL for all defaults. Copied.
 * -EINVAL: an attribute or HEADRACE_* setting out of range (the log names it); -ENODEV: none of the transports asked
 * for can be opened here; -ENOMEM, -EMFILE and other system errors as met.
 */
HR_API int hr_channel_init(const hr_channel_attr_t *attr, hr_channel_t **channel, hr_card_t *card);

/*
 * Starts a connection to the channel that card describes; both sides must call it with the other's card, in any order
 * (a side that never had the other's card gets it from hr_channel_incoming). Chooses the best transport both have:
 * shared memory on one host, verbs, then TCP. Returns at once: put and get return 0 bytes until the peer has done the
 * same and the transport is up, and -ETIMEDOUT if that takes longer than timeout_ms (see also HR_CHANNEL_PATIENT).
 * At most one connection per pair of channels.
 * attr: NULL for all defaults.
 * -EINVAL: not a card, damaged, or of another protocol version; -EHOSTUNREACH: no transport in common, or neither
 * side listens; -EEXIST: already connected to it.
 */
HR_API int hr_channel_connect(hr_channel_t *channel, const hr_card_t *card, const hr_connect_attr_t *attr,
			      hr_conn_t **conn);

/*
 * Writes the bytes of iov[0..n-1], in order, into the pipe; *accepted tells how many were taken, from 0 (no room now:
 * ordinary back-pressure) to all. Accepted bytes may be overwritten by the caller at once. A caller whose bytes were
 * not all accepted continues later with exactly the rest: a zero-copy transfer may already be reading from it, so it
 * must neither change nor go away before it is accepted or the connection is closed. That holds for pieces of
 * HR_ZERO_COPY_MIN bytes and more; the rest of a shorter piece may be continued from a copy of it elsewhere. The peer may
 * have the bytes, and have answered them, before they are accepted: a caller that has its answer puts the rest first.
 * -EINVAL: the call offers less than has been taken already of what an earlier one offered (found out where it can be).
 * -ESHUTDOWN: the peer finalized; -ECONNRESET, -ETIMEDOUT: the peer died or fell silent; -ENETDOWN: our own adapter or
 * its port went down; -EPROTO: the peer sent what no peer sends. After an error the connection only fails; close it. A
 * peer that finalized in the middle of a put that was not all accepted may look dead (over tcp), as its message was cut
 * off.
 */
HR_API int hr_channel_put(hr_conn_t *conn, const struct iovec *iov, int n, size_t *accepted);

/*
 * Reads from the pipe into iov[0..n-1], in order; *delivered tells how many bytes arrived, from 0 to all. A caller
 * whose get delivered less than all continues later with exactly the rest, as with put: an adapter or the peer may
 * already be writing into pieces of HR_ZERO_COPY_MIN bytes and more, so they must not go away, nor be read, before
 * they are delivered or the connection is closed. It may add more behind the rest, and cut the same memory into other
 * pieces. The rest of a shorter piece may be asked for elsewhere, or not at all.
 * -EINVAL: bytes are on their way into memory that an earlier call offered, and this one, which offers some, does not
 * offer all of that first (the log says so). Nothing is delivered; over verbs the adapter has stopped writing there
 * when the call returns, over shared memory the peer may be in the middle of its last write until the connection is
 * closed.
 * Errors else as hr_channel_put; they come only after every byte that arrived before was delivered.
 */
HR_API int hr_channel_get(hr_conn_t *conn, const struct iovec *iov, int n, size_t *delivered);

/*
 * Closes every connection and frees the channel. Bytes that put accepted are still delivered to a live peer: waits for
 * that up to timeout_ms. NULL is allowed.
 */
HR_API void hr_channel_finalize(hr_channel_t *channel);

/* ---- beside the five: nothing below moves the caller's bytes ---- */

/* Closes one connection as hr_channel_finalize does for all. NULL is allowed. */
HR_API void hr_conn_close(hr_conn_t *conn);

/* 0 while the connection is being set up, 1 when bytes can flow, a negated errno value once it has failed. Makes
 * progress with the set-up. */
HR_API int hr_conn_state(hr_conn_t *conn);

/*
 * Sleeping. hr_channel_fd gives a descriptor (the channel's own; do not close or read it) that polls readable when
 * something may have happened on any connection of an armed channel. To sleep: hr_channel_arm; if it returns 1 there is
 * something to do already, so call put and get instead; if it returns 0, poll the descriptor, then put and get again.
 * No other call on the channel may come between arming and polling: it could take the event that the poll waits for.
 * Arming lasts until the next put or get on the channel. What it costs depends on how many connections were used since
 * the last time, not on how many there are. want_put: also wake when a connection whose last put was short
 * has room again.
 */
HR_API int hr_channel_fd(hr_channel_t *channel);
HR_API int hr_channel_arm(hr_channel_t *channel, int want_put);

/* Spins briefly (HEADRACE_SPIN_US) where that has paid of late, then arms and sleeps until something may have happened
 * or timeout_ms passed (-1: no limit). Whether spinning pays is learnt for each connection from how long waits that it
 * ended took. 1: something may have happened; 0: time passed; negative: failure. */
HR_API int hr_channel_wait(hr_channel_t *channel, int want_put, int timeout_ms);

/*
 * A connection on which put or get may do something: bytes or an error have come, it has come up or failed, or (with
 * want_put) there is room again after a put that was short. NULL: none. Those that have something take turns. For
 * servers: what it costs depends on how many connections are at work, not on how many there are.
 */
HR_API hr_conn_t *hr_channel_ready(hr_channel_t *channel, int want_put);

/*
 * Connections on demand. A peer that has this channel's card may call hr_channel_connect before this side knows of it.
 * Returns 1 and the card of such a peer, each once; 0: no more of them. hr_channel_connect with the card completes the
 * connection; a peer that is not answered gives up after its own timeout_ms. A new one counts as an event for
 * hr_channel_arm, hr_channel_wait and the descriptor: after each of those, call this until it returns 0. How many may
 * wait at once is settable (HEADRACE_PENDING_MAX).
 */
HR_API int hr_channel_incoming(hr_channel_t *channel, hr_card_t *card);

/* A pointer of the caller's own, kept with the connection; NULL at first. */
HR_API void hr_conn_set_user(hr_conn_t *conn, void *user);
HR_API void *hr_conn_user(const hr_conn_t *conn);

/* The transport of a connection that is up: "shm", "verbs", "tcp"; "none" before. Static storage. */
HR_API const char *hr_conn_transport(const hr_conn_t *conn);

/* A name for the peer fit for messages, "host:pid"; lives as long as the connection. */
HR_API const char *hr_conn_peer(const hr_conn_t *conn);

/* Counts since the connection was opened. */
typedef struct hr_conn_stats {
	size_t size;             /* in: sizeof(hr_conn_stats_t) of the caller */
	uint64_t put_calls, put_bytes, put_short; /* put_short: calls that accepted less than offered */
	uint64_t get_calls, get_bytes, get_empty; /* get_empty: calls that delivered nothing */
	uint64_t tail_updates;   /* explicit flow-control messages sent (none ride on data) */
	uint64_t wakeups_sent;   /* system calls made to wake a sleeping peer */
	uint64_t sleeps;         /* times this side's channel slept */
	/* Memory to be transferred zero-copy over verbs: found registered, and registered for it. */
	uint64_t registration_hits, registration_misses;
	/* Bytes of memory that this side holds for the connection: both rings of shm, verbs' ring, staging area and
	 * queues, tcp's buffer and the most that the kernel's two may take (0 where the kernel decides that). */
	uint64_t memory_bytes;
	uint64_t zero_copy_puts, zero_copy_bytes; /* pieces, and their bytes, that were accepted without a copy */
	uint64_t looks; /* times that waiting looked at this connection; stands still while it is asleep */
} hr_conn_stats_t;
HR_API int hr_conn_stats(const hr_conn_t *conn, hr_conn_stats_t *stats);

/* Memory that this side would hold for a connection over one HR_TRANSPORT_*, as hr_conn_stats_t.memory_bytes counts it,
 * with the channel's ring_bytes; 0: the channel has not opened that transport. */
HR_API size_t hr_channel_conn_bytes(const hr_channel_t *channel, uint32_t transport);

/* The library's version, "MAJOR.MINOR.PATCH". Static storage. */
HR_API const char *hr_channel_version(void);

#ifdef __cplusplus
}
#endif
#endif
