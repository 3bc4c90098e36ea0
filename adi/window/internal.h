/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside window/. Operations reach their target in one of three ways:
 *
 *	direct	All processes of the window are on one machine and map its memory (MPI_Win_allocate, allocate_shared). The
 *		origin copies and accumulates by itself. Locks are words in the segment.
 *	messages	The target's handlers act inside its progress. A handler sees the messages of one origin in order,
 *		but the payload of a long put arrives later. So the target counts, for each origin, the payloads that are
 *		under way, and answers a flush when there are none. Accumulates are sent in eager pieces, and are
 *		therefore applied in the order of the calls.
 *	adapter	Puts and gets of contiguous data of the target, if the connection has access to remote memory (ch3.h) and the
 *		target has given the key of its memory. The origin asks for the key at its first operation, which still goes by
 *		messages, as do all accumulates. A message that ends an epoch is sent only when the adapter has completed the
 *		operations.
 *
 * A target type that is not contiguous is sent once, ahead of the first operation that uses it (WINDOW_TYPE).
 */
#ifndef ADI_WINDOW_INTERNAL_H
#define ADI_WINDOW_INTERNAL_H

#include "adi/collective/op.h"
#include "adi/message/request.h"
#include "adi/window/window.h"

#include <stdatomic.h>

/* ---- messages ---- */

enum {
	WINDOW_PUT = ADI_PACKET_WINDOW, /* origin to target: struct window_access; payload: the data */
	WINDOW_GET,            /* struct window_access */
	WINDOW_ACCUMULATE,     /* struct window_access; payload: a piece of the data, at most WINDOW_PIECE bytes */
	WINDOW_FETCH,          /* as ACCUMULATE; the target answers with the old data. Without payload for MPI_NO_OP. */
	WINDOW_SWAP,           /* struct window_access; payload: the new value, then the value to compare with */
	WINDOW_REPLY,          /* target to origin: struct window_reply; payload: the data asked for */
	WINDOW_TYPE,           /* struct window_control; payload: adi_type_wire of the type of the next operations */
	WINDOW_LOCK,           /* struct window_control; value: MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED */
	WINDOW_GRANT,          /* target to origin: struct window_control; value: error class, not 0: the lock cannot be had */
	WINDOW_FLUSH,          /* struct window_control; value 1: release the lock afterwards */
	WINDOW_ACK,            /* target to origin: struct window_control; value: error class of the operations before */
	WINDOW_POST,           /* target to origin: struct window_control */
	WINDOW_COMPLETE,       /* origin to target: struct window_control */
	WINDOW_ASK,            /* origin to target: struct window_control; asks for the key of the target's memory, once */
	WINDOW_KEY,            /* target to origin: struct window_key */
};
_Static_assert((int)WINDOW_KEY <= (int)ADI_PACKET_WINDOW_LAST, "packet types of windows");

#define WINDOW_PIECE 32768 /* maximum bytes of one piece of an accumulate */

/* Written by the origin, checked by the target. */
struct window_access {
	uint32_t slot;    /* of the window, at the receiver */
	uint32_t origin;  /* rank of the sender in the window */
	uint64_t offset;  /* of the first element from the start of the memory, bytes; dynamic window: the address */
	uint64_t count;   /* elements of the last WINDOW_TYPE; 0: the target's data are `bytes` bytes in one run */
	uint64_t bytes;   /* of data of the whole operation */
	uint64_t at;      /* ACCUMULATE, FETCH: where this piece begins in the data, bytes */
	uint64_t id;      /* GET, FETCH, SWAP: copied into the reply */
	uint32_t piece;   /* ACCUMULATE, FETCH, SWAP: bytes of this piece */
	uint16_t op;      /* ACCUMULATE, FETCH: the operation's constant of the ABI */
	uint16_t basic;   /* ACCUMULATE, FETCH, SWAP: enum adi_basic of the elements */
};
_Static_assert(sizeof(struct window_access) == 56, "struct window_access has no padding");

struct window_reply {
	uint64_t id;
	uint64_t at;      /* where the data begin in the data of the whole operation, bytes */
	uint32_t class;   /* not 0: the operation failed at the target; no payload */
	uint32_t unused;
	uint64_t lost;    /* after a failure: bytes of data that do not come */
};
_Static_assert(sizeof(struct window_reply) == 32, "struct window_reply has no padding");

struct window_control {
	uint32_t slot;    /* of the window, at the receiver */
	uint32_t sender;  /* rank of the sender in the window */
	uint32_t value;
	uint32_t unused;
};
_Static_assert(sizeof(struct window_control) == 16, "struct window_control has no padding");

struct window_key {
	uint32_t slot;      /* of the window, at the receiver */
	uint32_t sender;    /* rank of the sender in the window */
	uint32_t held;      /* 1: key is the key of the target's memory; 0: use messages */
	uint32_t unused;
	struct ch3_key key;
};
_Static_assert(sizeof(struct window_key) == 32, "struct window_key has no padding");

/* ---- state ---- */

/* In the shared segment, for each process. Written by all processes, atomically. */
struct adi_win_control {
	_Alignas(64) atomic_int accumulate; /* 1 + the rank that accumulates into this process's memory; 0: none */
	_Alignas(64) atomic_int lock;       /* -1 - the rank of the exclusive holder; else the number of shared holders */
};
/* In the shared segment behind the control words: a row for each process, in lines of its own, with a byte for each target. Not 0:
 * this process has, or is getting, a shared lock of the target. Only those that wait for the lock of a dead process read it. */
static inline size_t window_row(int processes)
{
	return ((size_t)processes + 63) / 64 * 64;
}

#define WINDOW_DOUBT_MS 50 /* wait for a lock in shared memory before this process asks whether the holder is alive */

enum { LOCK_NONE, LOCK_HELD, LOCK_UNCHECKED };

enum { KEY_UNKNOWN, KEY_ASKED, KEY_HELD, KEY_REFUSED };

/* A process as a target of this process's operations. */
struct adi_win_target {
	struct adi_peer *peer;
	char *base;             /* direct, or this process: its memory; else NULL */
	MPI_Aint size;          /* of its memory, bytes */
	MPI_Aint disp_unit;
	uint32_t slot;          /* of the window there */
	bool started;           /* in the group of MPI_Win_start */
	char lock;              /* LOCK_*: this process holds the lock */
	int lock_type;          /* while lock is not LOCK_NONE */
	bool granted;           /* set by WINDOW_GRANT */
	int refused;            /* error class of the last WINDOW_GRANT */
	bool dirty;             /* operations were sent since the last flush */
	int acks;               /* flushes without an answer */
	int sending;            /* sends whose buffer is still in use */
	int replies;            /* operations that wait for data */
	int posts;              /* MPI_Win_post calls that no MPI_Win_start has used */
	int class;              /* first error that the target has reported since the last flush */
	struct adi_type *type;  /* the last type sent; holds a reference */
	char key_state;         /* KEY_* */
	struct ch3_key key;     /* KEY_HELD: of its memory */
	int accesses;           /* operations of the adapter that are not complete */
	int failed;             /* error of the connection that has ended such an operation; 0: none */
};

/* A process as an origin of operations on this process's memory. */
struct adi_win_origin {
	struct adi_win *win;
	int rank;
	int pending;            /* operations whose payload has not arrived, and gets whose data are being sent */
	int flushes;            /* WINDOW_FLUSH messages to answer when pending is 0 */
	bool release;           /* then release the lock */
	int completes;          /* WINDOW_COMPLETE messages to count when pending is 0 */
	int class;              /* first error since the last flush */
	int lock;               /* MPI_LOCK_* it holds; 0: none */
	int wants;              /* MPI_LOCK_* it waits for; 0: none */
	bool dead;              /* it has died with the lock that `lock` names, which stays taken */
	bool exposed;           /* in the group of MPI_Win_post */
	struct adi_win_origin *next; /* in win->waiting */
	struct adi_type *type;  /* the last WINDOW_TYPE; owned */
	ch3_shared_t *shared;   /* it has the key of this process's memory; NULL: it has not */
};

struct adi_win_region {
	char *base;
	MPI_Aint size;
};

/* ---- table.c: windows by slot; operations by id ---- */

int window_slot_add(struct adi_win *win);
void window_slot_remove(struct adi_win *win);
/* NULL: no such window, or the sender is no member, or has not this rank. */
struct adi_win *window_of_packet(const ch3_incoming_t *incoming, uint32_t slot, uint32_t sender);

/* create.c: frees the windows that the program has not freed. */
void window_destroy_all(void);

/* An operation of this process that waits for data from its target. */
struct window_fetch {
	uint64_t id;
	struct adi_win *win;
	int rank;                  /* of the target */
	char *result;              /* where the data go: the result buffer, or `memory` */
	char *memory;              /* for a result type that is not contiguous; owned */
	void *buf;                 /* the result buffer, if memory is used */
	MPI_Count count;
	struct adi_type *type;     /* of the result; holds a reference if memory is used */
	uint64_t bytes;            /* of the whole data */
	uint64_t left;             /* bytes that have not arrived */
	int class;
	struct adi_request *request; /* of MPI_Rget and the like; NULL: none */
};
int window_fetch_add(struct window_fetch *fetch);
void window_fetch_remove(struct window_fetch *fetch);
struct window_fetch *window_fetch_find(uint64_t id);
/* Calls function for each operation. */
void window_fetch_each(void (*function)(struct window_fetch *fetch, void *argument), void *argument);

/* ---- segment.c ---- */

/* Maps one segment in all processes of comm, which are on one machine, and stores the address of each process's memory in
 * win->target[].base. Collective. noncontiguous: each process's memory begins at a page. Returns an error class that is the
 * same in all processes. */
int window_segment_map(struct adi_win *win, bool noncontiguous);
void window_segment_unmap(struct adi_win *win);

/* ---- apply.c ---- */

/* A place in memory that an accumulate changes: count elements at buf, or a run of bytes. */
struct window_place {
	char *at;               /* address of the first element */
	struct adi_type *type;  /* NULL: a run of bytes */
	MPI_Count count;
};
/* Size of a basic element in the data stream; 0: no such element. */
size_t window_basic_size(enum adi_basic basic);
/* place[from ..] = data op place[from ..] for bytes of the data stream; data is aligned as malloc's. Atomic with respect to other
 * processes if atomically: each element of 4 or 8 bytes integer by an atomic operation, others only under the caller's lock. */
int window_apply(const struct adi_op *op, enum adi_basic basic, const struct window_place *place, uint64_t from, const void *data,
		 size_t bytes, bool atomically);
/* The same, and stores the old data in old, as a stream. data may be NULL for MPI_NO_OP. */
int window_fetch_apply(const struct adi_op *op, enum adi_basic basic, const struct window_place *place, uint64_t from,
		       const void *data, size_t bytes, void *old, bool atomically);
/* Changes the elements of a run for which window_lock_free. data may be NULL for MPI_NO_OP; old may be NULL. */
void window_change_atomically(const struct adi_op *op, enum adi_basic basic, char *at, const char *data, char *old, size_t bytes);
/* Stores the element at `at` in old, and replaces it by new if it equals compare. */
void window_swap(enum adi_basic basic, void *at, const void *new, const void *compare, void *old, bool atomically);
/* Whether window_apply is atomic for these elements without a lock. */
bool window_lock_free(enum adi_basic basic);

/* ---- local.c: operations on memory of this process or of a shared segment ---- */

struct window_access_args;
int window_local_put(struct adi_win *win, const struct window_access_args *args);
int window_local_get(struct adi_win *win, const struct window_access_args *args);
int window_local_accumulate(struct adi_win *win, const struct window_access_args *args);
int window_local_swap(struct adi_win *win, const struct window_access_args *args, const void *compare);

/* ---- remote.c: operations by messages ---- */

/* An operation on a target, after the checks. */
struct window_access_args {
	bool fetches;                /* accumulates: the old data go to result */
	bool sends;                  /* accumulates: there are data of the origin, which MPI_NO_OP has not */
	const void *origin;          /* data to send */
	MPI_Count origin_count;
	struct adi_type *origin_type;
	void *result;                /* get and fetching operations: where the target's data go */
	MPI_Count result_count;
	struct adi_type *result_type;
	int rank;
	MPI_Aint offset;             /* of the target's first element from the start of its memory; dynamic: the address */
	MPI_Count count;
	struct adi_type *type;       /* at the target */
	struct adi_op *op;
	enum adi_basic basic;        /* of accumulates */
	MPI_Request *request;        /* of MPI_Rput and the like; NULL: none */
};
int window_remote_put(struct adi_win *win, const struct window_access_args *args);
int window_remote_get(struct adi_win *win, const struct window_access_args *args);
int window_remote_accumulate(struct adi_win *win, const struct window_access_args *args);
int window_remote_swap(struct adi_win *win, const struct window_access_args *args, const void *compare);
/* Handler of WINDOW_REPLY. */
int window_on_reply(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
/* The target has died: its operations that wait for data complete with class. */
void window_fetches_lost(struct adi_win *win, int rank, int class);
void window_remote_end(void);

/* Data of a get have arrived, or the connection has failed. context: struct window_fetch. */
void window_fetch_arrived(void *context, int error, size_t bytes);

/* ---- adapter.c: operations by the adapter ---- */

/* Returns whether the adapter can reach the target's memory. If this process could have the key and does not, asks for it. */
bool window_adapter_ready(struct adi_win *win, int rank);
/* Start a put or a get of the bytes offset bytes behind the start of the target's memory. Return false if that is not
 * possible: use messages. memory (owned; may be NULL) is kept until the put is complete; then request (may be NULL) completes. */
bool window_adapter_put(struct adi_win *win, int rank, uint64_t offset, const struct iovec *data, void *memory,
			struct adi_request *request);
bool window_adapter_get(struct adi_win *win, int rank, uint64_t offset, struct window_fetch *fetch);
/* Waits until all operations of the adapter on this target are complete. The error is that of the target's death. */
int window_adapter_wait(struct adi_win *win, int rank);
/* Waits until no target owes an answer to WINDOW_ASK, so that the window can be freed. */
void window_keys_wait(struct adi_win *win);
int window_on_ask(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int window_on_key(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
void window_adapter_start(void);
void window_adapter_end(void);

/* ---- sends.c: sends whose memory is in use ---- */

/* Sends. Until the send is complete, memory (owned; may be NULL) is kept, and *sending is one higher. Then request (may be NULL)
 * completes; if *sending is 0 then, window_origin_idle(origin) is called (origin may be NULL). Returns an error class; memory is
 * freed also on failure; request is then the caller's. */
int window_send(struct adi_peer *peer, unsigned type, const void *header, size_t header_len, const struct iovec *iov, int n,
		unsigned flags, void *memory, int *sending, struct adi_win_origin *origin, struct adi_request *request);
/* A message without payload. to: the target or origin by its rank in the window. */
int window_send_control(struct adi_win *win, int rank, unsigned type, uint32_t value);
/* At the end, when no window is left. */
void window_sends_end(void);
/* An error of the connection to a peer. Returns its class. */
int window_peer_error(struct adi_win *win, int rank, int error);
/* The error class of a process of the window that has died, or MPI_SUCCESS. Opens a connection, which would report its death. */
int window_member_check(struct adi_win *win, int rank);

/* ---- target.c: handlers of operations at the target ---- */

int window_on_put(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int window_on_get(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int window_on_accumulate(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int window_on_type(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
void window_target_end(void);
/* Whether bytes from address on lie in one attached region. */
bool window_attached(const struct adi_win *win, const char *address, MPI_Aint bytes);

/* ---- passive.c, active.c: synchronisation ---- */

/* Reads a message with struct window_control. NULL: invalid (logged). */
struct adi_win *window_control_read(const ch3_incoming_t *incoming, struct window_control *control);
/* Logs that a peer sent an invalid message (`what`) to a window. Returns -EPROTO. */
int window_violation(const ch3_incoming_t *incoming, const char *what);
int window_on_lock(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int window_on_grant(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int window_on_flush(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int window_on_ack(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int window_on_post(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int window_on_complete(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
/* Called when origin->pending has become 0: answers what waited for it. */
void window_origin_idle(struct adi_win_origin *origin);
/* Checks that an epoch allows operations on the target, and gets its lock if lock_all has not got it yet. */
int window_may_access(struct adi_win *win, int rank, bool passive);
/* Waits until all operations on one target (rank) or on all targets (-1) are complete at the target. */
int window_flush(struct adi_win *win, int rank);
/* Waits until all buffers of operations on one target or on all targets (-1) can be reused. */
int window_flush_local(struct adi_win *win, int rank);
/* A peer has died. Nobody gets a lock that excludes its lock, because the memory may be half written. */
void window_origin_died(struct adi_win *win, int rank);

/* Whether an operation on rank is done by local.c. */
static inline bool window_is_local(const struct adi_win *win, int rank)
{
	return win->direct || rank == win->comm->rank;
}

#endif
