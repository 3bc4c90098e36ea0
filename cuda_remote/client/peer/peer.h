/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between servers, inside. An operation waits until streams or events of some sessions have arrived, then copies or
 * does nothing, then lets streams go on. Streams are held at gates (wire.h).
 *
 *	peer.c        operations: issued, reported by the servers, ended     peer_calls.c  the driver's calls
 *	peer_link.c   links between the workers, which move the bytes        peer_plan.c   by which way, in which buffers
 *	peer_copy.c   moves the bytes by way of this process
 */
#ifndef RC_CUDA_PEER_H
#define RC_CUDA_PEER_H

#include "cuda_remote/client/session.h"

/* One end of a copy: device memory or part of an array of one session, or host memory. */
struct rc_peer_side {
	struct rc_session *session; /* NULL: host memory */
	CUcontext context; /* that the memory belongs to */
	struct rc_wire_box box; /* of host memory: its address in place of the device's; of an array: only width, height, depth */
	CUarray array;     /* NULL: none */
	uint64_t x, y, z;  /* where the part of the array begins; x in bytes */
};

/* A stream or an event that takes part in an operation. */
struct rc_peer_part {
	struct rc_session *session;
	CUcontext context;
	uint64_t object; /* handle of the stream or the event, or one of CUDA's own streams */
	bool event;
	bool tells;      /* the operation begins after the server has reported this part */
	bool holds;      /* the stream waits for the end of the operation, and this process lets it go on */
	bool told;
	bool link_failed; /* the report says so */
};

#define RC_PEER_PARTS 8
#define RC_PEER_TRANSFER (RC_PEER_PARTS - 1) /* in place of a part: the operation's copy over a link */

struct rc_peer_op {
	struct rc_peer_op *next; /* in the list of all operations */
	struct rc_peer_op *behind; /* in the queue of its target */
	uint64_t id;
	struct rc_peer_part part[RC_PEER_PARTS];
	unsigned parts;
	bool copies;
	bool here;               /* no link moves the bytes: an end is an array or host memory, or both are of one server */
	struct rc_peer_side to, from; /* of a wait for an event: of the stream, and of the event, without boxes */
	void *owned;             /* host memory that `from` is in, to be freed when the operation ends; or NULL */
	struct rc_wire_peer_plan plan;
	CUresult result;         /* the first failure */
	bool posted;             /* the gates are posted */
	bool started;            /* it copies, or it is ending */
	bool moving;             /* workers copy; the last two parts are the source's and the target's sides */
	bool direct;             /* the workers know all streams: these two are the only parts */
	bool awaited;            /* a call waits for its end, and frees it */
	bool ended;
};

/* Issues an operation: the calling thread does not wait for it. Copies *op, and takes op->owned, also after a failure. */
CUresult rc_peer_issue(const struct rc_peer_op *op);
/* Issues an operation and waits for its end; returns its result. */
CUresult rc_peer_perform(const struct rc_peer_op *op);
/* The operation is over: opens its gates and forgets it. */
void rc_peer_end(struct rc_peer_op *op, CUresult result);
/* Waits until no operation uses an array. */
void rc_peer_settle_arrays(void);
/* Starts a thread of this library, with all signals blocked: the program's own threads receive them. */
CUresult rc_peer_thread(void *(*run)(void *), void *argument);

/* ---- peer_link.c ---- */

/* Opens the link that a copy is to use, and waits until it is open or has failed: a driver may wait for the streams that the copy
 * holds before it allocates the link's buffers. Waits for about a minute at most. */
void rc_peer_link_await(const struct rc_peer_op *op);
/* Has a thread open the link that a wait for an event can use; the wait does not wait for it. */
void rc_peer_link_begin(const struct rc_peer_op *op);
/* The link that is up between the sides of the operation, and the plan of its copy; 0: none. */
uint64_t rc_peer_link_of(const struct rc_peer_op *op, struct rc_wire_peer_plan *plan);
/* Names the operation to one of its two workers. flags: set of enum rc_peer_copy_flags. */
CUresult rc_peer_post(const struct rc_peer_op *op, bool source, uint64_t object, uint32_t flags, uint64_t link);
/* Ends a link at one of its workers. */
void rc_peer_post_close(struct rc_session *session, uint64_t link);
/* Moves the bytes of an operation, by the workers or by way of this process; then the operation is ended. */
CUresult rc_peer_move(struct rc_peer_op *op);
/* The link of this operation has failed: later copies go by way of this process. */
void rc_peer_link_failed(const struct rc_peer_op *op);
/* A session is lost: ends what the workers of the others still wait for. */
void rc_peer_links_lost(const struct rc_session *session);

/* In peer.c: the operation waits for the reports of both workers, in addition. */
CUresult rc_peer_transfer_begin(struct rc_peer_op *op);
/* This session will not report to the operation with this id, which may have ended. */
void rc_peer_transfer_refused(uint64_t id, const struct rc_session *session, CUresult result);
static inline uint64_t rc_peer_transfer_number(const struct rc_peer_op *op)
{
	return op->id * RC_PEER_PARTS + RC_PEER_TRANSFER;
}

/* ---- peer_copy.c ---- */

/* Moves the bytes on a thread of this library, which then calls rc_peer_end. */
CUresult rc_peer_move_here(struct rc_peer_op *op);

/* ---- peer_plan.c ---- */

/* The plans of the version hybrid for copies up to some sizes. */
#define RC_PEER_CLASSES 9
struct rc_peer_plans {
	bool direct; /* both workers can use device memory directly */
	struct rc_wire_peer_plan best[RC_PEER_CLASSES];
};

/* Milliseconds that rc_peer_plans_choose may take. Each class of sizes has one trial even if this time is over. */
unsigned rc_peer_measuring_ms(void);
/* True if HEADRACE_PEER asks for links. */
bool rc_peer_by_link(void);
/* How a copy of that size is to travel. CUDA_ERROR_NOT_SUPPORTED, logged: the servers cannot do what HEADRACE_PEER wants. */
CUresult rc_peer_plan(const struct rc_peer_plans *plans, uint64_t bytes, struct rc_wire_peer_plan *plan);
/* Chooses the plans of the version hybrid. measure: asks the workers how long a copy of that size takes. */
typedef CUresult (*rc_peer_measure_fn)(void *context, const struct rc_wire_peer_plan *plan, uint32_t bytes, uint64_t *ns);
void rc_peer_plans_choose(struct rc_peer_plans *plans, rc_peer_measure_fn measure, void *context);

#endif
