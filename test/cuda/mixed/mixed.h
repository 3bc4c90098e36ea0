/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drawn sequences of asynchronous work on several GPUs, whose results are known: see mixed.c. order.c keeps which work is known to
 * come before which, operations.c makes the calls of an operation and computes its effect.
 */
#ifndef TEST_CUDA_MIXED_H
#define TEST_CUDA_MIXED_H

#include "test/cuda/softgpu/driver.h"

#include <stdbool.h>

#define MAX_DEVICES 3
#define STREAMS_PER_DEVICE 4 /* the default stream, one that waits for it, two that do not */
#define HOST 0               /* actor: the thread of the program. Actor 1 + n is stream n. */
#define ACTORS (1 + MAX_DEVICES * STREAMS_PER_DEVICE)
#define MAX_BLOCKS 24
#define EVENTS 6
#define MAX_GRAPHS 4
#define MAX_NODES 8
#define MAX_HISTORY 4000

enum kind { DEVICE, POOL, PINNED, MAPPED, REGISTERED, PAGEABLE, MANAGED, KINDS };

/* An allocation. */
struct block {
	bool live;
	enum kind kind;
	int device;
	size_t size;
	CUdeviceptr at;
	uint8_t *model; /* what it contains once all work is done */
};

/* The time of each actor up to which its work is known to be complete. */
struct clock {
	unsigned of[ACTORS];
};

struct stream {
	int device;
	bool legacy, blocking;
	CUstream handle;
};

struct event {
	CUevent handle;
	int device;
	bool recorded;
	struct clock clock;
};

enum what { FILL, COPY, INCREASE, WRITE, FUNCTION, PAUSE, WHATS };

/* Bytes of a block: rows of a width, each a pitch behind the one before it. */
struct area {
	int block; /* -1: none */
	size_t offset, width, rows, pitch;
};

struct operation {
	enum what what;
	struct area to, from;
	uint32_t value;
	int element; /* bytes of a value of FILL: 1, 2 or 4 */
	int form;    /* which of the calls that have this effect */
	int actor;
};

struct access {
	int block, actor;
	size_t begin, end;
	bool write, function;
	unsigned time;
};

struct graph {
	CUgraphExec exec;
	int nodes, origin; /* the stream whose capture made it */
	struct operation node[MAX_NODES];
	struct clock launched;
};

/* A module of a device, and its kernels. */
struct code {
	CUmodule module;
	CUfunction increase, write;
};

/* What one thread of the program works with. */
struct world {
	uint64_t random;
	unsigned thread; /* its number, in what it writes to stderr */
	int devices;
	bool verbose;
	struct block blocks[MAX_BLOCKS];
	struct stream streams[ACTORS]; /* by actor; HOST has none */
	struct event events[EVENTS];
	struct clock clocks[ACTORS];
	unsigned now[ACTORS];
	struct access history[MAX_HISTORY];
	int accesses;
	struct graph graphs[MAX_GRAPHS];
	struct code code[MAX_DEVICES];
	CUdeviceptr flags[MAX_DEVICES]; /* a word for each stream, which the stream writes and others wait for */
	uint32_t flagged[ACTORS];
	bool capturing, remote, several_servers;
	void **kept;
	size_t keeps;
};

extern CUcontext mixed_contexts[MAX_DEVICES];

uint32_t mixed_draw(struct world *world, uint32_t below);
void mixed_note(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Frees it when all work is done. */
void mixed_keep(struct world *world, void *memory);
bool mixed_on_host(const struct block *block);

/* What the actor waits for without any call: what the host knows to be complete, and default streams. */
void order_enter(struct world *world, int actor);
/* The actor is given work now. */
void order_step(struct world *world, int actor);
void order_join(struct world *world, int actor, const struct clock *clock);
/* Makes the actor wait for what an access of it must come after; of the host functions alone if only_functions. */
void order_before(struct world *world, int actor, const struct area *area, bool write, bool only_functions);
/* The accesses of an operation: makes its actors wait; enters the accesses, after its call. */
void order_operation(struct world *world, const struct operation *operation);
void order_issued(struct world *world, const struct operation *operation);
/* The same for a node of a graph that was launched in the actor's stream. */
void order_launched(struct world *world, int actor, const struct operation *operation);
/* The host has accessed the area. */
void order_host(struct world *world, const struct area *area, bool write);
void order_forget(struct world *world, int block);
/* The host waits for all work of a device; of all devices. */
void order_device(struct world *world, int device);
void order_all(struct world *world);
void order_record(struct world *world, int event, int actor);
void order_wait(struct world *world, int event, int actor);

size_t area_end(const struct area *area);
/* An operation for the actor; false: none was found. */
bool operation_draw(struct world *world, int actor, struct operation *operation);
void operation_issue(struct world *world, const struct operation *operation);
void operation_apply(struct world *world, const struct operation *operation);
void operation_note(struct world *world, const struct operation *operation);
/* The host knows that the operation is complete when its call has returned. */
bool operation_waits(const struct world *world, const struct operation *operation);

#endif
