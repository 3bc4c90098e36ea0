/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams as queues, and the threads that serve them.
 *
 * A stream's commands run one after another in the order submitted. A command may depend on a command of another
 * stream. The legacy default stream orders itself with the blocking streams of its context (CUDA Runtime API, "Stream
 * synchronization behavior"): its command waits for what they have been given before, and what they are given later
 * waits for it. A stream whose next command may run is ready; worker threads, started as they are needed (at most
 * QUEUE_MAX_WORKERS, so that many kernels run at once), take ready streams, the highest priority first. A thread that
 * waits for a stream that is ready but not yet taken runs it itself instead of sleeping.
 *
 * One lock guards all queues of the process. Dependences always point to commands submitted earlier, so they cannot
 * form a circle. Any thread may call anything here.
 */
#ifndef SOFTGPU_QUEUE_H
#define SOFTGPU_QUEUE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/driver/handle.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define QUEUE_MAX_WORKERS 128

/* Head of every command; who submits it allocates it with malloc, the queue frees it. */
typedef struct command {
	/* Runs it. An error is a fault: it stays with the context, whose later commands are then skipped. */
	CUresult (*run)(struct command *command);
	void (*finish)(struct command *command); /* NULL or: gives back what it holds, run or skipped */
	bool host_code;     /* the program's own function: only a worker runs it */
	bool despite_fault; /* runs after a fault too */
	/* The queue's: */
	struct command *next;
	uint64_t sequence, ticket;
	CUstream on; /* NULL, or runs when this stream has completed on_sequence; a reference is held */
	uint64_t on_sequence;
} command_t;

enum queue_state {
	QUEUE_IDLE,    /* no command */
	QUEUE_READY,   /* listed for a worker */
	QUEUE_RUNNING, /* a thread runs its commands */
	QUEUE_BLOCKED, /* listed with the stream that its first command waits for */
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
	bool blocking; /* orders itself with the legacy stream */
	CUgreenCtx green; /* it was created for; NULL; atomic; compared only, see green.h for what it is */
	bool of_thread; /* its thread's default stream in the context; atomic: nobody destroys it by its handle */
	bool orphan;   /* its green context is gone; atomic */
	bool detached; /* its context is gone; under the queue's lock */
	/* Under the queue's lock: */
	unsigned references; /* the handle, work, events, dependences */
	enum queue_state state;
	command_t *first, *last;
	uint64_t submitted;
	uint64_t completed; /* read without the lock too */
	uint64_t claim_ticket; /* of a claim without command; 0 if there is none */
	CUstream previous_ready, next_ready;
	CUstream first_blocked, next_blocked;
	CUstream previous, next; /* of the context's */
	unsigned sleepers;
	pthread_cond_t done;
	/* Of stream.c, under its lock: */
	CUaccessPolicyWindow access_window;
	CUsynchronizationPolicy sync_policy; /* 0: never set */
	/* Of capture.c, under its lock: */
	struct capture_stream *capture; /* NULL: it does not capture */
};

/* The streams of one context, and the fault of their commands. Part of struct CUctx_st. */
typedef struct queue_group {
	uint64_t id;    /* the context's, for messages */
	CUresult fault; /* atomic; CUDA_SUCCESS or the first one */
	/* Under the queue's lock: */
	CUstream legacy, first;
	CUstream gate; /* what all later streams wait for, see context_event.c; NULL; set once, under the queue's lock */
	unsigned busy; /* blocking streams that are not idle */
} queue_group_t;

/* Records a fault of the group's context; the first one stays. */
void queue_group_fail(queue_group_t *group, CUresult fault);
static inline CUresult queue_group_error(const queue_group_t *group)
{
	/* Orders nothing: who reports the fault needs the code only. */
	return __atomic_load_n(&group->fault, __ATOMIC_RELAXED);
}

/* A stream of context, in its group. NULL: no memory. Its one reference is the caller's. */
CUstream queue_stream_new(CUcontext context, queue_group_t *group, unsigned flags, int priority, bool legacy);

/* Another reference; one reference less: work still to be done is done first. */
void queue_stream_hold(CUstream stream);
void queue_stream_release(CUstream stream);

/* Takes the command over; returns its number. */
uint64_t queue_submit(CUstream stream, command_t *command);

/* The commands of stream from now on wait for on's command number sequence. False: no memory. */
bool queue_submit_wait(CUstream stream, CUstream on, uint64_t sequence);

/*
 * Claims a stream that has nothing to do and nothing to wait for: true, and the caller does the work itself and calls
 * queue_unclaim. False: submit a command.
 */
bool queue_claim(CUstream stream);
void queue_unclaim(CUstream stream);

/* Number of the last command submitted; the command is completed when queue_done. */
uint64_t queue_submitted(CUstream stream);
bool queue_done(CUstream stream, uint64_t sequence);
/* Returns when it is. The caller holds a reference or the handle. */
void queue_wait(CUstream stream, uint64_t sequence);
/* Returns when everything that the group's streams had been given is completed. */
void queue_wait_group(queue_group_t *group);
/*
 * The group's streams, each with a reference, in an array that the caller frees; green: only those of this one (NULL:
 * all). NULL: no memory.
 */
CUstream *queue_group_streams(queue_group_t *group, CUgreenCtx green, size_t *count);
/* The group's gate, made when it is first asked for. NULL: no memory. */
CUstream queue_group_gate(CUcontext context, queue_group_t *group);
/*
 * Lets go of the gate and of streams that others still refer to, before the context goes away. All are idle and their
 * handles retired.
 */
void queue_group_detach(queue_group_t *group);
/*
 * Calls back at a moment when no command of any stream runs, and lets none begin meanwhile. call may not call here. Waits
 * for such a moment as long as commands follow each other without a gap.
 */
int queue_alone(int (*call)(void *argument), void *argument);
/*
 * Around what a command waits for, a value or another process, or the program's own code, without writing memory of
 * the device: its stream does not count as running for queue_alone meanwhile, whose caller may have to go on first.
 * Only for the thread that runs the command.
 */
void queue_rest_begin(void);
void queue_rest_end(void);
/* A stream of the group whose handle is not retired; NULL. */
CUstream queue_group_live(queue_group_t *group);

#endif
