/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of calls over all connections. next is the number of the call that may be issued. The thread that has that
 * call issues it and then advances next. Most programs call from one thread, so the fast paths are a load and a store.
 * Other threads spin briefly and then sleep. If a call never arrives, the threads that wait for later calls sleep until
 * the client ends; then the watcher (watch.c) wakes them.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>

#define SPINS 2000

static uint64_t next = 1; /* atomic */
static unsigned sleepers; /* atomic */
static bool broken;       /* atomic */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

bool server_order_is_next(uint64_t number)
{
	return __atomic_load_n(&next, __ATOMIC_RELAXED) == number; /* server_order_wait orders */
}

int server_order_wait(uint64_t number)
{
	/* Acquire pairs with the release in server_order_advance: this call sees what the earlier calls did. */
	for (int i = 0; i < SPINS; i++) {
		uint64_t now = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
		if (now == number)
			return 0;
		if (now > number)
			return -EPROTO;
		relax();
	}
	pthread_mutex_lock(&lock);
	/* Sequentially consistent with the store and the load in server_order_advance: either that function sees the
	 * sleeper, or this one sees the new next. */
	__atomic_add_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&next, __ATOMIC_SEQ_CST) < number && !__atomic_load_n(&broken, __ATOMIC_RELAXED))
		pthread_cond_wait(&moved, &lock);
	__atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
	uint64_t now = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
	return now == number ? 0 : now > number ? -EPROTO : -ECANCELED;
}

void server_order_advance(uint64_t number)
{
	/* Also a release: see server_order_wait. */
	__atomic_store_n(&next, number + 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST)) {
		pthread_mutex_lock(&lock);
		pthread_cond_broadcast(&moved);
		pthread_mutex_unlock(&lock);
	}
}

void server_order_break(void)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&broken, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}
