/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages between client (libcuda.so.1) and worker over CH3, after the handshake. Each connection serves one thread
 * of the client. The first connection also carries host functions.
 *
 *	client → worker   CALL       struct rc_wire_call, the call's arguments (api/calls: fixed ones first); waiting or not
 *	                  CHUNK      struct rc_wire_chunk, bytes of the copy to the device that is in progress
 *	                  STAGED     struct rc_wire_staged: such bytes are in the connection's staging area
 *	                  CREDIT     struct rc_wire_credit: staged chunks to the host that the client has read
 *	                  WANT       struct rc_wire_credit: the client waits for a CREDIT of at least this
 *	                  HOST_DONE  struct rc_wire_host: the host function has returned; the bytes that a graph copies
 *	worker → client   REPLY      struct rc_wire_reply, the call's results; one for each waiting call
 *	                  CHUNK      struct rc_wire_chunk, bytes of a copy to the host
 *	                  STAGED     struct rc_wire_staged: such bytes are in the connection's staging area
 *	                  CREDIT     struct rc_wire_credit: chunks to the device whose slots are free again
 *	                  FETCH      struct rc_wire_fetch: the client sends these bytes of a copy to the device, as CHUNKs
 *	                  TEXT       struct rc_wire_text, what device code or the driver printed
 *	                  HOST       struct rc_wire_host: call this host function, or read or write (bytes) host memory of a
 *	                             graph's copy
 *
 * Every message is sent eagerly, so each connection handles its messages in the order they were sent. Numbers are
 * little-endian, sizes are in bytes. The first arguments or results are in CH3's header after the struct. The rest is the
 * payload.
 *
 * Order. Calls are numbered from 1 without a gap, over all connections of the client process. The worker issues them in
 * that order. A call that may block in the driver lets the next call go before it blocks. A long copy to the device takes
 * two numbers, for its start and for its last byte; other calls may be issued between the two.
 *
 * Chunks that are staged, and all chunks to the device, are counted on each connection. Chunk n has slot n % RC_WINDOW:
 * of the staging area, or of the worker's memory. The client sends a chunk to the device only if its slot is free: fewer
 * than RC_WINDOW chunks have been sent since the last CREDIT. So the worker never waits for a slot when a chunk arrives,
 * and a call that follows a chunk never waits for the device. Each REPLY says which slots are free. The worker sends a
 * CREDIT only if the client has to read it before it can send the last chunk of the copy, so that none is unread when the
 * client closes the connection. Likewise the worker fills a slot for the host only if it is free.
 *
 * The chunks of a copy that a call waits for (copy_down) come on the connection of that call, before its reply. The chunks
 * of an asynchronous copy come on the data connection, on which the client has made the call data_connection; the worker
 * does not answer it. A CHUNK without bytes says that the copy, in either direction, has failed. No chunk may exceed the bytes of its copy that
 * are left.
 *
 * The handshake compares versions and builds: cuda_remote/door/wire.h.
 */
#ifndef RC_CUDA_WIRE_H
#define RC_CUDA_WIRE_H

#include "ch3/ch3.h"

#include <assert.h>
#include <stdint.h>

enum rc_packet {
	RC_PACKET_CALL = CH3_TYPE_FIRST,
	RC_PACKET_REPLY,
	RC_PACKET_CHUNK,
	RC_PACKET_TEXT,
	RC_PACKET_HOST,
	RC_PACKET_HOST_DONE,
	RC_PACKET_STAGED,
	RC_PACKET_CREDIT,
	RC_PACKET_WANT,
	RC_PACKET_FETCH,
};

/* Limits that both sides observe. */
#define RC_CALL_BYTES_MAX (1ull << 30)   /* arguments of one call: a module's image is the largest */
#define RC_REPLY_BYTES_MAX (64ull << 20) /* results of one call */
#define RC_CHUNK_MAX (256u << 10)        /* bytes of one chunk; rc_box_chunk gives the size of each */
#define RC_WINDOW 16u                    /* chunks to the device that may be under way on a connection */
#define RC_INLINE_COPY (64u << 10)       /* a copy to the device of at most this size is sent with its call */
#define RC_REPLY_COPY 4096u               /* a waiting copy to the host of at most this size, in one part, is in its REPLY */
#define RC_DEVICES_MAX 64
#define RC_TEXT_MAX (1u << 20)           /* bytes of a name among the arguments, its NUL included */
#define RC_STRUCTS_MAX 128u              /* structs with handles or devices in one list among the arguments */

enum rc_call_flags {
	RC_CALL_WAIT = 1u << 0,       /* the client waits for a REPLY */
	RC_CALL_PER_THREAD = 1u << 1, /* the function's _ptds variant: the default stream is the thread's own */
	RC_CALL_OWN = 1u << 2,        /* a waiting call of the client library's own threads: does not report the failure of an
				       * earlier call, which the program's next waiting call must report */
	RC_CALL_ALONE = 1u << 3,      /* the work of all earlier calls is complete: the call need not leave the call order, as it
				       * waits for its own work only. copy_down_reply and copy_pinned_wait */
};

struct rc_wire_call {
	uint64_t number;   /* client: the call's number; worker: issues calls in this order */
	uint16_t function; /* client: enum rc_call; worker: chooses what to do */
	uint16_t flags;    /* client: set of enum rc_call_flags */
	uint32_t context;  /* client: index of the calling thread's current context, 0 for none; worker: makes it current */
};
static_assert(sizeof(struct rc_wire_call) == 16, "wire format");

/* Bytes of arguments that fit in CH3's header. */
#define RC_CALL_INLINE (CH3_HEADER_MAX - sizeof(struct rc_wire_call))

struct rc_wire_reply {
	uint64_t number;   /* worker: number of the call that this answers; client: checks it */
	uint64_t failed;   /* worker: number of the call that result belongs to: this call, or an earlier one without a reply */
	uint64_t shipped;  /* worker: count of messages given to the data connection so far, except FETCHes; client: returns from
			    * the call once it has received this many */
	int32_t result;    /* worker: CUresult; results follow after success only */
	uint16_t function; /* worker: of the call that result belongs to; client: names it in the log */
	uint16_t freed;    /* worker: low bits of the number of chunks of the connection that have left their slots, in order;
			    * client: sends chunks to these slots */
};
static_assert(sizeof(struct rc_wire_reply) == 32, "wire format");
#define RC_REPLY_INLINE (CH3_HEADER_MAX - sizeof(struct rc_wire_reply))

struct rc_wire_chunk {
	uint64_t copy;   /* client: the copy's number, which it chooses; worker: returns it in chunks to the host */
	uint64_t offset; /* sender: where the bytes belong in the copy, as if it were contiguous */
};
static_assert(sizeof(struct rc_wire_chunk) == 16, "wire format");

/* On the data connection: the stream has come to the copy of a copy_up_later. The client answers with the chunks of these
 * bytes, or with one CHUNK without bytes if it does not have them. */
struct rc_wire_fetch {
	uint64_t copy;
	uint64_t offset, bytes; /* worker: whole chunks, in the order of their offsets */
};
static_assert(sizeof(struct rc_wire_fetch) == 24, "wire format");

/* A chunk whose bytes are in its slot of the staging area, which client and worker on one host share. The client may change
 * the bytes at any time; so may the worker. */
struct rc_wire_staged {
	uint64_t copy, offset; /* as in struct rc_wire_chunk */
	uint64_t bytes;        /* sender: size of the chunk, at most RC_CHUNK_MAX */
};
static_assert(sizeof(struct rc_wire_staged) == 24, "wire format");

/* CREDIT, WANT: all chunks of the connection before this number have left their slots. After a WANT the client sends nothing
 * until its answer. */
struct rc_wire_credit {
	uint64_t chunks;
	uint64_t answer; /* worker: 1 if this CREDIT answers a WANT; otherwise 0 */
};
static_assert(sizeof(struct rc_wire_credit) == 16, "wire format");

/* Where the client writes a TEXT's payload. */
enum rc_text_stream { RC_TEXT_STDOUT = 1, RC_TEXT_STDERR = 2 };

struct rc_wire_text {
	uint32_t stream;   /* worker: enum rc_text_stream */
	uint32_t reserved; /* worker: 0 */
};
static_assert(sizeof(struct rc_wire_text) == 8, "wire format");

/* Ids of functions that the client chooses for graphs have the first bit. With the second bit the request is a copy of host memory:
 * it may be sent while a host function or other copies are not answered, RC_HOST_COPIES at most. */
#define RC_HOST_OF_GRAPH (1ull << 63)
#define RC_HOST_COPY (1ull << 62)
#define RC_HOST_COPIES 8

/* A host function of the client to be called in a stream's order. */
struct rc_wire_host {
	uint64_t ticket;   /* worker: number of this request; client: returns it in HOST_DONE */
	uint64_t function; /* client: id of function and argument, sent with its call; worker: returns it */
	uint64_t shipped;  /* worker: as in struct rc_wire_reply; client: has this many before it calls the function */
	int32_t status;    /* worker: CUresult of the stream, for cuStreamAddCallback */
	uint32_t reserved; /* worker: 0 */
};
static_assert(sizeof(struct rc_wire_host) == 32, "wire format");

/*
 * A box of device memory as a copy sees it: depth slices of height rows of width bytes. The other side of the copy is
 * the same bytes without gaps: offset ((z * height) + y) * width + x.
 */
struct rc_wire_box {
	uint64_t device;        /* address of the first byte */
	uint64_t pitch, slice;  /* bytes from a row to the next, from a slice to the next */
	uint64_t width, height, depth;
};
static_assert(sizeof(struct rc_wire_box) == 48, "wire format");

/* Bytes of a box, 0 if that is more than 64 bits can hold. */
static inline uint64_t rc_box_bytes(const struct rc_wire_box *box)
{
	uint64_t bytes;
	if (__builtin_mul_overflow(box->width, box->height, &bytes) || __builtin_mul_overflow(bytes, box->depth, &bytes))
		return 0;
	return bytes;
}

/* Bytes from the first to the last of a box that is not empty, gaps included; 0 if that overflows. */
static inline uint64_t rc_box_extent(const struct rc_wire_box *box)
{
	uint64_t rows, slices, extent;
	if (__builtin_mul_overflow(box->height - 1, box->pitch, &rows) ||
	    __builtin_mul_overflow(box->depth - 1, box->slice, &slices) || __builtin_add_overflow(rows, slices, &extent) ||
	    __builtin_add_overflow(extent, box->width, &extent) || __builtin_add_overflow(extent, box->device, &rows))
		return 0;
	return extent;
}

/* The part of a box that starts at offset and has at most limit > 0 bytes: part of one row of the box, or whole rows of one
 * slice. */
static inline uint64_t rc_box_part(const struct rc_wire_box *box, uint64_t offset, uint64_t limit)
{
	uint64_t x = offset % box->width, y = offset / box->width % box->height;
	if (x || box->width > limit) {
		uint64_t left = box->width - x;
		return left < limit ? left : limit;
	}
	uint64_t rows = limit / box->width, left = box->height - y;
	return (rows < left ? rows : left) * box->width;
}

/* The number of chunks of a copy whose box has less than 2^63 bytes. */
static inline uint64_t rc_box_chunks(const struct rc_wire_box *box)
{
	uint64_t rows = box->width > RC_CHUNK_MAX ? 1 : RC_CHUNK_MAX / box->width;
	if (box->width > RC_CHUNK_MAX)
		return (box->width + RC_CHUNK_MAX - 1) / RC_CHUNK_MAX * box->height * box->depth;
	return (box->height + rows - 1) / rows * box->depth;
}

/* The chunk of a copy that starts at offset. */
static inline uint64_t rc_box_chunk(const struct rc_wire_box *box, uint64_t offset)
{
	return rc_box_part(box, offset, RC_CHUNK_MAX);
}

/* Arguments of the calls that are not a driver function of their own (api/calls: internal). */

struct rc_wire_copy {
	uint64_t copy;   /* client: the copy's number, also in its chunks; no other copy of the session has it. 0 if the bytes are in
			  * this call's payload */
	uint64_t stream; /* client: handle, or one of CUDA's special values */
	struct rc_wire_box box;
	uint32_t staged;   /* client: 1 if the chunks are STAGED packets; copy_up and copy_down only */
	uint32_t unkept;   /* client: 1 if the bytes stay on the device until they are sent, and the stream waits until then;
			    * copy_down_later, and always in array_down_later */
};
static_assert(sizeof(struct rc_wire_copy) == 72, "wire format");

/*
 * Early copies: copy_up_early is copy_up with its bytes. The client numbers these copies from 1 (`copy`). Until the device has read the
 * bytes, copy_early_change {copy, bytes} replaces them; later the worker ignores it. copy_early_done asks for one bit for each of
 * `count` copies from `first` on, the lowest of a byte first: 1 if the copy is complete. The copies that the client asks for or changes
 * are among the last RC_EARLY_COPIES.
 */
#define RC_EARLY_COPIES 4096u
struct rc_wire_early_change {
	uint64_t copy; /* client */
};
struct rc_wire_early_done {
	uint64_t first, count; /* client; count <= RC_EARLY_COPIES */
};
static_assert(sizeof(struct rc_wire_early_change) == 8 && sizeof(struct rc_wire_early_done) == 16, "wire format");

/* The connection's staging area: pinned memory of RC_WINDOW slots of RC_CHUNK_MAX bytes, which ends with the connection. */
struct rc_wire_staging {
	uint64_t pinned; /* client: handle, as in struct rc_wire_pin; the worker ends it */
};

/* Between two boxes of device memory of the same width, height and depth. */
struct rc_wire_across {
	uint64_t stream;
	struct rc_wire_box to, from;
};
static_assert(sizeof(struct rc_wire_across) == 104, "wire format");

/*
 * Pinned memory of a client on the same host is a memfd that the client passes to the worker: struct rc_wire_pin with
 * the descriptor, over the socket of an RC_DOOR_MEMORY; struct rc_wire_pinned answers. The client may close the
 * descriptor then. The memfd is sealed against shrinking, so that the worker's accesses cannot fail. If several workers are to
 * map the memory, the client tries each of them first: RC_PIN_TRY, with the descriptor. If that succeeds, the next message over
 * this socket is RC_PIN_KEEP or RC_PIN_DROP, of the same handle and without a descriptor, and is answered too. Memory that is
 * dropped was never pinned, so its end waits for nothing.
 *
 * pinned_free ends the pinning. pinned_wait only waits as pinned_free does: the client ends the use of a part of such memory,
 * which it may allocate again after a success.
 *
 * Mapped and managed memory is such a memfd that client and worker map at the same address.
 *
 * pinned_mirror (struct rc_wire_pin): the memory of a client that shares none with the worker, from address on, at least
 * RC_PIN_LOWEST. The worker maps memory of its own over these addresses, and pins it, so that kernels find it: a mirror, see
 * managed_push. pinned_free ends it. CUDA_ERROR_ALREADY_MAPPED: the worker has other memory there; CUDA_ERROR_NOT_SUPPORTED:
 * the driver does not let kernels use such memory. With handle 0 the call only tells whether the addresses are free. It waits
 * for nothing, as pinned_free would.
 */
struct rc_wire_pin {
	uint64_t pinned;  /* client: handle */
	uint64_t bytes;   /* client: size, at most that of the memfd */
	uint64_t address; /* client: where it has mapped the memfd and the worker shall map it, at least RC_PIN_LOWEST; 0: the
			   * worker may map it anywhere */
	uint32_t step;    /* client: enum rc_pin_step */
	uint32_t reserved;
};
enum rc_pin_step {
	RC_PIN_WHOLE, /* maps the memory, pins it and binds the handle */
	RC_PIN_TRY,   /* maps the memory and takes it from the session's limit */
	RC_PIN_KEEP,  /* pins what was tried, and binds the handle; after a failure nothing is left of it */
	RC_PIN_DROP,  /* unmaps what was tried */
};
struct rc_wire_pinned {
	uint64_t pinned; /* worker: of the request */
	int32_t result;  /* worker: CUresult; CUDA_ERROR_ALREADY_MAPPED: the worker has other memory at the address. After
			  * another failure copies of this memory go in chunks */
	uint32_t mapped; /* worker: set of enum rc_pin_flags */
};
enum rc_pin_flags {
	RC_PIN_MAPPED = 1u << 0,    /* kernels may use the memory at the client's address */
	RC_PIN_DIVISIBLE = 1u << 1, /* the memory may hold several allocations: the driver checks no bounds within a page. Also
				     * in the answer to RC_PIN_TRY, which has no other flag */
};
#define RC_PIN_LOWEST (1ull << 32)

/* copy_pinned, copy_pinned_wait: the worker copies between its own mapping of pinned memory and the device, when the stream
 * gets there. */
struct rc_wire_copy_pinned {
	uint64_t stream;
	uint64_t pinned;       /* client: handle */
	uint64_t offset;       /* of the first byte in the pinned memory */
	uint64_t pitch, slice; /* in the pinned memory, as in box */
	struct rc_wire_box box;
	uint32_t to_device;    /* 1: to the device; 0: from it */
	uint32_t reserved;
};
/* copy_wait: waits for what is in the stream by then: copies whose calls the thread has sent before. Argument: the stream, uint64_t. */
struct rc_wire_pinned_free {
	uint64_t pinned;
	uint64_t unused; /* client: 1: no work uses the memory. The worker need not wait for work, unless its driver is the software
			  * GPU, where a kernel could use the memory after all */
};
static_assert(sizeof(struct rc_wire_pin) == 32 && sizeof(struct rc_wire_pinned) == 16 &&
	      sizeof(struct rc_wire_copy_pinned) == 96, "wire format");

/* event_elapsed: cuEventSynchronize of `event`, or cuStreamSynchronize, and the time from another event. Its answer: a float,
 * milliseconds, as the driver gives it; nothing if the driver does not give it. */
struct rc_wire_event_elapsed {
	uint64_t event;
	uint64_t start;
	uint64_t stream; /* that the call waits for; 0: it waits for the event */
};
static_assert(sizeof(struct rc_wire_event_elapsed) == 24, "wire format");

struct rc_wire_launch {
	uint64_t function; /* client: handle */
	uint64_t stream;
	uint32_t grid[3], block[3];
	uint32_t shared;     /* dynamic shared memory */
	uint32_t flags;      /* client: set of enum rc_launch_flags */
	uint32_t parameters; /* bytes of the parameter block, which follows */
	uint32_t attributes; /* count of CUlaunchAttribute that follow the block */
};
static_assert(sizeof(struct rc_wire_launch) == 56, "wire format");
/* occupancy_clusters, occupancy_cluster_size: struct rc_wire_launch without parameters, the attributes; the answer: int. */

enum rc_launch_flags {
	RC_LAUNCH_COOPERATIVE = 1u << 0,
};

/*
 * Executable graphs. graph_instantiate: struct rc_wire_graph_new, then a graph. A graph: struct rc_wire_graph, its nodes,
 * its edges. A node: struct rc_wire_node, then what its type says, padded to 8 bytes:
 *	kernel         struct rc_wire_graph_kernel, the parameter block padded to 8, for each bit of set a CUlaunchAttributeValue
 *	copy           struct rc_wire_graph_copy            fill    struct rc_wire_graph_fill
 *	host function, event    u64: the id of the function (as in struct rc_wire_host), the handle of the event
 *	child graph    the graph                            empty   nothing
 *	conditional    struct rc_wire_graph_condition, then its bodies, each a graph
 *	memory operations   u64: 1 to RC_MEMOPS_MAX, then as many struct rc_wire_memop
 * The nodes are numbered from 0 in the order in which their structs come. graph_node: struct rc_wire_graph_change, then the
 * node with its new parameters. graph_launch: struct rc_wire_graph_launch. graph_destroy: u64, the handle.
 * graph_update: as graph_instantiate; the graph replaces that of an executable graph that there is, which has the same nodes.
 *
 * Conditional handles are numbers of the driver. graph_conditional: struct rc_wire_conditional; its answer: u64, the number.
 * graph_conditionals_free: u64, what has the handles.
 */
struct rc_wire_graph_new {
	uint64_t exec;         /* client: handle of the executable graph */
	uint64_t flags;        /* as given to cuGraphInstantiateWithFlags */
	uint64_t conditionals; /* client: handle of what has the graph's conditional handles; 0: the graph has none */
};
struct rc_wire_conditional {
	uint64_t conditionals; /* client: handle of what has the conditional handles of one graph */
	uint64_t context;
	uint32_t value, flags; /* as given to cuGraphConditionalHandleCreate */
	uint32_t first;        /* 1: the handle `conditionals` is new */
	uint32_t reserved;     /* 0 */
};
static_assert(sizeof(struct rc_wire_graph_new) == 24 && sizeof(struct rc_wire_conditional) == 32, "wire format");
struct rc_wire_graph {
	uint32_t nodes, edges;
};
struct rc_wire_graph_edge {
	uint32_t from, to; /* places of two nodes in the list of the graph's nodes */
	uint8_t data[8];   /* CUgraphEdgeData */
};
static_assert(sizeof(struct rc_wire_graph_edge) == 16, "wire format");

enum rc_node_flags {
	RC_NODE_DISABLED = 1u << 0, /* of kernels, copies and fills, and of host functions that are copies for the client */
};

struct rc_wire_node {
	uint32_t type;    /* CUgraphNodeType */
	uint32_t flags;   /* set of enum rc_node_flags */
	uint64_t context; /* handle; 0 for types that have no context */
};
struct rc_wire_graph_change {
	uint64_t exec;
	uint32_t node, reserved; /* number of the node; 0 */
};
struct rc_wire_graph_launch {
	uint64_t exec, stream;
};
struct rc_wire_graph_kernel {
	uint64_t function;
	uint32_t grid[3], block[3];
	uint32_t shared;     /* dynamic shared memory */
	uint32_t parameters; /* bytes of the parameter block */
	uint32_t set;        /* bit i: the value of the attribute with this id follows, in ascending order */
	uint32_t reserved;   /* 0 */
};
/* One side of a copy, as in CUDA_MEMCPY3D. */
struct rc_wire_side {
	uint64_t object;  /* client: handle of an array, or of pinned memory that the worker has mapped; 0: device memory */
	uint64_t address; /* of pinned memory: the offset there; of an array: 0 */
	uint64_t x, y, z, pitch, height;
};
enum rc_graph_copy { RC_GRAPH_COPY_ACROSS, RC_GRAPH_COPY_UP, RC_GRAPH_COPY_DOWN };
struct rc_wire_graph_copy {
	struct rc_wire_side to, from; /* of host memory that the worker has not mapped: all 0 */
	uint64_t width, height, depth;
	uint64_t function; /* client: id of the host memory. The worker asks for the bytes of an UP, or sends those of a DOWN,
			    * by a HOST packet of this id when the graph has come to the node. 0 for ACROSS */
	uint32_t kind;     /* enum rc_graph_copy */
	uint32_t reserved; /* 0 */
};
struct rc_wire_graph_fill {
	uint64_t to, pitch, width, height;
	uint32_t value, element; /* element: bytes of one */
};
struct rc_wire_graph_condition {
	uint64_t number;       /* the conditional handle */
	uint32_t type, bodies; /* CUgraphConditionalNodeType */
};
static_assert(sizeof(struct rc_wire_node) == 16 && sizeof(struct rc_wire_graph_condition) == 16 && sizeof(struct rc_wire_graph_kernel) == 48 &&
	      sizeof(struct rc_wire_graph_copy) == 152 && sizeof(struct rc_wire_graph_fill) == 40, "wire format");

#define RC_UNITS_MAX 65535 /* what struct rc_wire_load can count */

/* A module's or library's load: struct, then the image. The reply: struct rc_wire_module, then for each kernel a struct
 * rc_wire_kernel, its parameters, its name. */
struct rc_wire_load {
	uint64_t handle;  /* client: of the module or library; its kernels' handles follow from it (rc_handle_kernel) */
	uint64_t image;   /* bytes that follow; padding of units included */
	uint32_t options; /* count of JIT options that follow the image, 16 bytes each: u32 option, u32 0, u64 value */
	uint32_t log_info, log_error; /* bytes of the JIT's logs that the caller has room for */
	uint16_t library; /* 1: cuLibraryLoadData; 0: cuModuleLoadDataEx */
	uint16_t units;   /* of a program linked from relocatable device code: containers behind the first, each padded to 8 */
};
static_assert(sizeof(struct rc_wire_load) == 32, "wire format");

/*
 * The JIT linker. The answers to link_add and link_complete are a struct rc_wire_linked, the two logs, and of link_complete
 * the image.
 */
struct rc_wire_link_create {
	uint64_t link;    /* client: handle */
	uint32_t options; /* count of JIT options that follow, as in struct rc_wire_load */
	uint32_t log_info, log_error; /* bytes of the logs that the caller has room for */
	uint32_t reserved;
};
struct rc_wire_link_add { /* the input, its name and its options follow */
	uint64_t link, bytes;
	uint32_t type;    /* CUjitInputType */
	uint32_t name;    /* bytes of the name, without a NUL */
	uint32_t options; /* count */
	uint32_t reserved;
};
struct rc_wire_link { /* link_complete, link_destroy */
	uint64_t link;
};
struct rc_wire_linked {
	int32_t result;   /* worker: CUresult; the reply's own is success, as logs follow a failure too */
	uint32_t log_info, log_error; /* worker: bytes of the two logs */
	uint32_t reserved;
};
static_assert(sizeof(struct rc_wire_link_create) == 24 && sizeof(struct rc_wire_link_add) == 32 &&
	      sizeof(struct rc_wire_linked) == 16, "wire format");

struct rc_wire_module {
	int32_t result;   /* worker: CUresult of the load; the reply's own is success, as logs follow a failure too */
	uint32_t kernels; /* worker: number of kernels that follow, at most RC_KERNELS_MAX */
	uint32_t log_info, log_error; /* worker: bytes of the two logs, which come before the kernels */
};
static_assert(sizeof(struct rc_wire_module) == 16, "wire format");

/* Arguments of the other internal calls; more bytes follow where a count says so. */
struct rc_wire_context { /* context_reset, context_destroy, context_synchronize */
	uint64_t context;
};
struct rc_wire_context_event {
	uint64_t context, event; /* context: may be a green one */
	uint32_t wait, reserved; /* client: 1: the context waits for the event; 0: the event is recorded in the context */
};

/* Multiprocessors of a device (CUdevResource). The worker keeps the driver's struct, whose content only the driver knows. */
struct rc_wire_resource {
	uint64_t number; /* by which the worker knows it; 0: no multiprocessors */
	uint32_t count, partition, alignment, reserved; /* members of CUdevSmResource */
};
static_assert(sizeof(struct rc_wire_resource) == 24, "wire format");
struct rc_wire_resource_get { /* resource_get; its answer: a struct rc_wire_resource */
	uint64_t green;   /* client: a green context; 0: all of the device */
	uint32_t device;  /* client: the server's number */
	uint32_t type;    /* client: CUdevResourceType */
};
struct rc_wire_resource_split {
	uint64_t number;
	uint32_t flags, least; /* client: as the program passed them */
	uint32_t room;         /* client: how many parts it wants to have; 0: only their number. Worker, in its answer: parts made */
	uint32_t rest;         /* client: 1: it wants to have what is left. In the answer parts and rest follow as resources */
};
static_assert(sizeof(struct rc_wire_resource_split) == 24, "wire format");
struct rc_wire_resource_describe { /* resource_describe; numbers of resources follow */
	uint64_t descriptor;      /* client: its handle */
	uint32_t count, reserved;
};
struct rc_wire_green_create { /* green_create; its answer: the green context's multiprocessors, uint32_t */
	uint64_t green, descriptor; /* client: handles; that of a green context is a context's */
	uint32_t device, flags;     /* client: the server's number; as the program passed them */
};
struct rc_wire_green_stream {
	uint64_t green, stream;
	uint32_t flags;
	int32_t priority;
};
#define RC_RESOURCES_MAX 4096 /* in a call */
struct rc_wire_context_create {
	uint64_t context;
	uint32_t flags, device; /* device: the server's number */
};
struct rc_wire_unload {
	uint64_t module; /* or library */
};
struct rc_wire_library_module { /* library_module; its answer: as that to a load, without logs */
	uint64_t library;
	uint64_t module; /* client: handle of the library's module in the call's context. It ends with the library */
};
struct rc_wire_global { /* module_global, managed_variable; the answer: u64 address, u64 bytes */
	uint64_t module;
	uint32_t name;   /* bytes of the name that follows */
	uint32_t mirror; /* client: managed_variable: 1: it has mapped the variable, and the worker sends what changes; else 0 */
};
struct rc_wire_function_attribute { /* also function_cache: value is the CUfunc_cache */
	uint64_t function;
	int32_t attribute, value;
	uint32_t device, reserved; /* for a library's kernel: the server's number */
};
struct rc_wire_host_function {
	uint64_t stream, function;
	uint32_t callback, reserved; /* callback: 1 for cuStreamAddCallback */
};
/* Placed memory: the client chooses the address of each allocation in a window of addresses, which it has reserved, within a
 * budget of the device's memory. The calls act on the device of the call's context. */
struct rc_wire_window { /* memory_window; its answer: struct rc_wire_placing */
	uint64_t base, bytes;
};
struct rc_wire_placing { /* as in struct rc_placed_memory (placed_memory.h) */
	uint64_t granule, small, page, unit;
};
struct rc_wire_budget { /* memory_budget; its answer: u64 bytes added */
	uint64_t least, most; /* client: bytes to add, multiples of the unit, 0 if less is not 0 */
	uint64_t less;        /* client: bytes to take away */
};
struct rc_wire_place { /* memory_place */
	uint64_t address, bytes;
};
struct rc_wire_address { /* memory_free; memory_unplace: for memory that no work uses, so that the driver does not wait */
	uint64_t address;
};
struct rc_wire_bytes { /* memory_alloc: the driver chooses the address; its answer: u64 address */
	uint64_t bytes;
};
/* IPC: a handle, which the client passes on as it is. Only workers read it (server/ipc/meeting.c). */
struct rc_wire_shared { /* answer to ipc_get_memory (struct rc_wire_address) and ipc_get_event (struct rc_wire_event) */
	uint8_t magic[8];
	uint8_t place[16];  /* worker: names the exporting worker's socket */
	uint8_t secret[16]; /* worker: names the object; drawn at random */
	uint32_t kind;
	uint8_t reserved[20];
};
struct rc_wire_event {
	uint64_t event; /* handle */
};
struct rc_wire_open { /* ipc_open_memory; ipc_open_event, which has no answer. ipc_close_memory: struct rc_wire_address */
	struct rc_wire_shared handle;
	uint64_t event;           /* client: handle of the new event; 0 for memory */
	uint32_t flags, reserved; /* client: as given to cuIpcOpenMemHandle; 0 */
};
struct rc_wire_opened { /* answer to ipc_open_memory */
	uint64_t address, bytes;
};
static_assert(sizeof(struct rc_wire_shared) == 64 && sizeof(struct rc_wire_open) == 80, "wire format");
/*
 * Mirrors: managed memory of a client on another host. Client and worker each have a copy and a twin, all zeros at first
 * (cuda_remote/mirror/mirror.h). managed_make (struct rc_wire_place) allocates at an address of the window, a multiple of
 * RC_MIRROR_PAGE. managed_free: struct rc_wire_address. managed_push: records of what the client has changed. managed_pull: struct
 * rc_wire_pull; the answer: struct rc_wire_pulled, then records of what the device has changed. managed_info: the answer: u64,
 * 1 if the worker can have mirrors. Pinned memory gets a mirror by pinned_mirror. A record: struct rc_wire_change, then its bytes.
 */
#define RC_MIRROR_PAGE 4096u
#define RC_MIRROR_PUSH (128u << 10)  /* bytes of the records of one managed_push */
#define RC_MIRROR_PULL (256u << 10)  /* bytes of one answer to managed_pull */
struct rc_wire_change {
	uint64_t address, bytes; /* sender: within one mirror; bytes is not 0 */
};
struct rc_wire_pull {
	uint64_t from; /* client: 0, or as the answer before said: the worker begins at this address */
};
struct rc_wire_pulled {
	uint64_t next; /* worker: 0: there is no more; else the address to go on from, above that of the request */
	uint64_t both; /* worker: a byte that the device had changed when a managed_push brought another value, or 0 */
};
struct rc_wire_rows { /* memory_alloc_pitch; its answer: u64 address, u64 pitch */
	uint64_t width, height;
	uint32_t element, reserved;
};
/* tensor_map, tensor_map_address: the arguments of cuTensorMapEncodeTiled and cuTensorMapReplaceAddress. The answer: the map. */
#define RC_TENSOR_RANK_MAX 5
#define RC_TENSOR_MAP_BYTES 128
struct rc_wire_tensor {
	uint64_t address;
	uint64_t dimensions[RC_TENSOR_RANK_MAX], strides[RC_TENSOR_RANK_MAX - 1]; /* those beyond the rank: 0 */
	uint32_t box[RC_TENSOR_RANK_MAX], steps[RC_TENSOR_RANK_MAX];
	uint32_t type, rank, interleave, swizzle, promotion, fill; /* client: rank 1 to RC_TENSOR_RANK_MAX */
};
struct rc_wire_tensor_address {
	uint64_t address;
	uint8_t map[RC_TENSOR_MAP_BYTES];
};
static_assert(sizeof(struct rc_wire_tensor) == 144 && sizeof(struct rc_wire_tensor_address) == 136, "wire format");
/* array_up, followed by a CUDA_MEMCPY3D and, if its source is host memory, by the bytes without gaps. array_down: u64 stream and a
 * CUDA_MEMCPY3D; its answer: the bytes. At most RC_CHUNK_MAX bytes. */
struct rc_wire_array {
	uint64_t stream;
	uint64_t parts; /* client: number of calls, from this one on, that bring the copy's parts. Each takes a slot of the
			 * connection, as a chunk does. 0: the bytes are at most RC_INLINE_COPY, or none, and take no slot */
};
static_assert(sizeof(struct rc_wire_array) == 16, "wire format");
/* array_up_later, array_down_later: struct rc_wire_copy and a CUDA_MEMCPY3D. As copy_up_later and copy_down_later, with an array
 * in place of the device memory. The box is that of the copy without gaps, at address 0; `unkept` is set in array_down_later.
 *
 * array_pinned: between an array and pinned memory that the worker has mapped; followed by a CUDA_MEMCPY3D, whose host side is at
 * offset, with its pitch and its height. */
struct rc_wire_array_pinned {
	uint64_t stream;
	uint64_t pinned; /* client: handle */
	uint64_t offset; /* of the first byte in the pinned memory */
};
static_assert(sizeof(struct rc_wire_array_pinned) == 24, "wire format");
/* Memory operations of a stream: stream_memory, followed by its operations, of which the driver gets one batch. */
#define RC_MEMOPS_MAX 255
struct rc_wire_memops {
	uint64_t stream;
	uint32_t count, reserved; /* client: 1 to RC_MEMOPS_MAX; 0 */
};
struct rc_wire_memop {
	uint32_t operation, flags; /* client: CUstreamBatchMemOpType; as CUDA's struct has them */
	uint64_t address;          /* client: of the word; of pinned memory: its offset there */
	uint64_t value;
	uint64_t pinned;           /* client: handle of pinned memory that the worker has mapped; 0: device memory */
};
static_assert(sizeof(struct rc_wire_memops) == 16 && sizeof(struct rc_wire_memop) == 32, "wire format");
/* Virtual memory management. Memory has a handle of kind ALLOCATION, which the client releases after its last mapping. */
struct rc_wire_reserve { /* virtual_reserve; its answer: u64 address */
	uint64_t bytes, alignment, hint; /* as given to cuMemAddressReserve */
};
struct rc_wire_range { /* virtual_unreserve, virtual_unmap */
	uint64_t address, bytes;
};
struct rc_wire_memory { /* virtual_release; virtual_properties, its answer: allocFlags of CUmemAllocationProp */
	uint64_t memory;
};
/* virtual_export (struct rc_wire_memory), pool_export (u64, the pool) and pool_export_pointer (struct rc_wire_address): the answer
 * is a struct rc_wire_shared. */
struct rc_wire_import { /* virtual_import; pool_import, which has no answer; pool_import_pointer: struct rc_wire_opened */
	struct rc_wire_shared handle;
	uint64_t object; /* client: handle of the imported memory or pool; of a pointer: of its imported pool */
};
struct rc_wire_imported { /* answer to virtual_import */
	uint64_t bytes;
	uint32_t device, reserved; /* worker: the server's number */
};
static_assert(sizeof(struct rc_wire_import) == 72 && sizeof(struct rc_wire_imported) == 16, "wire format");
struct rc_wire_map { /* virtual_map */
	uint64_t address, bytes, offset, memory;
};
static_assert(sizeof(struct rc_wire_reserve) == 24 && sizeof(struct rc_wire_range) == 16 &&
	      sizeof(struct rc_wire_map) == 32, "wire format");
struct rc_wire_alloc { /* memory_alloc_async; its answer: u64 address */
	uint64_t bytes, stream, pool; /* pool: 0 for the device's current one */
};
struct rc_wire_free {
	uint64_t address, stream;
};
static_assert(sizeof(struct rc_wire_function_attribute) == 24 && sizeof(struct rc_wire_host_function) == 24 &&
	      sizeof(struct rc_wire_alloc) == 24 && sizeof(struct rc_wire_window) == 16 && sizeof(struct rc_wire_placing) == 32 &&
	      sizeof(struct rc_wire_budget) == 24 && sizeof(struct rc_wire_place) == 16 && sizeof(struct rc_wire_rows) == 24 && sizeof(struct rc_wire_global) == 16, "wire format");

/*
 * Gates: how a stream waits for another server. The client names a gate. peer_gate puts it into a stream: when the stream
 * arrives, peer_wait reports the gate (TELL), and the stream waits until peer_open opens it (HOLD). peer_event: peer_wait
 * reports the gate when the event, as it was last recorded, is complete.
 */
enum rc_peer_gate_flags { RC_PEER_TELL = 1u << 0, RC_PEER_HOLD = 1u << 1 };

struct rc_wire_peer_gate {
	uint64_t stream, gate;
	uint32_t flags, reserved; /* client: set of enum rc_peer_gate_flags */
};
struct rc_wire_peer_event {
	uint64_t event, gate;
};
enum rc_peer_state_flags { RC_PEER_LINK_FAILED = 1u << 0 };

/* The argument of peer_open, and an element of the answer to peer_wait, which blocks until there is one. The worker may keep
 * reports of copies that have succeeded until it has RC_PEER_STATES_KEPT of them; peer_flush asks for all. */
struct rc_wire_peer_state {
	uint64_t gate;     /* of a transfer: its number */
	int32_t result;    /* why what the stream waits for has failed; why the stream, the event or the transfer has failed */
	uint32_t flags;    /* worker: set of enum rc_peer_state_flags; peer_open: 0 */
};
static_assert(sizeof(struct rc_wire_peer_gate) == 24 && sizeof(struct rc_wire_peer_event) == 16 &&
	      sizeof(struct rc_wire_peer_state) == 16, "wire format");

/*
 * Links: connections between the workers of two sessions, over which copies go from the source to the target. The client
 * names a link and asks one of the two workers for an invitation (peer_invite), which it gives to the other (peer_join).
 * Then it sends peer_copy to both workers for each copy. peer_wait reports the end of both sides.
 */
#define RC_PEER_TICKET_BYTES 32
#define RC_PEER_TIMEOUT_MAX 60000u     /* ms */
#define RC_PEER_BUFFERS_MAX 64u
#define RC_PEER_CHUNK_MIN 4096u
#define RC_PEER_CHUNK_MAX (64u << 20)

enum rc_peer_link_flags {
	RC_PEER_SOURCE = 1u << 0,  /* client: this worker is the source, else the target */
	RC_PEER_ENCRYPT = 1u << 1, /* client: encrypt the link, unless it stays on one host; worker: it does so in any case */
	RC_PEER_DIRECT = 1u << 2,  /* worker: device memory is memory of the host, so the connection can use it directly */
};

struct rc_wire_peer_invite { /* its answer: struct rc_wire_peer_invitation */
	uint64_t link;       /* client: number of the link */
	uint32_t flags;      /* client: set of enum rc_peer_link_flags */
	uint32_t timeout_ms; /* client: the invitation ends after this time, at most RC_PEER_TIMEOUT_MAX */
};
#define RC_PEER_ADDRESSES_MAX 8
struct rc_wire_peer_address {
	char text[48];       /* worker: IP address; "": none */
	uint32_t port;
};
struct rc_wire_peer_invitation {
	uint8_t ticket[RC_PEER_TICKET_BYTES]; /* worker: secret; valid once */
	char name[32];       /* worker: Unix socket in the abstract namespace, or "" */
	struct rc_wire_peer_address address[RC_PEER_ADDRESSES_MAX]; /* worker: where it listens, the best first; then "" */
	uint32_t flags;      /* worker: set of enum rc_peer_link_flags */
	uint32_t card_bytes; /* worker: of the channel's card, at most HR_CARD_MAX */
	uint8_t card[HR_CARD_MAX];
};
struct rc_wire_peer_join { /* followed by the invitation; its answer: struct rc_wire_peer_joined */
	uint64_t link;
	uint32_t flags, timeout_ms; /* as in struct rc_wire_peer_invite */
};
struct rc_wire_peer_joined {
	uint32_t flags;      /* worker: set of enum rc_peer_link_flags */
	uint32_t on_host;    /* worker: 1 if the link stays on one host */
};
struct rc_wire_peer_close { /* peer_close: the link's copies end with a failure */
	uint64_t link;
};
static_assert(sizeof(struct rc_wire_peer_invite) == 16 && sizeof(struct rc_wire_peer_join) == 16 &&
	      sizeof(struct rc_wire_peer_address) == 52 &&
	      sizeof(struct rc_wire_peer_invitation) == 72 + 52 * RC_PEER_ADDRESSES_MAX + HR_CARD_MAX && sizeof(struct rc_wire_peer_joined) == 8,
	      "wire format");

/* Where the bytes are between the connection and the device memory that is copied. */
enum rc_peer_way {
	RC_PEER_BY_NONE,   /* nowhere: the connection uses the memory itself */
	RC_PEER_BY_DEVICE, /* in buffers in device memory */
	RC_PEER_BY_HOST,   /* in buffers in pinned memory */
	RC_PEER_WAYS,
};
struct rc_wire_peer_plan {
	uint32_t way;     /* client: enum rc_peer_way */
	uint32_t buffers; /* client: 1 to RC_PEER_BUFFERS_MAX; 0 without buffers */
	uint32_t chunk;   /* client: bytes of one buffer, RC_PEER_CHUNK_MIN to RC_PEER_CHUNK_MAX; 0 without buffers */
	uint32_t reserved;
};
/* All set by the client. */
enum rc_peer_copy_flags {
	RC_PEER_COPY_TELL = 1u << 0,   /* the copy is made after this worker's stream has reached it */
	RC_PEER_COPY_HOLD = 1u << 1,   /* this worker's stream waits for its end; the number of the copy is that of the gate */
	RC_PEER_COPY_EVENT = 1u << 2,  /* with TELL, without HOLD: the stream is an event, as it was last recorded */
	RC_PEER_COPY_SEND = 1u << 3,   /* this worker is the source, else the target */
	RC_PEER_COPY_AWAIT = 1u << 4,  /* source: the target has TELL */
	RC_PEER_COPY_ANSWER = 1u << 5, /* the source has HOLD: the target answers with RC_PEER_NOTE_DONE */
	RC_PEER_COPY_LOUD = 1u << 6,   /* the client waits for the report */
	RC_PEER_COPY_EMPTY = 1u << 7,  /* without bytes; box and plan are not used */
};
/* The worker reports the end of its side with the copy's number. If the copy has failed, it latches the failure if a stream of
 * its own waits, and lets the stream go on. But if RC_PEER_LINK_FAILED is reported, the stream still waits for peer_open. */
struct rc_wire_peer_copy {
	uint64_t stream;         /* client: if TELL or HOLD */
	uint64_t link, transfer; /* client: transfer: the number that peer_wait reports */
	uint32_t flags, reserved;
	struct rc_wire_peer_plan plan;
	struct rc_wire_box box;
};
/* peer_trial: measures a copy of memory of the workers' own. Sent to the target (the worker answers at once), then to the
 * source, which answers with u64 ns of the fastest round. */
#define RC_PEER_TRIAL_MAX (16u << 20)
#define RC_PEER_ROUNDS_MAX 64u
struct rc_wire_peer_trial {
	uint64_t link;
	uint32_t bytes, rounds; /* client: at most RC_PEER_TRIAL_MAX, RC_PEER_ROUNDS_MAX */
	struct rc_wire_peer_plan plan;
};
static_assert(sizeof(struct rc_wire_peer_plan) == 16 && sizeof(struct rc_wire_peer_copy) == 96 &&
	      sizeof(struct rc_wire_peer_trial) == 32, "wire format");
#define RC_PEER_STATES_MAX 64 /* elements of one answer to peer_wait */
#define RC_PEER_STATES_KEPT 32

/*
 * Between two workers. The side that joins sends the hello, the other answers with the welcome; the proofs are of the ticket
 * (rc_door_secret_proof). Then the socket becomes that of a channel connection. In it the source sends frames, and the
 * target notes.
 */
#define RC_PEER_MAGIC "HRLINK2"
struct rc_wire_peer_hello {
	char magic[8];
	uint8_t nonce[32];   /* random */
	uint32_t card_bytes; /* of the joining side's channel card, at most HR_CARD_MAX */
	uint32_t encrypt;    /* 1: the connection is encrypted; 0 is refused if the other side demands encryption */
	uint8_t card[HR_CARD_MAX];
	uint8_t proof[32];   /* label "headrace link hello", of the bytes before */
};
struct rc_wire_peer_welcome {
	uint8_t nonce[32];   /* random */
	uint8_t proof[32];   /* label "headrace link welcome", of the hello and the nonce */
};
struct rc_wire_peer_frame { /* followed by bytes */
	uint64_t transfer; /* source: number of the transfer, 0 for a trial */
	uint64_t total;    /* source: bytes of the transfer */
	uint64_t offset;   /* source: of the first byte in the transfer; frames come in this order */
	uint32_t bytes;    /* source: that follow; 0: the transfer ends here, as it failed or has no bytes */
	int32_t result;    /* source: CUresult of a transfer that failed */
};
enum rc_peer_note_kind {
	RC_PEER_NOTE_READY = 1, /* the target's stream has reached the copy */
	RC_PEER_NOTE_DONE,      /* the bytes of the copy are there, or the copy has failed */
	RC_PEER_NOTE_ROUND,     /* a round of a trial is over */
};
struct rc_wire_peer_note {
	uint64_t transfer; /* target: 0: of the trial */
	uint32_t kind;     /* target: enum rc_peer_note_kind */
	int32_t result;    /* target: CUresult of DONE; else 0 */
};
static_assert(sizeof(struct rc_wire_peer_hello) == 80 + HR_CARD_MAX && sizeof(struct rc_wire_peer_welcome) == 64 &&
	      sizeof(struct rc_wire_peer_frame) == 32 && sizeof(struct rc_wire_peer_note) == 16, "wire format");

/* Number of function attributes that are sent with a kernel; the index is the CUfunction_attribute. */
#define RC_KERNEL_ATTRIBUTES 16

struct rc_wire_kernel {
	uint32_t name;       /* bytes of the name, without a NUL */
	uint32_t parameters; /* count; each is two u32: offset and size in the block */
	uint32_t block;      /* bytes of the parameter block */
	uint32_t known;      /* set of attributes that the driver knows, bit i for attribute i */
	int32_t attribute[RC_KERNEL_ATTRIBUTES];
};
static_assert(sizeof(struct rc_wire_kernel) == 80, "wire format");

/* The argument of hello. */
struct rc_wire_greeting {
	uint64_t primary; /* client: handle of device 0's primary context; that of device i has the index plus i. Every hello
			   * of a session has the same. */
};

/* The answer to hello: struct, then a struct rc_wire_device for each device. */
struct rc_wire_hello {
	uint32_t devices;
	int32_t driver_version;
	uint64_t staging; /* limit of the bytes that asynchronous copies to the host may have in progress */
	uint64_t pinned;  /* limit of the bytes of pinned memory that a worker on the same host maps */
};
static_assert(sizeof(struct rc_wire_hello) == 24, "wire format");

#define RC_DEVICE_ATTRIBUTES 160 /* room for CU_DEVICE_ATTRIBUTE_MAX of this and some later CUDA */

struct rc_wire_device {
	char name[256];
	uint8_t uuid[16];
	char pci[16];             /* "0000:3b:00.0" */
	uint64_t memory;          /* total */
	int32_t least_priority, greatest_priority;
	uint8_t known[RC_DEVICE_ATTRIBUTES]; /* 1: the driver knows this attribute */
	int32_t attribute[RC_DEVICE_ATTRIBUTES];
	uint8_t peers[RC_DEVICES_MAX];       /* 1: may access that device's memory */
	uint8_t p2p[RC_DEVICES_MAX][8];      /* cuDeviceGetP2PAttribute by device and attribute */
};
static_assert(sizeof(struct rc_wire_device) == 256 + 32 + 16 + 5 * RC_DEVICE_ATTRIBUTES + 9 * RC_DEVICES_MAX, "wire format");

/*
 * Handles. Client, worker and program use the same 64-bit value:
 *	bits 0..23 index, 24..39 generation, 40..47 kind, 48..63 ordinal.
 * It is not an address, nor one of CUDA's special streams. The client chooses every handle, so that no object has to be
 * named in a reply. The handle of a function (kernel) has index and generation of its module (library); the ordinal is its
 * place in the list that the load returns. Handles of other kinds have the ordinal 0.
 */
enum rc_kind {
	RC_KIND_NONE, RC_KIND_CONTEXT, RC_KIND_STREAM, RC_KIND_EVENT, RC_KIND_MODULE, RC_KIND_FUNCTION, RC_KIND_LIBRARY,
	RC_KIND_KERNEL, RC_KIND_POOL, RC_KIND_GRAPH_EXEC, RC_KIND_PINNED, RC_KIND_ARRAY, RC_KIND_MIPMAP,
	RC_KIND_TEXTURE_REF, RC_KIND_SURFACE_REF, RC_KIND_ALLOCATION, RC_KIND_LINK, RC_KIND_CONDITIONALS,
	RC_KIND_DESCRIPTOR, RC_KINDS
};

/* Objects that the driver names by numbers, which kernels read. The client does not choose these. */
enum rc_number { RC_NUMBER_TEXTURE, RC_NUMBER_SURFACE };

static_assert(RC_KIND_FUNCTION - RC_KIND_MODULE == RC_KIND_KERNEL - RC_KIND_LIBRARY, "rc_handle_kernel");
#define RC_HANDLE_INDEX_BITS 24
#define RC_HANDLE_COUNT (1u << RC_HANDLE_INDEX_BITS)
#define RC_KERNELS_MAX (1u << 16) /* functions of a module, kernels of a library */

static inline uint64_t rc_handle_make(enum rc_kind kind, uint32_t index, uint16_t generation)
{
	return (uint64_t)kind << 40 | (uint64_t)generation << 24 | index;
}

static inline uint32_t rc_handle_index(uint64_t handle)
{
	return (uint32_t)handle & (RC_HANDLE_COUNT - 1);
}

static inline enum rc_kind rc_handle_kind(uint64_t handle)
{
	unsigned kind = (unsigned)(handle >> 40) & 0xff;
	return kind < RC_KINDS ? (enum rc_kind)kind : RC_KIND_NONE;
}

/* The handle of the function (kernel) with this ordinal of a module (library). */
static inline uint64_t rc_handle_kernel(uint64_t module, uint32_t ordinal)
{
	return module + ((uint64_t)(RC_KIND_FUNCTION - RC_KIND_MODULE) << 40) + ((uint64_t)ordinal << 48);
}

static inline uint32_t rc_handle_ordinal(uint64_t handle)
{
	return (uint32_t)(handle >> 48);
}

/* The handle of the module (library) of a function (kernel); 0 if the handle is of another kind. */
static inline uint64_t rc_handle_module(uint64_t handle)
{
	enum rc_kind kind = rc_handle_kind(handle);
	if (kind != RC_KIND_FUNCTION && kind != RC_KIND_KERNEL)
		return 0;
	return (handle & ((1ull << 48) - 1)) - ((uint64_t)(RC_KIND_FUNCTION - RC_KIND_MODULE) << 40);
}

/* Bytes of a memory pool's attribute, by CUmemPool_attribute: the first three are int, the others counts of bytes. */
static inline size_t rc_pool_attribute_bytes(unsigned attribute)
{
	return attribute <= 3 ? 4 : 8;
}

/* CUDA's own stream values: NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD. */
static inline int rc_stream_is_special(uint64_t stream)
{
	return stream <= 2;
}

#endif
