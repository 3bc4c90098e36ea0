/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An optional thread that makes progress while the program computes, so that operations on windows without shared memory, and
 * rendezvous, do not wait for the next call of MPI. It never waits for the library's lock: who holds the lock makes progress.
 */
#include "adi/core/entry.h"
#include "adi/core/job.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define NAP_NS 50000
#define NAP_NS_OVERSUBSCRIBED 500000

HR_SETTING(thread_setting, "HEADRACE_MPI_PROGRESS_THREAD", "0", 0, 1,
	   "mpi: 1: a thread makes progress while the program computes; every call then takes a lock");

static pthread_t thread;
static bool started;
static atomic_bool stop;

bool adi_helper_wanted(void)
{
	uint64_t wanted = 0;
	hr_setting_u64(&thread_setting, &wanted);
	return wanted == 1 && adi_job.size > 1;
}

static void *run(void *unused)
{
	(void)unused;
	const struct timespec nap = { .tv_nsec = adi_job.oversubscribed ? NAP_NS_OVERSUBSCRIBED : NAP_NS };
	/* Relaxed: the thread reads nothing that depends on it. */
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		bool did = false;
		if (adi_try_lock()) {
			did = adi_poll();
			adi_unlock();
		}
		if (!did)
			nanosleep(&nap, NULL);
	}
	return NULL;
}

void adi_helper_start(void)
{
	sigset_t all, before;
	if (started || !adi_helper_wanted())
		return;
	/* Signals are for the threads of the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	atomic_store_explicit(&stop, false, memory_order_relaxed);
	int error = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	started = !error;
	if (error)
		hr_log(HR_LOG_ERROR, "adi: no thread for progress (HEADRACE_MPI_PROGRESS_THREAD=1): %s", strerror(error));
}

void adi_helper_end(void)
{
	if (!started)
		return;
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	started = false;
}
