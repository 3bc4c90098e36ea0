/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams as queues of commands, and the worker threads that run them.
 *
 * A stream's commands run one after another in the order of submission. A command may depend on a command of another
 * stream. The legacy default stream synchronizes with the blocking streams of its context (CUDA Runtime API, "Stream
 * synchronization behavior"): its command waits for the commands that they were given before, and their later commands
 * wait for it. A stream is ready when its next command may run. Worker threads take ready streams, the highest priority
 * first. Worker threads are started when they are needed. There are at most QUEUE_MAX_WORKERS, so this number of kernels can
 * run at once. The thread of a command that waits for a value or runs a host function does not count (queue_rest_begin).
 * A thread that waits for a ready stream which no worker has taken runs its commands instead of sleeping.
 *
 * One lock guards all queues of the process. A command depends only on commands that were submitted earlier, so there
 * are no circular dependences. Any thread may call anything here.
 */
#ifndef SOFTGPU_QUEUE_H
#define SOFTGPU_QUEUE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/handle.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define QUEUE_MAX_WORKERS 128

/* First member of every command. The submitter allocates a command with malloc; the queue frees it. */
typedef struct command {
	/*
	 * Runs the command. An error is a fault: the context keeps it and skips its later commands. NULL: nothing to
	 * do.
	 */
	CUresult (*run)(struct command *command);
	void (*finish)(struct command *command); /* NULL, or frees what the command holds, run or skipped */
	bool host_code;     /* runs a function of the program: only a worker thread may run it */
	bool despite_fault; /* runs even if the context has failed */
	/* Written by the queue: */
	struct command *next;
	uint64_t sequence, ticket;
	CUstream on; /* NULL, or the command waits until this stream has completed on_sequence; a reference */
	uint64_t on_sequence;
} command_t;

enum queue_state {
	QUEUE_IDLE,    /* no command */
	QUEUE_READY,   /* listed for a worker */
	QUEUE_RUNNING, /* a thread runs its commands */
	QUEUE_BLOCKED, /* in the list of the stream that its first command waits for */
};

struct CUstream_st {
	handle_t handle;
	/* Constant: */
	CUcontext context;
	struct queue_group *group; /* the context's */
	unsigned flags;
	int priority; /* smaller is more urgent */
	uint64_t id;
	bool legacy;   /* the context's legacy default stream */
	bool blocking; /* synchronizes with the legacy stream */
	CUgreenCtx green; /* the green context that it was created in, or NULL; atomic; compared only */
	bool of_thread; /* a thread's default stream, which cuStreamDestroy refuses; atomic */
	bool orphan;   /* its green context was destroyed; atomic */
	bool detached; /* its context was destroyed; under the queue's lock */
	/* Under the queue's lock: */
	unsigned references; /* held by the handle, pending work, events and dependent commands */
	enum queue_state state;
	command_t *first, *last;
	uint64_t submitted; /* read without the lock too */
	uint64_t completed; /* the same */
	uint64_t claim_ticket; /* of queue_claim; 0 while the stream is not claimed */
	CUstream previous_ready, next_ready;
	CUstream first_blocked, next_blocked;
	CUstream previous, next; /* in the context's list */
	unsigned sleepers;
	pthread_cond_t done;
	/* Of copy.c: copies that each begin where the one before it ended. Atomic; a wrong value makes a copy slower only. */
	uint64_t run_end, run_bytes;
	/* Of stream.c, under its lock: */
	CUaccessPolicyWindow access_window;
	CUsynchronizationPolicy sync_policy; /* 0: never set */
	/* Of capture.c, under its lock: */
	struct capture_stream *capture; /* NULL: the stream does not capture */
};

/* The streams of one context, and the fault of their commands. Part of struct CUctx_st. */
typedef struct queue_group {
	uint64_t id;    /* the context's, for messages */
	CUresult fault; /* atomic; CUDA_SUCCESS or the first one */
	/* Under the queue's lock: */
	CUstream legacy, first;
	CUstream gate; /* all streams created later wait for it, see context_event.c; NULL until queue_group_gate */
	unsigned busy; /* blocking streams that are not idle */
} queue_group_t;

/* Records a fault of the group's context; the first one stays. */
void queue_group_fail(queue_group_t *group, CUresult fault);
static inline CUresult queue_group_error(const queue_group_t *group)
{
	/* Orders nothing: a caller that reports the fault needs only its code. */
	return __atomic_load_n(&group->fault, __ATOMIC_RELAXED);
}

/* Creates a stream of context, in its group, with one reference for the caller. NULL: no memory. */
CUstream queue_stream_new(CUcontext context, queue_group_t *group, unsigned flags, int priority, bool legacy);

/* Add and drop a reference. A stream whose last reference is dropped completes its work first. */
void queue_stream_hold(CUstream stream);
void queue_stream_release(CUstream stream);

/* Appends a command, which the queue owns from now on; returns its number in the stream. */
uint64_t queue_submit(CUstream stream, command_t *command);

/* For the calling thread, see cuda_remote/call_follows.h. */
void queue_call_follows(bool follows);

/* Later commands of stream wait for command number sequence of stream on. False: no memory. */
bool queue_submit_wait(CUstream stream, CUstream on, uint64_t sequence);

/*
 * Claims a stream that is idle and has nothing to wait for. True: the caller does its work in this thread, then calls
 * queue_unclaim. False: the caller must submit a command.
 */
bool queue_claim(CUstream stream);
void queue_unclaim(CUstream stream);
/* The same for work that takes less time than a claim: calls back under the queue's lock. work may not call functions of this
 * header, and must not wait. */
bool queue_do(CUstream stream, void (*work)(const void *argument), const void *argument);
/* True if the stream is idle and has nothing to wait for. */
bool queue_is_free(CUstream stream);

/* The number of the last command submitted, and whether the command with a number is complete. */
uint64_t queue_submitted(CUstream stream);
bool queue_done(CUstream stream, uint64_t sequence);
/* Waits until it is complete. The caller holds a reference or the handle. */
void queue_wait(CUstream stream, uint64_t sequence);
/* Waits for all commands that the group's streams had been given before this call. */
void queue_wait_group(queue_group_t *group);
/*
 * The group's streams, or only those of a green context if green is not NULL. Each has a reference for the caller, who
 * frees the array. NULL: no memory.
 */
CUstream *queue_group_streams(queue_group_t *group, CUgreenCtx green, size_t *count);
/* The group's gate, which the first call creates. NULL: no memory. */
CUstream queue_group_gate(CUcontext context, queue_group_t *group);
/*
 * The context is being destroyed: drops the gate, and detaches the streams that still have references. All streams are
 * idle and their handles retired.
 */
void queue_group_detach(queue_group_t *group);
/*
 * Calls back while no command of any stream runs, and keeps new commands from starting meanwhile. call may not call
 * functions of this header. Waits without limit while commands follow each other without a gap.
 */
int queue_alone(int (*call)(void *argument), void *argument);
/*
 * A command calls these around a wait (for a value or for another process) and around the program's own functions.
 * In between it must not write device memory, and does not count as running for queue_alone: the wait may end only
 * after queue_alone has returned. Nor does its thread count among the workers, so the stream that ends the wait gets
 * one.
 * Only for the thread that runs the command.
 */
void queue_rest_begin(void);
void queue_rest_end(void);
/* A stream of the group whose handle is not retired, or NULL. */
CUstream queue_group_live(queue_group_t *group);

#endif
