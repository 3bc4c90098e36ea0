/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel's internals, shared by channel.c (the five functions), channel_settings.c (settings, attributes),
 * connect.c (connection set-up), listen.c (incoming connections), events.c (descriptors, sleeping) and fork.c. Threads:
 * only the thread that uses the channel may use these structures and functions.
 */
#ifndef HR_IMPL_H
#define HR_IMPL_H

#include "rdma_channel/card.h"
#include "rdma_channel/pacing.h"
#include "rdma_channel/transport.h"
#include "rdma_channel/wireup.h"

#include <sys/queue.h>

#define HR_TRANSPORTS_MAX 3

/* The kind of descriptor that an entry of the channel's epoll set is for. */
enum hr_watch_kind {
	HR_WATCH_LISTENER, /* a listening socket */
	HR_WATCH_PENDING,  /* an accepted stream that no connection has claimed yet */
	HR_WATCH_CONN,     /* a connection's stream, or the descriptor from its transport's conn_fd */
	HR_WATCH_TIMER,    /* the channel's timer: step_due in events.c may have work */
	HR_WATCH_OPENED,   /* the descriptor from a transport's fd function */
};

/* An entry of the epoll set; data.ptr of each event points to it. */
struct hr_watch {
	enum hr_watch_kind kind;
	void *owner; /* struct hr_channel, hr_pending, hr_conn or hr_opened, by kind */
	int fd; /* -1: not watched */
	LIST_ENTRY(hr_watch) place; /* in channel->watches while fd is watched; changes under hr_fork_lock */
};

/* A transport that this channel opened. */
struct hr_opened {
	const struct hr_transport *transport;
	void *context;
	struct hr_watch watch;
};

/* An incoming stream from its accept(2) until its connection claims it: its hello names the connection, and the caller
 * must have called hr_channel_connect for that peer. It is in one of the channel's lists silent, waiting and dead. */
struct hr_pending {
	TAILQ_ENTRY(hr_pending) place;
	struct hr_channel *channel;
	struct hr_wireup wireup;
	struct hr_watch watch;
	uint64_t deadline; /* when it is dropped, ns */
	bool has_hello;
	bool dead;
	bool told; /* hr_channel_incoming has returned it */
	struct hr_wire_hello hello;
	hr_card_t card; /* the peer's, from its hello */
};
TAILQ_HEAD(hr_pending_list, hr_pending);
TAILQ_HEAD(hr_conn_list, hr_conn);

struct hr_channel {
	LIST_ENTRY(hr_channel) all; /* in fork.c's list of this process's channels */
	LIST_HEAD(, hr_watch) watches;
	bool forked; /* this process is a forked child; the channel belongs to the parent */
	struct hr_identity self;
	uint32_t flags;
	uint32_t ring_bytes;
	bool ring_is_default; /* neither the caller nor the environment gave ring_bytes */
	uint32_t timeout_ms;
	uint64_t spin_ns;
	int n_opened;
	struct hr_opened opened[HR_TRANSPORTS_MAX];
	int epoll;
	struct hr_watch unix_listener, tcp_listener, timer;
	char congestion[HR_CONGESTION_MAX]; /* hr_stream_unpace_listener's result */
	/* Accepted streams, the oldest first in each list. silent: no hello received yet. waiting: the caller has not
	 * called hr_channel_connect for the peer yet. dead: freed when the current batch of events has been handled. */
	struct hr_pending_list silent, waiting, dead;
	unsigned n_pending, pending_max; /* number of streams in silent and waiting, and its limit */
	bool incoming_news;              /* a peer waits, and no call has reported that to the caller yet */
	/* Each connection is in one of three states. Frequent operations walk over one list only, so their cost depends
	 * on the number of active connections. setting_up: not up yet. awake: must be armed and polled before the
	 * channel sleeps. Asleep (HR_CONN_ASLEEP, in neither list): armed, with nothing pending, so that whatever
	 * arrives raises an event. */
	struct hr_conn_list conns; /* all */
	struct hr_conn_list setting_up, awake;
	int n_conns, n_setting_up;
	uint64_t setup_due;  /* before this time no set-up needs a step unless it has an event; UINT64_MAX: never */
	uint64_t check_due;  /* when to call conn_check next; UINT64_MAX: no connection needs it */
	unsigned n_watched;  /* number of connections with hr_conn.watched */
	uint64_t timer_at;   /* what the timer is set to; UINT64_MAX: off */
	uint64_t sleeps;
	bool accept_again; /* accept(2) failed, and its event is gone: streams may still wait at a listener */
	hr_card_t card;    /* this channel's own, for hellos */
};

/* Bits of hr_conn.attention. */
enum {
	HR_CONN_NEWS = 1u << 0,   /* came up or failed, and the caller has not used the connection since */
	HR_CONN_ASLEEP = 1u << 1, /* in neither list: armed, with nothing pending */
	/* The last put accepted nothing, as the connection was not up yet. The transport has not seen that put, and a
	 * get may have cleared HR_CONN_NEWS since: so a wait for room must report this connection once it is up. */
	HR_CONN_EARLY_PUT = 1u << 2,
};

enum hr_phase {
	HR_PHASE_WAIT,  /* waiting for the peer to connect to this side */
	HR_PHASE_DIAL,  /* connecting to the peer, or about to */
	HR_PHASE_HELLO, /* waiting for the peer's hello */
	HR_PHASE_HALF,  /* waiting for the peer's half */
	HR_PHASE_READY, /* waiting for the peer's "ready", and sending this side's */
	HR_PHASE_UP,
	HR_PHASE_FAILED,
};

struct hr_conn {
	/* Used by every put and get; together, to share cache lines. */
	enum hr_phase phase;
	uint8_t attention; /* set of HR_CONN_*; if not 0, put and get must not call the transport directly */
	bool get_failed;   /* get has returned the error: nothing will ever arrive again */
	bool put_short;    /* the last put did not accept all bytes */
	int error; /* negated errno value that put and get have returned or will return; 0: none */
	const struct hr_transport *transport;
	void *data; /* the transport's connection; NULL before conn_open */
	hr_conn_stats_t stats;

	TAILQ_ENTRY(hr_conn) all;   /* in channel->conns; changes under hr_fork_lock */
	TAILQ_ENTRY(hr_conn) place; /* in channel->setting_up or channel->awake */
	struct hr_channel *channel;
	void *user;
	uint64_t sleeps_before;   /* channel->sleeps when this connection was opened */
	uint64_t bytes_at_sleep;  /* bytes put and got when it last fell asleep; equal now: nothing has moved since */
	uint64_t puts_checked;    /* bytes put when conn_check last found all of them acknowledged */
	bool watched;             /* conn_check is called for it every timeout_ms / 4 */
	uint64_t wait_ns;         /* duration of the waits that this connection ended, smoothed */
	unsigned waits;           /* number of waits since wait_ns was over the spin limit; see spin_pays */
	struct hr_identity peer;
	char peer_name[HR_HOSTNAME_MAX + 16];
	struct hr_conn_env env;
	bool encrypted;
	hr_cipher_keys_t cipher; /* env.cipher points to it, or is NULL; wiped once the transport has it */
	struct hr_watch stream_watch, extra_watch;

	/* For set-up. */
	struct hr_wireup wireup; /* its fd is the connection's stream until the connection is closed */
	uint32_t usable;         /* transports that this side could use with this peer */
	uint8_t note[HR_NOTE_BYTES]; /* in the hello that this side sent last */
	/* In ns. deadline: of the whole set-up; dial_deadline: of the current address; retry_at: when to dial again. */
	uint64_t deadline, dial_deadline, retry_at;
	bool over_unix;          /* dial the peer's Unix socket */
	bool dialled;            /* this side opened the stream */
	bool peer_ready;         /* the peer's "ready" has arrived */
	bool told_of_patience;   /* "still waiting" has been logged */
	int next_address;        /* index of the address to dial */
	int n_addresses;
	struct hr_address addresses[HR_ADDRESSES_MAX + 1];
};

/* ---- connect.c ---- */

/* Starts the set-up: over fd, which the connection then owns; if fd is -1, by dialling the peer or waiting for it.
 * -EHOSTUNREACH: no transport in common, or no way to connect. */
int hr_conn_start(struct hr_conn *conn, int fd);
/* Makes as much progress with the set-up as possible without blocking. */
void hr_conn_step(struct hr_conn *conn);
/* What to do with an incoming stream whose hello names this connection's peer. */
enum hr_meeting {
	HR_MEETING_ADOPT,  /* use it, and drop the stream that this side opened, if any */
	HR_MEETING_YIELD,  /* answer "yield" and close it: the stream that this side opened is used */
	HR_MEETING_LATER,  /* this connection is up or has failed: keep the stream for a later one to the same peer */
	HR_MEETING_REFUSE, /* close it */
};
enum hr_meeting hr_conn_meets(const struct hr_conn *conn);
/* Adopts an incoming stream, with its watch. */
void hr_conn_adopt(struct hr_conn *conn, struct hr_wireup *wireup, struct hr_watch *watch,
		   const struct hr_wire_hello *hello);
/* Returns the time at which this set-up needs hr_conn_step even if there is no event, ns. */
uint64_t hr_conn_next_time(const struct hr_conn *conn);

/* ---- listen.c ---- */

/* Opens the listeners and stores their addresses in the channel's identity. */
int hr_listen_open(struct hr_channel *channel);
void hr_listen_close(struct hr_channel *channel);
/* Accepts the streams that wait at one listener; at both listeners. */
void hr_listen_accept(struct hr_channel *channel, struct hr_watch *listener);
void hr_listen_accept_all(struct hr_channel *channel);
/* Reads a pending stream's hello and passes the stream to its connection, if that exists already. */
void hr_pending_step(struct hr_pending *pending);
/* Returns whether a pending stream from that peer waits and is still open. */
bool hr_pending_waits(struct hr_channel *channel, const uint8_t uid[HR_UID_BYTES]);
/* Passes a waiting stream from the connection's peer to the connection. False: there is none. */
bool hr_pending_claim(struct hr_conn *conn);
/* Frees the dead streams and those that have waited past their deadline. */
void hr_pending_reap(struct hr_channel *channel);
/* Returns whether the process at the other end of a Unix stream has the same user, or either of the two is root. */
bool hr_stream_is_friend(int fd);
/* Makes a stream non-blocking. A TCP stream also sends at once and detects a lost peer within timeout_ms. */
void hr_stream_prepare(int fd, bool is_unix, uint32_t timeout_ms);
/* Limits the segment size of a TCP socket to suit a small ring. Call it before connect(2) or listen(2). On loopback a
 * segment has 64 KB; a window smaller than a segment opens only by the kernel's timers. */
void hr_stream_fit_segments(int fd, uint32_t ring_bytes);

/* ---- events.c ---- */

int hr_events_open(struct hr_channel *channel);
void hr_events_close(struct hr_channel *channel);
/* Watches fd edge-triggered, for all events. The caller has set watch->kind and watch->owner. */
int hr_watch_add(struct hr_channel *channel, struct hr_watch *watch, int fd);
/* From now on room in the descriptor is no event. */
void hr_watch_input(struct hr_channel *channel, struct hr_watch *watch);
/* Moves a watched descriptor from one watch to another. */
void hr_watch_move(struct hr_channel *channel, struct hr_watch *to, struct hr_watch *from);
void hr_watch_remove(struct hr_channel *channel, struct hr_watch *watch);
/* Waits up to timeout_ms (-1: no limit) for an event, then takes and handles all events. Returns their number, or
 * -EINTR or another negated errno value if there was no event. */
int hr_events_take(struct hr_channel *channel, int timeout_ms);
/* Handles all events, and the work that is due without an event. Does not wait. */
void hr_channel_step(struct hr_channel *channel);
/* If the connection is asleep, moves it into the list `awake`. */
void hr_conn_rouse(struct hr_conn *conn);
/* Stops the calls of conn_check for the connection. */
void hr_conn_unwatch(struct hr_conn *conn);
/* If the connection is being set up, moves it from the list `setting_up` into the list `awake`. */
void hr_conn_leave_set_up(struct hr_conn *conn);

/* ---- fork.c ---- */

/* Makes forked children close their copies of the channel's descriptors. 0, or a negated errno value. */
int hr_fork_register(struct hr_channel *channel);
void hr_fork_forget(struct hr_channel *channel);
/* Between lock and unlock no thread of this process forks. Not for the data path. */
void hr_fork_lock(void);
void hr_fork_unlock(void);

/* ---- channel_settings.c ---- */

/* Completes the caller's attributes from the settings. Fields that the shorter struct of an older caller does not have
 * are zero. -EINVAL: an attribute or a setting is out of range (logged). */
int hr_channel_gather_attr(const hr_channel_attr_t *given, hr_channel_attr_t *attr, uint64_t *spin_us,
			   uint64_t *pending_max, bool *ring_is_default);

/* Writes the names of a set of transports into text, with a space before each. Returns text. */
const char *hr_transport_names(uint32_t set, char *text, size_t size);

/* ---- channel.c ---- */

/* Marks a connection as failed and closes its stream. error is a negated errno value. Call it once. */
void hr_conn_fail(struct hr_conn *conn, int error);

#endif
