/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker, inside: what its files share.
 *
 *	worker.c           the process: preparation, the main thread's loop, connections that follow the first
 *	watch.c            ends the process when the client has ended
 *	grant.c            the GPUs that the session may use          limits.c  limits of its memory and threads
 *	thread.c           one connection: calls in, issued in their order, replies out
 *	call_order.c       the order of calls over all connections    latch.c   the first failure of a call without a reply
 *	objects.c          handles         numbers.c  textures, surfaces   driver.c  the libcuda.so.1 that serves the calls
 *	image.c            images from the wire                       slots.c   pinned memory that copies go through
 *	copy_to_device.c   copies to the device, and between device addresses
 *	copy_early.c       small copies whose bytes the client may change until the device reads them
 *	copy_to_host.c     copies to the host                         output.c  what device code prints
 *	data/              the connection for the bytes of asynchronous copies
 *	copy_staged.c      slots for chunks, and the staging area that a client on this host shares
 *	pinned.c           pinned memory of a client on this host     copy_pinned.c  its copies
 *	mirror.c           managed memory of a client on another host
 *	hostfn.c           host functions                             graph/  executable graphs
 *	array_copy.c       copies with arrays                         memory.c  allocations, also at addresses of the client
 *	placed/            addresses of the client by virtual memory management
 *	peer.c             streams that wait for another server      virtual.c  virtual memory management
 *	peer/              links to other workers, and the copies that they carry
 *	ipc/               memory and events of other sessions        green.c  green contexts
 *	hello.c, context.c, module.c, linker.c, launch.c, stream*.c   the calls written by hand
 *
 * Nothing that arrives is trusted: lengths are checked where bytes are taken, handles and device numbers go through tables.
 */
#ifndef RC_CUDA_SERVER_INTERNAL_H
#define RC_CUDA_SERVER_INTERNAL_H

#include "cuda_remote/api/calls.h"
#include "cuda_remote/api/driver.h"
#include "cuda_remote/server/worker.h"
#include "cuda_remote/wire.h"
#include "rdma_channel/base/log.h"

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- driver.c ---- */

#define RC_DRIVER_MEMBER(name) __typeof__(name) *name;
/* The driver's functions; NULL where it lacks one. Set once, before any other thread. */
struct server_driver {
	RC_DRIVER_FUNCTIONS(RC_DRIVER_MEMBER)
};
extern struct server_driver driver;
int server_driver_load(const char *path);
/* CUresult in words, for the log. */
const char *server_error_name(CUresult result);

/* ---- limits.c ---- */

enum server_limit {
	SERVER_LIMIT_CONNECTIONS, SERVER_LIMIT_ARGUMENTS, SERVER_LIMIT_REPLIES, SERVER_LIMIT_OUTPUT, SERVER_LIMIT_PINNED,
	SERVER_LIMIT_LINKS, SERVER_LIMITS
};
/* Reads the settings. -EINVAL, logged. */
int server_limits_prepare(void);
uint64_t server_limit(enum server_limit which);
/* Adds amount to what the session holds. False: that would exceed the limit, and nothing was added. Any thread. */
bool server_limit_take(enum server_limit which, uint64_t amount);
void server_limit_return(enum server_limit which, uint64_t amount);

/* ---- thread.c ---- */

struct server_slot;
struct server_parcel;

struct pinned; /* of pinned.c */

/* The slots of a connection's chunks (copy_staged.c). Chunk n, counted from 0 in both directions, has slot n % RC_WINDOW. */
struct server_ring {
	struct server_slot *slot[RC_WINDOW]; /* NULL: not used yet */
	uint64_t chunks;          /* so far */
	unsigned arriving;        /* chunks behind these that are being received */
	uint64_t freed;           /* all chunks before this one have left their slots */
	uint64_t told;            /* freed, as the client knows it */
	uint64_t last;            /* chunks, when the copy to the device that is arriving is complete */
	uint64_t wanted;          /* the client sends nothing until freed is at least this; 0: it does not wait */
	uint64_t taken;           /* chunks that the client has read, of a staged copy to the host */
	ch3_request_t *telling;   /* the last CREDIT, or NULL */
	struct pinned *staging; /* NULL: the client shares none */
};

/* A copy to the device whose chunks are arriving. */
struct server_h2d {
	bool active;
	CUresult result; /* the first failure; after it, chunks are received and dropped */
	uint64_t copy, bytes;
	uint64_t offset; /* bytes before it have arrived */
	uint64_t coming; /* bytes before it have arrived or are being received */
	struct rc_wire_box box;
	uint64_t stream; /* handle */
	bool staged;
};

struct server_thread {
	uint64_t serial;        /* from 1 on; no other thread of the worker has or had it */
	rc_door_peer_t peer;
	ch3_t *engine;
	ch3_vc_t *vc;
	int error;              /* the connection failed with this */
	bool deferred;          /* the call in arguments is to be executed after CH3's progress has returned */
	bool looks_ahead;       /* it is served by server_thread_run, which calls server_wake_let_go */
	bool holds;             /* server_wake_hold was called */
	unsigned looked_ahead;  /* polls since the first server_wake_hold after the last server_wake_let_go */
	bool recorded;          /* the last call has recorded an event */
	bool busy;              /* a deferred call is being executed: no other may arrive */
	struct rc_wire_call head;
	uint8_t *arguments;     /* of the call that arrived last */
	size_t arguments_len, arguments_size;
	uint8_t *results;
	size_t results_size;
	uint32_t context;       /* index of the client's context that is current on this thread */
	CUcontext current;      /* that context */
	uint64_t ended;         /* server_contexts_ended() when that context was made current */
	CUresult refused;       /* the call that arrived last is refused with this; CUDA_SUCCESS: it is not */
	struct server_reply *replies, **replies_end; /* that have not been sent completely */
	bool began;             /* a call has arrived */
	uint32_t told_limits;   /* a bit for each enum server_limit whose message the client was sent */
	struct server_h2d h2d;
	struct server_ring ring;
	bool data;              /* it is the data connection */
	unsigned looks;         /* for output of the device, see output.c */
	struct server_slot *own; /* see server_slot_own */
};

/* launch.c: before a launch: the next call may wait for it, so the driver is to wake no thread yet (call_follows.h). Nothing if
 * the driver needs no such hint. */
void server_wake_hold(struct server_thread *thread);
/* After the next call, or if none has come. */
void server_wake_let_go(struct server_thread *thread);

/* A call being served. */
struct server_call {
	struct server_thread *thread;
	uint64_t number;
	uint16_t flags;         /* enum rc_call_flags */
	const uint8_t *in;      /* its arguments */
	size_t in_len, in_at;
	size_t out_len;         /* bytes of its results, in thread->results */
	bool holds_order;       /* no call with a higher number may be issued yet */
};

enum server_mode { SERVER_ASYNC = 1, SERVER_WAIT, SERVER_SYNC };

struct server_entry {
	CUresult (*serve)(struct server_call *call);
	enum server_mode mode;
};
extern const struct server_entry server_entries[RC_CALLS]; /* generated */

/* Read the next argument bytes. False or NULL: the call has fewer. The pointer is into the message. */
bool server_take_into(struct server_call *call, void *to, size_t size);
const void *server_take(struct server_call *call, uint64_t count, size_t size);
/* Zeroed memory for further results, valid until the function is called again. NULL: too much for a reply, or no
 * memory. */
void *server_give(struct server_call *call, uint64_t count, size_t size);
CUresult server_give_bytes(struct server_call *call, const void *bytes, size_t size);
/* Lets the next call in the order be issued. For a call that is about to block. */
void server_order_release(struct server_call *call);

/* Opens a connection's engine, answers the peer's handshake, connects. The thread owns peer.fd from the call on. */
int server_thread_open(struct server_thread *thread, uint32_t gpus);
void server_thread_close(struct server_thread *thread);
/* Serves until the connection ends; returns why. */
int server_thread_run(struct server_thread *thread);
/* Executes the call that was deferred, if any. */
void server_thread_deferred(struct server_thread *thread);
/* Makes the context with this index, which is current on the client's thread, current on the calling thread. */
CUresult server_thread_follow(struct server_thread *thread, uint32_t index);
/* Sends a line about a limit that is exceeded to the client's stderr; at most one for each limit and connection. May be
 * called from a handler of CH3. */
void server_thread_tell(struct server_thread *thread, enum server_limit limit, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Sends bytes and waits until they are sent. Not from a handler of CH3. Negated errno: the connection failed. */
int server_thread_send(struct server_thread *thread, enum rc_packet type, const void *header, size_t header_len,
		       const void *bytes, size_t len);
/* The same in two steps: the bytes must stay until server_thread_finish, which waits and sets *request to NULL. */
int server_thread_start(struct server_thread *thread, enum rc_packet type, const void *header, size_t header_len,
			const void *bytes, size_t len, ch3_request_t **request);
int server_thread_finish(struct server_thread *thread, ch3_request_t **request);

/* ---- worker.c ---- */

/* Whose session it is. It has no padding, and is compared as bytes. */
struct server_owner {
	uint32_t by_key; /* 1: the client has proved a key; 0: it is a known user */
	uint32_t user;   /* that user; 0 if by_key. The worker may have another user */
	uint8_t key_id[RC_DOOR_KEY_ID_BYTES]; /* as in rc_door_peer_t */
};
static_assert(sizeof(struct server_owner) == 8 + RC_DOOR_KEY_ID_BYTES, "no padding");

struct server_worker {
	uint32_t gpus;  /* number of GPUs that the client sees */
	uint32_t grant; /* index of the only GPU that may be used, or RC_SERVER_ALL_GPUS */
	CUdevice device[RC_DEVICES_MAX];
	CUcontext primary[RC_DEVICES_MAX]; /* atomic: a reset, outside of the call order, may change it */
	uint64_t primary_handle; /* of device 0's primary context, as in struct rc_wire_greeting; 0 before hello */
	uint64_t staging; /* bytes, as in struct rc_wire_hello */
	struct server_owner owner;
};
extern struct server_worker worker;
/* Ends the worker: the client broke the protocol, or one of its connections failed. Any thread. */
void server_worker_break(int error);

/* ---- grant.c ---- */

/* Before cuInit: leaves only this GPU visible to the driver (RC_SERVER_ALL_GPUS: all). -ENODEV: no such GPU. Logged. */
int server_grant_hide(uint32_t gpu);
/* Before the first byte from the client: gives up every GPU but this one. -ENODEV: this worker does not have it. Logged. */
int server_grant_narrow(uint32_t gpu);
/* The driver's device for a device number from the client. CUDA_ERROR_INVALID_DEVICE: the session does not have it. */
CUresult server_device(uint32_t number, CUdevice *device);

/* ---- watch.c ---- */

/* Starts the watcher on the first connection's socket, which must not be read yet. Negated errno. */
int server_watch_start(const rc_door_peer_t *peer);
/* The worker is ending: from now on the process ends soon, even if one of its threads hangs. Any thread. */
void server_watch_end(void);
/* The process ends by itself: nothing is left in it that may hang. */
void server_watch_remain(void);

/* ---- call_order.c ---- */

/* Waits until the call with this number may be issued. -EPROTO: it already was; -ECANCELED: the worker is ending. */
int server_order_wait(uint64_t number);
/* True if server_order_wait would not wait. */
bool server_order_is_next(uint64_t number);
void server_order_advance(uint64_t number);
void server_order_break(void);

/* ---- latch.c ---- */

/* Keeps the failure of a call without reply, unless an earlier failure is kept. context: the index of the call's context, or 0. */
void server_latch_set(uint64_t number, uint16_t function, uint32_t context, CUresult result);
/* Takes the failure that is kept. False: none is. */
bool server_latch_take(uint64_t *number, uint16_t *function, CUresult *result);
/* The context with this index has ended: a failure in it is not kept. */
void server_latch_forget(uint32_t context);

/* ---- objects.c ---- */

/* The kernel of a handle of kind FUNCTION or KERNEL. NULL: no such handle. */
struct server_kernel *server_object_kernel(uint64_t handle);
/* The driver's object of a handle. RC_KIND_FUNCTION also accepts a library's kernel, and returns the kernel's function
 * in the current context. */
CUresult server_object(enum rc_kind kind, uint64_t handle, void **object);
/* The worker's own data of the object. NULL: no such handle. */
void *server_object_data(enum rc_kind kind, uint64_t handle);
/* Gives the object a handle that the client chose; data: the worker's own. CUDA_ERROR_INVALID_HANDLE: not a handle of this
 * kind, or its index is in use. */
CUresult server_object_bind(enum rc_kind kind, uint64_t handle, void *object, void *data);
/* As server_object_bind, for an object that belongs to another one: its handle ends with the owner's. owner 0: none. data: NULL,
 * or a struct server_module, which is freed then. */
CUresult server_object_bind_alias(enum rc_kind kind, uint64_t handle, void *object, void *data, uint64_t owner);
/* Also ends the handles of the object's aliases. */
void server_object_unbind(uint64_t handle);
/*
 * For a call that ends an object and may block: the handle is hidden in the call order, so that no later call finds the object
 * while the driver ends it. Then either the driver has ended it, or, after a failure, it is shown again.
 */
struct server_hidden {
	uint64_t handle, contexts_ended;
	void *object, *data;
	CUcontext context;
	uint64_t owner;
	bool owns, found;
};
void server_object_hide(uint64_t handle, struct server_hidden *hidden);
void server_object_ended(const struct server_hidden *hidden);
void server_object_show(const struct server_hidden *hidden);
/* Replaces the driver's object of a handle. */
void server_object_replace(uint64_t handle, void *object);
/* The object ends with this context. */
void server_object_set_context(uint64_t handle, CUcontext context);
/* Unbinds all objects that were made in a context, and frees the worker's data of its modules. Called by a call that
 * holds the call order. */
void server_object_unbind_context(CUcontext context);
/* The contexts of the session that are not green ones: at most max; returns their number. */
size_t server_object_contexts(CUcontext *contexts, size_t max);
/* The context of that index; 0 is none. CUDA_ERROR_CONTEXT_IS_DESTROYED: a client names contexts only that it had; also for a
 * green context. */
CUresult server_object_context(uint32_t index, CUcontext *context);

/* ---- numbers.c ---- */

/* The driver has given this number to an object of the calling thread's context. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult server_number_add(struct server_call *call, enum rc_number kind, uint64_t number);
/* True if the driver gave the number to an object of this kind that has not ended. */
bool server_number_known(enum rc_number kind, uint64_t number);
/* Of two objects with the number, that of the calling thread's context has ended. */
void server_number_remove(struct server_call *call, enum rc_number kind, uint64_t number);
/* The objects of a context have ended. */
void server_numbers_forget(CUcontext context);

/* ---- slots.c ---- */

struct server_slot {
	struct server_slot *next, *next_made;
	uint8_t *memory;
	size_t size;
	CUevent event;     /* recorded in the stream after the copy that uses the memory */
	CUcontext context; /* of the event; atomic */
	CUcontext pinned;  /* the context that was current when the memory was pinned; atomic */
	bool recorded;
	uint64_t event_ends, pin_ends; /* server_slots_end, if the context of the event, of the pinning, is ending; atomic */
	bool event_gone, pin_gone; /* that context has ended; atomic */
	bool staging; /* the client reads what copies write here */
};

int server_slots_prepare(void);
/* A slot of at least size bytes, size <= RC_CHUNK_MAX. CUDA_ERROR_OUT_OF_MEMORY: the limit is reached. */
CUresult server_slot_get(size_t size, struct server_slot **slot);
/* The connection's own slot, of SERVER_OWN_SLOT bytes, for a copy that its call waits for. Made at the first use. It ends with
 * the connection. */
#define SERVER_OWN_SLOT 4096
CUresult server_slot_own(struct server_thread *thread, struct server_slot **slot);
/* Returns a slot whose memory is no longer in use. NULL is allowed. */
void server_slot_put(struct server_slot *slot);
/* record: marks in the stream the end of the copy that uses the slot. wait: waits for that. */
CUresult server_slot_record(struct server_slot *slot, CUstream stream);
/* The same for a caller that waits next: records nothing if the stream has done all its work. */
CUresult server_slot_record_rest(struct server_slot *slot, CUstream stream);
CUresult server_slot_wait(struct server_slot *slot);
/* True if a wait would not block. */
bool server_slot_is_free(struct server_slot *slot);
/* Returns a slot that the device uses until the stream has come to this place. If the driver refuses the event that says so, the
 * slot is never used again. */
void server_slot_leave(struct server_slot *slot, CUstream stream);
/* end: a context is about to end; returns a number for it. No slot is recorded in it any more. forget: it has ended: its
 * events no longer exist, and memory that was pinned in it is no longer pinned. Between the two the driver may give the
 * context's address to a new one, whose slots must not be forgotten. */
uint64_t server_slots_end(CUcontext context);
void server_slots_forget(uint64_t end);
/* A slot for memory that another file has mapped: pins it, and lists it for end and forget. The driver's result; after a
 * failure the slot is not listed. */
CUresult server_slot_list(struct server_slot *slot, uint8_t *memory, size_t size);
/* If the memory is no longer pinned, pins it again. Called in the call order. */
CUresult server_slot_repin(struct server_slot *slot);
/* Says that the slot, which is listed, is a staging area. */
void server_slot_stage(struct server_slot *slot);
bool server_slot_is_pinned(const struct server_slot *slot);
/* Unpins the memory of such a slot, which no copy uses any more, and forgets the slot. */
void server_slot_unlist(struct server_slot *slot);

/* ---- memory.c ---- */

/* True if the client chooses the addresses of device memory. */
bool server_memory_is_placed(void);
/* True if they are so by virtual memory management (placed/). */
bool server_memory_is_virtual(void);
/* Allocates at an address of the client. The driver checks address and size. */
CUresult server_memory_place(uint64_t address, uint64_t bytes);

/* ---- placed/: memory at addresses of the client, by virtual memory management ---- */

/* True if the address lies in a window of such memory. */
bool server_placed_at(CUdeviceptr address);
/* Frees an allocation. wait: waits for the work of its context, as cuMemFree does; else no work uses the memory. */
CUresult server_placed_free(CUdeviceptr address, bool wait);
/* Frees it when the stream has come to this place. */
CUresult server_placed_free_async(CUdeviceptr address, CUstream stream);
/* A handle of an allocation, for other workers. Called in the call order. CUDA_ERROR_NOT_SUPPORTED: the memory would have to be
 * moved, and other GPUs may use it, or work of its context does not end soon. */
CUresult server_placed_export(CUdeviceptr address, struct rc_wire_shared *handle);
struct server_placed;
/* Takes out the allocations of a context that is about to end: once it has ended, a new one may have its address. NULL: none. */
struct server_placed *server_placed_take(CUcontext context);
/* The context has ended, and its allocations with it. */
void server_placed_end(struct server_placed *taken, CUcontext context);
/* It has not ended. */
void server_placed_put(struct server_placed *taken);
struct server_placed_sides {
	CUcontext to, from;
};
/* True if the addresses lie in memory of two devices that cannot both use both: only the driver's peer copies reach the two.
 * Outputs their contexts. */
bool server_placed_apart(CUdeviceptr to, CUdeviceptr from, struct server_placed_sides *sides);
/* Memory of the device `owner` is accessible to the device `user` from now on. */
CUresult server_placed_grant(CUdevice owner, CUdevice user);

/* ---- mirror.c ---- */

/* True if the address is in managed memory, which only managed_free frees: the worker uses it itself. */
bool server_mirror_at(uint64_t address);
/* The calling thread sees what other threads have stored in managed memory. */
void server_mirrors_synchronize(void);
/* A context is about to end, and its managed memory with it. */
void server_mirrors_forget(CUcontext context);
/* The variables of a library that is about to end. */
void server_mirrors_forget_library(const void *library);
/* A mirror in memory of this host, which is zero and which kernels can use. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult server_mirror_add_host(uint64_t address, uint64_t bytes);
void server_mirror_end_host(uint64_t address);

/* ---- pinned.c ---- */

/* Serves a connection over which the client passes its pinned memory, until it ends. */
void server_pinned_serve(const rc_door_peer_t *peer);
/* The pinned memory of a handle, pinned in the driver. Called in the call order: no other call can free it until the
 * caller lets the next call be issued. */
CUresult server_pinned_find(uint64_t handle, uint8_t **memory, uint64_t *bytes);
/* The context that pinned memory was pinned in has been reset: pins the memory again, as kernels may use it without a call
 * that names it. Makes the primary context of GPU 0 current. */
void server_pinned_renew(void);
/* All contexts have ended, and so have the threads that serve calls: unmaps all memory of the client. */
void server_pinned_finish(void);
CUresult serve_pinned_free(struct server_call *call);
CUresult serve_pinned_wait(struct server_call *call);
CUresult serve_pinned_mirror(struct server_call *call);
/* Takes pinned memory of at least this size for the staging of one connection; its handle ends. CUDA_ERROR_INVALID_HANDLE,
 * CUDA_ERROR_INVALID_VALUE. */
CUresult server_pinned_adopt(uint64_t handle, uint64_t bytes, struct pinned **staging);
/* The memory, pinned in the driver if the driver can. */
uint8_t *server_staging_memory(struct pinned *staging);
/* Unmaps it. No copy uses it any more. */
void server_staging_drop(struct pinned *staging);

/* ---- copy_early.c ---- */

CUresult serve_copy_up_early(struct server_call *call);
CUresult serve_copy_early_change(struct server_call *call);
CUresult serve_copy_early_done(struct server_call *call);
/* A stream or a context is about to end, and the client may use its handle again. In a call that holds the call order. */
void server_early_close(void);

/* ---- copy_pinned.c ---- */

CUresult serve_copy_pinned(struct server_call *call);
CUresult serve_copy_pinned_wait(struct server_call *call);
CUresult serve_copy_wait(struct server_call *call);

/* ---- copy_staged.c ---- */

CUresult serve_copy_staging(struct server_call *call);
/* A chunk is being received, until server_ring_advance. *slot: its slot, with at least this much memory of its own; NULL: no
 * memory. -EPROTO: the client has sent more chunks than it may. */
int server_ring_slot(struct server_thread *thread, size_t size, struct server_slot **slot);
/* The number of chunks that have left their slots, which a REPLY tells the client. */
uint64_t server_ring_freed(struct server_thread *thread);
/* A copy of this many chunks begins; 0: it has ended. Tells the client which slots are free, if it needs to know. */
void server_ring_expect(struct server_thread *thread, uint64_t chunks);
/* Counts the chunk, whose slot has been recorded, or is free or NULL. Tells the client likewise. */
void server_ring_advance(struct server_thread *thread);
/* Handlers of CREDIT and WANT. */
int server_ring_credit(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
int server_ring_want(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
/* If the client waits for slots: waits until they are free, and tells it. */
void server_ring_serve(struct server_thread *thread);
/* Ends the slots and the staging area of a connection, after the device has finished with them. */
void server_ring_end(struct server_thread *thread);
/* The next chunk's place in the staging area; NULL: there is none. */
uint8_t *server_staging_place(struct server_thread *thread);
/* A copy to the host through the staging area, for a call that waits. */
CUresult server_staged_down(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes);

/* ---- copy_to_device.c ---- */

/* Handlers of CHUNK and STAGED. */
int server_h2d_arrived(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
bool server_h2d_may_ahead(void *context, const ch3_incoming_t *incoming);
int server_h2d_staged(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
/* Refuses a copy_up. Its chunks arrive nevertheless and are dropped. Returns the call's result: success if the call
 * copy_up_end will report the failure. */
CUresult server_h2d_refuse(struct server_call *call, CUresult result);
/* True if a box is one that a copy can have: not empty, nothing overflows. */
bool server_box_is_sound(const struct rc_wire_box *box, uint64_t *bytes);
/* Copies the chunk at offset of a box from contiguous host memory, in the stream's order. */
CUresult server_part_h2d(const struct rc_wire_box *box, uint64_t offset, uint64_t len, const uint8_t *from, CUstream stream);
/* Address and shape of the chunk at offset. */
void server_box_part(const struct rc_wire_box *box, uint64_t offset, uint64_t len, CUdeviceptr *address, uint64_t *width,
		     uint64_t *rows);

/* ---- copy_to_host.c ---- */

/* Copies the chunk of len bytes at offset of a box to contiguous host memory, in the stream's order. */
CUresult server_part_d2h(const struct rc_wire_box *box, uint64_t offset, uint64_t len, uint8_t *to, CUstream stream);
/* Begins to send a parcel of an asynchronous copy over the data connection, and frees it. */
void server_d2h_send(struct server_thread *thread, struct server_parcel *parcel);

/* ---- data/: the data connection ---- */

/* What the data connection sends: the first member of the struct of its file. */
struct server_parcel {
	struct server_parcel *next;
	enum {
		SERVER_PARCEL_CHUNKS, /* of copy_to_host.c */
		SERVER_PARCEL_FETCH,  /* of data/fetch.c: the stream has come to the copy */
		SERVER_PARCEL_COPIED, /* of data/fetch.c: the stream has passed the copy */
		SERVER_PARCEL_PUSH,   /* of data/push.c */
		SERVER_PARCEL_REFUSED, /* of data/connection.c */
	} kind;
};

/* On the thread of the data connection: begins to send a chunk of a copy. Waits only if many are being sent. slot: NULL, or
 * put back when the chunk is sent. */
void server_sends_begin(struct server_thread *thread, uint64_t copy, uint64_t offset, const uint8_t *memory, uint64_t len,
			struct server_slot *slot);
/* Before the first call. Negated errno. */
int server_data_prepare(void);
/* Gives the parcel, of this number of messages, to the data connection. A thread of the driver calls it, when a stream has
 * arrived: whatever the stream does next comes after it. */
void server_data_post(struct server_parcel *parcel, uint64_t messages);
/* Messages posted so far. A call that has waited for a stream finds all those of the stream's earlier work counted. */
uint64_t server_data_posted(void);
/* Ends the session, as the client would wait for ever for a copy that cannot be posted. Returns the error for the call. */
CUresult server_data_no_memory(struct server_call *call);
/* Tells the client that an asynchronous copy has failed. False: no memory. */
bool server_data_refuse(uint64_t copy);
/* A call that begins an asynchronous copy is not executed, because of result: tells the client. Returns result. */
CUresult server_later_refuse(struct server_call *call, CUresult result);
bool server_is_later(uint16_t function);
/* Begins an asynchronous copy to the host. Its bytes stay on the device until the data connection can send them. array: NULL, or
 * the copy's description for the driver, if its source is an array. */
CUresult server_push_begin(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes, const CUDA_MEMCPY3D *array);
/* Begins an asynchronous copy to the device or to an array. The client sends the bytes when the stream reaches the copy. */
CUresult server_fetch_issue(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes, const CUDA_MEMCPY3D *array);
/* The worker is ending. */
void server_data_break(void);
CUresult serve_data_connection(struct server_call *call);
/* A CHUNK has arrived on the data connection. Whether it may be received while earlier ones are (ch3_register_ahead). */
int server_data_arrived(struct server_thread *thread, const ch3_incoming_t *incoming, ch3_sink_t *sink);
bool server_data_may_ahead(const struct rc_wire_chunk *chunk);
CUresult serve_copy_up_later(struct server_call *call);

/* ---- usage.c ---- */

/* A call is about to be executed; its reply is about to be sent. counts: it makes the session busy. */
void server_usage_call(bool counts);
void server_usage_call_end(bool counts, bool in_order);
/* Counts an allocation that takes its bytes from the budget, which is charged as a whole; cuMemFree subtracts it. */
void server_usage_placed(CUdeviceptr address, uint64_t bytes);
/* Frees such an allocation, which no work uses any more: the driver need not wait. */
CUresult server_usage_unplace(CUdeviceptr address);
/* Count memory that has no address of its own, and its end. gpu: the server's index. */
void server_usage_add(uint32_t gpu, uint64_t bytes);
void server_usage_sub(uint32_t gpu, uint64_t bytes);
/* Replaces the driver's functions that allocate and free by counting ones. After the driver was loaded. */
void server_usage_watch(void);

/* A connection after the first begins or ends. */
void server_usage_connection(bool begins);

/* ---- traffic.c: counts of launches and of bytes copied ---- */

void server_traffic_count_in(struct worker_usage *usage);
/* Replaces the driver's functions that launch and copy by functions that count. Once, after server_usage_watch. */
void server_traffic_watch(void);

/* ---- quota.c: the session's memory on each GPU. gpu: the server's index; any thread ---- */

/* The server's index of the session's GPU with this number. */
uint32_t server_quota_index(uint32_t number);
/* The GPU of the current context. */
uint32_t server_quota_gpu(void);
/* False if the session may not have that many bytes more; logged. Otherwise the caller allocates, or releases. */
bool server_quota_charge(uint32_t gpu, uint64_t bytes);
void server_quota_release(uint32_t gpu, uint64_t bytes);
/* Counts the charged bytes there from here on, an element for each GPU. Before worker_prepare. */
void server_quota_count_in(uint64_t *bytes);
/* Bytes of the GPU's memory that the session's pools keep although the program has freed them (usage_pools.c). give_back: the
 * pools first return what they can to the driver. */
uint64_t server_usage_kept(uint32_t gpu, bool give_back);
/* True if the session has a quota on some GPU. */
bool server_quota_is_set(void);
/* The client gives unused budget back on this thread. */
void server_quota_returned(void);
/* A call has been served on this thread. What the quota has refused for good is logged. */
void server_quota_served(uint16_t function, CUresult result);
/* Lowers the two figures of cuMemGetInfo to what the quota leaves. */
void server_quota_report(uint32_t gpu, size_t *free_bytes, size_t *total);

/* ---- output.c ---- */

/* Redirects the process's stdout and stderr into files in memory. The log keeps the old stderr. Negated errno. */
int server_output_take(void);
/* Sends what was printed since the last call. */
int server_output_ship(struct server_thread *thread);

/* ---- hostfn.c ---- */

int server_host_prepare(void);
/* Polls readable when a host function waits to be sent. */
int server_host_fd(void);
/* Sends the next host function over the first connection. */
int server_host_serve(struct server_thread *first);
int server_host_done(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);
void server_host_break(void);

/* On a thread of the driver: has the client call a host function of a graph, or move bytes of its memory. give: bytes for the
 * client; take: where those of the client go; at most one of the two is not NULL. */
void server_host_ask(uint64_t function, const uint8_t *give, uint8_t *take, uint64_t bytes);

/* ---- peer.c ---- */

/* The worker is ending: opens every gate, also those to come, and ends every peer_wait. */
void server_peer_break(void);
/* A context is about to end, and with it the memory that was allocated in it. */
void server_peer_forget(CUcontext context);
/* Called before and after code is loaded, as a driver may hold a lock and wait for all streams meanwhile. begin waits until no
 * stream waits for another server, for some seconds at most. If none does, none begins to until end is called. */
void server_gates_load_begin(void);
void server_gates_load_end(void);
/* A report that the client waits for (peer_wait), made before the work whose end it reports, and given to the
 * client in any case. NULL: no memory, or too many reports are outstanding. */
struct server_report *server_peer_report_new(uint64_t gate);
/* Gives the report to the client. flags: set of enum rc_peer_state_flags. Any thread. */
void server_peer_report(struct server_report *report, CUresult result, uint32_t flags);
/* The same, of a success that the client need not know now. */
void server_peer_report_later(struct server_report *report);
/* Where a stream waits for a gate. */
struct server_gate_place {
	uint32_t *word;
	uint32_t value; /* for step 0; that of step n is larger by n */
};
/* The gate of a copy of this session; no gate that the client names has its id. */
uint64_t server_gate_of_copy(uint64_t copy);
/* Of what the device has done of it: the stream writes the steps of this gate, and nobody waits for it in a stream. */
uint64_t server_gate_of_done(uint64_t copy);
/* True: one of these two is closed. The copy is under way, and its number cannot name another copy. */
bool server_gates_of_copy_exist(uint64_t copy);
CUresult server_gate_write(CUstream stream, const struct server_gate_place *place, uint32_t step);
/* The number of steps that the stream has written. No driver is called. */
uint32_t server_gate_written(uint64_t id);
/* Makes a closed gate of one or more steps. The stream waits for each of them; step n is the n-th, from 0.
 * CUDA_ERROR_INVALID_VALUE: a closed gate has this id. */
CUresult server_gate_make(struct server_thread *thread, uint64_t id, uint32_t steps, struct server_gate_place *place);
/* Puts a step into the stream. After a failure the caller opens the gate. */
CUresult server_gate_hold(CUstream stream, const struct server_gate_place *place, uint32_t step);
/* Lets the stream pass the steps up to this one; all steps. The latter ends the gate. */
void server_gate_pass(uint64_t id, uint32_t step);
void server_gate_open(uint64_t id);
CUresult serve_peer_gate(struct server_call *call);
CUresult serve_peer_event(struct server_call *call);
CUresult serve_peer_open(struct server_call *call);
CUresult serve_peer_wait(struct server_call *call);
CUresult serve_peer_flush(struct server_call *call);

/* ---- peer/ ---- */

/* Notes the address at which the client has reached this worker: other workers reach it there too. */
void server_links_prepare(const rc_door_peer_t *first);
/* The worker is ending: ends every link. */
void server_links_break(void);
/* A context is about to end. Called with the streams locked. */
void server_links_forget(CUcontext context);
/* From before that until the driver has ended the context, no trial of a link runs. The first one waits for trials. */
void server_links_bar_trials(void);
void server_links_allow_trials(void);
CUresult serve_peer_invite(struct server_call *call);
CUresult serve_peer_join(struct server_call *call);
CUresult serve_peer_close(struct server_call *call);
CUresult serve_peer_copy(struct server_call *call);
/* Before a call is issued: what links have brought so far is seen. */
void server_peer_see(void);
CUresult serve_peer_trial(struct server_call *call);

/* ---- the calls written by hand ---- */

CUresult serve_hello(struct server_call *call);
/* How many contexts have ended. If the count has changed, a context index may mean another context, and a thread's
 * current context may no longer exist. */
uint64_t server_contexts_ended(void);
CUresult serve_context_create(struct server_call *call);
CUresult serve_context_destroy(struct server_call *call);
CUresult serve_context_reset(struct server_call *call);
CUresult serve_context_synchronize(struct server_call *call);
CUresult serve_context_event(struct server_call *call);
/* green.c */
CUresult serve_resource_get(struct server_call *call);
CUresult serve_resource_split(struct server_call *call);
CUresult serve_resource_describe(struct server_call *call);
CUresult serve_green_create(struct server_call *call);
CUresult serve_green_destroy(struct server_call *call);
CUresult serve_green_stream(struct server_call *call);
/* Records the event in the green context, or lets the green context wait for it. */
CUresult server_green_event(uint64_t green, CUevent event, bool waits);
/* The green contexts of a primary context that is being reset are lost, and their streams. */
void server_greens_forget(CUcontext primary);
/* Waits for the work of every context of the session, and for those that are ending. The caller has left the call order.
 * CUDA_ERROR_OUT_OF_MEMORY: has not waited. */
CUresult server_contexts_wait(struct server_thread *thread);
/* Ends all contexts when no thread serves calls any more. Waits for their work. */
void server_contexts_finish(void);

/* ---- virtual.c ---- */

/* Then unmaps and releases the memory of virtual memory management. */
void server_virtual_finish(void);
/* The stream of a handle, for a call that has left the call order: no thread can destroy the stream until
 * server_stream_let_go. Makes the thread's context current. Any result but success: nothing is held. */
CUresult server_stream_hold(struct server_thread *thread, uint64_t handle, CUstream *stream);
void server_stream_let_go(void);
/* The same for the context of that index, which it makes current on the calling thread. */
CUresult server_context_hold(uint32_t index, CUcontext *context);
/* Held while a stream or a context is destroyed or reset. */
void server_streams_lock(void);
void server_streams_unlock(void);
CUresult serve_stream_destroy(struct server_call *call);
CUresult serve_stream_get_attribute(struct server_call *call);
CUresult serve_stream_set_attribute(struct server_call *call);
CUresult serve_pool_create(struct server_call *call);
CUresult serve_pool_destroy(struct server_call *call);
CUresult serve_pool_export(struct server_call *call);
CUresult serve_pool_import(struct server_call *call);
CUresult serve_pool_export_pointer(struct server_call *call);
CUresult serve_pool_import_pointer(struct server_call *call);
CUresult serve_memory_window(struct server_call *call);
CUresult serve_memory_budget(struct server_call *call);
CUresult serve_managed_info(struct server_call *call);
CUresult serve_managed_make(struct server_call *call);
CUresult serve_managed_free(struct server_call *call);
CUresult serve_managed_push(struct server_call *call);
CUresult serve_managed_variable(struct server_call *call);
CUresult serve_managed_pull(struct server_call *call);
CUresult serve_memory_place(struct server_call *call);
CUresult serve_memory_unplace(struct server_call *call);
CUresult serve_memory_alloc(struct server_call *call);
CUresult serve_memory_alloc_pitch(struct server_call *call);
CUresult serve_memory_free(struct server_call *call);
CUresult serve_pointer_attribute(struct server_call *call);
CUresult serve_memory_alloc_async(struct server_call *call);
CUresult serve_memory_free_async(struct server_call *call);
CUresult server_read_CUmemAllocationProp(CUmemAllocationProp *to);
CUresult serve_virtual_reserve(struct server_call *call);
CUresult serve_virtual_unreserve(struct server_call *call);
CUresult serve_virtual_create(struct server_call *call);
CUresult serve_virtual_properties(struct server_call *call);
CUresult serve_virtual_release(struct server_call *call);
CUresult serve_virtual_export(struct server_call *call);
CUresult serve_virtual_import(struct server_call *call);
CUresult serve_virtual_map(struct server_call *call);
CUresult serve_virtual_unmap(struct server_call *call);
CUresult serve_ipc_get_memory(struct server_call *call);
CUresult serve_ipc_open_memory(struct server_call *call);
CUresult serve_ipc_close_memory(struct server_call *call);
CUresult serve_ipc_get_event(struct server_call *call);
CUresult serve_ipc_open_event(struct server_call *call);
/* Counts memory that the current context, or none, has opened, perhaps not for the first time, and outputs its address and
 * size. pooled: it is freed, not closed. CUDA_ERROR_OUT_OF_MEMORY: beyond the session's quota; logged. */
CUresult server_ipc_opened(CUdeviceptr address, bool pooled, struct rc_wire_opened *answer);
/* The client frees memory: if it is memory of another session's pool, it is counted no more. Before the driver frees it, as
 * another thread may get the same address then; NULL: it was not counted. */
struct server_opened *server_ipc_freeing(CUdeviceptr address);
/* The driver has freed the memory, or has refused to. */
void server_ipc_freed(struct server_opened *opened, CUresult result);
/* What was opened in one context is that of another one from now on. */
void server_ipc_rename(CUcontext from, CUcontext to);
/* A context has ended, and with it what was opened in it. */
void server_ipc_forget(CUcontext context);
CUresult serve_copy_up(struct server_call *call);
CUresult serve_copy_up_end(struct server_call *call);
CUresult serve_copy_up_settled(struct server_call *call);
/* Issues all of a small copy. The driver has read bytes of pageable memory when this function returns. */
CUresult server_small_h2d(const struct rc_wire_box *box, const uint8_t *bytes, uint64_t len, CUstream stream);
CUresult serve_copy_down(struct server_call *call);
CUresult serve_copy_down_reply(struct server_call *call);
CUresult serve_copy_down_later(struct server_call *call);
CUresult serve_copy_across(struct server_call *call);
CUresult serve_array_up(struct server_call *call);
/* A call array_up is not executed, because of result: counts its slot. Returns result. */
CUresult server_array_refuse(struct server_call *call, CUresult result);
CUresult serve_array_down(struct server_call *call);
CUresult serve_array_up_later(struct server_call *call);
CUresult serve_array_down_later(struct server_call *call);
CUresult serve_array_pinned(struct server_call *call);
/* Copies the part of len bytes at offset of a copy with an array between the array and contiguous host memory. up: to the array. */
CUresult server_part_array(const CUDA_MEMCPY3D *array, const struct rc_wire_box *box, uint64_t offset, uint64_t len,
			   uint8_t *memory, bool up, CUstream stream);
/* Replaces the handles of a struct that has arrived (api/widths.py: TRANSLATED). Generated. */
CUresult server_read_CUDA_MEMCPY3D(CUDA_MEMCPY3D *to);
CUresult serve_stream_memory(struct server_call *call);
/* A memory operation that has arrived, for the driver. */
CUresult server_memop(const struct rc_wire_memop *from, CUstreamBatchMemOpParams *to);
CUresult serve_stream_synchronize(struct server_call *call);
CUresult serve_event_synchronize(struct server_call *call);
CUresult serve_event_elapsed(struct server_call *call);
CUresult serve_event_destroy(struct server_call *call);
CUresult serve_host_function(struct server_call *call);
CUresult serve_link_create(struct server_call *call);
CUresult serve_link_add(struct server_call *call);
CUresult serve_link_complete(struct server_call *call);
CUresult serve_link_destroy(struct server_call *call);
/* Takes count JIT options, at most RC_JIT_OPTIONS_MAX, and checks that they are numbers (api/jit_options.h). */
CUresult server_jit_options(struct server_call *call, uint32_t count, CUjit_option *names, void **values);
CUresult serve_module_load(struct server_call *call);
/* What the worker keeps of a module or library. */
struct server_module {
	bool library;
	bool of_library; /* a library's module: it ends with the library */
	uint32_t n;
	struct server_kernel *kernel;
};
void server_module_free(struct server_module *module);
CUresult serve_module_unload(struct server_call *call);
CUresult serve_module_global(struct server_call *call);
CUresult serve_library_module(struct server_call *call);
CUresult serve_tensor_map(struct server_call *call);
CUresult serve_tensor_map_address(struct server_call *call);
CUresult serve_function_attribute(struct server_call *call);
CUresult serve_function_cache(struct server_call *call);
CUresult serve_launch(struct server_call *call);
CUresult serve_occupancy_clusters(struct server_call *call);
CUresult serve_occupancy_cluster_size(struct server_call *call);
CUresult serve_graph_instantiate(struct server_call *call);
CUresult serve_graph_node(struct server_call *call);
CUresult serve_graph_update(struct server_call *call);
CUresult serve_graph_conditional(struct server_call *call);
CUresult serve_graph_conditionals_free(struct server_call *call);
CUresult serve_graph_launch(struct server_call *call);
CUresult serve_graph_destroy(struct server_call *call);

/* A kernel, as a module's load found it. */
struct server_kernel {
	void *object; /* CUfunction or CUkernel */
	uint32_t parameters, block;
	struct {
		uint32_t offset, size;
	} *parameter;
};

#endif
