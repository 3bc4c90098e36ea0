/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internal declarations of message/.
 *
 *	queue.c        the hash table of queues, for posted receives and for unexpected messages
 *	unexpected.c   messages without a receive, in tables by envelope
 *	match.c        matching: the handlers of incoming messages, posting receives, deaths of peers
 *	deliver.c      moves the data of matched messages into the buffers of their receives
 *	send.c         sends, to other processes and to this process itself
 *	flow.c         bounds the bytes of unexpected messages
 *	hold.c         bounds the number of announced messages without receives
 *	cancel.c       takes sent messages back
 *	request.c      requests: allocation, completion, release, errors, statuses
 *	others         MPI's functions by topic
 *
 * A message to another process is a packet of type ADI_PACKET_MESSAGE with struct adi_envelope as header; the connection
 * identifies the sender. Messages of partitioned.c have type ADI_PACKET_PARTITIONED and struct adi_partitioned_envelope. A message
 * of this process to itself uses the same queues without a packet.
 */
#ifndef ADI_MESSAGE_INTERNAL_H
#define ADI_MESSAGE_INTERNAL_H

#include "adi/bindings/functions.h"
#include "adi/message/request.h"

#include <assert.h>

enum { ADI_PACKET_PARTITIONED = ADI_PACKET_CREDIT + 1, ADI_PACKET_CANCEL, ADI_PACKET_CANCELLED, ADI_PACKET_HOLDS,
       ADI_PACKET_MORE };
static_assert((int)ADI_PACKET_MORE <= (int)ADI_PACKET_MESSAGE_LAST, "packet types of messages");

/* The header of a message on the wire. */
struct adi_envelope {
	uint32_t context; /* sender: identifies communicator and kind of operation; receiver: compares with receives */
	int32_t tag;      /* sender: >= 0; receiver: compares with receives */
};
static_assert(sizeof(struct adi_envelope) == 8, "wire format");

/* The bytes of a struct adi_envelope. The next load of an envelope is of 8 bytes. If it was stored as two halves, processors
 * do not forward the stores to the load: it waits until all earlier stores are in the cache, those to the ring too. */
static inline uint64_t adi_envelope_word(uint32_t context, int32_t tag)
{
	return (uint64_t)(uint32_t)tag << 32 | context; /* little-endian: ch3/packet.h */
}

struct adi_partitioned_envelope {
	struct adi_envelope envelope;
	uint32_t number; /* sender: of a plan: how many MPI_Psend_init with this envelope came before, plus 1; of a partition: the
	                  * id in the plan; receiver: compares it */
};
static_assert(sizeof(struct adi_partitioned_envelope) == 12, "wire format");

/* The entries of an unexpected message in the table by envelope for receives with wildcards: of source, of tag, of both. Made
 * only when such a receive has searched for long. */
enum { ADI_BY_TAG, ADI_BY_SOURCE, ADI_BY_CONTEXT, ADI_INDEXES };
struct adi_unexpected_index {
	struct adi_queued node[ADI_INDEXES];
	struct adi_unexpected *message;
};

/* An unexpected message. MPI_Message is a pointer to it. */
struct adi_unexpected {
	struct adi_object object;               /* after a matching probe */
	struct adi_unexpected *next, *previous; /* in order of arrival */
	struct adi_queued node;                 /* in the table, with the message's key */
	struct adi_unexpected_index *index;     /* NULL: none was made */
	size_t bytes;
	uint64_t number;             /* as in the sender's request */
	ch3_rndv_t *rndv;            /* not NULL: rendezvous, the payload is still at the sender */
	struct adi_request *sender;  /* not NULL: of this process itself, the data are still in its buffer */
	struct adi_request *claimed; /* a receive that matched before the payload had arrived */
	struct adi_comm *comm;       /* after a matching probe; holds a reference */
	int rank;                    /* after a matching probe: the source in comm */
	bool cancelled;              /* by the sender, before the payload had arrived; in no table */
	bool arrived;                /* the payload is complete, or its transfer failed with error */
	int error;
	char payload[];
};

/* ---- unexpected.c ---- */

/* Appends a message of which room bytes are stored here. NULL: no memory. */
struct adi_unexpected *adi_unexpected_append(const struct adi_key *key, size_t bytes, size_t room);
extern struct adi_unexpected *adi_unexpected_first; /* the oldest */
struct adi_unexpected *adi_unexpected_search(const struct adi_key *want);
/* The first message that matches, or NULL. The key may have wildcards. */
static inline struct adi_unexpected *adi_unexpected_find(const struct adi_key *want)
{
	return adi_unexpected_first ? adi_unexpected_search(want) : NULL;
}
/* The message of a world rank with a number, or NULL. */
struct adi_unexpected *adi_unexpected_numbered(int source, uint64_t number);
/* Removes a message from the tables. */
void adi_unexpected_remove(struct adi_unexpected *message);
/* Frees a message that is in no table. */
void adi_unexpected_free(struct adi_unexpected *message);
void adi_unexpected_start(void);
void adi_unexpected_end(void);

/* ---- match.c ---- */

/* Removes the first posted receive that matches a message. NULL: there is none. */
struct adi_request *adi_match_posted(const struct adi_key *key);
/* Posts a receive whose key is set, or gives it a message. */
void adi_receive_post(struct adi_request *request);
/* Returns 0 if a receive of messages from world rank source (or any) can still match a message, else a negated errno
 * value. Opens the connection to the source, because only a connection reports the death of a peer. */
int adi_source_lost(const struct adi_comm *comm, int source);

/* ---- deliver.c ---- */

/* Gives an unexpected message, which is in no table, to a receive. */
void adi_deliver_unexpected(struct adi_request *request, struct adi_unexpected *message);
/* CH3's completion callback of an eager payload that is received into an unexpected message. */
void adi_on_unexpected(void *context, int error, size_t bytes);
/* Accepts the payload of a rendezvous; again later if too many are being received. Without memory the receive fails. */
void adi_deliver_rndv(struct adi_request *request, ch3_rndv_t *rndv);
/* Gives the data of a send of this process to a receive, and completes both. */
void adi_deliver_self(struct adi_request *send, struct adi_request *receive);
/* Describes where some = min(bytes, capacity) bytes of a receive go. Returns the number of pieces; ADI_PACK if they are more
 * than n or short: adi_receive_unpack takes the bytes in order; or -ENOMEM. */
enum { ADI_PACK = -1 };
int adi_receive_pieces(struct adi_request *request, struct iovec *piece, int n);
void adi_receive_unpack(void *request, const void *from, size_t len);
/* CH3's completion callback of a payload that is received into the buffer of its receive. */
void adi_on_received(void *context, int error, size_t bytes);
void adi_receive_complete(struct adi_request *request, int error);
/* Copies a whole message into the buffer of its receive and completes the receive. The length of the message has been stored
 * in the request. Reads each byte once, because the sender can change the bytes at any time. */
void adi_receive_bytes(struct adi_request *request, const void *bytes);

/* Stores the envelope of the matching message in a receive. */
static inline void adi_receive_claim(struct adi_request *request, const struct adi_key *key, size_t bytes)
{
	request->node.key = *key;
	request->bytes = bytes;
}

/* ---- send.c and receives ---- */

/* Sets all fields of a message but those of the object and of a persistent request. The rank is valid. */
static inline void adi_message_prepare(struct adi_request *request, int kind, struct adi_comm *comm, uint32_t context, int rank,
				       int tag, const void *buf, MPI_Count count, struct adi_type *type)
{
	request->kind = kind;
	request->comm = comm;
	request->buf = (void *)(uintptr_t)buf;
	request->count = count;
	request->type = type;
	request->capacity = (size_t)count * (size_t)type->size;
	request->flat = type->contiguous || request->capacity == 0;
	request->data = (char *)((uintptr_t)buf + (uintptr_t)type->true_lb);
	request->send = NULL;
	request->rndv = NULL;
	request->held = NULL;
	request->posted = request->withheld = request->sent_at_once = request->cancelling = false;
	request->context = context;
	request->rank = rank;
	request->tag = tag;
	request->node.key.number = 0;
}
/* Starts a prepared receive, which may have been started before. */
static inline void adi_receive_go(struct adi_request *request)
{
	request->complete = request->cancelled = false;
	request->class = MPI_SUCCESS;
	request->bytes = 0;
	request->node.key.context = request->context;
	request->node.key.tag = request->tag;
	if (!ADI_LIKELY(request->rank != MPI_PROC_NULL)) {
		request->complete = true;
		return;
	}
	request->node.key.source = request->rank == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : adi_comm_world(request->comm, request->rank);
	adi_receive_post(request);
}
/* Starts a prepared message, which may have been started before. */
void adi_message_go(struct adi_request *request, enum adi_send_mode mode);
void adi_send_complete(struct adi_request *request, int class);

/* ---- cancel.c ---- */

/* Cancels a send. It is complete when the receiver has answered. */
void adi_send_cancel(struct adi_request *request);
extern uint64_t adi_number_self; /* messages of this process to itself so far */
/* The number of the latest message to a world rank. */
uint64_t adi_number_sent(int world);
/* The number of a message from a world rank that arrives now. */
uint64_t adi_number_arrived(int world);
/* The cancellations that a dead peer has not answered have failed. */
void adi_cancel_lost(int world);
int adi_cancel_start(void);

/* ---- flow.c ---- */

/* Bytes of eager messages between this process and a peer, each counted with ADI_FLOW_MESSAGE more. */
struct adi_flow {
	uint64_t sent, allowed;      /* sender: may send eagerly until sent has reached allowed */
	uint64_t credit;             /* sender: what allowed is while no message is held: hold.c */
	uint64_t consumed, reported; /* receiver: of messages that have found their receives; what the peer knows of it */
	bool announces;              /* sender: the peer wants long messages announced, see adi_flow_announces */
	bool told;                   /* receiver: it has asked the peer to announce long messages */
	unsigned score;              /* receiver: see adi_flow_note_long */
	unsigned receives;           /* sender: its posted receives of more than ADI_FLOW_LONG bytes from the peer */
};
#define ADI_FLOW_MESSAGE 176
static_assert(sizeof(struct adi_unexpected) + 2 * sizeof(size_t) <= ADI_FLOW_MESSAGE, "what a message takes beside its data");
extern struct adi_flow *adi_flow; /* [adi_job.size] */
extern uint64_t adi_flow_limit;
extern uint64_t adi_eager_max;     /* longest message that ch3 sends eagerly */
extern unsigned adi_flow_announcing; /* number of peers that want long messages announced */
#define ADI_FLOW_LONG 4096u /* bytes; a longer unexpected message costs more than a rendezvous */

/* match.c: Returns whether a receive of more than ADI_FLOW_LONG bytes from a world rank is posted that has no message yet. */
bool adi_receives_wait(int world);

/* Returns whether a nonblocking send to a world rank should use rendezvous because such messages have come before their receives.
 * Only while this process has such a receive from that rank posted: a program may rely on it that a message of eager size leaves
 * before the program posts a receive. */
static inline bool adi_flow_announces(int world, size_t bytes)
{
	return adi_flow_announcing && bytes > ADI_FLOW_LONG && adi_flow[world].announces && adi_receives_wait(world);
}

/* Flags for ch3_send of a message to a world rank: CH3_SEND_SYNC if the peer holds too many unexpected messages. */
static inline unsigned adi_flow_send(int world, size_t bytes)
{
	if (bytes > adi_eager_max)
		return 0;
	struct adi_flow *flow = &adi_flow[world];
	if (flow->sent >= flow->allowed)
		return CH3_SEND_SYNC;
	flow->sent += bytes + ADI_FLOW_MESSAGE;
	return 0;
}
/* Sends a short message of contiguous data if the pipe has room. Returns false if nothing was sent: then use ch3_send. */
static inline bool adi_send_short(const struct adi_peer *peer, uint32_t context, int tag, const void *data, size_t bytes)
{
	struct adi_flow *flow = &adi_flow[peer->rank];
	uint64_t envelope = adi_envelope_word(context, tag);
	if (flow->sent >= flow->allowed ||
	    !ch3_send_short(peer->vc, ADI_PACKET_MESSAGE, &envelope, sizeof envelope, data, bytes))
		return false;
	flow->sent += bytes + ADI_FLOW_MESSAGE;
	return true;
}
void adi_flow_report(int world);
/* A message of a peer has arrived that is longer than ADI_FLOW_LONG, and not longer than adi_eager_max. found: its receive was
 * posted. */
void adi_flow_note_long(int world, bool found, bool rendezvous);
static inline void adi_flow_note(int world, size_t bytes, bool found, bool rendezvous)
{
	if (bytes > ADI_FLOW_LONG && bytes <= adi_eager_max)
		adi_flow_note_long(world, found, rendezvous);
}
/* An eager message of a peer has found its receive. */
static inline void adi_flow_consumed(int world, size_t bytes)
{
	struct adi_flow *flow = &adi_flow[world];
	flow->consumed += bytes + ADI_FLOW_MESSAGE;
	if (flow->consumed - flow->reported > adi_flow_limit / 4)
		adi_flow_report(world);
}
/* While messages are held, no later one may overtake them, so none is sent eagerly. */
static inline void adi_flow_freeze(int world)
{
	struct adi_flow *flow = &adi_flow[world];
	flow->allowed = flow->sent < flow->allowed ? flow->sent : flow->allowed;
}
static inline void adi_flow_thaw(int world)
{
	adi_flow[world].allowed = adi_flow[world].credit;
}
int adi_flow_start(void);
void adi_flow_end(void);

/* ---- hold.c ---- */

/* The announcements between this process and a peer. */
struct adi_hold {
	struct adi_request *first, *last; /* sender: sends that are held; last is valid if first is not NULL */
	uint64_t announced, permitted;    /* sender: holds messages when announced has reached permitted */
	bool told;                        /* sender: has said that it holds messages, and has no answer yet */
	bool holds;                       /* receiver: the peer has said so, and has no answer yet */
	uint64_t arrived, matched;        /* receiver: announcements, and those of them that receives have matched */
	uint64_t granted;                 /* receiver: as permitted of the peer */
};
#define ADI_HOLD_MOST 4096u /* announcements without receives, while no receive or probe waits for another message */
extern struct adi_hold *adi_hold; /* [adi_job.size] */
extern unsigned adi_holders;      /* number of peers with holds */

static inline bool adi_announced(size_t bytes, unsigned flags)
{
	return flags & CH3_SEND_SYNC || bytes > adi_eager_max;
}
/* Whether messages with a context may be held: those of collectives and those that create communicators may not. A barrier would
 * otherwise have to wait until the receiver has permitted all messages that are held. */
static inline bool adi_hold_may(uint32_t context)
{
	return context % ADI_CONTEXT_STEP == 0 && context != ADI_CONTEXT_STRINGTAG;
}
/* Whether a message to a world rank, of a context that may be held, must be held. */
static inline bool adi_hold_needed(int world, size_t bytes, enum adi_send_mode mode)
{
	const struct adi_hold *hold = &adi_hold[world];
	bool full = hold->announced >= hold->permitted && !adi_job.peer[world].error;
	return hold->first || (full && (mode == ADI_SEND_SYNCHRONOUS || adi_flow[world].sent >= adi_flow[world].allowed ||
					adi_announced(bytes, 0)));
}
/* A message has been handed to ch3 with these flags. */
static inline void adi_hold_sent(int world, size_t bytes, unsigned flags)
{
	adi_hold[world].announced += adi_announced(bytes, flags);
}
void adi_hold_append(int world, struct adi_request *request);
/* Takes back a send that is held. */
void adi_hold_remove(struct adi_request *request);
/* An announcement has arrived; it has been matched, or cancelled. */
static inline void adi_hold_arrived(int world)
{
	adi_hold[world].arrived++;
}
void adi_hold_matched(int world);
/* A receive or a probe waits for a message of a world rank, or MPI_ANY_SOURCE. Call it if adi_holders is not 0. */
void adi_hold_wanted(int source);
/* send.c: sends a message that is held no longer. */
void adi_send_held(struct adi_request *request);
/* match.c: whether a posted receive could match a message of a world rank. */
bool adi_receive_waits(int world);
/* The sends to a dead peer that are held have failed. */
void adi_hold_lost(const struct adi_peer *peer);
int adi_hold_start(void);
void adi_hold_end(void);

/* ---- request.c ---- */

/* A request that is complete and that nobody frees: for operations that end at once. */
extern struct adi_request adi_request_none;

/* Notes which message a request has sent, for MPI_Cancel. */
void adi_request_number(struct adi_request *request);
/* From the pool; only the object is initialised, all else is zero. NULL: no memory. */
struct adi_request *adi_request_take(void);
int adi_error_no_request(void) __attribute__((cold));
/* Initialises the fields of a message that adi_message_prepare and adi_message_go do not set, but for the object. */
static inline void adi_message_begin(struct adi_request *request)
{
	request->persistent = request->active = request->freed = request->owned = false;
	request->of = NULL;
	request->owner = NULL;
}

/*
 * The pool of requests. A request in the pool has the values of adi_request_make_sent, so that adi_request_sent has little to
 * store: its stores come between those of messages into shared memory, and delay them (docs/decisions/shared-memory.md).
 */
extern struct adi_request *adi_request_pool;
extern int adi_requests_taken; /* requests that are not in the pool */
bool adi_request_pool_grow(void) __attribute__((cold));

/* Gives a request the values of a complete send. */
static inline void adi_request_make_sent(struct adi_request *request, uint16_t generation)
{
	request->object = (struct adi_object){ 0, 1, 0, 0, generation };
	request->kind = ADI_SEND;
	request->complete = true;
	request->cancelled = request->persistent = request->active = request->freed = request->owned = false;
	request->flat = request->posted = request->withheld = false;
	request->sent_at_once = true;
	request->cancelling = false;
	request->class = MPI_SUCCESS;
	request->comm = NULL;
	request->of = NULL;
	request->owner = NULL;
	request->type = NULL;
	request->send = NULL;
}

/* Takes a request from the pool. The caller sets the object's magic and the fields that differ. NULL: no memory. */
static inline struct adi_request *adi_request_from_pool(void)
{
	struct adi_request *request = adi_request_pool;
	if (!ADI_LIKELY(request)) {
		if (!adi_request_pool_grow())
			return NULL;
		request = adi_request_pool;
	}
	adi_request_pool = request->next;
	adi_requests_taken++;
	return request;
}

/* From the pool, for a message: the caller calls adi_message_prepare, which initialises the other fields. NULL: no memory. */
static inline struct adi_request *adi_request_take_message(void)
{
	struct adi_request *request = adi_request_from_pool();
	if (!ADI_LIKELY(request))
		return NULL;
	request->object.magic = ADI_MAGIC + ADI_REQUEST;
	request->sent_at_once = false;
	return request;
}

/* Returns a complete request for the message with this number to a world rank. It names the message for MPI_Cancel. */
static inline struct adi_request *adi_request_sent(int world, uint64_t number)
{
	struct adi_request *request = adi_request_from_pool();
	if (!ADI_LIKELY(request))
		return &adi_request_none; /* without memory, the message cannot be cancelled */
	request->object.magic = ADI_MAGIC + ADI_REQUEST;
	request->world = world;
	request->number = number;
	return request;
}

/* Whether adi_request_recycle may free a complete request. */
static inline bool adi_request_is_plain(const struct adi_request *request)
{
	return !(request->persistent | request->owned | (uintptr_t)request->of | (unsigned)request->object.number);
}

/* Frees a request without an error, complete, plain and not freed by the program; not adi_request_none. */
static inline void adi_request_recycle(struct adi_request *request)
{
	request->object.magic = 0;
	request->object.generation = (request->object.generation + 2) % ADI_REQUEST_ALIGN;
	if (!request->sent_at_once) { /* the other fields have the values of adi_request_make_sent already */
		request->kind = ADI_SEND;
		request->cancelled = request->flat = false;
		request->sent_at_once = true;
		request->comm = NULL;
		request->type = NULL;
	}
	request->next = adi_request_pool;
	adi_request_pool = request;
	adi_requests_taken--;
}

void adi_request_own_any(struct adi_request *request);
/* Makes the request of a message hold references to its communicator and type. Predefined objects are never freed. */
static inline void adi_request_own(struct adi_request *request)
{
	if (!ADI_LIKELY((!request->comm || request->comm->object.constant) && (!request->type || request->type->object.constant)))
		adi_request_own_any(request);
}
/* What happens with a request that the program has freed when it completes. */
void adi_request_drop(struct adi_request *request);
/* Fills the status of a complete request. Returns the error class of the request's own status function. */
int adi_request_status(struct adi_request *request, MPI_Status *status);
/* The error class of a complete request; keeps the text and the communicator for adi_fail. */
int adi_request_error(struct adi_request *request);
void adi_requests_end(void);

static inline bool adi_request_inactive(const struct adi_request *request)
{
	return request->persistent && !request->active;
}
/* As adi_request_test, without a call if the request is complete or cannot be complete. */
static inline bool adi_request_done_now(struct adi_request *request)
{
	return request->complete || (request->send && adi_request_test(request));
}
static inline struct adi_request *adi_request_at(MPI_Request handle)
{
	return adi_object_at(handle, ADI_REQUEST);
}
int adi_error_request(MPI_Request handle, const char *argument) __attribute__((cold));

/* generalized.c: ends a generalized request. Returns the result of its free function. */
extern const struct adi_request_class adi_generalized_class;
int adi_generalized_free(struct adi_request *request);

/* ---- arguments, pt2pt.c ---- */

int adi_check_message(const void *buf, MPI_Count count, const struct adi_type *type, int tag, bool receive)
	__attribute__((cold));

/* Checks the arguments of a send. The binding has checked that count >= 0. */
static inline int adi_check_send(const void *buf, MPI_Count count, const struct adi_type *type, int dest, int tag,
				 const struct adi_comm *comm)
{
	int class = adi_check_rank(comm, dest, "dest", true, false);
	if (!class && !ADI_LIKELY(tag >= 0 && buf && count <= INT32_MAX && type->size <= INT32_MAX))
		class = adi_check_message(buf, count, type, tag, false);
	return class;
}

static inline int adi_check_receive(const void *buf, MPI_Count count, const struct adi_type *type, int source, int tag,
				    const struct adi_comm *comm)
{
	int class = adi_check_rank(comm, source, "source", true, true);
	if (!class && !ADI_LIKELY((tag >= 0 || tag == MPI_ANY_TAG) && buf && count <= INT32_MAX && type->size <= INT32_MAX))
		class = adi_check_message(buf, count, type, tag, true);
	return class;
}

/* buffered.c: copies a message into the attached buffer and sends it from there. Returns an error class. */
int adi_buffered_send(struct adi_comm *comm, int rank, int tag, const void *buf, MPI_Count count, struct adi_type *type);
void adi_buffered_end(void);
void adi_partitioned_end(void);

#endif
