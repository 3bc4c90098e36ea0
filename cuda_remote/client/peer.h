/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between servers, inside. An operation waits until streams or events of some sessions have arrived, then copies or
 * does nothing, then lets streams go on. Streams are held at gates (wire.h).
 *
 *	peer.c        operations: issued, reported by the servers, ended     peer_calls.c  the driver's calls
 *	peer_copy.c   moves the bytes, by way of this process
 */
#ifndef RC_CUDA_PEER_H
#define RC_CUDA_PEER_H

#include "cuda_remote/client/client.h"

/* Device memory of one session. */
struct rc_peer_side {
	struct rc_session *session;
	CUcontext context; /* that the memory belongs to */
	struct rc_wire_box box;
};

/* A stream or an event that takes part in an operation. */
struct rc_peer_part {
	struct rc_session *session;
	CUcontext context;
	uint64_t object; /* handle of the stream or the event, or one of CUDA's own streams */
	bool event;
	bool tells;      /* the operation begins after the server has reported this part */
	bool holds;      /* the stream waits for the end of the operation */
	bool told;
};

#define RC_PEER_PARTS 4

struct rc_peer_op {
	struct rc_peer_op *next; /* in the list of all operations */
	struct rc_peer_op *behind; /* in the queue of its target */
	uint64_t id;
	struct rc_peer_part part[RC_PEER_PARTS];
	unsigned parts;
	bool copies;
	struct rc_peer_side to, from;
	CUresult result;         /* the first failure */
	bool posted;             /* the gates are posted */
	bool started;            /* it copies, or it is ending */
	bool awaited;            /* a call waits for its end, and frees it */
	bool ended;
};

/* Issues an operation: the calling thread does not wait for it. Copies *op. */
CUresult rc_peer_issue(const struct rc_peer_op *op);
/* Issues an operation and waits for its end; returns its result. */
CUresult rc_peer_perform(const struct rc_peer_op *op);
/* The operation is over: opens its gates and forgets it. */
void rc_peer_end(struct rc_peer_op *op, CUresult result);
/* Waits until no operation uses the memory address..address+size-1. */
void rc_peer_settle_memory(uint64_t address, uint64_t size);
/* Starts a thread of this library, with all signals blocked: the program's own threads receive them. */
CUresult rc_peer_thread(void *(*run)(void *), void *argument);

/* Moves the bytes on a thread of this library, which then calls rc_peer_end. */
CUresult rc_peer_move(struct rc_peer_op *op);

#endif
