/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread's connection to a server: which connection a call takes (route.c), the call and its answer (link.c), and calls that are
 * gathered before they are sent (delay.c).
 *
 * At its first call to a server, each thread of the program gets a connection of its own: one that an ended thread has left, or a
 * new one. Sending a call takes no lock that another thread of the program takes, but for short ones of early.c, held.c and done.c.
 */
#ifndef RC_CLIENT_LINK_H
#define RC_CLIENT_LINK_H

#include "cuda_remote/api/calls.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/fill_way.h"
#include "cuda_remote/wire.h"

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct rc_link {
	ch3_t *engine;
	ch3_vc_t *vc;
	struct rc_session *session;
	int error;              /* the connection failed with this */
	uint64_t waiting;       /* number of the call that waits for its reply; 0: none */
	bool answered;
	bool own;               /* of a thread of this library, see struct rc_thread */
	bool inside;            /* the thread is in the engine: if the thread ends now, it was cancelled there */
	uint64_t thread_work;   /* number of the last call that may have used the per-thread default stream; 0: none */
	uint64_t thread_done;   /* in that stream all work of calls up to this number is complete */
	uint32_t thread_context; /* of those calls */
	bool thread_kept;       /* that stream may keep more than work, or it is one of several: of several contexts */
	struct rc_link *next_idle;
	struct rc_wire_reply head;
	uint8_t *reply;         /* results of the last call that waited: reply_len bytes, valid until the next such call */
	size_t reply_len, reply_size;
	uint8_t *scratch;       /* RC_CHUNK_MAX bytes for scattered copies, allocated when first needed */
	bool scratch_taken;     /* by a chunk that is being received */
	unsigned receiving;     /* chunks that are being received, all of the copy receiving_copy */
	uint64_t receiving_copy;
	uint64_t chunks;        /* to the device, and staged chunks to the host, so far */
	uint64_t freed;         /* all chunks before this one have left their slots */
	bool asking;            /* a WANT is not answered yet */
	uint64_t staging;       /* handle of the staging area; 0: there is none */
	uint8_t *stage;         /* RC_WINDOW slots of RC_CHUNK_MAX bytes, or NULL */
	struct hr_fill_way fill_way; /* of these slots */
	bool stage_tried;       /* to make the staging area */
	uint32_t context;       /* index of the context that the next call is made in, set by rc_link_get */
	/* Of done.c. */
	uint64_t awaited, awaited_stream; /* mark and stream of the recording that the last call waits for */
	uint64_t awaited_start;           /* mark of the recording from which it asks for the time; 0: none */
	uint64_t copied_in;     /* stream of the last copy_up */
	uint64_t quiet_number;  /* the session's last call when the client last answered one itself */
	uint64_t quiet_since;   /* ns, coarse clock: when it had answered QUIET_ANSWERS since that call */
	unsigned quiet_answers; /* since that call */
	/* Of delay.c. */
	bool direct;            /* up, and a send is no system call: nothing is delayed */
	bool gathers;           /* up, over TCP */
	pthread_mutex_t sending;
	bool delayed;           /* calls are gathered and not sent; atomic, changed under sending */
	bool listed;            /* among the links that the thread of delay.c looks at */
	struct rc_link *next_delaying; /* in that list; under its lock */
	uint64_t sent;          /* when the last call was sent that could have been delayed, ns */
	char server[300];       /* name of the server, for messages */
};

/* Connects over the socket in attr, which a finished handshake gave. engine was opened for the card that the handshake
 * sent. Takes over engine and socket, also when it fails. */
CUresult rc_link_open(struct rc_session *session, ch3_t *engine, const hr_card_t *card,
		      const hr_connect_attr_t *attr, const char *server, struct rc_link **link);
void rc_link_close(struct rc_link *link);
/* The link's thread ends: keeps the link for another thread of the program, or closes it. */
void rc_link_leave(struct rc_link *link);

/* The calling thread's connection to a session. context: the one that the next call is made in, or 0. */
CUresult rc_link_to(struct rc_session *session, uint64_t context, struct rc_link **link);

/* ---- route.c ---- */

/*
 * The session of a call: that of the handles and addresses among its arguments, else that of the current context. A route
 * begins as { NULL }. With one session nothing is looked up.
 */
struct rc_route {
	struct rc_session *session; /* NULL: no argument has decided */
	uint64_t context;           /* of the argument that has decided; 0: it has none */
	bool by_address;            /* an address has decided, not a handle */
};

/* CUDA_SUCCESS if handle is live (rc_handle_check) and of the route's session; CUDA_ERROR_INVALID_HANDLE, for contexts
 * CUDA_ERROR_INVALID_CONTEXT. CUDA's own streams belong to the session of an address among the arguments, else to that of
 * the current context. */
CUresult rc_route_handle(struct rc_route *route, enum rc_kind kind, uint64_t handle);
/* Routes the call to the session that has the memory at this address. An address of other memory, such as host memory, leaves the
 * route as it is. CUDA_ERROR_NOT_SUPPORTED: the route has another session. */
CUresult rc_route_address(struct rc_route *route, uint64_t address);
/* Replaces a device's number by its server's number, and routes the call to this server. CUDA_ERROR_INVALID_DEVICE: no such
 * device; CUDA_ERROR_NOT_SUPPORTED: the route has another session. */
CUresult rc_send_device(struct rc_route *route, int *device);
/* The calling thread's connection for the call. need_context: CUDA_ERROR_INVALID_CONTEXT if the thread has no current
 * context. */
CUresult rc_link_get(const struct rc_route *route, bool need_context, struct rc_link **link);
/* If an address sent the call to another session than the current context's, waits until the call is done: no stream of the
 * current context would wait for it. */
CUresult rc_route_settle(const struct rc_route *route);
/* CUDA_SUCCESS if the handle is of the current context's session; different if it is of another one. */
CUresult rc_route_same(enum rc_kind kind, uint64_t handle, CUresult different);
/* CUDA_ERROR_INVALID_HANDLE if the object is of another context than the stream. */
CUresult rc_route_in_stream(enum rc_kind kind, uint64_t handle, CUstream stream);

/* ---- link.c: calls and packets ---- */

/*
 * Sends a call: head, followed in memory by the first len - sizeof *head bytes of its arguments (len <= CH3_HEADER_MAX),
 * then the pieces iov. Numbers it. The pieces may be reused on return. rc_link_call waits for the answer; link->reply has
 * the results.
 */
CUresult rc_link_post(struct rc_link *link, enum rc_call function, uint16_t flags, struct rc_wire_call *head, size_t len,
		      const struct iovec *iov, int n);
CUresult rc_link_call(struct rc_link *link, enum rc_call function, uint16_t flags, struct rc_wire_call *head, size_t len,
		      const struct iovec *iov, int n);

/* Posts a call that must not be issued while other work is under way, and that leaves no work when the next call is issued.
 * *posted false: nothing was sent, as work of earlier calls may be under way. */
CUresult rc_link_post_settled(struct rc_link *link, enum rc_call function, struct rc_wire_call *head, size_t len,
			      const struct iovec *iov, int n, bool *posted);
/* The work of all calls up to this number that were made in this context is complete. */
void rc_link_settle(struct rc_session *session, uint64_t context, uint64_t number);
/* True if the work of all calls so far is known to be complete. */
bool rc_link_is_settled(const struct rc_session *session);
/* The work of all calls up to the number returned is complete. */
uint64_t rc_link_settled(const struct rc_session *session);

/* Takes a call's number. It must be sent afterwards by rc_link_post_numbered; what else the call needs was done by
 * rc_link_prepare. */
CUresult rc_link_prepare(struct rc_link *link, enum rc_call function, struct rc_wire_call *head);
void rc_link_number(struct rc_link *link, struct rc_wire_call *head);
CUresult rc_link_post_numbered(struct rc_link *link, enum rc_call function, struct rc_wire_call *head, size_t len,
			       const struct iovec *iov, int n);
/* As rc_link_call, for a question to the worker itself: the answer does not report failures of earlier calls. */
CUresult rc_link_ask(struct rc_link *link, enum rc_call function, struct rc_wire_call *head, size_t len);

/* Sends a packet; the bytes may be reused once *request (NULL: at once) is complete. */
CUresult rc_link_packet(struct rc_link *link, enum rc_packet type, const void *header, size_t len, const struct iovec *iov,
			int n, ch3_request_t **request);
/* One step of progress; sleeps while there is nothing to do. */
CUresult rc_link_progress(struct rc_link *link);
/* Waits until a request is complete, and frees it. NULL is allowed. */
CUresult rc_link_finish(struct rc_link *link, ch3_request_t *request);

/* Call it when a stream has come to work that the calling thread does for it. The program's writes and reads before the calls that
 * let the stream go on then precede what the thread does next. */
void rc_link_see_calls(const struct rc_session *session);
/* One more message of the data connection is complete: its bytes are stored. */
void rc_link_chunk_arrived(struct rc_session *session);
/* Waits until this number of messages of the data connection is complete. */
CUresult rc_link_await_chunks(struct rc_link *link, uint64_t shipped);

/* A thread that makes calls over a link before it has read the reply to an earlier call keeps the reply meanwhile. */
struct rc_kept_reply {
	struct rc_wire_reply head;
	uint8_t *reply;
	size_t len, size;
};
void rc_link_keep_reply(struct rc_link *link, struct rc_kept_reply *kept);
void rc_link_return_reply(struct rc_link *link, const struct rc_kept_reply *kept);

/* The reply breaks the protocol: logs that and ends the session. */
CUresult rc_link_broken(struct rc_link *link, enum rc_call function);

/* ---- delay.c ---- */

/* Sends a call, as ch3_send does. A call that does not wait may be gathered and sent a little later. Returns a negated errno. */
int rc_delay_send(struct rc_link *link, enum rc_call function, uint16_t flags, struct rc_wire_call *head, size_t len,
		  const struct iovec *iov, int n, ch3_request_t **request);
/* Sends what the link has gathered. The link's thread calls it before it uses the engine in any other way. */
void rc_delay_flush(struct rc_link *link);
/* The link's thread ends. What cannot be sent now stays delayed, and the thread of delay.c sends it. */
void rc_delay_leave(struct rc_link *link);
/* Sends what all links have gathered: the calling thread is about to wait, maybe for them. */
void rc_delay_flush_all(void);
/* The link is about to be closed. */
void rc_delay_end(struct rc_link *link);

#endif
