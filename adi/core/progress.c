/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress: the engine's, then that of the tasks. A thread that waits with nothing to do lets other processes, if there are
 * more than processors, and other threads run, and sleeps in the end.
 */
#include "adi/core/entry.h"
#include "adi/core/job.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define TURNS 500           /* polls before a process sleeps that shares its processor with others */
/* If a yield takes longer, on average, than YIELD_NS plus YIELD_RANK_NS times the number of ranks on this machine, other
 * programs use the processor; then the next CROWDED waits poll once and sleep. */
#define YIELD_NS 1000000
#define YIELD_RANK_NS 50000
#define CROWDED 256
#define SPINS 2000          /* polls without a result before a process that must poll yields the processor */
#define NAP_AFTER 20000     /* polls without a result before a thread among several naps */
#define NAP_NS 50000
#define ALONE_MS 10         /* longest sleep of the only thread that has called MPI so far, if there may be others */
#define LOOK 1024          /* number of polls without a result between two calls of adi_watch; a sleep counts as LOOK polls */
#define ON_DEATH_MAX 8

static struct adi_task *tasks;
static struct adi_task *next_task; /* of the walk in run_tasks */
static int polling_tasks;          /* tasks that are not by_engine */
static unsigned idle;              /* polls without a result, one after another, of all threads */
static unsigned crowded;           /* number of the next waits that sleep without a yield */
static void (*on_death[ON_DEATH_MAX])(struct adi_peer *);
static int n_on_death;

void adi_task_add(struct adi_task *task)
{
	task->next = tasks;
	task->link = &tasks;
	if (tasks)
		tasks->link = &task->next;
	tasks = task;
	polling_tasks += !task->by_engine;
}

void adi_task_remove(struct adi_task *task)
{
	if (next_task == task)
		next_task = task->next;
	if (task->next)
		task->next->link = task->link;
	*task->link = task->next;
	polling_tasks -= !task->by_engine;
}

bool adi_tasks_poll(void)
{
	return polling_tasks > 0;
}

static bool run_tasks(void)
{
	bool done = false;
	for (struct adi_task *task = tasks; task; task = next_task) {
		next_task = task->next;
		done |= task->advance(task);
	}
	return done;
}

static void fail(int error) __attribute__((noreturn, cold));
static void fail(int error)
{
	hr_log(HR_LOG_ERROR, "adi: progress failed: %s; aborting the job", strerror(-error));
	adi_abort(MPI_ERR_INTERN, "progress failed");
}

/* Makes progress; does not yield. */
static bool poll(void)
{
	int ran = ch3_progress_poll(adi_job.engine);
	if (ran < 0)
		fail(ran);
	bool done = ran > 0;
	if (tasks)
		done |= run_tasks();
	idle = done ? 0 : idle + 1;
	if (idle % LOOK == LOOK - 1)
		adi_watch(idle < LOOK);
	return done;
}

bool adi_poll(void)
{
	bool done = poll();
	/* If there are more ranks than processors, the awaited rank may need this processor. */
	if (!done && adi_job.oversubscribed)
		sched_yield();
	return done;
}

/* Yields the processor up to TURNS times before sleeping: waking up takes longer than a yield, unless other programs use the
 * processor. */
static bool poll_in_turns(void)
{
	if (crowded > 0) {
		crowded--;
		return poll();
	}
	uint64_t begin = hr_now_ns(), most = YIELD_NS + YIELD_RANK_NS * (uint64_t)adi_job.local_size;
	for (unsigned turn = 1; turn <= TURNS; turn++) {
		if (adi_poll())
			return true;
		if (hr_now_ns() - begin > turn * most) {
			crowded = CROWDED;
			return false;
		}
	}
	return false;
}

/* The program may wait for what another thread does, so this returns after every poll. It sleeps without the lock. */
static __attribute__((noinline)) void progress_among_threads(void)
{
	if (adi_poll())
		return;
	if (adi_others_wait()) {
		adi_yield();
	} else if (idle > (adi_job.oversubscribed ? TURNS : NAP_AFTER)) {
		adi_unlock();
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
		adi_lock();
	} else if (idle > SPINS) {
		sched_yield();
	}
}

static __attribute__((noinline)) void progress_polling(void)
{
	while (polling_tasks && !adi_poll() && !adi_others_wait())
		if (idle > SPINS)
			sched_yield();
}

static __attribute__((noinline)) void progress_sleeping(void)
{
	if (adi_job.oversubscribed && poll_in_turns())
		return;
	/* A message to this process itself may have been what a task waits for, without a callback of the engine. */
	if (tasks && run_tasks())
		return;
	/* The first call of a second thread waits as long as this at most. */
	int ran = ch3_progress_wait(adi_job.engine, adi_threaded ? ALONE_MS : adi_watch_period());
	if (ran < 0)
		fail(ran);
	if (ran == 0)
		adi_watch(idle < LOOK);
	idle = ran ? 0 : idle + LOOK;
	if (tasks)
		run_tasks();
}

void adi_progress_for(unsigned messages)
{
	if (!adi_threaded && !tasks && ch3_progress_short(adi_job.engine, messages))
		idle = 0;
	else if (adi_threaded && (adi_several_threads() || adi_others_wait()))
		progress_among_threads();
	else if (polling_tasks)
		progress_polling();
	else
		progress_sleeping();
}

void adi_on_death(void (*function)(struct adi_peer *peer))
{
	for (int i = 0; i < n_on_death; i++)
		if (on_death[i] == function)
			return;
	if (n_on_death < ON_DEATH_MAX)
		on_death[n_on_death++] = function;
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	(void)context;
	struct adi_peer *peer = ch3_vc_user(vc);
	peer->error = error;
	for (int i = 0; i < n_on_death; i++)
		on_death[i](peer);
}

void adi_progress_start(void)
{
	ch3_on_failure(adi_job.engine, on_failure, NULL);
}

void adi_progress_end(void)
{
	n_on_death = 0;
	adi_watch_end();
	tasks = next_task = NULL;
	polling_tasks = 0;
}
