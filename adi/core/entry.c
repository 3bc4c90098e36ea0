/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's lock, and checks of arguments.
 *
 * The lock is a mutex with an owner and a depth. A thread that waits for it is counted in `waiting`, so that the owner knows in
 * progress whether to hand it over. Handing over ends when any other thread has taken the lock: `turns` counts that.
 */
#include "adi/core/entry.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define TRIES 200 /* to take the lock before the thread sleeps */

bool adi_running, adi_threaded;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiting;
static atomic_uint turns;
static unsigned depth;
/* The address of a variable of the owner's. Only the owner reads its own value, so no ordering is needed. */
static _Atomic(const char *) owner;
static _Thread_local char me;
/* Under the lock: the last owner, and whether the owner has ever changed. */
static const char *last;
static bool several;

static bool is_mine(void)
{
	return atomic_load_explicit(&owner, memory_order_relaxed) == &me;
}

static void take(void)
{
	if (pthread_mutex_trylock(&mutex)) {
		/* Counts only: nothing else is read that depends on it. The same holds for turns. */
		atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
		int tries = TRIES;
		while (--tries > 0 && pthread_mutex_trylock(&mutex))
			__builtin_ia32_pause();
		if (!tries)
			pthread_mutex_lock(&mutex);
		atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
	atomic_store_explicit(&owner, &me, memory_order_relaxed);
	several |= last && last != &me;
	last = &me;
}

static void give(void)
{
	atomic_store_explicit(&owner, NULL, memory_order_relaxed);
	pthread_mutex_unlock(&mutex);
}

void adi_lock(void)
{
	if (!is_mine()) {
		take();
		depth = 0;
	}
	depth++;
}

bool adi_try_lock(void)
{
	if (pthread_mutex_trylock(&mutex))
		return false;
	atomic_store_explicit(&owner, &me, memory_order_relaxed);
	depth = 1;
	return true;
}

/* A thread that does not own the lock may call this: it entered the function in which MPI_Init switched the locking on. */
void adi_unlock(void)
{
	if (is_mine() && --depth == 0)
		give();
}

bool adi_others_wait(void)
{
	return atomic_load_explicit(&waiting, memory_order_relaxed) > 0;
}

bool adi_several_threads(void)
{
	return several;
}

void adi_yield(void)
{
	if (!adi_others_wait() || !is_mine())
		return;
	unsigned kept = depth, before = atomic_load_explicit(&turns, memory_order_relaxed);
	give();
	while (adi_others_wait() && atomic_load_explicit(&turns, memory_order_relaxed) == before)
		sched_yield();
	take();
	depth = kept;
}

int adi_error_not_running(void)
{
	return adi_error(MPI_ERR_OTHER, "MPI is not initialised, or is finalised");
}

int adi_check_pointer(const void *pointer, const char *argument)
{
	return pointer ? MPI_SUCCESS : adi_error(MPI_ERR_ARG, "%s is a null pointer", argument);
}

int adi_check_count(MPI_Count count, const char *argument)
{
	if (count >= 0)
		return MPI_SUCCESS;
	return adi_error(MPI_ERR_COUNT, "%s is %lld; valid counts: 0 and above", argument, (long long)count);
}

int adi_error_too_large(MPI_Count value, const char *argument)
{
	return adi_error(MPI_ERR_VALUE_TOO_LARGE, "%s is %lld, too large for its type", argument, (long long)value);
}
