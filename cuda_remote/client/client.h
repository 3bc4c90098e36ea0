/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The forwarding libcuda.so.1, inside: what its files share. Layout:
 *
 *	session.c   the sessions, one for each server: cuInit, devices as described by hello, fork
 *	route.c     which session a call belongs to
 *	link.c      a thread's connection to a server: calls out, answers, chunks and text in
 *	handle.c    handles, and the client's data of their objects
 *	alias.c     handles of objects inside of others
 *	context.c   current context, primary contexts       device.c  device queries
 *	allocate.c  device memory: addresses, budget        window.c  windows of addresses
 *	pinned.c    memory shared with workers on this host  shared_window.c  the addresses of such memory
 *	memory.c    table of allocations                    copy.c    copies between host and device
 *	data/       the connection for the bytes of asynchronous copies
 *	done.c      what is known to be complete
 *	early.c     small copies that are sent before their stream has come to them
 *	held.c      whether a stream may be held            delay.c   calls that are gathered before they are sent
 *	chunks.c    chunks on a connection, staging area    rows.c    the bytes of a copy on the host
 *	virtual.c   virtual memory management               stream_memory.c  streams that wait for or write values
 *	texture.c   textures and surfaces                   array_copy.c  copies with arrays
 *	managed.c   managed memory                          hostmem.c  pinned and registered memory
 *	mirror/     managed memory of servers on other hosts
 *	module.c    modules, libraries, kernels             launch.c  launches
 *	ipc/        memory and events of other processes    small/    events of contexts, launches of CUDA 3.2,
 *	                                                              tensor maps, notifications, references' arrays
 *	linker.c    the JIT linker                          image.c   images and JIT options
 *	stream.c    streams and events                      hostfn.c  host functions
 *	green/      green contexts and device resources
 *	pool.c      memory pools                            host_pool.c  pools of managed and of host memory
 *	copy_batch.c  batches of copies
 *	peer/       copies between servers, and streams of one server that wait for another (peer.h)
 *
 * At its first call to a server, each thread of the program gets a connection of its own: one that an ended thread has left, or a
 * new one. Sending a call takes no lock that another thread of the program takes, but for short ones of early.c, held.c and
 * done.c. Functions here return CUresult; outputs come last and are set only on success.
 */
#ifndef RC_CUDA_CLIENT_H
#define RC_CUDA_CLIENT_H

#include "cuda_remote/api/calls.h"
#include "cuda_remote/door/server_name.h"
#include "cuda_remote/fill_way.h"
#include "cuda_remote/wire.h"
#include "rdma_channel/base/log.h"

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Of a hook check_*: the call is answered with success, and nothing is sent. */
#define RC_ANSWERED ((CUresult)-1)

/* Every call returns this once the worker is gone. Only a new process gets a new session. */
#define RC_LOST CUDA_ERROR_DEVICE_UNAVAILABLE

/* ---- session.c ---- */

struct rc_device {
	struct rc_wire_device wire;
	/* Limits that a launch is checked against. */
	uint32_t max_grid[3], max_block[3], max_threads, max_shared, max_shared_optin;
	struct rc_session *session;
	int ordinal;  /* the server's number of the device; the program's number is the index in rc_process.device */
	int position; /* in CUDA_VISIBLE_DEVICES */
	uint64_t primary; /* handle of its primary context */
	/* Of the primary context. The mutex of context.c guards them. */
	unsigned retained, flags;
};

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

struct rc_session {
	uint64_t numbered __attribute__((aligned(64))); /* calls numbered so far; atomic */
	uint64_t arrived __attribute__((aligned(64)));  /* messages of the data connection that are received or answered; atomic */
	bool lost;                                      /* a connection broke; atomic */
	bool sick;                /* a call returned an error that stays with its context; atomic */
	bool shared;              /* another process may use device memory of the session; atomic */
	bool several;             /* calls were made in more than one context; atomic */
	uint32_t only;            /* index of the first context that a call was made in; atomic */
	uint64_t settled;         /* while there is one context: the work of all calls up to this number is complete; atomic */
	uint64_t heard;           /* a call that waits and is no query has told the program of all failures of calls up to this
				   * number, but for those of work that was not complete; what complete work of these calls has
				   * printed is out; atomic */
	bool left;                /* a context has ended; atomic */
	struct rc_held held;
	struct rc_track other;    /* of the calls that give a stream work and cannot hold it */
	uint64_t asked;           /* event up to which the program asked for a time last; atomic */
	uint64_t earlies;         /* early copies that are kept; atomic, as the next */
	uint64_t early_stream;    /* their only stream (rc_track_stream), or RC_TRACK_SEVERAL */
	struct rc_early_table *early; /* under the lock of early.c; NULL: there were none */
	unsigned index;           /* of the session in the process, of the server in the list */
	int driver_version;
	uint32_t gpu;             /* the only GPU of the server that the list names, or RC_SERVER_ALL_GPUS */
	uint64_t staging, staged; /* bytes of asynchronous copies to the host: allowed, in progress (atomic) */
	uint64_t ending, ended;   /* copies to the device whose last bytes the data connection's thread has begun, and ended, to
				   * send; atomic */
	uint64_t pinned;          /* bytes of pinned memory that the worker maps, if it is on this host */
	uint64_t primary;         /* handle of the primary context of the server's device 0 */
	struct rc_link *first;    /* the first connection; host functions use it */
	struct rc_link *idle;     /* connections that ended threads have left; this and their number are under a lock of link.c */
	unsigned idles;           /* how many */
	struct rc_link *data;     /* the data connection (data/), or NULL; atomic */
	bool data_tried;          /* to open it; under the lock of data/connection.c */
	struct rc_wire_fetch fetch[4]; /* of the data connection's thread: what the worker has asked for */
	unsigned fetches;
	uint8_t *gathered;        /* RC_CHUNK_MAX bytes for scattered sources, or NULL; of that thread too */
	uint16_t *call_number;    /* NULL, or of each call of this build the server's number; 0: the server does not have it */
	bool local;               /* the server is reached over a Unix socket, so it is on this host */
	bool encrypted;           /* TCP connections of the server's worker for this process are to be encrypted */
	bool memory_opened;       /* rc_session_memory was called; under the lock of pinned.c, as the next */
	int memory;               /* socket over which memory is passed to the worker; -1: there is none */
	/* Of the thread that leads on the first connection (hostfn.c). */
	struct rc_host_request {
		struct rc_wire_host wire;
		uint8_t *bytes; /* that the worker sent with it, or NULL; allocated */
	} request[16];
	int requests;
	unsigned serving;         /* threads of hostfn.c; under the lock of hostfn.c, as the next */
	bool led;                 /* one of them leads */
};

struct rc_process {
	unsigned sessions;
	struct rc_session session[RC_SERVER_MAX];
	int devices;
	struct rc_device *device; /* of all sessions, in the order of the list */
	int driver_version;       /* the oldest */
};

/* CUDA_SUCCESS after cuInit; in a child of fork, and before, CUDA_ERROR_NOT_INITIALIZED. */
CUresult rc_process_get(struct rc_process **process);
/* This thread enters (true) or leaves (false) a host function of the program, in which CUDA forbids calls:
 * rc_callback_check returns CUDA_ERROR_NOT_PERMITTED there. */
void rc_callback_enter(bool inside);
CUresult rc_callback_check(void);
/* The device with this number in the program; CUDA_ERROR_INVALID_DEVICE if there is none. */
CUresult rc_device_get(CUdevice device, struct rc_device **found);
/* An attribute as the server described it; 0 if the server did not know it, or if a client cannot use the ability. */
int rc_device_attribute(const struct rc_device *device, CUdevice_attribute attribute);
/* Opens another connection to this session's worker. */
CUresult rc_session_join(struct rc_session *session, struct rc_link **link);
/* Opens the socket over which pinned memory is passed to this session's worker, unless it is open. Negated errno: the worker
 * is on another host, or the server refuses; then another call does not try again. */
int rc_session_memory(struct rc_session *session);
/* Opens a connection with the purpose RC_DOOR_HANDLE, for the caller. Negated errno: the server refuses, or the connection
 * would be encrypted. */
int rc_session_handle(const struct rc_session *session, int *fd);

/* ---- link.c ---- */

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
/* Routes the call to the session whose memory the address is in. Other addresses, such as one of host memory, leave the
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

/* ---- link.c again ---- */

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

/* ---- handle.c ---- */

/* CUDA_SUCCESS if handle is a live object of this kind (or, for a stream, one of CUDA's own values); else
 * CUDA_ERROR_INVALID_HANDLE, for contexts CUDA_ERROR_INVALID_CONTEXT. */
CUresult rc_handle_check(enum rc_kind kind, uint64_t handle);
/* The session of a live handle; NULL: there is no such handle. */
struct rc_session *rc_handle_session(uint64_t handle);
/* Makes a handle for a new object. CUDA_ERROR_OUT_OF_MEMORY. */
/* Increases when an object ends that a graph can refer to. */
uint64_t rc_handle_ends(void);
CUresult rc_handle_new(enum rc_kind kind, struct rc_session *session, uint64_t *handle);
/* Makes n handles with consecutive indexes. */
CUresult rc_handle_row(enum rc_kind kind, struct rc_session *session, uint32_t n, uint64_t *first);
/* Ends a handle. The caller owns what was attached to it. */
void rc_handle_delete(uint64_t handle);
/* Attaches the client's data to a handle. rc_handle_data returns it; NULL if there is none, or no such object. */
void rc_handle_attach(uint64_t handle, void *data);
void *rc_handle_data(enum rc_kind kind, uint64_t handle);
/* What done.c keeps of an event; 0 in a new handle. NULL: no such event. */
struct rc_recording {
	uint64_t number; /* of the call that has recorded the event last; under the lock of done.c */
	uint64_t mark;   /* that number with bits of done.c; 0 while `stream` changes; atomic */
	uint64_t stream; /* that it named (rc_track_stream); atomic */
	bool in_graph;   /* launches of a graph may record the event too: nothing is known of it; atomic */
	/* Under the lock of done.c. start: the event from which the program has last asked for the time to this one; 0: none.
	 * milliseconds: the time from recording number `first` of that event to recording number `last` of this one; it is not
	 * known if last is 0. */
	uint64_t start, first, last;
	float milliseconds;
};
struct rc_recording *rc_handle_recording(uint64_t event);
/* Calls visit with every live handle of a kind. visit may delete the handle. */
void rc_handle_each(enum rc_kind kind, void (*visit)(uint64_t handle, void *data, void *context), void *context);

/* ---- alias.c ---- */

/* The live handle that rc_alias_add kept for this owner (a handle, or a device's number) and these arguments. */
bool rc_alias_find(enum rc_kind kind, enum rc_call function, uint64_t owner, uint64_t key, const char *text,
		   uint64_t *handle);
CUresult rc_alias_add(enum rc_call function, uint64_t owner, uint64_t key, const char *text, uint64_t handle);
/* True if the handle is an alias: a program must not destroy its object. */
bool rc_alias_is(uint64_t handle);
/* Ends the handles of an owner's aliases. */
void rc_alias_forget(uint64_t owner);

/* ---- context.c ---- */

struct rc_context {
	struct rc_context *next; /* once destroyed: in the list of structs for reuse */
	CUcontext handle;
	CUdevice device;
	unsigned flags;
	bool primary;
	unsigned attached; /* uses beyond the first one (cuCtxAttach); atomic */
	uint64_t id;
	uint64_t resets;   /* primary: how often it was reset; green: that number at its creation; atomic */
	struct rc_context *owner; /* of a green context: its primary context; else NULL */
	unsigned multiprocessors; /* of a green context */
};

#define RC_CONTEXT_STACK 64

/* What the client keeps for each of the program's threads. */
struct rc_thread {
	struct rc_link *link[RC_SERVER_MAX]; /* to each session; NULL: not opened */
	bool own;  /* a thread of this library: its waiting calls leave the failures of earlier calls to the program's */
	int depth; /* of the context stack; the current one is on top */
	struct {
		CUcontext handle; /* of a green context: that of its primary context */
		CUcontext given;  /* as the program named it */
		struct rc_session *session;
	} stack[RC_CONTEXT_STACK];
};

/* The calling thread's; NULL if there is no memory. */
struct rc_thread *rc_thread_get(void);
/* The current context's handle, or NULL. If a green context is current: its primary context's. */
CUcontext rc_context_current(void);
/* The current context's session, or NULL. */
struct rc_session *rc_context_session(void);
/* The current context; CUDA_ERROR_INVALID_CONTEXT if the thread has none; CUDA_ERROR_CONTEXT_IS_DESTROYED if it has ended. */
CUresult rc_context_get(struct rc_context **context);
/* The context of a handle that a call was given, of a green context its primary context; NULL means the current context. */
CUresult rc_context_meant(CUcontext handle, struct rc_context **context);
/* CUDA_ERROR_CONTEXT_IS_DESTROYED if the current context is a green context that has ended. */
CUresult rc_context_check_green(void);
/* Gives a context a new handle's data, which *value describes. */
CUresult rc_context_attach(uint64_t handle, const struct rc_context *value);
/* Keeps the struct of a context that has ended for reuse. */
void rc_context_recycle(struct rc_context *context);
/* A device's primary context, which has this handle. */
CUresult rc_context_add_primary(CUdevice device, uint64_t handle);
/* cuCtxSynchronize, also during a capture, which does not notice it. NULL: the current context. */
CUresult rc_context_wait(CUcontext context);

/* ---- green/ ---- */

/* A green context; CUDA_ERROR_INVALID_CONTEXT; CUDA_ERROR_CONTEXT_IS_DESTROYED: its primary context was reset. */
CUresult rc_green_get(CUgreenCtx green, struct rc_context **found);
/* True if the handle is of a green context that has not ended. */
bool rc_green_is(CUgreenCtx green);
/* The current context if it is a green one, or NULL. */
CUgreenCtx rc_green_current(void);
/* Makes a stream in a green context. */
CUresult rc_green_stream(CUgreenCtx green, unsigned flags, int priority, CUstream *stream);
/* How many multiprocessors a launch in the stream may count on; 0: all of the device. */
unsigned rc_green_multiprocessors(CUstream stream);
/* True if the handle was that of a stream of a green context, and the green context was destroyed. */
bool rc_green_orphan(uint64_t stream);

/* ---- memory.c ---- */

/* Up to RC_MEMORY_GLOBAL: what calls see as memory of a device. */
enum rc_memory_kind { RC_MEMORY_DEVICE, RC_MEMORY_MANAGED, RC_MEMORY_GLOBAL, RC_MEMORY_HOST, RC_MEMORY_REGISTERED };

struct rc_span {
	uint64_t base, size;
	enum rc_memory_kind kind;
	struct rc_session *session; /* of device memory and mirrors; NULL for other host memory */
	CUcontext context;
	CUmodule module;   /* of a global or managed variable: the module that it is part of; else NULL */
	unsigned flags;    /* of host memory: as given */
	bool pooled;       /* from cuMemAllocAsync */
	bool freed;        /* of such a pool: the program has freed it. rc_memory_find does not find it */
	uint64_t host_pool; /* of managed and host memory: the handle of its pool (host_pool.c), or 0 */
	uint64_t pool;     /* of device memory that is pooled and not imported: the handle of its pool; 0: the default pool */
	bool of_graph;     /* an allocation node's */
	bool reserved;     /* by cuMemAddressReserve; virtual.c says what is mapped there */
	bool imported;     /* memory of another process (ipc/): if it is of a pool, it is freed, else closed */
	bool synchronous;  /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: synchronous calls on it always wait */
	struct rc_placing *placing; /* of memory whose address the client has chosen; else NULL. Managed and host memory that
				     * have one are mirrors (mirror/) */
	uint64_t id;       /* unique in the process */
	uint64_t pinned;   /* of host and managed memory: its handle with workers on this host, or 0 */
	uint64_t shared_with; /* set of sessions whose workers have mapped it, bit i for session i */
	uint64_t mapped_by;   /* those of them whose kernels may use it at this address */
	uint64_t place;       /* bytes of addresses that rc_shared_take gave for it; 0: it lies elsewhere */
	struct rc_slab *slab; /* of host and managed memory: the larger memory that it is part of, or NULL */
	bool promoted;     /* host memory of which a server has a mirror since its kernels use it (mirror/promote.c) */
	bool refused;      /* a server did not make such a mirror */
};

/* The allocation that holds address. Not one that was freed in a stream (freed). */
bool rc_memory_find(uint64_t address, struct rc_span *span);
/* True if the program has ever allocated host memory that no server's kernels can access. */
bool rc_memory_any_unmapped(void);
/* CUDA_ERROR_ALREADY_MAPPED: part of it is in the table, as memory of the host or of another session. */
CUresult rc_memory_add(const struct rc_span *span);
bool rc_memory_remove(uint64_t base);
/* A session has a mirror of the host memory that begins at base, of this handle; false: that memory is not in the table. session
 * NULL: it could not be made. */
bool rc_memory_promoted(uint64_t base, struct rc_session *session, uint64_t pinned);
/* Marks the allocation as an allocation node's. */
void rc_memory_set_of_graph(uint64_t base);
/* Removes the allocation of this kind that begins at base, unless it is an allocation node's. */
bool rc_memory_take(uint64_t base, enum rc_memory_kind kind, struct rc_span *taken);
/* Remove from the table the globals of a module, or all device memory of a context. is_free: the driver has freed it; if not, its
 * addresses are not used again. */
void rc_memory_forget_module(CUmodule module);
void rc_memory_forget_context(CUcontext context, bool is_free);
/* CUDA_ERROR_INVALID_VALUE unless address..address+size-1 is within one allocation that a device may use, or size is 0. Promotes
 * pinned memory of the host (rc_promote). */
CUresult rc_memory_check_device(uint64_t address, uint64_t size);
/* The same for memory that a call writes: virtual memory must not be read-only. */
CUresult rc_memory_check_written(uint64_t address, uint64_t size);
bool rc_memory_is_device(uint64_t address);
/* True if other processes may open it: memory of cuMemAlloc. */
bool rc_memory_exportable(const struct rc_span *span);
/* Memory of pools (host_pool.c) stays in the table when the program has freed it. Each of these takes the base and the id of an
 * allocation of such a pool, and returns false if there is none. mark_freed: the program frees it; false if it was freed before.
 * The others return false if it is not freed. freed: changes nothing. unfree: the pool gives it to the program again. take_freed:
 * removes it from the table. */
bool rc_memory_mark_freed(uint64_t base, uint64_t id);
bool rc_memory_freed(uint64_t base, uint64_t id);
bool rc_memory_unfree(uint64_t base, uint64_t id);
bool rc_memory_take_freed(uint64_t base, uint64_t id, struct rc_span *taken);
/* Sets the attribute SYNC_MEMOPS of the allocation that holds address. */
void rc_memory_set_synchronous(uint64_t address, bool synchronous);

/* ---- virtual.c ---- */

/* True if size bytes of a reservation are mapped, and a device has this access to them (CUmemAccess_flags). */
bool rc_virtual_covers(uint64_t address, uint64_t size, unsigned long long access);
/* The device of the memory that is mapped at address. False: nothing is. */
bool rc_virtual_device(uint64_t address, CUdevice *device);
/* The mapping at address, and the types of handles that its memory was created for. False: nothing is mapped. */
bool rc_virtual_mapping(uint64_t address, uint64_t *base, uint64_t *size, unsigned long long *handle_types);

/* ---- ipc/ ---- */

/* The answer to a call that has mapped memory of another process: keeps its addresses, and adds it to the table. Logged:
 * CUDA_ERROR_MAP_FAILED: the process has other memory there. */
CUresult rc_ipc_keep(struct rc_link *link, enum rc_call call, const struct rc_wire_opened *memory, bool pooled);
/* Memory of another process, which was removed from the table, is not mapped any more. */
void rc_ipc_gone(const struct rc_span *span);
/* A call on this event was posted. If other processes use the event: waits until the worker has issued the call. */
CUresult rc_ipc_event_settle(CUevent event);
/* True if other processes may use the event. */
bool rc_ipc_event_is(CUevent event);

/* ---- allocate.c ---- */

/* Gives the session's unused budgets back to the server, which had no memory for a call. False: there are none. */
bool rc_placing_return(struct rc_link *link);
/* The allocation, which was removed from the table, no longer exists: its address may be used again. */
void rc_placing_gone(const struct rc_span *span);
/* The same once the work of the call with this number, and of those before it, is complete. */
void rc_placing_leave(const struct rc_span *span, uint64_t number);

/* A mirror (mirror/): chooses its address and asks the server to allocate. Sets span->base and
 * span->placing, and adds the span to the table. The program's memory is still to be mapped. CUDA_ERROR_NOT_SUPPORTED: the server
 * chooses the addresses. */
CUresult rc_memory_allocate_managed(struct rc_span *span);
/* The error that stays with the current context, which the worker is asked for if a call has returned one. */
CUresult rc_memory_health(void);
/* The same for the context of the link's next call. */
CUresult rc_link_health(struct rc_link *link);
/* The error that stays with this context. CUDA_SUCCESS: there is none, or the server cannot be asked. */
CUresult rc_link_error(struct rc_link *link);
/* Allocates as cuMemAlloc, also during a capture. */
CUresult rc_memory_allocate(size_t size, CUdeviceptr *pointer);
/* The allocation was removed from the table, and no later call uses it: frees it, without a wait, once the work of earlier calls
 * is known to be complete. */
void rc_memory_leave(const struct rc_span *span);
/* The context has ended, and with it the memory that is still to be freed. */
void rc_memory_left_with(CUcontext context);
/* Frees the allocation after all work of its context, and allocates it again at its address: it takes no pages of the device
 * until it is used. False: not possible. */
bool rc_memory_renew(const struct rc_span *span);

/* ---- chunks.c ---- */

struct rc_copy;

/* True if the connection has a staging area. The first call makes it, if the worker is on this host. */
bool rc_chunks_staged(struct rc_link *link);
/* True if the connection has free slots for all chunks of the copy, so that sending them does not wait. */
bool rc_chunks_room(const struct rc_link *link, const struct rc_wire_box *box);
/* Takes the next slot for bytes that another call brings. Waits until the slot is free. */
CUresult rc_chunks_take(struct rc_link *link);
/* The other call was not sent: the slot was not used. */
void rc_chunks_untake(struct rc_link *link);
/* A REPLY says how many chunks have left their slots (struct rc_wire_reply). -EPROTO: more than there are. */
int rc_chunks_freed(struct rc_link *link, uint16_t freed);
/* Unmaps the staging area of a connection that is being closed. */
void rc_chunks_end(struct rc_link *link);
/* Sends the bytes of a copy to the device, whose call has been sent, in chunks. They may be reused on return. */
CUresult rc_chunks_send(struct rc_link *link, const struct rc_wire_copy *call, const struct rc_copy *copy);
/* The pieces of bytes to send, at most CH3_IOV_MAX. If they are more, they are gathered in the connection's scratch memory.
 * -1: no memory. */
int rc_chunks_pieces(struct rc_link *link, const struct rc_copy *copy, uint64_t offset, uint64_t len, struct iovec *iov,
		     bool *gathered);
/* Handlers of the packets CHUNK, STAGED and CREDIT. context: the link. */
int rc_chunk_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
bool rc_chunk_may_ahead(void *context, const ch3_incoming_t *incoming);
int rc_staged_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int rc_credit_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);

/* ---- data/ ---- */

/* Opens the session's data connection, unless it is open. False: there is none. */
bool rc_data_open(struct rc_session *session);
/* True if the link is a data connection. */
bool rc_data_is(const struct rc_link *link);
/* Handler of the packet FETCH. context: the link. */
int rc_fetch_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);

/* ---- rows.c: where the bytes of a copy lie on the host ---- */

/* The places of the bytes offset..offset+len-1 of a copy: up to max pieces. Returns the number of pieces; 0 if that is
 * more than max; -1 if the bytes lie outside the copy. */
int rc_copy_pieces(const struct rc_copy *copy, uint64_t offset, uint64_t len, struct iovec *iov, int max);
/* Copy such bytes, which lie inside the copy, from contiguous memory to their places, and back. */
void rc_copy_scatter(const struct rc_copy *copy, uint64_t offset, uint64_t len, const uint8_t *bytes);
void rc_copy_gather(const struct rc_copy *copy, uint64_t offset, uint64_t len, uint8_t *bytes);
/* The same, past the cache, which pays only if the rows are long. */
void rc_copy_gather_streaming(const struct rc_copy *copy, uint64_t offset, uint64_t len, uint8_t *bytes);
bool rc_copy_has_long_rows(const struct rc_copy *copy);
uint64_t rc_copy_bytes(const struct rc_copy *copy);

/* ---- copy.c: copies to the host, and asynchronous ones from it, that are in progress ---- */

struct rc_copy {
	struct rc_copy *next;
	uint64_t id;      /* unique in the process */
	struct rc_session *session;
	uint8_t *host;
	uint64_t pitch, slice, width, height, depth; /* of the host's side, as in struct rc_wire_box */
	const struct rc_link *link; /* of a copy that a call waits for: the only connection that may bring it */
	bool later;         /* asynchronous: freed when complete, not by a call */
	bool up;            /* to the device, asynchronous: the server asks for the bytes */
	bool kept;          /* to the host, asynchronous: its bytes count in the session's `staged` */
	struct rc_wire_box box; /* of such a copy: the device's side */
	uint64_t left;      /* bytes that have not arrived, or have not been sent; atomic */
	/* Under the lock of copy.c. */
	uint64_t unclaimed; /* bytes that no chunk has announced, or that the server has not asked for yet */
	unsigned receiving; /* chunks that are being received, or sent at a time; each of them keeps the struct */
	bool listed;        /* a chunk may name it */
	bool ending;        /* its last bytes are being sent */
	unsigned *forgotten; /* NULL, or it is not listed: copies that rc_copy_forget waits for; one less when `receiving` is 0 */
};

/*
 * The server has announced a chunk of this size on link. Returns its copy, which stays until rc_copy_arrived or
 * rc_copy_failed. NULL: the server may not send it: no such copy, one that another connection waits for, or more bytes
 * than the copy has.
 */
struct rc_copy *rc_copy_claim(const struct rc_link *link, uint64_t id, uint64_t bytes);
/* The chunk's bytes are stored. */
void rc_copy_arrived(struct rc_copy *copy, uint64_t bytes);
/* Receiving the chunk failed, or sending bytes. */
void rc_copy_failed(struct rc_copy *copy);
/* The server has requested bytes of a copy to the device on link: finds the copy. It stays valid until rc_copy_sent or
 * rc_copy_failed. NULL: there is no such copy, or the bytes are not its next ones. */
struct rc_copy *rc_copy_claim_source(const struct rc_link *link, uint64_t id, uint64_t offset, uint64_t bytes);
/* Some copies to the device may be sending their last bytes: waits until these copies have ended. If the device
 * has all bytes of a copy, the program may write to the source of this copy afterwards. */
void rc_copy_await_sources(struct rc_session *session);
/* The bytes are sent. */
void rc_copy_sent(struct rc_copy *copy, uint64_t bytes);
/* The server says on link that this asynchronous copy has failed: no chunk of it follows. False: there is no such copy. */
bool rc_copy_refused(const struct rc_link *link, uint64_t id);
/* True if the copy, an asynchronous one, has ended: its memory is the program's again. Its chunks may still come on link. */
bool rc_copy_has_ended(const struct rc_link *link, uint64_t id);

/* Waits for the asynchronous copies from and to these bytes, or until the current context has an error that stays. */
void rc_copy_await_memory(uint64_t address, uint64_t size);
/* True while asynchronous copies from or to the host are in progress; from or to these bytes; to these bytes. */
bool rc_copy_any_later(void);
bool rc_copy_pending(uint64_t address, uint64_t size);
bool rc_copy_writes(uint64_t address, uint64_t size);
/* True while asynchronous copies of this session to the host are in progress. */
bool rc_copy_brings(const struct rc_session *session);
/* Waits for all of them. */
void rc_copy_settle(void);
/* The session is lost: its asynchronous copies end. */
void rc_copy_session_lost(struct rc_session *session);
/* True if the bytes are in one allocation of pinned or registered memory. */
bool rc_copy_is_pinned(uint64_t address, uint64_t size);
/* Issues an asynchronous copy between pinned memory and an array, which the data connection carries. host: the memory, `up`, and
 * the box of the copy without gaps. array: the copy as the driver is to get it, without the host's side. */
CUresult rc_copy_array_later(struct rc_link *link, const struct rc_copy *host, uint64_t stream, const CUDA_MEMCPY3D *array);
/* True if CUDA reads a pageable source of this size during the call, whatever the stream waits for: the driver stages an
 * asynchronous copy of up to 64 KB. For a longer one, CUDA's call may wait for the stream. */
bool rc_copy_is_staged(uint64_t bytes, bool asynchronous);
/* Called after an asynchronous copy to the host was put into the stream. If it writes the source of a small copy that has been sent
 * (early.c), the stream goes on only when the client has compared the source, and has sent it again if it differs. */
CUresult rc_copy_changes_early(const struct rc_session *session, uint64_t address, uint64_t size, CUstream stream);
/* Waits until the stream would begin a new command, also for streams that it is ordered with. */
CUresult rc_copy_wait_for_turn(uint64_t stream);
/* True if a copy to the device that is not asynchronous must be complete when its call returns. CUDA completes it if the source is
 * pinned. If the source is pageable and longer than 64 KB, CUDA waits for the stream's earlier work. */
bool rc_copy_completes(const struct rc_session *session, bool pinned, uint64_t bytes);
/* Waits for the copies that the calling thread has put into the stream of the current context. */
CUresult rc_copy_await(const struct rc_route *route, uint64_t stream);
/* Ends the copies into these bytes. On return no connection writes there: waits for chunks that are being received. */
void rc_copy_forget(uint64_t address, uint64_t size);

/* ---- early.c: small copies that are sent with their bytes before the stream reaches them ---- */

/* True if an asynchronous copy of this many bytes may be sent now although a kernel may hold its stream. The source is pinned
 * memory that no earlier work writes. */
bool rc_early_suits(const struct rc_session *session, uint64_t bytes);
/* Sends such a copy. host: the source, which the worker must not have mapped. *sent: false if too many copies are under way. */
CUresult rc_early_copy(struct rc_link *link, const struct rc_wire_box *box, const struct rc_copy *host, uint64_t stream,
		       bool *sent);
/* Called before a call gets its number. Sends the sources that have changed, if the call could let a copy's stream go on. */
CUresult rc_early_before(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head);
/* Sends the sources that have changed. Called before the client tells the worker that a host function has ended, because a stream
 * goes on then. */
CUresult rc_early_host_done(struct rc_session *session);
/* True if such a copy reads these bytes, and is not in this stream of this session (a handle; CUDA's own streams count as other
 * ones). */
bool rc_early_reads(const struct rc_session *own, uint64_t stream, uint64_t address, uint64_t size);
/* The work of the stream (rc_track_stream; RC_TRACK_SEVERAL: of none) up to this call is complete, or that of all streams
 * (rc_link_settled). */
void rc_early_end(struct rc_session *session, uint64_t stream, uint64_t number);
/* The memory is the program's again, which may unmap it. */
void rc_early_forget(uint64_t address, uint64_t size);
/* A context of the session has ended, and its copies with it. The program may unmap memory that it had registered there. */
void rc_early_context_ended(struct rc_session *session);

/* ---- pinned.c: pinned memory that workers on this host map ---- */

/* Maps memory of span->size bytes and shares it with the workers on this host. Sets the span's fields from pinned to
 * slab, and base. That no worker takes it is not an error. */
CUresult rc_pinned_make(struct rc_span *span);
/* The same for memory that is not part of a slab. *divisible: kernels of all workers on this host may use it, and
 * their drivers need not know which parts of it are allocations. */
CUresult rc_pinned_make_whole(struct rc_span *span, bool *divisible);
/* Ends the sharing: waits for the workers' copies from and to the memory, and for kernels. Does not unmap the client's
 * memory. *over: it may be unmapped. Else a worker may still use it, as a wait has failed or a session is lost: it must not be
 * used for anything else, so it is never given back. */
CUresult rc_pinned_free(const struct rc_span *span, bool *over);
/* Unmaps the client's memory, which no worker shares any more. */
void rc_pinned_unmap(const struct rc_span *span);
/* Both, as far as the memory may be unmapped. */
CUresult rc_pinned_end(const struct rc_span *span);
/* True if a session that shares the memory is lost. */
bool rc_pinned_any_lost(const struct rc_span *span);
/* The offset of an address of the allocation in the memory that span->pinned names. */
uint64_t rc_pinned_offset(const struct rc_span *span, uint64_t address);
/* Maps memory of this size, a multiple of the page size, and shares it with one session's worker. */
CUresult rc_pinned_lend(struct rc_session *session, uint64_t bytes, uint64_t *handle, uint8_t **memory);
/* True if the session's worker has mapped these bytes; *span is their allocation. */
bool rc_pinned_in(const struct rc_session *session, uint64_t address, uint64_t size, struct rc_span *span);
/* True if a worker has mapped the host memory at this address, and so may write it without the client. */
bool rc_pinned_shared(uint64_t address);
/* Copies between such memory and the device in the stream's order. wait: until the copy is complete. */
/* Memory operations of a graph of this session, as they are sent: room for RC_MEMOPS_MAX. CUDA_ERROR_NOT_SUPPORTED: of host memory
 * that the worker has not mapped. */
CUresult rc_memops_translate(struct rc_session *session, const CUstreamBatchMemOpParams *list, unsigned count, unsigned flags,
			     struct rc_wire_memop *sent);
CUresult rc_pinned_copy(const struct rc_route *route, const struct rc_wire_copy_pinned *copy, bool wait);

/* ---- slab.c: small allocations of such memory ---- */

/* As rc_pinned_make. False: the allocation is too large, or there are no slabs. */
bool rc_slab_take(struct rc_span *span);
/* Ends the use of the addresses. */
void rc_slab_give(const struct rc_span *span);
/* Ends the slabs without an allocation. False: there are none. */
bool rc_slab_end_unused(void);
/* The address of the slab that the allocation is part of. */
uint64_t rc_slab_base(const struct rc_span *span);

/* ---- shared_window.c: addresses of memory that client and workers map ---- */

/* Finds addresses for bytes, a multiple of the page size, at which the caller may map memory. 0: there are none. */
uint64_t rc_shared_take(uint64_t bytes);
/* Call it if a worker has other memory at this address, which rc_shared_take has returned, and at several addresses near it.
 * Later addresses then come from another window. */
void rc_shared_avoid(uint64_t address);
/* Unmaps what is mapped there, and ends the use of the addresses. */
void rc_shared_give(uint64_t address, uint64_t bytes);

/* ---- managed.c ---- */

/* True if the address is in managed memory, or in mapped memory of a server on another host: copies of it are made by the worker. */
bool rc_managed_at(uint64_t address);
/* Allocates span->size bytes of managed memory in the current context, and adds them to the table. */
CUresult rc_managed_make(const struct rc_context *context, struct rc_span *span);
/* Frees managed memory, or host memory of a pool, once the work that may use it is complete. False: the address is in neither. */
bool rc_managed_free(CUdeviceptr pointer, CUresult *result);
/* The same for an allocation that is not in the table any more. */
CUresult rc_managed_end(const struct rc_span *span);
/* If the host may use the memory at address itself, or the program wants calls on it to wait: waits for the stream's earlier
 * work. */
CUresult rc_managed_settle(uint64_t address, uint64_t stream);
/* True if it would wait. */
bool rc_managed_waits(uint64_t address);
/* For a hook check_* which has made, instead of the call, an asynchronous one in the legacy stream, with this result: waits for it.
 * The legacy stream waits for the threads' own default streams, so it serves both variants of a call. */
CUresult rc_managed_answer(CUresult result);

/* ---- hostmem.c ---- */

/* Allocates span->size bytes of pinned memory as span->flags say, and adds them to the table. */
CUresult rc_host_make(const struct rc_context *context, struct rc_span *span);
/* Frees such memory, which is not in the table any more. */
CUresult rc_host_end(const struct rc_span *span);

/* ---- host_pool.c: pools of managed and of host memory ---- */

bool rc_host_pool_is(CUmemoryPool pool);
/* True if pools of this place and type are such pools. */
bool rc_host_pool_place(const CUmemLocation *location, CUmemAllocationType type);
CUresult rc_host_pool_create(CUmemoryPool *pool, const CUmemPoolProps *properties);
CUresult rc_host_pool_destroy(CUmemoryPool pool);
/* The place's current pool, or its default pool. */
CUresult rc_host_pool_of_place(const CUmemLocation *location, CUmemAllocationType type, bool current, CUmemoryPool *pool);
CUresult rc_host_pool_make_current(const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool);
CUresult rc_host_pool_alloc(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream);
/* Frees memory of such a pool in the stream's order. False: it is not of such a pool. */
bool rc_host_pool_free(CUdeviceptr pointer, CUstream stream, CUresult *result);
/* Gives back what all these pools keep, and waits for it. False: nothing. */
bool rc_host_pool_return(void);
/* An allocation of such a pool has left the table, without a free in a stream. */
void rc_host_pool_gone(const struct rc_span *span);

/* ---- array.c, array_copy.c, texture.c ---- */

/* CUDA_ERROR_INVALID_VALUE if the box of a copy is not within its arrays and device memory. */
CUresult rc_array_check(const CUDA_MEMCPY3D *copy);
/* CUDA_ERROR_INVALID_VALUE if the array has more than one row. */
CUresult rc_array_check_row(CUarray array);

/* A copy with an array on one side at least. */
CUresult rc_array_copy(const CUDA_MEMCPY3D *copy, CUstream stream, bool asynchronous);
/* Copies a struct as it travels (api/widths.py: TRANSLATED). Generated. */
CUresult rc_send_CUDA_MEMCPY3D(struct rc_route *route, const CUDA_MEMCPY3D *from, CUDA_MEMCPY3D *to);
/* Forgets the textures and surfaces of a context that is gone. */
void rc_textures_forget(CUcontext context);

/* ---- stream.c ---- */

struct rc_stream {
	struct rc_stream *next; /* once destroyed: in the list of structs for reuse */
	CUcontext context;
	CUgreenCtx green; /* of a stream that was made in a green context; else NULL */
	unsigned flags;
	int priority;
	uint64_t id;
};
/* Makes the client's record of a stream that the worker has made. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult rc_stream_add(uint64_t handle, const struct rc_stream *value);
/* Keeps the struct for a later stream. It is never freed, as another thread may be reading it. */
void rc_stream_recycle(struct rc_stream *stream);

/* ---- module.c ---- */

#define RC_SET_ON_SEVERAL UINT32_MAX

struct rc_kernel {
	uint64_t handle;    /* of the function or the library's kernel */
	char *name;
	uint32_t parameters, block; /* count; bytes of the parameter block */
	struct rc_parameter {
		uint32_t offset, size;
	} *parameter;
	uint32_t known;
	int32_t attribute[RC_KERNEL_ATTRIBUTES];
	uint32_t dynamic_most; /* bytes of dynamic shared memory that a launch may ask for, if it is known; atomic */
	uint32_t set_on;       /* 1 + the device it was set for last, RC_SET_ON_SEVERAL: several; 0: none; atomic */
	struct rc_old_launch *old_launch; /* what the calls of CUDA 3.2 have set, or NULL; allocated */
	uint64_t resident; /* of launch.c: blocks that fit a multiprocessor, as last asked for; atomic */
	struct rc_module *module;
};

/* ---- mirror/promote.c: pinned memory that kernels of a server of another host use by its address ---- */

/* HEADRACE_MAP_HOST_MEMORY */
enum rc_host_mapping { RC_MAP_ASKED_FOR, RC_MAP_ALL, RC_MAP_USED };
enum rc_host_mapping rc_host_mapping(void);
/* True if rc_promote may succeed. */
bool rc_promote_possible(struct rc_session *session, const struct rc_span *span);
/* Makes the allocation of host memory that holds address a mirror, which kernels of the session can use, unless it is one.
 * CUDA_ERROR_NOT_SUPPORTED; *reason then says why not, in the words of rc_unmapped_fault. */
CUresult rc_promote(struct rc_session *session, uint64_t address, const char **reason);
/* Waits until no work uses the mirror, takes over what kernels have written, and ends the mirror. The memory is not in use as one:
 * it is about to be freed or unregistered. */
CUresult rc_promote_end(struct rc_span *span);
/* Finds addresses for pinned memory that a worker of another host can have too, so that it can be promoted. 0: anywhere. */
uint64_t rc_promote_place(uint64_t bytes);

/* ---- unmapped.c ---- */

/* A kernel with this parameter block is about to be launched on the session's server, or becomes part of a graph: promotes the host
 * memory that its parameters point to. */
void rc_unmapped_launch(struct rc_session *session, const struct rc_kernel *kernel, const uint8_t *block);
/* A kernel of the session has accessed an illegal address: logs the cause, if it is known. */
void rc_unmapped_fault(const struct rc_session *session);

struct rc_module {
	uint64_t handle;
	CUcontext context; /* of a module; NULL for a library */
	bool library;
	uint64_t of_library; /* a library's module: the library's handle; else 0 */
	/* Of a library (library.c). Its copies are on other servers. */
	struct rc_module *home;   /* of a copy: the program's library; else NULL */
	struct rc_module *copies, *next_copy;
	struct rc_library_image *image; /* allocated; NULL if there is one server only, and of copies */
	uint32_t n;
	struct rc_kernel *kernel;
};

/* Forgets the modules of a context that is gone. */
void rc_module_forget_context(CUcontext context);

/* The kernel of a CUfunction or CUkernel; NULL if the handle is neither. */
struct rc_kernel *rc_kernel_find(uint64_t handle);

/* ---- library.c ---- */

/* Exchanges a library's kernel for the same kernel on the server of the session. A server that lacks the library loads it.
 * CUDA_ERROR_INVALID_HANDLE: a module's function of another server. NULL as session: changes nothing. */
CUresult rc_kernel_on(struct rc_session *session, struct rc_kernel **kernel);
/* The program's handle of the library that the kernel belongs to. */
CUlibrary rc_kernel_library(const struct rc_kernel *kernel);

/* ---- launch.c ---- */

/* Checks a launch's dimensions against the limits of the current device and of the kernel. cluster: as the launch gives it,
 * or 0 three times. */
CUresult rc_launch_check_shape(const struct rc_kernel *kernel, const uint32_t *grid, const uint32_t *block, uint32_t shared,
			       const uint32_t *cluster);
/* Fills to[0..kernel->block-1] from a launch's parameters or from its argument "extra". */
CUresult rc_launch_pack(const struct rc_kernel *kernel, void **parameters, void **extra, uint8_t *to);

/* ---- hostfn.c ---- */

/* Starts the thread that runs the session's host functions. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult rc_host_start(struct rc_session *session);
/* The same, and a second thread: the session's graphs copy host memory, also while a host function runs. */
CUresult rc_host_start_both(struct rc_session *session);

/* Handles the packet that asks to run a host function. */
int rc_host_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
/* True while a host function waits for its stream or runs. */
bool rc_host_any(void);
/* The session is lost: its functions that have not begun do not run. */
void rc_host_session_lost(const struct rc_session *session);

/* ---- graph/graph_host.c: what a graph that runs asks for ---- */

/* True while host functions or host copies of launched graphs have not all run. */
bool rc_graph_host_any(void);
/* As rc_host_session_lost, of those in graphs. */
void rc_graph_host_session_lost(const struct rc_session *session);
/* True if a launch may still read or write this memory with the client's help. */
bool rc_graph_host_pending(uint64_t address, uint64_t size);
/* Launches do not touch the memory any more: the server may not ask for it. Waits for a copy that is in progress. */
void rc_graph_host_forget(uint64_t address, uint64_t size);
/* True if the worker may send the id with this number of bytes now. */
bool rc_graph_host_expects(const struct rc_session *session, uint64_t id, uint64_t bytes);
/* Calls the function, or reads or writes the memory. *answer: bytes to send back, which the caller frees; may be NULL.
 * -1: the worker may not ask for it, or there is no memory. */
int rc_graph_host_run(const struct rc_session *session, uint64_t id, uint8_t *bytes, uint8_t **answer, size_t *len);

/* ---- graph/streams.c ---- */

/* The stream with this handle is destroyed. */
void rc_capture_stream_destroyed(uint64_t handle);
/* Invalidates all captures in the streams of a green context: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, if there are any. */
CUresult rc_capture_refuse_green(CUgreenCtx green);
/* The context has ended, with CUDA's own streams of it. */
void rc_capture_context_ended(CUcontext context);
/* cuMemFree and cuMemFreeAsync of an allocation node's memory. False: the address is not in such memory. */
bool rc_graph_memory_free(CUdeviceptr address, CUresult *result);
bool rc_graph_memory_free_async(CUdeviceptr address, CUresult *result);
/* The context has ended, and the memory of its allocation nodes with it. */
void rc_graph_memory_context_ended(CUcontext context);

/* ---- graph/capture_calls.c: hooks of the table; RC_ANSWERED: the call has become part of a graph ---- */

CUresult capture_check_stream(CUstream stream);
CUresult capture_check_event(CUevent event);
CUresult capture_check_record(CUevent event, CUstream stream);
CUresult capture_check_record_flags(CUevent event, CUstream stream, unsigned flags);
CUresult capture_done_event(CUevent event);
CUresult capture_check_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size);

/* ---- peer.c, peer_calls.c: what concerns two servers ---- */

/* Reads HEADRACE_PEER. CUDA_ERROR_INVALID_VALUE, logged. */
CUresult rc_peer_prepare(void);
/* True if there are several servers. */
bool rc_peer_possible(void);
/* True if the two addresses are in device memory of different servers. */
bool rc_peer_apart(uint64_t one, uint64_t other);
/* Opens the link from one server to another, and waits until it is open or has failed: before streams wait for copies. */
void rc_peer_meet(struct rc_session *to, struct rc_session *from);
/* Copies a box to another server, in the order of a stream. */
CUresult rc_peer_copy(const struct rc_wire_box *to, const struct rc_wire_box *from, CUstream stream);
/* Copies between device memory and pinned memory, or within a server, in the order of another server's stream. to_device,
 * from_device: which end is device memory. owned: memory from malloc that holds the source, or NULL; it is freed after the copy, or
 * at once if nothing is copied. False: an end is memory of another kind, and nothing is copied. */
bool rc_peer_copy_elsewhere(const struct rc_wire_box *to, bool to_device, const struct rc_wire_box *from, bool from_device,
			    void *owned, CUstream stream, CUresult *result);
/* Copies from or to an array or both, in the order of a stream, if the ends and the stream are of several servers. False: they are
 * not, or an end is host memory that is not pinned. The copy is checked. */
bool rc_peer_copy_array(const CUDA_MEMCPY3D *copy, CUstream stream, bool asynchronous, CUresult *result);
/* Waits for the copies that use the allocation at this address: it is about to be freed. */
void rc_peer_settle_allocation(CUdeviceptr pointer);
/* Waits for the copies between servers that use these bytes. */
void rc_peer_settle_memory(uint64_t address, uint64_t size);
/* True if copies of rc_peer_copy_elsewhere and rc_peer_copy_array are in progress; if one of them writes these bytes. */
bool rc_peer_any_host(void);
bool rc_peer_writes_host(uint64_t address, uint64_t size);
/* Waits for the copies and waits that use a context: it is about to end. */
void rc_peer_settle(CUcontext context);
/* The session has device memory. If others have too, links between their workers are opened, ahead of the first copy. */
void rc_peer_expect(struct rc_session *session);

/* ---- hooks of the table (api/calls): peer_* before all else ---- */

bool peer_dtod(uint16_t flags, CUdeviceptr to, CUdeviceptr from, size_t size, CUresult *result);
bool peer_dtod_async(uint16_t flags, CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, CUresult *result);
bool peer_copy(uint16_t flags, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
	       CUresult *result);
bool peer_copy_async(uint16_t flags, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
		     size_t size, CUstream stream, CUresult *result);
bool peer_wait_event(uint16_t flags, CUstream stream, CUevent event, unsigned event_flags, CUresult *result);
bool peer_occupancy(uint16_t flags, int *blocks, CUfunction function, int threads, size_t shared, CUresult *result);
bool peer_occupancy_flags(uint16_t flags, int *blocks, CUfunction function, int threads, size_t shared, unsigned how,
			  CUresult *result);
bool peer_occupancy_shared(uint16_t flags, size_t *shared, CUfunction function, int blocks, int threads, CUresult *result);

/* ---- hooks of the table (api/calls): check_* before a call goes out, done_* after it ---- */

CUresult memory_done_info(size_t *available, size_t *total);
CUresult pointer_check_set(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer);
CUresult pointer_done_set(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer);
CUresult device_check_atomics(unsigned *capabilities, const CUatomicOperation *operations, unsigned count, CUdevice from,
			      CUdevice to);
CUresult memset_check_d8(CUdeviceptr to, unsigned char value, size_t n);
CUresult memset_check_d16(CUdeviceptr to, unsigned short value, size_t n);
CUresult memset_check_d32(CUdeviceptr to, unsigned value, size_t n);
CUresult memset_check_d2d8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height);
CUresult memset_check_d2d16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height);
CUresult memset_check_d2d32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height);
CUresult memset_check_d8_async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream);
CUresult memset_check_d16_async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream);
CUresult memset_check_d32_async(CUdeviceptr to, unsigned value, size_t n, CUstream stream);
CUresult memset_check_d2d8_async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
				 CUstream stream);
CUresult memset_check_d2d16_async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
				  CUstream stream);
CUresult memset_check_d2d32_async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
				  CUstream stream);
CUresult copy_check_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
			       CUstream stream);
CUresult copy_check_dtod(CUdeviceptr to, CUdeviceptr from, size_t size);
CUresult copy_check_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream);
CUresult array_check_create(CUarray *made, const CUDA_ARRAY_DESCRIPTOR *like);
CUresult array_check_create_3d(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *like);
CUresult array_check_create_mipmapped(CUmipmappedArray *made, const CUDA_ARRAY3D_DESCRIPTOR *like, unsigned levels);
CUresult array_check_destroy(CUarray array);
CUresult array_check_destroy_mipmapped(CUmipmappedArray array);
CUresult stream_check_create(CUstream *stream, unsigned flags);
CUresult stream_done_create(CUstream *stream, unsigned flags);
CUresult stream_check_create_priority(CUstream *stream, unsigned flags, int priority);
CUresult stream_done_create_priority(CUstream *stream, unsigned flags, int priority);
CUresult stream_check_get_attribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value);
CUresult stream_check_set_attribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value);
CUresult stream_check_destroy(CUstream stream);
CUresult stream_done_destroy(CUstream stream);
CUresult context_check_peer(CUcontext peer, unsigned flags);
CUresult context_check_cache(CUfunc_cache config);
CUresult stream_check_wait_event(CUstream stream, CUevent event, unsigned flags);
CUresult pool_check_destroy(CUmemoryPool pool);
CUresult pool_check_trim(CUmemoryPool pool, size_t bytes);
CUresult pool_check_get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult pool_check_set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult pool_check_set_access(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count);
CUresult pool_check_get_access(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location);
CUresult pool_check_set(CUdevice device, CUmemoryPool pool);
CUresult pool_done_set(CUdevice device, CUmemoryPool pool);
CUresult virtual_done_create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
			     unsigned long long flags);
CUresult virtual_check_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *list, size_t count);
CUresult virtual_done_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *list, size_t count);
CUresult texture_done_create(CUtexObject *object, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
			     const CUDA_RESOURCE_VIEW_DESC *view);
CUresult texture_done_destroy(CUtexObject object);
CUresult surface_done_create(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource);
CUresult surface_done_destroy(CUsurfObject object);
CUresult reference_done_array(CUtexref reference, CUarray array, unsigned flags);
CUresult reference_done_mipmap(CUtexref reference, CUmipmappedArray array, unsigned flags);
CUresult reference_done_surface(CUsurfref reference, CUarray array, unsigned flags);
CUresult reference_check_destroy(CUtexref reference);
CUresult reference_done_address(size_t *offset, CUtexref reference, CUdeviceptr address, size_t bytes);
CUresult reference_done_address_2d(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR *shape, CUdeviceptr address, size_t pitch);
CUresult event_check_create(CUevent *event, unsigned flags);
CUresult event_check_synchronize(CUevent event);
CUresult stream_check_synchronize(CUstream stream);
CUresult event_check_elapsed(float *milliseconds, CUevent start, CUevent end);
CUresult event_done_create(CUevent *event, unsigned flags);
CUresult event_done_destroy(CUevent event);
CUresult event_done_record(CUevent event, CUstream stream);
CUresult event_done_record_flags(CUevent event, CUstream stream, unsigned flags);
CUresult stream_done_wait_event(CUstream stream, CUevent event, unsigned flags);

#endif
