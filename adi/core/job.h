/* SPDX-License-Identifier: BSD-3-Clause */
/* This process and its peers in the job, the engine, progress, and the process manager. */
#ifndef ADI_CORE_JOB_H
#define ADI_CORE_JOB_H

#include "ch3/ch3.h"

#include <stdbool.h>
#include <stdint.h>

/* Packet types of MPI over ch3. Each unit registers its own. */
enum {
	ADI_PACKET_MESSAGE = CH3_TYPE_FIRST, /* message/: a point-to-point message */
	ADI_PACKET_BROKEN,                   /* core/meet.c: a rank has died */
	ADI_PACKET_CREDIT,                   /* message/ */
	ADI_PACKET_MESSAGE_LAST = ADI_PACKET_MESSAGE + 7,
	ADI_PACKET_WINDOW,                   /* window/: the first of its types */
	ADI_PACKET_WINDOW_LAST = ADI_PACKET_WINDOW + 23,
};

/* A process of the job. */
struct adi_peer {
	int rank;     /* in MPI_COMM_WORLD */
	ch3_vc_t *vc; /* NULL: this process itself */
	int error;    /* 0, or the error with which its connection has failed */
	bool opened;  /* ch3_vc_open has succeeded: a failure of the connection will be in error */
};

/* Processes with the same machine can open each other's shared memory: one kernel, one network namespace. */
struct adi_machine {
	uint64_t boot, netns;
};
static inline bool adi_machine_same(const struct adi_machine *a, const struct adi_machine *b)
{
	return a->boot == b->boot && a->netns == b->netns;
}

struct adi_job {
	int rank, size;      /* in MPI_COMM_WORLD */
	int local_size;      /* ranks on this machine */
	struct adi_machine machine; /* of this process; those of others are exchanged where they matter (comm/machine.c) */
	int thread_level;
	bool oversubscribed; /* more ranks than processors on this machine */
	ch3_t *engine;
	struct adi_peer *peer; /* [size] */
	int told_dead; /* rank in MPI_COMM_WORLD of the process that was reported as dead in shared memory; -1: none */
};
extern struct adi_job adi_job;
extern const uint32_t adi_job_build; /* a hash of the sources: build.py */

/*
 * Work that progress does beside the engine's: schedules of collectives, requests of windows. advance does what can be
 * done without blocking, and returns whether anything was done. A task may remove itself and add others inside advance.
 */
struct adi_task {
	bool (*advance)(struct adi_task *task);
	/* The task can go on only after a handler or callback of the engine has run, so progress may sleep. Otherwise, for
	 * example if it waits for a flag in shared memory, progress polls. */
	bool by_engine;
	struct adi_task *next, **link;
};
void adi_task_add(struct adi_task *task);
void adi_task_remove(struct adi_task *task);
/* Whether there is a task that is not by_engine. */
bool adi_tasks_poll(void);

/* Makes progress without blocking. Returns whether anything was done. */
bool adi_poll(void);
/* Makes progress until something was done; sleeps if nothing is to do for a while, and lets other threads in. The caller
 * loops: while (!condition) adi_progress(). Ends the job if progress fails. */
void adi_progress_for(unsigned messages); /* messages: how many the caller still waits for, at least 1 */
static inline void adi_progress(void)
{
	adi_progress_for(1);
}

/* watch.c: waits for a message from any source that are under way: posted receives, and probes. While there are any and nothing
 * happens for a while, progress calls adi_watch, which opens connections to the other ranks. first: the wait has just begun. */
extern int adi_any_waits;
void adi_watch(bool first);
/* The longest that progress may sleep without a call of adi_watch, ms; -1: no limit. */
int adi_watch_period(void);
void adi_watch_end(void);
/* A clock for periods of 10 ms and more. */
int64_t adi_now_ms(void);

/* helper.c: the thread that makes progress while the program computes (HEADRACE_MPI_PROGRESS_THREAD). While it runs, every
 * function takes the lock. end: it has ended afterwards. */
bool adi_helper_wanted(void);
void adi_helper_start(void);
void adi_helper_end(void);

/* A function that runs on the failure of a peer's connection, after peer->error was set. At most 8 are registered. */
void adi_on_death(void (*function)(struct adi_peer *peer));

/* progress.c: registers the engine's failure callback; forgets the functions of adi_on_death. */
void adi_progress_start(void);
void adi_progress_end(void);

/* job.c: starts and ends everything below MPI_Init and MPI_Session_init. */
int adi_job_start(void); /* returns an error class */
void adi_job_end(void);

/* launch_*.c: the process manager. Without one the job has one process. On failure the functions log the reason and
 * return a negated errno value. local_size: number of ranks on this machine. */
int adi_launch_init(int *rank, int *size, int *local_size);
/* Publishes this process's card, and returns when all ranks have published theirs. Collective, once. */
int adi_launch_publish(const hr_card_t *card);
/* Fetches the card of another rank. Not collective; may wait for an answer of the process manager. Also between
 * adi_launch_meet_start and the end of the fence. */
int adi_launch_fetch(int rank, hr_card_t *card);
/* The fence of MPI_Finalize: collective, once. start announces that this process has reached the fence; test checks
 * whether all ranks have. Both return 1 if all ranks have, 0 if not yet, or a negated errno value. The caller makes
 * progress between the calls. */
int adi_launch_meet_start(void);
int adi_launch_meet_test(void);
/* Asks the process manager to end the whole job. Without a process manager it returns. */
void adi_launch_abort(int code, const char *message);
void adi_launch_finalize(void);

/* meet.c: prepare registers a handler with the engine. adi_meet waits until all ranks have called MPI_Finalize, and makes
 * progress meanwhile. Returns an error class. */
int adi_meet_prepare(void);
int adi_meet(void);
/* After the death of a rank, all others may want to end the job at the same time. Returns whether another rank has told the user
 * why. Waits for lower ranks, at most 0.7 s. */
bool adi_death_reported(void);
/* Tells the ranks that can be reached that this rank has told the user. */
void adi_death_report(void);
/* The rank in MPI_COMM_WORLD that has died, or -1. A rank that learnt of the death from another rank may learn by its own connection
 * a little later which rank it was: waits at most 0.2 s for that. */
int adi_death_find(void);

#endif
