/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copies of a link, inside. A copy has a side in each of the two workers; the client names it to both with peer_copy. The
 * source sends the bytes when its own stream has reached the copy and the target has said that the target's stream has
 * (RC_PEER_NOTE_READY). The target says when the bytes are there (RC_PEER_NOTE_DONE), if a stream of the source waits for that.
 * So a link carries copies in the order in which they can be made, whatever the order of the calls.
 *
 *	link.c     links, their threads, trials, the client's calls on links      copies.c   what is known of each copy
 */
#ifndef RC_SERVER_PEER_COPIES_H
#define RC_SERVER_PEER_COPIES_H

#include "cuda_remote/server/peer/link.h"

#define PEER_BUCKETS 64

/* One side of a copy. */
struct peer_copy {
	struct peer_copy *next;       /* in its bucket */
	struct peer_copy *behind;     /* in the queue of its link */
	struct peer_link *link;       /* NULL: its link has failed, or there was none */
	struct peer_job what;
	struct server_report *report; /* NULL: the client has not named the copy; only the other worker has */
	uint64_t number;              /* of the client's call */
	uint32_t flags;               /* set of enum rc_peer_copy_flags */
	bool reached;                 /* its stream or event has come to it, or it has none */
	bool other_reached;           /* RC_PEER_NOTE_READY has come */
	bool sent;
	bool done;                    /* RC_PEER_NOTE_DONE has come, with this result */
	CUresult result;
	struct rc_wire_peer_note note; /* target: in the queue */
	bool told;                    /* target: a note has been taken from the queue */
};

enum peer_link_state { PEER_LINK_BEGINS, PEER_LINK_UP, PEER_LINK_DOWN };

struct peer_trial;

struct peer_link {
	struct peer_link *next;
	uint64_t number;
	bool source, encrypt, closed;
	enum peer_link_state state;
	uint32_t timeout_ms;
	struct peer_meeting meeting; /* until the other worker has come */
	int stop;                    /* eventfd: ends the meeting */
	int wake;                    /* eventfd: ends a wait of the link's thread */
	bool asleep;                 /* the thread waits for the connection or for wake */
	struct peer_pipe pipe;
	struct peer_copy *copies[PEER_BUCKETS];
	unsigned strangers;          /* copies without report */
	struct peer_copy *queue, **queue_end; /* source: to be sent; target: notes to be sent */
	struct peer_trial *trials, **trials_end;
	unsigned n_trials;           /* in the list, and the one that is executed */
	pthread_cond_t changed;
};

/* Protects all links and copies. Taken before the lock of peer.c. */
extern pthread_mutex_t peer_lock;

/* All under the lock. */
/* The link of this number that is not closed; NULL: none. */
struct peer_link *peer_link_find(uint64_t number);
/* Ends a wait of the link's thread. */
void peer_link_wake(struct peer_link *link);
/* The link has failed: its copies are reported so, each when its stream has come to it. */
void peer_copies_fail(struct peer_link *link);

/* On the link's thread, without the lock. Return a negated errno if the connection failed. */
/* Sends the copies that can be made. */
int peer_copies_send(struct peer_link *link);
/* Receives the copy whose first frame has come. */
int peer_copies_receive(struct peer_link *link, const struct rc_wire_peer_frame *first);
/* Sends notes, as many as the connection takes now. */
int peer_copies_tell(struct peer_link *link);
bool peer_plan_is_sound(const struct rc_wire_peer_plan *plan);
/* What the target says. -EPROTO: what no worker says. */
int peer_copies_hear(struct peer_link *link, const struct rc_wire_peer_note *note);

#endif
