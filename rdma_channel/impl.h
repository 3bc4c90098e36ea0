/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the channel, shared by channel.c (the five functions), connect.c (setting connections up), listen.c (peers
 * that come to us) and events.c (descriptors, sleeping). All of it belongs to the thread that uses the channel.
 */
#ifndef HR_IMPL_H
#define HR_IMPL_H

#include "rdma_channel/card.h"
#include "rdma_channel/transport.h"
#include "rdma_channel/wireup.h"

#define HR_TRANSPORTS_MAX 3
#define HR_PENDING_MAX 64 /* accepted streams that no connection of ours claims yet */

/* What an entry of the channel's epoll set belongs to; data.ptr of each event points to one. */
enum hr_watch_kind {
	HR_WATCH_LISTENER, /* a peer may have come */
	HR_WATCH_PENDING,  /* accepted, not matched with a connection yet */
	HR_WATCH_CONN,     /* a connection's stream or its transport's own descriptor */
	HR_WATCH_TIMER,    /* a set-up may have taken too long */
};

struct hr_watch {
	enum hr_watch_kind kind;
	void *owner;
	int fd; /* -1: not watched */
};

/* A transport that this channel opened. */
struct hr_opened {
	const struct hr_transport *transport;
	void *context;
};

/* A stream that a peer opened to us, until its hello says which connection it is for and we have made that one. */
struct hr_pending {
	struct hr_pending *next;
	struct hr_channel *channel;
	struct hr_wireup wireup;
	struct hr_watch watch;
	uint64_t deadline;
	bool has_hello;
	bool dead; /* freed at the end of the round of events */
	struct hr_wire_hello hello;
};

struct hr_channel {
	struct hr_identity self;
	uint32_t flags;
	uint32_t ring_bytes;
	uint32_t timeout_ms;
	uint64_t spin_ns;
	int n_opened;
	struct hr_opened opened[HR_TRANSPORTS_MAX];
	int epoll;
	struct hr_watch unix_listener, tcp_listener, timer;
	struct hr_pending *pending;
	struct hr_conn *conns;
	int n_conns;
	int n_setting_up; /* connections neither up nor failed */
	bool timer_set;
	bool accept_again; /* a listener may have more, which could not be taken for want of descriptors */
};

enum hr_phase {
	HR_PHASE_WAIT,  /* for the peer to connect to us */
	HR_PHASE_DIAL,  /* connecting to the peer, or about to */
	HR_PHASE_HELLO, /* for the peer's hello */
	HR_PHASE_HALF,  /* for its half */
	HR_PHASE_READY, /* for its ready, and for ours to be sent */
	HR_PHASE_UP,
	HR_PHASE_FAILED,
};

struct hr_conn {
	/* the data path's, together */
	enum hr_phase phase;
	int error; /* negated errno that put and get have reported or will report; 0: none */
	const struct hr_transport *transport;
	void *data; /* the transport's connection; NULL before conn_open */
	hr_conn_stats_t stats;

	struct hr_conn *next;
	struct hr_channel *channel;
	struct hr_identity peer;
	char peer_name[HR_HOSTNAME_MAX + 16];
	struct hr_conn_env env;
	bool news;       /* came up or failed, and the caller has not looked since */
	bool get_failed; /* get has reported the error: nothing will ever arrive again */
	struct hr_watch stream_watch, extra_watch;

	/* setting up */
	struct hr_wireup wireup; /* its fd is the stream of the connection to the end */
	uint32_t usable;         /* transports that we could use with this peer */
	uint64_t deadline, dial_deadline, retry_at;
	bool over_unix;          /* dial the peer's Unix socket */
	bool peer_ready;
	int next_address;
	int n_addresses;
	struct hr_address addresses[HR_ADDRESSES_MAX + 1];
};

/* ---- connect.c ---- */

/* Starts setting up: over fd where it is not -1 (taken over), else by dialling or waiting. -EHOSTUNREACH. */
int hr_conn_start(struct hr_conn *conn, int fd);
/* Goes on as far as possible without blocking. */
void hr_conn_step(struct hr_conn *conn);
/* A stream whose hello names this connection has come; taken over. */
void hr_conn_adopt(struct hr_conn *conn, struct hr_wireup *wireup, const struct hr_wire_hello *hello);
/* When this set-up needs hr_conn_step without an event, ns. */
uint64_t hr_conn_next_time(const struct hr_conn *conn);

/* ---- listen.c ---- */

/* Opens the listeners and fills their addresses into the identity. */
int hr_listen_open(struct hr_channel *channel);
void hr_listen_close(struct hr_channel *channel);
/* Takes what waits at a listener; at both. */
void hr_listen_accept(struct hr_channel *channel, struct hr_watch *listener);
void hr_listen_accept_all(struct hr_channel *channel);
/* Reads a pending stream's hello and gives it to the connection that it is for, if that exists yet. */
void hr_pending_step(struct hr_pending *pending);
/* Gives a pending stream that has come for this connection to it. */
void hr_pending_claim(struct hr_conn *conn);
/* Frees the dead and those that kept us waiting too long. */
void hr_pending_reap(struct hr_channel *channel);
/* Is the process at the other end of a Unix stream one of the same user, or is one of the two root's? */
bool hr_stream_is_friend(int fd);
/* Stream sockets of ours are non-blocking; those over TCP send at once and notice a lost peer in timeout_ms. */
void hr_stream_prepare(int fd, bool is_unix, uint32_t timeout_ms);

/* ---- events.c ---- */

int hr_events_open(struct hr_channel *channel);
void hr_events_close(struct hr_channel *channel);
/* Watches fd edge-triggered for everything; watch->kind and owner are set by the caller. */
int hr_watch_add(struct hr_channel *channel, struct hr_watch *watch, int fd);
/* Passes a watched descriptor from one watch to another. */
void hr_watch_move(struct hr_channel *channel, struct hr_watch *to, struct hr_watch *from);
void hr_watch_remove(struct hr_channel *channel, struct hr_watch *watch);
/* Takes the events that are there (waits for one up to timeout_ms, -1: for ever) and acts on them; returns how many, or
 * -EINTR and other system errors if there was none. */
int hr_events_take(struct hr_channel *channel, int timeout_ms);
/* Events, and set-ups whose time has come; without waiting. */
void hr_channel_step(struct hr_channel *channel);

/* ---- channel.c ---- */

/* Marks a connection failed and gives up its wireup; error is a negated errno. Once. */
void hr_conn_fail(struct hr_conn *conn, int error);

#endif
