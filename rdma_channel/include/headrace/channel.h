/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RDMA channel: a FIFO pipe of bytes in each direction between two processes. Five functions are its core.
 * Source: Liu et al., "Design and Implementation of MPICH2 over InfiniBand with RDMA Support", IPDPS 2004, section 3.2.
 *
 * Use: each process calls hr_channel_init, which returns the process's card. The two processes exchange their cards by
 * any means (a file, a socket, PMIx). Each process calls hr_channel_connect with the other's card. Then both processes
 * call hr_channel_put and hr_channel_get.
 *
 * Return values: 0 on success, a negated errno value on failure. Output parameters come last and are set only on
 * success.
 * Threads: one thread at a time may use a channel and its connections. Different channels are independent.
 * Blocking: hr_channel_wait blocks. hr_channel_finalize and hr_conn_close block for a bounded time. No other call
 * blocks.
 * Fork: a channel belongs to the process that opened it. fork(2) closes the child's copies of the channel's
 * descriptors, so that the peers still notice the death of the parent. In the child, functions that return an error
 * code return -ECHILD, hr_channel_ready returns NULL, hr_channel_incoming returns 0, hr_channel_fd returns -1, and
 * closing or finalizing does nothing. The child may open channels of its own.
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

/* The channel never transfers an iovec element shorter than this many bytes by zero copy. */
#define HR_ZERO_COPY_MIN (16 * 1024)

/* Maximum size of a card, bytes. */
#define HR_CARD_MAX 256

typedef struct hr_channel hr_channel_t; /* open transports, listener, connections */
typedef struct hr_conn hr_conn_t;       /* a pipe in each direction, to one peer */

/* The address of a channel: flat bytes without pointers, the same on every architecture. Any process that has the card
 * can connect to the channel, so send the card over a path that you trust. */
typedef struct hr_card {
	uint32_t len; /* valid bytes in data, 1..HR_CARD_MAX */
	uint8_t data[HR_CARD_MAX];
} hr_card_t;

/* A set of transports. 0 in an attribute means the value of HEADRACE_TRANSPORT, or all transports of this build if
 * HEADRACE_TRANSPORT is not set. */
enum {
	HR_TRANSPORT_SHM = 1u << 0,
	HR_TRANSPORT_VERBS = 1u << 1,
	HR_TRANSPORT_TCP = 1u << 2,
};

enum {
	/* Do not listen. This side opens every set-up socket itself, or the caller supplies it
	 * (hr_connect_attr_t.fd). */
	HR_CHANNEL_NO_LISTEN = 1u << 0,
	/* Once a set-up socket is open, wait for the peer as long as the peer lives: timeout_ms limits only how long
	 * finding the peer takes, and no incoming peer is refused for waiting too long. Set this flag on both sides if
	 * connections are made on demand between processes that may compute for a long time without calling their
	 * channel. */
	HR_CHANNEL_PATIENT = 1u << 1,
	/* This side often waits so long that it sleeps. Over shared memory each put of both sides then has a fence, and no
	 * sleep interrupts the other processors. */
	HR_CHANNEL_SLEEPS = 1u << 2,
};

/*
 * Designs of the verbs transport, from section 4 of the paper. Each design extends the design before it. If the two
 * sides ask for different designs, the connection uses the lower one. Other transports ignore the design.
 */
enum hr_verbs_design {
	HR_VERBS_DEFAULT = 0,   /* the value of HEADRACE_IB_DESIGN, or zero-copy if that is not set */
	HR_VERBS_BASIC = 1,     /* three RDMA writes: data, head pointer, tail pointer */
	HR_VERBS_PIGGYBACK = 2, /* size, flags and tail pointer travel in the RDMA write of the data */
	HR_VERBS_PIPELINE = 3,  /* one chunk is written while the next is copied */
	HR_VERBS_ZEROCOPY = 4,  /* the receiver reads long iovec elements by RDMA read */
};

/* Attributes of a channel; start from HR_CHANNEL_ATTR_INIT. A field that is 0 means the default. */
typedef struct hr_channel_attr {
	size_t size;         /* the caller's sizeof(hr_channel_attr_t) */
	uint32_t transports; /* set of HR_TRANSPORT_* */
	uint32_t flags;      /* set of HR_CHANNEL_* */
	uint32_t ring_bytes; /* receive ring of each connection, bytes; with 16 KB a connection takes less than 64 KB */
	uint32_t timeout_ms; /* a peer that does not answer for this time has failed (HEADRACE_TIMEOUT_MS) */
	uint32_t verbs_design; /* enum hr_verbs_design */
	uint32_t reserved;     /* 0 */
} hr_channel_attr_t;
#define HR_CHANNEL_ATTR_INIT { sizeof(hr_channel_attr_t), 0, 0, 0, 0, 0, 0 }

#define HR_CIPHER_KEY_BYTES 32

/* Secret keys of one connection, one for each direction: the put key of one side is the get key of the other. Use fresh
 * keys for every connection, from a key exchange that authenticated the peer. */
typedef struct hr_cipher_keys {
	uint8_t put[HR_CIPHER_KEY_BYTES];
	uint8_t get[HR_CIPHER_KEY_BYTES];
} hr_cipher_keys_t;

/* Attributes of a connection; start from HR_CONNECT_ATTR_INIT. */
typedef struct hr_connect_attr {
	size_t size; /* the caller's sizeof(hr_connect_attr_t) */
	/* The set-up socket: a connected stream socket (TCP or Unix) to the peer's channel, or -1. If it is -1, the
	 * channel opens a socket to the addresses in the cards. If it is a socket, both sides supply their end of the
	 * same socket. The channel owns the socket from the call on, also if the call fails. Shared memory needs a Unix
	 * socket here. */
	int fd;
	/* Keys to encrypt and authenticate the connection's bytes with, or NULL: in the clear. Both sides must supply
	 * theirs; if only one side does, the set-up fails. An encrypted connection uses tcp. Bytes that were changed,
	 * repeated, reordered or cut off on their way are never delivered: get returns -EPROTO or -ECONNRESET.
	 * Copied. */
	const hr_cipher_keys_t *cipher;
} hr_connect_attr_t;
#define HR_CONNECT_ATTR_INIT { sizeof(hr_connect_attr_t), -1, NULL }

/*
 * Opens the requested transports and stores the channel's card in *card.
 * attr: copied; NULL means all defaults.
 * -EINVAL: an attribute or a HEADRACE_* setting is out of range (the log names it). -ENODEV: none of the requested
 * transports can be opened on this host. -ENOMEM, -EMFILE and other errors of system calls are passed on.
 */
HR_API int hr_channel_init(const hr_channel_attr_t *attr, hr_channel_t **channel, hr_card_t *card);

/*
 * Starts a connection to the channel that card describes. Both sides must call it, each with the other's card, in any
 * order. If a side does not have the peer's card, hr_channel_incoming returns it once the peer has called. The
 * connection uses the first transport that both sides have: shared memory on one host, then verbs, then TCP. Returns at
 * once. Until the peer has called too and the transport is up, put and get move 0 bytes. If that takes longer than
 * timeout_ms, put and get return -ETIMEDOUT (see also HR_CHANNEL_PATIENT). There is at most one connection between two
 * channels. attr: NULL means all defaults.
 * -EINVAL: card is not a card, is damaged, or has another protocol version. -EHOSTUNREACH: the two sides have no
 * transport in common, or neither side listens. -EEXIST: the two channels are connected already.
 */
HR_API int hr_channel_connect(hr_channel_t *channel, const hr_card_t *card, const hr_connect_attr_t *attr,
			      hr_conn_t **conn);

/*
 * Writes the bytes of iov[0..n-1], in order, into the pipe. *accepted is the number of accepted bytes: 0 if the pipe
 * has no room (ordinary back-pressure), all at most. The caller may overwrite accepted bytes at once.
 *
 * If put did not accept all bytes, the next put must begin with exactly the remaining bytes. A zero-copy transfer may
 * be reading from them, so an element of HR_ZERO_COPY_MIN bytes or more must stay unchanged and in place until put has
 * accepted it or the connection is closed. The rest of a shorter element may be passed from a copy at another address.
 * The peer may receive bytes, and even answer them, before put has accepted them: a caller that receives such an answer
 * still has to put the rest first.
 *
 * -EINVAL: the call offers fewer bytes than a transfer that an earlier call started (detected where possible).
 * -ESHUTDOWN: the peer has finalized its channel. -ECONNRESET, -ETIMEDOUT: the peer died or does not answer. -ENETDOWN:
 * the local adapter or its port went down. -EPROTO: the peer violated the protocol. After an error every call on the
 * connection fails; close the connection. If the peer finalizes while a put over tcp is not fully accepted, the error
 * may be -ECONNRESET, as the message was cut off.
 */
HR_API int hr_channel_put(hr_conn_t *conn, const struct iovec *iov, int n, size_t *accepted);

/*
 * Reads from the pipe into iov[0..n-1], in order. *delivered is the number of bytes that were stored, from 0 to all.
 *
 * If get did not fill all buffers, the next get must begin with exactly the remaining memory. The adapter or the peer
 * may be writing into an element of HR_ZERO_COPY_MIN bytes or more, so that element must stay allocated, and the caller
 * must not read it, until get has delivered it or the connection is closed. The next call may append further buffers
 * and may divide the same memory into different elements. The rest of a shorter element may be replaced by other memory
 * or left out.
 *
 * -EINVAL: a transfer into memory of an earlier call is under way, and this call offers other memory first (the log
 * says so). Nothing is delivered. Over verbs the adapter has stopped writing into that memory when the call returns.
 * Over shared memory the peer may be in the middle of its last write until the connection is closed. Other errors are
 * those of hr_channel_put. get returns an error only after it has delivered every byte that arrived before the error.
 */
HR_API int hr_channel_get(hr_conn_t *conn, const struct iovec *iov, int n, size_t *delivered);

/*
 * Closes every connection and frees the channel. Waits up to timeout_ms until live peers have received all bytes that
 * put accepted. channel may be NULL.
 */
HR_API void hr_channel_finalize(hr_channel_t *channel);

/* ---- other functions; none of them moves the caller's bytes ---- */

/* Closes one connection, as hr_channel_finalize does for all of them. conn may be NULL. */
HR_API void hr_conn_close(hr_conn_t *conn);

/* Returns 0 during connection set-up, 1 when the connection is up, a negated errno value once it has failed. The call
 * makes progress with the set-up. */
HR_API int hr_conn_state(hr_conn_t *conn);

/*
 * Sleeping in the caller's own event loop. hr_channel_fd returns a descriptor that polls readable after an event on any
 * connection of an armed channel. The channel owns the descriptor: do not close or read it. To sleep, call
 * hr_channel_arm. If it returns 1, an event is pending: call put and get instead of sleeping. If it returns 0, poll the
 * descriptor, then call put and get. Do not call any other function of the channel between hr_channel_arm and poll(2):
 * that function could consume the event. The next put or get on the channel disarms it. The cost of arming grows with
 * the number of connections that were used since the last time, not with all connections. want_put: also wake up when a
 * connection whose last put was not fully accepted has room again.
 */
HR_API int hr_channel_fd(hr_channel_t *channel);
HR_API int hr_channel_arm(hr_channel_t *channel, int want_put);

/* Spins for at most HEADRACE_SPIN_US, then arms the channel and sleeps until an event or until timeout_ms has passed
 * (-1: no limit). For each connection the channel measures how long its waits take, and spins only if spinning has
 * saved time recently. Returns 1 after an event, 0 after the time-out, a negated errno value on failure. */
HR_API int hr_channel_wait(hr_channel_t *channel, int want_put, int timeout_ms);

/*
 * For servers: returns a connection on which put or get can make progress, or NULL. Such a connection has received
 * bytes, came up, or failed; with want_put also a connection that has room again after a put that was not fully
 * accepted. Several ready connections are returned in turn. The cost grows with the number of active connections, not
 * with all connections.
 */
HR_API hr_conn_t *hr_channel_ready(hr_channel_t *channel, int want_put);

/*
 * Connections on demand: a peer that has this channel's card may call hr_channel_connect before this side has the
 * peer's card. Returns 1 and stores the card of such a peer, each peer once; returns 0 if there are no more. Call
 * hr_channel_connect with the card to complete the connection. A peer whose connection is not completed gives up after
 * its own timeout_ms. An incoming peer is an event for hr_channel_arm, hr_channel_wait and the descriptor: after each
 * of these, call hr_channel_incoming until it returns 0. HEADRACE_PENDING_MAX limits how many peers can wait at a time.
 */
HR_API int hr_channel_incoming(hr_channel_t *channel, hr_card_t *card);

/* Stores and returns a pointer for the caller. It is NULL at first. */
HR_API void hr_conn_set_user(hr_conn_t *conn, void *user);
HR_API void *hr_conn_user(const hr_conn_t *conn);

/* The connection's transport: "shm", "verbs" or "tcp"; "none" until the connection is up. Static storage. */
HR_API const char *hr_conn_transport(const hr_conn_t *conn);

/* The peer's name for messages, "host:pid". Valid until the connection is closed. */
HR_API const char *hr_conn_peer(const hr_conn_t *conn);

/* Counts since the connection was opened. */
typedef struct hr_conn_stats {
	size_t size;             /* in: the caller's sizeof(hr_conn_stats_t) */
	uint64_t put_calls, put_bytes, put_short; /* put_short: calls that accepted less than offered */
	uint64_t get_calls, get_bytes, get_empty; /* get_empty: calls that delivered nothing */
	uint64_t tail_updates;   /* tail pointers sent alone, not with data */
	uint64_t wakeups_sent;   /* system calls made to wake a sleeping peer */
	uint64_t sleeps;         /* times this side's channel slept */
	/* Zero copy over verbs: buffers found in the registration cache, and buffers that had to be registered. */
	uint64_t registration_hits, registration_misses;
	/* Bytes of memory that this side holds for the connection. shm: both rings. verbs: ring, staging area and
	 * queues. tcp: the buffer and the limits of the kernel's two buffers (0 if the kernel decides their sizes). */
	uint64_t memory_bytes;
	uint64_t zero_copy_puts, zero_copy_bytes; /* iovec elements sent by zero copy, and their bytes */
	uint64_t looks; /* polls of this connection by waiting calls; does not grow while the process sleeps */
} hr_conn_stats_t;
HR_API int hr_conn_stats(const hr_conn_t *conn, hr_conn_stats_t *stats);

/* The memory_bytes (see hr_conn_stats_t) of a connection over the given HR_TRANSPORT_* with the channel's ring_bytes. 0
 * if the channel has not opened that transport. Over shared memory, the first connections with the default ring_bytes take
 * more (HEADRACE_RING_BYTES). */
HR_API size_t hr_channel_conn_bytes(const hr_channel_t *channel, uint32_t transport);

/* Returns the library's version, "MAJOR.MINOR.PATCH". Static storage. */
HR_API const char *hr_channel_version(void);

#ifdef __cplusplus
}
#endif
#endif
