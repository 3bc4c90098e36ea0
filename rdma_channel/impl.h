/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel's internals, shared by channel.c (the five functions), channel_settings.c (settings, attributes), connect.c
 * (connection set-up), listen.c (incoming connections), events.c (descriptors, sleeping) and fork.c. Everything here belongs
 * to the thread that uses the channel.
 */
#ifndef HR_IMPL_H
#define HR_IMPL_H

#include "rdma_channel/card.h"
#include "rdma_channel/transport.h"
#include "rdma_channel/wireup.h"

#include <sys/queue.h>

#define HR_TRANSPORTS_MAX 3

/* What an entry of the channel's epoll set belongs to; data.ptr of each event points to one. */
enum hr_watch_kind {
	HR_WATCH_LISTENER, /* a peer may have come */
	HR_WATCH_PENDING,  /* accepted, not matched with a connection yet */
	HR_WATCH_CONN,     /* a connection's stream or its transport's own descriptor */
	HR_WATCH_TIMER,    /* a set-up may have taken too long */
	HR_WATCH_OPENED,   /* a transport's own descriptor */
};

struct hr_watch {
	enum hr_watch_kind kind;
	void *owner;
	int fd; /* -1: not watched */
	LIST_ENTRY(hr_watch) place; /* in channel->watches, while it is watched; changes under hr_fork_lock */
};

/* A transport that this channel opened. */
struct hr_opened {
	const struct hr_transport *transport;
	void *context;
	struct hr_watch watch;
};

/* A stream that a peer opened to us, until its hello says which connection it is for and we have made that one. In one
 * of the channel's three lists of them. */
struct hr_pending {
	TAILQ_ENTRY(hr_pending) place;
	struct hr_channel *channel;
	struct hr_wireup wireup;
	struct hr_watch watch;
	uint64_t deadline;
	bool has_hello;
	bool dead;
	bool told; /* hr_channel_incoming has named it */
	struct hr_wire_hello hello;
	hr_card_t card; /* the peer's, from its hello */
};
TAILQ_HEAD(hr_pending_list, hr_pending);
TAILQ_HEAD(hr_conn_list, hr_conn);

struct hr_channel {
	LIST_ENTRY(hr_channel) all; /* in fork.c's list of this process's */
	LIST_HEAD(, hr_watch) watches;
	bool forked; /* this is a child's copy: the channel is the parent's */
	struct hr_identity self;
	uint32_t flags;
	uint32_t ring_bytes;
	uint32_t timeout_ms;
	uint64_t spin_ns;
	int n_opened;
	struct hr_opened opened[HR_TRANSPORTS_MAX];
	int epoll;
	struct hr_watch unix_listener, tcp_listener, timer;
	/* Accepted streams, each list the oldest first: those that have not said hello, those that wait for a
	 * connection of ours, and those to be freed at the end of the round of events. */
	struct hr_pending_list silent, waiting, dead;
	unsigned n_pending, pending_max; /* of the first two */
	bool incoming_news;              /* one that waits has come, and the caller was not told to look yet */
	/* Connections. Each is in one of three states, and the lists make what is done often depend on their number
	 * only where something happens: being set up; awake, so that it must be armed and looked at before sleeping;
	 * asleep (HR_CONN_ASLEEP), armed with nothing there, so that whatever comes raises an event. */
	struct hr_conn_list conns; /* all */
	struct hr_conn_list setting_up, awake;
	int n_conns, n_setting_up;
	uint64_t setup_due;  /* no set-up needs a step without an event before this time; UINT64_MAX: none ever */
	uint64_t check_due;  /* when conn_check is to be called next; UINT64_MAX: no connection needs it */
	unsigned n_watched;
	uint64_t timer_at;   /* what the timer is set to; UINT64_MAX: off */
	uint64_t sleeps;
	bool accept_again; /* a listener may have more, which could not be taken for want of descriptors */
	hr_card_t card;    /* this channel's own, for hellos */
};

/* Of hr_conn.attention. */
enum {
	HR_CONN_NEWS = 1u << 0,   /* came up or failed, and the caller has not looked since */
	HR_CONN_ASLEEP = 1u << 1, /* in neither list: armed, with nothing there */
	/* A put was short because the connection was not up yet, and there was none since: the transport does not know
	 * of it, and that the connection came up may have been seen by a get. */
	HR_CONN_EARLY_PUT = 1u << 2,
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
	uint8_t attention; /* set of HR_CONN_*; not 0: put and get must not go straight to the transport */
	bool get_failed;   /* get has reported the error: nothing will ever arrive again */
	bool put_short;    /* the last put took less than was offered */
	int error; /* negated errno that put and get have reported or will report; 0: none */
	const struct hr_transport *transport;
	void *data; /* the transport's connection; NULL before conn_open */
	hr_conn_stats_t stats;

	TAILQ_ENTRY(hr_conn) all;   /* in channel->conns; changes under hr_fork_lock */
	TAILQ_ENTRY(hr_conn) place; /* in channel->setting_up or channel->awake */
	struct hr_channel *channel;
	void *user;
	uint64_t sleeps_before;   /* the channel's, when this connection was opened */
	uint64_t bytes_at_sleep;  /* put and got when it last fell asleep: has something moved since? */
	uint64_t puts_checked;    /* bytes put when conn_check last found all acknowledged */
	bool watched;             /* conn_check is to be called */
	uint64_t wait_ns;         /* how long waits that this connection ended took, smoothed */
	unsigned waits;
	struct hr_identity peer;
	char peer_name[HR_HOSTNAME_MAX + 16];
	struct hr_conn_env env;
	bool encrypted;
	hr_cipher_keys_t cipher; /* env.cipher points to it, or is NULL; wiped once the transport has it */
	struct hr_watch stream_watch, extra_watch;

	/* setting up */
	struct hr_wireup wireup; /* its fd is the stream of the connection to the end */
	uint32_t usable;         /* transports that we could use with this peer */
	uint64_t deadline, dial_deadline, retry_at;
	bool over_unix;          /* dial the peer's Unix socket */
	bool dialled;            /* the stream is one that this side opened */
	bool peer_ready;
	bool told_of_patience;
	int next_address;
	int n_addresses;
	struct hr_address addresses[HR_ADDRESSES_MAX + 1];
};

/* ---- connect.c ---- */

/* Starts setting up: over fd where it is not -1 (taken over), else by dialling or waiting. -EHOSTUNREACH. */
int hr_conn_start(struct hr_conn *conn, int fd);
/* Goes on as far as possible without blocking. */
void hr_conn_step(struct hr_conn *conn);
/* What becomes of a stream of the peer's that has said hello to this connection. */
enum hr_meeting {
	HR_MEETING_ADOPT,  /* it is this connection's; a stream of its own must go */
	HR_MEETING_YIELD,  /* ours is used: say so, and close it */
	HR_MEETING_LATER,  /* this connection has had its day: perhaps for the next one to this peer */
	HR_MEETING_REFUSE,
};
enum hr_meeting hr_conn_meets(const struct hr_conn *conn);
/* A stream whose hello names this connection has come; taken over with its watch. */
void hr_conn_adopt(struct hr_conn *conn, struct hr_wireup *wireup, struct hr_watch *watch,
		   const struct hr_wire_hello *hello);
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
/* Does a pending stream of that peer's wait for us, which has not been closed? */
bool hr_pending_waits(struct hr_channel *channel, const uint8_t uid[HR_UID_BYTES]);
/* Gives a pending stream that has come for this connection to it; false: there is none. */
bool hr_pending_claim(struct hr_conn *conn);
/* Frees the dead and those that kept us waiting too long. */
void hr_pending_reap(struct hr_channel *channel);
/* Is the process at the other end of a Unix stream one of the same user, or is one of the two root's? */
bool hr_stream_is_friend(int fd);
/* Stream sockets of ours are non-blocking; those over TCP send at once and notice a lost peer in timeout_ms. */
void hr_stream_prepare(int fd, bool is_unix, uint32_t timeout_ms);
/* Before a TCP socket connects or listens: small rings want small segments. A segment on loopback has 64 KB, and a
 * window smaller than one opens only by the kernel's timers. */
void hr_stream_fit_segments(int fd, uint32_t ring_bytes);

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
/* Into the list of those awake, if it is asleep; from that of set-ups, if its phase is still one of those. */
void hr_conn_rouse(struct hr_conn *conn);
/* No more conn_check for it. */
void hr_conn_unwatch(struct hr_conn *conn);
void hr_conn_leave_set_up(struct hr_conn *conn);

/* ---- fork.c ---- */

/* Has children of this process leave the channel to it. 0, or a negated errno. */
int hr_fork_register(struct hr_channel *channel);
void hr_fork_forget(struct hr_channel *channel);
/* No fork between the two. Not on the data path. */
void hr_fork_lock(void);
void hr_fork_unlock(void);

/* ---- channel_settings.c ---- */

/* The caller's attributes, completed by the settings. A shorter struct of an older caller leaves the rest zero. -EINVAL, with
 * a line in the log, if an attribute or a setting is out of range. */
int hr_channel_gather_attr(const hr_channel_attr_t *given, hr_channel_attr_t *attr, uint64_t *spin_us,
			   uint64_t *pending_max);

/* The names of a set of transports, a space before each, for messages. Returns text. */
const char *hr_transport_names(uint32_t set, char *text, size_t size);

/* ---- channel.c ---- */

/* Marks a connection failed and gives up its wireup; error is a negated errno. Once. */
void hr_conn_fail(struct hr_conn *conn, int error);

#endif
