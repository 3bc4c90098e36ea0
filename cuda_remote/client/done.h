/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the client knows of the work of earlier calls: whether the work is complete (done.c), and whether a stream may be held
 * (held.c).
 */
#ifndef RC_CLIENT_DONE_H
#define RC_CLIENT_DONE_H

#include "cuda_remote/api/calls.h"
#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct rc_link;
struct rc_session;

/* What is known of the calls of one kind, of which each may give a stream work; atomic. */
struct rc_track {
	uint64_t last;   /* number of the last such call, or higher */
	uint64_t stream; /* the only stream that such calls named since the work of all of them was complete, as rc_track_stream
			  * numbers streams; RC_TRACK_SEVERAL: it may have been several */
	uint64_t done;   /* the work of such calls up to this number is complete */
};

/* There are several streams, or the stream is not known. No handle has this value. */
#define RC_TRACK_SEVERAL UINT64_MAX

/* Of held.c; atomic. */
struct rc_held {
	struct rc_track track; /* of the calls that may hold a stream */
	uint64_t valued; /* number of the last call that may make a stream wait for a value, for another server or for another
			  * process, or higher */
	bool graphs;     /* a graph may wait for a value or for another process */
};

/* ---- held.c ---- */

/* A call is about to be sent, and its arguments follow head. True: it may hold a stream, which is remembered. */
bool rc_held_note(struct rc_session *session, enum rc_call function, const struct rc_wire_call *head);
/* False: no stream of the session is held, see held.c. */
bool rc_held_any(const struct rc_session *session);
/* False: no stream of the session waits for a value, for another server or process, or for memory of the host. A launch may hold
 * one. */
bool rc_held_by_value(const struct rc_session *session);

/* Returns the handle of the call's stream. at: offset of the handle in the arguments, which follow head; -1: the call may name any
 * stream; less than -1: the call uses its default stream. Returns RC_TRACK_SEVERAL for -1 and for the per-thread default stream,
 * which each thread has. Returns a number below all handles, made of the index of the call's context, for the legacy default stream. */
uint64_t rc_track_stream(const struct rc_wire_call *head, int at);
/* The call with this number is about to be sent. */
void rc_track_note(const struct rc_session *session, struct rc_track *track, uint64_t stream, uint64_t number);
/* The work in the stream of all calls up to this number is complete. */
void rc_track_waited(struct rc_track *track, uint64_t stream, uint64_t number);
/* False: the work of all calls of the track is complete. */
bool rc_track_any(const struct rc_session *session, const struct rc_track *track);

/* ---- done.c ---- */

/* A call is about to be sent: remembers the work that it gives. Its arguments follow head. */
void rc_done_note(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head);
/* True if a call that does not wait gives the devices no work, although other calls may be issued before it is done. It names no
 * stream but one that it makes or ends. */
bool rc_done_makes_or_ends(enum rc_call function);
/* True if the call leaves nothing in a stream but work. */
bool rc_done_leaves_work_only(enum rc_call function);
/* True if the call, when it has succeeded, has found the per-thread default stream of link->thread_context empty. */
bool rc_done_empties_thread_stream(const struct rc_link *link, enum rc_call function, const struct rc_wire_call *head);
/* A call that waits has succeeded. */
void rc_done_waited(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head);
/* True if the answer of a call that waits is known: success. Its arguments follow head. False also if the call is to be sent to
 * show that the session is in use. */
bool rc_done_known(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head);
/* The stream that the call gives work, as rc_track_stream numbers streams. Its arguments follow head. RC_TRACK_SEVERAL: several, or
 * it is not known. */
uint64_t rc_done_stream(enum rc_call function, const struct rc_wire_call *head);
/* Where the handle of that stream is among the arguments; -1: it is not known; -2: it is the default stream and not among them. */
int rc_done_place(enum rc_call function);
/* Launches of a graph may record the event. */
void rc_done_event_in_graph(CUevent event);
/* A wait for the context of the link. True: one for its last event took its place, and brought the time that the program probably
 * asks for; *result: the wait's. */
bool rc_done_context(struct rc_link *link, CUresult *result);

#endif
